"""API endpoints for votes: answer one or several requests, remember answers, and check edits before they are sent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from decimal import Decimal
from typing import Any, Literal

from pydantic import AwareDatetime, Field

from signoff.broker.grants import check_terms
from signoff.core.access import Permission
from signoff.core.decision import ApprovalDecision
from signoff.core.inbox_row import agreed, has_approved
from signoff.core.request import ApprovalRequest, State
from signoff.core.safe_text import error_line
from signoff.core.terms import Budget, Scope, Terms
from signoff.core.visible_text import visible
from signoff.desk.operations import NOT_REMEMBERED, Remembering, terms_of
from signoff.errors import RequestError, SignoffError
from signoff.policy.grant_text import offer_text, spelled_out
from signoff.policy.offer import Offer, offers
from signoff.server.api_requests import found, seen
from signoff.server.endpoint import PASSING, ApiModel, Endpoint, Nothing, ProblemView, Visit
from signoff.server.identity import Identity
from signoff.server.problem import ProblemRaised, problem_of
from signoff.server.state import ServerState
from signoff.views.request_view import RequestView, args_digest_of

MOST_VOTES = 200
"""Maximum number of votes in one call."""


class BudgetBody(ApiModel):
    """A limit for the sum of an argument over all calls."""

    arg: str = Field(max_length=200)
    limit: Decimal = Field(gt=0, max_digits=24, decimal_places=9)
    daily: bool = Field(default=False, description="Counted anew each day, in UTC; otherwise in total.")


class RememberBody(ApiModel):
    """How an answer is remembered for later calls."""

    which: str = Field(default="exact", max_length=200, description="The number of an offer, or its name.")
    scope: Scope = Scope.PROJECT
    until: AwareDatetime | None = None
    uses: int | None = Field(default=None, ge=1, le=1_000_000)
    budget: BudgetBody | None = None
    text: str | None = Field(
        default=None,
        max_length=20_000,
        description="The text of the offer that you were shown, from `offers`. If it has changed, the vote is refused.",
    )


class VoteBody(ApiModel):
    """An answer to the arguments that you were shown: `args_digest` names them."""

    decision: Literal["approve", "deny"]
    args_digest: str = Field(max_length=100, description="Digest of the arguments that you were shown.")
    note: str = Field(default="", max_length=4_000, description="A note for the audit log and the model.")
    args: dict[str, Any] | None = Field(
        default=None,
        description="Edited arguments to run with, all of them. An unchanged mask keeps the secret behind it.",
    )
    as_voted: str = Field(
        default="",
        max_length=100,
        description="Run with the edited arguments that somebody approved before you: the `args_digest` of their vote.",
    )
    remember: RememberBody | int | None = Field(
        default=None, description="Remember the answer for later calls; a number selects an offer."
    )


class RequestVoteBody(VoteBody):
    """An answer to one of several requests."""

    request: str = Field(min_length=1, max_length=200)


class VotesBody(ApiModel):
    """Answers to several requests."""

    votes: list[RequestVoteBody] = Field(min_length=1, max_length=MOST_VOTES)


class VoteResult(ApiModel):
    """The result of one answer."""

    request: str
    ok: bool
    state: State | None = None
    title: str = ""
    run: str = ""
    approvals: int = 0
    quorum: int = 0
    again: bool = Field(default=False, description="Whether you had approved the same call before.")
    remembered: str = Field(default="", description="What is remembered, in words; empty: nothing.")
    problem: ProblemView | None = None


class VotesView(ApiModel):
    """The result of each answer, in the order they were sent."""

    results: list[VoteResult]


class OffersQuery(ApiModel):
    """For which answer, and how far."""

    decision: Literal["approve", "deny"] = "approve"
    scope: Scope = Scope.PROJECT
    until: AwareDatetime | None = None
    uses: int | None = Field(default=None, ge=1, le=1_000_000)
    budget_arg: str = Field(default="", max_length=200)
    budget: Decimal | None = Field(default=None, gt=0, max_digits=24, decimal_places=9)
    daily: bool = False


class OfferView(ApiModel):
    """One way to remember an answer."""

    number: int
    name: str
    about: str
    text: str = Field(description="What would be remembered, in words; empty if it cannot be remembered.")
    problem: str = Field(description="Why it cannot be remembered this way; empty if it can.")


class OffersView(ApiModel):
    """The ways an answer can be remembered, the narrowest first."""

    offers: list[OfferView]
    why_not: str = Field(description="Why there is none; empty if there is one.")


class EditBody(ApiModel):
    """Edited arguments, all of them."""

    args: dict[str, Any]


class EffectView(ApiModel):
    """What a call would change. Safe to show."""

    kind: Literal["diff", "text"]
    text: str
    added: int
    removed: int


class EditCheckView(ApiModel):
    """Why the edited arguments cannot run, and what the call would change with them."""

    problems: list[str] = Field(description="Why they cannot run; empty if they can.")
    effect: EffectView | None = Field(
        description="What the call would change with them; null if nothing says that it changes anything, or if you "
        "may not approve it. Where that is not known here, it says so."
    )


async def vote(visit: Visit[Nothing, VoteBody]) -> RequestView:
    request = await found(visit)
    voted, _ = await _voted(visit.state, visit.identity, request, visit.body)
    return await seen(visit, voted, card=False)


async def vote_together(visit: Visit[Nothing, VotesBody]) -> VotesView:
    results = [await _result(visit.state, visit.identity, one) for one in visit.body.votes]
    if any(one.problem is not None and one.problem.status >= 500 for one in results):
        setattr(visit.request.state, PASSING, True)
    return VotesView(results=results)


async def _result(state: ServerState, identity: Identity, body: RequestVoteBody) -> VoteResult:
    named = visible(body.request)
    try:
        request = await state.broker.find(body.request)
        named = visible(request.id)
        voted, remembered = await _voted(state, identity, request, body)
    except (ProblemRaised, SignoffError) as error:
        problem = error if isinstance(error, ProblemRaised) else problem_of(error)
        return VoteResult(request=named, ok=False, problem=ProblemView.model_validate(problem.data))
    approved = body.decision == "approve"
    return VoteResult(
        request=named,
        ok=True,
        state=voted.state,
        title=visible(voted.title),
        run=visible(voted.run),
        approvals=agreed(voted),
        quorum=voted.requirement.quorum,
        again=approved and has_approved(request, identity.actor.name, voted.votes[-1].args_digest),
        remembered=remembered,
    )


async def _voted(
    state: ServerState, identity: Identity, request: ApprovalRequest, body: VoteBody
) -> tuple[ApprovalRequest, str]:
    """Record an answer; return the request after it, and what is remembered in words."""
    by, approved = identity.actor, body.decision == "approve"
    edited = _as_voted(request, body) if body.as_voted else body.args
    if edited is not None and not approved:
        raise ProblemRaised(422, "invalid", "edited arguments can only be sent with an approval")
    if request.state is State.PENDING and body.args_digest != args_digest_of(request):
        raise ProblemRaised(409, "args-changed", "the arguments have changed since they were shown: read them again")
    decision, remembered = ApprovalDecision(approved=approved, by=by, note=body.note, edited_args=edited), ""
    if body.remember is not None:
        decision = replace(decision, terms=terms_of(state.broker, request, _remembering(body.remember), by))
        remembered = await state.inbox.grant_text(request.id, decision)
        shown = body.remember.text if isinstance(body.remember, RememberBody) else None
        if shown is not None and shown != remembered:
            raise ProblemRaised(409, "offer-changed", f"what would be remembered has changed: {remembered}")
    return await state.inbox.answer_read(request, decision), remembered


def _as_voted(request: ApprovalRequest, body: VoteBody) -> Mapping[str, Any]:
    """Return the edited arguments that somebody else approved before."""
    if body.args is not None:
        raise ProblemRaised(422, "invalid", "send your own arguments, or accept somebody else's, not both")
    for vote in request.votes:
        if vote.args_digest == body.as_voted and vote.decision.edited_args is not None:
            return vote.decision.edited_args
    raise ProblemRaised(409, "args-changed", "nobody has approved these arguments: read the request again")


def _remembering(given: RememberBody | int) -> Remembering:
    body = RememberBody(which=str(given)) if isinstance(given, int) else given
    budget = body.budget
    return Remembering(
        which=body.which,
        scope=body.scope,
        until=body.until,
        uses=body.uses,
        budget=Budget(arg=budget.arg, limit=budget.limit, daily=budget.daily) if budget is not None else None,
    )


async def list_offers(visit: Visit[OffersQuery, Nothing]) -> OffersView:
    request, query = await found(visit), visit.query
    offered = offers(request) if visit.state.broker.remembers else ()
    if not offered:
        return OffersView(offers=[], why_not=f"the answer {NOT_REMEMBERED}")
    budget = Budget(arg=query.budget_arg, limit=query.budget, daily=query.daily) if query.budget is not None else None

    def shown(number: int, offer: Offer) -> OfferView:
        terms = Terms(scope=query.scope, match=offer.match, until=query.until, max_uses=query.uses, budget=budget)
        decision = ApprovalDecision(approved=query.decision == "approve", terms=terms, by=visit.identity.actor)
        text, problem = "", ""
        try:
            check_terms(request, decision, visit.state.broker.clock.now())
            text = spelled_out(request, decision)
        except RequestError as error:
            problem = error_line(error, secrets=request.secrets)
        about = offer_text(request, offer)
        return OfferView(number=number, name=visible(offer.name), about=about, text=text, problem=problem)

    return OffersView(offers=[shown(number, one) for number, one in enumerate(offered, 1)], why_not="")


async def check_edit(visit: Visit[Nothing, EditBody]) -> EditCheckView:
    request = await found(visit)
    found_out = await visit.state.inbox.edit_check(request.id, visit.body.args, visit.identity.actor)
    effect = EffectView(**asdict(found_out.effect)) if found_out.effect is not None else None
    return EditCheckView(problems=list(found_out.problems), effect=effect)


ENDPOINTS = (
    Endpoint(
        method="POST",
        path="/requests/{request_id}/votes",
        name="vote",
        about="Approve or deny a request, as the owner of the key. The response contains no card.",
        permission=Permission.ANSWER,
        handle=vote,
        body=VoteBody,
        returns=RequestView,
        tag="votes",
    ),
    Endpoint(
        method="POST",
        path="/votes",
        name="vote_together",
        about="Answer several requests in order. Each has its own result.",
        permission=Permission.ANSWER,
        handle=vote_together,
        body=VotesBody,
        returns=VotesView,
        tag="votes",
    ),
    Endpoint(
        method="GET",
        path="/requests/{request_id}/offers",
        name="list_offers",
        about="List the ways an answer can be remembered, each as it would be stored.",
        permission=Permission.READ,
        handle=list_offers,
        query=OffersQuery,
        returns=OffersView,
        tag="votes",
    ),
    Endpoint(
        method="POST",
        path="/requests/{request_id}/edit-check",
        name="check_edit",
        about="Check edited arguments. Nothing is answered.",
        permission=Permission.ANSWER,
        handle=check_edit,
        body=EditBody,
        returns=EditCheckView,
        tag="votes",
    ),
)
