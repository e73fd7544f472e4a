"""Requests as the API sends them. Every text in them is masked and made visible, as on a card."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from pydantic import Field

from signoff.core.card import Card, card_for
from signoff.core.inbox_row import Item, agreed
from signoff.core.redact import redact
from signoff.core.request import ApprovalRequest, State
from signoff.core.request_status import status_of
from signoff.core.safe import kept_text, safe_text
from signoff.core.visible import visible
from signoff.errors import CannotCanonicalise
from signoff.server.endpoint import ApiModel


class RequestRow(ApiModel):
    """A request as it stands in a list."""

    id: str
    state: State
    title: str
    tool: str
    worker: str
    run: str
    role: str
    quorum: int
    votes: int
    assigned: str
    opened_at: datetime
    deadline: datetime | None
    escalated: bool


class RequestPage(ApiModel):
    """Some requests, and how to get those after them."""

    requests: list[RequestRow]
    next: str | None = Field(description="The `cursor` of the next page; null where there is none.")


class VoteView(ApiModel):
    """One vote."""

    by: str
    via: str
    stands_for: str
    approved: bool
    edited: bool
    note: str
    at: datetime | None


class RequestView(ApiModel):
    """A request, whole."""

    id: str
    state: State
    title: str
    tool: str
    worker: list[str]
    run: str
    args: dict[str, Any] | None = Field(description="As they would run, secrets masked; null: they cannot be shown.")
    args_digest: str
    card: dict[str, Any] | None = Field(description="What people are shown; null: it cannot be shown, nor approved.")
    args_schema: dict[str, Any] | None = Field(description="JSON Schema of the arguments.")
    problem: str
    role: str | None
    quorum: int
    agreed: int
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


class VoteBody(ApiModel):
    """An answer. It is for the arguments that were shown: `args_digest` says which."""

    decision: Literal["approve", "deny"]
    args_digest: str = Field(description="Digest of the arguments that were read; others are not approved.")
    note: str = Field(default="", max_length=4_000)
    args: dict[str, Any] | None = Field(default=None, description="Other arguments to run with; masks stay as sent.")
    remember: int | None = Field(default=None, ge=1, description="Number of the offer to remember the answer as.")


def row_of(item: Item) -> RequestRow:
    return RequestRow(
        id=item.id,
        state=item.state,
        title=visible(item.title),
        tool=visible(item.tool),
        worker=visible(item.worker),
        run=visible(item.run),
        role=visible(item.role),
        quorum=item.quorum,
        votes=item.votes,
        assigned=visible(item.assigned),
        opened_at=item.opened_at,
        deadline=item.deadline,
        escalated=item.escalated,
    )


def card_of(request: ApprovalRequest, viewer: str = "") -> tuple[Card | None, str]:
    """The card, or why there can be none: then it cannot be approved either."""
    try:
        return card_for(request, viewer=viewer), ""
    except CannotCanonicalise as error:
        return None, f"this call cannot be shown, so it cannot be approved: {visible(str(error))}"


def view_of(request: ApprovalRequest, viewer: str = "") -> RequestView:
    """The whole request, safe to send."""
    from dataclasses import asdict

    card, problem = card_of(request, viewer)
    status = status_of(request)
    return RequestView(
        id=request.id,
        state=request.state,
        title=visible(request.title),
        tool=visible(request.tool_name),
        worker=[visible(one) for one in request.worker],
        run=visible(request.run),
        args=dict(redact(request.effective_args, secrets=request.secrets).args) if card is not None else None,
        args_digest=request.args_digest,
        card=asdict(card) if card is not None else None,
        args_schema=dict(request.schema) if request.schema is not None else None,
        problem=problem,
        role=request.requirement.role,
        quorum=request.requirement.quorum,
        agreed=agreed(request),
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
                edited=vote.decision.edited_args is not None,
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
