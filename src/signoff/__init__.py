"""Human sign-off for the tool calls of AI agents.

Everything a user needs by name is here, and nothing is loaded before it is used: `import signoff` costs next to
nothing, and PydanticAI is imported only with the parts that run agents.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from signoff.config import load_policy as load_policy
    from signoff.core.call import Call as Call
    from signoff.core.decision import ApprovalDecision as ApprovalDecision
    from signoff.core.mode import ApprovalMode as ApprovalMode
    from signoff.core.people import Actor as Actor
    from signoff.core.request import ApprovalRequest as ApprovalRequest
    from signoff.core.verdict import Effect as Effect
    from signoff.core.verdict import Verdict as Verdict
    from signoff.errors import ApprovalBlocked as ApprovalBlocked
    from signoff.errors import ApprovalDenied as ApprovalDenied
    from signoff.errors import ApprovalError as ApprovalError
    from signoff.errors import SignoffError as SignoffError
    from signoff.gate.agents import call_agent as call_agent
    from signoff.gate.calls import idempotency_key as idempotency_key
    from signoff.gate.capability import Signoff as Signoff
    from signoff.gate.deferred_tools import build_approval_requests as build_approval_requests
    from signoff.gate.deferred_tools import collect_approvals as collect_approvals
    from signoff.gate.deferred_tools import collect_approvals_sync as collect_approvals_sync
    from signoff.gate.deferred_tools import run_with_approval as run_with_approval
    from signoff.gate.deferred_tools import run_with_approval_sync as run_with_approval_sync
    from signoff.gate.resume import SuspendedRun as SuspendedRun
    from signoff.gate.resume import resume as resume
    from signoff.gate.resume import resume_run as resume_run
    from signoff.policy.engine import Policy as Policy
    from signoff.ports import ApprovalUI as ApprovalUI
    from signoff.store.grants import ApprovalMemory as ApprovalMemory
    from signoff.store.open import open_store as open_store
    from signoff.wiring.discord import DiscordApprovals as DiscordApprovals

__version__ = "0.1.0"

_HOME = {
    "Actor": "core.people",
    "ApprovalBlocked": "errors",
    "ApprovalDecision": "core.decision",
    "ApprovalDenied": "errors",
    "ApprovalError": "errors",
    "ApprovalMemory": "store.grants",
    "ApprovalMode": "core.mode",
    "ApprovalRequest": "core.request",
    "ApprovalUI": "ports",
    "Call": "core.call",
    "DiscordApprovals": "wiring.discord",
    "Effect": "core.verdict",
    "Policy": "policy.engine",
    "Signoff": "gate.capability",
    "SignoffError": "errors",
    "SuspendedRun": "gate.resume",
    "Verdict": "core.verdict",
    "build_approval_requests": "gate.deferred_tools",
    "call_agent": "gate.agents",
    "collect_approvals": "gate.deferred_tools",
    "collect_approvals_sync": "gate.deferred_tools",
    "idempotency_key": "gate.calls",
    "load_policy": "config",
    "open_store": "store.open",
    "resume": "gate.resume",
    "resume_run": "gate.resume",
    "run_with_approval": "gate.deferred_tools",
    "run_with_approval_sync": "gate.deferred_tools",
}

__all__ = sorted(_HOME)  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> object:
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module 'signoff' has no attribute {name!r}")
    value = getattr(import_module(f"signoff.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
