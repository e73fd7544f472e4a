"""Which files the settings of a project name: what a check reads because its own settings say so, as in `extends`.

Found by what stands in files with settings, not by what each tool makes of it. A file with data counts if its name
stands there, wherever it is, as packages of one project name each other's; code of JavaScript if its path does, with or
without its ending.
"""

from __future__ import annotations

import os
import re
from collections import deque
from collections.abc import Iterable, Iterator
from itertools import chain
from posixpath import basename, dirname, join, normpath, splitext

from signoff.disk_steps import DiskSteps
from signoff.policy.places import runs_later
from signoff.policy.step_count import COSTS, Unclear
from signoff.regular_file import bytes_of

_LARGEST = 1 << 20
"""The most bytes of a file with settings that are read."""
_ENTRY, _FILE, _READ, _BYTES, _WORD = 3, 5, 60, 16, 4
"""The steps for each name in the tree, for a file of which the name may matter, and to read a file with settings; how
many of its bytes are one step more; and the steps for each path that it may name."""
_DATA = frozenset((".json", ".jsonc", ".json5"))
"""Endings of settings, and of much else. A rule that keeps settings out knows those of other kinds by their endings."""
_CODE = frozenset((".js", ".cjs", ".mjs", ".jsx", ".ts", ".cts", ".mts", ".tsx"))
_SETTINGS = _DATA | _CODE | {"", ".yaml", ".yml", ".toml", ".ini", ".cfg"}
_PUBLISHED = frozenset(
    """.git .hg node_modules site-packages .venv venv .tox .nox __pycache__ .mypy_cache .ruff_cache .pytest_cache .cache
    target .next .nuxt .gradle .turbo .yarn""".split()
)
"""Directories with what others have published, or what a program has made."""
_LOCKS = frozenset("package-lock.json npm-shrinkwrap.json pnpm-lock.yaml composer.lock yarn.lock deno.lock".split())
_OWN_CODE = re.compile(r"package\.(?:json5?|ya?ml)|pyproject\.toml|setup\.cfg|[jt]sconfig.*|.*\.[jt]sconfig\.json")
"""Files that name the code of the project itself, in which none is code of a check."""
_PATH = re.compile(r"[\w@./+-]{2,300}")


def may_be_named(path: str) -> bool:
    """Whether a file is of a kind that settings may name, judging by its name alone."""
    return _ending(path) in _DATA | _CODE


def named_by_settings(root: str, paths: Iterable[str], count: DiskSteps) -> frozenset[str]:
    """Return those of the paths that files with settings below `root` name, or may name. All are absolute and real.

    What those name counts, too. Where a file with settings is too long, any data may be named. Raises `Unclear` if the
    count ends.
    """
    inside = (path for path in paths if path.startswith(f"{root}/"))
    sought = {path: path[len(root) + 1 :] for path in inside if may_be_named(path)}
    if not sought:
        return frozenset()
    try:
        named = _named(root, set(sought.values()), count)
    except Unclear:
        if count.why:
            raise
        return frozenset(path for path in sought if _ending(path) in _DATA)
    return frozenset(path for path, below in sought.items() if below in named)


def _named(root: str, sought: set[str], count: DiskSteps) -> set[str]:
    """Return the files that settings name, relative to `root`: those that are there, and of those that are `sought`."""
    files = {*_files(root, count), *sought}
    count.take(_FILE * len(files))
    data: dict[str, list[str]] = {}
    for file in files:
        if _ending(file) in _DATA:
            data.setdefault(basename(file), []).append(file)
            data.setdefault(f"/{splitext(basename(file))[0]}", []).append(file)
    code = {name: file for file in files if _ending(file) in _CODE for name in _spellings(file)}
    waiting = deque(filter(_has_settings, files))
    seen, found = set(waiting), set[str]()
    taken = set[str]()  # names whose files were found: each counts once, however often it stands somewhere
    while waiting:
        file = waiting.popleft()
        count.take(_READ)
        text = _text(os.path.join(root, file))
        count.take(len(text) // _BYTES)
        own = bool(_OWN_CODE.fullmatch(basename(file).lower())) or any(one[0] == "." for one in file.split("/")[:-1])
        words = dict.fromkeys(word.rstrip("/.") for word in _PATH.findall(text) if "/" in word or "." in word)
        count.take(_WORD * len(words))
        names = {form for word in words for form in (basename(word), f"/{basename(word)}")} - taken
        taken |= names
        named = [
            *_leads_to(root, file, count),
            *chain.from_iterable(data.get(name, ()) for name in names),
            *(code[path] for word in words if not own for path in _seen_from(file, word) if path in code),
        ]
        found.update(named)
        more = dict.fromkeys(one for one in named if one not in seen and _ending(one) in _DATA)
        seen.update(more)
        waiting.extend(more)
    return found


def _files(root: str, count: DiskSteps) -> Iterator[str]:
    """Yield the files below a directory that may have settings or be named by them, relative to it."""
    waiting = deque([""])
    while waiting:
        directory = waiting.popleft()
        count.take(COSTS["directory"])
        try:
            with os.scandir(os.path.join(root, directory)) as entries:
                for entry in entries:
                    count.take(_ENTRY)
                    if entry.is_dir(follow_symlinks=False):
                        waiting.extend([f"{directory}{entry.name}/"] if entry.name not in _PUBLISHED else [])
                    elif _ending(entry.name) in _SETTINGS:
                        yield f"{directory}{entry.name}"
        except OSError:
            continue


def _has_settings(file: str) -> bool:
    return basename(file) not in _LOCKS and bool(runs_later(file))


def _ending(file: str) -> str:
    return splitext(file)[1].lower()


def _spellings(file: str) -> Iterator[str]:
    """Yield the paths by which code may be named: with its ending, without it, or by its directory."""
    plain = splitext(file)[0]
    yield from (file, plain, dirname(file) if basename(plain) == "index" else plain)


def _seen_from(file: str, word: str) -> Iterator[str]:
    """Yield what a text in a file may be the path of, seen from there or from the top."""
    return (normpath(join(start, word.lstrip("/"))) for start in dict.fromkeys((dirname(file), "")))


def _leads_to(root: str, file: str, count: DiskSteps) -> Iterator[str]:
    """Yield where a file with settings leads that is a link."""
    path = os.path.join(root, file)
    if os.path.islink(path) and (real := count.real(path)).startswith(f"{root}/"):
        yield real[len(root) + 1 :]


def _text(file: str) -> str:
    try:
        data = bytes_of(file, _LARGEST + 1)
    except OSError:
        return ""
    if len(data) > _LARGEST:
        raise Unclear("would have to be checked against a file with settings that is too long")
    return data.decode("utf-8", "replace")
