"""A rule: its effect, what it matches, its reason, and its requirement."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from signoff.core.canonical import digest
from signoff.core.verdict import ANYONE, Effect, Requirement, Verdict
from signoff.errors import Place
from signoff.policy.call_paths import Facts
from signoff.policy.match import Match, links_of
from signoff.policy.match_result import MatchResult, Truth, any_holds

_DIGITS = 12
"""How many digits of the digest tell the rules of a file apart."""
_VERB = {Effect.ALLOW: "allows", Effect.ASK: "asks about", Effect.DENY: "denies"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One rule of a policy. It matches if any of its alternatives matches."""

    id: str
    effect: Effect
    matches: tuple[Match, ...]
    reason: str = ""
    requirement: Requirement = ANYONE
    place: Place = field(default_factory=lambda: Place(""))
    otherwise: bool = False
    """Whether this is an `otherwise: deny`. It denies in list order, where no rule above it names the call."""
    naming: tuple[Match, ...] = ()
    """For an ask rule above an `otherwise`: its alternatives read as in an allow rule, in the same order. A rule that
    asks about `git push` also asks about `git push; make`, but it does not name `make`."""

    @property
    def text(self) -> str:
        """The rule in words: "denies calls on a path like `**/.env`"."""
        verb = f"otherwise {_VERB[self.effect]}" if self.otherwise else _VERB[self.effect]
        return f"{verb} {' or '.join(match.text for match in self.matches)}"

    @property
    def looks_at_paths(self) -> bool:
        """Whether resolving symlinks changes what the rule sees."""
        return any(links_of(match.conditions) for match in (*self.matches, *self.naming))

    def find(self, facts: Facts) -> MatchResult:
        """Return whether the rule matches a call."""
        return any_holds(match.find(facts) for match in self.matches)

    def find_name(self, facts: Facts) -> MatchResult:
        """Return whether the rule names a call for an `otherwise` below: covers the whole call, without doubt."""
        return any_holds(match.find(facts) for match in self.naming or self.matches)

    def find_after(self, above: Iterable[Rule], facts: Facts) -> MatchResult:
        """Like `find`, but an `otherwise` matches only a call that none of the rules `above` names."""
        finding = self.find(facts)
        if not self.otherwise or finding.truth is not Truth.YES:
            return finding
        naming = next((one for one in above if not one.otherwise and one.find_name(facts).truth is Truth.YES), None)
        return finding if naming is None else MatchResult.no(f"{naming.id} names the call")

    def verdict(self, match: Match) -> Verdict:
        """Return the verdict if this alternative matched."""
        if self.otherwise:
            place = self.place
            where = f"{place.file}:{place.line}" if place.line else f"{place.file}: {place.key}"
            reason = f"no rule names this call, and otherwise: deny ({where})"
            reason = f"{reason}: {self.reason}" if self.reason else reason
        else:
            reason = self.reason or f"the policy {_VERB[self.effect]} {match.text}"
        return Verdict(
            effect=self.effect,
            rules=(self.id,),
            reason=reason,
            requirement=self.requirement,
            asked_by=(self._digest,) if self.effect is Effect.ASK else (),
        )

    @property
    def _digest(self) -> str:
        """Identifies the rule by its content, wherever it is in its file."""
        return digest([self.text, self.reason, self.requirement.role, self.requirement.message])[:_DIGITS]
