"""A conversation in a channel, such as a thread: the last turn, and the messages that were received."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationLog:
    """The progress of a conversation."""

    name: str
    run: str = ""
    """Id of the run of the last turn."""
    heard: str = ""
    """Number of the newest message that was received."""
    recent: tuple[str, ...] = ()
    """Numbers of the last messages received, in the order of arrival. They prevent duplicates."""
    turns: Mapping[str, str] = field(default_factory=dict[str, str])
    """The run of each agent's last turn: agents that take turns do not read each other's messages."""
