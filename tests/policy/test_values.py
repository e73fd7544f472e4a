"""Conditions on arguments and deps: every operator, nested keys, and the three answers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest
from tests.policy.rules import call, finding
from tests.tables import table

from signoff.core.call import Call
from signoff.core.verdict import Effect
from signoff.errors import PolicyError
from signoff.policy.engine import Policy
from signoff.policy.match_result import Truth

YES, NO, UNKNOWN = Truth.YES, Truth.NO, Truth.UNKNOWN


@table(
    ("condition", "value", "answer"),
    [
        # equals: JSON equality
        ("ana", "ana", YES),
        ("ana", "Ana", NO),
        ("ana", ["ana"], NO),
        (1, 1, YES),
        (1, 1.0, YES),
        (1, True, NO),
        (True, 1, UNKNOWN),
        (True, True, YES),
        ("1", 1, UNKNOWN),
        (1, "1", UNKNOWN),
        (1, " 1.0 ", UNKNOWN),
        (1.5, "15e-1", UNKNOWN),
        (1, "2", NO),
        (1, "1" * 100, NO),
        (1, "one", NO),
        ("1", True, NO),
        (None, None, YES),
        (None, "", NO),
        ([1, 2], [1, 2.0], YES),
        ([1, 2], [2, 1], NO),
        ({"equals": {"a": 1, "b": [True]}}, {"b": [True], "a": 1.0}, YES),
        ({"equals": {"a": 1}}, {"a": 1, "b": 2}, NO),
        ({"equals": 10**30}, 10**30, YES),
        (0, math.nan, UNKNOWN),
        (0, object(), UNKNOWN),
        ("ana", object(), NO),
        # in
        ({"in": ["a", "b"]}, "b", YES),
        ({"in": ["a", "b"]}, "c", NO),
        ({"in": [1, "1", None]}, 1.0, YES),
        ({"in": [1]}, True, NO),
        ({"in": [[1], {"a": 2}]}, {"a": 2}, YES),
        ({"in": [1]}, math.inf, UNKNOWN),
        # matches
        ({"matches": "src/**"}, "src/a/b", YES),
        ({"matches": "src/*"}, "src/a/b", NO),
        ({"matches": ["a*", "b*"]}, "bc", YES),
        ({"matches": "git *"}, "git status\nrm -rf", UNKNOWN),
        ({"matches": "*"}, 5, UNKNOWN),
        ({"matches": "*"}, None, UNKNOWN),
        ({"matches": "*"}, ["a"], UNKNOWN),
        # regex: the whole text
        ({"regex": "git (status|log)"}, "git status", YES),
        ({"regex": "git (status|log)"}, "git status; rm", NO),
        ({"regex": "git (status|log)"}, "git status\n", NO),
        ({"regex": "a|b"}, "bb", NO),
        ({"regex": ".*"}, 5, UNKNOWN),
        ({"regex": "a*"}, "a" * 1_000_001, YES),
        ({"regex": "(a|aa)+$"}, "a" * 100_000 + "!", NO),
        ({"regex": r"\w+@evil\.com"}, "é@evil.com", YES),
        ({"regex": r"\bls\b.*"}, "ls x", YES),
        ({"regex": r"\bls\b.*"}, "ls é", UNKNOWN),
        ({"regex": r"\bls\b.*"}, "rm é", NO),
        ({"regex": "a$"}, "a\n", UNKNOWN),
        ({"regex": ".*"}, "\ud800", UNKNOWN),
        # numbers
        ({">": 100}, 101, YES),
        ({">": 100}, 100, NO),
        ({">=": 100}, 100, YES),
        ({"<": 100}, 99.9, YES),
        ({"<=": 100}, 100.5, NO),
        ({">": 0, "<=": 10}, 10, YES),
        ({">": 0, "<=": 10}, 11, NO),
        ({">": 10**20}, 10**20 + 1, YES),
        ({">": 100}, math.inf, YES),
        ({">": 100}, "1000", UNKNOWN),
        ({">": 100}, True, UNKNOWN),
        ({">": 100}, math.nan, UNKNOWN),
        ({">": 100}, None, UNKNOWN),
        ({"<": 100}, [1], UNKNOWN),
        # exists
        ({"exists": True}, None, YES),
        ({"exists": True}, 0, YES),
        ({"exists": False}, None, NO),
        ({"exists": True, "in": [1, 2]}, 2, YES),
        # all operators together: one no is enough, whatever the others are
        ({">": 100, "regex": "x"}, 50, NO),
        ({">": 10, "in": [5]}, "x", NO),
        ({">": 10, "matches": "*"}, "x", UNKNOWN),
    ],
)
@table("source", ["args", "deps"])
def test_operators(condition: Any, value: Any, answer: Truth, source: str) -> None:
    found = finding({source: {"x": condition}}, call(**{source: {"x": value}}))
    assert found.truth is answer
    assert bool(found.why) == (answer is not YES)


@table(
    "condition",
    [
        "a",
        None,
        {"equals": None},
        {"in": [1]},
        {"matches": "*"},
        {"regex": ".*"},
        {">": 1},
        {"<=": 1},
        {"exists": True},
    ],
)
def test_what_is_absent_matches_nothing(condition: Any) -> None:
    found = finding({"args": {"x": condition}}, call(y=1))
    assert found.truth is NO
    assert found.why == "`x` is not given"


def test_absent_can_be_asked_for() -> None:
    assert finding({"args": {"x": {"exists": False}}}, call(y=1)).truth is YES


@table(
    ("key", "args", "answer"),
    [
        ("user.name", {"user": {"name": "ana"}}, YES),
        ("user.name", {"user": {"name": "bob"}}, NO),
        ("user.name", {"user.name": "ana"}, NO),
        ("user.name", {"user": "ana"}, NO),
        ("user.name", {"user": None}, NO),
        ("items.0.name", {"items": [{"name": "ana"}]}, YES),
        ("items.1.name", {"items": [{"name": "ana"}]}, NO),
        ("items.00.name", {"items": [{"name": "ana"}]}, NO),
        ("items.-1.name", {"items": [{"name": "ana"}]}, NO),
        ("items.٠.name", {"items": [{"name": "ana"}]}, NO),
        ("items.99999999999999999999.name", {"items": [{"name": "ana"}]}, NO),
        ("items.0", {"items": {"0": "ana"}}, YES),
        ("items.0", {"items": "ana"}, NO),
        ("/user.name", {"user.name": "ana"}, YES),
        ("/user.name", {"user": {"name": "ana"}}, NO),
        ("/a~1b/~0c/1", {"a/b": {"~c": ["x", "ana"]}}, YES),
        ("/*", {"*": "ana"}, YES),
    ],
)
def test_keys(key: str, args: dict[str, Any], answer: Truth) -> None:
    assert finding({"args": {key: "ana"}}, call(args=args)).truth is answer


def test_nested_mappings_are_nested_keys() -> None:
    match = {"args": {"user": {"name": "ana", "/a.b": {"age": {">": 17}}}}}
    assert finding(match, call(user={"name": "ana", "a.b": {"age": 18}})).truth is YES
    assert finding(match, call(user={"name": "ana", "a.b": {"age": 17}})).truth is NO
    assert finding(match, call(user={"name": "ana"})).truth is NO


def test_swapping_two_arguments_does_not_help() -> None:
    match = {"tool": "copy", "args": {"src": {"matches": "public/**"}, "dst": {"matches": "private/**"}}}
    assert finding(match, call("copy", dst="private/a", src="public/a")).truth is YES
    assert finding(match, call("copy", src="private/a", dst="public/a")).truth is NO


@pytest.mark.parametrize("text", ["src/../../etc/passwd", "src/..", "src/x/../y", "src/a\\..\\b"])
def test_wildcards_do_not_step_up_in_an_allow_rule(text: str) -> None:
    match = {"args": {"name": {"matches": "src/**"}}}
    assert finding(match, call(name=text), effect="allow").truth is UNKNOWN
    assert finding(match, call(name=text), effect="deny").truth is YES
    assert finding({"args": {"name": {"matches": [text.replace("\\", "[\\]"), text]}}}, call(name=text)).truth is YES


def test_a_step_up_that_is_spelt_out_is_meant() -> None:
    assert finding({"args": {"name": {"matches": ["a*", "../x"]}}}, call(name="../x"), effect="allow").truth is YES
    assert finding({"args": {"name": {"matches": "a*"}}}, call(name="a..b"), effect="allow").truth is YES


@dataclass
class User:
    role: str
    budget: float = 10
    _secret: str = "x"

    @property
    def broken(self) -> str:
        raise RuntimeError("the database is away\nfor now")

    @property
    def half_broken(self) -> str:
        raise AttributeError("inside")


@dataclass
class Deps:
    user: User
    flags: dict[str, Any]


DEPS = Deps(User("admin"), {"dry.run": True, "list": [1]})


@table(
    ("condition", "answer"),
    [
        ({"user.role": "admin"}, YES),
        ({"user.role": "guest"}, NO),
        ({"user": {"budget": {">=": 10}}}, YES),
        ({"flags": {"/dry.run": True}}, YES),
        ({"flags.list.0": 1}, YES),
        ({"user.nope": "x"}, NO),
        ({"user.nope": {"exists": False}}, YES),
        ({"user.role.upper": {"exists": True}}, NO),
        ({"user": {"matches": "*"}}, UNKNOWN),
        ({"user": 1}, UNKNOWN),
        ({"user.broken": "x"}, UNKNOWN),
        ({"user.half_broken": {"exists": False}}, UNKNOWN),
    ],
)
def test_deps_through_attributes_and_keys(condition: dict[str, Any], answer: Truth) -> None:
    assert finding({"deps": condition}, call(deps=DEPS)).truth is answer


def test_deps_that_are_not_there() -> None:
    assert finding({"deps": {"user": "x"}}, call()).truth is NO
    assert finding({"deps": {"user": "x"}}, call(deps=SimpleNamespace(user="x"))).truth is YES


def test_an_attribute_that_raises_is_told_in_one_line() -> None:
    found = finding({"deps": {"user.broken": "x"}}, call(deps=DEPS))
    assert found.raised
    assert found.why == 'checking deps `user.broken` is "x" failed with RuntimeError: the database is away for now'


def test_an_error_without_a_message_of_its_own() -> None:
    class Rude(Exception):
        def __str__(self) -> str:
            raise ValueError

    class Thing:
        @property
        def name(self) -> str:
            raise Rude

    assert "Rude: a message that raises ValueError" in finding({"deps": {"name": "x"}}, call(deps=Thing())).why


# --- every other argument ---


def test_no_other_argument_may_be_given() -> None:
    policy = Policy.from_rules([{"allow": {"tool": "pay", "args": {"to": "ana", "/a.b": 1, "*": {"exists": False}}}}])
    for args, effect in (
        ({"to": "ana", "a.b": 1}, "allow"),
        ({"to": "ana", "a.b": 1, "cc": "eve"}, "ask"),
        ({"to": "ana", "a.b": 1, "cc": None}, "ask"),
        ({"to": "ana"}, "ask"),
    ):
        assert policy.judge(Call(tool="pay", args=args)).effect == effect, args


def test_a_call_without_arguments() -> None:
    policy = Policy.from_rules([{"allow": {"tool": "look", "args": {"*": {"exists": False}}}}])
    assert policy.judge(Call(tool="look")).effect == "allow"
    assert policy.judge(Call(tool="look", args={"at": 1})).effect == "ask"
    assert policy.rules[0].text == "allows `look` without arguments"


@pytest.mark.parametrize("value", [1, None, {"exists": True}, {"equals": 1}, {}, "x", {"exists": False, "in": [1]}])
def test_all_other_arguments_can_only_be_absent(value: object) -> None:
    with pytest.raises(PolicyError, match="stands for all other arguments"):
        Policy.from_rules([{"allow": {"tool": "pay", "args": {"to": "ana", "*": value}}}])


def test_deps_have_no_others() -> None:
    with pytest.raises(PolicyError, match="bad key"):
        Policy.from_rules([{"allow": {"tool": "pay", "deps": {"*": {"exists": False}}}}])


@pytest.mark.parametrize("value", ["true", "True", " yes ", 1, 1.0, "1", "on"])
def test_what_a_tool_may_take_for_true_is_in_doubt_where_a_rule_asks_or_denies(value: object) -> None:
    def judge(effect: str) -> Effect:
        rules: list[dict[str, Any]] = [{effect: {"tool": "t", "args": {"force": True}}}]
        others = [{"allow": "t"}] if effect != "allow" else []
        return Policy.from_rules([*rules, *others]).judge(Call(tool="t", args={"force": value})).effect

    assert (judge("deny"), judge("ask"), judge("allow")) == (Effect.ASK, Effect.ASK, Effect.ASK)


@pytest.mark.parametrize("value", [False, "false", 0, None, "truer", 2])
def test_what_no_tool_takes_for_true_is_another_value(value: object) -> None:
    rules = [{"deny": {"tool": "t", "args": {"force": True}}}, {"allow": "t"}]
    assert Policy.from_rules(rules).judge(Call(tool="t", args={"force": value})).effect is Effect.ALLOW
