"""`signoff inbox --tui`: what waits in the store, answered on the full screen of a real terminal."""

from __future__ import annotations

import pexpect
import pytest
from tests.cli.desk import Desk, asks
from tests.cli.wording import Wording

from signoff.core.request import State
from signoff.core.verdict import Requirement

pytest.importorskip("textual")


def presses_until(screen: pexpect.spawn[str], key: str, seen: str | type[pexpect.EOF]) -> None:
    """Press a key again and again: right after a card appears, keys are not believed."""
    for _ in range(40):
        screen.send(key)
        if screen.expect_exact(list(dict.fromkeys([seen, pexpect.TIMEOUT, pexpect.EOF])), timeout=1) == 0:
            return
    raise AssertionError(f"{seen!r} did not come")


def test_what_waits_is_answered_on_the_screen(desk: Desk) -> None:
    [first] = desk.open(asks(args={"to": "zoe", "amount": 5}))
    screen = desk.sits_down("inbox", "--tui", "--as", "ana")
    screen.expect_exact("may pay run?")
    presses_until(screen, "a", "you approve it once")
    screen.expect_exact("No pending requests. New ones are shown here; q quits.")
    [second] = desk.open(asks(args={"to": "yan", "amount": 6}))
    screen.expect_exact("may pay run?")
    presses_until(screen, "d", "you deny it")
    presses_until(screen, "q", pexpect.EOF)
    assert desk.request(second).state is State.DENIED
    settled = desk.request(first)
    assert settled.state is State.APPROVED
    assert settled.decision is not None
    assert settled.decision.by is not None
    assert (settled.decision.by.name, settled.decision.by.via) == ("ana", "tui")


def test_an_approval_that_is_not_enough_says_how_many_agreed(desk: Desk) -> None:
    [first] = desk.open(asks(needs=Requirement(role="ops", quorum=2)))
    screen = desk.sits_down("inbox", "--tui", "--as", "ana")
    screen.expect_exact("may pay run?")
    presses_until(screen, "a", "you vote yes, once")
    screen.expect_exact("1 of 2 have agreed so far; it is still pending: ")
    presses_until(screen, "q", pexpect.EOF)  # it is not shown again to who has answered
    assert desk.request(first).state is State.PENDING


def test_only_mine_leaves_out_what_others_have_to_answer(desk: Desk, wording: Wording) -> None:
    desk.open(asks(needs=Requirement(role="ops")))
    said = desk.run("inbox", "--tui", "--mine", "--as", "cleo")
    assert said.code == 0
    assert said.out == wording()


def test_who_may_not_approve_reads_so_on_the_card_and_a_deputy_does_not(desk: Desk) -> None:
    desk.open(asks(needs=Requirement(role="ops", quorum=2)))
    for how in ("--tui", "--watch"):
        screen = desk.sits_down("inbox", how, "--as", "cleo")
        if how == "--watch":
            screen.expect_exact("Enter opens the card")
            screen.send("\r")
        screen.expect("not.*?approve.*?it:.*?cleo.*?does")  # folded, anywhere
        screen.close(force=True)
    desk.run("delegate", "ana", "cleo", "--until", "1d", "--as", "ana")
    screen = desk.sits_down("inbox", "--tui", "--mine", "--as", "cleo")
    screen.expect_exact("may pay run?")
    assert screen.expect(["does not have", "sha256"]) == 1
    screen.close(force=True)


def test_without_a_terminal_it_says_so(desk: Desk, wording: Wording) -> None:
    desk.open(asks())
    said = desk.run("inbox", "--tui", "--as", "ana")
    assert said.code == 2
    assert said.err == wording()


def test_it_goes_with_no_other_way_to_look(desk: Desk) -> None:
    assert desk.run("inbox", "--tui", "--json").code == 2
