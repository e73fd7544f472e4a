"""The protocol's own client, and what it brings for agent frameworks, against a real server on loopback.

Nothing else here needs them: where they are not installed, nothing is tested.
"""

from __future__ import annotations

import asyncio
import importlib.util
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from tests.server.aap_desk import LOOK, REFUND, AapDesk, Agent
from tests.server.live_server import serving

from signoff.core.request import ApprovalRequest, State
from signoff.testing.office import soon

HOW = ".venv/bin/uv pip install --group aap brings it"


def needs(*packages: str) -> pytest.MarkDecorator:
    """Skipped where one is not installed."""
    missing = [one for one in ("agentapprovalprotocol", *packages) if importlib.util.find_spec(one) is None]
    return pytest.mark.skipif(bool(missing), reason=f"no {', '.join(missing)} here: {HOW}")


@dataclass
class Place:
    """The server, an agent's credential for it, and the tools that the agent has."""

    desk: AapDesk
    agent: Agent
    url: str
    ran: list[tuple[Any, ...]] = field(default_factory=list[tuple[Any, ...]])
    clients: list[Any] = field(default_factory=list[Any])

    def client(self, agent: Agent | None = None) -> Any:
        """The protocol's own client, with the credential of an agent."""
        from agentapprovalprotocol import AsyncClient

        made = AsyncClient(self.url, (agent or self.agent).secret, retry_budget=1)
        self.clients.append(made)
        return made

    def gate(self, **options: Any) -> Any:
        """What frameworks are given."""
        from agentapprovalprotocol import AsyncGate

        return AsyncGate(self.client(), **options)

    def look(self, at: str) -> str:
        """Look at an order."""
        self.ran.append(("look", at))
        return f"{at} is there"

    def refund(self, order: str, amount: int) -> str:
        """Refund an order."""
        self.ran.append(("refund", order, amount))
        return f"{amount} refunded"

    async def asked(self) -> ApprovalRequest:
        """The next request that waits for people."""

        async def waits() -> bool:
            return bool(await self.desk.broker.pending())

        await soon(waits, "nobody was asked")
        return await self.desk.only()

    async def meanwhile(self, work: Awaitable[Any], **answer: Any) -> tuple[Any, ApprovalRequest]:
        """What the agent's work gives while somebody answers the one question of it; and how that stands then."""
        task = asyncio.ensure_future(work)
        request = await self.asked()
        assert self.ran == [], "nothing runs before it is approved"
        await self.desk.answer(request.id, **answer)
        return await task, await self.desk.broker.get(request.id)


@pytest.fixture
async def place(tmp_path: Path) -> AsyncIterator[Place]:
    desk = AapDesk(tmp_path)
    async with serving(desk.app) as url:
        place = Place(desk, await desk.instance(), f"{url}/aap")
        yield place
        desk.state.stopping.set()  # whoever polls is let go
        for client in place.clients:
            await client.aclose()
    await desk.close()


# --- the client itself ---


def call(body: dict[str, Any], **more: Any) -> Any:
    from agentapprovalprotocol import Call

    return Call(key=str(uuid4()), tool=body["tool"], arguments=body["arguments"], **more)


@needs()
async def test_the_client_is_allowed_and_denied_at_once(place: Place) -> None:
    allowed = await place.gate().check(call(LOOK, reasoning="to see", context={"n": 1.5}, server="orders"))
    assert allowed
    assert await allowed.report("succeeded", "seen")
    denied = await place.gate().check(call({**REFUND, "arguments": {"order": "é", "amount": 501}}))
    assert (bool(denied), denied.status) == (False, "denied")
    assert "more than 500 is refunded by the bank" in denied.reason


@needs()
async def test_the_client_waits_for_a_person(place: Place) -> None:
    verdict, request = await place.meanwhile(place.gate().check(call(REFUND)), note="fine")
    assert verdict and request.state is State.CLAIMED
    assert await verdict.report("failed", "no such order")
    assert (await place.desk.broker.get(request.id)).state is State.FAILED


@needs()
async def test_the_client_is_told_a_no_and_what_to_send_instead(place: Place) -> None:
    verdict, _ = await place.meanwhile(place.gate().check(call(REFUND)), decision="deny", note="not this one")
    assert not verdict and "not this one" in verdict.reason
    verdict, _ = await place.meanwhile(place.gate().check(call(REFUND)), args={"order": "A1", "amount": 9})
    assert not verdict and 'call refund with {"order": "A1", "amount": 9}' in verdict.reason


@needs()
async def test_the_client_gives_up_and_withdraws(place: Place) -> None:
    verdict = await place.gate(wait_limit=0.1).check(call(REFUND))
    assert not verdict
    assert await place.desk.broker.pending() == []


@needs()
async def test_the_client_is_told_that_its_time_is_up(place: Place) -> None:
    verdict = await place.gate(timeout="1s").check(call(REFUND))
    assert (bool(verdict), verdict.status) == (False, "expired")


@needs()
async def test_a_call_that_is_seen_again_runs_once(place: Place) -> None:
    one, own = call(LOOK), place.gate()
    assert await own.check(one)
    again = await own.check(one)
    assert (bool(again), again.status) == (False, "consumed")


@needs()
async def test_the_client_knows_our_conflicts(place: Place) -> None:
    from agentapprovalprotocol import ConflictError
    from agentapprovalprotocol._client import CredentialRefused, NotFound

    client, stranger = place.client(), place.client(await place.desk.instance())
    asked = await client.create(LOOK, "one")
    assert (await client.create(LOOK, "one")).id == asked.id
    with pytest.raises(ConflictError) as caught:
        await client.create({**LOOK, "timeout": "31m"}, "one")
    assert caught.value.code == "idempotency_conflict"
    with pytest.raises(NotFound):
        await stranger.get(asked.id)
    with pytest.raises(ConflictError) as caught:
        await client.cancel(asked.id)
    assert caught.value.code == "already_terminal"
    with pytest.raises(ConflictError) as caught:
        await client.report_outcome(asked.id, "succeeded")
    assert caught.value.code == "not_consumed"
    consumed = await client.consume(asked.id, "run-1")
    assert consumed.consumption is not None
    with pytest.raises(ConflictError) as caught:
        await client.consume(asked.id, "run-2")
    assert caught.value.code == "already_consumed"
    told = await client.report_outcome(asked.id, "succeeded", "é")
    assert told.consumption and told.consumption.outcome and told.consumption.outcome.note == "é"
    with pytest.raises(ConflictError) as caught:
        await client.report_outcome(asked.id, "failed")
    assert caught.value.code == "outcome_conflict"
    await place.desk.broker.aap.revoke(place.agent.id, by="ana")
    with pytest.raises(CredentialRefused):
        await client.get(asked.id)


@needs()
async def test_a_receiver_is_told_that_nobody_is_called_back(place: Place) -> None:
    from agentapprovalprotocol import Receiver
    from agentapprovalprotocol._client import ProvisionError

    program = await place.desk.provisioner()
    with pytest.raises(ProvisionError, match="unsupported_delivery_type"):
        await Receiver(resumers={}).provision(
            provider_url=place.url, provisioner_token=program.secret, url="https://agent.example.com/aap/events"
        )


# --- frameworks ---

LOOKS: tuple[str, dict[str, Any]] = ("look", {"at": "A1"})
DENIED: tuple[str, dict[str, Any]] = ("refund", {"order": "A1", "amount": 501})
ASKED: tuple[str, dict[str, Any]] = ("refund", {"order": "A1", "amount": 40})
Play = Callable[[Place, tuple[str, dict[str, Any]]], Awaitable[str]]
"""Runs an agent whose model makes one call; what it reads of that."""


async def langgraph(place: Place, made: tuple[str, dict[str, Any]]) -> str:
    from agentapprovalprotocol.langgraph import ApprovalMiddleware
    from langchain.agents import create_agent
    from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
    from langchain_core.messages import AIMessage

    class Scripted(GenericFakeChatModel):
        def bind_tools(self, tools: Any, **options: Any) -> Any:
            return self

    name, args = made
    turns = [AIMessage("", tool_calls=[{"name": name, "args": args, "id": "call-1"}]), AIMessage("done")]
    agent = create_agent(
        Scripted(messages=iter(turns)),
        tools=[place.look, place.refund],
        middleware=[ApprovalMiddleware(async_gate=place.gate())],
    )
    done = await agent.ainvoke({"messages": [("user", "go")]})
    return str(done["messages"][-2].content)


async def pydantic_ai(place: Place, made: tuple[str, dict[str, Any]]) -> str:
    from agentapprovalprotocol.pydantic_ai import ApprovalCapability
    from pydantic_ai import Agent as PydanticAgent
    from pydantic_ai.messages import ToolReturnPart

    from signoff.testing import ScriptedModel

    name, args = made
    model = ScriptedModel([{"calls": [{"tool": name, "args": args}]}, {"say": "done"}])
    agent = PydanticAgent(model, tools=[place.look, place.refund], capabilities=[ApprovalCapability(gate=place.gate())])
    result = await agent.run("go")
    parts = [part for message in result.all_messages() for part in message.parts]
    return next(str(part.content) for part in parts if isinstance(part, ToolReturnPart))


async def openai_agents(place: Place, made: tuple[str, dict[str, Any]]) -> str:
    import json

    from agentapprovalprotocol.openai_agents import Approvals
    from agents import Agent as OpenAiAgent
    from agents import ModelResponse, RunConfig, Runner, Usage, function_tool
    from agents.models.interface import Model
    from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

    name, args = made
    text = ResponseOutputText(text="done", type="output_text", annotations=[])
    turns: list[Any] = [
        ResponseFunctionToolCall(name=name, arguments=json.dumps(args), call_id="call-1", type="function_call"),
        ResponseOutputMessage(id="1", content=[text], role="assistant", status="completed", type="message"),
    ]

    class Scripted(Model):
        async def get_response(self, *given: Any, **options: Any) -> ModelResponse:
            return ModelResponse(output=[turns.pop(0)], usage=Usage(), response_id=None)

        def stream_response(self, *given: Any, **options: Any) -> Any:
            raise NotImplementedError

    agent = OpenAiAgent(
        name="Support", model=Scripted(), tools=[function_tool(place.look), function_tool(place.refund)]
    )
    protected = Approvals(gate=place.gate()).protect(agent)
    result = await Runner.run(protected, "go", run_config=RunConfig(tracing_disabled=True))
    return next(str(one.output) for one in result.new_items if one.type == "tool_call_output_item")


frameworks = pytest.mark.parametrize(
    "play",
    [
        pytest.param(langgraph, marks=needs("langchain", "langgraph")),
        pytest.param(pydantic_ai, marks=needs("pydantic_ai")),
        pytest.param(openai_agents, marks=needs("agents")),
    ],
)


@frameworks
async def test_a_framework_runs_what_is_allowed_and_not_what_is_denied(place: Place, play: Play) -> None:
    assert await play(place, LOOKS) == "A1 is there"
    assert "more than 500 is refunded by the bank" in await play(place, DENIED)
    assert place.ran == [("look", "A1")]


@frameworks
async def test_a_framework_waits_for_a_person_and_runs_once(place: Place, play: Play) -> None:
    read, request = await place.meanwhile(play(place, ASKED))
    assert (read, place.ran) == ("40 refunded", [("refund", "A1", 40)])
    assert request.state is State.SUCCEEDED, "and says so"


@frameworks
async def test_a_framework_is_told_a_persons_no(place: Place, play: Play) -> None:
    read, _ = await place.meanwhile(play(place, ASKED), decision="deny", note="not this customer")
    assert "not this customer" in read
    assert place.ran == []
