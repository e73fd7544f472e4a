"""The terms of a remembered answer: its scope, the calls that it covers, its expiry, number of uses and budget."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from typing import Any, cast

from signoff.core.canonical import canonical

_PLAIN = re.compile(r"[A-Za-z0-9_.-]+")
_WORDS = frozenset({"any", "false", "null", "true"})
"""Names that could be mistaken for a value."""


class Scope(StrEnum):
    """Where a remembered answer applies."""

    RUN = "run"
    SESSION = "session"
    WORKER = "worker"
    PROJECT = "project"


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """The limit for the sum of a numeric argument over all uses."""

    arg: str
    limit: Decimal
    daily: bool = False
    """Whether it starts again each day, in UTC; otherwise it is a total."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """How far a person wants an answer to be remembered."""

    scope: Scope = Scope.PROJECT
    match: Mapping[str, Any] | None = None
    """The conditions of a rule, as written under `allow`; None: exactly the same arguments."""
    until: datetime | None = None
    max_uses: int | None = None
    budget: Budget | None = None


def match_of_no(match: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a match that was offered for an approval as that of a denial: a path may be spelled in any way."""
    return {"args": {key: _however_spelled(one) for key, one in match["args"].items()}}


def _however_spelled(condition: Any) -> Any:
    if not isinstance(condition, Mapping):
        return condition
    written = dict(cast("Mapping[str, Any]", condition))
    if "below" in written:
        written.pop("matches", None)
    return written


def named(name: str) -> str:
    """A name in a text: in quotes if it could be mistaken for something else."""
    return name if is_plain(name) and name not in _WORDS else canonical(name)


def is_plain(name: str) -> bool:
    """Whether a name is one word that can only be read as a name."""
    return _PLAIN.fullmatch(name) is not None


def scope_text(scope: Scope, where: str) -> str:
    match scope:
        case Scope.PROJECT:
            return "anywhere in this project"
        case Scope.RUN:
            return f"in run {named(where)}"
        case Scope.SESSION:
            return f"in session {named(where)}" if where else "in this session"
        case Scope.WORKER:
            return f"for worker {named(where)}"


def amount_of(value: object) -> Decimal | None:
    """A number that can be spent: finite and not negative; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return Decimal(float.__repr__(value) if isinstance(value, float) else value) if value >= 0 else None
