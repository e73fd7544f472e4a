"""Whether the answer to a request may be remembered for later calls, and whether more widely than for the same call."""

from __future__ import annotations

from signoff.core.decision import Keeps
from signoff.core.request import ApprovalRequest
from signoff.core.verdict import Wanted

LEADS_TO = "leads_to"
"""Metadata key of a request whose call leads to another one below: an answer to one alone does not cover both."""


def may_be_remembered(request: ApprovalRequest) -> bool:
    """Whether the answer may be remembered for later calls: one person is enough, and nothing is in doubt.

    If the rule wants a role, the answer counts for that role, if the place that keeps it knows who has which.
    """
    call, wanted = request.call, request.requirement.wanted
    by_role = wanted is Wanted.ROLE and request.keeps is Keeps.ALWAYS and not request.escalated
    if wanted is not Wanted.ANYONE and not by_role:
        return False
    if call is None or LEADS_TO in request.metadata:
        return False
    return not call.unreadable and not (request.verdict is not None and request.verdict.errors)


def may_be_widened(request: ApprovalRequest) -> bool:
    """Whether the answer may be remembered for more than exactly the same arguments."""
    if not request.may_vary or not may_be_remembered(request):
        return False
    is_edited = request.decision is not None and request.decision.edited_args is not None
    # Paths and commands were only checked for the original call.
    return not is_edited and not (request.verdict is not None and request.verdict.exactly)
