"""What a screen offers is kept, and what cannot work is refused at once: programs as users write them."""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path
from typing import Any

import pexpect
import pytest
from pydantic_ai import Agent, DeferredToolRequests, RunContext
from pydantic_ai.exceptions import ApprovalRequired
from pydantic_ai.messages import ToolCallPart
from pydantic_ai.tools import ToolApproved
from tests import start
from tests.gate.agents import calls, returns

from signoff import (
    ApprovalDecision,
    ApprovalMemory,
    ApprovalRequest,
    Signoff,
    build_approval_requests,
    collect_approvals,
    collect_approvals_sync,
    run_with_approval,
    run_with_approval_sync,
)
from signoff.errors import WrongUse
from signoff.testing import ScriptedApprover, ScriptedModel

PROMPT = "your answer > "


def at_terminal(directory: Path, program: str) -> Any:
    """Somebody at a pseudo-terminal, in front of a program of their own."""
    file = directory / "program.py"
    file.write_text(program)
    environment = {"TERM": "dumb", "LANG": "C.UTF-8", "SIGNOFF_AS": "ana", "HOME": str(directory)}
    seat = start.terminal(
        [sys.executable, str(file)],
        env=environment,
        cwd=str(directory),
        dimensions=(40, 100),
        timeout=start.PATIENCE,
        encoding="utf-8",
    )
    seat.delaybeforesend = None
    return seat


def read_until(seat: Any, text: str) -> str:
    seat.expect_exact(text)
    return seat.before.replace("\r", "")


RUN = """
from pydantic_ai import Agent
from signoff import run_with_approval_sync
from signoff.testing import ScriptedModel

again = {"calls": [{"tool": "delete", "args": {"name": "a"}}]}
agent = Agent(ScriptedModel([again, again, again, {"say": "done"}]))

@agent.tool_plain(requires_approval=True)
def delete(name: str) -> str:
    print("deleted", name)
    return "gone"

print("output:", run_with_approval_sync(agent, "clean up").output)
"""


@pytest.mark.mission("D10")
def test_d10_an_answer_for_the_run_is_asked_for_once_and_nothing_longer_is_offered(tmp_path: Path) -> None:
    seat = at_terminal(tmp_path, RUN)
    card = read_until(seat, PROMPT)
    assert "s approve for this run" in card
    assert "always" not in card and "session" not in card
    seat.send("s\r")
    told = read_until(seat, "y yes, Enter no")
    assert "You will not be asked again in this run for delete with exactly these arguments." in " ".join(told.split())
    seat.send("y\r")
    rest = read_until(seat, "output: done")
    assert "you approve it for this run" in rest
    assert rest.count("deleted a") == 3
    assert PROMPT not in rest, "asked once"
    seat.expect(pexpect.EOF)


COLLECT = """
from pydantic_ai import Agent, DeferredToolRequests
from pydantic_ai.exceptions import ApprovalRequired
from signoff import collect_approvals_sync
from signoff.testing import ScriptedModel

CALLS = %s
agent = Agent(ScriptedModel([{"calls": CALLS}, {"say": "done"}]), output_type=[str, DeferredToolRequests])

@agent.tool
def delete(ctx, name: str) -> str:
    if not ctx.tool_call_approved:
        said = {"reason": "it is old", "severity": 3, "owner": "ana", "link": "https://wiki/x"}
        raise ApprovalRequired(metadata={**said, "token": "ghp_" + 36 * "a"})
    print("deleted", name)
    return "gone"

first = agent.run_sync("clean up")
results = collect_approvals_sync(first.output)
print("output:", agent.run_sync(message_history=first.all_messages(), deferred_tool_results=results).output)
"""
A = {"tool": "delete", "args": {"name": "a"}}


@pytest.mark.mission("D10")
def test_d10_where_nothing_can_be_kept_nothing_is_offered_and_all_that_the_tool_said_is_on_the_card(
    tmp_path: Path,
) -> None:
    seat = at_terminal(tmp_path, COLLECT % [A])
    card = read_until(seat, PROMPT)
    assert "session" not in card and "always" not in card and "approve for" not in card
    said = card[card.index("what the tool says") :]
    for name, value in (("severity", "3"), ("owner", "ana"), ("link", "https://wiki/x")):
        assert f"{name} " in said and value in said, name
    assert "it is old" in card
    assert "ghp_" not in card and "masked" in said
    seat.send("a\r")
    assert "deleted a" in read_until(seat, "output: done")
    seat.expect(pexpect.EOF)


@pytest.mark.mission("D10")
@pytest.mark.usefixtures("sync_loop")
def test_d10_among_calls_that_are_asked_together_an_answer_holds_for_those_like_it() -> None:
    parts = [ToolCallPart("delete", {"name": name}, tool_call_id=str(n)) for n, name in enumerate("aaba")]
    for word in ("session", "always"):
        ui = ScriptedApprover([word, "deny"])
        results = collect_approvals_sync(DeferredToolRequests(approvals=parts), ui)
        assert [request.args["name"] for request in ui.asked] == ["a", "b"]
        assert [isinstance(results.approvals[str(n)], ToolApproved) for n in range(4)] == [True, True, False, True]
        assert {str(request.keeps) for request in ui.asked} == {"batch"}


@pytest.mark.mission("D10")
async def test_d10_a_memory_is_told_of_an_answer_as_it_was_given(tmp_path: Path) -> None:
    file = tmp_path / "grants.db"
    requests = DeferredToolRequests(approvals=[ToolCallPart("pay", {"amount": 5}, tool_call_id="1")])
    [request] = build_approval_requests(requests)
    memory = ApprovalMemory(file)
    memory.store(request, ApprovalDecision(approved=True))
    assert memory.grants() == (), "once is once"
    memory.store(request, ApprovalDecision(approved=True, remember="always"))  # type: ignore[arg-type]
    assert ApprovalMemory(file=None).lookup(request) is None
    for again in (memory, ApprovalMemory(file)):
        found, ui = again.lookup(request), ScriptedApprover([])
        assert found is not None and found.approved
        assert (await collect_approvals(requests, ui, memory=again)).approvals == {"1": ToolApproved()}
    by_hand = ApprovalRequest(tool_call_id="1", tool_name="pay", args={"amount": 5})
    other = ApprovalMemory(file=None)
    other.store(by_hand, ApprovalDecision(approved=False, note="never", remember="session"))  # type: ignore[arg-type]
    found = other.lookup(by_hand)
    assert found is not None and (found.approved, found.note) == (False, "never")
    denied = (await collect_approvals(requests, ScriptedApprover([]), memory=other)).approvals["1"]
    assert "never" in denied.message  # type: ignore[union-attr]


@pytest.mark.mission("D11")
async def test_d11_a_sync_call_inside_an_event_loop_names_the_way_out() -> None:
    agent = Agent(ScriptedModel([{"say": "done"}]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # a coroutine that nobody waits for
        with pytest.raises(WrongUse, match=r"event loop is running(?s:.*)await collect_approvals\("):
            collect_approvals_sync(DeferredToolRequests())
        with pytest.raises(WrongUse, match=r"event loop is running(?s:.*)await run_with_approval\("):
            run_with_approval_sync(agent, "go")


@pytest.mark.mission("D11")
@pytest.mark.parametrize("ui", ["ana", 3, object(), ["ana"]])
async def test_d11_an_approver_that_fits_nothing_is_refused_before_anything_runs(ui: Any) -> None:
    agent = Agent(ScriptedModel([]))  # whoever asks it for a turn fails
    for wrong in (collect_approvals(DeferredToolRequests(), ui), run_with_approval(agent, "go", approver=ui)):
        with pytest.raises(WrongUse, match="an object with `choose`, or a function of the request"):
            await wrong
    with pytest.raises(WrongUse, match="an object with `choose`, or a function of the request"):
        Signoff([], approver=ui)


def outer_and_inner(outer_capabilities: list[Any]) -> Agent[Any, Any]:
    inner = Agent(ScriptedModel([calls(("delete", {"name": "a"})), {"say": "inner is done"}]), name="inner")

    @inner.tool_plain(requires_approval=True)
    def delete(name: str) -> str:
        raise AssertionError("nobody approved it")

    outer = Agent(
        ScriptedModel([calls(("ask_inner", {})), {"say": "outer is done"}]),
        name="outer",
        capabilities=outer_capabilities,
    )

    @outer.tool_plain
    async def ask_inner() -> str:
        return (await inner.run("clean up")).output

    return outer


@pytest.mark.mission("D11")
async def test_d11_an_agent_inside_a_tool_that_has_nobody_to_ask_is_named_with_the_way_out() -> None:
    gated = outer_and_inner([Signoff([{"allow": "ask_inner"}], approver=ScriptedApprover([]))])
    words = r"the tool 'ask_inner' runs(?s:.*)no gate(?s:.*)call_agent(?s:.*)run_with_approval"
    with pytest.raises(WrongUse, match=words):
        await gated.run("go")
    with pytest.raises(WrongUse, match=words):
        await run_with_approval(outer_and_inner([]), "go", approver=ScriptedApprover([]))


def database(signoff: Signoff, *, asks: bool = False) -> Agent[Any, Any]:
    agent = Agent(
        ScriptedModel([calls(("write", {"table": "orders"})), {"say": "{{last}}"}]),
        output_type=str,
        capabilities=[signoff],
    )

    @agent.tool
    def write(ctx: RunContext[Any], table: str) -> str:
        if asks and not ctx.tool_call_approved:
            raise ApprovalRequired
        raise PermissionError(f"the database is read-only: {table}")

    return agent


TOLD = {
    "error": "permission_denied",
    "tool": "write",
    "by": "tool",
    "reason": "the database is read-only: orders",
    "retryable": False,
}


@pytest.mark.mission("W8")
@pytest.mark.parametrize(("rules", "asks"), [([{"allow": "write"}], False), ([], False), ([{"allow": "write"}], True)])
async def test_w8_a_tools_permission_error_is_told_to_the_model_and_the_run_goes_on(
    rules: list[dict[str, Any]], asks: bool
) -> None:
    ui = ScriptedApprover(["approve"])
    result = await database(Signoff(rules, approver=ui), asks=asks).run("write it")
    [(outcome, content)] = returns(result.all_messages())
    assert (outcome, json.loads(content)) == ("denied", TOLD)
    assert json.loads(result.output) == TOLD, "the agent answers after it was told"


@pytest.mark.mission("W8")
async def test_w8_where_denials_are_raised_the_tools_own_error_is() -> None:
    with pytest.raises(PermissionError, match="the database is read-only: orders") as raised:
        await database(Signoff([{"allow": "write"}], on_denied="raise")).run("write it")
    assert type(raised.value) is PermissionError


@pytest.mark.mission("W8")
async def test_w8_an_approved_call_that_its_tool_refuses_has_failed_on_the_record(tmp_path: Path) -> None:
    store = f"sqlite:{tmp_path / 'signoff.db'}"
    await database(Signoff([], approver=ScriptedApprover(["approve"]), store=store)).run("write it")
    shown = start.signoff("audit", "log", "--json", "--store", store, cwd=tmp_path)
    kinds = [json.loads(line)["kind"] for line in shown.stdout.splitlines()]
    assert "failed" in kinds and "succeeded" not in kinds
    assert "PermissionError: the database is read-only: orders" in shown.stdout


@pytest.mark.mission("W8")
async def test_w8_a_denial_that_a_gate_inside_raises_is_told_by_the_gate_around_it() -> None:
    inner = Agent(
        ScriptedModel([calls(("delete", {})), {"say": "done"}]),
        capabilities=[Signoff([{"deny": "delete"}], on_denied="raise")],
    )

    @inner.tool_plain
    def delete() -> str:
        raise AssertionError("denied")

    outer = Agent(
        ScriptedModel([calls(("ask_inner", {})), {"say": "{{last}}"}]), capabilities=[Signoff([{"allow": "ask_inner"}])]
    )

    @outer.tool_plain
    async def ask_inner() -> str:
        return (await inner.run("clean up")).output

    told = json.loads((await outer.run("go")).output)
    assert told["tool"] == "ask_inner" and "delete was refused by policy" in told["reason"]
