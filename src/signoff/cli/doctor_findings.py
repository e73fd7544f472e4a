"""Checks of `signoff doctor` on rules, people and toolsets: everything that the files alone show."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, cast

from signoff.config.settings import accounts, person_format
from signoff.config.stricter_layers import unheard_problem
from signoff.core.credential import secret_name
from signoff.core.verdict import Effect, OnTimeout, Requirement
from signoff.errors import SignoffError
from signoff.policy.lint import Problem, unknown_tools
from signoff.policy.match import CHAIN, ToolsetCondition, WorkerCondition
from signoff.policy.match_result import Truth
from signoff.policy.phrases import did_you_mean, listed, nearest, shown
from signoff.store.store_urls import masked
from signoff.wiring.channel_wiring import actors, kind_of

if TYPE_CHECKING:
    from signoff.config import Settings, ToolsetEntry, WorkerFile
    from signoff.policy.engine import Policy
    from signoff.policy.glob import Glob
    from signoff.policy.rule import Rule

DELEGATION = "workers"
"""The toolset of `worker_call` and `worker_create`."""
NATIVE = "native"


class Severity(StrEnum):
    """How bad a finding is; an error ends the command with exit code 1."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Something a reviewer should know."""

    severity: Severity
    check: str
    """The check that found it, as a stable identifier."""
    what: str
    place: str = ""
    fix: str = ""


ERROR, WARNING, NOTE = Severity.ERROR, Severity.WARNING, Severity.NOTE
_WEIGHT = {
    "shadowed": (ERROR, "shadowed-rule"),
    "dead": (WARNING, "dead-rule"),
    "everything": (ERROR, "allows-everything"),
    "broad": (WARNING, "broad-command"),
    "open": (NOTE, "narrow-command"),
    "silence": (WARNING, "silence-allows"),
    "locked": (NOTE, "locked"),
}


@dataclass(frozen=True, slots=True)
class Files:
    """The files of a project that could be read."""

    settings: Settings
    workers: Mapping[str, WorkerFile]
    environment: tuple[Policy, ...] = ()
    """Policies from `SIGNOFF_ASK`, `SIGNOFF_DENY` and `SIGNOFF_POLICY`."""

    @property
    def policies(self) -> Iterator[Policy]:
        """Every policy in a file of the project or the user, or named by the environment."""
        yield from self.settings.layers
        yield from (one.policy for one in self.settings.toolsets.values() if one.policy is not None)
        yield from (one.policy for one in self.workers.values() if one.policy is not None)
        yield from self.environment

    @property
    def rules(self) -> Iterator[Rule]:
        """Every rule once. Several toolsets or workers can share one through `extends`."""
        seen: set[str] = set()
        for policy in self.policies:
            for rule in policy.rules:
                if (where := f"{rule.place}") not in seen:
                    seen.add(where)
                    yield rule


def rule_findings(files: Files) -> Iterator[Finding]:
    """Rules that never decide, or decide more than intended."""
    seen: set[tuple[str, str]] = set()
    for policy in files.policies:
        for problem in policy.warnings:
            if (key := (str(problem.place), problem.kind)) not in seen:
                seen.add(key)
                yield _weighed(problem)
    yield from map(_weighed, map(unheard_problem, files.settings.unheard))
    yield from map(_weighed, files.settings.closed_toolsets)


def _weighed(problem: Problem) -> Finding:
    severity, check = _WEIGHT.get(problem.kind, (WARNING, problem.kind or "rule"))
    return Finding(severity=severity, check=check, what=problem.what, place=str(problem.place), fix=problem.fix)


def tool_findings(
    files: Files, tools: Collection[str], unlisted: Collection[str], broken: Collection[str]
) -> Iterator[Finding]:
    """Rules that name a tool no worker has. Toolsets whose tools are unknown, and broken workers, may have it."""
    found = [(rule, problem) for rule in files.rules for problem in unknown_tools([rule], tools)]
    if found and (unlisted or broken):
        ids = listed(dict.fromkeys(rule.id for rule, _ in found))
        what = f"tools named in {ids} are unknown; {listed(sorted({*unlisted, *broken}))} may have them"
        fix = "--connect asks the servers for their tools" if unlisted else "fix that first"
        yield Finding(severity=NOTE, check="unknown-tool", what=what, place=str(found[0][0].place), fix=fix)
        return
    for rule, problem in found:
        yield _missing(rule, "unknown-tool", f"{rule.id}: {problem.what} in any worker", problem.fix)


def name_findings(files: Files, toolsets: Collection[str]) -> Iterator[Finding]:
    """Rules that name a toolset or a worker that does not exist."""
    known_toolsets = {*toolsets, *files.settings.toolsets, DELEGATION, NATIVE}
    for rule in files.rules:
        for match in rule.matches:
            for condition in match.conditions:
                if isinstance(condition, ToolsetCondition):
                    yield from _unknown_names(rule, "toolset", condition.names, known_toolsets)
                elif isinstance(condition, WorkerCondition):
                    yield from _unknown_names(rule, "worker", condition.single, set(files.workers))
                    yield from _unknown_links(rule, condition.chains, set(files.workers))


def _unknown_names(rule: Rule, what: str, globs: Iterable[Glob], known: Collection[str]) -> Iterator[Finding]:
    for glob in globs:
        if glob.literal not in known and all(glob.find(name) is Truth.NO for name in known):
            told = f"{rule.id} names the {what} {shown(glob.pattern)}, which does not exist"
            yield _missing(rule, f"unknown-{what}", told, did_you_mean(glob.pattern, known))


def _unknown_links(rule: Rule, chains: Iterable[Glob], known: Collection[str]) -> Iterator[Finding]:
    """Unknown names in a chain such as `triage > analyzer`; names with wildcards are not checked."""
    for chain in chains:
        for name in chain.pattern.split(CHAIN):
            if not any(char in name for char in "*?[") and name not in known:
                told = f"{rule.id} names the worker {shown(name)}, which does not exist"
                yield _missing(rule, "unknown-worker", told, did_you_mean(name, known))


def _missing(rule: Rule, check: str, what: str, fix: str) -> Finding:
    """A rule that names something that does not exist. An error unless the rule allows: it stops nothing."""
    severity = WARNING if rule.effect is Effect.ALLOW else ERROR
    return Finding(severity=severity, check=check, what=what, place=str(rule.place), fix=fix)


# --- people ---


def people_findings(files: Files) -> Iterator[Finding]:
    """People who cannot be reached, roles nobody holds, and rules that nobody can satisfy."""
    settings = files.settings
    held = {role for person in settings.people.values() for role in person.roles}
    yield from _unreached(settings)
    for rule in files.rules:
        if rule.effect is Effect.ASK:
            yield from _unanswerable(rule, settings, held)
    for worker in files.workers.values():
        for at, role in enumerate(worker.approvers):
            if role not in held:
                spot = worker.spots.get(f"approvers[{at}]", worker.spot)
                what = f"every request of {worker.name} needs the role {shown(role)}, which nobody has"
                yield Finding(
                    severity=ERROR, check="role-nobody-holds", what=what, place=str(spot.place), fix=_give(role, held)
                )


def _unreached(settings: Settings) -> Iterator[Finding]:
    """People whom no channel reaches, and accounts that no kind of channel has."""
    reached: set[str] = set()
    keys: set[str] = set()
    has_channels = False
    for entry in settings.channels.values():
        try:
            kind = kind_of(entry, settings)
        except SignoffError:  # reported elsewhere; what accounts it has is not known
            return
        if not kind.at_terminal:
            has_channels = True
            reached |= {one.name for one in actors(entry, settings).values()}
        if kind.account is not None:
            keys.add(kind.account.key)
    if not has_channels:  # a program's own may be anywhere
        keys = accounts().keys() - {"slack", "email"}
        reached = {one.name for one in settings.people.values() if keys & one.accounts.keys()}
    if alone := [person.name for person in settings.people.values() if person.name not in reached]:
        who = f"{listed(alone)} must look for themselves, at a terminal or in the web inbox"
        yield Finding(
            severity=NOTE,
            check="no-channel",
            what=f"{who}: no channel reaches them",
            place=_spot(settings, "people"),
            fix=f"add {' or '.join(f'`{key}: ID`' for key in sorted(keys))} under `people`",
        )
    known = {*keys, *person_format().keys}
    for name, person in settings.people.items():
        for key in person.accounts:
            if key not in known:
                yield Finding(
                    severity=WARNING,
                    check="unknown-account",
                    what=f"no channel of the project has accounts called {shown(key)}",
                    place=str(settings.spots["people"].child(name).child(key).key_place),
                    fix=did_you_mean(key, known),
                )


def _unanswerable(rule: Rule, settings: Settings, held: Collection[str]) -> Iterator[Finding]:
    needed, place = rule.requirement, str(rule.place)
    if needed.role is not None and needed.role not in held:
        what = f"{rule.id} needs the role {shown(needed.role)}, which nobody has: its calls can only time out"
        fix = _give(needed.role, held)
        yield Finding(severity=ERROR, check="role-nobody-holds", what=what, place=place, fix=fix)
    elif settings.people and (told := _too_few(rule, needed, _able(settings, needed.role))):
        severity, what = told
        fix = "name more people under `people`, or lower the quorum"
        yield Finding(severity=severity, check="quorum", what=what, place=place, fix=fix)
    if needed.on_timeout is OnTimeout.ESCALATE and needed.escalate_to and needed.escalate_to not in held:
        what = f"{rule.id} escalates to the role {shown(needed.escalate_to)}, which nobody has"
        fix = _give(needed.escalate_to, held)
        yield Finding(severity=ERROR, check="escalates-to-nobody", what=what, place=place, fix=fix)
    elif needed.on_timeout is OnTimeout.ESCALATE and needed.escalate_to and settings.people:
        if told := _too_few(rule, needed.escalated, _able(settings, needed.escalate_to)):
            severity, what = told
            fix = "name more people under `people`, or lower the quorum of `escalate_to`"
            yield Finding(severity=severity, check="quorum", what=f"once escalated, {what}", place=place, fix=fix)
    if needed.veto is not None and needed.veto not in held:
        what = f"{rule.id} gives a veto to the role {shown(needed.veto)}, which nobody has"
        fix = _give(needed.veto, held)
        yield Finding(severity=WARNING, check="role-nobody-holds", what=what, place=place, fix=fix)


def _too_few(rule: Rule, needed: Requirement, able: int) -> tuple[Severity, str] | None:
    """Whether there are too few people for the quorum, also if one of them is excluded by the rule."""
    who = f"with the role {shown(needed.role)}" if needed.role else "who may answer"
    if able < needed.quorum:
        return ERROR, f"{rule.id} needs {needed.quorum} people {who}, and there {_are(able)}"
    left = able - len(needed.not_by)
    if left < needed.quorum:
        excluded = " and the ".join(sorted(needed.not_by))
        people = "somebody" if needed.quorum == 1 else f"{needed.quorum} people"
        rest = f"too few are left ({left})" if left > 0 else "nobody is left"
        what = f"{rule.id} needs {people} {who}, and there {_are(able)}: if the {excluded} is one of them, {rest}"
        return WARNING, what
    return None


def _able(settings: Settings, role: str | None) -> int:
    return sum(role is None or role in person.roles for person in settings.people.values())


def _are(number: int) -> str:
    return {0: "is nobody", 1: "is 1"}.get(number, f"are {number}")


def _give(role: str, held: Collection[str]) -> str:
    close = nearest(role, held)
    return f"did you mean `{close}`?" if close else f"give it to somebody: people: {{NAME: {{roles: [{role}]}}}}"


# --- toolsets and plugins ---


def toolset_findings(files: Files) -> Iterator[Finding]:
    """Unused toolsets, imports that are allowed too widely, and secrets written in the file."""
    settings = files.settings
    used = {name for worker in files.workers.values() for name in worker.toolsets}
    for name, entry in settings.toolsets.items():
        if name not in used:
            what = f"no worker uses the toolset {shown(name)}"
            place = str(entry.spot.key_place)
            yield Finding(
                severity=NOTE, check="unused-toolset", what=what, place=place, fix="remove it, or add it to a worker"
            )
    yield from secret_findings(settings)
    for pattern in settings.plugins:
        if not pattern.partition(".")[0].strip("*"):
            what = f"plugins.allow {shown(pattern)} allows any installed package to be loaded as a toolset"
            place, fix = _spot(settings, "plugins"), "name the packages: {allow: [mycompany.*]}"
            yield Finding(severity=WARNING, check="plugins-wide", what=what, place=place, fix=fix)


def secret_findings(settings: Settings) -> Iterator[Finding]:
    """Secrets written in the project file itself."""
    for entry in settings.toolsets.values():
        yield from _literal_secrets(entry)
    written = settings.spots.get("store")
    if written is not None and "${" not in written.value and _has_password(written.value):
        what, fix = (
            "the store's password is written in the file",
            "use ${STORE_URL} instead, or set SIGNOFF_STORE",
        )
        yield Finding(severity=WARNING, check="secret-in-file", what=what, place=str(written.place), fix=fix)


def _literal_secrets(entry: ToolsetEntry) -> Iterator[Finding]:
    for path, value in _texts(entry.config, ()):
        kind = secret_name(path[-1]) if value else ""
        if (kind or _has_password(value)) and "${" not in value:
            spot = entry.config_spots.get(".".join(path)) or entry.config_spots.get(path[0]) or entry.spot
            name = path[-1].upper().replace("-", "_")
            what = f"the {kind or 'password'} of {shown(entry.name)} is written in the file"
            fix = f"write ${{{name}}} there, and keep it in the environment"
            yield Finding(severity=WARNING, check="secret-in-file", what=what, place=str(spot.place), fix=fix)


def _has_password(text: str) -> bool:
    return "://" in text and masked(text) != text


def _texts(value: Mapping[str, Any], path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], str]]:
    for key, item in value.items():
        if isinstance(item, str):
            yield (*path, key), item
        elif isinstance(item, Mapping):
            yield from _texts(cast("Mapping[str, Any]", item), (*path, key))


def _spot(settings: Settings, key: str) -> str:
    return str(settings.spots[key].key_place) if key in settings.spots else settings.file
