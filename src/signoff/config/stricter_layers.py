"""Policy layers that may only tighten: rules that would let more run are refused there, or ignored."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from signoff.core.canonical import digest
from signoff.core.verdict import Effect, OnTimeout
from signoff.policy.engine import Policy
from signoff.policy.phrases import shown
from signoff.policy.placed_value import ConfigValue
from signoff.policy.rule import Rule

if TYPE_CHECKING:
    from signoff.policy.lint import Problem


def refuse_loosening(policy: Policy, spot: ConfigValue, *, whose: str, more: str, instead: str, file: str) -> Policy:
    """Return the policy; raises for a rule that allows: if the layers above have no rule, it would decide alone.

    For the messages: `whose` rules they are, what `more` would be, and what to do `instead`. `file` is the file where
    rules that allow are permitted.
    """
    for at, rule in enumerate(policy.rules):
        item = spot.child(at)
        if rule.effect is Effect.ALLOW:
            raise item.child("allow").wrong_key(f"{whose} can only tighten, but this rule would {more}", instead)
        if rule.requirement.on_timeout is OnTimeout.ALLOW:
            raise item.child("on_timeout").wrong(
                f"{whose} can only tighten, but this would allow when nobody answers",
                f"use `deny`, `park` or `escalate`, or write the rule in {shown(file)}",
            )
    return policy


def tightening(policy: Policy, spot: ConfigValue) -> tuple[Policy, tuple[Rule, ...]]:
    """Reduce a policy to what tightens. Also returns the rules that do not apply as written.

    Rules that allow are left out, and a timeout denies instead of allowing. Both can only lead to more questions, and
    to more calls that an `otherwise: deny` refuses.
    """
    kept: list[tuple[Rule, dict[str, Any]]] = []
    unheard: list[Rule] = []
    for rule, value in zip(policy.rules, spot.value, strict=True):
        said: dict[str, Any] = {**value, "id": rule.id}  # it keeps its number although rules before it are left out
        if rule.effect is Effect.ALLOW:
            unheard.append(rule)
        elif rule.requirement.on_timeout is OnTimeout.ALLOW:
            unheard.append(rule)
            needs = replace(rule.requirement, on_timeout=OnTimeout.DENY)
            kept.append((replace(rule, requirement=needs), {**said, "on_timeout": str(OnTimeout.DENY)}))
        else:
            kept.append((rule, said))
    if not unheard:
        return policy, ()
    written = [value for _, value in kept]
    rules = tuple(rule for rule, _ in kept)
    return replace(policy, rules=rules, revision=digest(written), written=written), tuple(unheard)


def unheard_problem(rule: Rule) -> Problem:
    """The warning about a rule that `tightening` left out or changed."""
    from signoff.policy.lint import Problem  # few projects have such a rule

    fix = "if everybody here should have it, write it in signoff.yaml, under `policy`"
    if rule.effect is Effect.ALLOW:
        what = f"{rule.id} is ignored here: the project is locked, and this rule would loosen it"
    else:
        what = f"{rule.id} denies when nobody answers in time: the project is locked, and this would allow"
    return Problem(what, rule.place, rule.id, fix, "locked")
