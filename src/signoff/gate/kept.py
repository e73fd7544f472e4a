"""The beginning and the end of a gated run: whether it is kept, and what becomes of it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import nullcontext
from typing import Any

from pydantic_ai import RunContext
from pydantic_ai.run import AgentRunResult
from pydantic_ai.tools import DeferredToolRequests

from signoff.broker import new_id
from signoff.core.run import KeptRun, RunState
from signoff.errors import Halted, RunError, WrongUse
from signoff.gate.frames import current_frame, kept_run
from signoff.gate.gate import Gate
from signoff.gate.keeper import Keeper
from signoff.gate.nest import Pause, lost_question
from signoff.gate.nested import ended, inner_run, pause_of, remembered
from signoff.gate.run import GatedRun


async def gated_run(gate: Gate, ctx: RunContext[Any]) -> GatedRun:
    """The gate's state for one run. The outermost run is kept, where the store outlives the process."""
    if (nest := current_frame().nest) is not None:
        return await inner_run(gate.named_for(ctx, str(nest.run.gate.requester)), ctx, nest)
    if not gate.keeps_record:
        return GatedRun(gate.named_for(ctx))
    if (given := kept_run()) is not None:
        run, requests = given
        gate = gate.named_for(ctx, run.requester)
        known = {request.call.key: request for request in requests if request.call is not None}
        return GatedRun(gate, keeper=Keeper(gate.broker, gate.histories, run, given=True, saved=True, known=known))
    gate = gate.named_for(ctx)
    prompt = ctx.prompt if isinstance(ctx.prompt, str) else ""
    run = KeptRun(
        id=new_id(), conversation_id=ctx.conversation_id or "", prompt=prompt[:1_000], requester=str(gate.requester)
    )
    return GatedRun(gate, keeper=Keeper(gate.broker, gate.histories, run))


async def kept(
    run: GatedRun, ctx: RunContext[Any], handler: Callable[[], Awaitable[AgentRunResult[Any]]]
) -> AgentRunResult[Any]:
    """Run the agent, and record how it ended: with a result, a pause, an error, or in nobody's hands."""
    if run.nest is not None:
        return await _inside(run, ctx, handler)
    keeper, broker = run.keeper, run.gate.broker
    if keeper is None:
        return await _told(run, handler)
    mine = nullcontext() if keeper.given else broker.runs.in_hand(keeper.run.id)
    with mine, broker.watch.listening():
        if not keeper.given:  # whoever began or took it up has looked
            await broker.watch.catch_up()
        try:
            result = await _told(run, handler)
        except Exception:
            await broker.sweeper.sign_end()
            raise
        if isinstance(result.output, DeferredToolRequests):
            await keeper.put_down(result.conversation)
        else:
            said = result.conversation if keeper.run.options.get("chat") else None  # the next turn goes on with it
            await keeper.ended(RunState.DONE, str(result.output), said)
            await broker.sweeper.sign_end()
        return result


async def _inside(
    run: GatedRun, ctx: RunContext[Any], handler: Callable[[], Awaitable[AgentRunResult[Any]]]
) -> AgentRunResult[Any]:
    """As `kept`, for a run inside a call of another one."""
    nest = run.nest
    assert nest is not None, "only a run inside another one comes here"
    if (known := remembered(run, ctx)) is not None:
        return known
    try:
        result = await _told(run, handler)
        if not isinstance(result.output, DeferredToolRequests):
            ended(run, ctx, result)
        elif result.output.approvals:
            raise pause_of(run) if run.pauses_with_call else WrongUse(lost_question(nest.passage.call.tool))
        return result
    except Pause:
        await nest.beside.quiet()
        raise


async def _told(run: GatedRun, handler: Callable[[], Awaitable[AgentRunResult[Any]]]) -> AgentRunResult[Any]:
    try:
        return await handler()
    except (Halted, RunError, Pause):
        # The run is not over: somebody stopped everything, another process has it, or it waits for people.
        if run.keeper is not None and run.nest is None:
            run.keeper.dropped()
        raise
    except BaseException as error:
        _failed(run, error)
        raise
    finally:
        run.gate.broker.notes.hand_over()
        run.teller.close()


def _failed(run: GatedRun, error: BaseException) -> None:
    """What is written here is not waited for: whoever is being stopped must not wait."""
    keeper = run.keeper
    stopped = isinstance(error, asyncio.CancelledError | KeyboardInterrupt)
    if stopped and run.outer is not None and run.outer.saved:
        if run.nest is None:
            run.outer.dropped()  # nothing of it is lost: whoever likes takes it up by its id
        return
    run.questions.withdraw("the run ended")
    state = RunState.CANCELLED if stopped else RunState.FAILED
    if keeper is not None and run.nest is None:
        keeper.stopped(state, f"{type(error).__name__}: {error}")
    elif keeper is not None and keeper.saved:
        over = keeper.failed(state)
        run.gate.broker.runs.save_later(lambda: over)
