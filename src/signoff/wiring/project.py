"""The project a command works in: its file, its store, its people, whoever sits there."""

from __future__ import annotations

import getpass
import os
from pathlib import Path
from typing import TYPE_CHECKING

from signoff.config import Settings, find_project, load_settings, no_settings
from signoff.core.people import Answerer, person_key
from signoff.errors import Place, WrongFile, WrongUse
from signoff.policy.wording import did_you_mean
from signoff.ports import Store
from signoff.store.place import state_folder

if TYPE_CHECKING:
    from signoff.broker import Broker

POLICY_FILE = "signoff.yaml"


def settings_for(file: str | os.PathLike[str] | None) -> Settings:
    """The given file, else the nearest `signoff.yaml` here or above, else no rules: everything is asked about.

    Raises `WrongUse` for another file than the project's own where that is locked.
    """
    if file is None:
        own = find_project()
        return load_settings(os.path.relpath(own)) if own is not None else no_settings()
    own = _found()
    if own is not None and not _is_same(file, own) and (place := lock_of(own)) is not None:
        raise WrongUse(
            f"the policy of this project is locked ({place}), so it cannot be exchanged for {os.fspath(file)}.\n"
            "  To be stricter, add to it: --ask TOOL, --deny TOOL, or SIGNOFF_POLICY=FILE"
        )
    return load_settings(file)


def _found() -> str | None:
    """The project's own file. One that belongs to somebody else locks nothing."""
    try:
        return find_project()
    except WrongFile:
        return None


def lock_of(file: str | os.PathLike[str]) -> Place | None:
    """Where a project file says `locked: true`; None where it does not. Reads nothing else of it."""
    from signoff.config.files import text_of
    from signoff.policy.composer import read_document

    name = os.path.relpath(file)
    document = read_document(text_of(name), file=name)
    value = document.value
    if not isinstance(value, dict) or value.get("locked", False) is False:  # pyright: ignore[reportUnknownMemberType]
        return None
    return document.place_of(("locked",))


def _is_same(one: str | os.PathLike[str], other: str) -> bool:
    try:
        return os.path.samefile(one, other)
    except OSError:  # it is not there: whoever reads it says so
        return False


def store_url(option: str | None, settings: Settings) -> tuple[str, Path]:
    """Which store is meant, and the folder its address starts from: the option, the environment, the file, the default.

    The default is outside of the project, where its agents have no business: an agent that may write files here must
    not be able to write approvals.
    """
    folder = Path(os.path.realpath(Path(settings.file).parent if settings.file else "."))
    if chosen := option or os.environ.get("SIGNOFF_STORE"):
        return chosen, Path.cwd()
    if settings.store is not None:
        return settings.store, folder
    state = state_folder(folder)
    if state is None:
        raise WrongUse("there is no home folder to keep approvals in: name a store with --store sqlite:FILE")
    return f"sqlite:{state / 'signoff.db'}", folder


def absolute_store(option: str | None, policy: str | os.PathLike[str] | None = None) -> str:
    """The address of the store that a command means, good in any folder."""
    from signoff.store.open import sqlite_path

    url, root = store_url(option, settings_for(policy))
    return f"sqlite:{sqlite_path(url, root)}" if url.startswith("sqlite:") else url


def open_broker(option: str | None = None, policy: str | os.PathLike[str] | None = None) -> tuple[Broker, Settings]:
    """The broker over the store that a command means, with the people of the policy file."""
    from signoff.broker import Broker
    from signoff.store.keys import Keys

    settings = settings_for(policy)
    return Broker(store_for(option, settings), people=roles_of(settings), signer=Keys()), settings


def store_for(option: str | None, settings: Settings | None = None) -> Store:
    """The store that a command means, opened."""
    from signoff.store.open import open_store

    url, root = store_url(option, settings or settings_for(None))
    return open_store(url, root=root)


def roles_of(settings: Settings) -> dict[str, frozenset[str]]:
    return {name: person.roles for name, person in settings.people.items()}


def whoami(name: str | None, settings: Settings, *, via: str) -> Answerer:
    """Who answers: the name given, `SIGNOFF_AS`, or whoever is logged in. Where people are on file, one of them."""
    who = name or _user()
    people = {person_key(one): person for one, person in settings.people.items()}
    if not people:
        return Answerer(name=who, via=via)
    person = people.get(person_key(who))
    if person is None:
        hint = did_you_mean(who, settings.people) or f"there are: {', '.join(settings.people)}"
        raise WrongUse(f"{settings.file} knows nobody called {who!r}\n  Say who you are with --as NAME; {hint}")
    return Answerer(name=person.name, roles=person.roles, via=via)


def requester_of(name: str | None, settings: Settings) -> str:
    """Who a run is for: the name given, else whoever is logged in, by the name on file."""
    if name:
        return whoami(name, settings, via="terminal").name
    who = _user()
    on_file = {person_key(one): one for one in settings.people}
    return on_file.get(person_key(who), who)


def _user() -> str:
    """Who works here: `SIGNOFF_AS`, or whoever is logged in."""
    if named := os.environ.get("SIGNOFF_AS"):
        return named
    try:
        return getpass.getuser()
    except (OSError, KeyError) as error:  # a container may run as a number that nobody has a name for
        raise WrongUse("the system does not know your name: say who you are with --as NAME or SIGNOFF_AS") from error
