"""The beginning and the end of a gated run: whether it is kept, and what becomes of it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import nullcontext, suppress
from typing import Any

from pydantic_ai import RunContext
from pydantic_ai.run import AgentRunResult
from pydantic_ai.tools import DeferredToolRequests

from signoff.broker import new_id
from signoff.core.run import KeptRun, RunState
from signoff.errors import Halted, RunError
from signoff.gate.frames import TOP, current_frame, kept_run
from signoff.gate.gate import Gate
from signoff.gate.keeper import Keeper
from signoff.gate.run import GatedRun

LONGEST_DETAIL = 200


def gated_run(gate: Gate, ctx: RunContext[Any]) -> GatedRun:
    """The gate's state for one run. The outermost run is kept, where the store outlives the process."""
    frame = current_frame()
    if not gate.keeps_record or frame is not TOP:
        return GatedRun(gate, outer=frame.keeper)
    if (given := kept_run()) is not None:
        run, requests = given
        known = {request.call.key: request for request in requests if request.call is not None}
        return GatedRun(gate, keeper=Keeper(gate.broker, gate.histories, run, saved=True, known=known))
    prompt = ctx.prompt if isinstance(ctx.prompt, str) else ""
    run = KeptRun(id=new_id(), conversation_id=ctx.conversation_id or "", prompt=prompt[:1_000])
    return GatedRun(gate, keeper=Keeper(gate.broker, gate.histories, run))


async def kept(run: GatedRun, handler: Callable[[], Awaitable[AgentRunResult[Any]]]) -> AgentRunResult[Any]:
    """Run the agent, and record how it ended: with a result, a pause, an error, or in nobody's hands."""
    keeper, broker = run.keeper, run.gate.broker
    with broker.watch.listening() if keeper is not None else nullcontext():
        try:
            if keeper is not None:
                await broker.watch.catch_up()
            result = await handler()
        except (Halted, RunError):
            # The run is not over: somebody stopped everything, or another process has it.
            if keeper is not None:
                await _let_go(keeper)
            raise
        except BaseException as error:
            await _failed(run, error)
            raise
        finally:
            broker.notes.hand_over()
            run.teller.close()
        if keeper is not None:
            if not isinstance(result.output, DeferredToolRequests):
                await keeper.ended(RunState.DONE, str(result.output)[:LONGEST_DETAIL])
                await broker.sweeper.sign_now_and_then()
            elif not run.gate.suspends:
                await keeper.put_down()
        return result


async def _failed(run: GatedRun, error: BaseException) -> None:
    keeper = run.keeper
    stopped = isinstance(error, asyncio.CancelledError | KeyboardInterrupt)
    if keeper is not None and stopped and keeper.run.agent:
        await _let_go(keeper)  # whoever stopped it can resume it by its id
        return
    await run.questions.withdraw("the run ended")
    if keeper is not None:
        state = RunState.CANCELLED if stopped else RunState.FAILED
        with suppress(RunError):  # it was cancelled or taken up elsewhere, which is how it ended here
            await keeper.ended(state, f"{type(error).__name__}: {error}"[:LONGEST_DETAIL])


async def _let_go(keeper: Keeper) -> None:
    with suppress(RunError):  # it is in other hands already, or over
        await keeper.put_down()
