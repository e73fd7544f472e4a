"""What holds for all policies and all calls."""

from __future__ import annotations

import math
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st
from tests.policy.rules import ROOT
from tests.profiles import examples

from signoff.core.call import LABELS, Call
from signoff.core.verdict import Effect, Verdict
from signoff.errors import PolicyError
from signoff.policy.call_paths import Facts
from signoff.policy.engine import Policy
from signoff.policy.layers import Layers
from signoff.policy.match_result import Truth
from signoff.policy.policy_source import parse_policy

TOOLS = ["pay", "read", "read_all", "x/y", "bash", "bash_admin", "pay\n"]
KEYS = ["amount", "path", "to", "user.name", "items.0", "/a.b"]
TEXTS = [
    "ana",
    "src/a.py",
    "src/../.env",
    ".env",
    "~/x",
    "$A",
    "a\nb",
    "",
    "\\x\\.env",
    "\ud800",
    "/etc/passwd",
    "file:/x",
]

tool_patterns = st.sampled_from(["pay", "read", "read*", "*_admin", "b?sh", "*", "[px]*", "missing"])
paths = st.sampled_from(["**/.env", "src/**", "/etc/*", "**", "*.py"])
scalars = st.none() | st.booleans() | st.integers(-5, 5) | st.sampled_from([1.5, math.nan, math.inf, 10**400, *TEXTS])
arguments = st.dictionaries(
    st.sampled_from(["amount", "path", "to", "user", "items", "a.b", "files"]),
    st.recursive(
        scalars,
        lambda inner: (
            st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["name", "dir", "\n"]), inner, max_size=2)
        ),
        max_leaves=4,
    ),
    max_size=4,
)
operators = st.one_of(
    st.sampled_from(["ana", 1, 1.5, True, None, [1], {"in": ["ana", 1, None]}, {"matches": ["a*", "src/**"]}]),
    st.sampled_from([{"regex": "[a-z]+"}, {">": 0}, {"<=": 2, ">": -3}, {"exists": True}, {"exists": False}]),
)
matches = st.one_of(
    tool_patterns,
    st.sampled_from(sorted(LABELS)),
    st.fixed_dictionaries(
        {},
        optional={
            "tool": tool_patterns | st.lists(tool_patterns, min_size=1, max_size=2),
            "toolset": st.sampled_from(["files", "f*"]),
            "worker": st.sampled_from(["a", "a > b", "*"]),
            "label": st.sampled_from(sorted(LABELS)),
            "args": st.dictionaries(st.sampled_from(KEYS), operators, min_size=1, max_size=2),
            "deps": st.dictionaries(st.sampled_from(["user", "broken"]), operators, min_size=1, max_size=1),
            "path": paths | st.sampled_from([{"inside": "."}, {"inside": "src", "matches": "**/*.py"}]),
        },
    ),
)


class Deps:
    """Deps of which one attribute cannot be read."""

    user = "ana"

    @property
    def broken(self) -> Any:
        raise OSError("away")


def a_rule(effects: st.SearchStrategy[str]) -> st.SearchStrategy[dict[str, Any]]:
    return st.builds(
        lambda effect, match: {effect: match}, effects, matches | st.lists(matches, min_size=1, max_size=3)
    )


rules = st.lists(a_rule(st.sampled_from(["allow", "ask", "deny"])), max_size=6)
calls = st.builds(
    Call,
    tool=st.sampled_from(TOOLS),
    args=arguments,
    toolset=st.sampled_from([None, "files", "other"]),
    worker=st.sampled_from([(), ("a",), ("a", "b"), ("a > b",)]),
    labels=st.frozensets(st.sampled_from(sorted(LABELS)), max_size=2),
    deps=st.sampled_from([None, {"user": "ana"}, Deps()]),
    resolved=st.sampled_from([{}, {"src/a.py": "/etc/passwd"}]),
    unreadable=st.sampled_from([(), (), (), ("x (a set)",)]),
)


def made(written: list[dict[str, Any]]) -> Policy:
    return Policy.from_rules(written, root=ROOT)


def naive(policy: Policy, call: Call) -> tuple[Effect | None, tuple[str, ...]]:
    """The law, word for word, without an index: what is decided, and which rules are in doubt."""
    found = [(rule, rule.find(Facts(call, policy.root))) for rule in policy.rules]
    if any(rule.effect is Effect.DENY and finding.truth is Truth.YES for rule, finding in found):
        return Effect.DENY, ()
    doubts = [rule.id for rule, finding in found if rule.effect is Effect.DENY and finding.truth is Truth.UNKNOWN]
    answer = None
    for rule, finding in found:
        if rule.effect is Effect.DENY:
            continue
        if finding.truth is Truth.YES:
            answer = rule.effect
            break
        if finding.raised or (finding.truth is Truth.UNKNOWN and rule.effect is Effect.ASK):
            doubts.append(rule.id)
    return Effect.ASK if doubts or call.unreadable else answer, tuple(doubts)


@examples(1_500, daily=40)
@given(rules, calls)
def test_the_index_agrees_with_looking_at_every_rule(written: list[dict[str, Any]], call: Call) -> None:
    policy = made(written)
    effect, doubts = naive(policy, call)
    verdict = policy.judge_layer(call)
    assert (verdict.effect if verdict else None) is effect
    if verdict is not None:
        assert all(any(error.startswith(f"{rule}: ") for error in verdict.errors) for rule in doubts)
        assert verdict.errors == () or verdict.effect is Effect.ASK


@examples(1_500, daily=30)
@given(rules, calls)
def test_every_verdict_has_a_reason_and_asks_in_doubt(written: list[dict[str, Any]], call: Call) -> None:
    policy = made(written)
    verdict = policy.judge(call)
    assert verdict.reason
    assert "\n" not in verdict.reason
    assert set(verdict.rules) <= {rule.id for rule in policy.rules}
    assert policy.judge(call) == verdict
    explanation = policy.explain(call)
    assert explanation.verdict == verdict
    assert len(explanation.considered) == len(policy.rules)
    policy.paths_of(call)
    assert isinstance(policy.warnings, tuple)


@examples(1_500, daily=50)
@given(rules, calls, st.integers(0, 6))
def test_deny_anywhere_is_deny(written: list[dict[str, Any]], call: Call, at: int) -> None:
    denied = [*written[:at], {"deny": "*"}, *written[at:]]
    assert made(denied).judge(call).effect is Effect.DENY


@examples(1_500, daily=40)
@given(rules, a_rule(st.just("allow")), calls, st.integers(0, 6))
@example([{"deny": "pay"}], {"allow": "*"}, Call(tool="pay"), 0)
def test_an_allow_rule_never_weakens_a_deny(
    written: list[dict[str, Any]], allow: dict[str, Any], call: Call, at: int
) -> None:
    before = made(written).judge(call).effect
    after = made([*written[:at], allow, *written[at:]]).judge(call).effect
    assert (after is Effect.DENY) == (before is Effect.DENY)


@examples(1_500, daily=50)
@given(rules, a_rule(st.just("deny")), calls, st.integers(0, 6))
def test_a_deny_rule_never_loosens_anything(
    written: list[dict[str, Any]], deny: dict[str, Any], call: Call, at: int
) -> None:
    before = made(written).judge(call).effect
    after = made([*written[:at], deny, *written[at:]]).judge(call).effect
    assert after.strictness >= before.strictness


@examples(1_500, daily=30)
@given(st.lists(rules, min_size=1, max_size=3), calls)
def test_layers_are_as_strict_as_the_strictest(written: list[list[dict[str, Any]]], call: Call) -> None:
    policies = tuple(map(made, written))
    answers = [verdict for policy in policies if (verdict := policy.judge_layer(call))]
    expected = max((verdict.effect for verdict in answers), key=lambda effect: effect.strictness, default=Effect.ASK)
    verdict: Verdict = Layers(policies).judge(call)
    assert verdict.effect is expected


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=6) | st.sampled_from(TEXTS),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=8,
)
RULE_KEYS = (
    "id reason by quorum not_by timeout on_timeout escalate_to veto remind message irreversible examples".split()
)
MATCH_KEYS = [
    "tool",
    "toolset",
    "worker",
    "label",
    "args",
    "deps",
    "path",
    "command",
    "matches",
    "inside",
    "match",
    "in",
]
half_right = st.recursive(
    json_values | tool_patterns | paths | operators,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["allow", "ask", "deny", *RULE_KEYS, *MATCH_KEYS, ">", "regex"]), inner, max_size=4
        )
    ),
    max_leaves=12,
)


@given(half_right | st.lists(half_right, max_size=3), calls)
@examples(1_500, daily=40)
@example([{"ask": {"args": {"a": {"regex": "(?P<n>"}}}}], Call(tool="x"))
@example([{"ask": {"args": {"a": {"regex": "(" * 5000}}}}], Call(tool="x"))
@example([{"ask": "x", "timeout": 10**400}], Call(tool="x"))
@example([{"ask": {"args": {"a": {">": 10**400}}}}], Call(tool="x", args={"a": 1.5}))
@example([{"ask": {"args": {"a": {">": 1}}}}], Call(tool="x", args={"a": 10**400}))
def test_anything_is_either_a_policy_or_refused(written: Any, call: Call) -> None:
    result = policy_or_error(written)
    if isinstance(result, PolicyError):
        assert result.place is not None
        assert "\n" not in result.what
    else:
        assert result.judge(call).effect in Effect
        assert isinstance(result.warnings, tuple)


def policy_or_error(written: Any) -> Policy | PolicyError:
    try:
        return parse_policy(written, root=ROOT)
    except PolicyError as error:
        return error
