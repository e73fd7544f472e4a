"""The projects that one server looks after. They share one store and one list of people."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from signoff.config import Person, ServerEntry, Settings
from signoff.core.run import SavedRun
from signoff.errors import NotEntitled, WrongUse
from signoff.policy.phrases import shown
from signoff.store.chosen_store import ChosenStore
from signoff.wiring.project import settings_for
from signoff.wiring.project_people import OnFile
from signoff.wiring.run_location import began_in, root_of
from signoff.wiring.stores import chosen_store


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedProject:
    """One of the projects of a server."""

    directory: str
    """Its real path, where its runs execute if they name no other directory."""
    settings: Settings
    on_file: OnFile

    @property
    def file(self) -> str:
        """The absolute path of its file; empty if it has none."""
        return os.path.abspath(self.settings.file) if self.settings.file else ""

    @property
    def root(self) -> str:
        """The directory of its file; empty if it has none."""
        return root_of(self.settings)

    @property
    def label(self) -> str:
        """Its name for people."""
        return os.path.basename(self.root or self.directory)

    def began(self, run: SavedRun) -> bool:
        """Return whether a run was started in this project, for runs of workers or of agents that a command named."""
        return bool(run.setup.project) is bool(self.root) and began_in(run.setup, self.root or self.directory)


@dataclass(frozen=True, slots=True)
class ServedProjects:
    """All projects of a server."""

    all: Sequence[ServedProject]
    store: ChosenStore

    @property
    def first(self) -> ServedProject:
        """The project in whose directory the process runs."""
        return self.all[0]

    @property
    def title(self) -> str:
        return ", ".join(dict.fromkeys(one.label for one in self.all))

    def of(self, run: SavedRun) -> ServedProject | None:
        """Return the project that a run belongs to; None: none of these."""
        if not run.agent:
            return self.of_agent(run.name) if run.name else None
        return next((one for one in self.all if one.began(run)), None)

    def of_agent(self, name: str) -> ServedProject | None:
        """Return the project whose file names this agent of a program."""
        return next((one for one in self.all if name in one.settings.agents), None)

    def of_channel(self, name: str) -> ServedProject:
        return next(one for one in self.all if name in one.settings.channels)

    async def look(self) -> None:
        """Read in a thread what has changed of the files that list people."""
        for one in self.all:
            await one.on_file.look()

    def people(self) -> Mapping[str, Person]:
        """Return the people in the file now."""
        return self.first.on_file.people()

    def roles(self) -> Mapping[str, frozenset[str]]:
        """Return roles by name, as of now. Raises `NotEntitled` if the file is invalid or the projects do not agree."""
        found = [one.on_file.roles() for one in self.all]
        if any(one != found[0] for one in found):
            raise NotEntitled("no answers are accepted while the projects here list different people")
        return found[0]


def served_projects(directories: Sequence[str], store: str | None) -> ServedProjects:
    """Load the projects in these directories. Raises `WrongUse` if one server cannot look after all of them."""
    found: list[ServedProject] = []
    for directory in dict.fromkeys(map(os.path.realpath, directories)):
        if not os.path.isdir(directory):
            raise WrongUse(f"there is no directory {directory}")
        settings = settings_for(None, directory=directory)
        found.append(ServedProject(directory=directory, settings=settings, on_file=OnFile(settings)))
    stores = {one.directory: chosen_store(store, one.settings) for one in found}
    _refuse_different(
        found,
        lambda one: stores[one.directory].address,
        "use different stores, but a server has only one",
        "name one for all with --store, or start a server for each",
    )
    _refuse_different(
        found,
        lambda one: one.settings.people,
        "name different people, or give them different roles",
        "one server has one team: write the same `people` in all of them, or start a server for each",
    )
    _refuse_different(
        found,
        lambda one: _origin(one.settings.server),
        "say different things under `server`",
        "one server has one address: write the same in all of them, or start a server for each",
    )
    _refuse_twice("channel", {one.directory: [*one.settings.channels] for one in found})
    _refuse_twice("agent", {one.directory: [*one.settings.agents] for one in found})
    return ServedProjects(found, stores[found[0].directory])


def _origin(server: ServerEntry) -> object:
    """Return the `server` settings to compare, without their places in the file."""
    oidc = server.oidc
    provider = (oidc.issuer, oidc.client_id, oidc.client_secret, oidc.claim) if oidc is not None else None
    return server.url, server.trusted_proxy, server.session, provider


def _refuse_different(
    found: Sequence[ServedProject], of: Callable[[ServedProject], object], what: str, fix: str
) -> None:
    other = next((one for one in found if of(one) != of(found[0])), None)
    if other is not None:
        raise WrongUse(f"{found[0].directory} and {other.directory} {what}\n  {fix}")


def _refuse_twice(what: str, names: Mapping[str, Sequence[str]]) -> None:
    """Raise if two projects, given by directory, use the same name."""
    known: dict[str, str] = {}
    for directory, own in names.items():
        for name in own:
            if (other := known.setdefault(name, directory)) != directory:
                raise WrongUse(f"{other} and {directory} both have the {what} {shown(name)}\n  give one another name")
