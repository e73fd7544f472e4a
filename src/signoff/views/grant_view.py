"""Grants (remembered answers) as people and programs see them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from signoff.core.safe_text import kept_text, safe_text
from signoff.core.terms import Scope
from signoff.core.visible_text import visible
from signoff.policy.grant_text import grant_line
from signoff.views.json_form import View

if TYPE_CHECKING:
    from signoff.broker import Broker
    from signoff.core.grant import Grant


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetView(View):
    """A limit for the sum of an argument over all calls."""

    arg: str
    limit: str
    daily: bool
    spent: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GrantView(View):
    """A remembered answer."""

    id: str
    text: str
    """The whole grant in words."""
    tool: str
    toolset: str | None
    approved: bool
    scope: Scope
    where: str
    summary: str
    by: str
    at: datetime | None
    note: str
    until: datetime | None
    max_uses: int | None
    counted: bool
    """Whether its uses are counted."""
    used: int
    budget: BudgetView | None
    asleep: str
    """Why it is inactive; empty if it is active."""
    revoked_at: datetime | None
    revoked_by: str

    @classmethod
    def of(cls, grant: Grant, broker: Broker) -> GrantView:
        """A grant as it stands now."""
        now, budget = broker.clock.now(), grant.budget
        return cls(
            id=visible(grant.id),
            text=grant_line(grant),
            tool=safe_text(grant.tool),
            toolset=visible(grant.toolset) if grant.toolset is not None else None,
            approved=grant.approved,
            scope=grant.scope,
            where=visible(grant.where),
            summary=kept_text(grant.summary),
            by=visible(grant.by),
            at=grant.at,
            note=safe_text(grant.note),
            until=grant.until,
            max_uses=grant.max_uses,
            counted=grant.is_counted,
            used=grant.used,
            budget=BudgetView(
                arg=visible(budget.arg), limit=str(budget.limit), daily=budget.daily, spent=str(grant.spent_by(now))
            )
            if budget is not None
            else None,
            asleep=visible(broker.grants.why_silent(grant, now)),
            revoked_at=grant.revoked_at,
            revoked_by=visible(grant.revoked_by),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class GrantPage(View):
    """A page of grants, the oldest first."""

    grants: tuple[GrantView, ...]
    next: str | None
    """The `cursor` of the next page; null on the last page."""
