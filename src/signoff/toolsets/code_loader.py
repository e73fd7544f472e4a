"""Load toolset code by name: class paths, entry points, and the project's toolsets.py.

Plugins are imported only if `plugins.allow` covers them.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import importlib
import importlib.util
import inspect
import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from importlib.metadata import EntryPoint, entry_points
from typing import Any, TypeVar, cast

from pydantic_ai.toolsets import AbstractToolset

from signoff.attached.attached_policies import Rules, ToolsetLayer, layer_for, policy_of
from signoff.config.files import check_owner
from signoff.config.import_path import importable
from signoff.errors import Place, SignoffError, WrongFile
from signoff.policy.phrases import did_you_mean, listed, nearest, shown

GROUP = "signoff.toolsets"
"""The entry point group by which installed packages (plugins) offer toolsets."""
PROJECT_CODE = "toolsets.py"
"""The project's own toolsets, next to signoff.yaml, in `TOOLSETS`."""
TOOLSETS, APPROVALS = "TOOLSETS", "TOOLSET_APPROVALS"
_SHOUTED = re.compile("[A-Z][A-Z0-9_]*")
_SETS = (ast.AnnAssign, ast.AugAssign)
Made = TypeVar("Made")

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
        raise wrong(what, "repair the package, or take the toolset out of the workers that use it") from error


def offered() -> Mapping[str, Sequence[EntryPoint]]:
    """The entry points of installed packages, by name. A package that Python finds twice counts once.

    Reading them takes tens of milliseconds, so they are cached until a directory of `sys.path` changes.
    """
    return _offered_by(tuple((os.path.abspath(place), _changed_at(place)) for place in sys.path))


def _changed_at(place: str) -> int:
    try:
        return os.stat(place or ".").st_mtime_ns
    except OSError:
        return 0


@functools.lru_cache(maxsize=2)
def _offered_by(_: tuple[tuple[str, int], ...]) -> Mapping[str, Sequence[EntryPoint]]:
    found: dict[str, dict[str, EntryPoint]] = {}
    for one in entry_points(group=GROUP):
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


@dataclass(frozen=True, slots=True)
class ProjectCode:
    """The contents of a project's toolsets.py."""

    toolsets: Mapping[str, object] = field(default_factory=dict[str, object])
    """`TOOLSETS`: toolsets, and classes or functions that create them, by name."""
    approvals: Mapping[str, Sequence[Rules]] = field(default_factory=dict[str, "Sequence[Rules]"])
    """`TOOLSET_APPROVALS`: a policy for a toolset in addition to its own, by the same names."""
    place: Place = field(default_factory=lambda: Place(PROJECT_CODE))


def load_project(directory: str, taken: Mapping[str, str], *, beside: str = "") -> ProjectCode:
    """Run the project's toolsets.py and return its contents; empty if there is no such file.

    `taken` maps names that are already in use to what they refer to. `beside` is the project's file, as messages call
    it.
    """
    file = os.path.join(directory, PROJECT_CODE)
    place = Place(os.path.join(os.path.dirname(beside), PROJECT_CODE))
    if not os.path.isfile(file):
        return ProjectCode()
    check_owner(file)
    with importable(directory):
        module = _executed(file, place)
    _check_names(file, module, place)
    toolsets = getattr(module, TOOLSETS, None)
    if not isinstance(toolsets, Mapping):
        what = "it has no TOOLSETS" if toolsets is None else f"TOOLSETS is a {type(toolsets).__name__}"
        raise WrongFile(what, place=place, fix='write TOOLSETS = {"name": toolset}')
    found = cast("Mapping[object, object]", toolsets)
    for name in found:
        if not isinstance(name, str) or not name:
            raise WrongFile(f"TOOLSETS has the key {name!r}", place=place, fix="names are texts")
        if name in taken:
            what = f"TOOLSETS has {shown(name)}, which is already {taken[name]}"
            raise WrongFile(what, place=place, fix="give it another name")
    names = cast("Mapping[str, object]", found)
    return ProjectCode(names, _approvals(getattr(module, APPROVALS, None), names, place), place)


def _approvals(found: object, toolsets: Mapping[str, object], place: Place) -> Mapping[str, Sequence[Rules]]:
    if found is None:
        return {}
    if not isinstance(found, Mapping):
        fix = f'write {APPROVALS} = {{"name": policy}}'
        raise WrongFile(f"{APPROVALS} is a {type(found).__name__}", place=place, fix=fix)
    approvals = cast("Mapping[object, Any]", found)
    for name, rules in approvals.items():
        if name not in toolsets:
            fix = did_you_mean(str(name), toolsets) or f"put {name} into {TOOLSETS}"
            raise WrongFile(f"{APPROVALS} has {shown(str(name))}, which {TOOLSETS} does not have", place=place, fix=fix)
        _checked(lambda rules=rules, name=name: policy_of(rules, str(name)), str(name), place)
    return {str(name): (rules,) for name, rules in approvals.items()}


def approvals_layer(toolset: AbstractToolset[Any], rules: Rules, name: str, place: Place) -> ToolsetLayer:
    """The layer that `TOOLSET_APPROVALS` attaches to a toolset. Raises `WrongFile` if it is not a policy."""
    return _checked(lambda: layer_for(toolset, rules, name=name, by_catalog=True), name, place)


def _checked(make: Callable[[], Made], name: str, place: Place) -> Made:
    try:
        return make()
    except (SignoffError, TypeError, AttributeError) as error:
        what = f"{APPROVALS} for {shown(name)} is not a policy: {error}"
        fix = 'write "allow", "ask", "deny", a list of rules, or {"tool": {"pre_approved": True}}'
        raise WrongFile(what, place=place, fix=fix) from None


def _check_names(file: str, module: Any, place: Place) -> None:
    """Raise for an upper-case name that neither signoff nor the file itself reads: it is probably a misspelling."""
    with open(file, "rb") as source:
        tree = ast.parse(source.read(), file)
    read = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
    read |= {TOOLSETS, APPROVALS, *map(str, getattr(module, "__all__", ()))}
    for node in tree.body:
        targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, _SETS) else []
        for target in targets:
            if isinstance(target, ast.Name) and _SHOUTED.fullmatch(target.id) and target.id not in read:
                close = nearest(target.id, (TOOLSETS, APPROVALS))
                fix = f"did you mean `{close}`?" if close else f"write {TOOLSETS} or {APPROVALS}, or remove it"
                what = f"{shown(target.id)} is never read"
                raise WrongFile(what, place=Place(place.file, node.lineno), fix=fix)


def _executed(file: str, place: Place) -> Any:
    name = f"signoff_project_toolsets_{hashlib.sha256(file.encode()).hexdigest()[:12]}"
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses and pydantic models look up their module
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:  # the project's code may raise anything
        del sys.modules[name]
        line = _line_of(error, file)
        what = f"running it failed with {type(error).__name__}: {error}"
        raise WrongFile(what, place=Place(place.file, line), fix="repair the line it names") from error
    return module


def _line_of(error: BaseException, file: str) -> int:
    """The line of the file that failed: the last one that ran, or the syntax error."""
    if isinstance(error, SyntaxError) and error.filename == file:
        return error.lineno or 0
    line, at = 0, error.__traceback__
    while at is not None:
        if at.tb_frame.f_code.co_filename == file:
            line = at.tb_lineno
        at = at.tb_next
    return line
