"""Count votes: who may answer, for whom a deputy answers, and whether a quorum agrees on the same arguments."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from signoff.core.people import NOBODY, Actor, ActorKind, Parties, person_key
from signoff.core.terms import is_plain
from signoff.core.verdict import Requirement
from signoff.core.visible_text import quoted
from signoff.core.vote import Vote


def why_not_entitled(requirement: Requirement, by: Actor, parties: Parties = NOBODY, *, denies: bool = False) -> str:
    """Why this actor's vote would not count, or an empty text if it counts. A veto role may only deny."""
    if by.kind is ActorKind.MODEL:
        return f"{by.name} is a model; a person has to answer"
    if requirement.is_strict and by.kind is not ActorKind.PERSON:
        return f"{by.name} is not a person, and this needs {who(requirement)}"
    vetoes = denies and requirement.veto is not None and requirement.veto in by.roles
    if requirement.role is not None and requirement.role not in by.roles and not vetoes:
        return f"{by.name} does not have the role {role_text(requirement.role)}, and this needs {who(requirement)}"
    return why_excluded(requirement, by, parties)


def why_excluded(requirement: Requirement, by: Actor, parties: Parties) -> str:
    """Why the rule excludes this person from answering (separation of duties), or an empty text."""
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
    """For whom an answer counts: None for the actor, or one of the `absent` people that the actor is a deputy of.

    The text says why it does not count, and is empty if it does. An excluded person cannot be the deputy of somebody
    who is not excluded, nor the other way round.
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
    """The distinct people who approved exactly these arguments, and whose votes count for this requirement.

    A deputy's vote counts as the vote of the absent person: the two together count once. A person who votes in their
    own name and for somebody else is counted once.
    """
    return frozenset(approvers(requirement, votes, args_digest, parties))


def approvers(
    requirement: Requirement, votes: Iterable[Vote], args_digest: str, parties: Parties = NOBODY
) -> dict[str, str]:
    """The people that `approvals` counts: their names, by their keys."""
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
    """Who must approve, in words. Every text uses the same ones."""
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
    """The name of a role in a sentence: in quotes if it could be read as more than a name."""
    return role if is_plain(role) else quoted(role)


def needs_text(requirement: Requirement) -> str:
    """Who must approve, and who else may deny; empty if anyone may answer."""
    if not requirement.is_strict:
        return ""
    # Without a role anyone may deny.
    vetoes = requirement.veto if requirement.role is not None and requirement.veto != requirement.role else None
    return who(requirement) + (f"; the role {role_text(vetoes)} may deny, too" if vetoes is not None else "")
