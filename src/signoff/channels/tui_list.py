"""Draw a request as three short lines, for the list beside the card."""

from __future__ import annotations

from datetime import datetime

from rich.text import Text

from signoff.channels.render import TerminalLook, clipped
from signoff.channels.tui_requests import WaitingRequest
from signoff.core.moment import span


def block(entry: WaitingRequest, look: TerminalLook, at: datetime) -> list[Text]:
    """Draw a request in the list: what would run, its session and task, its age and the time until its deadline."""
    card = entry.card
    callers = card.chain.removesuffix(card.tool).removesuffix(" > ")
    lines = [
        look.text(f"LOOSENED {card.title}" if card.loosened else card.title, "bold"),
        look.text(entry.origin or callers, "cyan"),
        look.text(_times(entry, at), "yellow" if entry.gone else "dim"),
    ]
    return [clipped(line, look.width) for line in lines]


def _times(entry: WaitingRequest, at: datetime) -> str:
    """The time that is left comes first: in a narrow list the end is cut off."""
    if entry.gone:
        return "no longer open"
    age = f"{span((at - entry.since).total_seconds())} old"
    deadline = entry.request.deadline
    if deadline is None:
        return age
    left = (deadline - at).total_seconds()
    return f"{span(left)} left · {age}" if left > 0 else f"time is up · {age}"
