"""The tables of requests: one by one, as lists, and what belongs to one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import fields
from datetime import datetime, timedelta
from operator import attrgetter
from typing import Any, NamedTuple

from signoff.core.call import Call
from signoff.core.codec import CHANGING, CLAIM, COMMENT, DECISION, VOTE, dump_question, load_question, load_votes
from signoff.core.comment import Comment
from signoff.core.decision import ApprovalDecision
from signoff.core.inbox_row import NOWHERE, Item, RunItem, unread_item
from signoff.core.request import ApprovalRequest, State
from signoff.core.request_context import MOST_ANSWERS, NO_ANSWERS, EarlierAnswers, Tally
from signoff.core.request_filter import ListPlace, ListState, RequestFilter, plain_case
from signoff.core.vote import Vote
from signoff.errors import Stale, StoreDamaged, StoreError
from signoff.store.tables import ALL, EPOCH, NEVER, Recent, Row, RowReader, Sql, Table, insert, moment, put, span, told

_CHANGES: Mapping[str, Callable[[ApprovalRequest], Any]] = {
    "version": lambda request: request.version,
    "state": lambda request: request.state,
    "opened_at": lambda request: _or_never(request.opened_at),
    "deadline": lambda request: request.deadline,
    "remind_at": lambda request: request.remind_at,
    "escalated": lambda request: request.escalated,
    "assigned": lambda request: request.assigned,
    "votes": lambda request: len(request.votes),
    "role": lambda request: request.requirement.role or "",
    "quorum": lambda request: request.requirement.quorum,
    "answer": lambda request: request.answer,
    "waiter": lambda request: request.waiter,
}
"""The columns that may change, and those derived from them."""
_QUESTION: Mapping[str, Callable[[ApprovalRequest], Any]] = {
    "title": lambda request: request.title,
    "tool": lambda request: request.tool_name,
    "worker": lambda request: " > ".join(request.worker),
    "run": lambda request: request.run,
    "conversation": lambda request: request.call.conversation_id if request.call is not None else "",
    "call_key": lambda request: request.call.key if request.call is not None else "",
    "target": lambda request: request.call.likeness[0] if request.call is not None else "",
    "memory_key": lambda request: request.call.likeness[1] if request.call is not None else "",
    "question": dump_question,
}
"""The columns of the question, with what lists and searches need of it."""
_ADD = insert("requests", ("id", *_CHANGES, *_QUESTION))
_PUT, _PUT_QUESTION = (
    f"update {{s}}requests set {', '.join(f'{name} = ?' for name in names)} where id = ?"
    for names in (_CHANGES, _QUESTION)
)
_question = attrgetter(*(one.name for one in fields(ApprovalRequest) if one.name not in CHANGING))
"""The fields of a request that do not change. The tuples usually hold the same objects, so comparing them is cheap."""
_PUT_VOTE = put("votes", ("request", "place", "person", "vote"), "request, place")
_PUT_DECISION = put("decisions", ("request", "ending", "decided_at", "decision"), "request")
_WHOLE = (
    "select r.id, r.version, r.state, r.opened_at, r.deadline, r.remind_at, r.escalated, r.assigned, r.waiter, "
    "case when r.votes > 0 then ({votes}) end as votes, d.decision, c.claim, r.question "
    "from {s}requests r left join {s}decisions d on d.request = r.id left join {s}claims c on c.request = r.id where "
)
_ABOUT = "r.call_key <> '' and r.call_key = ? order by r.nr desc limit 1"
_WAITS = "state in ('pending', 'unknown')"


class WholeRequests(Table):
    """Reads requests, each at most once in a transaction: an object that it changed is the stored state."""

    def __init__(self, sql: Sql, others: WholeRequests | None = None) -> None:
        """`others` are of the same transaction."""
        super().__init__(sql)
        self._seen: dict[str, ApprovalRequest] = others._seen if others is not None else {}

    def _where(self, condition: str, *values: Any) -> list[ApprovalRequest]:
        """The requests `r` of a condition, with its order and limit."""
        return [self._read(row) for row in self._rows(f"{_WHOLE}{condition}", *values)]

    def _first(self, condition: str, *values: Any) -> ApprovalRequest | None:
        found = self._where(condition, *values)
        return found[0] if found else None

    def _read(self, row: Row) -> ApprovalRequest:
        request = self._seen.get(row[0])
        if request is None:
            request = self._seen[row[0]] = request_of(row)
        return request


class Requests(WholeRequests):
    """Requests by id, by call, by conversation and by run."""

    def get(self, request_id: str) -> ApprovalRequest | None:
        if request_id in self._seen:
            return self._seen[request_id]
        return self._first("r.id = ?", request_id)

    def about(self, call_key: str) -> ApprovalRequest | None:
        """The newest request about a call, by `Call.key`."""
        return self._first(_ABOUT, call_key)

    def add(self, request: ApprovalRequest) -> None:
        if request.id in self._seen:
            raise StoreError(f"request {request.id} is stored already")
        self._run(_ADD, request.id, *_taken(_CHANGES, request), *_taken(_QUESTION, request))
        self._put_parts(request, None)
        self._seen[request.id] = request

    def put(self, request: ApprovalRequest) -> None:
        """Replace the stored request. Its version must follow the stored one; raises `Stale` otherwise."""
        before = self.get(request.id)
        if before is None or before.version != request.version - 1:
            now = f"at version {before.version}" if before is not None else "not there"
            raise Stale(f"request {request.id} should become version {request.version}, but it is {now}")
        self._run(_PUT, *_taken(_CHANGES, request), request.id)
        if _question(before) != _question(request):
            self._run(_PUT_QUESTION, *_taken(_QUESTION, request), request.id)
        self._put_parts(request, before)
        self._seen[request.id] = request

    def _put_parts(self, request: ApprovalRequest, before: ApprovalRequest | None) -> None:
        """Write votes, decision and claim where they differ from what is stored."""
        self._put_votes(request, before.votes if before else ())
        decision, earlier = request.decision, before.decision if before else None
        if _differ(earlier, decision):
            if decision is None:
                self._run("delete from {s}decisions where request = ?", request.id)
            else:
                self._run(_PUT_DECISION, request.id, decision.ending, decision.at, decision_text(decision))
        claim, taken = request.claim, before.claim if before else None
        if _differ(taken, claim):
            if claim is None:
                raise StoreError(f"request {request.id} was claimed, and a claim is never taken back")
            row = (claim.holder, claim.at, CLAIM.to_text(claim), request.id)
            if taken is None:  # the primary key refuses a second claim
                self._run("insert into {s}claims (holder, claimed_at, claim, request) values (?, ?, ?, ?)", *row)
            else:
                self._run("update {s}claims set holder = ?, claimed_at = ?, claim = ? where request = ?", *row)

    def _put_votes(self, request: ApprovalRequest, before: tuple[Vote, ...]) -> None:
        if not _differ(before, request.votes):
            return
        for place, vote in enumerate(request.votes):
            if place >= len(before) or _differ(before[place], vote):
                self._run(_PUT_VOTE, request.id, place, vote.by.key, vote_text(vote))
        if len(before) > len(request.votes):
            self._run("delete from {s}votes where request = ? and place >= ?", request.id, len(request.votes))

    def of(self, *, conversation_id: str = "", run: str = "") -> Sequence[ApprovalRequest]:
        """Every request of a conversation or of a saved run, oldest first."""
        if conversation_id and run:
            condition, of = "r.conversation <> '' and r.conversation = ? and r.run = ?", (conversation_id, run)
        elif run:
            condition, of = "r.run <> '' and r.run = ?", (run,)
        else:
            condition, of = "r.conversation <> '' and r.conversation = ?", (conversation_id,)
        return self._where(f"{condition} order by r.opened_at, r.nr", *of)

    def waiting_of(self, run: str, *, limit: int) -> tuple[Sequence[RunItem], int]:
        """What a saved run waits for, oldest first, up to the limit; and how many that are in all."""
        # Without whole questions: a run may wait for thousands.
        of_run = f"from {{s}}requests where run <> '' and run = ? and {_WAITS}"
        rows = self._rows(f"select id, state, title, worker {of_run} order by nr limit ?", run, limit)
        found = [run_item_of((*row, None, None)) for row in rows]
        return found, len(found) if len(found) < limit else self._value(f"select count(*) {of_run}", run)

    def opened_at(self, moment: datetime | None, *, conversation_id: str = "", run: str = "") -> Sequence[str]:
        """Ids of requests of a conversation or saved run that were opened at exactly this moment, in order."""
        name, of = ("run", run) if run else ("conversation", conversation_id)
        sql = f"select id from {{s}}requests where {name} <> '' and {name} = ? and opened_at = ? order by nr"
        return [found for (found,) in self._rows(sql, of, _or_never(moment))]

    def like(self, prefix: str, *, limit: int = 5) -> Sequence[str]:
        """Ids that begin with this prefix."""
        sql = "select id from {s}requests where id >= ? and id < ? order by id limit ?"
        return [found for (found,) in self._rows(sql, *span(prefix), limit)]


class AskedBefore(NamedTuple):
    """What was asked before about a call and about similar calls."""

    request: ApprovalRequest | None
    """The newest request about exactly this call, by `Call.key`."""
    answers: EarlierAnswers
    """How people answered similar calls."""


def _counted(answers: str, like: str) -> str:
    """How many similar requests have one of these answers. It stops at a limit: a long history is not slow."""
    return (
        "(select count(*) from (select 1 from {s}requests q where q.answer <> '' and q.tool = one.tool "
        f"and q.answer in ({answers}){like} limit (select most from one)) as found)"
    )


_TARGET = " and q.target = one.target"
_SAME = f"{_TARGET} and q.memory_key = one.memory_key"
_COUNTS = (
    *(_counted("'approved'", _SAME), _counted("'denied'", _SAME)),
    *(_counted("'approved'", _TARGET), _counted("'denied'", _TARGET)),
    *(_counted("'approved', 'edited'", ""), _counted("'denied'", "")),
)
_BEFORE = (
    "with one (tool, target, memory_key, most) as "
    "(select cast(? as text), cast(? as text), cast(? as text), cast(? as integer)) "
    f"select {', '.join(_COUNTS)}, known.* from one left join ({_WHOLE}{_ABOUT}) as known on 1 = 1"
)


class Past(WholeRequests):
    """Requests asked earlier."""

    def recent(self, *, limit: int) -> Sequence[ApprovalRequest]:
        """Requests that wait for nobody any more, the most recently asked first."""
        return self._where("r.state not in ('pending', 'unknown') order by r.nr desc limit ?", limit)

    def answered_of(self, run: str) -> Sequence[RunItem]:
        """Requests of a saved run that were settled and whose approval, if any, was not used up, oldest first."""
        rows = self._rows(
            "select r.id, r.state, r.title, r.worker, d.decided_at, c.claim from {s}requests r "
            "left join {s}decisions d on d.request = r.id left join {s}claims c on c.request = r.id "
            "where r.run <> '' and r.run = ? and r.state in ('approved', 'denied', 'expired') order by r.nr",
            run,
        )
        return [run_item_of(row) for row in rows]

    def before(self, call: Call) -> AskedBefore:
        """Earlier requests and answers for a call. The work is bounded by `MOST_ANSWERS`, however much was asked."""
        # In one round trip, because every new request needs both.
        target, same = call.likeness
        [row] = self._rows(_BEFORE, call.tool, target, same, MOST_ANSWERS, call.key)
        counts, request = row[: len(_COUNTS)], row[len(_COUNTS) :]
        tallies = [Tally(approved=yes, denied=no) for yes, no in zip(counts[::2], counts[1::2], strict=True)]
        answers = EarlierAnswers(call=tallies[0], target=tallies[1], tool=tallies[2]) if any(counts) else NO_ANSWERS
        return AskedBefore(self._read(request) if request[0] is not None else None, answers)


class Queue(WholeRequests):
    """Requests that wait: for a person, for a deadline, or for the process that runs their call."""

    def open(self, *, limit: int | None = None) -> Sequence[ApprovalRequest]:
        """Requests without an answer, oldest first, without those that cannot be read."""
        condition = f"r.{_WAITS} and r.state = 'pending' order by r.opened_at, r.nr limit ?"
        found: list[ApprovalRequest] = []
        for row in self._rows(f"{_WHOLE}{condition}", ALL if limit is None else limit):
            with suppress(StoreDamaged):  # `page` lists it
                found.append(self._read(row))
        return found

    def page(self, *, limit: int, after: Item | None = None) -> Sequence[Item]:
        """What waits for a person, oldest first: pending requests, and requests whose outcome is unknown.

        One that cannot be read is listed as damaged.
        """
        place = None if after is None else ListPlace(after.opened_at, after.id)
        return _waiting_page(self._rows, (), (), limit=limit, after=place)

    def place(self, request_id: str) -> Item | None:
        """An item with just enough to start a page after this request; None if there is none."""
        rows = self._rows("select opened_at from {s}requests where id = ?", request_id)
        return unread_item(request_id, _or_nowhere(rows[0][0])) if rows else None

    def due(self, now: datetime) -> Sequence[str]:
        """Ids of pending requests whose deadline or reminder has come."""
        moments = " union all ".join(
            f"select id, {name} as moment from {{s}}requests "
            f"where state = 'pending' and {name} is not null and {name} <= ?"
            for name in ("deadline", "remind_at")
        )
        sql = f"select id from ({moments}) as found group by id order by min(moment), id"
        return [found for (found,) in self._rows(sql, now, now)]

    def claimed(self) -> Sequence[tuple[str, str]]:
        """Requests whose call is running, each with the id of the process that holds the claim."""
        rows = self._rows(
            "select r.id, c.holder from {s}requests r join {s}claims c on c.request = r.id "
            "where r.state = 'claimed' order by r.nr"
        )
        return [(request, told(holder)) for request, holder in rows if type(request) is type(holder) is str]

    def awaited(self) -> Sequence[tuple[str, str]]:
        """Requests that end with the process that waits for them, each with its id: pending, or approved and unused."""
        rows = self._rows(
            "select id, waiter from {s}requests where waiter <> '' and state in ('pending', 'approved') order by nr"
        )
        return [(request, told(waiter)) for request, waiter in rows]


class Listings(Table):
    """Lists of requests, page by page. The work is bounded by what waits, or by the page if no filter is rare."""

    def page(self, chosen: RequestFilter, *, limit: int, after: ListPlace | None = None) -> Sequence[Item]:
        """The requests that the filter selects, in the order defined by `ListState`, after a given place.

        One that cannot be read is listed as damaged.
        """
        conditions, values = _chosen(chosen)
        if chosen.state is ListState.WAITING:
            return _waiting_page(self._rows, conditions, values, limit=limit, after=after)
        if chosen.state is ListState.SETTLED:
            conditions.append("state not in ('pending', 'unknown')")
        if chosen.run:
            conditions.append("run <> ''")  # or the index of runs is not used
        conditions.append("nr < (select coalesce(max(nr), ?) from {s}requests where id = ?)")
        sql = f"select {item_of.names} from {{s}}requests where {' and '.join(conditions)} order by nr desc limit ?"
        rows = self._rows(sql, *values, ALL, after.id if after is not None else "", limit)
        return [listed_item(row) for row in rows]

    def waiting(self, *, most: int) -> int:
        """How many requests wait for a person, counted up to `most`."""
        return self._value(f"select count(*) from (select 1 from {{s}}requests where {_WAITS} limit ?) as found", most)

    def counts(self) -> Mapping[str, int]:
        """How many requests wait for a person, by state; states with no request are left out."""
        rows = self._rows(f"select state, count(*) from {{s}}requests where {_WAITS} group by state")
        return {str(state): int(number) for state, number in rows}


def _chosen(chosen: RequestFilter) -> tuple[list[str], list[Any]]:
    """The conditions of a filter, and their values."""
    text = "title || ' ' || tool || ' ' || worker"
    given = {
        "tool = ?": chosen.tool or None,
        "run = ?": chosen.run or None,
        "assigned = ?": chosen.assigned,
        "{find}(' > ' || worker || ' > ', ' > ' || ? || ' > ') > 0": chosen.worker or None,
        f"{{find}}(lower(({text}){{c}}), ?) > 0": plain_case(chosen.text) or None,
    }
    conditions = {condition: value for condition, value in given.items() if value is not None}
    return [*conditions], [*conditions.values()]


def _waiting_page(
    rows: Callable[..., Sequence[Row]],
    conditions: Iterable[str],
    values: Iterable[Any],
    *,
    limit: int,
    after: ListPlace | None,
) -> Sequence[Item]:
    """The requests that wait for a person, oldest first, after a given place."""
    conditions, values = [_WAITS, *conditions], [*values]
    if after is not None:
        if after.opened_at >= NOWHERE:
            return []
        conditions.append("(opened_at, nr) > (?, (select coalesce(max(nr), 0) from {s}requests where id = ?))")
        values += after.opened_at, after.id
    sql = f"select {item_of.names} from {{s}}requests where {' and '.join(conditions)} order by opened_at, nr limit ?"
    return [listed_item(row) for row in rows(sql, *values, limit)]


class Results(Table):
    """Return values of claimed calls, for runs that have to be resumed."""

    def get(self, request_id: str) -> bytes | None:
        found = self._value("select result from {s}results where request = ?", request_id)
        return None if found is None else bytes(found)

    def put(self, request_id: str, result: bytes) -> None:
        self._run(put("results", ("request", "result"), "request"), request_id, result)

    def drop(self, run: str) -> None:
        """Delete the results of a run's calls; the run is over."""
        of_run = "select id from {s}requests where run <> '' and run = ?"
        self._run(f"delete from {{s}}results where request in ({of_run})", run)


class Comments(Table):
    """Comments on pending requests."""

    def of(self, request_id: str) -> Sequence[Comment]:
        """Comments on a request, in the order they were made."""
        rows = self._rows("select body from {s}comments where request = ? order by nr", request_id)
        return [COMMENT.from_text(body) for (body,) in rows]

    def add(self, comment: Comment) -> None:
        sql = "insert into {s}comments (request, body) values (?, ?)"
        self._run(sql, comment.request, COMMENT.to_text(comment))


class Readers(Table):
    """Who was shown the whole call, and with which arguments."""

    def has(self, request_id: str, args_digest: str, person: str) -> bool:
        sql = "select 1 from {s}readers where request = ? and args_digest = ? and person = ?"
        return bool(self._rows(sql, request_id, args_digest, person))

    def add(self, request_id: str, args_digest: str, person: str) -> None:
        names = ("request", "args_digest", "person")
        self._run(put("readers", names, ", ".join(names)), request_id, args_digest, person)


# --- what is written ---


def _taken(columns: Mapping[str, Callable[[ApprovalRequest], Any]], request: ApprovalRequest) -> list[Any]:
    return [of(request) for of in columns.values()]


def _or_never(at: datetime | None) -> datetime | int:
    """When a request was opened, as the column that requests are sorted and searched by."""
    return NEVER if at is None else at


def _differ(one: object, other: object) -> bool:
    return one is not other and one != other


def vote_text(vote: Vote) -> str:
    text = VOTE.to_text(vote)
    if _is_plain(vote.decision):
        _votes.note(f"[{text}]", (vote,))
    return text


def decision_text(decision: ApprovalDecision) -> str:
    text = DECISION.to_text(decision)
    if _is_plain(decision):
        _decision.note(text, decision)
    return text


def _is_plain(decision: ApprovalDecision) -> bool:
    """Whether a decision is read back exactly as written: it has no value that JSON may represent differently."""
    return type(decision) is ApprovalDecision and decision.edited_args is None and decision.terms is None


# --- what is read ---

_UNCHANGED = {one.name: one.default for one in fields(ApprovalRequest) if one.name in CHANGING}
_asked = Recent(lambda question: load_question(question, _UNCHANGED))
"""Parses the question of a request, which never changes."""
_votes = Recent(load_votes)
_decision = Recent(DECISION.from_text)


def _request(row: Row) -> ApprovalRequest:
    _, version, state, opened_at, deadline, remind_at, escalated, assigned, waiter, votes, decision, claim, question = (
        row
    )
    changing = {
        "version": version,
        "state": State(state),
        "opened_at": None if opened_at == NEVER else moment(opened_at),
        "deadline": moment(deadline),
        "remind_at": moment(remind_at),
        "escalated": bool(escalated),
        "assigned": told(assigned),
        "waiter": told(waiter) if waiter else "",
        "votes": _votes(votes) if votes is not None else (),
        "decision": _decision(decision) if decision is not None else None,
        "claim": CLAIM.from_text(claim) if claim is not None else None,
    }
    return _asked(question).changed_to(**changing)


request_of = RowReader(
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
"""A request from a row of `_WHOLE`."""


def _run_item(row: Row) -> RunItem:
    id_, state, title, worker, decided_at, claim = row
    return RunItem(
        id=id_,
        state=State(state),
        title=told(title),
        worker=told(worker),
        at=moment(decided_at),
        inside=claim is not None and CLAIM.from_text(claim).inside,
    )


run_item_of = RowReader(
    "requests",
    {"id": str, "state": State, "title": str, "worker": str, "decided_at": datetime | None, "claim": str | None},
    _run_item,
)
"""A request of a run, as `Past.answered_of` reads it."""


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
        opened_at=EPOCH if opened_at == NEVER else EPOCH + timedelta(microseconds=opened_at),
        deadline=moment(deadline),
        escalated=bool(escalated),
    )


item_of = RowReader(
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
"""A row of a list."""


def listed_item(row: Row) -> Item:
    """A row of a list. One that cannot be read is listed as damaged."""
    try:
        return item_of(row)
    except StoreDamaged as wrong:
        return unread_item(str(row[0])[:200], _or_nowhere(row[10])).broken(wrong)


def _or_nowhere(at: object) -> datetime:
    """When a request was opened, to sort by; `NOWHERE` if its row does not say it."""
    try:
        if type(at) is int:
            return min(EPOCH if at == NEVER else EPOCH + timedelta(microseconds=at), NOWHERE)
    except OverflowError:
        pass
    return NOWHERE
