"""Open the selected store for a command, or say where it should be."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from signoff.errors import UnknownRequest, UnknownRun, WrongUse
from signoff.store.chosen_store import OPTION, ChosenStore
from signoff.store.memory_store import MemoryStore

if TYPE_CHECKING:
    from signoff.ports import Store


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
