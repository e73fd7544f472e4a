"""Explanations: one sentence, the deciding rule and its place, and what every rule found."""

from __future__ import annotations

import json

from tests.policy.rules import call

from signoff.core.verdict import Effect
from signoff.policy.match_result import Truth
from signoff.policy.policy_source import parse_policy

POLICY = parse_policy(
    """
policy:
  - {deny: {path: "**/.env"}, reason: secrets stay where they are}
  - {ask: {tool: pay, args: {amount: {">": 100}}}, id: big}
  - {allow: {tool: pay}}
  - {allow: [read_file, fs.read]}
""",
    file="signoff.yaml",
)


def test_the_deciding_rule_and_its_place() -> None:
    explanation = POLICY.explain(call("pay", amount=200))
    assert explanation.effect is Effect.ASK
    assert explanation.sentence == "ask: the policy asks about `pay` where `amount` is > 100 (big)"
    assert explanation.rule is POLICY.rules[1]
    assert str(explanation.place) == "signoff.yaml:4:5: policy[1]"


def test_every_rule_says_what_it_found() -> None:
    considered = POLICY.explain(call("pay", amount="200")).considered
    assert [(one.rule.id, one.truth, one.why, one.decided, one.names_tool) for one in considered] == [
        ("rule-1", Truth.NO, "no argument is a path like `**/.env`", False, True),
        ("big", Truth.UNKNOWN, "`amount` is a text, not a number, so `>` cannot be checked", True, True),
        ("rule-3", Truth.YES, "", False, True),
        ("rule-4", Truth.NO, "the tool is not `read_file`", False, True),
    ]


def test_no_rule_at_all() -> None:
    explanation = POLICY.explain(call("zap"))
    assert explanation.sentence == "ask: no rule names this tool"
    assert explanation.rule is None
    assert explanation.place is None
    assert [one.names_tool for one in explanation.considered] == [True, False, False, True]


def test_the_verdict_is_the_judges() -> None:
    for made in (call("pay"), call("pay", path=".env"), call("zap"), call("pay", unreadable=("x",))):
        assert POLICY.explain(made).verdict == POLICY.judge(made)


def test_as_json() -> None:
    told = json.loads(json.dumps(POLICY.explain(call("x", path="a/.env")).as_json()))
    assert told["verdict"] == "deny"
    assert told["rules"] == ["rule-1"]
    assert told["reason"] == "secrets stay where they are"
    assert told["place"] == "signoff.yaml:3:5: policy[0]"
    assert told["considered"][0] == {
        "rule": "rule-1",
        "effect": "deny",
        "matches": "yes",
        "why": "",
        "says": "denies calls on a path like `**/.env`",
        "place": "signoff.yaml:3:5: policy[0]",
        "decided": True,
    }
