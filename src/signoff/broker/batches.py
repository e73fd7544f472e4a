"""Calls that were asked at once: those of one trail that were opened in the same instant."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from signoff.core.delivery import NEVER, Delivery
from signoff.core.notice import trail_of
from signoff.core.request import ApprovalRequest, State
from signoff.ports import Transaction


class Batches:
    """Which requests were asked at once, in order. Kept in mind: it does not change once they were asked."""

    def __init__(self) -> None:
        self._known: dict[str, dict[datetime | None, tuple[str, ...]]] = {}
        """By trail and moment."""

    def of(self, tx: Transaction, request: ApprovalRequest) -> tuple[str, ...]:
        """Ids of those that were asked together with this one, which is among them."""
        trail = trail_of(request)
        found = self._known.get(trail, {}).get(request.opened_at)
        if found is None:
            among: Sequence[ApprovalRequest] = [request]
            if request.run:
                among = tx.requests_of(run=request.run)
            elif request.call is not None and request.call.conversation_id:
                among = tx.requests_of(conversation_id=request.call.conversation_id)
            moments: dict[datetime | None, tuple[str, ...]] = {}
            for one in among:
                if trail_of(one) == trail:
                    moments[one.opened_at] = (*moments.get(one.opened_at, ()), one.id)
            self._known[trail] = moments
            found = moments[request.opened_at]
        return found

    def forget(self, trail: str) -> None:
        """One more was asked, or nobody asks any longer."""
        self._known.pop(trail, None)

    def forget_all(self) -> None:
        self._known.clear()


def all_shown(requests: Sequence[ApprovalRequest], there: Mapping[str, Delivery | None]) -> bool:
    """Whether each of them that is pending stands in a channel; `there` are its deliveries, by request."""
    waiting = [there.get(one.id) for one in requests if one.state is State.PENDING]
    return all(one is not None and one.shown != NEVER for one in waiting)
