"""What PydanticAI deferred in one step of a run: asked about together, and waited for unless the run suspends."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pydantic_ai import RunContext
from pydantic_ai.exceptions import SkipToolExecution
from pydantic_ai.messages import ToolCallPart
from pydantic_ai.tools import DeferredToolRequests, DeferredToolResults, ToolApproved, ToolDenied

from signoff.core.request import ApprovalRequest, State
from signoff.core.verdict import Effect
from signoff.errors import EditRefused
from signoff.gate.denial import POLICY, denial
from signoff.gate.edits import validated
from signoff.gate.gate import TOOL_ASKS
from signoff.gate.passage import Passage, never
from signoff.gate.question import question
from signoff.gate.questions import Asked
from signoff.gate.run import GatedRun, decision_of


async def resolve(run: GatedRun, ctx: RunContext[Any], requests: DeferredToolRequests) -> DeferredToolResults | None:
    """Open what is asked; wait for answers, unless the run suspends. What stays open is left out of the result."""
    results = DeferredToolResults()
    asked: list[Asked] = []
    known = {one.passage.call.call_id: one for one in run.questions.asked.values() if _is_of_now(run, ctx, one)}
    for part in requests.approvals:
        if part.tool_call_id in run.paused:
            continue  # not a question of its own: it waits for those of a run inside it
        mine = known.get(part.tool_call_id) or await _foreign(run, ctx, part, requests, results)
        if mine is not None:
            asked.append(mine)
    on_record = await run.questions.open(ctx, asked, requests)
    settled = await run.questions.answers(on_record)
    for one, request in zip(asked, on_record, strict=True):
        if (answer := settled.get(request.id)) is not None:
            run.teller.settled(answer)
            if run.keeper is not None:
                run.keeper.note(answer)
            results.approvals[answer.tool_call_id] = _result(run, one.passage, answer)
    waits = any(one.request.tool_call_id not in results.approvals for one in asked)
    run.questions.parked = waits or any(part.tool_call_id in run.paused for part in requests.approvals)
    return results if results.approvals else None


def _is_of_now(run: GatedRun, ctx: RunContext[Any], asked: Asked) -> bool:
    """Whether it was asked about a call of the response at hand, and not about an earlier one with the same id."""
    call = asked.passage.call
    return call.run_id == run.reading.places.of(ctx.messages, call.call_id, ctx.run_id or "")


def _result(run: GatedRun, passage: Passage, settled: ApprovalRequest) -> ToolApproved | ToolDenied:
    decision = decision_of(settled)
    if settled.state is State.APPROVED or settled.claim is not None:  # if it ran before, the second pass says so
        edited = decision.edited_args
        return ToolApproved(override_args=dict(edited) if edited is not None else None)
    refused = run.refusal_on_record(passage, settled)
    if isinstance(refused, SkipToolExecution):
        return refused.result
    raise refused


async def _foreign(
    run: GatedRun,
    ctx: RunContext[Any],
    part: ToolCallPart,
    requests: DeferredToolRequests,
    results: DeferredToolResults,
) -> Asked | None:
    """A call that somebody else asks about: a tool's validator, another capability. It becomes a request too."""
    tool = ctx.tool_manager.tools.get(part.tool_name) if ctx.tool_manager and ctx.tool_manager.tools else None
    if tool is None:
        return None
    call_ctx = replace(ctx, tool_call_id=part.tool_call_id, tool_name=part.tool_name)
    try:
        args = await validated(call_ctx, tool, part.args_as_dict(), by_person=False)
    except EditRefused:
        return None
    passage = run.reading.sealed(await run.reading.judged(call_ctx, tool, args, never))
    if passage.verdict.effect is Effect.DENY:
        results.approvals[part.tool_call_id] = denial(part.tool_name, by=POLICY, reason=passage.verdict.reason)
        return None
    if passage.verdict.effect is Effect.ALLOW:
        passage = replace(passage, verdict=TOOL_ASKS)
    said = requests.metadata.get(part.tool_call_id)
    asked = Asked(await question(run.gate, run.outer, passage, said=said), passage, said or {})
    raised = run.questions.raise_for(asked)
    requests.metadata.setdefault(part.tool_call_id, {}).update(raised.metadata or {})
    return asked
