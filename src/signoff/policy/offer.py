"""The ways a person may have an answer remembered: exactly this call, or a narrow match that is made from the call.

A match is written as the conditions of a rule. What of a call may vary is worked out when it is asked about, where its
files are, and is kept with the request.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, cast

from signoff.core.call import Call, Veiled, is_free
from signoff.core.decision import Keeps
from signoff.core.remembering import may_be_remembered, may_be_widened
from signoff.core.request import ApprovalRequest
from signoff.core.terms import Budget, Scope, Terms, amount_of
from signoff.policy.below import why_sensitive
from signoff.policy.call_paths import COMMAND, Facts
from signoff.policy.match_result import Truth
from signoff.policy.parse_value import BELOW, FIRST_WORDS, OTHERS
from signoff.policy.remembered import holds
from signoff.policy.shell.prefixes import prefix_of

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


_ANY: Mapping[str, Any] = {"exists": True}
_MOST = 2**53
"""The largest amount that may vary: above it, not every whole number is told from the next."""

Varying = Mapping[str, Mapping[str, Any]]
"""Conditions on the arguments that may vary, by their names; the first is what is widened."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """One way to remember an answer."""

    name: str
    match: Mapping[str, Any] | None
    """The conditions of a rule; None: exactly these arguments."""

    @property
    def amounts(self) -> tuple[str, ...]:
        """The arguments that are remembered up to an amount."""
        return amounts_in(self.match)


def offers(request: ApprovalRequest) -> tuple[Offer, ...]:
    """All ways to remember the answer to this request, narrowest first. Empty if it may not be remembered at all."""
    if not may_be_remembered(request):
        return ()
    wider = request.may_vary if may_be_widened(request) else ()
    args = request.effective_args
    return Offer(name="exact", match=None), *(Offer(name=next(iter(one)), match=match_of(args, one)) for one in wider)


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
        if offer.amounts:
            limit = amount_of(request.effective_args[offer.name])
            assert limit is not None, "amounts are offered for numbers only"
            budget = Budget(arg=offer.name, limit=limit)
            found.append(Terms(match=offer.match, until=_end_of_day(now), budget=budget))
            continue
        if request.call is not None and request.call.conversation_id:
            found.append(Terms(scope=Scope.SESSION, match=offer.match))
        found.append(Terms(match=offer.match))
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


# --- matches ---


def match_of(args: Mapping[str, Any], varying: Varying) -> Mapping[str, Any]:
    """Return the match that names every argument and permits no others; those that do not vary stay as they are."""
    written = {key_of(name): varying.get(name, written_value(value)) for name, value in args.items()}
    return {"args": {**written, OTHERS: {"exists": False}}}


def key_of(name: str) -> str:
    """Return an argument's name as a key of a rule; as a JSON pointer if it would be read as a path of keys."""
    if name and not name.startswith("/") and not any(one in name for one in ".*"):
        return name
    return "/" + name.replace("~", "~0").replace("/", "~1")


def written_value(value: Any) -> Any:
    """Return what an argument must equal. A bare mapping would be read as operators or nested keys."""
    return {"equals": cast("Any", value)} if isinstance(value, Mapping) else value


def amounts_in(match: Mapping[str, Any] | None) -> tuple[str, ...]:
    """The keys of the arguments that a match leaves open up to an amount."""
    return tuple(key for key, one in _conditions(match) if "<=" in one)


def names_words(match: Mapping[str, Any] | None) -> bool:
    """Whether a match names only the first words of a command."""
    return any(FIRST_WORDS in one for _, one in _conditions(match))


def _conditions(match: Mapping[str, Any] | None) -> Iterator[tuple[str, Mapping[str, Any]]]:
    args = cast("Mapping[str, Any]", match.get("args", {}) if match is not None else {})
    yield from ((key, cast("Mapping[str, Any]", one)) for key, one in args.items() if isinstance(one, Mapping))


# --- what may vary ---


def may_vary(facts: Facts) -> tuple[Varying, ...]:
    """Return what of a call may vary in calls like it, narrowest first.

    `facts` are those by which remembered answers are judged: whatever is offered covers the call that it was made from.
    """
    return tuple(one for one in _varying(facts) if holds(match_of(facts.call.args, one), facts) is Truth.YES)


def _varying(facts: Facts) -> Iterator[Varying]:
    call, args = facts.call, facts.call.args

    line = args.get(COMMAND)
    if call.start and isinstance(line, str) and not isinstance(line, Veiled) and (read := prefix_of(line)):
        yield {COMMAND: {FIRST_WORDS: read.words}}
    runs = _words(call.tool) & _RUNNERS or any(_words(name) & _RUNS for name in args)
    if runs or "proc.exec" in call.labels:
        return
    amounts = [name for name, value in args.items() if _is_money(name) and amount_of(value)]
    for name in amounts if not _words(call.tool) & _SETS else ():
        if args[name] <= _MOST:
            yield {name: {">=": 0, "<=": args[name]}}
    if amounts or "money" in call.labels:
        return
    free = {name: _ANY for name, value in args.items() if is_free(name, value)}
    if free and _is_told(call, free) and not any(_is_sensitive(name, value, facts) for name, value in args.items()):
        yield free
    for name, value in args.items():
        if isinstance(value, str) and _is_path(call, name, value) and (directory := _directory(value)):
            # The pattern keeps to the spelling: a path that is relative to a directory is not written from the top.
            below = {name: {"matches": f"{directory}/**", BELOW: directory}}
            yield {**below, **{one: _ANY for one in free if one != name}} if _writes(call) else below


def _is_told(call: Call, free: Mapping[str, object]) -> bool:
    """Whether free text is sent to somebody or goes into an ordinary file."""
    paths = [value for name, value in call.args.items() if isinstance(value, str) and _is_path(call, name, value)]
    goes_to = any(_words(name) & _TO and _is_somebody(value) for name, value in call.args.items() if name not in free)
    told = goes_to and _words(call.tool) & _TELLS and not _words(call.tool) & _ACTS
    written = any(paths) and _writes(call)
    return bool(told or written) and all(map(_is_below, paths))


def _is_sensitive(name: str, value: object, facts: Facts) -> bool:
    return isinstance(value, str) and not is_free(name, value) and bool(why_sensitive(value, facts))


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
