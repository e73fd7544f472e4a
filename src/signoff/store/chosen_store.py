"""The store that a command means: where it is, and who said so."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from signoff.ports import Store
from signoff.store.place import Home, give_id
from signoff.store.store_factory import open_store
from signoff.store.store_urls import is_file, masked, sqlite_path

OPTION, VARIABLE = "--store", "SIGNOFF_STORE"


@dataclass(frozen=True, slots=True)
class ChosenStore:
    """A store somebody chose, or the one that a project has where nobody did."""

    url: str
    root: Path
    """Where a relative address starts from."""
    named_by: str = ""
    """`--store`, `SIGNOFF_STORE` or the project's file; empty: nobody named it, and it is the project's own place."""
    project: str | None = None
    """The directory of the project; empty: there is none; None: nobody looked."""
    home: Home | None = None
    """The project's own place, where that is meant."""

    @property
    def file(self) -> str:
        """The file of the store; empty where it is none."""
        return os.path.abspath(sqlite_path(self.url, self.root)) if is_file(self.url) else ""

    @property
    def is_missing(self) -> bool:
        """Whether the store is a file that nobody has made yet."""
        return bool(self.file) and not os.path.lexists(self.file)

    @property
    def address(self) -> str:
        """Good in any directory."""
        return f"sqlite:{self.file}" if self.file else self.url

    @property
    def shown(self) -> str:
        """For people, without a password."""
        return self.address if self.file else masked(self.url)

    def open(self) -> Store:
        """The store, which is made if it is not there yet. The project is given an id, to be known by if it moves."""
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
    """The store that the command or the environment names."""
    if option:
        return ChosenStore(option, Path.cwd(), OPTION)
    named = os.environ.get(VARIABLE)
    return ChosenStore(named, Path.cwd(), VARIABLE) if named else None
