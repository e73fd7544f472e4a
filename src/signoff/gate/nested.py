"""Runs inside calls of other runs: begun or gone on with, remembered when they are over, paused with the call.

What such a run waits for is a question like any other, and its state is kept in the store beside that of the outermost
run. The call around it pauses with it, level by level. When the outermost run is resumed, each call that paused is made
again, and the runs inside it go on where they were.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from pydantic_ai import Agent, RunContext
from pydantic_ai.agent import UserPromptNode
from pydantic_ai.messages import UserContent
from pydantic_ai.run import AgentRunResult

from signoff.core.request import ApprovalRequest
from signoff.core.run import KeptRun, RunState
from signoff.errors import WrongUse
from signoff.gate.frames import current_frame, entered, entering
from signoff.gate.gate import Gate
from signoff.gate.keeper import Keeper, conversation_of
from signoff.gate.memo import memo_of, output_of
from signoff.gate.nest import Nest, Pause
from signoff.gate.questions import REQUEST
from signoff.gate.run import GatedRun
from signoff.gate.telling import tell_refused
from signoff.gate.waited import results_of, waited_for

NOT_GIVEN: Any = object()


async def inner_run(gate: Gate, ctx: RunContext[Any], nest: Nest) -> GatedRun:
    """The gate's state for a run inside a call. Where it was kept before, it goes on from there."""
    if gate.keeps_record and not nest.run.gate.keeps_record:
        raise WrongUse(_TWO_STORES.format(inner=_name(ctx), outer=_name(nest.passage.ctx)))
    nest.begins(ends_call=entered())
    gate, outer = gate.inside(nest.run.gate, pauses=nest.enters), nest.run.outer
    if outer is not None:
        outer.secrets.update(gate.secrets)
    if nest.enters or gate.keeps_record:
        run = await _kept_before(gate, ctx, nest)
    else:
        run = GatedRun(gate, outer=outer, nest=nest)
    nest.children.append(run)
    nest.run.inside.append(run)
    return run


async def _kept_before(gate: Gate, ctx: RunContext[Any], nest: Nest) -> GatedRun:
    """A run that is kept, begun or gone on with."""
    outer, run_id = nest.run.outer, nest.id_of(ctx)
    kept = None if nest.is_new else await gate.broker.runs.inside(run_id)
    if kept is not None and kept.state is not RunState.DONE:  # one that failed goes on from where it was saved last
        kept = replace(kept, state=RunState.GOING)
    prompt = ctx.prompt if isinstance(ctx.prompt, str) else ""
    fresh = KeptRun(id=run_id, parent=nest.run.run_id or nest.call.key, agent=_name(ctx), prompt=prompt[:1_000])
    before = kept is not None
    keeper = Keeper(gate.broker, gate.histories, kept or fresh, given=before, saved=before, nest=nest, root=outer)
    if outer is not None:
        keeper.known = outer.known
    run = GatedRun(gate, keeper=keeper, outer=outer, nest=nest, pauses_with_call=nest.enters)
    if kept is not None and kept.state is RunState.GOING:
        nest.entered_again()
        run.taken = await conversation_of(gate.broker, gate.histories, kept)
    return run


_TWO_STORES = (
    "{inner} keeps its questions in a store, and {outer}, which runs it, keeps nothing: they would be lost with it.\n"
    "  Give both the same store: Signoff(…, store=…)"
)


def _name(ctx: RunContext[Any]) -> str:
    return (ctx.agent.name if ctx.agent is not None else None) or "an agent"


async def go_on(run: GatedRun, ctx: RunContext[Any], node: UserPromptNode[Any, Any]) -> UserPromptNode[Any, Any]:
    """The first step of a run that was kept before: with its messages, and the answers to what it waited for."""
    conversation, nest = run.taken, run.nest
    assert conversation is not None, "only a run that was kept is gone on with"
    assert nest is not None, "only a run inside another one is gone on with here"
    run.taken = None
    ctx.messages[:] = conversation.messages
    if ctx.usage is not nest.passage.ctx.usage:  # else the outer run's figures hold it already
        ctx.usage.incr(conversation.usage)
    path = nest.passage.call.path
    known: dict[str, ApprovalRequest] = {}
    for key in waited_for(conversation, path).values():
        if (request := await run.gate.broker.about(key)) is not None:
            known[key] = request
    raises = run.gate.on_denied == "raise"
    results = results_of(conversation, known, path, raises=raises)
    tell_refused(run.gate, () if raises else known.values())
    return replace(node, user_prompt=None, deferred_tool_results=results)


def remembered(run: GatedRun, ctx: RunContext[Any]) -> AgentRunResult[Any] | None:
    """What a run inside a call answered when the call was made before; None where it is not over."""
    keeper = run.keeper
    if run.nest is None or keeper is None or keeper.run.state is not RunState.DONE:
        return None
    return AgentRunResult(output_of(ctx.agent, keeper.run.rest))


def ended(run: GatedRun, ctx: RunContext[Any], result: AgentRunResult[Any]) -> None:
    """A run inside a call is over: remember its answer, for when the call is made again."""
    keeper, nest = run.keeper, run.nest
    if keeper is None or nest is None or (memo := memo_of(ctx.agent, result.output)) is None:
        return
    saved, progress = keeper.saved, keeper.answered(memo)
    if saved:
        run.gate.broker.runs.save_later(lambda: progress)
    else:
        nest.ended.append(progress)


def pause_of(run: GatedRun) -> Pause:
    """What makes the call around a run pause with it. Metadata reaches traces: a reference, no state."""
    keeper = run.keeper
    assert keeper is not None, "only a run that is kept pauses with its call"
    worker = [*current_frame().workers, keeper.run.agent]
    waits = {"inside": keeper.run.id, "worker": worker}
    return Pause(metadata={"summary": f"{' > '.join(worker)} waits for a person", REQUEST: waits})


async def call_agent(
    ctx: RunContext[Any],
    agent: Agent[Any, Any],
    prompt: str | Sequence[UserContent] | None = None,
    *,
    deps: Any = NOT_GIVEN,
    ends_call: bool = False,
    **options: Any,
) -> Any:
    """For use inside a tool: run another agent, and return its output.

    Where that agent waits for a person, this call pauses with it. Once there is an answer and the run is resumed, the
    tool is called again from its beginning, and the agent goes on where it was: code before this line is repeated.
    The agent shares `deps` and usage with the caller unless told otherwise; an agent without a `Signoff` capability
    runs behind the caller's. `ends_call` is a promise: from here on the tool does nothing but wait for this and return.
    Then a call that a person approved is not unknown when its process dies meanwhile: it is made again, and goes on.
    `options` go to `agent.run`.
    """
    from signoff.gate.capability import gate_in  # it imports this module

    around = gate_in(ctx.root_capability)
    if around is not None and gate_in(agent.root_capability) is None:
        options["capabilities"] = [*options.get("capabilities", ()), around]
    given: dict[str, Any] = {"usage": ctx.usage, "infer_name": False, **options}
    given["deps"] = ctx.deps if deps is NOT_GIVEN else deps
    with entering(current_frame(), ends_call=ends_call):
        return (await agent.run(prompt, **given)).output
