"""Survey every tool that each worker of a project can reach, by itself and through the workers it may call."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from signoff.config.entries import EVERY_WORKER, WorkerFile
from signoff.core.verdict import Effect, Verdict
from signoff.errors import SignoffError, WrongUse
from signoff.policy.builtin import WRITE_TOOLS
from signoff.policy.commands import CommandCondition
from signoff.policy.engine import Policy
from signoff.policy.match import Match
from signoff.policy.reach import Reach
from signoff.policy.rule import Rule
from signoff.toolsets.builtin.files.file_toolset import FilesToolset
from signoff.toolsets.builtin.shell.shell_toolset import ShellToolset
from signoff.workers.inspect import AgentParts, FoundTool, InspectedAgent, tools_of
from signoff.workers.origin import creator_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Reachable:
    """A tool, and how a worker reaches it."""

    worker: str
    """The worker that a person starts."""
    chain: tuple[str, ...]
    """From that worker to the one that has the tool, by the shortest way."""
    tool: FoundTool
    policies: tuple[Policy, ...]
    """The policies on its calls there, besides its toolset's own."""
    reach: Reach


@dataclass(frozen=True, slots=True)
class WorkerSurvey:
    """Every tool that every worker can reach."""

    tools: list[Reachable] = field(default_factory=list[Reachable])
    unknown: list[tuple[tuple[str, ...], str, str]] = field(default_factory=list[tuple[tuple[str, ...], str, str]])
    """A chain of workers, a toolset of the last one whose tools could not be listed, and the reason."""
    broken: dict[str, SignoffError] = field(default_factory=dict[str, SignoffError])
    """Workers that cannot be built, each with the error that running it would raise."""
    built: dict[str, AgentParts] = field(default_factory=dict[str, AgentParts])


Build: TypeAlias = Callable[[str], InspectedAgent]
"""Makes a worker's agent to inspect. Raises a `SignoffError` if it cannot."""


async def survey(
    workers: Mapping[str, WorkerFile],
    layers: Sequence[Policy],
    build: Build,
    *,
    names: Iterable[str] | None = None,
    connect: bool = False,
) -> WorkerSurvey:
    """Return what each of the named workers, or of all, can reach by itself and through those it may call.

    `layers` are the policies for all of them. Those of a worker on the way between two others can only make things
    stricter, and are left out: a tool reported to ask does ask, one reported to run may not.
    """
    found = WorkerSurvey()
    for name in workers if names is None else names:
        for chain, nested in chains_from(workers, name):
            if chain[-1] not in found.built and chain[-1] not in found.broken:
                await _add(found, chain[-1], build, connect)
            if (has := found.built.get(chain[-1])) is None:
                continue
            own = (workers[one].policy for one in dict.fromkeys((name, chain[-1])))
            policies = (*layers, *(policy for policy in own if policy is not None))
            for tool in has.tools:
                reach = tool.reach(policies, chain, nested=nested)
                found.tools.append(Reachable(worker=name, chain=chain, tool=tool, policies=policies, reach=reach))
            found.unknown.extend((chain, toolset, why) for toolset, why in has.unknown)
    return found


async def _add(found: WorkerSurvey, name: str, build: Build, connect: bool) -> None:
    try:
        look = build(name)
    except SignoffError as error:
        found.broken[name] = error
    except Exception as error:  # code of toolsets; its message is not shown, because it may contain a secret
        told = f"creating it failed with {type(error).__name__}"
        found.broken[name] = WrongUse(f"{told}\n  signoff run {name} shows where")
    else:
        found.built[name] = await tools_of(look, connect=connect)


def chains_from(workers: Mapping[str, WorkerFile], name: str) -> Iterator[tuple[tuple[str, ...], bool]]:
    """Yield the worker itself, then every worker it can reach: the shortest way, and whether there are others."""
    deepest = workers[name].limits.depth
    ways: dict[str, tuple[str, ...]] = {name: (name,)}
    queue = [name]
    for at in queue:
        if deepest is not None and len(ways[at]) > deepest:
            continue
        for below in delegates_of(workers, at):
            if below not in ways:
                ways[below] = (*ways[at], below)
                queue.append(below)
    for at, way in ways.items():
        others = any(at in delegates_of(workers, one) for one in ways if one not in (way[-2:-1] or way))
        yield way, at != name and (others or len(way) > 2)


def delegates_of(workers: Mapping[str, WorkerFile], name: str) -> tuple[str, ...]:
    """Return the workers that one may call: those it names, and those it wrote."""
    file = workers[name]
    every = EVERY_WORKER in file.delegates
    wrote = [one for one, other in workers.items() if file.creates and creator_of(other) == name]
    named = workers if every else dict.fromkeys((*file.delegates, *wrote))
    return tuple(one for one in named if one in workers and one != name)


# --- what would let a worker change its own rules ---


def way_to_change(one: Reachable, path: str) -> Verdict | None:
    """Return the verdict that lets a worker change a file unasked with this tool, as things are; None if none does.

    Only signoff's own tools for files and shells are tried: for others it is unknown which argument is a path.
    """
    for args in _tries(one.tool, path):
        verdict = one.tool.judge(one.policies, one.chain, args)
        if verdict is not None and verdict.effect is Effect.ALLOW:
            return verdict
    return None


def beyond_reading(one: Reachable) -> list[Rule]:
    """Return the rules that let calls of a tool run unasked, except those about read-only commands."""
    return [rule for rule in one.reach.lets if not all(_only_reads(match) for match in rule.matches)]


def _only_reads(match: Match) -> bool:
    return any(isinstance(one, CommandCondition) and one.read_only and not one.patterns for one in match.conditions)


def unsealed(tool: FoundTool) -> tuple[str, ...]:
    """Return the program directories that a shell without a sandbox can write in; otherwise empty."""
    home = tool.home
    return home.guarded if isinstance(home, ShellToolset) and home.sandbox is None else ()


def _tries(tool: FoundTool, path: str) -> Iterator[Mapping[str, Any]]:
    """Yield arguments with which the tool would change a file."""
    home = tool.home
    if isinstance(home, FilesToolset):
        if (inside := _inside(home.root.path, path)) and tool.own_name in WRITE_TOOLS:
            # Each tool takes some of these, and ignores the others.
            yield {"path": inside, "content": "", "old": "", "new": "", "source": f"{inside}.new", "target": inside}
    elif isinstance(home, ShellToolset):
        name = shlex.quote(_inside(home.root, path) or os.path.realpath(path))
        yield from ({"command": f"{words} {name}"} for words in ("rm", "tee", "cp new", "mv new", "truncate -s 0"))


def _inside(root: str | os.PathLike[str], path: str) -> str:
    """Return the path relative to the root; empty if it is not below."""
    relative = os.path.relpath(os.path.realpath(path), os.path.realpath(root))
    return "" if relative == os.pardir or relative.startswith(os.pardir + os.sep) else relative
