"""Checks of `signoff doctor` on workers and agents: what cannot be started, and what can change its own rules."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from signoff.cli.doctor_findings import (
    ERROR,
    NOTE,
    WARNING,
    Files,
    Finding,
    Severity,
    name_findings,
    tool_findings,
)
from signoff.cli.loops import run
from signoff.config import PROJECT_FILE, workers_directory
from signoff.errors import SignoffError, WrongFile
from signoff.policy.phrases import listed, shown
from signoff.wiring.channel_wiring import check_entry

if TYPE_CHECKING:
    from signoff.cli.doctor_store import StoreFacts
    from signoff.core.verdict import Verdict
    from signoff.workers.agents import AgentFacts
    from signoff.workers.listing import ListedTool, ToolListing


def worker_findings(
    files: Files,
    broken: Mapping[str, SignoffError],
    listings: Mapping[str, ToolListing],
    kept: StoreFacts,
    *,
    whole: bool,
) -> Iterator[Finding]:
    """What cannot be built, and what the rest may do. `whole`: whether all workers were inspected."""
    yield from _broken_workers(broken)
    yield from _broken_toolsets(files)
    yield from _broken_channels(files)
    if not (listings or broken):
        return
    yield from unlisted_findings(listings)
    yield from _models(files, [name for name in listings if name in files.workers])
    yield from _own_rules(files, listings, kept)
    yield from _programs(files, listings)
    if whole:
        yield from _unknown_names(files, listings, broken)


def agent_findings(path: str, facts: AgentFacts) -> Iterator[Finding]:
    if not facts.has_gate:
        what = f"{path} has no gate: when your program runs it, no call is judged. Above is what `signoff run` would do"
        fix = "Agent(…, capabilities=[Signoff('signoff.yaml')])"
        yield Finding(severity=WARNING, check="no-gate", what=what, fix=fix)
    for tool, inner in facts.ungated:
        what = f"the tool {tool} names the agent {inner}, which has no gate: its calls are not judged"
        fix = "give it capabilities=[Signoff(…)] too (docs/guides/nested.md)"
        yield Finding(severity=WARNING, check="inner-agent", what=what, fix=fix)
    if facts.has_code:
        what = "the gate has a judge= function, which can only make it stricter than this report"
        yield Finding(severity=NOTE, check="judge", what=what)
    if facts.model_problem is not None:
        yield _told(WARNING, "model", "", facts.model_problem)
    elif not facts.has_model:
        fix = "Agent('anthropic:claude-sonnet-5', …), --model, or SIGNOFF_MODEL"
        yield Finding(severity=NOTE, check="model", what=f"{path} names no model", fix=fix)


def _broken_workers(broken: Mapping[str, SignoffError]) -> Iterator[Finding]:
    for name, error in broken.items():
        yield _told(ERROR, "broken-worker", f"{name} cannot be started: ", error)


def _broken_channels(files: Files) -> Iterator[Finding]:
    """Channels that cannot run: their kind cannot be loaded, or a key or a worker of theirs has an error."""
    for entry in files.settings.channels.values():
        try:
            check_entry(entry, files.settings)
        except SignoffError as error:
            yield _told(ERROR, "broken-channel", f"{entry.name} cannot be run: ", error)


def _broken_toolsets(files: Files) -> Iterator[Finding]:
    """Unused toolsets that cannot be built."""
    used = {name for worker in files.workers.values() for name in worker.toolsets}
    unused = [name for name in files.settings.toolsets if name not in used]
    if not unused:
        return
    from signoff.toolsets.catalog import Catalog  # imports PydanticAI, which is slow

    catalog = Catalog(files.settings)
    for name in unused:
        try:
            catalog.build(name)
        except SignoffError as error:
            yield _told(WARNING, "broken-toolset", f"the toolset {name} cannot be built: ", error)


def unlisted_findings(listings: Mapping[str, ToolListing]) -> Iterator[Finding]:
    """Toolsets that failed to list their tools."""
    from signoff.workers.listing import NOT_STARTED, PER_RUN

    failed = {toolset: why for one in listings.values() for toolset, why in one.unknown if why != NOT_STARTED}
    for toolset, why in failed.items():
        known = "not all known, so some are not checked" if why == PER_RUN else "unknown, so they are not checked"
        what = f"the tools of {shown(toolset)} are {known}: {why}"
        yield Finding(severity=WARNING, check="unlisted-toolset", what=what)


def _models(files: Files, names: Sequence[str]) -> Iterator[Finding]:
    """Workers whose models cannot be used: a package or a key is missing, or the model is unknown. Sends no request."""
    from signoff.workers.project_workers import Workers

    shop = Workers(files.settings, workers=files.workers)
    nameless: list[str] = []
    found: dict[tuple[str, str], tuple[list[str], Finding]] = {}
    for name in names:
        if not (files.workers[name].spec.get("model") or files.settings.model or os.environ.get("SIGNOFF_MODEL")):
            nameless.append(name)
            continue
        try:
            shop.check_model(name)
        except SignoffError as error:
            told = _told(WARNING, "model", "", error)
            found.setdefault((told.what, told.place), ([], told))[0].append(name)
    for who, told in found.values():
        yield replace(told, what=f"{', '.join(who)}: {told.what}")
    if nameless:
        what = f"no model is set for {', '.join(nameless)}"
        fix = "set one with --model, in signoff.yaml (`model: anthropic:claude-sonnet-5`), or in SIGNOFF_MODEL"
        yield Finding(severity=NOTE, check="model", what=what, fix=fix)


def _own_rules(files: Files, listings: Mapping[str, ToolListing], kept: StoreFacts) -> Iterator[Finding]:
    """Workers that can change the files that restrict them."""
    from signoff.toolsets.catalog import Catalog
    from signoff.workers.changes import way_to_change

    directory, workers = files.settings.directory, workers_directory(files.settings)
    bound_by = {
        files.settings.file or os.path.join(directory, PROJECT_FILE): PROJECT_FILE,
        os.path.join(workers, "new.yaml"): f"{os.path.basename(workers)}/",
        os.path.join(directory, "toolsets.py"): "toolsets.py",
        **({kept.file: "the store of approvals"} if kept.file else {}),
        **{os.path.join(one, "new"): f"{os.path.relpath(one, directory)}/" for one in Catalog(files.settings).programs},
    }

    async def tried() -> list[tuple[str, ListedTool, dict[str, Verdict | None]]]:
        return [
            (who, tool, {what: await way_to_change(tool, path) for path, what in bound_by.items()})
            for who, tool in _tools(listings)
        ]

    for who, tool, ways in run(tried()):
        if found := {what: verdict for what, verdict in ways.items() if verdict is not None}:
            how = shown(tool.name)
            what = f"{who} can change its own restrictions without a question: {how} on {', '.join(found)}"
            decided = {rule for verdict in found.values() for rule in verdict.rules}
            places = dict.fromkeys(str(rule.place) for rule in tool.lets if rule.id in decided)
            fix = "narrow that rule so that it excludes these files"
            yield Finding(severity=ERROR, check="own-rules", what=what, place=", ".join(places), fix=fix)


def _programs(files: Files, listings: Mapping[str, ToolListing]) -> Iterator[Finding]:
    """Commands that run without a question and may change programs that the shell runs by name."""
    from signoff.workers.changes import beyond_reading, unsealed

    for who, tool in _tools(listings):
        rules = beyond_reading(tool)
        directories = [os.path.relpath(directory, files.settings.directory) for directory in unsealed(tool)]
        if directories and rules:
            what = (
                f"commands that {who} may run without a question can change {listed(directories)}, "
                "whose programs run by name"
            )
            places = ", ".join(dict.fromkeys(str(rule.place) for rule in rules))
            fix = (
                "allow only commands that you trust not to write there, "
                "or install bubblewrap: its sandbox makes them read-only"
            )
            yield Finding(severity=WARNING, check="programs", what=what, place=places, fix=fix)


def _tools(listings: Mapping[str, ToolListing]) -> Iterator[tuple[str, ListedTool]]:
    return ((name, tool) for name, listing in listings.items() for tool in listing.tools)


def _unknown_names(
    files: Files, listings: Mapping[str, ToolListing], broken: Mapping[str, SignoffError]
) -> Iterator[Finding]:
    from signoff.toolsets.catalog import Catalog

    tools = [tool for _, tool in _tools(listings)]
    unlisted = {toolset for one in listings.values() for toolset, _ in one.unknown}
    used = {name for worker in files.workers.values() for name in worker.toolsets}
    settings = files.settings
    in_use = replace(settings, toolsets={name: one for name, one in settings.toolsets.items() if name in used})
    known = {name for tool in tools for name in tool.all_names}
    yield from tool_findings(Files(in_use, files.workers), known, unlisted, broken)
    try:
        named = Catalog(settings).names()
    except SignoffError:  # the error is reported with the worker or toolset that uses it
        return
    yield from name_findings(files, {*named, *(tool.toolset for tool in tools if tool.toolset)})


def _told(severity: Severity, check: str, before: str, error: SignoffError) -> Finding:
    """An error as a finding, split into what is wrong, where, and the fix."""
    if isinstance(error, WrongFile):
        place = str(error.place) if error.place is not None else ""
        return Finding(severity=severity, check=check, what=before + error.what, place=place, fix=error.fix)
    what, _, fix = str(error).partition("\n  ")
    return Finding(severity=severity, check=check, what=before + what, fix=fix)
