"""The Agent Approval Protocol (AAP): calls that remote agents ask about, and the instances they use."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from signoff.core.values import Changeable
from signoff.core.visible_text import is_clean

VALID_FOR = timedelta(hours=1)
"""Expiry of an approval. The call is judged again when it is consumed, so this is for agents that never come."""
OUTCOME_WITHIN = timedelta(hours=1)
"""How long after a call was consumed its outcome is expected; later it is unknown, and a person is asked."""
LEASE_HEADER, OUTCOME = "Signoff-Lease", "Signoff-Outcome"
"""Headers that the protocol does not have. Servers that do not know them ignore them.

With a lease, a number of seconds, an agent says that it waits all the time: when it has not been heard of for so long,
it is gone, and its request is withdrawn. With `NO_OUTCOME` it says that no outcome will follow.
"""
NO_OUTCOME = "none"
LONGEST_LEASE = timedelta(hours=1)
UPDATES_KEPT = timedelta(days=7)
HOLDER = "aap:"
"""Prefix of the holder of a claim that a remote agent has; the id of its request follows."""

LONGEST_NAME = 100
_NOT_IN_NAMES = frozenset(":>*?[]")
"""Characters with a meaning in rules that name workers."""


class AapStatus(StrEnum):
    """The status of a request, in the words of the protocol."""

    PENDING = "pending"
    APPROVED = "approved"
    DENIED = "denied"
    EXPIRED = "expired"
    CANCELLED = "cancelled"


class AapStage(StrEnum):
    """What a request still waits for: a store queries requests by it."""

    OPEN = "open"
    APPROVED = "approved"
    """Approved, and not consumed yet."""
    CONSUMED = "consumed"
    """Consumed, and no outcome was reported yet."""
    OVER = "over"


@dataclass(frozen=True, kw_only=True)
class AapDecision:
    """The decision. Once the agent has been told it never changes, whatever happens to the request behind it."""

    status: AapStatus
    at: datetime
    note: str = ""
    """The message for the agent."""
    expires_at: datetime | None = None
    """Expiry: until when an approval may be consumed."""


@dataclass(frozen=True, kw_only=True)
class AapOutcome:
    """The outcome of the call, as the agent reports it."""

    succeeded: bool
    at: datetime
    note: str = ""


@dataclass(frozen=True, kw_only=True)
class AapRequest(Changeable):
    """A call that a remote agent asks about. If policy alone decided, there is no request in the inbox."""

    id: str
    """A UUID, as the protocol requires."""
    instance: str
    key: str
    """The agent's idempotency key for this attempt."""
    asked: str
    """Digest of the fields that were sent: other fields with the same key are an error."""
    body: str
    """What was sent, byte for byte: it is returned exactly like this."""
    created_at: datetime
    deadline: datetime
    """Until when the agent can use a decision."""
    request: str = ""
    """Id of the request in the inbox, if people were asked."""
    grant: str = ""
    """Id of the grant that lets it run, if there is one."""
    decision: AapDecision | None = None
    waits_until: datetime | None = None
    """When its agent counts as gone, unless it is heard of again; None: it need not wait."""
    consumed_at: datetime | None = None
    consumed_as: str = ""
    """The agent's idempotency key for the attempt that consumed it."""
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
        """When it last changed."""
        told = self.outcome.at if self.outcome is not None else None
        decided = self.decision.at if self.decision is not None else None
        return told or self.consumed_at or decided or self.created_at

    @property
    def holder(self) -> str:
        """The holder of the claim on its approval."""
        return f"{HOLDER}{self.id}"

    def is_left(self, now: datetime) -> bool:
        """Whether its agent is gone, without having consumed it."""
        return self.consumed_at is None and self.waits_until is not None and now >= self.waits_until

    def is_silent(self, now: datetime) -> bool:
        """Whether it was consumed, and the time to report an outcome has passed."""
        return self.consumed_at is not None and self.outcome is None and now >= self.consumed_at + OUTCOME_WITHIN


@dataclass(frozen=True, kw_only=True)
class AapUpdate:
    """A change of an instance with an idempotency key: repeating it changes nothing."""

    key: str
    asked: str
    at: datetime
    name: str
    """The name of the instance after the change."""


@dataclass(frozen=True, kw_only=True)
class AapInstance(Changeable):
    """A remote agent, as this server knows it. Somebody chose its name; the name proves nothing."""

    id: str
    """A UUID; also the holder of its access key."""
    name: str
    access: str
    """Id of its access key."""
    owner: str
    """The person who is responsible for it: who created it, or who made the key of the program that created it."""
    created_at: datetime
    provisioner: str = ""
    """The program that created it, and may change it; empty if a person created it with a command."""
    key: str = ""
    asked: str = ""
    """The digest of the fields, as in a request."""
    updates: tuple[AapUpdate, ...] = ()
    revoked_at: datetime | None = None
    revoked_by: str = ""
    is_here: bool = False
    """Whether its creator says that it runs on the server's machine, in the project's directory."""

    @property
    def worker(self) -> str:
        """Its name where rules name workers: no worker and no other instance has it."""
        return f"aap:{self.name}:{self.id[:8]}"


def name_problem(name: str) -> str:
    """What kind of name an instance needs instead; empty if the name is valid."""
    if not 1 <= len(name) <= LONGEST_NAME:
        return f"a name of 1 to {LONGEST_NAME} characters"
    if name != name.strip() or not is_clean(name) or not _NOT_IN_NAMES.isdisjoint(name):
        return f"a name without hidden characters, blanks at its ends, or any of {' '.join(sorted(_NOT_IN_NAMES))}"
    return ""
