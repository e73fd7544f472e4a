"""The page of `signoff doctor`: what can run unasked, what is remembered, what is wrong; for people or as JSON."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from signoff.cli.doctor_findings import DELEGATION, Finding, Severity
from signoff.cli.words import count, fold, pad, safe

if TYPE_CHECKING:
    from signoff.cli.doctor_store import StoreFacts
    from signoff.config import Settings, WorkerFile
    from signoff.core.grant import Grant
    from signoff.policy.reach import Reach
    from signoff.policy.rule import Rule
    from signoff.workers.survey import Reachable, WorkerSurvey

_SHOWN = {"allow": "every call", "conditional": "some calls", "ask": "asks", "deny": "never"}
_ORDER = tuple(_SHOWN)
_STYLE: Mapping[str, Mapping[str, Any]] = {
    "allow": {"fg": "red", "bold": True},
    "conditional": {"fg": "yellow"},
    "ask": {"fg": "green"},
    "deny": {"dim": True},
    "error": {"fg": "red", "bold": True},
    "warning": {"fg": "yellow"},
    "note": {"dim": True},
}
_RISKS = ("money", "proc.exec", "fs.write", "data.write", "net.egress")
"""The worst first."""
_COLUMN = 12


@dataclass(frozen=True, kw_only=True)
class Loosening:
    """Who can let a run do more unasked than this page says."""

    locked: str = ""
    """Where the project file says so; empty where it does not."""
    own_gate: bool = False
    """Whether what is looked at is an agent whose own gate takes no flags."""
    has_project: bool = True

    @property
    def flags(self) -> tuple[str, ...]:
        """What whoever starts a run can do it with."""
        if self.locked or self.own_gate:
            return ()
        return ("--mode auto_approve", "--policy FILE") if self.has_project else ("--mode auto_approve",)

    @property
    def text(self) -> str:
        """In a sentence."""
        if self.own_gate:
            return "nobody by flags: the agent brings its own Signoff, and your program says its policy and mode"
        if self.locked:
            return f"nobody who starts a run: the policy is locked ({self.locked})"
        fix = "`locked: true` in signoff.yaml refuses both" if self.has_project else "a locked signoff.yaml refuses it"
        return f"whoever starts a run, with {' or '.join(self.flags)}; the run says so. {fix}"


@dataclass(frozen=True, kw_only=True)
class DoctorReport:
    """Everything that was found."""

    settings: Settings
    environment: str
    """What the environment adds to the rules, in one line; empty: nothing."""
    loosening: Loosening
    workers: Mapping[str, WorkerFile]
    names: Sequence[str]
    """The workers that are told about."""
    survey: WorkerSurvey | None
    """None where there is no worker to look at."""
    kept: StoreFacts
    speaking: Sequence[Grant]
    """Remembered answers that can let calls run unasked."""
    findings: Sequence[Finding]

    @property
    def unasked(self) -> list[Reachable]:
        """Every tool that can run unasked, each once for a worker that has it."""
        tools = self.survey.tools if self.survey is not None else []
        return [one for one in tools if one.reach.unasked or one.reach.unanswered]

    def number(self, severity: Severity) -> int:
        return sum(one.severity is severity for one in self.findings)

    def is_well(self, *, strict: bool) -> bool:
        return not self.number(Severity.ERROR) and not (strict and self.number(Severity.WARNING))


def lines(report: DoctorReport, width: int) -> Iterator[str]:
    """The page for people."""
    yield from _head(report, width)
    yield ""
    yield _title("What can run unasked")
    yield from _tool_lines(report, width)
    if report.speaking:
        yield ""
        yield _title("Answers that are remembered, and let calls run unasked")
        yield from _grant_lines(report.speaking, width)
    yield ""
    yield _title("What is wrong")
    yield from _finding_lines(report.findings, width)
    yield ""
    yield from fold(summary(report), width)


def _title(text: str) -> str:
    return click.style(text, bold=True, underline=True)


def _head(report: DoctorReport, width: int) -> Iterator[str]:
    settings = report.settings
    silent = "none: every tool call is asked about"
    project = settings.file or (silent if settings.user is None else f"{silent} where your own rules are silent")
    yield from _pair("project", project, width)
    if settings.user is not None:
        yield from _pair("user rules", settings.user.file, width)
    if report.environment:
        yield from _pair("environment", report.environment, width)
    yield from _pair("can loosen", report.loosening.text, width)
    yield from _pair("store", f"{report.kept.name} ({report.kept.state})", width)


def _pair(name: str, text: str, width: int) -> list[str]:
    folded = fold(safe(text), width - _COLUMN)
    return [pad(name if not at else "", _COLUMN) + line for at, line in enumerate(folded)]


# --- tools ---


def _tool_lines(report: DoctorReport, width: int) -> Iterator[str]:
    survey = report.survey
    if survey is None:
        yield from fold("There are no workers here, so there is no tool to look at.", width)
        return
    from signoff.workers.inspect import NOT_STARTED, PER_RUN

    hints = {NOT_STARTED: f"{NOT_STARTED}: --connect starts it", PER_RUN: f"{PER_RUN}; see below"}
    for name in sorted(report.names, key=lambda one: _worst(survey, one)):
        yield ""
        file = report.workers[name].file if name in report.workers else ""
        yield f"{click.style(safe(name), bold=True)}  {click.style(safe(file), dim=True)}"
        if name in survey.broken:
            yield from _row("broken", [], "cannot be started; see below", "deny", width)
            continue
        own = [one for one in survey.tools if one.worker == name]
        for chain in dict.fromkeys(one.chain for one in own):
            yield from _chain_lines(report, survey, [one for one in own if one.chain == chain], width)
        unlisted = [one for one in survey.unknown if one[0][0] == name]
        for chain, toolset, why in unlisted:
            hint = hints.get(why, "its tools cannot be listed; see below")
            yield from _row("unknown", [" > ".join((*chain[1:], toolset))], hint, "conditional", width)
        if not own and not unlisted:
            yield "  has no tools"


def _worst(survey: WorkerSurvey, name: str) -> tuple[int, int, str]:
    """Where a worker stands on the page: the one that can do the most unasked first."""
    reaches = [one.reach.effect for one in survey.tools if one.worker == name]
    return (-reaches.count("allow"), -reaches.count("conditional"), name)


def _chain_lines(report: DoctorReport, survey: WorkerSurvey, tools: Sequence[Reachable], width: int) -> Iterator[str]:
    chain = tools[0].chain
    if len(chain) > 1:
        way = safe(" > ".join(chain))
        if _is_as_itself(report, survey, tools):
            yield f"  {way}: as {safe(chain[-1])} by itself"
            return
        yield f"  {way}"
    groups: dict[tuple[int, str], list[Reachable]] = {}
    for one in sorted(tools, key=_risk):
        groups.setdefault((_ORDER.index(one.reach.effect), one.tool.toolset or ""), []).append(one)
    for (_, toolset), members in sorted(groups.items(), key=lambda item: (item[0][0], _risk(item[1][0]))):
        effect = members[0].reach.effect
        yield from _row(_SHOWN[effect], [one.tool.shown for one in members], toolset, effect, width)
        yield from _reason_lines(members, width)


def _is_as_itself(report: DoctorReport, survey: WorkerSurvey, tools: Sequence[Reachable]) -> bool:
    """Whether a worker that is called can do exactly what its own place on this page says."""
    name = tools[0].chain[-1]
    own = {one.tool.shown: one.reach for one in survey.tools if one.chain == (name,)}
    if name not in report.names:
        return False
    return all(
        (own[one.tool.shown].effect, _rules_key(own[one.tool.shown])) == (one.reach.effect, _rules_key(one.reach))
        for one in tools
    )


def _risk(one: Reachable) -> tuple[int, str]:
    labels = one.tool.all_labels
    return next((at for at, risk in enumerate(_RISKS) if risk in labels), len(_RISKS)), one.tool.name


def _rules_key(reach: Reach) -> tuple[str, ...]:
    return tuple(f"{rule.id} {rule.place}" for rule in (*reach.lets, *reach.unanswered))


def _row(state: str, names: Sequence[str], behind: str, style: str, width: int) -> Iterator[str]:
    """A state, the tools that are in it, and where they come from."""
    told = ", ".join(safe(name) for name in names)
    words = f"{told}  ({safe(behind)})" if told and behind else told or safe(behind)
    for at, line in enumerate(fold(words, width - _COLUMN - 2)):
        yield "  " + (click.style(pad(state, _COLUMN), **_STYLE[style]) if not at else " " * _COLUMN) + line


def _reason_lines(tools: Sequence[Reachable], width: int) -> Iterator[str]:
    """The rules that let these tools run, each once; with the tools' names, where it is not about all of them."""
    about: dict[tuple[str, str, str], tuple[Rule, list[str]]] = {}
    for one in tools:
        pairs = [("by", rule) for rule in one.reach.lets]
        pairs += [("when nobody answers, by", rule) for rule in one.reach.unanswered]
        for by, rule in pairs:
            about.setdefault((by, rule.id, str(rule.place)), (rule, []))[1].append(one.tool.shown)
    for (by, _, _), (rule, names) in about.items():
        # Two servers of the provider's are one name in rules: what is said of one need not hold for the other.
        says_which = all(match.tools for match in rule.matches) and not any(one.tool.which for one in tools)
        some = f"{', '.join(names)} " if len(names) < len(tools) and not says_which else ""
        yield from _rule_lines(rule, f"{some}{by}", width)


def _rule_lines(rule: Rule, by: str, width: int) -> Iterator[str]:
    indent = " " * (_COLUMN + 4)
    text = f"{safe(by)} {safe(rule.id)} ({place_of(rule)}): {safe(rule.text)}"
    for at, line in enumerate(fold(text, width - len(indent))):
        yield click.style(indent[:-2] + ("" if not at else "  ") + line, dim=True)


def place_of(rule: Rule) -> str:
    """Where a rule stands, short enough for a line."""
    from signoff.policy.builtin import RULES

    place = rule.place
    if not place.file or place.file.startswith("<"):  # rules that stand in no file are named after their toolset
        name = place.file.strip("<>")
        return "built in" if name in (*RULES, DELEGATION, "") else "in Python"
    return safe(f"{_from_here(place.file)}:{place.line}" if place.line else _from_here(place.file))


def _from_here(path: str) -> str:
    relative = os.path.relpath(path)
    return path if relative.startswith(os.pardir) else relative


# --- the rest ---


def _grant_lines(grants: Iterable[Grant], width: int) -> Iterator[str]:
    from signoff.core.safe import grant_line

    for grant in grants:
        who = f" ({safe(grant.by)})" if grant.by else ""
        for at, line in enumerate(fold(f"{grant_line(grant, zone=datetime.astimezone)}{who}", width - _COLUMN - 2)):
            yield "  " + pad(safe(grant.id)[: _COLUMN - 2] if not at else "", _COLUMN) + line


def _finding_lines(findings: Sequence[Finding], width: int) -> Iterator[str]:
    if not findings:
        yield "  nothing was found"
    for one in findings:
        yield ""
        yield from _row(str(one.severity), [], one.what, str(one.severity), width)
        for text in filter(None, (one.place, f"fix: {one.fix}" if one.fix else "")):
            for at, line in enumerate(fold(safe(text), width - _COLUMN - 2)):
                yield click.style(" " * (_COLUMN + 2) + ("" if not at else "  ") + line, dim=True)


def summary(report: DoctorReport) -> str:
    """Everything in a sentence."""
    told = ", ".join(count(report.number(one), str(one)) for one in Severity)
    if report.survey is None:
        return f"No workers; {told}."
    own = [one for one in report.survey.tools if len(one.chain) == 1]
    effects = [one.reach.effect for one in own]
    always, sometimes = effects.count("allow"), effects.count("conditional")
    unlisted = len({one[1] for one in report.survey.unknown})
    unknown = f"; {count(unlisted, 'toolset')} not looked into" if unlisted else ""
    workers = count(len(report.names), "worker")
    return f"{workers}, {count(len(own), 'tool')}: {always} always and {sometimes} sometimes unasked{unknown}; {told}."


def as_data(report: DoctorReport, *, strict: bool) -> dict[str, Any]:
    """The page for programs."""
    survey = report.survey
    return {
        "ok": report.is_well(strict=strict),
        "project": report.settings.file or None,
        "environment": report.environment or None,
        "loosening": {"locked": report.loosening.locked or None, "flags": list(report.loosening.flags)},
        "store": {"address": report.kept.name, "state": report.kept.state},
        "workers": [
            {
                "name": name,
                "file": report.workers[name].file if name in report.workers else None,
                "broken": str(survey.broken[name]) if name in survey.broken else None,
                "tools": [_tool_data(one) for one in survey.tools if one.worker == name],
                "unknown": [
                    {"chain": list(chain), "toolset": toolset, "why": why}
                    for chain, toolset, why in survey.unknown
                    if chain[0] == name
                ],
            }
            for name in report.names
        ]
        if survey is not None
        else [],
        "remembered": [_grant_data(one) for one in report.speaking],
        "findings": [
            {"severity": str(one.severity), "check": one.check, "what": one.what, "place": one.place, "fix": one.fix}
            for one in report.findings
        ],
        "summary": {str(one): report.number(one) for one in Severity},
    }


def _tool_data(one: Reachable) -> dict[str, Any]:
    return {
        "tool": one.tool.name,
        "which": one.tool.which or None,
        "toolset": one.tool.toolset,
        "kind": one.tool.kind,
        "chain": list(one.chain),
        "labels": list(one.tool.all_labels),
        "effect": one.reach.effect,
        "unasked": [_rule_data(rule) for rule in one.reach.lets],
        "unanswered": [_rule_data(rule) for rule in one.reach.unanswered],
    }


def _rule_data(rule: Rule) -> dict[str, Any]:
    return {"rule": rule.id, "text": rule.text, "file": rule.place.file, "line": rule.place.line}


def _grant_data(grant: Grant) -> dict[str, Any]:
    from signoff.core.safe import grant_line

    return {"id": grant.id, "tool": grant.tool, "toolset": grant.toolset, "by": grant.by, "text": grant_line(grant)}
