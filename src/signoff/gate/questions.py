"""The requests of one run: what it asks, what is on record about its calls, and the wait for answers."""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple, cast

from pydantic_ai import RunContext
from pydantic_ai.exceptions import ApprovalRequired
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.tools import DeferredToolRequests

from signoff.broker import new_id
from signoff.channels.approver import ApproverChannel
from signoff.core.call import Call
from signoff.core.canonical import digest
from signoff.core.card import safe_summary
from signoff.core.lifecycle import OPEN
from signoff.core.preview import basis_of, differing
from signoff.core.redact import redact
from signoff.core.request import ApprovalRequest, State, WithEdit
from signoff.core.request_context import (
    LONGEST_PROMPT,
    LONGEST_WORDS,
    MOST_CALLS,
    PastCall,
    RequestContext,
    shortened,
)
from signoff.core.result_text import exit_text
from signoff.core.summary import call_words, summary_of
from signoff.delivery.local_channel import Attended
from signoff.errors import AlreadySettled, CannotCanonicalise, NobodyHere, RequestError
from signoff.gate.answers import GateAnswers, request_with_edit
from signoff.gate.gate import Gate
from signoff.gate.gated_calls import GatedCall, made_at, named_approver, newest_response, places_here
from signoff.gate.nesting import Level, progress_around
from signoff.gate.record_facts import stands_for
from signoff.gate.tools import origin_of
from signoff.gate.workflow_loop import refuse_to_wait
from signoff.ports import ApproverLike

REQUEST = "signoff"
"""Key in a deferred call's metadata that holds the reference to the request."""

CheckEdit = Callable[[GatedCall, ApprovalRequest, Mapping[str, Any]], Awaitable[Mapping[str, Any]]]


@dataclass(frozen=True, slots=True)
class Question:
    """A call this run asks about."""

    request: ApprovalRequest
    gated: GatedCall
    said: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """What the tool itself said when it asked."""
    public: dict[str, Any] = field(default_factory=dict[str, Any])
    """The public part of it, in the metadata of the deferred call."""


async def question_about(
    gated: GatedCall, *, changed: tuple[str, ...] = (), said: Mapping[str, Any] | None = None
) -> Question:
    """Build the question about a call, with everything that an approver has to know.

    `changed` says why an earlier answer does not count, `said` is what the tool itself said when it asked.
    """
    call, gate, root = gated.sealed, gated.level.gate, gated.level.root
    metadata = {**await gated.described(), **(said or {})}
    request = ApprovalRequest.made(
        id=new_id(),
        tool_call_id=call.call_id,
        tool_name=call.tool,
        args=call.args,
        metadata=metadata,
        summary=summary_of(call.tool, call.args, metadata),
        call=call,
        may_vary=gate.reader.varying(call),
        verdict=gated.verdict,
        policy_revision=gate.policy.revision,
        schema=gated.tool.tool_def.parameters_json_schema,
        context=await context_of(gated),
        changed=changed,
        stands_for=stands_for(call, gated.on_record),
        written=_written(gated, call),
        requester=(root.run.requester if root is not None else "") or str(gate.requester),
        owners=gate.owners,
        run=root.run.id if root is not None else "",
        root=call.start or gate.reader.root,
        keeps=gate.answers.memory.keeps,
    )
    request = request.changed_to(
        secrets=secrets_in(request, gate.secrets), title=safe_summary(request, secrets=gate.secrets)
    )
    return Question(request, gated, said or {})


def _written(gated: GatedCall, call: Call) -> str:
    """Return the digest of the arguments as the model wrote them; empty if the tool takes them as they are."""
    response = newest_response(gated.ctx.messages)
    parts = response.tool_calls if response is not None else ()
    part = next((one for one in parts if one.tool_call_id == call.call_id and one.tool_name == call.tool), None)
    with suppress(ValueError, AssertionError, CannotCanonicalise):  # a model may write anything
        wrote = part.args_as_dict() if part is not None else call.args
        if repr(wrote) == repr(call.args):  # most tools take them as they are
            return ""
        found = digest(wrote)
        return found if found != call.args_digest else ""
    return ""


def secrets_in(request: ApprovalRequest, secrets: Sequence[str]) -> tuple[str, ...]:
    """Return the declared secrets that occur in a request: whatever shows it in another process does not know them."""
    if not secrets:
        return ()
    why = request.verdict.reason if request.verdict is not None else ""
    told = [request.context.prompt, request.context.words]
    texts = json.dumps([request.args, request.metadata, request.summary, why, *told], ensure_ascii=False, default=str)
    return tuple(one for one in secrets if one and (one in texts or json.dumps(one)[1:-1] in texts))


# --- what led to a question ---


async def context_of(gated: GatedCall) -> RequestContext:
    """Return what the run is for, what its model says, the calls before this one, and what was loosened."""
    level, response = gated.level, newest_response(gated.ctx.messages)
    if level.context is None or level.context[0] is not response:  # the same for all calls of a response
        level.context = (response, await _context(gated, response))
    return level.context[1]


async def _context(gated: GatedCall, response: ModelResponse | None) -> RequestContext:
    said = [part.content for part in response.parts if isinstance(part, TextPart)] if response is not None else []
    outermost, level = gated.ctx, gated.level
    while level.enclosing is not None:
        outermost, level = level.enclosing.ctx, level.enclosing.level
    gate, root = gated.level.gate, gated.level.root
    return RequestContext(
        prompt=shortened(_prompt(outermost.messages), LONGEST_PROMPT),
        words=shortened("\n".join(said), LONGEST_WORDS),
        recent=await _recent(gated),
        loosened=gate.loosened | root.run.setup.loosened if root is not None else gate.loosened,
    )


def _prompt(messages: Sequence[ModelMessage]) -> str:
    """Return the text of the last prompt in a history."""
    for message in reversed(messages):
        for part in reversed(message.parts) if isinstance(message, ModelRequest) else ():
            if isinstance(part, UserPromptPart):
                content = [part.content] if isinstance(part.content, str) else part.content
                return "\n".join(one for one in content if isinstance(one, str))
    return ""


async def _recent(gated: GatedCall) -> tuple[PastCall, ...]:
    """Return the last calls of the run that have a result, as they ran."""
    past = _past_calls(gated.ctx.messages)
    level = gated.level
    keys = [_key_of(one, gated) for one in past]
    # Calls of this run were noted when they ran. Of earlier ones the history has only what the model wrote.
    before = [
        key
        for key, one in zip(keys, past, strict=True)
        if one.response.run_id != gated.ctx.run_id and key not in level.ran_with
    ]
    if before:
        asked = await level.gate.broker.store.read(lambda tx: [tx.requests.about(key) for key in before])
        for key, request in zip(before, asked, strict=True):
            level.ran_with[key] = request.other_args if request is not None else None
    return tuple(
        PastCall(summary=_summary(one, gated, level.ran_with.get(key)), outcome=_outcome(one.result))
        for key, one in zip(keys, past, strict=True)
    )


class _Past(NamedTuple):
    response: ModelResponse
    call: ToolCallPart | None
    result: ToolReturnPart


def _past_calls(messages: Sequence[ModelMessage]) -> list[_Past]:
    """Return the last calls of a history that have a result, oldest first."""
    found: list[_Past] = []
    ended: list[ToolReturnPart] = []
    for message in reversed(messages):
        if isinstance(message, ModelRequest):
            ended += [part for part in reversed(message.parts) if isinstance(part, ToolReturnPart)]
            continue
        # The results of a response's calls come right after it: providers reuse call ids.
        made = {part.tool_call_id: part for part in message.parts if isinstance(part, ToolCallPart)}
        found += [_Past(message, made.get(part.tool_call_id), part) for part in ended]
        ended.clear()
        if len(found) >= MOST_CALLS:
            break
    return found[:MOST_CALLS][::-1]


def _key_of(past: _Past, gated: GatedCall) -> str:
    """Return the key of an earlier call beside this one."""
    around, call_id = gated.path.rpartition("/")[0], past.result.tool_call_id
    where = made_at(past.response, gated.ctx.run_id or "")
    return Call(tool="", call_id=call_id, run_id=where, path=f"{around}/{call_id}" if around else "").key


def _outcome(result: ToolReturnPart) -> str:
    """How a call ended, as in `PastCall`."""
    ended = exit_text(result.content) if isinstance(result.content, str) else ""
    return ended if ended and result.outcome == "success" else result.outcome


def _summary(past: _Past, gated: GatedCall, ran_with: Mapping[str, Any] | None) -> str:
    made = ran_with
    if made is None:
        with suppress(ValueError, AssertionError):  # a model may write anything
            made = past.call.args_as_dict() if past.call is not None else None
    return _line(past.result.tool_name, made or {}, gated)


def _line(name: str, args: Mapping[str, Any], gated: GatedCall) -> str:
    """Name a call of the same run as its title would: in words, where its toolset has words for its calls."""
    ctx, gate = gated.ctx, gated.level.gate
    tool = ctx.tool_manager.tools.get(name) if ctx.tool_manager and ctx.tool_manager.tools else None
    labels = frozenset[str]()
    if tool is not None and (origin := origin_of(tool)).has_words:
        with suppress(Exception):  # a toolset's own code, and nothing but the words depends on it
            labels = gate.reader.labels_of(ctx, tool.tool_def, args, origin)
    shown: Mapping[str, Any] = {}
    with suppress(ValueError, CannotCanonicalise):
        shown = redact(args, secrets=gate.secrets).args
    return call_words(name, labels, shown)


@dataclass(slots=True)
class Questions:
    """The questions of a run. A call is identified by its key, because providers reuse call ids within a run."""

    level: Level
    on_open: Callable[[GatedCall, ApprovalRequest], None]
    """Called for every request this run opens."""
    check_edit: CheckEdit
    with_edit: Callable[[GatedCall, ApprovalRequest, Mapping[str, Any]], Awaitable[ApprovalRequest]]
    """Returns a request as it would be asked with a person's arguments."""
    asked: dict[str, Question] = field(default_factory=dict[str, Question])
    """Everything asked in this run, answered or not, by call key."""
    waiting: set[str] = field(default_factory=set[str])
    """Ids of requests this run opened that have no answer yet."""
    parked: bool = False
    """Whether the run leaves requests unanswered, so that it has to suspend."""
    made_here: dict[int, ModelResponse] = field(default_factory=dict[int, ModelResponse])
    """The responses the model gave in this run, by identity: their calls cannot be on record from before."""
    gate: Gate = field(init=False)

    def __post_init__(self) -> None:
        self.gate = self.level.gate

    def is_new(self, ctx: RunContext[Any]) -> bool:
        """Return whether the current calls were made in this run, so that nothing from before can be on record."""
        response = newest_response(ctx.messages)
        return response is not None and id(response) in self.made_here

    async def about(self, ctx: RunContext[Any], call: Call) -> ApprovalRequest | None:
        """Return the newest request about a call.

        A resumed call can lose its place if its history was rewritten or moved into another conversation. Then a
        request about the same call id and arguments counts, or one that was approved with these arguments: neither a
        denial nor a used approval is lost.
        """
        # The request was settled when the run was resumed. If something happened to it since, the claim will say so.
        saver = self.level.saver
        known = saver.known.pop(call.key, None) if saver is not None else None
        if known is not None and known.state not in (*OPEN, State.CANCELLED):
            return known
        if (found := await self.gate.broker.about(call.key)) is not None:
            return found
        if self.is_new(ctx):
            return None
        for request in reversed(await self.gate.broker.of_conversation(call.conversation_id)):
            if _is_about(request, call):
                spoken = request.state not in (*OPEN, State.APPROVED, State.CANCELLED)
                return request if spoken or ctx.tool_call_approved else None
        return None

    async def void(self, call: Call, reason: str) -> None:
        """Cancel an approval on record because policy now denies the call it was given for."""
        request = await self.gate.broker.about(call.key)
        if request is not None and request.state is State.APPROVED:
            with suppress(RequestError):  # it was used or withdrawn at the same moment
                await self.gate.broker.cancel(request.id, f"policy denies it: {reason}")

    def raise_for(self, question: Question) -> ApprovalRequired:
        """Note a question, and return the exception that makes PydanticAI defer the call."""
        request = question.request
        self.asked[question.gated.call.key] = question
        # Metadata reaches traces and user interfaces: only what the tool itself said, one safe line, and a reference.
        question.public.update(
            request=request.id,
            reason=request.verdict.reason if request.verdict else "",
            rules=list(request.verdict.rules) if request.verdict else [],
            worker=list(request.worker),
            changed=list(request.changed),
        )
        line = request.title or safe_summary(request, secrets=self.gate.secrets)
        return ApprovalRequired(metadata={"summary": line, **question.said, REQUEST: question.public})

    async def open(
        self, ctx: RunContext[Any], questions: Sequence[Question], deferred: DeferredToolRequests | None = None
    ) -> list[ApprovalRequest]:
        """Open the requests that are not open yet, save the run with them, and return all as they are on record.

        Calls that ran meanwhile may have changed what a preview shows: it is made anew, also of a request that is open.
        """
        questions = [await self._as_now(one) for one in questions]
        fresh = [self._with_neighbours(one) for one in questions if one.request.opened_at is None]
        known = await self._open(ctx, fresh, deferred)
        opened = {new.id: request for new, request in zip(fresh, known, strict=True)}
        requests: list[ApprovalRequest] = []
        for one in questions:
            request = opened.get(one.request.id) or await self.gate.broker.get(one.request.id)
            if request.id == one.request.id and one.request.opened_at is None:
                self.on_open(one.gated, request)
                self.waiting.add(request.id)
            one.public["request"] = request.id
            self.gate.answers.edits[request.id] = partial(self.check_edit, one.gated, request)
            described = partial(self.with_edit, one.gated, request)
            self.gate.answers.with_edits[request.id] = partial(request_with_edit, asyncio.get_running_loop(), described)
            requests.append(request)
        return requests

    def _with_neighbours(self, question: Question) -> ApprovalRequest:
        """Return the request with the calls of the same response that are over: they are in no history yet."""
        request, newest = question.request, newest_response(question.gated.ctx.messages)
        over = [
            PastCall(summary=_line(one.call.tool, one.call.args, question.gated), outcome=one.outcome)
            for one in self.level.over
            if one.response is newest and one.call.call_id != request.tool_call_id
        ]
        if not over:
            return request
        recent = (*request.context.recent, *over)[-MOST_CALLS:]
        return request.changed_to(context=replace(request.context, recent=recent))

    async def _as_now(self, question: Question) -> Question:
        """Return the question with a preview of now. An open request whose preview is outdated is withdrawn."""
        request = question.request
        if not (then := basis_of(request.metadata)):
            return question
        changed = differing(then, basis_of(await question.gated.described()))
        if not changed:
            return question
        why: tuple[str, ...] = ()
        if request.opened_at is not None:
            why = (f"{' and '.join(changed)} changed after this was asked",)
            try:
                await self.gate.broker.cancel(request.id, why[0])
            except AlreadySettled:  # an approval of what is outdated is noticed when the call is about to run
                return question
        renewed = await question_about(question.gated, changed=why, said=question.said)
        renewed = replace(renewed, public=question.public)
        self.asked[question.gated.call.key] = renewed
        self.waiting.discard(request.id)
        return renewed

    async def _open(
        self, ctx: RunContext[Any], fresh: Sequence[ApprovalRequest], deferred: DeferredToolRequests | None
    ) -> list[ApprovalRequest]:
        gate, level = self.gate, self.level
        gate.broker.audit_buffer.flush()
        if level.saver is None or deferred is None:
            if level.root is not None:
                return await level.root.opened_inside(fresh, gate.policy, places_here())
            return await gate.broker.open(fresh, policy=gate.policy, places=places_here())
        opened = await level.saver.opened(
            ctx,
            fresh,
            deferred,
            gate.policy,
            put_down=gate.suspends,
            around=partial(progress_around, level),
            places=places_here(),
        )
        if level.enclosing is not None:
            level.enclosing.saved()
        return opened

    async def answers(self, requests: Sequence[ApprovalRequest]) -> Mapping[str, ApprovalRequest]:
        """Wait as long as this gate waits, and return the requests that are settled, by id."""
        if not requests or self.gate.suspends:
            return {}
        settled = await wait_for_answers(self.gate, requests)
        self.waiting.difference_update(settled)
        return settled

    def withdraw(self, reason: str) -> None:
        """Withdraw the run's open requests, because the run is over."""
        asked = {str(one.public["request"]) for one in self.asked.values() if "request" in one.public}
        if open_still := sorted(self.waiting | asked):
            self.gate.broker.withdraw(open_still, reason)
        self.waiting.clear()


# --- waiting in place: the approver is asked, and the first answer from anywhere wins ---


async def wait_for_answers(gate: Gate, requests: Sequence[ApprovalRequest]) -> Mapping[str, ApprovalRequest]:
    """Wait until all requests are settled, nobody is left to ask, or the timeout passes; return the settled by id."""
    broker, answers = gate.broker, gate.answers
    approver = named_approver(gate.approver)
    if approver is None or not inspect.iscoroutinefunction(getattr(approver, "choose", approver)):
        refuse_to_wait("an approver that is no async function")
    if approver is None:
        approver = gate.default_approver()
    channel = ApproverChannel(
        approver, name="approver", in_place=True, mode=gate.mode, is_moot=answers.answer_from_memory
    )
    with _previewing_edits(approver, answers, requests):
        async with Attended(broker, channel, answers.take) as attended:
            await attended.show(requests)
            await attended.settled(broker.clock.now() + gate.wait if gate.wait else None)
            failure = attended.failure.__cause__ if attended.failure is not None else None
            if failure is not None and not isinstance(failure, NobodyHere):
                raise failure
    settled = [await attended.now(request.id) for request in requests]
    return {request.id: request for request in settled if request.state not in OPEN}


@contextmanager
def _previewing_edits(
    approver: ApproverLike, answers: GateAnswers, requests: Sequence[ApprovalRequest]
) -> Generator[None]:
    """Within the context, an approver can show what edited arguments would change, if it has `preview_edits`."""
    method = getattr(approver, "preview_edits", None)
    if not callable(method):
        yield
        return
    tell = cast("Callable[[str, WithEdit | None], None]", method)
    for request in requests:
        tell(request.id, answers.with_edits.get(request.id))
    try:
        yield
    finally:
        for request in requests:
            tell(request.id, None)


def _is_about(request: ApprovalRequest, call: Call) -> bool:
    """Return whether a request is about the call with this id, asked about or approved with these arguments."""
    asked = request.call
    if asked is None or asked.call_id != call.call_id or asked.tool != call.tool:
        return False
    return asked.fingerprint == call.fingerprint or request.args_digest == call.args_digest
