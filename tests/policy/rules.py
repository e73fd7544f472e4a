"""Short ways to a policy and a call, for the tests in this directory."""

from __future__ import annotations

from typing import Any

from signoff.core.call import Call
from signoff.policy.call_paths import Facts
from signoff.policy.engine import Policy
from signoff.policy.explain import Explanation
from signoff.policy.match_result import MatchResult

ROOT = "/home/ana/project"


def policy(*rules: dict[str, Any], root: str | None = ROOT) -> Policy:
    return Policy.from_rules(rules, root=root)


def call(tool: str = "pay", /, **more: Any) -> Call:
    """A call of `tool`; keywords that are not fields of `Call` are arguments."""
    fields = {
        key: more.pop(key) for key in ("toolset", "worker", "labels", "deps", "resolved", "unreadable") if key in more
    }
    return Call(tool=tool, args=more.pop("args", more), **fields)


def finding(match: Any, made: Call, *, effect: str = "ask", root: str | None = ROOT) -> MatchResult:
    """What the only rule of a policy finds out about a call."""
    rule = policy({effect: match}, root=root).rules[0]
    return rule.find(Facts(made, root))


def effect(*rules: dict[str, Any], on: Call) -> str:
    return policy(*rules).judge(on).effect.value


def explained(*rules: dict[str, Any], on: Call) -> Explanation:
    return policy(*rules).explain(on)
