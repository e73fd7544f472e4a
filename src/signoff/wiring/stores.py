"""Choose the store that a command uses, open it, and list the default stores of all projects."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from signoff.config import Settings
from signoff.errors import Halted, SchemaError, SignoffError, StoreError, WrongUse
from signoff.ports import Store
from signoff.store.chosen_store import ChosenStore, named_store
from signoff.store.place import Home, home_of, labels, state_root, unlabelled
from signoff.wiring.project import roles_of, settings_for

if TYPE_CHECKING:
    from signoff.broker import Broker


def chosen_store(option: str | None, settings: Settings) -> ChosenStore:
    """Return the store to use: from the option, the environment, the project file, or the default.

    The default is outside of the project directory: an agent that may write files there must not be able to write
    approvals. Warns if the project has moved since it was last used, or has a different ID.
    """
    directory = Path(os.path.realpath(Path(settings.file).parent if settings.file else settings.directory))
    project = str(directory) if settings.file else ""
    if named := named_store(option):
        return replace(named, project=project)
    if settings.store is not None:
        return ChosenStore(settings.store, directory, os.path.basename(settings.file), project)
    home = home_of(directory)
    if home is None:
        raise WrongUse("there is no home directory to keep approvals in: name a store with --store sqlite:FILE")
    if home.moved_from and project:
        _heal(home)
    if home.former is not None and project:
        told = f"{home.project} has a different ID from the project that was here before"
        told += f": the runs and grants of that project, in {home.former}, are not used"
        warnings.warn(told, RuntimeWarning, stacklevel=2)
    return ChosenStore(f"sqlite:{home.store}", directory, "", project, home)


def _heal(home: Home) -> None:
    with suppress(StoreError):  # then the warning is shown again next time
        home.settle()
    told = f"{home.project} was at {home.moved_from} until now; its runs, grants and audit log were found again"
    warnings.warn(told, RuntimeWarning, stacklevel=3)


def absolute_store(option: str | None, policy: str | os.PathLike[str] | None = None) -> str:
    """Return the address of the store that a command uses, valid from any directory."""
    return chosen_store(option, settings_for(policy)).address


def store_elsewhere(option: str | None, settings: Settings) -> str:
    """Return the store's address if commands typed here without `--store` would use another store; else empty.

    Only for files: the URL of a database server may hold a password.
    """
    chosen = chosen_store(option, settings)
    if not chosen.file:
        return ""
    with suppress(SignoffError):  # an invalid project here has no store to be confused with
        if absolute_store(None) == chosen.address:
            return ""
    return chosen.address


def open_broker(option: str | None = None, policy: str | os.PathLike[str] | None = None) -> tuple[Broker, Settings]:
    """Open the broker over the store that a command uses, with the people of the policy file."""
    from signoff.broker import Broker
    from signoff.store.signing_key import Keys

    settings = settings_for(policy)
    return Broker(store_for(option, settings), people=roles_of(settings), signer=Keys()), settings


def store_for(option: str | None, settings: Settings | None = None) -> Store:
    """Open the store that a command uses.

    Raises `Halted` if the project is halted under another ID that it had here: changing the ID does not evade a halt.
    """
    chosen = chosen_store(option, settings or settings_for(None))
    if chosen.home is not None and chosen.project:
        _check_not_halted(chosen.home)
    return chosen.open()


def _check_not_halted(home: Home) -> None:
    root = state_root()
    for label in labels(root) if root is not None else ():
        former = Home(label.directory, label.project)
        if label.project == home.project and label.directory != home.directory and (said := _halted(former)):
            raise Halted(
                f"{home.project} was {said}\n  It had another id then: signoff unhalt --store sqlite:{former.store}"
            )


def _halted(home: Home) -> str:
    """Return what the halt switch of a store says, if the store exists; empty if it is not halted."""
    import asyncio
    from concurrent.futures import ThreadPoolExecutor

    from signoff.broker.switch import said_by
    from signoff.core.halt import halt_in
    from signoff.store.store_factory import open_store

    def look() -> str | None:
        with suppress(SchemaError), closing(open_store(f"sqlite:{home.store}")) as store:
            return asyncio.run(store.read(lambda tx: halt_in(tx.settings.get)))
        return None  # of another version, which nothing here can run with

    if not home.store.exists():
        return ""
    with ThreadPoolExecutor(1) as apart:  # an event loop may be running in this thread
        said = apart.submit(look).result()
    return said_by(said) if said else ""


@dataclass(frozen=True, slots=True)
class KeptStore:
    """A store at a project's default location."""

    file: Path
    project: str = ""
    """The project's directory; empty: unknown, as with the store of a program."""
    is_there: bool = False
    """Whether the project is still where it was."""


def kept_stores() -> Iterator[KeptStore]:
    """Yield the stores at default locations of all projects of the current user, sorted by project."""
    root = state_root()
    if root is None:
        return
    for label in sorted(labels(root), key=lambda one: one.project):
        store = Home(label.directory, label.project).store
        if store.exists():
            yield KeptStore(store, label.project, label.is_there)
    for directory in unlabelled(root):
        store = Home(directory, "").store
        if store.exists():
            yield KeptStore(store)
