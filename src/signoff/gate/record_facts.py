"""Turn what is on record about a call into facts for its course."""

from __future__ import annotations

from collections.abc import Mapping

from signoff.core.call import Call
from signoff.core.grant import Grant
from signoff.core.quorum import approvals, who
from signoff.core.request import ApprovalRequest, Binding, State, digest_of_leads
from signoff.core.request_status import SILENCE, approval_text
from signoff.core.verdict import Effect, OnTimeout, Requirement, Verdict
from signoff.gate.course import Because, OnRecord, Recalled

ON_RECORD: Mapping[State, OnRecord] = {
    State.PENDING: OnRecord.OPEN,
    State.UNKNOWN: OnRecord.OPEN,
    State.APPROVED: OnRecord.APPROVED,
    State.DENIED: OnRecord.REFUSED,
    State.EXPIRED: OnRecord.REFUSED,
    State.CANCELLED: OnRecord.WITHDRAWN,
    State.CLAIMED: OnRecord.SPENT,
    State.SUCCEEDED: OnRecord.SPENT,
    State.FAILED: OnRecord.SPENT,
}
"""What the state of a request means for its call."""


def recalled_by(grant: Grant | None) -> Recalled:
    """Return what a grant says."""
    if grant is None:
        return Recalled.NOTHING
    return Recalled.ALWAYS if grant.approved else Recalled.NEVER


def agreed_to(request: ApprovalRequest, requirement: Requirement) -> bool:
    """Return whether those who approved are those whom the current verdict wants."""
    if request.decision is not None and request.decision.by == SILENCE:
        return requirement.on_timeout is OnTimeout.ALLOW  # nobody answered in time, and the rule explicitly allows that
    if request.escalated:
        requirement = requirement.escalated
    agreed = approvals(requirement, request.votes, request.args_digest, request.parties)
    return len(agreed) >= requirement.quorum


def stands_for(call: Call, earlier: ApprovalRequest | None) -> str:
    """Return what a question about a call stands for: the call that a person had edited to this one; empty if none."""
    if earlier is None or earlier.decision is None or not earlier.decision.approved:
        return ""
    return earlier.made_with if earlier.args_digest == call.args_digest != earlier.made_with else ""


def why_void(why: Because, request: ApprovalRequest, changed: tuple[str, ...], wanted: Requirement) -> str:
    """Say in words why an approval on record no longer counts: something changed, or others have to agree."""
    void = "that approval no longer counts"
    if why is Because.CHANGED:
        return f"{' and '.join(changed)} changed after the question; {approval_text(request)}; {void}"
    return f"by now it needs {who(wanted)}; {approval_text(request)} before; {void}"


def changed_since(
    call: Call,
    verdict: Verdict,
    request: ApprovalRequest,
    policy_revision: str,
    root: str,
    basis: Mapping[str, str] | None = None,
) -> tuple[str, ...]:
    """Say in words what changed since the call was approved.

    `root` is where paths start from by default, `basis` what a preview of the call would be made from now.
    """
    # Nobody has to agree to what policy now allows: a person's approval under the earlier rules is enough.
    is_allowed = verdict.effect is Effect.ALLOW
    now = Binding(
        tool=call.tool,
        args_digest=call.args_digest,
        schema_hash=call.schema_hash,
        policy_revision=request.policy_revision if is_allowed else policy_revision,
        toolset=call.toolset,
        root=call.start or root,
        leads=digest_of_leads(call.resolved),
        basis=basis or {},
    )
    return now.changed_since(request.binding) or (("what cannot be shown of it",) if call.unreadable else ())
