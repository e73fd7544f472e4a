"""`signoff doctor`: report what can run without a question, and what is wrong, for a security review."""

from __future__ import annotations

import sys
from contextlib import nullcontext

import click

from signoff.cli import shared_options
from signoff.cli.inspection import inspect_agent, inspect_project
from signoff.cli.inspection_page import inspection_data, inspection_lines, page_width
from signoff.cli.safe_output import apart
from signoff.cli.terminal_text import as_json as json_line
from signoff.cli.terminal_text import now
from signoff.core.exit_codes import FAILED
from signoff.wiring.project import settings_for


@click.command()
@click.argument("agent", required=False)
@click.option("--worker", "only", multiple=True, metavar="NAME", help="Only this worker. Repeatable.")
@click.option("--connect", is_flag=True, help="Start MCP servers to list their tools.")
@click.option("--strict", is_flag=True, help="Exit code 1 also for warnings.")
@shared_options.as_json
@shared_options.where
def doctor(
    agent: str | None,
    only: tuple[str, ...],
    connect: bool,
    strict: bool,
    as_json: bool,
    store: str | None,
    policy: str | None,
) -> None:
    """Report what can run without a question, and what is wrong.

    Lists every tool of every worker, with the verdict on one call of it and the rules that can let calls run without a
    person; then errors in rules, people, files and the store, and models that lack a package or a key. It sends nothing
    to a model. With AGENT, package.module:agent, it inspects that Python agent instead of the workers. Exit code 1 if
    something is wrong.

    \b
    Examples:
      signoff doctor
      signoff doctor --worker triage --connect
      signoff doctor mypackage.agents:agent
      signoff doctor --json --strict
    """
    if agent is not None and only:
        raise click.UsageError("Name an agent, or workers with --worker, not both.")
    # The project's own code and plugins are imported: their output must not mix with our JSON.
    with apart() if as_json else nullcontext():
        settings = settings_for(policy)
        if agent is not None:
            found = inspect_agent(agent, settings, connect=connect, store=store)
        else:
            found = inspect_project(settings, only, connect=connect, store=store, at=now())
    if as_json:
        click.echo(json_line(inspection_data(found, strict=strict)))
    else:
        for line in inspection_lines(found, page_width()):
            click.echo(line)
    if not found.is_well(strict=strict):
        sys.exit(FAILED)
