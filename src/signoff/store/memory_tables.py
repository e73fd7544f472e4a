"""The store's `Transaction` in memory: one dict per kind of object, with an undo log for rollback."""

from __future__ import annotations

from bisect import bisect_right, insort
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from itertools import dropwhile, islice

from signoff.core.aap import AapInstance, AapRequest, AapStage
from signoff.core.access import AccessKey, AccessKind
from signoff.core.call import Call
from signoff.core.comment import Comment
from signoff.core.conversation import ConversationLog
from signoff.core.grant import Grant
from signoff.core.inbox_row import Item, RunItem, place_of
from signoff.core.lease import Lease
from signoff.core.people import Delegation
from signoff.core.record import Checkpoint
from signoff.core.request import ApprovalRequest, State
from signoff.core.request_context import MOST_ANSWERS, NO_ANSWERS, EarlierAnswers, Tally
from signoff.core.request_filter import CHAIN, ListPlace, ListState, RequestFilter, plain_case
from signoff.core.request_status import settled_at
from signoff.core.run import Process, RunState, SavedRun, Segment
from signoff.errors import Stale, StoreError
from signoff.ports import AskedBefore, KeptReply
from signoff.store.memory_changes import Changes
from signoff.store.memory_deliveries import MemoryDeliveries
from signoff.store.memory_record import EventCount, MemoryChain, MemoryRecord
from signoff.store.rows import kept

_Place = tuple[datetime, int, str]
"""The sort key of a request: when it was opened, how many requests were stored before it, and its id."""
_WAITING = frozenset({State.PENDING, State.UNKNOWN})
_ANSWERED = frozenset({State.APPROVED, State.DENIED, State.EXPIRED})
_LONG_AGO = datetime.min.replace(tzinfo=UTC)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class MemoryRequests:
    """See `signoff.ports.Requests`, `signoff.ports.Past` and `signoff.ports.Queue`. They share one set of indexes."""

    def __init__(self, changes: Changes) -> None:
        self._changes = changes
        self._all: dict[str, ApprovalRequest] = {}
        self._places: dict[str, _Place] = {}
        self._waiting: list[_Place] = []
        self._moments: dict[str, datetime] = {}
        self._holders: dict[str, str] = {}
        self._waiters: dict[str, str] = {}
        self._newest: dict[str, str] = {}
        self._of_conversation: dict[str, dict[str, None]] = {}
        self._of_run: dict[str, dict[str, None]] = {}
        self._answers: Counter[tuple[str, ...]] = Counter()
        """Counts of answers, by the answer, the tool and, for the finer counts, the target and the exact arguments."""

    def get(self, request_id: str) -> ApprovalRequest | None:
        return self._all.get(request_id)

    def about(self, call_key: str) -> ApprovalRequest | None:
        newest = self._newest.get(call_key)
        return self._all[newest] if newest is not None else None

    def add(self, request: ApprovalRequest) -> None:
        if request.id in self._all:
            raise StoreError(f"request {request.id} is stored already")
        if request.call is not None:
            self._changes.set(self._newest, request.call.key, request.id)
        self._changes.add(partial(self._exchange, request.id, None))
        self._exchange(request.id, request)

    def put(self, request: ApprovalRequest) -> None:
        stored = self._all.get(request.id)
        if stored is None or stored.version != request.version - 1:
            raise Stale(f"request {request.id} has changed in the meantime")
        self._changes.add(partial(self._exchange, request.id, stored))
        self._exchange(request.id, request)

    def _exchange(self, request_id: str, new: ApprovalRequest | None) -> None:
        """Replace the stored request with another one, or remove it if `new` is None, in every index."""
        old = self._all.pop(request_id, None) if new is None else self._all.get(request_id)
        if old is not None:
            self._leave(old)
        if new is None:
            self._places.pop(request_id)
            return
        if old is None:
            self._places[request_id] = (new.opened_at or _LONG_AGO, len(self._places), request_id)
        self._all[request_id] = new
        self._enter(new)

    def _leave(self, request: ApprovalRequest) -> None:
        if request.state in _WAITING:
            del self._waiting[bisect_right(self._waiting, self._places[request.id]) - 1]
        self._moments.pop(request.id, None)
        self._holders.pop(request.id, None)
        self._waiters.pop(request.id, None)
        if request.call is not None and request.call.conversation_id:
            self._of_conversation[request.call.conversation_id].pop(request.id)
        if request.run:
            self._of_run[request.run].pop(request.id)
        if request.answer:
            self._answers.subtract(_counted_as(request))

    def _enter(self, request: ApprovalRequest) -> None:
        if request.state in _WAITING:
            insort(self._waiting, self._places[request.id])
        if request.state is State.PENDING:
            moments = [one for one in (request.deadline, request.remind_at) if one is not None]
            if moments:
                self._moments[request.id] = min(moments)
        elif request.state is State.CLAIMED and request.claim is not None:
            self._holders[request.id] = request.claim.holder
        if request.waiter and request.state in (State.PENDING, State.APPROVED):
            self._waiters[request.id] = request.waiter
        if request.call is not None and request.call.conversation_id:
            self._of_conversation.setdefault(request.call.conversation_id, {})[request.id] = None
        if request.run:
            self._of_run.setdefault(request.run, {})[request.id] = None
        if request.answer:
            self._answers.update(_counted_as(request))

    def open(self, *, limit: int | None = None) -> Sequence[ApprovalRequest]:
        waiting = (self._all[request_id] for _, _, request_id in self._waiting)
        return [request for request in waiting if request.state is State.PENDING][:limit]

    def page(self, *, limit: int, after: Item | None = None) -> Sequence[Item]:
        start = bisect_right(self._waiting, self._places[after.id]) if after is not None else 0
        return [_item(self._all[request_id]) for _, _, request_id in self._waiting[start : start + limit]]

    def place(self, request_id: str) -> Item | None:
        request = self._all.get(request_id)
        return place_of(request) if request is not None else None

    def listed(self, chosen: RequestFilter, after: ListPlace | None) -> Iterator[ApprovalRequest]:
        """See `signoff.ports.Listings.page`."""
        known = self._places.get(after.id) if after is not None else None
        if chosen.state is ListState.WAITING:
            place = known or ((after.opened_at, -1, "") if after is not None else None)
            start = bisect_right(self._waiting, place) if place is not None else 0
            requests = (self._all[request_id] for _, _, request_id in self._waiting[start:])
        else:
            earlier = list(self._places)[: known[1] if known is not None else None]
            newest = (self._all[request_id] for request_id in reversed(earlier))
            requests = (one for one in newest if chosen.state is ListState.ALL or one.state not in _WAITING)
        return (one for one in requests if _is_chosen(chosen, one))

    def waiting(self, *, most: int) -> int:
        return min(most, len(self._waiting))

    def counts(self) -> Mapping[str, int]:
        return Counter(self._all[request_id].state.value for _, _, request_id in self._waiting)

    def of(self, *, conversation_id: str = "", run: str = "") -> Sequence[ApprovalRequest]:
        ids = (
            self._of_conversation.get(conversation_id, {}).keys()
            if conversation_id
            else self._of_run.get(run, {}).keys()
        )
        if conversation_id and run:
            ids &= self._of_run.get(run, {}).keys()
        return [self._all[request_id] for _, _, request_id in sorted(self._places[one] for one in ids)]

    def waiting_of(self, run: str, *, limit: int) -> tuple[Sequence[RunItem], int]:
        found = [one for name in self._of_run.get(run, ()) if (one := self._all[name]).state in _WAITING]
        return [_run_item(one) for one in found[:limit]], len(found)

    def answered_of(self, run: str) -> Sequence[RunItem]:
        return [_run_item(one) for name in self._of_run.get(run, ()) if (one := self._all[name]).state in _ANSWERED]

    def opened_at(self, moment: datetime | None, *, conversation_id: str = "", run: str = "") -> Sequence[str]:
        among = self._of_run.get(run, {}) if run else self._of_conversation.get(conversation_id, {})
        places = [self._places[one] for one in among if self._all[one].opened_at == moment]
        return [request_id for _, _, request_id in sorted(places)]

    def recent(self, *, limit: int) -> Sequence[ApprovalRequest]:
        newest = reversed(self._all.values())
        return list(islice((request for request in newest if request.state not in _WAITING), limit))

    def before(self, call: Call) -> AskedBefore:
        if not self._answers:
            return AskedBefore(self.about(call.key), NO_ANSWERS)
        tool, (target, same) = call.tool, call.likeness

        def tally(*like: str) -> Tally:
            yes, no = (self._answers[answer, *like] for answer in ("approved", "denied"))
            return Tally(approved=min(yes, MOST_ANSWERS), denied=min(no, MOST_ANSWERS))

        answers = EarlierAnswers(call=tally(tool, target, same), target=tally(tool, target), tool=tally(tool))
        return AskedBefore(self.about(call.key), answers)

    def due(self, now: datetime) -> Sequence[str]:
        due = sorted((moment, request_id) for request_id, moment in self._moments.items() if moment <= now)
        return [request_id for _, request_id in due]

    def claimed(self) -> Sequence[tuple[str, str]]:
        return list(self._holders.items())

    def awaited(self) -> Sequence[tuple[str, str]]:
        return list(self._waiters.items())

    def like(self, prefix: str, *, limit: int = 5) -> Sequence[str]:
        return sorted(one for one in self._all if one.startswith(prefix))[:limit]

    def ids(self) -> Iterable[str]:
        return self._all


class MemoryListings:
    """See `signoff.ports.Listings`."""

    def __init__(self, requests: MemoryRequests) -> None:
        self._requests = requests

    def page(self, chosen: RequestFilter, *, limit: int, after: ListPlace | None = None) -> Sequence[Item]:
        return [_item(one) for one in islice(self._requests.listed(chosen, after), limit)]

    def waiting(self, *, most: int) -> int:
        return self._requests.waiting(most=most)

    def counts(self) -> Mapping[str, int]:
        return self._requests.counts()


class MemoryResults:
    """See `signoff.ports.Results`."""

    def __init__(self, changes: Changes, requests: MemoryRequests) -> None:
        self._changes = changes
        self._requests = requests
        self._all: dict[str, bytes] = {}

    def put(self, request_id: str, result: bytes) -> None:
        if self._requests.get(request_id) is None:
            raise StoreError(f"there is no request {request_id}")
        self._changes.set(self._all, request_id, result)

    def get(self, request_id: str) -> bytes | None:
        return self._all.get(request_id)

    def drop(self, run: str) -> None:
        for request in self._requests.of(run=run) if run else ():
            if request.id in self._all:
                self._changes.drop(self._all, request.id)


class MemoryGrants:
    """See `signoff.ports.Grants`."""

    def __init__(self, changes: Changes) -> None:
        self._changes = changes
        self._all: dict[str, Grant] = {}
        self._by_subject: dict[tuple[str, str | None], dict[str, Grant]] = {}

    def add(self, grant: Grant) -> None:
        if grant.id in self._all:
            raise StoreError(f"grant {grant.id} is stored already")
        self._changes.set(self._all, grant.id, grant)
        self._changes.set(self._by_subject.setdefault(_subject(grant), {}), grant.id, grant)

    def put(self, grant: Grant) -> None:
        if (stored := self._all.get(grant.id)) is None:
            raise Stale(f"there is no grant {grant.id}")
        self._changes.set(self._all, grant.id, grant)
        if _subject(stored) != _subject(grant):
            self._changes.drop(self._by_subject[_subject(stored)], grant.id)
        self._changes.set(self._by_subject.setdefault(_subject(grant), {}), grant.id, grant)

    def get(self, grant_id: str) -> Grant | None:
        return self._all.get(grant_id)

    def about(self, tool: str, memory_key: str) -> Sequence[Grant]:
        exact = self._by_subject.get((tool, memory_key), {})
        patterns = self._by_subject.get((tool, None), {})
        return [grant for grant in (*exact.values(), *patterns.values()) if grant.revoked_at is None]

    def all(self, *, revoked: bool = False) -> Sequence[Grant]:
        return [grant for grant in self._all.values() if revoked or grant.revoked_at is None]


class MemoryRuns:
    """See `signoff.ports.Runs`."""

    def __init__(self, changes: Changes) -> None:
        self._changes = changes
        self._all: dict[str, SavedRun] = {}

    def add(self, run: SavedRun) -> None:
        if run.id in self._all:
            raise StoreError(f"run {run.id} is stored already")
        self._changes.set(self._all, run.id, run)

    def put(self, run: SavedRun) -> None:
        if run.id not in self._all:
            raise Stale(f"there is no run {run.id}")
        self._changes.set(self._all, run.id, run)

    def get(self, run_id: str) -> SavedRun | None:
        return self._all.get(run_id)

    def all(self, *, going: bool = False, limit: int | None = None, before: str = "") -> Sequence[SavedRun]:
        newest = reversed(self._all.values())
        if before in self._all:
            newest = islice(dropwhile(lambda run: run.id != before, newest), 1, None)
        listed = (run for run in newest if not run.parent)
        return [run for run in listed if run.state is RunState.GOING or not going][:limit]

    def like(self, prefix: str, *, limit: int = 5) -> Sequence[str]:
        return sorted(one for one in self._all if one.startswith(prefix))[:limit]

    def over(self) -> Sequence[SavedRun]:
        """Top-level runs that have ended, oldest first."""
        return [run for run in self._all.values() if run.state is not RunState.GOING and not run.parent]


class MemorySegments:
    """See `signoff.ports.Segments`."""

    def __init__(self, changes: Changes) -> None:
        self._changes = changes
        self._all: dict[str, Segment] = {}

    def add(self, segment: Segment) -> None:
        if segment.id not in self._all:
            self._changes.set(self._all, segment.id, segment)

    def has(self, segment_id: str) -> bool:
        return segment_id in self._all

    def chain(self, tip: str) -> Sequence[Segment]:
        chain: list[Segment] = []
        while (segment := self._all.get(tip)) is not None:
            chain.append(segment)
            tip = segment.parent
        return chain[::-1]


class MemoryProcesses:
    """See `signoff.ports.Processes`."""

    def __init__(self, changes: Changes) -> None:
        self._changes = changes
        self._all: dict[str, Process] = {}

    def put(self, process: Process) -> None:
        self._changes.set(self._all, process.id, process)

    def get(self, process_id: str) -> Process | None:
        return self._all.get(process_id)


class MemoryDelegations:
    """See `signoff.ports.Delegations`."""

    def __init__(self, changes: Changes) -> None:
        self._changes = changes
        self._all: dict[int, Delegation] = {}

    def add(self, delegation: Delegation) -> None:
        self._changes.set(self._all, len(self._all), delegation)

    def current(self, now: datetime) -> Sequence[Delegation]:
        return [one for one in self._all.values() if one.holds(now)]

    def end(self, absent: str, deputy: str, now: datetime) -> Sequence[Delegation]:
        found = {nr: one for nr, one in self._all.items() if one.until > now and one.is_between(absent, deputy)}
        for nr, one in found.items():
            self._changes.set(self._all, nr, replace(one, until=now))
        return list(found.values())


class MemoryCheckpoints:
    """See `signoff.ports.Checkpoints`."""

    def __init__(self, changes: Changes) -> None:
        self._changes = changes
        self._all: dict[int, Checkpoint] = {}

    def add(self, checkpoint: Checkpoint) -> None:
        self._changes.set(self._all, len(self._all), checkpoint)

    def all(self) -> Sequence[Checkpoint]:
        return list(self._all.values())


class MemoryLeases:
    """See `signoff.ports.Leases`."""

    def __init__(self, changes: Changes) -> None:
        self._changes = changes
        self._all: dict[str, Lease] = {}

    def get(self, channel: str) -> Lease | None:
        return self._all.get(channel)

    def put(self, lease: Lease) -> None:
        self._changes.set(self._all, lease.channel, lease)

    def all(self) -> Sequence[Lease]:
        return list(self._all.values())


class MemoryReaders:
    """See `signoff.ports.Readers`."""

    def __init__(self, changes: Changes) -> None:
        self._changes = changes
        self._all: dict[tuple[str, str, str], bool] = {}

    def has(self, request_id: str, args_digest: str, person: str) -> bool:
        return (request_id, args_digest, person) in self._all

    def add(self, request_id: str, args_digest: str, person: str) -> None:
        self._changes.set(self._all, (request_id, args_digest, person), True)


class MemoryAccessKeys:
    """See `signoff.ports.AccessKeys`."""

    def __init__(self, changes: Changes) -> None:
        self._changes = changes
        self._all: dict[str, AccessKey] = {}
        self._ids: dict[str, str] = {}
        """Key ids by digest."""

    def get(self, key_id: str) -> AccessKey | None:
        return self._all.get(key_id)

    def by_digest(self, digest: str) -> AccessKey | None:
        return self._all.get(self._ids.get(digest, ""))

    def put(self, key: AccessKey) -> None:
        self._changes.set(self._all, key.id, key)
        self._changes.set(self._ids, key.digest, key.id)

    def all(self, *, kind: AccessKind | None = None, holder: str = "") -> Sequence[AccessKey]:
        return [key for key in self._all.values() if kind in (None, key.kind) and holder in ("", key.holder)]

    def forget(self, before: datetime) -> None:
        for key in [one for one in self._all.values() if one.expires_at is not None and one.expires_at < before]:
            self._changes.drop(self._all, key.id)
            self._changes.drop(self._ids, key.digest)


class MemoryComments:
    """See `signoff.ports.Comments`."""

    def __init__(self, changes: Changes) -> None:
        self._changes = changes
        self._all: dict[str, tuple[Comment, ...]] = {}

    def of(self, request_id: str) -> Sequence[Comment]:
        return self._all.get(request_id, ())

    def add(self, comment: Comment) -> None:
        self._changes.set(self._all, comment.request, (*self._all.get(comment.request, ()), comment))


class MemoryReplies:
    """See `signoff.ports.Replies`."""

    def __init__(self, changes: Changes) -> None:
        self._changes = changes
        self._all: dict[tuple[str, str], tuple[KeptReply, datetime]] = {}

    def get(self, holder: str, name: str) -> KeptReply | None:
        found = self._all.get((holder, name))
        return found[0] if found is not None else None

    def put(self, holder: str, name: str, reply: KeptReply, at: datetime) -> None:
        self._changes.set(self._all, (holder, name), (reply, at))

    def forget(self, before: datetime) -> None:
        for key in [key for key, (_, at) in self._all.items() if at < before]:
            self._changes.drop(self._all, key)


class MemoryAapRequests:
    """See `signoff.ports.AapRequests`."""

    def __init__(self, changes: Changes) -> None:
        self._changes = changes
        self._all: dict[str, AapRequest] = {}
        self._ids: dict[tuple[str, str], str] = {}
        """Request ids by instance and idempotency key."""
        self._numbers: dict[str, int] = {}
        """Insertion order by request id. Dict order is not enough: a rollback re-adds a dropped request at the end."""

    def get(self, request_id: str) -> AapRequest | None:
        return self._all.get(request_id)

    def by_key(self, instance: str, key: str) -> AapRequest | None:
        return self._all.get(self._ids.get((instance, key), ""))

    def put(self, request: AapRequest) -> None:
        self._numbers.setdefault(request.id, len(self._numbers))
        self._changes.set(self._all, request.id, request)
        self._changes.set(self._ids, (request.instance, request.key), request.id)

    def going(self, instance: str) -> Sequence[AapRequest]:
        found = [one for one in self._all.values() if one.instance == instance and one.stage is not AapStage.OVER]
        return sorted(found, key=lambda one: self._numbers[one.id])

    def waiting(self, instance: str) -> int:
        return sum(one.instance == instance and one.stage is AapStage.OPEN for one in self._all.values())

    def due(self, now: datetime) -> Sequence[str]:
        found = [one for one in self._all.values() if one.stage is AapStage.OPEN and one.deadline <= now]
        return [one.id for one in sorted(found, key=lambda one: one.deadline)]

    def forget(self, before: datetime) -> None:
        for one in list(self._all.values()):
            if one.stage is not AapStage.OPEN and one.touched_at < before:
                self._changes.drop(self._all, one.id)
                self._changes.drop(self._ids, (one.instance, one.key))


class MemoryAapInstances:
    """See `signoff.ports.AapInstances`."""

    def __init__(self, changes: Changes) -> None:
        self._changes = changes
        self._all: dict[str, AapInstance] = {}
        self._numbers: dict[str, int] = {}
        """Insertion order by instance id, as in `MemoryAapRequests`."""

    def get(self, instance_id: str) -> AapInstance | None:
        return self._all.get(instance_id)

    def by_key(self, provisioner: str, key: str) -> AapInstance | None:
        found = (one for one in self._all.values() if key and (one.provisioner, one.key) == (provisioner, key))
        return next(found, None)

    def put(self, instance: AapInstance) -> None:
        self._numbers.setdefault(instance.id, len(self._numbers))
        self._changes.set(self._all, instance.id, instance)

    def all(self, *, revoked: bool = True) -> Sequence[AapInstance]:
        found = [one for one in self._all.values() if revoked or one.revoked_at is None]
        return sorted(found, key=lambda one: self._numbers[one.id])

    def forget(self, before: datetime) -> None:
        for one in list(self._all.values()):
            if one.revoked_at is not None and one.revoked_at < before:
                self._changes.drop(self._all, one.id)


class MemoryPolicies:
    """See `signoff.ports.Policies`."""

    def __init__(self, changes: Changes) -> None:
        self._changes = changes
        self._all: dict[str, str] = {}

    def get(self, revision: str) -> str | None:
        return self._all.get(revision)

    def put(self, revision: str, text: str) -> None:
        self._changes.set(self._all, revision, text)


class MemoryConversations:
    """See `signoff.ports.Conversations`."""

    def __init__(self, changes: Changes) -> None:
        self._changes = changes
        self._all: dict[str, ConversationLog] = {}

    def get(self, name: str) -> ConversationLog | None:
        return self._all.get(name)

    def put(self, log: ConversationLog) -> None:
        self._changes.set(self._all, log.name, log)


class MemorySettings:
    """See `signoff.ports.StoreSettings`."""

    def __init__(self, changes: Changes) -> None:
        self._changes = changes
        self._all: dict[str, str] = {}

    def get(self, name: str) -> str | None:
        return self._all.get(name)

    def put(self, name: str, value: str | None) -> None:
        if value is not None:
            self._changes.set(self._all, name, value)
        elif name in self._all:
            self._changes.drop(self._all, name)


class Tables:
    """See `signoff.ports.Transaction`. Every change is first noted in the undo log (`Changes`)."""

    def __init__(self, record: EventCount | MemoryChain) -> None:
        self.changes = changes = Changes()
        self._record = record
        self.requests = MemoryRequests(changes)
        self.queue = self.past = self.requests
        self.listings = MemoryListings(self.requests)
        self.results = MemoryResults(changes, self.requests)
        self.grants = MemoryGrants(changes)
        self.runs = MemoryRuns(changes)
        self.segments = MemorySegments(changes)
        self.processes = MemoryProcesses(changes)
        self.delegations = MemoryDelegations(changes)
        self.deliveries = MemoryDeliveries(changes, self.runs.over)
        self.record = MemoryRecord(changes, record, self.requests.ids)
        self.checkpoints = MemoryCheckpoints(changes)
        self.leases = MemoryLeases(changes)
        self.readers = MemoryReaders(changes)
        self.policies = MemoryPolicies(changes)
        self.conversations = MemoryConversations(changes)
        self.access_keys = MemoryAccessKeys(changes)
        self.comments = MemoryComments(changes)
        self.replies = MemoryReplies(changes)
        self.aap_requests = MemoryAapRequests(changes)
        self.aap_instances = MemoryAapInstances(changes)
        self.settings = MemorySettings(changes)

    def commit(self) -> bool:
        """Commit. Returns whether watchers need to be told."""
        self._record.trim()
        return self.changes.commit()


def _subject(grant: Grant) -> tuple[str, str | None]:
    """Return the key a grant is looked up by: the tool with the exact arguments, or the tool alone for a pattern."""
    return grant.tool, grant.memory_key if grant.pattern is None else None


def _counted_as(request: ApprovalRequest) -> Iterator[tuple[str, ...]]:
    """Yield every key of the answer counts that a request's answer adds to."""
    if request.call is None:
        return
    tool, (target, same) = request.tool_name, request.call.likeness
    if request.answer == "edited":  # the approved call has other arguments, so the answer counts for the tool only
        yield "approved", tool
        return
    yield from ((request.answer, tool), (request.answer, tool, target), (request.answer, tool, target, same))


def _is_chosen(chosen: RequestFilter, request: ApprovalRequest) -> bool:
    worker = CHAIN.join(request.worker)
    if chosen.tool not in ("", request.tool_name) or chosen.run not in ("", request.run):
        return False
    if chosen.assigned not in (None, request.assigned):
        return False
    # As in the databases: compare the stored form of a text, which differs where it has characters they refuse.
    if chosen.worker and f"{CHAIN}{kept(chosen.worker)}{CHAIN}" not in f"{CHAIN}{kept(worker)}{CHAIN}":
        return False
    words = " ".join(map(kept, (request.title, request.tool_name, worker)))
    return kept(plain_case(chosen.text)) in plain_case(words)


def _item(request: ApprovalRequest) -> Item:
    requirement = request.requirement
    return Item(
        id=request.id,
        state=request.state,
        title=request.title,
        tool=request.tool_name,
        worker=" > ".join(request.worker),
        run=request.run,
        role=requirement.role or "",
        quorum=requirement.quorum,
        votes=len(request.votes),
        assigned=request.assigned,
        opened_at=request.opened_at or _EPOCH,
        deadline=request.deadline,
        escalated=request.escalated,
    )


def _run_item(request: ApprovalRequest) -> RunItem:
    return RunItem(
        id=request.id,
        state=request.state,
        title=request.title,
        worker=" > ".join(request.worker),
        at=settled_at(request),
        inside=request.claim is not None and request.claim.inside,
    )
