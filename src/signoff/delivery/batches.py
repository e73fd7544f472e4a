"""Batches: requests of one trail that were opened at the same moment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from signoff.broker.requests import readable
from signoff.core.delivery import NEVER, Delivery
from signoff.core.notice import trail_of
from signoff.core.request import ApprovalRequest, State
from signoff.ports import Transaction


class Batches:
    """Finds and caches which requests were asked together, in order. That does not change once they were asked."""

    def __init__(self) -> None:
        self._known: dict[str, dict[datetime | None, tuple[str, ...]]] = {}
        """By trail and moment."""

    def of(self, tx: Transaction, request: ApprovalRequest) -> tuple[str, ...]:
        """Return the ids of the requests asked together with this one, including its own."""
        trail = trail_of(request)
        found = self._known.get(trail, {}).get(request.opened_at)
        if found is None:
            found = (request.id,)
            if request.run:
                found = tuple(tx.requests.opened_at(request.opened_at, run=request.run))
            elif request.call is not None and request.call.conversation_id:
                ids = tx.requests.opened_at(request.opened_at, conversation_id=request.call.conversation_id)
                found = tuple(one for one in ids if one == request.id or _is_of(tx, one, trail))
            self._known.setdefault(trail, {})[request.opened_at] = found
        return found

    def forget(self, trail: str) -> None:
        """Drop a trail from the cache: a request was added, or none is left."""
        self._known.pop(trail, None)

    def forget_all(self) -> None:
        self._known.clear()


def _is_of(tx: Transaction, request_id: str, trail: str) -> bool:
    """Whether a request of a conversation has this trail. One that belongs to a run does not."""
    request = readable(tx, request_id)
    return request is not None and trail_of(request) == trail


def all_shown(requests: Sequence[ApprovalRequest], there: Mapping[str, Delivery | None]) -> bool:
    """Whether each pending request is shown in a channel; `there` are the channel's deliveries, by request."""
    waiting = [there.get(one.id) for one in requests if one.state is State.PENDING]
    return all(one is not None and one.shown != NEVER for one in waiting)
