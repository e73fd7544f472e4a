"""Where a conversation is held: a channel and a place in it. Whom its words are for is told by `core.addressing`."""

from __future__ import annotations

from signoff.core.address import Addressed, addressed
from signoff.ports import Heard

__all__ = ["Addressed", "addressed", "conversation_of"]


def conversation_of(heard: Heard) -> str:
    """The name of a conversation: the channel and the place in it. Behind the last slash of an address is a message."""
    place, slash, _ = heard.at.rpartition("/")
    return f"{heard.channel}:{place if slash else heard.at}"
