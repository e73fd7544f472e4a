"""Grants as data: the output of `signoff grants --json`, and what its text output is made from."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from signoff.core.moment import iso
from signoff.core.safe_text import safe_text
from signoff.policy.grant_text import grant_line
from signoff.reports.request_sheet import TOLD

if TYPE_CHECKING:
    from signoff.broker import Broker
    from signoff.core.grant import Grant


async def grants_report(broker: Broker, *, everything: bool) -> dict[str, Any]:
    """Return all grants, oldest first; with `everything`, revoked ones too."""
    return {"grants": [grant_data(broker, one) for one in await broker.grants.list(revoked=everything)]}


async def grant_report(broker: Broker, prefix: str) -> dict[str, Any]:
    """Return the grant whose id begins with `prefix`. Raises `UnknownRequest`."""
    return grant_data(broker, await broker.grants.get(prefix))


def grant_data(broker: Broker, grant: Grant) -> dict[str, Any]:
    """Return a grant as JSON data."""
    budget, now = grant.budget, datetime.now(UTC)
    return {
        "id": grant.id,
        "text": grant_line(grant),
        "tool": grant.tool,
        "toolset": grant.toolset,
        "approved": grant.approved,
        "scope": str(grant.scope),
        "where": grant.where or None,
        "summary": grant.summary,
        "by": grant.by or None,
        "at": iso(grant.at),
        "note": safe_text(grant.note) or None,
        "until": iso(grant.until),
        "max_uses": grant.max_uses,
        "used": grant.used,
        "budget": {"arg": budget.arg, "limit": str(budget.limit), "daily": budget.daily} if budget else None,
        "spent": str(grant.spent_by(now)) if budget else None,
        "asleep": broker.grants.why_silent(grant, now) or None,
        "revoked_at": iso(grant.revoked_at),
        "revoked_by": grant.revoked_by or None,
        TOLD: {"is_counted": grant.is_counted},
    }
