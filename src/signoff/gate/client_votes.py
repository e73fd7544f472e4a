"""Chat clients: record their answers to waiting calls as votes of the signed-in person.

PydanticAI's adapters trust what the client says about a waiting call. The gate does not: a call runs only if the store
says that it was approved. So the answers are first put into the store, as votes of the person that the application has
signed in. The policy decides whether they are enough.

An answer counts for exactly the call that the client shows: it has to be the call that is asked about now, with these
arguments. A client that shows another one is asked again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, cast

from pydantic_ai.tools import DeferredToolResults, ToolApproved

from signoff.core.canonical import digest
from signoff.core.decision import ApprovalDecision
from signoff.core.people import Actor
from signoff.core.request import ApprovalRequest, State
from signoff.core.strict_json import read_json
from signoff.errors import AlreadySettled, CannotCanonicalise, UnknownRequest, WrongUse
from signoff.gate.capability import Signoff

PREFIX = "int-"
"""The prefix that PydanticAI puts before a call id to name an interrupt of AG-UI."""
CANCELLED = "cancelled"
RESPONDED, WAITING = "approval-responded", "approval-requested"
"""The states of a tool call in a Vercel AI client: its user has answered, or has not."""


class InterruptedRun(Protocol):
    """What an AG-UI client sends: `ag_ui.core.RunAgentInput`."""

    @property
    def thread_id(self) -> str: ...


class ChatRequest(Protocol):
    """What a Vercel AI client sends: `pydantic_ai.ui.vercel_ai.request_types.RequestData`."""

    @property
    def id(self) -> str: ...


class _Shown(NamedTuple):
    """The call that a client shows."""

    tool: str = ""
    args: str = ""
    """Digest of the arguments; empty if it shows none."""

    def names(self, tool: str) -> bool:
        """Return whether it is that tool. A capability above the gate may put a prefix before its name."""
        return self.tool == tool or self.tool.endswith(f"_{tool}")


@dataclass(frozen=True, slots=True)
class _ClientAnswer:
    call_id: str
    decision: ApprovalDecision
    shown: _Shown

    def is_about(self, request: ApprovalRequest) -> bool:
        """Return whether the client shows what the request is about. Other arguments than the model's it cannot show.

        Whoever sends arguments of their own says what they approve, and a denial is about the call.
        """
        mine = self.decision
        if mine.approved and mine.edited_args is None and request.stands_for:
            return False
        return self.shown.names(request.tool_name) and self.shown.args in (request.made_with, request.written)


async def take_interrupts(signoff: Signoff, run_input: InterruptedRun, *, by: Actor) -> DeferredToolResults | None:
    """Record the answers in an AG-UI request as votes of `by`, and return what the adapter runs the agent with.

    `by` is the person your application has signed in; what the client says about itself is ignored. The thread is the
    client's claim too: if not everybody may answer for everybody, check first that this thread belongs to this person.
    A request that somebody else has decided meanwhile stays as it is. A run whose calls need more votes is interrupted
    again, and so is one whose client shows another call than the one that is asked about: that answer is not recorded.
    Returns None if the request contains no answer.

    Raises `WrongUse` before any answer is recorded if an answer is malformed, names no thread, answers one question
    twice, or is about a call that the messages do not have; or if it approves a call that is asked about with other
    arguments, which the client cannot show. Raises `UnknownRequest` if no such call of this thread was asked about,
    `NotEntitled` if this answer does not count, and `EditRefused` if edited arguments do not fit.
    """
    answers = cast("Sequence[Any]", getattr(run_input, "resume", None) or ())
    calls = _calls_in(cast("Sequence[Any]", getattr(run_input, "messages", None) or ())) if answers else {}
    entries = [_interrupt(one, calls) for one in answers]
    return await _taken(signoff, run_input.thread_id, entries, by)


async def take_approvals(signoff: Signoff, run_input: ChatRequest, *, by: Actor) -> DeferredToolResults | None:
    """Record the answers in a Vercel AI request as votes of `by`, and return what the adapter runs the agent with.

    The same as `take_interrupts`: `by` is the person your application has signed in, and the chat id is the client's
    claim. The answers are those in the last message of the assistant; a client can approve or deny, not edit.
    """
    messages = cast("Sequence[Any]", getattr(run_input, "messages", None) or ())
    last = next((one for one in reversed(messages) if one.role == "assistant"), None)
    parts = cast("Sequence[Any]", last.parts if last is not None else ())
    entries = [_approval(one) for one in parts if getattr(one, "state", None) == RESPONDED]
    others = [str(one.tool_call_id) for one in parts if getattr(one, "state", None) == WAITING]
    return await _taken(signoff, run_input.id, entries, by, others=others)


async def _taken(
    signoff: Signoff, conversation_id: str, entries: Sequence[_ClientAnswer], by: Actor, others: Sequence[str] = ()
) -> DeferredToolResults | None:
    """Record the answers. Without a result for the `others`, PydanticAI would drop the calls that still wait."""
    if not entries:
        return None
    if not conversation_id:  # runs without a conversation have nothing in common
        raise WrongUse("an answer to a waiting call has to name its thread")
    asked = {one.tool_call_id: one for one in await signoff.requests_of(conversation_id) if _was_shown(one)}
    for number, entry in enumerate(entries):
        if any(entry.call_id == other.call_id for other in entries[:number]):
            raise WrongUse(f"the call {entry.call_id!r} is answered twice")
        if entry.call_id not in asked:
            raise UnknownRequest(f"no call {entry.call_id!r} of this thread was asked about")
        _refuse_unshown(entry, asked[entry.call_id])
    results = DeferredToolResults()
    for entry in entries:
        request = asked[entry.call_id]
        if not entry.is_about(request):
            results.approvals[entry.call_id] = ToolApproved()  # by nobody's vote: the gate asks about what it finds
            continue
        try:
            request = await signoff.answer(request.id, entry.decision, by=by)
        except AlreadySettled:
            request = next(one for one in await signoff.requests_of(conversation_id) if one.id == request.id)
        # The gate reads from the store whether it was approved; it only has to be told with which arguments.
        other = request.other_args
        results.approvals[entry.call_id] = ToolApproved(override_args=dict(other) if other is not None else None)
    return DeferredToolResults(
        approvals={**{one: ToolApproved() for one in others if one in asked}, **results.approvals}
    )


def _was_shown(request: ApprovalRequest) -> bool:
    """Return whether a client was shown the request: it is about a call of the outermost run.

    A call of a nested agent may have the same id, and the client does not show it. Calls of other programs have
    conversations that a client could name as its thread.
    """
    return request.call is not None and request.call.path == request.tool_call_id


def _refuse_unshown(entry: _ClientAnswer, request: ApprovalRequest) -> None:
    """Raise `WrongUse` for an answer to what the client does not show, and cannot be made to show."""
    if not entry.shown.args:
        raise WrongUse(f"the messages do not have the call {entry.call_id!r}: send them with the answer")
    if request.stands_for and request.state is State.PENDING and not entry.is_about(request):
        raise WrongUse(
            f"the call {entry.call_id!r} is asked about with other arguments, which somebody chose for it and this "
            f"client does not show.\n  Answer it where they are shown: signoff show {request.id}"
        )


def _digest_of(args: object) -> str:
    """Return the digest of what a client shows as the arguments of a call; empty if it is no object."""
    if args is None or args == "":
        args = {}
    try:
        return digest(cast("dict[str, Any]", args)) if isinstance(args, dict) else ""
    except CannotCanonicalise:
        return ""


def _calls_in(messages: Sequence[Any]) -> dict[str, _Shown]:
    """Return what an AG-UI client shows by call id: the newest such call."""
    found: dict[str, _Shown] = {}
    for message in messages:
        for call in cast("Sequence[Any]", getattr(message, "tool_calls", None) or ()):
            with suppress(ValueError, RecursionError):
                text = str(call.function.arguments)
                found[str(call.id)] = _Shown(str(call.function.name), _digest_of(read_json(text) if text else {}))
    return found


def _approval(part: Any) -> _ClientAnswer:
    """Read one answer of a Vercel AI client. It approves only if `approved` is explicitly true."""
    approved, reason = getattr(part.approval, "approved", None), getattr(part.approval, "reason", None)
    if not isinstance(approved, bool):
        raise WrongUse(f"the answer to the call {part.tool_call_id!r} should say `approved`: true or false")
    decision = ApprovalDecision(approved=approved, note=str(reason or ""))
    name = getattr(part, "tool_name", None) or str(part.type).removeprefix("tool-")
    return _ClientAnswer(str(part.tool_call_id), decision, _Shown(name, _digest_of(getattr(part, "input", None))))


def _interrupt(entry: Any, calls: Mapping[str, _Shown]) -> _ClientAnswer:
    """Read one answer of an AG-UI client. It approves only if `approved` is explicitly true."""
    name = str(entry.interrupt_id)
    if not name.startswith(PREFIX):
        raise WrongUse(f"the interrupt {name!r} is not one of signoff's: its id does not begin with {PREFIX!r}")
    call_id = name.removeprefix(PREFIX)
    shown = calls.get(call_id, _Shown())
    if entry.status == CANCELLED:
        return _ClientAnswer(call_id, ApprovalDecision(approved=False, note="cancelled by the user"), shown)
    payload: object = entry.payload
    if not isinstance(payload, Mapping):
        raise WrongUse(f"the answer to the interrupt {name!r} should be an object with `approved`")
    said = cast("Mapping[str, Any]", payload)
    approved, edited, reason = said.get("approved"), said.get("editedArgs"), said.get("reason")
    if not isinstance(approved, bool):
        raise WrongUse(f"the answer to the interrupt {name!r} should say `approved`: true or false")
    if edited is not None and not isinstance(edited, dict):
        raise WrongUse(f"`editedArgs` in the answer to the interrupt {name!r} should be an object")
    if reason is not None and not isinstance(reason, str):
        raise WrongUse(f"`reason` in the answer to the interrupt {name!r} should be a text")
    return _ClientAnswer(
        call_id,
        ApprovalDecision(
            approved=approved,
            note=reason or "",
            edited_args=cast("dict[str, Any]", edited) if approved and edited is not None else None,
        ),
        shown,
    )
