"""What a call returned: kept for a run that has to be taken up again, and told to the model from there."""

from __future__ import annotations

import json
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, cast

from pydantic_ai.messages import ToolReturn
from pydantic_core import PydanticSerializationError, from_json, to_json

from signoff.core.call import Call
from signoff.core.request import ApprovalRequest, State

LARGEST = 1_000_000
"""Bytes of a result that is kept. A larger one is known by its digest and its beginning."""
LONGEST_SHOWN = 100_000


@dataclass(frozen=True, slots=True)
class Outcome:
    """A result as it is kept."""

    digest: str = ""
    preview: str = ""
    kept: bytes | None = None


def outcome_of(result: Any) -> Outcome:
    """A tool's result as it is kept; empty where it has no JSON form."""
    value = cast("ToolReturn[Any]", result).return_value if isinstance(result, ToolReturn) else result
    try:
        text = to_json(value)
    except (PydanticSerializationError, ValueError):
        return Outcome(preview=f"<{type(value).__qualname__}>")
    shown = value if isinstance(value, str) else text[:LONGEST_SHOWN].decode("utf-8", "replace")
    return Outcome(sha256(text).hexdigest(), shown[:LONGEST_SHOWN], text if len(text) <= LARGEST else None)


def is_of(request: ApprovalRequest, call: Call, run: str) -> bool:
    """Whether a request is about this very call of a kept run: providers give the same id to different calls."""
    return request.run == run and request.tool_name == call.tool and request.args_digest == call.args_digest


def told_again(request: ApprovalRequest, kept: bytes | None) -> Any:
    """What the model is told of a call that ran in a process that has died since."""
    if kept is not None:
        return from_json(kept)
    claim = request.claim
    note: dict[str, Any] = {"note": "this call was made before, in a process that has ended since; it was not repeated"}
    if request.state is State.FAILED:
        note["error"] = claim.error if claim else ""
    elif claim is not None and claim.told_by:
        note["note"] = f"{claim.told_by} confirmed that this call happened; it was not repeated"
        note["result"] = claim.preview
    elif claim is not None:
        note["result, shortened"] = claim.preview
    return json.dumps({name: value for name, value in note.items() if value}, ensure_ascii=False)
