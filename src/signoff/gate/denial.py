"""Build the refusal (permission denied) for the model or the caller, the same for policy and person."""

from __future__ import annotations

import json

from pydantic_ai.tools import ToolDenied

from signoff.errors import ApprovalBlocked, ApprovalDenied, ApprovalError
from signoff.gate.refusal_words import POLICY


def denial(tool: str, *, by: str, reason: str) -> ToolDenied:
    """Return the refusal as the model sees it: JSON with a permission error, the same for policy and person."""
    payload = {"error": "permission_denied", "tool": tool, "by": by, "reason": reason, "retryable": False}
    return ToolDenied(json.dumps(payload, ensure_ascii=False))


def refusal(tool: str, *, by: str, reason: str) -> ApprovalError:
    """Return the same refusal as an exception, for callers who asked for one."""
    kind = ApprovalBlocked if by == POLICY else ApprovalDenied
    return kind(f"{tool} was refused by {by}: {reason}", tool=tool, by=by)
