"""Open the broker over the selected store, with the project's settings, for a command."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from typing import TypeVar

import click

from signoff.broker import Broker
from signoff.cli.loops import run
from signoff.cli.opened_store import store_at, telling_where
from signoff.cli.server_choice import server_meant
from signoff.cli.terminal_text import safe
from signoff.config import Settings
from signoff.ports import Store
from signoff.wiring.project import roles_of, settings_for
from signoff.wiring.stores import chosen_store

T = TypeVar("T")


@contextmanager
def opened(store: str | None, policy: str | None, *, make: bool = False) -> Generator[tuple[Broker, Settings]]:
    """The broker and the settings. A missing store is created with `make`; otherwise it counts as empty."""
    settings = settings_for(policy)
    chosen = chosen_store(store, settings)
    kept = store_at(chosen, make=make)
    broker = Broker(kept, people=roles_of(settings))
    try:
        with telling_where(chosen):
            yield broker, settings
    finally:
        broker.watch.close()
        kept.close()


def store_meant(store: str | None, settings: Settings, *, make: bool) -> Store:
    """The selected store. A command that only reads creates no file."""
    return store_at(chosen_store(store, settings), make=make)


def say_where(store: str | None, policy: str | None, *, always: bool = True) -> None:
    """Print which project and store was used. Without `always`, only at a terminal."""
    if not always and not sys.stdout.isatty():
        return
    if server := server_meant(store):
        click.secho(f"server {safe(server)}", dim=True)
        return
    click.secho(safe(chosen_store(store, settings_for(policy)).in_words()), dim=True)


def with_broker(
    store: str | None,
    policy: str | None,
    work: Callable[[Broker, Settings], Awaitable[T]],
    *,
    make: bool = False,
) -> T:
    """Run a command's work with the broker, and close it."""

    async def main() -> T:
        return await work(broker, settings)

    with opened(store, policy, make=make) as (broker, settings):
        return run(main())
