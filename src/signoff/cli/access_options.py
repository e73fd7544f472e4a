"""Shared code of commands about keys: who holds them, who may create them, how they are listed and revoked."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import click

from signoff.cli.known_people import named
from signoff.cli.open_broker import with_broker
from signoff.cli.opened_store import looked_in
from signoff.cli.terminal_text import now, safe, when
from signoff.config.server_entry import origin_of
from signoff.core.exit_codes import FAILED
from signoff.core.people import Actor, person_key
from signoff.core.visible_text import visible
from signoff.errors import WrongUse
from signoff.wiring.project import whoami
from signoff.wiring.serve_lease import who_serves
from signoff.wiring.stores import chosen_store

if TYPE_CHECKING:
    from signoff.broker import Broker
    from signoff.config import Settings

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")
Where: TypeAlias = "tuple[str | None, str | None]"
"""The options `--store` and `--policy`."""
HERE = "http://127.0.0.1:8420"
"""The address of a server that was started without options."""


def expires(default: str, examples: str) -> Callable[[F], F]:
    """Add `--expires`: how long a key lasts, as the argument `lasts`."""

    def read(ctx: click.Context, param: click.Parameter, value: str) -> timedelta:
        at = now()
        return when(value, at, option="--expires") - at

    text = f"Expiry: {examples}."
    return click.option(
        "--expires", "lasts", default=default, show_default=True, metavar="WHEN", callback=read, help=text
    )


def holder_named(name: str, settings: Settings) -> str:
    """The person a key is for, as the file spells the name; if it lists nobody, only the current user."""
    if settings.people:
        return named(name, settings)
    here = whoami(None, settings, via="command").name
    if person_key(name) != person_key(here):
        where = settings.file or "a signoff.yaml"
        raise WrongUse(
            f"while no people are listed, a server admits only {visible(here)}\n"
            f"  Add {visible(name)} to `people` in {where}"
        )
    return here


def check_admin(by: Actor, settings: Settings, *, holder: str) -> None:
    """Raise `WrongUse` if the file lists admins and somebody who is not one acts for another person."""
    admins = [one.name for one in settings.people.values() if one.admin]
    if admins and person_key(holder) != by.key and by.key not in map(person_key, admins):
        told = ", ".join(map(visible, admins))
        raise WrongUse(
            f"{visible(by.name)} is not an admin, and {visible(holder)} is another person\n  Admins are: {told}"
        )


async def server_address(url: str | None, broker: Broker, settings: Settings, *, otherwise: str = "use --url") -> str:
    """The server's address: the option, else the project file, else where the store is served now.

    If no server runs, this machine: it says so on standard error, since another program may listen there, and what
    to do `otherwise`.
    """
    if not url:
        if settings.server.url:
            return settings.server.url
        if (lease := await who_serves(broker.ledger)) is not None:
            return lease.url
        click.echo(
            f"No server runs now. This is for one that signoff serve starts at {HERE}; else {otherwise}.", err=True
        )
        return HERE
    try:
        return origin_of(url)
    except ValueError as error:
        raise WrongUse(f"--url {visible(url)} is not a server address\n  {error}") from error


def revoke_each(
    ids: Sequence[str],
    name: str | None,
    at: Where,
    known: Callable[[Broker], Awaitable[Sequence[T]]],
    revoke: Callable[[Broker, Sequence[T], str, str], Awaitable[bool]],
) -> None:
    """Revoke what each id names, as the current user; exit code 1 if an id matches none or several."""

    async def work(broker: Broker, settings: Settings) -> bool:
        by, found = whoami(name, settings, via="command").name, await known(broker)
        are_all = all([await revoke(broker, found, one, by) for one in dict.fromkeys(ids)])
        if not are_all:
            click.echo(f"  {safe(looked_in(chosen_store(at[0], settings)))}", err=True)
        return are_all

    if not with_broker(*at, work):
        sys.exit(FAILED)
