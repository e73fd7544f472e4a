"""Draw a request as three short lines, for the list beside the card."""

from __future__ import annotations

from datetime import datetime

from rich.text import Text

from signoff.channels.render import TerminalLook, clipped
from signoff.channels.tui_requests import WaitingRequest

_MINUTE, _HOUR, _DAY = 60, 3600, 86400


def block(entry: WaitingRequest, look: TerminalLook, at: datetime) -> list[Text]:
    """Draw a request in the list: its tool, the task of its run, its age and the time until its deadline."""
    card = entry.card
    callers = card.chain.removesuffix(card.tool).removesuffix(" > ")
    lines = [
        look.text(f"{card.tool} LOOSENED" if card.loosened else card.tool, "bold"),
        look.text(card.task or callers or card.title, "cyan" if card.task or callers else ""),
        look.text(_times(entry, at), "yellow" if entry.gone else "dim"),
    ]
    return [clipped(line, look.width) for line in lines]


def _times(entry: WaitingRequest, at: datetime) -> str:
    if entry.gone:
        return "no longer open"
    age = f"{_span((at - entry.since).total_seconds())} old"
    deadline = entry.request.deadline
    if deadline is None:
        return age
    left = (deadline - at).total_seconds()
    return f"{age} · {_span(left)} left" if left > 0 else f"{age} · time is up"


def _span(seconds: float) -> str:
    """Format a duration in few columns: `40 s`, `4:09`, `1 h 20`, `3 days`."""
    whole = max(0, int(seconds))
    if whole < _MINUTE:
        return f"{whole} s"
    if whole < _HOUR:
        return f"{whole // _MINUTE}:{whole % _MINUTE:02}"
    if whole < 2 * _DAY:
        return f"{whole // _HOUR} h {whole % _HOUR // _MINUTE:02}"
    return f"{whole // _DAY} days"
