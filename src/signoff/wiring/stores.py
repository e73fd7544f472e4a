"""Which store a command means, and which stores there are."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from signoff.config import Settings
from signoff.errors import Halted, SchemaError, SignoffError, StoreError, WrongUse
from signoff.ports import Store
from signoff.store.chosen import ChosenStore, named_store
from signoff.store.place import Home, home_of, labels, state_root, unlabelled
from signoff.wiring.project import roles_of, settings_for

if TYPE_CHECKING:
    from signoff.broker import Broker


def chosen_store(option: str | None, settings: Settings) -> ChosenStore:
    """Which store is meant: the option, the environment, the file, the default.

    The default is outside of the project, where its agents have no business: an agent that may write files here must
    not be able to write approvals. Warns where the project has moved since it was last used, or has become another.
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
    with suppress(StoreError):  # then it is said again next time
        home.settle()
    told = f"{home.project} was at {home.moved_from} until now; its runs, grants and audit log were found again"
    warnings.warn(told, RuntimeWarning, stacklevel=3)


def absolute_store(option: str | None, policy: str | os.PathLike[str] | None = None) -> str:
    """The address of the store that a command means, good in any directory."""
    return chosen_store(option, settings_for(policy)).address


def store_elsewhere(option: str | None, settings: Settings) -> str:
    """The file of a store, where commands that are typed here without `--store` would look at another one; else empty.

    Only a file is told: the address of a server may hold a password.
    """
    chosen = chosen_store(option, settings)
    if not chosen.file:
        return ""
    with suppress(SignoffError):  # a project here that is wrong has no store to be mistaken for
        if absolute_store(None) == chosen.address:
            return ""
    return chosen.address


def open_broker(option: str | None = None, policy: str | os.PathLike[str] | None = None) -> tuple[Broker, Settings]:
    """The broker over the store that a command means, with the people of the policy file."""
    from signoff.broker import Broker
    from signoff.store.signing_key import Keys

    settings = settings_for(policy)
    return Broker(store_for(option, settings), people=roles_of(settings), signer=Keys()), settings


def store_for(option: str | None, settings: Settings | None = None) -> Store:
    """The store that a command means, opened for whoever runs something.

    Raises `Halted` where the project is halted under another id that it had here: to change an id is no way around.
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
    """What the kill switch of a store says that may be there; empty where nobody pulled it."""
    import asyncio
    from concurrent.futures import ThreadPoolExecutor
    from contextlib import closing

    from signoff.broker.switch import said_by
    from signoff.broker.watch import HALTED
    from signoff.store.open import open_store

    def look() -> str | None:
        with suppress(SchemaError), closing(open_store(f"sqlite:{home.store}", upgrade="refuse")) as store:
            return asyncio.run(store.read(lambda tx: tx.settings.get(HALTED)))
        return None  # of another version, which nothing here runs with

    if not home.store.exists():
        return ""
    with ThreadPoolExecutor(1) as apart:  # an event loop may be running here
        said = apart.submit(look).result()
    return said_by(said) if said else ""


@dataclass(frozen=True, slots=True)
class KeptStore:
    """A store that lies in the place of a project."""

    file: Path
    project: str = ""
    """Whose it is; empty: it does not say, as those of older versions."""
    is_there: bool = False
    """Whether the project is still where it was."""


def kept_stores() -> Iterator[KeptStore]:
    """The stores that nobody named, of all projects of whoever asks, by project."""
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
