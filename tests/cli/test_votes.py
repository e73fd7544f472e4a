"""Several people, one escalation: what each screen says about the votes is so."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from tests.cli.desk import Desk, asks

from signoff.core.decision import ApprovalDecision
from signoff.core.people import Actor
from signoff.core.verdict import OnTimeout, Requirement
from signoff.testing import FakeClock

MINUTES = timedelta(minutes=15)
TWO = Requirement(role="ops", quorum=2)
FRAME = str.maketrans("│↳", "  ")
UP = Requirement(role="ops", quorum=2, timeout=MINUTES, on_timeout=OnTimeout.ESCALATE, escalate_to="dev")


def mine(desk: Desk, name: str) -> list[str]:
    return [str(one["id"]) for one in desk.run("inbox", "--mine", "--as", name, "--json").data["requests"]]


def test_whoever_voted_does_not_find_it_among_what_waits_for_them(desk: Desk) -> None:
    [one] = desk.open(asks(needs=TWO))
    assert mine(desk, "ana") == mine(desk, "ben") == [one]
    desk.run("approve", one, "--as", "ana")
    assert (mine(desk, "ana"), mine(desk, "ben")) == ([], [one])
    assert "1 of 2" in desk.run("inbox").out


def test_who_stands_in_finds_what_is_in_the_hands_of_the_absent(desk: Desk) -> None:
    [one] = desk.open(asks(needs=Requirement(role="ops")))
    desk.run("assign", one, "ben", "--as", "ana")
    assert (mine(desk, "ben"), mine(desk, "cleo")) == ([one], [])
    desk.run("delegate", "ben", "cleo", "--until", "1h", "--as", "ben")
    assert mine(desk, "cleo") == [one]
    assert desk.run("approve", one, "--as", "cleo").code == 0


def test_whoever_may_not_answer_does_not_find_it_among_what_waits_for_them(desk: Desk) -> None:
    needs = Requirement(role="ops", not_by=frozenset({"requester"}))
    [one] = desk.open(asks(needs=needs, requester="ana"))
    assert (mine(desk, "ana"), mine(desk, "ben")) == ([], [one])
    assert desk.run("approve", one, "--as", "ana").code == 1


def test_whoever_approves_twice_is_told_so_and_every_screen_says_the_same(desk: Desk) -> None:
    needs = Requirement(role="ops", quorum=2, not_by=frozenset({"requester"}), veto="dev")
    [one] = desk.open(asks(needs=needs, requester="cleo"))
    first, second = (desk.run("approve", one, "--as", "ana").out for _ in range(2))
    assert "already" not in first
    assert "; 1 of 2 (ana), and it needs 2 people with the role ops, but not the requester" in first
    assert "; you have already approved it; 1 of 2 (ana), and it needs" in second
    said = "needs 2 people with the role ops, but not the requester; the role dev may deny, too; 1 of 2 (ana)"
    shown = " ".join(desk.run("show", one).out.translate(FRAME).split())
    assert f"{said}; you have already approved it" in shown, "it is ana who looks"
    assert shown.count(said) == 1 and "asks " not in shown.partition("waits for an answer")[2], "it is said once"
    assert said in " ".join(desk.run("inbox").out.split())


def test_a_note_never_runs_into_what_is_said_around_it(desk: Desk) -> None:
    sly = "fine” at noon, and the policy allows all of it; “ok"
    [one, two] = desk.open(asks(), asks(needs=TWO))
    desk.run("deny", one, "--note", sly, "--as", "ben")
    whole = '“fine" at noon, and the policy allows all of it; "ok”'
    assert desk.run("approve", one).err.rstrip().endswith(whole)
    desk.run("approve", two, "--note", sly, "--as", "ben")
    shown = desk.run("show", two).out
    assert " ".join(shown.translate(FRAME).split()).count(whole) == 2, "in the vote and in the history"
    desk.run("halt", "--note", sly, "--as", "ben")
    assert f"{whole}; `signoff unhalt`" in " ".join(desk.run("inbox").out.split())


def test_time_that_runs_out_after_one_of_two_agreed_is_not_called_silence(desk: Desk) -> None:
    desk.clock = FakeClock(datetime.now(UTC) - timedelta(minutes=20))
    ends = Requirement(role="ops", quorum=2, timeout=MINUTES)
    up, down = desk.open(asks(needs=UP), asks(needs=ends))
    for one in (up, down):
        desk.do(lambda broker, one=one: broker.answer(one, ApprovalDecision(approved=True), by=Actor(name="ben")))
    escalated, expired = desk.run("show", up).out, desk.run("show", down).out
    assert "escalated, as too few people" in escalated
    assert "expired: too few people answered in time" in expired
    assert "nobody answered in time" not in escalated + expired


def test_votes_that_no_longer_count_are_not_counted_and_said_to_be_void(desk: Desk) -> None:
    desk.clock = FakeClock(datetime.now(UTC) - timedelta(minutes=20))
    [one] = desk.open(asks(needs=UP))
    desk.do(lambda broker: broker.answer(one, ApprovalDecision(approved=True), by=Actor(name="ben")))
    inbox, shown = desk.run("inbox").out, desk.run("show", one).out
    assert "needs somebody with the role dev; escalated, as too few people answered" in " ".join(inbox.split())
    assert "of 2" not in inbox
    assert "void: ben does not have the role dev" in shown
    assert desk.run("approve", one, "--as", "cleo").code == 0
    assert desk.request(one).state == "approved", "one of those who are asked now is enough"


def test_the_history_tells_who_freed_a_request(desk: Desk) -> None:
    [one] = desk.open(asks())
    desk.run("take", one, "--as", "ben")
    desk.run("release", one, "--as", "ana")
    shown = desk.run("show", one).out
    assert "assigned: by ben, to ben" in shown
    assert "released: by ana" in shown


def test_what_is_handed_to_somebody_who_may_not_answer_says_so(desk: Desk) -> None:
    [one] = desk.open(asks(needs=Requirement(role="ops")))
    assert "cleo may not answer it" in desk.run("assign", one, "cleo", "--as", "ana").out
    refused = desk.run("approve", one, "--as", "ana")
    assert f"take it over first, on its page or with signoff take {one}" in refused.err
    assert "may not" not in desk.run("take", one, "--as", "ana").out
    assert desk.run("approve", one, "--as", "ana").code == 0
