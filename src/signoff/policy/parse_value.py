"""Parse `args` and `deps` conditions: keys, operators and the values they are compared with."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Literal

from signoff.errors import CannotCanonicalise
from signoff.policy.format import made, texts
from signoff.policy.glob import BadGlob, Glob
from signoff.policy.keypath import TOP, BadKey, KeyPath
from signoff.policy.linear_regex import BadRegex, LinearRegex
from signoff.policy.match import Condition, OthersCondition, ValueCondition
from signoff.policy.operators import (
    COMPARISONS,
    OPERATORS,
    Compare,
    Equals,
    Exists,
    Matches,
    Operator,
    Over,
    Regex,
    kind_of,
)
from signoff.policy.paths import BadPath
from signoff.policy.phrases import nearest, shown
from signoff.policy.placed_value import ConfigValue

Source = Literal["args", "deps"]

ANY_CASE = "ignore_case"
"""Key beside `matches`: whether to ignore case."""
BELOW, FIRST_WORDS = "below", "first_words"
"""Keys beside operators, for conditions that look at more of a call than one value: in `args` only."""
OTHERS = "*"
"""In `args`, in place of a name: every argument that is not named there."""
GLOBS = texts(made(Glob, "a pattern", "bad pattern"), "a list of patterns")
NAME_GLOBS = texts(made(partial(Glob, over_names=True), "a pattern", "bad pattern"), "a list of patterns")
"""Patterns over names, in which `*` matches everything."""
_ANY_CASE_GLOBS = texts(made(lambda written: Glob(written.lower()), "a pattern", "bad pattern"), "a list of patterns")
"""Patterns that are compared with lower-cased text."""
_SYNONYMS = {
    "=": "equals", "==": "equals", "===": "equals", "eq": "equals", "is": "equals", "one_of": "in", "any_of": "in",
    "glob": "matches", "like": "matches", "pattern": "regex", "re": "regex", "present": "exists", "defined": "exists",
    "gt": ">", "gte": ">=", "ge": ">=", "=>": ">=", "min": ">=", "lt": "<", "lte": "<=", "le": "<=", "=<": "<=",
    "max": "<=",
}  # fmt: skip
_NEGATIONS = frozenset({"!=", "<>", "ne", "not", "not_in", "not_equals", "nin", "!"})
_OTHER_TOOLS = frozenset({"contains", "startswith", "starts_with", "endswith", "ends_with", "prefix", "suffix"})


def read_values(spot: ConfigValue, wary: bool, source: Source) -> Iterator[Condition]:
    """Parse the conditions in an `args` or `deps` mapping. `wary`: as in an allow rule, which must be sure."""
    entries = spot.entries(what="a mapping of argument names to what they must be")
    if not entries:
        raise spot.wrong("this is empty, so it requires nothing", "name an argument, or leave the key out")
    others = entries.pop(OTHERS, None) if source == "args" else None
    keys = {name: _key(child, TOP, name, source) for name, child in entries.items()}
    for name, child in entries.items():
        yield from _under(child, keys[name], source, wary)
    if others is not None:
        if others.value != {"exists": False}:
            fix = 'write `"*": {exists: false}` where there must be none, or name the arguments that are meant'
            raise others.wrong(f"{shown(OTHERS)} stands for all other arguments, and can only be absent", fix)
        yield OthersCondition(frozenset(key.steps[0] for key in keys.values()))


def _under(spot: ConfigValue, key: KeyPath, source: Source, wary: bool) -> Iterator[Condition]:
    if not isinstance(spot.value, dict):
        yield ValueCondition(source, key, _equals(spot, wary))
        return
    entries = spot.entries()
    if not entries:
        raise spot.wrong("this is empty, so it requires nothing", f"write an operator: {', '.join(OPERATORS)}")
    if all(name in _KEYS for name in entries):
        for name in _ABOUT_CALLS:
            if name in entries:
                yield _ABOUT_CALLS[name](entries.pop(name), key, source, wary)
        for one in _operators(spot, entries, wary):
            yield ValueCondition(source, key, one)
        return
    for name, child in entries.items():
        _check_not_an_operator(name, child, mixed=any(other in _KEYS for other in entries))
        yield from _under(child, _key(child, key, name, source), source, wary)


def _operators(spot: ConfigValue, entries: dict[str, ConfigValue], wary: bool) -> Iterator[Operator]:
    _check_possible(spot, entries)
    any_case = entries.pop(ANY_CASE).flag() if ANY_CASE in entries else False
    if any_case and "matches" not in entries:
        raise spot.wrong(f"`{ANY_CASE}` goes with `matches`", "write the pattern beside it")
    for name, child in entries.items():
        if name == "matches":
            yield _matches(child, wary, any_case=any_case)
        else:
            yield _READERS[name](child, wary)


def _below(spot: ConfigValue, key: KeyPath, source: Source, wary: bool) -> Condition:
    from signoff.policy.below import BelowCondition  # few policies need it, as the next

    if source == "deps":
        raise spot.wrong_key(f"`{BELOW}` is about arguments", "write it under `args`")
    try:
        return BelowCondition(key, spot.text("a directory"), every=wary)
    except (BadPath, BadGlob) as error:
        raise spot.wrong(f"bad path {shown(str(spot.value))}", str(error)) from error


def _first_words(spot: ConfigValue, key: KeyPath, source: Source, wary: bool) -> Condition:
    from signoff.policy.first_words import COMMAND, BadWords, FirstWordsCondition

    if source == "deps" or key.steps != (COMMAND,):
        raise spot.wrong_key(
            f"`{FIRST_WORDS}` is about the argument `{COMMAND}`", f"write it as in {{args: {{{COMMAND}: …}}}}"
        )
    if not wary:
        raise spot.wrong_key(f"`{FIRST_WORDS}` makes no sense where a rule asks or denies", "use a `command` pattern")
    try:
        return FirstWordsCondition(spot.text("the first words of a command"))
    except BadWords as error:
        raise spot.wrong("bad first words", str(error)) from error


def _over(how: Literal["all", "any", "none"]) -> Callable[[ConfigValue, bool], Operator]:
    """Return a reader for operators over the values in a list. A plain value means `equals`."""

    def read(spot: ConfigValue, wary: bool) -> Operator:
        if not isinstance(spot.value, dict):
            return Over(how, (_equals(spot, wary),))
        entries = spot.entries((*OPERATORS, ANY_CASE))
        if not entries:
            raise spot.wrong("this is empty, so it requires nothing", f"write an operator: {', '.join(OPERATORS)}")
        return Over(how, tuple(_operators(spot, entries, wary)))

    return read


def _key(spot: ConfigValue, above: KeyPath, written: str, source: Source) -> KeyPath:
    try:
        key = above.below(written)
    except BadKey as error:
        raise spot.wrong_key(f"bad key {shown(written)}", str(error)) from error
    if source == "deps" and any(step.startswith("_") for step in key.steps):
        raise spot.wrong_key(f"bad key {shown(written)}", "only public attributes of deps can be looked at")
    return key


def _check_not_an_operator(name: str, spot: ConfigValue, *, mixed: bool) -> None:
    """Refuse a nested key that is, or was clearly meant as, an operator. Otherwise the rule would never match."""
    escape = f"for an argument of that name, write the whole key: {shown(f'….{name}')}"
    if name in _NEGATIONS:
        raise spot.wrong_key(f"there is no operator {shown(name)}", "write a rule for what it is, and order the rules")
    if name in _OTHER_TOOLS:
        raise spot.wrong_key(f"unknown operator {shown(name)}", f'use `matches: "…**"` or `regex`; {escape}')
    meant = _SYNONYMS.get(name) or nearest(name, _WORDS, cutoff=0.8)
    if meant is not None and name not in _WORDS:
        raise spot.wrong_key(f"unknown operator {shown(name)}", f"did you mean `{meant}`? {escape}")
    if not any(character.isalnum() for character in name) and not name.startswith("/"):
        raise spot.wrong_key(f"unknown operator {shown(name)}", f"known here: {', '.join(_WORDS)}")
    if mixed:
        raise spot.wrong_key("operators and nested keys are mixed here", f"known operators: {', '.join(_WORDS)}")


def _check_possible(spot: ConfigValue, entries: dict[str, ConfigValue]) -> None:
    if len(entries) > 1 and "exists" in entries and entries["exists"].value is False:
        raise spot.wrong("`exists: false` cannot hold together with another operator")
    low = max((_number(entries[sign]) for sign in (">", ">=") if sign in entries), default=-math.inf)
    high = min((_number(entries[sign]) for sign in ("<", "<=") if sign in entries), default=math.inf)
    strict = any(sign in entries and entries[sign].value in (low, high) for sign in ("<", ">"))
    if low > high or (low == high and strict):
        raise spot.wrong("no number is in this range")


def _equals(spot: ConfigValue, wary: bool) -> Equals:
    try:
        return Equals.to(spot.value, wary=wary)
    except CannotCanonicalise as error:
        raise spot.wrong(f"this has no JSON form: {error}") from error


def _one_of(spot: ConfigValue, wary: bool) -> Operator:
    items = spot.items("a list of values")
    try:
        return Equals.to(*(item.value for item in items), wary=wary)
    except CannotCanonicalise as error:
        raise spot.wrong(f"this has no JSON form: {error}") from error


def _matches(spot: ConfigValue, wary: bool, *, any_case: bool = False) -> Operator:
    found = (_ANY_CASE_GLOBS if any_case else GLOBS).read(spot)
    return Matches(found, wary, any_case)


def _regex(spot: ConfigValue, wary: bool) -> Operator:
    written = spot.text("a regular expression")
    try:
        return Regex(LinearRegex(written))
    except BadRegex as error:
        raise spot.wrong(f"bad regex {shown(written)}: {error}") from error


def _compare(sign: str) -> Callable[[ConfigValue, bool], Operator]:
    return lambda spot, wary: Compare(sign, _number(spot))


def _number(spot: ConfigValue) -> float:
    if isinstance(spot.value, bool) or not isinstance(spot.value, (int, float)):
        raise spot.wrong(f"this should be a number, not {kind_of(spot.value)}")
    if isinstance(spot.value, float) and not math.isfinite(spot.value):
        raise spot.wrong("this is not a number")
    return spot.value


_READERS: dict[str, Callable[[ConfigValue, bool], Operator]] = {
    "equals": _equals,
    "in": _one_of,
    "matches": _matches,
    "regex": _regex,
    "exists": lambda spot, wary: Exists(spot.flag()),
    **{sign: _compare(sign) for sign in COMPARISONS},
    "all": _over("all"),
    "any": _over("any"),
    "none": _over("none"),
}
_ABOUT_CALLS: Mapping[str, Callable[[ConfigValue, KeyPath, Source, bool], Condition]] = {
    BELOW: _below,
    FIRST_WORDS: _first_words,
}
_WORDS = (*OPERATORS, *_ABOUT_CALLS)
_KEYS = frozenset({*_WORDS, ANY_CASE})
