"""The gate for programs that ask now and run later: they are told what was decided, and come again to spend it.

The course is the one of every gated call (`signoff.gate.course`). It is taken twice: when a program asks, and, because
much may change in between, when it is about to run what was approved.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from signoff.core.call import Call
from signoff.core.event import CallStep
from signoff.core.grant import Grant
from signoff.core.request import ApprovalRequest
from signoff.core.verdict import OnTimeout, Requirement, Verdict
from signoff.gate.course import Ask, Because, OnRecord, Recalled, Refuse, Run, course
from signoff.gate.record_facts import recalled_by, why_void
from signoff.outside.outside_call import OutsideCall
from signoff.outside.outside_gate import OutsideGate
from signoff.policy.layers import Layers


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientCall(OutsideCall):
    """A call of a program of which nobody knows when one conversation ends: no answer holds for a session of it."""

    claims: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """What the program says besides, by name. It is shown as what it is, and nothing goes by it."""

    def read(self, policy: Layers, args: Mapping[str, Any] | None = None) -> Call:
        """As of any call of another program."""
        return OutsideCall.read(self, policy, args).changed(conversation_id="")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ruling:
    """What policy, or an earlier answer, says at once."""

    allowed: bool
    by: str
    reason: str
    grant: str = ""
    """Id of the remembered answer that lets it run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientQuestion:
    """What people are to be asked, and how long."""

    request: ApprovalRequest
    window: timedelta
    """How long a decision is waited for."""
    is_deadline: bool
    """Whether that is the question's deadline; otherwise its rule has one, or none."""


@dataclass(slots=True)
class ClientGate(OutsideGate):
    """Decides about the calls of a program that asks now and runs later."""

    async def judge(self, call: ClientCall, window: timedelta) -> Ruling | ClientQuestion:
        """What is decided at once, or who is to be asked, within `window` at most. It opens no request.

        Raises `Halted` while everything is halted.
        """
        seen = await self._look(call, None)
        step = await self._step(seen)
        match step:
            case Run(why):
                self.broker.audit_buffer.add(why, seen.call, seen.verdict, run="", secrets=self.secrets)
                self.broker.audit_buffer.flush()
                grant = seen.grant if why is CallStep.REMEMBERED else None
                by = grant.by if grant is not None else "policy"
                return Ruling(
                    allowed=True, by=by, reason=self._why_run(why, seen), grant=grant.id if grant is not None else ""
                )
            case Refuse(why):
                refused = self._refused(call, seen, why)
                return Ruling(allowed=False, by=refused.by, reason=refused.reason)
            case Ask(why):
                asked = await self._question(call, seen, why)
                least, is_deadline = within(seen.verdict.requirement, window)
                return ClientQuestion(
                    request=asked.changed_to(metadata=call.claims), window=least, is_deadline=is_deadline
                )
            case _:
                raise AssertionError(f"no call that is asked about for the first time gets to {step}")

    async def hindrance(self, call: ClientCall, request: ApprovalRequest | None, grant_id: str = "") -> str:
        """Why a call that was approved may not run after all; empty where it may.

        `request` is what people approved; where policy decided alone there is none, but perhaps a remembered answer.
        Raises `Halted` while everything is halted.
        """
        seen = await self._look(call, None)
        if request is None:
            recalled = await self._recalled(grant_id, seen.verdict)
            step = course(seen.facts._replace(record=OnRecord.NOTHING, recalled=recalled, entered=False))
        else:
            step = await self._step(seen)
        match step:
            case Run(_):
                return ""
            case Ask(why) if request is not None and why in (Because.CHANGED, Because.OTHERS):
                return why_void(why, request, self._changed(seen, request), seen.verdict.requirement)
            case Refuse(_) if seen.verdict.reason:
                return f"the policy now refuses it: {seen.verdict.reason}"
            case _:
                return "what it was allowed by holds no longer"

    async def _recalled(self, grant_id: str, verdict: Verdict) -> Recalled:
        """What a remembered answer says now that let the call pass before. That use was counted then."""
        found = await self.broker.store.read(lambda tx: tx.grants.get(grant_id)) if grant_id else None
        return recalled_by(found if found is not None and self._holds(found, verdict) else None)

    def _holds(self, grant: Grant, verdict: Verdict) -> bool:
        now = self.broker.clock.now()
        if grant.revoked_at is not None or (grant.until is not None and now >= grant.until):
            return False
        wants_role = verdict.requirement.role is not None
        return grant.counts_for(verdict) and not (wants_role and self.broker.grants.why_without_role(grant))


def within(requirement: Requirement, window: timedelta) -> tuple[timedelta, bool]:
    """How long a program that waits so long at most can expect to wait, and whether people are to be told that time.

    Silence that a program made an end of never loosens anything: where a rule would have it approved, parked or put
    before others, only the rule says when, and the program's own end withdraws the question.
    """
    own = requirement.timeout
    if own is None:
        return window, True
    if requirement.on_timeout is OnTimeout.DENY:
        return min(window, own), window < own
    return window, False
