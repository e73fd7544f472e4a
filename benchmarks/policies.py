"""Policies to measure with: one like a team would write, and generated ones with as many rules as you like."""

from __future__ import annotations

from typing import Any

from benchmarks.script import DIRECTORY, TOOL

Rules = list[dict[str, Any]]

ONE_RULE: Rules = [{"allow": TOOL}]
ASK_ALL: Rules = [{"ask": TOOL}]


def realistic(last_word: str) -> Rules:
    """Twenty rules, of which a dozen have to be looked at before the one that decides about the scripted calls."""
    files = [TOOL, "edit_file"]
    return [
        {"deny": {"path": ["**/.env", "**/.env.*"]}},
        {"deny": {"path": ["**/.git/**", "**/.ssh/**"]}},
        {"deny": {"tool": "*_file", "path": "/etc/**"}},
        {"deny": {"tool": "shell", "args": {"command": {"regex": "(sudo|su) .*"}}}},
        {"deny": {"tool": "http_*", "args": {"host": {"matches": "169.254.*"}}}},
        {"deny": {"tool": "drop_*"}},
        {"allow": ["read_file", "list_files", "search_files"]},
        {"allow": {"tool": "shell", "args": {"command": {"regex": "git (status|log|diff)( .*)?"}}}},
        {"ask": "proc.exec"},
        {"allow": {"tool": "send_mail", "args": {"to": {"matches": "*@example.com"}}}},
        {"ask": "send_mail", "message": "Look at the recipient first."},
        {"allow": {"tool": "pay", "args": {"amount": {"<=": 100}, "currency": {"in": ["EUR", "USD"]}}}},
        {"ask": "pay", "by": "finance"},
        {"ask": {"worker": "intern*"}},
        {"allow": {"tool": "*", "toolset": "calendar"}},
        {"ask": {"tool": files, "args": {"body": {"regex": ".*PRIVATE KEY.*"}}}},
        {"ask": {"tool": files, "path": ["**/*.toml", "**/*.lock"]}},
        {last_word: {"tool": files, "path": {"inside": DIRECTORY}}},
        {"ask": {"tool": files}},
        {"ask": "net.egress"},
    ]


def by_name(count: int) -> Rules:
    """Rules spread over tools by exact name, four to a tool, all but the last with a condition."""
    return [_rule(f"service_{number // 4}", number % 4) for number in range(count)]


def by_glob(count: int) -> Rules:
    """The same rules, naming their tools by a pattern."""
    return [_rule(f"service_{number // 4}_*", number % 4) for number in range(count)]


def _rule(tool: str, turn: int) -> dict[str, Any]:
    return [
        {"deny": {"tool": tool, "args": {"target": {"matches": "prod-*"}}}},
        {"ask": {"tool": tool, "args": {"amount": {">": 1000}}}},
        {"allow": {"tool": tool, "args": {"user.role": {"in": ["ops", "dev"]}}}},
        {"ask": {"tool": tool}},
    ][turn]


def call_of(number: int, *, tools: int, pattern: bool) -> dict[str, Any]:
    """A call that the rules above are about, as one line of a file of calls."""
    tool = f"service_{number % tools}"
    args = {"target": f"test-{number}", "amount": number % 2000, "user": {"name": "ana", "role": "dev"}}
    return {"tool": f"{tool}_run" if pattern else tool, "args": args}
