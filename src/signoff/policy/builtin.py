"""The policies of the built-in toolsets, written as in a file.

They are layers below the user's own rules. A call that they do not match asks, unless a rule of the user decides: a
project may allow `npm test` in a shell, but never what a built-in policy denies.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from signoff.policy.engine import Policy

READ_TOOLS = ("list_files", "read_file", "search_files")
WRITE_TOOLS = ("write_file", "edit_file", "move_file", "delete_file")

_OUTSIDE = "refused: it leads outside the root directory"
_READS = list(READ_TOOLS)
_WRITES = list(WRITE_TOOLS)

_FILES: Sequence[Mapping[str, Any]] = (
    {"deny": {"tool": _READS + _WRITES, "path": {"outside": "."}}, "reason": _OUTSIDE},
    {"ask": {"tool": _READS + _WRITES, "path": {"secret": True}}, "reason": "secrets may be kept there"},
    {"allow": {"tool": _READS, "path": {"inside": "."}}},
    {"allow": {"tool": ["list_files", "search_files"], "args": {"path": {"exists": False}}}},
    {"ask": {"tool": _WRITES, "path": {"code": True}}, "reason": "what is written there gets run later"},
)
_READ_SHELL: Sequence[Mapping[str, Any]] = (
    {"allow": {"tool": "shell", "command": "read-only"}},
    {"ask": {"tool": "shell", "command": {"secret": True}}, "reason": "secrets may be kept there"},
)

RULES: Mapping[str, Sequence[Mapping[str, Any]]] = {
    "filesystem_rw": _FILES,
    "filesystem_ro": (
        {"deny": {"tool": _WRITES}, "reason": "this toolset only reads"},
        *_FILES[:-1],
    ),
    "shell_readonly": (
        *_READ_SHELL,
        {"deny": {"tool": "shell", "command": {"does": "writes"}}, "reason": "this shell only reads"},
    ),
    "shell_file_ops": _READ_SHELL,
    "sql": (
        {"allow": {"tool": ["query", "execute"], "sql": "read-only"}},
        {"deny": {"tool": "query", "sql": {"does": "writes"}}, "reason": "`query` only reads; changes go to `execute`"},
    ),
}
"""Rules by the name of the toolset."""


@lru_cache(maxsize=64)
def builtin_policy(name: str, root: str | None = None, dialect: str = "") -> Policy | None:
    """Return the policy of a built-in toolset, or None if there is no toolset of that name.

    `root` is the directory that the toolset works in; `dialect` is the SQL dialect of the database.
    """
    if name not in RULES:
        return None
    rules = [_for_dialect(rule, dialect) if dialect else rule for rule in RULES[name]]
    return Policy.from_rules(rules, file=f"<{name}>", name=name, root=root)


def _for_dialect(rule: Mapping[str, Any], dialect: str) -> Mapping[str, Any]:
    effect = next(iter(rule))
    matched: dict[str, Any] = rule[effect]
    sql = {"is": matched["sql"]} if isinstance(matched["sql"], str) else matched["sql"]
    return {**rule, effect: {**matched, "sql": {**sql, "dialect": dialect}}}
