"""What was loosened for a run is in every question of it, and of the runs inside it."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic_ai import Agent, RunContext
from tests.gate.agents import Till, agent_with, pays

from signoff import ApprovalMemory, ApprovalRequest, Signoff, call_agent
from signoff.core.loosening import NOT_LOOSENED, Loosened
from signoff.testing import ScriptedModel


@pytest.fixture
def asked() -> list[ApprovalRequest]:
    return []


def gate(asked: list[ApprovalRequest], **options: Any) -> Signoff:
    def approve(request: ApprovalRequest) -> bool:
        asked.append(request)
        return True

    return Signoff([], approver=approve, memory=ApprovalMemory(file=None), **options)


async def test_a_question_says_what_was_loosened_also_where_nothing_is_kept(asked: list[ApprovalRequest]) -> None:
    signoff, till = gate(asked), Till()
    signoff.gate.loosened = Loosened(policies=("loose.yaml",))
    await agent_with(signoff, pays(5), till).run("go")
    assert [one.context.loosened for one in asked] == [Loosened(policies=("loose.yaml",))]


async def test_a_run_inside_another_says_it_too(asked: list[ApprovalRequest]) -> None:
    till = Till()
    inner = agent_with(gate(asked), pays(5), till)
    outer = gate(asked)
    outer.gate.loosened = Loosened(auto_approve=True)
    agent: Agent[None, str] = Agent(
        ScriptedModel([{"calls": [{"tool": "ask_clerk", "args": {}}]}, {"say": "done"}]), capabilities=[outer]
    )

    @agent.tool
    async def ask_clerk(ctx: RunContext[None]) -> str:
        return str(await call_agent(ctx, inner, "pay 5"))

    await agent.run("go")
    assert [(one.tool_name, one.context.loosened) for one in asked] == [
        ("ask_clerk", Loosened(auto_approve=True)),
        ("pay", Loosened(auto_approve=True)),
    ]


async def test_a_mode_that_a_program_chose_is_no_loosening(asked: list[ApprovalRequest]) -> None:
    """It is the program's own: whoever wrote it wrote its policy, too."""
    till = Till()
    signoff = gate(asked, mode="auto_approve", by="ops", people={"ana": ["ops"]}, wait="suspend")
    await agent_with(signoff, pays(5), till, suspends=True).run("go")
    [request] = await signoff.broker.pending()
    assert request.context.loosened == NOT_LOOSENED
