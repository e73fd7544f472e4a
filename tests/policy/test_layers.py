"""Several layers: the strictest answer holds, and no layer loosens another."""

from __future__ import annotations

import itertools
from datetime import timedelta
from typing import Any

from tests.policy.rules import call, policy
from tests.tables import table

from signoff.core.verdict import ANYONE, Effect, OnTimeout, Requirement
from signoff.policy.engine import Policy
from signoff.policy.joint_requirement import together
from signoff.policy.layers import Layers, compose

LAYERS = {
    "allow": policy({"allow": "pay"}),
    "ask": policy({"ask": "pay"}),
    "deny": policy({"deny": "pay"}),
    "abstain": policy({"deny": "other"}),
}
STRICTNESS = ["abstain", "allow", "ask", "deny"]


@table("names", list(itertools.product(LAYERS, repeat=3)))
def test_the_strictest_answer_holds(names: tuple[str, ...]) -> None:
    strictest = max(names, key=STRICTNESS.index)
    verdict = Layers(tuple(LAYERS[name] for name in names)).judge(call("pay"))
    assert verdict.effect.value == ("ask" if strictest == "abstain" else strictest)


def test_where_every_layer_abstains() -> None:
    assert compose((), call("pay")).reason == "no rule names this tool"
    assert compose((LAYERS["abstain"], policy()), call("pay")).reason == "no rule names this tool"
    unmatched = policy({"allow": {"tool": "pay", "args": {"x": 1}}})
    assert compose((policy(), unmatched), call("pay")).reason == "no rule matches this call"


def test_what_cannot_be_read_asks_through_layers() -> None:
    layers = Layers((LAYERS["allow"], LAYERS["abstain"]))
    assert layers.judge(call("pay")).effect is Effect.ALLOW
    assert layers.judge(call("pay", unreadable=("x",))).effect is Effect.ASK


def test_where_several_ask_all_have_to_be_satisfied() -> None:
    outer = policy({"ask": "pay", "id": "outer", "by": "ops", "timeout": "1h", "reason": "money"})
    inner = policy(
        {"ask": "pay", "id": "inner", "quorum": 2, "not_by": "requester", "timeout": "5m", "on_timeout": "park"}
    )
    verdict = Layers((outer, LAYERS["allow"], inner)).judge(call("pay"))
    assert verdict.rules == ("outer", "inner")
    assert verdict.reason == "money"
    assert verdict.requirement == Requirement(
        role="ops",
        quorum=2,
        not_by=frozenset({"requester"}),
        timeout=timedelta(minutes=5),
        on_timeout=OnTimeout.PARK,
    )


ALLOWS = Requirement(timeout=timedelta(minutes=1), on_timeout=OnTimeout.ALLOW)


@table(
    ("requirements", "result"),
    [
        ([ANYONE], ANYONE),
        ([ANYONE, ANYONE], ANYONE),
        ([Requirement(role="a"), Requirement(role="b")], Requirement(role="a")),
        ([Requirement(message="x"), Requirement(role="b", message="y")], Requirement(role="b", message="x")),
        ([Requirement(irreversible=True), Requirement(role="b")], Requirement(role="b", irreversible=True)),
        ([Requirement(role="b"), Requirement(irreversible=True)], Requirement(role="b", irreversible=True)),
        ([ALLOWS, ALLOWS], ALLOWS),
        # Silence allows only where everybody says so.
        ([ANYONE, ALLOWS], Requirement(timeout=timedelta(minutes=1))),
        ([ALLOWS, ANYONE], Requirement(timeout=timedelta(minutes=1))),
        ([ALLOWS, Requirement(role="ops")], Requirement(role="ops", timeout=timedelta(minutes=1))),
    ],
)
def test_requirements_together(requirements: list[Requirement], result: Requirement) -> None:
    assert together(requirements) == result


def test_errors_of_every_layer_are_told() -> None:
    def limit(name: str) -> Policy:
        return Policy.from_rules([{"deny": {"args": {"amount": {">": 1}}}}, {"allow": "*"}], name=name)

    verdict = Layers((limit("org"), limit("project"))).judge(call("pay", amount="x"))
    assert [error.partition(":")[0] for error in verdict.errors] == ["org/rule-1", "project/rule-1"]
    assert verdict.rules == ("org/rule-1", "project/rule-1")


def test_what_layers_say_about_themselves() -> None:
    rules: list[dict[str, Any]] = [{"deny": {"path": "**/.env"}}]
    layers = Layers((policy({"allow": {"tool": "pay", "path": "**"}}), policy(*rules), policy({"allow": "*"})))
    assert layers.wants_paths
    assert layers.paths_of(call("pay", path="a", note="b")) == ("a", "b")
    assert not Layers((policy(),)).wants_paths
    assert layers.revision != Layers(layers.policies[::-1]).revision
    assert len(layers.warnings) == 1
    assert [problem.what for problem in layers.unknown_tools(["tip"])] == ["there is no tool `pay`"]


def test_layers_explain() -> None:
    layers = Layers(
        (Policy.from_rules([{"allow": "pay"}], name="org"), Policy.from_rules([{"deny": "pay"}], name="us"))
    )
    explanation = layers.explain(call("pay"))
    assert explanation.effect is Effect.DENY
    assert explanation.rule is not None
    assert explanation.rule.id == "us/rule-1"
    assert [one.rule.id for one in explanation.considered] == ["org/rule-1", "us/rule-1"]
