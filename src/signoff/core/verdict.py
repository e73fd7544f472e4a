"""The verdict of policy about a call: an effect, with the rules and the reason behind it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import timedelta
from enum import IntEnum, StrEnum, auto


class Effect(StrEnum):
    """The effect of a rule, from the most lenient to the strictest."""

    ALLOW = "allow"
    ASK = "ask"
    DENY = "deny"

    @property
    def strictness(self) -> int:
        """Larger is stricter."""
        return ("allow", "ask", "deny").index(self)


class OnTimeout(StrEnum):
    """What happens to a request on timeout. `allow` applies only if a rule says so explicitly."""

    DENY = "deny"
    ESCALATE = "escalate"
    PARK = "park"
    ALLOW = "allow"


class Wanted(IntEnum):
    """Whose answer a rule requires."""

    ANYONE = auto()
    ROLE = auto()
    """One person with a role, and nothing more: a grant of that role is accepted instead."""
    PEOPLE = auto()
    """Several people, or not everybody: they decide each call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Requirement:
    """Who must approve before a call may run."""

    role: str | None = None
    """Only people with this role count; None: anyone."""
    quorum: int = 1
    """How many distinct people must approve."""
    not_by: frozenset[str] = frozenset()
    """Who may not answer: `requester`, `owner`."""
    timeout: timedelta | None = None
    on_timeout: OnTimeout = OnTimeout.DENY
    escalate_to: str | None = None
    """The role asked next when `on_timeout` is `escalate`."""
    escalate_quorum: int = 1
    """How many people with that role must approve after escalation."""
    veto: str | None = None
    """People with this role may deny, in addition to those who may approve."""
    remind: timedelta | None = None
    """How long before the deadline people are reminded."""
    message: str = ""
    """The rule's message to the person who is asked."""
    irreversible: bool = False
    """Whether the effect of the call cannot be undone: a button that approves it must be held down for a moment."""

    @property
    def wanted(self) -> Wanted:
        """Whose answer is required, and whether a grant is accepted instead."""
        if self.quorum > 1 or self.not_by or self.veto is not None:
            return Wanted.PEOPLE
        return Wanted.ANYONE if self.role is None else Wanted.ROLE

    @property
    def is_strict(self) -> bool:
        """Whether it requires particular people, so that a mode or a reviewer cannot answer instead."""
        return self.wanted is not Wanted.ANYONE

    @property
    def escalated(self) -> Requirement:
        """Who must approve after escalation; the same if there is no role to escalate to."""
        return replace(self, role=self.escalate_to, quorum=self.escalate_quorum) if self.escalate_to else self


ANYONE = Requirement()


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Allow, ask or deny, the ids of the rules that decided, and one sentence that says why."""

    effect: Effect
    rules: tuple[str, ...] = ()
    reason: str = ""
    requirement: Requirement = field(default=ANYONE)
    errors: tuple[str, ...] = ()
    """What could not be evaluated. Any error makes the effect at least `ask`."""
    exactly: bool = False
    """Whether an earlier approval is accepted only if it was given for exactly this call."""
    asked_by: tuple[str, ...] = ()
    """Digests of the rules of a policy that ask. A rule's number is not enough: it may be another rule tomorrow."""
    yields: bool = False
    """Whether it asks only if no other layer has an answer: no rule says that this call must be asked about."""
