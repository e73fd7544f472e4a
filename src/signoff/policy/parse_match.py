"""What a rule matches, from a file: a name, a label, or a mapping of conditions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from signoff.core.call import LABELS
from signoff.errors import PolicyError
from signoff.policy.glob import BadGlob
from signoff.policy.match import Condition, LabelCondition, Match, ToolsetCondition, WorkerCondition
from signoff.policy.operators import kind_of
from signoff.policy.parse_facts import (
    read_amount_condition,
    read_command,
    read_places,
    read_recipients_condition,
    read_sql_condition,
    read_url_condition,
)
from signoff.policy.parse_requirement import REQUIREMENT_KEYS
from signoff.policy.parse_value import read_globs, read_values
from signoff.policy.paths import BadPath, PathCondition
from signoff.policy.phrases import did_you_mean, nearest, shown
from signoff.policy.spot import ConfigValue


def read_matches(spot: ConfigValue, wary: bool) -> tuple[Match, ...]:
    """The alternatives under `allow`, `ask` or `deny`. `wary` where a match makes calls run, and has to be sure."""
    return tuple(_match(item, wary) for item in spot.one_or_more("a list of tools, labels or mappings"))


def read_naming(spot: ConfigValue, matches: tuple[Match, ...]) -> tuple[Match, ...]:
    """The alternatives under `ask` as a rule that allows would mean them: each has to be sure, and mean the whole call.

    One that only rules that ask can have (what a command `does`, a secret place) stays as it is.
    """
    items = spot.one_or_more("a list of tools, labels or mappings")
    return tuple(_sure(item, match) for item, match in zip(items, matches, strict=True))


def _sure(spot: ConfigValue, match: Match) -> Match:
    try:
        return _match(spot, wary=True)
    except PolicyError:
        return match


SCOPE_KEYS = ("tool", "toolset")
"""What may stand beside `otherwise`."""


def read_scope(entries: Mapping[str, ConfigValue]) -> Match:
    """The calls that an `otherwise` is about."""
    tools = tuple(read_globs(entries["tool"], over_names=True)) if "tool" in entries else ()
    if any(not glob.pattern.strip("*") for glob in tools):
        tools = ()
    return Match(tools=tools, conditions=tuple(_toolset(entries["toolset"], False)) if "toolset" in entries else ())


def _match(spot: ConfigValue, wary: bool) -> Match:
    if isinstance(spot.value, str):
        return _word(spot, wary)
    if not isinstance(spot.value, dict):
        raise spot.wrong(
            f"this should be a tool, a label or a mapping, not {kind_of(spot.value)}",
            '"*" or {} matches every call',
        )
    return _conditions(spot, wary)


def _word(spot: ConfigValue, wary: bool) -> Match:
    word = spot.text("a tool or a label")
    if not word.strip("*"):
        return Match()
    if word in LABELS:
        return Match(conditions=(LabelCondition(frozenset({word}), every=wary),))
    label = nearest(word, LABELS, cutoff=0.8) if "." in word else None
    if label is not None:
        raise spot.wrong(
            f"unknown label {shown(word)}", f"did you mean `{label}`? A tool of that name is written {{tool: {word}}}"
        )
    return Match(tools=tuple(read_globs(spot, over_names=True)))


def _conditions(spot: ConfigValue, wary: bool) -> Match:
    for key in spot.value:
        if key in (*REQUIREMENT_KEYS, "reason", "id", "examples"):
            fix = f"write it beside `ask`, `allow` or `deny`, as in {{ask: {{…}}, {key}: …}}"
            raise spot.child(key).wrong_key(f"{shown(key)} is about the rule, not about the call", fix)
    entries = spot.entries(("tool", *_READERS))
    tools = tuple(read_globs(entries["tool"], over_names=True)) if "tool" in entries else ()
    found: list[Condition] = []
    for key, reader in _READERS.items():  # cheap conditions first, whatever the order in the file
        if key in entries:
            found.extend(reader(entries[key], wary))
    if any(not glob.pattern.strip("*") for glob in tools):
        tools = ()
    return Match(tools=tools, conditions=tuple(found))


def _toolset(spot: ConfigValue, wary: bool) -> Iterable[Condition]:
    yield ToolsetCondition(tuple(read_globs(spot, over_names=True)))


def _worker(spot: ConfigValue, wary: bool) -> Iterable[Condition]:
    yield WorkerCondition(tuple(read_globs(spot, over_names=True)), innermost=wary)


def _label(spot: ConfigValue, wary: bool) -> Iterable[Condition]:
    yield LabelCondition(frozenset(read_labels(spot)), every=wary)


def read_labels(spot: ConfigValue) -> Iterable[str]:
    """One capability label or a list of them."""
    for item in spot.one_or_more("a list of labels"):
        label = item.text("a label")
        if label not in LABELS:
            raise item.wrong(f"unknown label {shown(label)}", did_you_mean(label, LABELS))
        yield label


def _args(spot: ConfigValue, wary: bool) -> Iterable[Condition]:
    return read_values(spot, "args", wary=wary)


def _deps(spot: ConfigValue, wary: bool) -> Iterable[Condition]:
    return read_values(spot, "deps", wary=wary)


def _path(spot: ConfigValue, wary: bool) -> Iterable[Condition]:
    if isinstance(spot.value, dict):
        entries = spot.entries(("matches", "inside", "outside", "secret", "hidden", "code", "sensitive"))
        if not entries:
            raise spot.wrong("this is empty, so it asks for nothing", "write `matches` or `inside`")
        yield from read_places(entries, wary)
    else:
        entries = {"matches": spot}
    patterns = tuple(entries["matches"].one_or_more("a list of patterns")) if "matches" in entries else ()
    directories = tuple(entries["inside"].one_or_more("a list of directories")) if "inside" in entries else ()
    for item in patterns:
        _check_path(item, lambda text: PathCondition(patterns=(text,)))
    for item in directories:
        _check_path(item, lambda text: PathCondition(directories=(text,)))
    if patterns or directories:
        yield PathCondition(
            patterns=tuple(item.value for item in patterns),
            directories=tuple(item.value for item in directories),
            every=wary,
        )


def _check_path(spot: ConfigValue, read: Callable[[str], PathCondition]) -> None:
    try:
        read(spot.text("a path"))
    except (BadGlob, BadPath) as error:
        raise spot.wrong(f"bad path {shown(spot.value)}", str(error)) from error


_READERS: dict[str, Callable[[ConfigValue, bool], Iterable[Condition]]] = {
    "toolset": _toolset,
    "worker": _worker,
    "label": _label,
    "args": _args,
    "deps": _deps,
    "path": _path,
    "amount": read_amount_condition,
    "recipients": read_recipients_condition,
    "url": read_url_condition,
    "command": read_command,
    "sql": read_sql_condition,
}
