"""A request as it stands in a list: what one needs to choose which to open."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from signoff.core.quorum import approvals
from signoff.core.request import ApprovalRequest, State


def agreed(request: ApprovalRequest) -> int:
    """How many of the people it needs have approved what would run."""
    args_digest = request.votes[-1].args_digest if request.votes and request.decision is None else request.args_digest
    return len(approvals(request.requirement, request.votes, args_digest, request.parties))


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One line of the inbox."""

    id: str
    state: State
    """`pending`, or `unknown`: somebody has to say whether the call happened."""
    title: str
    tool: str
    worker: str
    """The chain of workers, as `triage > analyzer`."""
    run: str
    role: str
    """Who is asked, after escalation; empty for anyone."""
    quorum: int
    votes: int
    """How many have answered so far, whether or not their answers count; `agreed` says how many do."""
    assigned: str
    opened_at: datetime
    deadline: datetime | None
    escalated: bool = False
    task: str = ""
    """What its run was told to do, and for whom, as it may be shown."""
    loosened: tuple[str, ...] = ()
    """What whoever started its run loosened, as it may be shown, a line each."""
