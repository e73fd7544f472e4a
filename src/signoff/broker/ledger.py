"""What every part of the broker uses: the store, the clock, the journal, and the identity of this process."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial
from typing import TypeVar

from signoff.broker.ids import new_id
from signoff.broker.journal import Journal
from signoff.broker.wall_clock import AgreedClock, SystemClock
from signoff.broker.weak_callback import register_weakly
from signoff.core.run import Process
from signoff.ports import Clock, Store, Transaction
from signoff.processes import BEAT, seen, this_process

T = TypeVar("T")


class Ledger:
    """A store as used by one process."""

    def __init__(self, store: Store, clock: Clock | None = None, journal: Journal | None = None) -> None:
        clock = clock or SystemClock()
        self.store = store
        self.clock: Clock = clock if store.clock_lead is None else AgreedClock(clock, store)
        self.journal = journal or Journal()
        self._process = this_process(new_id(), self.clock.now())
        self._beaten: datetime | None = None
        self._is_enlisted = False
        """Whether the store is known to list this process: a write is undone if its transaction is rolled back."""
        self.channels: set[str] = set()
        """The channels that this process runs."""
        self.in_hand: dict[str, object] = {}
        """Runs that this process executes, each with an object that identifies the attempt."""
        self._owner = store.owner if isinstance(store, SharedStore) else None
        """The owner of a shared store: both brokers count as one process."""
        if self._owner is not None:
            self.channels, self.in_hand = self._owner.channels, self._owner.in_hand
        elif store.is_durable:
            register_weakly(partial(store.remind, BEAT.total_seconds()), self.beat)

    def now(self) -> datetime:
        return self.clock.now()

    def set_forward(self, since: datetime) -> timedelta:
        """By how much the clock was set forward in this process after a moment. A server's clock counts as right."""
        return self.clock.set_forward(since) if isinstance(self.clock, SystemClock) else timedelta(0)

    def lend(self) -> SharedStore:
        """Return the store for another broker in this process."""
        return SharedStore(self._owner or self)

    async def write(self, name: str, work: Callable[[Transaction, datetime], T], *, synced: bool = True) -> T:
        """Run `work` in a transaction, with the time at which it runs."""
        # Read the clock inside: the store compares its clock with ours when a transaction begins.
        return await self.store.write(name, lambda tx: work(tx, self.clock.now()), synced=synced)

    async def read(self, work: Callable[[Transaction, datetime], T]) -> T:
        """Run `work` on a snapshot, with the time at which it runs."""
        return await self.store.read(lambda tx: work(tx, self.clock.now()))

    def later(self, name: str, work: Callable[[Transaction, datetime], object]) -> None:
        """As `write`, without waiting, with the current time."""
        now = self.clock.now()
        self.store.later(name, lambda tx: work(tx, now))

    # --- this process ---

    @property
    def process(self) -> Process:
        """This process."""
        return self._process if self._owner is None else self._owner.process

    def enlist(self, tx: Transaction, now: datetime) -> None:
        """Store a heartbeat of this process, so that others can tell whether its claims and runs are alive."""
        if self._owner is not None:
            self._owner.enlist(tx, now)
            return
        process = self.process
        if self._beaten is not None and now - self._beaten < BEAT:
            self._is_enlisted = self._is_enlisted or tx.processes.get(process.id) is not None
            if self._is_enlisted:
                return
        tx.processes.put(seen(process, now))
        self._beaten = now

    def beat(self) -> None:
        """Renew the heartbeat of this process, if it ever had one."""
        if self._beaten is not None:
            self.later("beat", lambda tx, now: tx.processes.put(seen(self.process, now)))


class SharedStore:
    """The store of a ledger, shared with another broker.

    Closing it does not close the store: queued writes still happen.
    A broker that uses it holds runs and claims in the name of the ledger's process. `close` only ends the watches that
    were started through it.
    """

    def __init__(self, owner: Ledger) -> None:
        self.owner = owner
        self._store = owner.store
        self._watched: list[Callable[[], None]] = []

    @property
    def is_durable(self) -> bool:
        return self._store.is_durable

    @property
    def keeps_record(self) -> bool:
        return self._store.keeps_record

    @property
    def clock_lead(self) -> timedelta | None:
        return self._store.clock_lead

    def remind(self, every: float, hook: Callable[[], None]) -> Callable[[], None]:
        return self._store.remind(every, hook)

    async def write(self, name: str, work: Callable[[Transaction], T], *, synced: bool = True) -> T:
        return await self._store.write(name, work, synced=synced)

    def later(self, name: str, work: Callable[[Transaction], object]) -> None:
        self._store.later(name, work)

    async def read(self, work: Callable[[Transaction], T], *, own: bool = True) -> T:
        return await self._store.read(work, own=own)

    def watch(self, tick: Callable[[], None]) -> Callable[[], None]:
        stop = self._store.watch(tick)
        self._watched.append(stop)
        return stop

    async def flush(self) -> None:
        await self._store.flush()

    def close(self) -> None:
        while self._watched:
            self._watched.pop()()
