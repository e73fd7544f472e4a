"""Tools that the model's provider executes: offered only where the policy allows them, by every way they come."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from pydantic_ai import Agent
from pydantic_ai.capabilities import AbstractCapability, NativeTool
from pydantic_ai.exceptions import ModelHTTPError
from pydantic_ai.messages import ModelResponse, TextPart
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.models.wrapper import WrapperModel
from pydantic_ai.native_tools import AbstractNativeTool, CodeExecutionTool, WebSearchTool
from pydantic_ai.profiles import ModelProfile
from tests.gate.realtime import Voice

from signoff import ApprovalMemory, Signoff
from signoff.errors import WrongUse

ALLOW_SEARCH = {"allow": {"tool": "web_search", "toolset": "native"}}
REFUSED = "would offer `code_execution`"


def gate(rules: Any) -> Signoff:
    return Signoff(rules, approver=lambda request: False, memory=ApprovalMemory(file=None))


async def test_native_tools_are_removed_unless_allowed() -> None:

    offered: list[list[str]] = []

    def answer(messages: Any, info: Any) -> ModelResponse:
        offered.append(sorted(tool.kind for tool in info.model_request_parameters.native_tools))
        return ModelResponse(parts=[TextPart("done")])

    profile = ModelProfile(supported_native_tools=frozenset({WebSearchTool, CodeExecutionTool}))
    for rules in (
        [],
        [{"allow": {"tool": "web_search", "toolset": "native"}}],
        [{"ask": "web_search"}],
        [{"allow": "*"}],
    ):
        agent = Agent(
            FunctionModel(answer, profile=profile),
            capabilities=[gate(rules), *_native(WebSearchTool(), CodeExecutionTool())],
        )
        await agent.run("go")
    assert offered == [[], ["web_search"], [], ["code_execution", "web_search"]]


async def test_native_tools_that_come_with_an_attempt_at_another_model_are_removed_too() -> None:
    from pydantic_ai.capabilities import ModelFallback

    offered: list[list[str]] = []

    def fails(messages: Any, info: Any) -> ModelResponse:
        offered.append(sorted(tool.kind for tool in info.model_request_parameters.native_tools))
        raise ModelHTTPError(503, "first")

    def answers(messages: Any, info: Any) -> ModelResponse:
        offered.append(sorted(tool.kind for tool in info.model_request_parameters.native_tools))
        return ModelResponse(parts=[TextPart("done")])

    class Adds(AbstractCapability[Any]):
        """Offers a tool at the last moment."""

        async def prepare_model_request(self, ctx: Any, request_context: Any) -> Any:
            parameters = request_context.model_request_parameters
            tools = [*parameters.native_tools, CodeExecutionTool()]
            request_context.model_request_parameters = replace(parameters, native_tools=tools)
            return request_context

    def search(ctx: Any) -> Any:
        return WebSearchTool() if ctx.model is second else None

    profile = ModelProfile(supported_native_tools=frozenset({WebSearchTool, CodeExecutionTool}))
    first, second = FunctionModel(fails, profile=profile), FunctionModel(answers, profile=profile)
    for rules in ([], [{"allow": "*"}]):
        more = [ModelFallback(second), NativeTool(search), Adds()]
        assert (await Agent(first, capabilities=[*more, gate(rules)]).run("go")).output == "done"
    assert offered == [[], [], ["code_execution"], ["code_execution", "web_search"]]


def _native(*tools: Any) -> list[Any]:
    return [NativeTool(tool) for tool in tools]


# --- in the settings of a model ---


async def test_tools_that_model_settings_offer_are_judged_as_any_other() -> None:
    seen: list[Any] = []

    def answer(messages: Any, info: Any) -> ModelResponse:
        seen.append([one["type"] for one in (info.model_settings or {}).get("openai_native_tools", ())])
        return ModelResponse(parts=[TextPart("done")])

    tools = [{"type": "web_search_2025_08_26"}, {"type": "code_interpreter"}, {"type": "mcp"}]
    settings: Any = {"openai_native_tools": tools, "temperature": 0.5}
    for rules in ([], [ALLOW_SEARCH], [{"allow": ["code_execution", "mcp_server"]}], [{"allow": "*"}]):
        by_agent = Agent(FunctionModel(answer), model_settings=settings, capabilities=[gate(rules)])
        by_model = Agent(FunctionModel(answer, settings=settings), capabilities=[gate(rules)])
        inside = Agent(WrapperModel(FunctionModel(answer, settings=settings)), capabilities=[gate(rules)])
        plain = Agent(FunctionModel(answer), capabilities=[gate(rules)])
        for agent, given in ((by_agent, None), (by_model, None), (inside, None), (plain, settings)):
            await agent.run("go", model_settings=given)
    search, others = ["web_search_2025_08_26"], ["code_interpreter", "mcp"]
    assert seen == [[]] * 4 + [search] * 4 + [others] * 4 + [[*search, *others]] * 4


# --- realtime sessions ---


async def connected(agent: Agent[Any, Any], **options: Any) -> list[str] | str:
    """Open a session and close it; return the tools it was offered, or why it was refused."""
    model = Voice()
    try:
        async with agent.realtime(model, **options).session():
            pass
    except WrongUse as refused:
        assert model.offered == []
        return str(refused)
    return model.offered[0]


async def found(ctx: Any) -> AbstractNativeTool | None:
    return CodeExecutionTool()


@pytest.mark.filterwarnings("ignore:.*realtime sessions never call")
async def test_a_session_that_would_offer_what_is_not_allowed_is_refused() -> None:
    search, run = NativeTool(WebSearchTool()), NativeTool(CodeExecutionTool())
    assert await connected(Agent(capabilities=[search, gate([ALLOW_SEARCH])])) == ["web_search"]
    assert await connected(Agent(capabilities=[search, run, gate([{"allow": "*"}])])) == [
        "code_execution",
        "web_search",
    ]
    assert await connected(Agent(capabilities=[gate([])])) == []
    for rules in ([], [{"deny": "*"}], [{"ask": "code_execution"}], [ALLOW_SEARCH]):
        for brings in (run, NativeTool(found)):
            assert REFUSED in await connected(Agent(capabilities=[brings, gate(rules)]))
            for_one = Agent(capabilities=[gate(rules)])
            assert REFUSED in await connected(for_one, capabilities=[brings])
            assert REFUSED in await connected(Agent(), capabilities=[brings, gate(rules)])
            with (agent := Agent(capabilities=[gate(rules)])).override(native_tools=[CodeExecutionTool()]):
                assert REFUSED in await connected(agent)
