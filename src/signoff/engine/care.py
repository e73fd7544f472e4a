"""`RunCare`: which runs one way of resuming looks after, what executes them, and who hears of it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Protocol

from signoff.broker import Broker
from signoff.broker.run_status import RunStatus
from signoff.core.run import SavedRun
from signoff.engine.fair_order import ready_since

if TYPE_CHECKING:
    from signoff.engine.segment_end import SegmentEnd
    from signoff.workers.runtime import Finished

AT_ONCE = 16
"""Maximum of concurrent runs. A tool that hangs occupies one of these places as long as it hangs."""
SERVED = "signoff serve"
"""The entry in a run's places if `signoff serve` started or resumed it. No channel can have this name."""


class Executor(Protocol):
    """Executes one segment of a run: an agent behind its gate, in this process or in another one."""

    @property
    def secrets(self) -> Iterable[str]:
        """Texts that are masked in what people are told."""
        ...

    async def resume(self, run: SavedRun) -> Finished | None:
        """Take the run, execute it until it ends or waits, and put it down. None: only the store knows how that went.

        Raises `RunTaken`, `RunOver`, `Halted`, `WaitsElsewhere`, and whatever the agent raises.
        """
        ...

    async def flush(self) -> None:
        """Wait until everything that the run left to be written is in the store."""
        ...

    def close(self) -> None: ...


class RunCare(ABC):
    """Which runs are looked after in one way of resuming, what executes them, and who hears of it.

    There is one subclass for each way: a server, channels, a program's bot, a program's loop, a terminal.
    """

    def __init__(self, broker: Broker, names: Collection[str] = (), *, at_once: int = AT_ONCE) -> None:
        """`names`: channels, and other places of runs: runs that were begun or asked about there belong here."""
        self.broker = broker
        self.names = frozenset(names)
        self.at_once = at_once

    def only(self, run: SavedRun) -> bool:
        """Return whether the run may be resumed here at all. False: something else resumes it."""
        return True

    def looks_after(self, run: SavedRun) -> bool:
        """Return whether the run is resumed here once it is answered, wherever it was begun and people were asked."""
        return False

    def began(self, run: SavedRun) -> bool:
        """Return whether the run was begun in one of these places, or resumed for one: somebody there waits for it."""
        return not self.names.isdisjoint(run.places)

    def takes(self, status: RunStatus) -> bool:
        """Return whether a run that is looked after, waits for nobody and has no new answer is resumed all the same."""
        return False

    def looked(self, going: Sequence[SavedRun], over: Sequence[SavedRun]) -> None:  # noqa: B027 - most need not
        """Hear of a look, before any run is chosen: the runs with news that are going, and those that are over."""

    def order(self, found: Sequence[RunStatus], busy: Collection[str]) -> Sequence[RunStatus]:
        """Sort the runs that can be resumed: the first ones go first. `busy` are the ids of those in progress."""
        return sorted(found, key=ready_since)

    async def is_hindered(self, status: RunStatus) -> bool:
        """Return whether the run cannot be resumed here. Tells people so."""
        return False

    @abstractmethod
    async def executor(self, run: SavedRun) -> Executor:
        """Return what executes the run. Raises if its agent cannot be built."""

    @abstractmethod
    async def ended(self, run: SavedRun, end: SegmentEnd, *, again: bool) -> None:
        """Hear what a segment came to. `again`: the one before came to the same, with the same words."""

    @abstractmethod
    def trouble(self, error: Exception, run_id: str = "") -> None:
        """Hear that the runs could not be looked at, or that `ended` failed about one. It is tried again."""
