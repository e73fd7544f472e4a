"""Deliver notices to channels, in order within a trail, and record the outcome of each attempt."""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Callable, Coroutine, Sequence
from datetime import timedelta
from typing import Any, TypeVar

from signoff.broker.ledger import Ledger
from signoff.broker.wall_clock import pause_for
from signoff.core.lease import Outage
from signoff.core.notice import Reminder
from signoff.core.subject import Subject
from signoff.delivery.leases import put_down
from signoff.delivery.outbox import Attempt, NotShown, Outbox
from signoff.delivery.routes import LONGEST_PAUSE, ActiveChannel
from signoff.errors import ChannelFailed, StoreError, WrongUse
from signoff.ports import Channel, Inbox, Reminding, Transaction

T = TypeVar("T")
LIMIT = timedelta(seconds=60)
"""Timeout for a channel that does not answer."""
STOP_LIMIT = timedelta(seconds=10)
"""Timeout for a channel to stop."""


class Attempts:
    """Makes delivery attempts. Failures of a channel are recorded; only failures of the store are raised."""

    def __init__(self, ledger: Ledger, outbox: Outbox) -> None:
        self._ledger = ledger
        self._outbox = outbox

    async def open(self, active: ActiveChannel, inbox: Inbox) -> None:
        """Start a channel, and record it as down if that fails."""
        seen = active.failures
        try:
            await self._within_limit(active.route.channel.start(inbox))
        except ChannelFailed as failure:
            await self._persist(active, active.fell(failure, self._ledger.clock.now(), seen))
        except WrongUse as error:
            active.wrong = error
            failure = ChannelFailed(str(error), again=False, whole=True)
            await self._persist(active, active.fell(failure, self._ledger.clock.now(), seen))
        except Exception as error:
            failure = failure_of(error, whole=True)
            await self._persist(active, active.fell(failure, self._ledger.clock.now(), seen))
        else:
            active.is_open, active.down = True, None
            await self._persist(active, None)

    async def close(self, active: ActiveChannel) -> None:
        """Stop a channel. If it does not stop within the timeout, it is abandoned with a warning."""
        clock = self._ledger.clock
        doing = asyncio.ensure_future(_stopped(active))
        limit = asyncio.ensure_future(pause_for(clock, STOP_LIMIT))
        try:
            await asyncio.wait((doing, limit), return_when=asyncio.FIRST_COMPLETED)
        finally:
            limit.cancel()
            if not doing.done():
                doing.cancel()
                doing.add_done_callback(lambda task: task.cancelled() or task.exception())
        if doing.cancelled():
            problem = "its own code cancelled it"
        elif not doing.done():
            problem = f"it did not end within {STOP_LIMIT.total_seconds():.0f} seconds"
        elif (error := doing.exception()) is not None:
            problem = repr(error)
        else:
            return
        warnings.warn(f"channel {active.name!r} did not stop: {problem}", RuntimeWarning, stacklevel=2)

    async def carry(self, active: ActiveChannel, subjects: Sequence[Subject]) -> int:
        """Show notices in order until one fails that others must wait for. Returns how many were tried."""
        tried = 0
        for subject in subjects:
            now, seen = self._ledger.clock.now(), active.failures
            if active.rests(now):
                break
            attempt = await self._ledger.store.write(
                "show", lambda tx, subject=subject, now=now: self._outbox.begin(tx, active, subject, now), synced=False
            )
            if attempt is None:
                continue
            tried += 1
            if not await self._try(active, attempt, seen):
                break
        return tried

    async def _try(self, active: ActiveChannel, attempt: Attempt, seen: int) -> bool:
        """Show one notice. Returns whether the next ones may follow."""
        known = True
        try:
            at = await self._within_limit(_shown_by(active.route.channel, attempt))
            if not isinstance(at, str):  # pyright: ignore[reportUnnecessaryIsInstance]  # it is somebody's code
                raise TypeError(f"show() returned {type(at).__name__}; it must return the place of the notice, as text")
        except ChannelFailed as error:
            failure, known = error, not isinstance(error, _NoAnswer)
        except Exception as error:
            failure, known = failure_of(error), False
        else:
            await self._shown(active, attempt, at, seen)
            return True
        now = self._ledger.clock.now()
        down = active.fell(failure, now, seen) if failure.whole else active.down

        def work(tx: Transaction) -> NotShown:
            if failure.whole:
                put_down(tx, self._ledger, active.name, down)
            return self._outbox.failed(tx, active, attempt, failure, now, known=known)

        left = await self._insist("not shown", work)
        if left.given_up:
            told = f"channel {active.name!r} could not show the result of run {attempt.notice.trail}"
            warnings.warn(f"{told}; giving up after a day: {failure}", RuntimeWarning, stacklevel=2)
        return not (left.holds or failure.whole)

    async def _shown(self, active: ActiveChannel, attempt: Attempt, at: str, seen: int) -> None:
        clock = self._ledger.clock
        down = active.worked(seen)

        def work(tx: Transaction) -> None:
            if down is None:
                put_down(tx, self._ledger, active.name, None)
            # Now, not when it was shown: nobody can answer while the store fails.
            self._outbox.shown(tx, active, attempt, at, clock.now())

        await self._insist("shown", work)

    async def _persist(self, active: ActiveChannel, down: Outage | None) -> None:
        await self._insist("channel", lambda tx: put_down(tx, self._ledger, active.name, down))

    async def _insist(self, name: str, work: Callable[[Transaction], T]) -> T:
        """Record what happened in the channel. It cannot be undone, so retry with backoff until the store works."""
        clock, attempts = self._ledger.clock, 0
        while True:
            try:
                return await self._ledger.store.write(name, work)
            except StoreError as error:
                attempts += 1
                warnings.warn(f"the store failed, retrying: {error}", RuntimeWarning, stacklevel=2)
                await pause_for(clock, timedelta(seconds=min(LONGEST_PAUSE, 2.0 ** min(attempts, 10))))

    async def _within_limit(self, work: Coroutine[Any, Any, T]) -> T:
        """Await a channel's coroutine with a timeout. It is cancelled when the timeout passes, which is a failure."""
        clock = self._ledger.clock
        doing = asyncio.ensure_future(work)
        limit = asyncio.ensure_future(pause_for(clock, LIMIT))
        try:
            await asyncio.wait((doing, limit), return_when=asyncio.FIRST_COMPLETED)
            if doing.cancelled():  # not by us: the channel cancelled its own task
                raise _NoAnswer("its own code cancelled it")
            if doing.done():
                return doing.result()
        finally:
            limit.cancel()
            if not doing.done():
                doing.cancel()
                await asyncio.wait((doing,))
            if not doing.cancelled():
                doing.exception()  # retrieved, so that asyncio does not log it
        if not doing.cancelled() and doing.exception() is None:  # it finished at the last moment
            return doing.result()
        raise _NoAnswer(f"it did not answer within {LIMIT.total_seconds():.0f} seconds")


class _NoAnswer(ChannelFailed):
    """The outcome is unknown: the channel timed out or was cancelled."""


def _shown_by(channel: Channel, attempt: Attempt) -> Coroutine[Any, Any, str]:
    if not isinstance(attempt.notice, Reminder):
        return channel.show(attempt.notice, attempt.place, attempt.beside)
    assert isinstance(channel, Reminding), "only such a channel is handed one"
    return channel.remind(attempt.notice, attempt.beside, attempt.place)


async def _stopped(active: ActiveChannel) -> None:
    await active.route.channel.stop()


def failure_of(error: Exception, *, whole: bool = False) -> ChannelFailed:
    """Turn an exception from a channel into a `ChannelFailed`. An unexpected exception counts as a bug of the channel.

    A `StoreError` from the inbox is not the channel's fault and is retried soon. `whole`: the whole channel is down.
    """
    if isinstance(error, ChannelFailed):
        return error
    if isinstance(error, StoreError):
        return ChannelFailed(f"the store failed: {error}", whole=whole)
    return ChannelFailed(f"the channel is broken: {type(error).__name__}: {error}", again=False, whole=whole)
