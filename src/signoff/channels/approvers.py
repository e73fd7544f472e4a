"""Factories for the ready-made approvers; each imports its dependencies when it is called."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Literal

from signoff.channels.headless import HeadlessApprover
from signoff.channels.script_approver import Answer, ScriptedApprover
from signoff.channels.terminal import TerminalApprover

if TYPE_CHECKING:
    from rich.console import Console

    from signoff.channels.rule_drafts import DraftRules
    from signoff.channels.tui import TuiApprover
    from signoff.core.people import Actor


def terminal_approver(
    console: Console | None = None,
    *,
    actor: Actor | None = None,
    headless: Literal["deny", "park"] = "deny",
    secrets: Iterable[str] = (),
    editor: str | None = None,
    remember: bool = True,
    keeps_always: bool = True,
    can_stop: bool = False,
    draft_rules: DraftRules | None = None,
) -> TerminalApprover:
    """Return an approver that asks the person at the terminal. `headless`: what to do without a terminal.

    `can_stop` offers a key that leaves open requests undecided, so that the run is suspended. `draft_rules` offers a
    key that makes a rule from the call.
    """
    return TerminalApprover(
        console,
        actor=actor,
        headless=headless,
        secrets=secrets,
        editor=editor,
        remember=remember,
        keeps_always=keeps_always,
        can_stop=can_stop,
        draft_rules=draft_rules,
    )


def tui_approver(
    *,
    actor: Actor | None = None,
    headless: Literal["deny", "park"] = "deny",
    secrets: Iterable[str] = (),
    remember: bool = True,
    keeps_always: bool = True,
    draft_rules: DraftRules | None = None,
) -> TuiApprover:
    """Return an approver that asks on the terminal's full screen. Raises `MissingExtra` without the extra `tui`."""
    from signoff.channels.tui import TuiApprover

    return TuiApprover(
        actor=actor,
        headless=headless,
        secrets=secrets,
        remember=remember,
        keeps_always=keeps_always,
        draft_rules=draft_rules,
    )


def headless_approver(otherwise: Literal["deny", "park"] = "deny") -> HeadlessApprover:
    """Return an approver that asks nobody: it denies every call, or leaves it pending. It never approves."""
    return HeadlessApprover(otherwise)


def scripted_approver(answers: Iterable[Answer], *, by: Actor | None = None) -> ScriptedApprover:
    """Return an approver that answers from a list, as a script or as the actor `by`. For tests and demos."""
    return ScriptedApprover(answers, by=by)
