"""Models of requests in the API. Every text in them is masked and made visible, as on a card."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from datetime import datetime
from typing import Any, cast

from pydantic import Field

from signoff.core.card import Card, card_for, has_long_card, shown_card
from signoff.core.inbox_row import Item
from signoff.core.quorum import approvers
from signoff.core.redact import redact
from signoff.core.request import ApprovalRequest, State
from signoff.core.request_status import status_of
from signoff.core.safe_text import kept_text, safe_text
from signoff.core.visible_text import visible
from signoff.errors import CannotCanonicalise
from signoff.server.endpoint import ApiModel


class RequestRow(ApiModel):
    """A request in a list."""

    id: str
    state: State
    title: str
    tool: str
    worker: str
    run: str
    session: str = Field(description="The session of an agent in another program, and its directory; otherwise empty.")
    task: str = Field(description="The prompt of its run or session, and for whom it is; empty if there is none.")
    role: str
    quorum: int
    votes: int
    assigned: str
    opened_at: datetime
    deadline: datetime | None
    escalated: bool
    damaged: str = Field(
        default="", description="Why its row in the store cannot be read: only `id` is sure then. Otherwise empty."
    )


class RequestPage(ApiModel):
    """A page of requests, and the cursor of the next one."""

    requests: list[RequestRow]
    waiting: int = Field(
        description="How many requests are pending in total, whatever is listed; counted up to 100,000."
    )
    next: str | None = Field(description="The `cursor` of the next page; null on the last page.")


class VoteView(ApiModel):
    """One vote."""

    by: str
    via: str
    stands_for: str
    approved: bool
    edited: bool
    args: dict[str, Any] | None = Field(
        description="The edited arguments that were approved, if any; secrets are masked."
    )
    args_digest: str = Field(description="Digest of the arguments that the vote is for.")
    note: str
    at: datetime | None


class RequestView(ApiModel):
    """A request with all its details."""

    id: str
    state: State
    title: str
    tool: str
    worker: list[str]
    run: str
    args: dict[str, Any] | None = Field(
        description="The arguments as they would run; secrets are masked. null: they cannot be shown."
    )
    args_digest: str = Field(description="Digest of the arguments, for a vote; empty: the call cannot be approved.")
    long: bool = Field(description="Whether all of it must be read before it can be approved.")
    read: bool = Field(description="Whether you have confirmed that you read all of it: `POST …/read`.")
    card: dict[str, Any] | None = Field(
        description="What people are shown; null in the answer to a vote, and where the call cannot be shown."
    )
    args_schema: dict[str, Any] | None = Field(description="JSON Schema of the arguments.")
    problem: str
    role: str | None
    quorum: int
    agreed: int = Field(description="How many valid approvals there are for exactly these arguments.")
    status: str
    requester: str
    owners: list[str]
    assigned: str
    opened_at: datetime | None
    deadline: datetime | None
    escalated: bool
    votes: list[VoteView]
    decided_by: str
    decided_at: datetime | None
    note: str
    result: str
    error: str
    version: int


class ProblemView(ApiModel):
    """What went wrong (RFC 9457)."""

    type: str = Field(description="A code for programs, as in `urn:signoff:already-settled`.")
    title: str
    status: int
    detail: str = Field(description="A sentence for people.")
    problems: list[str] = Field(default_factory=list[str], description="Each error.")


def row_of(item: Item) -> RequestRow:
    return RequestRow(
        id=item.id,
        state=item.state,
        title=visible(item.title),
        tool=safe_text(item.tool),
        worker=visible(item.worker),
        run=visible(item.run),
        session=item.session,
        task=item.task,
        role=visible(item.role),
        quorum=item.quorum,
        votes=item.votes,
        assigned=visible(item.assigned),
        opened_at=item.opened_at,
        deadline=item.deadline,
        escalated=item.escalated,
        damaged=visible(item.damaged),
    )


def card_of(request: ApprovalRequest, viewer: str = "") -> tuple[Card | None, str]:
    """Return the card, or why there can be none: then the call cannot be approved either."""
    problem = why_unseen(request)
    if problem:
        return None, problem
    return card_for(request, viewer=viewer) if viewer else shown_card(request), ""


def why_unseen(request: ApprovalRequest) -> str:
    """Why there can be no card; empty if there can."""
    try:
        has_long_card(request)
    except CannotCanonicalise as error:
        return f"this call cannot be shown, so it cannot be approved: {visible(str(error))}"
    return ""


def _plain(value: Any) -> Any:
    """As `dataclasses.asdict`, which copies each text."""
    if isinstance(value, (list, tuple)):
        return [_plain(one) for one in cast("Sequence[Any]", value)]
    if isinstance(value, Mapping):
        return {name: _plain(one) for name, one in cast("Mapping[str, Any]", value).items()}
    if is_dataclass(value):
        return {one.name: _plain(getattr(value, one.name)) for one in fields(value)}
    return value


def args_digest_of(request: ApprovalRequest) -> str:
    """Digest of the arguments that would run; empty if they have none and cannot be approved."""
    try:
        return request.args_digest
    except CannotCanonicalise:
        return ""


def view_of(request: ApprovalRequest, viewer: str = "", *, with_card: bool = True) -> RequestView:
    """Return the whole request, safe to send. The caller fills in `read`.

    Without its card it takes a third of the time.
    """
    if with_card:
        card, problem = card_of(request, viewer)
    else:
        card, problem = None, "" if request.state is State.APPROVED else why_unseen(request)
    status = status_of(request)
    return RequestView(
        id=request.id,
        state=request.state,
        title=visible(request.title),
        tool=safe_text(request.tool_name),
        worker=[visible(one) for one in request.worker],
        run=visible(request.run),
        args=dict(redact(request.effective_args, secrets=request.secrets).args) if not problem else None,
        args_digest=args_digest_of(request),
        long=request.state is State.PENDING and not problem and has_long_card(request),
        read=False,
        card=_plain(card) if card is not None else None,
        args_schema=dict(request.schema) if request.schema is not None else None,
        problem=problem,
        role=visible(request.requirement.role) if request.requirement.role is not None else None,
        quorum=request.requirement.quorum,
        agreed=len(approvers(request.requirement, request.votes, args_digest_of(request), request.parties)),
        status=safe_text(status.title, secrets=request.secrets),
        requester=visible(request.requester),
        owners=[visible(one) for one in request.owners],
        assigned=visible(request.assigned),
        opened_at=request.opened_at,
        deadline=request.deadline,
        escalated=request.escalated,
        votes=[
            VoteView(
                by=visible(str(vote.by)),
                via=visible(vote.by.via),
                stands_for=visible(vote.stands_for.name) if vote.stands_for is not None else "",
                approved=vote.decision.approved,
                edited=(edited := vote.decision.edited_args) is not None,
                args=dict(redact(edited, secrets=request.secrets).args) if edited is not None else None,
                args_digest=vote.args_digest,
                note=safe_text(vote.decision.note, secrets=request.secrets),
                at=vote.at,
            )
            for vote in request.votes
        ],
        decided_by=visible(str(status.by)) if status.by is not None else "",
        decided_at=status.at,
        note=safe_text(status.note, secrets=request.secrets),
        result=kept_text(status.result),
        error=kept_text(status.error),
        version=request.version,
    )
