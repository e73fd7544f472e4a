"""Which repository a git command of a coding agent would work in, and whether that one may make it run programs.

A coding agent's git takes its configuration as it is. In a directory that the agent made, or that came with a clone, it
may name programs. So git is only left to the rules in the project's own repository.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from signoff.disk_steps import DiskSteps
from signoff.outside.outside_call import OutsideCall
from signoff.policy.phrases import shown
from signoff.policy.shell.command_facts import read_shell
from signoff.policy.step_count import COSTS, Unclear
from signoff.regular_file import bytes_of
from signoff.toolsets.builtin.shell.git_config import repository_runs

_POINTER = re.compile(r"gitdir:\s*(.+?)\s*")
_SETTINGS = 300
"""The steps that it takes to read the settings of a repository."""
_MOVERS = ("cd", "pushd", "popd", None)
_ELSEWHERE = ("--git-dir", "--work-tree", "--namespace", "--exec-path")
"""Options of git that name another repository, or other programs of git."""


class _Repository(NamedTuple):
    top: str
    """The directory in which git finds it."""
    shared: str
    """The directory that its worktrees share, symlinks resolved."""
    is_bare: bool


def looked_around(call: OutsideCall, root: str) -> OutsideCall:
    """Return a call, in doubt if git would work in another repository than that of the project `root`."""
    command = call.args.get("command")
    if call.doubt or "proc.exec" not in call.labels or not isinstance(command, str):
        return call
    count = DiskSteps(call.steps)
    doubt = git_doubt(command, root or call.directory, call.directory, count)
    return replace(call, doubt=doubt, steps=count.left)


def git_doubt(command: str, root: str, directory: str, count: DiskSteps | None = None) -> str:
    """Return why git may run programs in a command line that starts in a directory; "" if nothing says so."""
    count = count or DiskSteps()
    try:
        places = dict.fromkeys(_places(command, directory, count))
        own = _repository(root, count) if places else None
        for place in places:
            if place is None:
                return "git would work in a repository that is only known when it runs"
            found = _repository(place, count)
            if found is None:
                continue
            if found.is_bare or own is None or not _is_of(found, own):
                what = "a bare repository" if found.is_bare else "not this project's repository"
                return f"git would work in {shown(found.top)}, {what}, whose settings may run programs"
            count.take(_SETTINGS)
            if why := repository_runs(place):
                return f"git would work in a repository whose settings may run programs: {why}"
    except Unclear:
        return count.why
    except (OSError, ValueError) as error:
        return f"git would work in a repository that cannot be read: {error}"
    return ""


def _is_of(found: _Repository, own: _Repository) -> bool:
    """Whether it is the project's own repository, one of its worktrees or one of its submodules."""
    return found.shared == own.shared or found.shared.startswith(os.path.join(own.shared, "modules", ""))


def _places(command: str, start: str, count: DiskSteps) -> Iterator[str | None]:
    """Yield the directories that the git commands of a line may work in; None: one that is not known."""
    facts = read_shell(command)
    plain: set[Sequence[str | None]] = set()
    reached: set[str | None] = {start}
    for simple, directories in zip(facts.line.commands if facts.line else (), facts.directories, strict=True):
        plain.add(simple.argv)
        places = [place for one in directories for place in _below(start, one)]
        reached.update(places)
        if _is_git(simple.argv):
            yield from _led(simple.argv, places, count)
    inner = [] if facts.read_only else [argv for argv in facts.commands if argv not in plain]
    if any(not argv or argv[0] in _MOVERS for argv in inner):
        reached = {None}
    for argv in inner:
        if _is_git(argv):
            yield from _led(argv, reached, count)


def _is_git(argv: Sequence[str | None]) -> bool:
    return bool(argv) and argv[0] is not None and os.path.basename(argv[0]).casefold() == "git"


def _led(argv: Sequence[str | None], directories: Iterable[str | None], count: DiskSteps) -> Iterator[str | None]:
    """Yield where git looks for its repository, and for the one that it pushes to. `-C` can be given more than once."""
    places = list(directories)
    rest = iter(argv[1:])
    for word in rest:
        if word == "-C":
            to = next(rest, None)
            count.take(sum(2 + len(place or "") // 64 for place in places))
            places = [one for place in places for one in _below(place, to)]
        elif word == "-c":
            next(rest, None)
        elif word is None or word.startswith(_ELSEWHERE):
            places = [None]
        elif not word.startswith("-"):
            places += _pushed(places, list(rest), count) if word == "push" else []
            break
    yield from places


def _pushed(places: Sequence[str | None], words: Sequence[str | None], count: DiskSteps) -> list[str | None]:
    """Return where git may find a repository to push to, whose settings it follows: any word may be its path.

    That path starts from the top of the repository in which git works.
    """
    named = dict.fromkeys(text for word in words for text in (word, (word or "").partition("=")[2] or word))
    tops = [found.top for place in places if place is not None and (found := _repository(place, count)) is not None]
    count.take(4 * (len(places) + len(tops)) * len(named))
    found = (path for place in dict.fromkeys((*places, *tops)) for text in named for path in _below(place, text))
    return [path for one in found for path in ((one, f"{one}.git") if one is not None else (one,))]


def _below(directory: str | None, text: str | None) -> tuple[str | None, ...]:
    """Return what a directory may be: a shell expands a `~` unless it is quoted, and there may be one of that name."""
    if directory is None or text is None:
        return (None,)
    literal = os.path.join(directory, text)
    if not text.startswith("~"):
        return (literal,)
    return (literal, os.path.expanduser(text) if text == "~" or text.startswith("~/") else None)


def _repository(directory: str, count: DiskSteps) -> _Repository | None:
    """Return the repository that git finds from a directory: the nearest one."""
    here = count.real(directory)
    while True:
        count.take(2 * COSTS["status"])
        dot = os.path.join(here, ".git")
        if os.path.lexists(dot):
            inner = dot if os.path.isdir(dot) else _pointed(dot, _POINTER)
            return _Repository(here, _shared(inner), is_bare=False)
        if os.path.lexists(os.path.join(here, "HEAD")):  # its other parts may be elsewhere: see its `commondir`
            return _Repository(here, _shared(here), is_bare=True)
        if here == os.path.dirname(here):
            return None
        here = os.path.dirname(here)


def _shared(git_directory: str) -> str:
    common = os.path.join(git_directory, "commondir")
    return os.path.realpath(_pointed(common, re.compile("(.+)")) if os.path.lexists(common) else git_directory)


def _pointed(file: str, form: re.Pattern[str]) -> str:
    """Return the directory that a file names."""
    match = form.fullmatch(bytes_of(file, 4096).decode("utf-8", "surrogateescape").rstrip("\n"))
    if match is None:
        raise ValueError(f"{file} does not name a directory")
    return os.path.join(os.path.dirname(file), match[1])
