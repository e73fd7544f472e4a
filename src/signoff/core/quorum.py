"""Counting votes: who may answer, and whether enough of them agree on the same arguments."""

from __future__ import annotations

from collections.abc import Iterable

from signoff.core.people import Answerer, AnswererKind, person_key
from signoff.core.verdict import Requirement
from signoff.core.vote import Vote


def why_not_entitled(requirement: Requirement, by: Answerer, *, requester: str = "", owner: str = "") -> str:
    """Why this answerer's vote would not count, or an empty text when it does."""
    if by.kind is AnswererKind.MODEL:
        return f"{by.name} is a model; a person has to answer"
    if requirement.is_strict and by.kind is not AnswererKind.PERSON:
        return f"{by.name} is not a person, and this needs {who(requirement)}"
    if requirement.role is not None and requirement.role not in by.roles:
        return f"{by.name} does not have the role {requirement.role!r}, and this needs {who(requirement)}"
    excluded = {"requester": requester, "owner": owner}
    for part in sorted(requirement.not_by):
        if not excluded.get(part):
            return f"the {part} is not known, so nobody can be told apart from the {part}"
        if person_key(excluded[part]) == by.key:
            return f"{by.name} is the {part}, who may not answer this"
    return ""


def approvals(
    requirement: Requirement, votes: Iterable[Vote], args_digest: str, *, requester: str = "", owner: str = ""
) -> frozenset[str]:
    """The distinct people who approved exactly these arguments and whose vote counts under this requirement."""
    return frozenset(
        vote.by.key
        for vote in votes
        if vote.decision.approved
        and vote.args_digest == args_digest
        and not why_not_entitled(requirement, vote.by, requester=requester, owner=owner)
    )


def who(requirement: Requirement) -> str:
    """Who must agree, in words."""
    if requirement.role is None:
        return "a person" if requirement.quorum == 1 else f"{requirement.quorum} people"
    if requirement.quorum == 1:
        return f"somebody with the role {requirement.role!r}"
    return f"{requirement.quorum} people with the role {requirement.role!r}"
