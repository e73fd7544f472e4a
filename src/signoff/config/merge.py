"""Merge mappings key by key, for `extends` and `defaults`. Every value keeps its position."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import Any, cast

from signoff.policy.document import key_text
from signoff.policy.phrases import did_you_mean, shown
from signoff.policy.placed_value import ConfigValue

NAME = "[A-Za-z0-9][A-Za-z0-9_-]*"
"""Valid names of toolsets, channels and workers, as a regular expression."""


@dataclass(frozen=True, slots=True)
class Merged:
    """Several mappings merged into one, with the position of each key."""

    value: dict[str, Any]
    spots: dict[str, ConfigValue]
    """By key path, as in `pool.size`."""


def merged(layers: Iterable[ConfigValue]) -> Merged:
    """Merge mappings; a later one wins, and nested mappings are merged the same way."""
    result = Merged({}, {})
    for layer in layers:
        _lay(layer, result.value, result.spots, ())
    return result


def _lay(layer: ConfigValue, value: dict[str, Any], spots: dict[str, ConfigValue], trail: tuple[str, ...]) -> None:
    for key, spot in layer.entries().items():
        path = (*trail, key)
        spots[key_text(path)] = spot
        if not isinstance(spot.value, dict):
            value[key] = spot.value
            continue
        below = value.get(key)
        value[key] = dict(cast("dict[str, Any]", below)) if isinstance(below, dict) else {}
        _lay(spot, value[key], spots, path)


def lineage(name: str, parent_of: Callable[[str], ConfigValue | None], known: Collection[str], what: str) -> list[str]:
    """The names from the outermost one that a name extends, down to itself.

    `parent_of` returns the `extends` value of a name. Raises if a name is unknown or they form a cycle.
    """
    line = [name]
    while (spot := parent_of(line[-1])) is not None:
        above = spot.text(f"the name of a {what}")
        if above in line:
            circle = " > ".join((*line[line.index(above) :], above))
            raise spot.wrong(f"`extends` forms a cycle: {circle}", "remove one of them")
        if above not in known:
            raise spot.wrong(
                f"there is no {what} {shown(above)} to extend",
                did_you_mean(above, (one for one in known if one != line[-1])),
            )
        line.append(above)
    return line[::-1]


def check_name(spot: ConfigValue, name: str, what: str) -> None:
    """Refuse an invalid name: the key of a value."""
    if not re.fullmatch(NAME, name):
        raise spot.wrong_key(f"bad name {shown(name)} for a {what}", "use letters, digits, `_` and `-`")


def read_use(spot: ConfigValue, what: str) -> str:
    """Read what an entry is made of: a plain name, or `package.module:Class`."""
    use = spot.text(what)
    module, colon, attribute = use.partition(":")
    words = [*module.split("."), *(attribute.split(".") if colon else ())]
    if colon or "." in module:
        if not colon or not all(word.isidentifier() for word in words):
            raise spot.wrong(f"{shown(use)} is not a class path", "write package.module:Class")
    elif use != use.strip() or not use.isprintable() or " " in use:
        raise spot.wrong(f"bad name {shown(use)}", "write a name without spaces")
    return use


USE_PATTERN = r"^([^\s.:]+|[^\s:]+:[^\s:]+)$"
"""What `read_use` takes, as a regular expression."""
