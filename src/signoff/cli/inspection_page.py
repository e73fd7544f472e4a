"""Output of `signoff doctor` and `signoff toolsets`, for people and as JSON."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from signoff.cli.config_words import config_lines
from signoff.cli.doctor_findings import Finding, Severity
from signoff.cli.terminal_text import as_json, clip, count, fold, pad, safe
from signoff.core.safe_text import redacted_text
from signoff.core.verdict import Effect, OnTimeout
from signoff.core.visible_text import visible
from signoff.policy.builtin import RULES
from signoff.policy.grant_text import grant_line

if TYPE_CHECKING:
    from signoff.cli.inspection import FoundToolset, Inspection
    from signoff.core.grant import Grant
    from signoff.policy.rule import Rule
    from signoff.workers.listing import ListedTool, ToolListing

_STYLE: Mapping[str, Mapping[str, Any]] = {
    "allow": {"fg": "red", "bold": True},
    "ask": {"fg": "green"},
    "deny": {"dim": True},
    "error": {"fg": "red", "bold": True},
    "warning": {"fg": "yellow"},
    "note": {"dim": True},
}
_RISKS = ("money", "proc.exec", "fs.write", "data.write", "net.egress")
"""Capability labels, the riskiest first."""
_COLUMN = 12


def page_width() -> int:
    return min(shutil.get_terminal_size().columns, 100)


def inspection_lines(found: Inspection, width: int) -> Iterator[str]:
    """The page of `signoff doctor` for people."""
    yield from _head(found, width)
    yield ""
    yield _title("What policy says to one call of each tool")
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
    yield from _pair("can loosen", _loosening_text(found), width)
    yield from _pair("store", f"{found.store.name} ({found.store.state})", width)


def _loosening_text(found: Inspection) -> str:
    if found.own_gate:
        return "nobody, by flags: the agent has its own Signoff; your program sets its policy and mode"
    if found.locked:
        return f"nobody: the policy is locked ({found.locked})"
    what = "both" if len(found.loosening) > 1 else "it"
    fix = f"`locked: true` in signoff.yaml prevents {what}"
    return f"anyone who starts a run, with {' or '.join(found.loosening)}; the run says so. {fix}"


def _pair(name: str, text: str, width: int) -> list[str]:
    folded = fold(safe(text), width - _COLUMN)
    return [pad(name if not at else "", _COLUMN) + line for at, line in enumerate(folded)]


# --- tools ---


def _tool_lines(found: Inspection, width: int) -> Iterator[str]:
    if found.hooked and found.settings.file:
        asking = (
            f"The hook of {' and of '.join(found.hooked)} goes by this policy: what it allows runs without a question."
        )
        yield from fold(f"{asking} `signoff policy show` prints its rules.", width)
    if not found.names:
        yield from fold("There are no workers here, so there are no tools to check.", width)
    for name in sorted(found.names, key=lambda one: _worst(found, one)):
        yield ""
        file = found.workers[name].file if name in found.workers else ""
        yield f"{click.style(safe(name), bold=True)}  {click.style(safe(file), dim=True)}"
        if name in found.broken:
            yield from _row("broken", "cannot be started; see below", "deny", width)
        else:
            yield from _listing_lines(found.listings[name], width)


def _worst(found: Inspection, name: str) -> tuple[int, int, str]:
    """Sort key of workers: those that can do the most without a question come first."""
    tools = found.listings[name].tools if name in found.listings else []
    return -_unasked(tools), -sum(bool(one.lets) for one in tools), name


def _unasked(tools: Iterable[ListedTool]) -> int:
    return sum(str(one.verdict.effect) == "allow" for one in tools)


def _listing_lines(listing: ToolListing, width: int, of: str = "") -> Iterator[str]:
    """The tools with the verdict on a call of each; what `of` names is the toolset they are known to be of."""
    from signoff.workers.listing import NOT_STARTED, PER_RUN

    groups: dict[tuple[object, ...], list[ListedTool]] = {}
    for tool in sorted(listing.tools, key=_risk):
        groups.setdefault((str(tool.verdict.effect), tool.toolset, tool.lets, _silence(tool)), []).append(tool)
    for effect in ("allow", "ask", "deny"):
        for (said, toolset, _, _), tools in groups.items():
            if said == effect:
                calls = ", ".join(_sample(one) for one in tools)
                yield from _row(effect, f"{calls}  ({toolset})" if toolset and not of else calls, effect, width)
                yield from _reason_lines(tools[0], width)
    hints = {NOT_STARTED: f"{NOT_STARTED}: --connect starts it", PER_RUN: f"{PER_RUN}; see below"}
    for toolset, why in listing.unknown:
        hint = hints.get(why, why if of else "its tools cannot be listed; see below")
        yield from _row("unknown", f"{toolset}  ({hint})", "warning", width)
    if not listing.tools and not listing.unknown:
        yield "  has no tools"


def _sample(tool: ListedTool) -> str:
    """The sample call, shortened: nothing is decided by it."""
    if tool.kind == "native":
        return tool.shown
    return f"{tool.name}({', '.join(f'{name}={clip(as_json(value), 40)}' for name, value in tool.call.args.items())})"


def _risk(tool: ListedTool) -> tuple[int, str]:
    return next(
        (at for at, risk in enumerate(_RISKS) if risk in tool.call.labels | tool.call.claimed), len(_RISKS)
    ), tool.name


def _silence(tool: ListedTool) -> str:
    """The rules by which the sample call runs when nobody answers; empty if it does not."""
    verdict = tool.verdict
    asks = verdict.effect is Effect.ASK and verdict.requirement.on_timeout is OnTimeout.ALLOW
    return ", ".join(verdict.rules) if asks else ""


def _row(state: str, text: str, style: str, width: int) -> Iterator[str]:
    for at, line in enumerate(fold(safe(text), width - _COLUMN - 2)):
        yield "  " + (click.style(pad(state, _COLUMN), **_STYLE[style]) if not at else " " * _COLUMN) + line


def _reason_lines(tool: ListedTool, width: int) -> Iterator[str]:
    """The rules that can let calls of a tool run: this one, or others."""
    if silence := _silence(tool):
        yield from _dim(f"when nobody answers, it runs by {silence}", width)
    by = "by" if tool.verdict.effect is Effect.ALLOW else "others run by"
    for rule in tool.lets:
        yield from _dim(f"{by} {rule.id} ({_place(rule)}): {rule.text}", width)


def _dim(text: str, width: int) -> Iterator[str]:
    indent = " " * (_COLUMN + 4)
    for at, line in enumerate(fold(safe(text), width - len(indent))):
        yield click.style(indent[:-2] + ("" if not at else "  ") + line, dim=True)


def _place(rule: Rule) -> str:
    """Where a rule is defined, short enough for a line."""
    place = rule.place
    if not place.file or place.file.startswith("<"):  # rules that are not in a file are named after their toolset
        name = place.file.strip("<>")
        return "built in" if name in (*RULES, "") else "in Python"
    return f"{_from_here(place.file)}:{place.line}" if place.line else _from_here(place.file)


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
        yield from _row(str(one.severity), one.what, str(one.severity), width)
        for text in filter(None, (one.place, f"fix: {one.fix}" if one.fix else "")):
            yield from _dim(text, width)


def _summary(found: Inspection) -> str:
    """The whole inspection in one sentence."""
    told = ", ".join(count(found.number(one), str(one)) for one in Severity)
    if not found.names:
        return f"No workers; {told}."
    tools = [tool for one in found.listings.values() for tool in one.tools]
    others = sum(bool(one.lets) for one in tools if one.verdict.effect is not Effect.ALLOW)
    unlisted = len({toolset for one in found.listings.values() for toolset, _ in one.unknown})
    unknown = f"; {count(unlisted, 'toolset')} not checked" if unlisted else ""
    workers = count(len(found.names), "worker")
    more = f", and other calls of {count(others, 'more tool')} can" if others else ""
    return (
        f"{workers}, {count(len(tools), 'tool')}: {_unasked(tools)} of these calls run unasked{more}{unknown}; {told}."
    )


def inspection_data(found: Inspection, *, strict: bool) -> dict[str, Any]:
    """The page of `signoff doctor` as JSON."""
    return {
        "ok": found.is_well(strict=strict),
        "project": found.settings.file or None,
        "environment": found.environment or None,
        "loosening": {"locked": found.locked or None, "flags": list(found.loosening)},
        "store": {"address": found.store.name, "state": found.store.state},
        "workers": [_worker_data(found, name) for name in found.names],
        "remembered": [_grant_data(one) for one in found.speaking],
        "findings": [
            {"severity": str(one.severity), "check": one.check, "what": one.what, "place": one.place, "fix": one.fix}
            for one in found.findings
        ],
        "summary": {str(one): found.number(one) for one in Severity},
    }


def _worker_data(found: Inspection, name: str) -> dict[str, Any]:
    listing = found.listings.get(name)
    return {
        "name": name,
        "file": found.workers[name].file if name in found.workers else None,
        "broken": str(found.broken[name]) if name in found.broken else None,
        "tools": [_tool_data(one) for one in listing.tools] if listing is not None else [],
        "unknown": [{"toolset": name, "why": why} for name, why in listing.unknown] if listing is not None else [],
    }


def _tool_data(tool: ListedTool) -> dict[str, Any]:
    verdict = tool.verdict
    return {
        "tool": tool.name,
        "which": tool.which or None,
        "toolset": tool.toolset,
        "kind": tool.kind,
        "description": tool.definition.description or "",
        "arguments": list(tool.definition.parameters_json_schema.get("properties", ())),
        "labels": sorted(tool.call.labels),
        "claimed": sorted(tool.call.claimed),
        "sample": None if tool.kind == "native" else tool.call.args,
        "effect": str(verdict.effect),
        "rules": list(verdict.rules),
        "reason": verdict.reason,
        "unanswered": "allow" if _silence(tool) else None,
        "unasked": [_rule_data(rule) for rule in tool.lets],
    }


def _rule_data(rule: Rule) -> dict[str, Any]:
    return {"rule": rule.id, "text": rule.text, "file": rule.place.file, "line": rule.place.line}


def _grant_data(grant: Grant) -> dict[str, Any]:
    return {"id": grant.id, "tool": grant.tool, "toolset": grant.toolset, "by": grant.by, "text": grant_line(grant)}


# --- toolsets ---


def toolset_lines(toolset: FoundToolset, width: int) -> Iterator[str]:
    """One toolset in the list of toolsets."""
    yield from _toolset_head(toolset)
    if toolset.listing is not None:
        yield from _listing_lines(toolset.listing, width, of=toolset.name)


def toolset_page(toolset: FoundToolset, config_schema: Mapping[str, Any], width: int) -> Iterator[str]:
    """One toolset in detail."""
    yield from toolset_lines(toolset, width)
    for tool in toolset.tools:
        schema = tool.definition.parameters_json_schema
        takes = (one if one in schema.get("required", ()) else f"[{one}]" for one in schema.get("properties", ()))
        yield f"\n{click.style(visible(tool.name), bold=True)}({visible(', '.join(takes))})"
        if first := next(iter((tool.definition.description or "").strip().splitlines()), ""):
            yield f"  {visible(first)}"
        claimed = f"{', '.join(sorted(tool.call.claimed))} (says its server)" if tool.call.claimed else ""
        if labels := ", ".join(filter(None, (*sorted(tool.call.labels), claimed))):
            yield f"  labels of this call: {visible(labels)}"
    if toolset.programs:
        programs = ", ".join(_from_here(one) for one in toolset.programs)
        yield f"\nruns programs by name from {visible(programs)}; writes there ask"
    if toolset.rules:
        yield "\nits rules, which come after the project's:"
        yield from (f"  {rule.id}: {visible(rule.text)}" for rule in toolset.rules)
    elif not toolset.error:
        yield "\nno rules of its own: every call asks, unless a rule of the project decides"
    yield from config_lines(config_schema)


def _toolset_head(toolset: FoundToolset) -> Iterator[str]:
    users = f"  (used by {', '.join(toolset.used_by)})" if toolset.used_by else ""
    yield f"{click.style(visible(toolset.name), bold=True)}  {click.style(visible(toolset.origin + users), dim=True)}"
    if toolset.needs:
        yield f"  {redacted_text(toolset.needs)}"
    for line in toolset.error.splitlines():
        yield click.style(f"  {redacted_text(line.strip())}", fg="red" if toolset.used_by else "yellow")


def toolset_data(toolset: FoundToolset) -> dict[str, Any]:
    """One toolset in the list, as JSON."""
    unknown = [why for _, why in toolset.listing.unknown] if toolset.listing is not None else []
    return {
        "name": toolset.name,
        "origin": toolset.origin,
        "used_by": list(toolset.used_by),
        "tools": [_tool_data(tool) for tool in toolset.tools],
        "unknown": "; ".join(unknown) or toolset.needs or None,
        "error": toolset.error or None,
    }


def details_data(toolset: FoundToolset, config_schema: Mapping[str, Any]) -> dict[str, Any]:
    """One toolset in detail, as JSON."""
    return toolset_data(toolset) | {
        "rules": [{"id": rule.id, "rule": rule.text, "place": str(rule.place)} for rule in toolset.rules],
        "config_schema": config_schema,
    }
