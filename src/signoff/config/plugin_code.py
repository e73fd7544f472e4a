"""Load code that a project's file names, by class path or entry point: only what `plugins.allow` covers."""

from __future__ import annotations

import functools
import importlib
import inspect
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from importlib.metadata import EntryPoint, entry_points
from typing import Any, cast

from signoff.config.import_path import importable
from signoff.errors import SignoffError
from signoff.policy.phrases import did_you_mean, listed, shown

Wrong = Callable[[str, str], SignoffError]
"""Creates the error from what is wrong and how to fix it, with the place where the name is written."""


def is_allowed(path: str, patterns: Sequence[str]) -> bool:
    """Whether `plugins.allow` permits importing `package.module:Class`.

    `mycompany.*` covers `mycompany` and everything below it.
    """
    module = path.partition(":")[0]
    return any(fnmatchcase(path if ":" in one else module, one) or one == f"{module}.*" for one in patterns)


def check_allowed(path: str, patterns: Sequence[str], wrong: Wrong) -> None:
    """Raise if `plugins.allow` does not cover a path. The error shows the line that would."""
    if not is_allowed(path, patterns):
        module = path.partition(":")[0]
        line = ", ".join(f'"{one}"' for one in (*patterns, module))
        raise wrong(f"importing {shown(module)} is not allowed", f"to allow it, write: plugins: {{allow: [{line}]}}")


def load_path(path: str, patterns: Sequence[str], directory: str, wrong: Wrong) -> object:
    """Import `package.module:Class`.

    If the class was defined outside that module, `plugins.allow` must cover its own module too.
    """
    module, _, attribute = path.partition(":")
    check_allowed(path, patterns, wrong)
    found: object = _imported(module, directory, wrong)
    for number, part in enumerate(attribute.split(".")):
        names = [name for name in dir(found) if not name.startswith("_")]
        if not hasattr(found, part):
            raise wrong(f"{shown(module)} has no {shown(attribute)}", did_you_mean(part, names))
        if number and not inspect.isclass(found):
            raise wrong(f"{shown(path)} goes through something that is not a class", "write package.module:Class")
        found = getattr(found, part)
    if inspect.ismodule(found):
        raise wrong(f"{shown(path)} is a module", "write package.module:Class")
    home = _home(found)
    if home is not None and home != module and not home.startswith(f"{module}."):
        check_allowed(f"{home}:{getattr(found, '__qualname__', '')}", patterns, wrong)
    return found


def _home(found: object) -> str | None:
    """The module that a class or function was defined in; None if unknown."""
    if isinstance(found, functools.partial):
        return _home(cast("object", found.func))
    told = getattr(found, "__module__", None) if inspect.isclass(found) or inspect.isroutine(found) else None
    return told if isinstance(told, str) else None


def _imported(module: str, directory: str, wrong: Wrong) -> Any:
    try:
        with importable(directory):
            return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is not None and (module == error.name or module.startswith(f"{error.name}.")):
            fix = "install the package it is in, or put it next to signoff.yaml"
            raise wrong(f"there is no module {shown(error.name)}", fix) from error
        what = f"importing {shown(module)} failed: it needs the module {shown(error.name or '')}"
        raise wrong(what, "install what it needs") from error
    except (Exception, SystemExit) as error:  # a plugin may raise anything on import
        what = f"importing {shown(module)} failed with {type(error).__name__}: {error}"
        raise wrong(what, "repair the package, or use something else") from error


def offered(group: str) -> Mapping[str, Sequence[EntryPoint]]:
    """The entry points of a group in installed packages, by name. A package that Python finds twice counts once.

    Reading them takes tens of milliseconds, so they are cached until a directory of `sys.path` changes.
    """
    return _offered_by(group, tuple((os.path.abspath(place), _changed_at(place)) for place in sys.path))


def _changed_at(place: str) -> int:
    try:
        return os.stat(place or ".").st_mtime_ns
    except OSError:
        return 0


@functools.lru_cache(maxsize=4)
def _offered_by(group: str, _: tuple[tuple[str, int], ...]) -> Mapping[str, Sequence[EntryPoint]]:
    found: dict[str, dict[str, EntryPoint]] = {}
    for one in entry_points(group=group):
        found.setdefault(one.name, {}).setdefault(one.value, one)
    return {name: list(several.values()) for name, several in found.items()}


def load_offered(several: Sequence[EntryPoint], patterns: Sequence[str], directory: str, wrong: Wrong) -> object:
    """Load what the entry points of one name refer to. Raises if `plugins.allow` covers several of them."""
    paths = [one.value.partition("[")[0].replace(" ", "") for one in several]
    allowed = [path for path in paths if is_allowed(path, patterns)]
    if len(allowed) > 1:
        what = f"several packages offer {shown(several[0].name)}: {listed(allowed)}"
        raise wrong(what, f'write the one you mean, as in use: "{allowed[0]}"')
    return load_path((allowed or paths)[0], patterns, directory, wrong)
