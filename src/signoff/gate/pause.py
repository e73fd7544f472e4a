"""What a paused conversation waits for, and what PydanticAI is told when it continues."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pydantic_ai.conversation import Conversation
from pydantic_ai.messages import ModelResponse, ToolCallPart
from pydantic_ai.tools import DeferredToolRequests, DeferredToolResults, ToolApproved

from signoff.core.request import ApprovalRequest, State
from signoff.gate.denial import denial
from signoff.gate.gated_calls import Places
from signoff.gate.refusal_words import decided_by, decided_why


def results_of(
    conversation: Conversation, known: Mapping[str, ApprovalRequest], path: str = "", *, raises: bool = False
) -> DeferredToolResults | None:
    """Return the results to continue with, from the requests by call key; None if the model is called next.

    If a denial `raises`, it is left to the gate, which has it on record.
    """
    if conversation.deferred_tool_requests is None:
        return None
    results = DeferredToolResults()
    for call_id, key in waited_for(conversation, path).items():
        results.approvals[call_id] = _result(known.get(key), raises=raises)
    return results


def waited_for(conversation: Conversation, path: str = "") -> dict[str, str]:
    """Return the calls whose result is not in the history, except external ones: call key by call id.

    `path` is the call that the conversation is nested in.
    """
    requests = conversation.deferred_tool_requests or DeferredToolRequests()
    places, prefix = Places(), f"{path}/" if path else ""
    return {
        part.tool_call_id: f"{places.of(conversation.messages, part.tool_call_id, '')}:{prefix}{part.tool_call_id}"
        for part in (*requests.approvals, *_untold(conversation, requests))
    }


def _untold(conversation: Conversation, requests: DeferredToolRequests) -> Iterator[ToolCallPart]:
    """Return the other calls without a result in the history: refused, or failed. The model is told of them again."""
    known = {part.tool_call_id for part in (*requests.approvals, *requests.calls)}
    for message in reversed(conversation.messages):
        if isinstance(message, ModelResponse):
            yield from (part for part in message.tool_calls if part.tool_call_id not in known)
            return
        known |= {getattr(part, "tool_call_id", "") for part in message.parts}


def _result(request: ApprovalRequest | None, *, raises: bool) -> Any:
    """Return what PydanticAI is told. `ToolApproved` grants nothing: the gate checks the record, and asks if needed."""
    if request is None or request.decision is None:
        return ToolApproved()
    decision = request.decision
    if request.state in (State.DENIED, State.EXPIRED) and not raises:
        return denial(request.tool_name, by=decided_by(decision), reason=decided_why(decision))
    return ToolApproved(override_args=dict(other) if (other := request.other_args) is not None else None)
