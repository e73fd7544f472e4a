"""Environment variables in files: replace `${NAME}`, and collect the values as secrets to mask."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol, cast

from signoff.policy.document import KeyStep, key_text
from signoff.policy.phrases import shown
from signoff.policy.placed_value import ConfigValue

_DOLLAR = re.compile(r"\$(?:(?P<dollar>\$)|\{(?P<inside>[^{}]*)(?P<end>\}?))")
_INSIDE = re.compile(r"(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?::-(?P<default>.*))?", re.DOTALL)


class HasConfig(Protocol):
    """An entry with a configuration as written: a toolset, a channel."""

    @property
    def config(self) -> Mapping[str, Any]: ...
    @property
    def spot(self) -> ConfigValue: ...
    @property
    def config_spots(self) -> Mapping[str, ConfigValue]: ...


@dataclass(frozen=True, slots=True)
class Filled:
    """A value with its variables replaced."""

    value: Any
    secrets: tuple[str, ...] = ()
    """The values from the environment, each once: to be masked wherever the value may be shown."""

    def __repr__(self) -> str:
        return f"Filled(<{type(self.value).__name__}>, {len(self.secrets)} secrets)"  # it may end up in a traceback


def filled(value: object, spot: ConfigValue) -> Filled:
    """Replace `${NAME}` and `${NAME:-default}` in every text of a value; `$$` is a dollar sign.

    `spot` is the position of the value. Raises `WrongFile` that names the variable, never a value.
    """
    secrets: dict[str, None] = {}
    return Filled(_value(value, spot, secrets), tuple(secrets))


def filled_config(entry: HasConfig) -> Filled:
    """Replace the variables in the `config` of an entry. Errors name the position of a value, also with `extends`."""
    secrets: dict[str, None] = {}
    return Filled(_level(entry.config, (), entry, secrets), tuple(secrets))


def has_variables(text: str) -> bool:
    """Whether a text contains variables, or `$$`."""
    return _DOLLAR.search(text) is not None


def unset_variables(value: object) -> list[str]:
    """The variables in a value that have neither a value nor a default."""
    if isinstance(value, str):
        inside = [_INSIDE.fullmatch(one["inside"]) for one in _DOLLAR.finditer(value) if not one["dollar"]]
        return [one["name"] for one in inside if one and one["default"] is None and one["name"] not in os.environ]
    if isinstance(value, Mapping):
        value = [*cast("Mapping[str, object]", value).values()]
    if isinstance(value, (list, tuple)):
        return [name for one in cast("list[object]", value) for name in unset_variables(one)]
    return []


def _level(level: Mapping[str, Any], trail: tuple[str, ...], entry: HasConfig, secrets: dict[str, None]) -> Any:
    """One level of a merged config. If only one entry sets a key, its spot has the positions of everything below."""
    done: dict[str, Any] = {}
    for key, value in level.items():
        path = (*trail, key)
        spot = entry.config_spots.get(key_text(path))
        if not isinstance(value, Mapping) or (spot is not None and spot.value == value):
            done[key] = _value(cast("object", value), spot or entry.spot, secrets)
        else:
            done[key] = _level(cast("Mapping[str, Any]", value), path, entry, secrets)
    return done


def _value(value: object, spot: ConfigValue, secrets: dict[str, None]) -> Any:
    if isinstance(value, str):
        return _DOLLAR.sub(lambda found: _found(found, spot, secrets), value)
    if isinstance(value, Mapping):
        items = cast("Mapping[str, object]", value)
        return {key: _value(item, _below(spot, key, item), secrets) for key, item in items.items()}
    if isinstance(value, (list, tuple)):
        several = cast("list[object]", value)
        return [_value(item, _below(spot, at, item), secrets) for at, item in enumerate(several)]
    return value


def _below(spot: ConfigValue, step: KeyStep, value: object) -> ConfigValue:
    return ConfigValue(spot.document, value, (*spot.trail, step))  # not `child`: a merged value may lack the step


def _found(found: re.Match[str], spot: ConfigValue, secrets: dict[str, None]) -> str:
    if found["dollar"]:
        return "$"
    inside = _INSIDE.fullmatch(found["inside"])
    if inside is None or not found["end"]:
        raise spot.wrong("this is not a variable", "write ${NAME} or ${NAME:-default}; a dollar sign before { is $$")
    name, default = inside["name"], inside["default"]
    value = os.environ.get(name)
    if value is None and default is None:
        raise spot.wrong(f"the environment has no {name}", f"set it, or write a default: {shown(f'${{{name}:-…}}')}")
    if default is not None and not value:  # as in a shell: empty means not set
        return default
    if value:
        secrets[value] = None
    return value or ""
