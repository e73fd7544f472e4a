"""Running an agent once: until it has an output, or waits for people."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pydantic_ai import Agent, DeferredToolRequests
from pydantic_ai.models import Model

from signoff.core.request import ApprovalRequest
from signoff.gate.capability import Signoff
from signoff.gate.frames import asking
from signoff.gate.suspended import signoff_of
from signoff.ports import ApprovalUI


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """How a run ended: with an output, or waiting for people."""

    output: Any
    waiting: tuple[ApprovalRequest, ...] = ()


async def run_once(
    agent: Agent[Any, Any],
    prompt: str,
    *,
    gate: Signoff,
    approver: ApprovalUI,
    model: Model | None = None,
    may_pause: bool = False,
) -> Finished:
    """Run an agent behind `gate`: its own, or one that is added for this run. `approver` is asked in either case."""
    # PydanticAI would name a nameless agent after the variable it is called through, which is ours.
    options: dict[str, Any] = {"infer_name": False, "model": model}
    if signoff_of(agent) is None:
        options["capabilities"] = [gate]
        if may_pause:
            options["output_type"] = [agent.output_type, DeferredToolRequests]
    with asking(approver):
        result = await agent.run(prompt, **options)
    if not isinstance(result.output, DeferredToolRequests):
        return Finished(output=result.output)
    requests = await gate.requests_of(result.conversation_id)
    return Finished(output=None, waiting=tuple(one for one in requests if one.decision is None))
