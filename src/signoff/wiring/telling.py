"""What a run came to, as text for people elsewhere: secrets masked, nothing else made safe."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from signoff.core.redact import redact_text
from signoff.errors import SignoffError


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


def _plain(value: Any) -> Any:
    """A value that has no JSON form of its own: a model's fields, or its text."""
    if value is None or isinstance(value, dict | list | tuple | str | int | float | bool):
        return value  # pyright: ignore[reportUnknownVariableType]
    dumped = getattr(value, "model_dump", None)
    return dumped(mode="json") if callable(dumped) else str(value)
