"""One answer to one request."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from signoff.core.decision import ApprovalDecision
from signoff.core.people import Answerer


@dataclass(frozen=True, slots=True, kw_only=True)
class Vote:
    """Somebody's answer, when it was given, and the digest of the arguments it was given for."""

    by: Answerer
    at: datetime
    decision: ApprovalDecision
    args_digest: str
    """Approving edited arguments is a vote for other arguments: votes only add up for the same ones."""
    stands_for: Answerer | None = None
    """In whose place it was given, where the voter is a deputy."""

    @property
    def principal(self) -> Answerer:
        """Whose vote it is."""
        return self.stands_for or self.by
