"""`approve --remember`: what an answer covers, spelled out before it is stored."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from signoff.cli.terminal_text import count, when
from signoff.core.grant import Grant
from signoff.core.terms import Budget, Scope
from signoff.core.visible_text import visible
from signoff.desk.operations import Remembering
from signoff.errors import WrongUse

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

    def remembering(self, at: datetime) -> Remembering:
        """What the options mean at a moment. Raises `WrongUse`."""
        return Remembering(
            which=self.which,
            scope=Scope(self.scope),
            until=when(self.until, at) if self.until is not None else None,
            uses=self.uses,
            budget=budget(self.budget) if self.budget is not None else None,
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
