"""Find and read the files of a llm-do project, each once. Nothing outside of its directory is read."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from hashlib import sha256

from signoff.config.files import PROJECT_FILE, check_regular, from_here, text_of
from signoff.config.llm_do_words import SUFFIXES
from signoff.config.merge import NAME
from signoff.errors import Place, PolicyError, WrongFile, WrongUse
from signoff.policy.composer import read_document
from signoff.policy.document import document_of
from signoff.policy.phrases import shown
from signoff.policy.placed_value import ConfigValue

PROJECT_JSON = "project.json"
_OLD_SUFFIXES = (".yaml", ".yml")
"""Suffixes of worker files of llm-do's first months, in a directory called `workers`."""
_FENCE = "---"
_SKIPPED = frozenset({"node_modules", "__pycache__", "venv", "site-packages"})
_MOST_FILES = 1000


@dataclass(frozen=True, slots=True)
class Source:
    """A worker file of llm-do."""

    file: str
    """The path, short from the working directory."""
    name: str
    """The name of the new worker."""
    top: ConfigValue
    keys: dict[str, ConfigValue]
    body: str
    """The text below the keys, or under `instructions`; empty if there is none."""
    body_line: int
    """The line on which the text starts; 0 if it is not known."""


@dataclass(slots=True)
class Sources:
    """A project of llm-do, as read."""

    directory: str
    workers: list[Source] = field(default_factory=list["Source"])
    refused: dict[str, WrongFile] = field(default_factory=dict[str, WrongFile])
    """Files that cannot be converted, and why."""
    project: ConfigValue | None = None
    """The content of `project.json`."""
    unlisted: list[str] = field(default_factory=list[str])
    """Worker files that `project.json` does not name: llm-do does not read them either."""
    others: list[str] = field(default_factory=list[str])
    """Directories below that have a project of their own."""
    texts: dict[str, str] = field(default_factory=dict[str, str])
    """The texts that were read, by file."""

    def check_unchanged(self) -> None:
        """Raise if a file has changed since it was read."""
        for file, text in self.texts.items():
            try:
                now = text_of(file)
            except WrongFile as error:
                raise WrongUse(f"{file} changed while it was read; nothing was written\n  try again") from error
            if _digest(now) != _digest(text):
                raise WrongUse(f"{file} changed while it was read; nothing was written\n  try again")


def read_sources(directory: str, skip: Iterable[str] = ()) -> Sources:
    """Read the project in a directory, without the files in `skip`. Raises if there is nothing to read."""
    found = Sources(from_here(directory))
    skipped = {os.path.abspath(one) for one in skip}
    files = list(_walk(found))
    manifest = os.path.join(found.directory, PROJECT_JSON)
    if os.path.lexists(manifest) and os.path.abspath(manifest) not in skipped:
        found.project = _read_json(manifest, found)
        files = _listed(found, files)
    files = [file for file in files if os.path.abspath(file) not in skipped]
    if len(files) > _MOST_FILES:
        raise WrongUse(f"{found.directory} holds {len(files):,} worker files\n  name the directory of one project")
    for file in files:
        try:
            found.workers.append(_read_worker(file, found))
        except WrongFile as error:
            found.refused[file] = error
    _refuse_twins(found)
    if not found.workers and not found.refused and found.project is None:
        raise WrongUse(f"there are no files of llm-do in {found.directory}\n  {_nothing_here(found)}")
    return found


def _nothing_here(found: Sources) -> str:
    if found.others:
        named = ", ".join(found.others[:5]) + (" …" if len(found.others) > 5 else "")
        return f"there are projects below it; import them one by one: {named}"
    return "worker files end in .worker or .agent; a project has a project.json"


def _walk(found: Sources) -> Iterator[str]:
    """Worker files in the directory and below it; symlinks to directories are not followed."""
    top = found.directory
    ours = os.path.lexists(os.path.join(top, PROJECT_FILE))  # then YAML files in workers/ are signoff's own

    def fail(error: OSError) -> None:
        raise WrongUse(f"{from_here(error.filename or top)} cannot be read: {error.strerror}") from error

    for directory, below, files in os.walk(top, onerror=fail):
        below[:] = sorted(name for name in below if not name.startswith(".") and name not in _SKIPPED)
        for name in list(below):
            if os.path.lexists(os.path.join(directory, name, PROJECT_JSON)):
                found.others.append(os.path.join(directory, name))
                below.remove(name)
        in_workers = "workers" in os.path.relpath(directory, top).split(os.sep)
        for name in sorted(files):
            suffix = os.path.splitext(name)[1]
            if suffix in SUFFIXES or (suffix in _OLD_SUFFIXES and in_workers and not ours):
                yield os.path.normpath(os.path.join(directory, name))


def _listed(found: Sources, there: list[str]) -> list[str]:
    """The files that `project.json` names; all, if it has no list."""
    assert found.project is not None
    entries = found.project.entries(what="an object with the project's settings")
    lists = [entries[key] for key in ("agent_files", "worker_files") if key in entries]
    if not lists:
        return there
    named: list[str] = []
    for item in (item for one in lists for item in (one.items("a list of files") if one.value != [] else ())):
        file = os.path.normpath(os.path.join(found.directory, item.text("a file")))
        named.append(file)
        if not os.path.lexists(file):
            found.refused[file] = item.wrong(f"there is no file {shown(item.value)}", "remove it from the list")
    found.unlisted.extend(file for file in there if file not in named)
    return [file for file in dict.fromkeys(named) if file not in found.refused]


def text_inside(file: str, found: Sources) -> str:
    """Read a file, if it is inside of the directory after following all symlinks (no path traversal)."""
    inside = os.path.realpath(found.directory)
    try:
        real = os.path.realpath(file)
    except ValueError as error:
        raise WrongFile("this is not a path", place=Place(file)) from error
    if os.path.commonpath((inside, real)) != inside:
        fix = "copy the file into the directory, or leave it out with --skip"
        raise WrongFile(f"this leads out of {found.directory}", place=Place(file), fix=fix)
    check_regular(file)
    text = text_of(file)
    found.texts[file] = text
    return text


def _read_json(file: str, found: Sources) -> ConfigValue:
    text = text_inside(file, found)
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        place = Place(file, error.lineno, error.colno)
        raise WrongFile(f"this is not JSON: {error.msg}", place=place, fix="repair the file first") from error
    except RecursionError as error:
        raise WrongFile("this is nested too deeply", place=Place(file)) from error
    except ValueError as error:  # a number with thousands of digits
        raise WrongFile(str(error), place=Place(file)) from error
    try:
        document = read_document(text, file=file)  # JSON is YAML, and this parser keeps the lines
    except PolicyError:
        document = document_of(value, file=file)
    spot = ConfigValue.top(document)
    spot.entries(what="an object with the project's settings")
    return spot


def _read_worker(file: str, found: Sources) -> Source:
    text = text_inside(file, found).removeprefix("\ufeff").replace("\r\n", "\n")
    front, body, line = _parted(text)
    top = ConfigValue.top(read_document(front, file=file))
    keys = top.entries(what="a mapping with the worker's keys, such as {name: main}")
    if not body and "instructions" in keys and isinstance(keys["instructions"].value, str):
        body, line = keys["instructions"].value.strip(), 0
    return Source(file, _name(file, top, keys), top, keys, body, line)


def _parted(text: str) -> tuple[str, str, int]:
    """The keys, on their original lines; the text below them; and the line on which it starts."""
    lines = text.split("\n")
    start = next((at for at, line in enumerate(lines) if line.strip()), 0)
    if lines[start].rstrip() != _FENCE:
        return text, "", 0
    for at in range(start + 1, len(lines)):
        if lines[at].rstrip() == _FENCE:
            first = next((one for one in range(at + 1, len(lines)) if lines[one].strip()), at)
            keys = "\n".join(("",) * (start + 1) + tuple(lines[start + 1 : at]))
            return keys, "\n".join(lines[at + 1 :]).strip(), first + 1
    return text, "", 0


def _name(file: str, top: ConfigValue, keys: dict[str, ConfigValue]) -> str:
    if "name" in keys:
        name, spot = keys["name"].text("the worker's name"), keys["name"]
    else:
        stem = os.path.splitext(os.path.basename(file))[0]
        name, spot = os.path.basename(os.path.dirname(file)) if stem == "worker" else stem, top
    if not re.fullmatch(NAME, name):
        fix = "write `name:` with letters, digits, `_` and `-`, and change it where other files name it"
        raise spot.wrong(f"bad name {shown(name)} for a worker", fix)
    if name.lower() == "readme":
        raise spot.wrong(
            "signoff ignores workers/README.md, so no worker can have this name", "give it another `name:`"
        )
    return name


def _refuse_twins(found: Sources) -> None:
    """Refuse both of two files for one worker: it is not clear which one is meant."""
    by_name: dict[str, list[Source]] = {}
    for source in found.workers:
        by_name.setdefault(source.name.casefold(), []).append(source)
    for twins in by_name.values():
        for one in twins if len(twins) > 1 else ():
            other = next(twin.file for twin in twins if twin is not one)
            place = one.keys["name"].place if "name" in one.keys else Place(one.file)
            fix = "import one project at a time, or leave one of them out with --skip"
            found.refused[one.file] = WrongFile(
                f"{other} also becomes the worker {shown(one.name)}", place=place, fix=fix
            )
            found.workers.remove(one)


def _digest(text: str) -> str:
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
