"""The ways a person may have an approval remembered besides exactly this call: narrow patterns made from the call."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, cast

from signoff.core.call import Call, is_free
from signoff.core.decision import Keeps
from signoff.core.request import ApprovalRequest
from signoff.core.terms import COMMAND, ArgCondition, Budget, Fits, Scope, Terms, amount_of
from signoff.core.verdict import Wanted

_MONEY = frozenset("amount charge cost credit fee refund sum".split())
_SETS = frozenset("adjust budget limit price quota rate set threshold update".split())
"""Tools that set something to an amount: a smaller amount does not mean that less is done."""
_RUNS = frozenset(
    "argv bash code cmd command commands eval exec expression javascript lua perl program python query ruby script "
    "shell sql statement statements".split()
)
"""Arguments that are run as a program: a pattern over them would let a whole interpreter through."""
_RUNNERS = frozenset("bash eval exec execute interpreter lua perl python ruby run shell sql terminal".split())
"""Tools that run a file: any file in a directory would be any program."""
_TELLS = frozenset("answer comment email mail message notify post reply respond send tell".split())
_TO = frozenset("address channel conversation email issue number pr recipient recipients room thread ticket to".split())
"""Tools that send somebody a message, and the arguments that name the recipient.

For any other tool a text may say what is done, or to what.
"""
_WRITES = frozenset("append create edit save write".split())
"""Tools that write a text into a file, where no label says so."""
_ACTS = frozenset(
    "apply buy click close command delete deploy drop evaluate forward input key keys order patch press publish query "
    "remove repl request revoke sell stdin tap trade transaction".split()
)
"""Tools whose text may be what is done, whatever else their name says."""
_PATHS = frozenset("dir directory file filename filepath folder path".split())
_WHO = frozenset("account code customer id iban key nr number user".split())
"""Words for identifiers: a smaller one is not less of anything."""
_ODD = frozenset("\\:;|&$<>`\"'(){}[]*?!#%=")
"""Characters that a plain path does not contain: other programs may give them a meaning."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """One way to remember an answer. `pattern` None: exactly these arguments."""

    name: str
    pattern: tuple[ArgCondition, ...] | None
    text: str


LEADS_TO = "leads_to"
"""Metadata key of a request whose call leads to another one below: an answer to one alone does not cover both."""


def may_be_remembered(request: ApprovalRequest) -> bool:
    """Whether the answer may be remembered for later calls: one person is enough, and nothing is in doubt.

    If the rule wants a role, the answer counts for that role, if the place that keeps it knows who has which.
    """
    call, wanted = request.call, request.requirement.wanted
    by_role = wanted is Wanted.ROLE and request.keeps is Keeps.ALWAYS and not request.escalated
    if wanted is not Wanted.ANYONE and not by_role:
        return False
    if call is None or LEADS_TO in request.metadata:
        return False
    return not call.unreadable and not (request.verdict is not None and request.verdict.errors)


def offers(request: ApprovalRequest) -> tuple[Offer, ...]:
    """All ways to remember the answer to this request, narrowest first. Empty if it may not be remembered at all."""
    call = request.call
    if call is None or not may_be_remembered(request):
        return ()
    exact = Offer(name="exact", pattern=None, text=f"{call.tool} with exactly these arguments")
    is_edited = request.decision is not None and request.decision.edited_args is not None
    if is_edited or (request.verdict is not None and request.verdict.exactly):
        return (exact,)  # paths and commands were only checked for the original call
    return (exact, *_patterns(call, request.effective_args))


def offer_called(request: ApprovalRequest, which: str) -> Offer | None:
    """Find an offer by its number, counted from 1, or by its name; None if there is none."""
    offered = offers(request)
    if which.isdecimal() and 1 <= int(which) <= len(offered):
        return offered[int(which) - 1]
    return next((one for one in offered if one.name == which), None)


def wider_terms(request: ApprovalRequest, now: datetime) -> tuple[Terms, ...]:
    """How far an approval may be remembered beyond exactly this call, narrowest first; an amount until the day is over.

    Empty if the place that asks remembers only exact answers.
    """
    if request.keeps is not Keeps.ALWAYS:
        return ()
    found: list[Terms] = []
    for offer in offers(request)[1:]:
        if amount := next((one for one in offer.pattern or () if one.fits is Fits.AT_MOST), None):
            limit = amount_of(amount.value)
            assert limit is not None, "amounts are offered for numbers only"
            budget = Budget(arg=amount.arg, limit=limit)
            found.append(Terms(pattern=offer.pattern, until=_end_of_day(now), budget=budget))
            continue
        if request.call is not None and request.call.conversation_id:
            found.append(Terms(scope=Scope.SESSION, pattern=offer.pattern))
        found.append(Terms(pattern=offer.pattern))
    return tuple(found)


def how_long(terms: Terms, now: datetime) -> str:
    """How long an answer is remembered, in one to three words."""
    if terms.until is not None:
        return "today" if terms.until - now <= timedelta(days=1) else "today and tomorrow"
    return "session" if terms.scope is Scope.SESSION else "for good"


def _end_of_day(now: datetime) -> datetime:
    """The end of the day in UTC, as budgets count days; the end of the next day in the last two hours of one."""
    midnight = now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=1)
    return midnight if midnight - now > timedelta(hours=2) else midnight + timedelta(days=1)


def _patterns(call: Call, args: Mapping[str, Any]) -> Iterator[Offer]:
    if call.prefix and args.get(COMMAND) == call.args.get(COMMAND):
        yield _offer(call, args, ArgCondition(arg=COMMAND, fits=Fits.COMMAND, value=call.prefix), leaves_texts=False)
    runs = _words(call.tool) & _RUNNERS or any(_words(name) & _RUNS for name in args)
    if runs or "proc.exec" in call.labels:
        return
    amounts = [name for name, value in args.items() if _is_money(name) and amount_of(value)]
    for name in amounts if not _words(call.tool) & _SETS else ():
        yield _offer(call, args, ArgCondition(arg=name, fits=Fits.AT_MOST, value=args[name]), leaves_texts=False)
    if amounts or "money" in call.labels:
        return
    yield from _free_texts(call, args)
    for name, value in args.items():
        if isinstance(value, str) and _is_path(call, name, value) and (directory := _directory(value)):
            wide = ArgCondition(arg=name, fits=Fits.UNDER, value=directory)
            if wide.holds(value, call):
                yield _offer(call, args, wide, leaves_texts=_writes(call))


def _free_texts(call: Call, args: Mapping[str, Any]) -> Iterator[Offer]:
    """Leave free text open, if it is sent to somebody or goes into a file."""
    free = [name for name, value in args.items() if is_free(name, value)]
    paths = [value for name, value in args.items() if isinstance(value, str) and _is_path(call, name, value)]
    goes_to = any(_words(name) & _TO and _is_somebody(value) for name, value in args.items() if name not in free)
    told = goes_to and _words(call.tool) & _TELLS and not _words(call.tool) & _ACTS
    written = any(paths) and _writes(call)
    if free and (told or written) and all(map(_is_below, paths)) and not call.sensitive:
        pattern = tuple(_as_written(name, value, is_open=name in free) for name, value in args.items())
        yield _named(free[0], call, pattern)


def _offer(call: Call, args: Mapping[str, Any], wide: ArgCondition, *, leaves_texts: bool) -> Offer:
    """Widen one argument. Free text may be left open; everything else stays as it is."""
    pattern = tuple(
        wide if name == wide.arg else _as_written(name, value, is_open=leaves_texts and is_free(name, value))
        for name, value in args.items()
    )
    return _named(wide.arg, call, pattern)


def _named(name: str, call: Call, pattern: tuple[ArgCondition, ...]) -> Offer:
    return Offer(name=name, pattern=pattern, text=f"{call.tool} with " + ", ".join(one.text for one in pattern))


def _as_written(name: str, value: Any, *, is_open: bool) -> ArgCondition:
    return ArgCondition(arg=name, fits=Fits.ANY) if is_open else ArgCondition(arg=name, fits=Fits.IS, value=value)


def _words(name: str) -> frozenset[str]:
    """Split a name into words: `shell_command`, `shellCommand` and `shell-command` have two."""
    parted = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name)
    return frozenset(word.casefold() for word in re.split(r"[\W_]+", parted) if word)


def _writes(call: Call) -> bool:
    """Whether the text goes into the file that the call names, and nowhere else."""
    words = _words(call.tool)
    return ("fs.write" in call.labels or bool(words & _WRITES)) and not words & _ACTS


def _is_somebody(value: Any) -> bool:
    """Whether a value names one recipient or several."""
    if isinstance(value, str):
        return bool(value.strip())
    if isinstance(value, list):
        several = cast("list[Any]", value)
        return bool(several) and all(map(_is_somebody, several))
    return type(value) is int and value > 0


def _is_money(name: str) -> bool:
    words = _words(name)
    return bool(words & _MONEY) and not words & _WHO


def _is_path(call: Call, name: str, value: str) -> bool:
    is_about_files = not call.labels.isdisjoint(("fs.read", "fs.write"))
    return bool(_words(name) & _PATHS) or (is_about_files and not is_free(name, value))


def _is_below(path: str) -> bool:
    """Whether a path is written plainly and is relative, without `..` (path traversal)."""
    is_plain = path.isprintable() and not _ODD & set(path)
    return is_plain and all(step.strip() not in ("", ".", "..") for step in path.split("/")) and path[:1] != "~"


def _directory(value: str) -> str:
    """The directory of a plainly written path; empty if it has none, or one too close to the root."""
    directory, _, name = value.rpartition("/")
    steps = directory.lstrip("/").split("/")
    if not name or any(step.strip() in ("", ".", "..") for step in (*steps, name)) or value.startswith("//"):
        return ""
    too_broad = value.startswith(("/", "~")) and len(steps) < 3
    return "" if too_broad or not value.isprintable() or _ODD & set(value) else directory
