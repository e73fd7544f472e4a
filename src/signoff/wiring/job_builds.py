"""`JobBuilds`: builds the jobs of saved runs beside the event loop, one at a time, with a time limit."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from signoff.core.run import SavedRun
from signoff.engine.segment import CannotBeMade
from signoff.side_thread import in_side_thread
from signoff.wiring.job import Job, RunOptions, job_of

BUILDING = 60.0
"""Timeout in seconds for building an agent. Most of it is imports."""


class JobBuilds:
    """Builds jobs in a thread, because imports may take seconds."""

    def __init__(self, built_late: Callable[[SavedRun], None]) -> None:
        """`built_late` is called with a run whose job came after the time limit: the next one will come in time."""
        self._built_late = built_late
        self._building = asyncio.Lock()
        self._hanging: dict[str, asyncio.Future[Job]] = {}
        """Builds that timed out, by agent, each with the future that still builds it."""

    async def built(self, run: SavedRun, options: RunOptions) -> Job:
        """Build the job of a run.

        After the timeout `BUILDING` a build is abandoned, so that others do not wait for it. Raises `CannotBeMade`.
        """
        agent = run.agent or run.name
        async with self._building:
            if (hanging := self._hanging.get(agent)) is not None and not hanging.done():
                raise CannotBeMade(_HANGS)
            making = in_side_thread(lambda: job_of(run, options))
            try:
                return await asyncio.wait_for(asyncio.shield(making), BUILDING)
            except TimeoutError:
                self._hanging[agent] = making
                making.add_done_callback(_close)
                making.add_done_callback(lambda made: self._built_late(run))
                raise CannotBeMade(_HANGS) from None
            except asyncio.CancelledError:
                making.add_done_callback(_close)
                raise


_HANGS = f"its agent could not be built within {BUILDING:g} s: an import hangs"


def _close(made: asyncio.Future[Job]) -> None:
    if not made.cancelled() and made.exception() is None:
        made.result().close()
