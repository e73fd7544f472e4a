"""How far an answer is remembered: where, for which arguments, until when, how often."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from typing import Any

from signoff.core.canonical import canonical


class Scope(StrEnum):
    """Where a remembered decision holds."""

    RUN = "run"
    SESSION = "session"
    WORKER = "worker"
    PROJECT = "project"


class Fits(StrEnum):
    """How an argument is held against a pattern."""

    IS = "is"
    UNDER = "under"
    """A path inside a folder, written plainly, that no link leads out of."""
    AT_MOST = "at most"
    """A number from 0 up to a limit."""
    ANY = "any"


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """What one argument has to be."""

    arg: str
    fits: Fits
    value: Any = None

    def holds(self, value: object, resolved: Mapping[str, str]) -> bool:
        match self.fits:
            case Fits.IS:
                return canonical(value) == canonical(self.value)
            case Fits.UNDER:
                return isinstance(value, str) and _is_under(value, str(self.value), resolved)
            case Fits.AT_MOST:
                amount = amount_of(value)
                return amount is not None and amount <= Decimal(str(self.value))
            case Fits.ANY:
                return True

    @property
    def text(self) -> str:
        match self.fits:
            case Fits.IS:
                return f"{self.arg} {canonical(self.value)}"
            case Fits.UNDER:
                return f"{self.arg} any path inside {canonical(self.value)}"
            case Fits.AT_MOST:
                return f"{self.arg} from 0 to {self.value}"
            case Fits.ANY:
                return f"any {self.arg}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """How much of a numeric argument all uses may come to."""

    arg: str
    limit: Decimal
    daily: bool = False
    """Afresh each day, in UTC; otherwise once and for all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """How far a person wants an answer to be remembered. Without a pattern: for exactly the same arguments."""

    scope: Scope = Scope.PROJECT
    pattern: tuple[Condition, ...] | None = None
    until: datetime | None = None
    max_uses: int | None = None
    budget: Budget | None = None


def scope_text(scope: Scope, where: str) -> str:
    match scope:
        case Scope.PROJECT:
            return "anywhere in this project"
        case Scope.RUN:
            return f"in run {where}"
        case Scope.SESSION:
            return f"in session {where}" if where else "in this session"
        case Scope.WORKER:
            return f"for worker {where}"


def amount_of(value: object) -> Decimal | None:
    """A number one can spend: finite, not negative; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or value < 0:
        return None
    return Decimal(str(value))


def _is_under(value: str, folder: str, resolved: Mapping[str, str]) -> bool:
    steps = value.split("/")
    plain = not any(step in ("", ".", "..") for step in steps[value.startswith("/") :]) and "\\" not in value
    inside = value.startswith(folder.rstrip("/") + "/") and "\0" not in value
    return plain and inside and resolved.get(value, value) == value
