"""What was decided about a request: the answer a person gives, and how a request ended."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from signoff.core.people import Actor
from signoff.core.terms import Terms
from signoff.core.values import Changeable


class Remember(StrEnum):
    """Whether the answer also holds for the next identical call."""

    NONE = "none"
    SESSION = "session"
    ALWAYS = "always"


class Keeps(StrEnum):
    """How long the answer to a request can be remembered at most."""

    NOTHING = "nothing"
    BATCH = "batch"
    """For the calls that are asked about together with it."""
    RUN = "run"
    SESSION = "session"
    EXACTLY = "exactly"
    """For good, and for exactly the same arguments only."""
    ALWAYS = "always"
    """For good, and as far as the person says."""


class Ending(StrEnum):
    """How a request ended."""

    APPROVED = "approved"
    DENIED = "denied"
    EXPIRED = "expired"
    CANCELLED = "cancelled"


@dataclass(frozen=True, kw_only=True)
class ApprovalDecision(Changeable):
    """An answer to an approval request. Only `approved` is needed: `ApprovalDecision(approved=False, note="…")`."""

    approved: bool
    note: str = ""
    """The reason, for the model and the audit log."""
    edited_args: Mapping[str, Any] | None = None
    """All arguments to run with, instead of the model's. Only with `approved`."""
    remember: Remember = Remember.NONE
    terms: Terms | None = None
    """How to remember it, if `session` and `always` do not say enough. Needs a durable store."""
    ending: Ending = Ending.DENIED
    """Follows from `approved` unless the request expired or was cancelled."""
    by: Actor | None = None
    at: datetime | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.approved, bool):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(
                f"approved is True or False, not {self.approved!r}"
            )  # "false" from a form is true in Python
        if self.remember not in list(Remember):
            scopes = ", ".join(repr(str(one)) for one in Remember)
            raise ValueError(f"remember={self.remember!r}: it must be one of {scopes}")
        object.__setattr__(self, "remember", Remember(self.remember))
        if self.approved:
            object.__setattr__(self, "ending", Ending.APPROVED)
        elif self.ending is Ending.APPROVED:
            raise ValueError("a decision that is not approved cannot end as approved")
        if self.terms is not None and self.remember is Remember.NONE:
            object.__setattr__(self, "remember", Remember.ALWAYS)
        if self.edited_args is not None and not self.approved:
            raise ValueError("edited arguments only make sense with approved=True")
