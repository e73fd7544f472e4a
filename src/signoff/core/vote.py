"""One answer to one request."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from signoff.core.decision import ApprovalDecision
from signoff.core.people import Actor


@dataclass(frozen=True, slots=True, kw_only=True)
class Vote:
    """Somebody's answer, when it was given, and the digest of the arguments it was given for."""

    by: Actor
    at: datetime
    decision: ApprovalDecision
    args_digest: str
    """Approving edited arguments is a vote for other arguments: votes only add up for the same ones."""
    stands_for: Actor | None = None
    """In whose place it was given, where the voter is a deputy."""

    @property
    def principal(self) -> Actor:
        """Whose vote it is."""
        return self.stands_for or self.by
