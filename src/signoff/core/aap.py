"""Calls that agents elsewhere ask about by the Agent Approval Protocol, and the instances that they ask as."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from signoff.core.values import Changeable
from signoff.core.visible_text import is_clean

VALID_FOR = timedelta(hours=1)
"""How long an approval may be consumed. It is judged again when it is, so this is only for agents that never come."""
OUTCOME_WITHIN = timedelta(hours=1)
"""How long after a call was consumed its outcome is expected; later nobody knows, and a person is asked."""
UPDATES_KEPT = timedelta(days=7)
HOLDER = "aap:"
"""What the holder of a claim begins with where an agent elsewhere has it; then comes the id of the request there."""

LONGEST_NAME = 100
_NOT_IN_NAMES = frozenset(":>*?[]")
"""They mean something where rules name workers."""


class AapStatus(StrEnum):
    """How a request stands, in the words of the protocol."""

    PENDING = "pending"
    APPROVED = "approved"
    DENIED = "denied"
    EXPIRED = "expired"
    CANCELLED = "cancelled"


class AapStage(StrEnum):
    """What is still to come of a request: a store looks for requests by it."""

    OPEN = "open"
    APPROVED = "approved"
    """And not consumed."""
    CONSUMED = "consumed"
    """And no outcome was told."""
    OVER = "over"


@dataclass(frozen=True, kw_only=True)
class AapDecision:
    """What was decided. Once it was told it never changes, whatever becomes of the request behind it."""

    status: AapStatus
    at: datetime
    note: str = ""
    """For the agent."""
    expires_at: datetime | None = None
    """Until when an approval may be consumed."""


@dataclass(frozen=True, kw_only=True)
class AapOutcome:
    """What the agent says came of its call."""

    succeeded: bool
    at: datetime
    note: str = ""


@dataclass(frozen=True, kw_only=True)
class AapRequest(Changeable):
    """A call that an agent asks about. What policy alone decided has no request in the inbox."""

    id: str
    """A UUID, as the protocol wants it."""
    instance: str
    key: str
    """What the agent calls this attempt (its idempotency key)."""
    asked: str
    """Digest of the fields that were sent: other ones under the same key are a mistake."""
    body: str
    """What was sent, to the letter: it is told again exactly so."""
    created_at: datetime
    deadline: datetime
    """Until when a decision is of use to the agent."""
    request: str = ""
    """Id of the request in the inbox, where people were asked."""
    grant: str = ""
    """Id of the remembered answer that lets it run, where one does."""
    decision: AapDecision | None = None
    consumed_at: datetime | None = None
    consumed_as: str = ""
    """What the agent calls the attempt that consumed it."""
    outcome: AapOutcome | None = None

    @property
    def status(self) -> AapStatus:
        return self.decision.status if self.decision is not None else AapStatus.PENDING

    @property
    def stage(self) -> AapStage:
        if self.decision is None:
            return AapStage.OPEN
        if self.decision.status is not AapStatus.APPROVED or self.outcome is not None:
            return AapStage.OVER
        return AapStage.APPROVED if self.consumed_at is None else AapStage.CONSUMED

    @property
    def touched_at(self) -> datetime:
        """When anything last happened to it."""
        told = self.outcome.at if self.outcome is not None else None
        decided = self.decision.at if self.decision is not None else None
        return told or self.consumed_at or decided or self.created_at

    @property
    def holder(self) -> str:
        """Who has the claim of its approval."""
        return f"{HOLDER}{self.id}"

    def is_silent(self, now: datetime) -> bool:
        """Whether it was consumed, and no outcome came while one was expected."""
        return self.consumed_at is not None and self.outcome is None and now >= self.consumed_at + OUTCOME_WITHIN


@dataclass(frozen=True, kw_only=True)
class AapUpdate:
    """A change of an instance that was made under a name: the same again changes nothing."""

    key: str
    asked: str
    at: datetime
    name: str
    """What the instance was called from then on."""


@dataclass(frozen=True, kw_only=True)
class AapInstance(Changeable):
    """An agent elsewhere, as far as this server knows it. Its name is what somebody called it, and proves nothing."""

    id: str
    """A UUID; also the holder of its access key."""
    name: str
    access: str
    """Id of its access key."""
    owner: str
    """Who answers for it, a person: whoever made it, or the key of the program that did."""
    created_at: datetime
    provisioner: str = ""
    """The program that made it, and may change it; empty: somebody did with a command."""
    key: str = ""
    asked: str = ""
    """As of a request."""
    updates: tuple[AapUpdate, ...] = ()
    revoked_at: datetime | None = None
    revoked_by: str = ""
    is_here: bool = False
    """Whether whoever made it says that it runs on the machine of the server, in the directory of the project."""

    @property
    def worker(self) -> str:
        """What stands for it where a worker is named: no worker is called so, and no other instance is."""
        return f"aap:{self.name}:{self.id[:8]}"


def name_problem(name: str) -> str:
    """What an instance needs to be called instead; empty where it can be called so."""
    if not 1 <= len(name) <= LONGEST_NAME:
        return f"a name of 1 to {LONGEST_NAME} characters"
    if name != name.strip() or not is_clean(name) or not _NOT_IN_NAMES.isdisjoint(name):
        return f"a name without hidden characters, blanks at its ends, or any of {' '.join(sorted(_NOT_IN_NAMES))}"
    return ""
