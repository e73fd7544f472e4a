"""Several people, one escalation: what each screen says about the votes is so."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from tests.cli.desk import Desk, asks

from signoff.core.decision import ApprovalDecision
from signoff.core.people import Answerer
from signoff.core.verdict import OnTimeout, Requirement
from signoff.testing import FakeClock

MINUTES = timedelta(minutes=15)
TWO = Requirement(role="ops", quorum=2)
UP = Requirement(role="ops", quorum=2, timeout=MINUTES, on_timeout=OnTimeout.ESCALATE, escalate_to="dev")


def mine(desk: Desk, name: str) -> list[str]:
    return [str(one["id"]) for one in desk.run("inbox", "--mine", "--as", name, "--json").data["requests"]]


def test_whoever_voted_does_not_find_it_among_what_waits_for_them(desk: Desk) -> None:
    [one] = desk.open(asks(needs=TWO))
    assert mine(desk, "ana") == mine(desk, "ben") == [one]
    desk.run("approve", one, "--as", "ana")
    assert (mine(desk, "ana"), mine(desk, "ben")) == ([], [one])
    assert "1 of 2" in desk.run("inbox").out


def test_votes_that_no_longer_count_are_not_counted_and_said_to_be_void(desk: Desk) -> None:
    desk.clock = FakeClock(datetime.now(UTC) - timedelta(minutes=20))
    [one] = desk.open(asks(needs=UP))
    desk.do(lambda broker: broker.answer(one, ApprovalDecision(approved=True), by=Answerer(name="ben")))
    inbox, shown = desk.run("inbox").out, desk.run("show", one).out
    assert "asks dev, escalated" in inbox
    assert "of 2" not in inbox
    assert "void: ben does not have the role 'dev'" in shown
    assert desk.run("approve", one, "--as", "cleo").code == 0
    assert desk.request(one).state == "approved", "one of those who are asked now is enough"
