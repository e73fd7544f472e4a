"""`segment`: executes a run until it ends or waits, and says what that came to, in the same way for all who resume."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

from signoff.broker.cancellation import is_cancelled
from signoff.broker.run_status import RunStatus
from signoff.core.run import RunState, SavedRun
from signoff.engine.care import Executor, RunCare
from signoff.engine.run_text import failure_text
from signoff.engine.segment_end import Came, SegmentEnd
from signoff.errors import (
    Halted,
    RunError,
    RunOver,
    RunTaken,
    StoreDamaged,
    StoreError,
    StoreUnavailable,
    UnknownRun,
    WaitsElsewhere,
)

if TYPE_CHECKING:
    from signoff.workers.runtime import Finished


class CannotBeMade(Exception):
    """Building an agent takes too long. Its runs stay as they were."""


async def segment(care: RunCare, status: RunStatus) -> SegmentEnd:
    """Take a run, execute it until it ends or waits, and put it down. Raises nothing but cancellation."""
    run = status.run
    executor: Executor | None = None
    try:
        executor = await care.executor(run)
        finished = await executor.resume(run)
        if finished is not None and not finished.paused:
            secrets = tuple(executor.secrets)
            return SegmentEnd(came=Came.ENDED, state=RunState.DONE, finished=finished, secrets=secrets)
        return await _paused(care, status, finished)
    except RunTaken as error:
        return SegmentEnd(came=Came.LEFT, error=error)
    except RunOver as error:
        return SegmentEnd(came=Came.OVER, error=error)
    except WaitsElsewhere as error:
        return SegmentEnd(came=Came.RESTS, error=error)
    except Halted as error:
        return SegmentEnd(came=Came.HALTED, error=error)
    except asyncio.CancelledError:
        if is_cancelled():
            raise
        return await _stopped_itself(care, run, executor)
    except Exception as error:  # agents are user code and may raise anything
        return await _went_wrong(care, run, executor, error)
    finally:
        if executor is not None:
            executor.close()


async def _paused(care: RunCare, status: RunStatus, finished: Finished | None) -> SegmentEnd:
    """Return what a run stands at that was executed, and did not end with an output in this process."""
    now = await care.broker.runs.status(status.run.id)
    before, left = {one.id for one in status.answered}, {one.id for one in now.answered}
    if now.run.state is not RunState.GOING:
        return SegmentEnd(came=Came.OVER, state=now.run.state, finished=finished)
    if finished is None and before & left:  # a halt, or another process was faster
        return SegmentEnd(came=Came.LEFT)
    if now.waiting:
        return SegmentEnd(came=Came.WAITS, waits=now.waits, finished=finished)
    if left - before:
        return SegmentEnd(came=Came.ANSWERED, finished=finished)
    came = Came.RESTS if finished is not None and finished.elsewhere else Came.LEFT
    return SegmentEnd(came=came, finished=finished)


async def _stopped_itself(care: RunCare, run: SavedRun, executor: Executor | None) -> SegmentEnd:
    """Return what a run stands at that was cancelled from inside, by its agent. It ends, as by any exception of it."""
    error = RuntimeError("the agent ended with CancelledError, though nobody cancelled its run")
    try:
        if executor is not None:
            await executor.flush()
            now = await care.broker.runs.status(run.id)
            if now.waiting:  # a call was cut off: a person says whether it happened
                return SegmentEnd(came=Came.WAITS, waits=now.waits)
            await _end(care, run, failure_text(error))
    except (StoreError, UnknownRun) as failed:
        return _failed(failed, failure_text(failed))
    return await _went_wrong(care, run, executor, error)


async def _went_wrong(care: RunCare, run: SavedRun, executor: Executor | None, error: Exception) -> SegmentEnd:
    """Return what a run that failed stands at, also if the store cannot say it."""
    try:
        return await _stood(care, run, executor, error)
    except StoreError as failed:
        return _failed(failed, failure_text(failed))


async def _stood(care: RunCare, run: SavedRun, executor: Executor | None, error: Exception) -> SegmentEnd:
    """Return what a run that failed stands at.

    If nothing of it is saved and somebody waits for it where it was begun, it ends as failed: it would only fail again,
    and nothing is lost. Else it stays.
    """
    text = failure_text(error, tuple(executor.secrets) if executor is not None else ())
    if isinstance(error, StoreUnavailable):
        return _failed(error, text)
    if executor is not None:
        await executor.flush()
    stands = await care.broker.runs.inside(run.id)
    if stands is None:
        return SegmentEnd(came=Came.OVER, error=error)
    state = stands.state
    is_unbegun = state is RunState.GOING and not stands.rest
    if is_unbegun and care.began(run) and not isinstance(error, StoreError | RunError | CannotBeMade):
        if await _end(care, run, text):
            state = RunState.FAILED
    if state is RunState.GOING:
        return _failed(error, text)
    came = Came.OVER if state is RunState.DONE else Came.ENDED
    return SegmentEnd(came=came, state=state, text=text, error=error)


async def _end(care: RunCare, run: SavedRun, text: str) -> bool:
    """End a run as failed. Returns False if it is over, or another process has it."""
    with suppress(RunOver, RunTaken):
        taken = await care.broker.runs.take(run.id)
        await care.broker.runs.end(run.id, taken.epoch, RunState.FAILED, text)
        return True
    return False


def _failed(error: Exception, text: str) -> SegmentEnd:
    is_down = isinstance(error, StoreUnavailable) and not isinstance(error, StoreDamaged)
    return SegmentEnd(came=Came.UNREACHABLE if is_down else Came.FAILED, text=text, error=error)
