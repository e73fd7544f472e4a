"""Chat clients: record their answers to waiting calls as votes of the signed-in person.

PydanticAI's adapters trust what the client says about a waiting call. The gate does not: a call runs only if the store
says that it was approved. So the answers are first put into the store, as votes of the person that the application has
signed in. The policy decides whether they are enough.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, cast

from pydantic_ai.tools import DeferredToolResults, ToolApproved

from signoff.core.decision import ApprovalDecision
from signoff.core.people import Actor
from signoff.core.request import ApprovalRequest
from signoff.errors import AlreadySettled, UnknownRequest, WrongUse
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


@dataclass(frozen=True, slots=True)
class _ClientAnswer:
    call_id: str
    decision: ApprovalDecision


async def take_interrupts(signoff: Signoff, run_input: InterruptedRun, *, by: Actor) -> DeferredToolResults | None:
    """Record the answers in an AG-UI request as votes of `by`, and return what the adapter runs the agent with.

    `by` is the person your application has signed in; what the client says about itself is ignored. The thread is the
    client's claim too: if not everybody may answer for everybody, check first that this thread belongs to this person.
    A request that somebody else has decided meanwhile stays as it is. A run whose calls need more votes is interrupted
    again. Returns None if the request contains no answer.

    Raises `WrongUse` before any answer is recorded if an answer is malformed, names no thread, or answers one question
    twice. Raises `UnknownRequest` if no such call of this thread was asked about, `NotEntitled` if this answer does not
    count, and `EditRefused` if edited arguments do not fit.
    """
    entries = [_interrupt(one) for one in cast("Sequence[Any]", getattr(run_input, "resume", None) or ())]
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
    results = DeferredToolResults()
    for entry in entries:
        request = asked[entry.call_id]
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


def _approval(part: Any) -> _ClientAnswer:
    """Read one answer of a Vercel AI client. It approves only if `approved` is explicitly true."""
    approved, reason = getattr(part.approval, "approved", None), getattr(part.approval, "reason", None)
    if not isinstance(approved, bool):
        raise WrongUse(f"the answer to the call {part.tool_call_id!r} should say `approved`: true or false")
    return _ClientAnswer(str(part.tool_call_id), ApprovalDecision(approved=approved, note=str(reason or "")))


def _interrupt(entry: Any) -> _ClientAnswer:
    """Read one answer of an AG-UI client. It approves only if `approved` is explicitly true."""
    name = str(entry.interrupt_id)
    if not name.startswith(PREFIX):
        raise WrongUse(f"the interrupt {name!r} is not one of signoff's: its id does not begin with {PREFIX!r}")
    call_id = name.removeprefix(PREFIX)
    if entry.status == CANCELLED:
        return _ClientAnswer(call_id, ApprovalDecision(approved=False, note="cancelled by the user"))
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
    )
