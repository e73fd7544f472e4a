"""One request as data: the output of `signoff show --json`, and what its text output is made from."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any, cast

from signoff.core.audit_text import event_body
from signoff.core.card import Card, CardArg, CardComment, Choice, beside_edits, card_for
from signoff.core.comment import unanswered
from signoff.core.decision import Keeps
from signoff.core.inbox_row import ALREADY, agreed, agreed_text
from signoff.core.lifecycle import OPEN
from signoff.core.moment import iso
from signoff.core.people import Actor
from signoff.core.preview import Preview
from signoff.core.quorum import who, why_not_entitled
from signoff.core.redact import redact
from signoff.core.request import ApprovalRequest, State
from signoff.core.request_status import settled_at, settled_text, status_of
from signoff.core.safe_text import kept_text, printable, safe_text
from signoff.core.visible_text import visible
from signoff.errors import CannotCanonicalise
from signoff.reports.inbox_report import outcomes

if TYPE_CHECKING:
    from signoff.broker import Broker
    from signoff.core.comment import Comment
    from signoff.core.decision import ApprovalDecision
    from signoff.core.record import Entry
    from signoff.core.vote import Vote

TOLD = "told"
"""The key of values that only the text output needs."""
MOST_LISTED = 200
"""The longest page of a report from a server."""
FORMAT = 2
"""The format version of all reports: a command reads only reports of the same format."""


async def request_sheet(broker: Broker, prefix: str, *, viewer: str = "") -> dict[str, Any]:
    """Return the request whose id begins with `prefix`, after expired ones were settled. `viewer` is who reads it."""
    await broker.sweep()
    reader = Actor(name=viewer) if viewer else None
    request = await broker.shown(await broker.find(prefix), reader)
    history = await broker.store.read(lambda tx: tx.record.entries(request=request.id))
    return sheet_of(request, history, viewer=viewer)


def sheet_of(request: ApprovalRequest, history: Sequence[Entry], *, viewer: str = "") -> dict[str, Any]:
    """Return all data of a request, with secrets masked and times in UTC. Texts under `told` are safe to print."""
    refused, request = request.refused, request.changed_to(refused="")
    try:
        card, problem = card_for(request, viewer=viewer), ""
    except CannotCanonicalise as error:
        card, problem = None, f"this call cannot be shown, so it cannot be approved: {visible(str(error))}"
    status, last = status_of(request), request.votes[-1].decision if request.votes else None
    told = {
        "status": f"{status.title}: its approval is void" if _was_approved(request, history) else status.title,
        "needs": card.needs if card is not None else "",
        "agreed": visible(agreed_text(request)) if card is not None else "",
        "who": visible(who(request.requirement)),
        "short": visible(request.shortage),
        "refused": visible(refused),
        "owners": ", ".join(map(visible, request.owners)),
        "void": [_void(request, vote) for vote in request.votes],
        "changes": [_changed(request, vote.decision) for vote in request.votes],
        "is_own_decision": request.decision is not None and last != request.decision,
        "settled": safe_text(settled_text(request), secrets=request.secrets),
        "settled_at": iso(settled_at(request)),
        "result": safe_text(status.result, secrets=request.secrets)
        if status.told_by
        else kept_text(status.result, lines=True),
    }
    shown = replace(card, needs=card.needs.removesuffix(ALREADY)) if card is not None else None
    return {**request_data(request, shown, problem, history), TOLD: told}


def card_of_sheet(sheet: Mapping[str, Any]) -> Card | None:
    """Rebuild the card from a sheet, as its reader sees it; None if it cannot be shown."""
    written = sheet["card"]
    if written is None:
        return None
    parts: dict[str, Any] = {}
    for name, value in written.items():
        parts[name] = tuple(cast("list[Any]", value)) if isinstance(value, list) else value
    parts |= {
        "args": tuple(CardArg(**one) for one in written["args"]),
        "details": tuple(CardArg(**one) for one in written["details"]),
        "comments": tuple(CardComment(**one) for one in written["comments"]),
        "preview": Preview(**written["preview"]) if written["preview"] is not None else None,
        "choices": tuple(map(Choice, written["choices"])),
        "keeps": Keeps(written["keeps"]),
        "needs": sheet[TOLD]["needs"],
    }
    return Card(**parts)


def request_data(request: ApprovalRequest, card: Card | None, problem: str, history: Sequence[Entry]) -> dict[str, Any]:
    """Return the whole request as JSON data, with secrets masked and times in UTC."""
    from signoff.policy.grant_text import offer_text
    from signoff.policy.offer import offers

    claim = request.claim
    return {
        "id": request.id,
        "state": str(request.state),
        "title": request.title,
        "tool": safe_text(request.tool_name),
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
        "session": card.session or None if card is not None else None,
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
            {"number": number, "name": offer.name, "text": offer_text(request, offer)}
            for number, offer in enumerate(offers(request) if request.state is State.PENDING else (), 1)
        ],
        "answers": list(outcomes(request.run))
        if request.state is State.UNKNOWN
        else ["approve", "deny"]
        if request.state in OPEN
        else [],
        "history": [
            {"seq": entry.seq, "at": entry.at, "kind": entry.kind, "body": event_body(entry.body)} for entry in history
        ],
    }


def masked(text: str, secrets: Sequence[str] = ()) -> str:
    """Return a text that a person typed, safe to show: secrets masked, hidden characters visible."""
    return safe_text(text, secrets=secrets)


def comment_data(comment: Comment, secrets: Sequence[str]) -> dict[str, Any]:
    """Return a comment as JSON data."""
    return {
        "comment": comment.id,
        "kind": str(comment.kind),
        "by": _actor(comment.by),
        "at": iso(comment.at),
        "text": safe_text(comment.text, secrets=secrets, lines=True),
        "answers": comment.answers or None,
    }


def changes(request: ApprovalRequest, edited: Mapping[str, Any]) -> Iterator[str]:
    """Yield what a person changed in the arguments, one line each."""
    old, new = (redact(args, secrets=request.secrets).args for args in (request.args, edited))
    for name in dict.fromkeys((*old, *new)):
        if name not in new:
            yield f"{visible(name)}: left out"
        elif name not in old or old[name] != new[name]:
            yield f"{visible(name)}: {_value(new[name])}" + (f", not {_value(old[name])}" if name in old else "")


def _changed(request: ApprovalRequest, decision: ApprovalDecision) -> list[str] | None:
    if decision.edited_args is None:
        return None
    said = beside_edits(request)
    return [*changes(request, decision.edited_args), *((said,) if said else ())]


def _void(request: ApprovalRequest, vote: Vote) -> str:
    """Return why a vote no longer counts while the request is pending; empty if it counts."""
    if request.state is not State.PENDING or not vote.decision.approved:
        return ""
    return masked(why_not_entitled(request.requirement, vote.principal, request.parties))


def _was_approved(request: ApprovalRequest, history: Sequence[Entry]) -> bool:
    """Whether a cancelled request had been approved: then people read both, and how it ended."""
    if request.state is not State.CANCELLED:
        return False
    settled = (event_body(entry.body) for entry in history if entry.kind == "settled")
    return any(isinstance(one, dict) and cast("dict[str, Any]", one).get("ending") == "approved" for one in settled)


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


def _value(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return printable(text if len(text) <= 60 else f"{text[:59]}…")
