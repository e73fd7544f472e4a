"""Running an agent once: until it has an output, or waits for people."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pydantic_ai import Agent, DeferredToolRequests
from pydantic_ai.models import Model
from pydantic_ai.run import AgentRunResult

from signoff.core.request import ApprovalRequest
from signoff.core.run import KeptRun
from signoff.gate.capability import Signoff
from signoff.gate.frames import asking, keeping
from signoff.gate.suspended import resume_run, signoff_of
from signoff.ports import ApprovalUI


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """How a run ended: with an output, or waiting for people."""

    output: Any
    waiting: tuple[ApprovalRequest, ...] = ()
    run: str = ""
    """Id of the run, where it is kept."""
    store: str = ""
    """Where that is, if not where one would look."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Runner:
    """An agent behind a gate: its own, or one that is added for the run. `approver` is asked in either case."""

    agent: Agent[Any, Any]
    gate: Signoff
    approver: ApprovalUI
    model: Model | None = None
    may_pause: bool = False

    async def run(self, prompt: str, kept: KeptRun | None = None) -> Finished:
        """Run the agent from the beginning; `kept` is the run it is in the store, begun by the caller."""
        with asking(self.approver):
            if kept is None:
                return await self._finished(await self.agent.run(prompt, **self._options()))
            with keeping(kept):
                return await self._finished(await self.agent.run(prompt, **self._options()), kept.id)

    async def resume(self, run_id: str) -> Finished:
        """Take up a kept run."""
        with asking(self.approver):
            result = await resume_run(self.agent, run_id, self.gate, **self._options())
        return await self._finished(result, run_id)

    def _options(self) -> dict[str, Any]:
        # PydanticAI would name a nameless agent after the variable it is called through, which is ours.
        options: dict[str, Any] = {"infer_name": False, "model": self.model}
        if signoff_of(self.agent) is None:
            options["capabilities"] = [self.gate]
            if self.may_pause:
                options["output_type"] = [self.agent.output_type, DeferredToolRequests]
        return options

    async def _finished(self, result: AgentRunResult[Any], run: str = "") -> Finished:
        if not isinstance(result.output, DeferredToolRequests):
            return Finished(output=result.output, run=run)
        if run:
            waiting = (await self.gate.broker.runs.status(run)).waiting
        else:
            requests = await self.gate.requests_of(result.conversation_id)
            waiting = tuple(one for one in requests if one.decision is None)
        own = self.gate.store if isinstance(self.gate.store, str) else ""
        return Finished(output=None, waiting=waiting, run=run, store=own)
