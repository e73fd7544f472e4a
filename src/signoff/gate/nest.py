"""A gated call whose tool runs other agents: which runs there are inside it, and how far everything around them came.

A run inside a call is known by the call's key, the agent's name, what it was asked, and a number where that is the
same: when the call is made again after a pause or a crash, each run in it finds what was kept of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import sha256
from typing import TYPE_CHECKING, Any, cast

from pydantic_ai import RunContext
from pydantic_ai.exceptions import ApprovalRequired
from pydantic_core import to_json

from signoff.broker.runs import Progress
from signoff.core.call import Call
from signoff.core.request import ApprovalRequest
from signoff.core.run import KeptRun
from signoff.core.verdict import Effect
from signoff.errors import RunError
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
    ends: bool = False
    """Whether it does nothing more once the run inside it is over."""
    ended: list[Progress] = field(default_factory=list[Progress])
    """Runs inside it that are over, and that the store does not know yet."""
    inside: bool = False
    """Whether the store is told that all the call does is to wait for runs inside it."""
    going: int = 0
    """How many runs inside it are going on by `call_agent`: a tool may run several at once."""
    pauses: bool = False
    """Whether one of those waits for people, so that the call ends here, to be made again."""
    _counts: Counter[str] | None = None

    @property
    def key(self) -> str:
        return self.run.reading.sealed(self.passage).call.key

    @property
    def is_new(self) -> bool:
        """Whether the call was made in this very run, so that nothing can be kept of runs inside it."""
        return self.run.questions.is_new(self.passage.ctx)

    def id_of(self, ctx: RunContext[Any]) -> str:
        """The id of a run that begins inside the call."""
        agent = ctx.agent.name if ctx.agent is not None else None
        asked = to_json([self.key, agent, ctx.prompt], fallback=repr)
        known = sha256(asked).hexdigest()[:24]
        self._counts = self._counts if self._counts is not None else Counter()
        self._counts[known] += 1
        return f"inside-{known}-{self._counts[known]}"

    def progress(self) -> list[Progress]:
        """How far everything around a run inside this call came, the outermost run first.

        Raises `Pause` where the call paused already, because of another run that was inside it: what is around it is
        put down by then, and not to be taken back by one that goes on after that.
        """
        if self.passage.call.call_id in self.run.paused:
            raise Pause
        around = self.run.nest.progress() if self.run.nest is not None else []
        if (keeper := self.run.keeper) is not None:
            entered = self.request.id if self.request is not None and self.enters else ""
            around.append(keeper.at_call(self.passage.ctx, entered))
        if self.request is None and self.passage.verdict.effect is Effect.ASK:
            around.append(Progress(run=self._entry()))
        return [*around, *self.ended]

    def saved(self) -> None:
        """What `progress` said is in the store."""
        self.ended.clear()
        self.inside = self.request is not None and self.enters
        if self.run.keeper is not None:
            self.run.keeper.saved = True
        if self.run.nest is not None:
            self.run.nest.saved()

    def enter_again(self) -> None:
        """The call was claimed anew and goes on with a run that is kept: with the next write, it is entered again."""
        broker, request, outer = self.run.gate.broker, self.request, self.run.outer
        if request is None or not self.enters or self.inside:
            return
        self.inside, now = True, broker.clock.now()

        def work(tx: Transaction) -> None:
            with suppress(RunError):  # in other hands by now: the claim may be theirs
                if outer is not None and outer.saved:
                    broker.runs.check(tx, outer.run.id, outer.run.epoch)
                broker.inside.enter(tx, request.id, now)

        broker.store.later("enter", work)

    async def leave(self) -> None:
        """The tool goes on by itself: from here on nobody knows how far it came, if the process dies."""
        if self.request is not None and self.inside and not self.ends:
            self.inside = False
            await self.run.gate.broker.inside.leave(self.request.id)

    def _entry(self) -> KeptRun:
        """That the call was let through, although policy asks: by a remembered answer, which is not to count twice."""
        call = self.run.reading.sealed(self.passage).call
        options = entry_of(call, self.run.gate.policy.revision)
        return KeptRun(id=entry_id(call.key), parent=self.run.run_id or call.key, options=options)


def entry_id(call_key: str) -> str:
    """Under which it is kept that a call was let through."""
    return f"entered-{sha256(call_key.encode()).hexdigest()[:24]}"


def entry_of(call: Call, policy_revision: str) -> Mapping[str, str]:
    """What has to be the same when the call is let through again."""
    return {"tool": call.tool, "args": call.args_digest, "schema": call.schema_hash, "policy": policy_revision}


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
        f"the tool {tool!r} returned DeferredToolRequests: an agent that it runs waits for a person, and this call "
        "does not wait with it.\n"
        "  Run it with `await call_agent(ctx, agent, prompt)`, or give the outer agent Signoff(…, nested=True)."
    )
