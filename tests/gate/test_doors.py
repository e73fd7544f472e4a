"""Every way in which PydanticAI comes to run a tool leads through the gate: see docs/internals/pydantic-ai.md."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from mcp.client.client import Client
from mcp.server.mcpserver import MCPServer
from pydantic_ai import Agent, RunContext, Tool
from pydantic_ai.capabilities import Capability
from pydantic_ai.direct import model_request
from pydantic_ai.messages import ModelRequest, ModelResponse, ToolCallPart
from pydantic_ai.output import ToolOutput
from pydantic_ai.toolsets import DynamicToolset, FunctionToolset
from starlette.testclient import TestClient
from tests.gate.agents import Till, calls, pays, returns

from signoff import ApprovalMemory, Signoff
from signoff.testing import ScriptedModel

LOOK_ONLY = [{"deny": "pay", "reason": "never"}, {"allow": "*"}]


def gate() -> Signoff:
    return Signoff(LOOK_ONLY, approver=lambda request: False, memory=ApprovalMemory(file=None))


@pytest.fixture
def till() -> Till:
    return Till()


def made(turns: list[dict[str, Any]], **options: Any) -> Agent[Any, Any]:
    own = options.pop("capabilities", [])
    return Agent(ScriptedModel(turns), capabilities=[*own, gate()], **options)


def through_another_tool(till: Till) -> Agent[Any, Any]:
    """A tool that has the tool manager make a call, as code mode does."""
    agent = made([calls(("helper", {})), {"say": "{{last}}"}], tools=[till.pay])

    @agent.tool
    async def helper(ctx: RunContext[Any]) -> str:  # pyright: ignore[reportUnusedFunction]
        assert ctx.tool_manager is not None
        return str(await ctx.tool_manager.handle_call(ToolCallPart("pay", {"amount": 5}, tool_call_id="inner")))

    return agent


def found_by_search(till: Till) -> Agent[Any, Any]:
    search = [calls(("search_tools", {"queries": ["pay"]})), calls(("pay", {"amount": 5})), {"say": "{{last}}"}]
    return made(search, tools=[Tool(till.pay, defer_loading=True)])


def loaded_later(till: Till) -> Agent[Any, Any]:
    later = Capability(id="money", description="Pays.", tools=[till.pay], defer_loading=True)
    load = [calls(("load_capability", {"id": "money"})), calls(("pay", {"amount": 5})), {"say": "{{last}}"}]
    return made(load, capabilities=[later])


DOORS: dict[str, Callable[[Till], Agent[Any, Any]]] = {
    "a function": lambda till: made(pays(5), tools=[till.pay]),
    "a toolset": lambda till: made(pays(5), toolsets=[FunctionToolset([till.pay])]),
    "made for the run": lambda till: made(pays(5), toolsets=[DynamicToolset(lambda ctx: FunctionToolset([till.pay]))]),
    "of a capability": lambda till: made(pays(5), capabilities=[Capability(tools=[till.pay])]),
    "through another tool": through_another_tool,
    "found by search": found_by_search,
    "loaded later": loaded_later,
}


@pytest.mark.parametrize("door", DOORS.values(), ids=DOORS)
async def test_a_call_is_judged_whichever_way_the_tool_came(
    door: Callable[[Till], Agent[Any, Any]], till: Till
) -> None:
    done = await door(till).run("go")
    assert till.paid == [] and "never" in str(returns(done.all_messages())[-1])


@pytest.mark.parametrize("strategy", ["early", "graceful", "exhaustive"])
@pytest.mark.parametrize("first", [True, False])
async def test_a_call_beside_the_final_output_is_judged(strategy: Any, first: bool, till: Till) -> None:
    both = [("pay", {"amount": 5}), ("final_result", {"response": "x"})]
    turns = [calls(*(both if first else both[::-1])), {"say": "x"}]
    agent = made(turns, tools=[till.pay], output_type=ToolOutput(str), end_strategy=strategy)
    assert (await agent.run("go")).output == "x"
    assert till.paid == []


def test_the_web_page_of_an_agent_is_gated(till: Till) -> None:
    page = TestClient(made(pays(5), tools=[till.pay]).to_web(), base_url="http://localhost")
    message = {"id": "m", "role": "user", "parts": [{"type": "text", "text": "go"}]}
    body = {"id": "chat", "trigger": "submit-message", "messages": [message]}
    answered = page.post("/api/chat", json=body)
    assert answered.status_code == 200 and "never" in answered.text
    assert till.paid == []


async def test_an_agent_behind_an_mcp_server_is_gated(till: Till) -> None:
    agent, server = made(pays(5), tools=[till.pay]), MCPServer("shop")

    @server.tool()
    async def ask(what: str) -> str:  # pyright: ignore[reportUnusedFunction]
        return str((await agent.run(what)).output)

    async with Client(server) as client:
        said = await client.call_tool("ask", {"what": "pay"})
    assert "never" in str(said.content) and till.paid == []


async def test_an_output_function_is_no_tool_call(till: Till) -> None:
    """It is the agent's own code, called with the run's answer: the gate does not see it."""

    def pay_out(amount: int) -> str:
        return till.pay(amount)

    agent = made([{"calls": [{"tool": "final_result", "args": {"amount": 5}}]}], output_type=pay_out)
    await agent.run("go")
    assert till.paid == [(5, "shop")]


async def test_a_response_of_a_direct_request_runs_nothing(till: Till) -> None:
    said = await model_request(ScriptedModel(pays(5)), [ModelRequest.user_text_prompt("go")])
    assert isinstance(said, ModelResponse) and till.paid == []
