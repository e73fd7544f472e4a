"""What can go wrong between the bot and Discord, on demand: limits, outages, answers that are held or never come.

A route is named as `"POST /channels/*/messages"`: the method, then the path without `/api/v10`; `*` is anything.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

from tests.discord.service.world import Json


@dataclass
class Fault:
    """An answer given instead of the real one, so many times."""

    route: str
    times: int
    status: int
    body: Json
    headers: dict[str, str]


class Hold:
    """Requests of a route wait here until they are released."""

    def __init__(self, route: str, loop: asyncio.AbstractEventLoop, *, after: bool) -> None:
        self.route = route
        self.after = after
        self.waiting = 0
        self._loop = loop
        self._arrived = asyncio.Event()
        self._open = asyncio.Event()

    async def wait(self) -> None:
        self.waiting += 1
        self._arrived.set()
        await self._open.wait()

    async def reached(self, timeout: float = 20) -> None:
        """Returns when a request has come as far as this."""
        waited = asyncio.run_coroutine_threadsafe(asyncio.wait_for(self._arrived.wait(), timeout), self._loop)
        await asyncio.wrap_future(waited)

    def release(self) -> None:
        """Let them go on, and whoever comes later."""
        self._loop.call_soon_threadsafe(self._open.set)


@dataclass
class Bucket:
    """A real rate limit: so many requests in so many seconds, for each channel, guild or webhook."""

    route: str
    limit: int
    per: float
    taken: dict[str, tuple[float, int]] = field(default_factory=dict[str, tuple[float, int]])

    def take(self, major: str, now: float) -> tuple[int, float]:
        """How many are left after this one (-1: none was left for it), and when it begins anew, in seconds."""
        began, used = self.taken.get(major, (now, 0))
        if now - began >= self.per:
            began, used = now, 0
        used += 1
        self.taken[major] = (began, min(used, self.limit))
        return self.limit - used, max(0.0, began + self.per - now)


class Faults:
    """The faults that are switched on now. Its methods may be called from any thread."""

    def __init__(self, loop: Callable[[], asyncio.AbstractEventLoop]) -> None:
        self._loop = loop
        self.faults: list[Fault] = []
        self.holds: list[Hold] = []
        self.kills: list[list[Any]] = []
        self.buckets: list[Bucket] = []
        self.is_out = False

    def limit(
        self, route: str, times: int = 1, retry_after: float = 0.05, *, everywhere: bool = False, shared: bool = False
    ) -> None:
        """The next requests get a 429; `everywhere`: the limit of the whole bot, "global" in Discord's words."""
        scope = "global" if everywhere else "shared" if shared else "user"
        headers = {
            "Retry-After": str(max(1, round(retry_after))),
            "X-RateLimit-Scope": scope,
            "Via": "1.1 google",
        }
        if everywhere:
            headers["X-RateLimit-Global"] = "true"
        else:
            headers |= {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset-After": f"{retry_after:.3f}"}
        body = {"message": "You are being rate limited.", "retry_after": retry_after, "global": everywhere}
        self.faults.append(Fault(route, times, 429, body, headers))

    def bucket(self, route: str, limit: int, per: float) -> None:
        """A real limit on a route, kept from now on. Counted in real seconds, because the client sleeps in them."""
        self.buckets.append(Bucket(route, limit, per))

    def fail(self, route: str, status: int = 500, times: int = 1, code: int = 0, message: str = "") -> None:
        """The next requests fail, and nothing is done."""
        text = message or f"{status}: Internal Server Error"
        self.faults.append(Fault(route, times, status, {"message": text, "code": code}, {}))

    def hold(self, route: str, *, after: bool = False) -> Hold:
        """Requests wait until `release()`: before anything is done, or `after` it and before the answer."""
        made = Hold(route, self._loop(), after=after)
        self.holds.append(made)
        return made

    def kill_response(self, route: str, times: int = 1) -> None:
        """The next requests are carried out, but the connection breaks before the answer."""
        self.kills.append([route, times])

    def clear(self) -> None:
        """No fault is left on; what is held goes on."""
        self.faults.clear()
        self.kills.clear()
        self.buckets.clear()
        for hold in self.holds:
            hold.release()
        self.holds.clear()
        self.is_out = False

    # For the server

    def due(self, route: str) -> Fault | None:
        for fault in self.faults:
            if fault.times > 0 and fnmatchcase(route, fault.route):
                fault.times -= 1
                return fault
        return None

    def is_killed(self, route: str) -> bool:
        for kill in self.kills:
            if kill[1] > 0 and fnmatchcase(route, kill[0]):
                kill[1] -= 1
                return True
        return False

    async def held(self, route: str, *, after: bool) -> None:
        for hold in list(self.holds):
            if hold.after == after and fnmatchcase(route, hold.route):
                await hold.wait()

    def bucket_of(self, route: str) -> Bucket | None:
        return next((bucket for bucket in self.buckets if fnmatchcase(route, bucket.route)), None)
