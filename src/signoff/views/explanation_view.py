"""What the policy says about a call, and why, as people and programs see it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from signoff.core.quorum import who
from signoff.core.safe_text import safe_text
from signoff.core.verdict import Effect
from signoff.core.visible_text import visible
from signoff.views.json_form import View

if TYPE_CHECKING:
    from signoff.policy.explain import Explanation


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictView(View):
    """What the policy says about a call."""

    verdict: Effect
    rules: tuple[str, ...]
    reason: str
    errors: tuple[str, ...]
    """What could not be evaluated."""
    needs: str
    """Who must agree, if it asks."""

    @classmethod
    def of(cls, explanation: Explanation) -> VerdictView:
        """The verdict alone."""
        return cls(**_verdict(explanation))


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsideredView(View):
    """One rule and its result for a call."""

    rule: str
    effect: Effect
    matches: str
    why: str
    says: str
    place: str
    decided: bool
    names_tool: bool
    """Whether it is about the tool of the call."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplanationView(VerdictView):
    """A verdict, with the result of every rule."""

    sentence: str
    place: str
    """Where the deciding rule is written; empty if no rule decided."""
    considered: tuple[ConsideredView, ...]

    @classmethod
    def of(cls, explanation: Explanation) -> ExplanationView:
        """The whole explanation."""
        return cls(
            **_verdict(explanation),
            sentence=safe_text(explanation.sentence),
            place=visible(str(explanation.place)) if explanation.place is not None else "",
            considered=tuple(
                ConsideredView(
                    rule=safe_text(one.rule.id),
                    effect=one.rule.effect,
                    matches=one.truth.value,
                    why=safe_text(one.why),
                    says=safe_text(one.rule.text),
                    place=visible(str(one.rule.place)),
                    decided=one.decided,
                    names_tool=one.names_tool,
                )
                for one in explanation.considered
            ),
        )

    def lines(self) -> Iterator[str]:
        """Yield its lines, for people."""
        yield self.sentence
        decided = next((one for one in self.considered if one.decided), None)
        if decided is not None:
            yield f"decided by {decided.rule} at {decided.place}"
        for error in self.errors:
            yield f"could not be checked: {error}"
        about = [one for one in self.considered if one.names_tool]
        if about:
            yield ""
            yield "rules considered:"
            width = max(len(one.rule) for one in about)
            for one in about:
                mark = "*" if one.decided else " "
                yield f"{mark} {one.rule:{width}}  {one.effect:5}  {one.matches:7}  {one.why or one.says}"
        others = len(self.considered) - len(about)
        if others:
            yield f"  {others} {'rule is' if others == 1 else 'rules are'} about other tools"


def _verdict(explanation: Explanation) -> dict[str, Any]:
    verdict = explanation.verdict
    return {
        "verdict": verdict.effect,
        "rules": tuple(map(safe_text, verdict.rules)),
        "reason": safe_text(verdict.reason),
        "errors": tuple(map(safe_text, verdict.errors)),
        "needs": visible(who(verdict.requirement)) if verdict.effect is Effect.ASK else "",
    }
