"""Questions that people ask back, answered by the model that made the call, in a request beside its run.

The model gets the run's conversation so far and the question, and no tools. The run does not change: it still waits,
and continues with its own history. The model's answer is saved as a comment, and is a claim.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from signoff.core.comment import Comment, CommentKind
from signoff.core.people import Actor, ActorKind
from signoff.core.request import State
from signoff.errors import RequestError
from signoff.side_thread import in_side_thread
from signoff.wiring.job import RunOptions, job_of

if TYPE_CHECKING:
    from signoff.broker import Broker
    from signoff.core.request import ApprovalRequest
    from signoff.core.run import SavedRun

MOST_ANSWERS = 5
"""Maximum of answers by models about one request. Each one costs a request to a provider."""
VIA = "agent"
"""The channel name in the record for answers by a model."""


async def answer_question(broker: Broker, question: Comment, options: RunOptions | None = None) -> Comment:
    """Have the agent that waits for a request answer a question about it. Returns the answer as a comment.

    Raises `RequestError` if it cannot: the request is no longer pending, its run is not saved, the model fails or says
    nothing, or the limit `MOST_ANSWERS` is reached; `WrongUse` if a program started the run.
    """
    from signoff.workers.side_question import side_answer

    if question.kind is not CommentKind.QUESTION:
        raise RequestError(f"comment {question.id} asks nothing")
    request = await broker.get(question.request)
    run = await run_to_ask(broker, request)
    # In a thread, because imports may take seconds.
    job = await in_side_thread(lambda: job_of(run, options or RunOptions(unattended="park")))
    try:
        asked = f"The call {request.tool_name} waits for approval. {question.by.name} asks: {question.text}"
        text = await side_answer(job.runner, run, asked)
    finally:
        job.close()
    by = Actor(name=job.name, kind=ActorKind.MODEL, via=VIA)
    return await broker.comments.add(request.id, text, by=by, kind=CommentKind.ANSWER, answers=question.id)


async def run_to_ask(broker: Broker, request: ApprovalRequest) -> SavedRun:
    """Return the run whose agent can be asked about a request. Raises `RequestError` if none can."""
    if request.state is not State.PENDING:
        raise RequestError(f"request {request.id} is {request.state}: its agent can no longer be asked")
    said = await broker.comments.of(request.id)
    if sum(one.is_claim for one in said) >= MOST_ANSWERS:
        raise RequestError(f"models have answered {MOST_ANSWERS} questions about request {request.id}: ask a person")
    run = await broker.runs.inside(request.run) if request.run else None
    if run is None:
        raise RequestError(f"request {request.id} belongs to no saved run: its agent cannot be asked")
    return run
