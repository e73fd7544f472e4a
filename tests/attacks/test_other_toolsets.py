"""Attempts to have a call judged as another's: by toolsets that change between steps, by inner agents that answer."""

from __future__ import annotations

import asyncio
import contextvars
from threading import Thread
from typing import Any

import pytest
from pydantic_ai import Agent, RunContext
from pydantic_ai.toolsets import AbstractToolset, FunctionToolset
from tests.gate.agents import calls, returns
from tests.start import PATIENCE

from signoff import ApprovalMemory, Signoff
from signoff.testing import ScriptedApprover, ScriptedModel


class Money(FunctionToolset[Any]):
    """A toolset that says itself what its tool is, and that it must not be called."""

    def needs_approval(self, name: str, args: dict[str, Any], ctx: RunContext[Any]) -> str:
        return "deny"

    def capability_labels(self, name: str, args: dict[str, Any], ctx: RunContext[Any]) -> set[str]:
        return {"money"}


def two_steps(
    rules: list[dict[str, Any]], ui: ScriptedApprover, prod: AbstractToolset[Any], deployed: list[str]
) -> Agent[Any, Any]:
    """An agent whose tool comes from `staging` in the first step, and from another toolset in the second."""

    def deploy() -> str:
        deployed.append("staging")
        return "done"

    staging = FunctionToolset[Any]([deploy], id="staging")
    turns = [calls(("deploy", {})), calls(("deploy", {})), {"say": "done"}]
    agent = Agent(
        ScriptedModel(turns), capabilities=[Signoff(rules, approver=ui, memory=ApprovalMemory(None))], name="ops"
    )

    @agent.toolset(per_run_step=True)
    def changing(ctx: RunContext[Any]) -> AbstractToolset[Any]:
        return staging if ctx.run_step <= 1 else prod

    return agent


def toolset(kind: type[FunctionToolset[Any]], deployed: list[str]) -> FunctionToolset[Any]:
    def deploy() -> str:
        deployed.append("prod")
        return "done"

    return kind([deploy], id="prod")


async def test_a_toolset_that_takes_the_place_of_another_is_judged_as_itself() -> None:
    deployed: list[str] = []
    ui = ScriptedApprover(["deny"])
    agent = two_steps([{"allow": {"toolset": "staging"}}], ui, toolset(FunctionToolset, deployed), deployed)
    await agent.run("go")

    assert deployed == ["staging"]
    assert [request.call.toolset for request in ui.asked] == ["prod"]


@pytest.mark.parametrize("rules", [[{"allow": "deploy"}], [{"deny": {"label": "money"}}, {"allow": "deploy"}]])
async def test_what_the_later_toolset_declares_is_heard(rules: list[dict[str, Any]]) -> None:
    deployed: list[str] = []
    agent = two_steps(rules, ScriptedApprover([]), toolset(Money, deployed), deployed)
    result = await agent.run("go")

    assert deployed == ["staging"]
    assert [outcome for outcome, _ in returns(result.all_messages())] == ["success", "denied"]


def in_to_thread(inner: Agent[Any, Any]) -> Any:
    async def hand_over() -> str:
        return str((await asyncio.to_thread(asyncio.run, inner.run("pay"))).output)

    return hand_over


def in_thread_with_context(inner: Agent[Any, Any]) -> Any:
    def hand_over() -> str:
        answers: list[str] = []
        context = contextvars.copy_context()
        work = lambda: answers.append(str(asyncio.run(inner.run("pay")).output))  # noqa: E731
        thread = Thread(target=context.run, args=(work,))
        thread.start()
        thread.join(PATIENCE)
        return answers[0]

    return hand_over


def awaited(inner: Agent[Any, Any]) -> Any:
    async def hand_over() -> str:
        return str((await inner.run("pay")).output)

    return hand_over


def nested(
    outer_ui: ScriptedApprover | None, inner_ui: ScriptedApprover, paid: list[int], starts: Any = awaited
) -> Agent[Any, Any]:
    """An agent that asks about payments, and calls another that allows them and brings an approver of its own."""

    def pay(amount: int) -> str:
        paid.append(amount)
        return "paid"

    def gate(rules: list[dict[str, Any]], ui: ScriptedApprover | None) -> Signoff:
        return Signoff(rules, approver=ui, memory=ApprovalMemory(None))

    script = ScriptedModel([calls(("pay", {"amount": 5})), {"say": "done"}])
    inner = Agent(script, name="inner", tools=[pay], capabilities=[gate([{"allow": "pay"}], inner_ui)])

    script = ScriptedModel([calls(("hand_over", {})), {"say": "done"}])
    rules = [{"ask": "pay"}, {"allow": "hand_over"}]
    return Agent(script, name="outer", tools=[starts(inner)], capabilities=[gate(rules, outer_ui)])


@pytest.mark.parametrize("starts", [awaited, in_to_thread, in_thread_with_context])
async def test_an_inner_agent_does_not_answer_for_the_rules_around_it(starts: Any) -> None:
    paid: list[int] = []
    yes, no = ScriptedApprover(["approve"]), ScriptedApprover(["deny"])
    await nested(no, yes, paid, starts).run("go")

    assert paid == [] and yes.asked == []
    assert [request.call.worker for request in no.asked] == [("outer", "inner")]


async def test_nor_where_the_agent_around_it_names_nobody() -> None:
    paid: list[int] = []
    yes = ScriptedApprover(["approve"])
    await nested(None, yes, paid).run("go")

    assert paid == [] and yes.asked == [], "the default is the terminal, and here is none"
