"""The lists in `names.toml`, loaded once."""

from __future__ import annotations

import tomllib
from functools import lru_cache
from typing import Any

from signoff.policy.table_files import table_text


@lru_cache(maxsize=1)
def _lists() -> dict[str, Any]:
    return tomllib.loads(table_text("sql/names.toml"))


@lru_cache(maxsize=256)
def listed(*keys: str) -> frozenset[str]:
    """Return the names in one list: `listed("pragmas", "alone")`."""
    found: Any = _lists()
    for key in keys:
        found = found.get(key, {})
    return frozenset(found.split()) if isinstance(found, str) else frozenset()


def secret_setting(name: str) -> bool:
    """Whether a setting of this name holds a secret, such as the password of a standby's connection."""
    low = name.lower()
    return low not in listed("settings", "plain") and any(word in low for word in listed("settings", "secret"))


@lru_cache(maxsize=16)
def pure(dialect: str, generic: bool) -> frozenset[str]:
    """Return the functions that only compute or report."""
    lists = ("any", "generic", dialect) if generic else ("any", dialect)
    return frozenset[str]().union(*(listed("functions", one) for one in lists)) - (
        listed("effects", "discloses") if dialect == "duckdb" else frozenset()
    )


@lru_cache(maxsize=1)
def _effects() -> dict[str, str]:
    return {name: effect for effect in _lists()["effects"] for name in listed("effects", effect)}


def about_function(name: str) -> str:
    """Return why a function that is not pure asks."""
    low = name.lower()
    effect = _effects().get(low, "")
    if not effect:
        prefixes = {"dblink_": "sends", "pg_ls_": "discloses", "lo_": "writes", "read_": "discloses"}
        effect = next((effect for prefix, effect in prefixes.items() if low.startswith(prefix)), "")
    if effect:
        return f"{effect}: `{name}` {_lists()['said'][effect]}"
    return f"unknown: `{name}` is not a function signoff knows to only compute"
