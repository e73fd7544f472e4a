"""A turn of a chat is kept whole when it ends, in the same write, so that another process can go on with it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import Agent
from pydantic_ai.conversation import Conversation
from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, TextPart, ToolCallPart, UserPromptPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from tests.broker.conftest import kinds
from tests.ready import ready

from signoff import Signoff
from signoff.broker.conversations import was_said
from signoff.core.run import RunSetup, RunState, SavedRun
from signoff.gate.run_saver import Histories, conversation_of, executing
from signoff.store.sqlite import SqliteStore
from signoff.testing import ScriptedModel

TURNS = [{"calls": [{"tool": "look"}]}, {"say": "It is {{last}}."}]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    made = SqliteStore(ready(tmp_path / "signoff.db"))
    yield made
    made.close()


def agent_with(store: SqliteStore, seen: Any, model: Any = None) -> tuple[Agent[None, str], Signoff]:
    gate = Signoff([{"allow": "look"}], store=store)
    agent = Agent(model or ScriptedModel(TURNS), capabilities=[gate])

    @agent.tool_plain
    def look() -> Any:
        return seen

    return agent, gate


async def turn(agent: Agent[None, str], gate: Signoff, *, chat: bool, **more: Any) -> SavedRun:
    """One run to its end, as the store has it then."""
    run = await gate.broker.runs.begin(SavedRun(id="run1", prompt="go", setup=RunSetup(chat=chat)))
    with executing(run):
        await agent.run("go", **more)
    return await gate.broker.runs.get("run1")


async def said(gate: Signoff, run: SavedRun) -> Conversation | None:
    """The conversation, as a process reads it that has never seen it."""
    return await conversation_of(gate.broker, Histories(), run)


async def test_a_turn_is_kept_whole(store: SqliteStore) -> None:
    agent, gate = agent_with(store, "sunny")
    run = await turn(agent, gate, chat=True)
    assert run.state is RunState.DONE
    assert was_said(run)
    kept = await said(gate, run)
    assert kept is not None
    assert [type(one).__name__ for one in kept.messages] == ["ModelRequest", "ModelResponse"] * 2
    assert isinstance(last := kept.messages[-1], ModelResponse) and last.text == "It is sunny."
    assert kept.usage.requests == 2
    assert kept.deferred_tool_requests is None
    assert (await kinds(gate.broker, run="run1"))[-1] == "run ended"


async def test_a_run_that_is_no_turn_is_not(store: SqliteStore) -> None:
    agent, gate = agent_with(store, "sunny")
    run = await turn(agent, gate, chat=False)
    assert not was_said(run)
    segments = await gate.broker.runs.messages(run)
    assert sum(one.count for one in segments) < 4, "the answer is not stored"


async def test_what_cannot_be_kept_whole_does_not_pretend_to_be(store: SqliteStore) -> None:
    def answers(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        return ModelResponse(parts=[TextPart("Done.", provider_details={"odd": object()})])

    agent, gate = agent_with(store, "", FunctionModel(answers))
    run = await turn(agent, gate, chat=True)
    assert (run.state, run.detail) == (RunState.DONE, "Done.")
    assert (run.tip, run.rest, was_said(run)) == ("", "", False)


async def test_messages_that_the_store_lost_are_stored_again(store: SqliteStore) -> None:
    agent, gate = agent_with(store, "", ScriptedModel([{"say": "then"}, {"say": "now"}]))
    before: list[ModelMessage] = [
        ModelRequest(parts=[UserPromptPart("hi")]),
        ModelResponse(parts=[TextPart("are you there?")]),
    ]
    gate.histories.remember("not-in-the-store", before)
    run = await turn(agent, gate, chat=True, message_history=before)
    assert gate.histories.of("not-in-the-store") is None, "it was found out"
    kept = await said(gate, run)
    assert kept is not None
    assert [getattr(one, "text", "") for one in kept.messages] == ["", "are you there?", "", "now"]


async def test_messages_that_the_store_lost_are_stored_again_with_the_next_step(store: SqliteStore) -> None:
    """A step is written when the writer comes to it: before the next one here, as on a machine that is busy."""
    steps: list[ModelResponse] = []

    async def model(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        await store.flush()
        part = ToolCallPart("look", {}) if len(steps) < 2 else TextPart("now")
        steps.append(ModelResponse(parts=[part]))
        return steps[-1]

    agent, gate = agent_with(store, "sunny", FunctionModel(model))
    before: list[ModelMessage] = [
        ModelRequest(parts=[UserPromptPart("hi")]),
        ModelResponse(parts=[TextPart("are you there?")]),
    ]
    gate.histories.remember("not-in-the-store", before)
    run = await turn(agent, gate, chat=True, message_history=before)
    kept = await said(gate, run)
    assert kept is not None and len(kept.messages) == 8
    assert [getattr(one, "text", "") for one in kept.messages[:2]] == ["", "are you there?"]
