"""`toolsets:` of the project file: names, what each is made of, and the policy that goes with it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from signoff.config.entries import ToolsetEntry
from signoff.config.foreign import foreign_hint
from signoff.config.merge import check_name, lineage, merged
from signoff.config.variables import has_variables
from signoff.policy.glob import BadGlob, Glob
from signoff.policy.parse_match import read_labels
from signoff.policy.phrases import did_you_mean, shown
from signoff.policy.policy_source import read_policy
from signoff.policy.spot import ConfigValue

DEFAULT_KEYS = ("config", "policy", "labels")
ENTRY_KEYS = ("use", "extends", "prefix", *DEFAULT_KEYS)

_CONFIG = "a mapping of what the toolset takes"
_EXAMPLE = "a mapping such as {use: filesystem_rw, config: {root: .}}"


def read_toolsets(spot: ConfigValue, defaults: ConfigValue | None, directory: str) -> dict[str, ToolsetEntry]:
    """Every entry, with what it extends and the defaults merged in. `directory`: where relative paths start."""
    written: dict[str, dict[str, ConfigValue]] = {}
    found = spot.entries(what="a mapping of names to toolsets") if spot.value is not None else {}
    for name, entry in found.items():
        check_name(entry, name, "toolset")
        _check_shape(entry)
        written[name] = entry.entries(ENTRY_KEYS)
    base = default_entries(defaults) if defaults is not None else {}
    return {name: _entry(name, found[name], written, base, directory) for name in found}


def default_entries(spot: ConfigValue) -> dict[str, ConfigValue]:
    """What `defaults.toolset` holds."""
    entries = spot.entries(what="a mapping such as {config: {…}}")
    for key, value in entries.items():
        if key in ("use", "extends", "prefix"):
            raise value.wrong_key(f"{shown(key)} makes no sense for every toolset", "write it at each toolset")
        if key not in DEFAULT_KEYS:
            raise value.wrong_key(f"unknown key {shown(key)}", did_you_mean(key, DEFAULT_KEYS))
    if "config" in entries:
        entries["config"].entries(what=_CONFIG)
    if "policy" in entries:
        read_policy(entries["policy"], name="defaults")
    _labels((entries,))
    return entries


def known_tools(entry: ToolsetEntry) -> frozenset[str]:
    """The tools of an entry that can be told without making it: those of a built-in, and those its own rules name.

    They are called as the project's rules know them, with the entry's prefix.
    """
    from signoff.policy.builtin import READ_TOOLS, WRITE_TOOLS, builtin_policy  # only checks need it

    own = entry.policy.tool_names if entry.policy is not None else frozenset[str]()
    builtin = builtin_policy(entry.use)
    brought = builtin.tool_names if builtin is not None else frozenset[str]()
    if entry.use == "filesystem":
        brought = frozenset((*READ_TOOLS, *WRITE_TOOLS))
    return frozenset(f"{entry.prefix}_{tool}" if entry.prefix else tool for tool in own | brought)


def _check_shape(entry: ConfigValue) -> None:
    if isinstance(entry.value, str):
        raise entry.wrong(f"this should be {_EXAMPLE}, not a text", f"write {{use: {shown(entry.value)[1:-1]}}}")
    known = entry.entries(what=_EXAMPLE)
    for key, value in known.items():
        if key not in ENTRY_KEYS:
            raise value.wrong_key(f"unknown key {shown(key)}", _advice(key))


def _advice(key: str) -> str:
    if hint := foreign_hint(key):
        return hint
    close = did_you_mean(key, ENTRY_KEYS)
    if close.startswith("did you mean"):
        return close
    return f"what the toolset itself takes is written under `config`, as in {{config: {{{shown(key)[1:-1]}: …}}}}"


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
        raise spot.wrong("nothing says what this toolset is made of", fix)
    configs = [layer["config"] for layer in layers if "config" in layer]
    for config in configs:
        config.entries(what=_CONFIG)
    config = merged(configs)
    policy = None
    if "policy" in keys:
        policy = read_policy(keys["policy"], name=name, root=_root(config.value.get("root"), directory))
    return ToolsetEntry(
        name=name,
        use=_use(keys["use"]),
        config=config.value,
        policy=policy,
        labels=_labels(layers),
        prefix=_prefix(keys["prefix"]) if "prefix" in keys else "",
        spot=spot,
        config_spots=config.spots,
        policy_spot=keys.get("policy"),
    )


def _prefix(spot: ConfigValue) -> str:
    prefix = spot.text("a word that goes before the names of its tools")
    if not prefix.isidentifier() or not prefix.isascii():
        raise spot.wrong(f"bad prefix {shown(prefix)}", "use letters, digits and `_`, with a letter first")
    return prefix


def _use(spot: ConfigValue) -> str:
    use = spot.text("what the toolset is made of")
    module, colon, attribute = use.partition(":")
    words = [*module.split("."), *(attribute.split(".") if colon else ())]
    if colon or "." in module:
        if not colon or not all(word.isidentifier() for word in words):
            raise spot.wrong(f"{shown(use)} is no class path", "write package.module:Class")
    elif use != use.strip() or not use.isprintable() or " " in use:
        raise spot.wrong(f"bad name {shown(use)}", "write a name without blanks")
    return use


def _root(root: object, directory: str) -> str:
    """Where relative paths in the entry's rules start: where its tools do, as far as that is known here."""
    if isinstance(root, str) and root and not has_variables(root):
        with suppress(ValueError):  # characters that no file system takes: the toolset will say so
            return Path(os.path.realpath(os.path.join(directory, root))).as_posix()
    return directory


def _labels(layers: Sequence[Mapping[str, ConfigValue]]) -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for layer in layers:
        if "labels" not in layer:
            continue
        for tools, labels in layer["labels"].entries(what="a mapping of tools to labels").items():
            _check_glob(labels, tools)
            found[tools] = tuple(read_labels(labels))
    return found


def _check_glob(spot: ConfigValue, pattern: str) -> None:
    try:
        Glob(pattern, over_names=True)
    except BadGlob as error:
        raise spot.wrong_key(f"bad pattern {shown(pattern)}", str(error)) from error
