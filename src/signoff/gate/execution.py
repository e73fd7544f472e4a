"""The beginning and the end of a gated run: whether it is saved, what it continues from, and how it ended."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

from pydantic_ai import RunContext
from pydantic_ai.agent import UserPromptNode
from pydantic_ai.run import AgentRunResult
from pydantic_ai.tools import DeferredToolRequests

from signoff.broker import Broker, new_id
from signoff.core.request import ApprovalRequest
from signoff.core.request_context import shortened
from signoff.core.run import RunState, SavedRun
from signoff.core.verdict import Effect
from signoff.errors import Halted, RunError, StoreUnavailable, WrongUse
from signoff.gate.gate import Gate
from signoff.gate.gated_calls import GatedCall, enclosing_call, entered, places_here, running_call
from signoff.gate.gated_run import GatedRun
from signoff.gate.memo import memo_of, output_of
from signoff.gate.nesting import CallPaused, EnclosingCall, Level, lost_question
from signoff.gate.pause import results_of, waited_for
from signoff.gate.questions import REQUEST
from signoff.gate.run_saver import RunSaver, conversation_of, given_run
from signoff.gate.tracing import report_refused

LONGEST_PROMPT = 1_000
"""Characters of a prompt that are saved with a run."""


# --- the beginning ---


async def begin(gate: Gate, ctx: RunContext[Any]) -> GatedRun:
    """Return the gate's state for one run. The outermost run is saved, if the store outlives the process."""
    if (gated := enclosing_call()) is not None:
        return await _begin_inside(gate, ctx, gated)
    if not gate.keeps_record:
        gate = gate.named_for(ctx)
        return GatedRun(Level(gate))
    if (given := given_run()) is not None:
        run, requests = given
        gate = gate.named_for(ctx, run.requester)
        known = {request.call.key: request for request in requests if request.call is not None}
        saver = RunSaver(gate.broker, gate.histories, run, resumed=True, saved=True, known=known)
    else:
        gate = gate.named_for(ctx)
        run = SavedRun(
            id=new_id(),
            conversation_id=ctx.conversation_id or "",
            name=_given_name(gate, ctx),
            prompt=_prompt(ctx),
            requester=str(gate.requester),
            places=dict(places_here()),
        )
        saver = RunSaver(gate.broker, gate.histories, run)
    return GatedRun(Level(gate, saver=saver, root=saver))


async def _begin_inside(gate: Gate, ctx: RunContext[Any], gated: GatedCall) -> GatedRun:
    """Return the gate's state for a nested run. If it was saved before, it continues from there."""
    outer = gated.level.gate
    gate = gate.named_for(ctx, str(outer.requester))
    if gate.keeps_record and not outer.keeps_record:
        raise WrongUse(_TWO_STORES.format(inner=_name(ctx), outer=_name(gated.ctx)))
    call = gated.enclosing = gated.enclosing or _enclosing(gated)
    call.begins(ends_call=entered())
    gate, root = gate.inside(outer, pauses=call.enters), gated.level.root
    if root is not None:
        root.secrets.update(gate.secrets)
    if call.enters or gate.keeps_record:
        run = await _saved_inside(gate, ctx, call)
    else:
        run = GatedRun(Level(gate, root=root, enclosing=call))
    call.joined_by(run.level)
    return run


def _enclosing(gated: GatedCall) -> EnclosingCall:
    granted = gated.request is None and gated.verdict.effect is Effect.ASK
    return EnclosingCall(
        gated.level, gated.sealed, gated.ctx, gated.request, granted, gated.is_new, enters=gated.level.gate.nested
    )


async def _saved_inside(gate: Gate, ctx: RunContext[Any], call: EnclosingCall) -> GatedRun:
    """Begin or continue a nested run that is saved."""
    root, run_id = call.level.root, call.id_of(ctx)
    stored = None if call.is_new else await gate.broker.runs.inside(run_id)
    if stored is not None and stored.state is not RunState.DONE:  # a failed run continues from where it was last saved
        stored = stored.changed(state=RunState.GOING)
    fresh = SavedRun(id=run_id, parent=call.level.run_id or call.call.key, agent=_name(ctx), prompt=_prompt(ctx))
    known = stored is not None
    saver = RunSaver(gate.broker, gate.histories, stored or fresh, resumed=known, saved=known, is_inner=True, root=root)
    if root is not None:
        saver.known = root.known
    run = GatedRun(Level(gate, saver=saver, root=root, enclosing=call, pauses_with_call=call.enters))
    if stored is not None and stored.state is RunState.GOING:
        call.entered_again()
        run.saved = await conversation_of(gate.broker, gate.histories, stored)
    return run


def _name(ctx: RunContext[Any]) -> str:
    return (ctx.agent.name if ctx.agent is not None else None) or "an agent"


def _given_name(gate: Gate, ctx: RunContext[Any]) -> str:
    """Return the name that the agent was made with; empty if its name was guessed or it has none."""
    name = ctx.agent.name if ctx.agent is not None else None
    return name if name and name in gate.names else ""


def _prompt(ctx: RunContext[Any]) -> str:
    return shortened(ctx.prompt, LONGEST_PROMPT) if isinstance(ctx.prompt, str) else ""


_TWO_STORES = (
    "{inner} keeps its requests in a store, but {outer}, which runs it, has no store: they would be lost.\n"
    "  Give both the same store: Signoff(…, store=…)"
)


async def go_on(run: GatedRun, ctx: RunContext[Any], node: UserPromptNode[Any, Any]) -> UserPromptNode[Any, Any]:
    """Return the first node of a nested run that was saved before, with its messages and the answers it waited for."""
    conversation, call = run.saved, run.level.enclosing
    assert conversation is not None, "only a run that was saved is gone on with"
    assert call is not None, "only a run inside another one is gone on with here"
    run.saved = None
    ctx.messages[:] = conversation.messages
    if ctx.usage is not call.ctx.usage:  # otherwise the outer run's usage already includes it
        ctx.usage.incr(conversation.usage)
    path = call.call.path
    known: dict[str, ApprovalRequest] = {}
    for key in waited_for(conversation, path).values():
        if (request := await run.gate.broker.about(key)) is not None:
            known[key] = request
    raises = run.gate.on_denied == "raise"
    results = results_of(conversation, known, path, raises=raises)
    report_refused(run.gate, () if raises else known.values())
    return replace(node, user_prompt=None, deferred_tool_results=results)


# --- the end ---


async def execute(
    run: GatedRun, ctx: RunContext[Any], handler: Callable[[], Awaitable[AgentRunResult[Any]]]
) -> AgentRunResult[Any]:
    """Run the agent, and record how it ended: with a result, a pause, an error, or released for another process."""
    if run.level.enclosing is not None:
        return await _execute_inside(run, run.level.enclosing, ctx, handler)
    saver, broker = run.level.saver, run.gate.broker
    if saver is None:
        return await _guarded(run, handler)
    mine = nullcontext() if saver.resumed else broker.runs.in_hand(saver.run.id)
    with mine, broker.watch.listening():
        if not saver.resumed:  # otherwise the caller that began or resumed it has caught up
            await broker.watch.catch_up()
        try:
            result = await _guarded(run, handler)
        except Exception:
            await broker.signing.sign_end()
            raise
        try:
            await _note_end(saver, broker, result)
        except StoreUnavailable:
            saver.dropped()
            raise
        return result


async def _note_end(saver: RunSaver, broker: Broker, result: AgentRunResult[Any]) -> None:
    if isinstance(result.output, DeferredToolRequests):
        await saver.put_down(result.conversation)
        return
    setup = saver.run.setup
    conversation = result.conversation if setup.chat or setup.keeps else None  # for the next turn
    await saver.ended(RunState.DONE, str(result.output), conversation)
    if not saver.saved:  # otherwise its end was signed with the same write
        await broker.signing.sign_end()


async def _execute_inside(
    run: GatedRun, call: EnclosingCall, ctx: RunContext[Any], handler: Callable[[], Awaitable[AgentRunResult[Any]]]
) -> AgentRunResult[Any]:
    """As `execute`, for a nested run."""
    if (answered := _answered_before(run, ctx)) is not None:
        return answered
    try:
        result = await _guarded(run, handler)
        if not isinstance(result.output, DeferredToolRequests):
            _remember_answer(run, call, ctx, result)
        elif result.output.approvals:
            raise pause_of(run) if run.level.pauses_with_call else WrongUse(lost_question(call.call.tool))
        return result
    except CallPaused:
        await call.neighbours.quiet()
        raise


async def _guarded(run: GatedRun, handler: Callable[[], Awaitable[AgentRunResult[Any]]]) -> AgentRunResult[Any]:
    try:
        return await handler()
    except (Halted, RunError, StoreUnavailable, CallPaused):
        # The run is not over: everything was halted, another process has it, the store is unavailable, or it waits for
        # people.
        if run.level.saver is not None and run.level.enclosing is None:
            run.level.saver.dropped()
        raise
    except BaseException as error:
        _failed(run, error)
        raise
    finally:
        run.gate.broker.audit_buffer.flush()
        run.reporter.close()


def _failed(run: GatedRun, error: BaseException) -> None:
    """Record a failed or cancelled run. The writes are not waited for: code that is being cancelled must not wait."""
    saver, root, is_inner = run.level.saver, run.level.root, run.level.enclosing is not None
    stopped = isinstance(error, asyncio.CancelledError | KeyboardInterrupt)
    if stopped and root is not None and root.saved:
        if not is_inner:
            root.dropped()  # nothing is lost: the run can be resumed by its id
        return
    run.questions.withdraw("the run ended")
    state = RunState.CANCELLED if stopped else RunState.FAILED
    if saver is not None and not is_inner:
        saver.stopped(state, f"{type(error).__name__}: {error}")
    elif saver is not None and saver.saved:
        over = saver.failed(state)
        run.gate.broker.runs.save_later(lambda: over)


def _answered_before(run: GatedRun, ctx: RunContext[Any]) -> AgentRunResult[Any] | None:
    """Return what a nested run answered when its call was made before; None if it is not over."""
    saver = run.level.saver
    if saver is None or saver.run.state is not RunState.DONE:
        return None
    return AgentRunResult(output_of(ctx.agent, saver.run.rest))


def _remember_answer(run: GatedRun, call: EnclosingCall, ctx: RunContext[Any], result: AgentRunResult[Any]) -> None:
    """Save the answer of a nested run that is over, for when its call is made again."""
    saver = run.level.saver
    if saver is None or (memo := memo_of(ctx.agent, result.output)) is None:
        return
    saved, progress = saver.saved, saver.answered(memo)
    if saved:
        run.gate.broker.runs.save_later(lambda: progress)
    else:
        call.ended.append(progress)


def pause_of(run: GatedRun) -> CallPaused:
    """Return the exception that pauses the call around a run. Its metadata reaches traces: a reference, no state."""
    saver = run.level.saver
    assert saver is not None, "only a run that is saved pauses with its call"
    worker = [*running_call().workers, saver.run.agent]
    waits = {"inside": saver.run.id, "worker": worker}
    return CallPaused(metadata={"summary": f"{' > '.join(worker)} waits for a person", REQUEST: waits})
