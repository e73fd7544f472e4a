"""Code that the model writes (`CodeMode` of pydantic-ai-harness, run by the real pydantic-monty)."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import Agent, DeferredToolRequests, RunContext
from pydantic_ai.capabilities import AbstractCapability, CombinedCapability, Hooks, PrefixTools, WrapperCapability
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import DeltaToolCall, FunctionModel
from pydantic_ai.toolsets import AbstractToolset, FunctionToolset
from pydantic_ai_harness import CodeMode
from tests import start

from signoff import ApprovalMemory, Signoff
from signoff.core.event import CallEvent, CallStep
from signoff.errors import WrongUse
from signoff.testing import ScriptedApprover

PAYS = "r = await pay(amount=5)\nprint(r)\nr\n"


class Coder:
    """An agent whose model writes one snippet and says what came of it, with a tool one can count the effects of."""

    def __init__(self, rules: list[dict[str, Any]], *capabilities: Any, code: str = PAYS, **options: Any) -> None:
        self.paid: list[int] = []
        self.seen: list[CallEvent] = []
        self.code = code
        self.signoff = Signoff(rules, memory=ApprovalMemory(file=None), observe=self.seen.append, **options)
        self.agent: Agent[Any, Any] = Agent(
            FunctionModel(self.answer, stream_function=self.stream),
            tools=[self.pay],
            output_type=[str, DeferredToolRequests],
            capabilities=[*capabilities, self.signoff],
        )

    async def pay(self, amount: int) -> str:
        self.paid.append(amount)
        return "paid"

    def answer(self, messages: list[ModelMessage], info: Any) -> ModelResponse:
        last = messages[-1].parts[-1]
        if isinstance(last, ToolReturnPart):
            return ModelResponse(parts=[TextPart(str(last.content))])
        return ModelResponse(parts=[ToolCallPart("run_code", {"code": self.code}, tool_call_id="c1")])

    async def stream(self, messages: list[ModelMessage], info: Any) -> AsyncIterator[Any]:
        [part] = self.answer(messages, info).parts
        if isinstance(part, TextPart):
            yield part.content
            return
        assert isinstance(part, ToolCallPart)
        text = json.dumps(part.args)
        yield {0: DeltaToolCall(name=part.tool_name, json_args=text[:2], tool_call_id=part.tool_call_id)}
        for begin in range(2, len(text), 6):
            await asyncio.sleep(0)
            yield {0: DeltaToolCall(json_args=text[begin : begin + 6])}

    async def said(self, **options: Any) -> str:
        return str((await self.agent.run("go", **options)).output)


# --- before the gate has seen the call ---


class Listens(AbstractCapability[Any]):
    """Hears what the model writes, and has no tools."""

    async def wrap_run_event_stream(self, ctx: RunContext[Any], *, stream: Any) -> Any:
        async for event in stream:
            yield event


class Brings(Listens):
    """Hears what the model writes, and has tools."""

    def get_toolset(self) -> AbstractToolset[Any]:
        return FunctionToolset([print])


class Wraps(AbstractCapability[Any]):
    """Hears every event, and puts a toolset around the others."""

    async def on_event(self, ctx: RunContext[Any], *, event: Any) -> None: ...

    def get_wrapper_toolset(self, toolset: AbstractToolset[Any]) -> AbstractToolset[Any]:
        return toolset


class Around(WrapperCapability[Any]):
    """Hears what the model writes, around a capability that does not."""

    async def wrap_run_event_stream(self, ctx: RunContext[Any], *, stream: Any) -> Any:
        async for event in stream:
            yield event

    def get_wrapper_toolset(self, toolset: AbstractToolset[Any]) -> AbstractToolset[Any]:
        return toolset


EARLY = {
    "eager": lambda: CodeMode[Any](eager=True),
    "speculate": lambda: CodeMode[Any](speculate=["pay"]),
    "wrapped": lambda: WrapperCapability[Any](CodeMode(eager=True)),
    "prefixed": lambda: PrefixTools[Any](CodeMode(eager=True), prefix="my"),
    "combined": lambda: CombinedCapability[Any]([Listens(), CodeMode(eager=True)]),
    "made for the run": lambda: lambda ctx: CodeMode[Any](eager=True),
    "brings": Brings,
    "wraps": Wraps,
    "around": lambda: Around(AbstractCapability[Any]()),
}


@pytest.mark.parametrize("rules", [[{"deny": "run_code"}, {"allow": "pay"}], [{"allow": "*"}]], ids=["deny", "allow"])
@pytest.mark.parametrize("make", EARLY.values(), ids=EARLY)
async def test_what_can_run_a_call_while_the_model_writes_it_is_refused_at_the_start(make: Any, rules: Any) -> None:
    coder = Coder(rules, make(), approver=lambda request: False)
    with pytest.raises(WrongUse, match="before Signoff has judged"):
        await coder.said()
    coder = Coder(rules, approver=lambda request: False)
    with pytest.raises(WrongUse, match="before Signoff has judged"):
        await coder.said(capabilities=[make()])
    assert coder.paid == []


async def test_what_only_listens_or_only_has_tools_is_not_refused() -> None:
    hooks = Hooks[Any]()
    heard: list[Any] = []

    @hooks.on.event
    async def hear(ctx: RunContext[Any], event: Any) -> None:
        heard.append(event)

    coder = Coder([{"allow": "*"}], CombinedCapability([Listens(), hooks]), WrapperCapability(CodeMode()))
    assert "paid" in await coder.said()
    assert coder.paid == [5] and heard


# --- calls inside the code ---


async def test_a_call_inside_code_is_judged_and_asked_about_in_place() -> None:
    for answer, paid in (("approve", [5]), ("deny", [])):
        person = ScriptedApprover([answer])
        coder = Coder([{"allow": "run_code"}], CodeMode(), approver=person)
        assert ("permission_denied" in await coder.said()) is (not paid)
        assert coder.paid == paid and [one.tool_name for one in person.asked] == ["pay"]
    coder = Coder(
        [{"deny": "pay"}, {"allow": "*"}],
        CodeMode(),
        code=f"try:\n  await pay(amount=1)\nexcept Exception:\n  pass\n{PAYS}",
    )
    assert "the policy denies" in await coder.said() and coder.paid == []


LATER = "no run can pause inside another tool's code"


async def test_where_the_run_would_suspend_a_call_inside_code_is_refused_in_words() -> None:
    coder = Coder([{"allow": "run_code"}], CodeMode(), wait="suspend")
    assert LATER in await coder.said()
    assert coder.paid == [] and await coder.signoff.pending() == []
    [refused] = [one for one in coder.seen if one.what is CallStep.DENIED]
    assert refused.call.tool == "pay" and refused.by == "signoff" and LATER in refused.text


async def test_where_nobody_answers_in_time_the_question_is_withdrawn() -> None:
    async def silent(request: Any) -> bool:
        await asyncio.Event().wait()
        return True

    coder = Coder([{"allow": "run_code"}], CodeMode(), wait=0.01, approver=silent)
    assert LATER in await coder.said()
    assert coder.paid == [] and await coder.signoff.pending() == []


async def test_an_agent_inside_the_code_does_not_leave_its_question_behind() -> None:
    inner_gate = Signoff([], wait="suspend", memory=ApprovalMemory(file=None), nested=True)
    coder = Coder(
        [{"allow": ["run_code", "ask_other"]}], CodeMode(), code="await ask_other()\n", wait="suspend", nested=True
    )
    inner = Coder([], wait="suspend")
    inner.agent = Agent(
        FunctionModel(
            lambda messages, info: ModelResponse(parts=[ToolCallPart("pay", {"amount": 7}, tool_call_id="i1")])
        ),
        tools=[inner.pay],
        output_type=[str, DeferredToolRequests],
        capabilities=[inner_gate],
    )

    @coder.agent.tool_plain
    async def ask_other() -> str:
        return str((await inner.agent.run("pay")).output)

    assert LATER in await coder.said()
    assert inner.paid == [] and await coder.signoff.pending() == []


# --- the process dies while a call inside code is asked about ---


@pytest.mark.parametrize("how", ["in turn", pytest.param("at once", marks=pytest.mark.nightly)])
@pytest.mark.parametrize(("answer", "second"), [("approve", "2"), ("deny", ""), ("edit", "99")])
def test_a_run_that_died_inside_code_is_resumed_with_the_answer(
    tmp_path: Path, how: str, answer: str, second: str
) -> None:
    program = [sys.executable, "-m", "tests.gate.dying_coder", str(tmp_path), how]
    died = start.run([*program, ""], cwd=start.ROOT)
    assert died.returncode == -signal.SIGKILL
    said = start.run([*program, answer], cwd=start.ROOT, stdout=subprocess.PIPE, text=True, check=True).stdout
    paid = (tmp_path / "paid").read_text().split()
    if how == "at once" and answer == "deny":  # which ends the snippet, and so the calls beside it
        assert set(paid) <= {"1", "3"} and len(paid) == len(set(paid)) and "never" in said
        return
    assert sorted(paid) == sorted(filter(None, ["1", second, "3"])), "each once"
    assert f"paid {second}" in said if second else "denied: never" in said
    assert (tmp_path / "asked").read_text().split().count("2") == 1, "the answer was found"
