"""How a request stands, as parts of a message: what it still waits for, who settled it, what became of the call."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from signoff.channels.discord.parts import Part
from signoff.channels.discord.words import moment, short_span
from signoff.core.card import Card
from signoff.core.decision import ApprovalDecision, Remember
from signoff.core.people import Answerer
from signoff.core.preview import Preview, unified_diff
from signoff.core.redact import redact
from signoff.core.request import ApprovalRequest, State
from signoff.core.safe import safe_text
from signoff.core.visible import CLOSE, OPEN, is_clean, visible
from signoff.core.vote import Vote

AMBER, GREEN, RED, GREY, BLUE = 0xF0B232, 0x248046, 0xDA373C, 0x80848E, 0x5865F2
_MOST_VOTES = 6
_LONGEST_NAME = 40
_LONGEST_VIA = 20


class Face(NamedTuple):
    """What is seen of a state at first glance."""

    colour: int
    before: str
    after: str
    """Around the tool's name, in the title."""
    word: str
    """In a list."""


FACES: Mapping[State, Face] = {
    State.PENDING: Face(AMBER, "May ", " run?", "waits for an answer"),
    State.APPROVED: Face(GREEN, "", " may run", "approved"),
    State.CLAIMED: Face(BLUE, "", " is running", "approved, running"),
    State.SUCCEEDED: Face(GREEN, "", " ran", "approved, ran"),
    State.FAILED: Face(RED, "", " failed", "approved, failed"),
    State.DENIED: Face(RED, "", " was denied", "denied"),
    State.EXPIRED: Face(GREY, "", ": nobody answered", "timed out"),
    State.CANCELLED: Face(GREY, "", " was withdrawn", "withdrawn"),
    State.UNKNOWN: Face(AMBER, "Did ", " happen?", "nobody knows whether it ran"),
}


def waiting(request: ApprovalRequest, card: Card) -> Iterator[Part]:
    """What a pending request waits for, and until when."""
    if card.problem:
        yield Part(label="**Not accepted before:**", text=card.problem)
    if card.needs:
        yield Part(label="**Needs**", text=card.needs)
    for vote in request.votes[-_MOST_VOTES:]:
        yield Part(label=_vote(request, vote))
    if request.assigned:
        yield Part(label=f"**Taken** by {named(request.assigned)}")
    if request.deadline is not None:
        yield Part(
            label=f"**Until** {moment(request.deadline, 'T')} ({moment(request.deadline, 'R')}):", text=card.until
        )


def settled(request: ApprovalRequest) -> Iterator[Part]:
    """Who settled it, when and how, what was changed, and what came of it."""
    decision = request.decision
    if request.state is State.UNKNOWN:
        started = f" It was started at {moment(request.claim.at)}" if request.claim else " It was started"
        yield Part(label=f"**Nobody knows whether it ran.**{started}, and its process is gone.")
        yield Part(label="Look for yourself, then say what happened: it is not run again by itself.")
    if decision is None:
        return
    yield Part(label=_answer(request, decision))
    if decision.note and request.state is not State.EXPIRED:
        yield Part(label="**Comment**" if decision.approved else "**Reason**", text=_safe(request, decision.note))
    if decision.edited_args is not None:
        changes = changed_args(request, decision.edited_args)
        yield Part(label=f"**Edited:** +{changes.added} -{changes.removed}", text=changes.text, language="diff")
    if decision.remember is not Remember.NONE:
        yield Part(label="**Remembered** for later calls too.")
    yield from _outcome(request)


def in_a_word(request: ApprovalRequest) -> str:
    """For a list: how it stands, and by whose word."""
    word = FACES[request.state].word
    decision = request.decision
    if decision is None or decision.by is None or request.state in (State.EXPIRED, State.CANCELLED):
        return word
    first, comma, rest = word.partition(",")
    return f"{first} by {named(decision.by.name)}{comma}{rest}"


def named(name: str) -> str:
    """A person, or whoever else is told apart by a name."""
    return short_span(visible(name), _LONGEST_NAME)


def changed_args(request: ApprovalRequest, edited: Mapping[str, Any]) -> Preview:
    """What a person changed in the arguments, secrets masked."""
    before, after = (_as_json(request, args) for args in (request.args, edited))
    return unified_diff(f"{before}\n", f"{after}\n")


def _as_json(request: ApprovalRequest, args: Mapping[str, Any]) -> str:
    masked = redact(args, secrets=request.secrets)
    text = visible(json.dumps(masked.args, ensure_ascii=False, indent=2, default=str), lines=True)
    for one in masked.masked:
        text = text.replace(visible(one.placeholder), one.placeholder)
    return text


def _vote(request: ApprovalRequest, vote: Vote) -> str:
    how = "**Approved**" if vote.decision.approved else "**Denied**"
    other = "" if vote.args_digest == request.args_digest else f" other arguments (sha256 {vote.args_digest[:12]})"
    place = f" in the place of {named(vote.stands_for.name)}" if vote.stands_for is not None else ""
    return f"{how}{other} by {named(vote.by.name)}{place}, {moment(vote.at, 'R')}"


def _answer(request: ApprovalRequest, decision: ApprovalDecision) -> str:
    at = f" at {moment(decision.at)}" if decision.at is not None else ""
    match request.state:
        case State.EXPIRED:
            return f"**Timed out**{at}: nobody answered in time."
        case State.CANCELLED:
            return f"**Withdrawn**{at}."
        case State.DENIED:
            return f"**Denied**{_by(request, decision.by)}{at}."
        case _:
            return f"**Approved**{_by(request, decision.by)}{at}."


def _by(request: ApprovalRequest, by: Answerer | None) -> str:
    if by is None:
        return ""
    last = request.votes[-1] if request.votes else None
    absent = last.stands_for if last is not None and last.by.key == by.key else None
    place = f" in the place of {named(absent.name)}" if absent is not None else ""
    via = f" via {short_span(visible(by.via), _LONGEST_VIA)}" if by.via else ""
    return f" by {short_span(visible(str(by)), _LONGEST_NAME)}{place}{via}"


def _outcome(request: ApprovalRequest) -> Iterator[Part]:
    claim = request.claim
    if claim is None:
        return
    ended = f" at {moment(claim.ended_at)}" if claim.ended_at is not None else ""
    match request.state:
        case State.CLAIMED:
            yield Part(label=f"**Running** since {moment(claim.at)}.")
        case State.SUCCEEDED if claim.told_by:
            yield Part(label=f"**It happened**, says {named(claim.told_by)}{ended}.")
            if claim.preview:
                yield Part(label="**Comment**", text=_safe(request, claim.preview))
        case State.SUCCEEDED:
            yield Part(label=f"**It ran**, and ended{ended}.")
            if claim.preview:
                yield Part(label="**Result**", text=_kept(claim.preview))
        case State.FAILED:
            yield Part(label=f"**It failed**{ended}.")
            yield Part(label="**Error**", text=_kept(claim.error) if claim.error else "")
        case _:
            return


def _safe(request: ApprovalRequest, text: str) -> str:
    """Somebody's words: secrets masked, what hides made visible."""
    return safe_text(text, secrets=request.secrets)


def _kept(text: str) -> str:
    """A text that was made safe before it was kept; made visible all the same if something hides in it."""
    beside_markers = text.replace(OPEN, "").replace(CLOSE, "")
    return text if is_clean(beside_markers) else visible(text)
