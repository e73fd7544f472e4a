"""A conversation in a channel, such as a thread: which turn was the last, and which messages were heard."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationLog:
    """How far a conversation came."""

    name: str
    run: str = ""
    """Id of the last turn's run."""
    heard: str = ""
    """Number of the last message that was heard."""
    recent: tuple[str, ...] = ()
    """Numbers of the messages that were heard last, as they came."""
    turns: Mapping[str, str] = field(default_factory=dict[str, str])
    """The run of the last turn of each agent: two that take turns do not read each other's."""
