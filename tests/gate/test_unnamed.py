"""An approver that names nobody has one word everywhere; an answer that cannot be kept loses no other answer."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import Agent, DeferredToolRequests
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.tools import ToolApproved
from tests.gate.agents import calls, returns

from signoff import ApprovalDecision, ApprovalMemory, ApprovalRequest, Signoff, collect_approvals, run_with_approval
from signoff.channels import headless_approver
from signoff.core.request import Keeps
from signoff.testing import ScriptedModel

# --- one word ---


def no(request: ApprovalRequest) -> bool:
    return False


class Web:
    async def choose(self, request: ApprovalRequest, *, mode: Any) -> ApprovalDecision:
        return ApprovalDecision(approved=False)


@pytest.mark.mission("W5")
@pytest.mark.parametrize("approver", [no, Web(), headless_approver()], ids=["function", "object", "headless"])
async def test_w5_an_approver_that_names_nobody_has_one_word_in_payload_record_and_log(
    approver: Any, tmp_path: Path
) -> None:
    turns = [calls(("pay", {})), {"say": "done"}]
    bare = Agent(ScriptedModel(turns))
    gated = Agent(ScriptedModel(turns), capabilities=[Signoff([], approver=approver, store=f"sqlite:{tmp_path}/s.db")])
    for agent in (bare, gated):
        agent.tool_plain(requires_approval=True)(pay)
    for agent in (bare, gated):
        done = await run_with_approval(agent, "go", approver=approver if agent is bare else None)
        [(_, content)] = returns(done.all_messages())
        assert json.loads(content)["by"] == "approver"
        assert "a person" not in json.loads(content)["reason"]
    with closing(sqlite3.connect(tmp_path / "s.db")) as connection:
        told = {kind: json.loads(body) for kind, body in connection.execute("select kind, body from events")}
    assert {kind: body["by"] for kind, body in told.items() if "by" in body} == dict.fromkeys(
        (kind for kind, body in told.items() if "by" in body), "approver"
    )
    assert {"denied", "voted", "settled"} <= {kind for kind, body in told.items() if "by" in body}


def pay() -> str:
    return "paid"


# --- what has no canonical form ---


@pytest.mark.mission("D5")
@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e400"])
async def test_d5_an_answer_that_cannot_be_kept_ends_no_run(number: str) -> None:
    keeps: list[Keeps] = []
    ran: list[str] = []

    def approver(request: ApprovalRequest) -> ApprovalDecision:
        keeps.append(request.keeps)
        return ApprovalDecision(approved=True, remember="session")  # type: ignore[arg-type]

    both = ModelResponse(parts=[ToolCallPart("weigh", f'{{"x": {number}}}', "a"), ToolCallPart("pay", "{}", "b")])
    steps = iter([both, both, ModelResponse(parts=[TextPart("done")])])
    agent = Agent(FunctionModel(lambda messages, info: next(steps)))

    @agent.tool_plain(requires_approval=True)
    def weigh(x: float) -> str:
        ran.append("weigh")
        return "weighed"

    @agent.tool_plain(requires_approval=True)
    def pay() -> str:
        ran.append("pay")
        return "paid"

    assert (await run_with_approval(agent, "go", approver=approver)).output == "done"
    assert sorted(ran) == ["pay", "pay", "weigh", "weigh"]
    assert keeps == [Keeps.NOTHING, Keeps.RUN, Keeps.NOTHING], "what was remembered is not asked again, the other is"


@pytest.mark.parametrize("value", [date(2026, 1, 1), Decimal(1), {1}, float("nan"), object()])
async def test_values_that_are_no_json_are_not_remembered(value: object) -> None:
    requests = DeferredToolRequests(
        approvals=[ToolCallPart("send", {"what": value}, "a"), ToolCallPart("pay", {"amount": 1}, "b")]
    )
    memory = ApprovalMemory(file=None)

    def approver(request: ApprovalRequest) -> ApprovalDecision:
        assert (request.keeps is Keeps.NOTHING) == (request.tool_name == "send")
        return ApprovalDecision(approved=True, remember="session")  # type: ignore[arg-type]

    results = await collect_approvals(requests, approver, memory=memory)
    assert all(isinstance(one, ToolApproved) for one in results.approvals.values())
    assert [grant.tool for grant in memory.grants()] == ["pay"]
    [first, _] = requests.approvals
    kept = ApprovalRequest(tool_call_id="a", tool_name="send", args=first.args, summary="")  # type: ignore[arg-type]
    memory.store(kept, ApprovalDecision(approved=True, remember="session"))  # type: ignore[arg-type]
    assert [grant.tool for grant in memory.grants()] == ["pay"]


async def test_an_edit_that_has_no_canonical_form_is_not_remembered() -> None:
    requests = DeferredToolRequests(approvals=[ToolCallPart("pay", {"amount": 1}, "a")])
    memory = ApprovalMemory(file=None)
    answer = ApprovalDecision(approved=True, remember="session", edited_args={"amount": float("nan")})  # type: ignore[arg-type]
    results = await collect_approvals(requests, lambda request: answer, memory=memory)
    assert isinstance(results.approvals["a"], ToolApproved)
    assert memory.grants() == ()


# --- a tool that refuses ---


@pytest.mark.mission("W8")
@pytest.mark.parametrize("asks", [True, False])
@pytest.mark.parametrize("gated", [True, False])
async def test_w8_a_permission_error_of_a_tool_is_told_with_and_without_a_gate(*, asks: bool, gated: bool) -> None:
    gate = Signoff([{"allow": "*"}], approver=lambda request: True, memory=ApprovalMemory(file=None))
    agent = Agent(ScriptedModel([calls(("shut", {})), {"say": "done"}]), capabilities=[gate] if gated else [])

    @agent.tool_plain(requires_approval=asks)
    def shut() -> str:
        raise PermissionError("the door is locked")

    done = await run_with_approval(agent, "go", approver=lambda request: True)
    [(outcome, content)] = returns(done.all_messages())
    assert (done.output, outcome) == ("done", "denied")
    assert json.loads(content) == {
        "error": "permission_denied",
        "tool": "shut",
        "by": "tool",
        "reason": "the door is locked",
        "retryable": False,
    }


async def test_other_errors_of_a_tool_end_the_run_as_ever() -> None:
    agent = Agent(ScriptedModel([calls(("shut", {})), {"say": "done"}]))

    @agent.tool_plain(requires_approval=True)
    def shut() -> str:
        raise OSError("the door is broken")

    with pytest.raises(OSError, match="broken"):
        await run_with_approval(agent, "go", approver=lambda request: True)
