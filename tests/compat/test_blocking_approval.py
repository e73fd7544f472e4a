"""A program written for pydantic-ai-blocking-approval, with nothing changed but its import."""

from __future__ import annotations

import importlib
import warnings
from textwrap import dedent
from typing import Any

import pytest
from pydantic_ai import Agent
from tests.gate.agents import calls, returns

from signoff import ApprovalMemory, Signoff
from signoff.errors import ApprovalError
from signoff.testing import ScriptedApprover, ScriptedModel

PROGRAM = """
    from pydantic_ai.toolsets import FunctionToolset
    from signoff.compat.blocking_approval import (
        ApprovalController, ApprovalDecision, ApprovalMemory, ApprovalRequest, ApprovalResult, ApprovalToolset,
        needs_approval_from_config,
    )

    asked = []
    ran = []
    says = {}

    def callback(request: ApprovalRequest) -> ApprovalDecision:
        asked.append((request.tool_name, request.tool_args, request.description))
        return says.get(request.tool_name, ApprovalDecision(approved=False, note="not today"))

    async def async_callback(request):
        return callback(request)

    class Shell(FunctionToolset):
        def __init__(self):
            super().__init__([self.shell_exec, self.get_time])

        def shell_exec(self, command: str) -> str:
            ran.append(command)
            return f"ran {command}"

        def get_time(self) -> str:
            ran.append("time")
            return "noon"

        def needs_approval(self, name, tool_args, ctx, config):
            base = needs_approval_from_config(name, config)
            if base.is_pre_approved:
                return base
            command = tool_args.get("command", "")
            if command == "shutdown":
                return ApprovalResult.blocked("Command is forbidden")
            if command == "ls":
                return ApprovalResult.pre_approved()
            return ApprovalResult.needs_approval()

        def get_approval_description(self, name, tool_args, ctx):
            return f"Execute: {tool_args.get('command', name)}"
"""


def program() -> Any:
    space: dict[str, Any] = {}
    with pytest.warns(DeprecationWarning, match="of pydantic-ai-blocking-approval is deprecated; use "):
        exec(dedent(PROGRAM), space)
    return space


def agent(toolset: Any, *made: Any, **options: Any) -> Agent[Any, Any]:
    return Agent(ScriptedModel([*(calls(one) for one in made), {"say": "done"}]), toolsets=[toolset], **options)


def command(text: str) -> Any:
    return ("shell_exec", {"command": text})


@pytest.mark.mission("M2")
@pytest.mark.parametrize("callback", ["callback", "async_callback"])
async def test_m2_a_program_for_blocking_approval_runs_with_its_import_changed(callback: str) -> None:
    it = program()
    memory = it["ApprovalMemory"]()
    toolset = it["ApprovalToolset"](
        inner=it["Shell"](),
        approval_callback=it[callback],
        memory=memory,
        config={"get_time": {"pre_approved": True}},
    )
    it["says"]["shell_exec"] = it["ApprovalDecision"](approved=True, remember="session")
    made = [command("ls"), ("get_time", {}), command("make"), command("make")]
    assert (await agent(toolset, *made).run("go")).output == "done"
    assert it["ran"] == ["ls", "time", "make", "make"]
    assert it["asked"] == [("shell_exec", {"command": "make"}, "Execute: make")]
    assert len(memory) == 1

    for text, said in (("shutdown", "Command is forbidden"), ("rm x", "not today")):
        it["says"].clear()
        with pytest.raises(PermissionError, match=said) as refused:
            await agent(toolset, command(text)).run("go")
        assert isinstance(refused.value, ApprovalError)
        assert refused.value.tool_name == "shell_exec"  # pyright: ignore[reportAttributeAccessIssue]
    assert it["ran"] == ["ls", "time", "make", "make"]


@pytest.mark.mission("M2")
async def test_m2_the_modes_of_its_controller_and_a_plain_toolset() -> None:
    it = program()

    def add(a: int) -> str:
        it["ran"].append(a)
        return "added"

    from pydantic_ai.toolsets import FunctionToolset

    for mode, runs in (("approve_all", True), ("strict", False)):
        controller = it["ApprovalController"](mode=mode)
        toolset = it["ApprovalToolset"](FunctionToolset([add]), controller.approval_callback, controller.memory)
        if runs:
            await agent(toolset, ("add", {"a": 1})).run("go")
        else:
            with pytest.raises(PermissionError, match="Strict mode: add requires approval"):
                await agent(toolset, ("add", {"a": 2})).run("go")
    plain = it["ApprovalToolset"](FunctionToolset([add]), it["callback"], {"add": {"pre_approved": False}})
    with pytest.raises(PermissionError, match="not today"):
        await agent(plain, ("add", {"a": 3})).run("go")
    assert it["ran"] == [1]
    assert it["asked"] == [("add", {"a": 3}, "add(a=3)")]
    request = it["ApprovalRequest"](tool_name="add", tool_args={}, description="")
    interactive = it["ApprovalController"](approval_callback=it["async_callback"])
    with pytest.raises(TypeError, match="await request_approval"):
        interactive.request_approval_sync(request)
    assert (await interactive.request_approval(request)).note == "not today"


@pytest.mark.mission("M2")
async def test_m2_behind_a_gate_the_gate_asks_and_the_callback_does_not() -> None:
    it = program()
    toolset = it["ApprovalToolset"](inner=it["Shell"](), approval_callback=it["callback"])
    ui = ScriptedApprover(["approve"])
    gate = Signoff([], approver=ui, memory=ApprovalMemory(file=None))
    made = [command("ls"), command("make"), command("shutdown")]
    done = await agent(toolset, *made, capabilities=[gate]).run("go")
    assert [outcome for outcome, _ in returns(done.all_messages())] == ["success", "success", "denied"]
    assert [one.summary for one in ui.asked] == ["Execute: make"]
    assert (it["asked"], it["ran"]) == ([], ["ls", "make"])


@pytest.mark.mission("M2")
def test_m2_every_name_is_there_and_names_the_new_way() -> None:
    module = importlib.import_module("signoff.compat.blocking_approval")
    for name in module.__all__:
        with pytest.warns(DeprecationWarning, match=f"{name} of .* is deprecated; use ."):
            assert getattr(module, name) is not None
    with warnings.catch_warnings(), pytest.raises(AttributeError):
        _ = module.Nothing
