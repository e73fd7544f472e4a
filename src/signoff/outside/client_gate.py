"""The gate for programs that ask now and run later: they are told what was decided, and come again to spend it.

The course is the one of every gated call (`signoff.gate.course`). It is taken twice: when a program asks, and, because
much may change in between, when it is about to run what was approved.
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
from signoff.core.verdict import Effect, OnTimeout, Requirement, Verdict
from signoff.gate.course import Ask, Because, OnRecord, Refusal, Refuse, Run, course
from signoff.gate.likeness import read_for_memory
from signoff.gate.record_facts import recalled_by, why_void
from signoff.outside.outside_call import OutsideCall
from signoff.outside.outside_gate import OutsideGate
from signoff.policy.layers import Layers

_ANYWHERE = "/another machine"
"""Where a path leads of which nobody knows: into no directory that a rule names."""
_SECRET = f"{_ANYWHERE}/.ssh/id_rsa"
"""Where a file leads that a command reads: it may be one that nobody should."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientCall(OutsideCall):
    """A call of a program of which nobody knows when one conversation ends: no answer holds for a session of it."""

    claims: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """What the program says besides, by name. It is shown as what it is, and nothing goes by it."""
    is_here: bool = False
    """Whether it runs on this machine, in `directory`, so that the paths it names are those that policy looks at."""

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
    """Id of the remembered answer that lets it run. Its use is counted when it does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SecondLook:
    """What is found about a call that was approved, right before it runs."""

    hindrance: str = ""
    """Why it may not run after all; empty where it may."""
    uses: GrantUse | None = None
    """The remembered answer that lets it run, where one does."""


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

    async def second_look(self, call: ClientCall, request: ApprovalRequest | None, grant_id: str = "") -> SecondLook:
        """Whether a call that was approved may run now. Nothing is counted yet.

        `request` is what people approved; where policy decided alone there is none, but perhaps a remembered answer.
        Raises `Halted` while everything is halted.
        """
        seen = await self._look(call, None)
        if request is None:
            # What speaks now, not what spoke then: there may be a no by now.
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
        """What is remembered for a call. Nothing is counted: a program that asks may never run it."""
        return await self.broker.grants.look(read_for_memory(call, self.root), places_of(call, ""), verdict)

    def _verdict(self, call: Call, outside: OutsideCall) -> Verdict:
        """What policy says. A rule about paths lets nothing run where they are paths of another machine.

        There they may start from another directory and lead through other links. A rule that asks or refuses is not
        talked out of it by that; one that allows has to hold wherever they lead.
        """
        verdict = OutsideGate._verdict(self, call, outside)
        is_here = isinstance(outside, ClientCall) and outside.is_here
        if is_here or verdict.effect is not Effect.ALLOW or not (paths := self.policy.paths_of(call)):
            return verdict
        read = dict.fromkeys(self.policy.commanded_paths_of(call), _SECRET)
        anywhere = self.policy.judge(call.changed(resolved={**dict.fromkeys(paths, _ANYWHERE), **read}))
        if anywhere.effect is Effect.ALLOW:
            return verdict
        # A rule that refuses some paths is in doubt, and doubt asks; but a whitelist refuses what is in doubt.
        is_kept = anywhere.effect is Effect.ASK or self.policy.is_otherwise(anywhere)
        found = anywhere if is_kept else Verdict(effect=Effect.ASK)
        return replace(found, reason=f"{verdict.reason}, but its paths are those of another machine")


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
