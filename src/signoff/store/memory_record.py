"""The audit log of a store in memory: the whole hash chain, or only what waiting callers need."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import islice, takewhile

from signoff.core.record import START, Entry, EventDraft, linked
from signoff.store.memory_changes import Changes

TOUCHED = 4_096
"""How many of the last events are remembered when the audit log is not kept."""


class EventCount:
    """Replaces the audit log: only the number of events, and which requests the last ones were about."""

    def __init__(self) -> None:
        self._count = 0
        self._last: deque[tuple[int, str]] = deque()
        self._forgotten = 0

    def append(self, drafts: Sequence[EventDraft]) -> bool:
        """Count events. Returns whether watchers need to be told."""
        before = len(self._last)
        for draft in drafts:
            self._count += 1
            if draft.request:
                self._last.append((self._count, draft.request))
        return len(self._last) > before

    def cut(self, count: int) -> None:
        self._count = count
        while self._last and self._last[-1][0] > count:
            self._last.pop()

    def trim(self) -> None:
        while len(self._last) > TOUCHED:
            self._forgotten, _ = self._last.popleft()

    def head(self) -> tuple[int, str]:
        return self._count, START

    def entries(self, after: int) -> Sequence[Entry]:
        return ()

    def touched(self, after: int) -> Iterable[str] | None:
        """The requests of the events after a number; None if those are forgotten."""
        if after < self._forgotten:
            return None
        newest_first = takewhile(lambda step: step[0] > after, reversed(self._last))
        return reversed([request for _, request in newest_first])


class MemoryChain:
    """The audit log as a list of hash-chained events."""

    def __init__(self) -> None:
        self._entries: list[Entry] = []

    def append(self, drafts: Sequence[EventDraft]) -> bool:
        for draft in drafts:
            seq, link = self.head()
            self._entries.append(linked(draft, seq + 1, link))
        return bool(drafts)

    def cut(self, count: int) -> None:
        del self._entries[count:]

    def trim(self) -> None: ...

    def head(self) -> tuple[int, str]:
        return (self._entries[-1].seq, self._entries[-1].hash) if self._entries else (0, START)

    def entries(self, after: int) -> Sequence[Entry]:
        return self._entries[max(after, 0) :]

    def touched(self, after: int) -> Iterable[str] | None:
        return (entry.request for entry in self.entries(after) if entry.request)


class MemoryRecord:
    """See `signoff.ports.Record`."""

    def __init__(
        self, changes: Changes, record: EventCount | MemoryChain, requests: Callable[[], Iterable[str]]
    ) -> None:
        """`requests` returns the ids of all requests."""
        self._changes = changes
        self._record = record
        self._requests = requests

    def append(self, drafts: Sequence[EventDraft]) -> None:
        self._changes.quietly(partial(self._record.cut, self._record.head()[0]))
        self._changes.is_news |= self._record.append(drafts)

    def head(self) -> tuple[int, str]:
        return self._record.head()

    def entries(self, *, after: int = 0, limit: int | None = None, request: str = "", run: str = "") -> Sequence[Entry]:
        found = (
            entry
            for entry in self._record.entries(after)
            if (not request or entry.request == request) and (not run or entry.run == run)
        )
        return list(islice(found, limit))

    def touched(self, after: int) -> Sequence[str]:
        touched = self._record.touched(after)
        return list(self._requests() if touched is None else dict.fromkeys(touched))
