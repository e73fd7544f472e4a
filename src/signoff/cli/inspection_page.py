"""Output of `signoff doctor` and `signoff toolsets`, for people and as JSON."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from signoff.cli.doctor_findings import DELEGATION, Finding, Severity
from signoff.cli.terminal_text import count, fold, pad, safe
from signoff.core.safe_text import grant_line, redacted_text
from signoff.core.visible_text import visible

if TYPE_CHECKING:
    from signoff.cli.inspection import Inspection, Loosening, ToolsetDetails, ToolsetFacts
    from signoff.core.grant import Grant
    from signoff.policy.reach import Reach
    from signoff.policy.rule import Rule
    from signoff.workers.inspect import FoundTool
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
"""Capability labels, the riskiest first."""
_COLUMN = 12


def inspection_lines(found: Inspection, width: int) -> Iterator[str]:
    """The page of `signoff doctor` for people."""
    yield from _head(found, width)
    yield ""
    yield _title("What can run without a question")
    yield from _tool_lines(found, width)
    if found.speaking:
        yield ""
        yield _title("Remembered answers that let calls run without a question")
        yield from _grant_lines(found.speaking, width)
    yield ""
    yield _title("What is wrong")
    yield from _finding_lines(found.findings, width)
    yield ""
    yield from fold(_summary(found), width)


def _title(text: str) -> str:
    return click.style(text, bold=True, underline=True)


def _head(found: Inspection, width: int) -> Iterator[str]:
    settings = found.settings
    silent = "none: every tool call is asked about"
    project = settings.file or (silent if settings.user is None else f"{silent} if your own rules do not match")
    yield from _pair("project", project, width)
    if settings.user is not None:
        yield from _pair("user rules", settings.user.file, width)
    if found.environment:
        yield from _pair("environment", found.environment, width)
    yield from _pair("can loosen", _loosening_text(found.loosening), width)
    yield from _pair("store", f"{found.store.name} ({found.store.state})", width)


def _loosening_text(loosening: Loosening) -> str:
    if loosening.own_gate:
        return "nobody, by flags: the agent has its own Signoff; your program sets its policy and mode"
    if loosening.locked:
        return f"nobody: the policy is locked ({loosening.locked})"
    fix = (
        "`locked: true` in signoff.yaml prevents both"
        if loosening.has_project
        else "`locked: true` in signoff.yaml prevents it"
    )
    return f"anyone who starts a run, with {' or '.join(loosening.flags)}; the run says so. {fix}"


def _pair(name: str, text: str, width: int) -> list[str]:
    folded = fold(safe(text), width - _COLUMN)
    return [pad(name if not at else "", _COLUMN) + line for at, line in enumerate(folded)]


# --- tools ---


def _tool_lines(found: Inspection, width: int) -> Iterator[str]:
    survey = found.survey
    if survey is None:
        yield from fold("There are no workers here, so there are no tools to check.", width)
        return
    from signoff.workers.inspect import NOT_STARTED, PER_RUN

    hints = {NOT_STARTED: f"{NOT_STARTED}: --connect starts it", PER_RUN: f"{PER_RUN}; see below"}
    for name in sorted(found.names, key=lambda one: _worst(survey, one)):
        yield ""
        file = found.workers[name].file if name in found.workers else ""
        yield f"{click.style(safe(name), bold=True)}  {click.style(safe(file), dim=True)}"
        if name in survey.broken:
            yield from _row("broken", [], "cannot be started; see below", "deny", width)
            continue
        own = [one for one in survey.tools if one.worker == name]
        for chain in dict.fromkeys(one.chain for one in own):
            yield from _chain_lines(found, survey, [one for one in own if one.chain == chain], width)
        unlisted = [one for one in survey.unknown if one[0][0] == name]
        for chain, toolset, why in unlisted:
            hint = hints.get(why, "its tools cannot be listed; see below")
            yield from _row("unknown", [" > ".join((*chain[1:], toolset))], hint, "conditional", width)
        if not own and not unlisted:
            yield "  has no tools"


def _worst(survey: WorkerSurvey, name: str) -> tuple[int, int, str]:
    """Sort key of workers: those that can do the most without a question come first."""
    reaches = [one.reach.effect for one in survey.tools if one.worker == name]
    return (-reaches.count("allow"), -reaches.count("conditional"), name)


def _chain_lines(found: Inspection, survey: WorkerSurvey, tools: Sequence[Reachable], width: int) -> Iterator[str]:
    chain = tools[0].chain
    if len(chain) > 1:
        way = safe(" > ".join(chain))
        if _is_as_itself(found, survey, tools):
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


def _is_as_itself(found: Inspection, survey: WorkerSurvey, tools: Sequence[Reachable]) -> bool:
    """Whether a called worker can do exactly what it can do when run by itself, as shown elsewhere on this page."""
    name = tools[0].chain[-1]
    own = {one.tool.shown: one.reach for one in survey.tools if one.chain == (name,)}
    if name not in found.names:
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
    """The rules that let these tools run, each once; with the tools' names if it does not apply to all of them."""
    about: dict[tuple[str, str, str], tuple[Rule, list[str]]] = {}
    for one in tools:
        pairs = [("by", rule) for rule in one.reach.lets]
        pairs += [("when nobody answers, by", rule) for rule in one.reach.unanswered]
        for by, rule in pairs:
            about.setdefault((by, rule.id, str(rule.place)), (rule, []))[1].append(one.tool.shown)
    for (by, _, _), (rule, names) in about.items():
        # Two servers of the provider share one name in rules, so what applies to one need not apply to the other.
        says_which = all(match.tools for match in rule.matches) and not any(one.tool.which for one in tools)
        some = f"{', '.join(names)} " if len(names) < len(tools) and not says_which else ""
        yield from _rule_lines(rule, f"{some}{by}", width)


def _rule_lines(rule: Rule, by: str, width: int) -> Iterator[str]:
    indent = " " * (_COLUMN + 4)
    text = f"{safe(by)} {safe(rule.id)} ({_place(rule)}): {safe(rule.text)}"
    for at, line in enumerate(fold(text, width - len(indent))):
        yield click.style(indent[:-2] + ("" if not at else "  ") + line, dim=True)


def _place(rule: Rule) -> str:
    """Where a rule is defined, short enough for a line."""
    from signoff.policy.builtin import RULES

    place = rule.place
    if not place.file or place.file.startswith("<"):  # rules that are not in a file are named after their toolset
        name = place.file.strip("<>")
        return "built in" if name in (*RULES, DELEGATION, "") else "in Python"
    return safe(f"{_from_here(place.file)}:{place.line}" if place.line else _from_here(place.file))


def _from_here(path: str) -> str:
    relative = os.path.relpath(path)
    return path if relative.startswith(os.pardir) else relative


# --- the rest ---


def _grant_lines(grants: Iterable[Grant], width: int) -> Iterator[str]:
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


def _summary(found: Inspection) -> str:
    """The whole inspection in one sentence."""
    told = ", ".join(count(found.number(one), str(one)) for one in Severity)
    if found.survey is None:
        return f"No workers; {told}."
    effects = [one.reach.effect for one in found.own_tools]
    always, sometimes = effects.count("allow"), effects.count("conditional")
    unlisted = len({one[1] for one in found.survey.unknown})
    unknown = f"; {count(unlisted, 'toolset')} not checked" if unlisted else ""
    workers = count(len(found.names), "worker")
    return (
        f"{workers}, {count(len(effects), 'tool')}: {always} always and {sometimes} sometimes unasked{unknown}; {told}."
    )


def inspection_data(found: Inspection, *, strict: bool) -> dict[str, Any]:
    """The page of `signoff doctor` as JSON."""
    survey = found.survey
    return {
        "ok": found.is_well(strict=strict),
        "project": found.settings.file or None,
        "environment": found.environment or None,
        "loosening": {"locked": found.loosening.locked or None, "flags": list(found.loosening.flags)},
        "store": {"address": found.store.name, "state": found.store.state},
        "workers": [
            {
                "name": name,
                "file": found.workers[name].file if name in found.workers else None,
                "broken": str(survey.broken[name]) if name in survey.broken else None,
                "tools": [_tool_data(one) for one in survey.tools if one.worker == name],
                "unknown": [
                    {"chain": list(chain), "toolset": toolset, "why": why}
                    for chain, toolset, why in survey.unknown
                    if chain[0] == name
                ],
            }
            for name in found.names
        ]
        if survey is not None
        else [],
        "remembered": [_grant_data(one) for one in found.speaking],
        "findings": [
            {"severity": str(one.severity), "check": one.check, "what": one.what, "place": one.place, "fix": one.fix}
            for one in found.findings
        ],
        "summary": {str(one): found.number(one) for one in Severity},
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
    return {"id": grant.id, "tool": grant.tool, "toolset": grant.toolset, "by": grant.by, "text": grant_line(grant)}


# --- toolsets ---

_COLOURS: Mapping[str, str] = {"allow": "green", "ask": "yellow", "deny": "red", "conditional": "cyan"}


def toolset_lines(toolset: ToolsetFacts) -> Iterator[str]:
    """One toolset in the list of toolsets."""
    users = f"  (used by {', '.join(map(visible, toolset.used_by))})" if toolset.used_by else ""
    yield _toolset_title(toolset, users)
    width = max((len(visible(tool.name)) for tool, _ in toolset.tools), default=0)
    for tool, reach in toolset.tools:
        yield f"  {pad(visible(tool.name), width)}  {_outlook(tool, reach)}"
    if toolset.unknown:
        yield f"  {redacted_text(toolset.unknown)}"
    yield from _error_lines(toolset, "red" if toolset.used_by else "yellow")


def toolset_page(details: ToolsetDetails) -> Iterator[str]:
    """One toolset in detail."""
    from signoff.cli.config_words import config_lines

    toolset = details.toolset
    yield _toolset_title(toolset)
    yield from _error_lines(toolset, "red")
    for tool, reach in toolset.tools:
        takes = ", ".join(one if one in tool.required else f"[{one}]" for one in tool.arguments)
        yield f"\n{click.style(visible(tool.name), bold=True)}({visible(takes)})"
        yield f"  {_outlook(tool, reach)}"
        if first := next(iter(tool.description.strip().splitlines()), ""):
            yield f"  {visible(first)}"
    if toolset.unknown:
        yield f"  {redacted_text(toolset.unknown)}"
    if details.programs:
        yield f"\nruns programs by name from {visible(', '.join(details.programs))}; writes there ask"
    if details.rules:
        yield "\nits rules, which come after the project's:"
        yield from (f"  {rule.id}: {visible(rule.text)}" for rule in details.rules)
    elif not toolset.error:
        yield "\nno rules of its own: every call asks, unless a rule of the project decides"
    yield from config_lines(details.config_schema)


def _toolset_title(toolset: ToolsetFacts, behind: str = "") -> str:
    return f"{click.style(visible(toolset.name), bold=True)}  {click.style(visible(toolset.origin) + behind, dim=True)}"


def _error_lines(toolset: ToolsetFacts, colour: str) -> Iterator[str]:
    for line in toolset.error.splitlines():
        yield click.style(f"  {redacted_text(line.strip())}", fg=colour)


def _outlook(tool: FoundTool, reach: Reach) -> str:
    """The effect on a tool's calls, and its labels."""
    effect = click.style(reach.effect, fg=_COLOURS[reach.effect])
    sets = tool.labels if isinstance(tool.labels, tuple) else ()
    claimed = f"({', '.join(sorted(tool.claimed))}, says its server)" if tool.claimed else ""
    labels = "  ".join(filter(None, (", ".join(sorted(frozenset[str]().union(*sets))), claimed)))
    return f"{effect}{' ' * (11 - len(reach.effect))}  {labels}" if labels else effect


def toolset_data(toolset: ToolsetFacts) -> dict[str, Any]:
    """One toolset in the list, as JSON."""
    return {
        "name": toolset.name,
        "origin": toolset.origin,
        "used_by": list(toolset.used_by),
        "tools": [_toolset_tool_data(tool, reach) for tool, reach in toolset.tools],
        "unknown": toolset.unknown or None,
        "error": toolset.error or None,
    }


def details_data(details: ToolsetDetails) -> dict[str, Any]:
    """One toolset in detail, as JSON."""
    toolset = details.toolset
    return {
        "name": toolset.name,
        "origin": toolset.origin,
        "tools": [
            _toolset_tool_data(tool, reach) | {"description": tool.description, "arguments": list(tool.arguments)}
            for tool, reach in toolset.tools
        ],
        "unknown": toolset.unknown or None,
        "rules": [{"id": rule.id, "rule": rule.text, "place": str(rule.place)} for rule in details.rules],
        "config_schema": details.config_schema,
        "error": toolset.error or None,
    }


def _toolset_tool_data(tool: FoundTool, reach: Reach) -> dict[str, Any]:
    return {
        "name": tool.name,
        "kind": tool.kind,
        "effect": reach.effect,
        "unasked": list(reach.unasked),
        "labels": list(tool.all_labels),
        "claimed": sorted(tool.claimed),
    }
