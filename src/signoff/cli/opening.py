"""Opens what a command works on: the broker over the store that is meant, and what the policy file says."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from signoff.broker import Broker
    from signoff.config import Settings
    from signoff.ports import Store

T = TypeVar("T")


@contextmanager
def opened(store: str | None, policy: str | None, *, make: bool = False) -> Generator[tuple[Broker, Settings]]:
    """The broker and the settings. A store that is not there yet is made with `make`, else it is as good as empty."""
    from signoff.broker import Broker
    from signoff.wiring import roles_of, settings_for

    settings = settings_for(policy)
    kept = store_meant(store, settings, make=make)
    broker = Broker(kept, people=roles_of(settings))
    try:
        yield broker, settings
    finally:
        broker.watch.close()
        kept.close()


def store_meant(store: str | None, settings: Settings, *, make: bool) -> Store:
    """The store; who only looks leaves no file behind."""
    from signoff.wiring import store_url

    url, root = store_url(store, settings)
    return store_at(url, root, make=make, named=store is not None)


def store_at(url: str, root: str | os.PathLike[str], *, make: bool, named: bool = False) -> Store:
    """The store at an address. One that somebody `named` has to be there: an empty one would pass for the answer."""
    from signoff.store.open import open_store

    if named:
        check_there(url, root)
    if make or not is_missing(url, root):
        return open_store(url, root=root)
    from signoff.store.memory import MemoryStore

    return MemoryStore()


def check_there(url: str, root: str | os.PathLike[str] = ".") -> None:
    """Raise `WrongUse` where nobody has made the store yet."""
    from signoff.errors import WrongUse
    from signoff.store.open import sqlite_path

    if is_missing(url, root):
        raise WrongUse(f"there is no store at {sqlite_path(url, root)}; signoff run makes one when something is asked")


def named_outright(store: str | None) -> str | None:
    """The address of a store that is named without any file, as `wiring.store_url` looks for it first."""
    return store or os.environ.get("SIGNOFF_STORE")


def is_missing(url: str, root: str | os.PathLike[str]) -> bool:
    """Whether the store is a file that nobody has made yet."""
    from signoff.store.open import sqlite_path

    return url.partition(":")[0].lower() == "sqlite" and not os.path.lexists(sqlite_path(url, root))


def with_broker(
    store: str | None, policy: str | None, work: Callable[[Broker, Settings], Awaitable[T]], *, make: bool = False
) -> T:
    """Do a command's work with the broker, and let go of it."""
    import asyncio

    async def main() -> T:
        return await work(broker, settings)

    with opened(store, policy, make=make) as (broker, settings):
        return asyncio.run(main())
