"""A checked press, and texts about one that was refused."""

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
from signoff.core.safe_text import in_one_line, redacted_text, safe_text
from signoff.errors import AlreadySettled, SignoffError, StoreError, WrongFile

_log = logging.getLogger("signoff.discord")


@dataclass(frozen=True, slots=True, kw_only=True)
class Pressed:
    """A press that was checked."""

    reply: Reply
    press: Press
    by: Actor
    requests: tuple[ApprovalRequest, ...]
    """The request it is about, or all pending ones of the batch."""

    @property
    def request(self) -> ApprovalRequest:
        return self.requests[0]

    @property
    def data(self) -> InteractionData:
        return InteractionData.of(self.reply.interaction)


def what_happened(request: ApprovalRequest) -> str:
    """Say who settled a request, when and how, escaped for Discord."""
    text = settled_text(request)
    if request.state is State.UNKNOWN:
        text += ", its call was started, and its outcome is unknown"
    return plain(safe_text(text, secrets=request.secrets))


def in_words(error: SignoffError) -> str:
    """Say why an answer was not accepted, escaped for Discord."""
    if isinstance(error, StoreError):
        return f"{shown(error)}; nothing was decided."
    return f"{'Too late' if isinstance(error, AlreadySettled) else 'Not accepted'}: {shown(error)}."


def shown(error: SignoffError) -> str:
    """Return an error's text, escaped for Discord. Errors of the store or of project files are only logged."""
    if isinstance(error, (StoreError, WrongFile)):
        _log.warning("a press could not be processed: %s", redact_text(in_one_line(str(error))))
        return (
            "signoff's store is not responding" if isinstance(error, StoreError) else "the project's files have errors"
        )
    text = redact_text(in_one_line(str(error)))
    return plain(text if text.isprintable() else redacted_text(text))
