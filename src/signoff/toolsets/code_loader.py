"""The project's toolsets.py: its toolsets by name, and their policies."""

from __future__ import annotations

import ast
import hashlib
import importlib
import importlib.util
import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

from pydantic_ai.toolsets import AbstractToolset

from signoff.attached.attached_policies import Rules, ToolsetLayer, layer_for, policy_of
from signoff.config.files import check_owner
from signoff.config.import_path import importable
from signoff.errors import Place, SignoffError, WrongFile
from signoff.policy.phrases import did_you_mean, nearest, shown

PROJECT_CODE = "toolsets.py"
"""The project's own toolsets, next to signoff.yaml, in `TOOLSETS`."""
TOOLSETS, APPROVALS = "TOOLSETS", "TOOLSET_APPROVALS"
_SHOUTED = re.compile("[A-Z][A-Z0-9_]*")
_SETS = (ast.AnnAssign, ast.AugAssign)
Made = TypeVar("Made")


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
