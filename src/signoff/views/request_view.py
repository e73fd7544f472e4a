"""One request as people and programs see it, with secrets masked and hidden characters visible."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, cast

from signoff.core.audit_text import event_body
from signoff.core.card import Card, beside_edits, card_for, has_long_card, shown_card
from signoff.core.comment import Comment, CommentKind, unanswered
from signoff.core.decision import ApprovalDecision
from signoff.core.inbox_row import agreed_by
from signoff.core.people import Actor
from signoff.core.quorum import approvers, who, why_not_entitled
from signoff.core.redact import redact
from signoff.core.request import ApprovalRequest, State
from signoff.core.request_status import settled_text, status_of
from signoff.core.result_text import exit_code
from signoff.core.safe_text import kept_text, printable, safe_text
from signoff.core.visible_text import visible
from signoff.core.vote import Vote
from signoff.errors import CannotCanonicalise
from signoff.policy.grant_text import offer_text
from signoff.policy.offer import offers
from signoff.views.inbox_view import answers_to
from signoff.views.json_form import View

if TYPE_CHECKING:
    from signoff.broker import Broker
    from signoff.core.record import Entry


@dataclass(frozen=True, slots=True, kw_only=True)
class VoteView(View):
    """An answer: a person's vote, or what ended the request without one."""

    by: str
    """Empty if that is not known."""
    via: str
    stands_for: str
    """The absent person that they answered for."""
    approved: bool
    ending: str
    """`approved`, `denied`, `expired` or `cancelled`."""
    edited: bool
    args: dict[str, Any] | None
    """The edited arguments that were approved, if any; secrets are masked."""
    args_digest: str
    """Digest of the arguments that it is for."""
    changes: tuple[str, ...]
    """What it changes in the arguments, one line each."""
    void: str
    """Why it does not count any more, while the request is pending; empty if it counts."""
    note: str
    at: datetime | None

    @classmethod
    def of(cls, request: ApprovalRequest, vote: Vote) -> VoteView:
        """A vote on a request."""
        void = ""
        if request.state is State.PENDING and vote.decision.approved:
            void = safe_text(why_not_entitled(request.requirement, vote.principal, request.parties))
        stands_for = visible(vote.stands_for.name) if vote.stands_for is not None else ""
        return cls.of_decision(request, vote.decision, stands_for, vote.args_digest, void)

    @classmethod
    def of_decision(
        cls,
        request: ApprovalRequest,
        decision: ApprovalDecision,
        stands_for: str = "",
        digest: str = "",
        void: str = "",
    ) -> VoteView:
        """What ended a request."""
        edited, secrets = decision.edited_args, request.secrets
        return cls(
            by=visible(str(decision.by)) if decision.by is not None else "",
            via=visible(decision.by.via) if decision.by is not None else "",
            stands_for=stands_for,
            approved=decision.approved,
            ending=str(decision.ending),
            edited=edited is not None,
            args=dict(redact(edited, secrets=secrets).args) if edited is not None else None,
            args_digest=digest,
            changes=(*changes(request, edited), *filter(None, (beside_edits(request),))) if edited is not None else (),
            void=void,
            note=safe_text(decision.note, secrets=secrets),
            at=decision.at,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class CommentView(View):
    """A comment."""

    id: str
    kind: CommentKind
    by: str
    via: str
    at: datetime
    text: str
    claim: bool
    """Whether a model wrote it: nothing verifies it."""
    answers: str
    """Id of the question that it answers; otherwise empty."""

    @classmethod
    def of(cls, comment: Comment, secrets: Sequence[str]) -> CommentView:
        """A comment on a request with these secrets."""
        return cls(
            id=comment.id,
            kind=comment.kind,
            by=visible(str(comment.by)),
            via=visible(comment.by.via),
            at=comment.at,
            text=safe_text(comment.text, secrets=secrets, lines=True),
            claim=comment.is_claim,
            answers=visible(comment.answers),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class OfferLine(View):
    """A way to remember the answer."""

    number: int
    name: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EventView(View):
    """An event in the audit log."""

    seq: int
    at: str
    kind: str
    body: Any
    """What happened, by the fields of its kind."""

    @classmethod
    def of(cls, entry: Entry) -> EventView:
        """An entry of the record."""
        return cls(seq=entry.seq, at=entry.at, kind=entry.kind, body=_shown(event_body(entry.body)))


def _shown(value: object) -> object:
    """A recorded value, its secrets masked before, with hidden characters visible."""
    if isinstance(value, str):
        return kept_text(value, lines=True)
    if isinstance(value, list):
        return [_shown(one) for one in cast("list[object]", value)]
    if isinstance(value, dict):
        return {kept_text(name): _shown(one) for name, one in cast("dict[str, object]", value).items()}
    return value


@dataclass(frozen=True, slots=True, kw_only=True)
class PastRequest(View):
    """A request in a list of what happened: what was asked, and how it ended."""

    id: str
    state: State
    title: str
    tool: str
    worker: tuple[str, ...]
    """The chain of workers, the outermost first."""
    run: str
    opened_at: datetime | None
    quorum: int
    answered: int
    """How many have answered, whether or not their answers count."""
    status: str
    """Its status in a few words."""
    handed_over: bool
    """Whether a program has the approval and runs the call itself: its outcome is not known here."""
    approved_by: tuple[str, ...]
    """Whose approvals count, for the arguments that were approved last."""
    decided_by: str
    """Who decided; empty if nobody did, or if that is not known."""
    decided_at: datetime | None
    by_rule: bool
    """Whether a rule approved it because nobody answered."""
    note: str
    """The note of the person who decided."""
    changes: tuple[str, ...]
    """What a person changed in the arguments that ran, one line each."""
    told_by: str
    """Who reported the outcome of the call, if its process could not."""
    result: str
    """What the call returned; with `told_by`, what that person noted."""
    error: str
    exit_code: int | None
    """Of a command that failed."""
    settled: str
    """How it was settled, in one sentence."""
    reason: str
    """Why it was withdrawn; empty if it was not, or if that is not known."""

    @classmethod
    def of(cls, request: ApprovalRequest) -> PastRequest:
        """A request and what came of it, without its arguments."""
        return cls(**_past(request))


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestView(PastRequest):
    """A request with all its details."""

    args: dict[str, Any] | None
    """The arguments as they would run; secrets are masked. null: they cannot be shown."""
    args_digest: str
    """Digest of the arguments, for a vote; empty: the call cannot be approved."""
    args_schema: dict[str, Any] | None
    """JSON Schema of the arguments."""
    long: bool
    """Whether all of it must be read before it can be approved."""
    read: bool = False
    """Whether you have confirmed that you read all of it: `POST …/read`."""
    card: Card | None
    """What people are shown; null in the answer to a vote, and where the call cannot be shown."""
    problem: str
    """Why the call cannot be shown."""
    role: str | None
    not_by: tuple[str, ...]
    """Who may not approve it: `requester`, `owner`, or names."""
    who: str
    """Who must approve it, in words."""
    agreed: int
    """How many valid approvals there are for exactly these arguments."""
    shortage: str
    """Why too few people may approve it; empty if there are enough."""
    refused: str
    """Why your approval would not count; empty if it would, or if that was not looked up."""
    requester: str
    owners: tuple[str, ...]
    assigned: str
    deadline: datetime | None
    escalated: bool
    votes: tuple[VoteView, ...]
    decision: VoteView | None
    """What decided it, if that was not the last vote."""
    comments: tuple[CommentView, ...]
    unanswered: tuple[str, ...]
    """Ids of questions that nobody has answered."""
    offers: tuple[OfferLine, ...]
    """The ways to remember the answer, while it is pending; none in the answer to a vote."""
    answers: tuple[str, ...]
    """With which words a person can act on it now."""
    process: str
    """The process that claimed the call; empty if none did."""
    started_at: datetime | None
    ended_at: datetime | None
    history: tuple[EventView, ...] | None
    """Its events, the oldest first; null in answers to changes."""
    version: int

    @classmethod
    def of(
        cls,
        request: ApprovalRequest,
        viewer: str = "",
        *,
        with_card: bool = True,
        history: Sequence[Entry] | None = None,
    ) -> RequestView:
        """The whole request. `viewer` is who reads it. Whether they have read it, the caller fills in.

        Without its card it takes a third of the time.
        """
        refused, request = request.refused, request.changed_to(refused="") if request.refused else request
        card: Card | None = None
        problem = "" if not with_card and request.state is State.APPROVED else why_unseen(request)
        if with_card and not problem:
            card = card_for(request, viewer=viewer) if viewer else shown_card(request)
        last, claim, secrets = request.votes[-1].decision if request.votes else None, request.claim, request.secrets
        decision = request.decision if request.decision != last else None
        past = _past(request)
        if request.state is State.CANCELLED and _was_approved(history or ()):
            past["status"] += ": its approval is void"
        requirement, digest = request.requirement, args_digest_of(request)
        return cls(
            **past,
            args=dict(redact(request.effective_args, secrets=secrets).args) if not problem else None,
            args_digest=digest,
            args_schema=dict(request.schema) if request.schema is not None else None,
            long=request.state is State.PENDING and not problem and has_long_card(request),
            card=card,
            problem=problem,
            role=visible(requirement.role) if requirement.role is not None else None,
            not_by=tuple(sorted(map(visible, requirement.not_by))),
            who=visible(who(requirement)),
            agreed=len(approvers(requirement, request.votes, digest, request.parties)),
            shortage=visible(request.shortage),
            refused=visible(refused),
            requester=visible(request.requester),
            owners=tuple(map(visible, request.owners)),
            assigned=visible(request.assigned),
            deadline=request.deadline,
            escalated=request.escalated,
            votes=tuple(VoteView.of(request, one) for one in request.votes) if not problem else (),
            decision=VoteView.of_decision(request, decision) if decision is not None else None,
            comments=tuple(CommentView.of(one, secrets) for one in request.comments),
            unanswered=tuple(one.id for one in unanswered(request.comments)),
            offers=tuple(
                OfferLine(number=number, name=visible(one.name), text=offer_text(request, one))
                for number, one in enumerate(offers(request) if with_card and request.state is State.PENDING else (), 1)
            ),
            answers=answers_to(request.state, request.run),
            process=visible(claim.holder) if claim is not None else "",
            started_at=claim.at if claim is not None else None,
            ended_at=claim.ended_at if claim is not None else None,
            history=tuple(map(EventView.of, history)) if history is not None else None,
            version=request.version,
        )


def _past(request: ApprovalRequest) -> dict[str, Any]:
    status, secrets, decision = status_of(request), request.secrets, request.decision
    other = request.other_args
    withdrawn = decision.note if decision is not None and request.state is State.CANCELLED else ""
    return {
        "id": visible(request.id),
        "state": request.state,
        "title": kept_text(request.title),
        "tool": safe_text(request.tool_name),
        "worker": tuple(map(visible, request.worker)),
        "run": visible(request.run),
        "opened_at": request.opened_at,
        "quorum": request.requirement.quorum,
        "answered": len(request.votes),
        "status": safe_text(status.title, secrets=secrets),
        "handed_over": status.handed_over,
        "approved_by": tuple(sorted(map(visible, _approved_by(request).values()))),
        "decided_by": visible(str(status.by)) if status.by is not None else "",
        "decided_at": status.at,
        "by_rule": status.by_rule,
        "note": safe_text(status.note, secrets=secrets),
        "changes": tuple(changes(request, other)) if other is not None else (),
        "told_by": visible(status.told_by),
        "result": safe_text(status.result, secrets=secrets) if status.told_by else kept_text(status.result, lines=True),
        "error": kept_text(status.error, lines=True),
        "exit_code": exit_code(status.result),
        "settled": safe_text(settled_text(request), secrets=secrets),
        "reason": safe_text(withdrawn, secrets=secrets) if not status.told_by else "",
    }


def _was_approved(history: Sequence[Entry]) -> bool:
    """Whether a request had been approved before it was cancelled: then people read both, and how it ended."""
    settled = (event_body(entry.body) for entry in history if entry.kind == "settled")
    return any(isinstance(one, dict) and cast("dict[str, Any]", one).get("ending") == "approved" for one in settled)


def _approved_by(request: ApprovalRequest) -> Mapping[str, str]:
    try:
        return agreed_by(request) if request.votes else {}
    except CannotCanonicalise:
        return {}


def why_unseen(request: ApprovalRequest) -> str:
    """Why there can be no card; empty if there can. Then the call cannot be approved either."""
    try:
        has_long_card(request)
    except CannotCanonicalise as error:
        return f"this call cannot be shown, so it cannot be approved: {visible(str(error))}"
    return ""


def args_digest_of(request: ApprovalRequest) -> str:
    """Digest of the arguments that would run; empty if they have none and cannot be approved."""
    try:
        return request.args_digest
    except CannotCanonicalise:
        return ""


def changes(request: ApprovalRequest, edited: Mapping[str, Any]) -> Iterator[str]:
    """Yield what a person changed in the arguments, one line each."""
    old, new = (redact(args, secrets=request.secrets).args for args in (request.args, edited))
    for name in dict.fromkeys((*old, *new)):
        if name not in new:
            yield f"{visible(name)}: left out"
        elif name not in old or old[name] != new[name]:
            yield f"{visible(name)}: {_value(new[name])}" + (f", not {_value(old[name])}" if name in old else "")


def _value(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return printable(text if len(text) <= 60 else f"{text[:59]}…")


async def request_view(broker: Broker, prefix: str, *, viewer: str = "") -> RequestView:
    """Return the request whose id begins with `prefix`, with its history, after expired ones were settled."""
    await broker.sweep()
    request = await broker.shown(await broker.find(prefix), Actor(name=viewer) if viewer else None)
    history = await broker.store.read(lambda tx: tx.record.entries(request=request.id))
    return RequestView.of(request, viewer, history=history)
