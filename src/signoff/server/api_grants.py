"""API endpoints for grants (remembered answers)."""

from __future__ import annotations

from pydantic import Field

from signoff.core.access import Permission
from signoff.core.grant import Grant
from signoff.core.safe_text import safe_text
from signoff.desk.operations import revoke
from signoff.errors import UnknownRequest
from signoff.server.endpoint import ApiModel, Endpoint, Nothing, Visit
from signoff.server.problem import ProblemRaised
from signoff.views.grant_view import GrantPage, GrantView


class GrantQuery(ApiModel):
    """Which grants."""

    revoked: bool = Field(default=False, description="Include revoked grants.")
    limit: int = Field(default=200, ge=1, le=1_000)
    cursor: str = Field(default="", max_length=200, description="`next` of the previous page.")


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
    return GrantPage(grants=tuple(GrantView.of(one, broker) for one in page), next=more)


async def show_grant(visit: Visit[Nothing, Nothing]) -> GrantView:
    return GrantView.of(await _found(visit), visit.state.broker)


async def revoke_grant(visit: Visit[Nothing, Nothing]) -> GrantView:
    broker = visit.state.broker
    _, revoked = await revoke(broker, (await _found(visit)).id, visit.identity.acting)
    return GrantView.of(revoked, broker)


async def _found(visit: Visit[Nothing, Nothing]) -> Grant:
    try:
        return await visit.state.broker.grants.get(visit.path["grant_id"])
    except UnknownRequest as error:
        raise ProblemRaised(404, "unknown-grant", safe_text(str(error))) from error


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
        method="GET",
        path="/grants/{grant_id}",
        name="show_grant",
        about="Get a grant. The beginning of the id is enough.",
        permission=Permission.READ,
        handle=show_grant,
        returns=GrantView,
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
