"""`signoff run --chat`: several turns with one worker. Each turn is a kept run, all of one conversation."""

from __future__ import annotations

import asyncio
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from signoff.cli.going import Going
    from signoff.wiring import Job, Task
    from signoff.workers.runtime import Finished

LEAVES = ("/quit", "/exit")


async def talk(job: Job, task: Task, going: Going, *, after: Finished | None = None) -> Finished | None:
    """Turn by turn, until whoever types has enough: gives None then, or how the turn ended that waits for people.

    The text of `task` is the first prompt, if it has one; its input goes with every turn, its files with the first.
    """
    lines = Lines()
    if lines.is_typed:
        click.echo(f"Talking to {job.name}. /quit or Ctrl-D leaves.", err=True)
    text: str | None = task.text or None
    while True:
        text = text if text is not None else await asyncio.to_thread(lines.read)
        if text is None or text.strip() in LEAVES:
            return None
        if text.strip():
            finished = await _turn(job, replace(task, text=text), going, after, forgiving=lines.is_typed)
            if finished is not None:
                going.say(finished)
                if finished.paused:
                    return finished
                if lines.is_typed:
                    click.echo(err=True)
                after, task = finished, replace(task, files=())
        text = None


async def _turn(job: Job, task: Task, going: Going, after: Finished | None, *, forgiving: bool) -> Finished | None:
    """One turn; None where it failed and somebody is there to say it again."""
    from signoff.errors import SignoffError

    try:
        return await going.on(job.run(task, begun=going.begun(job), after=after))
    except SignoffError:
        raise
    except Exception as error:
        if not forgiving:
            raise
        click.echo(f"signoff: this turn failed: {going.told(error)}", err=True)
        return None


class Lines:
    """What is said: typed at a terminal, or line by line from a pipe."""

    def __init__(self) -> None:
        from signoff.channels.keyboard import Keyboard
        from signoff.channels.screen import Screen, terminal_console

        keyboard, console = Keyboard(), terminal_console()
        self._screen = Screen(console, keyboard) if console is not None and keyboard.is_here else None

    @property
    def is_typed(self) -> bool:
        """Whether somebody sits there."""
        return self._screen is not None

    def read(self) -> str | None:
        """The next line; None at the end, which Ctrl-D and Ctrl-C are too. Waits, so call it from a thread."""
        from signoff.channels.keyboard import Stopped

        if self._screen is None:
            line = sys.stdin.readline()
            return line.rstrip("\n") if line else None
        try:
            return self._screen.ask("you")
        except Stopped:
            return None
