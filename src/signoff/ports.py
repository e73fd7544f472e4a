"""Protocols for everything that is passed in from outside: clock, store, approver, inbox, channel, toolset."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextvars import ContextVar
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol, TypeAlias, TypeVar, runtime_checkable

from signoff.core.aap import AapInstance, AapRequest
from signoff.core.access import AccessKey, AccessKind
from signoff.core.call import Call
from signoff.core.comment import Comment
from signoff.core.conversation import ConversationLog
from signoff.core.decision import ApprovalDecision
from signoff.core.delivery import Delivery
from signoff.core.grant import Grant
from signoff.core.inbox_row import Item, RunItem
from signoff.core.lease import Lease
from signoff.core.mode import ApprovalMode
from signoff.core.notice import Notice, Reminder
from signoff.core.people import Actor, Delegation
from signoff.core.record import Checkpoint, Entry, EventDraft
from signoff.core.request import ApprovalRequest
from signoff.core.request_context import EarlierAnswers
from signoff.core.request_filter import ListPlace, RequestFilter
from signoff.core.run import Process, SavedRun, Segment
from signoff.core.subject import Subject

T = TypeVar("T")


class Clock(Protocol):
    """The current time and waiting for a time; tests pass a fake clock."""

    def now(self) -> datetime: ...

    async def sleep_until(self, moment: datetime) -> None: ...


class Requests(Protocol):
    """Requests by id, by call, by conversation and by run."""

    def get(self, request_id: str) -> ApprovalRequest | None: ...

    def add(self, request: ApprovalRequest) -> None: ...

    def put(self, request: ApprovalRequest) -> None:
        """Replace the stored request. Its version must follow the stored one; raises `Stale` otherwise."""
        ...

    def about(self, call_key: str) -> ApprovalRequest | None:
        """The newest request about a call, by `Call.key`."""
        ...

    def of(self, *, conversation_id: str = "", run: str = "") -> Sequence[ApprovalRequest]:
        """Every request of a conversation or of a saved run, oldest first."""
        ...

    def waiting_of(self, run: str, *, limit: int) -> tuple[Sequence[RunItem], int]:
        """What a saved run waits for, oldest first, up to the limit; and how many that are in all."""
        ...

    def opened_at(self, moment: datetime | None, *, conversation_id: str = "", run: str = "") -> Sequence[str]:
        """Ids of requests of a conversation or saved run that were opened at exactly this moment, in order."""
        ...

    def like(self, prefix: str, *, limit: int = 5) -> Sequence[str]:
        """Ids that begin with this prefix."""
        ...


class AskedBefore(NamedTuple):
    """What was asked before about a call and about similar calls."""

    request: ApprovalRequest | None
    """The newest request about exactly this call, by `Call.key`."""
    answers: EarlierAnswers
    """How people answered similar calls."""


class Past(Protocol):
    """Requests asked earlier."""

    def recent(self, *, limit: int) -> Sequence[ApprovalRequest]:
        """Requests that wait for nobody any more, the most recently asked first."""
        ...

    def answered_of(self, run: str) -> Sequence[RunItem]:
        """Requests of a saved run that were settled and whose approval, if any, was not used up, oldest first."""
        ...

    def before(self, call: Call) -> AskedBefore:
        """Earlier requests and answers for a call. The work is bounded by `MOST_ANSWERS`, however much was asked."""
        ...


class Queue(Protocol):
    """Requests that wait: for a person, for a deadline, or for the process that runs their call."""

    def open(self, *, limit: int | None = None) -> Sequence[ApprovalRequest]:
        """Requests without an answer, oldest first, without those that cannot be read."""
        ...

    def page(self, *, limit: int, after: Item | None = None) -> Sequence[Item]:
        """What waits for a person, oldest first: pending requests, and requests whose outcome is unknown.

        One that cannot be read is listed as damaged.
        """
        ...

    def place(self, request_id: str) -> Item | None:
        """An item with just enough to start a page after this request; None if there is none."""
        ...

    def due(self, now: datetime) -> Sequence[str]:
        """Ids of pending requests whose deadline or reminder has come."""
        ...

    def claimed(self) -> Sequence[tuple[str, str]]:
        """Requests whose call is running, each with the id of the process that holds the claim."""
        ...

    def awaited(self) -> Sequence[tuple[str, str]]:
        """Requests that end with the process that waits for them, each with its id: pending, or approved and unused."""
        ...


class Listings(Protocol):
    """Lists of requests, page by page. The work is bounded by what waits, or by the page if no filter is rare."""

    def page(self, chosen: RequestFilter, *, limit: int, after: ListPlace | None = None) -> Sequence[Item]:
        """The requests that the filter selects, in the order defined by `ListState`, after a given place.

        One that cannot be read is listed as damaged.
        """
        ...

    def waiting(self, *, most: int) -> int:
        """How many requests wait for a person, counted up to `most`."""
        ...

    def counts(self) -> Mapping[str, int]:
        """How many requests wait for a person, by state; states with no request are left out."""
        ...


class Results(Protocol):
    """Return values of claimed calls, for runs that have to be resumed."""

    def get(self, request_id: str) -> bytes | None: ...

    def put(self, request_id: str, result: bytes) -> None: ...

    def drop(self, run: str) -> None:
        """Delete the results of a run's calls; the run is over."""
        ...


class Grants(Protocol):
    """Remembered answers (grants)."""

    def get(self, grant_id: str) -> Grant | None: ...

    def add(self, grant: Grant) -> None: ...

    def put(self, grant: Grant) -> None: ...

    def about(self, tool: str, memory_key: str) -> Sequence[Grant]:
        """Grants that may cover a call: those for exactly these arguments, and patterns for the tool; not revoked."""
        ...

    def all(self, *, revoked: bool = False) -> Sequence[Grant]: ...


class Runs(Protocol):
    """Saved runs."""

    def get(self, run_id: str) -> SavedRun | None: ...

    def add(self, run: SavedRun) -> None: ...

    def put(self, run: SavedRun) -> None: ...

    def all(self, *, going: bool = False, limit: int | None = None, before: str = "") -> Sequence[SavedRun]:
        """Newest first, without nested runs; `before` is the id of a run and selects the runs begun before it.

        One that cannot be read is a `DamagedRun`.
        """
        ...

    def like(self, prefix: str, *, limit: int = 5) -> Sequence[str]:
        """Ids that begin with this prefix, including nested runs."""
        ...


class Segments(Protocol):
    """The messages of saved runs."""

    def add(self, segment: Segment) -> None:
        """Add a segment; does nothing if it exists."""
        ...

    def has(self, segment_id: str) -> bool: ...

    def chain(self, tip: str) -> Sequence[Segment]:
        """The chain that ends with `tip`, oldest first."""
        ...


class Processes(Protocol):
    """Processes that hold claims, runs or channels."""

    def get(self, process_id: str) -> Process | None: ...

    def put(self, process: Process) -> None: ...


class Delegations(Protocol):
    """Delegations: which deputy answers for whom."""

    def add(self, delegation: Delegation) -> None: ...

    def current(self, now: datetime) -> Sequence[Delegation]:
        """Delegations that are valid now."""
        ...

    def end(self, absent: str, deputy: str, now: datetime) -> Sequence[Delegation]:
        """End the delegations between these two that are not over, including those that have not begun; return them."""
        ...


class DeliveryChanges(NamedTuple):
    """Deliveries that were changed."""

    last: int
    """Number of the latest change."""
    trails: Sequence[str]
    """Trails with a changed delivery, each once."""


class Deliveries(Protocol):
    """The state of each notice in each channel."""

    def get(self, channel: str, subject: Subject) -> Delivery | None: ...

    def put(self, delivery: Delivery) -> None:
        """Store the state of a delivery, by its channel and subject. A new one is ordered after all others."""
        ...

    def find(self, *, channel: str = "", trail: str = "", request: str = "", live: bool = False) -> Sequence[Delivery]:
        """Deliveries in the order they were first stored; all given filters must match.

        Deliveries of a request are those of the request itself and of its reminders.
        """
        ...

    def changes(self, *, after: int) -> DeliveryChanges:
        """What was stored by any process after the change with this number."""
        ...

    def last(self, *, channel: str, trail: str, limit: int) -> Sequence[Delivery]:
        """The deliveries of one trail in one channel, newest first."""
        ...

    def untold(self, channel: str) -> Sequence[str]:
        """Ids of ended runs whose end a channel has not shown yet. Some of them may not concern the channel."""
        ...


class Record(Protocol):
    """The audit log: every event, in a hash chain."""

    def append(self, drafts: Sequence[EventDraft]) -> None:
        """Append events to the end of the chain."""
        ...

    def head(self) -> tuple[int, str]:
        """Sequence number and hash of the last event; 0 and `START` if there is none."""
        ...

    def entries(self, *, after: int = 0, limit: int | None = None, request: str = "", run: str = "") -> Sequence[Entry]:
        """Events in order."""
        ...

    def touched(self, after: int) -> Sequence[str]:
        """Ids of requests that events after this number are about."""
        ...


class Checkpoints(Protocol):
    """Signed checkpoints of the audit log."""

    def add(self, checkpoint: Checkpoint) -> None: ...

    def all(self) -> Sequence[Checkpoint]: ...


class Leases(Protocol):
    """Leases: which process runs which channel."""

    def get(self, channel: str) -> Lease | None: ...

    def put(self, lease: Lease) -> None: ...

    def all(self) -> Sequence[Lease]:
        """One for each channel that was ever run, in the order of their first run."""
        ...


class Readers(Protocol):
    """Who was shown the whole call, and with which arguments."""

    def has(self, request_id: str, args_digest: str, person: str) -> bool: ...

    def add(self, request_id: str, args_digest: str, person: str) -> None: ...


class Policies(Protocol):
    """The policies that were in effect when requests were opened, as text, by revision."""

    def get(self, revision: str) -> str | None: ...

    def put(self, revision: str, text: str) -> None: ...


class Conversations(Protocol):
    """Conversations in channels, by name."""

    def get(self, name: str) -> ConversationLog | None: ...

    def put(self, log: ConversationLog) -> None: ...


class AccessKeys(Protocol):
    """Access keys of people and programs."""

    def get(self, key_id: str) -> AccessKey | None: ...

    def by_digest(self, digest: str) -> AccessKey | None: ...

    def put(self, key: AccessKey) -> None: ...

    def all(self, *, kind: AccessKind | None = None, holder: str = "") -> Sequence[AccessKey]:
        """All keys, in the order they were made; all given filters must match."""
        ...

    def forget(self, before: datetime) -> None:
        """Delete keys that expired before this moment."""
        ...


class Comments(Protocol):
    """Comments on pending requests."""

    def of(self, request_id: str) -> Sequence[Comment]:
        """Comments on a request, in the order they were made."""
        ...

    def add(self, comment: Comment) -> None: ...


class KeptReply(NamedTuple):
    """The stored reply to a write, for a client that sends the write twice."""

    asked: str
    """Digest of the request body: a different body under the same idempotency key is an error."""
    status: int
    body: str


class Replies(Protocol):
    """Replies to writes, by sender and by the idempotency key that the sender chose."""

    def get(self, holder: str, name: str) -> KeptReply | None: ...

    def put(self, holder: str, name: str, reply: KeptReply, at: datetime) -> None: ...

    def forget(self, before: datetime) -> None:
        """Delete replies older than this moment."""
        ...


class AapRequests(Protocol):
    """Calls that agents elsewhere ask about with the Agent Approval Protocol."""

    def get(self, request_id: str) -> AapRequest | None: ...

    def by_key(self, instance: str, key: str) -> AapRequest | None:
        """Look up a request by the key that the instance gave it."""
        ...

    def put(self, request: AapRequest) -> None: ...

    def going(self, instance: str) -> Sequence[AapRequest]:
        """Requests of an instance that still lack a decision, a use or an outcome, oldest first."""
        ...

    def waiting(self, instance: str) -> int:
        """How many requests of an instance wait for a decision."""
        ...

    def due(self, now: datetime) -> Sequence[str]:
        """Ids of undecided requests whose deadline has passed."""
        ...

    def forget(self, before: datetime) -> None:
        """Delete decided requests that have not changed since this moment."""
        ...


class AapInstances(Protocol):
    """Agents elsewhere that use the Agent Approval Protocol."""

    def get(self, instance_id: str) -> AapInstance | None: ...

    def by_key(self, provisioner: str, key: str) -> AapInstance | None:
        """Look up an instance by the key that its provisioner gave it."""
        ...

    def put(self, instance: AapInstance) -> None: ...

    def all(self, *, revoked: bool = True) -> Sequence[AapInstance]:
        """Instances in the order they were made."""
        ...

    def forget(self, before: datetime) -> None:
        """Delete instances that were revoked before this moment."""
        ...


class StoreSettings(Protocol):
    """Single values of a store, by name: the halt switch, the secret key."""

    def get(self, name: str) -> str | None: ...

    def put(self, name: str, value: str | None) -> None: ...


class Transaction(Protocol):
    """What can be read and changed atomically. Writing transactions run one after the other.

    A transaction makes no decisions. Only the broker calls the methods that change something.
    """

    @property
    def requests(self) -> Requests: ...

    @property
    def past(self) -> Past: ...

    @property
    def queue(self) -> Queue: ...

    @property
    def listings(self) -> Listings: ...

    @property
    def results(self) -> Results: ...

    @property
    def grants(self) -> Grants: ...

    @property
    def runs(self) -> Runs: ...

    @property
    def segments(self) -> Segments: ...

    @property
    def processes(self) -> Processes: ...

    @property
    def delegations(self) -> Delegations: ...

    @property
    def deliveries(self) -> Deliveries: ...

    @property
    def record(self) -> Record: ...

    @property
    def checkpoints(self) -> Checkpoints: ...

    @property
    def leases(self) -> Leases: ...

    @property
    def readers(self) -> Readers: ...

    @property
    def policies(self) -> Policies: ...

    @property
    def conversations(self) -> Conversations: ...

    @property
    def access_keys(self) -> AccessKeys: ...

    @property
    def comments(self) -> Comments: ...

    @property
    def replies(self) -> Replies: ...

    @property
    def aap_requests(self) -> AapRequests: ...

    @property
    def aap_instances(self) -> AapInstances: ...

    @property
    def settings(self) -> StoreSettings: ...


class Store(Protocol):
    """Where everything is stored. `work` is a plain function of a `Transaction`; it may run more than once."""

    @property
    def is_durable(self) -> bool:
        """Whether the data outlives the process."""
        ...

    @property
    def keeps_record(self) -> bool:
        """Whether the events of the audit log can be read again."""
        ...

    @property
    def clock_lead(self) -> timedelta | None:
        """How far the store's clock is ahead of this machine's clock; zero if they agree, None if it has no clock."""
        ...

    def remind(self, every: float, hook: Callable[[], None]) -> Callable[[], None]:
        """Call `hook` about every `every` seconds, from any thread, once something has been written.

        Returns a function that stops it.
        """
        ...

    async def write(self, name: str, work: Callable[[Transaction], T], *, synced: bool = True) -> T:
        """Run `work` in a transaction and return once it is durable. An exception in `work` undoes only that work.

        With `synced=False` it returns once other processes can see the change; a power failure may still undo it.
        """
        ...

    def later(self, name: str, work: Callable[[Transaction], object]) -> None:
        """Like `write`, without waiting: with the next write, or within a few hundredths of a second, in order."""
        ...

    async def read(self, work: Callable[[Transaction], T], *, own: bool = True) -> T:
        """Read without changing anything; sees everything that this process wrote before.

        With `own=False`, recent changes passed to `later` may not be visible yet, and they are not flushed early.
        """
        ...

    def watch(self, tick: Callable[[], None]) -> Callable[[], None]:
        """Call `tick`, from any thread, soon after any process changed something. Returns a function that stops it."""
        ...

    async def flush(self) -> None:
        """Return once everything passed to `later` is durable."""
        ...

    def close(self) -> None:
        """Flush, and close files and connections."""
        ...


class GrantStore(Protocol):
    """Where grants are kept; `ApprovalMemory` is one."""

    @property
    def keeps_always(self) -> bool:
        """Whether grants with `always` outlive this process."""
        ...

    def lookup(self, call: Call) -> Grant | None: ...

    def remember(self, grant: Grant) -> None: ...


@runtime_checkable
class Approver(Protocol):
    """Asks a person. It has one method, plain or async.

    A user interface that can show several requests at once may also have `choose_all(requests, *, mode)`, which returns
    one decision for each, in order. If it has `withdraw(request_id, why)`, that is called when a request is settled
    elsewhere; its own answer to that request is then ignored.
    """

    def choose(
        self, request: ApprovalRequest, *, mode: ApprovalMode
    ) -> ApprovalDecision | Awaitable[ApprovalDecision]: ...


ApprovalUI = Approver
"""The same, under the name it has for deferred tools."""
Chosen: TypeAlias = ApprovalDecision | bool
ApproverLike: TypeAlias = Approver | Callable[[ApprovalRequest], Chosen | Awaitable[Chosen]]
"""Who is asked: an object with `choose`, or a plain or async function of the request."""


class Inbox(Protocol):
    """The requests as a channel sees them. A channel looks them up and answers them here and never uses the store."""

    async def answer(self, request_id: str, decision: ApprovalDecision) -> ApprovalRequest:
        """Submit an answer by `decision.by`. Raises a `RequestError` if the answer cannot be accepted.

        The messages of `AlreadySettled` and `NotEntitled` are written for the person who answered; `EditRefused` says
        why the arguments cannot be used. Edited arguments contain their masks; masks that were not edited are replaced
        by the original values.
        """
        ...

    async def tell(self, request_id: str, *, happened: bool, by: Actor, note: str = "") -> ApprovalRequest:
        """Record whether a call ran whose process died. Raises like `answer`."""
        ...

    async def request(self, prefix: str) -> ApprovalRequest:
        """The request whose id begins with this prefix; raises `UnknownRequest`."""
        ...

    async def pending(self) -> Sequence[ApprovalRequest]:
        """Requests that wait for an answer, oldest first."""
        ...

    async def unknown(self) -> Sequence[ApprovalRequest]:
        """Requests whose outcome is unknown, oldest first. They wait for somebody to call `tell`."""
        ...

    async def recent(self, *, limit: int) -> Sequence[ApprovalRequest]:
        """Requests that no longer wait, newest first."""
        ...

    async def where(self, request_id: str, *, planned: bool = False) -> str:
        """Where this channel shows the request, with `planned` also where it will be shown; empty if nowhere."""
        ...

    async def gone(self, request_id: str) -> None:
        """Report that a shown notice no longer exists. It is shown again if the request still waits."""
        ...

    async def opened(self, request_id: str, by: Actor) -> None:
        """Record that somebody was shown the whole of a call that is too long to be shown at once."""
        ...

    async def has_opened(self, request_id: str, by: Actor) -> bool: ...

    async def entitled(self, request_id: str, people: Sequence[Actor]) -> Sequence[Actor]:
        """The people among these who may answer the request now, including deputies."""
        ...

    async def try_out(self, by: Actor, at: str = "") -> ApprovalRequest:
        """Open a test request, so that somebody can check that asking works; `at` is where to show it, if given.

        Nothing runs, whatever the answer is.
        """
        ...

    async def grant_text(self, request_id: str, decision: ApprovalDecision) -> str:
        """Exactly what this answer would make signoff remember, in the words of `signoff grants`."""
        ...


class Heard(NamedTuple):
    """A message that a person sent in a channel to start a run."""

    channel: str
    at: str
    """Where it was sent, in the channel's terms. Results are shown there."""
    id: str
    """Id of the message. A later message has a higher number."""
    by: Actor
    text: str


Begin = Callable[[Heard], Awaitable[str]]
"""What a channel calls to start a run. Returns the immediate reply; results follow later as notices."""


@runtime_checkable
class Channel(Protocol):
    """A way to reach people: it shows notices, and passes their answers to its inbox.

    Failures of the service are raised as `ChannelFailed`, which says whether to retry. The channel does not keep track
    of what it has shown, retry, or fall back to another channel: the `Reconciler` does.
    """

    @property
    def name(self) -> str: ...

    async def start(self, inbox: Inbox, /) -> None:
        """Connect and listen; return once notices can be shown. Raises `ChannelFailed`, or `WrongUse` for good."""
        ...

    async def show(self, notice: Notice, at: str = "", beside: str = "") -> str:
        """Show a notice, or update the message at `at`; return where it is shown now.

        `beside` is where the last notice of the same trail is shown, or where its run was started, if that was in this
        channel. Showing the same notice again changes nothing (idempotent). A notice that was shown before a crash
        could be recorded is found again.
        """
        ...

    async def stop(self) -> None:
        """Disconnect and release everything. Shown messages stay."""
        ...


@runtime_checkable
class Reminding(Protocol):
    """Optional for channels in which updating a message notifies nobody."""

    async def remind(self, reminder: Reminder, card: str, at: str = "") -> str:
        """Remind people of the notice at `card`; return where the reminder is shown.

        As with `show`: failures are raised as `ChannelFailed`, and a reminder that was sent before a crash could be
        recorded is found again. `at` is where part of it is shown already, if an earlier attempt reported that.
        """
        ...


class Passed(NamedTuple):
    """A tool call that the gate let through, and whether a person approved it."""

    run_id: str | None
    call_id: str | None
    tool: str
    """The tool's name in its own toolset, below all wrappers that rename it."""
    args: Mapping[str, Any]
    """The arguments that the gate checked."""
    answered: bool
    """Whether a person's answer allowed it, now or remembered; otherwise only policy did."""
    heard: frozenset[int] = frozenset()
    """Which policies attached to toolsets were applied: the `id` of each."""
    shown: Mapping[str, Any] = MappingProxyType({})
    """The toolset's description of the call when a person approved it."""


passed: ContextVar[Passed | None] = ContextVar("signoff_passed", default=None)
"""Set by the gate around a tool's body. A toolset that reads it compares ids, tool and arguments with its own."""


judging: ContextVar[Call | None] = ContextVar("signoff_judging", default=None)
"""The call that the gate checks, set while a toolset declares something about it. It has the chain of workers."""


class DeclaresApproval(Protocol):
    """What a toolset may declare about its own calls. Each method is optional; the gate decides."""

    def needs_approval(self, name: str, args: Mapping[str, Any], ctx: Any) -> object:
        """True asks. False means that the toolset sees no need. `allow`, `ask`, `deny` and None are accepted too.

        `PermissionError` denies the call. Other accepted signatures and answers: `attached.answers`.
        """
        ...

    def describe_approval(self, name: str, args: Mapping[str, Any], ctx: Any) -> str | Mapping[str, Any]:
        """What the call will do: a line, or a mapping with `summary`, `reason`, `path`, `diff`, `note`.

        `basis` says what a preview was made from, as digests by name (`` {"`notes.txt`": "9f86…"} ``). If one of them
        differs when the call is about to run, people are asked again.
        """
        ...

    def capability_labels(self, name: str, args: Mapping[str, Any], ctx: Any) -> Iterable[str]:
        """Capability labels of the call: `fs.read`, `money` …"""
        ...

    def claimed_labels(self, name: str, args: Mapping[str, Any], ctx: Any) -> Iterable[str]:
        """Labels that somebody else, such as a server, claims for the call. They can only make rules stricter."""
        ...
