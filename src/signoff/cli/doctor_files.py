"""Checks of `signoff doctor` on file permissions: who else can read secrets or change rules."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from signoff.cli.doctor_findings import ERROR, WARNING, Files, Finding, secret_findings
from signoff.store.signing_key import keys_directory

if TYPE_CHECKING:
    from signoff.config import Settings

_READ, _WRITE = 0o4, 0o2


def file_findings(files: Files) -> Iterator[Finding]:
    """Files with rules that others can write, and files with secrets that others can read."""
    settings = files.settings
    for path in _rule_files(files):
        if who := who_else_can(path, _WRITE):
            severity = ERROR if who == "everybody" else WARNING
            what = f"{who} on this machine can change {_short(path)}, and so what runs without a question"
            yield Finding(severity=severity, check="writable", what=what, place=_short(path), fix=f"chmod go-w {path}")
    for path in _secret_files(settings):
        if who := who_else_can(path, _READ):
            what = f"{who} on this machine can read {_short(path)}, which holds secrets"
            yield Finding(
                severity=ERROR, check="secret-readable", what=what, place=_short(path), fix=f"chmod 600 {path}"
            )


def _rule_files(files: Files) -> Iterator[Path]:
    settings = files.settings
    if settings.file:
        yield Path(settings.file)
    if settings.user is not None and settings.user.file:
        yield Path(settings.user.file)
    yield from (Path(one.file) for one in files.environment if os.path.isfile(one.file))
    for worker in files.workers.values():
        yield Path(worker.file)
    if (code := Path(settings.directory) / "toolsets.py").exists():
        yield code


def _secret_files(settings: Settings) -> Iterator[Path]:
    directory = Path(settings.directory)
    if settings.file and any(secret_findings(settings)):
        yield Path(settings.file)
    yield from sorted(one for one in directory.glob(".env*") if one.is_file() and not _is_template(one.name))
    keys = keys_directory()
    if keys is not None and (key := keys / "record.key").exists():
        yield key


def _is_template(name: str) -> bool:
    return name.endswith((".example", ".sample", ".template", ".dist"))


def who_else_can(path: str | os.PathLike[str], what: int) -> str:
    """Who besides the owner may read (4) or write (2) a file, by its permission bits; empty if nobody.

    Write access to a parent directory allows replacing what is below it. If nobody else can pass a parent directory,
    nobody else can reach the file.
    """
    try:
        target = Path(os.path.realpath(path))
        chain = [target, *target.parents]
        modes = [one.stat() for one in chain]
    except OSError:
        return ""
    if _may(modes, what, everybody=True):
        return "everybody"
    return "a group" if _may(modes, what, everybody=False) else ""


def _may(modes: list[os.stat_result], what: int, *, everybody: bool) -> bool:
    file, *directories = modes
    if all(_bits(one, everybody) & 0o1 for one in directories) and _bits(file, everybody) & what:
        return True
    if what != _WRITE:
        return False
    for at, directory in enumerate(directories):
        is_sticky = directory.st_mode & stat.S_ISVTX
        reached = all(_bits(one, everybody) & 0o1 for one in directories[at:])
        if reached and not is_sticky and _bits(directory, everybody) & _WRITE:
            return True
    return False


def _bits(status: os.stat_result, everybody: bool) -> int:
    """Permission bits of others: of everybody, or also of the file's group unless the group is private to the owner."""
    others = status.st_mode & 0o7
    return others if everybody or _is_private(status) else others | (status.st_mode >> 3 & 0o7)


def _is_private(status: os.stat_result) -> bool:
    """Whether the owner is the only member of the file's group, as on systems with a group for each user."""
    try:
        import grp
        import pwd

        group, owner = grp.getgrgid(status.st_gid), pwd.getpwuid(status.st_uid)
    except (ImportError, KeyError):
        return False
    return group.gr_name == owner.pw_name and not set(group.gr_mem) - {owner.pw_name}


def _short(path: Path) -> str:
    """A path for display: relative if it is below the current directory."""
    try:
        return str(Path(os.path.abspath(path)).relative_to(os.getcwd()))
    except ValueError:
        return str(path)
