"""Workers that another worker writes: clipped to what the creator has, shown in full, and written once as shown."""

from __future__ import annotations

import errno
import os
import re
import tempfile
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, cast

import yaml

from signoff.config import Settings, WorkerFile, parse_worker, worker_names, workers_directory
from signoff.core.canonical import digest
from signoff.errors import WrongFile, WrongUse
from signoff.policy.phrases import shown
from signoff.workers.bounds import Bounds, bounds_of, refuse_trusted, why_unreadable
from signoff.workers.build import plan_of
from signoff.workers.clip import Clipped, capabilities_of, limits_of, written_limit
from signoff.workers.worker_prompt import why_private

LONGEST_FILE = 20_000
"""Characters. Nobody reads a longer file to the end, so nobody can approve it."""
NAME = "[a-z0-9][a-z0-9_-]{0,63}"
"""Pattern for the name of a new worker."""

_NO_LINKS = frozenset({errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK, errno.EXDEV})
"""Error numbers of file systems without hard links."""


@dataclass(frozen=True, slots=True)
class NewWorker:
    """A new worker as it would be written."""

    name: str
    path: str
    text: str
    """The whole file."""
    cut: tuple[str, ...]
    """What was asked for and is not in it, one sentence each."""


def draft(
    settings: Settings,
    creator: WorkerFile,
    name: str,
    text: str,
    taken: Collection[str] = (),
    bounds: Bounds | None = None,
) -> NewWorker:
    """Return the file that `text` becomes, clipped to what its creator has.

    `taken` are names besides those of the project's files; `bounds` is what applies to the creator, if more is known
    than the project's file says. Raises `WrongUse`, or `WrongFile` with the place in `text`, if there is nothing to
    write.
    """
    path = _path(settings, name)
    bounds = bounds or bounds_of(settings, creator)
    refuse_trusted(bounds.layers, name, creator.name)
    if len(text) > LONGEST_FILE:
        raise WrongUse(f"the file has {len(text)} characters; over {LONGEST_FILE} it is too long to be approved")
    written = parse_worker(text, _meant(path, text), settings)
    _refuse(written, creator, bounds)
    plan_of(written)
    values, cut = Clipped(settings, creator, written, bounds).values()
    effective = _as_yaml(values)
    if len(effective) > LONGEST_FILE:
        raise WrongUse(f"with its creator's rules the file has over {LONGEST_FILE} characters; make it shorter")
    _check_again(settings, creator, bounds, path, effective, values)
    made = NewWorker(name, path, effective, tuple(cut))
    there = {one.lower() for one in (*worker_names(settings), *taken)}
    if (name in there or os.path.lexists(path)) and not _is_written(made):
        raise WrongUse(f"there is a worker {shown(name)} already: choose another name, or call it")
    return made


def _check_again(
    settings: Settings, creator: WorkerFile, bounds: Bounds, path: str, text: str, values: Mapping[str, Any]
) -> None:
    """Check that the written file, parsed again, means the same. Its line numbers are not those of the draft."""
    try:
        again = parse_worker(text, path, settings)
        plan_of(again)
    except WrongFile as error:
        where = f"{error.place.key}: " if error.place is not None and error.place.key else ""
        fix = f"\n  {error.fix}" if error.fix else ""
        what = f"with what every worker of {creator.name} must have, the file is not valid"
        raise WrongUse(f"{what}: {where}{error.what}{fix}") from error
    same, more = Clipped(settings, creator, again, bounds).values()
    if more or same != values:
        raise WrongUse("the file would change its meaning when signoff writes it; write it in a simpler way")


def powers(settings: Settings, creator: WorkerFile, bounds: Bounds | None = None) -> str:
    """Describe in words what a new worker can have at most. The text changes with everything a draft depends on."""
    bounds = bounds or bounds_of(settings, creator)
    limits = limits_of(creator.limits)
    most = ", ".join(f"{name} {written_limit(value)}" for name, value in limits.items()) or "none"
    bound = [spot.value for spot in creator.policy_spots]
    defaults = settings.defaults["worker"].value if "worker" in settings.defaults else None
    depends_on = [bound, creator.spec, defaults, bounds.revision]
    return (
        f"At most: toolsets {_names(creator.toolsets)}; delegates {_names(creator.delegates)}; limits {most}; "
        f"model {creator.spec.get('model', 'the default')}; capabilities {len(capabilities_of(creator))}; "
        f"its creator's {len(bound)} rules and approvers {_names(creator.approvers)} hold for it too "
        f"[{digest(depends_on)[:12]}]."
    )


def write(made: NewWorker) -> None:
    """Write the file atomically, and never over another one. An identical file is left alone."""
    if _is_written(made):
        return
    directory, temporary = os.path.dirname(made.path), ""
    try:
        os.makedirs(directory, exist_ok=True)
        handle, temporary = tempfile.mkstemp(prefix=".", suffix=".part", dir=directory)
        with os.fdopen(handle, "w", encoding="utf-8") as stream:
            stream.write(made.text)
            stream.flush()
            os.fsync(stream.fileno())
        os.chmod(temporary, 0o644)
        _place(temporary, made.path)
    except FileExistsError as error:
        raise WrongUse(f"the file {made.path} exists now; nothing was written") from error
    except OSError as error:
        raise WrongUse(f"{made.path} cannot be written: {error.strerror}") from error
    finally:
        with suppress(FileNotFoundError):  # nothing was begun, or it already has its final name
            os.unlink(temporary)


def _place(temporary: str, path: str) -> None:
    """Give a file its name. Unlike a rename, this never replaces an existing file."""
    try:
        os.link(temporary, path)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        os.close(
            os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644)
        )  # only an empty file of our own is replaced
        os.replace(temporary, path)


def _path(settings: Settings, name: str) -> str:
    if not re.fullmatch(NAME, name):
        raise WrongUse(f"bad name {shown(name)} for a worker: use small letters, digits, `_` and `-`")
    directory = workers_directory(settings)
    if os.path.realpath(directory) != os.path.join(os.path.realpath(settings.directory), os.path.basename(directory)):
        raise WrongUse(f"{directory} is a symbolic link, and signoff writes no worker through it")
    return os.path.join(directory, f"{name}.yaml")


def _is_written(made: NewWorker) -> bool:
    """Return whether exactly this file exists: a call whose process died after writing is made again, and finds it."""
    if os.path.islink(made.path):
        return False
    try:
        with open(made.path, encoding="utf-8", newline="") as stream:
            return stream.read(LONGEST_FILE + 1) == made.text
    except (OSError, UnicodeDecodeError):
        return False


def _meant(path: str, text: str) -> str:
    """Return the path that the text is parsed as: Markdown if it has front matter between two lines of dashes."""
    lines = [line.rstrip() for line in text.split("\n")]
    return f"{os.path.splitext(path)[0]}.md" if lines[0] == "---" and "---" in lines[1:] else path


def _refuse(written: WorkerFile, creator: WorkerFile, bounds: Bounds) -> None:
    """Refuse what cannot be clipped, because the rest would make no sense without it."""
    if (spot := written.spots.get("extends")) is not None:
        raise spot.wrong_key("a new worker extends no other", "write out what it should have")
    known = capabilities_of(creator)
    for one in capabilities_of(written):
        if one not in known:
            where = written.spots.get("capabilities", written.spot)
            raise where.wrong(f"its creator {creator.name} does not have this capability", "leave it out")
    for number, name in enumerate(written.attachments):
        spot = written.spots[f"attachments[{number}]"]
        if why := why_private(written.file, name):
            raise spot.wrong(f"{shown(name)} {why}", "leave it out")
        if why := why_unreadable(bounds, creator, os.path.join(os.path.dirname(written.file), name)):
            raise spot.wrong(f"{shown(name)} cannot be attached: {why}", "leave it out")


def _names(names: Collection[str]) -> str:
    return ", ".join(names) or "none"


class _WorkerDumper(yaml.SafeDumper):
    """Writes multi-line strings as blocks, and every value in full, without aliases."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = "|" if "\n" in text else None
    return cast("Any", dumper).represent_scalar("tag:yaml.org,2002:str", text, style=style)


_WorkerDumper.add_representer(str, _text)


def _as_yaml(values: Mapping[str, Any]) -> str:
    return yaml.dump(dict(values), Dumper=_WorkerDumper, sort_keys=False, allow_unicode=True, width=10**6)
