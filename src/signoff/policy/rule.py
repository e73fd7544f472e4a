"""A rule: what it says, what it matches, why, and who must agree."""

from __future__ import annotations

from dataclasses import dataclass, field

from signoff.core.verdict import ANYONE, Effect, Requirement, Verdict
from signoff.errors import Place
from signoff.policy.facts import Facts
from signoff.policy.finding import Finding, any_holds
from signoff.policy.match import Match, links_of

_VERB = {Effect.ALLOW: "allows", Effect.ASK: "asks about", Effect.DENY: "denies"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One line of a policy. It matches where any of its alternatives does."""

    id: str
    effect: Effect
    matches: tuple[Match, ...]
    reason: str = ""
    requirement: Requirement = ANYONE
    place: Place = field(default_factory=lambda: Place(""))

    @property
    def text(self) -> str:
        """What it says, in words: "denies calls on a path like `**/.env`"."""
        return f"{_VERB[self.effect]} {' or '.join(match.text for match in self.matches)}"

    @property
    def looks_at_paths(self) -> bool:
        """Whether following links changes what it sees."""
        return any(links_of(match.conditions) for match in self.matches)

    def find(self, facts: Facts) -> Finding:
        """Whether it matches a call."""
        return any_holds(match.find(facts) for match in self.matches)

    def verdict(self, match: Match) -> Verdict:
        """What it answers where this alternative matched."""
        reason = self.reason or f"the policy {_VERB[self.effect]} {match.text}"
        return Verdict(effect=self.effect, rules=(self.id,), reason=reason, requirement=self.requirement)
