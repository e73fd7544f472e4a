"""A whole call as a text file, for calls that are too long for a message."""

from __future__ import annotations

import re
from collections.abc import Iterator

from signoff.channels.discord.sheet import AttachedFile
from signoff.channels.discord.status_parts import other_args
from signoff.core.card import IRREVERSIBLE, Card, beside_edits, card_for
from signoff.core.request import ApprovalRequest, State
from signoff.core.visible_text import visible
from signoff.errors import CannotCanonicalise, WrongUse

LARGEST = 8_000_000
"""Maximum bytes of a file. Discord accepts 10 MiB from anybody."""
_BAR = "│ "


def whole(request: ApprovalRequest) -> AttachedFile:
    """Return the whole card as a file, with secrets masked and hidden characters visible.

    Raises `WrongUse` if that is not possible; then it cannot be approved here either. Untrusted text is to the right of
    a bar, so that it cannot spoof ours.
    """
    try:
        card = card_for(request)
    except CannotCanonicalise as error:
        raise WrongUse(f"this call cannot be shown, so it cannot be approved: {visible(str(error))}") from error
    text = "\n".join((*_lines(card), *_votes(request))) + "\n"
    if len(text) > LARGEST or len(text.encode()) > LARGEST:
        raise WrongUse(
            f"this call is too large for Discord ({len(text):,} characters); answer it with signoff show {request.id}"
        )
    return AttachedFile(name=f"request-{re.sub(r'[^A-Za-z0-9_-]', '', request.id)[:40] or 'call'}.txt", text=text)


def _lines(card: Card) -> Iterator[str]:
    yield from _named("request", card.request_id)
    yield from _named("sha256 of the arguments", card.digest)
    facts = (
        *(("loosened", text) for text in card.loosened),
        ("call", card.title),
        ("by", card.chain),
        ("from", card.toolset),
        ("why", card.why),
        ("rule", card.rule),
        ("earlier", card.answers),
        ("note", card.note),
        ("message", card.message),
        ("careful", IRREVERSIBLE if card.irreversible else ""),
        ("asked again", card.changed),
        *(("not evaluated", error) for error in card.errors),
        ("needs", card.needs),
        ("until", card.until),
        ("not accepted before", card.problem),
        *(("look twice", warning) for warning in card.warnings),
    )
    for name, text in facts:
        if text:
            yield from _named(name, text)
    for number, arg in enumerate(card.args, 1):
        yield from _named(f"argument {number:,} of {len(card.args):,}", arg.name)
        yield from _named("value", arg.text)
    if card.preview is not None:
        changes = f"what would change: +{card.preview.added:,} -{card.preview.removed:,}"
        yield from _named(changes if card.preview.kind == "diff" else "what it would do", card.preview.text)
    if card.left_out:
        yield from _named("comments before", f"{card.left_out:,}")
    for one in card.comments:
        yield from _named("said", f"{one.heading}: {one.text}")
    for text in card.masked:
        yield from _named("masked", text)


def _votes(request: ApprovalRequest) -> Iterator[str]:
    for digest, changes in other_args(request) if request.state is State.PENDING else ():
        what = changes.text or "only what is masked differs"
        yield from _named(f"edited arguments that somebody approved (sha256 {digest}), and what they change", what)
        if said := beside_edits(request):
            yield said


def _named(name: str, text: str) -> Iterator[str]:
    yield f"{name}:"
    for line in text.split("\n"):
        yield f"{_BAR}{line}"
