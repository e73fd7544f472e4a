"""`signoff toolsets`: list the toolsets of the catalog, their origin, their tools, and the effect for each tool."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

import click

from signoff.cli import shared_options
from signoff.cli.inspection import inspect_toolset, inspect_toolsets
from signoff.cli.inspection_page import details_data, page_width, toolset_data, toolset_lines, toolset_page
from signoff.cli.safe_output import apart
from signoff.cli.terminal_text import as_json as json_line
from signoff.wiring.project import settings_for

POLICY = click.option(
    "--policy",
    metavar="FILE",
    type=click.Path(dir_okay=False),
    help="The project's file. Default: the nearest signoff.yaml.",
)
CONNECT = click.option("--connect", is_flag=True, help="Start MCP servers to list their tools, then stop them.")


@click.group(invoke_without_command=True)
@CONNECT
@POLICY
@shared_options.as_json
@click.pass_context
def toolsets(ctx: click.Context, connect: bool, policy: str | None, as_json: bool) -> None:
    """List the toolsets that workers can use, their tools, and the verdict on one plain call of each tool.

    A toolset that cannot be built is listed with its error; the exit code is 1 if a worker uses it.

    \b
    Example:
      signoff toolsets
      signoff toolsets --connect
      signoff toolsets show project_files
    """
    if ctx.invoked_subcommand is not None:
        return
    with _quiet(as_json):
        found = inspect_toolsets(settings_for(policy), connect=connect)
    if as_json:
        click.echo(json_line({"toolsets": [toolset_data(one) for one in found]}))
    else:
        for one in found:
            click.echo("\n".join(toolset_lines(one, page_width())))
    if any(one.error and one.used_by for one in found):
        ctx.exit(1)


def _quiet(as_json: bool) -> AbstractContextManager[object]:
    """Keep output of the project's own code and plugins out of our JSON."""
    return apart() if as_json else nullcontext()


@toolsets.command(no_args_is_help=True)
@click.argument("name")
@CONNECT
@POLICY
@shared_options.as_json
def show(name: str, connect: bool, policy: str | None, as_json: bool) -> None:
    """Show one toolset: its tools with their parameters, its rules, and its config keys.

    \b
    Example:
      signoff toolsets show project_files
      signoff toolsets show tickets --connect
    """
    settings = settings_for(policy)
    with _quiet(as_json):
        found, schema = inspect_toolset(settings, name, connect=connect)
    click.echo(
        json_line(details_data(found, schema)) if as_json else "\n".join(toolset_page(found, schema, page_width()))
    )
    if found.error:
        raise click.exceptions.Exit(1)
