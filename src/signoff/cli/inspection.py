"""Inspect a project: its tools and toolsets, and what its workers can do without a question (`doctor`, `toolsets`)."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from signoff.cli.doctor_findings import Files, Finding, Severity

if TYPE_CHECKING:
    from datetime import datetime

    from signoff.cli.doctor_store import KnownTool, StoreFacts
    from signoff.config import Settings, WorkerFile
    from signoff.core.grant import Grant
    from signoff.errors import SignoffError
    from signoff.policy.reach import Reach
    from signoff.policy.rule import Rule
    from signoff.toolsets.catalog import BuiltToolset, Catalog
    from signoff.workers.inspect import AgentParts, FoundTool
    from signoff.workers.survey import Reachable, WorkerSurvey


@dataclass(frozen=True, kw_only=True)
class Loosening:
    """Who can loosen a run beyond the policy."""

    locked: str = ""
    """Where the project file locks the policy; empty if it does not."""
    own_gate: bool = False
    """Whether an agent is inspected that has its own gate and takes no flags."""
    has_project: bool = True

    @property
    def flags(self) -> tuple[str, ...]:
        """The flags with which a run can be loosened."""
        if self.locked or self.own_gate:
            return ()
        return ("--mode auto_approve", "--policy FILE") if self.has_project else ("--mode auto_approve",)


@dataclass(frozen=True, kw_only=True)
class Inspection:
    """The result of inspecting a project, or one agent in Python."""

    settings: Settings
    environment: str
    """The rules added by the environment, in one line; empty if none."""
    loosening: Loosening
    workers: Mapping[str, WorkerFile]
    names: Sequence[str]
    """The workers that were inspected."""
    survey: WorkerSurvey | None
    """None if there is no worker."""
    store: StoreFacts
    speaking: Sequence[Grant]
    """Grants that can let calls run without a question."""
    findings: Sequence[Finding]

    @property
    def own_tools(self) -> list[Reachable]:
        """The tools that workers have themselves, not through another worker."""
        return [one for one in self.survey.tools if len(one.chain) == 1] if self.survey is not None else []

    def number(self, severity: Severity) -> int:
        return sum(one.severity is severity for one in self.findings)

    def is_well(self, *, strict: bool) -> bool:
        return not self.number(Severity.ERROR) and not (strict and self.number(Severity.WARNING))


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolsetFacts:
    """A toolset of the catalog."""

    name: str
    origin: str = ""
    used_by: tuple[str, ...] = ()
    tools: tuple[tuple[FoundTool, Reach], ...] = ()
    unknown: str = ""
    """Why its tools are not all known."""
    error: str = ""
    """Why it cannot be built."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolsetDetails:
    """A toolset of the catalog in detail."""

    toolset: ToolsetFacts
    config_schema: Mapping[str, Any]
    rules: tuple[Rule, ...] = ()
    """Rules of its entry, and rules that the toolset itself has."""
    programs: tuple[str, ...] = ()
    """The project directories from which a shell runs programs by name."""


@dataclass(frozen=True, slots=True)
class WorkerFiles:
    """The workers of a project."""

    right: dict[str, WorkerFile] = field(default_factory=dict[str, "WorkerFile"])
    wrong: dict[str, SignoffError] = field(default_factory=dict[str, "SignoffError"])
    """Workers whose files cannot be used, and why."""

    def named(self, only: Sequence[str]) -> list[str]:
        """The names given, or all. Raises `WrongUse` for an unknown name."""
        from signoff.errors import WrongUse
        from signoff.policy.phrases import did_you_mean, shown

        known = sorted({*self.right, *self.wrong})
        for name in only:
            if name not in known:
                hint = did_you_mean(name, known) or "there are none here: workers/NAME.yaml"
                raise WrongUse(f"there is no worker {shown(name)}\n  {hint}")
        return list(dict.fromkeys(only)) or known


def worker_files(settings: Settings) -> WorkerFiles:
    """Read every worker of a project."""
    from signoff.config import load_worker, worker_names
    from signoff.errors import SignoffError

    found = WorkerFiles()
    for name in worker_names(settings):
        try:
            found.right[name] = load_worker(settings, name)
        except SignoffError as error:
            found.wrong[name] = error
    return found


# --- workers and agents ---


def inspect_project(
    settings: Settings, only: Sequence[str], *, connect: bool, store: str | None, at: datetime
) -> Inspection:
    """Inspect the workers of a project, or those named, with rules, files and store."""
    from signoff.cli.doctor_store import look_at_store, why_asleep
    from signoff.wiring import Caller

    workers, caller = worker_files(settings), Caller.here()
    files = Files(settings, workers.right, caller.layers(settings.directory))
    names = workers.named(only)
    survey = survey_of(files, [name for name in names if name in workers.right], connect=connect) if names else None
    if survey is not None:
        survey.broken.update({name: workers.wrong[name] for name in names if name in workers.wrong})
    kept = look_at_store(store, settings)
    tools = known_tools(survey)
    found = list(_findings(files, workers, survey, kept, at, whole=not only))
    return Inspection(
        settings=settings,
        environment=caller.told,
        loosening=_loosening(settings),
        workers=workers.right,
        names=names,
        survey=survey,
        store=kept,
        speaking=[one for one in kept.grants if one.approved and not why_asleep(one, tools, at, all_known=False)],
        findings=sorted(found, key=lambda one: list(Severity).index(one.severity)),
    )


def inspect_agent(path: str, settings: Settings, *, connect: bool, store: str | None) -> Inspection:
    """Inspect one agent in Python."""
    import asyncio

    from signoff.cli.doctor_store import look_at_store
    from signoff.cli.doctor_workers import agent_findings, unlisted_findings
    from signoff.wiring import Caller
    from signoff.workers.agents import look_at

    caller = Caller.here()
    layers = (*settings.layers, *caller.layers(settings.directory))
    facts = asyncio.run(look_at(path, layers, connect=connect))
    return Inspection(
        settings=settings,
        environment=caller.told,
        loosening=_loosening(settings, own_gate=facts.has_gate),
        workers={},
        names=[path],
        survey=facts.survey,
        store=look_at_store(store, settings),
        speaking=(),
        findings=[*agent_findings(path, facts), *unlisted_findings(facts.survey)],
    )


def survey_of(files: Files, names: Sequence[str], *, connect: bool) -> WorkerSurvey:
    """Build every worker without its model, and find what it can do."""
    import asyncio

    from signoff.workers.inspect import InspectedAgent
    from signoff.workers.project_workers import Workers
    from signoff.workers.survey import survey

    shop = Workers(files.settings, workers=files.workers, models=False)

    def build(name: str) -> InspectedAgent:
        worker = shop.delegate(name)
        return InspectedAgent(agent=worker.agent, native=worker.gate.native, secrets=tuple(worker.gate.secrets))

    layers = (*files.settings.layers, *files.environment)
    return asyncio.run(survey(files.workers, layers, build, names=names, connect=connect))


def known_tools(survey: WorkerSurvey | None) -> set[KnownTool]:
    """The tools of all workers, as grants identify them."""
    from signoff.cli.doctor_store import KnownTool

    found = survey.built.values() if survey is not None else ()
    return {KnownTool(tool.name, tool.toolset, tool.schema_hash) for one in found for tool in one.tools}


def _loosening(settings: Settings, *, own_gate: bool = False) -> Loosening:
    from signoff.wiring.project import lock_of

    place = lock_of(settings.file) if settings.file else None
    return Loosening(locked=f"{place}" if place is not None else "", own_gate=own_gate, has_project=bool(settings.file))


def _findings(
    files: Files, workers: WorkerFiles, survey: WorkerSurvey | None, kept: StoreFacts, at: datetime, *, whole: bool
) -> Iterator[Finding]:
    from signoff.cli.doctor_files import file_findings
    from signoff.cli.doctor_findings import people_findings, rule_findings, toolset_findings
    from signoff.cli.doctor_hooks import hook_findings
    from signoff.cli.doctor_store import grant_findings
    from signoff.cli.doctor_workers import worker_findings

    yield from rule_findings(files)
    yield from people_findings(files)
    yield from toolset_findings(files)
    yield from file_findings(files)
    yield from hook_findings(files.settings)
    yield from kept.findings
    broken = {**workers.wrong, **(survey.broken if survey is not None else {})}
    yield from worker_findings(files, broken, survey, kept, whole=whole)
    all_known = survey is not None and whole and not survey.unknown and not broken
    yield from grant_findings(kept.grants, known_tools(survey), at, all_known=all_known)


# --- toolsets ---


def inspect_toolsets(settings: Settings, worker: str | None, *, connect: bool) -> list[ToolsetFacts]:
    """The toolsets of a catalog, or those that a worker uses, then also under its own rules."""
    import asyncio

    from signoff.config import load_worker
    from signoff.toolsets.catalog import Catalog

    catalog = Catalog(settings)
    chosen = load_worker(settings, worker) if worker is not None else None
    workers = [chosen] if chosen is not None else list(worker_files(settings).right.values())
    used = {name for one in workers for name in one.toolsets}
    names = sorted(used) if chosen is not None else sorted({*catalog.names(), *used})

    async def main() -> list[ToolsetFacts]:
        users = {name: tuple(one.name for one in workers if name in one.toolsets) for name in names}
        return [await _toolset(catalog, name, users[name], chosen, connect=connect) for name in names]

    return asyncio.run(main())


def inspect_toolset(settings: Settings, name: str, *, connect: bool) -> ToolsetDetails:
    """One toolset of a catalog. Raises if there is none of that name; one that cannot be built has `error` set."""
    import asyncio

    from signoff.toolsets.builtin.shell.shell_toolset import ShellToolset
    from signoff.toolsets.catalog import Catalog

    catalog = Catalog(settings)
    schema, entry = _schema(catalog, name), catalog.entry(name)
    facts = asyncio.run(_toolset(catalog, name, (), None, connect=connect, needs=False))
    policies = [entry.policy] if entry.policy is not None else []
    for tool, _ in facts.tools:
        policies += [policy for policy, _ in tool.own if policy not in policies]
    homes = [tool.home for tool, _ in facts.tools]
    programs = [one for home in homes if isinstance(home, ShellToolset) for one in home.programs]
    return ToolsetDetails(
        toolset=facts,
        config_schema=schema,
        rules=tuple(rule for policy in policies for rule in policy.rules),
        programs=tuple(os.path.relpath(one, settings.directory) for one in programs),
    )


async def toolset_parts(built: BuiltToolset, worker: str | None = None, *, connect: bool = False) -> AgentParts:
    """The tools of a single toolset."""
    from signoff.toolsets.tool_list import agent_with
    from signoff.workers.inspect import InspectedAgent, tools_of

    native = {tool.kind: built.policy for tool in built.native if built.policy is not None}
    look = InspectedAgent(agent=agent_with(built, worker), native=native, secrets=built.secrets)
    return await tools_of(look, connect=connect)


async def _toolset(
    catalog: Catalog,
    name: str,
    used_by: tuple[str, ...],
    worker: WorkerFile | None,
    *,
    connect: bool,
    needs: bool = True,
) -> ToolsetFacts:
    """Inspect one toolset. With `needs`, an unused built-in says what config it needs instead of an error."""
    from signoff.errors import SignoffError
    from signoff.toolsets.context import Context
    from signoff.workers.inspect import NOT_STARTED

    who = worker.name if worker is not None else None
    try:
        origin = catalog.origin(name)
    except SignoffError as error:
        return ToolsetFacts(name=name, used_by=used_by, error=str(error))
    try:
        built = catalog.build(name, Context(worker=who))
    except SignoffError as error:
        hint = _needs(catalog, name) if needs and not used_by else ""
        return ToolsetFacts(name=name, origin=origin, used_by=used_by, unknown=hint, error="" if hint else str(error))
    found = await toolset_parts(built, who, connect=connect)
    own = (worker.policy,) if worker is not None and worker.policy is not None else ()
    layers = (*catalog.settings.layers, *own)
    reasons = [reason for _, reason in found.unknown]
    hint = " (--connect starts it for a moment)" if NOT_STARTED in reasons else ""
    return ToolsetFacts(
        name=name,
        origin=origin,
        used_by=used_by,
        tools=tuple((tool, tool.reach(layers, (who,) if who is not None else ())) for tool in found.tools),
        unknown="; ".join(reasons) + hint,
    )


def _needs(catalog: Catalog, name: str) -> str:
    """The entry to write for a built-in that requires config and has no entry. Empty for any other toolset."""
    from signoff.toolsets.builtin_toolsets import BUILTINS

    plain = name in BUILTINS and name not in catalog.settings.toolsets
    keys = _schema(catalog, name).get("required") if plain else None
    config = ", ".join(f"{key}: …" for key in keys or ())
    return f"needs an entry: toolsets: {{{name}: {{use: {name}, config: {{{config}}}}}}}" if config else ""


def _schema(catalog: Catalog, name: str) -> dict[str, Any]:
    from signoff.toolsets.config_schema import config_schema
    from signoff.toolsets.native_tools import native_schema

    if catalog.entry(name).use == "native":
        return native_schema(catalog.entry(name).config.get("kind"))
    return config_schema(catalog.target(name))
