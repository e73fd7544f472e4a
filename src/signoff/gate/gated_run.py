"""One run of a gated agent. Every tool call passes here, and passes twice if a person is asked in between.

First pass: the call is judged. Allowed calls run, denied ones are refused, all others raise `ApprovalRequired`.
PydanticAI hands everything that was raised to `resolve`, which opens the requests and waits for answers, unless the
run suspends. Second pass, in this run or in one that resumes it: the call runs only on an unused approval on record
that still fits. The approval is claimed first. `course` decides on the next step; this module executes it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field, replace
from typing import Any

from pydantic_ai import RunContext
from pydantic_ai.conversation import Conversation
from pydantic_ai.exceptions import (
    ApprovalRequired,
    CallDeferred,
    ModelRetry,
    SkipToolExecution,
    ToolFailed,
    ToolRetryError,
)
from pydantic_ai.messages import ToolCallPart
from pydantic_ai.tools import DeferredToolRequests, DeferredToolResults, ToolApproved, ToolDenied
from pydantic_ai.toolsets import ToolsetTool

from signoff.broker import new_id
from signoff.broker.cancellation import is_cancelled
from signoff.core.call import Call
from signoff.core.canonical import digest
from signoff.core.decision import ApprovalDecision
from signoff.core.event import CallStep
from signoff.core.grant import Grant
from signoff.core.lifecycle import OPEN
from signoff.core.preview import basis_of
from signoff.core.remembering import LEADS_TO
from signoff.core.request import ApprovalRequest, State
from signoff.core.request_status import settled_text
from signoff.core.result_text import exit_text
from signoff.core.verdict import Effect, Wanted
from signoff.errors import (
    AlreadySettled,
    AlreadySpent,
    CannotCanonicalise,
    EditRefused,
    Halted,
    PreviewChanged,
    RunError,
    StoreUnavailable,
    WrongUse,
)
from signoff.gate.arguments import as_json, validated, with_notice
from signoff.gate.call_judge import UNJUDGED, CallJudge
from signoff.gate.course import (
    CLOSINGS,
    Ask,
    Because,
    CallFacts,
    Closing,
    Ended,
    Fit,
    Lookup,
    OnRecord,
    Pause,
    Refusal,
    Refuse,
    Replay,
    Run,
    SecondFacts,
    Wait,
    asked,
    below,
    course,
)
from signoff.gate.denial import denial, refusal
from signoff.gate.gate import TOOL_ASKS, Gate
from signoff.gate.gated_calls import GatedCall, enter, leave, named_approver, never, newest_response
from signoff.gate.memo import DoesNotFit
from signoff.gate.nesting import CallPaused, Level, OverCall, entry_of, is_left_over, lost_question, pause_in, ungated
from signoff.gate.questions import REQUEST, Question, Questions, question_about
from signoff.gate.record_facts import ON_RECORD, agreed_to, changed_since, recalled_by, why_void
from signoff.gate.refusal_words import POLICY, SIGNOFF, TOOL, decided_by, decided_why, words_of
from signoff.gate.run_saver import SavedResult, is_of, replayed, result_text, saved_result
from signoff.gate.tracing import Reporter
from signoff.policy.strictest_verdict import strictest
from signoff.processes import steady_seconds

_RAN = (State.SUCCEEDED, State.FAILED)


@dataclass(slots=True)
class Ticket:
    """A running call that was let through above another capability's toolset."""

    call: Call
    request: ApprovalRequest | None
    """The approval it runs on, where a person gave one for this call."""
    answered: bool
    """Whether policy asked and the call was let through: by approval, a grant, the mode, or a reviewer capability."""
    used: bool = False

    def is_for(self, call: Call) -> bool:
        """Return whether exactly this call was approved, or announced as what the approved call leads to."""
        if self.request is not None and self.request.metadata.get(LEADS_TO) == leads_to(call):
            return True
        mine = (self.call.tool, self.call.args_digest, self.call.schema_hash, self.call.toolset)
        return mine == (call.tool, call.args_digest, call.schema_hash, call.toolset)


def leads_to(call: Call) -> str:
    """Name the call that another call turned into below, by tool and arguments digest."""
    return f"{call.tool} {call.args_digest}"


@dataclass(slots=True, weakref_slot=True)
class GatedRun:
    """The per-run state of the gate."""

    level: Level
    going: bool = False
    """Whether the agent is running now: not before its first step, and not after its last."""
    saved: Conversation | None = None
    """The conversation to continue from, where the run was saved in an earlier execution."""
    covered: frozenset[str] = frozenset()
    """Names of the tools that pass the gate at their last step, below every hook."""
    trusts_names: bool = True
    """Whether every call of a covered tool reaches the gate: no other capability wraps the gated toolset."""
    hooks_below: bool = False
    """Whether another capability's hooks run between the gate and tools that are not covered."""
    checked: bool = False
    """Whether the agent's other capabilities were checked."""
    gate: Gate = field(init=False)
    reporter: Reporter = field(init=False)
    questions: Questions = field(init=False)
    reading: CallJudge = field(init=False)
    _tickets: dict[str, Ticket] = field(default_factory=dict[str, Ticket])
    """By call id."""

    def __post_init__(self) -> None:
        level = self.level
        self.gate = gate = level.gate
        self.reading = CallJudge(level)
        self.reporter = Reporter(gate, level.run_id, level.root.secrets if level.root is not None else set())
        self.questions = Questions(
            level,
            on_open=lambda gated, request: self.reporter.report(CallStep.ASKED, gated, request=request),
            check_edit=self.reading.check_edit,
            with_edit=self.reading.with_edit,
        )
        level.withdraw_questions = self.questions.withdraw

    @property
    def secrets(self) -> tuple[str, ...]:
        """Values to mask in what is saved of its calls: those of this run's gate and of nested runs."""
        return (*self.gate.secrets, *(self.level.root.secrets if self.level.root is not None else ()))

    async def run_call(
        self,
        ctx: RunContext[Any],
        tool: ToolsetTool[Any],
        args: dict[str, Any],
        execute: Callable[..., Awaitable[Any]],
        *,
        above: bool = False,
    ) -> Any:
        """Run a call, refuse it, or ask about it. Every tool call takes this path."""
        self.gate.broker.switch.check_now()
        gated = self.reading.read(ctx, tool, args, execute)
        if gated.verdict is UNJUDGED:
            gated.verdict = await self.gate.verdict(ctx, tool.tool_def, gated.call, gated.origin)
        gated.above = above
        if self._tickets and not above and (ticket := self._tickets.get(gated.call.call_id)) is not None:
            return await self._carry_out_below(gated, ticket)
        facts = self._facts(gated)
        if facts is _ALLOWED:  # most calls; see where `_ALLOWED` is defined
            return await self._run(gated, CallStep.ALLOWED)
        return await self._carry_out(gated, facts)

    async def remembered(self, ctx: RunContext[Any], tool: ToolsetTool[Any], args: dict[str, Any]) -> Grant | None:
        """Return the grant for such a call if it would count: policy asks, and an earlier answer may be used."""
        gated = await self.reading.judged(ctx, tool, args, never)
        verdict, wanted = gated.verdict, gated.verdict.requirement
        if verdict.effect is not Effect.ASK or wanted.wanted is Wanted.PEOPLE or gated.in_doubt:
            return None
        return await self.gate.answers.memory.look(gated.sealed, self.level.run_id, verdict)

    # --- facts ---

    def _facts(self, gated: GatedCall) -> CallFacts:
        """Return what is known about a call before anything is looked up."""
        effect, is_new = gated.verdict.effect, self.questions.is_new(gated.ctx)
        gated.is_new = is_new
        if effect is Effect.DENY:
            return _DENIED
        if effect is Effect.ALLOW and is_new and not self.questions.asked:
            return _ALLOWED
        try:
            key = gated.sealed.key
            if effect is Effect.ASK:
                gated.call.args_digest  # noqa: B018 - what an approval would be bound to
        except CannotCanonicalise:
            return CallFacts(effect, has_json=False)
        saver = self.level.saver
        return CallFacts(
            effect,
            mode=self.gate.mode,
            wanted=gated.verdict.requirement.wanted,
            in_doubt=gated.in_doubt,
            claimed=gated.ctx.tool_call_approved,
            resumed=saver is not None and saver.resumed,
            # A call that was made in this run and not asked about in it cannot be on record.
            record=OnRecord.NOTHING if is_new and key not in self.questions.asked else OnRecord.UNREAD,
            reviewed=self._is_reviewed(gated),
        )

    def _is_reviewed(self, gated: GatedCall) -> bool:
        """Return whether another capability of this agent approved, in this run, what the gate asked about."""
        if not (self.gate.reviewers and gated.ctx.tool_call_approved):
            return False
        question = self.questions.asked.get(gated.call.key)
        return question is not None and question.gated.call.fingerprint == gated.call.fingerprint

    async def _with_record(self, gated: GatedCall, facts: CallFacts, request: ApprovalRequest | None) -> CallFacts:
        """Add what is on record about the call to the facts."""
        gated.on_record = request
        if request is None:
            return facts._replace(record=OnRecord.NOTHING)
        if request.state not in OPEN:
            self.reporter.settled(request)
        record, fit = ON_RECORD[request.state], Fit.HOLDS
        if record is OnRecord.APPROVED:
            if basis_of(request.metadata):
                gated.basis = basis_of(await gated.described())
            fit = self._fit(gated, request)
        elif request.state in _RAN and self._ran_here(gated, request):
            record = OnRecord.RESULT
        return facts._replace(record=record, fit=fit)

    def _ran_here(self, gated: GatedCall, request: ApprovalRequest) -> bool:
        return self.level.saver is not None and is_of(request, gated.call, self.level.run_id)

    def _fit(self, gated: GatedCall, request: ApprovalRequest) -> Fit:
        if self._changed(gated, request):
            return Fit.CHANGED
        return Fit.HOLDS if agreed_to(request, gated.verdict.requirement) else Fit.OTHERS

    def _changed(self, gated: GatedCall, request: ApprovalRequest) -> tuple[str, ...]:
        """Return what changed since the call was approved, in words."""
        policy, root = self.gate.policy.revision, self.gate.reader.root
        changed = changed_since(gated.call, gated.verdict, request, policy, root, gated.basis)
        return changed or ((gated.outdated,) if gated.outdated else ())

    # --- steps ---

    async def _carry_out(self, gated: GatedCall, facts: CallFacts) -> Any:
        """Look up the facts that the course needs, then execute the step it returns."""
        while isinstance(step := course(facts), Lookup):
            facts = await self._look(gated, facts, step)
            if step is Lookup.RECORD and self._is_made_again_as_asked(gated):
                return await self._carry_out_on(gated, _known(gated))
        match step:
            case Run(CallStep.APPROVED):
                return await self._run_approved(gated, facts)
            case Run(why):
                return await self._run(gated, why)
            case Refuse(why):
                raise await self._refuse(gated, why)
            case Ask(why):
                return await self._ask(gated, changed=await self._why_asked(gated, why))
            case Replay():
                request = _known(gated)
                result = replayed(request, await self.gate.broker.result(request.id))
                return _noticed(gated, request, result)
            case Pause() | Wait():  # the request is still open
                raise self.questions.raise_for(Question(_known(gated), gated))

    def _is_made_again_as_asked(self, gated: GatedCall) -> bool:
        """Return whether a tool's code makes a call again as it was asked about, though it was approved otherwise.

        PydanticAI itself makes a model's call with those that were approved.
        """
        request, call = gated.on_record, gated.call
        return (
            request is not None
            and request.state is State.APPROVED
            and request.call is not None
            and decision_of(request).edited_args is not None
            and request.call.args_digest == call.args_digest
            and not self.reading.seals.places.made_by_model(gated.ctx.messages, call.call_id)
        )

    async def _look(self, gated: GatedCall, facts: CallFacts, what: Lookup) -> CallFacts:
        """Look up one fact and add it."""
        memory, call = self.gate.answers.memory, gated.call
        match what:
            case Lookup.RECORD:
                return await self._with_record(gated, facts, await self.questions.about(gated.ctx, call))
            case Lookup.ENTRY:
                # The call was let through before and paused with a nested run: a grant must not be counted twice.
                again = await self.gate.broker.runs.enter_again(entry_of(self.level, call, granted=True))
                return facts._replace(entered=again)
            case Lookup.NEVER:
                gated.grant = await memory.forbids(call, self.level.run_id)
            case Lookup.MEMORY:
                gated.grant = await memory.recall(call, self.level.run_id, gated.verdict)
        return facts._replace(recalled=recalled_by(gated.grant))

    async def _refuse(self, gated: GatedCall, why: Refusal) -> Exception:
        """Return the exception that refuses the call, with the reason in words."""
        match why:
            case Refusal.POLICY:
                if gated.ctx.tool_call_approved:
                    with suppress(CannotCanonicalise):
                        await self.questions.void(gated.sealed, gated.verdict.reason)
                return self._refused(gated, POLICY, gated.verdict.reason)
            case Refusal.NEVER:
                assert gated.grant is not None, "a no is remembered"
                by, note = gated.grant.by or SIGNOFF, gated.grant.note
                return self._refused(gated, by, note or "a person said never to do this")
            case Refusal.MODE:
                return self._refused(gated, "mode", "policy asks, but nobody is asked in this run")
            case Refusal.ANSWER | Refusal.SPENT:
                return self.refusal_on_record(gated, _known(gated))
            case _:
                reason = "the arguments have no JSON form, so no approval can be bound to them"
                return self._refused(gated, SIGNOFF, reason)

    async def _why_asked(self, gated: GatedCall, why: Because) -> tuple[str, ...]:
        """Say in words why people are asked although there was an answer. Withdraws an approval that no longer fits."""
        if why is Because.POLICY:
            return ()
        if why is Because.CLAIMED:
            return ("an approval was claimed for this call, but none is on record",)
        request = _known(gated)
        if why is Because.WITHDRAWN:
            return (settled_text(request),)
        # The approval is withdrawn below, so the card does not count it among the earlier answers.
        reason = why_void(why, request, self._changed(gated, request), gated.verdict.requirement)
        gated.outdated = ""  # the next preview is made now
        await self.gate.broker.cancel(request.id, reason)
        return (reason,)

    async def _ask(
        self, gated: GatedCall, *, changed: tuple[str, ...] = (), said: Mapping[str, Any] | None = None
    ) -> Any:
        """Ask people about a call. `said` is what the tool's own body said when it asked."""
        question = await question_about(gated, changed=changed, said=said)
        again = gated.call.key in self.questions.asked
        if isinstance(asked(again=again, suspends=self.gate.suspends, by_tool=said is not None), Pause):
            raise self.questions.raise_for(question)
        [on_record] = await self.questions.open(gated.ctx, [question])
        settled = (await self.questions.answers([on_record])).get(on_record.id)
        if settled is None:
            raise self.questions.raise_for(question)
        return await self._carry_out_on(gated, settled)

    async def _carry_out_on(self, gated: GatedCall, settled: ApprovalRequest) -> Any:
        """Carry out a call as it was answered, with the arguments it was approved with."""
        edited = decision_of(settled).edited_args
        if edited is not None:
            above, gated = gated.above, await self.reading.edited(gated, edited)
            gated.above = above
        return await self._carry_out(gated, await self._with_record(gated, self._facts(gated), settled))

    # --- a call that arrives below another capability's toolset ---

    async def _carry_out_below(self, gated: GatedCall, ticket: Ticket) -> Any:
        """Judge a call a second time after it passed another capability's toolset, perhaps as a different call."""
        facts = SecondFacts(gated.verdict.effect)
        if facts.effect is Effect.ASK:
            call, request = gated.sealed, ticket.request
            facts = SecondFacts(
                facts.effect,
                particular=gated.verdict.requirement.is_strict,
                in_doubt=gated.in_doubt,
                approved=request is not None,
                answered=ticket.answered,
                same_call=ticket.is_for(call),
                same_arguments=ticket.call.args_digest == call.args_digest,
                used=ticket.used,
                agreed=request is not None and agreed_to(request, gated.verdict.requirement),
            )
        match below(facts):
            case Run(why):
                ticket.used = ticket.used or why is CallStep.APPROVED
                return await gated.execute(gated.args)
            case Ask():
                reason = f"it leads to {gated.call.tool}: {gated.verdict.reason}"
                raise ApprovalRequired(metadata={"reason": reason, LEADS_TO: leads_to(gated.call)})
            case Refuse(Refusal.OTHER_ARGUMENTS):
                reason = f"it led to {gated.call.tool} with arguments that were not shown"
            case Refuse(Refusal.SPENT):
                reason = "its approval was already used: an approved call runs once"
            case Refuse(Refusal.OTHER_CALL):
                reason = f"the approval was for {ticket.call.tool}, but it led to another call"
            case _:
                raise await self._refuse(gated, Refusal.POLICY)
        raise self._refused(gated, SIGNOFF, reason)

    # --- running ---

    async def _run_approved(self, gated: GatedCall, facts: CallFacts) -> Any:
        """Claim the approval on record, and run the call on it."""
        broker, root, request = self.gate.broker, self.level.root, _known(gated)
        token, since = new_id(), steady_seconds()
        run, epoch = root.fence(request) if root is not None else ("", 0)
        broker.audit_buffer.flush()
        try:
            claimed = await broker.claim(request.id, run=run, epoch=epoch, token=token)
        except AlreadySpent as spent:
            raise self._refused(gated, SIGNOFF, str(spent)) from spent
        except AlreadySettled:  # it was withdrawn at the same moment
            now = await broker.get(request.id)
            return await self._carry_out(gated, await self._with_record(gated, facts, now))
        except (asyncio.CancelledError, StoreUnavailable):  # claimed or not, nothing has run on it
            broker.give_back(request.id, token)
            raise
        return await self._run_claimed(gated, claimed, since)

    async def _run_claimed(self, gated: GatedCall, request: ApprovalRequest, since: float) -> Any:
        """Run a call on its approval, which was claimed at `since`, and close the claim with the outcome."""
        gated.request = request
        around = self.level.enclosing
        try:
            with around.neighbours.running() if around is not None else nullcontext():
                result = await self._run(gated, CallStep.APPROVED, since)
        except PreviewChanged as changed:
            return await self._asked_anew(gated, request, changed)
        except BaseException as error:
            cause = error.__cause__ if isinstance(error, SkipToolExecution) and error.__cause__ is not None else error
            await self._close_claim(request, CLOSINGS[_ended(error)], error=_words_of_failure(cause))
            raise
        saved = gated.saved or SavedResult()
        await self._close_claim(request, CLOSINGS[Ended.RETURNED], saved)
        return _noticed(gated, request, result)

    async def _asked_anew(self, gated: GatedCall, request: ApprovalRequest, changed: PreviewChanged) -> Any:
        """Ask again about a call whose own body found at the last moment that its preview is outdated."""
        broker = self.gate.broker
        broker.give_back(request.id, request.claim.token if request.claim is not None else "")
        await broker.store.flush()
        gated.request, gated.outdated = None, str(changed)
        returned = await broker.get(request.id)
        return await self._carry_out(gated, await self._with_record(gated, self._facts(gated), returned))

    async def _close_claim(
        self, request: ApprovalRequest, closing: Closing, saved: SavedResult | None = None, *, error: str = ""
    ) -> None:
        broker, token = self.gate.broker, request.claim.token if request.claim is not None else ""
        match closing:
            case Closing.SUCCEED:
                saved = saved or SavedResult()
                broker.finish(
                    request.id,
                    digest=saved.digest,
                    preview=saved.preview,
                    result=saved.body,
                    token=token,
                    secrets=self.secrets,
                )
            case Closing.FAIL:
                broker.finish(request.id, error=error, token=token, secrets=self.secrets)
            case Closing.RELEASE:
                broker.release(request.id, token)
            case Closing.ASK_AGAIN:
                await broker.ask_again(request.id)
            case Closing.LOSE:
                broker.cut_off(request.id, token)

    async def _run(self, gated: GatedCall, why: CallStep, since: float = 0.0) -> Any:
        """Execute the call. An approval was claimed at `since`, and the call runs only while that claim holds."""
        gate, request, call = self.gate, gated.request, gated.call
        if request is not None and digest(as_json(gated.args, gate.reader.key)[0]) != call.args_digest:
            raise self._refused(gated, SIGNOFF, "its arguments changed while it waited for an answer")
        gate.broker.switch.check_now()
        self.reporter.report(why, gated, request=request)
        if gated.is_external:
            raise CallDeferred(metadata={REQUEST: {"verdict": str(gated.verdict.effect)}})
        answered = why is not CallStep.ALLOWED
        if gated.above:
            self._tickets[call.call_id] = Ticket(gated.sealed, request, answered)
        if request is not None:
            await gate.broker.confirm(request, since)
        gated.approver = named_approver(gate.approver)
        tokens = enter(gated, gated.passed(answered=answered))
        try:
            return await self._execute(gated)
        except CallPaused:
            raise
        except ApprovalRequired as own:
            said = own.metadata
        finally:
            leave(tokens)
            if gated.above:
                self._tickets.pop(call.call_id, None)
        # The tool's own body asks for approval: treat this as a question like any other.
        gated.verdict = strictest([gated.verdict, TOOL_ASKS]) or TOOL_ASKS
        return await self._ask(gated, said=said)

    async def _execute(self, gated: GatedCall) -> Any:
        """Return the tool's result. Raises `CallPaused` if a nested run waits for people, however it was started."""
        call, request = gated.call, gated.request
        try:
            result = await _made(gated)
            if isinstance(result, DeferredToolRequests):
                raise WrongUse(lost_question(call.tool))
        except (CallPaused, DoesNotFit):
            self._pause(gated)
            raise
        except ApprovalRequired:
            raise
        except Exception as error:
            if isinstance(error, PreviewChanged) and request is not None:
                raise
            if (pause := pause_in(error)) is not None:
                self._pause(gated)
                raise pause from error
            if (other := self._failed(gated, error)) is not None:
                raise other from error
            raise
        except BaseException as error:  # cancelled half-way: what was allowed has an end on record, too
            self.reporter.report(CallStep.CUT_OFF, gated, request=request, text=type(error).__name__)
            self.gate.broker.audit_buffer.flush()  # the run may have ended before its call
            raise
        if gated.enclosing is not None:
            gated.enclosing.over()
        if request is not None and self.gate.broker.store.is_durable:
            gated.saved = saved_result(result)
        text = gated.saved.preview if gated.saved is not None else result_text(result)
        self.reporter.report(CallStep.RAN, gated, request=request, result=text)
        self._is_over(gated, exit_text(text) or "success")
        if self.level.saver is not None:
            self.level.saver.returned(call.call_id, call.tool, result)
        return result

    def _failed(self, gated: GatedCall, error: Exception) -> Exception | None:
        """Report that the tool failed. Returns the exception to raise instead, if any."""
        if gated.enclosing is not None and not isinstance(error, Halted | RunError | StoreUnavailable):
            gated.enclosing.over()
        self.reporter.report(CallStep.FAILED, gated, request=gated.request, text=_words_of_failure(error))
        if isinstance(error, PermissionError) and self.gate.on_denied == "tell":  # a denial: the run continues
            self._is_over(gated, "denied")
            return SkipToolExecution(denial(gated.call.tool, by=TOOL, reason=words_of(error)))
        self._is_over(gated, "retried" if isinstance(error, ModelRetry | ToolRetryError) else "failed")
        return WrongUse(ungated(gated.call.tool)) if is_left_over(error) else None

    def _is_over(self, gated: GatedCall, outcome: str) -> None:
        """Note how a call ended, for questions about other calls of the same response."""
        self.level.over.append(OverCall(newest_response(gated.ctx.messages), gated.call, outcome))

    def _pause(self, gated: GatedCall) -> None:
        """Note that the tool let the pause of a nested run pass: the call ends here, and may be made again."""
        self.level.paused.add(gated.call.call_id)
        if gated.enclosing is not None:
            gated.enclosing.paused()

    # --- refusing ---

    def refusal_on_record(self, gated: GatedCall, request: ApprovalRequest) -> Exception:
        """Return the refusal for a settled request: it was denied, or its approval was already used."""
        decision = decision_of(request)
        if request.state in (State.DENIED, State.EXPIRED, State.CANCELLED):
            return self._refused(gated, decided_by(decision), decided_why(decision))
        return self._refused(
            gated, SIGNOFF, f"{settled_text(request)}; this approval was already used: an approved call runs once"
        )

    def _refused(self, gated: GatedCall, by: str, reason: str) -> Exception:
        self.reporter.report(CallStep.DENIED, gated, by=by, text=reason)
        self._is_over(gated, "denied")
        if self.gate.on_denied == "raise":
            return refusal(gated.call.tool, by=by, reason=reason)
        return SkipToolExecution(denial(gated.call.tool, by=by, reason=reason))

    # --- calls that PydanticAI deferred in one step: asked about together, and waited for unless the run suspends ---

    async def resolve(self, ctx: RunContext[Any], requests: DeferredToolRequests) -> DeferredToolResults | None:
        """Open the requests and wait for answers, unless the run suspends. The result leaves out what is still open."""
        results = DeferredToolResults()
        questions: list[Question] = []
        known = {one.gated.call.call_id: one for one in self.questions.asked.values() if self._is_of_now(ctx, one)}
        paused, saver = self.level.paused, self.level.saver
        for part in requests.approvals:
            why_not = self._why_not_later(ctx, part.tool_call_id)
            if part.tool_call_id in paused:  # no question of its own: it waits for those of a nested run
                if why_not:
                    self.level.withdraw_inside(part.tool_call_id, why_not)
                    results.approvals[part.tool_call_id] = denial(part.tool_name, by=SIGNOFF, reason=why_not)
                continue
            mine = known.get(part.tool_call_id) or await self._foreign(ctx, part, requests, results)
            if mine is not None and why_not and self.gate.suspends:
                results.approvals[part.tool_call_id] = _told(self._refused(mine.gated, SIGNOFF, why_not))
            elif mine is not None:
                questions.append(mine)
        on_record = await self.questions.open(ctx, questions, requests)
        settled = dict(await self.questions.answers(on_record))
        for request in on_record:
            if request.id not in settled and (why_not := self._why_not_later(ctx, request.tool_call_id)):
                with suppress(AlreadySettled):
                    await self.gate.broker.cancel(request.id, why_not)
                settled[request.id] = await self.gate.broker.get(request.id)
        for one, request in zip(questions, on_record, strict=True):
            if (answer := settled.get(request.id)) is not None:
                self.reporter.settled(answer)
                if saver is not None:
                    saver.note(answer)
                results.approvals[answer.tool_call_id] = self._result(one.gated, answer)
        waits = any(one.request.tool_call_id not in results.approvals for one in questions)
        self.questions.parked = waits or any(part.tool_call_id in paused for part in requests.approvals)
        return results if results.approvals else None

    def _is_of_now(self, ctx: RunContext[Any], question: Question) -> bool:
        """Return whether the question is about a call of the current response, not an earlier call with the same id."""
        call = question.gated.call
        return call.run_id == self.reading.seals.places.of_call(ctx, call)

    def _why_not_later(self, ctx: RunContext[Any], call_id: str) -> str:
        """Say in words why a call cannot be left for later; empty if the run can end with it and be resumed."""
        if ctx.realtime:
            return "a person has to approve it, and a realtime session cannot pause for the answer"
        if not self.reading.seals.places.made_by_model(ctx.messages, call_id):
            return "a person has to approve it, and no run can pause inside another tool's code for the answer"
        return ""

    def _result(self, gated: GatedCall, settled: ApprovalRequest) -> ToolApproved | ToolDenied:
        if settled.state is State.APPROVED or settled.claim is not None:  # if it already ran, the second pass says so
            return ToolApproved(override_args=dict(other) if (other := settled.other_args) is not None else None)
        return _told(self.refusal_on_record(gated, settled))

    async def _foreign(
        self, ctx: RunContext[Any], part: ToolCallPart, requests: DeferredToolRequests, results: DeferredToolResults
    ) -> Question | None:
        """Turn a call that a tool's validator or another capability asks about into a request.

        Returns None if nothing is asked: the tool is unknown, its arguments do not validate, or policy denies it.
        """
        tool = ctx.tool_manager.tools.get(part.tool_name) if ctx.tool_manager and ctx.tool_manager.tools else None
        if tool is None:
            return None
        call_ctx = replace(ctx, tool_call_id=part.tool_call_id, tool_name=part.tool_name)
        try:
            args = await validated(call_ctx, tool, part.args_as_dict(), by_person=False)
        except EditRefused:
            return None
        gated = await self.reading.judged(call_ctx, tool, args, never)
        if gated.verdict.effect is Effect.DENY:
            results.approvals[part.tool_call_id] = denial(part.tool_name, by=POLICY, reason=gated.verdict.reason)
            return None
        if gated.verdict.effect is Effect.ALLOW:
            gated.verdict = TOOL_ASKS
        question = await question_about(gated, said=requests.metadata.get(part.tool_call_id))
        raised = self.questions.raise_for(question)
        requests.metadata.setdefault(part.tool_call_id, {}).update(raised.metadata or {})
        return question


_DENIED = CallFacts(Effect.DENY)
_ALLOWED = CallFacts(Effect.ALLOW, record=OnRecord.NOTHING)
assert course(_ALLOWED) == Run(CallStep.ALLOWED), "what policy allows runs at once"


def _known(gated: GatedCall) -> ApprovalRequest:
    assert gated.on_record is not None, "this step is taken only where a request is on record"
    return gated.on_record


def _told(refused: Exception) -> ToolDenied:
    """Return a refusal as a result, or raise it where denials are raised."""
    if isinstance(refused, SkipToolExecution):
        return refused.result
    raise refused


async def _made(gated: GatedCall) -> Any:
    """Run the tool. If it ends the program, or is cancelled though nobody stops the run, only the call has failed."""
    try:
        return await gated.execute(gated.args)
    except SystemExit as error:
        raise RuntimeError(f"the tool called sys.exit({error.code!r})") from error
    except asyncio.CancelledError as error:
        if is_cancelled():
            raise
        raise RuntimeError("the tool ended with CancelledError, though nobody cancelled it") from error


def _ended(error: BaseException) -> Ended:
    """Return how a claimed call ended, by the exception it raised."""
    match error:
        case CallDeferred():
            return Ended.HANDED_OUT
        case CallPaused() | DoesNotFit():
            return Ended.PAUSED
        case ApprovalRequired():
            return Ended.ASKED
        case Halted() | RunError() | StoreUnavailable():  # a nested run was stopped: the outcome is unknown
            return Ended.CUT_OFF
        case Exception():
            return Ended.RAISED
        case _:  # cancelled half-way: the outcome is unknown
            return Ended.CUT_OFF


def _noticed(gated: GatedCall, request: ApprovalRequest, result: Any) -> Any:
    """Return a result with a notice if the call ran with a person's arguments; later questions name those, too."""
    if request.other_args is None:
        return result
    gated.level.ran_with[gated.sealed.key] = request.other_args
    return with_notice(result, gated.call.args)


def _words_of_failure(error: BaseException) -> str:
    """What is told of a failed call: what the tool says, if it says so to the model, and otherwise also the error."""
    told_by_tool = isinstance(error, ToolFailed | ModelRetry) and str(error)
    return str(error) if told_by_tool else f"{type(error).__name__}: {error}"


def decision_of(request: ApprovalRequest) -> ApprovalDecision:
    """Return the decision of a settled request."""
    assert request.decision is not None, "a settled request has a decision"
    return request.decision
