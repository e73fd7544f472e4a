"""The state and history of a request, in words for people."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from signoff.cli.terminal_text import local, now, safe, short_local
from signoff.core.audit_text import process_text
from signoff.core.moment import ago, moment_text
from signoff.core.people import Actor
from signoff.core.visible_text import quoted, visible
from signoff.reports.inbox_report import outcomes
from signoff.reports.request_sheet import TOLD

Sheet = Mapping[str, Any]
"""A request, as returned by `signoff.reports.request_sheet`."""


def going_on(run: Mapping[str, Any]) -> str:
    """How a run continues whose requests are answered, as a line; `run` is a report of a run."""
    resumer = run[TOLD].get("resumer") or ""
    text = resume_step(run)
    return (
        f"{text[:1].upper()}{text[1:].removesuffix(' it')} its run." if resumer else f"Its run can be resumed: {text}"
    )


def resume_step(run: Mapping[str, Any]) -> str:
    """What resumes a run: a program that does by itself, a command, or the program that started it."""
    if resumer := run[TOLD].get("resumer"):
        return f"{safe(resumer)} resumes it"
    name = safe(run["id"])
    if run["agent"]:
        return f"signoff resume {name}"
    # Only that program knows its agent.
    return f"the program that started it has to call signoff.resume(agent, {name!r})"


def outcome_step(request_id: str) -> str:
    """What to do about a call that started and whose process no longer responds."""
    return f"its outcome is unknown: signoff outcome {safe(request_id)} happened, did-not or stop-run"


def late_text(sheet: Sheet) -> str:
    """Who settled a request, when (local time) and how, for a person who answers too late."""
    told = sheet[TOLD]
    moment = moment_of(told["settled_at"])
    text: str = told["settled"]
    return text if moment is None else text.replace(moment_text(moment), moment_text(moment, datetime.astimezone))


def moment_of(text: str | None) -> datetime | None:
    """Parse an ISO time from a report; None for an empty one."""
    return datetime.fromisoformat(text) if text else None


def comment_text(comment: Mapping[str, Any]) -> str:
    """The text of a comment, with its line breaks; a model's text in quotes, because nothing checks it."""
    return f"“{comment['text']}”" if comment["by"]["kind"] == "model" else comment["text"]


_VERBS = {"note": "says", "question": "asks back", "answer": "answers"}


def comment_facts(sheet: Sheet) -> Iterator[tuple[str, str]]:
    """All comments on a request."""
    for one in sheet["comments"]:
        about = f", to {safe(one['answers'])}" if one["answers"] else ""
        about = ", not answered yet" if one["comment"] in sheet["unanswered"] else about
        heading = visible(f"{_who(one['by'])} {_VERBS[one['kind']]}")
        yield short_local(_moment(one["at"])), f"{heading}  ({safe(one['comment'])}{about})"
        yield "", comment_text(one)


def outcome_facts(sheet: Sheet) -> Iterator[tuple[str, str]]:
    """When and for whom it was asked, the votes, and how it ended. The card says who must agree, and until when."""
    at, told = now(), sheet[TOLD]
    if (opened := moment_of(sheet["opened_at"])) is not None:
        yield "asked", f"{local(opened)} ({ago(opened, at)})"
    for name, value in (("for", sheet["requester"]), ("run", sheet["run"])):
        if value:
            yield name, visible(value)
        if name == "for" and told["owners"]:
            yield "owner", told["owners"]
    if sheet["assigned"]:
        yield "assigned", visible(sheet["assigned"])
    for vote, void, changes in zip(sheet["votes"], told["void"], told["changes"], strict=True):
        yield "vote", _vote_text(vote) + (f" (void: {void})" if void else "")
        if changes is not None:
            yield "", "\n".join(changes)
    if told["is_own_decision"]:
        yield "decided", _decision_text(sheet["decision"])
    yield from _call_facts(sheet)


def _vote_text(vote: Mapping[str, Any]) -> str:
    text = _decision_text(vote)
    return f"{text}, in the place of {visible(vote['stands_for'])}" if vote["stands_for"] is not None else text


def _decision_text(decision: Mapping[str, Any]) -> str:
    how = "approved" if decision["approved"] else decision["ending"]
    if decision["edited_args"] is not None:
        how += " with other arguments"
    by = decision["by"]
    whose = f" by {visible(_who(by))}" if by is not None else ""
    via = f" ({visible(by['via'])})" if by is not None and by["via"] else ""
    moment = moment_of(decision["at"])
    when = f" at {local(moment)}" if moment is not None else ""
    note = f": {quoted(decision['note'])}" if decision["note"] else ""
    return f"{how}{whose}{via}{when}{note}"


def _who(by: Mapping[str, Any]) -> str:
    return str(Actor(name=by["name"], kind=by["kind"]))


def _call_facts(sheet: Sheet) -> Iterator[tuple[str, str]]:
    claim = sheet["claim"]
    if claim is None or claim["at"] is None:
        return
    yield "started", f"{local(_moment(claim['at']))} by {visible(process_text(claim['process']))}"
    if (ended := moment_of(claim["ended_at"])) is not None:
        how = f"{visible(claim['told_by'])} says so" if claim["told_by"] else "as its process reported"
        yield "ended", f"{local(ended)}, {how}"
    if claim["error"]:
        yield "error", safe(claim["error"])
    if result := sheet[TOLD]["result"]:
        yield "note" if claim["told_by"] else "result", result


def history_facts(sheet: Sheet) -> Iterator[tuple[str, str]]:
    """Every event about a request, in order."""
    was_approved = False
    for entry in sheet["history"]:
        body, kind = entry["body"], entry["kind"]
        if kind == "assigned" and not body.get("to"):
            kind = "released"
        elif kind == "settled" and body.get("ending") == "cancelled":  # it is not settled a second time
            kind, body = "approval void" if was_approved else "withdrawn", {**body, "ending": None}
        was_approved |= body.get("ending") == "approved"
        told = ", ".join(_told(body))
        yield short_local(_moment(entry["at"])), f"{safe(kind)}{f': {told}' if told else ''}"


def _told(body: dict[str, Any]) -> Iterator[str]:
    """What an event says beyond its kind; the card says what was asked."""
    if body.get("ending") is not None:
        yield safe(str(body["ending"]))
    elif body.get("approved") is not None:
        edited = " with other arguments" if "edited_args" in body else ""
        yield f"approved{edited}" if body["approved"] else "denied"
    elif body.get("happened") is not None:
        yield "it happened" if body["happened"] else "it did not happen"
    if process := body.get("process"):
        yield f"by {safe(process_text(str(process)))}"
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


def offer_facts(sheet: Sheet) -> Iterator[tuple[str, str]]:
    """The numbered ways to remember an answer, while the request can be answered."""
    for one in sheet["offers"]:
        yield str(one["number"]), f"{visible(one['name'])}: {one['text']}"


def choices(sheet: Sheet) -> Iterator[str]:
    """The commands with which a person can act on it now."""
    name = safe(sheet["id"])
    if sheet["state"] == "pending":
        refused = sheet[TOLD].get("refused", "")
        if refused:
            yield f"You may not approve it: {refused}"
        yield f"{'Somebody else: ' if refused else ''}signoff approve {name}, or signoff deny {name} --note WHY"
        if len(sheet["unanswered"]) > 1:
            yield f"signoff reply {name} TEXT --to QUESTION answers a question"
        elif sheet["unanswered"]:
            yield f"signoff reply {name} TEXT answers the question"
    elif sheet["state"] == "unknown":
        for word, meaning in outcomes(sheet["run"] or "").items():
            yield f"signoff outcome {name} {word:9}  {meaning}"


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text)
