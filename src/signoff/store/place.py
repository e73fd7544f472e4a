"""The default state directory of a project: outside the project, where its agents do not work.

A project has an id in `.signoff/project`, and a label in its state directory holds that id and the project's path. So a
project finds its state again after its directory was renamed or moved, and a copy of the project does not take it over.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, cast

from signoff.errors import StoreError, WrongUse
from signoff.regular_file import bytes_of

ID_FILE = Path(".signoff") / "project"
"""The file with a project's id, relative to the project. Agents do not write there without asking."""
LABEL = "project.json"
"""The file in a state directory that says which project it belongs to."""
STORE = "signoff.db"
PROJECT_FILE = "signoff.yaml"

_ID = re.compile(r"[0-9a-f]{32}")
_IN_USE = (STORE, "grants.db")
_LONGEST = 10_000
"""Most bytes that are read of an id or a label. Real ones are shorter."""


@dataclass(frozen=True, slots=True)
class Home:
    """The state directory of a project, which need not exist yet."""

    directory: Path
    project: str
    id: str = ""
    """The project's id; empty if it has none yet."""
    moved_from: str = ""
    """The path of the project when it was last used; empty if it did not move."""
    copy_of: str = ""
    """Another path that still holds a project with this id; empty if there is none."""
    former: Path | None = None
    """The state directory of a project with another id that was at this path before."""

    @property
    def store(self) -> Path:
        return self.directory / STORE

    def settle(self) -> None:
        """Write the label of the state directory, so that it is found again when the project moves.

        If the project directory is not writable it gets no id, and the state is found only while the project stays at
        its path.
        """
        own = self.id or give_id(self.project)
        if _label(self.directory) == (wanted := Label(self.directory, own, self.project)):
            return
        try:
            self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            temporary = self.directory / f"{LABEL}.{os.urandom(8).hex()}"
            temporary.write_text(json.dumps({"id": wanted.id, "project": wanted.project}) + "\n", "utf-8")
            temporary.replace(self.directory / LABEL)
        except OSError as error:
            raise StoreError(
                f"the store {self.store} cannot be created ({error.strerror}): "
                "make its directory writable for you, or name another with --store sqlite:FILE"
            ) from error


@dataclass(frozen=True, slots=True)
class Label:
    """What the label of a state directory says: the id and the path of its project."""

    directory: Path
    id: str
    project: str

    def is_of(self, path: str, own: str) -> bool:
        """Whether this is the label of the project at a path, with an id. If either has no id, the path decides."""
        return self.project == path and (own == self.id or "" in (own, self.id))

    @property
    def is_there(self) -> bool:
        """Whether the project is still at its path."""
        carried = id_of(self.project)
        return carried == self.id if carried else os.path.isfile(os.path.join(self.project, PROJECT_FILE))


def give_id(project: str) -> str:
    """Return the id of a project, and create one if it has none: the one it had at this path before, or a new one.

    Returns an empty string if the id cannot be written.
    """
    file = Path(project) / ID_FILE
    if (own := id_of(project)) or file.parent.is_symlink():
        return own
    with suppress(OSError):  # in a read-only project the path has to do
        if not file.parent.exists():
            file.parent.mkdir()
            (file.parent / ".gitignore").write_text("*\n", "utf-8")
        with suppress(FileExistsError), file.open("x", encoding="ascii") as out:
            out.write(f"{_earlier_id(project) or os.urandom(16).hex()}\n")
    return id_of(project)


def _earlier_id(project: str) -> str:
    """The id that the project at this path had when it was last used; empty if unknown."""
    root, path = state_root(), os.path.realpath(project)
    return next((one.id for one in labels(root) if one.project == path and one.id), "") if root is not None else ""


def state_root() -> Path | None:
    """The directory with the state of all projects. None if there is no home directory."""
    state = os.environ.get("XDG_STATE_HOME", "")
    if not os.path.isabs(state):  # the XDG standard says to ignore a relative path
        state = os.path.join(os.path.expanduser("~"), ".local", "state")
    if not os.path.isabs(state) or state.startswith("/.local"):
        return None
    return Path(state) / "signoff"


def home_of(project: str | os.PathLike[str]) -> Home | None:
    """Find the state directory of a project. None if there is no home directory. Changes nothing.

    Raises `WrongUse` if there are several candidates.
    """
    root = state_root()
    if root is None:
        return None
    path = os.path.realpath(project)
    own = id_of(path)
    usual = root / sha256(path.encode("utf-8", "surrogateescape")).hexdigest()[:16]
    label = _label(usual)
    if label is not None and label.is_of(path, own):
        return Home(usual, path, own)
    known = [one for one in labels(root) if (one.id == own if own else one.project == path)]
    if here := next((one for one in known if one.project == path), None):
        return Home(here.directory, path, own)
    moved = [one for one in known if not one.is_there]
    if len(moved) > 1:
        raise WrongUse(
            f"{path} has moved, and so have copies of it: which of their stores is meant?\n"
            f"  They were at {' and '.join(one.project for one in moved)}.\n"
            "  Name one of those that signoff stores lists: --store sqlite:FILE"
        )
    if moved:
        return Home(moved[0].directory, path, own, moved_from=moved[0].project)
    directory, number = usual, 1
    while (label := _label(directory)) is not None:
        number += 1
        directory = usual.with_name(f"{usual.name}-{number}")
    former = next((one.directory for one in labels(root) if one.project == path), None)
    return Home(directory, path, own, copy_of=known[0].project if known else "", former=former)


def labels(root: Path) -> Iterator[Label]:
    """The labels of all state directories that have one."""
    with suppress(OSError):
        for directory in sorted(root.iterdir()):
            label = _label(directory)
            if label is not None:
                yield label


def unlabelled(root: Path) -> Iterator[Path]:
    """State directories in use that have no label: of a program without a project."""
    with suppress(OSError):
        for directory in sorted(root.iterdir()):
            if _label(directory) is None and any((directory / name).exists() for name in _IN_USE):
                yield directory


def _label(directory: Path) -> Label | None:
    text = _text(directory / LABEL)
    try:
        found = json.loads(text)
    except ValueError:
        return None
    if not isinstance(found, dict):
        return None
    told = cast("dict[str, Any]", found)
    own, project = told.get("id"), told.get("project")
    if not isinstance(own, str) or not isinstance(project, str) or (own and not _ID.fullmatch(own)):
        return None
    return Label(directory, own, project)


def id_of(project: str) -> str:
    """Return the id of a project; empty if it has none. A symlink is ignored: it leads to another project's id."""
    file = Path(project) / ID_FILE
    text = "" if file.parent.is_symlink() else _text(file).strip()
    return text if _ID.fullmatch(text) else ""


def _text(file: Path) -> str:
    """Read a small text file; empty if it cannot be read, is not a regular file or is a symlink."""
    try:
        return bytes_of(file, _LONGEST, follow=False).decode("utf-8", "replace")
    except OSError:
        return ""
