"""Every seam on one page: what the rooms above may be given, and what an adapter has to provide."""

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
from signoff.core.inbox_row import Item
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
from signoff.lazy_names import lazy_names

T = TypeVar("T")


class Clock(Protocol):
    """Time, as a parameter."""

    def now(self) -> datetime: ...

    async def sleep_until(self, moment: datetime) -> None: ...


class Requests(Protocol):
    """Requests, by id, by call, and by what they belong to."""

    def get(self, request_id: str) -> ApprovalRequest | None: ...

    def add(self, request: ApprovalRequest) -> None: ...

    def put(self, request: ApprovalRequest) -> None:
        """Replace the stored request, whose version has to be the one before; raises `Stale` otherwise."""
        ...

    def about(self, call_key: str) -> ApprovalRequest | None:
        """The newest request about a call, by `Call.key`."""
        ...

    def of(self, *, conversation_id: str = "", run: str = "") -> Sequence[ApprovalRequest]:
        """Every request of a conversation or of a saved run, oldest first."""
        ...

    def opened_at(self, moment: datetime | None, *, conversation_id: str = "", run: str = "") -> Sequence[str]:
        """Ids of requests of a conversation or of a saved run that were opened in this very moment, in order."""
        ...

    def like(self, prefix: str, *, limit: int = 5) -> Sequence[str]:
        """Ids that begin so."""
        ...


class AskedBefore(NamedTuple):
    """What was asked about a call, and about others like it."""

    request: ApprovalRequest | None
    """The newest request about this very call, by `Call.key`."""
    answers: EarlierAnswers
    """How people answered the like."""


class Past(Protocol):
    """What was asked before."""

    def recent(self, *, limit: int) -> Sequence[ApprovalRequest]:
        """Requests that wait for nobody any longer, those that were asked last first."""
        ...

    def before(self, call: Call) -> AskedBefore:
        """What there is about a call. The work is bounded, however much was asked: `MOST_ANSWERS`."""
        ...


class Queue(Protocol):
    """Requests that wait: for a person, for their time, or for the process that runs their call."""

    def open(self, *, limit: int | None = None) -> Sequence[ApprovalRequest]:
        """Requests without an answer, oldest first."""
        ...

    def page(self, *, limit: int, after: Item | None = None) -> Sequence[Item]:
        """What waits for a person, oldest first: requests that are pending, and those whose outcome is unknown."""
        ...

    def due(self, now: datetime) -> Sequence[str]:
        """Ids of pending requests whose deadline or reminder has come."""
        ...

    def claimed(self) -> Sequence[tuple[str, str]]:
        """Requests whose call is running, each with the id of the process that holds it."""
        ...


class Listings(Protocol):
    """Requests in lists, page by page: the work is bounded by what waits, or by the page where no filter is rare."""

    def page(self, chosen: RequestFilter, *, limit: int, after: ListPlace | None = None) -> Sequence[Item]:
        """Those that are chosen, in the order that `ListState` says, after a place."""
        ...

    def waiting(self, *, most: int) -> int:
        """How many wait for a person, counted up to a number."""
        ...

    def counts(self) -> Mapping[str, int]:
        """How many wait for a person, by state; a state that none is in is left out."""
        ...


class Results(Protocol):
    """What claimed calls returned, for runs that have to be taken up again."""

    def get(self, request_id: str) -> bytes | None: ...

    def put(self, request_id: str, result: bytes) -> None: ...

    def drop(self, run: str) -> None:
        """Forget what the calls of a run returned: it is over."""
        ...


class Grants(Protocol):
    """Remembered answers."""

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
        """Newest first, without those inside others; `before` is the id of a run, and gives those begun before it."""
        ...

    def like(self, prefix: str, *, limit: int = 5) -> Sequence[str]:
        """Ids that begin so, of those inside others too."""
        ...


class Segments(Protocol):
    """The messages of saved runs."""

    def add(self, segment: Segment) -> None:
        """Keep a segment; one that is there already is left alone."""
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
    """Who answers in whose place."""

    def add(self, delegation: Delegation) -> None: ...

    def current(self, now: datetime) -> Sequence[Delegation]:
        """Those that hold now."""
        ...

    def end(self, absent: str, deputy: str, now: datetime) -> Sequence[Delegation]:
        """Have those between these two end now that are not over, also if they have yet to begin; gives them."""
        ...


class DeliveryChanges(NamedTuple):
    """Deliveries that were put."""

    last: int
    """Number of the last change there is."""
    trails: Sequence[str]
    """Where any was put, once each."""


class Deliveries(Protocol):
    """How far each channel came with what it shows."""

    def get(self, channel: str, subject: Subject) -> Delivery | None: ...

    def put(self, delivery: Delivery) -> None:
        """Keep how a delivery stands, by its channel and subject. A new one comes after all others."""
        ...

    def find(self, *, channel: str = "", trail: str = "", request: str = "", live: bool = False) -> Sequence[Delivery]:
        """Deliveries in the order they were first put; each filter that is given has to fit.

        Those of a request are the request itself and its reminders.
        """
        ...

    def changes(self, *, after: int) -> DeliveryChanges:
        """What was put after the change of this number, by anybody."""
        ...

    def last(self, *, channel: str, trail: str, limit: int) -> Sequence[Delivery]:
        """Those of one trail in one channel, the newest first."""
        ...

    def untold(self, channel: str) -> Sequence[str]:
        """Ids of runs that are over, and may concern a channel in which that has not been said; not all of them do."""
        ...


class Record(Protocol):
    """Every event, in a chain."""

    def append(self, drafts: Sequence[EventDraft]) -> None:
        """Put events at the end of the chain."""
        ...

    def head(self) -> tuple[int, str]:
        """Number and hash of the last event; 0 and `START` where there is none."""
        ...

    def entries(self, *, after: int = 0, limit: int | None = None, request: str = "", run: str = "") -> Sequence[Entry]:
        """Events in order."""
        ...

    def touched(self, after: int) -> Sequence[str]:
        """Ids of requests that events after this number are about."""
        ...


class Checkpoints(Protocol):
    """Signatures of how far the record went."""

    def add(self, checkpoint: Checkpoint) -> None: ...

    def all(self) -> Sequence[Checkpoint]: ...


class Leases(Protocol):
    """Which process runs which channel."""

    def get(self, channel: str) -> Lease | None: ...

    def put(self, lease: Lease) -> None: ...

    def all(self) -> Sequence[Lease]:
        """One for each channel that anybody ever ran, in the order they were first run."""
        ...


class Readers(Protocol):
    """Who was given the whole of a call to read, with which arguments."""

    def has(self, request_id: str, args_digest: str, person: str) -> bool: ...

    def add(self, request_id: str, args_digest: str, person: str) -> None: ...


class Policies(Protocol):
    """The policies that questions were asked under, as text, by revision."""

    def get(self, revision: str) -> str | None: ...

    def put(self, revision: str, text: str) -> None: ...


class Conversations(Protocol):
    """Conversations in channels, by name."""

    def get(self, name: str) -> ConversationLog | None: ...

    def put(self, log: ConversationLog) -> None: ...


class AccessKeys(Protocol):
    """Keys that let people and programs in."""

    def get(self, key_id: str) -> AccessKey | None: ...

    def by_digest(self, digest: str) -> AccessKey | None: ...

    def put(self, key: AccessKey) -> None: ...

    def all(self, *, kind: AccessKind | None = None, holder: str = "") -> Sequence[AccessKey]:
        """In the order they were made; each filter that is given has to fit."""
        ...

    def forget(self, before: datetime) -> None:
        """Drop those that expired before this moment."""
        ...


class Comments(Protocol):
    """What was said about requests while they wait."""

    def of(self, request_id: str) -> Sequence[Comment]:
        """In the order they were said."""
        ...

    def add(self, comment: Comment) -> None: ...


class KeptReply(NamedTuple):
    """What was answered to a write, for a client that sends it twice."""

    asked: str
    """Digest of what was sent: something else under the same name is a mistake."""
    status: int
    body: str


class Replies(Protocol):
    """Replies to writes, by whoever sent them and the name they gave (the idempotency key)."""

    def get(self, holder: str, name: str) -> KeptReply | None: ...

    def put(self, holder: str, name: str, reply: KeptReply, at: datetime) -> None: ...

    def forget(self, before: datetime) -> None:
        """Drop those that are older."""
        ...


class AapRequests(Protocol):
    """Calls that agents elsewhere ask about by the Agent Approval Protocol."""

    def get(self, request_id: str) -> AapRequest | None: ...

    def by_key(self, instance: str, key: str) -> AapRequest | None:
        """By what an instance calls it."""
        ...

    def put(self, request: AapRequest) -> None: ...

    def going(self, instance: str) -> Sequence[AapRequest]:
        """Those of an instance of which something is still to come, oldest first: a decision, a use, an outcome."""
        ...

    def waiting(self, instance: str) -> int:
        """How many of an instance wait for a decision."""
        ...

    def due(self, now: datetime) -> Sequence[str]:
        """Ids of those without a decision whose deadline has come."""
        ...

    def forget(self, before: datetime) -> None:
        """Drop those that are decided, and to which nothing happened since this moment."""
        ...


class AapInstances(Protocol):
    """Agents elsewhere that use the Agent Approval Protocol."""

    def get(self, instance_id: str) -> AapInstance | None: ...

    def by_key(self, provisioner: str, key: str) -> AapInstance | None:
        """By what the program that made it called that."""
        ...

    def put(self, instance: AapInstance) -> None: ...

    def all(self, *, revoked: bool = True) -> Sequence[AapInstance]:
        """In the order they were made."""
        ...

    def forget(self, before: datetime) -> None:
        """Drop those that were revoked before this moment."""
        ...


class StoreSettings(Protocol):
    """What there is one of in a store, by name: the switch, the secret key."""

    def get(self, name: str) -> str | None: ...

    def put(self, name: str, value: str | None) -> None: ...


class Transaction(Protocol):
    """What can be read and changed in one go: all of it happens, or nothing. Changes come one after the other.

    Nothing here judges or decides; that is the broker's, who alone calls what changes something.
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
    """Where everything is kept. `work` is a plain function of a `Transaction`; it may run more than once."""

    @property
    def is_durable(self) -> bool:
        """Whether it outlives the process."""
        ...

    @property
    def keeps_record(self) -> bool:
        """Whether the events of the record can be read again."""
        ...

    @property
    def clock_lead(self) -> timedelta | None:
        """How far the store's own clock is ahead of this machine's, zero where both agree; None where it has none."""
        ...

    def remind(self, every: float, hook: Callable[[], None]) -> None:
        """Have `hook` called about every so many seconds, from any thread, once something has been written."""
        ...

    async def write(self, name: str, work: Callable[[Transaction], T], *, synced: bool = True) -> T:
        """Do `work` in a transaction and return once it is durable. What it raises undoes it, and nothing else.

        Without `synced` it returns once everybody sees it; a power cut may undo it.
        """
        ...

    def later(self, name: str, work: Callable[[Transaction], object]) -> None:
        """As `write`, without waiting: with the next write, or within a few hundredths of a second. Order is kept."""
        ...

    async def read(self, work: Callable[[Transaction], T], *, own: bool = True) -> T:
        """Look, without changing anything; sees all that this process wrote before.

        Without `own`, what was left for `later` a moment ago may not be seen yet, and nothing is hurried along.
        """
        ...

    def watch(self, tick: Callable[[], None]) -> Callable[[], None]:
        """Have `tick` called, from any thread, soon after anybody anywhere changed something. Returns how to stop."""
        ...

    async def flush(self) -> None:
        """Return once all that was left for `later` is durable."""
        ...

    def close(self) -> None:
        """Flush, and let go of files and connections."""
        ...


class GrantStore(Protocol):
    """Where remembered decisions are kept; `ApprovalMemory` is one."""

    @property
    def keeps_always(self) -> bool:
        """Whether `always` can be kept beyond this process."""
        ...

    def lookup(self, call: Call) -> Grant | None: ...

    def remember(self, grant: Grant) -> None: ...


@runtime_checkable
class Approver(Protocol):
    """Asks a person. It has one method, plain or async.

    A user interface that can show several requests at once may also have
    `choose_all(requests, *, mode)`, which returns one decision for each, in order. With `withdraw(request_id, why)`, it
    is told when a request is settled elsewhere; its own answer to that request is then ignored.
    """

    def choose(
        self, request: ApprovalRequest, *, mode: ApprovalMode
    ) -> ApprovalDecision | Awaitable[ApprovalDecision]: ...


Chosen: TypeAlias = ApprovalDecision | bool
ApproverLike: TypeAlias = Approver | Callable[[ApprovalRequest], Chosen | Awaitable[Chosen]]
"""Who is asked: an object with `choose`, or a plain or async function of the request."""


class Inbox(Protocol):
    """The requests, as a channel sees them: it looks them up and answers them here, and never uses the store."""

    async def answer(self, request_id: str, decision: ApprovalDecision) -> ApprovalRequest:
        """Record an answer; `decision.by` says whose. Raises a `RequestError` if it cannot be accepted.

        The messages of `AlreadySettled` and `NotEntitled` are for the person who answered; `EditRefused` says why the
        arguments cannot be used. Edited arguments contain masks: an unchanged mask keeps the value behind it.
        """
        ...

    async def tell(self, request_id: str, *, happened: bool, by: Actor, note: str = "") -> ApprovalRequest:
        """Report the outcome of a call whose process died. Raises as `answer` does."""
        ...

    async def request(self, prefix: str) -> ApprovalRequest:
        """The request whose id starts with `prefix`; raises `UnknownRequest`."""
        ...

    async def pending(self) -> Sequence[ApprovalRequest]:
        """Pending requests, oldest first."""
        ...

    async def unknown(self) -> Sequence[ApprovalRequest]:
        """Calls with an unknown outcome, oldest first: they wait until somebody reports it with `tell`."""
        ...

    async def recent(self, *, limit: int) -> Sequence[ApprovalRequest]:
        """Requests that are no longer pending, newest first."""
        ...

    async def where(self, request_id: str, *, planned: bool = False) -> str:
        """Where this channel shows the request; with `planned`, also where it will. Empty if it does not."""
        ...

    async def gone(self, request_id: str) -> None:
        """Report that the message of a request is gone. If the request is still pending, it is shown again."""
        ...

    async def opened(self, request_id: str, by: Actor) -> None:
        """Record that somebody opened the full text of a call that is too long to be shown at once."""
        ...

    async def has_opened(self, request_id: str, by: Actor) -> bool: ...

    async def entitled(self, request_id: str, people: Sequence[Actor]) -> Sequence[Actor]:
        """Those of these people who may answer a request now, also as deputies."""
        ...

    async def try_out(self, by: Actor, at: str = "") -> ApprovalRequest:
        """Ask a test question for somebody who tries out the channel; `at` is where, if given.

        Nothing runs, whatever the answer is.
        """
        ...

    async def grant_text(self, request_id: str, decision: ApprovalDecision) -> str:
        """Exactly what this answer would remember, in the words of `signoff grants`."""
        ...


Desk = Inbox
"""Its name in 0.1."""


class Heard(NamedTuple):
    """Something that a person said to us where people are reached."""

    channel: str
    at: str
    """Where, as the channel says: what comes of it is told there."""
    id: str
    """Of the message: a later one has a higher number."""
    by: Actor
    text: str


Begin = Callable[[Heard], Awaitable[str]]
"""What a channel is handed to have work begun. Gives what is to be replied at once; what comes of it is told later."""


@runtime_checkable
class Channel(Protocol):
    """A way to reach people: it shows notices, and passes their answers to its inbox.

    Failures of the service are raised as `ChannelFailed`, which says whether to retry. The channel does not keep track
    of what it has shown, retry, or fall back to another channel: the `Reconciler` does.
    """

    @property
    def name(self) -> str: ...

    async def start(self, inbox: Inbox, /) -> None:
        """Connect and listen; returns once notices can be shown.

        Raises `ChannelFailed`, or `WrongUse` if no retry can help.
        """
        ...

    async def show(self, notice: Notice, at: str = "", beside: str = "") -> str:
        """Show a notice, or update the one at `at`; returns the place where it is shown now.

        `beside` is the place of the last notice of the same trail, or where its run began, if that was in this channel.
        Showing the same notice again must change nothing. If a process showed a notice and died before the place was
        saved, the channel must find that notice again.
        """
        ...

    async def stop(self) -> None:
        """Release all resources. What is shown stays."""
        ...


@runtime_checkable
class Reminding(Protocol):
    """What a channel may do besides, where to bring a message up to date reaches nobody."""

    async def remind(self, reminder: Reminder, card: str, at: str = "") -> str:
        """Tell people again of what stands at `card`; returns where that is told.

        As with `show`: what goes wrong is raised as `ChannelFailed`, and what was told though nobody was told so is
        found again. `at` is where part of it stands, if a try before this one said so.
        """
        ...


class Passed(NamedTuple):
    """A tool call that the gate let through: which one, and on whose word."""

    run_id: str | None
    call_id: str | None
    tool: str
    """The tool's name in its own toolset, below all wrappers."""
    args: Mapping[str, Any]
    """The arguments that were judged."""
    answered: bool
    """Whether a person's answer let it pass, now or remembered; otherwise policy alone allowed it."""
    heard: frozenset[int] = frozenset()
    """Which policies of toolsets on the way had a say: `id` of each."""
    shown: Mapping[str, Any] = MappingProxyType({})
    """What the toolset had said about the call when a person approved it."""


passed: ContextVar[Passed | None] = ContextVar("signoff_passed", default=None)
"""Set by the gate around a tool's body. A toolset that reads it compares ids, tool and arguments with its own."""


judging: ContextVar[Call | None] = ContextVar("signoff_judging", default=None)
"""The call that the gate judges, set around what a toolset declares about it: it knows the whole chain of workers."""


class DeclaresApproval(Protocol):
    """What a toolset may declare about its own calls. Each method is optional; the gate decides."""

    def needs_approval(self, name: str, args: Mapping[str, Any], ctx: Any) -> object:
        """True: ask. False: the toolset sees no need. An effect by name (`allow`, `ask`, `deny`) or None also do.

        `PermissionError` denies the call. Other signatures and answers that are understood: `attached.answers`.
        """
        ...

    def describe_approval(self, name: str, args: Mapping[str, Any], ctx: Any) -> str | Mapping[str, Any]:
        """What the call will do: a line, or a mapping with `summary`, `reason`, `path`, `diff`, `note`."""
        ...

    def capability_labels(self, name: str, args: Mapping[str, Any], ctx: Any) -> Iterable[str]:
        """What kind of thing the call does: `fs.read`, `money` …"""
        ...

    def claimed_labels(self, name: str, args: Mapping[str, Any], ctx: Any) -> Iterable[str]:
        """Labels that somebody else claims for the call, such as a server: they can make rules stricter, no more."""
        ...


_find = lazy_names(__name__, {}, {"ApprovalUI": ("ports:Approver", "signoff.Approver")})


def __getattr__(name: str) -> object:
    return _find(name)
