"""API endpoints for commands with `--server`: their output, as the machine of the store would print it.

The objects are those that the commands print with `--json`; `told` holds what their output for people needs besides.
"""

from __future__ import annotations

from typing import Any

from pydantic import Field, RootModel

from signoff.core.access import Permission
from signoff.core.people import person_key
from signoff.reports.grant_report import grant_report, grants_report
from signoff.reports.inbox_report import Me, View, as_data
from signoff.reports.policy_report import explanation_lines
from signoff.reports.request_sheet import FORMAT, MOST_LISTED, TOLD, request_sheet
from signoff.reports.run_report import run_report, runs_report
from signoff.server.api_policy import CallBody, explanation_of
from signoff.server.api_runs import LONGEST_TIMELINE
from signoff.server.endpoint import ApiModel, Endpoint, Nothing, Visit

MOST_LOOKED_AT = 500
"""At most about how many requests are looked at for one page, to find those for one person."""


class Report(RootModel[dict[str, Any]]):
    """What a command prints with `--json`, and as text in `told`."""


class InboxReportQuery(ApiModel):
    """How much of the inbox."""

    limit: int = Field(default=50, ge=1, le=MOST_LISTED)
    after: str = Field(default="", max_length=200, description="`last` of the previous page, in `told`.")
    mine: bool = Field(
        default=False, description="Only requests that you can answer and that nobody else is assigned to."
    )


class RunsReportQuery(ApiModel):
    """Which runs."""

    everything: bool = Field(default=False, description="Include finished runs.")
    limit: int = Field(default=50, ge=1, le=MOST_LISTED)
    before: str = Field(default="", max_length=200, description="The id of the last run of the previous page.")


class GrantsReportQuery(ApiModel):
    """Which grants."""

    everything: bool = Field(default=False, description="Include revoked grants.")


async def report_inbox(visit: Visit[InboxReportQuery, Nothing]) -> Report:
    state, by = visit.state, visit.identity.actor
    roles = {person_key(one.name): one.roles for one in state.people().values()}
    me = Me(by.name, roles.get(by.key, frozenset())) if visit.query.mine else None
    view = View(visit.query.limit, me, roles, visit.query.after, looks=MOST_LOOKED_AT)
    page = await view.page(state.broker.store)
    return _report({**as_data(page), TOLD: {"halted": page.halted, "last": page.last}})


async def report_request(visit: Visit[Nothing, Nothing]) -> Report:
    viewer = visit.identity.actor.name
    return _report(await request_sheet(visit.state.broker, visit.path["request_id"], viewer=viewer))


async def report_runs(visit: Visit[RunsReportQuery, Nothing]) -> Report:
    query = visit.query
    return _report(
        await runs_report(visit.state.broker, everything=query.everything, limit=query.limit, before=query.before)
    )


async def report_run(visit: Visit[Nothing, Nothing]) -> Report:
    found = await run_report(visit.state.broker, visit.path["run_id"], most=LONGEST_TIMELINE)
    runs = visit.state.runs
    resumes = runs is not None and not await runs.hindrance(found["id"])
    return _report({**found, TOLD: {**found[TOLD], "resumes": resumes}})


async def report_grants(visit: Visit[GrantsReportQuery, Nothing]) -> Report:
    return _report(await grants_report(visit.state.broker, everything=visit.query.everything))


async def report_grant(visit: Visit[Nothing, Nothing]) -> Report:
    return _report(await grant_report(visit.state.broker, visit.path["grant_id"]))


async def report_explanation(visit: Visit[Nothing, CallBody]) -> Report:
    explanation = await explanation_of(visit)
    return _report({**explanation.as_json(), TOLD: {"lines": list(explanation_lines(explanation))}})


def _report(data: dict[str, Any]) -> Report:
    return Report({**data, TOLD: {**data.get(TOLD, {}), "format": FORMAT}})


def _read(path: str, name: str, about: str, handle: Any, query: type[ApiModel] = Nothing) -> Endpoint:
    return Endpoint(
        method="GET",
        path=f"/reports{path}",
        name=name,
        about=about,
        permission=Permission.READ,
        handle=handle,
        query=query,
        returns=Report,
        tag="reports",
    )


ENDPOINTS = (
    _read("/inbox", "report_inbox", "The report of `signoff inbox`.", report_inbox, InboxReportQuery),
    _read("/requests/{request_id}", "report_request", "The report of `signoff show`.", report_request),
    _read("/runs", "report_runs", "The report of `signoff runs`.", report_runs, RunsReportQuery),
    _read("/runs/{run_id}", "report_run", "The report of `signoff runs show`.", report_run),
    _read("/grants", "report_grants", "The report of `signoff grants list`.", report_grants, GrantsReportQuery),
    _read("/grants/{grant_id}", "report_grant", "The report of `signoff grants explain`.", report_grant),
    Endpoint(
        method="POST",
        path="/reports/explanation",
        name="report_explanation",
        about="The report of `signoff policy explain`.",
        permission=Permission.READ,
        handle=report_explanation,
        body=CallBody,
        returns=Report,
        tag="reports",
    ),
)
