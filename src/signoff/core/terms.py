"""The terms of a remembered answer: its scope, pattern of arguments, expiry, number of uses and budget."""

from __future__ import annotations

import math
import posixpath
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from typing import Any
from urllib.parse import unquote

from signoff.core.call import Call
from signoff.core.canonical import canonical

_PLAIN = re.compile(r"[A-Za-z0-9_.-]+")
_ESCAPES = re.compile(r"\\|%(?:00|2e|2f|5c)", re.IGNORECASE)
_WORDS = frozenset({"any", "false", "null", "true"})
"""Names that could be mistaken for a value."""
COMMAND = "command"
"""The argument that is a command line, if there is one."""
_CALM = "(no files known to hold secrets or settings, or to be run by tools)"
_NAMES = "names and paths below the directory it runs in, of the kind it is for, no options"


class Scope(StrEnum):
    """Where a remembered answer applies."""

    RUN = "run"
    SESSION = "session"
    WORKER = "worker"
    PROJECT = "project"


class Fits(StrEnum):
    """How an argument is compared with a pattern."""

    IS = "is"
    UNDER = "under"
    """A path inside a directory, written plainly, without traversal, and not leading out through a symlink."""
    AT_MOST = "at most"
    """A number from 0 up to a limit."""
    COMMAND = "command"
    """A command line that differs only in the names at its end, as in `Call.prefix`."""
    ANY = "any"


@dataclass(frozen=True, slots=True, kw_only=True)
class ArgCondition:
    """A condition on one argument."""

    arg: str
    fits: Fits
    value: Any = None

    def holds(self, value: object, call: Call) -> bool:
        """Whether the argument's value in a call meets the condition."""
        match self.fits:
            case Fits.IS:
                return canonical(value) == canonical(self.value)
            case Fits.UNDER:
                is_below = isinstance(value, str) and _is_under(value, str(self.value), call.resolved)
                return is_below and self.arg not in call.sensitive
            case Fits.AT_MOST:
                amount, most = amount_of(value), amount_of(self.value)
                return amount is not None and most is not None and amount <= most
            case Fits.COMMAND:
                return self.arg == COMMAND and bool(call.prefix) and call.prefix == self.value
            case Fits.ANY:
                return True

    def may_hold(self, value: object, call: Call) -> bool:
        """As `holds`, for a denial: a path matches however it is spelled, or if it leads into the directory."""
        if self.fits is not Fits.UNDER or not isinstance(value, str):
            return self.holds(value, call)
        directory = _spelled_out(str(self.value), call.start)
        return any(
            where == directory or where.startswith(f"{directory.rstrip('/')}/")
            for where in (_spelled_out(value, call.start), call.resolved.get(value, ""))
        )

    @property
    def text_of_no(self) -> str:
        """As `text`, for `may_hold`."""
        if self.fits is Fits.UNDER:
            return f"{named(self.arg)} any path inside {canonical(self.value)}"
        return self.text

    @property
    def text(self) -> str:
        """The condition in words. Two conditions with the same text are the same condition."""
        name = named(self.arg)
        match self.fits:
            case Fits.IS:
                return f"{name} {canonical(self.value)}"
            case Fits.UNDER:
                return f"{name} any path inside {canonical(self.value)} {_CALM}"
            case Fits.AT_MOST:
                return f"{name} from 0 to {canonical(self.value)}"
            case Fits.COMMAND:
                return f"{name} {canonical(self.value)} where * is {_NAMES}"
            case Fits.ANY:
                return f"any {name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """The limit for the sum of a numeric argument over all uses."""

    arg: str
    limit: Decimal
    daily: bool = False
    """Whether it starts again each day, in UTC; otherwise it is a total."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """How far a person wants an answer to be remembered. Without a pattern: for exactly the same arguments."""

    scope: Scope = Scope.PROJECT
    pattern: tuple[ArgCondition, ...] | None = None
    until: datetime | None = None
    max_uses: int | None = None
    budget: Budget | None = None


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


def _spelled_out(path: str, start: str) -> str:
    """Normalize a path: decode `%` escapes, drop hidden characters, join it to the start directory, resolve `..`."""
    plain = unquote(path).replace("\\", "/")
    steps = "/".join("".join(filter(str.isprintable, step)).strip() for step in plain.split("/"))
    return posixpath.normpath(posixpath.join(start, steps))


def _is_under(value: str, directory: str, resolved: Mapping[str, str]) -> bool:
    steps = value.split("/")
    # Some tools ignore blanks around a step of a path, or invisible characters; some decode `%2e`.
    odd = any(step.strip() in ("", ".", "..") for step in steps[value.startswith("/") :]) or _ESCAPES.search(value)
    inside = value.startswith(directory.rstrip("/") + "/")
    return inside and not odd and value.isprintable() and resolved.get(value, value) == value
