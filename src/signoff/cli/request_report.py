"""The state and history of a request, in words for people."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from signoff.cli.terminal_text import local, now, safe, short_local
from signoff.core.audit_text import process_text
from signoff.core.moment import ago, moment_text
from signoff.core.request import State
from signoff.core.visible_text import quoted
from signoff.views.inbox_view import OUTCOMES
from signoff.views.request_view import CommentView, RequestView, VoteView
from signoff.views.run_view import RunView


def going_on(run: RunView) -> str:
    """How a run continues whose requests are answered, as a line."""
    text = resume_step(run)
    if run.resumer:
        return f"{text[:1].upper()}{text[1:].removesuffix(' it')} its run."
    return f"Its run can be resumed: {text}"


def resume_step(run: RunView) -> str:
    """What resumes a run: a program that does by itself, a command, or the program that started it."""
    if run.resumer:
        return f"{safe(run.resumer)} resumes it"
    name = safe(run.id)
    if run.agent:
        return f"signoff resume {name}"
    # Only that program knows its agent.
    return f"the program that started it has to call signoff.resume(agent, {name!r})"


def outcome_step(request_id: str) -> str:
    """What to do about a call that started and whose process no longer responds."""
    return f"its outcome is unknown: signoff outcome {safe(request_id)} happened, did-not or stop-run"


def late_text(request: RequestView) -> str:
    """Who settled a request, when (local time) and how, for a person who answers too late."""
    moment, text = request.decided_at, safe(request.settled)
    return text if moment is None else text.replace(moment_text(moment), moment_text(moment, datetime.astimezone))


def comment_text(comment: CommentView) -> str:
    """The text of a comment, with its line breaks; a model's text in quotes, because nothing checks it."""
    return f"“{comment.text}”" if comment.claim else comment.text


_VERBS = {"note": "says", "question": "asks back", "answer": "answers"}


def comment_facts(request: RequestView) -> Iterator[tuple[str, str]]:
    """All comments on a request."""
    for one in request.comments:
        about = f", to {safe(one.answers)}" if one.answers else ""
        about = ", not answered yet" if one.id in request.unanswered else about
        yield short_local(one.at), f"{safe(f'{one.by} {_VERBS[one.kind]}')}  ({safe(one.id)}{about})"
        yield "", comment_text(one)


def outcome_facts(request: RequestView) -> Iterator[tuple[str, str]]:
    """When and for whom it was asked, the votes, and how it ended. The card says who must agree, and until when."""
    if request.opened_at is not None:
        yield "asked", f"{local(request.opened_at)} ({ago(request.opened_at, now())})"
    facts = {
        "for": request.requester,
        "owner": ", ".join(request.owners),
        "run": request.run,
        "assigned": request.assigned,
    }
    for name, value in facts.items():
        if value:
            yield name, safe(value)
    for vote in request.votes:
        text = f"{_text(vote)}, in the place of {safe(vote.stands_for)}" if vote.stands_for else _text(vote)
        yield "vote", text + (f" (void: {safe(vote.void)})" if vote.void else "")
        if vote.edited:
            yield "", "\n".join(vote.changes)
    if request.decision is not None:
        yield "decided", _text(request.decision)
    yield from _call_facts(request)


def _text(vote: VoteView) -> str:
    how = ("approved" if vote.approved else vote.ending) + (" with other arguments" if vote.edited else "")
    whose = f" by {safe(vote.by)}" if vote.by else ""
    via = f" ({safe(vote.via)})" if vote.via else ""
    when = f" at {local(vote.at)}" if vote.at is not None else ""
    note = f": {quoted(vote.note)}" if vote.note else ""
    return f"{how}{whose}{via}{when}{note}"


def _call_facts(request: RequestView) -> Iterator[tuple[str, str]]:
    if request.started_at is None:
        return
    process = process_text(request.process)
    yield "started", local(request.started_at) + (f" by {safe(process)}" if process else "")
    if request.ended_at is not None:
        how = f"{safe(request.told_by)} says so" if request.told_by else "as its process reported"
        yield "ended", f"{local(request.ended_at)}, {how}"
    if request.error:
        yield "error", safe(request.error)
    if request.result:
        yield "note" if request.told_by else "result", request.result


def history_facts(request: RequestView) -> Iterator[tuple[str, str]]:
    """Every event about a request, in order."""
    was_approved = False
    for event in request.history or ():
        body: dict[str, Any] = event.body
        kind = event.kind
        if kind == "assigned" and not body.get("to"):
            kind = "released"
        elif kind == "settled" and body.get("ending") == "cancelled":  # it is not settled a second time
            kind, body = "approval void" if was_approved else "withdrawn", {**body, "ending": None}
        was_approved |= body.get("ending") == "approved"
        told = ", ".join(_told(body))
        yield short_local(datetime.fromisoformat(event.at)), f"{safe(kind)}{f': {told}' if told else ''}"


def _told(body: dict[str, Any]) -> Iterator[str]:
    """What an event says beyond its kind; the card says what was asked."""
    if body.get("ending") is not None:
        yield safe(str(body["ending"]))
    elif body.get("approved") is not None:
        edited = " with other arguments" if "edited_args" in body else ""
        yield f"approved{edited}" if body["approved"] else "denied"
    elif body.get("happened") is not None:
        yield "it happened" if body["happened"] else "it did not happen"
    if process := process_text(str(body.get("process", ""))):
        yield f"by {safe(process)}"
    for name, before in _WORDS.items():
        if value := body.get(name):
            yield f"{before}{safe(quoted(str(value)) if name in ('note', 'text') else str(value))}"


_WORDS = {
    "by": "by ",
    "stands_for": "in the place of ",
    "via": "via ",
    "to": "to ",
    "needs": "",
    "why": "",
    "what": "",
    "text": "",
    "note": "",
    "error": "",
    "preview": "",
}


def offer_facts(request: RequestView) -> Iterator[tuple[str, str]]:
    """The numbered ways to remember an answer, while the request can be answered."""
    for one in request.offers:
        yield str(one.number), f"{safe(one.name)}: {one.text}"


def choices(request: RequestView) -> Iterator[str]:
    """The commands with which a person can act on it now."""
    name = safe(request.id)
    if request.state is State.PENDING:
        if request.refused:
            yield f"You may not approve it: {request.refused}"
        yield f"{'Somebody else: ' if request.refused else ''}signoff approve {name}, or signoff deny {name} --note WHY"
        if len(request.unanswered) > 1:
            yield f"signoff reply {name} TEXT --to QUESTION answers a question"
        elif request.unanswered:
            yield f"signoff reply {name} TEXT answers the question"
    elif request.state is State.UNKNOWN:
        for word in request.answers:
            yield f"signoff outcome {name} {word:9}  {OUTCOMES.get(word, '')}"
