"""The deferred flow on any agent, with no store and no capability."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import BaseModel
from pydantic_ai import Agent, DeferredToolRequests, RunContext
from pydantic_ai.exceptions import ApprovalRequired, UsageLimitExceeded
from pydantic_ai.messages import PartDeltaEvent, TextPartDelta, ToolCallPart
from pydantic_ai.tools import ToolApproved, ToolDefinition, ToolDenied
from pydantic_ai.toolsets import ExternalToolset, FunctionToolset
from pydantic_ai.usage import UsageLimits
from tests.gate.agents import Till, calls, pays, returns

from signoff import (
    ApprovalDecision,
    ApprovalMemory,
    ApprovalMode,
    ApprovalRequest,
    Signoff,
    SignoffError,
    build_approval_requests,
    collect_approvals,
    collect_approvals_sync,
    run_with_approval,
    run_with_approval_sync,
)
from signoff.errors import WrongUse
from signoff.testing import ScriptedApprover, ScriptedModel


def deferred(*parts: ToolCallPart, metadata: dict[str, dict[str, Any]] | None = None) -> DeferredToolRequests:
    return DeferredToolRequests(approvals=list(parts), metadata=metadata or {})


@pytest.mark.mission("D4")
def test_d4_requests_are_built_from_dicts_and_json_texts() -> None:
    requests = build_approval_requests(
        deferred(
            ToolCallPart("a", {"x": 1}, tool_call_id="1"),
            ToolCallPart("b", '{"y": [2.50]}', tool_call_id="2"),
            ToolCallPart("c", "", tool_call_id="3"),
            ToolCallPart("d", None, tool_call_id="4"),
        ),
        worker=["triage"],
    )
    assert [request.args for request in requests] == [{"x": 1}, {"y": [2.5]}, {}, {}]
    assert [request.tool_call_id for request in requests] == ["1", "2", "3", "4"]
    assert requests[0].worker == ("triage",)
    with pytest.raises(ValueError, match="not a JSON object"):
        build_approval_requests(deferred(ToolCallPart("a", "[1]", tool_call_id="1")))


@pytest.mark.mission("D4")
@pytest.mark.parametrize(
    ("metadata", "summary"),
    [
        ({"summary": "Write the\nnotes", "reason": "x", "path": "y"}, "Write the notes"),
        ({"reason": "it is big", "path": "notes.md"}, "write: it is big (notes.md)"),
        ({"reason": "it is big"}, "write: it is big"),
        ({"path": "notes.md"}, "write notes.md"),
        ({}, 'write(path="é", n=1)'),
        ({"summary": 3}, 'write(path="é", n=1)'),
    ],
)
def test_d4_the_summary_comes_from_the_metadata_or_the_call(metadata: dict[str, Any], summary: str) -> None:
    part = ToolCallPart("write", {"path": "é", "n": 1}, tool_call_id="1")
    [request] = build_approval_requests(deferred(part, metadata={"1": metadata}))
    assert request.summary == summary
    assert request.metadata == metadata


def test_a_summary_is_one_short_line() -> None:
    part = ToolCallPart("write", {"text": "x" * 1000 + "\n"}, tool_call_id="1")
    [request] = build_approval_requests(deferred(part))
    assert len(request.summary) <= 120
    assert "\n" not in request.summary


PAY = ToolCallPart("pay", {"amount": 5}, tool_call_id="1")
PAY_2 = ToolCallPart("pay", {"amount": 6}, tool_call_id="2")


@pytest.mark.mission("D5")
async def test_d5_decisions_become_exactly_pydantic_ais_results() -> None:
    parts = [ToolCallPart("pay", {"amount": n}, tool_call_id=str(n)) for n in range(4)]
    ui = ScriptedApprover(["approve", 'edit:{"amount": 9}', "deny", "deny:not you"])
    results = await collect_approvals(deferred(*parts), ui)
    assert results.approvals["0"] == ToolApproved()
    assert results.approvals["1"] == ToolApproved(override_args={"amount": 9})
    for number, reason in (("2", "the answer was no"), ("3", "not you")):
        denied = results.approvals[number]
        assert isinstance(denied, ToolDenied)
        assert json.loads(denied.message)["reason"] == reason
        assert json.loads(denied.message)["error"] == "permission_denied"
    assert [request.tool_call_id for request in ui.asked] == ["0", "1", "2", "3"], "all in one pass, in order"


@pytest.mark.mission("D5")
@pytest.mark.usefixtures("sync_loop")
def test_d5_memory_comes_first_then_the_mode_then_the_person() -> None:
    memory = ApprovalMemory(file=None)
    collect_approvals_sync(deferred(PAY), ScriptedApprover(["session"]), memory=memory)
    ui = ScriptedApprover(["approve"])
    results = collect_approvals_sync(deferred(PAY, PAY_2), ui, memory=memory)
    assert [request.args["amount"] for request in ui.asked] == [6]
    assert results.approvals == {"1": ToolApproved(), "2": ToolApproved()}
    denied = collect_approvals_sync(deferred(PAY, PAY_2), ScriptedApprover([]), memory=memory, mode="auto_deny")
    assert denied.approvals["1"] == ToolApproved()
    assert isinstance(denied.approvals["2"], ToolDenied)


@pytest.mark.mission("D6")
@pytest.mark.parametrize(("mode", "kind"), [("auto_approve", ToolApproved), ("auto_deny", ToolDenied)])
async def test_d6_the_automatic_modes_ask_nobody(mode: str, kind: type) -> None:
    results = await collect_approvals(deferred(PAY), ScriptedApprover([]), mode=mode)
    assert isinstance(results.approvals["1"], kind)
    with pytest.raises(SignoffError, match=r"sometimes.*must be one of"):
        await collect_approvals(deferred(PAY), mode="sometimes")


class SyncUI:
    def choose(self, request: ApprovalRequest, *, mode: ApprovalMode) -> ApprovalDecision:
        assert mode is ApprovalMode.INTERACTIVE
        return ApprovalDecision(approved=True)


class BatchUI(SyncUI):
    def choose_all(self, requests: list[ApprovalRequest], *, mode: ApprovalMode) -> list[ApprovalDecision]:
        return [ApprovalDecision(approved=request.args["amount"] == 6) for request in requests]


async def test_a_user_interface_may_take_a_whole_batch() -> None:
    results = await collect_approvals(deferred(PAY, PAY_2), BatchUI())
    assert isinstance(results.approvals["1"], ToolDenied)
    assert results.approvals["2"] == ToolApproved()


@pytest.mark.mission("D3")
async def test_d3_only_what_was_asked_for_is_remembered_and_always_survives(tmp_path: Any) -> None:
    file = tmp_path / "deep" / "grants.db"
    memory = ApprovalMemory(file)
    await collect_approvals(deferred(PAY), ScriptedApprover(["approve"]), memory=memory)
    assert memory.grants() == ()
    assert not file.exists()
    await collect_approvals(deferred(PAY, PAY_2), ScriptedApprover(["session", "always"]), memory=memory)
    assert file.stat().st_mode & 0o777 == 0o600
    ui = ScriptedApprover(["deny"])
    results = await collect_approvals(deferred(PAY, PAY_2), ui, memory=ApprovalMemory(file))
    assert [request.args["amount"] for request in ui.asked] == [5], "the session ended, always did not"
    assert results.approvals["2"] == ToolApproved()


# --- run_with_approval ---


class Answer(BaseModel):
    total: int


def native_agent(till: Till, turns: list[dict[str, Any]], **options: Any) -> Agent[Any, Any]:
    agent = Agent(ScriptedModel(turns), **options)

    @agent.tool_plain(requires_approval=True)
    def pay(amount: int) -> str:
        return till.pay(amount)

    return agent


@pytest.mark.mission("D7")
async def test_d7_runs_until_there_is_a_real_output() -> None:
    till = Till()
    turns = [calls(("pay", {"amount": 1})), calls(("pay", {"amount": 2}), ("pay", {"amount": 3})), {"say": "done"}]
    ui = ScriptedApprover(["approve", "deny", 'edit:{"amount": 30}'])
    result = await run_with_approval(native_agent(till, turns), "go", approver=ui)
    assert result.output == "done"
    assert till.paid == [(1, "shop"), (30, "shop")]
    assert [outcome for outcome, _ in returns(result.all_messages())] == ["success", "denied", "success"]


@pytest.mark.mission("D7")
async def test_d7_keeps_output_type_deps_limits_history_and_validators() -> None:
    till = Till()
    turns = [calls(("pay", {"amount": 1})), calls(("final_result", {"total": 1}))]
    agent = Agent(ScriptedModel(turns), output_type=Answer, deps_type=str)

    @agent.tool(requires_approval=True)
    def pay(ctx: RunContext[str], amount: int) -> str:
        return till.pay(amount, ctx.deps)

    validated: list[Answer] = []

    @agent.output_validator
    def check(answer: Answer) -> Answer:
        validated.append(answer)
        return answer

    result = await run_with_approval(agent, "go", approver=ScriptedApprover(["approve"]), deps="bakery")
    assert result.output == Answer(total=1)
    assert till.paid == [(1, "bakery")]
    assert validated == [Answer(total=1)]

    with pytest.raises(UsageLimitExceeded):
        await run_with_approval(
            agent, "go", approver=ScriptedApprover(["approve"]), deps="x", usage_limits=UsageLimits(request_limit=1)
        )
    longer = native_agent(till, [{"say": "first"}, {"say": "second"}])
    first = await run_with_approval(longer, "one")
    second = await run_with_approval(longer, "two", message_history=first.all_messages())
    assert second.output == "second"
    assert second.conversation_id == first.conversation_id


@pytest.mark.mission("D7")
async def test_d7_streams() -> None:
    heard: list[str] = []

    async def listen(ctx: Any, events: Any) -> None:
        async for event in events:
            if isinstance(event, PartDeltaEvent) and isinstance(event.delta, TextPartDelta):
                heard.append(event.delta.content_delta)

    till = Till()
    turns = [calls(("pay", {"amount": 1})), {"say": "all is paid now"}]
    result = await run_with_approval(
        native_agent(till, turns), "go", approver=ScriptedApprover(["approve"]), event_stream_handler=listen
    )
    assert result.output == "all is paid now"
    assert till.paid == [(1, "shop")]
    assert "".join(heard).endswith("is paid now")


@pytest.mark.mission("D7")
@pytest.mark.usefixtures("sync_loop")
def test_d7_the_sync_edge() -> None:
    till = Till()
    result = run_with_approval_sync(native_agent(till, pays(4)), "go", approver=ScriptedApprover(["approve"]))
    assert result.output == "paid 4 to shop"


@pytest.mark.mission("D8")
@pytest.mark.parametrize("how", ["flag", "raise", "toolset"])
async def test_d8_every_native_way_to_ask_works_without_the_capability(how: str) -> None:
    till = Till()

    def pay(ctx: RunContext[None], amount: int) -> str:
        if how == "raise" and not ctx.tool_call_approved:
            raise ApprovalRequired(metadata={"reason": "money"})
        return till.pay(amount)

    agent = Agent(ScriptedModel(pays(5)), output_type=[str, DeferredToolRequests])
    if how == "toolset":
        agent = Agent(ScriptedModel(pays(5)), toolsets=[FunctionToolset([pay]).approval_required()])
    else:
        agent.tool(requires_approval=how == "flag")(pay)
    ui = ScriptedApprover(["approve"])
    assert (await run_with_approval(agent, "go", approver=ui)).output == "paid 5 to shop"
    assert ui.asked[0].summary == ("pay: money" if how == "raise" else "pay(amount=5)")


@pytest.mark.mission("D9")
async def test_d9_a_nested_run_asks_the_same_person_and_names_the_chain() -> None:
    till = Till()
    inner = native_agent(till, pays(5), name="inner")
    outer = native_agent(till, [calls(("delegate", {})), *pays(6)], name="outer")

    @outer.tool_plain
    async def delegate() -> str:
        return (await run_with_approval(inner, "go")).output

    ui = ScriptedApprover(["approve", "deny"])
    await run_with_approval(outer, "go", approver=ui)
    assert till.paid == [(5, "shop")]
    assert [request.worker for request in ui.asked] == [("outer", "inner"), ("outer",)]


async def test_an_agent_with_a_gate_is_left_to_its_gate() -> None:
    till = Till()
    agent = Agent(ScriptedModel(pays(5)), tools=[till.pay], capabilities=[Signoff([], memory=ApprovalMemory(None))])
    ui = ScriptedApprover(["approve"])
    await run_with_approval(agent, "go", approver=ui)
    assert till.paid == [(5, "shop")]
    assert ui.asked[0].verdict is not None


async def test_external_results_are_made_by_a_function_or_the_run_says_so() -> None:
    tool = ToolDefinition(name="fetch", parameters_json_schema={"type": "object", "properties": {}})
    agent = Agent(ScriptedModel([calls(("fetch", {})), {"say": "{{last}}"}]), toolsets=[ExternalToolset([tool])])
    done = await run_with_approval(agent, "go", external=lambda part: f"made for {part.tool_name}")
    assert done.output == "made for fetch"
    with pytest.raises(WrongUse, match="external="):
        await run_with_approval(agent, "go")


async def test_a_bad_edit_reaches_the_model_as_a_retry_and_runs_nothing() -> None:
    till = Till()
    agent = native_agent(till, [calls(("pay", {"amount": 1})), {"say": "sorry"}])
    result = await run_with_approval(agent, "go", approver=ScriptedApprover(['edit:{"amount": "much"}']))
    assert till.paid == []
    assert result.output == "sorry"
    assert [outcome for outcome, _ in returns(result.all_messages())] == ["retried"]
