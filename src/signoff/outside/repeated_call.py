"""Recognise the same call when it is made again. An MCP client that retries has no id for its call but its content."""

from __future__ import annotations

from datetime import datetime, timedelta

from signoff.broker import Broker
from signoff.core.request import ApprovalRequest, State

HOLDS = timedelta(days=1)
"""Expiry of an answer that no call uses."""
_RAN = frozenset({State.CLAIMED, State.SUCCEEDED, State.FAILED})
_REFUSED = frozenset({State.DENIED, State.EXPIRED})


class RepeatedCalls:
    """Numbers calls with equal content, so that each answer is used for one of them.

    A call has the number of the last question about an equal call, until that was answered and the answer was used: an
    approval by a call that ran, a refusal by being told to the client.
    """

    def __init__(self) -> None:
        self._last: dict[str, int] = {}
        """By call: the highest number that is known to be on record."""
        self._told: dict[str, str] = {}
        """By call: the last request whose refusal was told. After a restart it is told once more, and nothing runs."""

    async def number(self, broker: Broker, key: str) -> int:
        """Return the number of the call with this key that is being made now."""
        last = await self._last_of(broker, key)
        request = await broker.about(numbered(key, last)) if last >= 0 else None
        if request is not None and request.state is State.CLAIMED:
            # The process that made that call may be gone. Then its outcome becomes unknown, and nobody is asked again.
            await broker.sweep()
            request = await broker.get(request.id)
        if request is None:
            return 0
        if _is_stale(request, now := broker.clock.now()):
            if request.state is State.APPROVED:
                await broker.cancel(request.id, "nobody made the call again for a day")
            return last + 1
        return last + 1 if self._is_over(request, key, now) else last

    def told(self, key: str, request_id: str) -> None:
        """Note that a refusal was told to the client."""
        self._told[key] = request_id

    def spent(self, key: str, number: int) -> None:
        """Note that the answer for a number was used by a concurrent call."""
        self._last[key] = max(number, self._last.get(key, -1))

    def _is_over(self, request: ApprovalRequest, key: str, now: datetime) -> bool:
        return request.state in _RAN or (request.state in _REFUSED and self._told.get(key) == request.id)

    async def _last_of(self, broker: Broker, key: str) -> int:
        """Return the highest number on record, -1 for none. Numbers have no gaps: exponential, then binary search."""
        low, leap = self._last.get(key, -1), 1
        while await broker.about(numbered(key, low + leap)) is not None:
            low, leap = low + leap, 2 * leap
        high = low + leap
        while high - low > 1:
            middle = (low + high) // 2
            if await broker.about(numbered(key, middle)) is not None:
                low = middle
            else:
                high = middle
        if low >= 0:  # most calls are never asked about: nothing is remembered for those
            self._last[key] = low
        return low


def numbered(key: str, number: int) -> str:
    """Return the key of the call with this number."""
    return f"{key}.{number}"


def _is_stale(request: ApprovalRequest, now: datetime) -> bool:
    """Return whether an answer has expired: it was given more than `HOLDS` ago and never used."""
    answered = request.decision is not None and request.state in (State.APPROVED, *_REFUSED)
    at = request.decision.at if request.decision is not None else None
    return answered and at is not None and now - at > HOLDS
