"""How often somebody may try: so many times in a while from one address, and to fail so many times altogether."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from ipaddress import IPv6Address, ip_address
from math import ceil
from time import monotonic

_ALL = ""


class RateLimit:
    """Counts in memory. Every try counts for its address, also a good one; one that is refused does not.

    For all together only failures count, and they hold up only addresses that tried before: whoever comes for the first
    time in a while is let try, whatever others do.
    """

    def __init__(
        self,
        *,
        seconds: Callable[[], float] = monotonic,
        each: int = 20,
        together: int = 300,
        per: timedelta = timedelta(minutes=1),
        addresses: int = 10_000,
    ) -> None:
        """`each`: from one address; `together`: failures from all; `addresses`: how many are kept in mind at most.

        `seconds` go on steadily: a clock that is set back keeps nobody out.
        """
        self._seconds = seconds
        self._per = per.total_seconds()
        self._each, self._together = self._per / each, self._per / together
        self._most = addresses
        self._full: dict[str, float] = {}
        """By address, when as much is free again as there is: each try moves it on by its share."""

    def wait(self, address: str) -> int:
        """Seconds until there may be another try from there; 0: now, and this is one."""
        now, place = self._seconds(), _place(address)
        is_first = self._full.get(place, now) <= now
        mine, all_of_us = self._after(place, self._each, now), self._after(_ALL, self._together, now)
        late = (mine if is_first else max(mine, all_of_us)) - now - self._per
        if late > 0:
            return ceil(late)
        if len(self._full) >= self._most:
            self._forget(now)
        self._full[place] = mine
        return 0

    def failed(self) -> None:
        """Note that a try came to nothing."""
        self._full[_ALL] = self._after(_ALL, self._together, self._seconds())

    def _after(self, place: str, share: float, now: float) -> float:
        return max(self._full.get(place, now), now) + share

    def _forget(self, now: float) -> None:
        """Let go of those who did nothing of late; where that does not help, of those who did least."""
        everybody = self._full.pop(_ALL, now)
        kept = sorted(((full, place) for place, full in self._full.items() if full > now), reverse=True)
        self._full = {place: full for full, place in kept[: self._most // 2]}
        self._full[_ALL] = everybody


def _place(address: str) -> str:
    """What counts as one: of IPv6 the network, for whoever has one address there has all of them."""
    try:
        found = ip_address(address.partition("%")[0])
    except ValueError:
        return address or "unknown"
    if isinstance(found, IPv6Address):
        return str(found.ipv4_mapped or IPv6Address(int(found) >> 64 << 64))
    return str(found)
