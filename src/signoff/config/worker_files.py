"""Load worker files: `workers/NAME.yaml`, `.yml` or `.md` below the project directory, with the files they extend."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from functools import cached_property, partial
from typing import Any

from signoff.config.entries import EVERY_WORKER, Limits, WorkerFile
from signoff.config.files import PROJECT_FILE, own_text
from signoff.config.llm_do_words import foreign_files, import_hint
from signoff.config.merge import NAME, lineage, merged
from signoff.config.settings import Settings
from signoff.config.worker_keys import (
    NOT_INHERITED,
    SAME,
    SPEC_KEYS,
    check_worker,
    delegate_names,
    read_limits,
    read_worker_policy,
    toolset_names,
)
from signoff.config.worker_text import SUFFIXES, read_worker_text
from signoff.core.canonical import digest
from signoff.errors import Place, WrongFile, WrongUse
from signoff.policy.engine import Policy
from signoff.policy.format import read_names
from signoff.policy.parse import with_naming
from signoff.policy.phrases import did_you_mean, shown
from signoff.policy.placed_value import ConfigValue

DIRECTORY = "workers"

_DEEP = ("model_settings", "metadata")
"""Keys that are merged key by key with the extended worker. All others are replaced, and rules add up."""


def worker_names(settings: Settings) -> list[str]:
    """The workers of a project, by the names of their files. No file is read."""
    return sorted(_files(settings))


def load_workers(settings: Settings) -> Mapping[str, WorkerFile]:
    """Load every worker of the project. Raises `WrongFile` for the first file with an error."""
    desk = _Desk(settings)
    found = {name: desk.worker(name) for name in sorted(desk.files)}
    for name in found:
        desk.refuse_circles(name)
    return found


def load_worker(settings: Settings, name: str) -> WorkerFile:
    """Load one worker. Of the other files, only those it extends are checked. Raises `WrongUse` for an unknown name."""
    desk = _Desk(settings)
    if name not in desk.files:
        where = workers_directory(settings)
        if not name.strip():
            raise WrongUse(
                f"this is not the name of a worker: {shown(name)}\n  `signoff workers` lists those in {where}"
            )
        for file in foreign_files(where, set(desk.files)):
            if os.path.splitext(os.path.basename(file))[0] == name:
                raise WrongUse(f"{file}: {import_hint(file)}")
        there = did_you_mean(name, desk.files) or f"write it as {os.path.join(where, 'NAME.yaml')}"
        if not settings.file:
            there += "; there is no signoff.yaml here or above: a worker of a project runs inside of the project"
        raise WrongUse(f"there is no worker {shown(name)} in {where}\n  {there}")
    worker = desk.worker(name)
    desk.refuse_circles(name)
    return worker


def parse_worker(text: str, file: str, settings: Settings) -> WorkerFile:
    """Parse a worker from a text that need not be a file yet; `file` is the path it is meant for."""
    name = os.path.splitext(os.path.basename(file))[0]
    desk = _Desk(settings, {name: text}, {name: [file]})
    worker = desk.worker(name)
    desk.refuse_circles(name)
    return worker


def worker_text(file: str, *, missing: str = "") -> str:
    """Read a worker file. Raises `WrongFile` if it cannot be read, or belongs to another user.

    `missing` says what to do if there is no such file.
    """
    return own_text(file, missing=missing)


def workers_directory(settings: Settings) -> str:
    """The directory of the worker files, as a path that is short from here."""
    beside = os.path.dirname(settings.file)
    is_short = settings.file and os.path.realpath(beside or ".") == os.path.realpath(settings.directory)
    return os.path.join(beside if is_short else settings.directory, DIRECTORY)


def _files(settings: Settings) -> dict[str, list[str]]:
    """The files of every worker name. Two for one name are an error, which is raised when they are read."""
    directory = workers_directory(settings)
    found: dict[str, list[str]] = {}
    try:
        listed = sorted(os.listdir(directory))
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except OSError as error:
        raise WrongFile(f"{directory} cannot be read: {error.strerror}") from error
    for file in listed:
        name, suffix = os.path.splitext(file)
        if suffix in SUFFIXES and not name.startswith(".") and file.lower() != "readme.md":
            found.setdefault(name, []).append(os.path.join(directory, file))
    return found


class _Desk:
    """The worker files of one project while they are loaded, each once."""

    def __init__(
        self,
        settings: Settings,
        texts: Mapping[str, str] | None = None,
        files: Mapping[str, list[str]] | None = None,
    ) -> None:
        self.settings = settings
        self.texts = texts or {}
        self.files = {**_files(settings), **(files or {})}
        self.project_file = settings.file or PROJECT_FILE
        self._read: dict[str, tuple[ConfigValue, dict[str, ConfigValue]]] = {}
        self._workers: dict[str, WorkerFile] = {}

    def read(self, name: str) -> tuple[ConfigValue, dict[str, ConfigValue]]:
        """The top value and the keys of one file, validated by themselves."""
        if name not in self._read:
            file, *others = self.files[name]
            if others:
                what = f"{shown(name)} is defined twice: also in {others[0]}"
                raise WrongFile(what, place=Place(file), fix="keep one of the two files")
            if not re.fullmatch(NAME, name):
                fix = "name the file with letters, digits, `_` and `-`"
                raise WrongFile(f"bad name {shown(name)} for a worker", place=Place(file), fix=fix)
            text = self.texts[name] if name in self.texts else worker_text(file)
            top, entries = read_worker_text(text, file)
            if "toolsets" in entries:
                toolset_names(entries["toolsets"], self.project_file)  # for errors that name the project's file
            check_worker(entries, self.project_file)
            if "name" in entries and entries["name"].value != name:
                fix = f"write `name: {name}`, leave it out, or rename the file"
                what = f"the file is {shown(os.path.basename(file))}, so the worker is called {shown(name)}"
                raise entries["name"].wrong(what, fix)
            self._read[name] = top, entries
        return self._read[name]

    def worker(self, name: str) -> WorkerFile:
        if name not in self._workers:
            self._workers[name] = self._worker(name)
        return self._workers[name]

    def _worker(self, name: str) -> WorkerFile:
        line = lineage(name, lambda one: self.read(one)[1].get("extends"), self.files, "worker")
        layers = [("defaults", self._defaults), *((one, self.read(one)[1]) for one in line)]
        keys = _inherited([entries for _, entries in layers], self.read(name)[1])
        deep = {key: merged(e[key] for _, e in layers if key in e) for key in _DEEP if key in keys}
        limits = self._limits([entries["limits"] for _, entries in layers[1:] if "limits" in entries])
        spec = {key: deep[key].value if key in deep else spot.value for key, spot in keys.items() if key in SPEC_KEYS}
        policy, rules = self._policy(name, [(one, e["policy"]) for one, e in layers if "policy" in e])
        lists = {
            "toolsets": self._toolsets([entries["toolsets"] for _, entries in layers if "toolsets" in entries]),
            "delegates": self._delegates(keys["delegates"]) if "delegates" in keys else [],
            "approvers": self._approvers(keys["approvers"]) if "approvers" in keys else [],
            "attachments": self._attachments(keys["attachments"]) if "attachments" in keys else [],
        }
        items = {f"{key}[{at}]": spot for key, found in lists.items() for at, spot in enumerate(found)}
        return WorkerFile(
            name=name,
            file=self.files[name][0],
            description=keys["description"].line() if "description" in keys else "",
            spec={**{key: value for key, value in spec.items() if key != "$schema"}, "name": name},
            **{key: tuple(spot.value for spot in found) for key, found in lists.items()},
            creates=keys["creates"].value if "creates" in keys else False,
            on_denied=keys["on_denied"].value if "on_denied" in keys else "",
            policy=policy,
            limits=read_limits(limits) if limits else Limits(),
            input=keys["input"].value if "input" in keys else None,
            output=keys["output"].value if "output" in keys else None,
            spot=self.read(name)[0],
            spots={**keys, **items, **{f"limits.{key}": spot for key, spot in limits.items()}},
            policy_spots=rules,
        )

    @cached_property
    def _defaults(self) -> dict[str, ConfigValue]:
        defaults = self.settings.defaults.get("worker")
        return defaults.entries() if defaults is not None else {}

    def _policy(
        self, name: str, written: list[tuple[str, ConfigValue]]
    ) -> tuple[Policy | None, tuple[ConfigValue, ...]]:
        """The rules of a worker and of all it extends. Each rule keeps the name of its file."""
        if not written:
            return None, ()
        directory = self.settings.directory
        parts = [read_worker_policy(spot, owner, directory, self.project_file) for owner, spot in written]
        spots = tuple(spot.child(at) for _, spot in written for at in range(len(spot.value)))
        rules = tuple(rule for part in parts for rule in part.rules)
        seen: set[str] = set()
        for rule, spot in zip(rules, spots, strict=True):
            if rule.id in seen:
                raise spot.wrong(f"the id {shown(rule.id)} is taken by a rule it extends", "give each rule its own id")
            seen.add(rule.id)
        if any(rule.otherwise for rule in rules):  # an `otherwise` also counts what extended files name
            rules = tuple(with_naming(rule, spot) for rule, spot in zip(rules, spots, strict=True))
        revision = parts[0].revision if len(parts) == 1 else digest([part.revision for part in parts])
        return Policy(rules=rules, file=self.files[name][0], name=name, root=directory, revision=revision), spots

    def _limits(self, written: list[ConfigValue]) -> dict[str, ConfigValue]:
        """The position of each limit: the lower one of the worker's own and the project's default."""
        own = merged(written).spots
        every = self._defaults["limits"].entries() if "limits" in self._defaults else {}
        return {
            key: min((side[key] for side in (own, every) if key in side), key=partial(_limit, key))
            for key in {**every, **own}
        }

    def _approvers(self, spot: ConfigValue) -> list[ConfigValue]:
        """The roles that answer for a worker: its own, restricted to the project's default if there is one."""
        own = read_names(spot, "roles")
        every = read_names(self._defaults["approvers"], "roles") if "approvers" in self._defaults else []
        if not every or not own:
            return own or every
        allowed = [item.value for item in every]
        if both := [item for item in own if item.value in allowed]:
            return both
        what = f"{' or '.join(map(shown, allowed))} answers for every worker ({every[0].place})"
        raise own[0].wrong(f"{what}, so {shown(own[0].value)} alone cannot", "leave it out, or change it there")

    def _toolsets(self, written: list[ConfigValue]) -> list[ConfigValue]:
        """The toolsets of a worker: each file replaces or changes those of the file it extends."""
        found: list[ConfigValue] = []
        for spot in written:
            found = toolset_names(spot, self.project_file).after(found)
        return found

    def _delegates(self, spot: ConfigValue) -> list[ConfigValue]:
        items = delegate_names(spot)
        for item in items:
            if item.value != EVERY_WORKER and item.value not in self.files:
                fix = did_you_mean(item.value, self.files)
                raise item.wrong(f"there is no worker {shown(item.value)} to delegate to", fix)
        return items

    def _attachments(self, spot: ConfigValue) -> list[ConfigValue]:
        """Only files below the project directory (no path traversal): no private key may go to a model."""
        items = read_names(spot, "files")
        inside = os.path.realpath(self.settings.directory)
        for item in items:
            try:
                path = os.path.realpath(os.path.join(os.path.dirname(item.document.file), item.value))
            except ValueError as error:  # characters that no file system accepts
                raise item.wrong(f"{shown(item.value)} is not a path") from error
            if item.value.startswith("~") or os.path.commonpath((inside, path)) != inside:
                fix = "write a path relative to the worker's file, inside the project directory"
                raise item.wrong(f"{shown(item.value)} is outside the project", fix)
        return items

    def refuse_circles(self, start: str) -> None:
        """Raise if workers delegate to each other in a cycle that starts at, or is reachable from, this one."""
        path = [start]
        open_: list[Iterator[tuple[str, ConfigValue]]] = [self._edges(start)]
        done: set[str] = set()
        while open_:
            for below, spot in open_[-1]:
                if below in path:
                    circle = " > ".join((*path[path.index(below) :], below))
                    fix = "take one of them out of `delegates`"
                    raise spot.wrong(f"workers delegate to each other in a cycle: {circle}", fix)
                if below not in done:
                    path.append(below)
                    open_.append(self._edges(below))
                    break
            else:
                done.add(path.pop())
                open_.pop()

    def _edges(self, name: str) -> Iterator[tuple[str, ConfigValue]]:
        """The workers that a worker names, with positions; none for a file with errors, which fails when loaded."""
        try:
            worker = self.worker(name)
        except WrongFile:
            return
        for at, below in enumerate(worker.delegates):
            if below != EVERY_WORKER:
                yield below, worker.spots[f"delegates[{at}]"]


def _limit(key: str, spot: ConfigValue) -> Any:
    return getattr(read_limits({key: spot}), key)


def _inherited(layers: list[dict[str, ConfigValue]], own: Mapping[str, ConfigValue]) -> dict[str, ConfigValue]:
    """The effective keys: the innermost of each. Of two names for one key, the innermost counts, too."""
    keys: dict[str, ConfigValue] = {}
    for layer in layers:
        for key, spot in layer.items():
            keys.pop(SAME.get(key, ""), None)
            keys[key] = spot
    for key in NOT_INHERITED:
        keys.pop(key, None)
    return {**keys, **{key: own[key] for key in NOT_INHERITED if key in own}}
