"""What a run came to, as text for people elsewhere: secrets masked, nothing else made safe."""

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
    """An agent's output: as it is where it is text, else as JSON."""
    if not isinstance(output, str):
        output = json.dumps(_plain(output), ensure_ascii=False, indent=2, default=_plain)
    return redact_text(output, secrets=secrets)


def failure_text(error: Exception, secrets: Iterable[str] = ()) -> str:
    """Why there is no answer. Our own errors are sentences; of others the kind is told too."""
    said = redact_text(str(error), secrets=secrets)
    if isinstance(error, SignoffError):
        return said
    return f"{type(error).__name__}: {said}" if said else type(error).__name__


def is_cut(tx: Transaction, channel: str, run: SavedRun) -> bool:
    """Whether of a run's answer nothing is told in a channel, or only what is kept with the run: less than it said."""
    delivery = tx.deliveries.get(channel, Subject(SubjectKind.RESULT, run.id))
    if delivery is None or delivery.result is None:
        return True
    said = delivery.result
    is_less = run.detail.endswith(" characters)") or OPEN in run.detail
    return said.state is RunState.GOING or (is_less and said.text == run.detail)


def _plain(value: Any) -> Any:
    """A value that has no JSON form of its own: a model's fields, or its text."""
    if value is None or isinstance(value, dict | list | tuple | str | int | float | bool):
        return value  # pyright: ignore[reportUnknownVariableType]
    dumped = getattr(value, "model_dump", None)
    return dumped(mode="json") if callable(dumped) else str(value)
