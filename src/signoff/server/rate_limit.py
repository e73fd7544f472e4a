"""Rate limit for attempts: per address, and for failures of all addresses together."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from ipaddress import IPv6Address, ip_address
from math import ceil
from time import monotonic

_ALL = ""


class RateLimit:
    """Counts in memory. Every attempt counts for its address, also a successful one; a refused attempt does not.

    For all addresses together only failures count, and they delay only addresses that tried before: the first attempt
    from an address in a while is always allowed, whatever others do.
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
        """`each`: from one address; `together`: failures from all; `addresses`: how many are remembered at most.

        `seconds` is a monotonic clock, so that setting the wall clock back locks nobody out.
        """
        self._seconds = seconds
        self._per = per.total_seconds()
        self._each, self._together = self._per / each, self._per / together
        self._most = addresses
        self._full: dict[str, float] = {}
        """By address, when its whole allowance is available again: each attempt moves it on by its share."""

    def wait(self, address: str) -> int:
        """Seconds until another attempt from there is allowed; 0 if it is allowed now, and counted."""
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
        """Record a failed attempt."""
        self._full[_ALL] = self._after(_ALL, self._together, self._seconds())

    def _after(self, place: str, share: float, now: float) -> float:
        return max(self._full.get(place, now), now) + share

    def _forget(self, now: float) -> None:
        """Forget addresses without recent attempts; if that is not enough, those with the fewest."""
        everybody = self._full.pop(_ALL, now)
        kept = sorted(((full, place) for place, full in self._full.items() if full > now), reverse=True)
        self._full = {place: full for full, place in kept[: self._most // 2]}
        self._full[_ALL] = everybody


def _place(address: str) -> str:
    """The key of an address: for IPv6 the /64 network, because who has one address there has all of them."""
    try:
        found = ip_address(address.partition("%")[0])
    except ValueError:
        return address or "unknown"
    if isinstance(found, IPv6Address):
        return str(found.ipv4_mapped or IPv6Address(int(found) >> 64 << 64))
    return str(found)
