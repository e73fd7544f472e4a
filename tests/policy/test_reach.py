"""What can happen to the calls of a tool: never less than what does happen."""

from __future__ import annotations

from typing import Any

from hypothesis import event, example, given
from hypothesis import strategies as st
from tests.policy.rules import ROOT, policy
from tests.policy.test_properties import calls, rules
from tests.profiles import examples
from tests.tables import table

from signoff.core.call import LABELS, Call
from signoff.core.verdict import Effect
from signoff.policy.engine import Policy
from signoff.policy.layers import Layers
from signoff.policy.reach import UNSURE, Reach, ToolView, reach, reach_of

BIG = {"tool": "pay", "args": {"amount": {">": 100}}}


def unasked_of(found: Reach) -> tuple[str, ...]:
    """The ids of the rules that can let calls run unasked."""
    return tuple(dict.fromkeys(rule.id for rule in found.lets))


def reached(*written: dict[str, Any], **known: Any) -> Reach:
    return reach([policy(*written)], known.pop("tool", "pay"), **known)


@table(
    ("written", "effect", "unasked"),
    [
        ([], "ask", ()),
        ([{"allow": "tip"}], "ask", ()),
        ([{"allow": "pay"}], "allow", ("rule-1",)),
        ([{"allow": "*"}], "allow", ("rule-1",)),
        ([{"allow": "p*"}, {"deny": "pay"}], "deny", ()),
        ([{"deny": BIG}, {"allow": "pay"}], "conditional", ("rule-2",)),
        ([{"ask": BIG}, {"allow": "pay"}], "conditional", ("rule-2",)),
        ([{"allow": BIG}], "conditional", ("rule-1",)),
        ([{"allow": BIG}, {"ask": "pay"}], "conditional", ("rule-1",)),
        ([{"allow": BIG}, {"allow": "pay"}, {"ask": "*"}], "allow", ("rule-1", "rule-2")),
        ([{"ask": "pay"}, {"allow": "pay"}], "ask", ()),
        ([{"ask": BIG}, {"ask": "pay"}, {"allow": "*"}], "ask", ()),
        ([{"deny": BIG}, {"ask": "*"}], "ask", ()),
        ([{"allow": ["tip", "pay"]}], "allow", ("rule-1",)),
        ([{"allow": {"deps": {"user": "ana"}}}, {"allow": "pay"}], "conditional", ("rule-1", "rule-2")),
    ],
)
def test_what_one_policy_can_do(written: list[dict[str, Any]], effect: str, unasked: tuple[str, ...]) -> None:
    found = reached(*written)
    assert (found.effect, unasked_of(found)) == (effect, unasked)


def test_a_rule_that_an_earlier_one_always_precedes_lets_nothing_run() -> None:
    found = reached(
        {"ask": {"path": {"secret": True}}}, {"ask": BIG}, {"allow": {**BIG, "label": "money"}}, labels=["money"]
    )
    assert (found.effect, found.lets) == ("ask", ())
    assert unasked_of(reached({"ask": {**BIG, "worker": "a"}}, {"allow": BIG})) == ("rule-2",)


def test_in_doubt_a_rule_asks_although_an_earlier_one_allows_the_same() -> None:
    assert reached({"allow": BIG}, {"ask": BIG}, {"allow": "pay"}).effect == "conditional"


def test_names_and_labels_settle_what_they_can() -> None:
    rule = {"allow": {"toolset": "bank", "worker": "triage > *", "label": "money"}}
    known: dict[str, Any] = {"toolset": "bank", "worker": ("triage", "payer"), "labels": ["money"]}
    assert reached(rule, **known).effect == "allow"
    assert reached(rule, **{**known, "toolset": None}).effect == "ask"
    assert reached(rule, **{**known, "worker": ("payer",)}).effect == "ask"
    assert reached(rule, **{**known, "labels": ["money", "net.egress"]}).effect == "ask"
    for unknown in known:
        assert reached(rule, **{**known, unknown: UNSURE}).effect == "conditional"


def test_what_is_only_claimed_never_lets_a_call_run() -> None:
    assert reached({"allow": "data.read"}, claimed=["data.read"]).effect == "ask"
    assert reached({"allow": "data.read"}, labels=["data.read"], claimed=["data.write"]).effect == "ask"
    assert reached({"deny": "data.write"}, {"allow": "*"}, claimed=["data.write"]).effect == "deny"


def test_a_tool_without_arguments_is_on_no_path() -> None:
    written = ({"deny": {"path": "**/.env"}}, {"allow": "*"})
    assert reached(*written).effect == "conditional"
    assert reached(*written, bare=True).effect == "allow"
    assert reached({"deny": {"deps": {"user": "ana"}}}, {"allow": "*"}, bare=True).effect == "conditional"


def test_the_strictest_layer_holds() -> None:
    allow, ask, deny, none = policy({"allow": "pay"}), policy({"ask": BIG}), policy({"deny": "pay"}), policy()
    assert reach([allow, none], "pay").effect == "allow"
    assert reach(Layers((allow, ask)), "pay").effect == "conditional"
    assert reach([allow, deny], "pay").effect == "deny"
    assert reach([allow, policy({"ask": "*"})], "pay").effect == "ask"
    assert reach([policy({"allow": BIG}), allow], "pay").effect == "allow"
    assert reach([], "pay") == Reach(effect="ask")


def test_layers_that_see_different_things() -> None:
    rule = policy({"allow": "money"})
    inner = ToolView(tool="pay", labels=frozenset({"money"}))
    assert reach_of([(rule, inner), (policy(), ToolView(tool="bank_pay"))]).effect == "allow"
    assert reach_of([(rule, ToolView(tool="pay"))]).effect == "ask"


def told(one: Call, unsure: frozenset[str]) -> ToolView:
    """What is known about a call's tool, some of it hidden."""
    return ToolView(
        tool=one.tool,
        toolset=UNSURE if "toolset" in unsure else one.toolset,
        worker=UNSURE if "worker" in unsure else one.worker,
        labels=UNSURE if "labels" in unsure else one.labels,
        claimed=one.claimed,
        bare=not one.args and "bare" not in unsure,
    )


def named_layers(written: list[list[dict[str, Any]]]) -> tuple[Policy, ...]:
    """Layers with names, so that a rule's id says which one it is in."""
    return tuple(Policy.from_rules(layer, name=f"layer-{at}", root=ROOT) for at, layer in enumerate(written))


hidden = st.frozensets(st.sampled_from(["toolset", "worker", "labels", "bare"]))
claims = st.frozensets(st.sampled_from(sorted(LABELS)), max_size=1)


@given(st.lists(rules, min_size=1, max_size=3), calls, claims, hidden)
@examples(1_500, daily=30)
@example(
    [[{"allow": BIG}, {"ask": BIG}, {"allow": "*"}]],
    Call(tool="pay", args={"amount": "x"}),
    frozenset(),
    frozenset(),
)
@example([[{"deny": BIG}, {"allow": "pay"}]], Call(tool="pay", args={"amount": 1}), frozenset(), frozenset())
def test_a_verdict_is_always_within_reach(
    written: list[list[dict[str, Any]]],
    one: Call,
    claimed: frozenset[str],
    unsure: frozenset[str],
) -> None:
    one = one.changed(claimed=claimed)
    policies = named_layers(written)
    verdict = Layers(policies).judge(one)
    found = reach_of((policy, told(one, unsure)) for policy in policies)
    event(f"{found.effect}, {verdict.effect}")
    if verdict.effect is Effect.ALLOW:
        assert set(verdict.rules) <= set(unasked_of(found))
        assert found.effect in ("allow", "conditional")
    elif verdict.effect is Effect.DENY:
        assert found.effect != "allow"
    else:
        assert found.effect != "deny"
        assert found.effect != "allow" or one.unreadable
    assert bool(found.lets) == (found.effect in ("allow", "conditional"))


@examples(1_500, daily=25)
@given(st.lists(rules, min_size=1, max_size=3), calls, hidden)
def test_knowing_less_never_looks_safer(written: list[list[dict[str, Any]]], one: Call, unsure: frozenset[str]) -> None:
    policies = named_layers(written)
    sure = reach_of((policy, told(one, frozenset())) for policy in policies)
    less = reach_of((policy, told(one, unsure)) for policy in policies)
    assert set(unasked_of(sure)) <= set(unasked_of(less))
