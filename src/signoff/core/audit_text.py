"""Events of the audit log in words: who did what. For lists and spreadsheets; the event itself is authoritative."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, cast

from signoff.core.aap import HOLDER
from signoff.core.moment import Zone, in_utc, moment_text
from signoff.core.record import Entry
from signoff.core.result_text import in_short


@dataclass(frozen=True, slots=True)
class EventText:
    """An event on one line. Texts are as in the audit log; the caller must escape hidden characters."""

    who: str
    what: str
    rules: tuple[str, ...] = ()
    """The rules that decided."""
    result: str = ""
    """What a call returned, as far as it is kept."""


def account_of(entry: Entry, zone: Zone = in_utc) -> EventText:
    """Describe an event. One that cannot be read is returned as it is."""
    body = event_body(entry.body)
    if not isinstance(body, dict):
        return EventText("", entry.body)
    said = cast("dict[str, Any]", body)
    gone = ", ".join(_erased(entry, said))
    asked_for = _text(said.get("requester")) if entry.kind == "asked" else ""
    who = "" if asked_for else _text(said.get("by") or said.get("requester"))  # nobody is asked by asking for them
    head = _head(said, zone) + (f" (for {asked_for})" if asked_for else "")
    if verb := _SAID.get(_text(said.get("what"))) if entry.kind == "commented" else None:
        head = f"{verb}: {head}"
    what = ": ".join(filter(None, (head, _rest(said, entry.kind))))
    if gone:
        what = f"{what} (erased: {gone})" if what else f"(erased: {gone})"
    return EventText(who, what, _texts(said.get("rules")), _text(said.get("preview")) if entry.kind == "ran" else "")


def process_text(name: str) -> str:
    """A process for people, by its id: its number and its machine. Empty if the id does not say them."""
    if name.startswith(HOLDER):
        return "the agent that asked"
    machine, *_, number, _ = name.split("/") if name.count("/") > 1 else ("", "", "")
    return f"process {number} on {machine}" if number else ""


def title_of(entry: Entry) -> str:
    """The title of the request that an event is about; empty if it has none."""
    body = event_body(entry.body)
    return _text(cast("dict[str, Any]", body).get("title")) if isinstance(body, dict) else ""


def event_body(text: str) -> object:
    """Parse the body of an event; None if it is not JSON."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _erased(entry: Entry, left: Mapping[str, Any]) -> list[str]:
    """The fields that an event no longer has."""
    digests = event_body(entry.digests)
    return [name for name in cast("dict[str, Any]", digests) if name not in left] if isinstance(digests, dict) else []


_SUBJECTS = ("title", "text", "agent", "name")
_REASONS = ("why", "note", "reason", "error", "preview", "detail")
_SAID = {"note": "says", "question": "asks back", "answer": "answers"}
_STARTS = ("run started", "run resumed")
_ENDINGS = ("error", "preview", "why", "note")


def _head(said: Mapping[str, Any], zone: Zone) -> str:
    if "key" in said and (key := _key(said)):
        return key
    workers = _texts(said.get("worker"))
    for name in _SUBJECTS:
        if text := _text(said.get(name)):
            return f"{' > '.join(workers)}: {text}" if workers else text
    if process := process_text(_text(said.get("process"))):
        return f"by {process}"
    if tool := _text(said.get("tool")):
        args, chain = said.get("args"), " > ".join((*workers, tool))
        return f"{chain} {json.dumps(args, ensure_ascii=False)}" if args else chain
    return ", ".join(_answer(said, zone))


def _key(said: Mapping[str, Any]) -> str:
    """Which access key an event is about: what it is, and whom it lets in."""
    kind, holder, label = (_text(said.get(name)) for name in ("kind", "holder", "label"))
    match kind:
        case "link":
            return f"a sign-in link for {holder}"
        case "session":
            return f"a session of {holder}{f', {label}' if label else ''}"
        case "token":
            return f"a token for {holder}: {', '.join(_texts(said.get('permissions')))}{f' ({label})' if label else ''}"
        case "instance":
            return f"the instance {label or holder}"
        case _:
            return ""


def _answer(said: Mapping[str, Any], zone: Zone) -> Iterator[str]:
    """What was answered about something that an earlier event names."""
    for name, yes, no in (
        ("approved", "approves", "denies"),
        ("happened", "says that it happened", "says that it did not happen"),
    ):
        if isinstance(said.get(name), bool):
            yield yes if said[name] else no
    if "edited_args" in said:
        yield f"with other arguments {json.dumps(said['edited_args'], ensure_ascii=False)}"
    if absent := _text(said.get("stands_for")):
        yield f"standing in for {absent}"
    if ending := _text(said.get("ending") or said.get("state")):
        yield ending
    if "to" in said:
        yield f"to {_text(said['to']) or 'nobody'}"
    if absent := _text(said.get("absent")):
        until = f"until {_moment(said['until'], zone)}" if "until" in said else "no longer"
        yield f"{_text(said.get('deputy'))} stands in for {absent} {until}"


def _rest(said: Mapping[str, Any], kind: str) -> str:
    """The reason; for a call that ran, how it ended; for a run that was started or resumed, how it was loosened.

    For a call that was asked about again, why it was.
    """
    if changed := _texts(said.get("changed")):
        return f"asked again: {'; '.join(changed)}"
    if kind in _STARTS and (loosened := _texts(said.get("loosened"))):
        return f"loosened: {'; '.join(loosened)}"
    if kind == "remembered" and (grant := _text(said.get("grant"))):
        return f"grant {grant}"
    if kind == "asked" and (short := _text(said.get("short"))):
        return "; ".join(filter(None, (_text(said.get("reason")), short)))
    names = _ENDINGS if kind in ("ran", "failed") else _REASONS
    name = next((name for name in names if _text(said.get(name))), "")
    text = _text(said.get(name))
    return in_short(text) if name in ("preview", "detail") else text


def _texts(value: object) -> tuple[str, ...]:
    return tuple(map(_text, cast("list[object]", value))) if isinstance(value, list) else ()


def _moment(value: object, zone: Zone) -> str:
    try:
        return moment_text(datetime.fromisoformat(_text(value)), zone)
    except (ValueError, OverflowError):
        return _text(value)


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
