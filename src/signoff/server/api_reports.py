"""API endpoints for commands with `--server`: their output, as the machine of the store would print it.

The objects are those that the commands print with `--json`; `told` holds what their output for people needs besides.
"""

from __future__ import annotations

from typing import Any

from pydantic import Field, RootModel

from signoff.core.access import Permission
from signoff.reports.grant_report import grant_report, grants_report
from signoff.reports.inbox_report import as_data
from signoff.reports.policy_report import explanation_lines
from signoff.reports.request_sheet import FORMAT, MOST_LISTED, TOLD, request_sheet
from signoff.reports.run_report import run_report, runs_report
from signoff.server.api_policy import CallBody, explanation_of
from signoff.server.api_runs import LONGEST_TIMELINE, RunsChosen
from signoff.server.endpoint import ApiModel, Endpoint, Nothing, Visit
from signoff.server.waiting_list import inbox_view


class Report(RootModel[dict[str, Any]]):
    """What a command prints with `--json`, and as text in `told`."""


class InboxReportQuery(ApiModel):
    """How much of the inbox."""

    limit: int = Field(default=50, ge=1, le=MOST_LISTED)
    after: str = Field(default="", max_length=200, description="`last` of the previous page, in `told`.")
    mine: bool = Field(
        default=False, description="Only requests that you can answer and that nobody else is assigned to."
    )
    search: str = Field(default="", max_length=200, description="Only requests with this in title, tool or workers.")


class RunsReportQuery(RunsChosen):
    """Which runs."""

    limit: int = Field(default=50, ge=1, le=MOST_LISTED)
    before: str = Field(default="", max_length=200, description="`last` of the previous page, in `told`.")


class GrantsReportQuery(ApiModel):
    """Which grants."""

    everything: bool = Field(default=False, description="Include revoked grants.")


async def report_inbox(visit: Visit[InboxReportQuery, Nothing]) -> Report:
    query = visit.query
    view = inbox_view(
        visit.state,
        visit.identity.actor,
        mine=query.mine,
        text=query.search.strip(),
        after=query.after,
        limit=query.limit,
    )
    page = await view.page_by(visit.state.broker)
    return _report({**as_data(page), TOLD: {"halted": page.halted, "last": page.last}})


async def report_request(visit: Visit[Nothing, Nothing]) -> Report:
    viewer = visit.identity.actor.name
    return _report(await request_sheet(visit.state.broker, visit.path["request_id"], viewer=viewer))


async def report_runs(visit: Visit[RunsReportQuery, Nothing]) -> Report:
    query = visit.query
    return _report(await runs_report(visit.state.broker, query.view(limit=query.limit, before=query.before)))


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
