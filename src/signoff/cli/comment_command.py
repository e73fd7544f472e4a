"""`signoff comment`, `ask-back` and `reply`: what is said about a request while it waits. None of it decides."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from signoff.cli import id_completion, shared_options
from signoff.cli.answer_command import VIA
from signoff.core.comment import Comment, CommentKind

if TYPE_CHECKING:
    from signoff.broker import Broker
    from signoff.config import Settings
    from signoff.core.request import ApprovalRequest

_DONE = {CommentKind.NOTE: "said", CommentKind.QUESTION: "asked back", CommentKind.ANSWER: "answered"}


@click.command(no_args_is_help=True)
@click.argument("request_id", metavar="ID", shell_complete=id_completion.waiting)
@click.argument("text", metavar="TEXT")
@shared_options.who
@shared_options.as_json
@shared_options.where
def comment(request_id: str, text: str, name: str | None, as_json: bool, store: str | None, policy: str | None) -> None:
    """Say something about a request, for whoever decides it. It stands on the card wherever that is shown.

    \b
    Example:
      signoff comment k3f9 "the customer called, this is right"
    """
    _say(request_id, text, CommentKind.NOTE, name=name, as_json=as_json, store=store, policy=policy)


@click.command(no_args_is_help=True)
@click.argument("request_id", metavar="ID", shell_complete=id_completion.pending)
@click.argument("text", metavar="TEXT")
@click.option("--agent", is_flag=True, help="Have the agent's model answer now, from what was said in its run.")
@shared_options.who
@shared_options.as_json
@shared_options.where
def ask_back(
    request_id: str, text: str, agent: bool, name: str | None, as_json: bool, store: str | None, policy: str | None
) -> None:
    """Ask something about a request before you decide. The request stays open.

    Whoever the run is for, or who owns the agent, answers with `signoff reply`. With --agent the model that made the
    call is asked at once: it gets what was said in its run and the question, no tools, and its run is left as it is.
    What it answers is its claim; nothing checks it.

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
@click.option("--to", "question", metavar="QUESTION", default="", help="Id of the question, where there are several.")
@shared_options.who
@shared_options.as_json
@shared_options.where
def reply(
    request_id: str,
    text: str,
    question: str,
    name: str | None,
    as_json: bool,
    store: str | None,
    policy: str | None,
) -> None:
    """Answer a question that was asked back about a request. `signoff show` numbers them by id.

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
    from signoff.cli.open_broker import with_broker

    async def work(broker: Broker, settings: Settings) -> tuple[ApprovalRequest, list[Comment]]:
        from signoff.wiring import whoami

        by = whoami(name, settings, via=VIA)
        await broker.sweep()
        request = await broker.find(request_id)
        answers = ""
        if kind is CommentKind.ANSWER:
            answers = await broker.comments.question_meant(request.id, question)
        said = [await broker.comments.add(request.id, text, by=by, kind=kind, answers=answers)]
        if asks_agent:
            _tell(request, said, as_json=as_json)  # at once: an answer may take a while, and may not come
            said = [await _agent_answer(broker, said[0], store, policy)]
        return request, said

    _tell(*with_broker(store, policy, work), as_json=as_json)


async def _agent_answer(broker: Broker, question: Comment, store: str | None, policy: str | None) -> Comment:
    from signoff.cli.startup import uncollected
    from signoff.wiring import RunOptions, chosen_store, settings_for

    with uncollected():
        from signoff.wiring.agent_answers import answer_question

    address = chosen_store(store, settings_for(policy)).address
    return await answer_question(broker, question, RunOptions(store=address, unattended="park"))


def _tell(request: ApprovalRequest, said: list[Comment], *, as_json: bool) -> None:
    from signoff.cli.request_report import comment_data, comment_text
    from signoff.cli.terminal_text import as_json as json_line
    from signoff.cli.terminal_text import safe

    for one in said:
        if as_json:
            click.echo(json_line({"request": request.id, **comment_data(one, request.secrets)}))
            continue
        click.echo(f"{_DONE[one.kind]}  {safe(one.id)}  about {safe(request.id)}  {safe(request.title)}")
        if one.is_claim:
            for line in comment_text(one, request.secrets).split("\n"):
                click.echo(f"  {line}")
