"""Inspect a project: its tools and toolsets, and what policy says to a call of each tool (`doctor`, `toolsets`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from signoff.cli.doctor_files import file_findings
from signoff.cli.doctor_findings import Files, Finding, Severity, people_findings, rule_findings, toolset_findings
from signoff.cli.doctor_hooks import hook_findings, hooked_agents
from signoff.cli.doctor_store import KnownTool, StoreFacts, grant_findings, look_at_store, why_asleep
from signoff.cli.doctor_workers import agent_findings, unlisted_findings, worker_findings
from signoff.cli.loops import run
from signoff.config import Settings, WorkerFile, load_worker, worker_names
from signoff.errors import SignoffError, WrongUse
from signoff.policy.phrases import did_you_mean, shown
from signoff.toolsets.builtin_toolsets import BUILTINS
from signoff.wiring.caller import Caller
from signoff.wiring.project import lock_of

if TYPE_CHECKING:
    from datetime import datetime

    from signoff.core.grant import Grant
    from signoff.policy.engine import Policy
    from signoff.policy.rule import Rule
    from signoff.toolsets.catalog import Catalog
    from signoff.workers.listing import ListedTool, ToolListing


@dataclass(frozen=True, kw_only=True)
class Inspection:
    """The result of inspecting a project, or one agent in Python."""

    settings: Settings
    environment: str
    """The rules added by the environment, in one line; empty if none."""
    locked: str
    """Where the project file locks the policy; empty if it does not."""
    names: Sequence[str]
    """The workers that were inspected."""
    listings: Mapping[str, ToolListing]
    """The tools of each worker that can be built."""
    broken: Mapping[str, SignoffError]
    """The other workers, each with the error that running it would raise."""
    store: StoreFacts
    findings: Sequence[Finding]
    workers: Mapping[str, WorkerFile] = field(default_factory=dict[str, "WorkerFile"])
    speaking: Sequence[Grant] = ()
    """Grants that can let calls run without a question."""
    hooked: Sequence[str] = ()
    """The coding agents whose hook is installed here."""
    own_gate: bool = False
    """Whether an agent is inspected that has its own gate and takes no flags."""

    @property
    def loosening(self) -> tuple[str, ...]:
        """The flags with which whoever starts a run can loosen it."""
        if self.locked or self.own_gate:
            return ()
        return ("--mode auto_approve", "--policy FILE") if self.settings.file else ("--mode auto_approve",)

    def number(self, severity: Severity) -> int:
        return sum(one.severity is severity for one in self.findings)

    def is_well(self, *, strict: bool) -> bool:
        return not self.number(Severity.ERROR) and not (strict and self.number(Severity.WARNING))


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundToolset:
    """A toolset of the catalog."""

    name: str
    origin: str = ""
    used_by: tuple[str, ...] = ()
    policy: Policy | None = None
    """The rules of its entry."""
    listing: ToolListing | None = None
    """Its tools; None if it cannot be built."""
    needs: str = ""
    """The entry to write first, for a built-in that takes config."""
    error: str = ""
    """Why it cannot be built otherwise."""

    @property
    def tools(self) -> Sequence[ListedTool]:
        return self.listing.tools if self.listing is not None else ()

    @property
    def rules(self) -> tuple[Rule, ...]:
        """Rules of its entry, and rules that the toolset itself has."""
        entry = (self.policy,) if self.policy is not None else ()
        policies = {id(policy): policy for policy in (*entry, *(own for tool in self.tools for own in tool.own))}
        return tuple(rule for policy in policies.values() for rule in policy.rules)

    @property
    def programs(self) -> Sequence[str]:
        """The directories from which a shell runs programs by name."""
        return [one for tool in self.tools for one in getattr(tool.home[0], "programs", ())]


@dataclass(frozen=True, slots=True)
class WorkerFiles:
    """The workers of a project."""

    right: dict[str, WorkerFile] = field(default_factory=dict[str, "WorkerFile"])
    wrong: dict[str, SignoffError] = field(default_factory=dict[str, "SignoffError"])
    """Workers whose files cannot be used, and why."""

    def named(self, only: Sequence[str]) -> list[str]:
        """The names given, or all. Raises `WrongUse` for an unknown name."""
        known = sorted({*self.right, *self.wrong})
        for name in only:
            if name not in known:
                hint = did_you_mean(name, known) or "there are none here: workers/NAME.yaml"
                raise WrongUse(f"there is no worker {shown(name)}\n  {hint}")
        return list(dict.fromkeys(only)) or known


def worker_files(settings: Settings) -> WorkerFiles:
    """Read every worker of a project."""
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
    workers, caller = worker_files(settings), Caller.here()
    files = Files(settings, workers.right, caller.layers(settings.directory))
    names = workers.named(only)
    listings, broken = listings_of(files, [name for name in names if name in workers.right], connect=connect)
    broken |= {name: workers.wrong[name] for name in names if name in workers.wrong}
    kept = look_at_store(store, settings)
    tools = known_tools(listings)
    found = list(_findings(files, workers, listings, broken, kept, at, whole=not only))
    return Inspection(
        settings=settings,
        environment=caller.told,
        locked=_locked(settings),
        workers=workers.right,
        names=names,
        listings=listings,
        broken=broken,
        store=kept,
        speaking=[one for one in kept.grants if one.approved and not why_asleep(one, tools, at, all_known=False)],
        findings=sorted(found, key=lambda one: list(Severity).index(one.severity)),
        hooked=hooked_agents(settings),
    )


def inspect_agent(path: str, settings: Settings, *, connect: bool, store: str | None) -> Inspection:
    """Inspect one agent in Python."""
    from signoff.workers.agents import look_at

    caller = Caller.here()
    layers = (*settings.layers, *caller.layers(settings.directory))
    facts = run(look_at(path, layers, connect=connect))
    listings = {path: facts.listing}
    return Inspection(
        settings=settings,
        environment=caller.told,
        locked=_locked(settings),
        own_gate=facts.has_gate,
        names=[path],
        listings=listings,
        broken={},
        store=look_at_store(store, settings),
        findings=[*agent_findings(path, facts), *unlisted_findings(listings)],
    )


def listings_of(
    files: Files, names: Sequence[str], *, connect: bool
) -> tuple[dict[str, ToolListing], dict[str, SignoffError]]:
    """Build each worker without its model, and list its tools; or say why it cannot be built."""
    listings, broken = dict[str, "ToolListing"](), dict[str, "SignoffError"]()
    if not names:
        return listings, broken
    from signoff.workers.listing import tools_of
    from signoff.workers.project_workers import Workers

    shop = Workers(files.settings, workers=files.workers, caller=files.environment, models=False)

    async def main() -> None:
        for name in names:
            try:
                worker = shop.delegate(name)
            except SignoffError as error:
                broken[name] = error
            else:
                listings[name] = await tools_of(worker.agent, worker.gate, connect=connect)

    run(main())
    return listings, broken


def known_tools(listings: Mapping[str, ToolListing]) -> set[KnownTool]:
    """The tools of all workers, as grants identify them."""
    return {KnownTool(tool.name, tool.toolset, tool.schema_hash) for one in listings.values() for tool in one.tools}


def _locked(settings: Settings) -> str:
    place = lock_of(settings.file) if settings.file else None
    return str(place) if place is not None else ""


def _findings(
    files: Files,
    workers: WorkerFiles,
    listings: Mapping[str, ToolListing],
    broken: Mapping[str, SignoffError],
    kept: StoreFacts,
    at: datetime,
    *,
    whole: bool,
) -> Iterator[Finding]:
    yield from rule_findings(files)
    yield from people_findings(files)
    yield from toolset_findings(files)
    yield from file_findings(files)
    yield from hook_findings(files.settings)
    yield from kept.findings
    broken = {**workers.wrong, **broken}
    yield from worker_findings(files, broken, listings, kept, whole=whole)
    unlisted = any(one.unknown for one in listings.values())
    all_known = bool(listings) and whole and not unlisted and not broken
    yield from grant_findings(kept.grants, known_tools(listings), at, all_known=all_known)


# --- toolsets ---


def inspect_toolsets(settings: Settings, *, connect: bool) -> list[FoundToolset]:
    """Every toolset of a catalog, and those that workers name and that do not exist."""
    from signoff.toolsets.catalog import Catalog

    catalog, workers = Catalog(settings), worker_files(settings).right.values()
    names = sorted({*catalog.names(), *(name for one in workers for name in one.toolsets)})
    users = {name: tuple(one.name for one in workers if name in one.toolsets) for name in names}
    return [_toolset(catalog, name, users[name], connect=connect) for name in names]


def inspect_toolset(settings: Settings, name: str, *, connect: bool) -> tuple[FoundToolset, Mapping[str, Any]]:
    """One toolset of a catalog, and the JSON schema of its config. Raises if there is none of that name."""
    from signoff.toolsets.catalog import Catalog

    catalog = Catalog(settings)
    return _toolset(catalog, name, (), connect=connect, needs=False), _schema(catalog, name)


def _toolset(
    catalog: Catalog, name: str, used_by: tuple[str, ...], *, connect: bool, needs: bool = True
) -> FoundToolset:
    """Inspect one toolset. With `needs`, an unused built-in says what config it needs instead of an error."""
    from signoff.workers.listing import toolset_listing

    origin = ""
    try:
        origin = catalog.origin(name)
        listing = run(toolset_listing(catalog.build(name), catalog.settings.layers, connect=connect))
    except SignoffError as error:
        hint = _needs(catalog, name) if needs and origin and not used_by else ""
        return FoundToolset(name=name, origin=origin, used_by=used_by, needs=hint, error="" if hint else str(error))
    return FoundToolset(name=name, origin=origin, used_by=used_by, policy=catalog.entry(name).policy, listing=listing)


def _needs(catalog: Catalog, name: str) -> str:
    """The entry to write for a built-in that requires config and has no entry. Empty for any other toolset."""
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
