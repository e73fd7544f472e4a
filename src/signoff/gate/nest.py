"""A gated call whose tool runs other agents: which runs there are inside it, and how far everything around them came.

A run inside a call is known by the call's key, the agent's name, what it was asked, and a number where that is the
same: when the call is made again after a pause or a crash, each run in it finds what was kept of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import sha256
from typing import TYPE_CHECKING, Any, cast

from pydantic_ai import RunContext
from pydantic_ai.exceptions import ApprovalRequired
from pydantic_ai.tools import DeferredToolRequests
from pydantic_core import to_json

from signoff.broker.runs import Progress
from signoff.core.call import Call
from signoff.core.request import ApprovalRequest
from signoff.core.run import KeptRun, RunState
from signoff.core.verdict import Effect
from signoff.errors import Halted, RunError, WrongUse
from signoff.gate.beside import Beside
from signoff.gate.memo import DoesNotFit
from signoff.ports import Transaction

if TYPE_CHECKING:
    from signoff.gate.passage import Passage
    from signoff.gate.run import GatedRun


class Pause(ApprovalRequired):
    """A run inside a call waits for people, so the call does, and the run around it."""


@dataclass(slots=True)
class Nest:
    """One gated call while it runs."""

    run: GatedRun
    """The run that makes the call."""
    passage: Passage
    request: ApprovalRequest | None = None
    """The approval the call runs on, where a person gave one."""
    enters: bool = False
    """Whether the call may be made again from its beginning, to go on with the runs inside it."""
    ends: bool | None = None
    """Whether it promised to do nothing but wait for the runs inside it; None before there is one."""
    ended: list[Progress] = field(default_factory=list[Progress])
    """Runs inside it that are over, and that the store does not know yet."""
    children: list[GatedRun] = field(default_factory=list["GatedRun"])
    """The runs inside it that began here."""
    on_record: bool = False
    """Whether the store knows that runs inside it are kept."""
    _began: dict[str, list[object]] | None = None
    """The agents of those runs, by what a run is known by."""
    _is_over: bool = False
    _collides: bool = False
    """Whether two agents began that could not be told apart later."""
    _beside: Beside | None = None

    @property
    def call(self) -> Call:
        return self.run.reading.sealed(self.passage).call

    @property
    def beside(self) -> Beside:
        """Approved calls that are running in the runs inside it."""
        self._beside = self._beside or Beside(self.run.gate.broker.clock)
        return self._beside

    @property
    def is_new(self) -> bool:
        """Whether the call was made in this very run, so that nothing can be kept of runs inside it."""
        return self.run.questions.is_new(self.passage.ctx)

    def id_of(self, ctx: RunContext[Any]) -> str:
        """The id of a run that begins inside the call, the same when the call is made again."""
        call, name = self.call, ctx.agent.name if ctx.agent is not None else None
        asked = to_json([call.key, call.args_digest, name, ctx.prompt], fallback=repr)
        known = sha256(asked).hexdigest()[:24]
        self._began = self._began if self._began is not None else {}
        agents = self._began.setdefault(known, [])
        self._collides = self._collides or any(one is not ctx.agent for one in agents)
        agents.append(ctx.agent)
        return f"inside-{known}-{len(agents)}"

    def begins(self, *, ends_call: bool | None) -> None:
        """A run begins inside the call; with what was said about it, if anything."""
        self.enters = self.enters or ends_call is not None
        promised = self.on_record and bool(self._entered[0])
        self.ends = bool(ends_call) and self.ends is not False
        if promised and not self.ends:
            raise WrongUse(f"{self.passage.call.tool} said ends_call, and goes on: it started another run after that")

    @property
    def _entered(self) -> tuple[str, str]:
        request = self.request
        if request is None or request.claim is None or not (self.enters and self.ends):
            return "", ""
        return request.id, request.claim.token

    def progress(self) -> list[Progress]:
        """How far everything around a run inside this call came, the outermost run first.

        Raises `Pause` where the call paused already, because of another run that was inside it: what is around it is
        put down by then, and not to be taken back by one that goes on after that.
        """
        if self._is_over or self.passage.call.call_id in self.run.paused:
            raise Pause
        if self._collides and self.enters:
            raise WrongUse(_TWINS)
        around = self.run.nest.progress() if self.run.nest is not None else []
        if (keeper := self.run.keeper) is not None:
            around.append(keeper.at_call(self.passage.ctx, self._entered))
        # One that did not promise to only wait is not let through again after a crash: nobody knows what it did.
        entry = self._entry(RunState.GOING if self.ends else RunState.DONE)
        return [*around, Progress(run=entry, fence=self._fence), *self.ended]

    @property
    def _fence(self) -> tuple[str, int]:
        outer = self.run.outer
        return (outer.run.id, outer.run.epoch) if outer is not None and outer.saved else ("", 0)

    def saved(self) -> None:
        """What `progress` said is in the store."""
        self.ended.clear()
        self.on_record = True
        if self.run.keeper is not None:
            self.run.keeper.saved = True
        if self.run.nest is not None:
            self.run.nest.saved()

    def entered_again(self) -> None:
        """The call was claimed anew and goes on with a run that is kept: with the next write, that is on record."""
        broker, entered, outer = self.run.gate.broker, self._entered, self.run.outer
        if self.on_record or not entered[0]:
            return
        self.on_record, now = True, broker.clock.now()

        def work(tx: Transaction) -> None:
            with suppress(RunError):  # in other hands by now
                if outer is not None and outer.saved:
                    broker.runs.check(tx, outer.run.id, outer.run.epoch)
                broker.inside.enter(tx, *entered, now)

        broker.store.later("enter", work)

    async def carried_out(self) -> Any:
        """Run the tool. Raises `Pause` where a run inside it waits for people, however the tool started that."""
        passage = self.passage
        try:
            result = await passage.execute(passage.args)
            if isinstance(result, DeferredToolRequests):
                raise WrongUse(lost_question(passage.call.tool))
        except (Pause, DoesNotFit):
            self._paused()
            raise
        except (ApprovalRequired, Halted, RunError):
            raise
        except Exception as error:
            if (pause := pause_in(error)) is None:
                self._over()
                raise
            self._paused()
            raise pause from error
        self._over()
        return result

    def _paused(self) -> None:
        """The tool let a pause pass: the call ends here, and may be made again."""
        self.run.paused.add(self.passage.call.call_id)
        self._mark(RunState.GOING)

    def _mark(self, state: RunState) -> None:
        if self.on_record:
            entry = self._entry(state)
            self.run.gate.broker.runs.save_later(lambda: Progress(run=entry, fence=self._fence))

    def _over(self) -> None:
        """The call is over: nothing goes on with what its runs still asked, and it is not let through once more."""
        self._is_over = True
        for child in self.children:
            child.withdraw("the call that asked is over")
            self.run.inside.remove(child)
        self._mark(RunState.DONE)

    def _entry(self, state: RunState) -> KeptRun:
        """That runs inside the call are kept, and whether it was let through although policy asks."""
        granted = self.request is None and self.passage.verdict.effect is Effect.ASK
        options = entry_of(self.call, self.run.gate.policy.revision, granted=granted)
        parent = self.run.run_id or self.call.key
        return KeptRun(id=entry_id(self.call.key), parent=parent, options=options, state=state)


_TWINS = (
    "two agents of one name are asked the same inside one call, and could not be told apart when it is made again.\n"
    "  Give each a name of its own: Agent(…, name=…)"
)


def entry_id(call_key: str) -> str:
    """Under which it is kept that runs inside a call are."""
    return f"entered-{sha256(call_key.encode()).hexdigest()[:24]}"


def entry_of(call: Call, policy_revision: str, *, granted: bool) -> Mapping[str, str]:
    """What has to be the same when a call that was granted is let through again."""
    about = {"tool": call.tool, "args": call.args_digest, "schema": call.schema_hash, "policy": policy_revision}
    return {**about, "granted": "yes"} if granted else about


def pause_in(error: Exception) -> Pause | None:
    """The pause behind a failed group of tasks: a tool may run several agents at once."""
    if not isinstance(error, ExceptionGroup):
        return None
    pauses, rest = cast("ExceptionGroup[Exception]", error).split(Pause)
    if pauses is None or rest is not None:
        return None
    first: BaseException = pauses
    while isinstance(first, BaseExceptionGroup):
        first = first.exceptions[0]
    assert isinstance(first, Pause)
    return first


def lost_question(tool: str) -> str:
    """Where an agent's questions would be lost because its caller takes them for a result."""
    return (
        f"an agent that the tool {tool!r} runs waits for a person, and the call does not wait with it: the question "
        "would be lost.\n"
        "  Run it with `await call_agent(ctx, agent, prompt)`, or give the outer agent Signoff(…, nested=True)."
    )
