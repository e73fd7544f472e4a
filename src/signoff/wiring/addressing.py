"""Where a talk is held: a channel and a place in it. Whom its words are for is told by `core.addressing`."""

from __future__ import annotations

from signoff.core.addressing import Addressed, addressed
from signoff.ports import Heard

__all__ = ["Addressed", "addressed", "talk_of"]


def talk_of(heard: Heard) -> str:
    """The name of the talk: the channel and the place in it. After the last slash of an address stands a message."""
    place, slash, _ = heard.at.rpartition("/")
    return f"{heard.channel}:{place if slash else heard.at}"
