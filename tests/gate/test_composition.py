"""Together with the harness's reviewer (may only widen) and judge (may only narrow), then the person."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

import pytest
from pydantic_ai import Agent
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from tests.gate.agents import Till, agent_with, calls, pays, returns

from signoff import Actor, ApprovalMemory, Signoff
from signoff.errors import WrongUse
from signoff.testing import ScriptedApprover, ScriptedModel

reviewer_package = pytest.importorskip(
    "pydantic_ai_harness.approval_reviewer", reason="pydantic-ai-harness is not installed"
)
judge_package = pytest.importorskip(
    "pydantic_ai_harness.tool_call_judge", reason="pydantic-ai-harness is not installed"
)


def answering(*answers: str) -> FunctionModel:
    """A second model that answers yes, no or unsure, in turn."""
    left = list(answers)

    async def answer(messages: Any, info: AgentInfo) -> ModelResponse:
        word = left.pop(0)
        if info.output_tools:
            return ModelResponse(parts=[ToolCallPart(info.output_tools[0].name, {"response": word})])
        return ModelResponse(parts=[TextPart(word)])

    return FunctionModel(answer)


def reviewer(*answers: str) -> Any:
    return reviewer_package.ApprovalReviewer(answering(*answers), question="Is this risky?")


def judge(*answers: str, **options: Any) -> Any:
    return judge_package.ToolCallJudge(answering(*answers), question="Is this harmful?", **options)


def gate(ui: ScriptedApprover, rules: Any = (), **options: Any) -> Signoff:
    return Signoff(list(rules), approver=ui, memory=ApprovalMemory(None), **options)


@pytest.mark.mission("W7")
async def test_w7_a_reviewer_may_take_a_question_off_the_persons_plate() -> None:
    till, ui = Till(), ScriptedApprover(["deny"])
    agent = agent_with(gate(ui, reviewers=True), pays(1, 2), till, capabilities=[reviewer("no", "yes")])
    await agent.run("go")
    assert till.paid == [(1, "shop")], "the first was cleared by the reviewer, the second went to the person"
    assert [request.args["amount"] for request in ui.asked] == [2]


@pytest.mark.mission("W7")
async def test_w7_a_reviewer_never_answers_for_particular_people_nor_against_a_deny() -> None:
    till, ui = Till(), ScriptedApprover(["deny"], by=Actor(name="ana", roles=frozenset({"ops"})))
    rules = [{"deny": {"tool": "pay", "args": {"amount": 3}}}, {"ask": "pay", "by": "ops"}]
    agent = agent_with(gate(ui, rules, reviewers=True), pays(1, 3), till, capabilities=[reviewer("no", "no")])
    await agent.run("go")
    assert till.paid == []
    assert [request.args["amount"] for request in ui.asked] == [1]


@pytest.mark.mission("W7")
async def test_w7_without_leave_a_reviewer_counts_for_nothing() -> None:
    till, ui = Till(), ScriptedApprover(["deny"])
    await agent_with(gate(ui), pays(1), till, capabilities=[reviewer("no")]).run("go")
    assert till.paid == []
    assert len(ui.asked) == 1


@pytest.mark.mission("W7")
async def test_w7_a_reviewer_that_fails_leaves_it_to_the_person() -> None:
    till, ui = Till(), ScriptedApprover(["approve"])
    await agent_with(gate(ui, reviewers=True), pays(1), till, capabilities=[reviewer()]).run("go")
    assert till.paid == [(1, "shop")]
    assert len(ui.asked) == 1


@pytest.mark.mission("W7")
async def test_w7_a_judge_may_only_narrow() -> None:
    till, ui = Till(), ScriptedApprover(["deny"])
    rules = [{"allow": {"tool": "pay", "args": {"amount": {"<": 3}}}}]
    agent = agent_with(gate(ui, rules), pays(1, 2, 3), till, capabilities=[judge("yes", "no", "no", "no")])
    result = await agent.run("go")
    assert till.paid == [(2, "shop")], "1 was blocked by the judge, 3 was cleared by it and then denied by the person"
    assert [request.args["amount"] for request in ui.asked] == [3]
    assert [outcome for outcome, _ in returns(result.all_messages())].count("denied") == 1


@pytest.mark.mission("W7")
async def test_w7_a_judge_that_is_unsure_asks_the_same_person_through_the_same_gate() -> None:
    till, ui = Till(), ScriptedApprover(["approve", "deny"])
    unsure = judge("unsure", "unsure", "unsure", "unsure", on_uncertain="ask")
    await agent_with(gate(ui, [{"allow": "pay"}]), pays(1, 2), till, capabilities=[unsure]).run("go")
    assert till.paid == [(1, "shop")]
    assert len(ui.asked) == 2


@pytest.mark.mission("W7")
async def test_w7_judge_reviewer_and_person_in_one_chain() -> None:
    till, ui = Till(), ScriptedApprover(["approve"])
    chain = [reviewer("no", "yes"), judge("no", "no", "yes", "no", "no")]
    await agent_with(gate(ui, reviewers=True), pays(1, 2, 3), till, capabilities=chain).run("go")
    assert sorted(till.paid) == [(1, "shop"), (2, "shop")]
    assert [one.args["amount"] for one in ui.asked] == [2]


async def test_a_users_model_selector_is_called_as_often_as_without_the_gate() -> None:
    """PydanticAI chooses the model once more where a capability hands out another instance for a run."""

    async def choices(*capabilities: AbstractCapability[Any]) -> list[str]:
        chooses = ChoosesModel(ScriptedModel(pays(1)))
        await Agent(None, tools=[Till().pay], capabilities=[chooses, *capabilities]).run("go")
        return chooses.chosen

    without = await choices()
    assert without == ["selected", "resolved"] * 2, "once for each of two requests"
    assert await choices(Signoff([{"allow": "pay"}])) == without


@dataclass
class ChoosesModel(AbstractCapability[Any]):
    """Chooses the model by a name of its own, anew for each request."""

    model: ScriptedModel
    chosen: list[str] = field(default_factory=list[str])

    def get_model(self) -> Any:
        def select(ctx: Any) -> str:
            self.chosen.append("selected")
            return f"own:{len(self.chosen)}"

        return select

    async def resolve_model_id(self, ctx: Any, *, model_id: str) -> Any:
        self.chosen.append("resolved")
        return self.model


async def test_two_runs_at_once_under_one_id_are_refused() -> None:
    till, begun = Till(), asyncio.Event()

    async def wait(seconds: int) -> str:
        begun.set()
        await asyncio.Event().wait()
        return ""

    signoff = Signoff([{"allow": ["pay", "wait"]}])
    slow = Agent(ScriptedModel([calls(("wait", {"seconds": 1}))]), tools=[wait], capabilities=[signoff])
    first = asyncio.create_task(slow.run("go", run_id="one"))
    await begun.wait()
    with pytest.raises(WrongUse, match="run_id='one' belongs to two runs"):
        await agent_with(signoff, pays(1), till).run("go", run_id="one")
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)
    await agent_with(signoff, pays(1), till).run("go", run_id="one")
    assert till.paid == [(1, "shop")], "an id is free again once its run is over"
