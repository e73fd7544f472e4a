"""Questions that people ask back, answered by the model that made the call: a request beside its run.

The model gets what was said in the run so far and the question, and no tools. Nothing of the run changes: it waits as
it did, and goes on with its own history. What the model answers is a comment of its own, and a claim.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from signoff.core.comment import Comment, CommentKind
from signoff.core.people import Actor, ActorKind
from signoff.core.request import State
from signoff.errors import RequestError
from signoff.wiring.job import RunOptions, job_of
from signoff.wiring.side_thread import in_side_thread

if TYPE_CHECKING:
    from signoff.broker import Broker
    from signoff.core.request import ApprovalRequest
    from signoff.core.run import SavedRun

MOST_ANSWERS = 5
"""Answers that models give about one request: each costs a request to a provider."""
VIA = "agent"
"""How the record says that a model answered."""


async def answer_question(broker: Broker, question: Comment, options: RunOptions | None = None) -> Comment:
    """Have the agent that waits for a request answer a question about it, and put the answer beside the question.

    Raises `RequestError` where it cannot: the request waits no longer, its run is not kept, the model fails or says
    nothing, or models have answered often enough about this request; `WrongUse` where a program began the run.
    """
    from signoff.workers.side_question import side_answer

    if question.kind is not CommentKind.QUESTION:
        raise RequestError(f"comment {question.id} asks nothing")
    request = await broker.get(question.request)
    run = await run_to_ask(broker, request)
    # In a thread: what it imports may take seconds.
    job = await in_side_thread(lambda: job_of(run, options or RunOptions(unattended="park")))
    try:
        asked = f"The call {request.tool_name} waits for approval. {question.by.name} asks: {question.text}"
        text = await side_answer(job.runner, run, asked)
    finally:
        job.close()
    by = Actor(name=job.name, kind=ActorKind.MODEL, via=VIA)
    return await broker.comments.add(request.id, text, by=by, kind=CommentKind.ANSWER, answers=question.id)


async def run_to_ask(broker: Broker, request: ApprovalRequest) -> SavedRun:
    """The run whose agent can be asked about a request. Raises `RequestError` where none can."""
    if request.state is not State.PENDING:
        raise RequestError(f"request {request.id} is {request.state}: its agent can no longer be asked")
    said = await broker.comments.of(request.id)
    if sum(one.is_claim for one in said) >= MOST_ANSWERS:
        raise RequestError(f"models have answered {MOST_ANSWERS} questions about request {request.id}: ask a person")
    run = await broker.runs.inside(request.run) if request.run else None
    if run is None:
        raise RequestError(f"request {request.id} belongs to no saved run: its agent cannot be asked")
    return run
