"""Events of a call as values: for live progress, demos and the audit log."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from signoff.core.call import Call
from signoff.core.grant import Grant
from signoff.core.request import ApprovalRequest
from signoff.core.verdict import Verdict


class CallStep(StrEnum):
    """The steps of a call. The first five let it run, and say who allowed it."""

    ALLOWED = "allowed"
    """Policy allows the call; it runs."""
    REMEMBERED = "remembered"
    """A person's earlier answer (a grant) covers it; it runs."""
    APPROVED = "approved"
    """A person approved this call; it runs."""
    REVIEWED = "reviewed"
    """Another capability of the agent approved it, and is trusted to; it runs."""
    AUTO_APPROVED = "auto_approved"
    """The mode approves calls that policy would ask about; it runs."""
    DENIED = "denied"
    """Refused; `by` and `text` say by whom and why."""
    ASKED = "asked"
    """A request was opened."""
    RAN = "ran"
    """The tool returned."""
    FAILED = "failed"
    """The tool raised; `text` is the error."""
    CUT_OFF = "unknown"
    """The call was cut off while it ran, so its outcome is unknown; `text` says by what."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallEvent:
    """One step of one call."""

    what: CallStep
    call: Call
    verdict: Verdict | None = None
    request: ApprovalRequest | None = None
    by: str = ""
    text: str = ""
    """The reason of a denial, the error of a failure."""
    grant: Grant | None = None
    """The grant that lets it run."""
    has_words: bool = False
    """Whether its toolset describes its calls in words, as in titles."""
    secrets: tuple[str, ...] = field(default=(), repr=False)
    """Values to mask wherever the step is shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunMessage:
    """One line of progress that a tool shows to the people who watch its run."""

    worker: tuple[str, ...]
    """The chain of workers that led to the tool."""
    call: str
    """The tool's call, as a path from the outermost run; empty outside of any call."""
    text: str
    """Secrets are masked; hidden characters are not escaped."""
