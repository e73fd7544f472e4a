"""Three ways to attach a policy to a toolset, which mean the same, behind a gate and without one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import pytest
from pydantic_ai import Agent, DeferredToolRequests, DeferredToolResults, RunContext, ToolDenied
from pydantic_ai.toolsets import AbstractToolset, CombinedToolset, FunctionToolset
from tests.gate.agents import calls, returns
from tests.pairwise import cases, pairwise

from signoff import ApprovalMemory, Signoff
from signoff.errors import PolicyError, WrongUse
from signoff.testing import ScriptedApprover, ScriptedModel
from signoff.toolsets import Registration, approval_tool, filesystem_rw, with_approval

RULES: list[dict[str, Any]] = [
    {"deny": {"tool": "pay", "args": {"amount": {">": 1000}}}, "reason": "too much"},
    {"allow": {"tool": "pay", "args": {"amount": {"<=": 10}}}},
    {"allow": "look"},
]
CALLS = [("look", {}), ("pay", {"amount": 5}), ("pay", {"amount": 50}), ("pay", {"amount": 5000}), ("refund", {})]
OUTCOMES = ["success", "success", "denied", "denied", "denied"]
"""Of CALLS, where whoever is asked says no."""
ASKED = [("pay", {"amount": 50}), ("refund", {})]


@dataclass
class Shop:
    """Tools that write down what they did."""

    did: list[Any] = field(default_factory=list)

    def pay(self, amount: int) -> str:
        """Pay."""
        self.did.append(amount)
        return f"paid {amount}"

    def look(self) -> str:
        """Look."""
        self.did.append("look")
        return "seen"

    def refund(self) -> str:
        """Give it back."""
        self.did.append("refund")
        return "back"

    @property
    def tools(self) -> FunctionToolset[Any]:
        return FunctionToolset([self.pay, self.look, self.refund], id="shop")


def wrapped(shop: Shop) -> AbstractToolset[Any]:
    return with_approval(shop.tools, RULES)


def registered(shop: Shop) -> AbstractToolset[Any]:
    return Registration(toolset=lambda: shop.tools, policy=RULES).made(name="shop")


def decorated(shop: Shop) -> AbstractToolset[Any]:
    tools = FunctionToolset[Any]([shop.refund], id="shop")
    approval_tool(
        tools, [{effect: rule} for rule_of in RULES[:2] for effect, rule in rule_of.items() if effect != "reason"]
    )(shop.pay)
    approval_tool(tools, "allow")(shop.look)
    return tools


EVERY_WAY = (wrapped, registered, decorated)
WAYS = pytest.mark.parametrize("way", EVERY_WAY)


async def run(
    toolset: AbstractToolset[Any], made: Any = CALLS, *answers: str, rules: Any = (), **options: Any
) -> tuple[ScriptedApprover, list[Any]]:
    """One call a turn, through a real gate. Who was asked, and (outcome, content) of each call."""
    ui = ScriptedApprover(list(answers))
    gate = Signoff(list(rules), approver=ui, memory=ApprovalMemory(file=None), **options)
    turns = [*(calls(one) for one in made), {"say": "done"}]
    result = await Agent(ScriptedModel(turns), name="clerk", toolsets=[toolset], capabilities=[gate]).run("go")
    return ui, returns(result.all_messages())


def asked(ui: ScriptedApprover) -> list[tuple[str, Mapping[str, Any]]]:
    return [(one.tool_name, one.args) for one in ui.asked]


@WAYS
@pytest.mark.mission("C4")
async def test_c4_the_three_ways_mean_the_same_behind_a_gate(way: Callable[[Shop], AbstractToolset[Any]]) -> None:
    shop = Shop()
    ui, told = await run(way(shop), CALLS, "deny", "deny")
    assert [outcome for outcome, _ in told] == OUTCOMES
    assert asked(ui) == ASKED
    assert shop.did == ["look", 5]
    assert {one.call.toolset for one in ui.asked} == {"shop"}


@WAYS
@pytest.mark.mission("C4")
async def test_c4_the_three_ways_mean_the_same_without_a_gate(way: Callable[[Shop], AbstractToolset[Any]]) -> None:
    shop = Shop()
    model = ScriptedModel([calls(*CALLS), {"say": "done"}])
    agent = Agent(model, toolsets=[way(shop)], output_type=[str, DeferredToolRequests])
    paused = await agent.run("go")
    assert isinstance(paused.output, DeferredToolRequests)
    assert [(one.tool_name, one.args) for one in paused.output.approvals] == ASKED
    assert sorted(shop.did, key=str) == [5, "look"]
    pay, refund = (one.tool_call_id for one in paused.output.approvals)
    results = DeferredToolResults(approvals={pay: True, refund: ToolDenied("no")})
    done = await agent.run(message_history=paused.all_messages(), deferred_tool_results=results)
    assert done.output == "done"
    assert 50 in shop.did
    assert "refund" not in shop.did
    assert 5000 not in shop.did


@WAYS
@pytest.mark.mission("C4")
async def test_c4_a_rule_of_the_projects_answers_where_the_attached_policy_is_silent_and_nowhere_else(
    way: Callable[[Shop], AbstractToolset[Any]],
) -> None:
    shop = Shop()
    ui, told = await run(way(shop), rules=[{"deny": "look"}, {"allow": "*"}])
    assert asked(ui) == []
    assert [outcome for outcome, _ in told] == ["denied", "success", "success", "denied", "success"]


@pytest.mark.mission("C5")
async def test_c5_nothing_attached_asks_about_every_tool() -> None:
    ui, _ = await run(with_approval(Shop().tools), CALLS, *["deny"] * 5)
    assert asked(ui) == CALLS
    ui, _ = await run(Shop().tools, CALLS, *["deny"] * 5)
    assert asked(ui) == CALLS
    agent = Agent(
        ScriptedModel([calls(*CALLS)]), toolsets=[with_approval(Shop().tools)], output_type=[str, DeferredToolRequests]
    )
    paused = await agent.run("go")
    assert isinstance(paused.output, DeferredToolRequests)
    assert len(paused.output.approvals) == len(CALLS)


async def keep_all(ctx: RunContext[Any], definitions: Any) -> Any:
    return definitions


WRAPPERS: dict[str, Callable[[AbstractToolset[Any]], AbstractToolset[Any]]] = {
    "prefixed": lambda inner: inner.prefixed("till"),
    "renamed": lambda inner: inner.renamed({"till_pay": "pay", "till_look": "look", "till_refund": "refund"}),
    "filtered": lambda inner: inner.filtered(lambda ctx, one: True).prefixed("till"),
    "prepared": lambda inner: inner.prepared(keep_all).prefixed("till"),
    "combined": lambda inner: CombinedToolset([inner]).prefixed("till"),
    "twice": lambda inner: (
        inner.prefixed("a")
        .renamed({"b_pay": "a_pay", "b_look": "a_look", "b_refund": "a_refund"})
        .renamed({"till_pay": "b_pay", "till_look": "b_look", "till_refund": "b_refund"})
    ),
}


WRAPPED = (EVERY_WAY, tuple(WRAPPERS), (True, False))


@pytest.mark.parametrize(("way", "wrapper", "gated"), cases(product(*WRAPPED), pairwise(*WRAPPED)))
@pytest.mark.mission("C7")
async def test_c7_pydantic_ais_wrappers_keep_the_policy_of_what_they_wrap(
    way: Callable[[Shop], AbstractToolset[Any]], wrapper: str, gated: bool
) -> None:
    shop = Shop()
    toolset = WRAPPERS[wrapper](way(shop))
    made = [(f"till_{name}", args) for name, args in CALLS]
    wanted = [(f"till_{name}", args) for name, args in ASKED]
    if gated:
        ui, told = await run(toolset, made, "deny", "deny")
        assert [outcome for outcome, _ in told] == OUTCOMES
        assert asked(ui) == wanted
        assert {one.call.toolset for one in ui.asked} == {"shop"}
    else:
        agent = Agent(ScriptedModel([calls(*made)]), toolsets=[toolset], output_type=[str, DeferredToolRequests])
        paused = await agent.run("go")
        assert isinstance(paused.output, DeferredToolRequests)
        assert [(one.tool_name, one.args) for one in paused.output.approvals] == wanted
    assert sorted(shop.did, key=str) == [5, "look"]


@pytest.mark.parametrize("gated", [True, False])
@pytest.mark.mission("C7")
async def test_c7_a_policy_around_pydantic_ais_wrappers_and_around_another_policy(gated: bool) -> None:
    """Both policies hold: the outer one sees the outer names."""
    shop = Shop()
    inner = with_approval(shop.tools, RULES).prefixed("till")
    toolset = with_approval(CombinedToolset([inner]), [{"deny": "till_look"}, {"allow": "*"}], name="outer")
    made = [(f"till_{name}", args) for name, args in CALLS]
    if gated:
        ui, told = await run(toolset, made)
        assert asked(ui) == []
        assert [outcome for outcome, _ in told] == ["denied", "success", "success", "denied", "success"]
    else:
        agent = Agent(ScriptedModel([calls(*made), {"say": "done"}]), toolsets=[toolset])
        assert (await agent.run("go")).output == "done"
    assert sorted(shop.did, key=str) == [5, 50, "refund"]


async def test_labels_of_a_tool_reach_both_the_attached_policy_and_the_projects() -> None:
    labels = {"pay": ["money"], "*o*": "data.read"}
    attached = with_approval(Shop().tools, [{"allow": {"label": "data.read"}}], labels=labels)
    ui, told = await run(attached, [("look", {}), ("pay", {"amount": 1})], "deny")
    assert [outcome for outcome, _ in told] == ["success", "denied"]
    assert ui.asked[0].call.labels == {"money"}
    _, told = await run(attached, [("pay", {"amount": 1})], rules=[{"allow": "money"}])
    assert told[0][0] == "success"


async def test_a_built_in_keeps_its_own_policy_below_an_attached_one(tmp_path: Any) -> None:
    (tmp_path / "a.txt").write_text("a")
    made = [
        ("read_file", {"path": "a.txt"}),
        ("write_file", {"path": "b.txt", "content": "b"}),
        ("write_file", {"path": "../c.txt", "content": "c"}),
        ("write_file", {"path": "Makefile", "content": "all:"}),
    ]
    attached = with_approval(filesystem_rw(tmp_path), [{"ask": "read_file"}, {"allow": "fs.write"}])
    ui, told = await run(attached, made, "deny", "deny")
    assert [one.args["path"] for one in ui.asked] == ["a.txt", "Makefile"]
    assert [outcome for outcome, _ in told] == ["denied", "success", "denied", "denied"]
    assert (tmp_path / "b.txt").read_text() == "b"
    agent = Agent(ScriptedModel([calls(*made)]), toolsets=[attached], output_type=[str, DeferredToolRequests])
    paused = await agent.run("go")
    assert isinstance(paused.output, DeferredToolRequests)
    assert [one.args["path"] for one in paused.output.approvals] == ["a.txt", "Makefile"]
    assert "diff" in paused.output.metadata[paused.output.approvals[1].tool_call_id]


async def test_a_toolset_made_for_each_run_keeps_what_it_declares() -> None:
    class Wary(FunctionToolset[Any]):
        def needs_approval(self, name: str, args: Mapping[str, Any], ctx: Any) -> str | None:
            return "deny" if name == "refund" else None

    shop = Shop()
    agent = Agent(ScriptedModel([calls(("refund", {}), ("look", {})), {"say": "done"}]))

    @agent.toolset
    def each_run(ctx: RunContext[Any]) -> AbstractToolset[Any]:
        return with_approval(Wary([shop.refund, shop.look]), "allow")

    assert (await agent.run("go")).output == "done"
    assert shop.did == ["look"]


def test_what_is_no_policy_is_refused() -> None:
    with pytest.raises(WrongUse, match="'maybe' is not a policy"):
        with_approval(Shop().tools, "maybe")
    with pytest.raises(PolicyError, match="unknown effect"):
        with_approval(Shop().tools, [{"alow": "*"}])


def test_a_toolset_with_a_policy_of_its_own_takes_no_decorated_tool(tmp_path: Any) -> None:
    with pytest.raises(WrongUse, match="has its own policy"):
        approval_tool(filesystem_rw(tmp_path), "allow")(Shop().look)
