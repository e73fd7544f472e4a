"""The command table and error handling of the program.

Exit codes: 0 done, 1 failed, 2 wrong use, 3 waiting for a person, 4 denied.
"""

from __future__ import annotations

import os
import sys
import warnings
from datetime import datetime
from importlib import import_module
from io import TextIOWrapper
from typing import TYPE_CHECKING, TextIO, cast

import click

from signoff.core.exit_codes import FAILED, WRONG_USE
from signoff.errors import (
    LimitReached,
    SignoffError,
)

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

GROUPS = {
    "Answering": {
        "inbox": ("signoff.cli.inbox_command:inbox", "List pending requests."),
        "show": ("signoff.cli.show_command:show", "Show one request: its card, votes, outcome and history."),
        "approve": ("signoff.cli.answer_command:approve", "Approve calls."),
        "deny": ("signoff.cli.answer_command:deny", "Deny calls."),
        "ask-back": ("signoff.cli.comment_command:ask_back", "Ask a question about a request before you decide."),
        "reply": ("signoff.cli.comment_command:reply", "Answer a question about a request."),
        "comment": ("signoff.cli.comment_command:comment", "Add a comment to a request, for its approvers."),
        "outcome": ("signoff.cli.outcome_command:outcome", "Report the outcome of a call whose process died."),
        "take": ("signoff.cli.assign_command:take", "Take a request, so that nobody else works on it."),
        "release": ("signoff.cli.assign_command:release", "Give back a request that you took."),
        "assign": ("signoff.cli.assign_command:assign", "Assign a request to a person."),
        "people": ("signoff.cli.people_command:people", "List people, roles and deputies; make sign-in links."),
        "delegate": ("signoff.cli.people_command:delegate", "Let a deputy answer for an absent person."),
        "tokens": ("signoff.cli.tokens_command:tokens", "Create, list and revoke tokens for a server."),
        "channels": ("signoff.cli.channels_command:channels", "List, test and run the channels that ask people."),
    },
    "Running": {
        "demo": ("signoff.cli.demo_command:demo", "Watch calls of an agent being allowed, asked about and denied."),
        "run": ("signoff.cli.run_command:run", "Run a worker or an agent; questions come to this terminal."),
        "runs": ("signoff.cli.runs_command:runs", "List runs and what they wait for."),
        "resume": ("signoff.cli.resume_command:resume", "Resume runs whose requests were answered."),
        "hook": ("signoff.cli.hook_command:hook", "Gate the tool calls of Claude Code, Codex and Gemini CLI."),
        "mcp": ("signoff.cli.mcp_command:mcp", "Sign-off for programs that speak MCP."),
        "aap": ("signoff.cli.aap_command:aap", "Manage agents that ask by the Agent Approval Protocol."),
        "serve": ("signoff.cli.serve_command:serve", "Run the server: resumes runs, serves the inbox and the API."),
        "cancel": ("signoff.cli.runs_command:cancel", "Cancel a run and withdraw its requests."),
        "halt": ("signoff.cli.halt_command:halt", "Stop everything: no new call runs, requests stay pending."),
        "unhalt": ("signoff.cli.halt_command:unhalt", "Lift a halt."),
    },
    "Rules": {
        "init": ("signoff.cli.init_command:init", "Create a project with an example worker."),
        "policy": ("signoff.cli.policy_command:policy", "Check, explain and apply policy files."),
        "workers": ("signoff.cli.workers_command:workers", "List the workers of this project."),
        "toolsets": (
            "signoff.cli.toolsets_command:toolsets",
            "List toolsets, their tools, and the verdict for each tool.",
        ),
        "schema": ("signoff.cli.schema_command:schema", "Print JSON Schemas of the project's files, for editors."),
        "import": ("signoff.cli.import_command:import_", "Import a project of another program: llm-do."),
        "grants": ("signoff.cli.grants_command:grants", "List, explain and revoke remembered answers."),
    },
    "Keeping": {
        "doctor": ("signoff.cli.doctor_command:doctor", "Report what can run without a question, and what is wrong."),
        "audit": ("signoff.cli.audit_command:audit", "Read, verify and export the audit log."),
        "db": ("signoff.cli.db_command:db", "Back up and check the store."),
        "stores": (
            "signoff.cli.stores_command:stores",
            "List stores: the one used here, and all others.",
        ),
        "completion": (
            "signoff.cli.completion:completion",
            "Print a script that completes commands and IDs in your shell.",
        ),
    },
}
COMMANDS = {name: entry for group in GROUPS.values() for name, entry in group.items()}


class LazyGroup(click.Group):
    """A group that knows the name and help line of each command, and imports a command only when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module, _, name = COMMANDS[cmd_name][0].partition(":")
        return getattr(import_module(module), name)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        width = max(map(len, COMMANDS))  # one column width for all groups
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
      signoff run notetaker "Note the milk" --model script:hello.yaml
      signoff inbox
    """


def main() -> None:
    """Run the program. Known errors become one message and an exit code, never a traceback."""
    os.environ.setdefault("PYDANTIC_AI_NO_BANNER", "1")  # its banner would interrupt our output
    if isinstance(out := cast("object", sys.stdout), TextIOWrapper):
        out.reconfigure(errors="backslashreplace")  # escape what the terminal's encoding lacks
    warnings.showwarning = _warned
    is_plain = bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM") == "dumb"
    try:
        program(prog_name="signoff", color=False if is_plain else None)
    except SignoffError as error:
        click.echo(f"signoff: {told(error)}", err=True)
        sys.exit(error.exit_code)
    except BrokenPipeError:
        # The reader closed the pipe. Closing stderr keeps Python from complaining at exit.
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
    """Print our own warnings as plain messages; others keep the source location for programmers."""
    if issubclass(category, RuntimeWarning):
        from signoff.core.visible_text import visible

        click.echo(f"signoff: {visible(str(message))}", err=True)
    else:
        click.echo(warnings.formatwarning(message, category, filename, lineno, line), err=True, nl=False)


def told(error: SignoffError) -> str:
    """An error as printable text; untrusted names and notes in it are escaped. Wrong use has hints on extra lines."""
    from signoff.core.moment import error_text
    from signoff.core.safe_text import kept_text
    from signoff.core.visible_text import has_hidden

    text = error_text(error, datetime.astimezone)
    has_lines = error.exit_code == WRONG_USE or isinstance(error, LimitReached)
    plain = text.replace("\n", "") if has_lines else text
    return kept_text(text, lines=has_lines) if has_hidden(plain) else text
