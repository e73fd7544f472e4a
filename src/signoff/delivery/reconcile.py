"""The reconciler: keeps every channel showing what the store holds, for as long as it runs.

It compares what each channel shows with the store, and has the channel show the difference: a new question, an answer
given elsewhere, an outcome. So a restart, a missed event and an outage are all handled the same way.
"""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from time import perf_counter
from typing import Any

from signoff.broker.broker import Broker
from signoff.broker.deadlines import EVERY
from signoff.broker.wall_clock import pause_for
from signoff.core.event import RunMessage
from signoff.core.run import RunState
from signoff.core.subject import Subject
from signoff.delivery.attempt import Attempts
from signoff.delivery.batches import Batches
from signoff.delivery.delivery_status import tell_line, tell_result
from signoff.delivery.leases import give_back, take_lease
from signoff.delivery.outbox import Outbox
from signoff.delivery.plan import DeliveryPlan, Planner
from signoff.delivery.results import FinishedRuns
from signoff.delivery.routes import LONGEST_PAUSE, ActiveChannel, Route, active_channels
from signoff.errors import StoreError, WrongUse
from signoff.ports import Inbox, Transaction

SIDE_BY_SIDE = 8
"""Maximum concurrent trails for each channel."""
SETTLE = 0.02
"""Debounce: minimum seconds to collect changes before a look."""
SHARE = 5
"""Wait this many times the duration of the last look before the next, to leave time for other work."""


class Reconciler:
    """Runs channels over one store. Only one process at a time may run a channel (a lease)."""

    def __init__(self, broker: Broker, routes: Sequence[Route], *, inbox: Callable[[str], Inbox]) -> None:
        """`inbox` returns the inbox for a channel, by the channel's name."""
        if not routes:
            raise WrongUse("there is no channel to run")
        self._broker = broker
        self._inbox = inbox
        self._channels = active_channels(routes)
        batches = Batches()
        self._outbox = Outbox(broker.ledger, batches)
        self._planner = Planner(self._channels, batches)
        self._finished = FinishedRuns(tuple(self._channels))
        self._attempts = Attempts(broker.ledger, self._outbox)
        self._step = asyncio.Lock()
        self._tasks: set[asyncio.Task[int]] = set()
        self._news = asyncio.Event()
        self._raised: list[BaseException] = []
        self._done = 0
        """Number of attempts so far."""
        self._takes = 0.0
        """Duration of the last look in seconds."""
        self._turned_away = False
        """Whether a trail waits: the channel is at its concurrency limit, or the trail has an attempt in progress."""
        self._has_leases = self._takes_leases = False
        self._sweeps_at = broker.clock.now()
        self.in_hand: set[str] = set()
        """Runs that this process will report in more detail itself, so that their end is not announced separately."""

    async def say(
        self, run_id: str, worker: str, state: RunState, text: str, *, secrets: Sequence[str] = ()
    ) -> Sequence[str]:
        """Announce the result of a run; see `signoff.delivery.delivery_status.tell_result`."""
        return await tell_result(self._broker.ledger, run_id, worker, state, text, secrets=secrets)

    def tell_line(self, run_id: str, message: RunMessage) -> None:
        """Announce a line from a run's tool, soon; see `signoff.delivery.delivery_status.tell_line`."""
        tell_line(self._broker.ledger, run_id, message)

    async def run(self) -> None:
        """Deliver notices and sweep deadlines and reminders until cancelled. Store failures are retried with backoff.

        Raises `WrongUse` if another process runs one of the channels, or if no channel can be used at all.
        """
        clock, attempts = self._broker.clock, 0
        stop = self._broker.store.watch(self._ear())
        try:
            while True:
                self._news.clear()
                try:
                    moment = await self._once(sweep=False)
                    attempts = 0
                except StoreError as error:
                    attempts += 1
                    self._planner.start_over()
                    warnings.warn(f"the store failed, retrying: {error}", RuntimeWarning, stacklevel=2)
                    wait = timedelta(seconds=min(LONGEST_PAUSE, 2.0 ** min(attempts, 10)))
                    await pause_for(clock, wait)
                    continue
                await self._until(moment)
        finally:
            stop()
            await self.stop()

    async def round(self) -> None:
        """Do everything that can be done now, and return when it is done. Raises `StoreError` too."""
        while True:
            done = self._done
            try:
                await self._once(sweep=True)
                while self._tasks:
                    await asyncio.wait(self._tasks)
                if self._raised:
                    raise self._raised.pop(0)
            except StoreError:
                self._planner.start_over()
                raise
            if self._done == done:
                return

    async def stop(self) -> None:
        """Stop all channels. Deliveries in progress are cancelled; the next process that runs them resumes."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        try:
            if tasks:
                await asyncio.wait(tasks)
            # A channel that was tried may have started although that was not reported.
            used = [active for active in self._channels.values() if active.was_tried or active.down is not None]
            for active in self._channels.values():
                active.is_open = active.was_tried = False
            await asyncio.gather(*(self._attempts.close(active) for active in used))
        finally:  # also if the caller is cancelled: deliveries in progress may not write any more
            self._let_go()
        with suppress(StoreError):  # otherwise others will see that this process is gone
            await self._broker.store.flush()

    def _let_go(self) -> None:
        """Give back the leases that were taken."""
        if not self._takes_leases:
            return
        self._has_leases = self._takes_leases = False
        names = list(self._channels)
        self._broker.ledger.channels.difference_update(names)

        def work(tx: Transaction) -> None:
            for name in names:
                give_back(tx, self._broker.ledger, name)

        self._broker.store.later("stop", work)

    # --- one look ---

    async def _once(self, *, sweep: bool) -> datetime:
        """Start what is to be done now. Returns when to look again at the latest."""
        async with self._step:
            if self._raised:
                raise self._raised.pop(0)
            await self._take_leases()
            self._open_channels()
            now = self._broker.clock.now()
            if sweep or now >= self._sweeps_at:
                self._sweeps_at = now + EVERY
                await self._broker.sweep()
                await self._broker.signing.sign_if_due()
                await self._tell_endings()
            plan = await self._planned(now)
            self._turned_away = plan.waits_for_busy
            for (name, trail), subjects in plan.work.items():
                self._carry(self._channels[name], trail, subjects)
            if plan.due is not None:
                # At most once a second: something that stays due must not cause a busy loop.
                self._sweeps_at = min(self._sweeps_at, max(plan.due, now + timedelta(seconds=1)))
            return min(plan.moment or self._sweeps_at, self._sweeps_at)

    async def _planned(self, now: datetime) -> DeliveryPlan:
        """Return the plan, once finished deliveries were written."""
        while True:
            began = perf_counter()
            plan = await self._broker.store.read(lambda tx: self._planner.look(tx, now))
            self._takes = perf_counter() - began
            if not plan.retired:
                return plan

            def work(tx: Transaction, plan: DeliveryPlan = plan) -> None:
                for one in plan.retired:
                    self._outbox.retire(tx, one.channel, one.subject)

            await self._broker.store.write("retire", work, synced=False)

    async def _tell_endings(self) -> None:
        over = [one for one in await self._broker.store.read(self._finished.look) if one not in self.in_hand]
        if over:
            await self._broker.store.write("tell", lambda tx: self._finished.tell(tx, over))

    async def _take_leases(self) -> None:
        if self._has_leases:
            return
        broker, now = self._broker, self._broker.clock.now()
        for name in self._channels:
            if name in broker.ledger.channels:
                raise WrongUse(f"channel {name!r} is already run by this process")

        def work(tx: Transaction) -> None:
            for name, active in self._channels.items():
                lease = take_lease(tx, broker.ledger, name, now)
                # A channel that was down when the last process ended may still be, but can be tried at once.
                active.down = None if lease.down is None else replace(lease.down, due=None)

        broker.ledger.channels.update(self._channels)
        self._takes_leases = True
        try:
            await broker.store.write("run channels", work)
        except BaseException:  # also if the caller is cancelled: the lease may still be written
            self._let_go()
            raise
        self._has_leases = True
        self._finished.start_over()

    # --- concurrent work ---

    def _open_channels(self) -> None:
        now = self._broker.clock.now()
        wrong = [active.wrong for active in self._channels.values() if active.wrong is not None]
        if len(wrong) == len(self._channels):
            raise wrong[0]
        for active in self._channels.values():
            if not active.is_open and not active.opening and active.wrong is None and not active.rests(now):
                active.opening = True
                self._start(self._open(active))

    async def _open(self, active: ActiveChannel) -> int:
        try:
            await self._attempts.open(active, self._inbox(active.name))
        finally:
            active.opening, active.was_tried = False, True
        if active.wrong is not None and any(one.wrong is None for one in self._channels.values()):
            warnings.warn(f"channel {active.name!r} cannot be used: {active.wrong}", RuntimeWarning, stacklevel=2)
        return 1

    def _carry(self, active: ActiveChannel, trail: str, subjects: Sequence[Subject]) -> None:
        if len(active.busy) >= SIDE_BY_SIDE:
            self._turned_away = True
        elif trail not in active.busy:
            active.busy.add(trail)
            self._start(self._carried(active, trail, subjects))

    async def _carried(self, active: ActiveChannel, trail: str, subjects: Sequence[Subject]) -> int:
        try:
            tried = await self._attempts.carry(active, subjects)
            if not tried:  # the store differs from the plan
                self._planner.start_over()
            return tried
        finally:
            active.busy.discard(trail)
            self._finished.watch(trail)

    def _start(self, work: Coroutine[Any, Any, int]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[int]) -> None:
        self._tasks.discard(task)
        if task.cancelled():
            return
        if (error := task.exception()) is not None:
            self._raised.append(error)
        else:
            self._done += task.result()
        if error is not None or task.result():
            self._news.set()
        elif self._turned_away:  # not at once: it might be turned away again and again
            asyncio.get_running_loop().call_later(self._settles, self._news.set)

    # --- waiting ---

    def _ear(self) -> Callable[[], None]:
        """Return the callback that the store calls, from any thread, after a change."""
        loop, called = asyncio.get_running_loop(), [False]

        def hear() -> None:
            called[0] = False
            self._news.set()

        def tick() -> None:
            if not called[0] and not loop.is_closed():
                called[0] = True
                loop.call_soon_threadsafe(loop.call_later, self._settles, hear)

        return tick

    @property
    def _settles(self) -> float:
        """Seconds to wait before a look, for more changes."""
        return max(SETTLE, SHARE * self._takes)

    async def _until(self, moment: datetime) -> None:
        waits = [
            asyncio.ensure_future(self._news.wait()),
            asyncio.ensure_future(self._broker.clock.sleep_until(moment)),
        ]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for one in waits:
                one.cancel()
