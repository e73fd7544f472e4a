"""Check rules against the catalog: find tools that no toolset of the project has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from signoff.config import Settings, worker_names
from signoff.errors import SignoffError
from signoff.policy.builtin import RULES, builtin_policy

if TYPE_CHECKING:
    from signoff.policy.lint import Problem

DELEGATION = ("worker_call", "worker_create")


@dataclass(frozen=True, slots=True)
class Held:
    """The result of the check."""

    problems: tuple[Problem, ...] = ()
    unlisted: tuple[str, ...] = ()
    """Toolsets whose tools are unknown before they run. An unknown tool may be one of theirs."""
    rules: tuple[str, ...] = ()
    """The rules that name unknown tools, if toolsets are unlisted."""


def held_against_catalog(settings: Settings) -> Held:
    """Check the rules of the project and its toolsets for tools that no toolset of the catalog has.

    A project without toolsets and workers has its tools in a program: then nothing is reported. If all names are those
    of built-in tools, nothing is built and no plugin is imported.
    """
    if not settings.toolsets and not worker_names(settings):
        return Held()
    policies = [*settings.layers, *(one.policy for one in settings.toolsets.values() if one.policy is not None)]
    builtin = frozenset(DELEGATION).union(*(one.tool_names for name in RULES if (one := builtin_policy(name))))
    if not any(policy.unknown_tools(builtin) for policy in policies):
        return Held()
    return _held(settings)


def _held(settings: Settings) -> Held:
    from signoff.cli.loops import run
    from signoff.toolsets.catalog import Catalog
    from signoff.workers.listing import toolset_listing

    catalog = Catalog(settings)
    known, unlisted = set(DELEGATION), list[str]()
    problems: list[Problem] = []
    for name in catalog.names():
        entry = settings.toolsets.get(name)
        try:
            found = run(toolset_listing(catalog.build(name)))
        except SignoffError:  # `signoff toolsets` says why
            unlisted += [name] if entry is not None else []
            continue
        tools = {tool for one in found.tools for tool in one.all_names}
        known |= {one.name for one in found.tools}
        if found.unknown:
            unlisted.append(name)
        elif entry is not None and entry.policy is not None:
            problems += entry.policy.unknown_tools(tools)
    project = [problem for layer in settings.layers for problem in layer.unknown_tools(known)]
    if unlisted:
        return Held(tuple(problems), tuple(unlisted), tuple(dict.fromkeys(problem.rule for problem in project)))
    return Held((*project, *problems))
