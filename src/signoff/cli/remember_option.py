"""`approve --remember`: what an answer covers, spelled out before it is stored."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from signoff.cli.terminal_text import count, when
from signoff.core.grant import Grant
from signoff.core.offer import Offer, offer_called, offers
from signoff.core.request import ApprovalRequest
from signoff.core.terms import Budget, Scope, Terms
from signoff.core.visible_text import visible
from signoff.errors import RequestError, WrongUse

_BUDGET = re.compile(r"(?P<arg>\S+)[\s=]+(?P<limit>[0-9]{1,15}(?:\.[0-9]{1,9})?)\s*(?P<daily>/\s*day|a day|per day)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class RememberOptions:
    """The options as they were typed."""

    which: str
    """`exact`, a number from `signoff show`, or the name of the argument to widen."""
    scope: str = "project"
    until: str | None = None
    uses: int | None = None
    budget: str | None = None

    def terms(self, request: ApprovalRequest, at: datetime) -> Terms:
        """The terms of the grant. Raises if the request does not offer them."""
        return Terms(
            scope=Scope(self.scope),
            pattern=self._offer(request).pattern,
            until=when(self.until, at) if self.until is not None else None,
            max_uses=self.uses,
            budget=budget(self.budget) if self.budget is not None else None,
        )

    def _offer(self, request: ApprovalRequest) -> Offer:
        offered = offers(request)
        if not offered:
            raise RequestError(
                f"the answer to request {request.id} cannot be remembered: "
                "its rule requires several people or excludes somebody, or it is in doubt"
            )
        if (offer := offer_called(request, self.which)) is not None:
            return offer
        there = ", ".join(f"{number} ({visible(offer.name)})" for number, offer in enumerate(offered, 1))
        raise WrongUse(
            f"request {request.id} offers no --remember {visible(self.which)}; it offers {there}\n"
            f"  signoff show {request.id} spells them out"
        )


def budget(text: str) -> Budget:
    """Parse a budget: `amount 200/day` per day, `amount 200` in total."""
    found = _BUDGET.fullmatch(text.strip())
    if found is None or not Decimal(found["limit"]):
        raise WrongUse(f"--budget {visible(text)} is not a budget\n  write --budget 'amount 200/day', or 'amount 200'")
    return Budget(arg=found["arg"], limit=Decimal(found["limit"]), daily=found["daily"] is not None)


def uses_text(grant: Grant) -> str:
    """How often a grant was used, and its limit."""
    if grant.max_uses is None:
        return count(grant.used, "use") if grant.is_counted else "unlimited uses"
    return f"{grant.used} of {count(grant.max_uses, 'use')}"
