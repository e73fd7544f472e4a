"""Broadcast the events of a store to all listeners in this process.

One watcher reads each event of the audit log once and passes it to all. A client that reconnects with the number of the
last event it saw gets exactly what came after: missed events are read from the audit log, and the client joins the
broadcast only when it has all of them.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections import Counter, deque
from collections.abc import AsyncGenerator, Sequence
from contextlib import ExitStack, asynccontextmanager
from typing import Any, NamedTuple

from signoff.core.audit_text import title_of
from signoff.core.record import Entry
from signoff.core.safe_text import error_line, kept_text
from signoff.core.visible_text import visible
from signoff.errors import StoreError
from signoff.ports import Store, Transaction
from signoff.store_changes import changes

LONGEST_QUEUE = 512
"""Events queued for a client. A slower client is disconnected, and reconnects for the rest."""
MOST_LISTENERS = 1_000
MOST_EACH = 64
"""Listeners of one holder, so that nobody takes the capacity of all others."""
CROWDED = "too many clients are listening"
PAGE = 500
"""Events that are read at once."""
AGAIN = 1.0
"""Seconds until a retry, after a read that failed."""
TOO_SLOW = "too slow: reconnect with the number of the last event"
CHANGED = "changed"
"""The kind of an event in a store without an audit log: something about a request changed."""

_log = logging.getLogger("signoff.server")


class LiveEvent(NamedTuple):
    """An audit event, reduced to what a client needs to know what to reload; nothing secret."""

    seq: int
    kind: str
    request: str
    run: str
    at: str
    title: str
    """Title of the request, if it was just asked."""

    @property
    def data(self) -> dict[str, Any]:
        """The event as it is sent; empty fields are left out."""
        return {name: value for name, value in self._asdict().items() if value != ""}


class PresenceEvent(NamedTuple):
    """Who is looking at a request now. It is not in the audit log, and is sent only to current listeners."""

    request: str
    people: tuple[str, ...]


Told = LiveEvent | PresenceEvent


def live_event(entry: Entry) -> LiveEvent:
    """Convert an entry of the audit log."""
    title = kept_text(title_of(entry)) if entry.kind == "asked" else ""
    return LiveEvent(entry.seq, visible(entry.kind), visible(entry.request), visible(entry.run), entry.at, title)


class EventListener:
    """A listener that starts with the event after `after`."""

    def __init__(self, hub: LiveEvents, after: int) -> None:
        self.after = after
        """The last event that was read."""
        self.is_reset = False
        """Whether the event to resume after does not exist: the client has to reload everything."""
        self.ended = ""
        """Why no more events come; empty while they may."""
        self._hub = hub
        self._told: deque[Told] = deque()
        self._ready = asyncio.Event()

    async def read(self, timeout: float) -> Sequence[Told]:
        """Return new events as soon as there are any; empty after `timeout` seconds, or if it has `ended`."""
        if not self._hub.has_joined(self):
            if page := await self._hub.missed(self.after):
                self.after = page[-1].seq
                return page
            self._hub.join(self)
        if not self._told and not self.ended:
            try:
                async with asyncio.timeout(timeout):
                    await self._ready.wait()
            except TimeoutError:
                return ()
        self._ready.clear()
        told = list(self._told)
        self._told.clear()
        self.after = max((one.seq for one in told if isinstance(one, LiveEvent)), default=self.after)
        return told

    def put(self, told: Told) -> None:
        """Queue an event. A full queue ends the listener."""
        if self.ended or (isinstance(told, LiveEvent) and told.seq <= self.after):
            return
        if len(self._told) >= LONGEST_QUEUE:
            self._told.clear()  # the client reconnects for what it has not read
            self.end(TOO_SLOW)
            return
        self._told.append(told)
        self._ready.set()

    def end(self, why: str) -> None:
        """End the listener."""
        self.ended = self.ended or why
        self._ready.set()


class LiveEvents:
    """The only watcher of a store in this process. It watches while there are listeners."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._listeners: set[EventListener] = set()
        self._joined: set[EventListener] = set()
        self._held: Counter[str] = Counter()
        """Listeners by holder."""
        self._seq = 0
        """The last event that was broadcast."""
        self._starting = asyncio.Lock()
        self._watching: asyncio.Task[None] | None = None
        self._closed = ""

    def __len__(self) -> int:
        """The number of listeners."""
        return len(self._listeners)

    def is_full(self, holder: str = "") -> bool:
        """Whether the limit of listeners is reached, in total or for this holder."""
        return len(self._listeners) >= MOST_LISTENERS or self._held[holder] >= MOST_EACH

    @asynccontextmanager
    async def listening(self, after: int | None = None, holder: str = "") -> AsyncGenerator[EventListener]:
        """Listen within the block: after an event, or from now on. Over the limit, the listener has already ended."""
        listener = EventListener(self, 0)
        if holder and self.is_full(holder):
            listener.end(CROWDED)
        self._listeners.add(listener)
        if holder:
            self._held[holder] += 1
        try:
            async with self._starting:
                if self._watching is None:
                    await self._start()
            head = (await self._store.read(lambda tx: tx.record.head()))[0]
            listener.is_reset = after is not None and after > head
            listener.after = head if after is None or listener.is_reset else after
            if self._closed:
                listener.end(self._closed)
            yield listener
        finally:
            self._listeners.discard(listener)
            self._joined.discard(listener)
            self._held -= Counter([holder] if holder else [])
            if not self._listeners and self._watching is not None:
                self._watching.cancel()
                self._watching = None

    def has_joined(self, listener: EventListener) -> bool:
        return listener in self._joined

    def join(self, listener: EventListener) -> None:
        """Add a listener to the broadcast, when it has read everything that was broadcast so far."""
        self._joined.add(listener)

    async def missed(self, after: int) -> Sequence[LiveEvent]:
        """Return a page of events after `after` that were already broadcast."""
        if after >= self._seq:
            return ()
        if not self._store.keeps_record:
            return await self._store.read(lambda tx: _touched(tx, after))
        limit = min(PAGE, self._seq - after)
        entries = await self._store.read(lambda tx: tx.record.entries(after=after, limit=limit))
        return [live_event(one) for one in entries]

    def tell(self, told: PresenceEvent) -> None:
        """Send to everybody who listens now."""
        for listener in list(self._joined):
            listener.put(told)

    def close(self, why: str = "the server stops") -> None:
        """End all listeners, and accept no more."""
        self._closed = why
        for listener in list(self._listeners):
            listener.end(why)

    async def _start(self) -> None:
        with ExitStack() as stack:
            changed = stack.enter_context(changes(self._store.watch))
            self._seq = (await self._store.read(lambda tx: tx.record.head()))[0]
            watching = self._watch(changed, stack.pop_all())
        self._watching = asyncio.create_task(watching, name="live events")

    async def _watch(self, changed: asyncio.Event, stack: ExitStack) -> None:
        with stack:
            while True:
                await changed.wait()
                changed.clear()
                try:
                    await self._hand_over()
                except StoreError as error:
                    _log.warning("cannot read new events: %s", error_line(error))
                    await asyncio.sleep(AGAIN)
                    changed.set()

    async def _hand_over(self) -> None:
        """Read new events once, and pass them to all listeners."""
        while True:
            new = await self._store.read(self._new, own=False)
            for event in new:
                for listener in list(self._joined):
                    listener.put(event)
            if new:
                self._seq = new[-1].seq
            if len(new) < PAGE:
                return

    def _new(self, tx: Transaction) -> Sequence[LiveEvent]:
        if self._store.keeps_record:
            return [live_event(one) for one in tx.record.entries(after=self._seq, limit=PAGE)]
        return _touched(tx, self._seq)[: PAGE - 1]


def _touched(tx: Transaction, after: int) -> Sequence[LiveEvent]:
    """Return the requests that changed after an event, for a store whose log does not say what happened."""
    head, _ = tx.record.head()
    touched = tx.record.touched(after) if head > after else ()
    return [LiveEvent(head, CHANGED, visible(one), "", "", "") for one in touched]


def frame(told: Told) -> str:
    """Format a server-sent event. The id of an audit event is its number."""
    if isinstance(told, PresenceEvent):
        return named_frame("presence", told._asdict())
    return f"id: {told.seq}\ndata: {_json(told.data)}\n\n"


def named_frame(name: str, data: object, *, seq: int | None = None) -> str:
    """Format a server-sent event that is not in the audit log."""
    number = f"id: {seq}\n" if seq is not None else ""
    return f"{number}event: {name}\ndata: {_json(data)}\n\n"


def _json(data: object) -> str:
    return json.dumps(data, separators=(",", ":"))  # ASCII, so that nothing in it ends a line
