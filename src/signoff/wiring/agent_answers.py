"""Questions that people ask back, answered by the model that made the call: a request beside its run.

The model gets what was said in the run so far and the question, and no tools. Nothing of the run changes: it waits as
it did, and goes on with its own history. What the model answers is a comment of its own, and a claim.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from pydantic_ai import Agent
from pydantic_ai.exceptions import AgentRunError
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

from signoff.core.comment import Comment, CommentKind
from signoff.core.people import Actor, ActorKind
from signoff.core.request import State
from signoff.core.request_context import shortened
from signoff.errors import RequestError
from signoff.gate.saving import conversation_of
from signoff.wiring.job import RunOptions, job_of

if TYPE_CHECKING:
    from signoff.broker import Broker
    from signoff.core.request import ApprovalRequest
    from signoff.wiring.job import Job

MOST_ANSWERS = 5
"""Answers that models give about one request: each costs a request to a provider."""
LONGEST_ANSWER = 1_500
"""Characters."""
MOST_TOKENS = 600
"""Of an answer."""
PATIENCE = timedelta(minutes=1)
VIA = "agent"
"""How the record says that a model answered."""
_LONGEST_RESULT = 4_000
"""Characters of what one tool returned."""
_INSTRUCTIONS = (
    "You are asked about a tool call that you made and that waits for a person's approval. It has not run. "
    "Answer the person's question in a few plain sentences, from what was said in this conversation. "
    "If you do not know, say so. You cannot call tools now, and your answer decides nothing."
)


async def answer_question(broker: Broker, question: Comment, options: RunOptions | None = None) -> Comment:
    """Have the agent that waits for a request answer a question about it, and put the answer beside the question.

    Raises `RequestError` where it cannot: the request waits no longer, its run is not kept or was begun by a program
    (`WrongUse`), the model fails or says nothing, or models have answered often enough about this request.
    """
    request = await broker.get(question.request)
    await _refuse(broker, request, question)
    run = await broker.runs.inside(request.run) if request.run else None
    if run is None:
        raise RequestError(f"request {request.id} belongs to no run that is kept: its agent cannot be asked")
    job = job_of(run, options or RunOptions(unattended="park"))
    try:
        said = await conversation_of(broker, job.runner.gate.histories, run)
        if said is None:
            raise RequestError(f"nothing of run {run.id} is kept yet: its agent cannot be asked")
        text = await _asked(job, [*_in_words(said.messages)], request, question)
    finally:
        job.close()
    by = Actor(name=job.name, kind=ActorKind.MODEL, via=VIA)
    return await broker.comments.add(request.id, text, by=by, kind=CommentKind.ANSWER, answers=question.id)


async def _refuse(broker: Broker, request: ApprovalRequest, question: Comment) -> None:
    if question.kind is not CommentKind.QUESTION:
        raise RequestError(f"comment {question.id} asks nothing")
    if request.state is not State.PENDING:
        raise RequestError(f"request {request.id} is {request.state}: its agent is not asked any longer")
    said = await broker.comments.of(request.id)
    if sum(one.is_claim for one in said) >= MOST_ANSWERS:
        raise RequestError(f"models have answered {MOST_ANSWERS} questions about request {request.id}: ask a person")


async def _asked(job: Job, said: Sequence[ModelMessage], request: ApprovalRequest, question: Comment) -> str:
    runner = job.runner
    agent: Agent[None, str] = Agent(runner.model or runner.agent.model, instructions=_INSTRUCTIONS)
    prompt = f"The call {request.tool_name} waits for approval. {question.by.name} asks: {question.text}"
    try:
        async with asyncio.timeout(PATIENCE.total_seconds()):
            result = await agent.run(
                prompt,
                message_history=said,
                usage_limits=UsageLimits(request_limit=1),
                model_settings=ModelSettings(max_tokens=MOST_TOKENS),
                infer_name=False,
            )
    except TimeoutError as error:
        raise RequestError(f"the agent did not answer within {PATIENCE.seconds} seconds") from error
    except AgentRunError as error:
        raise RequestError(f"the agent could not answer: {error}") from error
    text = shortened(result.output, LONGEST_ANSWER)
    if not text:
        raise RequestError("the agent gave no answer")
    return text


def _in_words(messages: Sequence[ModelMessage]) -> Iterator[ModelMessage]:
    """What was said, with calls and their results told in words: providers want tools declared that calls are of."""
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
