"""Options that several commands share, in the same words."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])


def where(command: F) -> F:
    """`--store` and `--policy`: which approvals are meant, and who may answer."""
    store = click.option(
        "--store", metavar="URL", help="Where approvals are kept: sqlite:FILE or postgresql://… Default: the project's."
    )
    policy = click.option(
        "--policy",
        metavar="FILE",
        type=click.Path(dir_okay=False),
        help="Policy file. Default: the nearest signoff.yaml here or above.",
    )
    return store(policy(command))


def who(command: F) -> F:
    """`--as`: who speaks."""
    text = "Who you are. Default: SIGNOFF_AS, or whoever is logged in."
    return click.option("--as", "name", metavar="NAME", help=text)(command)


def note(help_text: str) -> Callable[[F], F]:
    """`--note`: words that go on the record."""
    return click.option("--note", default="", metavar="TEXT", help=help_text)


def as_json(command: F) -> F:
    """`--json`: the same for programs."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")(command)


ui = click.option(
    "--ui",
    type=click.Choice(["terminal", "tui"]),
    default="terminal",
    show_default=True,
    help="Ask line by line, or on the full screen (needs the extra tui).",
)
