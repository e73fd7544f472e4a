"""`signoff comment`, `ask-back` and `reply`: comments on a pending request. They decide nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from signoff.cli import id_completion, shared_options
from signoff.cli.open_broker import with_broker
from signoff.cli.open_desk import with_desk
from signoff.cli.request_report import Sheet, comment_text
from signoff.cli.server_choice import is_elsewhere
from signoff.cli.terminal_text import as_json as json_line
from signoff.cli.terminal_text import safe
from signoff.core.comment import CommentKind
from signoff.reports.request_sheet import comment_data
from signoff.wiring.agent_answers import answer_question
from signoff.wiring.job import RunOptions
from signoff.wiring.stores import chosen_store

if TYPE_CHECKING:
    from signoff.broker import Broker
    from signoff.cli.approval_desk import ApprovalDesk
    from signoff.config import Settings

_DONE = {"note": "said", "question": "asked back", "answer": "answered"}


@click.command(no_args_is_help=True)
@click.argument("request_id", metavar="ID", shell_complete=id_completion.waiting)
@click.argument("text", metavar="TEXT")
@shared_options.who
@shared_options.as_json
@shared_options.anywhere
def comment(request_id: str, text: str, name: str | None, as_json: bool, store: str | None, policy: str | None) -> None:
    """Add a comment to a request, for its approvers. Every card of the request shows it.

    \b
    Example:
      signoff comment k3f9 "the customer called, this is right"
    """
    _say(request_id, text, CommentKind.NOTE, name=name, as_json=as_json, store=store, policy=policy)


@click.command(no_args_is_help=True)
@click.argument("request_id", metavar="ID", shell_complete=id_completion.pending)
@click.argument("text", metavar="TEXT")
@click.option("--agent", is_flag=True, help="Let the agent's model answer now, from the conversation of its run.")
@shared_options.who
@shared_options.as_json
@shared_options.anywhere
def ask_back(
    request_id: str, text: str, agent: bool, name: str | None, as_json: bool, store: str | None, policy: str | None
) -> None:
    """Ask a question about a request before you decide. The request stays open.

    The requester of the run, or the owner of the agent, answers with `signoff reply`. With --agent, the model that made
    the call is asked now: it gets the conversation of its run and the question, but no tools. The run does not change.
    Its reply is a claim; signoff does not verify it.

    \b
    Examples:
      signoff ask-back k3f9 "Which invoice is this for?"
      signoff ask-back k3f9 "Why not the sandbox?" --agent
    """
    _say(
        request_id,
        text,
        CommentKind.QUESTION,
        name=name,
        as_json=as_json,
        store=store,
        policy=policy,
        asks_agent=agent,
    )


@click.command(no_args_is_help=True)
@click.argument("request_id", metavar="ID", shell_complete=id_completion.waiting)
@click.argument("text", metavar="TEXT")
@click.option("--to", "question", metavar="QUESTION", default="", help="ID of the question, if there are several.")
@shared_options.who
@shared_options.as_json
@shared_options.anywhere
def reply(
    request_id: str,
    text: str,
    question: str,
    name: str | None,
    as_json: bool,
    store: str | None,
    policy: str | None,
) -> None:
    """Answer a question about a request. `signoff show` lists the questions with their IDs.

    \b
    Examples:
      signoff reply k3f9 "Invoice 4711, from March."
      signoff reply k3f9 "Yes." --to p8d2
    """
    _say(
        request_id,
        text,
        CommentKind.ANSWER,
        name=name,
        as_json=as_json,
        store=store,
        policy=policy,
        question=question,
    )


def _say(
    request_id: str,
    text: str,
    kind: CommentKind,
    *,
    name: str | None,
    as_json: bool,
    store: str | None,
    policy: str | None,
    question: str = "",
    asks_agent: bool = False,
) -> None:
    async def work(desk: ApprovalDesk) -> tuple[Sheet, dict[str, Any]]:
        return await desk.say(request_id, text, kind, question, asks_agent=asks_agent)

    sheet, said = with_desk(store, policy, name, work)
    _tell(sheet, said, as_json=as_json)
    if asks_agent and is_elsewhere(store):
        if not as_json:
            click.echo(f"The server asks the agent. To read the reply: signoff show {safe(sheet['id'])}", err=True)
    elif asks_agent:
        _tell(sheet, _agent_answer(sheet["id"], said["comment"], store, policy), as_json=as_json)


def _agent_answer(request_id: str, question: str, store: str | None, policy: str | None) -> dict[str, Any]:
    """Ask the agent's model the question; return its reply, once it is stored."""

    async def work(broker: Broker, settings: Settings) -> dict[str, Any]:
        request = await broker.get(request_id)
        asked = next(one for one in await broker.comments.of(request_id) if one.id == question)
        options = RunOptions(store=chosen_store(store, settings).address, unattended="park")
        return comment_data(await answer_question(broker, asked, options), request.secrets)

    return with_broker(store, policy, work)


def _tell(sheet: Sheet, said: Mapping[str, Any], *, as_json: bool) -> None:
    if as_json:
        click.echo(json_line({"request": sheet["id"], **said}))
        return
    click.echo(f"{_DONE[said['kind']]}  {safe(said['comment'])}  about {safe(sheet['id'])}  {safe(sheet['title'])}")
    if said["by"]["kind"] == "model":
        for line in comment_text(said).split("\n"):
            click.echo(f"  {line}")
