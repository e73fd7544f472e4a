"""`signoff run --chat`: several turns with one worker. Each turn is a saved run of one conversation."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from signoff.cli.line_input import prompt_here
from signoff.cli.loops import WorkInterrupted, until_interrupted
from signoff.cli.terminal_text import clip
from signoff.core.safe_text import safe_text
from signoff.errors import ScriptEnded, SignoffError, WrongUse

if TYPE_CHECKING:
    from signoff.cli.run_screen import Going
    from signoff.wiring.job import Job, Task
    from signoff.workers.runtime import Finished

LEAVES = ("/exit", "/quit")
COMMANDS = {
    "/help": "this list",
    "/new": "start a new conversation; the model forgets this one",
    "/exit": "quit, like /quit and Ctrl-D; --chat --continue resumes later",
}
KEYS = """\
Enter sends; Alt-Enter, or a \\ at the end of a line, begins another line.
The arrow keys bring back what you typed. An unknown /word is refused;
with a space before it, it is sent to the model."""

_COMMAND = re.compile(r"/[A-Za-z?]*(?=\s|$)")


async def talk(job: Job, task: Task, going: Going, *, after: Finished | str | None = None) -> Finished | None:
    """Chat turn by turn. Returns None when the user quits, or the result of a turn that waits for people.

    The text of `task` is the first prompt, if it has one; its input goes with every turn, its files with the first.
    `after` is the previous turn: its result, or the id of its run.
    """
    prompt = prompt_here(lambda: going.progress.secrets)
    if prompt.is_typed:
        click.echo(f"Chatting with {job.name}. /help lists the commands; /exit or Ctrl-D quits.", err=True)
    text: str | None = task.text or None
    while True:
        text = text if text is not None else await prompt.read()
        if text is None or text.strip() in LEAVES:
            return None
        if (command := command_in(text)) is not None:
            _refuse_or_help(command, typed=prompt.is_typed)
            after = None if command == "/new" else after
        elif text.strip():
            finished = await _turn(job, replace(task, text=text), going, after, forgiving=prompt.is_typed)
            if finished is not None:
                going.say(finished)
                if finished.paused:
                    return finished
                if prompt.is_typed:
                    click.echo(err=True)
                after, task = finished, replace(task, files=())
        text = None


def command_in(text: str) -> str | None:
    """The command in a line: a word after a `/` at its very beginning. A path is not a command."""
    found = _COMMAND.match(text)
    return found[0] if found is not None else None


def _refuse_or_help(command: str, *, typed: bool) -> None:
    """Print help, or that the command is unknown; raise `WrongUse` for the latter if no person is typing."""
    if command == "/new":
        click.echo("New conversation.", err=True)
        return
    listed = "\n".join(f"  {name:<8}{what}" for name, what in COMMANDS.items())
    if command == "/help":
        click.echo(f"{listed}\n{KEYS}", err=True)
        return
    problem = f"unknown command {command}; nothing was sent to the model. Commands:\n{listed}"
    if not typed:
        raise WrongUse(problem)
    click.echo(f"signoff: {problem}", err=True)


async def _turn(
    job: Job, task: Task, going: Going, after: Finished | str | None, *, forgiving: bool
) -> Finished | None:
    """Run one turn; None if it failed or was stopped and a person is there to continue."""
    turn = going.on(job.run(task, begun=going.begun(job), after=after))
    try:
        return await (until_interrupted(turn) if forgiving else turn)
    except WorkInterrupted:
        later = f" `signoff runs show {going.run}` shows how far it got." if going.run else ""
        click.echo(f"\nsignoff: this turn was stopped; the chat continues without it.{later}", err=True)
        return None
    except ScriptEnded as error:
        if not forgiving:
            raise
        click.echo(f"signoff: this turn failed: {error}", err=True)
        return None
    except SignoffError:
        raise
    except Exception as error:
        if not forgiving:
            raise
        click.echo(f"signoff: this turn failed: {going.told(error)}", err=True)
        return None


async def last_turn(job: Job, going: Going) -> str:
    """The id of the run that `--continue` continues; prints its prompt and answer. Raises `WrongUse` if none."""
    run = await job.last()
    said = await job.runner.said_in(run.id) if run is not None else None
    if run is None or said is None:
        raise WrongUse(
            f"{job.name} has no finished run of yours to continue here.\n"
            "  Leave out --continue to start a new chat; `signoff runs --all` lists all runs"
        )
    if not going.as_json:
        prompt = clip(safe_text(run.prompt, secrets=going.progress.secrets), 60)
        click.echo(f"Continuing after run {run.id}: {prompt}", err=True)
        going.progress.recall(job.runner.last_answer(said))
    return run.id
