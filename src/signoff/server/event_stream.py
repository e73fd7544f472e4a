"""What happens in a store, told to everybody who listens in this process.

One watcher reads each event of the record once, and hands it to all. Whoever comes back with the number of the last
event they saw gets exactly what came after it: what they missed is read from the record, and only from the moment on
at which they have all of it do they listen with the others.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections import Counter, deque
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

from signoff.core.event_text import title_of
from signoff.core.record import Entry
from signoff.core.safe_text import kept_text
from signoff.core.visible_text import visible
from signoff.errors import StoreError
from signoff.ports import Store, Transaction

LONGEST_QUEUE = 512
"""Events that wait for a client. One that is slower is sent away, and comes back for the rest."""
MOST_LISTENERS = 1_000
MOST_EACH = 64
"""Listeners of one holder: nobody takes the place of all others."""
CROWDED = "too many clients are listening"
PAGE = 500
"""Events that are read at once."""
AGAIN = 1.0
"""Seconds until another look, after one that failed."""
TOO_SLOW = "too slow: reconnect with the number of the last event"
CHANGED = "changed"
"""The kind of an event of a store that keeps no record: something about a request did."""

_log = logging.getLogger("signoff.server")


class LiveEvent(NamedTuple):
    """An event of the record: as much of it as a client needs to know what to look at again, and nothing secret."""

    seq: int
    kind: str
    request: str
    run: str
    at: str
    title: str
    """Of the request, where it was asked just now."""

    @property
    def data(self) -> dict[str, Any]:
        """As it is sent; what is empty is left out."""
        return {name: value for name, value in self._asdict().items() if value != ""}


class PresenceEvent(NamedTuple):
    """Who looks at a request now. It is not on the record, and is told once."""

    request: str
    people: tuple[str, ...]


Told = LiveEvent | PresenceEvent


def live_event(entry: Entry) -> LiveEvent:
    """An entry of the record, as it is told."""
    title = kept_text(title_of(entry)) if entry.kind == "asked" else ""
    return LiveEvent(entry.seq, visible(entry.kind), visible(entry.request), visible(entry.run), entry.at, title)


class EventListener:
    """Somebody who listens, from the event after `after` on."""

    def __init__(self, hub: LiveEvents, after: int) -> None:
        self.after = after
        """The last event that was read."""
        self.is_reset = False
        """Whether there is no event of the number they came with: they have to begin anew."""
        self.ended = ""
        """Why nothing more comes; empty while something may."""
        self._hub = hub
        self._told: deque[Told] = deque()
        self._ready = asyncio.Event()

    async def read(self, timeout: float) -> Sequence[Told]:
        """What came, as soon as anything does; empty where nothing came in so many seconds, or has `ended`."""
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
        """Hand something over."""
        if self.ended or (isinstance(told, LiveEvent) and told.seq <= self.after):
            return
        if len(self._told) >= LONGEST_QUEUE:
            self._told.clear()  # it comes back for what it has not read
            self.end(TOO_SLOW)
            return
        self._told.append(told)
        self._ready.set()

    def end(self, why: str) -> None:
        """Let nothing more come."""
        self.ended = self.ended or why
        self._ready.set()


class LiveEvents:
    """The one watcher of a store in this process. It watches while anybody listens."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._listeners: set[EventListener] = set()
        self._joined: set[EventListener] = set()
        self._held: Counter[str] = Counter()
        """How many listen for each holder."""
        self._seq = 0
        """The last event that was handed over."""
        self._starting = asyncio.Lock()
        self._watching: asyncio.Task[None] | None = None
        self._closed = ""

    def __len__(self) -> int:
        """How many listen."""
        return len(self._listeners)

    def is_full(self, holder: str = "") -> bool:
        """Whether nobody else may listen, or no other client of this holder."""
        return len(self._listeners) >= MOST_LISTENERS or self._held[holder] >= MOST_EACH

    @asynccontextmanager
    async def listening(self, after: int | None = None, holder: str = "") -> AsyncGenerator[EventListener]:
        """Within, somebody listens: after an event, or from now on. Where too many do, nothing comes."""
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
        """Have somebody listen with the others, who has read all that was handed over so far."""
        self._joined.add(listener)

    async def missed(self, after: int) -> Sequence[LiveEvent]:
        """A page of what was handed over after an event, to those who listened."""
        if after >= self._seq:
            return ()
        if not self._store.keeps_record:
            return await self._store.read(lambda tx: _touched(tx, after))
        limit = min(PAGE, self._seq - after)
        entries = await self._store.read(lambda tx: tx.record.entries(after=after, limit=limit))
        return [live_event(one) for one in entries]

    def tell(self, told: PresenceEvent) -> None:
        """Tell everybody who listens now."""
        for listener in list(self._joined):
            listener.put(told)

    def close(self, why: str = "the server stops") -> None:
        """Send everybody away, and let nobody listen any longer."""
        self._closed = why
        for listener in list(self._listeners):
            listener.end(why)

    async def _start(self) -> None:
        loop, changed = asyncio.get_running_loop(), asyncio.Event()

        def tick() -> None:
            if not loop.is_closed():
                loop.call_soon_threadsafe(changed.set)

        stop = self._store.watch(tick)
        try:
            self._seq = (await self._store.read(lambda tx: tx.record.head()))[0]
        except BaseException:
            stop()
            raise
        self._watching = asyncio.create_task(self._watch(changed, stop), name="live events")

    async def _watch(self, changed: asyncio.Event, stop: Callable[[], None]) -> None:
        try:
            while True:
                await changed.wait()
                changed.clear()
                try:
                    await self._hand_over()
                except StoreError as error:
                    _log.warning("cannot read new events: %s", visible(str(error)))
                    await asyncio.sleep(AGAIN)
                    changed.set()
        finally:
            stop()

    async def _hand_over(self) -> None:
        """Read what is new, once, and hand it to everybody."""
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
    """Which requests something happened to after an event, where the record does not say what."""
    head, _ = tx.record.head()
    touched = tx.record.touched(after) if head > after else ()
    return [LiveEvent(head, CHANGED, visible(one), "", "", "") for one in touched]


def frame(told: Told) -> str:
    """Something that happened, as a server-sent event. The number of an event on the record is its id."""
    if isinstance(told, PresenceEvent):
        return named_frame("presence", told._asdict())
    return f"id: {told.seq}\ndata: {_json(told.data)}\n\n"


def named_frame(name: str, data: object, *, seq: int | None = None) -> str:
    """An event that is not on the record."""
    number = f"id: {seq}\n" if seq is not None else ""
    return f"{number}event: {name}\ndata: {_json(data)}\n\n"


def _json(data: object) -> str:
    return json.dumps(data, separators=(",", ":"))  # in ASCII: nothing in it ends a line
