"""API endpoints for the policy: evaluate a call, and propose or write rules for a request."""

from __future__ import annotations

import asyncio
import os
from typing import Any

from pydantic import Field

from signoff.channels.rule_drafts import WRITTEN
from signoff.core.access import Permission
from signoff.core.call import LABELS, Call
from signoff.core.visible_text import visible
from signoff.errors import WrongUse
from signoff.policy.explain import Explanation
from signoff.policy.phrases import did_you_mean, shown
from signoff.server.api_requests import found
from signoff.server.endpoint import ApiModel, Endpoint, Nothing, Visit
from signoff.server.problem import ProblemRaised
from signoff.server.state import Rules, ServerState
from signoff.views.explanation_view import ExplanationView, VerdictView


class CallBody(ApiModel):
    """A call to evaluate."""

    tool: str = Field(min_length=1, max_length=500)
    args: dict[str, Any] = Field(default_factory=dict[str, Any])
    toolset: str | None = Field(default=None, max_length=500)
    worker: list[str] = Field(
        default_factory=list[str], max_length=50, description="The chain of workers, outermost first."
    )
    labels: list[str] = Field(default_factory=list[str], max_length=50, description="`fs.read`, `money` …")


class RuleDraftView(ApiModel):
    """A proposed rule."""

    number: int
    text: str = Field(description="What it allows, in one sentence.")
    diff: list[str] = Field(description="The change to the file.")
    warnings: list[str]
    digest: str = Field(description="Send it back to write exactly this rule.")


class RuleDraftsView(ApiModel):
    """The proposed rules for a call, the narrowest first, and why others are not proposed."""

    file: str
    drafts: list[RuleDraftView]
    refused: list[str]


class RuleBody(ApiModel):
    """Which rule to write."""

    draft: int = Field(ge=1, le=1_000)
    digest: str = Field(max_length=100, description="Digest of the draft that was shown.")


class RuleView(ApiModel):
    """A rule that was written."""

    file: str
    text: str
    told: str = Field(description="What the rule changes.")


async def judge_call(visit: Visit[Nothing, CallBody]) -> VerdictView:
    return VerdictView.of(await _explained(visit))


async def explain_call(visit: Visit[Nothing, CallBody]) -> ExplanationView:
    return ExplanationView.of(await _explained(visit))


async def _explained(visit: Visit[Nothing, CallBody]) -> Explanation:
    return await _rules(visit.state).explain(_call(visit.body))


def _call(body: CallBody) -> Call:
    for label in body.labels:
        if label not in LABELS:
            raise WrongUse(f"unknown label {shown(label)}\n  {did_you_mean(label, LABELS)}")
    return Call(
        tool=body.tool,
        args=body.args,
        toolset=body.toolset,
        worker=tuple(body.worker),
        labels=frozenset(body.labels),
    )


def _rules(state: ServerState) -> Rules:
    if state.rules is None:
        raise ProblemRaised(409, "no-policy", "this server has no policy file")
    return state.rules


async def list_drafts(visit: Visit[Nothing, Nothing]) -> RuleDraftsView:
    found_drafts = await _rules(visit.state).drafts(await found(visit))
    drafts = [
        RuleDraftView(number=number, text=one.text, diff=list(one.diff), warnings=list(one.warnings), digest=one.digest)
        for number, one in enumerate(found_drafts.drafts, 1)
    ]
    return RuleDraftsView(file=visible(found_drafts.file), drafts=drafts, refused=list(found_drafts.refused))


async def write_rule(visit: Visit[Nothing, RuleBody]) -> RuleView:
    body, by = visit.body, visit.identity.actor
    request = await found(visit)
    drafts = await _rules(visit.state).drafts(request)
    draft = drafts.drafts[body.draft - 1] if body.draft <= len(drafts.drafts) else None
    if draft is None or draft.digest != body.digest:
        raise ProblemRaised(409, "draft-changed", "this is not the rule that you were shown: review it again")
    await asyncio.to_thread(draft.write)
    file = await asyncio.to_thread(os.path.abspath, drafts.file)
    await visit.state.broker.policies.written(
        by=by, file=file, digest=draft.digest, text=draft.text, request=request.id
    )
    return RuleView(file=visible(drafts.file), text=draft.text, told=WRITTEN)


ENDPOINTS = (
    Endpoint(
        method="POST",
        path="/policy/judge",
        name="judge_call",
        about="Evaluate the policy for a call. Nothing is executed.",
        permission=Permission.READ,
        handle=judge_call,
        body=CallBody,
        returns=VerdictView,
        tag="policy",
    ),
    Endpoint(
        method="POST",
        path="/policy/explain",
        name="explain_call",
        about="Evaluate the policy for a call, with the result of every rule.",
        permission=Permission.READ,
        handle=explain_call,
        body=CallBody,
        returns=ExplanationView,
        tag="policy",
    ),
    Endpoint(
        method="GET",
        path="/requests/{request_id}/rule-drafts",
        name="list_drafts",
        about="Propose rules for a call, each with the change to the file. Nothing is written.",
        permission=Permission.READ,
        handle=list_drafts,
        returns=RuleDraftsView,
        tag="policy",
    ),
    Endpoint(
        method="POST",
        path="/requests/{request_id}/rules",
        name="write_rule",
        about="Write a proposed rule to the project's file. It applies to new runs.",
        permission=Permission.ADMIN,
        people_only="write rules: only an admin can",
        handle=write_rule,
        body=RuleBody,
        returns=RuleView,
        status=201,
        tag="policy",
        once=True,
    ),
)
