"""The store that a command uses: its address, and what named it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from signoff.store.place import Home, give_id
from signoff.store.store_factory import open_store
from signoff.store.store_urls import is_file, masked, sqlite_path

if TYPE_CHECKING:
    from signoff.store.memory_store import MemoryStore
    from signoff.store.postgres import PostgresStore
    from signoff.store.sqlite import SqliteStore

OPTION, VARIABLE = "--store", "SIGNOFF_STORE"


@dataclass(frozen=True, slots=True)
class ChosenStore:
    """A store that was named, or the default store of a project."""

    url: str
    root: Path
    """The directory that a relative address is resolved against."""
    named_by: str = ""
    """`--store`, `SIGNOFF_STORE` or the project's file; empty for the default store of the project."""
    project: str | None = None
    """The project directory; empty if there is no project; None if nobody looked for one."""
    home: Home | None = None
    """The project's state directory, if this is its default store."""

    @property
    def file(self) -> str:
        """The absolute path of the store's file; empty if the store is not a file."""
        return os.path.abspath(sqlite_path(self.url, self.root)) if is_file(self.url) else ""

    @property
    def is_missing(self) -> bool:
        """Whether the store is a file that does not exist yet."""
        return bool(self.file) and not os.path.lexists(self.file)

    @property
    def address(self) -> str:
        """The URL with an absolute path, valid in any directory."""
        return f"sqlite:{self.file}" if self.file else self.url

    @property
    def shown(self) -> str:
        """The address for people, without a password."""
        return self.address if self.file else masked(self.url)

    def open(self) -> SqliteStore | PostgresStore | MemoryStore:
        """Open the store, and create it if it does not exist.

        Gives the project an id, so that it is recognised if it moves.
        """
        if self.home is not None and self.project:
            self.home.settle()
        elif self.project:
            give_id(self.project)
        return open_store(self.url, root=self.root)

    def in_words(self) -> str:
        """The project and the store, for people, without a password."""
        return f"{self._project_in_words()}{self._store_in_words()}"

    def _project_in_words(self) -> str:
        match self.project:
            case None:
                return ""
            case "":
                return "no project (there is no signoff.yaml here or above), "
            case _:
                return f"project {self.project}, "

    def _store_in_words(self) -> str:
        missing = ", which does not exist yet" if self.is_missing else ""
        if self.home is None:
            return f"store {self.shown} ({self.named_by}){missing}"
        if self.home.copy_of:
            missing += f"; {self.home.copy_of} has the same id and another store"
        elif self.home.former is not None:
            missing += f"; a project with another id was here before, and its store is in {self.home.former}"
        return f"{'its own store' if self.project else f'the store of {self.home.project}'}{missing}"


def named_store(option: str | None) -> ChosenStore | None:
    """The store that the option or the environment variable names; None if neither does."""
    if option:
        return ChosenStore(option, Path.cwd(), OPTION)
    named = os.environ.get(VARIABLE)
    return ChosenStore(named, Path.cwd(), VARIABLE) if named else None
