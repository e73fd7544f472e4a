"""API endpoints for the kill switch (halt)."""

from __future__ import annotations

from pydantic import Field

from signoff.core.access import Permission
from signoff.core.visible_text import visible
from signoff.desk import operations
from signoff.server.endpoint import ApiModel, Endpoint, Nothing, Visit


class HaltBody(ApiModel):
    """Why execution is halted."""

    why: str = Field(default="", max_length=4_000)


class UnhaltQuery(ApiModel):
    """Why things run again."""

    why: str = Field(default="", max_length=4_000)


class HaltView(ApiModel):
    """Whether execution is halted."""

    halted: bool
    text: str = Field(description="Who halted, when and why; empty if nothing is halted.")


async def show_halt(visit: Visit[Nothing, Nothing]) -> HaltView:
    return _view(await visit.state.broker.switch.state())


async def halt(visit: Visit[Nothing, HaltBody]) -> HaltView:
    return _view(await visit.state.broker.switch.halt(by=visit.identity.actor.name, why=visit.body.why))


async def unhalt(visit: Visit[UnhaltQuery, Nothing]) -> HaltView:
    await operations.unhalt(visit.state.broker, visit.query.why, visit.identity.acting)
    return _view("")


def _view(said: str) -> HaltView:
    return HaltView(halted=bool(said), text=visible(said))


ENDPOINTS = (
    Endpoint(
        method="GET",
        path="/halt",
        name="show_halt",
        about="Whether execution is halted.",
        permission=Permission.READ,
        handle=show_halt,
        returns=HaltView,
        tag="halt",
    ),
    Endpoint(
        method="POST",
        path="/halt",
        name="halt",
        about="Halt execution: no new call runs in any process that uses this store. Pending requests stay pending.",
        permission=Permission.ADMIN,
        handle=halt,
        body=HaltBody,
        returns=HaltView,
        tag="halt",
    ),
    Endpoint(
        method="DELETE",
        path="/halt",
        name="unhalt",
        about="Lift the halt. Only a person can.",
        permission=Permission.ADMIN,
        people_only="lift the halt: only an admin can",
        handle=unhalt,
        query=UnhaltQuery,
        returns=HaltView,
        tag="halt",
    ),
)
