"""The project a command works in: its file, its lock, its people, and the current user."""

from __future__ import annotations

import os
from collections.abc import Iterator

from signoff.config import Settings, find_project, load_settings, no_settings
from signoff.config.files import PROJECT_FILE, check_own, check_owner, from_here, nearest_project, text_of
from signoff.core.people import Actor, person_key
from signoff.errors import Place, WrongFile, WrongUse
from signoff.policy.composer import read_document
from signoff.policy.phrases import did_you_mean

POLICY_FILE = PROJECT_FILE


def settings_for(
    file: str | os.PathLike[str] | None, *, worker: str | None = None, directory: str | None = None
) -> Settings:
    """Load the given file, else the nearest `signoff.yaml` here or above, else no rules: everything is asked about.

    `worker` is the path of a worker's file: its project is the one that contains it, wherever the command is typed.
    `directory` replaces the working directory as *here*.
    Raises `WrongUse` for another file than the project's own if the project is locked.
    """
    if file is None:
        own = next(filter(None, map(find_project, _homes(worker))), None) or find_project(directory)
        return load_settings(from_here(own)) if own is not None else no_settings(directory or ".")
    file = os.path.join(directory or "", file)
    for project in _other_projects(file, worker, directory):
        if (place := lock_of(project)) is not None:
            raise WrongUse(
                f"the policy of this project is locked ({place}), so it cannot be replaced by {file}.\n"
                "  To be stricter, add to it: --ask TOOL, --deny TOOL, or SIGNOFF_POLICY=FILE"
            )
    return load_settings(file)


def kept_settings(file: str, directory: str) -> Settings:
    """Load the project file that a long-running process began with; empty: it began without one.

    A file that is gone is an error, as a broken one is: somebody may be writing it anew, and the next file further up
    was written for other projects. For the same reason, a process that began without a file takes up one in its
    directory only.
    """
    if not file:
        file = os.path.join(os.path.abspath(directory), PROJECT_FILE)
        if not os.path.lexists(file):
            return no_settings(directory)
    check_own(file)
    return load_settings(from_here(file))


def other_policy(
    file: str | os.PathLike[str] | None, *, worker: str | None = None, directory: str | None = None
) -> str:
    """Return the name of a file that replaces the project's own, relative if it is inside the project; else empty.

    Takes the same arguments as `settings_for`. Without a project, nothing is replaced.
    """
    if file is None:
        return ""
    file = os.path.join(directory or "", file)
    project = next(_other_projects(file, worker, directory), None)
    if project is None:
        return ""
    inside = os.path.relpath(os.path.realpath(file), os.path.dirname(os.path.realpath(project)))
    return os.path.abspath(file) if inside.partition(os.sep)[0] == os.pardir else inside


def _other_projects(file: str, worker: str | None, directory: str | None) -> Iterator[str]:
    """Yield the files of the projects involved that differ from the given file.

    The projects involved: the one of the worker's file, or else of the directory, and the one that contains the file.
    """
    projects = list(filter(None, map(_found, _homes(worker)))) or [_found(directory)]
    for project in filter(None, (*projects, _found(os.path.dirname(os.path.abspath(file))))):
        if not _is_same(file, project):
            yield project


def _homes(worker: str | None) -> list[str]:
    """Return the directories of a worker's file: as it was given, and with symlinks resolved."""
    return list(dict.fromkeys(map(os.path.dirname, _names_of(worker)))) if worker is not None else []


def _names_of(file: str) -> tuple[str, str]:
    """Return the path of a file as it was given, and with symlinks resolved."""
    return os.path.abspath(file), os.path.realpath(file)


def _found(start: str | None) -> str | None:
    """Return the file of the nearest project. None if it belongs to another user: such a file locks nothing."""
    found = nearest_project(start)
    try:
        if found is not None:
            check_owner(found)
    except WrongFile:
        return None
    return found


def lock_of(file: str | os.PathLike[str]) -> Place | None:
    """Return the place of `locked: true` in a project file; None if it is not locked. Reads nothing else of it."""
    name = from_here(file)
    document = read_document(text_of(name), file=name)
    value = document.value
    if not isinstance(value, dict) or value.get("locked", False) is False:  # pyright: ignore[reportUnknownMemberType]
        return None
    return document.place_of(("locked",))


def _is_same(one: str, other: str) -> bool:
    try:
        return os.path.samefile(one, other)
    except OSError:  # it does not exist: the code that reads it reports that
        return False


def roles_of(settings: Settings) -> dict[str, frozenset[str]]:
    return {name: person.roles for name, person in settings.people.items()}


def whoami(name: str | None, settings: Settings, *, via: str) -> Actor:
    """Return who answers: the given name, `SIGNOFF_AS`, or the logged-in user.

    If the file lists people it must be one of them, else `WrongUse` is raised.
    """
    who = name or _user()
    people = {person_key(one): person for one, person in settings.people.items()}
    if not people:
        return Actor(name=who, via=via)
    person = people.get(person_key(who))
    if person is None:
        hint = did_you_mean(who, settings.people) or f"there are: {', '.join(settings.people)}"
        raise WrongUse(f"{settings.file} lists no person called {who!r}\n  Say who you are with --as NAME; {hint}")
    return Actor(name=person.name, roles=person.roles, via=via)


def requester_of(name: str | None, settings: Settings) -> str:
    """Return the person a run is for: the given name, else the logged-in user, by the name in the file."""
    if name:
        return whoami(name, settings, via="terminal").name
    who = _user()
    on_file = {person_key(one): one for one in settings.people}
    return on_file.get(person_key(who), who)


def reader_of(name: str | None, settings: Settings) -> str:
    """As `requester_of`; empty if nobody knows who reads here."""
    try:
        return requester_of(name, settings)
    except WrongUse:
        return ""


def _user() -> str:
    """Return the current user: `SIGNOFF_AS`, or the logged-in user. Raises `WrongUse` if the system has no name."""
    if named := os.environ.get("SIGNOFF_AS"):
        return named
    import getpass

    try:
        return getpass.getuser()
    except (OSError, KeyError) as error:  # a container may run as a uid without a name
        raise WrongUse("the system does not know your name: say who you are with --as NAME or SIGNOFF_AS") from error
