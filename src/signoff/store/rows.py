"""Convert between the columns of a database and the types of `signoff.core`."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from enum import Enum
from types import NoneType
from typing import Any, Generic, TypeVar, get_args

from signoff.core.call import Call
from signoff.core.codec import (
    CHANGING,
    dump_decision,
    dump_grant,
    dump_question,
    dump_run,
    dump_vote,
    load_claim,
    load_decision,
    load_question,
    load_run,
    load_votes,
    read_stored,
    wrong_type,
)
from signoff.core.decision import ApprovalDecision
from signoff.core.delivery import Delivery, DeliveryState
from signoff.core.grant import Grant
from signoff.core.inbox_row import NOWHERE, Item, RunItem, unread_item
from signoff.core.lease import Lease, Outage
from signoff.core.notice import RunResult
from signoff.core.request import ApprovalRequest, State
from signoff.core.request_filter import RequestFilter, plain_case
from signoff.core.run import PLAIN_SETUP, RunState, SavedRun, Segment
from signoff.core.subject import Occasion, Subject, SubjectKind
from signoff.core.vote import Vote
from signoff.errors import StoreDamaged

Row = Sequence[Any]
T = TypeVar("T")

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_TICK = timedelta(microseconds=1)
_NEVER = -(2**62)
"""Stands for "no time" in a column that is sorted by."""
_ODD = "\x01json:"
"""Prefix of a text that is stored as JSON because a database would not take it unchanged."""
_DIGEST = re.compile("[0-9a-f]{64}")


def micros(moment: datetime | None) -> int | None:
    """Microseconds since 1970, UTC."""
    return None if moment is None else (moment - EPOCH) // _TICK


def moment(microseconds: int | None) -> datetime | None:
    return None if microseconds is None else EPOCH + timedelta(microseconds=microseconds)


def kept(text: str) -> str:
    """Encode a text so that any database takes it (NUL characters, lone surrogates). Different texts stay different."""
    if "\0" in text or text.startswith(_ODD):
        return _ODD + json.dumps(text)
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:  # a lone surrogate
            return _ODD + json.dumps(text)
    return text


def told(text: str) -> str:
    """Decode what `kept` encoded. Raises `StoreDamaged` for what is no text: a column of SQLite can hold anything."""
    if type(text) is str and text.startswith(_ODD):
        text = read_stored(text[len(_ODD) :])
    if type(text) is not str:
        raise wrong_type(text, str)
    return text


class _RowReader(Generic[T]):
    """Reads the rows of one query. Raises `StoreDamaged` for a value of a type that is not written to its column."""

    def __init__(self, table: str, columns: dict[str, Any], make: Callable[[Row], T]) -> None:
        """`columns` has the type of each column as it is read: a time and a choice are stored as others."""
        self._table = table
        self._columns = columns
        self.make = make
        self._sound: set[tuple[type, ...]] = set()
        """The types of the rows that were read: checked once, for speed."""

    def __call__(self, row: Row) -> T:
        try:
            types = tuple(map(type, row))
            if types not in self._sound:
                for name, kind, value in zip(self._columns, self._columns.values(), row, strict=True):
                    self._check(name, kind, value)
                self._sound.add(types)
            return self.make(row)
        except (StoreDamaged, ValueError, OverflowError) as error:
            wrong = error if isinstance(error, StoreDamaged) else self._wrong(row)
            raise wrong.within(table=self._table, row=row[0] if type(row[0]) is str else "") from error

    def _check(self, name: str, kind: Any, value: object) -> None:
        if value is None and NoneType in get_args(kind):
            return
        kind = _without_none(kind)
        due: Any = str if issubclass(kind, Enum) else _STORED_AS.get(kind, kind)
        if type(value) is not due and not (due is bytes and type(value) is memoryview):
            raise wrong_type(value, due).within(name)

    def _wrong(self, row: Row) -> StoreDamaged:
        """Make the error for the value that has the right type, and cannot be."""
        fields = [
            name
            for name, kind, value in zip(self._columns, self._columns.values(), row, strict=True)
            if _cannot_be(_without_none(kind), value)
        ]
        return StoreDamaged("holds a value that signoff does not write", field=", ".join(fields))


_STORED_AS: dict[type, type] = {datetime: int, bool: int}


def _without_none(kind: Any) -> type:
    return (get_args(kind) or (kind,))[0]


def _cannot_be(kind: type, value: Any) -> bool:
    try:
        if issubclass(kind, Enum) and value:
            kind(value)
        elif kind is datetime and value != _NEVER:
            moment(value)
    except (ValueError, OverflowError):
        return True
    return False


def changing_columns(request: ApprovalRequest) -> tuple[Any, ...]:
    """The columns of a request that may change, and those derived from them, in the order of the queries."""
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
        request.answer,
        kept(request.waiter),
    )


def opened_column(at: datetime | None) -> int:
    """When a request was opened, as the column that requests are sorted and searched by."""
    opened = micros(at)
    return _NEVER if opened is None else opened


def question_columns(request: ApprovalRequest) -> tuple[Any, ...]:
    """The columns of a request's question, with what lists and searches need of it, in the order of the queries."""
    call = request.call
    return (
        kept(request.title),
        kept(request.tool_name),
        kept(" > ".join(request.worker)),
        kept(request.run),
        kept(call.conversation_id) if call is not None else "",
        kept(call.key) if call is not None else "",
        *(like_columns(call)[1:] if call is not None else ("", "")),
        dump_question(request),
    )


def like_columns(call: Call) -> tuple[str, str, str]:
    """What similar earlier calls are found by: the tool, the target, and the exact arguments."""
    target, same = call.likeness
    return kept(call.tool), kept(target), kept(same)


def _request(row: Row) -> ApprovalRequest:
    _, version, state, opened_at, deadline, remind_at, escalated, assigned, waiter, votes, decision, claim, question = (
        row
    )
    changing = {
        "version": version,
        "state": State(state),
        "opened_at": None if opened_at == _NEVER else moment(opened_at),
        "deadline": moment(deadline),
        "remind_at": moment(remind_at),
        "escalated": bool(escalated),
        "assigned": told(assigned),
        "waiter": told(waiter) if waiter else "",
        "votes": _votes(votes) if votes is not None else (),
        "decision": _decision(decision) if decision is not None else None,
        "claim": load_claim(claim) if claim is not None else None,
    }
    return _asked(question).changed_to(**changing)


request_of = _RowReader(
    "requests",
    {
        "id": str,
        "version": int,
        "state": State,
        "opened_at": datetime,
        "deadline": datetime | None,
        "remind_at": datetime | None,
        "escalated": bool,
        "assigned": str,
        "waiter": str,
        "votes": str | None,
        "decision": str | None,
        "claim": str | None,
        "question": str,
    },
    _request,
)
"""A request from a row of the query `whole_request`."""


class _Recent(Generic[T]):
    """A cache for parsed texts of one kind. One step often reads what the step before it wrote or read.

    Only for immutable values. It caches what a text means, never what the store holds.
    """

    def __init__(self, load: Callable[[str], T]) -> None:
        self._load = load
        self._known: dict[str, T] = {}

    def __call__(self, text: str) -> T:
        value = self._known.get(text)
        if value is None:
            value = self._load(text)
            self.note(text, value)
        return value

    def forget(self) -> None:
        self._known.clear()

    def note(self, text: str, value: T) -> None:
        """Add the parsed value of a text that was just written."""
        if len(text) <= LARGEST_REMEMBERED:
            if len(self._known) >= MOST_REMEMBERED:
                self._known.clear()
            self._known[text] = value


LARGEST_REMEMBERED = 16_000
MOST_REMEMBERED = 512

_asked = _Recent(lambda question: load_question(question, _UNCHANGED))
"""Parses the question of a request, which never changes."""
_votes = _Recent(load_votes)
_decision = _Recent(load_decision)
run_of = _Recent(load_run)
"""Parses what `run_text` wrote."""


def forget() -> None:
    """Empty the caches, as in a new process."""
    for recent in (_asked, _votes, _decision, run_of):
        recent.forget()


def vote_text(vote: Vote) -> str:
    text = dump_vote(vote)
    if _is_plain(vote.decision):
        _votes.note(f"[{text}]", (vote,))
    return text


def decision_text(decision: ApprovalDecision) -> str:
    text = dump_decision(decision)
    if _is_plain(decision):
        _decision.note(text, decision)
    return text


def _is_plain(decision: ApprovalDecision) -> bool:
    """Whether a decision is read back exactly as written: it has no value that JSON may represent differently."""
    return type(decision) is ApprovalDecision and decision.edited_args is None and decision.terms is None


def run_text(run: SavedRun) -> str:
    text = dump_run(run)
    if run.setup is PLAIN_SETUP:  # another setup may hold values that JSON represents differently
        run_of.note(text, run)
    return text


_UNCHANGED = {one.name: one.default for one in fields(ApprovalRequest) if one.name in CHANGING}


def _run_item(row: Row) -> RunItem:
    id_, state, title, worker, decided_at, claim = row
    return RunItem(
        id=id_,
        state=State(state),
        title=told(title),
        worker=told(worker),
        at=moment(decided_at),
        inside=claim is not None and load_claim(claim).inside,
    )


run_item_of = _RowReader(
    "requests",
    {"id": str, "state": State, "title": str, "worker": str, "decided_at": datetime | None, "claim": str | None},
    _run_item,
)
"""A request of a run, from the query `answered_of_run`."""


def _item(row: Row) -> Item:
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


item_of = _RowReader(
    "requests",
    {
        "id": str,
        "state": State,
        "title": str,
        "tool": str,
        "worker": str,
        "run": str,
        "role": str,
        "quorum": int,
        "votes": int,
        "assigned": str,
        "opened_at": datetime,
        "deadline": datetime | None,
        "escalated": bool,
    },
    _item,
)
"""A row of the inbox from the query `inbox`."""


def listed_item(row: Row) -> Item:
    """A row of a list. One that cannot be read is listed as damaged."""
    try:
        return item_of(row)
    except StoreDamaged as wrong:
        return unread_item(str(row[0])[:200], opened_or_nowhere(row[10])).broken(wrong)


def opened_or_nowhere(at: object) -> datetime:
    """When a request was opened, to sort by; `NOWHERE` if its row does not say it."""
    try:
        if type(at) is int:
            return min(EPOCH if at == _NEVER else EPOCH + timedelta(microseconds=at), NOWHERE)
    except OverflowError:
        pass
    return NOWHERE


def item_place(item: Item) -> tuple[int, str]:
    """The sort key of a row in the inbox, for paging."""
    return (item.opened_at - EPOCH) // _TICK, item.id


def chosen_values(chosen: RequestFilter) -> tuple[str, ...]:
    """The filter values of a list query, in the order of the queries."""
    by = "" if chosen.assigned is None else "given"
    tool, run, worker, text = map(kept, (chosen.tool, chosen.run, chosen.worker, plain_case(chosen.text)))
    return tool, tool, run, run, by, kept(chosen.assigned or ""), worker, worker, text, text


def grant_columns(grant: Grant) -> tuple[Any, ...]:
    revoked = int(grant.revoked_at is not None)
    exact = kept(grant.memory_key) if grant.pattern is None else ""
    return grant.id, kept(grant.tool), exact, revoked, dump_grant(grant)


def run_state(run: SavedRun) -> str:
    """The state that a run is listed by. Nested runs are not listed."""
    return "inside" if run.parent else run.state.value


def subject_columns(subject: Subject) -> tuple[str, str, str]:
    """The columns that a delivery's subject is looked up by."""
    return subject.kind.value, kept(subject.about), subject.occasion.value if subject.occasion is not None else ""


def delivery_columns(delivery: Delivery) -> tuple[Any, ...]:
    """The columns of a delivery, in the order of the queries."""
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
        result.state.value if result is not None else "",
        kept(result.worker) if result is not None else "",
        kept(result.text) if result is not None else "",
    )


def _delivery(row: Row) -> Delivery:
    channel, kind, about, occasion, trail, state, place, shown, live, may_stand, hopeless, *rest = row
    attempts, since, due, problem, run_state, worker, result = rest
    subject = Subject(SubjectKind(kind), told(about), Occasion(occasion) if occasion else None)
    told_of_run = None
    if run_state:
        line = subject.about.removeprefix(f"{subject.run}/") if subject.kind is SubjectKind.MESSAGE else ""
        told_of_run = RunResult(
            run=subject.run, state=RunState(run_state), worker=told(worker), text=told(result), line=line
        )
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
        result=told_of_run,
    )


delivery_of = _RowReader(
    "deliveries",
    {
        "channel": str,
        "kind": SubjectKind,
        "about": str,
        "occasion": Occasion,
        "trail": str,
        "state": DeliveryState,
        "place": str,
        "shown": int,
        "live": bool,
        "may_stand": bool,
        "hopeless": bool,
        "attempts": int,
        "since": datetime | None,
        "due": datetime | None,
        "problem": str,
        "run_state": RunState,
        "worker": str,
        "result": str,
    },
    _delivery,
)
"""A delivery from a row of the query `whole_delivery`."""


def lease_columns(lease: Lease) -> tuple[Any, ...]:
    down = lease.down
    found_by = (kept(lease.channel), kept(lease.process))
    if down is None:
        return *found_by, None, "", 0, None, 0
    return *found_by, micros(down.since), kept(down.problem), down.attempts, micros(down.due), int(down.hopeless)


def _lease(row: Row) -> Lease:
    channel, process, since, problem, attempts, due, hopeless = row
    down = None
    if since is not None:
        down = Outage(
            since=EPOCH + timedelta(microseconds=since),
            problem=told(problem),
            attempts=attempts,
            due=moment(due),
            hopeless=bool(hopeless),
        )
    return Lease(channel=told(channel), process=told(process), down=down)


lease_of = _RowReader(
    "leases",
    {
        "channel": str,
        "process": str,
        "since": datetime | None,
        "problem": str,
        "attempts": int,
        "due": datetime | None,
        "hopeless": bool,
    },
    _lease,
)


def segment_key(segment_id: str) -> bytes:
    """A segment's id in half the space: most ids are SHA-256 digests in hexadecimal."""
    return b"\0" + bytes.fromhex(segment_id) if _DIGEST.fullmatch(segment_id) else segment_id.encode()


def _segment(row: Row) -> Segment:
    key, parent, messages, body = row
    return Segment(
        id=_segment_id(key), parent=_segment_id(parent) if parent is not None else "", count=messages, body=bytes(body)
    )


segment_of = _RowReader("segments", {"id": bytes, "parent": bytes | None, "messages": int, "body": bytes}, _segment)


def _segment_id(key: bytes) -> str:
    key = bytes(key)
    return key[1:].hex() if key[:1] == b"\0" else key.decode()
