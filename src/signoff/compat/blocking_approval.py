"""The names of pydantic-ai-blocking-approval: a program written for it runs with its import changed.

Each name emits a `DeprecationWarning` that names the signoff equivalent. The toolsets need no change: a gate
understands their `needs_approval` and `get_approval_description` as they are.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from signoff.compat.blocking import (
        ApprovalBlocked,
        ApprovalCallback,
        ApprovalConfig,
        ApprovalController,
        ApprovalDecision,
        ApprovalDenied,
        ApprovalError,
        ApprovalMemory,
        ApprovalRequest,
        ApprovalResult,
        ApprovalToolset,
        SupportsApprovalDescription,
        SupportsNeedsApproval,
        needs_approval_from_config,
    )

__all__ = [
    "ApprovalBlocked",
    "ApprovalCallback",
    "ApprovalConfig",
    "ApprovalController",
    "ApprovalDecision",
    "ApprovalDenied",
    "ApprovalError",
    "ApprovalMemory",
    "ApprovalRequest",
    "ApprovalResult",
    "ApprovalToolset",
    "SupportsApprovalDescription",
    "SupportsNeedsApproval",
    "needs_approval_from_config",
]

_NEW_WAY = {
    "ApprovalBlocked": "signoff.errors.ApprovalBlocked, with Signoff(on_denied='raise')",
    "ApprovalCallback": "Signoff(approver=…): a function of a signoff.ApprovalRequest",
    "ApprovalConfig": "rules, with signoff.toolsets.with_approval(toolset, rules)",
    "ApprovalController": "Signoff(mode=…): interactive, auto_approve or auto_deny",
    "ApprovalDecision": "signoff.ApprovalDecision",
    "ApprovalDenied": "signoff.errors.ApprovalDenied, with Signoff(on_denied='raise')",
    "ApprovalError": "signoff.errors.ApprovalError",
    "ApprovalMemory": "signoff.ApprovalMemory",
    "ApprovalRequest": "signoff.ApprovalRequest",
    "ApprovalResult": "'allow', 'ask' or 'deny', or a signoff.Verdict",
    "ApprovalToolset": "Agent(toolsets=[toolset], capabilities=[Signoff(approver=…)])",
    "SupportsApprovalDescription": "a method describe_approval(name, args, ctx)",
    "SupportsNeedsApproval": "a method needs_approval(name, args, ctx)",
    "needs_approval_from_config": "rules, with signoff.toolsets.with_approval(toolset, rules)",
}


def __getattr__(name: str) -> Any:
    if name not in _NEW_WAY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from signoff.compat import blocking

    told = f"{name} of pydantic-ai-blocking-approval is deprecated; use {_NEW_WAY[name]}"
    warnings.warn(told, DeprecationWarning, stacklevel=2)
    return getattr(blocking, name)
