"""API endpoints for people: who may answer, and who is deputy for whom."""

from __future__ import annotations

from dataclasses import dataclass

from pydantic import AwareDatetime, Field

from signoff.core.access import Permission
from signoff.desk import operations
from signoff.server.api_requests import LONGEST_NAME
from signoff.server.endpoint import ApiModel, Endpoint, Nothing, Visit
from signoff.views.json_form import View
from signoff.views.people_view import DelegationView, PeopleView


@dataclass(frozen=True, slots=True, kw_only=True)
class DelegationsView(View):
    """List current delegations."""

    delegations: tuple[DelegationView, ...]


class DelegationBody(ApiModel):
    """A new delegation."""

    absent: str = Field(
        default="", max_length=LONGEST_NAME, description="Empty: you. For others you need the permission `admin`."
    )
    deputy: str = Field(min_length=1, max_length=LONGEST_NAME)
    until: AwareDatetime = Field(description="At most 90 days from now.")


async def list_people(visit: Visit[Nothing, Nothing]) -> PeopleView:
    state = visit.state
    return PeopleView.of(state.people().values(), await state.broker.people.delegations())


async def list_delegations(visit: Visit[Nothing, Nothing]) -> DelegationsView:
    found = await visit.state.broker.people.delegations()
    return DelegationsView(delegations=tuple(map(DelegationView.of, found)))


async def delegate(visit: Visit[Nothing, DelegationBody]) -> DelegationView:
    broker, acting, body = visit.state.broker, visit.identity.acting, visit.body
    absent = body.absent.strip() or acting.by.name
    now = broker.clock.now()
    return DelegationView.of(await operations.delegate(broker, absent, body.deputy, body.until, now, acting))


async def end_delegation(visit: Visit[Nothing, Nothing]) -> DelegationView:
    absent, deputy = visit.path["absent"], visit.path["deputy"]
    return DelegationView.of(await operations.end_delegation(visit.state.broker, absent, deputy, visit.identity.acting))


ENDPOINTS = (
    Endpoint(
        method="GET",
        path="/people",
        name="list_people",
        about="List people with their roles, and who is deputy for whom.",
        permission=Permission.READ,
        handle=list_people,
        returns=PeopleView,
        tag="people",
    ),
    Endpoint(
        method="GET",
        path="/delegations",
        name="list_delegations",
        about="List current delegations.",
        permission=Permission.READ,
        handle=list_delegations,
        returns=DelegationsView,
        tag="people",
    ),
    Endpoint(
        method="POST",
        path="/delegations",
        name="delegate",
        about="Let a deputy answer in your place for a while. The audit log names both.",
        permission=Permission.ANSWER,
        people_only="delegate",
        handle=delegate,
        body=DelegationBody,
        returns=DelegationView,
        status=201,
        tag="people",
        once=True,
    ),
    Endpoint(
        method="DELETE",
        path="/delegations/{absent}/{deputy}",
        name="end_delegation",
        about="End a delegation, as one of the two or as an admin. Returns the delegation that ended.",
        permission=Permission.ANSWER,
        people_only="end a delegation",
        handle=end_delegation,
        returns=DelegationView,
        tag="people",
    ),
)
