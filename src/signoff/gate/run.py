"""One run of a gated agent: every call passes here, twice if a person is asked in between.

First pass: judged; allowed calls run, denied ones are refused, the rest raises `ApprovalRequired`. PydanticAI then
hands all that was raised to `resolve`, which opens the requests and, unless the run suspends, waits for answers.
Second pass, in this run or in one that resumes it: the call runs only on an unspent approval on record that still
fits, which is claimed first. `ctx.tool_call_approved` alone is never believed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field, replace
from typing import Any

from pydantic_ai import RunContext
from pydantic_ai.conversation import Conversation
from pydantic_ai.exceptions import ApprovalRequired, CallDeferred, SkipToolExecution
from pydantic_ai.toolsets import ToolsetTool

from signoff.broker import new_id
from signoff.broker.holder import steady_seconds
from signoff.core.canonical import digest
from signoff.core.decision import ApprovalDecision
from signoff.core.event import Happened
from signoff.core.lifecycle import OPEN, SILENCE, settled_text
from signoff.core.mode import ApprovalMode
from signoff.core.offer import LEADS_TO
from signoff.core.quorum import approvals, who
from signoff.core.request import ApprovalRequest, Binding, State
from signoff.core.run import KeptRun
from signoff.core.verdict import Effect, OnTimeout, Requirement
from signoff.errors import AlreadySettled, AlreadySpent, CannotCanonicalise, Halted, RunError
from signoff.gate.calls import as_json
from signoff.gate.denial import POLICY, SIGNOFF, decided_by, decided_why, denial, refusal
from signoff.gate.edits import with_notice
from signoff.gate.frames import Frame, enter, leave
from signoff.gate.gate import TOOL_ASKS, Gate
from signoff.gate.keeper import Keeper
from signoff.gate.memo import DoesNotFit
from signoff.gate.nest import Nest, Pause, entry_id, entry_of
from signoff.gate.outcome import Outcome, is_of, outcome_of, told_again
from signoff.gate.passage import Passage
from signoff.gate.question import question
from signoff.gate.questions import REQUEST, Asked, Questions
from signoff.gate.reading import UNJUDGED, Reading
from signoff.gate.telling import Teller
from signoff.gate.tickets import Ticket, leads_to
from signoff.policy.layers import strictest

NEVER = "a person said never to do this"


@dataclass(slots=True)
class GatedRun:
    """The per-run state of the gate."""

    gate: Gate
    keeper: Keeper | None = None
    """Keeps the run in the store, where that outlives the process."""
    outer: Keeper | None = None
    """Keeps the outermost run, where this one is part of it."""
    nest: Nest | None = None
    """The call of another run that this one is inside of."""
    pauses_with_call: bool = False
    """Whether that call pauses where this run waits for people, and is made again to go on."""
    taken: Conversation | None = None
    """What to go on with, where the run was kept before it was made again."""
    inside: list[GatedRun] = field(default_factory=list["GatedRun"])
    """Runs that began inside its calls."""
    paused: set[str] = field(default_factory=set[str])
    """Ids of calls at hand that wait for a run inside them."""
    covered: frozenset[str] = frozenset()
    """Names of the tools that reach the gate at their very last step, below every hook."""
    trusts_names: bool = True
    """Whether a covered name is sure to reach the gate: no capability of a stranger wraps the gated toolset."""
    hooks_below: bool = False
    """Whether another capability's hooks stand between the gate and tools that are not covered."""
    checked: bool = False
    """Whether the agent's other capabilities were looked at."""
    teller: Teller = field(init=False)
    questions: Questions = field(init=False)
    reading: Reading = field(init=False)
    _tickets: dict[str, Ticket] = field(default_factory=dict[str, Ticket])
    """By call id."""

    def __post_init__(self) -> None:
        if self.nest is None:
            self.outer = self.keeper
        self.reading = Reading(self.gate)
        self.teller = Teller(self.gate, self.run_id, self.outer.secrets if self.outer is not None else set())
        self.questions = Questions(
            self.gate,
            on_open=lambda passage, request: self.teller.tell(Happened.ASKED, passage, request=request),
            keeper=self.keeper,
            outer=self.outer,
            check_edit=self.reading.check_edit,
        )

    @property
    def run_id(self) -> str:
        """Id of the kept run that this one is, or is part of; empty where none is kept."""
        return self.outer.run.id if self.outer is not None else ""

    @property
    def secrets(self) -> tuple[str, ...]:
        """Values that are masked in what is kept of its calls: of this run's gate, and of runs inside the calls."""
        return (*self.gate.secrets, *(self.outer.secrets if self.outer is not None else ()))

    async def run_call(
        self,
        ctx: RunContext[Any],
        tool: ToolsetTool[Any],
        args: dict[str, Any],
        execute: Callable[..., Awaitable[Any]],
        *,
        above: bool = False,
    ) -> Any:
        """Let a call pass, refuse it, or ask: the one path of every tool call."""
        self.gate.broker.switch.check_now()
        passage = self.reading.read(ctx, tool, args, execute)
        if passage.verdict is UNJUDGED:
            passage.verdict = await self.gate.verdict(ctx, tool.tool_def, passage.call, passage.owner)
        passage.above = above
        effect = passage.verdict.effect
        if effect is Effect.DENY:
            if ctx.tool_call_approved:
                with suppress(CannotCanonicalise):
                    await self.questions.void(self.reading.sealed(passage).call, passage.verdict.reason)
            raise self._refused(passage, POLICY, passage.verdict.reason)
        if self._tickets and not above and (ticket := self._tickets.get(passage.call.call_id)) is not None:
            return await self._run_below(passage, ticket)
        if effect is Effect.ALLOW and not self.questions.asked and self.questions.is_new(ctx):
            return await self._run(passage, Happened.ALLOWED)
        try:
            passage = self.reading.sealed(passage)
        except CannotCanonicalise as error:
            raise self._refused(passage, SIGNOFF, f"the arguments cannot be bound to an approval: {error}") from error
        if (request := await self.questions.about(ctx, passage.call)) is not None:
            return await self._run_recorded(passage, request)
        if effect is Effect.ALLOW:
            return await self._run(passage, Happened.ALLOWED)
        return await self._run_unrecorded(passage)

    async def _run_below(self, passage: Passage, ticket: Ticket) -> Any:
        """The second look at a call that came through a toolset of another capability, perhaps as another call."""
        if passage.verdict.effect is Effect.ALLOW:
            return await passage.execute(passage.args)
        call = self.reading.sealed(passage).call
        in_doubt = bool(passage.verdict.errors or call.unreadable or passage.verdict.requirement.is_strict)
        if ticket.request is None and ticket.answered and ticket.is_for(call) and not in_doubt:
            return await passage.execute(passage.args)
        if ticket.call.args_digest != call.args_digest:
            reason = f"it led to {call.tool} with other arguments than were shown"
            raise self._refused(passage, SIGNOFF, reason)
        if ticket.request is None:
            reason = f"it leads to {call.tool}: {passage.verdict.reason}"
            raise ApprovalRequired(metadata={"reason": reason, LEADS_TO: leads_to(call)})
        if ticket.used:
            raise self._refused(passage, SIGNOFF, "its approval was used: it runs once")
        if not ticket.is_for(call) or not self._agreed(ticket.request, passage.verdict.requirement):
            raise self._refused(
                passage, SIGNOFF, f"what was approved was {ticket.call.tool}, and it led to another call"
            )
        ticket.used = True
        return await passage.execute(passage.args)

    def withdraw(self, reason: str) -> None:
        """Nobody goes on with the run: what it still asks is moot, and so is what runs inside its calls do."""
        self.questions.withdraw(reason)
        for child in self.inside:
            child.withdraw(reason)

    # --- a call with nothing on record ---

    async def _run_unrecorded(self, passage: Passage) -> Any:
        gate, call = self.gate, passage.call
        in_doubt = bool(passage.verdict.errors or call.unreadable)
        sure = not (passage.verdict.requirement.is_strict or in_doubt or gate.mode is ApprovalMode.AUTO_DENY)
        if sure and passage.ctx.tool_call_approved and await self._was_entered(passage):
            if (never := await gate.desk.memory.forbids(call, self.run_id)) is not None:
                raise self._refused(passage, never.by or SIGNOFF, never.note or NEVER)
            return await self._run(passage, Happened.REMEMBERED)
        if not passage.verdict.requirement.is_strict and not in_doubt:
            grant = await gate.desk.memory.recall(call, self.run_id)
            if grant is not None and not grant.approved:
                raise self._refused(passage, grant.by or SIGNOFF, grant.note or NEVER)
            if grant is not None:
                return await self._run(passage, Happened.REMEMBERED)
            if gate.mode is ApprovalMode.AUTO_APPROVE:
                return await self._run(passage, Happened.AUTO_APPROVED)
            if self._was_reviewed(passage):
                return await self._run(passage, Happened.REVIEWED)
        if gate.mode is ApprovalMode.AUTO_DENY:
            raise self._refused(passage, "mode", "policy would ask, and nobody is asked in this run")
        # A run that was taken up is given all its calls as approved, which says nothing.
        claimed = passage.ctx.tool_call_approved and not (self.keeper is not None and self.keeper.given)
        said = ("an approval was claimed for this call, but none is on record",) if claimed else ()
        return await self._ask(passage, changed=said)

    async def _was_entered(self, passage: Passage) -> bool:
        """Whether this very call was let through before and paused with a run inside it: it is not to count twice."""
        call = passage.call
        about = entry_of(call, self.gate.policy.revision, granted=True)
        entry = KeptRun(id=entry_id(call.key), parent=self.run_id or call.key, options=about)
        return await self.gate.broker.runs.enter_again(entry)

    def _was_reviewed(self, passage: Passage) -> bool:
        """Whether another capability of this agent approved, in this very run, what the gate asked about."""
        if not (self.gate.reviewers and passage.ctx.tool_call_approved):
            return False
        asked = self.questions.asked.get(passage.call.key)
        return asked is not None and asked.passage.call.fingerprint == passage.call.fingerprint

    # --- a call with a request on record ---

    async def _run_recorded(self, passage: Passage, request: ApprovalRequest) -> Any:
        call, broker = passage.call, self.gate.broker
        if request.state not in OPEN:
            self.teller.settled(request)
        match request.state:
            case State.PENDING | State.UNKNOWN:
                raise self.questions.raise_for(Asked(request, passage))
            case State.SUCCEEDED | State.FAILED if self.keeper is not None and is_of(request, call, self.run_id):
                return await self._told_again(passage, request)
            case State.CANCELLED:
                return await self._ask(passage, changed=(settled_text(request),))
            case State.APPROVED:
                pass
            case _:
                raise self.refusal_on_record(passage, request)
        now = Binding(
            tool=call.tool,
            args_digest=call.args_digest,
            schema_hash=call.schema_hash,
            policy_revision=self.gate.policy.revision,
            toolset=call.toolset,
            root=call.start or self.gate.reader.root,
            leads=digest(call.resolved),
        )
        changed = now.changed_since(request.binding) or (("what cannot be shown of it",) if call.unreadable else ())
        if changed:
            reason = f"{settled_text(request)}, but {' and '.join(changed)} changed since it was asked"
            await broker.cancel(request.id, reason)
            return await self._ask(passage, changed=(reason,))
        if passage.verdict.effect is Effect.ASK and not self._agreed(request, passage.verdict.requirement):
            reason = f"{settled_text(request)}, but by now it needs {who(passage.verdict.requirement)}"
            await broker.cancel(request.id, reason)
            return await self._ask(passage, changed=(reason,))
        token, since = new_id(), steady_seconds()
        try:
            run, epoch = self.outer.fence(request) if self.outer is not None else ("", 0)
            broker.notes.hand_over()
            claimed = await broker.claim(request.id, run=run, epoch=epoch, token=token)
        except AlreadySpent as spent:
            raise self._refused(passage, SIGNOFF, str(spent)) from spent
        except AlreadySettled:  # it was withdrawn in the same instant
            return await self._run_recorded(passage, await broker.get(request.id))
        except asyncio.CancelledError:  # whether or not the claim was taken, nothing has run on it
            broker.stopping.give_back(request.id, token)
            raise
        return await self._run_claimed(passage, claimed, since)

    def _agreed(self, request: ApprovalRequest, requirement: Requirement) -> bool:
        """Whether those who approved are those whom the verdict of this moment wants."""
        if decision_of(request).by == SILENCE:
            return requirement.on_timeout is OnTimeout.ALLOW  # nobody answered, and the rule allows it in words
        if request.escalated:
            requirement = requirement.escalated
        agreed = approvals(
            requirement, request.votes, request.args_digest, requester=request.requester, owner=request.owner
        )
        return len(agreed) >= requirement.quorum

    async def _run_claimed(self, passage: Passage, request: ApprovalRequest, since: float) -> Any:
        broker = self.gate.broker
        token = request.claim.token if request.claim is not None else ""
        try:
            with self.nest.beside.running() if self.nest is not None else nullcontext():
                result = await self._run(passage, Happened.APPROVED, request, since)
        except CallDeferred:
            broker.finish(request.id, token=token)
            raise
        except (Pause, DoesNotFit):
            broker.inside.pause_later(request.id, token)
            raise
        except ApprovalRequired:
            await broker.ask_again(request.id)
            raise
        except (Halted, RunError):  # a run inside it was stopped: nobody knows how far it came
            broker.stopping.lose(request.id, token)
            raise
        except Exception as error:
            told = f"{type(error).__name__}: {error}"
            broker.finish(request.id, error=told, token=token, secrets=self.secrets)
            raise
        except BaseException:  # cancelled half-way: nobody knows how far the tool came
            broker.stopping.lose(request.id, token)
            raise
        kept = outcome_of(result) if broker.store.is_durable else Outcome()
        broker.finish(
            request.id,
            digest=kept.digest,
            preview=kept.preview,
            result=kept.kept,
            token=token,
            secrets=self.secrets,
        )
        return self._noticed(passage, request, result)

    async def _told_again(self, passage: Passage, request: ApprovalRequest) -> Any:
        """The call ran in a process that is gone, its result not in the history: it is told, not repeated."""
        result = told_again(request, await self.gate.broker.result(request.id))
        return self._noticed(passage, request, result)

    def _noticed(self, passage: Passage, request: ApprovalRequest, result: Any) -> Any:
        edited = decision_of(request).edited_args is not None
        return with_notice(result, passage.call.args) if edited else result

    # --- running ---

    async def _run(
        self, passage: Passage, why: Happened, request: ApprovalRequest | None = None, since: float = 0.0
    ) -> Any:
        """Carry the call out. With a request, which was claimed `since` that moment, only while the claim holds."""
        call = passage.call
        if request is not None and digest(as_json(passage.args, self.gate.reader.key)[0]) != call.args_digest:
            raise self._refused(passage, SIGNOFF, "its arguments changed while it was asked about")
        self.gate.broker.switch.check_now()
        self.teller.tell(why, passage, request=request)
        if passage.was_external:
            raise CallDeferred(metadata={REQUEST: {"verdict": str(passage.verdict.effect)}})
        if passage.above:
            self._tickets[call.call_id] = Ticket(
                self.reading.sealed(passage).call, request, why is not Happened.ALLOWED
            )
        if request is not None:
            await self.gate.broker.confirm(request, since)
        key = lambda: self.reading.sealed(passage).call.key  # noqa: E731 - made for every call, called for few
        nest = Nest(self, passage, request, self.gate.nested)
        around = Frame(call.worker, call.path, self.gate.named_approver(), self.outer, key, nest)
        frame = enter(around, passage.passed(answered=why is not Happened.ALLOWED, request=request))
        try:
            result = await nest.carried_out()
        except (Pause, DoesNotFit):
            raise
        except ApprovalRequired as own:
            # The tool's own body asks: from here on it is a question like any other.
            said = own.metadata
        except Exception as error:
            self.teller.tell(Happened.FAILED, passage, request=request, text=f"{type(error).__name__}: {error}")
            raise
        else:
            self.teller.tell(Happened.RAN, passage, request=request)
            if self.keeper is not None:
                self.keeper.returned(call.call_id, call.tool, result)
            return result
        finally:
            leave(frame)
            if passage.above:
                self._tickets.pop(call.call_id, None)
        verdict = strictest([passage.verdict, TOOL_ASKS]) or TOOL_ASKS
        return await self._ask(replace(self.reading.sealed(passage), verdict=verdict), said=said)

    # --- asking ---

    async def _ask(
        self, passage: Passage, *, changed: tuple[str, ...] = (), said: Mapping[str, Any] | None = None
    ) -> Any:
        request = await question(self.gate, self.outer, passage, changed=changed, said=said)
        asked = Asked(request, passage, said or {})
        # PydanticAI resolves a batch once: what is asked on the second pass of the same run is asked right here.
        if passage.call.key not in self.questions.asked or self.gate.suspends or said is not None:
            raise self.questions.raise_for(asked)
        [on_record] = await self.questions.open(passage.ctx, [asked])
        settled = (await self.questions.answers([on_record])).get(on_record.id)
        if settled is None:
            raise self.questions.raise_for(asked)
        edited = decision_of(settled).edited_args
        if edited is not None:
            passage = await self.reading.edited(passage, edited)
            if passage.verdict.effect is Effect.DENY:
                raise self._refused(passage, POLICY, passage.verdict.reason)
        return await self._run_recorded(passage, settled)

    def refusal_on_record(self, passage: Passage, request: ApprovalRequest) -> Exception:
        """Why a settled request does not let its call run: somebody said no, or the yes was used."""
        decision = decision_of(request)
        if request.state in (State.DENIED, State.EXPIRED, State.CANCELLED):
            return self._refused(passage, decided_by(decision), decided_why(decision))
        return self._refused(passage, SIGNOFF, f"{settled_text(request)}, and that was used: it runs once")

    def _refused(self, passage: Passage, by: str, reason: str) -> Exception:
        self.teller.tell(Happened.DENIED, passage, by=by, text=reason)
        if self.gate.on_denied == "raise":
            return refusal(passage.call.tool, by=by, reason=reason)
        return SkipToolExecution(denial(passage.call.tool, by=by, reason=reason))


def decision_of(request: ApprovalRequest) -> ApprovalDecision:
    """How a settled request was settled."""
    assert request.decision is not None, "a settled request has a decision"
    return request.decision
