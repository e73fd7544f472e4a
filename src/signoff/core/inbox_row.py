"""A request as a row in a list such as the inbox, and who has approved it so far."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime

from signoff.core.people import person_key
from signoff.core.quorum import approvers, needs_text, who
from signoff.core.request import ApprovalRequest, State
from signoff.errors import StoreDamaged

ALREADY = "; you have already approved it"
"""Suffix of the text about who must approve, for a viewer who has approved."""


def agreed(request: ApprovalRequest) -> int:
    """How many of the required people have approved the arguments that would run."""
    return len(agreed_by(request))


def needs_of(request: ApprovalRequest, viewer: str = "") -> str:
    """Who must approve and who has, the same on every screen; empty if anyone may answer. Not safe to show yet.

    `viewer` is the person who reads it, if it is one person.
    """
    requirement = request.requirement
    text = needs_text(requirement)
    if not text:
        return ""
    if request.escalated:
        text += f"; escalated, as {request.silence}"
    short = f"; {request.shortage}" if request.shortage and request.state is State.PENDING else ""
    if request.refused and request.state is State.PENDING:  # what it needs is said already
        short += f"; you may not approve it: {request.refused.removesuffix(f', and this needs {who(requirement)}')}"
    if not request.votes:
        return text + short
    # Only those who approved what is shown: somebody may have approved other arguments.
    agreed = approvers(requirement, request.votes, request.args_digest, request.parties)
    if agreed and requirement.quorum > 1:
        text += f"; {len(agreed)} of {requirement.quorum} ({', '.join(sorted(agreed.values()))})"
    if request.state is State.PENDING and viewer and has_approved(request, viewer, request.args_digest):
        return f"{text}{short}{ALREADY}"
    return text + short


def has_approved(request: ApprovalRequest, name: str, args_digest: str) -> bool:
    """Whether this person's approval of these arguments counts, in their own name or as a deputy."""
    key, counted = person_key(name), approvers(request.requirement, request.votes, args_digest, request.parties)
    return any(
        vote.by.key == key
        and vote.principal.key in counted
        and vote.decision.approved
        and vote.args_digest == args_digest
        for vote in request.votes
    )


def agreed_by(request: ApprovalRequest) -> dict[str, str]:
    """Who has approved the arguments that would run, by key. Names are not safe to show yet."""
    args_digest = request.votes[-1].args_digest if request.votes and request.decision is None else request.args_digest
    return approvers(request.requirement, request.votes, args_digest, request.parties)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunItem:
    """A request of a run, as far as it is told with the run."""

    id: str
    state: State
    title: str
    worker: str
    """The chain of workers, as in `triage > analyzer`."""
    at: datetime | None = None
    """When it was settled."""
    inside: bool = False
    """Whether its call was claimed before, and waits for runs inside it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One row of the inbox."""

    id: str
    state: State
    """`pending`, or `unknown`: somebody has to report whether the call was made."""
    title: str
    tool: str
    worker: str
    """The chain of workers, as in `triage > analyzer`."""
    run: str
    role: str
    """The role that is asked, after escalation; empty for anyone."""
    quorum: int
    votes: int
    """How many have answered, whether or not their answers count; `agreed` says how many count."""
    assigned: str
    opened_at: datetime
    deadline: datetime | None
    escalated: bool = False
    task: str = ""
    """The prompt of its run, and for whom it runs; safe to show."""
    session: str = ""
    """The session of an agent in another program, and its directory, in short; safe to show."""
    needs: str = ""
    """Who must approve and who has, in words; safe to show. Empty if anyone may answer."""
    apart: str = ""
    """What tells it from others of its run with the same title; safe to show."""
    is_short: bool = False
    """Whether too few people may approve it."""
    then: str = ""
    """What happens at the deadline, in words; safe to show. Empty without one."""
    questions: int = 0
    """Number of questions without an answer."""
    loosened: tuple[str, ...] = ()
    """How its run was loosened, one line each; safe to show."""
    damaged: str = ""
    """Why its row in the store cannot be read; then nothing else but the id is sure, and it cannot be answered."""

    def broken(self, error: StoreDamaged) -> Item:
        """Return the row for a request that cannot be read."""
        return replace(self, title=f"damaged: {error.place} {error.why}", damaged=str(error))


NOWHERE = datetime(9999, 1, 1, tzinfo=UTC)
"""When a request was opened whose row does not say it. Such rows are sorted last, and no page begins after one."""


def place_of(request: ApprovalRequest) -> Item:
    """An item with just enough to start a page after it."""
    assert request.opened_at is not None, "a request that is kept was opened"
    return unread_item(request.id, request.opened_at)


def unread_item(request_id: str, opened_at: datetime) -> Item:
    """An item of a request of which nothing else is read."""
    return Item(
        id=request_id,
        state=State.PENDING,
        title="",
        tool="",
        worker="",
        run="",
        role="",
        quorum=1,
        votes=0,
        assigned="",
        opened_at=opened_at,
        deadline=None,
    )
