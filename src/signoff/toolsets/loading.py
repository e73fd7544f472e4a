"""Finds code by name: class paths, entry points, the project's toolsets.py. Nothing that is not allowed is imported."""

from __future__ import annotations

import functools
import hashlib
import importlib
import importlib.util
import inspect
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from importlib.metadata import EntryPoint, entry_points
from typing import Any, cast

from signoff.config.files import check_owner
from signoff.config.importing import importable
from signoff.errors import Place, SignoffError, WrongFile
from signoff.policy.wording import did_you_mean, listed, shown

GROUP = "signoff.toolsets"
"""The entry points that installed packages offer toolsets by."""
PROJECT_CODE = "toolsets.py"
"""The project's own toolsets, next to signoff.yaml, in `TOOLSETS`."""

Wrong = Callable[[str, str], SignoffError]
"""Makes the error for what is wrong, and what to do about it, at the place where the name stands."""


def is_allowed(path: str, patterns: Sequence[str]) -> bool:
    """Whether `plugins.allow` lets `package.module:Class` be imported. `mycompany.*` covers all below, and itself."""
    module = path.partition(":")[0]
    return any(fnmatchcase(path if ":" in one else module, one) or one == f"{module}.*" for one in patterns)


def check_allowed(path: str, patterns: Sequence[str], wrong: Wrong) -> None:
    """Refuse what `plugins.allow` does not cover; the error holds the line that would."""
    if not is_allowed(path, patterns):
        module = path.partition(":")[0]
        line = ", ".join(f'"{one}"' for one in (*patterns, module))
        raise wrong(f"importing {shown(module)} is not allowed", f"to allow it, write: plugins: {{allow: [{line}]}}")


def load_path(path: str, patterns: Sequence[str], folder: str, wrong: Wrong) -> object:
    """What stands at `package.module:Class`. It has to be at home in what is allowed: what a module imports is not."""
    module, _, attribute = path.partition(":")
    check_allowed(path, patterns, wrong)
    found: object = _imported(module, folder, wrong)
    for number, part in enumerate(attribute.split(".")):
        names = [name for name in dir(found) if not name.startswith("_")]
        if not hasattr(found, part):
            raise wrong(f"{shown(module)} has no {shown(attribute)}", did_you_mean(part, names))
        if number and not inspect.isclass(found):
            raise wrong(f"{shown(path)} goes through something that is no class", "write package.module:Class")
        found = getattr(found, part)
    if inspect.ismodule(found):
        raise wrong(f"{shown(path)} is a module", "write package.module:Class")
    home = _home(found)
    if home is not None and home != module and not home.startswith(f"{module}."):
        check_allowed(f"{home}:{getattr(found, '__qualname__', '')}", patterns, wrong)
    return found


def _home(found: object) -> str | None:
    """The module that a class or function was written in; None where that is not told."""
    if isinstance(found, functools.partial):
        return _home(cast("object", found.func))
    told = getattr(found, "__module__", None) if inspect.isclass(found) or inspect.isroutine(found) else None
    return told if isinstance(told, str) else None


def _imported(module: str, folder: str, wrong: Wrong) -> Any:
    try:
        with importable(folder):
            return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is not None and (module == error.name or module.startswith(f"{error.name}.")):
            fix = "install the package it is in, or put it next to signoff.yaml"
            raise wrong(f"there is no module {shown(error.name)}", fix) from error
        what = f"importing {shown(module)} failed: it needs the module {shown(error.name or '')}"
        raise wrong(what, "install what it needs") from error
    except (Exception, SystemExit) as error:  # whatever a plugin does when it is imported
        what = f"importing {shown(module)} failed with {type(error).__name__}: {error}"
        raise wrong(what, "repair the package, or take the toolset out of the workers that use it") from error


def offered() -> Mapping[str, Sequence[EntryPoint]]:
    """The entry points of installed packages, by name. A package that Python finds twice counts once."""
    found: dict[str, dict[str, EntryPoint]] = {}
    for one in entry_points(group=GROUP):
        found.setdefault(one.name, {}).setdefault(one.value, one)
    return {name: list(several.values()) for name, several in found.items()}


def load_offered(several: Sequence[EntryPoint], patterns: Sequence[str], folder: str, wrong: Wrong) -> object:
    """What the entry points of one name stand for. Of several, one has to be allowed and no other."""
    paths = [one.value.partition("[")[0].replace(" ", "") for one in several]
    allowed = [path for path in paths if is_allowed(path, patterns)]
    if len(allowed) > 1:
        what = f"several packages offer {shown(several[0].name)}: {listed(allowed)}"
        raise wrong(what, f'write the one you mean, as in use: "{allowed[0]}"')
    return load_path((allowed or paths)[0], patterns, folder, wrong)


def load_project(folder: str, taken: Mapping[str, str], *, beside: str = "") -> Mapping[str, object]:
    """`TOOLSETS` of the project's toolsets.py; empty where there is no such file.

    `taken` holds names that stand for something else, with what that is. `beside` is the project's file, as messages
    call it.
    """
    file = os.path.join(folder, PROJECT_CODE)
    place = Place(os.path.join(os.path.dirname(beside), PROJECT_CODE))
    if not os.path.isfile(file):
        return {}
    check_owner(file)
    with importable(folder):
        toolsets = getattr(_executed(file, place), "TOOLSETS", None)
    if not isinstance(toolsets, Mapping):
        what = "it has no TOOLSETS" if toolsets is None else f"TOOLSETS is a {type(toolsets).__name__}"
        raise WrongFile(what, place=place, fix='write TOOLSETS = {"name": toolset}')
    found = cast("Mapping[object, object]", toolsets)
    for name in found:
        if not isinstance(name, str) or not name:
            raise WrongFile(f"TOOLSETS has the key {name!r}", place=place, fix="names are texts")
        if name in taken:
            what = f"TOOLSETS has {shown(name)}, which is {taken[name]} already"
            raise WrongFile(what, place=place, fix="give it another name")
    return cast("Mapping[str, object]", found)


def _executed(file: str, place: Place) -> Any:
    name = f"signoff_project_toolsets_{hashlib.sha256(file.encode()).hexdigest()[:12]}"
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses and pydantic models look their own module up
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:  # whatever the project does when its code is run
        del sys.modules[name]
        line = _line_of(error, file)
        what = f"running it failed with {type(error).__name__}: {error}"
        raise WrongFile(what, place=Place(place.file, line), fix="repair the line it names") from error
    return module


def _line_of(error: BaseException, file: str) -> int:
    """The last line of the file that was being run, or that cannot be read as Python."""
    if isinstance(error, SyntaxError) and error.filename == file:
        return error.lineno or 0
    line, at = 0, error.__traceback__
    while at is not None:
        if at.tb_frame.f_code.co_filename == file:
            line = at.tb_lineno
        at = at.tb_next
    return line
