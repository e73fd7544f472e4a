"""Convert sheets and forms to discord.py objects. Only accounts that a sheet lists can be mentioned."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any

import discord

from signoff.channels.discord.custom_id import Press
from signoff.channels.discord.sheet import AttachedFile, Button, Form, Menu, MessageSheet, Style

SILENT = discord.AllowedMentions.none()

_STYLES: dict[Style, discord.ButtonStyle] = {
    "primary": discord.ButtonStyle.primary,
    "secondary": discord.ButtonStyle.secondary,
    "success": discord.ButtonStyle.success,
    "danger": discord.ButtonStyle.danger,
}


def to_send(sheet: MessageSheet) -> dict[str, Any]:
    """Return the arguments of `send` for a new message."""
    made: dict[str, Any] = {"content": sheet.content or None, "allowed_mentions": _mentions(sheet)}
    if embed := _embed(sheet):
        made["embed"] = embed
    else:  # otherwise Discord fetches any URL in the text for a preview, without a click
        made["suppress_embeds"] = True
    if view := _view(sheet):
        made["view"] = view
    if sheet.paper is not None:
        made["file"] = _file(sheet.paper)
    return made


def to_edit(sheet: MessageSheet) -> dict[str, Any]:
    """Return the arguments of `edit` that replace a message's content. Editing notifies nobody."""
    return {
        **({} if sheet.keeps_content else {"content": sheet.content or None}),
        "embed": _embed(sheet),
        "view": _view(sheet),
        "attachments": [_file(sheet.paper)] if sheet.paper is not None else [],
        "allowed_mentions": SILENT,
    }


def _mentions(sheet: MessageSheet) -> discord.AllowedMentions:
    if not sheet.mentions:
        return SILENT
    users = [discord.Object(account) for account in sheet.mentions]
    return discord.AllowedMentions(everyone=False, roles=False, replied_user=False, users=users)


def modal(form: Form) -> discord.ui.Modal:
    """Return a modal. Its submission is found by custom id, so discord.py need not keep it."""
    made = discord.ui.Modal(title=form.title, custom_id=form.id)
    for field in form.fields:
        style = discord.TextStyle.paragraph if field.long else discord.TextStyle.short
        text = discord.ui.TextInput[Any](
            style=style,
            custom_id=field.id,
            placeholder=field.placeholder or None,
            default=field.value or None,
            required=field.required,
            max_length=field.most,
        )
        made.add_item(discord.ui.Label[Any](text=field.label, description=field.about or None, component=text))
    made.stop()
    return made


def presses_in(message: discord.Message) -> Iterator[Press]:
    """Yield the presses that a message's buttons stand for."""
    for row in message.components:
        for part in getattr(row, "children", ()):
            found = Press.of(getattr(part, "custom_id", None) or "")
            if found is not None:
                yield found


def holds(message: discord.Message, sheet: MessageSheet) -> bool:
    """Whether a message has the content and the buttons of a sheet. Discord trims texts."""
    embed = message.embeds[0] if message.embeds else discord.Embed()
    there = (message.content, embed.title, embed.description, embed.footer.text)
    content = message.content if sheet.keeps_content else sheet.content
    wanted = (content, sheet.title, sheet.text, sheet.footer)
    view = _view(sheet)
    parts = [one for row in message.components for one in getattr(row, "children", ())]
    return (
        [(text or "").strip() for text in there] == [text.strip() for text in wanted]
        and [_part(one) for one in parts] == [_part(one) for one in (view.children if view is not None else ())]
        and bool(message.attachments) == (sheet.paper is not None)
        and not (message.flags.suppress_embeds and is_framed(sheet))
    )


def _part(part: Any) -> tuple[Any, ...]:
    return tuple(getattr(part, name, None) for name in ("custom_id", "url", "label", "disabled"))


def is_framed(sheet: MessageSheet) -> bool:
    """Whether a sheet has an embed."""
    return bool(sheet.title or sheet.text or sheet.footer)


def _embed(sheet: MessageSheet) -> discord.Embed | None:
    if not is_framed(sheet):
        return None
    embed = discord.Embed(title=sheet.title or None, description=sheet.text or None, colour=sheet.colour or None)
    if sheet.footer:
        embed.set_footer(text=sheet.footer)
    return embed


def _view(sheet: MessageSheet) -> discord.ui.View | None:
    if not sheet.rows:
        return None
    view = discord.ui.View(timeout=None)
    for number, row in enumerate(sheet.rows):
        for item in [_menu(row, number)] if isinstance(row, Menu) else [_button(one, number) for one in row]:
            view.add_item(item)
    # Presses are recognised by custom id. discord.py does not keep a view that is stopped.
    view.stop()
    return view


def _button(button: Button, row: int) -> discord.ui.Button[Any]:
    if button.url:
        return discord.ui.Button(label=button.label, url=button.url, disabled=button.off, row=row)
    style = _STYLES[button.style]
    return discord.ui.Button(label=button.label, style=style, custom_id=button.id, disabled=button.off, row=row)


def _menu(menu: Menu, row: int) -> discord.ui.Select[Any]:
    options = [
        discord.SelectOption(label=option.label, value=option.value, description=option.description or None)
        for option in menu.options
    ]
    return discord.ui.Select(custom_id=menu.id, placeholder=menu.placeholder, options=options, row=row)


def _file(paper: AttachedFile) -> discord.File:
    return discord.File(io.BytesIO(paper.text.encode()), filename=paper.name)
