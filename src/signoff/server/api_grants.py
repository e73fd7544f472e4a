"""API endpoints for grants (remembered answers)."""

from __future__ import annotations

from datetime import datetime

from pydantic import Field

from signoff.broker import Broker
from signoff.core.access import Permission
from signoff.core.grant import Grant
from signoff.core.safe_text import kept_text, safe_text
from signoff.core.terms import Scope
from signoff.core.visible_text import visible
from signoff.desk.operations import revoke
from signoff.errors import UnknownRequest
from signoff.policy.grant_text import grant_line
from signoff.server.endpoint import ApiModel, Endpoint, Nothing, Visit
from signoff.server.problem import ProblemRaised


class GrantQuery(ApiModel):
    """Which grants."""

    revoked: bool = Field(default=False, description="Include revoked grants.")
    limit: int = Field(default=200, ge=1, le=1_000)
    cursor: str = Field(default="", max_length=200, description="`next` of the previous page.")


class BudgetView(ApiModel):
    """A limit for the sum of an argument over all calls."""

    arg: str
    limit: str
    daily: bool
    spent: str


class GrantView(ApiModel):
    """A remembered answer."""

    id: str
    text: str = Field(description="The whole grant in words.")
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
    used: int
    budget: BudgetView | None
    asleep: str = Field(description="Why it is inactive; empty if it is active.")
    revoked_at: datetime | None
    revoked_by: str


class GrantPage(ApiModel):
    """A page of grants, the oldest first."""

    grants: list[GrantView]
    next: str | None


async def list_grants(visit: Visit[GrantQuery, Nothing]) -> GrantPage:
    broker, query = visit.state.broker, visit.query
    grants = list(await broker.grants.list(revoked=query.revoked))
    if query.cursor:
        at = next((at for at, one in enumerate(grants) if one.id == query.cursor), None)
        if at is None:
            raise ProblemRaised(422, "bad-cursor", "invalid cursor: start with the first page")
        grants = grants[at + 1 :]
    page = grants[: query.limit]
    more = page[-1].id if len(grants) > query.limit else None
    return GrantPage(grants=[_view(broker, one) for one in page], next=more)


async def revoke_grant(visit: Visit[Nothing, Nothing]) -> GrantView:
    broker = visit.state.broker
    try:
        grant = await broker.grants.get(visit.path["grant_id"])
    except UnknownRequest as error:
        raise ProblemRaised(404, "unknown-grant", safe_text(str(error))) from error
    _, revoked = await revoke(broker, grant.id, visit.identity.acting)
    return _view(broker, revoked)


def _view(broker: Broker, grant: Grant) -> GrantView:
    now, budget = broker.clock.now(), grant.budget
    spent = str(grant.spent_by(now))
    return GrantView(
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
        used=grant.used,
        budget=BudgetView(arg=visible(budget.arg), limit=str(budget.limit), daily=budget.daily, spent=spent)
        if budget is not None
        else None,
        asleep=visible(broker.grants.why_silent(grant, now)),
        revoked_at=grant.revoked_at,
        revoked_by=visible(grant.revoked_by),
    )


ENDPOINTS = (
    Endpoint(
        method="GET",
        path="/grants",
        name="list_grants",
        about="List grants (remembered answers), the oldest first.",
        permission=Permission.READ,
        handle=list_grants,
        query=GrantQuery,
        returns=GrantPage,
        tag="grants",
    ),
    Endpoint(
        method="POST",
        path="/grants/{grant_id}/revoke",
        name="revoke_grant",
        about="Revoke a grant: signoff asks again about what it covered. Only the person who gave it, somebody with "
        "its role, or an admin can revoke a denial. The beginning of the id is enough.",
        permission=Permission.ANSWER,
        handle=revoke_grant,
        returns=GrantView,
        tag="grants",
    ),
)
