"""What a person may have remembered besides exactly this call: narrow patterns made from it, spelled out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from signoff.core.call import Call
from signoff.core.request import ApprovalRequest
from signoff.core.terms import Condition, Fits, amount_of

_FREE = frozenset({"body", "content", "contents", "data", "message", "new_text", "text"})
"""Names of arguments that hold what is written, not where or what for: they may be left open beside a fixed target."""
_MONEY = frozenset({"amount", "cost", "price", "sum", "total", "value"})
_RUNS = frozenset({"code", "cmd", "command", "commands", "expression", "query", "script", "shell", "sql", "statement"})
"""What is run as a program: a pattern over it would let a whole interpreter through."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """One way to remember an answer. `pattern` None: exactly these arguments."""

    name: str
    pattern: tuple[Condition, ...] | None
    text: str


LEADS_TO = "leads_to"
"""Metadata of a request about a call that turns into another below: an answer about one alone is none about both."""


def may_be_remembered(request: ApprovalRequest) -> bool:
    """Whether the answer may hold for a later call too: nobody in particular is asked, and nothing is in doubt."""
    call = request.call
    if call is None or request.requirement.is_strict or LEADS_TO in request.metadata:
        return False
    return not call.unreadable and not (request.verdict is not None and request.verdict.errors)


def offers(request: ApprovalRequest) -> tuple[Offer, ...]:
    """Every way the answer to this request may be remembered, narrowest first. Empty where it may not be at all."""
    call = request.call
    if call is None or not may_be_remembered(request):
        return ()
    exact = Offer(name="exact", pattern=None, text=f"{call.tool} with exactly these arguments")
    return (exact, *_patterns(call, request.effective_args))


def _patterns(call: Call, args: Mapping[str, Any]) -> Iterator[Offer]:
    if "proc.exec" in call.labels or any(name.casefold() in _RUNS for name in args):
        return
    for name, value in args.items():
        if isinstance(value, str) and (folder := _folder(value)):
            yield _offer(call, args, Condition(arg=name, fits=Fits.UNDER, value=folder), is_free=True)
        elif _is_money(call, name) and amount_of(value) is not None:
            yield _offer(call, args, Condition(arg=name, fits=Fits.AT_MOST, value=value), is_free=False)


def _offer(call: Call, args: Mapping[str, Any], wide: Condition, *, is_free: bool) -> Offer:
    """One argument is widened; what is written may be left open, all else stays as it is."""

    def condition(name: str, value: Any) -> Condition:
        if name == wide.arg:
            return wide
        open_ended = is_free and name.casefold() in _FREE and isinstance(value, str) and "money" not in call.labels
        return Condition(arg=name, fits=Fits.ANY) if open_ended else Condition(arg=name, fits=Fits.IS, value=value)

    pattern = tuple(condition(name, value) for name, value in args.items())
    return Offer(name=wide.arg, pattern=pattern, text=f"{call.tool} with " + ", ".join(one.text for one in pattern))


def _is_money(call: Call, name: str) -> bool:
    return "money" in call.labels or name.casefold() in _MONEY


def _folder(value: str) -> str:
    """The folder of a path that is written plainly; empty where there is none, or where it is the top of everything."""
    folder, _, name = value.rpartition("/")
    steps = folder.lstrip("/").split("/")
    if not folder.strip("/") or not name or "://" in value or any(step in ("", ".", "..") for step in steps):
        return ""
    too_broad = value.startswith(("/", "~")) and len(steps) < 3
    return "" if too_broad or any(mark in value for mark in "\\\n\0") else folder
