"""Where a process dies: every point it passes has a name, and at one of them it kills itself with SIGKILL.

Nothing in signoff knows of this. The store is one that delegates; the judge, the observer, the approver, the model and
the tools are the test's own; SQL statements are counted where Python hands them to SQLite, or on their way to
PostgreSQL.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sqlite3
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from signoff.core.request import ApprovalRequest
from signoff.ports import Store, Transaction

T = TypeVar("T")

PATIENCE = 30
"""Seconds that a process waits for its own writes before it dies."""
BEFORE, WITHIN, AFTER = "before", "in the transaction", "committed"
"""A write: not begun; all of it done and not committed; durable, and whoever wrote it does not know yet."""


class Log:
    """What a process did and was promised, one JSON object a line. Whatever kills the process, its lines stay."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def add(self, **fact: Any) -> None:
        handle = os.open(self.path, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600)
        os.write(handle, f"{json.dumps(fact)}\n".encode())
        os.close(handle)

    def facts(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.path.read_text("utf-8").splitlines()] if self.path.exists() else []


class Faults:
    """The points one process passes."""

    def __init__(self, log: Log, process: str, die_at: str = "") -> None:
        self.log = log
        self._process = process
        self._die_at = die_at
        self._counts: Counter[str] = Counter()

    def point(self, name: str) -> str:
        """The name of this point, also where it is passed for the second time."""
        self._counts[name] += 1
        again = self._counts[name]
        return name if again == 1 else f"{name} ({again})"

    def at(self, name: str) -> None:
        """The process passes a point."""
        self.reached(self.point(name))

    def reached(self, point: str) -> None:
        if point == self._die_at:
            self.die(point)
        self.passed(point)

    def passed(self, point: str) -> None:
        self.log.add(point=point, process=self._process)

    def is_due(self, point: str) -> bool:
        return point == self._die_at

    def die(self, point: str) -> NoReturn:
        self.log.add(killed=point, process=self._process)
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError("nobody outlives that")


class FaultyStore:
    """A store that dies at its writes, and notes what it was promised.

    What nobody waits for goes to the real store with the next write, as late as it may: a process that dies leaves the
    same behind each time. With `lazy=False` it goes there at once, to be written when the store sees fit.
    """

    is_durable = True
    keeps_record = True

    def __init__(self, store: Store, faults: Faults, *, lazy: bool = True) -> None:
        self._store = store
        self._faults = faults
        self._lazy = lazy
        self._held: list[tuple[str, Callable[[Transaction], object]]] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def write(self, name: str, work: Callable[[Transaction], T], **options: Any) -> T:
        before, within, after = self._points(name)
        self._faults.reached(before)
        self._hand_over()
        try:
            value = await self._store.write(name, self._dying(work, within), **options)
        except asyncio.CancelledError:  # the run saw the answer, and goes on before whoever gave it hears of it
            if self._faults.is_due(after):
                self._die_when_written(after)
            raise
        self._faults.passed(within)
        self._faults.log.add(promised=name, requests=_told(value))
        self._faults.reached(after)
        return value

    def later(self, name: str, work: Callable[[Transaction], object]) -> None:
        before, within, after = self._points(name)
        self._faults.reached(before)
        self._held.append((name, self._dying(work, within)))
        is_last = self._faults.is_due(within) or self._faults.is_due(after)
        if is_last or not self._lazy:
            self._hand_over()
        if is_last:
            # Nobody waits for it, so whoever is to die of it waits here, with everything else standing still.
            self._die_when_written(after)
        self._faults.passed(within)
        self._faults.passed(after)

    def _die_when_written(self, point: str) -> NoReturn:
        waiting = threading.Thread(target=lambda: asyncio.run(self._store.flush()))
        waiting.start()
        waiting.join(PATIENCE)
        assert not waiting.is_alive(), f"after {PATIENCE} s it is not written, and the process was to die after that"
        self._faults.die(point)

    def _points(self, name: str) -> tuple[str, str, str]:
        point = self._faults.point(f"{name}:")
        again = point.removeprefix(f"{name}:")
        return tuple(f"{name}{again}: {when}" for when in (BEFORE, WITHIN, AFTER))  # type: ignore[return-value]

    def _dying(self, work: Callable[[Transaction], T], point: str) -> Callable[[Transaction], T]:
        def all_but_committed(tx: Transaction) -> T:
            value = work(tx)
            if self._faults.is_due(point):
                self._faults.die(point)
            return value

        return all_but_committed

    def _hand_over(self) -> None:
        held, self._held = self._held, []
        for name, work in held:
            self._store.later(name, work)

    async def read(self, work: Callable[[Transaction], T], *, own: bool = True) -> T:
        if own:
            self._hand_over()
        return await self._store.read(work, own=own)

    async def flush(self) -> None:
        self._hand_over()
        await self._store.flush()

    def close(self) -> None:
        self._hand_over()
        self._store.close()


def _told(value: object) -> list[dict[str, Any]]:
    """The requests that a write came back with: from here on somebody counts on them."""
    found: Sequence[object] = value if isinstance(value, list) else [value]
    return [
        {
            "id": one.id,
            "run": one.run,
            "state": str(one.state),
            "votes": [[vote.by.name, vote.decision.approved, vote.args_digest] for vote in one.votes],
        }
        for one in found
        if isinstance(one, ApprovalRequest)
    ]


def count_statements(faults: Faults, die_at: int, *, reads: bool) -> Callable[[], int]:
    """From here on, die before the SQL statement of that number; returns how many there were so far.

    Before one that only reads, the database is as it was after the one before: those count only where it is said. What
    looks for the changes of others, again and again, is never counted.
    """
    connect, count, lock = sqlite3.connect, 0, threading.Lock()

    def executed(statement: str) -> None:
        nonlocal count
        if "data_version" in statement or not (reads or is_change(statement)):
            return
        with lock:
            count += 1
            if count == die_at:
                faults.die(f"statement {count}: {' '.join(statement.split())[:60]}")

    def traced(*args: Any, **options: Any) -> sqlite3.Connection:
        connection = connect(*args, **options)
        connection.set_trace_callback(executed)
        return connection

    sqlite3.connect = traced
    return lambda: count


def is_change(statement: str) -> bool:
    """Whether a statement is part of a change, its beginning and its end among them."""
    words = statement.lower().split()
    if words[:1] == ["begin"]:
        return "immediate" in words or "committed" in words  # how writers begin, here and there
    if words[:1] == ["select"]:
        return words[-2:] == ["for", "update"]
    return words[:1] not in ([], ["pragma"], ["rollback"], ["--"], ["listen"], ["set"], ["show"])
