"""`signoff run`: run a worker, or any PydanticAI agent, under a policy, and ask at this terminal."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any, Literal

import click

from signoff.cli import shared_options as flags
from signoff.cli.chat_command import last_turn, talk
from signoff.cli.durations import read_wait
from signoff.cli.json_argument import given_args
from signoff.cli.run_screen import Going, carried_out
from signoff.cli.startup import uncollected
from signoff.core.exit_codes import WAITING
from signoff.core.mode import ApprovalMode
from signoff.wiring.caller import Caller
from signoff.wiring.job import RunOptions, Task, job_for

if TYPE_CHECKING:
    from signoff.wiring.job import RunOptions, Task
    from signoff.workers.runtime import Finished


@click.command(no_args_is_help=True)
@click.argument("worker")
@click.argument("prompt", required=False)
@click.option(
    "--input-json",
    metavar="JSON|@FILE",
    help="Input for a worker that declares one; @FILE reads a file, @- standard input.",
)
@click.option(
    "--attach",
    "files",
    metavar="FILE",
    multiple=True,
    type=click.Path(),
    help="Attach a file for the model. Repeatable.",
)
@click.option("--chat", is_flag=True, help="Chat with the worker in several turns. /help lists the commands.")
@click.option(
    "--continue", "goes_on", is_flag=True, help="Continue the conversation of your last finished run of WORKER."
)
@click.option(
    "--policy", type=click.Path(dir_okay=False), help="Policy file. Default: the nearest signoff.yaml here or above."
)
@click.option("--ask", metavar="TOOL", multiple=True, help="Ask about this tool, whatever the policy says. Repeatable.")
@click.option("--deny", metavar="TOOL", multiple=True, help="Deny this tool, whatever the policy says. Repeatable.")
@click.option("--model", help="Model to use instead of the worker's own: a PydanticAI name, or script:FILE.")
@click.option(
    "--mode",
    type=click.Choice(["interactive", "auto_approve", "auto_deny"]),
    default="interactive",
    show_default=True,
    help="What happens to calls that ask. Denied calls stay denied in every mode.",
)
@click.option(
    "--unattended",
    type=click.Choice(["deny", "park"]),
    default="deny",
    show_default=True,
    help="Without a terminal: deny calls that ask, or suspend the run with exit code 3.",
)
@flags.ui
@click.option("--suspend", is_flag=True, help="Suspend with exit code 3 at the first question; resume later.")
@click.option("--wait", metavar="TIME", help="Wait this long for answers (30s, 15m, 2h), then suspend.")
@click.option("--store", metavar="URL", help="Store for the run and its requests. Default: the project's.")
@click.option("--as", "requester", metavar="NAME", help="The person the run is for. Default: you.")
@click.option(
    "--json", "as_json", is_flag=True, help="One JSON object per line on standard output: events, then the result."
)
@click.option("--traceback", is_flag=True, help="Show the whole traceback when the agent fails.")
@flags.only_here
def run(
    worker: str,
    prompt: str | None,
    input_json: str | None,
    files: tuple[str, ...],
    chat: bool,
    goes_on: bool,
    as_json: bool,
    traceback: bool,
    **how: Any,
) -> None:
    """Run WORKER with PROMPT. Without PROMPT, it is read from standard input.

    WORKER is the name of a file in workers/ (see `signoff workers`), the path of such a file, or an agent in Python,
    package.module:agent.

    \b
    Example:
      signoff run notetaker "Note the milk" --model script:hello.yaml
      signoff run notetaker --chat
      signoff run notetaker --chat --continue
      signoff run triage --input-json '{"issue": 7}' --deny 'shell*' --suspend
      signoff run mypackage.agents:agent "Tidy the notes" --policy signoff.yaml

    Exit codes: 0 done, 1 the agent failed, 2 usage error, 3 waiting for a person, 4 every call it made was denied.
    """
    if how["suspend"] and how["wait"] is not None:
        raise click.UsageError("--suspend does not wait; leave out --wait or --suspend.")
    going = Going(as_json=as_json)
    with uncollected():
        task, options = _task(prompt, input_json, files, chat=chat), _options(going, chat=chat, **how)
    finished = carried_out(_run(worker, task, options, going, goes_on=goes_on), going, traceback=traceback)
    if chat:
        sys.exit(WAITING if finished is not None else 0)
    assert finished is not None, "only a chat ends with nothing"
    sys.exit(going.say(finished))


async def _run(worker: str, task: Task, options: RunOptions, going: Going, *, goes_on: bool) -> Finished | None:
    with uncollected():
        job = job_for(worker, options)
    after: str | None = None
    if goes_on:
        after = await last_turn(job, going)
    if options.chat:
        return await talk(job, task, going, after=after)
    return await going.on(job.run(task, begun=going.begun(job), after=after))


def _task(prompt: str | None, input_json: str | None, files: tuple[str, ...], *, chat: bool) -> Task:
    """The task from the options and standard input."""
    given = None
    if input_json is not None:
        given = given_args(input_json, "--input-json")
    if prompt is None and given is None and not chat:
        if sys.stdin.isatty():
            raise click.UsageError('Give a prompt: signoff run WORKER "PROMPT", or use --chat.')
        prompt = sys.stdin.read()
    return Task(text=prompt or "", input=given, files=tuple(os.path.abspath(file) for file in files))


def _options(
    going: Going,
    *,
    chat: bool,
    policy: str | None,
    ask: tuple[str, ...],
    deny: tuple[str, ...],
    model: str | None,
    mode: str,
    unattended: Literal["deny", "park"],
    ui: Literal["terminal", "tui"],
    suspend: bool,
    wait: str | None,
    store: str | None,
    requester: str | None,
) -> RunOptions:
    return RunOptions(
        policy=policy,
        model=model,
        mode=ApprovalMode(mode),
        unattended=unattended,
        ui=ui,
        store=store,
        wait=read_wait("0s" if suspend else wait),
        requester=requester,
        caller=Caller.here(ask, deny),
        chat=chat,
        observe=going.progress.observe,
        message=going.progress.message,
        listener=going.listener,
    )
