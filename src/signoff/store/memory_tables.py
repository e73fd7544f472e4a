"""What a transaction in memory sees: dicts, and the way back."""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from itertools import islice
from typing import TypeVar

from signoff.core.delivery import Delivery
from signoff.core.grant import Grant
from signoff.core.inbox import Item
from signoff.core.people import Delegation
from signoff.core.record import Checkpoint, Draft, Entry
from signoff.core.request import ApprovalRequest, State
from signoff.core.run import KeptRun, Process, RunState, Segment
from signoff.errors import Stale, StoreError
from signoff.store.memory_deliveries import Deliveries
from signoff.store.memory_record import Chain, Steps

K = TypeVar("K")
V = TypeVar("V")

_Place = tuple[datetime, int, str]
"""Where a request stands among the others: when it was opened, how many there were before, and its id."""
_WAITING = frozenset({State.PENDING, State.UNKNOWN})
_LONG_AGO = datetime.min.replace(tzinfo=UTC)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Tables:
    """A `Transaction` on dicts. Whatever changes something first notes how to take it back."""

    def __init__(self, record: Steps | Chain) -> None:
        self._undo: list[Callable[[], object]] = []
        self._is_news = False
        self._record = record
        self._requests: dict[str, ApprovalRequest] = {}
        self._places: dict[str, _Place] = {}
        self._waiting: list[_Place] = []
        self._moments: dict[str, datetime] = {}
        self._holders: dict[str, str] = {}
        self._newest: dict[str, str] = {}
        self._of_conversation: dict[str, dict[str, None]] = {}
        self._of_run: dict[str, dict[str, None]] = {}
        self._results: dict[str, bytes] = {}
        self._grants: dict[str, Grant] = {}
        self._grants_about: dict[tuple[str, str | None], dict[str, Grant]] = {}
        self._runs: dict[str, KeptRun] = {}
        self._segments: dict[str, Segment] = {}
        self._processes: dict[str, Process] = {}
        self._delegations: dict[int, Delegation] = {}
        self._deliveries = Deliveries()
        self._checkpoints: dict[int, Checkpoint] = {}
        self._settings: dict[str, str] = {}

    # all or nothing

    @property
    def is_changed(self) -> bool:
        return bool(self._undo)

    def commit(self) -> bool:
        """Whether anybody can see a difference."""
        self._undo.clear()
        self._record.trim()
        is_news, self._is_news = self._is_news, False
        return is_news

    def roll_back(self) -> None:
        while self._undo:
            self._undo.pop()()
        self._is_news = False

    def _changing(self, take_back: Callable[[], object]) -> None:
        self._undo.append(take_back)
        self._is_news = True

    def _set(self, table: dict[K, V], key: K, value: V) -> None:
        self._changing(partial(_restore, table, key, table.get(key)))
        table[key] = value

    def _drop(self, table: dict[K, V], key: K) -> None:
        self._changing(partial(table.__setitem__, key, table[key]))
        del table[key]

    # requests

    def request(self, request_id: str) -> ApprovalRequest | None:
        return self._requests.get(request_id)

    def about(self, call_key: str) -> ApprovalRequest | None:
        newest = self._newest.get(call_key)
        return self._requests[newest] if newest is not None else None

    def add_request(self, request: ApprovalRequest) -> None:
        if request.id in self._requests:
            raise StoreError(f"request {request.id} is stored already")
        if request.call is not None:
            self._set(self._newest, request.call.key, request.id)
        self._changing(partial(self._exchange, request.id, None))
        self._exchange(request.id, request)

    def put_request(self, request: ApprovalRequest) -> None:
        stored = self._requests.get(request.id)
        if stored is None or stored.version != request.version - 1:
            raise Stale(f"request {request.id} has changed in the meantime")
        self._changing(partial(self._exchange, request.id, stored))
        self._exchange(request.id, request)

    def _exchange(self, request_id: str, new: ApprovalRequest | None) -> None:
        """Put another request, or none, in the place of the stored one, in every index."""
        old = self._requests.pop(request_id, None) if new is None else self._requests.get(request_id)
        if old is not None:
            self._leave(old)
        if new is None:
            self._places.pop(request_id)
            return
        if old is None:
            self._places[request_id] = (new.opened_at or _LONG_AGO, len(self._places), request_id)
        self._requests[request_id] = new
        self._enter(new)

    def _leave(self, request: ApprovalRequest) -> None:
        if request.state in _WAITING:
            del self._waiting[bisect_right(self._waiting, self._places[request.id]) - 1]
        self._moments.pop(request.id, None)
        self._holders.pop(request.id, None)
        if request.call is not None and request.call.conversation_id:
            self._of_conversation[request.call.conversation_id].pop(request.id)
        if request.run:
            self._of_run[request.run].pop(request.id)

    def _enter(self, request: ApprovalRequest) -> None:
        if request.state in _WAITING:
            insort(self._waiting, self._places[request.id])
        if request.state is State.PENDING:
            moments = [one for one in (request.deadline, request.remind_at) if one is not None]
            if moments:
                self._moments[request.id] = min(moments)
        elif request.state is State.CLAIMED and request.claim is not None:
            self._holders[request.id] = request.claim.holder
        if request.call is not None and request.call.conversation_id:
            self._of_conversation.setdefault(request.call.conversation_id, {})[request.id] = None
        if request.run:
            self._of_run.setdefault(request.run, {})[request.id] = None

    def open_requests(self, *, limit: int | None = None) -> Sequence[ApprovalRequest]:
        waiting = (self._requests[request_id] for _, _, request_id in self._waiting)
        return [request for request in waiting if request.state is State.PENDING][:limit]

    def inbox(self, *, limit: int, after: Item | None = None) -> Sequence[Item]:
        start = bisect_right(self._waiting, self._places[after.id]) if after is not None else 0
        return [_item(self._requests[request_id]) for _, _, request_id in self._waiting[start : start + limit]]

    def requests_of(self, *, conversation_id: str = "", run: str = "") -> Sequence[ApprovalRequest]:
        ids = (
            self._of_conversation.get(conversation_id, {}).keys()
            if conversation_id
            else self._of_run.get(run, {}).keys()
        )
        if conversation_id and run:
            ids &= self._of_run.get(run, {}).keys()
        return [self._requests[request_id] for _, _, request_id in sorted(self._places[one] for one in ids)]

    def asked_at(self, moment: datetime | None, *, conversation_id: str = "", run: str = "") -> Sequence[str]:
        among = self._of_run.get(run, {}) if run else self._of_conversation.get(conversation_id, {})
        places = [self._places[one] for one in among if self._requests[one].opened_at == moment]
        return [request_id for _, _, request_id in sorted(places)]

    def recent(self, *, limit: int) -> Sequence[ApprovalRequest]:
        newest = reversed(self._requests.values())
        return list(islice((request for request in newest if request.state not in _WAITING), limit))

    def ids_like(self, prefix: str, *, limit: int = 5) -> Sequence[str]:
        ids = {one for table in (self._requests, self._runs) for one in table if one.startswith(prefix)}
        return sorted(ids)[:limit]

    def due(self, now: datetime) -> Sequence[str]:
        due = sorted((moment, request_id) for request_id, moment in self._moments.items() if moment <= now)
        return [request_id for _, request_id in due]

    def claimed(self) -> Sequence[tuple[str, str]]:
        return list(self._holders.items())

    def keep_result(self, request_id: str, result: bytes) -> None:
        if request_id not in self._requests:
            raise StoreError(f"there is no request {request_id}")
        self._set(self._results, request_id, result)

    def drop_results(self, run: str) -> None:
        for request in self.requests_of(run=run) if run else ():
            if request.id in self._results:
                self._drop(self._results, request.id)

    def result(self, request_id: str) -> bytes | None:
        return self._results.get(request_id)

    # grants

    def add_grant(self, grant: Grant) -> None:
        if grant.id in self._grants:
            raise StoreError(f"grant {grant.id} is stored already")
        self._set(self._grants, grant.id, grant)
        self._set(self._grants_about.setdefault(_subject(grant), {}), grant.id, grant)

    def put_grant(self, grant: Grant) -> None:
        if (stored := self._grants.get(grant.id)) is None:
            raise Stale(f"there is no grant {grant.id}")
        self._set(self._grants, grant.id, grant)
        if _subject(stored) != _subject(grant):
            self._drop(self._grants_about[_subject(stored)], grant.id)
        self._set(self._grants_about.setdefault(_subject(grant), {}), grant.id, grant)

    def grant(self, grant_id: str) -> Grant | None:
        return self._grants.get(grant_id)

    def grants_about(self, tool: str, memory_key: str) -> Sequence[Grant]:
        exact = self._grants_about.get((tool, memory_key), {})
        patterns = self._grants_about.get((tool, None), {})
        return [grant for grant in (*exact.values(), *patterns.values()) if grant.revoked_at is None]

    def grants(self, *, revoked: bool = False) -> Sequence[Grant]:
        return [grant for grant in self._grants.values() if revoked or grant.revoked_at is None]

    # runs

    def add_run(self, run: KeptRun) -> None:
        if run.id in self._runs:
            raise StoreError(f"run {run.id} is stored already")
        self._set(self._runs, run.id, run)

    def put_run(self, run: KeptRun) -> None:
        if run.id not in self._runs:
            raise Stale(f"there is no run {run.id}")
        self._set(self._runs, run.id, run)

    def run(self, run_id: str) -> KeptRun | None:
        return self._runs.get(run_id)

    def runs(self, *, going: bool = False, limit: int | None = None) -> Sequence[KeptRun]:
        newest = reversed(self._runs.values())
        listed = (run for run in newest if not run.parent)
        return [run for run in listed if run.state is RunState.GOING or not going][:limit]

    def add_segment(self, segment: Segment) -> None:
        if segment.id not in self._segments:
            self._set(self._segments, segment.id, segment)

    def has_segment(self, segment_id: str) -> bool:
        return segment_id in self._segments

    def segments(self, tip: str) -> Sequence[Segment]:
        chain: list[Segment] = []
        while (segment := self._segments.get(tip)) is not None:
            chain.append(segment)
            tip = segment.parent
        return chain[::-1]

    # processes and people

    def put_process(self, process: Process) -> None:
        self._set(self._processes, process.id, process)

    def process(self, process_id: str) -> Process | None:
        return self._processes.get(process_id)

    def add_delegation(self, delegation: Delegation) -> None:
        self._set(self._delegations, len(self._delegations), delegation)

    def delegations(self, now: datetime) -> Sequence[Delegation]:
        return [one for one in self._delegations.values() if one.holds(now)]

    # deliveries

    def delivery(self, channel: str, subject: str) -> Delivery | None:
        return self._deliveries.get((channel, subject))

    def put_delivery(self, delivery: Delivery) -> None:
        name = (delivery.channel, delivery.subject)
        self._changing(partial(self._deliveries.exchange, name, self._deliveries.get(name)))
        self._deliveries.exchange(name, delivery)

    def deliveries(
        self, *, channel: str = "", trail: str = "", request: str = "", live: bool = False
    ) -> Sequence[Delivery]:
        return self._deliveries.found(channel=channel, trail=trail, request=request, live=live)

    def last_deliveries(self, *, channel: str, trail: str, limit: int) -> Sequence[Delivery]:
        return self._deliveries.last(channel, trail)[:limit]

    def untold(self, channel: str) -> Sequence[str]:
        over = [run for run in self._runs.values() if run.state is not RunState.GOING and not run.parent]
        concerned = (run for run in over if _began_in(run, channel) or self._deliveries.has(channel, run.id))
        return [run.id for run in concerned if not self._deliveries.is_told(channel, run.id)]

    # the record

    def append(self, drafts: Sequence[Draft]) -> None:
        self._undo.append(partial(self._record.cut, self._record.head()[0]))
        self._is_news |= self._record.append(drafts)

    def head(self) -> tuple[int, str]:
        return self._record.head()

    def entries(self, *, after: int = 0, limit: int | None = None, request: str = "", run: str = "") -> Sequence[Entry]:
        found = (
            entry
            for entry in self._record.entries(after)
            if (not request or entry.request == request) and (not run or entry.run == run)
        )
        return list(islice(found, limit))

    def touched(self, after: int) -> Sequence[str]:
        touched = self._record.touched(after)
        return list(self._requests if touched is None else dict.fromkeys(touched))

    def add_checkpoint(self, checkpoint: Checkpoint) -> None:
        self._set(self._checkpoints, len(self._checkpoints), checkpoint)

    def checkpoints(self) -> Sequence[Checkpoint]:
        return list(self._checkpoints.values())

    # anything else

    def setting(self, name: str) -> str | None:
        return self._settings.get(name)

    def set_setting(self, name: str, value: str | None) -> None:
        if value is not None:
            self._set(self._settings, name, value)
        elif name in self._settings:
            self._drop(self._settings, name)


def _restore(table: dict[K, V], key: K, value: V | None) -> None:
    if value is None:
        del table[key]
    else:
        table[key] = value


def _began_in(run: KeptRun, channel: str) -> bool:
    place: object = run.options.get("place")
    return isinstance(place, Mapping) and channel in place


def _subject(grant: Grant) -> tuple[str, str | None]:
    """What a grant is found by: the tool and exactly these arguments, or the tool alone."""
    return grant.tool, grant.memory_key if grant.pattern is None else None


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
