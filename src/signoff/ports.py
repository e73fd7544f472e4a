"""Protocols for everything that is passed in from outside: clock, store, approver, inbox, channel, toolset."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextvars import ContextVar
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol, TypeAlias, TypeVar, runtime_checkable

from signoff.core.call import Call
from signoff.core.decision import ApprovalDecision
from signoff.core.grant import Grant
from signoff.core.mode import ApprovalMode
from signoff.core.notice import Notice, Reminder
from signoff.core.people import Actor
from signoff.core.request import ApprovalRequest
from signoff.store.transaction import Transaction

T = TypeVar("T")


class Clock(Protocol):
    """The current time and waiting for a time; tests pass a fake clock."""

    def now(self) -> datetime: ...

    async def sleep_until(self, moment: datetime) -> None: ...


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
