"""The store's `Transaction` in SQL, shared by SQLite and PostgreSQL.

The two databases differ in how a query is sent (`Wire`) and in some named queries (`Queries`), not in the code here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import fields, replace
from datetime import datetime
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Protocol

from signoff.core.aap import AapInstance, AapRequest
from signoff.core.access import AccessKey, AccessKind
from signoff.core.call import Call
from signoff.core.codec import (
    CHANGING,
    dump_aap_instance,
    dump_aap_request,
    dump_access_key,
    dump_claim,
    dump_comment,
    dump_delegation,
    dump_process,
    load_aap_instance,
    load_aap_request,
    load_access_key,
    load_comment,
    load_delegation,
    load_grant,
    load_process,
)
from signoff.core.comment import Comment
from signoff.core.conversation import ConversationLog
from signoff.core.delivery import Delivery
from signoff.core.grant import Grant
from signoff.core.inbox_row import NOWHERE, Item, RunItem, unread_item
from signoff.core.lease import Lease
from signoff.core.people import Delegation
from signoff.core.record import Checkpoint, Entry, EventDraft, linked
from signoff.core.request import ApprovalRequest
from signoff.core.request_context import MOST_ANSWERS, NO_ANSWERS, EarlierAnswers, Tally
from signoff.core.request_filter import ListPlace, ListState, RequestFilter
from signoff.core.run import DamagedRun, Process, SavedRun, Segment
from signoff.core.subject import Subject
from signoff.core.vote import Vote
from signoff.errors import RecordBroken, Stale, StoreDamaged, StoreError
from signoff.ports import AskedBefore, DeliveryChanges, KeptReply
from signoff.store.queries import Queries
from signoff.store.rows import (
    Row,
    changing_columns,
    chosen_values,
    decision_text,
    delivery_columns,
    delivery_of,
    grant_columns,
    item_place,
    kept,
    lease_columns,
    lease_of,
    like_columns,
    listed_item,
    micros,
    opened_column,
    opened_or_nowhere,
    question_columns,
    request_of,
    run_item_of,
    run_of,
    run_state,
    run_text,
    segment_key,
    segment_of,
    subject_columns,
    told,
    vote_text,
)

ALL = 2**62
"""The limit that means no limit."""
_question = attrgetter(*(one.name for one in fields(ApprovalRequest) if one.name not in CHANGING))
"""The fields of a request that do not change. The tuples usually hold the same objects, so comparing them is cheap."""


class Wire(Protocol):
    """Sends queries to a database inside a transaction that the caller begins and ends."""

    def rows(self, sql: str, values: Sequence[Any] = ()) -> Sequence[Row]: ...

    def run(self, sql: str, values: Sequence[Any] = ()) -> None:
        """Run a statement without fetching rows. It may be sent later, but before the next `rows` or the commit."""
        ...


def one_end(rows: Sequence[Row]) -> tuple[int, str]:
    """Return the head of the hash chain from the rows of the table `chain`.

    Raises `RecordBroken` unless there is exactly one row.
    """
    if len(rows) != 1:
        raise RecordBroken(
            f"the table `chain`, which holds the end of the record, has {len(rows)} rows instead of one: "
            "the store was changed from outside; restore a backup"
        )
    seq, link = rows[0][:2]
    if type(seq) is not int or type(link) is not str:
        raise RecordBroken(
            "the table `chain`, which holds the end of the record, holds values of the wrong type: "
            "the store was changed from outside; restore a backup"
        )
    return seq, link


class SqlChain:
    """The head of the audit log's hash chain during a batch. It is read once, and written once at the end."""

    def __init__(self, wire: Wire, queries: Queries) -> None:
        self._wire = wire
        self._queries = queries
        self._stored: tuple[int, str] | None = None
        self._end: tuple[int, str] | None = None

    @property
    def end(self) -> tuple[int, str]:
        if self._end is None:
            self._stored = self._end = one_end(self._wire.rows(self._queries["head"]))
        return self._end

    @end.setter
    def end(self, end: tuple[int, str]) -> None:
        self._end = end

    def start_at(self, seq: int, link: str) -> None:
        """Set the head without a query, for a caller that has already read it."""
        self._stored = self._end = (seq, link)

    def mark(self) -> tuple[int, str] | None:
        """Return the current head, to be passed to `back_to` on a rollback to a savepoint."""
        return self._end

    def back_to(self, mark: tuple[int, str] | None) -> None:
        self._end = mark

    @property
    def has_moved(self) -> bool:
        return self._end is not None and self._end != self._stored

    def save(self, *, always: bool = False) -> None:
        if always or self.has_moved:
            self._wire.run(self._queries["put_head"], self.end)


class Sql:
    """Runs the named queries of a database on a wire."""

    def __init__(self, wire: Wire, queries: Queries) -> None:
        self._wire = wire
        self._queries = queries

    def rows(self, query: str, *values: Any) -> Sequence[Row]:
        return self._wire.rows(self._queries[query], values)

    def run(self, query: str, *values: Any) -> None:
        self._wire.run(self._queries[query], values)

    def value(self, query: str, *values: Any) -> Any:
        rows = self.rows(query, *values)
        return rows[0][0] if rows else None


class SqlRequests:
    """See `signoff.ports.Requests`."""

    def __init__(self, sql: Sql) -> None:
        self._sql = sql
        self._seen: dict[str, ApprovalRequest] = {}

    def get(self, request_id: str) -> ApprovalRequest | None:
        if request_id in self._seen:
            return self._seen[request_id]
        rows = self._sql.rows("request", kept(request_id))
        return self.read(rows[0]) if rows else None

    def read(self, row: Row) -> ApprovalRequest:
        request = self._seen.get(row[0])  # an object that this transaction changed is the stored state
        if request is None:
            request = self._seen[row[0]] = request_of(row)
        return request

    def about(self, call_key: str) -> ApprovalRequest | None:
        rows = self._sql.rows("about", kept(call_key))
        return self.read(rows[0]) if rows else None

    def add(self, request: ApprovalRequest) -> None:
        if request.id in self._seen:
            raise StoreError(f"request {request.id} is stored already")
        self._sql.run("add_request", request.id, *changing_columns(request), *question_columns(request))
        self._put_parts(request, None)
        self._seen[request.id] = request

    def put(self, request: ApprovalRequest) -> None:
        before = self.get(request.id)
        if before is None or before.version != request.version - 1:
            now = f"at version {before.version}" if before is not None else "not there"
            raise Stale(f"request {request.id} should become version {request.version}, but it is {now}")
        self._sql.run("put_request", *changing_columns(request), request.id)
        if _question(before) != _question(request):
            self._sql.run("put_question", *question_columns(request), request.id)
        self._put_parts(request, before)
        self._seen[request.id] = request

    def _put_parts(self, request: ApprovalRequest, before: ApprovalRequest | None) -> None:
        """Write votes, decision and claim where they differ from what is stored."""
        self._put_votes(request, before.votes if before else ())
        decision, earlier = request.decision, before.decision if before else None
        if _differ(earlier, decision):
            if decision is None:
                self._sql.run("drop_decision", request.id)
            else:
                at = micros(decision.at)
                self._sql.run("put_decision", request.id, decision.ending.value, at, decision_text(decision))
        claim, taken = request.claim, before.claim if before else None
        if _differ(taken, claim):
            if claim is None:
                raise StoreError(f"request {request.id} was claimed, and a claim is never taken back")
            row = (kept(claim.holder), micros(claim.at), dump_claim(claim))
            if taken is None:
                self._sql.run("add_claim", request.id, *row)
            else:
                self._sql.run("put_claim", *row, request.id)

    def _put_votes(self, request: ApprovalRequest, before: tuple[Vote, ...]) -> None:
        if not _differ(before, request.votes):
            return
        for place, vote in enumerate(request.votes):
            if place >= len(before) or _differ(before[place], vote):
                self._sql.run("put_vote", request.id, place, kept(vote.by.key), vote_text(vote))
        if len(before) > len(request.votes):
            self._sql.run("drop_votes", request.id, len(request.votes))

    def of(self, *, conversation_id: str = "", run: str = "") -> Sequence[ApprovalRequest]:
        if conversation_id and run:
            rows = self._sql.rows("requests_of_both", kept(conversation_id), kept(run))
        elif run:
            rows = self._sql.rows("requests_of_run", kept(run))
        else:
            rows = self._sql.rows("requests_of_conversation", kept(conversation_id))
        return [self.read(row) for row in rows]

    def waiting_of(self, run: str, *, limit: int) -> tuple[Sequence[RunItem], int]:
        found = [run_item_of((*row, None, None)) for row in self._sql.rows("waiting_of_run", kept(run), limit)]
        return found, len(found) if len(found) < limit else self._sql.value("waiting_count_of_run", kept(run))

    def opened_at(self, moment: datetime | None, *, conversation_id: str = "", run: str = "") -> Sequence[str]:
        query, of = ("asked_at_in_run", run) if run else ("asked_at_in_conversation", conversation_id)
        return [row[0] for row in self._sql.rows(query, kept(of), opened_column(moment))]

    def like(self, prefix: str, *, limit: int = 5) -> Sequence[str]:
        return [row[0] for row in self._sql.rows("requests_like", *_span(prefix), limit)]


class SqlPast:
    """See `signoff.ports.Past`."""

    def __init__(self, sql: Sql, requests: SqlRequests) -> None:
        self._sql = sql
        self._requests = requests

    def recent(self, *, limit: int) -> Sequence[ApprovalRequest]:
        return [self._requests.read(row) for row in self._sql.rows("recent", limit)]

    def answered_of(self, run: str) -> Sequence[RunItem]:
        return [run_item_of(row) for row in self._sql.rows("answered_of_run", kept(run))]

    def before(self, call: Call) -> AskedBefore:
        [row] = self._sql.rows("asked_before", *like_columns(call), MOST_ANSWERS, kept(call.key))
        counts, request = row[:6], row[6:]
        tallies = [Tally(approved=yes, denied=no) for yes, no in zip(counts[::2], counts[1::2], strict=True)]
        answers = EarlierAnswers(call=tallies[0], target=tallies[1], tool=tallies[2]) if any(counts) else NO_ANSWERS
        return AskedBefore(self._requests.read(request) if request[0] is not None else None, answers)


class SqlQueue:
    """See `signoff.ports.Queue`."""

    def __init__(self, sql: Sql, requests: SqlRequests) -> None:
        self._sql = sql
        self._requests = requests

    def open(self, *, limit: int | None = None) -> Sequence[ApprovalRequest]:
        found: list[ApprovalRequest] = []
        for row in self._sql.rows("open_requests", _limit(limit)):
            with suppress(StoreDamaged):  # `page` lists it
                found.append(self._requests.read(row))
        return found

    def page(self, *, limit: int, after: Item | None = None) -> Sequence[Item]:
        if after is not None and after.opened_at >= NOWHERE:
            return []
        if after is None:
            rows = self._sql.rows("inbox", limit)
        else:
            rows = self._sql.rows("inbox_after", *item_place(after), limit)
        return [listed_item(row) for row in rows]

    def place(self, request_id: str) -> Item | None:
        rows = self._sql.rows("opened_at", kept(request_id))
        return unread_item(request_id, opened_or_nowhere(rows[0][0])) if rows else None

    def due(self, now: datetime) -> Sequence[str]:
        return [row[0] for row in self._sql.rows("due", micros(now), micros(now))]

    def claimed(self) -> Sequence[tuple[str, str]]:
        rows = self._sql.rows("claimed")
        return [(request, told(holder)) for request, holder in rows if type(request) is type(holder) is str]

    def awaited(self) -> Sequence[tuple[str, str]]:
        return [(request, told(waiter)) for request, waiter in self._sql.rows("awaited")]


class SqlListings:
    """See `signoff.ports.Listings`."""

    def __init__(self, sql: Sql) -> None:
        self._sql = sql

    def page(self, chosen: RequestFilter, *, limit: int, after: ListPlace | None = None) -> Sequence[Item]:
        values = chosen_values(chosen)
        if chosen.state is ListState.WAITING:
            if after is not None and after.opened_at >= NOWHERE:
                return []
            since = opened_column(after.opened_at) if after is not None else opened_column(None) - 1
            rows = self._sql.rows("listed_waiting", *values, since, kept(after.id) if after is not None else "", limit)
            return [listed_item(row) for row in rows]
        place = (ALL, kept(after.id) if after is not None else "")
        if chosen.run:
            rows = self._sql.rows(f"listed_{chosen.state}_of_run", kept(chosen.run), *values, *place, limit)
        else:
            rows = self._sql.rows(f"listed_{chosen.state}", *values, *place, limit)
        return [listed_item(row) for row in rows]

    def waiting(self, *, most: int) -> int:
        return self._sql.value("waiting_count", most)

    def counts(self) -> Mapping[str, int]:
        return {str(state): int(number) for state, number in self._sql.rows("waiting_counts")}


class SqlResults:
    """See `signoff.ports.Results`."""

    def __init__(self, sql: Sql) -> None:
        self._sql = sql

    def put(self, request_id: str, result: bytes) -> None:
        self._sql.run("keep_result", request_id, result)

    def get(self, request_id: str) -> bytes | None:
        found = self._sql.value("result", kept(request_id))
        return None if found is None else bytes(found)

    def drop(self, run: str) -> None:
        self._sql.run("drop_results", kept(run))


class SqlGrants:
    """See `signoff.ports.Grants`."""

    def __init__(self, sql: Sql) -> None:
        self._sql = sql
        self._known: set[str] = set()
        """Ids of grants that are known to be stored. A grant is usually read before it is replaced."""

    def add(self, grant: Grant) -> None:
        self._sql.run("add_grant", *grant_columns(grant))
        self._known.add(grant.id)

    def put(self, grant: Grant) -> None:
        if grant.id not in self._known and self.get(grant.id) is None:
            raise Stale(f"there is no grant {grant.id}")
        self._sql.run("put_grant", *grant_columns(grant))

    def get(self, grant_id: str) -> Grant | None:
        body = self._sql.value("grant", kept(grant_id))
        return None if body is None else self._granted(body)

    def _granted(self, body: str) -> Grant:
        grant = load_grant(body)
        self._known.add(grant.id)
        return grant

    def about(self, tool: str, memory_key: str) -> Sequence[Grant]:
        return [self._granted(body) for (body,) in self._sql.rows("grants_about", kept(tool), kept(memory_key))]

    def all(self, *, revoked: bool = False) -> Sequence[Grant]:
        return [self._granted(body) for (body,) in self._sql.rows("all_grants" if revoked else "grants")]


class SqlRuns:
    """See `signoff.ports.Runs`. A run is read at most once per transaction object."""

    def __init__(self, sql: Sql) -> None:
        self._sql = sql
        self._known: dict[str, SavedRun] = {}

    def add(self, run: SavedRun) -> None:
        self._sql.run("add_run", run.id, run_state(run), run_text(run))
        self._put_origins(run)
        self._known[run.id] = run

    def put(self, run: SavedRun) -> None:
        if run.id not in self._known and self._sql.value("run", kept(run.id)) is None:
            raise Stale(f"there is no run {run.id}")
        self._sql.run("put_run", run.id, run_state(run), run_text(run))
        self._put_origins(run)
        self._known[run.id] = run

    def _put_origins(self, run: SavedRun) -> None:
        for channel, place in run.places.items():
            self._sql.run("put_origin", run.id, kept(channel), kept(place))

    def get(self, run_id: str) -> SavedRun | None:
        if (known := self._known.get(run_id)) is not None:
            return known
        body = self._sql.value("run", kept(run_id))
        return None if body is None else self._loaded(body)

    def _loaded(self, body: str) -> SavedRun:
        run = run_of(body)
        return self._known.setdefault(run.id, run)

    def all(self, *, going: bool = False, limit: int | None = None, before: str = "") -> Sequence[SavedRun]:
        rows = self._sql.rows("runs_going" if going else "runs", ALL, kept(before), _limit(limit))
        return [self._listed(run_id, body) for run_id, body in rows]

    def _listed(self, run_id: str, body: str) -> SavedRun:
        try:
            run = self._loaded(body)
            if run.id != run_id:
                raise StoreDamaged("holds another run", table="runs", row=str(run_id), field="body")
        except StoreDamaged as wrong:
            return DamagedRun(id=str(run_id)[:200], detail=str(wrong))
        return run

    def like(self, prefix: str, *, limit: int = 5) -> Sequence[str]:
        return [row[0] for row in self._sql.rows("runs_like", *_span(prefix), limit)]


class SqlSegments:
    """See `signoff.ports.Segments`."""

    def __init__(self, sql: Sql) -> None:
        self._sql = sql

    def add(self, segment: Segment) -> None:
        parent = segment_key(segment.parent) if segment.parent else None
        self._sql.run("add_segment", segment_key(segment.id), parent, segment.count, segment.body)

    def has(self, segment_id: str) -> bool:
        return bool(self._sql.rows("has_segment", segment_key(segment_id)))

    def chain(self, tip: str) -> Sequence[Segment]:
        return [segment_of(row) for row in self._sql.rows("segments", segment_key(tip))]


class SqlProcesses:
    """See `signoff.ports.Processes`."""

    def __init__(self, sql: Sql) -> None:
        self._sql = sql

    def put(self, process: Process) -> None:
        self._sql.run("put_process", process.id, dump_process(process))

    def get(self, process_id: str) -> Process | None:
        body = self._sql.value("process", kept(process_id))
        return None if body is None else load_process(body)


class SqlDelegations:
    """See `signoff.ports.Delegations`."""

    def __init__(self, sql: Sql) -> None:
        self._sql = sql

    def add(self, delegation: Delegation) -> None:
        self._sql.run("add_delegation", micros(delegation.since), micros(delegation.until), dump_delegation(delegation))

    def current(self, now: datetime) -> Sequence[Delegation]:
        return [load_delegation(body) for (body,) in self._sql.rows("delegations", micros(now), micros(now))]

    def end(self, absent: str, deputy: str, now: datetime) -> Sequence[Delegation]:
        every = [(nr, load_delegation(body)) for nr, body in self._sql.rows("open_delegations", micros(now))]
        found = [(nr, one) for nr, one in every if one.is_between(absent, deputy)]
        for nr, one in found:
            self._sql.run("end_delegation", micros(now), dump_delegation(replace(one, until=now)), nr)
        return [one for _, one in found]


class SqlDeliveries:
    """See `signoff.ports.Deliveries`."""

    def __init__(self, sql: Sql) -> None:
        self._sql = sql

    def get(self, channel: str, subject: Subject) -> Delivery | None:
        rows = self._sql.rows("delivery", kept(channel), *subject_columns(subject))
        return delivery_of(rows[0]) if rows else None

    def put(self, delivery: Delivery) -> None:
        self._sql.run("put_delivery", *delivery_columns(delivery))

    def find(self, *, channel: str = "", trail: str = "", request: str = "", live: bool = False) -> Sequence[Delivery]:
        if request:
            rows = self._sql.rows("deliveries_of_request", kept(request), kept(trail), kept(channel), int(live))
        elif trail:
            rows = self._sql.rows(f"{'live_' if live else ''}deliveries_of_trail", kept(trail), kept(channel))
        else:
            rows = self._sql.rows("live_deliveries" if live else "deliveries", kept(channel))
        return [delivery_of(row) for row in rows]

    def last(self, *, channel: str, trail: str, limit: int) -> Sequence[Delivery]:
        return [delivery_of(row) for row in self._sql.rows("last_deliveries", kept(trail), kept(channel), limit)]

    def changes(self, *, after: int) -> DeliveryChanges:
        last = self._sql.value("last_change")
        trails = self._sql.rows("changed_trails", after) if last > after else ()
        return DeliveryChanges(last, list(dict.fromkeys(told(trail) for (trail,) in trails)))

    def untold(self, channel: str) -> Sequence[str]:
        return [row[0] for row in self._sql.rows("untold", kept(channel), kept(channel), kept(channel))]


class SqlRecord:
    """See `signoff.ports.Record`."""

    def __init__(self, sql: Sql, chain: SqlChain) -> None:
        self._sql = sql
        self._chain = chain

    def append(self, drafts: Sequence[EventDraft]) -> None:
        seq, prev = self._chain.end
        for draft in drafts:
            seq += 1
            entry = linked(draft, seq, prev)
            prev = entry.hash
            self._sql.run("append", *entry)
        self._chain.end = (seq, prev)

    def head(self) -> tuple[int, str]:
        return self._chain.end

    def entries(self, *, after: int = 0, limit: int | None = None, request: str = "", run: str = "") -> Sequence[Entry]:
        if request and run:
            rows = self._sql.rows("entries_of_both", request, run, after, _limit(limit))
        elif request:
            rows = self._sql.rows("entries_of_request", request, after, _limit(limit))
        elif run:
            rows = self._sql.rows("entries_of_run", run, after, _limit(limit))
        else:
            rows = self._sql.rows("entries", after, _limit(limit))
        return [Entry(*row) for row in rows]

    def touched(self, after: int) -> Sequence[str]:
        return list(dict.fromkeys(row[0] for row in self._sql.rows("touched", after)))


class SqlCheckpoints:
    """See `signoff.ports.Checkpoints`."""

    def __init__(self, sql: Sql) -> None:
        self._sql = sql

    def add(self, checkpoint: Checkpoint) -> None:
        self._sql.run("add_checkpoint", *checkpoint)

    def all(self) -> Sequence[Checkpoint]:
        return [Checkpoint(*row) for row in self._sql.rows("checkpoints")]


class SqlLeases:
    """See `signoff.ports.Leases`."""

    def __init__(self, sql: Sql) -> None:
        self._sql = sql

    def get(self, channel: str) -> Lease | None:
        rows = self._sql.rows("lease", kept(channel))
        return lease_of(rows[0]) if rows else None

    def put(self, lease: Lease) -> None:
        self._sql.run("put_lease", *lease_columns(lease))

    def all(self) -> Sequence[Lease]:
        return [lease_of(row) for row in self._sql.rows("leases")]


class SqlReaders:
    """See `signoff.ports.Readers`."""

    def __init__(self, sql: Sql) -> None:
        self._sql = sql

    def has(self, request_id: str, args_digest: str, person: str) -> bool:
        return bool(self._sql.rows("reader", kept(request_id), args_digest, kept(person)))

    def add(self, request_id: str, args_digest: str, person: str) -> None:
        self._sql.run("add_reader", kept(request_id), args_digest, kept(person))


class SqlPolicies:
    """See `signoff.ports.Policies`."""

    def __init__(self, sql: Sql) -> None:
        self._sql = sql

    def get(self, revision: str) -> str | None:
        text = self._sql.value("policy", kept(revision))
        return None if text is None else told(text)

    def put(self, revision: str, text: str) -> None:
        self._sql.run("put_policy", kept(revision), kept(text))


class SqlConversations:
    """See `signoff.ports.Conversations`."""

    def __init__(self, sql: Sql) -> None:
        self._sql = sql

    def get(self, name: str) -> ConversationLog | None:
        rows = self._sql.rows("conversation", kept(name))
        if not rows:
            return None
        [(run, heard)] = rows
        recent = tuple(told(message) for (message,) in self._sql.rows("messages", kept(name)))
        turns = {told(agent): told(turn) for agent, turn in self._sql.rows("turns", kept(name))}
        return ConversationLog(name=name, run=told(run), heard=told(heard), recent=recent, turns=turns)

    def put(self, log: ConversationLog) -> None:
        name, before = kept(log.name), self.get(log.name) or ConversationLog(name=log.name)
        self._sql.run("put_conversation", name, kept(log.run), kept(log.heard))
        if before.turns.keys() - log.turns.keys():
            self._sql.run("drop_turns", name)
            before = replace(before, turns={})
        for agent, run in log.turns.items():
            if before.turns.get(agent) != run:
                self._sql.run("put_turn", name, kept(agent), kept(run))
        self._put_messages(name, before.recent, log.recent)

    def _put_messages(self, name: str, before: Sequence[str], recent: Sequence[str]) -> None:
        """Write only the difference: usually the oldest message is dropped and one is added."""
        stays = [one for one in before if one in recent]
        if list(recent[: len(stays)]) != stays:
            stays = []
        for message in before:
            if message not in stays:
                self._sql.run("drop_message", name, kept(message))
        for message in recent[len(stays) :]:
            self._sql.run("add_message", name, kept(message))


class SqlAccessKeys:
    """See `signoff.ports.AccessKeys`."""

    def __init__(self, sql: Sql) -> None:
        self._sql = sql

    def get(self, key_id: str) -> AccessKey | None:
        body = self._sql.value("access_key", kept(key_id))
        return None if body is None else load_access_key(body)

    def by_digest(self, digest: str) -> AccessKey | None:
        body = self._sql.value("access_key_by_digest", digest)
        return None if body is None else load_access_key(body)

    def put(self, key: AccessKey) -> None:
        found_by = (kept(key.id), key.digest, key.kind.value, kept(key.holder), micros(key.expires_at))
        self._sql.run("put_access_key", *found_by, dump_access_key(key))

    def all(self, *, kind: AccessKind | None = None, holder: str = "") -> Sequence[AccessKey]:
        of_kind = kind.value if kind is not None else ""
        rows = self._sql.rows("access_keys", of_kind, of_kind, kept(holder), kept(holder))
        return [load_access_key(body) for (body,) in rows]

    def forget(self, before: datetime) -> None:
        self._sql.run("drop_access_keys", micros(before))


class SqlComments:
    """See `signoff.ports.Comments`."""

    def __init__(self, sql: Sql) -> None:
        self._sql = sql

    def of(self, request_id: str) -> Sequence[Comment]:
        return [load_comment(body) for (body,) in self._sql.rows("comments", kept(request_id))]

    def add(self, comment: Comment) -> None:
        self._sql.run("add_comment", kept(comment.request), dump_comment(comment))


class SqlReplies:
    """See `signoff.ports.Replies`."""

    def __init__(self, sql: Sql) -> None:
        self._sql = sql

    def get(self, holder: str, name: str) -> KeptReply | None:
        rows = self._sql.rows("reply", kept(holder), kept(name))
        if not rows:
            return None
        asked, status, body = rows[0]
        return KeptReply(asked, status, told(body))

    def put(self, holder: str, name: str, reply: KeptReply, at: datetime) -> None:
        self._sql.run("put_reply", kept(holder), kept(name), reply.asked, reply.status, kept(reply.body), micros(at))

    def forget(self, before: datetime) -> None:
        self._sql.run("drop_replies", micros(before))


class SqlAapRequests:
    """See `signoff.ports.AapRequests`."""

    def __init__(self, sql: Sql) -> None:
        self._sql = sql

    def get(self, request_id: str) -> AapRequest | None:
        body = self._sql.value("aap_request", kept(request_id))
        return None if body is None else load_aap_request(body)

    def by_key(self, instance: str, key: str) -> AapRequest | None:
        body = self._sql.value("aap_request_by_key", kept(instance), kept(key))
        return None if body is None else load_aap_request(body)

    def put(self, request: AapRequest) -> None:
        found_by = (kept(request.id), kept(request.instance), kept(request.key), request.stage.value)
        times = (micros(request.deadline), micros(request.touched_at))
        self._sql.run("put_aap_request", *found_by, *times, dump_aap_request(request))

    def going(self, instance: str) -> Sequence[AapRequest]:
        return [load_aap_request(body) for (body,) in self._sql.rows("going_aap_requests", kept(instance))]

    def waiting(self, instance: str) -> int:
        return self._sql.value("waiting_aap_requests", kept(instance))

    def place(self, request_id: str) -> Item | None:
        rows = self._sql.rows("opened_at", kept(request_id))
        return unread_item(request_id, opened_or_nowhere(rows[0][0])) if rows else None

    def due(self, now: datetime) -> Sequence[str]:
        return [told(found) for (found,) in self._sql.rows("due_aap_requests", micros(now))]

    def forget(self, before: datetime) -> None:
        self._sql.run("drop_aap_requests", micros(before))


class SqlAapInstances:
    """See `signoff.ports.AapInstances`."""

    def __init__(self, sql: Sql) -> None:
        self._sql = sql

    def get(self, instance_id: str) -> AapInstance | None:
        body = self._sql.value("aap_instance", kept(instance_id))
        return None if body is None else load_aap_instance(body)

    def by_key(self, provisioner: str, key: str) -> AapInstance | None:
        body = self._sql.value("aap_instance_by_key", kept(provisioner), kept(key)) if key else None
        return None if body is None else load_aap_instance(body)

    def put(self, instance: AapInstance) -> None:
        found_by = (kept(instance.id), kept(instance.provisioner), kept(instance.key), micros(instance.revoked_at))
        self._sql.run("put_aap_instance", *found_by, dump_aap_instance(instance))

    def all(self, *, revoked: bool = True) -> Sequence[AapInstance]:
        rows = self._sql.rows("aap_instances" if revoked else "living_aap_instances")
        return [load_aap_instance(body) for (body,) in rows]

    def forget(self, before: datetime) -> None:
        self._sql.run("drop_aap_instances", micros(before))


class SqlSettings:
    """See `signoff.ports.StoreSettings`."""

    def __init__(self, sql: Sql) -> None:
        self._sql = sql

    def get(self, name: str) -> str | None:
        value = self._sql.value("setting", kept(name))
        return None if value is None else told(value)

    def put(self, name: str, value: str | None) -> None:
        if value is None:
            self._sql.run("drop_setting", kept(name))
        else:
            self._sql.run("set_setting", kept(name), kept(value))


class SqlTransaction:
    """A transaction on an SQL database. See `signoff.ports.Transaction`."""

    requests: SqlRequests
    past: SqlPast
    queue: SqlQueue
    listings: SqlListings
    results: SqlResults
    grants: SqlGrants
    runs: SqlRuns
    segments: SqlSegments
    processes: SqlProcesses
    delegations: SqlDelegations
    deliveries: SqlDeliveries
    record: SqlRecord
    checkpoints: SqlCheckpoints
    leases: SqlLeases
    readers: SqlReaders
    policies: SqlPolicies
    conversations: SqlConversations
    access_keys: SqlAccessKeys
    comments: SqlComments
    replies: SqlReplies
    aap_requests: SqlAapRequests
    aap_instances: SqlAapInstances
    settings: SqlSettings

    def __init__(self, wire: Wire, queries: Queries, chain: SqlChain) -> None:
        self.sql = Sql(wire, queries)
        self.chain = chain

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> object:
            """Create a part on first use. Most transactions need two or three of them."""
            if (make := _NOUNS.get(name)) is None:
                raise AttributeError(name)
            part = self.__dict__[name] = make(self)
            return part


_NOUNS: Mapping[str, Callable[[SqlTransaction], object]] = {
    "requests": lambda tx: SqlRequests(tx.sql),
    "past": lambda tx: SqlPast(tx.sql, tx.requests),
    "queue": lambda tx: SqlQueue(tx.sql, tx.requests),
    "listings": lambda tx: SqlListings(tx.sql),
    "results": lambda tx: SqlResults(tx.sql),
    "grants": lambda tx: SqlGrants(tx.sql),
    "runs": lambda tx: SqlRuns(tx.sql),
    "segments": lambda tx: SqlSegments(tx.sql),
    "processes": lambda tx: SqlProcesses(tx.sql),
    "delegations": lambda tx: SqlDelegations(tx.sql),
    "deliveries": lambda tx: SqlDeliveries(tx.sql),
    "record": lambda tx: SqlRecord(tx.sql, tx.chain),
    "checkpoints": lambda tx: SqlCheckpoints(tx.sql),
    "leases": lambda tx: SqlLeases(tx.sql),
    "readers": lambda tx: SqlReaders(tx.sql),
    "policies": lambda tx: SqlPolicies(tx.sql),
    "conversations": lambda tx: SqlConversations(tx.sql),
    "access_keys": lambda tx: SqlAccessKeys(tx.sql),
    "comments": lambda tx: SqlComments(tx.sql),
    "replies": lambda tx: SqlReplies(tx.sql),
    "aap_requests": lambda tx: SqlAapRequests(tx.sql),
    "aap_instances": lambda tx: SqlAapInstances(tx.sql),
    "settings": lambda tx: SqlSettings(tx.sql),
}


def _differ(one: object, other: object) -> bool:
    return one is not other and one != other


def _limit(limit: int | None) -> int:
    return ALL if limit is None else limit


def _span(prefix: str) -> tuple[str, str]:
    """Return the range of ids that start with a prefix."""
    return kept(prefix), kept(prefix) + "~"  # `~` sorts after every character that an id can contain
