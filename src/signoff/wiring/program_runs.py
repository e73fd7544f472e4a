"""`Resumption`: resumes answered runs of your own program that no process executes, or tells people about them."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime, timedelta

from signoff.broker import Broker
from signoff.broker.run_status import RunStatus
from signoff.core.run import RunState, SavedRun
from signoff.delivery import Reconciler
from signoff.engine.resumable_runs import ResumableRuns
from signoff.engine.resumer import ResumeLoop
from signoff.engine.run_text import answer_text
from signoff.errors import RunOver, RunTaken, SignoffError
from signoff.wiring.run_location import cannot, elsewhere

_log = logging.getLogger("signoff.discord")

Resume = Callable[[str], Awaitable[object]]
"""Resumes the run with this id, as `resume` does. If it returns the run's result, that is shown in full."""

GRACE = timedelta(seconds=10)
"""How long a program may take to resume a run by itself before people are told that none does."""


class Resumption:
    """Looks after the runs that were asked about in one channel."""

    def __init__(
        self,
        broker: Broker,
        reconciler: Reconciler,
        channel: str,
        resume: Resume | None,
        *,
        only: Callable[[SavedRun], bool] = lambda run: True,
    ) -> None:
        """`only` filters the runs, if something else resumes others."""
        self.channel = channel
        self._broker = broker
        self._reconciler = reconciler
        self._resume = resume
        self._looking = ResumableRuns(broker, [channel], only=only)
        self._loop = ResumeLoop(broker, self._looking, found=self._found, failed=_warn)
        self._since: dict[str, datetime] = {}
        """Since when runs could be resumed, for those that people were not told about yet."""

    async def run(self) -> None:
        """Look for runs until cancelled. Runs in progress are suspended then."""
        await self._loop.run()

    async def _found(self, found: Sequence[RunStatus]) -> None:
        now = self._broker.clock.now()
        self._since = {one.run.id: self._since.get(one.run.id, now) for one in found}
        for status in found:
            run = status.run
            if self._resume is not None and not run.agent:
                self._loop.go_on(status, self._go_on(run.id, _name(status), self._resume))
            elif now - self._since[run.id] < GRACE:
                self._looking.at(run.id)
            elif status.answered and not status.waiting:
                await self._reconciler.say(run.id, _name(status), RunState.GOING, cannot(run) or elsewhere(run))
                self._looking.takes_up(status)

    async def _go_on(self, run_id: str, name: str, resume: Resume) -> None:
        self._reconciler.in_hand.add(run_id)  # so that its result is shown in full, and not only its beginning
        try:
            result = await resume(run_id)
            if (text := _answer(result)) is not None:
                await self._reconciler.say(run_id, name, RunState.DONE, text)
        except RunOver:
            pass  # another process finished it
        except RunTaken:  # if the other process does not act on the answer, it is retried
            self._loop.wait(run_id)
        except Exception as error:  # user code; what failed is retried
            self._loop.wait(run_id)
            _log.error("%s: run %s could not continue; retrying", self.channel, run_id, exc_info=error)
        else:
            self._looking.went_on(run_id)
        finally:
            self._reconciler.in_hand.discard(run_id)


def _warn(error: SignoffError | OSError) -> None:
    warnings.warn(f"cannot read which runs are ready: {error}", RuntimeWarning, stacklevel=2)


def _answer(result: object) -> str | None:
    """Return an agent's answer as text if `result` is a PydanticAI result of a finished run, else None."""
    from signoff.workers.runtime import is_answer

    return answer_text(result.output) if is_answer(result) else None


def _name(status: RunStatus) -> str:
    """Return the name that people use for the agent that asked."""
    worker = next((one.worker for one in status.answered if one.worker), "")
    return worker.partition(" > ")[0] or status.run.agent
