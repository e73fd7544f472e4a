"""Ask an agent's model a side question during a run: with the conversation so far, without tools, for one answer."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Any

from pydantic_ai import Agent
from pydantic_ai.exceptions import AgentRunError, UsageLimitExceeded
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    SystemPromptPart,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.settings import ModelSettings
from pydantic_ai.usage import UsageLimits

from signoff.core.request_context import shortened
from signoff.core.run import SavedRun
from signoff.errors import RequestError, SignoffError
from signoff.gate.run_saver import conversation_of
from signoff.workers.runtime import Runner

LONGEST_ANSWER = 1_500
"""Characters."""
MOST_TOKENS = 600
"""Tokens of an answer."""
PATIENCE = timedelta(minutes=1)
_LONGEST_RESULT = 4_000
"""Characters of a tool's result."""
_INSTRUCTIONS = (
    "You are asked about a tool call that you made and that waits for a person's approval. It has not run. "
    "Answer the person's question in a few plain sentences, from what was said in this conversation. "
    "If you do not know, say so. You cannot call tools now, and your answer decides nothing."
)


async def side_answer(runner: Runner, run: SavedRun, question: str) -> str:
    """Return what the model of a saved run answers to a question. The run is not changed.

    Raises `RequestError` if nothing of the run is saved yet, or the model fails, says nothing, or reaches the timeout.
    """
    said = await conversation_of(runner.gate.broker, runner.gate.histories, run)
    if said is None:
        raise RequestError(f"run {run.id} is not saved yet: its agent cannot be asked")
    agent: Agent[None, str] = Agent(runner.model or runner.agent.model, instructions=_INSTRUCTIONS)
    try:
        async with asyncio.timeout(PATIENCE.total_seconds()):
            result = await agent.run(
                question,
                message_history=list(_in_words(said.messages)),
                usage_limits=UsageLimits(request_limit=1),
                model_settings=ModelSettings(max_tokens=MOST_TOKENS),
                infer_name=False,
            )
    except TimeoutError as error:
        raise RequestError(f"the agent did not answer within {PATIENCE.seconds} seconds") from error
    except SignoffError:
        raise
    except UsageLimitExceeded as error:  # one request is allowed: a second one would be the result of a tool
        raise RequestError(
            "the agent's model called a tool instead of answering; ask again, or ask a person"
        ) from error
    except AgentRunError as error:
        raise RequestError(f"the agent could not answer: {error}") from error
    text = shortened(result.output, LONGEST_ANSWER)
    if not text:
        raise RequestError("the agent gave no answer")
    return text


def _in_words(messages: Sequence[ModelMessage]) -> Iterator[ModelMessage]:
    """Yield the messages with calls and results as text: providers require the tools of a call to be declared."""
    for message in messages:
        parts = list(_told(message))
        if not parts:
            continue
        if isinstance(message, ModelResponse):
            yield ModelResponse(parts=parts)
        else:
            yield ModelRequest(parts=parts)


def _told(message: ModelMessage) -> Iterator[Any]:
    for part in message.parts:
        match part:
            case SystemPromptPart() | UserPromptPart() | TextPart():
                yield part
            case ToolCallPart():
                yield TextPart(f"(I call the tool {part.tool_name} with {part.args_as_json_str()})")
            case ToolReturnPart():
                result = shortened(part.model_response_str(), _LONGEST_RESULT)
                yield UserPromptPart(f"(the tool {part.tool_name} returned: {result})")
            case _:
                pass
