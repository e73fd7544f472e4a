"""The name of a conversation: a channel and a place in it. `core.addressing` finds the worker that a message is for."""

from __future__ import annotations

from signoff.core.address import Addressed, addressed
from signoff.ports import Heard

__all__ = ["Addressed", "addressed", "conversation_of"]


def conversation_of(heard: Heard) -> str:
    """Return the name of a conversation: the channel and the place, without the message id after the last slash."""
    place, slash, _ = heard.at.rpartition("/")
    return f"{heard.channel}:{place if slash else heard.at}"
