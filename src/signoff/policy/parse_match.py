"""Parse what a rule matches: a name, a label, or a mapping of conditions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

from signoff.core.call import LABELS
from signoff.errors import PolicyError
from signoff.policy.format import Format, MappingFormat, choice, each, text
from signoff.policy.glob import Glob
from signoff.policy.match import Condition, LabelCondition, Match, ToolsetCondition, WorkerCondition
from signoff.policy.operators import kind_of
from signoff.policy.parse_facts import FACTS
from signoff.policy.parse_requirement import REQUIREMENT
from signoff.policy.parse_value import NAME_GLOBS, read_values
from signoff.policy.phrases import did_you_mean, nearest, shown
from signoff.policy.placed_value import ConfigValue


def read_matches(spot: ConfigValue, wary: bool) -> tuple[Match, ...]:
    """Parse the alternatives under `allow`, `ask` or `deny`. `wary`: as in an allow rule, which must be sure."""
    return tuple(_match(item, wary) for item in spot.one_or_more("a list of tools, labels or mappings"))


def read_naming(spot: ConfigValue, matches: tuple[Match, ...]) -> tuple[Match, ...]:
    """Parse the alternatives under `ask` as in an allow rule: each must cover the whole call, without doubt.

    An alternative that an allow rule cannot have (what a command `does`, a secret place) stays as it is.
    """
    items = spot.one_or_more("a list of tools, labels or mappings")
    return tuple(_sure(item, match) for item, match in zip(items, matches, strict=True))


def _sure(spot: ConfigValue, match: Match) -> Match:
    try:
        return _match(spot, wary=True)
    except PolicyError:
        return match


def _matches_all(globs: tuple[Glob, ...]) -> bool:
    return any(not glob.pattern.strip("*") for glob in globs)


def read_scope(entries: Mapping[str, ConfigValue]) -> Match:
    """Parse which calls an `otherwise` is about."""
    found = SCOPE.values(entries)
    tools = found.get("tool", ())
    conditions = (ToolsetCondition(found["toolset"]),) if "toolset" in found else ()
    return Match(tools=() if _matches_all(tools) else tools, conditions=conditions)


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
    return Match(tools=NAME_GLOBS.read(spot))


def _conditions(spot: ConfigValue, wary: bool) -> Match:
    for key in spot.value:
        if key in (*REQUIREMENT.keys, "reason", "id", "examples"):
            fix = f"write it beside `ask`, `allow` or `deny`, as in {{ask: {{…}}, {key}: …}}"
            raise spot.child(key).wrong_key(f"{shown(key)} is about the rule, not about the call", fix)
    entries = MATCH.entries(spot)
    tools = MATCH.keys["tool"].read(entries["tool"]) if "tool" in entries else ()
    found: list[Condition] = []
    for key, condition in CONDITIONS.items():  # cheap conditions first, whatever the order in the file
        if key in entries:
            found.extend(condition.read(entries[key], wary))
    return Match(tools=() if _matches_all(tools) else tools, conditions=tuple(found))


def _toolset(spot: ConfigValue, wary: bool) -> Iterable[Condition]:
    yield ToolsetCondition(NAME_GLOBS.read(spot))


def _worker(spot: ConfigValue, wary: bool) -> Iterable[Condition]:
    yield WorkerCondition(NAME_GLOBS.read(spot), innermost=wary)


def _label(spot: ConfigValue, wary: bool) -> Iterable[Condition]:
    yield LabelCondition(frozenset(SOME_LABELS.read(spot)), every=wary)


def _read_label(spot: ConfigValue) -> str:
    label = spot.text("a label")
    if label not in LABELS:
        raise spot.wrong(f"unknown label {shown(label)}", did_you_mean(label, LABELS))
    return label


SOME_LABELS = each(
    choice(sorted(LABELS), description="What a call does, whatever the name of its tool.", name="label").by(
        _read_label
    ),
    "a list of labels",
    name="labels",
)
"""One capability label or a list of them."""
SCOPE = MappingFormat(
    {
        "tool": NAME_GLOBS.about("With otherwise: the tools it applies to; a pattern, or a list."),
        "toolset": NAME_GLOBS.about("With otherwise: the toolsets it applies to; a pattern, or a list."),
    }
)
"""The keys that may stand beside `otherwise`."""
_VALUES = Format(read_values, {"type": "object", "minProperties": 1})
CONDITIONS: Mapping[str, Format[Any]] = {
    "toolset": NAME_GLOBS.by(_toolset).about("The toolset's name; a pattern, or a list."),
    "worker": NAME_GLOBS.by(_worker).about("The calling worker; with ` > `, the whole chain of workers."),
    "label": SOME_LABELS.by(_label).about("Capability labels of the call."),
    "args": _VALUES.by(partial(read_values, source="args")).about(
        'Arguments by name: a value, or operators such as {">": 100}.'
    ),
    "deps": _VALUES.by(partial(read_values, source="deps")).about("The deps of the run, written like args."),
    **FACTS,
}
"""The conditions that a rule may put on a call besides its tool."""
MATCH = MappingFormat(
    {"tool": NAME_GLOBS.about("The tool's name; a pattern, or a list."), **CONDITIONS},
    description="Conditions, which all must hold. {} matches every call.",
    name="match",
)
MATCHES = Format(
    read_matches,
    {
        "description": "A tool, a label, a mapping of conditions, or a list of these.",
        "anyOf": [text(), MATCH, {"type": "array", "minItems": 1, "items": {"anyOf": [text(), MATCH]}}],
    },
    "matches",
)
"""The value of `allow`, `ask` or `deny`."""
