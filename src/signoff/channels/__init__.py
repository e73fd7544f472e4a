"""How a person is reached: one card, drawn by every channel in its own way.

Ready-made: the approvers of the terminal, of its full screen, of nobody and of a script, and `DiscordApprovals`.
For a program that answers requests itself, `open_inbox`. For a channel of your own: `Channel`, what it is given to
show (`Notice`: `Asked`, `RunResult`), the `Inbox` it answers through, and what runs it, a `Reconciler` with a `Route`
for each channel. Each loads what it needs only when it is used.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Literal

from signoff.lazy_names import lazy_names

if TYPE_CHECKING:
    from rich.console import Console

    from signoff.channels.headless import HeadlessApprover
    from signoff.channels.outcome import outcome_text as outcome_text
    from signoff.channels.outcome import result_text as result_text
    from signoff.channels.rule_drafts import DraftRules
    from signoff.channels.script_approver import Answer, ScriptedApprover
    from signoff.channels.terminal import TerminalApprover
    from signoff.channels.tui import TuiApprover
    from signoff.core.card import card_for as card_for
    from signoff.core.notice import Asked as Asked
    from signoff.core.notice import Notice as Notice
    from signoff.core.notice import RunResult as RunResult
    from signoff.core.people import Actor
    from signoff.core.visible import is_clean as is_clean
    from signoff.ports import Channel as Channel
    from signoff.ports import Inbox as Inbox

_HOMES = {
    "Asked": "core.notice",
    "Channel": "ports",
    "DiscordApprovals": "wiring.discord",
    "Inbox": "ports",
    "Notice": "core.notice",
    "Reconciler": "delivery",
    "Route": "delivery",
    "RunResult": "core.notice",
    "card_for": "core.card",
    "is_clean": "core.visible",
    "open_inbox": "wiring.inbox",
    "outcome_text": "channels.outcome",
    "result_text": "channels.outcome",
}
"""Some are above this package: they are public here, as users look for them here, and are not imported by it."""

__all__ = sorted([*_HOMES, "headless_approver", "scripted_approver", "terminal_approver", "tui_approver"])  # pyright: ignore[reportUnsupportedDunderAll]

_find = lazy_names(__name__, _HOMES)


def __getattr__(name: str) -> object:
    return _find(name)


def __dir__() -> list[str]:
    return __all__


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
    """Asks whoever sits at the terminal. `headless`: what to do where there is none.

    `can_stop` offers a key that leaves what is open undecided, so that the run suspends. `draft_rules` offers one that
    makes a rule of the call.
    """
    from signoff.channels.terminal import TerminalApprover

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
    """Asks whoever sits at the terminal, on its full screen. Raises `MissingExtra` without the extra `tui`."""
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
    """Asks nobody: denies every call, or leaves it waiting for somebody elsewhere. It never approves."""
    from signoff.channels.headless import HeadlessApprover

    return HeadlessApprover(otherwise)


def scripted_approver(answers: Iterable[Answer], *, by: Actor | None = None) -> ScriptedApprover:
    """Answers from a list, as a script, or as `by` where it stands in for somebody. For tests and demos."""
    from signoff.channels.script_approver import ScriptedApprover

    return ScriptedApprover(answers, by=by)
