"""The timeline of one run: the prompt, the model's words, calls, verdicts, requests, answers and outcomes, in order."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from signoff.broker.run_status import RunStatus
from signoff.broker.runs import text_of
from signoff.core.audit_text import account_of
from signoff.core.moment import Zone
from signoff.core.record import Entry
from signoff.core.result_text import exit_code
from signoff.core.run import Segment
from signoff.core.safe_text import kept_text, safe_text

if TYPE_CHECKING:
    from signoff.broker.broker import Broker


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """One thing that happened. Its texts are safe to show."""

    at: datetime
    kind: str
    """`prompt`, `model` for the model's words, or the kind of the audit event."""
    who: str = ""
    what: str = ""
    rules: tuple[str, ...] = ()
    request: str = ""
    result: str = ""
    """The beginning of what a call returned, with line breaks; empty if it is not recorded."""
    exit_code: int | None = None
    """Of a command that failed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelUsage:
    """Tokens and cost of a run's models, as far as their answers are kept."""

    answers: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost: Decimal | None = None
    """In dollars; None unless every answer has a price."""


class RunHistory(NamedTuple):
    """One run: its status, what happened, and its token usage."""

    status: RunStatus
    moments: Sequence[Moment]
    earlier: int
    """How many earlier moments are left out."""
    usage: ModelUsage


async def run_history(broker: Broker, prefix: str, zone: Zone, *, most: int | None = None) -> RunHistory:
    """Return the history of the run whose id starts with `prefix`, after applying deadlines; raises `UnknownRun`.

    Only the last moments are told, `most` of them. That is done in a thread: a run may have thousands.
    """
    import asyncio

    await broker.sweep()
    status = await broker.runs.status((await broker.runs.get(prefix)).id)
    segments = await broker.runs.messages(status.run)
    entries = await broker.store.read(lambda tx: tx.record.entries(run=status.run.id))

    def told() -> RunHistory:
        messages = _messages(segments)
        found = [*((datetime.fromisoformat(one.at), one) for one in entries), *_words(messages)]
        found.sort(key=lambda one: one[0])
        shown = found[-most:] if most is not None else found
        moments = [_told(at, one, zone) for at, one in shown]
        return RunHistory(status, moments, len(found) - len(shown), spent(messages))

    return await asyncio.to_thread(told)


def spent(messages: Sequence[Mapping[str, Any]]) -> ModelUsage:
    """Return the tokens and the cost of a run, from its messages."""
    usages = [_mapping(one.get("usage")) for one in messages if one.get("kind") == "response"]
    costs = [Decimal(str(cost)) for one in usages if (cost := one.get("cost")) is not None]
    return ModelUsage(
        answers=len(usages),
        input_tokens=sum(_count(one.get("input_tokens")) for one in usages),
        output_tokens=sum(_count(one.get("output_tokens")) for one in usages),
        cost=sum(costs, Decimal(0)) if costs and len(costs) == len(usages) else None,
    )


def _told(at: datetime, what: Entry | tuple[str, str], zone: Zone) -> Moment:
    """Return an event, or a kind of words and the words, as it is safe to show."""
    if not isinstance(what, Entry):
        kind, text = what
        return Moment(at=at, kind=kind, what=safe_text(" ".join(text.split())))
    told = account_of(what, zone)
    return Moment(
        at=at,
        kind=safe_text(what.kind),
        who=safe_text(told.who),
        what=safe_text(told.what),
        rules=tuple(map(safe_text, told.rules)),
        request=what.request,
        result=kept_text(told.result, lines=True),
        exit_code=exit_code(told.result),
    )


def _words(messages: Sequence[Mapping[str, Any]]) -> Iterator[tuple[datetime, tuple[str, str]]]:
    """Yield the words of people and of the model: when, which kind, and what."""
    for message in messages:
        for part in _parts(message):
            kind = {"user-prompt": "prompt", "text": "model"}.get(str(part.get("part_kind")))
            stamp = part.get("timestamp") or message.get("timestamp")
            if kind is not None and isinstance(stamp, str) and (text := _text(part.get("content"))):
                yield datetime.fromisoformat(stamp), (kind, text)


def _messages(segments: Sequence[Segment]) -> list[Mapping[str, Any]]:
    return [_mapping(one) for segment in segments for one in json.loads(text_of(segment))]


def _parts(message: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [_mapping(one) for one in cast("list[object]", message.get("parts") or [])]


def _text(content: object) -> str:
    """The words of a prompt or an answer; attachments have none."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(one for one in cast("list[object]", content) if isinstance(one, str))
    return ""


def _mapping(value: object) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, dict) else {}


def _count(value: object) -> int:
    return value if isinstance(value, int) else 0
