"""A request as it stands in a list: what one needs to choose which to open."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from signoff.core.people import person_key
from signoff.core.quorum import approvers, needs_text
from signoff.core.request import ApprovalRequest, State

ALREADY = "; you have already approved it"
"""At the end of who must agree, for whoever did."""


def agreed(request: ApprovalRequest) -> int:
    """How many of the people it needs have approved what would run."""
    return len(_agreed_by(request))


def agreed_text(request: ApprovalRequest) -> str:
    """How many have approved what would run, of how many, and who: `1 of 2 (ana)`. Names are not yet safe to show."""
    names = sorted(_agreed_by(request).values())
    return f"{len(names)} of {request.requirement.quorum}" + (f" ({', '.join(names)})" if names else "")


def needs_of(request: ApprovalRequest, viewer: str = "") -> str:
    """Who must agree and who has, the same on every screen; empty where anyone may answer. Not yet safe to show.

    `viewer` is who reads it, where that is one person.
    """
    requirement = request.requirement
    text = needs_text(requirement)
    if not text:
        return ""
    if request.escalated:
        text += f"; escalated, as {request.silence}"
    if not request.votes:
        return text
    # Those who approved what is shown: somebody may have approved other arguments.
    agreed = approvers(requirement, request.votes, request.args_digest, request.parties)
    if agreed and requirement.quorum > 1:
        text += f"; {len(agreed)} of {requirement.quorum} ({', '.join(sorted(agreed.values()))})"
    if request.state is State.PENDING and viewer and has_approved(request, viewer, request.args_digest):
        text += ALREADY
    return text


def has_approved(request: ApprovalRequest, name: str, args_digest: str) -> bool:
    """Whether this person approved these arguments and it counts, in their own name or in another's."""
    key, counted = person_key(name), approvers(request.requirement, request.votes, args_digest, request.parties)
    return any(
        vote.by.key == key
        and vote.principal.key in counted
        and vote.decision.approved
        and vote.args_digest == args_digest
        for vote in request.votes
    )


def _agreed_by(request: ApprovalRequest) -> dict[str, str]:
    args_digest = request.votes[-1].args_digest if request.votes and request.decision is None else request.args_digest
    return approvers(request.requirement, request.votes, args_digest, request.parties)


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
    needs: str = ""
    """Who must agree and who has, in words, as it may be shown; empty where anyone may answer."""
    questions: int = 0
    """How many were asked back and not answered."""
    loosened: tuple[str, ...] = ()
    """What whoever started its run loosened, as it may be shown, a line each."""
