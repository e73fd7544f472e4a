"""Shows in every channel what there is to show, for as long as it runs.

It compares what stands in each channel with what the store holds, and has the channel show whatever differs: a new
question, an answer given elsewhere, an outcome. So a restart, a missed event and an outage all take the same path.
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
"""Trails that one channel is busy with at once."""
SETTLE = 0.02
"""Seconds in which news gathers before a look, at least."""
SHARE = 5
"""In how many times what a look takes there is one, at most, so that thousands that wait leave room for the rest."""


class Reconciler:
    """Runs channels over one store. Only one process at a time may run a channel."""

    def __init__(self, broker: Broker, routes: Sequence[Route], *, inbox: Callable[[str], Inbox]) -> None:
        """`inbox` returns the inbox of a channel by the channel's name."""
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
        """Counts what was tried."""
        self._takes = 0.0
        """Seconds that a look takes."""
        self._turned_away = False
        """Whether a trail waits for another one to be done."""
        self._has_leases = self._takes_leases = False
        self._sweeps_at = broker.clock.now()
        self.in_hand: set[str] = set()
        """Runs that this process is about to say more of: their end is not told without that."""

    async def say(
        self, run_id: str, worker: str, state: RunState, text: str, *, secrets: Sequence[str] = ()
    ) -> Sequence[str]:
        """Show the result of a run to people; see `signoff.delivery.delivery_status.tell_result`."""
        return await tell_result(self._broker.ledger, run_id, worker, state, text, secrets=secrets)

    def tell_line(self, run_id: str, message: RunMessage) -> None:
        """Show a line of a run's tool to people, soon; see `signoff.delivery.delivery_status.tell_line`."""
        tell_line(self._broker.ledger, run_id, message)

    async def run(self) -> None:
        """Deliver all notices and check deadlines, until cancelled.

        Raises `WrongUse` if another process runs one of the channels, or if no channel can be used.
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
        """Do everything that can be done now, then return. Also raises `StoreError`."""
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
        """Stop all channels. Attempts in progress are given up; the next process that runs them finds them again."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        try:
            if tasks:
                await asyncio.wait(tasks)
            # One that was tried may have started, although nobody has heard of it any more.
            used = [active for active in self._channels.values() if active.was_tried or active.down is not None]
            for active in self._channels.values():
                active.is_open = active.was_tried = False
            await asyncio.gather(*(self._attempts.close(active) for active in used))
        finally:  # also where whoever waits for this is stopped: what is on its way is not allowed to write any more
            self._let_go()
        with suppress(StoreError):  # otherwise it is found that the process is gone
            await self._broker.store.flush()

    def _let_go(self) -> None:
        """Give back the channels, as far as they were taken."""
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
        """Start whatever is to be done now; when to look again at the latest."""
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
            self._turned_away = False
            for (name, trail), subjects in plan.work.items():
                self._carry(self._channels[name], trail, subjects)
            if plan.due is not None:
                # At most once a second: what is due and does not change must not keep everybody busy.
                self._sweeps_at = min(self._sweeps_at, max(plan.due, now + timedelta(seconds=1)))
            return min(plan.moment or self._sweeps_at, self._sweeps_at)

    async def _planned(self, now: datetime) -> DeliveryPlan:
        """What is to be done, once everything is handed over that has to be."""
        while True:
            began = perf_counter()
            plan = await self._broker.store.read(lambda tx: self._planner.look(tx, now))
            self._takes = perf_counter() - began
            if not plan.given_up and not plan.retired:
                return plan

            def work(tx: Transaction, plan: DeliveryPlan = plan) -> int:
                for one in plan.retired:
                    self._outbox.retire(tx, one.channel, one.subject)
                given_up = [(self._channels[one.channel], one.subject) for one in plan.given_up]
                return sum(self._outbox.give_up(tx, active, subject, now) for active, subject in given_up)

            done = await self._broker.store.write("give up", work, synced=False)
            if not done and not plan.retired:
                return plan

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
                lease = take_lease(tx, broker.ledger, name, active.route.backup_for, now)
                # What was down when the last process ended is not known to be up, but may be tried at once.
                active.down = None if lease.down is None else replace(lease.down, due=None)

        broker.ledger.channels.update(self._channels)
        self._takes_leases = True
        try:
            await broker.store.write("run channels", work)
        except BaseException:  # also where whoever waits for this is stopped, and it may yet be written
            self._let_go()
            raise
        self._has_leases = True
        self._finished.start_over()

    # --- what happens side by side ---

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
            if not tried:  # the store holds something else than what was planned with
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
        if self._turned_away or error is not None or task.result():
            self._news.set()

    # --- waiting ---

    def _ear(self) -> Callable[[], None]:
        """What the store calls, from any thread, when something changed."""
        loop, called = asyncio.get_running_loop(), [False]

        def hear() -> None:
            called[0] = False
            self._news.set()

        def tick() -> None:
            if not called[0] and not loop.is_closed():
                called[0] = True
                loop.call_soon_threadsafe(loop.call_later, max(SETTLE, SHARE * self._takes), hear)

        return tick

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
