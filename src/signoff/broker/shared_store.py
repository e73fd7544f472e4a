"""An open store that several brokers of one process use, as one and the same process."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING, TypeVar

from signoff.ports import Transaction

if TYPE_CHECKING:
    from signoff.broker.ledger import Ledger

T = TypeVar("T")


class SharedStore:
    """The store of a ledger, lent to another broker: what it leaves for later is written although it closes this.

    Whoever gets it holds runs and claims in the name of the ledger's process. To close it ends what was watched through
    it, and nothing else.
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

    def remind(self, every: float, hook: Callable[[], None]) -> None:
        self._store.remind(every, hook)

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
