"""The status of a request as parts of a message: what it waits for, who settled it, the outcome of the call."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from signoff.channels.discord.message_text import moment, short_span
from signoff.channels.discord.parts import MessagePart
from signoff.core.canonical import canonical
from signoff.core.card import Card, beside_edits, without_answer
from signoff.core.preview import Preview, unified_diff
from signoff.core.redact import redact, visible_around
from signoff.core.request import ApprovalRequest, State
from signoff.core.request_status import RequestStatus, status_of
from signoff.core.safe_text import kept_text, safe_text
from signoff.core.visible_text import visible
from signoff.core.vote import Vote

AMBER, GREEN, RED, GREY, BLUE = 0xF0B232, 0x248046, 0xDA373C, 0x80848E, 0x5865F2
_MOST_VOTES = 6
_LONGEST_NAME = 40
_LONGEST_VIA = 20


class Face(NamedTuple):
    """How a state looks: colour, title and word."""

    colour: int
    before: str
    after: str
    """`before` and `after` are put around the tool's name, in the title."""
    word: str
    """For a list."""


FACES: Mapping[State, Face] = {
    State.PENDING: Face(AMBER, "May ", " run?", "waits for an answer"),
    State.APPROVED: Face(GREEN, "", " was approved", "approved"),
    State.CLAIMED: Face(BLUE, "", " was started", "approved, started"),
    State.SUCCEEDED: Face(GREEN, "", " ran", "approved, ran"),
    State.FAILED: Face(RED, "", " failed", "approved, failed"),
    State.DENIED: Face(RED, "", " was denied", "denied"),
    State.EXPIRED: Face(GREY, "", ": nobody answered", "timed out"),
    State.CANCELLED: Face(GREY, "", " was withdrawn", "withdrawn"),
    State.UNKNOWN: Face(AMBER, "Did ", " happen?", "it is unknown whether it ran"),
}


_HANDED_OVER = Face(GREEN, "", " was approved", "approved")
"""For a call that a program runs itself: its outcome is not known here."""


def face_of(request: ApprovalRequest) -> Face:
    """Return how a request looks."""
    return _HANDED_OVER if status_of(request).handed_over else FACES[request.state]


def waiting(request: ApprovalRequest, card: Card) -> Iterator[MessagePart]:
    """Yield until when a request is pending, and for what. The most important parts come first: the last may be cut."""
    if request.deadline is not None:
        until = f"**Until** {moment(request.deadline, 'T')} ({moment(request.deadline, 'R')})"
        yield MessagePart(label=f"{until}, then {without_answer(request, named)}")
    if card.problem:
        yield MessagePart(label="**Not accepted before:**", text=card.problem)
    if card.needs:
        yield MessagePart(label="**Needs**", text=card.needs)
    if request.assigned:
        yield MessagePart(label=f"**Taken** by {named(request.assigned)}")
    for vote in request.votes[-_MOST_VOTES:]:
        yield MessagePart(label=_vote(request, vote))
    yield from said(card)


def said(card: Card) -> Iterator[MessagePart]:
    """Yield the latest comments on a request."""
    if card.left_out:
        yield MessagePart(label=f"… {card.left_out:,} comments before")
    for one in card.comments:
        waits = " (not answered yet)" if one.is_open else ""
        yield MessagePart(label=f"**Said**{waits}", text=f"{one.heading}: {one.text}")


def other_args(request: ApprovalRequest) -> Iterator[tuple[str, Preview]]:
    """Yield edited arguments that somebody voted for: the first digits of their digest, and the diff."""
    votes = {vote.args_digest: vote.decision.edited_args for vote in request.votes}
    for digest, edited in votes.items():
        if edited is not None and digest != request.args_digest:
            same = {name for name in edited if name in request.args and _is_same(edited[name], request.args[name])}
            before, after = ({k: v for k, v in args.items() if k not in same} for args in (request.args, edited))
            yield digest[:12], _difference(request, before, after)


def _is_same(one: object, other: object) -> bool:
    return canonical([one]) == canonical([other])  # in Python 1 equals True


def voted_for(request: ApprovalRequest) -> Iterator[MessagePart]:
    """Yield edited arguments that somebody voted for while it is pending: a digest alone does not show them."""
    for digest, changes in other_args(request) if request.state is State.PENDING else ():
        how = f"+{changes.added:,} -{changes.removed:,}" if changes.text else "only what is masked differs"
        yield MessagePart(label=f"**Other arguments** (sha256 {digest}): {how}", text=changes.text, language="diff")
        if said := beside_edits(request):
            yield MessagePart(label=said)


def settled(request: ApprovalRequest) -> Iterator[MessagePart]:
    """Yield who settled it, when and how, what was edited, and the outcome."""
    status, decision = status_of(request), request.decision
    if status.state is State.UNKNOWN:
        started = f" It was started at {moment(status.started_at)}" if status.started_at else " It was started"
        yield MessagePart(
            label=f"**It is unknown whether it ran.**{started}, and its process died or stopped responding."
        )
        yield MessagePart(
            label="Check, then say what happened: it is not run again automatically. "
            "If the process is only paused inside the tool, it may still happen."
        )
    if decision is None:
        return
    yield MessagePart(label=_answer(status))
    if status.note or (status.state is State.CANCELLED and decision.note):
        yield MessagePart(
            label="**Comment**" if decision.approved else "**Reason**", text=_safe(request, decision.note)
        )
    if decision.edited_args is not None:
        changes = changed_args(request, decision.edited_args)
        yield MessagePart(label=f"**Edited:** +{changes.added} -{changes.removed}", text=changes.text, language="diff")
    if status.remembered:
        yield MessagePart(label="**Remembered** for later calls, too.")
    yield from _outcome(request, status)


def in_a_word(request: ApprovalRequest) -> str:
    """Return the state and who decided, for a list."""
    word, status = face_of(request).word, status_of(request)
    if status.by is None or status.state in (State.EXPIRED, State.CANCELLED):
        return word
    first, comma, rest = word.partition(",")
    return f"{first} by {'the rule' if status.by_rule else named(status.by.name)}{comma}{rest}"


def named(name: str) -> str:
    """Return a name in code, truncated."""
    return short_span(visible(name), _LONGEST_NAME)


def changed_args(request: ApprovalRequest, edited: Mapping[str, Any]) -> Preview:
    """Return the diff of a person's edit, with secrets masked."""
    return _difference(request, request.args, edited)


def _difference(request: ApprovalRequest, before: Mapping[str, Any], after: Mapping[str, Any]) -> Preview:
    return unified_diff(*(f"{_as_json(request, args)}\n" for args in (before, after)))


def _as_json(request: ApprovalRequest, args: Mapping[str, Any]) -> str:
    masked = redact(args, secrets=request.secrets)
    text = json.dumps(masked.args, ensure_ascii=False, indent=2, default=str)
    return visible_around([one.placeholder for one in masked.masked], text, lines=True)


def _vote(request: ApprovalRequest, vote: Vote) -> str:
    how = "**Approved**" if vote.decision.approved else "**Denied**"
    other = "" if vote.args_digest == request.args_digest else f" other arguments (sha256 {vote.args_digest[:12]})"
    place = f" in the place of {named(vote.stands_for.name)}" if vote.stands_for is not None else ""
    return f"{how}{other} by {named(vote.by.name)}{place}, {moment(vote.at, 'R')}"


def _answer(status: RequestStatus) -> str:
    at = f" at {moment(status.at)}" if status.at is not None else ""
    match status.state:
        case State.EXPIRED:
            return f"**Timed out**{at}: {status.silence}."
        case State.CANCELLED:
            return f"**Withdrawn**{at}."
        case State.DENIED:
            return f"**Denied**{_by(status)}{at}."
        case _ if status.by_rule:
            return f"**Approved**{at} by the rule: nobody answered in time."
        case _:
            return f"**Approved**{_by(status)}{at}."


def _by(status: RequestStatus) -> str:
    by, absent = status.by, status.stands_for
    if by is None:
        return ""
    place = f" in the place of {named(absent.name)}" if absent is not None else ""
    via = f" via {short_span(visible(by.via), _LONGEST_VIA)}" if by.via else ""
    return f" by {short_span(visible(str(by)), _LONGEST_NAME)}{place}{via}"


def _outcome(request: ApprovalRequest, status: RequestStatus) -> Iterator[MessagePart]:
    if status.started_at is None:
        return
    ended = f" at {moment(status.ended_at)}" if status.ended_at is not None else ""
    match status.state:
        case State.CLAIMED:
            yield MessagePart(label=f"**Started** at {moment(status.started_at)}, without an outcome yet.")
        case State.SUCCEEDED if status.handed_over:
            yield MessagePart(label=f"**Handed** to the program that asked{ended}.")
        case State.SUCCEEDED if status.told_by:
            yield MessagePart(label=f"**It happened**, says {named(status.told_by)}{ended}.")
            if status.result:
                yield MessagePart(label="**Comment**", text=_safe(request, status.result))
        case State.SUCCEEDED:
            yield MessagePart(label=f"**It ran**, and ended{ended}.")
            if status.result:
                yield MessagePart(label="**Result**", text=_kept(status.result))
        case State.FAILED:
            yield MessagePart(label=f"**It failed**{ended}.")
            yield MessagePart(label="**Error**", text=_kept(status.error) if status.error else "")
        case _:
            return


def _safe(request: ApprovalRequest, text: str) -> str:
    """Return a person's text with secrets masked and hidden characters visible."""
    return safe_text(text, secrets=request.secrets)


def _kept(text: str) -> str:
    """Return a stored text. It was made safe before it was stored; hidden characters are made visible all the same."""
    return kept_text(text)
