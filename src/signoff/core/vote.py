"""A vote: one person's answer to one request."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from signoff.core.decision import ApprovalDecision
from signoff.core.people import Actor


@dataclass(frozen=True, slots=True, kw_only=True)
class Vote:
    """An answer, when it was given, and the digest of the arguments it was given for."""

    by: Actor
    at: datetime
    decision: ApprovalDecision
    args_digest: str
    """Approving edited arguments is a vote for other arguments: only votes for the same arguments add up."""
    stands_for: Actor | None = None
    """The absent person, if the voter is a deputy."""

    @property
    def principal(self) -> Actor:
        """The person whose vote it is: the absent one, if a deputy voted."""
        return self.stands_for or self.by
