"""What became of a request, in words for people and as data for programs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import TYPE_CHECKING, Any

from signoff.cli.inbox_page import OUTCOMES
from signoff.cli.terminal_text import iso, local, now, safe, short_local
from signoff.core.comment import CommentKind, unanswered
from signoff.core.inbox_row import agreed
from signoff.core.lifecycle import OPEN
from signoff.core.moment import ago
from signoff.core.offer import offers
from signoff.core.quorum import why_not_entitled
from signoff.core.redact import redact
from signoff.core.request import ApprovalRequest, State
from signoff.core.request_status import settled_text, status_of
from signoff.core.safe import masked_pattern, safe_text, visible_around
from signoff.core.visible import quoted, visible

if TYPE_CHECKING:
    from signoff.core.card import Card
    from signoff.core.comment import Comment
    from signoff.core.decision import ApprovalDecision
    from signoff.core.offer import Offer
    from signoff.core.people import Actor
    from signoff.core.record import Entry
    from signoff.core.run import SavedRun
    from signoff.core.vote import Vote


def how_to_go_on(run: SavedRun) -> str:
    """What to do with a run whose questions are answered."""
    return f"Its run can go on: signoff resume {safe(run.id)}" if run.agent else f"Its run can go on: {by_program(run)}"


def by_program(run: SavedRun) -> str:
    """What to do with a run that a program began: nobody else knows its agent."""
    return f"the program that began it calls signoff.resume(agent, {safe(run.id)!r})"


def outcome_step(request: ApprovalRequest) -> str:
    """What to do about a call that began and whose process is silent."""
    return f"nobody knows whether it happened: signoff outcome {safe(request.id)} happened, did-not or stop-run"


def masked(text: str, secrets: Sequence[str] = ()) -> str:
    """A text that somebody typed, safe to show: secrets masked, what hides made visible."""
    return safe_text(text, secrets=secrets)


def offer_line(request: ApprovalRequest, offer: Offer) -> str:
    """What an offer says, safe to show."""
    if offer.pattern is None:
        return visible(offer.text)
    pattern, masks = masked_pattern(offer.pattern, secrets=request.secrets)
    told = ", ".join(one.text for one in pattern)
    return visible_around(masks, f"{request.tool_name} with {told}")


def late_text(request: ApprovalRequest) -> str:
    """Who settled a request, when and how, for whoever comes late: by the clock on their wall."""
    return masked(settled_text(request, datetime.astimezone), request.secrets)


def comment_text(comment: Comment, secrets: Sequence[str]) -> str:
    """What somebody said, safe to show, on as many lines as it has; a model's words in quotes."""
    text = safe_text(comment.text, secrets=secrets, lines=True)
    return f"“{text}”" if comment.is_claim else text


def comment_facts(request: ApprovalRequest) -> Iterator[tuple[str, str]]:
    """What was said about a request, all of it."""
    waiting = {one.id for one in unanswered(request.comments)}
    for one in request.comments:
        yield short_local(one.at), f"{visible(one.heading)}  ({safe(one.id)}{_about(one, waiting)})"
        yield "", comment_text(one, request.secrets)


def _about(comment: Comment, waiting: set[str]) -> str:
    if comment.kind is CommentKind.ANSWER:
        return f", to {safe(comment.answers)}"
    return ", not answered yet" if comment.id in waiting else ""


def comment_data(comment: Comment, secrets: Sequence[str]) -> dict[str, Any]:
    """A comment for programs."""
    return {
        "comment": comment.id,
        "kind": str(comment.kind),
        "by": _actor(comment.by),
        "at": iso(comment.at),
        "text": safe_text(comment.text, secrets=secrets, lines=True),
        "answers": comment.answers or None,
    }


def outcome_facts(request: ApprovalRequest) -> Iterator[tuple[str, str]]:
    """When it was asked and for whom, who said what, and how it ended. The card says who must agree, and until when."""
    at = now()
    if request.opened_at is not None:
        yield "asked", f"{local(request.opened_at)} ({ago(request.opened_at, at)})"
    for name, value in (("for", request.requester), ("owner", ", ".join(request.owners)), ("run", request.run)):
        if value:
            yield name, visible(value)
    if request.assigned:
        yield "assigned", visible(request.assigned)
    for vote in request.votes:
        yield "vote", _vote_text(vote, request.secrets) + _void(request, vote)
        if vote.decision.edited_args is not None:
            yield "", "\n".join(changes(request, vote.decision.edited_args))
    if request.decision is not None and (not request.votes or request.votes[-1].decision != request.decision):
        yield "decided", _decision_text(request.decision, request.secrets)
    yield from _call_facts(request)


def _void(request: ApprovalRequest, vote: Vote) -> str:
    """Why a vote no longer counts, while it waits for others."""
    if request.state is not State.PENDING or not vote.decision.approved:
        return ""
    why = why_not_entitled(request.requirement, vote.principal, request.parties)
    return f" (void: {masked(why)})" if why else ""


def _vote_text(vote: Vote, secrets: Sequence[str]) -> str:
    text = _decision_text(vote.decision, secrets)
    return f"{text}, in the place of {visible(vote.stands_for.name)}" if vote.stands_for is not None else text


def _decision_text(decision: ApprovalDecision, secrets: Sequence[str]) -> str:
    how = "approved" if decision.approved else str(decision.ending)
    if decision.edited_args is not None:
        how += " with other arguments"
    by = f" by {visible(str(decision.by))}" if decision.by is not None else ""
    via = f" ({visible(decision.by.via)})" if decision.by is not None and decision.by.via else ""
    when = f" at {local(decision.at)}" if decision.at is not None else ""
    note = f": {masked(quoted(decision.note), secrets)}" if decision.note else ""
    return f"{how}{by}{via}{when}{note}"


def _call_facts(request: ApprovalRequest) -> Iterator[tuple[str, str]]:
    status = status_of(request)
    if status.started_at is None:
        return
    yield "started", f"{local(status.started_at)} by process {visible(status.process)}"
    if status.ended_at is not None:
        how = f"{visible(status.told_by)} says so" if status.told_by else "as its process reported"
        yield "ended", f"{local(status.ended_at)}, {how}"
    if status.error:
        yield "error", safe(status.error)
    if status.result:
        told = masked(status.result, request.secrets) if status.told_by else safe(status.result)
        yield "note" if status.told_by else "result", told


def history_facts(history: Sequence[Entry]) -> Iterator[tuple[str, str]]:
    """Every event about a request, in order."""
    for entry in history:
        body = json.loads(entry.body)
        told = ", ".join(_told(body))
        kind = "released" if entry.kind == "assigned" and not body.get("to") else entry.kind
        yield short_local(datetime.fromisoformat(entry.at)), f"{safe(kind)}{f': {told}' if told else ''}"


def _told(body: dict[str, Any]) -> Iterator[str]:
    """What an event says beyond its kind; the card says what was asked."""
    if body.get("ending") is not None:
        yield safe(str(body["ending"]))
    elif body.get("approved") is not None:
        yield "approved" if body["approved"] else "denied"
    elif body.get("happened") is not None:
        yield "it happened" if body["happened"] else "it did not happen"
    for name, before in _WORDS.items():
        if value := body.get(name):
            yield f"{before}{safe(quoted(str(value)) if name in ('note', 'text') else str(value))}"


_WORDS = {
    "by": "by ",
    "stands_for": "in the place of ",
    "via": "via ",
    "to": "to ",
    "needs": "",
    "process": "by process ",
    "why": "",
    "what": "",
    "text": "",
    "note": "",
    "error": "",
    "preview": "",
}


def offer_facts(request: ApprovalRequest) -> Iterator[tuple[str, str]]:
    """What an answer may be remembered as, numbered, while it can be answered."""
    if request.state is State.PENDING:
        for number, offer in enumerate(offers(request), 1):
            yield str(number), f"{visible(offer.name)}: {offer_line(request, offer)}"


def choices(request: ApprovalRequest) -> Iterator[str]:
    """What a person can do about it now."""
    name = safe(request.id)
    if request.state is State.PENDING:
        yield f"signoff approve {name}, or signoff deny {name} --note WHY"
        if unanswered(request.comments):
            yield f"signoff reply {name} TEXT answers what was asked back"
    elif request.state is State.UNKNOWN:
        for word, meaning in OUTCOMES.items():
            yield f"signoff outcome {name} {word:9}  {meaning}"


def request_data(request: ApprovalRequest, card: Card | None, problem: str, history: Sequence[Entry]) -> dict[str, Any]:
    """The whole request for programs: masked, times in UTC."""
    claim = request.claim
    return {
        "id": request.id,
        "state": str(request.state),
        "title": request.title,
        "tool": request.tool_name,
        "worker": list(request.worker),
        "args": redact(request.effective_args, secrets=request.secrets).args if card is not None else None,
        "args_digest": card.digest if card is not None else None,
        "schema": request.schema,
        "card": asdict(card) if card is not None else None,
        "problem": problem or None,
        "role": request.requirement.role,
        "quorum": request.requirement.quorum,
        "not_by": sorted(request.requirement.not_by),
        "approvals": agreed(request) if card is not None else 0,
        "task": card.task if card is not None else None,
        "model_says": card.claim if card is not None else None,
        "recent": list(card.recent) if card is not None else [],
        "answers_before": asdict(request.context.answers),
        "loosened": [masked(one) for one in request.context.loosened.texts],
        "requester": request.requester or None,
        "owner": request.owner or None,
        "run": request.run or None,
        "assigned": request.assigned or None,
        "escalated": request.escalated,
        "opened_at": iso(request.opened_at),
        "deadline": iso(request.deadline),
        "votes": [_vote_data(vote, request.secrets) for vote in request.votes],
        "decision": _decision_data(request.decision, request.secrets) if request.decision is not None else None,
        "claim": {
            "process": claim.holder,
            "at": iso(claim.at),
            "ended_at": iso(claim.ended_at),
            "error": claim.error or None,
            "result_digest": claim.digest or None,
            "preview": masked(claim.preview, request.secrets) if claim.told_by else claim.preview or None,
            "told_by": claim.told_by or None,
        }
        if claim is not None
        else None,
        "comments": [comment_data(one, request.secrets) for one in request.comments],
        "unanswered": [one.id for one in unanswered(request.comments)],
        "offers": [
            {"number": number, "name": offer.name, "text": offer_line(request, offer)}
            for number, offer in enumerate(offers(request) if request.state is State.PENDING else (), 1)
        ],
        "answers": list(OUTCOMES)
        if request.state is State.UNKNOWN
        else ["approve", "deny"]
        if request.state in OPEN
        else [],
        "history": [
            {"seq": entry.seq, "at": entry.at, "kind": entry.kind, "body": json.loads(entry.body)} for entry in history
        ],
    }


def _vote_data(vote: Vote, secrets: Sequence[str]) -> dict[str, Any]:
    stands_for = vote.stands_for.name if vote.stands_for is not None else None
    return {**_decision_data(vote.decision, secrets), "args_digest": vote.args_digest, "stands_for": stands_for}


def _decision_data(decision: ApprovalDecision, secrets: Sequence[str]) -> dict[str, Any]:
    edited = decision.edited_args
    return {
        "approved": decision.approved,
        "ending": str(decision.ending),
        "note": masked(decision.note, secrets) or None,
        "edited_args": redact(edited, secrets=secrets).args if edited is not None else None,
        "remember": str(decision.remember),
        "by": _actor(decision.by),
        "at": iso(decision.at),
    }


def _actor(by: Actor | None) -> dict[str, Any] | None:
    return {"name": by.name, "kind": str(by.kind), "roles": sorted(by.roles), "via": by.via} if by is not None else None


def changes(request: ApprovalRequest, edited: Mapping[str, Any]) -> Iterator[str]:
    """What a person changed in the arguments, a line each."""
    old, new = (redact(args, secrets=request.secrets).args for args in (request.args, edited))
    for name in dict.fromkeys((*old, *new)):
        if name not in new:
            yield f"{visible(name)}: left out"
        elif name not in old or old[name] != new[name]:
            yield f"{visible(name)}: {_value(new[name])}" + (f", not {_value(old[name])}" if name in old else "")


def _value(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return safe(text if len(text) <= 60 else f"{text[:59]}…")
