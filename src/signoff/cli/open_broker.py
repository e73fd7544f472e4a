"""Open the broker over the selected store, with the project's settings, for a command."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

import click

from signoff.cli.loops import run
from signoff.cli.server_choice import server_meant
from signoff.cli.terminal_text import safe
from signoff.errors import UnknownRequest, UnknownRun, WrongUse
from signoff.store.chosen_store import OPTION, ChosenStore
from signoff.store.memory_store import MemoryStore

if TYPE_CHECKING:
    from signoff.broker import Broker
    from signoff.config import Settings
    from signoff.ports import Store

T = TypeVar("T")


@contextmanager
def opened(store: str | None, policy: str | None, *, make: bool = False) -> Generator[tuple[Broker, Settings]]:
    """The broker and the settings. A missing store is created with `make`; otherwise it counts as empty."""
    from signoff.broker import Broker
    from signoff.wiring.project import roles_of, settings_for
    from signoff.wiring.stores import chosen_store

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
    from signoff.wiring.stores import chosen_store

    return store_at(chosen_store(store, settings), make=make)


@contextmanager
def telling_where(chosen: ChosenStore) -> Generator[None]:
    """Add to errors about unknown ids where signoff searched."""
    try:
        yield
    except (UnknownRequest, UnknownRun) as error:
        raise type(error)(f"{error}; {looked_in(chosen)}") from error


def looked_in(chosen: ChosenStore) -> str:
    """Where something was searched, and how to find other stores."""
    return f"searched: {chosen.in_words()}; `signoff stores` lists all stores"


def store_at(chosen: ChosenStore, *, make: bool) -> Store:
    """Open a store. A store named by an option must exist: an empty one would look like an answer."""
    if chosen.named_by == OPTION:
        check_there(chosen)
    if make or not chosen.is_missing:
        return chosen.open()
    return MemoryStore()


def check_there(chosen: ChosenStore) -> None:
    """Raise `WrongUse` if the store does not exist yet."""
    if chosen.is_missing:
        told = f"there is no store at {chosen.file}; signoff run creates one with the first request"
        raise WrongUse(told if chosen.named_by == OPTION else f"{told}\n  {looked_in(chosen)}")


def say_where(store: str | None, policy: str | None, *, always: bool = True) -> None:
    """Print which project and store was used. Without `always`, only at a terminal."""
    if not always and not sys.stdout.isatty():
        return
    if server := server_meant(store):
        click.secho(f"server {safe(server)}", dim=True)
        return
    from signoff.wiring.project import settings_for
    from signoff.wiring.stores import chosen_store

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
