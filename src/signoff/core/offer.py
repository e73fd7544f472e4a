"""What a person may have remembered besides exactly this call: narrow patterns made from it, spelled out."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from signoff.core.call import Call
from signoff.core.call import is_free as holds_text
from signoff.core.request import ApprovalRequest
from signoff.core.terms import Condition, Fits, amount_of

_MONEY = frozenset("amount budget charge cost credit fee price refund sum total value".split())
_RUNS = frozenset(
    "argv bash code cmd command commands eval exec expression javascript lua perl program python query ruby script "
    "shell sql statement statements".split()
)
"""What is run as a program: a pattern over it would let a whole interpreter through."""
_RUNNERS = frozenset("bash eval exec execute interpreter lua perl python ruby run shell sql terminal".split())
"""Tools that run what they are pointed at: any file in a folder would be any program."""
_PATHS = frozenset("dir directory file filename filepath folder path".split())
_WHO = frozenset("account code customer id iban key nr number user".split())
"""What tells one from another: a smaller one is not less of it."""
_ODD = frozenset("\\:;|&$<>`\"'(){}[]*?!#%=")
"""What a path written plainly does not hold: it may mean something else to whoever reads it."""


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
    runs = _words(call.tool) & _RUNNERS or any(_words(name) & _RUNS for name in args)
    if runs or "proc.exec" in call.labels:
        return
    amounts = [name for name, value in args.items() if _is_money(name) and amount_of(value) is not None]
    for name in amounts:
        yield _offer(call, args, Condition(arg=name, fits=Fits.AT_MOST, value=args[name]), is_free=False)
    if amounts or "money" in call.labels:
        return
    for name, value in args.items():
        if isinstance(value, str) and _is_path(call, name) and (folder := _folder(value)):
            wide = Condition(arg=name, fits=Fits.UNDER, value=folder)
            if wide.holds(value, call.resolved):
                yield _offer(call, args, wide, is_free=True)


def _offer(call: Call, args: Mapping[str, Any], wide: Condition, *, is_free: bool) -> Offer:
    """One argument is widened; what is written may be left open, all else stays as it is."""

    def condition(name: str, value: Any) -> Condition:
        if name == wide.arg:
            return wide
        open_ended = is_free and holds_text(name, value)
        return Condition(arg=name, fits=Fits.ANY) if open_ended else Condition(arg=name, fits=Fits.IS, value=value)

    pattern = tuple(condition(name, value) for name, value in args.items())
    return Offer(name=wide.arg, pattern=pattern, text=f"{call.tool} with " + ", ".join(one.text for one in pattern))


def _words(name: str) -> frozenset[str]:
    """The words in a name: `shell_command`, `shellCommand` and `shell-command` hold two."""
    parted = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name)
    return frozenset(word.casefold() for word in re.split(r"[\W_]+", parted) if word)


def _is_money(name: str) -> bool:
    words = _words(name)
    return bool(words & _MONEY) and not words & _WHO


def _is_path(call: Call, name: str) -> bool:
    return bool(_words(name) & _PATHS) or not call.labels.isdisjoint(("fs.read", "fs.write"))


def _folder(value: str) -> str:
    """The folder of a path that is written plainly; empty where there is none, or where it is the top of everything."""
    folder, _, name = value.rpartition("/")
    steps = folder.lstrip("/").split("/")
    if not name or any(step.strip() in ("", ".", "..") for step in (*steps, name)) or value.startswith("//"):
        return ""
    too_broad = value.startswith(("/", "~")) and len(steps) < 3
    return "" if too_broad or not value.isprintable() or _ODD & set(value) else folder
