"""The capability: allow, ask, deny; inline, suspended, hybrid; on one shared agent."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import Agent, DeferredToolRequests, RunContext
from pydantic_ai.capabilities import AbstractCapability, HandleDeferredToolCalls
from pydantic_ai.exceptions import ApprovalRequired, ModelRetry
from pydantic_ai.messages import ToolReturn
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.toolsets import ExternalToolset, FunctionToolset, WrapperToolset
from tests.gate.agents import ASK_ALL, Till, agent_with, calls, pays, returns

from signoff import (
    Actor,
    ApprovalDecision,
    ApprovalMemory,
    Effect,
    Signoff,
    SuspendedRun,
    Verdict,
    resume,
)
from signoff.core.event import CallEvent, CallStep
from signoff.core.request import State
from signoff.errors import (
    AlreadySettled,
    ApprovalBlocked,
    ApprovalDenied,
    ApprovalError,
    EditRefused,
    NotEntitled,
    PolicyError,
    ScriptEnded,
    WrongUse,
)
from signoff.gate.capability import UnknownToolWarning
from signoff.gate.gated_calls import asking
from signoff.testing import FakeClock, ScriptedApprover, ScriptedModel

ANA = Actor(name="ana")
APPROVE = ApprovalDecision(approved=True)


def gate(rules: Any = ASK_ALL, ui: Any = None, **options: Any) -> Signoff:
    return Signoff(rules, approver=ui, memory=options.pop("memory", ApprovalMemory(file=None)), **options)


@pytest.fixture
def till() -> Till:
    return Till()


# --- allow, ask, deny ---


async def test_an_allowed_call_runs_unasked(till: Till) -> None:
    ui = ScriptedApprover([])
    result = await agent_with(gate([{"allow": "pay"}], ui), pays(5), till).run("go")
    assert till.paid == [(5, "shop")]
    assert result.output == "paid 5 to shop"
    assert ui.asked == []


async def test_a_denied_call_does_not_run_and_nobody_is_asked(till: Till) -> None:
    ui = ScriptedApprover([])
    rules = [{"deny": {"tool": "pay"}, "reason": "no money today"}, {"allow": "*"}]
    result = await agent_with(gate(rules, ui), pays(5), till).run("go")
    [(outcome, content)] = returns(result.all_messages())
    assert till.paid == []
    assert ui.asked == []
    assert outcome == "denied"
    assert json.loads(content) == {
        "error": "permission_denied",
        "tool": "pay",
        "by": "policy",
        "reason": "no money today",
        "retryable": False,
    }


async def test_a_call_no_rule_names_is_asked_about(till: Till) -> None:
    ui = ScriptedApprover(["approve"])
    await agent_with(gate([{"allow": "look"}], ui), pays(5), till).run("go")
    [request] = ui.asked
    assert till.paid == [(5, "shop")]
    assert request.tool_name == "pay" and request.args == {"amount": 5, "to": "shop"}, "defaults are part of the call"
    assert request.worker == ("cashier",)
    assert request.verdict is not None
    assert "no rule" in request.verdict.reason


@pytest.mark.mission("W5")
async def test_w5_a_denial_by_a_person_is_the_same_payload_as_one_by_policy(till: Till) -> None:
    ui = ScriptedApprover([ApprovalDecision(approved=False, note="too much")], by=ANA)
    result = await agent_with(gate(ui=ui), pays(5), till).run("go")
    [(outcome, content)] = returns(result.all_messages())
    assert till.paid == []
    assert outcome == "denied"
    assert json.loads(content) == {
        "error": "permission_denied",
        "tool": "pay",
        "by": "ana",
        "reason": "too much",
        "retryable": False,
    }


@pytest.mark.mission("W5")
async def test_w5_an_option_raises_instead(till: Till) -> None:
    with pytest.raises(ApprovalBlocked, match="no money") as blocked:
        await agent_with(gate([{"deny": "pay", "reason": "no money"}], on_denied="raise"), pays(5), till).run("go")
    ui = ScriptedApprover(["deny:too much"], by=ANA)
    with pytest.raises(ApprovalDenied, match="ana: too much") as denied:
        await agent_with(gate(ui=ui, on_denied="raise"), pays(5), till).run("go")
    for error in (blocked.value, denied.value):
        assert isinstance(error, ApprovalError)
        assert isinstance(error, PermissionError)
        assert error.tool == "pay"
    assert till.paid == []


# --- modes and memory ---


@pytest.mark.mission("D6")
async def test_d6_auto_approve_turns_ask_into_allow_but_never_deny(till: Till) -> None:
    rules = [{"deny": {"tool": "pay", "args": {"amount": {">": 10}}}}]
    await agent_with(gate(rules, mode="auto_approve"), pays(5, 50), till).run("go")
    assert till.paid == [(5, "shop")]


@pytest.mark.mission("D6")
async def test_d6_auto_deny_asks_nobody(till: Till) -> None:
    result = await agent_with(gate(mode="auto_deny"), pays(5), till).run("go")
    assert till.paid == []
    assert '"by": "mode"' in result.output


async def test_auto_approve_does_not_stand_in_for_particular_people(till: Till) -> None:
    ui = ScriptedApprover(["deny"], by=Actor(name="ana", roles=frozenset({"ops"})))
    await agent_with(gate([{"ask": "pay", "by": "ops"}], ui, mode="auto_approve"), pays(5), till).run("go")
    assert till.paid == []
    assert len(ui.asked) == 1


@pytest.mark.mission("D3")
async def test_d3_what_a_person_asked_to_remember_is_not_asked_again(till: Till) -> None:
    memory = ApprovalMemory(file=None)
    ui = ScriptedApprover(["session"], by=ANA)
    agent = agent_with(gate(ui=ui, memory=memory), [calls(("pay", {"amount": 5})), *pays(5)], till)
    await agent.run("go")
    assert till.paid == [(5, "shop"), (5, "shop")]
    assert len(ui.asked) == 1
    assert [grant.by for grant in memory.grants()] == ["ana"]


async def test_a_remembered_no_holds_too(till: Till) -> None:
    never = ApprovalDecision(approved=False, note="never", remember="session")  # pyright: ignore[reportArgumentType]
    ui = ScriptedApprover([never], by=ANA)
    result = await agent_with(gate(ui=ui), [calls(("pay", {"amount": 5})), *pays(5)], till).run("go")
    assert till.paid == []
    assert len(ui.asked) == 1
    assert [outcome for outcome, _ in returns(result.all_messages())] == ["denied", "denied"]


async def test_a_remembered_no_holds_where_everything_else_is_approved(till: Till) -> None:
    never = ApprovalDecision(approved=False, note="never", remember="session")  # pyright: ignore[reportArgumentType]
    memory = ApprovalMemory(file=None)
    await agent_with(gate(ui=ScriptedApprover([never], by=ANA), memory=memory), pays(5), till).run("go")
    result = await agent_with(gate(memory=memory, mode="auto_approve"), pays(5, 6), till).run("go")
    assert till.paid == [(6, "shop")]
    assert [outcome for outcome, _ in returns(result.all_messages())] == ["denied", "success"]


async def test_an_answer_that_is_remembered_covers_the_rest_of_its_batch(till: Till) -> None:
    ui = ScriptedApprover(["session"])
    await agent_with(gate(ui=ui), pays(5, 5, 5), till).run("go")
    assert till.paid == [(5, "shop")] * 3
    assert len(ui.asked) == 1


async def test_a_changed_tool_puts_what_was_remembered_to_sleep(till: Till) -> None:
    memory = ApprovalMemory(file=None)
    await agent_with(gate(ui=ScriptedApprover(["session"]), memory=memory), pays(5), till).run("go")

    def pay(amount: int, to: str = "shop", urgent: bool = False) -> str:
        till.paid.append((amount, to))
        return "paid"

    ui = ScriptedApprover(["deny"])
    changed = Agent(ScriptedModel(pays(5)), tools=[pay], capabilities=[gate(ui=ui, memory=memory)])
    await changed.run("go")
    assert len(till.paid) == 1
    assert len(ui.asked) == 1


# --- edits ---


async def test_edited_arguments_run_and_the_model_is_told(till: Till) -> None:
    ui = ScriptedApprover(['edit:{"amount": 3}'], by=ANA)
    result = await agent_with(gate(ui=ui), pays(5), till).run("go")
    assert till.paid == [(3, "shop")]
    assert result.output == (
        "[A person changed the arguments of this call before approving it. "
        'It ran with {"amount":3,"to":"shop"}]\npaid 3 to shop'
    )


@pytest.mark.parametrize(
    ("edit", "problem"),
    [
        ('{"amount": "much"}', "amount: Input should be a valid integer"),
        ('{"to": "shop"}', "amount: Field required"),
        ('{"amount": 3, "tip": 1}', "tip: Extra inputs are not permitted"),
        ('{"amount": 50}', "policy denies the edited call: too much"),
    ],
)
async def test_an_edit_that_does_not_fit_is_refused_before_it_is_accepted(till: Till, edit: str, problem: str) -> None:
    rules = [{"deny": {"tool": "pay", "args": {"amount": {">": 10}}}, "reason": "too much"}]
    ui = ScriptedApprover([f"edit:{edit}", "deny"])
    await agent_with(gate(rules, ui), pays(5), till).run("go")
    assert till.paid == []
    assert len(ui.asked) == 2
    assert problem in ui.asked[1].problem
    assert ui.asked[1].metadata["draft"] == json.loads(edit)


async def test_structured_results_carry_the_notice_too() -> None:
    def stock(item: str) -> dict[str, int]:
        return {item: 3}

    def detail(item: str) -> ToolReturn[Any]:
        return ToolReturn(return_value=[item], metadata={"kept": True})

    ui = ScriptedApprover(['edit:{"item": "tea"}', 'edit:{"item": "tea"}'])
    turns = [calls(("stock", {"item": "milk"}), ("detail", {"item": "milk"})), {"say": "done"}]
    result = await Agent(ScriptedModel(turns), tools=[stock, detail], capabilities=[gate(ui=ui)]).run("go")
    contents = dict(zip(("stock", "detail"), (content for _, content in returns(result.all_messages())), strict=True))
    assert contents["stock"]["result"] == {"tea": 3}
    assert "A person changed" in contents["stock"]["notice"]
    assert contents["detail"]["result"] == ["tea"]


# --- suspended and hybrid ---


@pytest.mark.mission("W2")
async def test_w2_suspended_answered_elsewhere_and_resumed(till: Till) -> None:
    signoff = gate(wait="suspend")
    agent = agent_with(signoff, pays(5), till, suspends=True)
    paused = await agent.run("go")
    assert isinstance(paused.output, DeferredToolRequests)
    assert till.paid == []
    [request] = await signoff.pending()
    assert paused.output.metadata["call-1-1"]["signoff"]["request"] == request.id
    saved = SuspendedRun.of(paused).to_json()

    await signoff.answer(request.id, APPROVE, by="ana")
    done = await resume(agent, SuspendedRun.from_json(saved))
    assert done.output == "paid 5 to shop"
    assert till.paid == [(5, "shop")]
    [settled] = await signoff.requests_of(done.conversation_id)
    assert settled.state == "succeeded"


async def test_suspended_and_denied(till: Till) -> None:
    signoff = gate(wait="suspend")
    agent = agent_with(signoff, pays(5), till, suspends=True)
    paused = await agent.run("go")
    [request] = await signoff.pending()
    await signoff.answer(request.id, ApprovalDecision(approved=False, note="no"), by="ana")
    done = await resume(agent, paused)
    assert till.paid == []
    assert json.loads(done.output)["by"] == "ana"


async def test_part_of_a_batch_is_answered_and_the_rest_stays_open(till: Till) -> None:
    signoff = gate([{"allow": "look"}], wait="suspend")
    turns = [calls(("look", {}), *(("pay", {"amount": n}) for n in (1, 2, 3))), {"say": "done"}]
    agent = agent_with(signoff, turns, till, suspends=True)
    paused = await agent.run("go")
    one, two, three = await signoff.pending()
    await signoff.answer(one.id, APPROVE, by="ana")
    await signoff.answer(three.id, ApprovalDecision(approved=False), by="ana")

    again = await resume(agent, paused)
    assert till.paid == [(1, "shop")]
    assert isinstance(again.output, DeferredToolRequests)
    assert [part.tool_call_id for part in again.output.approvals] == [two.tool_call_id]
    assert [request.id for request in await signoff.pending()] == [two.id], "the same request, not a second one"

    await signoff.answer(two.id, ApprovalDecision(approved=True, edited_args={"amount": 20}), by="ana")
    done = await resume(agent, again)
    assert till.paid == [(1, "shop"), (20, "shop")]
    assert done.output == "done"
    outcomes = [outcome for outcome, _ in returns(done.all_messages())]
    assert sorted(outcomes) == ["denied", "success", "success", "success"]


@pytest.mark.mission("W2")
async def test_w2_hybrid_waits_then_suspends(till: Till) -> None:
    clock = FakeClock()

    class Slow:
        """Answers the first call; the second one nobody answers."""

        async def choose(self, request: Any, *, mode: Any) -> ApprovalDecision:
            if request.args["amount"] == 1:
                return APPROVE
            clock.advance(60)
            await asyncio.Event().wait()
            raise AssertionError

    signoff = gate(ui=Slow(), wait=30, clock=clock)
    agent = agent_with(signoff, pays(1, 2), till, suspends=True)
    paused = await agent.run("go")
    assert till.paid == [(1, "shop")]
    assert isinstance(paused.output, DeferredToolRequests)
    [open_request] = await signoff.pending()
    await signoff.answer(open_request.id, APPROVE, by="ana")
    await resume(agent, paused)
    assert till.paid == [(1, "shop"), (2, "shop")]


async def test_hybrid_goes_on_in_place_when_the_answer_comes_from_elsewhere(till: Till) -> None:
    clock = FakeClock()
    asked = asyncio.Event()

    class Nobody:
        async def choose(self, request: Any, *, mode: Any) -> ApprovalDecision:
            asked.set()
            await asyncio.Event().wait()
            raise AssertionError

    signoff = gate(ui=Nobody(), wait=30, clock=clock)
    running = asyncio.ensure_future(agent_with(signoff, pays(5), till, suspends=True).run("go"))
    await asked.wait()
    [request] = await signoff.pending()
    await signoff.answer(request.id, APPROVE, by="ana")
    assert (await running).output == "paid 5 to shop"


async def test_an_agent_that_cannot_pause_is_told_what_to_add(till: Till) -> None:
    signoff = gate(wait="suspend")
    with pytest.raises(WrongUse, match=r"output_type=\[str, DeferredToolRequests\]"):
        await agent_with(signoff, pays(5), till).run("go")
    assert await signoff.pending() == [], "nothing half-done stays behind"


def test_a_wait_that_makes_no_sense_is_refused() -> None:
    for wait in ("later", -1):
        with pytest.raises(WrongUse, match="wait="):
            gate(wait=wait)


# --- time ---


async def test_silence_is_no(till: Till) -> None:
    clock = FakeClock()

    class Asleep:
        async def choose(self, request: Any, *, mode: Any) -> ApprovalDecision:
            clock.advance(15 * 60)
            await asyncio.Event().wait()
            raise AssertionError

    rules = [{"ask": "pay", "timeout": "15m"}]
    result = await agent_with(gate(rules, Asleep(), clock=clock), pays(5), till).run("go")
    assert till.paid == []
    assert json.loads(result.output)["by"] == "timeout"


# --- people ---


async def test_only_the_right_people_and_enough_of_them(till: Till) -> None:
    rules = [{"ask": "pay", "by": "ops", "quorum": 2}]
    signoff = gate(rules, wait="suspend", people={"ana": ["ops"], "ben": ["ops"], "eve": ["dev"]})
    agent = agent_with(signoff, pays(5), till, suspends=True)
    paused = await agent.run("go")
    [request] = await signoff.pending()
    with pytest.raises(NotEntitled, match="does not have the role ops"):
        await signoff.answer(request.id, APPROVE, by="eve")
    assert (await signoff.answer(request.id, APPROVE, by="ana")).state is State.PENDING
    assert (await signoff.answer(request.id, APPROVE, by="ana")).state is State.PENDING
    assert isinstance((await resume(agent, paused)).output, DeferredToolRequests)
    assert till.paid == []
    assert (await signoff.answer(request.id, APPROVE, by="ben")).state is State.APPROVED
    with pytest.raises(AlreadySettled, match="approved by ben"):
        await signoff.answer(request.id, ApprovalDecision(approved=False), by="ana")
    await resume(agent, paused)
    assert till.paid == [(5, "shop")]


async def test_what_needs_more_people_than_are_here_suspends(till: Till) -> None:
    ui = ScriptedApprover(["approve"], by=ANA)
    signoff = gate([{"ask": "pay", "quorum": 2}], ui)
    paused = await agent_with(signoff, pays(5), till, suspends=True).run("go")
    assert isinstance(paused.output, DeferredToolRequests)
    assert till.paid == []


# --- one shared agent ---


@pytest.mark.mission("W1")
async def test_w1_one_global_agent_serves_many_runs_at_once(till: Till) -> None:
    agent = agent_with(gate(), pays(1, 2), till)

    async def one(number: int) -> ScriptedApprover:
        ui = ScriptedApprover(["approve", "deny"] if number % 2 else ["deny", "approve"])
        with asking(ui):
            await agent.run(str(number))
        return ui

    asked = await asyncio.gather(*(one(number) for number in range(20)))
    assert all(len(ui.asked) == 2 for ui in asked)
    assert sorted(till.paid) == [(1, "shop")] * 10 + [(2, "shop")] * 10


@dataclass
class TopToolset(WrapperToolset[Any]):
    """A toolset that another capability puts on top of everything, with a tool of its own."""

    extra: FunctionToolset[Any]

    async def get_tools(self, ctx: RunContext[Any]) -> dict[str, Any]:
        return {**await self.wrapped.get_tools(ctx), **await self.extra.get_tools(ctx)}

    async def call_tool(self, name: str, tool_args: dict[str, Any], ctx: RunContext[Any], tool: Any) -> Any:
        owner = self.extra if name in await self.extra.get_tools(ctx) else self.wrapped
        return await owner.call_tool(name, tool_args, ctx, tool)


class OnTop(AbstractCapability[Any]):
    def __init__(self, extra: FunctionToolset[Any]) -> None:
        self.extra = extra

    def get_wrapper_toolset(self, toolset: Any) -> Any:
        return TopToolset(toolset, self.extra)


class Brings(AbstractCapability[Any]):
    def __init__(self, toolset: FunctionToolset[Any]) -> None:
        self.toolset = toolset

    def get_toolset(self) -> Any:
        return self.toolset


@pytest.mark.mission("W1")
@pytest.mark.parametrize("where", ["agent", "prefixed", "dynamic", "per run", "capability", "on top"])
async def test_w1_tools_from_everywhere_are_gated_and_nothing_is_wrapped_by_the_user(where: str) -> None:
    ran: list[str] = []

    def strike() -> str:
        ran.append("struck")
        return "struck"

    toolset: FunctionToolset[Any] = FunctionToolset([strike], id="hammer")
    ui = ScriptedApprover(["deny", "approve"])
    signoff = gate(ui=ui)
    name = "big_strike" if where == "prefixed" else "strike"
    model = ScriptedModel([calls((name, {})), calls((name, {})), {"say": "done"}])
    match where:
        case "agent":
            await Agent(model, toolsets=[toolset], capabilities=[signoff]).run("go")
        case "prefixed":
            await Agent(model, toolsets=[toolset.prefixed("big")], capabilities=[signoff]).run("go")
        case "dynamic":
            agent = Agent(model, capabilities=[signoff])
            agent.toolset(lambda ctx: toolset)
            await agent.run("go")
        case "per run":
            await Agent(model, capabilities=[signoff]).run("go", toolsets=[toolset])
        case "capability":
            await Agent(model, capabilities=[signoff, Brings(toolset)]).run("go")
        case _:
            await Agent(model, capabilities=[signoff, OnTop(toolset)]).run("go")
    assert ran == ["struck"]
    assert [request.tool_name for request in ui.asked] == [name, name]


async def test_what_a_hook_makes_of_the_arguments_is_what_is_judged_and_shown(till: Till) -> None:
    """The gate stands below every hook: another capability cannot change a call after it was judged."""

    class Doubles(AbstractCapability[Any]):
        async def before_tool_execute(self, ctx: Any, *, call: Any, tool_def: Any, args: dict[str, Any]) -> Any:
            return {**args, "amount": args["amount"] * 2}

    ui = ScriptedApprover(["approve"])
    rules = [{"allow": {"tool": "pay", "args": {"amount": {"<": 10}}}}]
    agent = agent_with(gate(rules, ui), pays(4, 9), till, capabilities=[Doubles()])
    await agent.run("go")
    assert till.paid == [(8, "shop"), (18, "shop")]
    assert [request.args["amount"] for request in ui.asked] == [18]


# --- context, toolsets, tools that ask by themselves ---


@dataclass
class Customer:
    plan: str
    admin: bool = False


@pytest.mark.mission("W3")
async def test_w3_policy_sees_the_deps(till: Till) -> None:
    ui = ScriptedApprover(["deny"])
    agent = agent_with(gate([{"allow": {"tool": "pay", "deps": {"plan": "paid"}}}], ui), pays(5), till)
    await agent.run("go", deps=Customer("paid"))
    await agent.run("go", deps=Customer("free"))
    assert till.paid == [(5, "shop")]
    assert len(ui.asked) == 1


@pytest.mark.mission("W3")
async def test_w3_a_function_sees_the_run_context_and_the_strictest_wins(till: Till) -> None:
    def judge(call: Any, ctx: RunContext[Any]) -> str | Verdict | None:
        if ctx.deps.admin:
            return None
        return Verdict(effect=Effect.DENY, reason="admins only")

    agent = agent_with(gate([{"allow": "pay"}], judge=judge), pays(5), till)
    await agent.run("go", deps=Customer("paid", admin=True))
    denied = await agent.run("go", deps=Customer("paid"))
    assert till.paid == [(5, "shop")]
    assert "admins only" in denied.output


async def test_a_function_that_fails_asks(till: Till) -> None:
    ui = ScriptedApprover(["deny"])
    agent = agent_with(gate([{"allow": "pay"}], ui, judge=lambda call, ctx: 1 / 0), pays(5), till)
    await agent.run("go")
    assert till.paid == []
    assert ui.asked[0].verdict is not None
    assert "ZeroDivisionError" in ui.asked[0].verdict.reason


class Shelf(FunctionToolset[Any]):
    """A toolset that speaks for itself."""

    def __init__(self, says: Any) -> None:
        super().__init__([self.put], id="shelf")
        self.says = says
        self.put_there: list[str] = []

    def put(self, item: str) -> str:
        self.put_there.append(item)
        return "ok"

    def needs_approval(self, name: str, args: Any, ctx: Any) -> Any:
        if isinstance(self.says, Exception):
            raise self.says
        return self.says

    def describe_approval(self, name: str, args: Any, ctx: Any) -> Any:
        return {"summary": f"Put {args['item']} on the shelf", "reason": "the shelf is full", "diff": "+tea\n"}

    def capability_labels(self, name: str, args: Any, ctx: Any) -> list[str]:
        return ["fs.write"]


@pytest.mark.mission("W4")
@pytest.mark.parametrize(
    ("says", "rules", "ran", "asked"),
    [
        (True, [], False, 1),
        (False, [], True, 0),
        (None, [], False, 1),
        ("deny", [{"allow": "put"}], False, 0),
        (False, [{"ask": "fs.write"}], False, 1),
        (False, [{"deny": "fs.write"}], False, 0),
        (True, [{"allow": "fs.write"}], False, 1),
        (RuntimeError("no idea"), [{"allow": "put"}], False, 1),
        ("perhaps", [{"allow": "put"}], False, 1),
    ],
)
async def test_w4_a_toolset_may_speak_and_the_runtime_decides(says: Any, rules: Any, ran: bool, asked: int) -> None:
    shelf, ui = Shelf(says), ScriptedApprover(["deny"])
    model = ScriptedModel([calls(("top_put", {"item": "tea"})), {"say": "done"}])
    rules = json.loads(json.dumps(rules).replace('"put"', '"top_put"'))
    await Agent(model, toolsets=[shelf.prefixed("top")], capabilities=[gate(rules, ui)]).run("go")
    assert (shelf.put_there == ["tea"]) == ran
    assert len(ui.asked) == asked
    if asked:
        assert ui.asked[0].summary == "Put tea on the shelf"
        assert ui.asked[0].metadata["diff"] == "+tea\n"
        assert ui.asked[0].call is not None
        assert ui.asked[0].call.labels == {"fs.write"}
        assert ui.asked[0].call.toolset == "shelf"


async def test_labels_can_be_given_from_outside(till: Till) -> None:
    await agent_with(gate([{"allow": "money"}], labels={"pa*": "money"}), pays(5), till).run("go")
    assert till.paid == [(5, "shop")]


@pytest.mark.mission("D8")
async def test_d8_tools_that_ask_natively_are_understood_as_they_are(till: Till) -> None:
    def pay_body(ctx: RunContext[None], amount: int) -> str:
        if amount > 1 and not ctx.tool_call_approved:
            raise ApprovalRequired(metadata={"reason": "more than one", "path": "till"})
        return till.pay(amount)

    wrapped = FunctionToolset([till.look]).approval_required(lambda ctx, tool_def, args: True)
    ui = ScriptedApprover(["approve", "approve", "approve", "deny"])
    agent = Agent(
        ScriptedModel(
            [
                calls(("flagged", {}), ("pay_body", {"amount": 1}), ("pay_body", {"amount": 2}), ("look", {})),
                calls(("pay_body", {"amount": 3})),
                {"say": "done"},
            ]
        ),
        tools=[pay_body],
        toolsets=[wrapped],
        capabilities=[gate([{"allow": "*"}], ui)],
    )

    @agent.tool_plain(requires_approval=True)
    def flagged() -> str:
        till.pay(100)
        return "ok"

    await agent.run("go")
    assert sorted(till.paid) == [(1, "shop"), (2, "shop"), (100, "shop")]
    assert sorted(request.tool_name for request in ui.asked) == ["flagged", "look", "pay_body", "pay_body"]
    body = next(request for request in ui.asked if request.tool_name == "pay_body")
    assert body.summary == "pay_body: more than one (till)"


async def test_a_policy_can_deny_what_a_tool_only_asks_about() -> None:
    agent = Agent(
        ScriptedModel([calls(("flagged", {})), {"say": "{{last}}"}]), capabilities=[gate([{"deny": "flagged"}])]
    )

    @agent.tool_plain(requires_approval=True)
    def flagged() -> str:
        raise AssertionError("must not run")

    assert '"by": "policy"' in (await agent.run("go")).output


async def test_external_tools_are_judged_before_they_are_handed_out() -> None:
    toolset = ExternalToolset(
        [ToolDefinition(name=name, parameters_json_schema={"type": "object", "properties": {}}) for name in "abc"]
    )
    ui = ScriptedApprover(["approve"])
    agent = Agent(
        ScriptedModel([calls(("a", {}), ("b", {}), ("c", {})), {"say": "done"}]),
        output_type=[str, DeferredToolRequests],
        toolsets=[toolset],
        capabilities=[gate([{"allow": "a"}, {"deny": "b"}], ui)],
    )
    paused = await agent.run("go")
    assert isinstance(paused.output, DeferredToolRequests)
    assert sorted(part.tool_name for part in paused.output.calls) == ["a", "c"]
    done = await resume(agent, paused, calls={"call-1-1": 1, "call-1-3": 3})
    assert done.output == "done"
    assert sorted(outcome for outcome, _ in returns(done.all_messages())) == ["denied", "success", "success"]


@pytest.mark.mission("D9")
async def test_d9_a_nested_workers_request_names_the_chain_and_reaches_the_same_person(till: Till) -> None:
    ui = ScriptedApprover(["approve", "approve", "deny"])
    rules = [{"allow": "delegate"}]
    leaf = Agent(ScriptedModel(pays(7)), name="leaf", tools=[till.pay], capabilities=[gate(rules)])
    middle = Agent(
        ScriptedModel([calls(("delegate", {}), ("pay", {"amount": 8})), {"say": "{{last}}"}]),
        name="middle",
        tools=[till.pay],
        capabilities=[gate(rules)],
    )
    top = Agent(
        ScriptedModel([calls(("delegate", {}), ("pay", {"amount": 9})), {"say": "{{last}}"}]),
        name="top",
        tools=[till.pay],
        capabilities=[gate(rules, ui)],
    )

    @middle.tool_plain(name="delegate")
    async def to_leaf() -> str:
        return (await leaf.run("go")).output

    @top.tool_plain(name="delegate")
    async def to_middle() -> str:
        return (await middle.run("go")).output

    await top.run("go")
    assert till.paid == [(7, "shop"), (8, "shop")]
    assert [request.call.chain for request in ui.asked if request.call] == [
        "top > middle > leaf > pay",
        "top > middle > pay",
        "top > pay",
    ]
    assert ui.asked[0].call is not None
    assert ui.asked[0].call.path == "call-1-1/call-1-1/call-1-1"


# --- other capabilities ---


async def test_another_capabilitys_approval_does_not_count_unless_it_may(till: Till) -> None:
    """A reviewer approves everything. Without leave, the person is asked all the same, in the same run."""
    everything = HandleDeferredToolCalls[Any](lambda ctx, requests: requests.build_results(approve_all=True))
    ui = ScriptedApprover(["deny"])
    await agent_with(gate(ui=ui), pays(5), till, capabilities=[everything]).run("go")
    assert till.paid == []
    assert len(ui.asked) == 1
    assert "none is on record" in ui.asked[0].changed[0]

    await agent_with(gate(ui=ScriptedApprover([]), reviewers=True), pays(5), till, capabilities=[everything]).run("go")
    assert till.paid == [(5, "shop")]

    strict = ScriptedApprover(["deny"], by=Actor(name="ana", roles=frozenset({"ops"})))
    agent = agent_with(
        gate([{"ask": "pay", "by": "ops"}], strict, reviewers=True), pays(6), till, capabilities=[everything]
    )
    await agent.run("go")
    assert till.paid == [(5, "shop")]
    assert len(strict.asked) == 1


async def test_an_edit_in_place_runs_as_edited(till: Till) -> None:
    everything = HandleDeferredToolCalls[Any](lambda ctx, requests: requests.build_results(approve_all=True))
    ui = ScriptedApprover(['edit:{"amount": 2}'])
    result = await agent_with(gate(ui=ui), pays(5), till, capabilities=[everything]).run("go")
    assert till.paid == [(2, "shop")]
    assert "A person changed" in result.output


# --- outcomes ---


async def test_the_outcome_of_an_approved_call_is_on_record(till: Till) -> None:
    def fail() -> str:
        raise ValueError("boom")

    def retry() -> str:
        raise ModelRetry("again")

    for tool, error in ((fail, "ValueError: boom"), (retry, "again")):
        signoff = gate(ui=ScriptedApprover(["approve"]))
        agent = Agent(
            ScriptedModel([calls((tool.__name__, {})), {"say": "done"}]), tools=[tool], capabilities=[signoff]
        )
        try:
            conversation = (await agent.run("go", conversation_id="c")).conversation_id
        except ValueError:
            conversation = "c"
        [request] = await signoff.requests_of(conversation)
        assert request.state is State.FAILED
        assert request.claim is not None and request.claim.error == error


async def test_a_call_that_is_cancelled_half_way_is_unknown() -> None:
    started = asyncio.Event()

    async def slow() -> str:
        started.set()
        await asyncio.Event().wait()
        return "never"

    signoff = gate(ui=ScriptedApprover(["approve"]))
    agent = Agent(ScriptedModel([calls(("slow", {})), {"say": "done"}]), tools=[slow], capabilities=[signoff])
    running = asyncio.ensure_future(agent.run("go", conversation_id="c"))
    await started.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    [request] = await signoff.requests_of("c")
    assert request.state is State.UNKNOWN


@pytest.mark.parametrize("rules", [[{"allow": "slow"}], ASK_ALL], ids=["allowed", "approved"])
async def test_the_record_ends_a_call_that_is_cancelled_half_way(rules: Any, tmp_path: Path) -> None:
    """Also one that nobody was asked about: the log must not say for ever that it runs."""
    started, seen = asyncio.Event(), list[CallEvent]()

    async def slow() -> str:
        started.set()
        await asyncio.Event().wait()
        return "never"

    store = f"sqlite:{tmp_path / 'signoff.db'}"
    signoff = gate(rules, ScriptedApprover(["approve"]), store=store, observe=seen.append)
    agent = Agent(ScriptedModel([calls(("slow", {})), {"say": "done"}]), tools=[slow], capabilities=[signoff])
    running = asyncio.ensure_future(agent.run("go"))
    await started.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    await signoff.broker.store.flush()
    kinds = [entry.kind for entry in await signoff.broker.store.read(lambda tx: tx.record.entries())]
    assert kinds.count("unknown") == 1, kinds
    assert "ran" not in kinds and "failed" not in kinds
    assert (seen[-1].what, seen[-1].text) == (CallStep.CUT_OFF, "CancelledError")


async def test_a_run_that_dies_withdraws_its_questions(till: Till) -> None:
    signoff = gate(ui=ScriptedApprover([]))
    with pytest.raises(ScriptEnded):
        await agent_with(signoff, pays(5), till).run("go", conversation_id="c")
    [request] = await signoff.requests_of("c")
    assert request.state is State.CANCELLED
    assert till.paid == []


async def test_every_step_can_be_observed(till: Till) -> None:
    seen: list[CallEvent] = []
    rules = [{"allow": "look"}, {"deny": {"tool": "pay", "args": {"amount": 3}}}]
    turns = [
        calls(("look", {})),
        calls(("pay", {"amount": 1})),
        calls(("pay", {"amount": 2})),
        calls(("pay", {"amount": 3})),
        calls(("pay", {"amount": 1})),
        {"say": "done"},
    ]
    ui = ScriptedApprover(["session", "deny"])
    await agent_with(gate(rules, ui, observe=seen.append), turns, till).run("go")
    assert [event.what for event in seen] == [
        CallStep.ALLOWED,
        CallStep.RAN,
        CallStep.ASKED,
        CallStep.APPROVED,
        CallStep.RAN,
        CallStep.ASKED,
        CallStep.DENIED,
        CallStep.DENIED,
        CallStep.REMEMBERED,
        CallStep.RAN,
    ]


async def test_metadata_that_reaches_traces_holds_no_secrets_and_no_arguments() -> None:
    def login(user: str, password: str, note: str) -> str:
        return "in"

    signoff = gate(wait="suspend", secrets=["swordfish"])
    turns = [calls(("login", {"user": "ana", "password": "hunter2", "note": "say swordfish"})), {"say": "done"}]
    agent = Agent(ScriptedModel(turns), tools=[login], output_type=[str, DeferredToolRequests], capabilities=[signoff])
    paused = await agent.run("go")
    metadata = paused.output.metadata["call-1-1"]
    assert set(metadata) == {"summary", "signoff"}
    assert "ana" in metadata["summary"]
    assert "hunter2" not in str(metadata)
    assert "swordfish" not in str(metadata)


# --- names ---


async def test_a_rule_that_names_a_tool_wrongly_is_refused_or_warned_about(till: Till) -> None:
    rules = [{"deny": "payy"}]
    with pytest.raises(PolicyError, match=r"payy.*pay"):
        gate(rules, tools=["pay", "look"])
    with pytest.warns(UnknownToolWarning, match=r"payy.*pay"):
        await agent_with(gate(rules, mode="auto_deny"), pays(5), till).run("go")
    assert till.paid == [], "and a tool the rule misses is asked about, never let through"


async def test_a_policy_is_read_from_a_file(till: Till, tmp_path: Any) -> None:
    file = tmp_path / "signoff.yaml"
    file.write_text("people: {ana: {roles: [ops]}}\npolicy:\n  - {ask: {tool: pay}, by: ops}\n")
    signoff = gate(str(file), wait="suspend")
    agent = agent_with(signoff, pays(5), till, suspends=True)
    paused = await agent.run("go")
    [request] = await signoff.pending()
    with pytest.raises(NotEntitled):
        await signoff.answer(request.id, APPROVE, by="ben")
    await signoff.answer(request.id, APPROVE, by="ana")
    await resume(agent, paused)
    assert till.paid == [(5, "shop")]


async def test_answers_from_outside_are_checked_like_any_other(till: Till) -> None:
    signoff = gate(wait="suspend")
    await agent_with(signoff, pays(5), till, suspends=True).run("go")
    [request] = await signoff.pending()
    with pytest.raises(EditRefused, match="amount"):
        await signoff.answer(request.id, ApprovalDecision(approved=True, edited_args={"amount": "x"}), by="ana")
    assert (await signoff.cancel(request.id)).state is State.CANCELLED


def test_a_suspended_run_of_another_version_is_refused() -> None:
    with pytest.raises(WrongUse, match="version 1"):
        SuspendedRun.from_json('{"version": 2, "conversation": {}}')


async def test_streamed_and_stepped_runs_are_gated_too(till: Till) -> None:
    ui = ScriptedApprover(["approve", "deny"] * 3)
    agent = agent_with(gate(ui=ui), pays(5, 6), till)
    async with agent.run_stream("go") as stream:
        text = await stream.get_output()
    assert till.paid == [(5, "shop")] and "permission_denied" in text
    async with agent.iter("go") as run:
        async for _ in run:
            pass
    assert till.paid == [(5, "shop")] * 2 and len(ui.asked) == 4
    async with agent.run_stream_events("go") as events:
        async for _ in events:
            pass
    assert till.paid == [(5, "shop")] * 3 and len(ui.asked) == 6


@pytest.mark.usefixtures("sync_loop")
def test_the_sync_door_works_too(till: Till) -> None:
    result = agent_with(gate(ui=ScriptedApprover(["approve"])), pays(5), till).run_sync("go")
    assert result.output == "paid 5 to shop"
