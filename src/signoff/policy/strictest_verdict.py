"""Pick the strictest of several verdicts about one call."""

from __future__ import annotations

from collections.abc import Iterable

from signoff.core.verdict import Effect, Verdict
from signoff.policy.joint_requirement import together


def strictest(verdicts: Iterable[Verdict]) -> Verdict | None:
    """Return the strictest verdict of several layers. If several ask, all their requirements must be met."""
    asks: list[Verdict] = []
    allow: Verdict | None = None
    yielding: Verdict | None = None
    for verdict in verdicts:
        if verdict.effect is Effect.DENY:
            return verdict
        if verdict.yields:
            yielding = yielding or verdict
        elif verdict.effect is Effect.ASK:
            asks.append(verdict)
        elif allow is None:
            allow = verdict
    if asks:
        return asks[0] if len(asks) == 1 else _all_ask(asks)
    return allow or yielding


def _all_ask(asks: list[Verdict]) -> Verdict:
    return Verdict(
        effect=Effect.ASK,
        rules=tuple(dict.fromkeys(rule for verdict in asks for rule in verdict.rules)),
        reason=asks[0].reason,
        requirement=together(verdict.requirement for verdict in asks),
        errors=tuple(dict.fromkeys(error for verdict in asks for error in verdict.errors)),
        exactly=any(verdict.exactly for verdict in asks),
        asked_by=tuple(dict.fromkeys(one for verdict in asks for one in verdict.asked_by)),
    )
