"""`signoff doctor`: the page a security reviewer reads."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING

import click

from signoff.cli import options

if TYPE_CHECKING:
    from datetime import datetime

    from signoff.cli.doctor_findings import Files, Finding, Severity
    from signoff.cli.doctor_page import DoctorReport, Loosening
    from signoff.cli.doctor_store import KnownTool, StoreFacts
    from signoff.config import Settings, WorkerFile
    from signoff.errors import SignoffError
    from signoff.workers.agents import AgentFacts
    from signoff.workers.survey import WorkerSurvey


@click.command()
@click.argument("agent", required=False)
@click.option("--worker", "only", multiple=True, metavar="NAME", help="Only this worker; may be repeated.")
@click.option("--connect", is_flag=True, help="Start MCP servers to ask for their tools.")
@click.option("--strict", is_flag=True, help="Warnings end with exit code 1, too.")
@options.as_json
@options.where
def doctor(
    agent: str | None,
    only: tuple[str, ...],
    connect: bool,
    strict: bool,
    as_json: bool,
    store: str | None,
    policy: str | None,
) -> None:
    """Say what can run unasked, and what is wrong.

    Every tool of every worker, also through the workers it calls, with the rules that let it run without a person;
    then mistakes in rules, people, files and the store, and models that lack a package or a key; no model is asked
    anything. With AGENT, package.module:agent, it looks at that agent in Python instead of the workers. Ends with exit
    code 1 where something is wrong.

    \b
    Examples:
      signoff doctor
      signoff doctor --worker triage --connect
      signoff doctor mypackage.agents:agent
      signoff doctor --json --strict
    """
    if agent is not None and only:
        raise click.UsageError("Name an agent, or workers with --worker, not both.")
    from signoff.cli.doctor_page import as_data, lines
    from signoff.cli.main import FAILED
    from signoff.cli.safe_output import apart
    from signoff.cli.words import as_json as json_line
    from signoff.cli.words import now
    from signoff.wiring import settings_for

    # The project's own code and plug-ins are imported: what they print must not come between our JSON.
    with apart() if as_json else nullcontext():
        settings = settings_for(policy)
        if agent is not None:
            report = _agent_report(agent, settings, connect, store)
        else:
            report = _report(settings, only, connect, store, now())
    if as_json:
        click.echo(json_line(as_data(report, strict=strict)))
    else:
        width = min(shutil.get_terminal_size().columns, 100)
        for line in lines(report, width):
            click.echo(line)
    if not report.is_well(strict=strict):
        sys.exit(FAILED)


def _report(settings: Settings, only: Sequence[str], connect: bool, store: str | None, at: datetime) -> DoctorReport:
    from signoff.cli.doctor_findings import Files, Severity
    from signoff.cli.doctor_page import DoctorReport
    from signoff.cli.doctor_store import look_at_store, why_asleep
    from signoff.wiring import Caller

    workers, wrong = _workers(settings)
    caller = Caller.here()
    files = Files(settings, workers, caller.layers(settings.directory))
    names = _names(only, workers, wrong)
    survey = _survey(files, [name for name in names if name in workers], connect) if names else None
    if survey is not None:
        survey.broken.update({name: wrong[name] for name in names if name in wrong})
    kept = look_at_store(store, settings)
    tools = _known_tools(survey)
    found = list(_findings(files, wrong, survey, kept, at, whole=not only))
    order = list(Severity)
    return DoctorReport(
        settings=settings,
        environment=caller.told,
        loosening=_loosening(settings),
        workers=workers,
        names=names,
        survey=survey,
        kept=kept,
        speaking=[one for one in kept.grants if one.approved and not why_asleep(one, tools, at, all_known=False)],
        findings=sorted(found, key=lambda one: order.index(one.severity)),
    )


def _agent_report(path: str, settings: Settings, connect: bool, store: str | None) -> DoctorReport:
    """The page about one agent in Python."""
    import asyncio

    from signoff.cli.doctor_page import DoctorReport
    from signoff.cli.doctor_store import look_at_store
    from signoff.wiring import Caller
    from signoff.workers.agents import look_at

    caller = Caller.here()
    layers = (*settings.layers, *caller.layers(settings.directory))
    facts = asyncio.run(look_at(path, layers, connect=connect))
    return DoctorReport(
        settings=settings,
        environment=caller.told,
        loosening=_loosening(settings, own_gate=facts.has_gate),
        workers={},
        names=[path],
        survey=facts.survey,
        kept=look_at_store(store, settings),
        speaking=(),
        findings=[*_agent_findings(path, facts), *_unlisted(facts.survey)],
    )


def _loosening(settings: Settings, *, own_gate: bool = False) -> Loosening:
    from signoff.cli.doctor_page import Loosening
    from signoff.wiring.project import lock_of

    place = lock_of(settings.file) if settings.file else None
    return Loosening(locked=f"{place}" if place is not None else "", own_gate=own_gate, has_project=bool(settings.file))


def _agent_findings(path: str, facts: AgentFacts) -> Iterator[Finding]:
    from signoff.cli.doctor_findings import NOTE, WARNING, Finding

    if not facts.has_gate:
        what = (
            f"{path} has no gate: where your program runs it, no call is judged. Above is what `signoff run` would do"
        )
        fix = "Agent(…, capabilities=[Signoff('signoff.yaml')])"
        yield Finding(severity=WARNING, check="no-gate", what=what, fix=fix)
    for tool, inner in facts.ungated:
        what = f"the tool {tool} names the agent {inner}, which has no gate: the calls that it makes are not judged"
        fix = "give it capabilities=[Signoff(…)] too (docs/guides/nested.md)"
        yield Finding(severity=WARNING, check="inner-agent", what=what, fix=fix)
    if facts.has_code:
        what = "the gate has a function of its own (judge=), which can only make it stricter than this page says"
        yield Finding(severity=NOTE, check="judge", what=what)
    if facts.model_problem is not None:
        yield _told(WARNING, "model", "", facts.model_problem)
    elif not facts.has_model:
        fix = "Agent('anthropic:claude-sonnet-5', …), --model, or SIGNOFF_MODEL"
        yield Finding(severity=NOTE, check="model", what=f"{path} names no model", fix=fix)


def _workers(settings: Settings) -> tuple[Mapping[str, WorkerFile], Mapping[str, SignoffError]]:
    """The workers whose files are right, and what is wrong with the others."""
    from signoff.config import load_worker, worker_names
    from signoff.errors import SignoffError

    right: dict[str, WorkerFile] = {}
    wrong: dict[str, SignoffError] = {}
    for name in worker_names(settings):
        try:
            right[name] = load_worker(settings, name)
        except SignoffError as error:
            wrong[name] = error
    return right, wrong


def _names(only: Sequence[str], workers: Mapping[str, WorkerFile], wrong: Mapping[str, SignoffError]) -> list[str]:
    from signoff.errors import WrongUse
    from signoff.policy.phrases import did_you_mean, shown

    known = sorted({*workers, *wrong})
    for name in only:
        if name not in known:
            hint = did_you_mean(name, known) or "there are none here: workers/NAME.yaml"
            raise WrongUse(f"there is no worker {shown(name)}\n  {hint}")
    return list(dict.fromkeys(only)) or known


def _survey(files: Files, names: Sequence[str], connect: bool) -> WorkerSurvey:
    """Build every worker without its model, and look at what it has."""
    import asyncio

    from signoff.workers.inspect import InspectedAgent
    from signoff.workers.survey import survey
    from signoff.workers.workshop import Workshop

    shop = Workshop(files.settings, workers=files.workers, models=False)

    def build(name: str) -> InspectedAgent:
        worker = shop.delegate(name)
        return InspectedAgent(agent=worker.agent, native=worker.gate.native, secrets=tuple(worker.gate.secrets))

    layers = (*files.settings.layers, *files.environment)
    return asyncio.run(survey(files.workers, layers, build, names=names, connect=connect))


def _findings(
    files: Files,
    wrong: Mapping[str, SignoffError],
    survey: WorkerSurvey | None,
    kept: StoreFacts,
    at: datetime,
    *,
    whole: bool,
) -> Iterator[Finding]:
    from signoff.cli.doctor_files import file_findings
    from signoff.cli.doctor_findings import people_findings, rule_findings, toolset_findings
    from signoff.cli.doctor_store import grant_findings

    yield from rule_findings(files)
    yield from people_findings(files)
    yield from toolset_findings(files)
    yield from file_findings(files)
    yield from kept.findings
    broken = {**wrong, **(survey.broken if survey is not None else {})}
    yield from _broken_workers(broken)
    yield from _broken_toolsets(files)
    yield from _broken_channels(files)
    if survey is None:
        yield from grant_findings(kept.grants, (), at, all_known=False)
        return
    yield from _unlisted(survey)
    yield from _models(files, [name for name in survey.built if name in files.workers])
    yield from _own_rules(files, survey, kept)
    yield from _programs(files, survey)
    all_known = whole and not survey.unknown and not broken
    yield from grant_findings(kept.grants, _known_tools(survey), at, all_known=all_known)
    if whole:
        yield from _unknown_names(files, survey, broken)


def _known_tools(survey: WorkerSurvey | None) -> set[KnownTool]:
    from signoff.cli.doctor_store import KnownTool

    found = survey.built.values() if survey is not None else ()
    return {KnownTool(tool.name, tool.toolset, tool.schema_hash) for one in found for tool in one.tools}


def _broken_workers(broken: Mapping[str, SignoffError]) -> Iterator[Finding]:
    from signoff.cli.doctor_findings import ERROR

    for name, error in broken.items():
        yield _told(ERROR, "broken-worker", f"{name} cannot be started: ", error)


def _broken_channels(files: Files) -> Iterator[Finding]:
    """Channels that could not be run: what could be started from there is not there, or wrong."""
    from signoff.cli.doctor_findings import ERROR
    from signoff.errors import SignoffError
    from signoff.wiring.channels import check_workers

    for entry in files.settings.channels.values():
        try:
            check_workers(entry, files.settings)
        except SignoffError as error:
            yield _told(ERROR, "broken-channel", f"{entry.name} cannot be run: ", error)


def _models(files: Files, names: Sequence[str]) -> Iterator[Finding]:
    """Workers whose models cannot be asked: a package or a key is missing, or there is no such model. Asks none."""
    from dataclasses import replace

    from signoff.cli.doctor_findings import NOTE, WARNING, Finding
    from signoff.errors import SignoffError
    from signoff.workers.workshop import Workshop

    shop = Workshop(files.settings, workers=files.workers)
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
        what = f"nobody names a model for {', '.join(nameless)}"
        fix = "name one with --model, in signoff.yaml (`model: anthropic:claude-sonnet-5`), or in SIGNOFF_MODEL"
        yield Finding(severity=NOTE, check="model", what=what, fix=fix)


def _unlisted(survey: WorkerSurvey) -> Iterator[Finding]:
    """Toolsets that were asked for their tools and did not answer."""
    from signoff.cli.doctor_findings import WARNING, Finding
    from signoff.policy.phrases import shown
    from signoff.workers.inspect import NOT_STARTED, PER_RUN

    failed = {toolset: why for _, toolset, why in survey.unknown if why != NOT_STARTED}
    for toolset, why in failed.items():
        known = "not all known, and the others" if why == PER_RUN else "not known, and"
        what = f"the tools of {shown(toolset)} are {known} not looked into: {why}"
        yield Finding(severity=WARNING, check="unlisted-toolset", what=what)


def _broken_toolsets(files: Files) -> Iterator[Finding]:
    """Toolsets that nobody uses, and nobody could."""
    from signoff.cli.doctor_findings import WARNING
    from signoff.errors import SignoffError

    used = {name for worker in files.workers.values() for name in worker.toolsets}
    unused = [name for name in files.settings.toolsets if name not in used]
    if not unused:
        return
    from signoff.toolsets.catalog import Catalog  # it loads PydanticAI, which takes a while

    catalog = Catalog(files.settings)
    for name in unused:
        try:
            catalog.build(name)
        except SignoffError as error:
            yield _told(WARNING, "broken-toolset", f"the toolset {name} cannot be made: ", error)


def _told(severity: Severity, check: str, before: str, error: SignoffError) -> Finding:
    """An error as a finding: what is wrong, where and what to do, apart."""
    from signoff.cli.doctor_findings import Finding
    from signoff.errors import WrongFile

    if isinstance(error, WrongFile):
        place = str(error.place) if error.place is not None else ""
        return Finding(severity=severity, check=check, what=before + error.what, place=place, fix=error.fix)
    what, _, fix = str(error).partition("\n  ")
    return Finding(severity=severity, check=check, what=before + what, fix=fix)


def _own_rules(files: Files, survey: WorkerSurvey, kept: StoreFacts) -> Iterator[Finding]:
    """Workers that can change the files they are bound by."""
    from signoff.cli.doctor_findings import ERROR, Finding
    from signoff.config import PROJECT_FILE, workers_directory
    from signoff.policy.phrases import shown
    from signoff.toolsets.catalog import Catalog
    from signoff.workers.survey import way_to_change

    directory, workers = files.settings.directory, workers_directory(files.settings)
    bound_by = {
        files.settings.file or os.path.join(directory, PROJECT_FILE): PROJECT_FILE,
        os.path.join(workers, "new.yaml"): f"{os.path.basename(workers)}/",
        os.path.join(directory, "toolsets.py"): "toolsets.py",
        **({kept.file: "the store of approvals"} if kept.file else {}),
        **{os.path.join(one, "new"): f"{os.path.relpath(one, directory)}/" for one in Catalog(files.settings).programs},
    }
    seen: set[tuple[str, str]] = set()
    for one in survey.tools:
        key = (one.chain[-1], one.tool.name)
        ways = {what: verdict for path, what in bound_by.items() if (verdict := way_to_change(one, path)) is not None}
        if ways and key not in seen:
            seen.add(key)
            who, how = " > ".join(one.chain), shown(one.tool.name)
            what = f"{who} can change what it is bound by, unasked: {how} on {', '.join(ways)}"
            rules = {rule.id: rule for rule in one.reach.lets}
            places = {str(rules[rule].place): None for said in ways.values() for rule in said.rules if rule in rules}
            fix = "narrow that rule, so that these files stay out of it"
            yield Finding(severity=ERROR, check="own-rules", what=what, place=", ".join(places), fix=fix)


def _programs(files: Files, survey: WorkerSurvey) -> Iterator[Finding]:
    """Commands that rules let run unasked and that may, whatever their words, change programs which run by name."""
    from signoff.cli.doctor_findings import WARNING, Finding
    from signoff.policy.phrases import listed
    from signoff.workers.survey import beyond_reading, unsealed

    seen: set[str] = set()
    for one in survey.tools:
        who, rules = " > ".join(one.chain), beyond_reading(one)
        directories = [os.path.relpath(directory, files.settings.directory) for directory in unsealed(one.tool)]
        if directories and rules and who not in seen:
            seen.add(who)
            what = f"commands that {who} may run unasked can change {listed(directories)}, whose programs run by name"
            places = ", ".join(dict.fromkeys(str(rule.place) for rule in rules))
            fix = "allow only commands that you trust not to write there, or install bubblewrap: its sandbox seals them"
            yield Finding(severity=WARNING, check="programs", what=what, place=places, fix=fix)


def _unknown_names(files: Files, survey: WorkerSurvey, broken: Mapping[str, SignoffError]) -> Iterator[Finding]:
    from dataclasses import replace

    from signoff.cli.doctor_findings import Files, name_findings, tool_findings
    from signoff.errors import SignoffError
    from signoff.toolsets.catalog import Catalog

    tools = [tool for found in survey.built.values() for tool in found.tools]
    unlisted = {toolset for _, toolset, _ in survey.unknown}
    used = {name for worker in files.workers.values() for name in worker.toolsets}
    settings = files.settings
    in_use = replace(settings, toolsets={name: one for name, one in settings.toolsets.items() if name in used})
    known = {name for tool in tools for name in tool.all_names}
    yield from tool_findings(Files(in_use, files.workers), known, unlisted, broken)
    try:
        named = Catalog(settings).names()
    except SignoffError:  # its own error is told with the worker or the toolset that wants it
        return
    yield from name_findings(files, {*named, *(tool.toolset for tool in tools if tool.toolset)})
