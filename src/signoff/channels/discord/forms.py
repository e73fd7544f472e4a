"""Forms (modals) that buttons open, and reading what was submitted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from signoff.channels.discord.custom_id import Press, Verb
from signoff.channels.discord.message_text import first
from signoff.channels.discord.notice_message import digest_of
from signoff.channels.discord.sheet import FORM_TITLE, INPUT, PLACEHOLDER, Field, Form, size
from signoff.channels.edit_draft import EditDraft
from signoff.channels.editor import BrokenArgs, read_args
from signoff.core.call import Veiled
from signoff.core.card import Choice, card_for
from signoff.core.request import ApprovalRequest
from signoff.core.safe_text import safe_text
from signoff.core.visible_text import visible
from signoff.errors import CannotCanonicalise, EditRefused

REASON, ARGS = "reason", "args"
"""Ids of the fields."""
_LONGEST_REASON = 1_000
_CURLY = frozenset("“”„‟″")
_MASKS = "Leave ⟦…⟧ as it is, or replace all of it. Errors are shown before anything runs."
_SENT_BACK = "This agent cannot run other arguments: the call is refused, and it is told yours."
_AS_ASKED = "The message shows what would change as it was asked, not with your edit."


def deny_form(request: ApprovalRequest) -> Form:
    """Return the form that asks for a reason to deny."""
    reason = Field(id=REASON, label="Why not? The agent reads it.", placeholder="not on a Friday", most=_LONGEST_REASON)
    return Form(id=_id(request, Verb.DENY_NOTE), title=_title("Deny", request), fields=(reason,))


def edit_form(request: ApprovalRequest, draft: str | None = None) -> Form | str:
    """Return the form for editing arguments, as JSON with secrets masked; or why they cannot be edited here.

    `draft` is an earlier edit that was refused.
    """
    try:
        card = card_for(request)
        if Choice.EDIT not in card.choices:
            return "Part of this call cannot be shown, so it cannot be approved with other arguments."
        text = EditDraft(request).text().rstrip("\n") if draft is None else draft
    except CannotCanonicalise as error:
        return f"This call cannot be shown, so it cannot be edited: {visible(str(error))}"
    if any(isinstance(value, Veiled) for value in request.args.values()):
        return "This call contains a secret that only its agent knows: approve it unchanged, or deny it."
    if request.schema is None:
        return "This tool's parameters are not stored, so other arguments could not be checked."
    if size(text) > INPUT:
        return (
            f"The arguments are too long for a Discord form ({size(text):,} of {INPUT:,} characters). "
            f"Change them with `signoff approve {request.id} --args @FILE`, or deny it with what you want instead."
        )
    about = _SENT_BACK if not request.takes_edits else _AS_ASKED if card.preview is not None else ""
    arguments = Field(
        id=ARGS, label="Arguments, as JSON", about=about, value=text, placeholder=first(_MASKS, PLACEHOLDER)
    )
    return Form(id=_id(request, Verb.EDIT), title=_title("Edit", request), fields=(arguments,))


def read_edit(request: ApprovalRequest, fields: Mapping[str, str]) -> Mapping[str, Any]:
    """Parse the submitted arguments, with masks still in them. Raises `EditRefused` if they are not valid JSON."""
    text = fields.get(ARGS, "")
    if not text.strip():
        raise EditRefused(("the form was empty; the arguments must be one object: { … }",))
    try:
        return read_args(text)
    except BrokenArgs as error:
        hint = "; it contains curly quotes, but JSON needs straight ones" if _CURLY & set(text) else ""
        raise EditRefused((f"this is not valid JSON: {visible(str(error))}{hint}",)) from error


def _title(what: str, request: ApprovalRequest) -> str:
    name = safe_text(request.tool_name)
    title = f"{what} {name}"
    return title if size(title) <= FORM_TITLE else f"{first(title, FORM_TITLE - 1)}…"


def _id(request: ApprovalRequest, verb: Verb) -> str:
    return Press(verb=verb, request=request.id, digest=digest_of(request)).id
