"""A press that has been looked into, and what is said about one that came to nothing."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from signoff.channels.discord.custom_id import Press
from signoff.channels.discord.interaction_data import InteractionData
from signoff.channels.discord.message_text import plain
from signoff.channels.discord.replies import Reply
from signoff.core.lifecycle import settled_text
from signoff.core.people import Actor
from signoff.core.redact import redact_text
from signoff.core.request import ApprovalRequest, State
from signoff.core.safe import redacted_text, safe_text
from signoff.errors import AlreadySettled, SignoffError, StoreError, WrongFile

_log = logging.getLogger("signoff.discord")


@dataclass(frozen=True, slots=True, kw_only=True)
class Pressed:
    """A press that has been looked into."""

    reply: Reply
    press: Press
    by: Actor
    requests: tuple[ApprovalRequest, ...]
    """The one it is about; or all those asked together with it that still wait."""

    @property
    def request(self) -> ApprovalRequest:
        return self.requests[0]

    @property
    def data(self) -> InteractionData:
        return InteractionData.of(self.reply.interaction)


def what_happened(request: ApprovalRequest) -> str:
    """Who settled it, when and how, as it may be shown here."""
    text = settled_text(request)
    if request.state is State.UNKNOWN:
        text += ", its call was started, and its outcome is unknown"
    return plain(safe_text(text, secrets=request.secrets))


def in_words(error: SignoffError) -> str:
    """Why an answer was not taken, as it may be shown here."""
    if isinstance(error, StoreError):
        return f"{shown(error)}; nothing was decided."
    return f"{'Too late' if isinstance(error, AlreadySettled) else 'Not accepted'}: {shown(error)}."


def shown(error: SignoffError) -> str:
    """What is wrong, as it may be shown here. What is wrong with the project itself is for the log: it names files."""
    if isinstance(error, (StoreError, WrongFile)):
        _log.warning("a press could not be processed: %s", redact_text(str(error)))
        return (
            "signoff's store is not responding" if isinstance(error, StoreError) else "the project's files have errors"
        )
    text = redact_text(str(error))
    return plain(text if text.isprintable() else redacted_text(text))
