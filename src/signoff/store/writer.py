"""The writer thread of a store, which batches work into transactions (group commit).

Everything that arrives while a commit syncs goes into the next transaction, so one fsync serves all of it.
"""

from __future__ import annotations

import threading
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from time import monotonic
from typing import TYPE_CHECKING, Any, TypeAlias

from signoff.errors import StoreError
from signoff.store.transaction import Transaction

if TYPE_CHECKING:
    import asyncio

Work: TypeAlias = Callable[[Transaction], Any]

SOON = 0.02
"""Seconds that deferred work (`later`) is held back so that it can share a transaction with a write."""
MOST = 256
"""Most pieces of work in one transaction. With more, other processes would wait too long for the lock."""
MOST_KEPT = 10_000
"""Most pieces of deferred work that are kept while the store fails."""
AGAIN = 1.0
"""Seconds until kept work is retried, if nothing else is written before."""


@dataclass(frozen=True, slots=True)
class WriteResult:
    """The result of one piece of work: a value or an error."""

    value: Any = None
    error: BaseException | None = None


@dataclass(frozen=True, slots=True)
class Batch:
    """The result of one transaction. `changed` is false if nothing was written."""

    outcomes: Sequence[WriteResult]
    changed: bool = True


Transact: TypeAlias = Callable[[Sequence[Work], bool], Batch]
"""Does pieces of work in one transaction, undoes each one alone if it raises, and returns once the commit is durable.

If the second argument is false, the commit must be visible but need not be synced to disk.
"""


class NeedsSavepoints(Exception):
    """A piece of a batch failed in a way that only savepoints can undo: do the batch again with savepoints."""


@dataclass(slots=True, eq=False)
class _Piece:
    name: str
    work: Work | None
    """None: only wait until earlier work is durable."""
    loop: asyncio.AbstractEventLoop | None = None
    future: asyncio.Future[Any] | None = None
    synced: bool = True
    is_told: bool = False
    """Whether a warning was given that it failed and will be retried."""


class Writer:
    """Queues work and does it in batches in a thread of its own. Thread-safe, and usable from any event loop."""

    def __init__(
        self,
        transact: Transact,
        *,
        committed: Callable[[], None] | None = None,
        leave: Callable[[], None] | None = None,
        soon: float = SOON,
        again: float = AGAIN,
    ) -> None:
        self._transact = transact
        self._committed = committed
        self._leave = leave
        self._soon = soon
        self._again = again
        self.commits = 0
        """How many transactions were made durable."""
        self.every = 0.0
        self._idle: Callable[[], None] | None = None
        self._idle_at = self._idle_every = 0.0
        self._queue: SimpleQueue[_Piece | None] = SimpleQueue()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._closed = False
        self._untried = 0
        """Deferred pieces of work that were not in any transaction yet."""
        self._unwritten = 0
        """Those, and the ones that are kept because the store failed."""
        self._kept: list[_Piece] = []

    @property
    def idle(self) -> Callable[[], None] | None:
        """A hook that the writer thread calls about every `every` seconds, once something has been written."""
        return self._idle

    @idle.setter
    def idle(self, hook: Callable[[], None] | None) -> None:
        if self._idle is None or self.every != self._idle_every:  # else whoever comes often would put it off for ever
            self._idle_at, self._idle_every = monotonic() + self.every, self.every
        self._idle = hook
        if self._thread is not None and not self._closed:
            self._queue.put(_Piece("look at the hook", None))

    @property
    def is_closed(self) -> bool:
        return self._closed

    @property
    def is_behind(self) -> bool:
        """Whether there is deferred work that was not tried yet."""
        return self._untried > 0

    async def write(self, name: str, work: Work, *, synced: bool = True) -> Any:
        import asyncio

        return await self._wait(_Piece(name, work, asyncio.get_running_loop(), synced=synced))

    async def flush(self) -> None:
        """Wait until all earlier work is durable. Raises if it cannot be written."""
        if self._unwritten:
            import asyncio

            await self._wait(_Piece("flush", None, asyncio.get_running_loop()))

    async def _wait(self, piece: _Piece) -> Any:
        assert piece.loop is not None
        piece.future = piece.loop.create_future()
        self._put(piece)
        return await piece.future

    def later(self, name: str, work: Work) -> None:
        self._put(_Piece(name, work))

    def _put(self, piece: _Piece) -> None:
        with self._lock:
            self.refuse_if_closed()
            if piece.future is None:
                self._untried += 1
                self._unwritten += 1
            self._queue.put(piece)
            if self._thread is None:
                self._thread = threading.Thread(target=self._main, name="signoff store", daemon=True)
                self._thread.start()

    def refuse_if_closed(self) -> None:
        if self._closed:
            raise StoreError("the store is closed; open it again")

    def close(self) -> None:
        """Write what is left and end the thread."""
        with self._lock:
            thread, already = self._thread, self._closed
            self._closed = True
            if not already:
                self._queue.put(None)
        if thread is not None and thread is not threading.current_thread():
            thread.join()

    # in the thread

    def _main(self) -> None:
        try:
            while (pieces := self._gathered()) is not None:
                if pieces:
                    self._write(pieces)
                del pieces  # while it waits for more, it must not hold what the work holds
                self._rest()
            if self._kept:
                self._write([])
            if self._kept:
                warn(f"deferred writes were lost, because the store was closed: {_named(self._kept)}")
        finally:
            if self._leave is not None:
                self._leave()

    def _gathered(self) -> list[_Piece] | None:
        """Wait for work and return the next batch.

        The batch is empty when only the idle hook is due. Returns None when the writer is closed.
        """
        try:
            first = self._queue.get(timeout=self._patience())
        except Empty:
            return [_Piece("try again", None)] if self._kept else []
        if first is None:
            return None
        pieces = [first]
        until = monotonic() + self._soon
        while len(pieces) < MOST:
            try:
                if pieces[-1].future is not None:  # a caller waits: take what is queued and start
                    until = 0
                wait = until - monotonic()
                piece = self._queue.get(timeout=wait) if wait > 0 else self._queue.get_nowait()
            except Empty:
                break
            if piece is None:
                self._queue.put(None)  # close after this batch
                break
            pieces.append(piece)
        return pieces

    def _patience(self) -> float | None:
        limits = [self._again] if self._kept else []
        if self._idle is not None:
            limits.append(max(0.0, self._idle_at - monotonic()))
        return min(limits) if limits else None

    def _rest(self) -> None:
        if self._idle is not None and monotonic() >= self._idle_at:
            self._idle_at = monotonic() + self.every
            try:
                self._idle()
            except Exception as error:
                warn(f"work that runs while the store is idle failed: {error!r}")

    def _write(self, pieces: list[_Piece]) -> None:
        fresh = sum(piece.future is None and piece.work is not None for piece in pieces)
        before = fresh + len(self._kept)
        pieces, self._kept = self._kept + pieces, []
        # Work is dropped if its caller was cancelled before it began.
        works = [piece for piece in pieces if piece.work and not (piece.future and piece.future.cancelled())]
        answers: list[tuple[_Piece, WriteResult]] = []
        synced = any(piece.synced for piece in works)
        try:
            todo = [piece.work for piece in works if piece.work]
            batch = self._transact(todo, synced) if todo else Batch((), changed=False)
        except BaseException as error:
            answers = [(piece, WriteResult(error=error)) for piece in pieces]
            self._keep([piece for piece in works if piece.future is None], error)
        else:
            self.commits += batch.changed and synced
            answers = list(zip(works, batch.outcomes, strict=True))
            answers += [(piece, WriteResult()) for piece in pieces if piece.work is None]
            for piece, outcome in answers:
                if piece.future is None and outcome.error is not None:
                    warn(f"{piece.name!r} was not written: {outcome.error!r}")
            if batch.changed and self._committed is not None:
                self._committed()
        with self._lock:
            self._untried -= fresh
            self._unwritten -= before - len(self._kept)
        _tell(answers)

    def _keep(self, pieces: list[_Piece], error: BaseException) -> None:
        """Keep deferred work for a retry: a failing store may recover, and no event of the audit log may be lost."""
        if not pieces:
            return
        self._kept = pieces[:MOST_KEPT]
        if lost := pieces[MOST_KEPT:]:
            warn(f"deferred writes were lost, because too many are waiting: {_named(lost)}: {error}")
        if fresh := [piece for piece in self._kept if not piece.is_told]:
            warn(f"deferred writes failed and will be retried: {_named(fresh)}: {error}")
        for piece in fresh:
            piece.is_told = True


def _named(pieces: Sequence[_Piece]) -> str:
    counts = Counter(piece.name for piece in pieces)
    return ", ".join(f"{count} x {name!r}" for name, count in counts.items())


def _tell(answers: Sequence[tuple[_Piece, WriteResult]]) -> None:
    """Resolve the futures of waiting callers, with one wake-up for each event loop."""
    by_loop: dict[asyncio.AbstractEventLoop, list[tuple[asyncio.Future[Any], WriteResult]]] = {}
    for piece, outcome in answers:
        if piece.loop is not None and piece.future is not None:
            by_loop.setdefault(piece.loop, []).append((piece.future, outcome))
    for loop, told in by_loop.items():
        try:
            loop.call_soon_threadsafe(_resolve, told)
        except RuntimeError:  # the event loop is closed, so nobody waits any longer
            continue


def _resolve(told: Sequence[tuple[asyncio.Future[Any], WriteResult]]) -> None:
    for future, outcome in told:
        if future.done():
            continue
        if outcome.error is None:
            future.set_result(outcome.value)
        elif isinstance(outcome.error, StopIteration):  # a future cannot hold it
            future.set_exception(RuntimeError(f"the work raised {outcome.error!r}"))
        else:
            future.set_exception(outcome.error)


def warn(text: str) -> None:
    """Issue a warning from a thread whose exceptions no caller sees."""
    try:
        warnings.warn(f"signoff store: {text}", RuntimeWarning, stacklevel=2)
    except RuntimeWarning as warning:  # with warnings turned into errors, this thread must still go on
        threading.excepthook(threading.ExceptHookArgs((RuntimeWarning, warning, None, threading.current_thread())))
