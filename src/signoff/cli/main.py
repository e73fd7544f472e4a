"""The command table and the way errors leave the program.

Exit codes: 0 done, 1 failed, 2 wrong use, 3 waiting for a person, 4 denied.
"""

from __future__ import annotations

import os
import sys
import warnings
from importlib import import_module
from io import TextIOWrapper
from typing import TYPE_CHECKING, TextIO, cast

import click

from signoff.errors import (
    ApprovalError,
    ChannelFailed,
    Halted,
    LimitReached,
    NobodyHere,
    RecordBroken,
    RequestError,
    RunError,
    ServerFailed,
    SignoffError,
    StoreError,
)

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

GROUPS = {
    "Answering": {
        "inbox": ("signoff.cli.inbox_command:inbox", "What waits for a person."),
        "show": ("signoff.cli.show_command:show", "One request, whole: its card, votes, outcome and history."),
        "approve": ("signoff.cli.answer_command:approve", "Let calls run."),
        "deny": ("signoff.cli.answer_command:deny", "Say no to calls."),
        "ask-back": ("signoff.cli.comment_command:ask_back", "Ask something about a request before you decide."),
        "reply": ("signoff.cli.comment_command:reply", "Answer what was asked back about a request."),
        "comment": ("signoff.cli.comment_command:comment", "Say something about a request, for whoever decides it."),
        "outcome": ("signoff.cli.outcome_command:outcome", "Say what became of a call whose process is silent."),
        "take": ("signoff.cli.assign_command:take", "Work on a request, so that nobody else starts."),
        "release": ("signoff.cli.assign_command:release", "Leave a request to whoever comes next."),
        "assign": ("signoff.cli.assign_command:assign", "Hand a request to somebody."),
        "people": ("signoff.cli.people_command:people", "Who may answer, who stands in for whom, links to sign in."),
        "delegate": ("signoff.cli.people_command:delegate", "Have somebody stand in for somebody else for a while."),
        "tokens": ("signoff.cli.tokens_command:tokens", "Keys of programs and people on a server: make, list, revoke."),
        "channels": ("signoff.cli.channels_command:channels", "Where people are asked: list, test, run."),
    },
    "Running": {
        "demo": ("signoff.cli.demo_command:demo", "Watch an agent being allowed, asked about and refused."),
        "run": ("signoff.cli.run_command:run", "Run a worker or an agent, asking at this terminal."),
        "runs": ("signoff.cli.runs_command:runs", "Runs, and what they wait for."),
        "resume": ("signoff.cli.resume_command:resume", "Go on with runs whose questions were answered."),
        "hook": ("signoff.cli.hook_command:hook", "Judge the tool calls of Claude Code, Codex and Gemini."),
        "mcp": ("signoff.cli.mcp_command:mcp", "Sign-off for programs that speak MCP."),
        "aap": ("signoff.cli.aap_command:aap", "Sign-off for agents elsewhere, by the Agent Approval Protocol."),
        "serve": ("signoff.cli.serve_command:serve", "Look after runs, and serve the inbox and the API."),
        "cancel": ("signoff.cli.runs_command:cancel", "End a run and withdraw what it asks."),
        "halt": ("signoff.cli.halt_command:halt", "Stop everything: nothing new runs, what is pending stays."),
        "unhalt": ("signoff.cli.halt_command:unhalt", "Let things run again."),
    },
    "Rules": {
        "init": ("signoff.cli.init_command:init", "Write a first project, with a worker to try it on."),
        "policy": ("signoff.cli.policy_command:policy", "Check, explain and apply policy files."),
        "workers": ("signoff.cli.workers_command:workers", "The agents this project describes in files."),
        "toolsets": (
            "signoff.cli.toolsets_command:toolsets",
            "What workers can use, and what happens to calls of each tool.",
        ),
        "schema": ("signoff.cli.schema_command:schema", "JSON Schemas of the files you write, for editors."),
        "import": ("signoff.cli.import_command:import_", "Bring a project of another program here: llm-do."),
        "grants": ("signoff.cli.grants_command:grants", "Remembered answers: list, explain, revoke."),
    },
    "Keeping": {
        "doctor": ("signoff.cli.doctor_command:doctor", "Say what can run unasked, and what is wrong."),
        "audit": ("signoff.cli.audit_command:audit", "Read, verify and export the record."),
        "db": ("signoff.cli.db_command:db", "Upgrade, back up and check the store."),
        "stores": (
            "signoff.cli.stores_command:stores",
            "Where approvals are kept: the store meant here, and all others.",
        ),
        "completion": ("signoff.cli.completion:completion", "A script that completes commands and ids in your shell."),
    },
}
COMMANDS = {name: entry for group in GROUPS.values() for name, entry in group.items()}

FAILED, WRONG_USE, WAITING, DENIED = 1, 2, 3, 4


class LazyGroup(click.Group):
    """A group that knows its commands by name and one line, and imports one when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module, _, name = COMMANDS[cmd_name][0].partition(":")
        return getattr(import_module(module), name)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        width = max(map(len, COMMANDS))  # one column through all groups
        for title, group in GROUPS.items():
            with formatter.section(title):
                formatter.write_dl([(f"{name:{width}}", help_line) for name, (_, help_line) in group.items()])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        from click.shell_completion import CompletionItem

        found = [CompletionItem(name, help=line) for name, (_, line) in COMMANDS.items() if name.startswith(incomplete)]
        return [*found, *click.Command.shell_complete(self, ctx, incomplete)]

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in COMMANDS and not args[0].startswith("-") and not ctx.resilient_parsing:
            from difflib import get_close_matches

            close = get_close_matches(args[0], COMMANDS, n=1)
            hint = f" Did you mean '{close[0]}'?" if close else f" There are: {', '.join(sorted(COMMANDS))}."
            raise click.UsageError(f"No such command '{args[0]}'.{hint}", ctx)
        return super().resolve_command(ctx, args)


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(None, "-V", "--version", package_name="signoff", prog_name="signoff")
def program() -> None:
    """Human sign-off for the tool calls of AI agents.

    \b
    Start with:
      signoff demo
      signoff init
      signoff run notetaker "Note the milk"
      signoff inbox
    """


def main() -> None:
    """Run the program: known errors are one message and an exit code, never a traceback."""
    os.environ.setdefault("PYDANTIC_AI_NO_BANNER", "1")  # its greeting would stand between the person and the card
    if isinstance(out := cast("object", sys.stdout), TextIOWrapper):
        out.reconfigure(errors="backslashreplace")  # a terminal that lacks a letter is shown its number
    warnings.showwarning = _warned
    is_plain = bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM") == "dumb"
    try:
        program(prog_name="signoff", color=False if is_plain else None)
    except SignoffError as error:
        click.echo(f"signoff: {told(error)}", err=True)
        sys.exit(code_of(error))
    except BrokenPipeError:
        # Whoever read our output has seen enough; closing quietly keeps Python from complaining at exit.
        sys.stderr.close()
        sys.exit(FAILED)


def _warned(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """Ours are for whoever types, and look like it; others tell a programmer where they come from."""
    if issubclass(category, RuntimeWarning):
        from signoff.core.visible import visible

        click.echo(f"signoff: {visible(str(message))}", err=True)
    else:
        click.echo(warnings.formatwarning(message, category, filename, lineno, line), err=True, nl=False)


def code_of(error: SignoffError) -> int:
    """The exit code that says what kind of trouble it was."""
    match error:
        case ApprovalError():
            return DENIED
        case NobodyHere() | Halted():
            return WAITING
        case RequestError() | RunError() | StoreError() | RecordBroken() | LimitReached() | ChannelFailed():
            return FAILED
        case ServerFailed():
            return FAILED
        case _:
            return WRONG_USE


def told(error: SignoffError) -> str:
    """An error as it may be printed: names and notes in it are not ours. Wrong use comes with hints, on lines below."""
    from datetime import datetime

    from signoff.core.moment import error_text
    from signoff.core.safe import kept_text

    text = error_text(error, datetime.astimezone)
    has_lines = code_of(error) == WRONG_USE or isinstance(error, LimitReached)
    plain = text.replace("\n", "") if has_lines else text
    return text if plain.isprintable() else kept_text(text, lines=has_lines)
