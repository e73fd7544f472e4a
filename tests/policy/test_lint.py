"""Warnings, and tools that do not exist."""

from __future__ import annotations

from typing import Any

import pytest
from tests.policy.rules import policy
from tests.tables import table

from signoff.errors import PolicyError
from signoff.policy.policy_source import parse_policy

BIG = {"tool": "pay", "args": {"amount": {">": 100}}}


def warned(*rules: dict[str, Any]) -> list[str]:
    return [problem.what for problem in policy(*rules).warnings]


@table(
    "rules",
    [
        [{"allow": "pay"}, {"ask": BIG}],
        [{"allow": "p*"}, {"ask": BIG}],
        [{"allow": ["tip", "pay"]}, {"ask": "pay"}],
        [{"ask": "pay"}, {"allow": "pay"}],
        [{"ask": BIG}, {"allow": BIG}],
        [{"ask": "*"}, {"allow": "pay"}],
        [{"ask": "p*"}, {"allow": {"tool": ["p*", "pay"]}}],
        [{"ask": "money"}, {"allow": {"label": "money", "tool": "pay"}}],
        [{"ask": {"args": {"amount": {">": 100}}}}, {"allow": BIG}],
        [{"deny": "pay"}, {"deny": BIG}],
        [{"deny": "a"}, {"deny": "b"}, {"ask": ["a", "b"]}],
        [{"ask": {"path": "x/**"}}, {"ask": {"path": "x/**"}}],
    ],
)
def test_a_rule_that_never_decides(rules: list[dict[str, Any]]) -> None:
    (what,) = [what for what in warned(*rules) if "never decides" in what]
    assert what.startswith(f"rule-{len(rules)} never decides: rule-1 ")


def test_a_rule_below_a_deny_never_decides_even_if_it_comes_first() -> None:
    (problem,) = policy({"allow": "pay"}, {"deny": "pay"}).warnings
    assert problem.what == "rule-1 never decides: rule-2 denies `pay`"
    assert problem.fix == "remove one of them"


def test_the_warning_says_what_to_do() -> None:
    (problem,) = parse_policy("policy:\n- allow: pay\n- ask: {tool: pay, args: {amount: 1}}", file="f").warnings
    assert str(problem) == (
        "f:3:3: policy[1]: rule-2 never decides: rule-1 allows `pay`; move it above rule-1, or narrow rule-1"
    )
    assert problem.rule == "rule-2"


@table(
    "rules",
    [
        [{"ask": BIG}, {"allow": "pay"}],
        [{"ask": "pay"}, {"allow": "p*"}],
        [{"ask": "money"}, {"allow": "pay"}],
        [{"ask": ["a", "b"]}, {"allow": ["b", "c"]}],
        [{"deny": BIG}, {"ask": "pay"}, {"deny": {"tool": "pay", "args": {"amount": {">": 99}}}}],
        [{"ask": {"path": "x/**"}}, {"allow": {"path": "x/**"}}],
        [{"allow": {"tool": "x", "toolset": "a"}}, {"allow": {"tool": "x", "toolset": "b"}}],
        [{"allow": {"tool": "x", "worker": "a"}}, {"allow": {"tool": "x"}}],
    ],
)
def test_rules_that_do(rules: list[dict[str, Any]]) -> None:
    assert warned(*rules) == []


def test_silence_that_allows_and_allowing_everything() -> None:
    assert warned({"ask": "pay", "timeout": 60, "on_timeout": "allow"}) == [
        "rule-1 allows the call when nobody answers in time"
    ]
    assert warned({"ask": "pay", "timeout": 60, "on_timeout": "allow", "irreversible": True}) == [
        "rule-1 allows the call when nobody answers in time, and it cannot be undone"
    ]
    for everything in ("*", {}, {"tool": "*"}, ["x", {}]):
        assert warned({"allow": everything}) == [
            "rule-1 allows every call that no rule before it asks about and no rule denies"
        ]
    assert warned({"ask": "*"}, {"deny": {"args": {"x": 1}}}) == []


def test_many_rules_are_checked_in_no_time() -> None:
    rules = [{"ask": {"tool": f"t{n % 500}", "args": {"n": n}}} for n in range(2000)]
    assert warned(*rules) == []


def test_unknown_tools() -> None:
    one = parse_policy("policy:\n- allow: [read_file, 'git_*', wite_file, fs.read, '*']\n- ask: {tool: zzz}", file="f")
    problems = one.unknown_tools(["read_file", "write_file"])
    assert [(problem.what, problem.fix, str(problem.place)) for problem in problems] == [
        ("no tool matches `git_*`", "known here: `read_file`, `write_file`", "f:2:3: policy[0]"),
        ("there is no tool `wite_file`", "did you mean `write_file`?", "f:2:3: policy[0]"),
        ("there is no tool `zzz`", "known here: `read_file`, `write_file`", "f:3:3: policy[1]"),
    ]
    assert one.unknown_tools(["read_file", "git_log", "wite_file", "zzz"]) == ()
    assert len(one.unknown_tools([])) == 4
    with pytest.raises(PolicyError, match="f:2:3"):
        raise problems[0].as_error()
