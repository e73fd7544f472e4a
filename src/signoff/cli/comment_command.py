"""`signoff comment`, `ask-back` and `reply`: comments on a pending request. They decide nothing."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

import click

from signoff.cli import id_completion, shared_options
from signoff.cli.desk_command import Printed, on_desk
from signoff.cli.local_desk import LocalDesk
from signoff.cli.request_report import comment_text
from signoff.cli.terminal_text import safe
from signoff.core.comment import CommentKind
from signoff.views.json_form import fields_of
from signoff.views.request_view import CommentView, RequestView
from signoff.wiring.agent_answers import answer_question
from signoff.wiring.job import RunOptions

if TYPE_CHECKING:
    from signoff.cli.approval_desk import ApprovalDesk

_DONE = {"note": "said", "question": "asked back", "answer": "answered"}


@click.command(no_args_is_help=True)
@click.argument("request_id", metavar="ID", shell_complete=id_completion.waiting)
@click.argument("text", metavar="TEXT")
@shared_options.who
@shared_options.as_json
@on_desk()
async def comment(desk: ApprovalDesk, request_id: str, text: str) -> Printed:
    """Add a comment to a request, for its approvers. Every card of the request shows it.

    \b
    Example:
      signoff comment k3f9 "the customer called, this is right"
    """
    return _told(*await desk.say(request_id, text, CommentKind.NOTE))


@click.command(no_args_is_help=True)
@click.argument("request_id", metavar="ID", shell_complete=id_completion.pending)
@click.argument("text", metavar="TEXT")
@click.option("--agent", is_flag=True, help="Let the agent's model answer now, from the conversation of its run.")
@shared_options.who
@shared_options.as_json
@on_desk()
async def ask_back(desk: ApprovalDesk, request_id: str, text: str, agent: bool) -> AsyncIterator[Printed]:
    """Ask a question about a request before you decide. The request stays open.

    The requester of the run, or the owner of the agent, answers with `signoff reply`. With --agent, the model that made
    the call is asked now: it gets the conversation of its run and the question, but no tools. The run does not change.
    Its reply is a claim; signoff does not verify it.

    \b
    Examples:
      signoff ask-back k3f9 "Which invoice is this for?"
      signoff ask-back k3f9 "Why not the sandbox?" --agent
    """
    request, said = await desk.say(request_id, text, CommentKind.QUESTION, asks_agent=agent)
    yield _told(request, said)
    if not agent:
        return
    if isinstance(desk, LocalDesk):
        yield _told(request, await _agent_answer(desk, request.id, said.id))
    else:
        yield Printed(notes=[f"The server asks the agent. To read the reply: signoff show {safe(request.id)}"])


@click.command(no_args_is_help=True)
@click.argument("request_id", metavar="ID", shell_complete=id_completion.waiting)
@click.argument("text", metavar="TEXT")
@click.option("--to", "question", metavar="QUESTION", default="", help="ID of the question, if there are several.")
@shared_options.who
@shared_options.as_json
@on_desk()
async def reply(desk: ApprovalDesk, request_id: str, text: str, question: str) -> Printed:
    """Answer a question about a request. `signoff show` lists the questions with their IDs.

    \b
    Examples:
      signoff reply k3f9 "Invoice 4711, from March."
      signoff reply k3f9 "Yes." --to p8d2
    """
    return _told(*await desk.say(request_id, text, CommentKind.ANSWER, question))


async def _agent_answer(desk: LocalDesk, request_id: str, question: str) -> CommentView:
    """Ask the agent's model the question; return its reply, once it is stored."""
    request = await desk.broker.get(request_id)
    asked = next(one for one in await desk.broker.comments.of(request_id) if one.id == question)
    options = RunOptions(store=desk.address, unattended="park")
    return CommentView.of(await answer_question(desk.broker, asked, options), request.secrets)


def _told(request: RequestView, said: CommentView) -> Printed:
    lines = [f"{_DONE[said.kind]}  {safe(said.id)}  about {safe(request.id)}  {safe(request.title)}"]
    if said.claim:
        lines += [f"  {line}" for line in comment_text(said).split("\n")]
    return Printed(lines=lines, data={"request": request.id, **fields_of(said)})
