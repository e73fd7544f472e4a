"""`toolsets:` in the project file: their names, configuration and policies."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from signoff.config.entries import ToolsetEntry
from signoff.config.llm_do_words import foreign_hint
from signoff.config.merge import NAME, USE_PATTERN, check_name, lineage, merged, read_use
from signoff.config.variables import has_variables
from signoff.policy.format import Format, MappingFormat, matching, read_elsewhere, text
from signoff.policy.glob import BadGlob, Glob
from signoff.policy.parse import RULES
from signoff.policy.parse_match import SOME_LABELS
from signoff.policy.phrases import did_you_mean, shown
from signoff.policy.placed_value import ConfigValue
from signoff.policy.policy_source import read_policy

_EXAMPLE = "a mapping such as {use: filesystem_rw, config: {root: .}}"


def read_toolsets(spot: ConfigValue, defaults: ConfigValue | None, directory: str) -> dict[str, ToolsetEntry]:
    """Read every entry, with `extends` and the defaults merged in. Relative paths start from `directory`."""
    written: dict[str, dict[str, ConfigValue]] = {}
    found = spot.entries(what="a mapping of names to toolsets") if spot.value is not None else {}
    for name, entry in found.items():
        check_name(entry, name, "toolset")
        if isinstance(entry.value, str):
            raise entry.wrong(f"this should be {_EXAMPLE}, not a text", f"write {{use: {shown(entry.value)[1:-1]}}}")
        written[name] = TOOLSET.entries(entry)
        TOOLSET.values(written[name])
    base = default_entries(defaults) if defaults is not None else {}
    return {name: _entry(name, found[name], written, base, directory) for name in found}


def default_entries(spot: ConfigValue) -> dict[str, ConfigValue]:
    """Read `defaults.toolset`."""
    entries = spot.entries(what="a mapping such as {config: {…}}")
    for key, value in entries.items():
        if key in TOOLSET.keys and key not in DEFAULTS.keys:
            raise value.wrong_key(f"{shown(key)} makes no sense for every toolset", "write it at each toolset")
    DEFAULTS.read(spot)
    if "policy" in entries:
        read_policy(entries["policy"], name="defaults")
    return entries


def known_tools(entry: ToolsetEntry) -> frozenset[str]:
    """The tools of an entry that are known without building it: those of a built-in, and those its own rules name.

    The names are those that the project's rules use, with the entry's prefix.
    """
    from signoff.policy.builtin import READ_TOOLS, WRITE_TOOLS, builtin_policy  # only checks need it

    own = entry.policy.tool_names if entry.policy is not None else frozenset[str]()
    builtin = builtin_policy(entry.use)
    brought = builtin.tool_names if builtin is not None else frozenset[str]()
    if entry.use == "filesystem":
        brought = frozenset((*READ_TOOLS, *WRITE_TOOLS))
    return frozenset(f"{entry.prefix}_{tool}" if entry.prefix else tool for tool in own | brought)


def _advice(key: str, known: Iterable[str]) -> str:
    if hint := foreign_hint(key):
        return hint
    close = did_you_mean(key, known)
    if close.startswith("did you mean"):
        return close
    return f"settings of the toolset itself go under `config`, as in {{config: {{{shown(key)[1:-1]}: …}}}}"


def _entry(
    name: str,
    spot: ConfigValue,
    written: Mapping[str, Mapping[str, ConfigValue]],
    base: Mapping[str, ConfigValue],
    directory: str,
) -> ToolsetEntry:
    line = lineage(name, lambda one: written[one].get("extends"), written, "toolset")
    layers = [base, *(written[one] for one in line)]
    keys = {key: value for layer in layers for key, value in layer.items()}  # the innermost wins
    if "use" not in keys:
        fix = "write `use:` and a built-in name, an entry point, `mcp`, `native` or package.module:Class"
        raise spot.wrong("`use` is missing", fix)
    config = merged(layer["config"] for layer in layers if "config" in layer)
    policy = None
    if "policy" in keys:
        policy = read_policy(keys["policy"], name=name, root=_root(config.value.get("root"), directory))
    return ToolsetEntry(
        name=name,
        use=keys["use"].value,
        config=config.value,
        policy=policy,
        labels={tools: one for layer in layers if "labels" in layer for tools, one in _labels(layer["labels"]).items()},
        prefix=keys["prefix"].value if "prefix" in keys else "",
        spot=spot,
        config_spots=config.spots,
        policy_spot=keys.get("policy"),
    )


def _root(root: object, directory: str) -> str:
    """The start directory of relative paths in the entry's rules: that of its tools, as far as it is known here."""
    if isinstance(root, str) and root and not has_variables(root):
        with suppress(ValueError):  # characters that no file system accepts: the toolset will report them
            return Path(os.path.realpath(os.path.join(directory, root))).as_posix()
    return directory


def _labels(spot: ConfigValue) -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for tools, labels in spot.entries(what="a mapping of tools to labels").items():
        try:
            Glob(tools, over_names=True)
        except BadGlob as error:
            raise labels.wrong_key(f"bad pattern {shown(tools)}", str(error)) from error
        found[tools] = SOME_LABELS.read(labels)
    return found


DEFAULTS = MappingFormat(
    {
        "config": Format(
            lambda spot: spot.entries(what="a mapping of what the toolset takes"),
            {
                "description": "The configuration of the toolset. ${NAME} and ${NAME:-default} come from the environ"
                "ment; $$ is a dollar sign.",
                "type": "object",
            },
            "config",
        ),
        "policy": RULES.by(read_elsewhere),
        "labels": Format(
            _labels,
            {
                "description": "Capability labels by tool name or pattern, for toolsets that declare none.",
                "type": "object",
                "additionalProperties": SOME_LABELS,
            },
            "toolLabels",
        ),
    },
    what="a mapping such as {config: {…}}",
)
"""The keys of `defaults.toolset`."""
TOOLSET = MappingFormat(
    {
        "use": Format(
            lambda spot: read_use(spot, "what the toolset is made of"),
            {
                "type": "string",
                "pattern": USE_PATTERN,
                "examples": [
                    "filesystem_rw",
                    "filesystem_ro",
                    "shell_readonly",
                    "shell_file_ops",
                    "sql",
                    "mcp",
                    "native",
                ],
            },
        ).about("A built-in name, an entry point, mcp, native, or package.module:Class."),
        "extends": text("the name of a toolset").about("Another toolset, whose keys apply unless this one sets them."),
        "prefix": matching(
            "[A-Za-z_][A-Za-z0-9_]*",
            "a word that goes before the names of its tools",
            "bad prefix {}",
            "use letters, digits and `_`, with a letter first",
        ).about("A prefix for the names of its tools, for two toolsets of a worker with the same tool names."),
        **DEFAULTS.keys,
    },
    what=_EXAMPLE,
    advice=_advice,
)
TOOLSETS = Format(
    read_toolsets,
    {
        "description": "The catalog: toolsets that workers use by name, each with its policy.",
        "type": ["object", "null"],
        "propertyNames": {"pattern": f"^{NAME}$"},
        "additionalProperties": {**TOOLSET.schema, "anyOf": [{"required": ["use"]}, {"required": ["extends"]}]},
    },
)
