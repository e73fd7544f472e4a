"""Human sign-off for the tool calls of AI agents.

Most programs need only the names below. The rest of the documented API is in six packages: `signoff.errors`,
`signoff.channels`, `signoff.server`, `signoff.toolsets`, `signoff.workers` and `signoff.testing`; everything else is
private.
Names are imported lazily, on first use: `import signoff` is cheap, and PydanticAI is imported only with the parts that
run agents.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from signoff.lazy_names import lazy_names

if TYPE_CHECKING:
    from signoff.core.call import Call as Call
    from signoff.core.decision import ApprovalDecision as ApprovalDecision
    from signoff.core.event import CallEvent as CallEvent
    from signoff.core.mode import ApprovalMode as ApprovalMode
    from signoff.core.people import Actor as Actor
    from signoff.core.request import ApprovalRequest as ApprovalRequest
    from signoff.core.verdict import Effect as Effect
    from signoff.core.verdict import Verdict as Verdict
    from signoff.engine.answered_runs import ResumedRun as ResumedRun
    from signoff.engine.answered_runs import resume_answered as resume_answered
    from signoff.errors import SignoffError as SignoffError
    from signoff.gate.capability import Signoff as Signoff
    from signoff.gate.deferred_tools import build_approval_requests as build_approval_requests
    from signoff.gate.deferred_tools import collect_approvals as collect_approvals
    from signoff.gate.deferred_tools import collect_approvals_sync as collect_approvals_sync
    from signoff.gate.deferred_tools import run_with_approval as run_with_approval
    from signoff.gate.deferred_tools import run_with_approval_sync as run_with_approval_sync
    from signoff.gate.gated_agents import call_agent as call_agent
    from signoff.gate.resume import SuspendedRun as SuspendedRun
    from signoff.gate.resume import resume as resume
    from signoff.policy.engine import Policy as Policy
    from signoff.ports import ApprovalUI as ApprovalUI
    from signoff.ports import Approver as Approver
    from signoff.store.approval_memory import ApprovalMemory as ApprovalMemory

    __version__: str

_HOMES = {
    "Actor": "core.people",
    "ApprovalDecision": "core.decision",
    "ApprovalMemory": "store.approval_memory",
    "ApprovalMode": "core.mode",
    "ApprovalRequest": "core.request",
    "ApprovalUI": "ports",
    "Approver": "ports",
    "Call": "core.call",
    "CallEvent": "core.event",
    "Effect": "core.verdict",
    "Policy": "policy.engine",
    "ResumedRun": "engine.answered_runs",
    "Signoff": "gate.capability",
    "SignoffError": "errors",
    "SuspendedRun": "gate.resume",
    "Verdict": "core.verdict",
    "build_approval_requests": "gate.deferred_tools",
    "call_agent": "gate.gated_agents",
    "collect_approvals": "gate.deferred_tools",
    "collect_approvals_sync": "gate.deferred_tools",
    "resume": "gate.resume",
    "resume_answered": "engine.answered_runs",
    "run_with_approval": "gate.deferred_tools",
    "run_with_approval_sync": "gate.deferred_tools",
}

__all__ = sorted(_HOMES)  # pyright: ignore[reportUnsupportedDunderAll]

_find = lazy_names(__name__, _HOMES)


def __getattr__(name: str) -> object:
    if name == "__version__":
        from importlib.metadata import version

        return version("signoff")
    return _find(name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
