"""What policy says about a call: an effect, and never without the rules and the reason behind it."""

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
    """What becomes of a request nobody answered in time. `allow` exists only where a rule says it in words."""

    DENY = "deny"
    ESCALATE = "escalate"
    PARK = "park"
    ALLOW = "allow"


class Wanted(IntEnum):
    """Whose answer a rule wants."""

    ANYONE = auto()
    ROLE = auto()
    """One person with a role, and nothing more: an earlier answer of that role may stand in."""
    PEOPLE = auto()
    """Several, or not everybody: each call is theirs to decide."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Requirement:
    """Who must agree before an asked call may run."""

    role: str | None = None
    """Only people with this role count; anyone where None."""
    quorum: int = 1
    """How many distinct people must approve."""
    not_by: frozenset[str] = frozenset()
    """Who may not answer: `requester`, `owner`."""
    timeout: timedelta | None = None
    on_timeout: OnTimeout = OnTimeout.DENY
    escalate_to: str | None = None
    """The role asked next when `on_timeout` is `escalate`."""
    escalate_quorum: int = 1
    """How many people with that role must approve then."""
    veto: str | None = None
    """People with this role may say no, besides those who may approve."""
    remind: timedelta | None = None
    """How long before the deadline people are reminded."""
    message: str = ""
    """Words for the person who is asked."""
    irreversible: bool = False
    """Whether what the call does cannot be undone: where it is approved by a button, that is held down for a moment."""

    @property
    def wanted(self) -> Wanted:
        """Whose answer counts, as far as others may stand in for it."""
        if self.quorum > 1 or self.not_by or self.veto is not None:
            return Wanted.PEOPLE
        return Wanted.ANYONE if self.role is None else Wanted.ROLE

    @property
    def is_strict(self) -> bool:
        """Whether it names particular people, so that a mode or a reviewer cannot stand in."""
        return self.wanted is not Wanted.ANYONE

    @property
    def escalated(self) -> Requirement:
        """Who must agree once it was escalated; the same where there is nobody to escalate to."""
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
    """Whether only a remembered answer for exactly this call can replace the question."""
    asked_by: tuple[str, ...] = ()
    """Digests of the policy's rules that ask. The number of a rule can mean another rule later."""
    yields: bool = False
    """Whether it asks only if no other layer decides: no rule requires the question."""
