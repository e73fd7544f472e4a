"""Options that several commands share, with the same help texts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from signoff.cli.server_choice import server_options

F = TypeVar("F", bound=Callable[..., Any])


def anywhere(command: F) -> F:
    """Add `--store` and `--policy`, `--server` and `--token-file`, for commands that work locally or on a server."""
    return _places(elsewhere(command))


def elsewhere(command: F) -> F:
    """Add `--server` and `--token-file`, to work through a server."""
    server = click.option(
        "--server",
        metavar="URL",
        expose_value=False,
        callback=_note_server,
        help="Use this server, as the holder of your token. Default: SIGNOFF_SERVER.",
    )
    token_file = click.option(
        "--token-file",
        metavar="FILE",
        type=click.Path(dir_okay=False),
        expose_value=False,
        callback=_note_token,
        help="File with your token for the server. Default: SIGNOFF_TOKEN.",
    )
    return server(token_file(command))


def where(command: F) -> F:
    """Add `--store` and `--policy`, for commands that only work locally."""
    return _places(only_here(command))


def only_here(command: F) -> F:
    """Refuse `--server` with an explanation: the command needs files of this machine."""
    return click.option(
        "--server",
        metavar="URL",
        hidden=True,
        expose_value=False,
        callback=_refuse_server,
        help="Not supported by this command.",
    )(command)


def _note_server(ctx: click.Context, param: click.Parameter, value: str | None) -> None:
    if value is not None:
        server_options().url = value


def _note_token(ctx: click.Context, param: click.Parameter, value: str | None) -> None:
    if value is not None:
        server_options().token_file = value


def _refuse_server(ctx: click.Context, param: click.Parameter, value: str | None) -> None:
    if value is not None:
        raise click.UsageError(
            f"`{ctx.command_path}` works on local files; --server is for commands that read and answer requests"
        )


def _places(command: F) -> F:
    store = click.option(
        "--store", metavar="URL", help="The store: sqlite:FILE or postgresql://… Default: the project's."
    )
    policy = click.option(
        "--policy",
        metavar="FILE",
        type=click.Path(dir_okay=False),
        help="Policy file. Default: the nearest signoff.yaml here or above.",
    )
    return store(policy(command))


def who(command: F) -> F:
    """Add `--as`: the person who acts."""
    text = "Your name. Default: SIGNOFF_AS, or the user logged in."
    return click.option("--as", "name", metavar="NAME", help=text)(command)


def note(help_text: str) -> Callable[[F], F]:
    """Add `--note`: a text for the audit log."""
    return click.option("--note", default="", metavar="TEXT", help=help_text)


def as_json(command: F) -> F:
    """Add `--json`: output for programs."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")(command)


ui = click.option(
    "--ui",
    type=click.Choice(["terminal", "tui"]),
    default="terminal",
    show_default=True,
    help="Ask line by line, or on the full screen (needs the extra tui).",
)
