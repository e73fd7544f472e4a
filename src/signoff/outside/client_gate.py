"""`ClientGate`: the gate for programs that ask now and run a call later, when they claim the approval.

A call follows the course of every gated call (`signoff.gate.course`). It is followed twice: when a program asks, and
again when it is about to run what was approved, because much may have changed since.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

from signoff.broker.grants import GrantUse
from signoff.core.call import Call
from signoff.core.event import CallStep
from signoff.core.grant import Grant, places_of
from signoff.core.request import ApprovalRequest
from signoff.core.request_context import RequestContext, shortened
from signoff.core.verdict import Effect, Verdict
from signoff.gate.course import Ask, Because, OnRecord, Refusal, Refuse, Run, course
from signoff.gate.record_facts import recalled_by, why_void
from signoff.outside.background import Background
from signoff.outside.outside_call import OutsideCall
from signoff.outside.outside_gate import OutsideGate, within
from signoff.policy.layers import Layers

_LONGEST_DIRECTORY = 1_000
_ANYWHERE = "/another machine"
"""Stands for where a path on another machine leads: into no directory that a rule names."""
_SECRET = f"{_ANYWHERE}/.ssh/id_rsa"
"""Stands for where a file read by a command leads: it may be one that nobody should read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientCall(OutsideCall):
    """A call of a program whose conversations have no known end. So no answer applies to a whole session of it."""

    claims: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """What else the program says, by name. It is shown as a claim, and decides nothing."""
    claimed_directory: str = ""
    """Where the program says that it makes the call."""
    is_here: bool = False
    """Whether it runs on this machine, in `directory`, so that its paths are those that policy resolves."""

    def context(self, background: Background) -> RequestContext:
        """See `OutsideCall.context`."""
        told = OutsideCall.context(self, background)
        return replace(told, directory=shortened(self.claimed_directory, _LONGEST_DIRECTORY), is_claimed=True)

    def read(self, policy: Layers, args: Mapping[str, Any] | None = None) -> Call:
        """See `OutsideCall.read`. The conversation is left out."""
        return OutsideCall.read(self, policy, args).changed(conversation_id="")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ruling:
    """What policy or an earlier answer decides at once."""

    allowed: bool
    by: str
    reason: str
    grant: str = ""
    """The id of the grant that allows it. Its use is counted when the call runs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SecondLook:
    """What is found about an approved call right before it runs."""

    hindrance: str = ""
    """Why it may not run after all; empty if it may."""
    uses: GrantUse | None = None
    """The grant that allows it, if one does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientQuestion:
    """What to ask people, and how long to wait."""

    request: ApprovalRequest
    window: timedelta
    """How long to wait for a decision."""
    is_deadline: bool
    """Whether that is the request's deadline. Otherwise its rule sets one, or it has none."""


@dataclass(slots=True)
class ClientGate(OutsideGate):
    """Decides about the calls of a program that asks now and runs later."""

    async def judge(self, call: ClientCall, window: timedelta) -> Ruling | ClientQuestion:
        """Return what is decided at once, or the question to ask. It opens no request. `window` is the longest wait.

        Raises `Halted` during a halt.
        """
        seen = await self._look(call, None)
        step = await self._step(seen)
        match step:
            case Run(why):
                grant = seen.grant if why is CallStep.REMEMBERED else None
                self.broker.audit_buffer.add(why, seen.call, seen.verdict, grant=grant, secrets=self.secrets)
                self.broker.audit_buffer.flush()
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

    async def second_look(self, call: ClientCall, request: ApprovalRequest | None, grant_id: str = "") -> SecondLook:
        """Check again whether an approved call may run now. Nothing is counted yet.

        `request` is what people approved. If policy decided alone it is None, and `grant_id` may name a grant.
        Raises `Halted` during a halt.
        """
        seen = await self._look(call, None)
        if request is None:
            # The grants of now, not of then: there may be a *never* by now.
            seen.grant = await self._recall(seen.call, seen.verdict) if grant_id else None
            recalled = recalled_by(seen.grant)
            step = course(seen.facts._replace(record=OnRecord.NOTHING, recalled=recalled, entered=False))
        else:
            step = await self._step(seen)
        match step:
            case Run(CallStep.REMEMBERED) if seen.grant is not None:
                return SecondLook(uses=GrantUse(grant=seen.grant.id, call=seen.call))
            case Run(_):
                return SecondLook()
            case Ask(why) if request is not None and why in (Because.CHANGED, Because.OTHERS):
                changed = self._changed(seen, request)
                return SecondLook(hindrance=why_void(why, request, changed, seen.verdict.requirement))
            case Refuse(Refusal.POLICY) if seen.verdict.reason:
                return SecondLook(hindrance=f"the policy now refuses it: {seen.verdict.reason}")
            case _:
                return SecondLook(hindrance="the rule or remembered answer that allowed it no longer applies")

    async def _recall(self, call: Call, verdict: Verdict) -> Grant | None:
        """Return the grant for a call. Nothing is counted: a program that asks may never run it."""
        return await self.broker.grants.look(await self._for_memory(call), places_of(call, ""), verdict)

    def _verdict(self, call: Call, outside: OutsideCall) -> Verdict:
        """Return the policy's verdict. A rule about paths allows nothing if the paths are those of another machine.

        There, relative paths and symlinks may lead elsewhere. Rules that ask or deny still apply. A rule that allows
        has to match wherever the paths lead.
        """
        verdict = OutsideGate._verdict(self, call, outside)
        is_here = isinstance(outside, ClientCall) and outside.is_here
        paths, patterns = self.policy.paths_of(call), self.policy.patterns_of(call)
        if is_here or verdict.effect is not Effect.ALLOW or not (paths or patterns):
            return verdict
        commanded = (*self.policy.commanded_paths_of(call), *(files.pattern for files in patterns))
        read = dict.fromkeys(commanded, _SECRET)
        anywhere = self.policy.judge(call.changed(resolved={**dict.fromkeys(paths, _ANYWHERE), **read}))
        if anywhere.effect is Effect.ALLOW:
            return verdict
        # A rule that denies some paths is in doubt, and doubt asks; but an allowlist denies what is in doubt.
        is_kept = anywhere.effect is Effect.ASK or self.policy.is_otherwise(anywhere)
        found = anywhere if is_kept else Verdict(effect=Effect.ASK)
        return replace(found, reason=f"{verdict.reason}, but its paths are those of another machine")
