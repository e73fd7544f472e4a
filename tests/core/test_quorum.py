"""Counting votes: of people, each of them once."""

from __future__ import annotations

from datetime import UTC, datetime

from signoff.core.decision import ApprovalDecision
from signoff.core.people import Actor
from signoff.core.quorum import approvals
from signoff.core.verdict import Requirement
from signoff.core.vote import Vote

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


def vote(by: Actor, stands_for: Actor | None = None) -> Vote:
    return Vote(by=by, at=NOW, decision=ApprovalDecision(approved=True), args_digest="d", stands_for=stands_for)


def test_who_was_stood_in_for_is_not_counted_again_as_somebody_elses_deputy() -> None:
    """Ben had the role when Ana voted in his place; he has lost it since, and votes in Cleo's."""
    ana, ben, cleo = (Actor(name=name) for name in ("ana", "ben", "cleo"))
    ops = {name: Actor(name=name, roles=frozenset({"ops"})) for name in ("ben", "cleo")}
    needs_two = Requirement(role="ops", quorum=2)
    assert approvals(needs_two, [vote(ana, ops["ben"]), vote(ben, ops["cleo"])], "d") == {ops["ben"].key}
    assert approvals(needs_two, [vote(ana, ops["ben"]), vote(cleo, ops["cleo"])], "d") == {ops["ben"].key, cleo.key}
