"""Where a project's state is kept, when nobody says where: outside of it, where its agents have no business.

A project carries an id, in `.signoff/project`, and its state directory says whose it is: the id, and where the project
was. So a project whose directory was renamed or moved finds its state again, and a copy of it does not take that away.
"""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, cast

from signoff.errors import StoreError, WrongUse

ID_FILE = Path(".signoff") / "project"
"""In a project: its id. Agents do not write there unasked."""
LABEL = "project.json"
"""In a state directory: whose it is."""
STORE = "signoff.db"
PROJECT_FILE = "signoff.yaml"

_ID = re.compile(r"[0-9a-f]{32}")
_IN_USE = (STORE, "grants.json")
_LONGEST = 10_000
"""Bytes that are read of an id or a label; there are never as many."""


@dataclass(frozen=True, slots=True)
class Home:
    """The state directory of a project, which need not exist yet."""

    directory: Path
    project: str
    id: str = ""
    """What the project carries; empty: nothing yet."""
    moved_from: str = ""
    """Where the project was when it was last used; empty: where it is now."""
    copy_of: str = ""
    """Another place that still holds a project with this id; empty: there is none."""
    former: Path | None = None
    """The state directory of a project that was here before, with another id."""

    @property
    def store(self) -> Path:
        return self.directory / STORE

    def settle(self) -> None:
        """Write down whose state this is, so that it is found again when the project moves.

        Where the project cannot be written to, it is found only as long as it stays where it is.
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
    """What a state directory says about whose it is."""

    directory: Path
    id: str
    project: str

    def is_of(self, path: str, own: str) -> bool:
        """Whether it is the project at a path, with the id it carries. Where one of them has none, the path counts."""
        return self.project == path and (own == self.id or "" in (own, self.id))

    @property
    def is_there(self) -> bool:
        """Whether the project is still where it was."""
        carried = id_of(self.project)
        return carried == self.id if carried else os.path.isfile(os.path.join(self.project, PROJECT_FILE))


def give_id(project: str) -> str:
    """The id of a project, which gets one if it has none: the one it had here, or a new one. Empty: it takes none."""
    file = Path(project) / ID_FILE
    if (own := id_of(project)) or file.parent.is_symlink():
        return own
    with suppress(OSError):  # whoever may only read here goes by the path
        if not file.parent.exists():
            file.parent.mkdir()
            (file.parent / ".gitignore").write_text("*\n", "utf-8")
        with suppress(FileExistsError), file.open("x", encoding="ascii") as out:
            out.write(f"{_earlier_id(project) or os.urandom(16).hex()}\n")
    return id_of(project)


def _earlier_id(project: str) -> str:
    """The id that the project at this place had when it was last used; empty where nobody knows."""
    root, path = state_root(), os.path.realpath(project)
    return next((one.id for one in labels(root) if one.project == path and one.id), "") if root is not None else ""


def state_root() -> Path | None:
    """Where the state of all projects is kept. None: nowhere."""
    state = os.environ.get("XDG_STATE_HOME", "")
    if not os.path.isabs(state):  # as the standard says: a relative one is to be ignored
        state = os.path.join(os.path.expanduser("~"), ".local", "state")
    if not os.path.isabs(state) or state.startswith("/.local"):
        return None
    return Path(state) / "signoff"


def home_of(project: str | os.PathLike[str]) -> Home | None:
    """Where the state of a project is kept. None: there is no home directory. Changes nothing.

    Raises `WrongUse` where several states could be meant.
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
    """The state directories that say whose they are."""
    with suppress(OSError):
        for directory in sorted(root.iterdir()):
            label = _label(directory)
            if label is not None:
                yield label


def unlabelled(root: Path) -> Iterator[Path]:
    """The state directories that do not: of an older signoff, or of a program without a project."""
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
    """The id that a project carries; empty where it carries none. A link is none: it leads to the id of another."""
    file = Path(project) / ID_FILE
    text = "" if file.parent.is_symlink() else _text(file).strip()
    return text if _ID.fullmatch(text) else ""


def _text(file: Path) -> str:
    """What a small file says; nothing where it is none, or a link."""
    try:
        handle = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)  # a pipe of that name is not waited for
        try:
            is_file = stat.S_ISREG(os.fstat(handle).st_mode)
            return os.read(handle, _LONGEST).decode("utf-8", "replace") if is_file else ""
        finally:
            os.close(handle)
    except OSError:
        return ""
