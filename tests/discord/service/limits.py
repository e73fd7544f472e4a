"""The documented limits of messages, modals, threads and commands. Whoever breaks one gets a 400, as there."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from tests.discord.service.refusal import Form, Path, Refusal

CONTENT = 2000
EMBEDS = 10
EMBED_TOTAL = 6000
MENTIONS = 100
"""Ids that `allowed_mentions` may name."""
FILE_BYTES = 10 * 1024 * 1024
ARCHIVE_AFTER = (60, 1440, 4320, 10080)

EPHEMERAL = 1 << 6
SUPPRESS_EMBEDS = 1 << 2
SUPPRESS_NOTIFICATIONS = 1 << 12
COMPONENTS_V2 = 1 << 15

MESSAGE_FIELDS = frozenset(
    "content nonce tts embeds allowed_mentions message_reference components sticker_ids attachments flags "
    "enforce_nonce".split()
)
EDIT_FIELDS = frozenset("content embeds flags allowed_mentions components attachments tts".split())
CALLBACK_FIELDS = frozenset("tts content embeds allowed_mentions flags components attachments".split())
FOLLOWUP_FIELDS = CALLBACK_FIELDS

_EMBED_FIELDS = frozenset(
    "title type description url timestamp color footer image thumbnail author fields flags".split()
)
_COMMAND_FIELDS = frozenset(
    "id type name name_localizations description description_localizations options default_member_permissions "
    "dm_permission default_permission integration_types contexts nsfw handler".split()
)
_OPTION_FIELDS = frozenset(
    "type name name_localizations description description_localizations required choices options channel_types "
    "min_value max_value min_length max_length autocomplete".split()
)


def check_message(body: Mapping[str, Any], known: Iterable[str], *, flags: int) -> None:
    """The body of a message that is sent or edited; `flags` are those that this route lets the sender set."""
    form = Form()
    form.fields((), body, known)
    form.text(("content",), body.get("content"), CONTENT)
    nonce = body.get("nonce")
    if nonce is not None and not isinstance(nonce, int):
        form.text(("nonce",), nonce, 25)
    if body.get("flags") and body["flags"] & ~flags:
        form.unknown.append(f"flags={body['flags']:#x} (the stand-in knows {flags:#x})")
    if body.get("embeds") is not None:
        _check_embeds(form, body["embeds"])
    if body.get("components") is not None:
        _check_rows(form, body["components"])
    if body.get("allowed_mentions") is not None:
        _check_mentions(form, body["allowed_mentions"])
    if body.get("message_reference") is not None:
        form.fields(
            ("message_reference",),
            body["message_reference"],
            ("type", "message_id", "channel_id", "guild_id", "fail_if_not_exists"),
        )
    for index, attachment in enumerate(body.get("attachments") or ()):
        form.fields(
            ("attachments", index),
            attachment,
            "id filename description title duration_secs waveform is_remix is_spoiler size url proxy_url spoiler "
            "content_type height width flags ephemeral".split(),
        )
    form.close()


def _check_mentions(form: Form, allowed: Any) -> None:
    form.fields(("allowed_mentions",), allowed, ("parse", "roles", "users", "replied_user"))
    for kind in ("users", "roles"):
        named = allowed.get(kind) or ()
        if len(named) > MENTIONS:
            form.add(("allowed_mentions", kind), "BASE_TYPE_MAX_LENGTH", f"Must be {MENTIONS} or fewer in length.")
        if named and kind in (allowed.get("parse") or ()):
            form.add(("allowed_mentions",), "MESSAGE_ALLOWED_MENTIONS_PARSE_EXCLUSIVE", f"parse has {kind} too")


def check_files(files: Iterable[tuple[str, bytes]]) -> None:
    for _, data in files:
        if len(data) > FILE_BYTES:
            raise Refusal(413, 40005, "Request entity too large")


def _check_embeds(form: Form, embeds: Any) -> None:
    if not form.count(("embeds",), embeds, 0, EMBEDS):
        return
    total = 0
    for index, embed in enumerate(embeds):
        if form.fields(("embeds", index), embed, _EMBED_FIELDS):
            total += _check_embed(form, ("embeds", index), embed)
    if total > EMBED_TOTAL:
        form.add(("embeds",), "MAX_EMBED_SIZE_EXCEEDED", f"Embed size exceeds maximum size of {EMBED_TOTAL}")


def _check_embed(form: Form, at: Path, embed: Mapping[str, Any]) -> int:
    """Checks one embed; returns how much of the 6000 it takes. Blanks at either end do not count: Discord trims."""
    parts = [
        ((*at, "title"), embed.get("title"), 256),
        ((*at, "description"), embed.get("description"), 4096),
        ((*at, "footer", "text"), (embed.get("footer") or {}).get("text"), 2048),
        ((*at, "author", "name"), (embed.get("author") or {}).get("name"), 256),
    ]
    fields = embed.get("fields") or []
    if form.count((*at, "fields"), fields, 0, 25):
        for index, field in enumerate(fields):
            place = (*at, "fields", index)
            if form.fields(place, field, ("name", "value", "inline")):
                for name, most in (("name", 256), ("value", 1024)):
                    if not (field.get(name) or "").strip():
                        form.required((*place, name))
                    parts.append(((*place, name), field.get(name), most))
    total = 0
    for path, value, most in parts:
        trimmed = value.strip() if isinstance(value, str) else value
        form.text(path, trimmed, most)
        total += len(trimmed) if isinstance(trimmed, str) else 0
    form.number((*at, "color"), embed.get("color"), 0, 0xFFFFFF)
    return total


def trimmed_embed(embed: Mapping[str, Any]) -> dict[str, Any]:
    """An embed as the service keeps it."""
    kept = {key: value.strip() if key in ("title", "description") else value for key, value in embed.items()}
    return {"type": "rich", **kept}


def is_empty_embed(embed: Mapping[str, Any]) -> bool:
    return not any(value for key, value in embed.items() if key not in ("type", "color", "timestamp", "flags"))


def _check_rows(form: Form, rows: Any) -> None:
    if not form.count(("components",), rows, 0, 5):
        return
    seen: set[str] = set()
    for index, row in enumerate(rows):
        at: Path = ("components", index)
        if not form.fields(at, row, ("type", "id", "components")):
            continue
        if row.get("type") != 1:
            form.unknown.append(f"components.{index}.type={row.get('type')} (the stand-in knows action rows only)")
            continue
        if not form.count((*at, "components"), row.get("components"), 1, 5):
            continue
        children = row["components"]
        if len(children) > 1 and any(child.get("type") != 2 for child in children):
            form.add(
                (*at, "components"),
                "COMPONENT_LAYOUT_WIDTH_EXCEEDED",
                "The specified component exceeds the maximum width",
            )
        for place, child in enumerate(children):
            _check_child(form, (*at, "components", place), child, seen)


def _check_child(form: Form, at: Path, child: Mapping[str, Any], seen: set[str]) -> None:
    match child.get("type"):
        case 2:
            _check_button(form, at, child, seen)
        case 3:
            check_menu(form, at, child, seen)
        case other:
            form.unknown.append(f"{'.'.join(map(str, at))}.type={other}")


def _check_id(form: Form, at: Path, custom_id: Any, seen: set[str]) -> None:
    form.text((*at, "custom_id"), custom_id, 100, least=1, needed=True)
    if isinstance(custom_id, str):
        if custom_id in seen:
            form.add((*at, "custom_id"), "COMPONENT_CUSTOM_ID_DUPLICATED", "Component custom id cannot be duplicated")
        seen.add(custom_id)


def _check_button(form: Form, at: Path, button: Mapping[str, Any], seen: set[str]) -> None:
    form.fields(at, button, "type id style label emoji custom_id sku_id url disabled".split())
    form.choice((*at, "style"), button.get("style"), range(1, 7))
    form.text((*at, "label"), button.get("label"), 80)
    if not button.get("label") and not button.get("emoji"):
        form.required((*at, "label"))
    if button.get("style") == 5:
        form.text((*at, "url"), button.get("url"), 512, least=1, needed=True)
        if button.get("custom_id"):
            form.add(
                at, "BUTTON_COMPONENT_CUSTOM_ID_URL_MUTUALLY_EXCLUSIVE", "A custom id and url cannot both be specified"
            )
    else:
        _check_id(form, at, button.get("custom_id"), seen)


def check_menu(form: Form, at: Path, menu: Mapping[str, Any], seen: set[str]) -> None:
    form.fields(at, menu, "type id custom_id options placeholder min_values max_values disabled required".split())
    _check_id(form, at, menu.get("custom_id"), seen)
    form.text((*at, "placeholder"), menu.get("placeholder"), 150)
    form.number((*at, "min_values"), menu.get("min_values"), 0, 25)
    form.number((*at, "max_values"), menu.get("max_values"), 1, 25)
    if not form.count((*at, "options"), menu.get("options"), 1, 25):
        return
    values: set[Any] = set()
    for index, option in enumerate(menu["options"]):
        place = (*at, "options", index)
        form.fields(place, option, "label value description emoji default".split())
        form.text((*place, "label"), option.get("label"), 100, least=1, needed=True)
        form.text((*place, "value"), option.get("value"), 100, least=1, needed=True)
        form.text((*place, "description"), option.get("description"), 100)
        if option.get("value") in values:
            form.add(place, "SELECT_COMPONENT_OPTION_VALUE_DUPLICATED", "The specified option value is already used")
        values.add(option.get("value"))


def check_modal(body: Mapping[str, Any]) -> None:
    form = Form()
    form.fields((), body, ("custom_id", "title", "components"))
    form.text(("custom_id",), body.get("custom_id"), 100, least=1, needed=True)
    form.text(("title",), body.get("title"), 45, least=1, needed=True)
    seen: set[str] = set()
    if form.count(("components",), body.get("components"), 1, 5):
        for index, row in enumerate(body["components"]):
            _check_modal_row(form, ("components", index), row, seen)
    form.close()


def _check_modal_row(form: Form, at: Path, row: Mapping[str, Any], seen: set[str]) -> None:
    match row.get("type"):
        case 1:
            form.fields(at, row, ("type", "id", "components"))
            if form.count((*at, "components"), row.get("components"), 1, 1):
                for index, child in enumerate(row["components"]):
                    _check_input(form, (*at, "components", index), child, seen, labelled=False)
        case 18:
            form.fields(at, row, ("type", "id", "label", "description", "component"))
            form.text((*at, "label"), row.get("label"), 45, least=1, needed=True)
            form.text((*at, "description"), row.get("description"), 100)
            child = row.get("component") or {}
            if child.get("type") == 3:
                check_menu(form, (*at, "component"), child, seen)
            else:
                _check_input(form, (*at, "component"), child, seen, labelled=True)
        case 10:
            form.fields(at, row, ("type", "id", "content"))
            form.text((*at, "content"), row.get("content"), 4000, least=1, needed=True)
        case other:
            form.unknown.append(f"{'.'.join(map(str, at))}.type={other}")


def _check_input(form: Form, at: Path, field: Mapping[str, Any], seen: set[str], *, labelled: bool) -> None:
    known = "type id custom_id style label min_length max_length required value placeholder".split()
    if not form.fields(at, field, known):
        return
    if field.get("type") != 4:
        form.add((*at, "type"), "BASE_TYPE_CHOICES", 'Value of field "type" must be one of (4,).')
        return
    _check_id(form, at, field.get("custom_id"), seen)
    form.choice((*at, "style"), field.get("style"), (1, 2))
    form.text((*at, "label"), field.get("label"), 45, least=1, needed=not labelled)
    form.text((*at, "placeholder"), field.get("placeholder"), 100)
    form.number((*at, "min_length"), field.get("min_length"), 0, 4000)
    form.number((*at, "max_length"), field.get("max_length"), 1, 4000)
    form.text((*at, "value"), field.get("value"), min(4000, field.get("max_length") or 4000))


def check_thread(body: Mapping[str, Any], known: Iterable[str], *, is_new: bool) -> None:
    form = Form()
    form.fields((), body, known)
    if is_new or body.get("name") is not None:
        form.text(("name",), body.get("name"), 100, least=1, needed=True)
    if body.get("auto_archive_duration") is not None:
        form.choice(("auto_archive_duration",), body["auto_archive_duration"], ARCHIVE_AFTER)
    form.number(("rate_limit_per_user",), body.get("rate_limit_per_user"), 0, 21600)
    form.close()


_NAME = re.compile(r"[-_'\w]{1,32}\Z")


def check_command(body: Mapping[str, Any], at: Path = ()) -> None:
    form = Form()
    form.fields(at, body, _COMMAND_FIELDS)
    if body.get("type", 1) == 1:
        _check_named(form, at, body)
        _check_options(form, at, body.get("options") or [])
    form.close()


def _check_named(form: Form, at: Path, body: Mapping[str, Any]) -> None:
    name = body.get("name")
    if not isinstance(name, str) or not _NAME.match(name) or name != name.lower():
        form.add((*at, "name"), "APPLICATION_COMMAND_INVALID_NAME", "Command name is invalid")
    form.text((*at, "description"), body.get("description"), 100, least=1, needed=True)


def _check_options(form: Form, at: Path, options: Any) -> None:
    if not form.count((*at, "options"), options, 0, 25):
        return
    for index, option in enumerate(options):
        place = (*at, "options", index)
        if not form.fields(place, option, _OPTION_FIELDS):
            continue
        form.choice((*place, "type"), option.get("type"), range(1, 12))
        _check_named(form, place, option)
        _check_options(form, place, option.get("options") or [])
        choices = option.get("choices") or []
        if form.count((*place, "choices"), choices, 0, 25):
            for number, choice in enumerate(choices):
                form.fields((*place, "choices", number), choice, ("name", "name_localizations", "value"))
                form.text((*place, "choices", number, "name"), choice.get("name"), 100, least=1, needed=True)
