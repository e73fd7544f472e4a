"""`signoff db`: back up and check the store."""

from __future__ import annotations

import sys

import click

from signoff.cli import shared_options
from signoff.cli.terminal_text import as_json as json_line
from signoff.cli.terminal_text import safe
from signoff.core.exit_codes import FAILED
from signoff.store.store_urls import masked
from signoff.store.upkeep import backup as copy_to
from signoff.store.upkeep import check as problems_of
from signoff.wiring.project import settings_for
from signoff.wiring.stores import chosen_store


@click.group()
def db() -> None:
    """Back up and check the store."""


@db.command(no_args_is_help=True)
@click.argument("file", type=click.Path(dir_okay=False))
@shared_options.where
def backup(file: str, store: str | None, policy: str | None) -> None:
    """Copy the store to FILE.

    The copy is complete, even if the store is in use. Overwrites nothing.

    \b
    Example:
      signoff db backup approvals-2031-05-24.db
    """
    url, root, name = _meant(store, policy)
    click.echo(f"copied {name} to {safe(str(copy_to(url, file, root=root)))}")


@db.command()
@shared_options.as_json
@shared_options.where
def check(as_json: bool, store: str | None, policy: str | None) -> None:
    """Check the store.

    Checks that it is intact, of this version, and not readable by others. Exit code 1 if not.

    \b
    Example:
      signoff db check

    `signoff audit verify` checks whether the audit log in it was changed.
    """
    url, root, name = _meant(store, policy)
    problems = problems_of(url, root=root)
    if as_json:
        click.echo(json_line({"store": name, "ok": not problems, "problems": problems}))
    elif not problems:
        click.echo(f"{name} is ok.")
    for problem in problems if not as_json else ():
        click.echo(f"signoff: {safe(problem)}", err=True)
    if problems:
        sys.exit(FAILED)


def _meant(store: str | None, policy: str | None) -> tuple[str, str, str]:
    """The store's URL, the directory that relative paths start from, and the text to show for it."""
    chosen = chosen_store(store, settings_for(policy))
    return chosen.url, str(chosen.root), safe(masked(chosen.url))
