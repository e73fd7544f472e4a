"""Explain a verdict: the deciding rule, its place, and the result of every other rule."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from signoff.core.call import Call
from signoff.core.verdict import Effect, Verdict
from signoff.errors import Place
from signoff.policy.call_paths import Facts
from signoff.policy.match_result import MatchResult, Truth
from signoff.policy.rule import Rule


class Ruled(Protocol):
    """What can be explained: rules, and the directory that relative paths in them start from."""

    @property
    def rules(self) -> Sequence[Rule]: ...

    @property
    def root(self) -> str | None: ...


@dataclass(frozen=True, slots=True)
class Considered:
    """One rule, and its result for the call."""

    rule: Rule
    finding: MatchResult
    decided: bool
    names_tool: bool
    """Whether the rule is about the call's tool."""

    @property
    def truth(self) -> Truth:
        return self.finding.truth

    @property
    def why(self) -> str:
        """Why the rule does not match or cannot be evaluated; "" if it matches."""
        return self.finding.why


@dataclass(frozen=True, slots=True)
class Explanation:
    """A verdict with the results of all rules."""

    verdict: Verdict
    considered: tuple[Considered, ...]

    @property
    def effect(self) -> Effect:
        return self.verdict.effect

    @property
    def rule(self) -> Rule | None:
        """The rule that decided; the first one if several asked; None if no rule matched."""
        return next((one.rule for one in self.considered if one.decided), None)

    @property
    def place(self) -> Place | None:
        """Where the deciding rule is written."""
        return self.rule.place if self.rule else None

    @property
    def sentence(self) -> str:
        """The decision and its reason, in one sentence."""
        by = f" ({', '.join(self.verdict.rules)})" if self.verdict.rules else ""
        return f"{self.verdict.effect}: {self.verdict.reason}{by}"

    def as_json(self) -> dict[str, Any]:
        """Return the explanation as JSON values."""
        return {
            "verdict": str(self.verdict.effect),
            "rules": list(self.verdict.rules),
            "reason": self.verdict.reason,
            "errors": list(self.verdict.errors),
            "place": str(self.place) if self.place else None,
            "considered": [
                {
                    "rule": one.rule.id,
                    "effect": str(one.rule.effect),
                    "matches": one.truth.value,
                    "why": one.why,
                    "says": one.rule.text,
                    "place": str(one.rule.place),
                    "decided": one.decided,
                }
                for one in self.considered
            ],
        }


def explain(policies: Sequence[Ruled], call: Call, verdict: Verdict) -> Explanation:
    """Explain a verdict of these policies by evaluating every rule, including those that the decision did not need."""
    return Explanation(
        verdict,
        tuple(
            Considered(
                rule=rule,
                finding=_found(policy.rules, at, facts, verdict),
                decided=rule.id in verdict.rules,
                names_tool=any(match.find_tool(call.tool).truth is not Truth.NO for match in rule.matches),
            )
            for policy in policies
            for facts in (Facts(call, policy.root),)
            for at, rule in enumerate(policy.rules)
        ),
    )


def _found(rules: Sequence[Rule], at: int, facts: Facts, verdict: Verdict) -> MatchResult:
    """Return a rule's result. For an ask rule above the `otherwise` that decided: why it does not name the call."""
    rule, below = rules[at], rules[at + 1 :]
    if rule.naming and any(one.otherwise and one.id in verdict.rules for one in below):
        return rule.find_name(facts)
    return rule.find_after(rules[:at], facts)
