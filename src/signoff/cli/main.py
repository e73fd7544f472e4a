"""The command table and the way errors leave the program.

Exit codes: 0 done, 1 failed, 2 wrong use, 3 waiting for a person, 4 denied.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module

import click

import signoff
from signoff.errors import ApprovalError, NobodyHere, SignoffError

COMMANDS = {
    "demo": ("signoff.cli.demo:demo", "Watch an agent being allowed, asked about and refused."),
    "init": ("signoff.cli.init:init", "Write a first signoff.yaml, with an agent to try it on."),
    "policy": ("signoff.cli.policy:policy", "Check, explain and apply policy files."),
    "run": ("signoff.cli.run:run", "Run an agent, asking at this terminal."),
}

FAILED, WRONG_USE, WAITING, DENIED = 1, 2, 3, 4


class LazyGroup(click.Group):
    """A group that knows its commands by name and one line, and imports one when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module, _, name = COMMANDS[cmd_name][0].partition(":")
        return getattr(import_module(module), name)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, help_line) for name, (_, help_line) in sorted(COMMANDS.items())])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            from difflib import get_close_matches

            close = get_close_matches(args[0], COMMANDS, n=1)
            hint = f" Did you mean '{close[0]}'?" if close else f" There are: {', '.join(sorted(COMMANDS))}."
            raise click.UsageError(f"No such command '{args[0]}'.{hint}", ctx)
        return super().resolve_command(ctx, args)


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(signoff.__version__, "-V", "--version", prog_name="signoff")
def program() -> None:
    """Human sign-off for the tool calls of AI agents.

    \b
    Start with:
      signoff demo
      signoff init
      signoff run mypackage.agents:agent "Tidy the notes"
    """


def main() -> None:
    """Run the program: known errors are one message and an exit code, never a traceback."""
    os.environ.setdefault("PYDANTIC_AI_NO_BANNER", "1")  # its greeting would stand between the person and the card
    try:
        program(prog_name="signoff")
    except ApprovalError as error:
        _leave(error, DENIED)
    except NobodyHere as error:
        _leave(error, WAITING)
    except SignoffError as error:
        _leave(error, WRONG_USE)
    except BrokenPipeError:
        # Whoever read our output has seen enough; closing quietly keeps Python from complaining at exit.
        sys.stderr.close()
        sys.exit(FAILED)


def _leave(error: SignoffError, code: int) -> None:
    click.echo(f"signoff: {error}", err=True)
    sys.exit(code)
