"""The result of a run as text for people elsewhere. Secrets are masked; nothing is escaped."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from signoff.core.redact import redact_text
from signoff.core.run import RunState, SavedRun
from signoff.core.subject import Subject, SubjectKind
from signoff.core.visible_text import OPEN
from signoff.errors import SignoffError
from signoff.ports import Transaction


def answer_text(output: Any, secrets: Iterable[str] = ()) -> str:
    """Return an agent's output: text as it is, anything else as JSON."""
    if not isinstance(output, str):
        output = json.dumps(_plain(output), ensure_ascii=False, indent=2, default=_plain)
    return redact_text(output, secrets=secrets)


def failure_text(error: Exception, secrets: Iterable[str] = ()) -> str:
    """Return why there is no answer. For errors that are not signoff's own, the text begins with their type."""
    said = redact_text(str(error), secrets=secrets)
    if isinstance(error, SignoffError):
        return said
    return f"{type(error).__name__}: {said}" if said else type(error).__name__


def is_cut(tx: Transaction, channel: str, run: SavedRun) -> bool:
    """Return whether a channel shows nothing of a run's answer, or only the shortened text saved with the run."""
    delivery = tx.deliveries.get(channel, Subject(SubjectKind.RESULT, run.id))
    if delivery is None or delivery.result is None:
        return True
    said = delivery.result
    is_less = run.detail.endswith(" characters)") or OPEN in run.detail
    return said.state is RunState.GOING or (is_less and said.text == run.detail)


def _plain(value: Any) -> Any:
    """Convert a value without JSON form: a model to its fields, anything else to text."""
    if value is None or isinstance(value, dict | list | tuple | str | int | float | bool):
        return value  # pyright: ignore[reportUnknownVariableType]
    dumped = getattr(value, "model_dump", None)
    return dumped(mode="json") if callable(dumped) else str(value)


def cannot_now(run_id: str, why: str) -> str:
    """Return the text for people about a run that stays, and cannot go on now."""
    return f"It cannot continue now: {why}\nsignoff retries; or run: signoff resume {run_id}"


def rests_text(run_id: str) -> str:
    """Return the text for people about a run that waits for the result of a deferred tool call."""
    return (
        f"It waits for an external result, and continues when a program supplies it. To end it: signoff cancel {run_id}"
    )
