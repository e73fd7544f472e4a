"""The project a command works in: its file, its people, whoever sits there."""

from __future__ import annotations

import os
from collections.abc import Iterator

from signoff.config import Settings, find_project, load_settings, no_settings
from signoff.config.files import check_owner, from_here, nearest_project, text_of
from signoff.core.people import Actor, person_key
from signoff.errors import Place, WrongFile, WrongUse
from signoff.policy.phrases import did_you_mean

POLICY_FILE = "signoff.yaml"


def settings_for(
    file: str | os.PathLike[str] | None, *, worker: str | None = None, directory: str | None = None
) -> Settings:
    """The given file, else the nearest `signoff.yaml` here or above, else no rules: everything is asked about.

    `worker` is the path of a worker's file: its project is the one it stands in, wherever the command is typed.
    `directory` is where *here* is, if not the working directory.
    Raises `WrongUse` for another file than the project's own where that is locked.
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


def other_policy(
    file: str | os.PathLike[str] | None, *, worker: str | None = None, directory: str | None = None
) -> str:
    """The name of a file that takes the place of a project's own, from the project's directory if inside; else empty.

    With the same arguments as for `settings_for`. Where there is no project, it takes nobody's place.
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
    """The files of projects whose own the given one is not.

    A project is where its workers stand, or else where one stands oneself, and where the file stands.
    """
    projects = list(filter(None, map(_found, _homes(worker)))) or [_found(directory)]
    for project in filter(None, (*projects, _found(os.path.dirname(os.path.abspath(file))))):
        if not _is_same(file, project):
            yield project


def _homes(worker: str | None) -> list[str]:
    """Where the file of a worker stands, as it was given and where links lead."""
    return list(dict.fromkeys(map(os.path.dirname, _names_of(worker)))) if worker is not None else []


def _names_of(file: str) -> tuple[str, str]:
    """The path of a file as it was given, and where links lead."""
    return os.path.abspath(file), os.path.realpath(file)


def _found(start: str | None) -> str | None:
    """The project's own file. One that belongs to somebody else locks nothing."""
    found = nearest_project(start)
    try:
        if found is not None:
            check_owner(found)
    except WrongFile:
        return None
    return found


def lock_of(file: str | os.PathLike[str]) -> Place | None:
    """Where a project file says `locked: true`; None where it does not. Reads nothing else of it."""
    from signoff.policy.composer import read_document

    name = from_here(file)
    document = read_document(text_of(name), file=name)
    value = document.value
    if not isinstance(value, dict) or value.get("locked", False) is False:  # pyright: ignore[reportUnknownMemberType]
        return None
    return document.place_of(("locked",))


def _is_same(one: str, other: str) -> bool:
    try:
        return os.path.samefile(one, other)
    except OSError:  # it is not there: whoever reads it says so
        return False


def roles_of(settings: Settings) -> dict[str, frozenset[str]]:
    return {name: person.roles for name, person in settings.people.items()}


def whoami(name: str | None, settings: Settings, *, via: str) -> Actor:
    """Who answers: the name given, `SIGNOFF_AS`, or whoever is logged in. Where people are on file, one of them."""
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
    import getpass

    try:
        return getpass.getuser()
    except (OSError, KeyError) as error:  # a container may run as a number that nobody has a name for
        raise WrongUse("the system does not know your name: say who you are with --as NAME or SIGNOFF_AS") from error
