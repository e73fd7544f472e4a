"""`signoff run --chat`: several turns with one worker. Each turn is a kept run, all of one conversation."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from signoff.cli.terminal_text import clip
from signoff.core.safe import safe_text
from signoff.errors import WrongUse

if TYPE_CHECKING:
    from signoff.cli.run_screen import Going
    from signoff.wiring import Job, Task
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
    """Turn by turn, until whoever types has enough: gives None then, or how the turn ended that waits for people.

    The text of `task` is the first prompt, if it has one; its input goes with every turn, its files with the first.
    `after` is the turn before: how it ended, or the id of its run.
    """
    from signoff.cli.line_input import prompt_here

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
    """The command that a line is: a word behind a `/`, at its very beginning. A path is none."""
    found = _COMMAND.match(text)
    return found[0] if found is not None else None


def _refuse_or_help(command: str, *, typed: bool) -> None:
    """Say what can be typed; raise `WrongUse` where nobody is there to type something else."""
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
    """One turn; None where it failed or was stopped, and somebody is there to say something else."""
    from signoff.cli.loops import WorkInterrupted, until_interrupted
    from signoff.errors import ScriptEnded, SignoffError

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
    """The id of the run that `--continue` goes on with; its prompt and its answer are shown. Raises `WrongUse`."""
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
