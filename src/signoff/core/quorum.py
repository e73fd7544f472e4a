"""Counting votes: who may answer, in whose place, and whether enough of them agree on the same arguments."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from signoff.core.people import NOBODY, Actor, ActorKind, Parties, person_key
from signoff.core.terms import is_plain
from signoff.core.verdict import Requirement
from signoff.core.visible_text import quoted
from signoff.core.vote import Vote


def why_not_entitled(requirement: Requirement, by: Actor, parties: Parties = NOBODY, *, denies: bool = False) -> str:
    """Why this actor's vote would not count, or an empty text when it does. A veto role may only deny."""
    if by.kind is ActorKind.MODEL:
        return f"{by.name} is a model; a person has to answer"
    if requirement.is_strict and by.kind is not ActorKind.PERSON:
        return f"{by.name} is not a person, and this needs {who(requirement)}"
    vetoes = denies and requirement.veto is not None and requirement.veto in by.roles
    if requirement.role is not None and requirement.role not in by.roles and not vetoes:
        return f"{by.name} does not have the role {role_text(requirement.role)}, and this needs {who(requirement)}"
    return why_excluded(requirement, by, parties)


def why_excluded(requirement: Requirement, by: Actor, parties: Parties) -> str:
    """Why the rule keeps this very person from answering, or an empty text."""
    excluded = {"requester": (parties.requester,) if parties.requester else (), "owner": parties.owners}
    for part in sorted(requirement.not_by):
        if not excluded.get(part):
            return f"the {part} is unknown, so signoff cannot exclude the {part}"
        if by.key in map(person_key, excluded[part]):
            return f"{by.name} is the {part}, who may not answer this"
    return ""


def entitled_as(
    requirement: Requirement,
    by: Actor,
    absent: Sequence[Actor],
    parties: Parties = NOBODY,
    *,
    denies: bool = False,
) -> tuple[Actor | None, str]:
    """In whose place an answer counts: None for the actor's own, or one of the `absent` they stand in for.

    The text says why it does not count, and is empty where it does. Whoever is excluded cannot stand in for somebody
    who is not, nor the other way round.
    """
    refusal = why_not_entitled(requirement, by, parties, denies=denies)
    if not refusal:
        return None, ""
    if by.kind is ActorKind.PERSON and not why_excluded(requirement, by, parties):
        for one in absent:
            if not why_not_entitled(requirement, one, parties, denies=denies):
                return one, ""
    return None, refusal


def approvals(
    requirement: Requirement, votes: Iterable[Vote], args_digest: str, parties: Parties = NOBODY
) -> frozenset[str]:
    """The distinct people who approved exactly these arguments and whose vote counts under this requirement.

    A deputy's vote counts as the vote of whom they stand in for: the two together are one. Nobody is counted twice for
    voting in their own name and in another's.
    """
    return frozenset(approvers(requirement, votes, args_digest, parties))


def approvers(
    requirement: Requirement, votes: Iterable[Vote], args_digest: str, parties: Parties = NOBODY
) -> dict[str, str]:
    """Those whom `approvals` counts, by their keys: the names they go by."""
    counted: dict[str, str] = {}
    seen: set[str] = set()
    for vote in votes:
        counts = not why_not_entitled(requirement, vote.principal, parties)
        fit = vote.by.key == vote.principal.key or not why_excluded(requirement, vote.by, parties)
        if vote.decision.approved and vote.args_digest == args_digest and counts and fit and vote.by.key not in seen:
            counted[vote.principal.key] = vote.principal.name
            seen.update((vote.by.key, vote.principal.key))
    return counted


def who(requirement: Requirement) -> str:
    """Who must agree, in words: the same ones wherever it is said."""
    if requirement.quorum > 1:
        text = f"{requirement.quorum} people"
    else:
        text = "somebody" if requirement.role is not None else "a person"
    if requirement.role is not None:
        text += f" with the role {role_text(requirement.role)}"
    if requirement.not_by:
        text += f", but not the {' or the '.join(sorted(requirement.not_by))}"
    return text


def role_text(role: str) -> str:
    """A role's name inside a sentence: in quotes where it could be taken for more than a name."""
    return role if is_plain(role) else quoted(role)


def needs_text(requirement: Requirement) -> str:
    """Who must agree, and who may say no besides them; empty where anyone may answer."""
    if not requirement.is_strict:
        return ""
    # Without a role anyone may say no.
    vetoes = requirement.veto if requirement.role is not None and requirement.veto != requirement.role else None
    return who(requirement) + (f"; the role {role_text(vetoes)} may deny, too" if vetoes is not None else "")
