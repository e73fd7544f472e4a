"""`OutsideGate`: the gate for calls that another program executes. It says whether a call may run, and takes outcomes.

A call follows the course of every gated call (`signoff.gate.course`). The difference is who executes it: the approval
is claimed for that program's process before the program is told to continue, so that it is used once. While that
process is alive, an outcome may still come.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from signoff.broker import Broker, new_id
from signoff.broker.deadlines import GONE
from signoff.broker.requests import is_held
from signoff.broker.switch import check_not_halted
from signoff.broker.wall_clock import pause_for
from signoff.core.call import Call
from signoff.core.card import safe_summary
from signoff.core.decision import ApprovalDecision
from signoff.core.event import CallStep
from signoff.core.grant import Grant, places_of
from signoff.core.lifecycle import OPEN
from signoff.core.mode import ApprovalMode
from signoff.core.request import ApprovalRequest, State
from signoff.core.request_context import RequestContext
from signoff.core.request_status import approval_text, settled_text
from signoff.core.run import Process
from signoff.core.summary import summary_of
from signoff.core.verdict import Effect, OnTimeout, Requirement, Verdict
from signoff.errors import AlreadySettled, AlreadySpent, CannotCanonicalise
from signoff.gate.course import (
    Ask,
    Because,
    CallFacts,
    Fit,
    Lookup,
    OnRecord,
    Pause,
    Recalled,
    Refusal,
    Refuse,
    Run,
    course,
)
from signoff.gate.course import Step as CourseStep
from signoff.gate.likeness import read_for_memory, varying
from signoff.gate.record_facts import ON_RECORD, agreed_to, changed_since, recalled_by, stands_for, why_void
from signoff.gate.refusal_words import POLICY, SIGNOFF, decided_by, decided_why
from signoff.large_work import done
from signoff.outside.background import read_background
from signoff.outside.outside_call import OutsideCall, shape_of
from signoff.policy.call_paths import Facts
from signoff.policy.index import NOT_MATCHED
from signoff.policy.layers import Layers
from signoff.ports import Transaction
from signoff.processes import BEAT

TIMEOUT = "timeout"
_EARLIER = timedelta(seconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class CallPermission:
    """What a program is told about a call that it is about to make."""

    allowed: bool
    args: Mapping[str, Any]
    """The arguments that may run: a person's, if they were edited."""
    edited: bool = False
    by: str = ""
    """Who decided: `policy`, a person, `timeout`, `signoff`."""
    reason: str = ""
    request: str = ""
    """The id of the request, if somebody was asked."""
    waits: bool = False
    """Whether there is no answer yet, and the same call made again may find one."""
    spent: bool = False
    """Whether it is refused because its approval was already used."""


@dataclass(slots=True)
class _Pass:
    """One pass over a call: what is known so far."""

    call: Call
    verdict: Verdict
    facts: CallFacts
    on_record: ApprovalRequest | None = None
    grant: Grant | None = None


@dataclass(slots=True)
class OutsideGate:
    """Decides about the calls of another program's agent."""

    broker: Broker
    policy: Layers
    holder: Process | None = None
    """The process that executes the calls, if it is known."""
    waiter: Process | None = None
    """The process that is told whether a call may run. When it is gone, its request is withdrawn."""
    mode: ApprovalMode = ApprovalMode.INTERACTIVE
    requester: str = ""
    """The person the agent works for, for rules with `not_by: requester`."""
    secrets: tuple[str, ...] = ()
    """Values that are masked wherever a call is shown."""
    takes_edits: bool = True
    """Whether the program can run a call with other arguments than its model chose."""
    tells_outcomes: bool = True
    """Whether the program says what became of a call. Otherwise an approval is handed over: it is used, and the record
    does not say whether the call ran."""
    unmatched: str = ""
    """Why calls that match no rule are refused; empty: they are asked about."""

    @property
    def root(self) -> str:
        return self.policy.root or ""

    async def at_once(self, outside: OutsideCall) -> CallPermission | None:
        """Return what policy alone decides; None if it is not enough, and `decide` must be called.

        Nobody is asked and nothing is claimed. It waits only for a read of the store. Raises `Halted` during a halt.
        """
        seen = await self._look(outside, None)
        if seen.verdict.effect is Effect.ASK:
            await self.broker.store.read(check_not_halted)
            return None
        match await self._step(seen):
            case Run(CallStep.ALLOWED as why):
                return self._passed(outside, seen, why)
            case Refuse(why):
                return self._refused(outside, seen, why)
            case _:
                return None

    async def decide(
        self,
        outside: OutsideCall,
        *,
        until: datetime | None = None,
        parks: bool = False,
        asked: Callable[[ApprovalRequest], None] | None = None,
    ) -> CallPermission:
        """Decide whether a call may be made now. Waits for people, at most until `until`.

        Raises `Halted` during a halt. A request without an answer in time is withdrawn, unless `parks` is set because
        the program makes the same call again; so it is if this is cancelled, or fails. `asked` is called with the
        request that is waited for.
        """
        at_stake = list[str]()
        is_over = False
        try:
            permission = await self._decided(outside, until, parks, asked, at_stake)
            is_over = True
            return permission
        finally:
            if not is_over and not parks:
                for request_id in at_stake:
                    self.broker.abandon(request_id, outside.token, GONE)

    async def _decided(
        self,
        outside: OutsideCall,
        until: datetime | None,
        parks: bool,
        asked: Callable[[ApprovalRequest], None] | None,
        at_stake: list[str],
    ) -> CallPermission:
        """See `decide`. `at_stake` gets the ids of the requests that are of no use if this does not return."""
        args: Mapping[str, Any] | None = None
        waiter = None if parks else self.waiter
        while True:
            seen = await self._look(outside, args)
            step = await self._step(seen)
            match step:
                case Run(CallStep.APPROVED):
                    at_stake.append(_known(seen).id)
                    if (permission := await self._claim(outside, seen)) is not None:
                        return permission
                case Run(why):
                    return self._passed(outside, seen, why)
                case Refuse(Refusal.SPENT) if (permission := self._claimed_before(outside, seen)) is not None:
                    return permission
                case Refuse(why):
                    return self._refused(outside, seen, why)
                case Ask() if args is None and (edited := _edited_before(seen)) is not None:
                    args = edited
                case Ask(why):
                    question = await self._question(outside, seen, why)
                    at_stake.append(question.id)
                    ends = None if parks else self._deadline(seen.verdict.requirement, until)
                    [request] = await self.broker.open([question], policy=self.policy, waiter=waiter, until=ends)
                    at_stake.append(request.id)
                    if (settled := await self._waited(request, until, waiter, asked)) is None:
                        return await self._out_of_time(outside, request, parks)
                    args = _args_of(settled)
                case Pause():
                    request = _known(seen)
                    at_stake.append(request.id)
                    if (settled := await self._waited(request, until, waiter, asked)) is None:
                        return await self._out_of_time(outside, request, parks)
                    args = _args_of(settled)
                case _:
                    raise AssertionError(f"no call of another program gets to {step}")

    async def report(
        self, outside: OutsideCall, *, error: str | None = None, preview: str = ""
    ) -> ApprovalRequest | None:
        """Record the outcome of a call that ran on an approval. None if there was none, or it was recorded before."""
        request = await self.running(outside)
        if request is None or request.claim is None:
            return None
        self.broker.finish(request.id, error=error, preview=preview, token=request.claim.token, secrets=self.secrets)
        await self.broker.store.flush()
        return await self.broker.get(request.id)

    async def running(self, outside: OutsideCall) -> ApprovalRequest | None:
        """Return the request whose approval a call runs on. For programs without call ids, find it by its content."""
        running = (State.CLAIMED, State.UNKNOWN)
        request = await self.broker.about(outside.key) if outside.call_id else None
        if request is not None and request.state in running:
            return request
        mine = outside.read(self.policy).args_digest
        for one in reversed(await self.broker.of_conversation(outside.session)):
            if one.state in running and one.tool_name == outside.tool and one.args_digest == mine:
                return one
        return None

    # --- one look ---

    async def _look(self, outside: OutsideCall, args: Mapping[str, Any] | None) -> _Pass:
        about = outside.args if args is None else args
        return await done(f"judging a call of {outside.caller}", about, lambda: self._looked(outside, args))

    def _looked(self, outside: OutsideCall, args: Mapping[str, Any] | None) -> _Pass:
        call = outside.read(self.policy, args)
        verdict = self._verdict(call, outside)
        try:
            call.args_digest  # noqa: B018 - what an approval would be bound to
            has_json = True
        except CannotCanonicalise:
            has_json = False
        facts = CallFacts(
            verdict.effect,
            mode=self.mode,
            wanted=verdict.requirement.wanted,
            in_doubt=bool(verdict.errors or outside.doubt),
            has_json=has_json,
        )
        return _Pass(call, verdict, facts)

    def _verdict(self, call: Call, outside: OutsideCall) -> Verdict:
        verdict = self.policy.judge(call)
        if outside.doubt and verdict.effect is Effect.ALLOW:
            reason = f"{verdict.reason}, but something about this call is in doubt"
            return Verdict(effect=Effect.ASK, rules=verdict.rules, reason=reason, errors=verdict.errors)
        if verdict.effect is not Effect.ASK or verdict.rules:
            return verdict
        if self.unmatched:
            return Verdict(effect=Effect.DENY, reason=self.unmatched, exactly=verdict.exactly, yields=verdict.yields)
        why = self.policy.nearly(call)
        if not why:
            return verdict
        return Verdict(
            effect=verdict.effect,
            reason=f"{NOT_MATCHED.reason}: {why}",
            requirement=verdict.requirement,
            errors=verdict.errors,
            exactly=verdict.exactly,
            yields=verdict.yields,
        )

    async def _step(self, seen: _Pass) -> CourseStep:
        """Return the next step, after the lookups that it needs."""
        while isinstance(step := course(seen.facts), Lookup):
            if step is Lookup.RECORD:
                seen.on_record = await self.broker.store.read(lambda tx: _on_record(tx, seen.call.key))
                seen.facts = self._with_record(seen)
            else:
                seen.grant = await self._recall(seen.call, seen.verdict)
                seen.facts = seen.facts._replace(recalled=recalled_by(seen.grant), entered=False)
        return step

    async def _recall(self, call: Call, verdict: Verdict) -> Grant | None:
        """Return the grant for a call. If its uses are limited, this use is counted."""
        return await self.broker.grants.recall(await self._for_memory(call), places_of(call, ""), verdict)

    async def _for_memory(self, call: Call) -> Facts:
        """Return a call as remembered answers are judged by it."""

        def read() -> Facts:
            found = read_for_memory(call, self.root)
            found.call.likeness  # noqa: B018 - it is worked out once, and kept
            return found

        return await done(f"looking for answers to a call of {call.agent or call.tool}", call.args, read)

    def _with_record(self, seen: _Pass) -> CallFacts:
        request = seen.on_record
        if request is None:
            return seen.facts._replace(record=OnRecord.NOTHING)
        record, fit = ON_RECORD[request.state], Fit.HOLDS
        if record is OnRecord.APPROVED:
            if self._changed(seen, request):
                fit = Fit.CHANGED
            elif not agreed_to(request, seen.verdict.requirement):
                fit = Fit.OTHERS
        return seen.facts._replace(record=record, fit=fit, recalled=Recalled.UNREAD)

    def _changed(self, seen: _Pass, request: ApprovalRequest) -> tuple[str, ...]:
        return changed_since(seen.call, seen.verdict, request, self.policy.revision, self.root)

    # --- asking ---

    async def _question(self, outside: OutsideCall, seen: _Pass, why: Because) -> ApprovalRequest:
        changed = (*await self._why_again(seen, why), *filter(None, (outside.doubt,)))
        what = f"writing the question about a call of {outside.caller}"
        context = outside.context(await read_background(outside.background, self.broker.clock))
        return await done(what, outside.args, lambda: self._written(outside, seen, changed, context))

    def _written(
        self, outside: OutsideCall, seen: _Pass, changed: tuple[str, ...], context: RequestContext
    ) -> ApprovalRequest:
        call = seen.call
        request = ApprovalRequest(
            id=new_id(),
            tool_call_id=outside.call_id,
            tool_name=call.tool,
            args=call.args,
            metadata=outside.said,
            summary=summary_of(call.tool, call.args, outside.said),
            call=call,
            may_vary=varying(call, self.root),
            verdict=seen.verdict,
            policy_revision=self.policy.revision,
            schema=outside.schema if outside.schema is not None else shape_of(call.args),
            context=context,
            changed=changed,
            stands_for=stands_for(call, seen.on_record),
            requester=self.requester,
            root=outside.directory,
            secrets=self.secrets,
            takes_edits=self.takes_edits,
        )
        return request.changed_to(title=safe_summary(request, secrets=self.secrets))

    def _deadline(self, requirement: Requirement, until: datetime | None) -> datetime | None:
        """Return the deadline of a request whose program waits until then; None if its rule has the one that counts.

        It is a little earlier, so that the answer that nobody answered reaches the program.
        """
        if until is None:
            return None
        left = until - self.broker.clock.now()
        window, is_deadline = within(requirement, left)
        return until - min(_EARLIER, left / 4) if is_deadline and window > timedelta(0) else None

    async def _why_again(self, seen: _Pass, why: Because) -> tuple[str, ...]:
        """Return why people are asked although there was an answer. An approval that no longer fits is withdrawn."""
        if why is Because.POLICY:
            return ()
        request = _known(seen)
        if why is Because.WITHDRAWN:
            return (settled_text(request),)
        reason = why_void(why, request, self._changed(seen, request), seen.verdict.requirement)
        await self.broker.cancel(request.id, reason)
        return (reason,)

    async def _waited(
        self,
        request: ApprovalRequest,
        until: datetime | None,
        waiter: Process | None,
        asked: Callable[[ApprovalRequest], None] | None,
    ) -> ApprovalRequest | None:
        """Wait until the request is settled, and return it; None on timeout."""
        if request.state not in OPEN:
            return request
        if waiter is not None and request.waiter != waiter.id:
            request = await self.broker.wait_as(request.id, waiter)
        if asked is not None:
            asked(request)
        if until is None and waiter is None:
            return await self.broker.wait(request.id)
        import asyncio

        clock = self.broker.clock
        answer = asyncio.ensure_future(self.broker.wait(request.id))
        timer = asyncio.ensure_future(clock.sleep_until(until)) if until is not None else None
        beats = asyncio.ensure_future(self._beats(waiter)) if waiter is not None else None
        others = [one for one in (timer, beats) if one is not None]
        try:
            await asyncio.wait([answer, *others], return_when=asyncio.FIRST_COMPLETED)
            return answer.result() if answer.done() else None
        finally:
            for task in (answer, *others):
                task.cancel()

    async def _beats(self, waiter: Process) -> None:
        """Say that the process still waits, for those who look from another machine, until cancelled."""
        while True:
            await pause_for(self.broker.clock, BEAT)
            self.broker.beat_for(waiter)

    async def _out_of_time(self, outside: OutsideCall, request: ApprovalRequest, parks: bool) -> CallPermission:
        """Refuse a call that the program no longer waits for. An answer at the same moment counts as too late."""
        if parks:
            return CallPermission(allowed=False, args=outside.args, by=TIMEOUT, request=request.id, waits=True)
        reason = "nobody answered before the agent stopped waiting"
        try:
            await self.broker.cancel(request.id, reason)
        except AlreadySettled as late:
            reason = f"{reason}; {late}"
        return CallPermission(allowed=False, args=outside.args, by=TIMEOUT, reason=reason, request=request.id)

    # --- the end ---

    async def _claim(self, outside: OutsideCall, seen: _Pass) -> CallPermission | None:
        """Claim the approval. None if it was withdrawn or used at the same moment."""
        request = _known(seen)
        edited = request.other_args
        if edited is not None and not self.takes_edits:
            return await self._told_to_edit(outside, request, outside.own(edited))
        if not self.tells_outcomes:
            handed = await self.broker.hand_over([request.id], holder=self.holder)
            return _granted(outside, handed[0]) if handed else None
        try:
            claimed = await self.broker.claim(request.id, token=outside.token, holder=self.holder)
        except AlreadySpent as spent:
            return CallPermission(
                allowed=False, args=outside.args, by=SIGNOFF, reason=str(spent), request=request.id, spent=True
            )
        except AlreadySettled:
            return None
        return _granted(outside, claimed)

    def _claimed_before(self, outside: OutsideCall, seen: _Pass) -> CallPermission | None:
        """Return the permission again that this very attempt got before, and whose reply it never heard."""
        request = _known(seen)
        is_own = bool(outside.attempt) and is_held(request, outside.attempt)
        is_own = is_own and request.made_with == seen.call.args_digest
        return _granted(outside, request) if is_own else None

    async def _told_to_edit(
        self, outside: OutsideCall, request: ApprovalRequest, args: Mapping[str, Any]
    ) -> CallPermission:
        """Refuse a call and say which arguments to send, because the program cannot run edited arguments."""
        wanted = json.dumps(args, ensure_ascii=False)
        by = decided_by(_decision(request))
        reason = f"{by} wants other arguments, which this agent does not accept; call {outside.tool} with {wanted}"
        await self.broker.cancel(request.id, reason)
        return CallPermission(allowed=False, args=outside.args, by=by, reason=reason, request=request.id)

    def _passed(self, outside: OutsideCall, seen: _Pass, why: CallStep) -> CallPermission:
        """Record a call that runs without a question."""
        grant = seen.grant if why is CallStep.REMEMBERED else None
        self.broker.audit_buffer.add(why, seen.call, seen.verdict, grant=grant, secrets=self.secrets)
        self.broker.audit_buffer.flush()
        by = seen.grant.by if seen.grant is not None else POLICY
        return CallPermission(allowed=True, args=outside.args, by=by, reason=self._why_run(why, seen))

    def _why_run(self, why: CallStep, seen: _Pass) -> str:
        if why is CallStep.REMEMBERED and seen.grant is not None:
            return f"remembered: {seen.grant.by or 'a person'} said always"
        return seen.verdict.reason

    def _refused(self, outside: OutsideCall, seen: _Pass, why: Refusal) -> CallPermission:
        by, reason, request = SIGNOFF, "", ""
        match why:
            case Refusal.POLICY:
                by, reason = POLICY, seen.verdict.reason
            case Refusal.NEVER:
                assert seen.grant is not None, "a no is remembered"
                by, reason = seen.grant.by or SIGNOFF, seen.grant.note or "a person said never to do this"
            case Refusal.MODE:
                by, reason = "mode", "policy asks, but nobody is asked here"
            case Refusal.ANSWER:
                request = _known(seen).id
                decision = _decision(_known(seen))
                by, reason = decided_by(decision), decided_why(decision)
            case Refusal.SPENT:
                request, reason = _known(seen).id, "its approval was already used: an approved call runs once"
            case _:
                reason = "the arguments have no JSON form, so no approval can be bound to them"
        if not request:
            self.broker.audit_buffer.add(
                CallStep.DENIED, seen.call, seen.verdict, by=by, text=reason, secrets=self.secrets
            )
            self.broker.audit_buffer.flush()
        spent = why is Refusal.SPENT
        return CallPermission(allowed=False, args=outside.args, by=by, reason=reason, request=request, spent=spent)


def _on_record(tx: Transaction, key: str) -> ApprovalRequest | None:
    """Return the request about a call; raises `Halted` during a halt."""
    check_not_halted(tx)
    return tx.requests.about(key)


def _known(seen: _Pass) -> ApprovalRequest:
    assert seen.on_record is not None, "the course got here because something is on record"
    return seen.on_record


def _decision(request: ApprovalRequest) -> ApprovalDecision:
    assert request.decision is not None, "it was settled"
    return request.decision


def _granted(outside: OutsideCall, claimed: ApprovalRequest) -> CallPermission:
    """Return the permission of a call whose approval was claimed for it."""
    decision, edited = _decision(claimed), claimed.other_args
    return CallPermission(
        allowed=True,
        args=outside.args if edited is None else outside.own(edited),
        edited=edited is not None,
        by=decided_by(decision),
        reason=decision.note or approval_text(claimed),
        request=claimed.id,
    )


def _args_of(request: ApprovalRequest) -> Mapping[str, Any] | None:
    """Return the arguments that were approved, if they are others than the call was made with."""
    return request.other_args if request.decision is not None and request.decision.approved else None


def _edited_before(seen: _Pass) -> Mapping[str, Any] | None:
    """Return the arguments that a person edited before the program made the very call that was asked about again."""
    request = seen.on_record
    if request is None or request.made_with != seen.call.args_digest:
        return None
    return _args_of(request)


def within(requirement: Requirement, window: timedelta) -> tuple[timedelta, bool]:
    """Return how long a program with this `window` waits at most, and whether that is the request's deadline.

    A timeout set by a program never makes a rule less strict. If the rule approves, parks or escalates at its own
    deadline, only the rule's timeout counts, and the end of the window withdraws the request.
    """
    own = requirement.timeout
    if own is None:
        return window, True
    if requirement.on_timeout is OnTimeout.DENY:
        return min(window, own), window < own
    return window, False
