"""Nested runs: runs inside calls of other runs, and the progress of everything around them.

A nested run is identified by the call's key, the agent's name, what it was asked, and a number where these are the
same. When the call is made again after a pause or a crash, each run in it finds what was saved of it. A nested run
asks questions like any other run. The call around it pauses with it, level by level. When the outermost run is
resumed, each paused call is made again, and the runs inside it continue where they were.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from hashlib import sha256
from typing import Any, NamedTuple, cast

from pydantic_ai import RunContext
from pydantic_ai.exceptions import ApprovalRequired, UserError
from pydantic_ai.messages import ModelResponse
from pydantic_core import to_json

from signoff.broker.runs import RunProgress
from signoff.broker.wall_clock import pause_for
from signoff.core.call import Call
from signoff.core.request import ApprovalRequest
from signoff.core.request_context import MOST_CALLS, RequestContext
from signoff.core.run import EnteredCall, RunState, SavedRun
from signoff.errors import WrongUse
from signoff.gate.gate import Gate
from signoff.gate.run_saver import RunSaver
from signoff.ports import Clock

PATIENCE = timedelta(minutes=1)
"""Timeout for a run that pauses and waits for approved calls beside it: one of them may be waiting for this run."""


class CallPaused(ApprovalRequired):
    """A nested run waits for people, so the call around it and the run around that wait too."""


class OverCall(NamedTuple):
    """A call that is over."""

    response: ModelResponse | None
    """The response that made it: the newest one when it ended."""
    call: Call
    outcome: str
    """As in `PastCall`."""


@dataclass(slots=True)
class Level:
    """One run among those around it and those inside its calls."""

    gate: Gate
    withdraw_questions: Callable[[str], None] = field(default=lambda reason: None)
    saver: RunSaver | None = None
    """Saves the run, if the store outlives the process."""
    root: RunSaver | None = None
    """Saves the outermost run, if this run is part of it."""
    enclosing: EnclosingCall | None = None
    """The call of another run that this run is inside of."""
    pauses_with_call: bool = False
    """Whether that call pauses where this run waits for people, and is made again to continue."""
    paused: set[str] = field(default_factory=set[str])
    """Ids of current calls that wait for a run inside them."""
    inner: list[Level] = field(default_factory=list["Level"])
    """Runs that began inside its calls."""
    context: tuple[ModelResponse | None, RequestContext] | None = None
    """The context of the questions about the current calls, and the response that made these calls."""
    over: deque[OverCall] = field(default_factory=lambda: deque[OverCall](maxlen=MOST_CALLS))
    """Its last calls that are over: those of the newest response are in no history yet."""
    ran_with: dict[str, Mapping[str, Any] | None] = field(default_factory=dict[str, Mapping[str, Any] | None])
    """By call key, the arguments that a person gave a call that ran; None for a call that ran as it was made."""

    @property
    def run_id(self) -> str:
        """Id of the saved run that this run is, or is part of; empty if none is saved."""
        return self.root.run.id if self.root is not None else ""

    def withdraw(self, reason: str) -> None:
        """Withdraw the open questions of the run and of the runs inside its calls, because nobody continues it."""
        self.withdraw_questions(reason)
        for one in self.inner:
            one.withdraw(reason)

    def withdraw_inside(self, call_id: str, reason: str) -> None:
        """Withdraw the open questions of the runs inside one of its calls."""
        for one in self.inner:
            if one.enclosing is not None and one.enclosing.call.call_id == call_id:
                one.withdraw(reason)

    @property
    def fence(self) -> tuple[str, int]:
        """Run id and epoch, the fencing token for its writes: valid while this process executes the outermost run."""
        root = self.root
        return (root.run.id, root.run.epoch) if root is not None and root.saved else ("", 0)


@dataclass(slots=True)
class EnclosingCall:
    """A gated call while runs inside it are going on. Created with the first of them."""

    level: Level
    """The run that makes the call."""
    call: Call
    """Sealed."""
    ctx: RunContext[Any]
    request: ApprovalRequest | None
    """The approval the call runs on, if a person gave one."""
    granted: bool
    """Whether it was let through although policy asks, and without a person's approval of this call."""
    is_new: bool
    """Whether the call was made in this run, so that no saved runs inside it can exist."""
    enters: bool = False
    """Whether the call may be made again from its beginning, to continue the runs inside it."""
    ends: bool | None = None
    """Whether it promised to only wait for the runs inside it; None before there is one."""
    ended: list[RunProgress] = field(default_factory=list[RunProgress])
    """Nested runs that are over, and that are not in the store yet."""
    inner: list[Level] = field(default_factory=list["Level"])
    """The nested runs that began in this process."""
    on_record: bool = False
    """Whether the store knows that runs inside the call are saved."""
    _began: dict[str, list[object]] = field(default_factory=dict[str, "list[object]"])
    """The agents of the nested runs, by what identifies a run."""
    _is_over: bool = False
    _collides: bool = False
    """Whether two agents began that cannot be told apart when the call is made again."""
    _neighbours: Neighbours | None = None

    @property
    def neighbours(self) -> Neighbours:
        """The approved calls that are running in the nested runs."""
        self._neighbours = self._neighbours or Neighbours(self.level.gate.broker.clock)
        return self._neighbours

    def id_of(self, ctx: RunContext[Any]) -> str:
        """Return the id of a run that begins inside the call. It is the same when the call is made again."""
        call, name = self.call, ctx.agent.name if ctx.agent is not None else None
        asked = to_json([call.key, call.args_digest, name, ctx.prompt], fallback=repr)
        known = sha256(asked).hexdigest()[:24]
        agents = self._began.setdefault(known, [])
        self._collides = self._collides or any(one is not ctx.agent for one in agents)
        agents.append(ctx.agent)
        return f"inside-{known}-{len(agents)}"

    def begins(self, *, ends_call: bool | None) -> None:
        """Note that a run begins inside the call, and the caller's `ends_call` promise about it, if there is one."""
        self.enters = self.enters or ends_call is not None
        promised = self.on_record and bool(self._entered[0])
        self.ends = bool(ends_call) and self.ends is not False
        if promised and not self.ends:
            raise WrongUse(f"{self.call.tool} promised ends_call, but then started another run")

    def joined_by(self, level: Level) -> None:
        """Add a run that has begun inside the call."""
        self.inner.append(level)
        self.level.inner.append(level)

    @property
    def _entered(self) -> tuple[str, str]:
        request = self.request
        if request is None or request.claim is None or not (self.enters and self.ends):
            return "", ""
        return request.id, request.claim.token

    def progress(self) -> list[RunProgress]:
        """Return the progress of everything around a run inside this call, the outermost run first.

        Raises `CallPaused` if the call already paused because of another run inside it: the runs around it are released
        by then, and a run that continues after that must not take them back.
        """
        level = self.level
        if self._is_over or self.call.call_id in level.paused:
            raise CallPaused
        if self._collides and self.enters:
            raise WrongUse(_TWINS)
        around = progress_around(level)
        if level.saver is not None:
            around.append(level.saver.at_call(self.ctx, self._entered))
        # Without the promise to only wait, the call is not let through again after a crash: nobody knows what it did.
        entry = self._entry(RunState.GOING if self.ends else RunState.DONE)
        return [*around, RunProgress(run=entry, fence=level.fence), *self.ended]

    def saved(self) -> None:
        """Note that what `progress` returned is in the store."""
        self.ended.clear()
        self.on_record = True
        if self.level.saver is not None:
            self.level.saver.saved = True
        if self.level.enclosing is not None:
            self.level.enclosing.saved()

    def entered_again(self) -> None:
        """Note that the call was claimed anew and continues a saved run. This is recorded with the next write."""
        request_id, token = self._entered
        if not self.on_record and request_id:
            self.on_record = True
            self.level.gate.broker.runs.enter_later(request_id, token, self.level.fence)

    def paused(self) -> None:
        """Note that the tool let a pause pass: the call ends here, and may be made again."""
        self._mark(RunState.GOING)

    def over(self) -> None:
        """End the call: withdraw what its runs still ask, and do not let it through once more."""
        self._is_over = True
        for one in self.inner:
            one.withdraw("the call that asked is over")
            self.level.inner.remove(one)
        self._mark(RunState.DONE)

    def _mark(self, state: RunState) -> None:
        if self.on_record:
            entry = self._entry(state)
            self.level.gate.broker.runs.save_later(lambda: RunProgress(run=entry, fence=self.level.fence))

    def _entry(self, state: RunState) -> SavedRun:
        """Return the record that runs inside the call are saved, with the state of the call and `granted`."""
        return entry_of(self.level, self.call, granted=self.granted, state=state)


_TWINS = (
    "two agents with the same name get the same prompt in one call; if the call is repeated, they look the same.\n"
    "  Give each its own name: Agent(…, name=…)"
)


def progress_around(level: Level) -> list[RunProgress]:
    """Return the progress of everything around a run, the outermost run first."""
    return level.enclosing.progress() if level.enclosing is not None else []


def entry_id(call_key: str) -> str:
    """Return the id of the record that runs inside a call are saved."""
    return f"entered-{sha256(call_key.encode()).hexdigest()[:24]}"


def entry_of(level: Level, call: Call, *, granted: bool, state: RunState = RunState.GOING) -> SavedRun:
    """Return what is saved of a call with runs inside: all that must be the same when it is let through again."""
    entered = EnteredCall(
        tool=call.tool,
        args_digest=call.args_digest,
        schema_hash=call.schema_hash,
        policy_revision=level.gate.policy.revision,
        granted=granted,
    )
    return SavedRun(id=entry_id(call.key), parent=level.run_id or call.key, entered=entered, state=state)


def pause_in(error: Exception) -> CallPaused | None:
    """Return the pause behind a failed group of tasks (`ExceptionGroup`): a tool may run several agents at once.

    None if the group holds any other error too.
    """
    if not isinstance(error, ExceptionGroup):
        return None
    pauses, rest = cast("ExceptionGroup[Exception]", error).split(CallPaused)
    if pauses is None or rest is not None:
        return None
    first: BaseException = pauses
    while isinstance(first, BaseExceptionGroup):
        first = first.exceptions[0]
    assert isinstance(first, CallPaused)
    return first


def lost_question(tool: str) -> str:
    """Return the message for an agent whose questions would be lost because its caller takes them for a result."""
    return (
        f"an agent that the tool {tool!r} runs waits for a person, but the call does not wait with it: the question "
        "would be lost.\n"
        "  Run it with `await call_agent(ctx, agent, prompt)`, or give the outer agent Signoff(…, nested=True)."
    )


def is_left_over(error: BaseException) -> bool:
    """Return whether a run ended because a call in it waits for a person, and the agent's output type cannot say so."""
    return isinstance(error, UserError) and "DeferredToolRequests" in str(error)


def ungated(tool: str) -> str:
    """Return the message for an agent inside a call that has a tool that asks, and nobody to ask."""
    return (
        f"an agent that the tool {tool!r} runs has a tool that asks for approval, and no gate to ask through.\n"
        "  Run it with `await call_agent(ctx, agent, prompt)` where the outer agent has a Signoff, with "
        "`await run_with_approval(agent, prompt)` where it has none, or give the inner agent a Signoff of its own."
    )


class Neighbours:
    """The approved calls that are running in the runs inside one call.

    A run that pauses ends the call with it. It waits for these calls first, so that nothing approved is cut off.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._running = 0
        self._waiting: list[tuple[asyncio.AbstractEventLoop, asyncio.Future[None]]] = []

    @contextmanager
    def running(self) -> Generator[None]:
        """Within the context, one of them is running."""
        self._running += 1
        try:
            yield
        finally:
            self._running -= 1
            if not self._running:
                for loop, quiet in list(self._waiting):  # a tool may run agents in threads of their own
                    if not loop.is_closed():
                        loop.call_soon_threadsafe(_set, quiet)

    async def quiet(self) -> None:
        """Return once none is running, or after `PATIENCE`."""
        if not self._running:
            return
        loop = asyncio.get_running_loop()
        waiter = (loop, loop.create_future())
        self._waiting.append(waiter)
        limit = asyncio.ensure_future(pause_for(self._clock, PATIENCE))
        try:
            await asyncio.wait([waiter[1], limit], return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._waiting.remove(waiter)
            limit.cancel()


def _set(quiet: asyncio.Future[None]) -> None:
    if not quiet.done():
        quiet.set_result(None)
