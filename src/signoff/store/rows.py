"""Between the columns of a database and the types of the core."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any, TypeVar

from signoff.core.codec import (
    CHANGING,
    dump_grant,
    dump_question,
    dump_run,
    load_claim,
    load_decision,
    load_question,
    load_run,
    load_votes,
)
from signoff.core.delivery import Delivery, DeliveryState
from signoff.core.grant import Grant
from signoff.core.inbox import Item
from signoff.core.lease import Down, Lease
from signoff.core.notice import RunResult
from signoff.core.request import ApprovalRequest, State
from signoff.core.run import PLAIN_SETUP, KeptRun, RunState, Segment
from signoff.core.subject import Kind, Occasion, Subject

Row = Sequence[Any]
T = TypeVar("T")

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_TICK = timedelta(microseconds=1)
_NEVER = -(2**62)
"""Stands for no time at all in a column that is sorted by."""
_ODD = "\x01json:"
"""Begins a text that a database would not take as it is."""
_DIGEST = re.compile("[0-9a-f]{64}")


def micros(moment: datetime | None) -> int | None:
    """Microseconds since 1970, UTC."""
    return None if moment is None else (moment - EPOCH) // _TICK


def moment(microseconds: int | None) -> datetime | None:
    return None if microseconds is None else EPOCH + timedelta(microseconds=microseconds)


def kept(text: str) -> str:
    """A text as any database takes it. Different texts stay different."""
    if "\0" in text or text.startswith(_ODD):
        return _ODD + json.dumps(text)
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:  # half of a surrogate pair
            return _ODD + json.dumps(text)
    return text


def told(text: str) -> str:
    """What `kept` was given."""
    return json.loads(text[len(_ODD) :]) if text.startswith(_ODD) else text


def changing_columns(request: ApprovalRequest) -> tuple[Any, ...]:
    """What may change, and what follows from it; in the order of the queries."""
    return (
        request.version,
        request.state.value,
        opened_column(request.opened_at),
        micros(request.deadline),
        micros(request.remind_at),
        int(request.escalated),
        kept(request.assigned),
        len(request.votes),
        kept(request.requirement.role or ""),
        request.requirement.quorum,
    )


def opened_column(at: datetime | None) -> int:
    """When a request was opened, as requests are found by it."""
    opened = micros(at)
    return _NEVER if opened is None else opened


def question_columns(request: ApprovalRequest) -> tuple[Any, ...]:
    """What is asked, and what lists and searches need of it; in the order of the queries."""
    call = request.call
    return (
        kept(request.title),
        kept(request.tool_name),
        kept(" > ".join(request.worker)),
        kept(request.run),
        kept(call.conversation_id) if call is not None else "",
        kept(call.key) if call is not None else "",
        dump_question(request),
    )


def request_of(row: Row) -> ApprovalRequest:
    """A request from the query `whole_request`."""
    _, version, state, opened_at, deadline, remind_at, escalated, assigned, votes, decision, claim, question = row
    changing = {
        "version": version,
        "state": State(state),
        "opened_at": None if opened_at == _NEVER else moment(opened_at),
        "deadline": moment(deadline),
        "remind_at": moment(remind_at),
        "escalated": bool(escalated),
        "assigned": told(assigned),
        "votes": _votes(votes) if votes is not None else (),
        "decision": _decision(decision) if decision is not None else None,
        "claim": load_claim(claim) if claim is not None else None,
    }
    return _asked(question).changed_to(**changing)


LARGEST_REMEMBERED = 16_000


def _recent(load: Callable[[str], T]) -> Callable[[str], T]:
    """As `load`, which gives the same for the same text, and is asked for the same texts again and again."""
    known = lru_cache(maxsize=512)(load)
    return lambda text: known(text) if len(text) <= LARGEST_REMEMBERED else load(text)


_asked = _recent(lambda question: load_question(question, _UNCHANGED))
"""A request as it was asked. A question never changes, and every step of a request reads it again."""
_votes = _recent(load_votes)
_decision = _recent(load_decision)


class _Recent(dict[str, KeptRun]):
    """The last runs that were written or read, by their text. What a step writes, the next one reads."""

    def note(self, body: str, run: KeptRun) -> None:
        if len(body) <= LARGEST_REMEMBERED:
            if len(self) >= MOST_RUNS:
                self.clear()
            self[body] = run


MOST_RUNS = 256
_runs = _Recent()


def run_body(run: KeptRun) -> str:
    """A run as it is kept."""
    body = dump_run(run)
    if run.setup is PLAIN_SETUP:  # in others there may be what is read in another form than it was written in
        _runs.note(body, run)
    return body


def run_of(body: str) -> KeptRun:
    """What `run_body` was given."""
    if (run := _runs.get(body)) is None:
        run = load_run(body)
        _runs.note(body, run)
    return run


_UNCHANGED = {one.name: one.default for one in fields(ApprovalRequest) if one.name in CHANGING}


def item_of(row: Row) -> Item:
    """A line of the inbox from the query `inbox`."""
    id_, state, title, tool, worker, run, role, quorum, votes, assigned, opened_at, deadline, escalated = row
    return Item(
        id=id_,
        state=State(state),
        title=told(title),
        tool=told(tool),
        worker=told(worker),
        run=told(run),
        role=told(role),
        quorum=quorum,
        votes=votes,
        assigned=told(assigned),
        opened_at=EPOCH if opened_at == _NEVER else EPOCH + timedelta(microseconds=opened_at),
        deadline=moment(deadline),
        escalated=bool(escalated),
    )


def item_place(item: Item) -> tuple[int, str]:
    """Where in the inbox a line stands."""
    return (item.opened_at - EPOCH) // _TICK, item.id


def grant_columns(grant: Grant) -> tuple[Any, ...]:
    revoked = int(grant.revoked_at is not None)
    exact = kept(grant.memory_key) if grant.pattern is None else ""
    return grant.id, kept(grant.tool), exact, revoked, dump_grant(grant)


def run_state(run: KeptRun) -> str:
    """How a run is listed: those inside others are not."""
    return "inside" if run.parent else run.state.value


def subject_columns(subject: Subject) -> tuple[str, str, str]:
    """What a delivery is of, as it is found by."""
    return subject.kind.value, kept(subject.about), subject.occasion.value if subject.occasion is not None else ""


def delivery_columns(delivery: Delivery) -> tuple[Any, ...]:
    """A delivery; in the order of the queries."""
    result = delivery.result
    return (
        kept(delivery.channel),
        *subject_columns(delivery.subject),
        kept(delivery.trail),
        delivery.state.value,
        kept(delivery.place),
        delivery.shown,
        int(delivery.live),
        int(delivery.may_stand),
        int(delivery.hopeless),
        delivery.attempts,
        micros(delivery.since),
        micros(delivery.due),
        kept(delivery.problem),
        kept(delivery.instead),
        result.state.value if result is not None else "",
        kept(result.worker) if result is not None else "",
        kept(result.text) if result is not None else "",
    )


def delivery_of(row: Row) -> Delivery:
    """A delivery from the query `whole_delivery`."""
    channel, kind, about, occasion, trail, state, place, shown, live, may_stand, hopeless, *rest = row
    attempts, since, due, problem, instead, run_state, worker, result = rest
    subject = Subject(Kind(kind), told(about), Occasion(occasion) if occasion else None)
    told_of_run = None
    if run_state:
        told_of_run = RunResult(run=subject.about, state=RunState(run_state), worker=told(worker), text=told(result))
    return Delivery(
        channel=told(channel),
        subject=subject,
        trail=told(trail),
        state=DeliveryState(state),
        place=told(place),
        shown=shown,
        live=bool(live),
        may_stand=bool(may_stand),
        hopeless=bool(hopeless),
        attempts=attempts,
        since=moment(since),
        due=moment(due),
        problem=told(problem),
        instead=told(instead),
        result=told_of_run,
    )


def lease_columns(lease: Lease) -> tuple[Any, ...]:
    down = lease.down
    found_by = (kept(lease.channel), kept(lease.process), kept(lease.backup_for))
    if down is None:
        return *found_by, None, "", 0, None, 0
    return *found_by, micros(down.since), kept(down.problem), down.attempts, micros(down.due), int(down.hopeless)


def lease_of(row: Row) -> Lease:
    channel, process, backup_for, since, problem, attempts, due, hopeless = row
    down = None
    if since is not None:
        down = Down(
            since=EPOCH + timedelta(microseconds=since),
            problem=told(problem),
            attempts=attempts,
            due=moment(due),
            hopeless=bool(hopeless),
        )
    return Lease(channel=told(channel), process=told(process), backup_for=told(backup_for), down=down)


def segment_key(segment_id: str) -> bytes:
    """A segment's id in half the space: most are digests in hexadecimal."""
    return b"\0" + bytes.fromhex(segment_id) if _DIGEST.fullmatch(segment_id) else segment_id.encode()


def segment_of(row: Row) -> Segment:
    key, parent, messages, body = row
    return Segment(
        id=_segment_id(key), parent=_segment_id(parent) if parent is not None else "", count=messages, body=bytes(body)
    )


def _segment_id(key: bytes) -> str:
    key = bytes(key)
    return key[1:].hex() if key[:1] == b"\0" else key.decode()
