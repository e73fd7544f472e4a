"""A gated call whose tool runs other agents: which runs there are inside it, and how far everything around them came.

A run inside a call is known by the call's key, the agent's name, what it was asked, and a number where that is the
same: when the call is made again after a pause or a crash, each run in it finds what was kept of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
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
        """How far everything around a run inside this call came, the outermost run first."""
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
        if self.run.keeper is not None:
            self.run.keeper.saved = True
        if self.run.nest is not None:
            self.run.nest.saved()

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
