"""What a person may have remembered besides exactly this call: narrow patterns made from it, spelled out."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from signoff.core.call import Call, is_free
from signoff.core.decision import Keeps
from signoff.core.request import ApprovalRequest
from signoff.core.terms import COMMAND, Condition, Fits, Scope, Terms, amount_of
from signoff.core.verdict import Wanted

_MONEY = frozenset("amount budget charge cost credit fee refund sum total value".split())
_RUNS = frozenset(
    "argv bash code cmd command commands eval exec expression javascript lua perl program python query ruby script "
    "shell sql statement statements".split()
)
"""What is run as a program: a pattern over it would let a whole interpreter through."""
_RUNNERS = frozenset("bash eval exec execute interpreter lua perl python ruby run shell sql terminal".split())
"""Tools that run what they are pointed at: any file in a folder would be any program."""
_FINAL = frozenset(
    "apply buy click close delete deploy drop evaluate order press publish remove repl revoke sell tap trade".split()
)
"""Tools for which a text may say what is done, or to what: it is not left open."""
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
    """Whether the answer may hold for a later call too: one person is enough, and nothing is in doubt.

    Where the rule wants a role, it holds by that role, if whoever keeps it knows who has which.
    """
    call, wanted = request.call, request.requirement.wanted
    by_role = wanted is Wanted.ROLE and request.keeps is Keeps.ALWAYS and not request.escalated
    if wanted is not Wanted.ANYONE and not by_role:
        return False
    if call is None or LEADS_TO in request.metadata:
        return False
    return not call.unreadable and not (request.verdict is not None and request.verdict.errors)


def offers(request: ApprovalRequest) -> tuple[Offer, ...]:
    """Every way the answer to this request may be remembered, narrowest first. Empty where it may not be at all."""
    call = request.call
    if call is None or not may_be_remembered(request):
        return ()
    exact = Offer(name="exact", pattern=None, text=f"{call.tool} with exactly these arguments")
    if request.verdict is not None and request.verdict.exactly:
        return (exact,)
    return (exact, *_patterns(call, request.effective_args))


def wider_terms(request: ApprovalRequest, now: datetime) -> tuple[Terms, ...]:
    """How far an approval may be remembered beyond exactly this call, narrowest first; an amount until the day is over.

    Empty where whoever asks keeps nothing but exact answers.
    """
    if request.keeps is not Keeps.ALWAYS:
        return ()
    found: list[Terms] = []
    for offer in offers(request)[1:]:
        if any(one.fits is Fits.AT_MOST for one in offer.pattern or ()):
            found.append(Terms(pattern=offer.pattern, until=_end_of_day(now)))
            continue
        if request.call is not None and request.call.conversation_id:
            found.append(Terms(scope=Scope.SESSION, pattern=offer.pattern))
        found.append(Terms(pattern=offer.pattern))
    return tuple(found)


def how_long(terms: Terms) -> str:
    """How long an answer is remembered, in a word."""
    if terms.until is not None:
        return "today"
    return "session" if terms.scope is Scope.SESSION else "always"


def _end_of_day(now: datetime) -> datetime:
    """In UTC, as budgets and records count days; of the next one where this is nearly over."""
    midnight = now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=1)
    return midnight if midnight - now > timedelta(hours=2) else midnight + timedelta(days=1)


def _patterns(call: Call, args: Mapping[str, Any]) -> Iterator[Offer]:
    if call.prefix and args.get(COMMAND) == call.args.get(COMMAND):
        yield _offer(call, args, Condition(arg=COMMAND, fits=Fits.COMMAND, value=call.prefix), leaves_texts=False)
    runs = _words(call.tool) & _RUNNERS or any(_words(name) & _RUNS for name in args)
    if runs or "proc.exec" in call.labels:
        return
    amounts = [name for name, value in args.items() if _is_money(name) and amount_of(value) is not None]
    for name in amounts:
        yield _offer(call, args, Condition(arg=name, fits=Fits.AT_MOST, value=args[name]), leaves_texts=False)
    if amounts or "money" in call.labels:
        return
    yield from _free_texts(call, args)
    for name, value in args.items():
        if isinstance(value, str) and _is_path(call, name, value) and (folder := _folder(value)):
            wide = Condition(arg=name, fits=Fits.UNDER, value=folder)
            if wide.holds(value, call):
                yield _offer(call, args, wide, leaves_texts=True)


def _free_texts(call: Call, args: Mapping[str, Any]) -> Iterator[Offer]:
    """What is written left open, where something else says what for."""
    free = [name for name, value in args.items() if is_free(name, value)]
    paths = [value for name, value in args.items() if isinstance(value, str) and _is_path(call, name, value)]
    if (
        free
        and not _words(call.tool) & _FINAL
        and all(map(_is_below, paths))
        and not call.sensitive
        and any(value not in (None, "", [], {}) for name, value in args.items() if name not in free)
    ):
        pattern = tuple(_as_written(name, value, is_open=name in free) for name, value in args.items())
        yield _named(free[0], call, pattern)


def _offer(call: Call, args: Mapping[str, Any], wide: Condition, *, leaves_texts: bool) -> Offer:
    """One argument is widened; what is written may be left open, all else stays as it is."""
    pattern = tuple(
        wide if name == wide.arg else _as_written(name, value, is_open=leaves_texts and is_free(name, value))
        for name, value in args.items()
    )
    return _named(wide.arg, call, pattern)


def _named(name: str, call: Call, pattern: tuple[Condition, ...]) -> Offer:
    return Offer(name=name, pattern=pattern, text=f"{call.tool} with " + ", ".join(one.text for one in pattern))


def _as_written(name: str, value: Any, *, is_open: bool) -> Condition:
    return Condition(arg=name, fits=Fits.ANY) if is_open else Condition(arg=name, fits=Fits.IS, value=value)


def _words(name: str) -> frozenset[str]:
    """The words in a name: `shell_command`, `shellCommand` and `shell-command` hold two."""
    parted = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name)
    return frozenset(word.casefold() for word in re.split(r"[\W_]+", parted) if word)


def _is_money(name: str) -> bool:
    words = _words(name)
    return bool(words & _MONEY) and not words & _WHO


def _is_path(call: Call, name: str, value: str) -> bool:
    is_about_files = not call.labels.isdisjoint(("fs.read", "fs.write"))
    return bool(_words(name) & _PATHS) or (is_about_files and not is_free(name, value))


def _is_below(path: str) -> bool:
    """Whether a path is written plainly, and starts from where the tool does."""
    is_plain = path.isprintable() and not _ODD & set(path)
    return is_plain and all(step.strip() not in ("", ".", "..") for step in path.split("/")) and path[:1] != "~"


def _folder(value: str) -> str:
    """The folder of a path that is written plainly; empty where there is none, or where it is the top of everything."""
    folder, _, name = value.rpartition("/")
    steps = folder.lstrip("/").split("/")
    if not name or any(step.strip() in ("", ".", "..") for step in (*steps, name)) or value.startswith("//"):
        return ""
    too_broad = value.startswith(("/", "~")) and len(steps) < 3
    return "" if too_broad or not value.isprintable() or _ODD & set(value) else folder
