"""`signoff runs`, `cancel`, `halt`, `unhalt`, `people`, `delegate`."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from tests.cli.desk import Desk, asks
from tests.cli.wording import MOMENT, Wording

from signoff.broker import Broker
from signoff.core.request import State
from signoff.core.run import RunState, SavedRun
from signoff.testing import FakeClock

HOSTILE = "fine\x1b[2J\r\nsignoff: approved\u202e"


def died(desk: Desk, run_id: str) -> str:
    """A run that a process had in hand when it was killed."""

    async def work(broker: Broker) -> str:
        run = await broker.runs.begin(SavedRun(id=run_id, agent="shop:agent", prompt="Go"))
        gone = replace(broker.process, pid=2**22 + 1)
        await broker.store.write("die", lambda tx: tx.processes.put(gone))
        return run.id

    return desk.do(work)


def test_runs_and_what_they_wait_for(desk: Desk, wording: Wording) -> None:
    desk.clock = FakeClock(datetime.now(UTC) - timedelta(hours=2, minutes=3))
    waiting = desk.begin("runwaiting", prompt="Pay   the\nbills, token ghp_" + "a" * 36, requester="cleo")
    ready = desk.begin("runready23", agent="")
    dead = died(desk, "rundied234")
    [asked, other] = desk.open(asks(run=waiting), asks(run=ready))
    desk.decide(other)
    assert desk.run("runs").out == wording(request=(asked, other))
    told = desk.run("runs", "--json").data
    assert [(one["id"], one["state"]) for one in told["runs"]] == [
        (dead, "died"),
        (ready, "ready"),
        (waiting, "waiting"),
    ]
    assert told["runs"][2]["waiting"][0]["id"] == asked
    assert told["runs"][1]["answered"][0]["id"] == other
    assert (told["runs"][2]["requester"], told["runs"][2]["process"]) == ("cleo", None)
    assert "ghp_" not in str(told)
    limited = desk.run("runs", "--limit", "1")
    assert limited.out == wording()


def test_a_run_whose_process_died_while_it_waits_says_so_before_and_after_the_answer(
    desk: Desk, wording: Wording
) -> None:
    dead = died(desk, "rundied234")
    [asked] = desk.open(asks(run=dead))
    assert desk.run("runs").out == wording(request=asked)
    desk.decide(asked)
    assert desk.run("runs").out == wording()


def test_a_call_whose_outcome_is_unknown_is_not_to_be_approved(desk: Desk) -> None:
    lost = desk.start_and_die(asks(run=desk.begin("runlost234")))
    step = f"signoff outcome {lost} happened, did-not or stop-run"
    for told in (desk.run("runs").out, desk.run("resume", "runlost234").err):
        assert step in told
        assert "signoff approve" not in told


def test_a_run_that_some_process_has_in_hand(desk: Desk, wording: Wording) -> None:
    async def work(broker: Broker) -> None:
        await broker.runs.begin(SavedRun(id="runabc2345", agent="shop:agent"))

    desk.do(work)
    assert desk.run("runs").out.startswith("runabc2345  running ")
    assert desk.run("cancel", "runa").out == wording()


def test_runs_that_are_over(desk: Desk, wording: Wording) -> None:
    run = desk.begin("runabc2345")

    async def end(broker: Broker) -> None:
        taken = await broker.runs.take(run)
        await broker.runs.end(run, taken.epoch, RunState.DONE, "all paid")

    desk.do(end)
    assert desk.run("runs").out == wording()
    out = desk.run("runs", "--all").out
    assert "runabc2345  done " in out
    assert out.endswith("            all paid\n")


def test_there_are_none(desk: Desk, wording: Wording) -> None:
    assert desk.run("runs", "--all").out == wording()
    assert desk.run("runs", "--json").data == {"runs": [], "halted": "", "next": None}


def test_cancel_withdraws_what_was_asked(desk: Desk, wording: Wording) -> None:
    run = desk.begin("runabc2345")
    [one, two] = desk.open(asks(run=run), asks(run=run))
    desk.decide(two)
    said = desk.run("cancel", "runabc", "--as", "ben", "--note", "wrong customer")
    assert said.code == 0
    assert said.out == wording()
    assert desk.request(one).state is desk.request(two).state is State.CANCELLED
    said = desk.run("approve", one)
    assert said.code == 1
    assert said.err == wording(request=(one, two), time=MOMENT)
    again = desk.run("cancel", run)
    assert again.code == 1
    assert again.err == wording()


def test_a_long_line_of_a_timeline_keeps_the_request_it_is_about(desk: Desk) -> None:
    run = desk.begin("runabc2345")
    [one] = desk.open(asks(args={"to": "zoe" * 99, "amount": 5}, run=run))
    [asked] = [line for line in desk.run("runs", "show", run).out.splitlines() if "  asked  " in line]
    assert asked.endswith(f"[{one}]") and "…" in asked and len(asked) <= 120


def test_a_run_that_is_not_there(desk: Desk, wording: Wording) -> None:
    desk.begin("runabc2345")
    desk.begin("runabd2345")
    assert desk.run("cancel", "nope").err == wording()
    said = desk.run("cancel", "runab")
    assert said.code == 1
    assert said.err == wording()


def test_halt_and_unhalt(desk: Desk, wording: Wording) -> None:
    [one] = desk.open(asks())
    said = desk.run("halt", "--note", "wrong prices", "--as", "ben")
    assert said.code == 0
    assert said.out == wording(time=MOMENT)
    assert "halted by ben" in desk.run("halt", "--as", "ana").out, "it stays as it is"
    assert desk.run("approve", one).code == 0, "answers are taken all the same"
    with pytest.raises(Exception, match="halted by ben"):
        desk.do(lambda broker: broker.claim(one))
    assert desk.run("unhalt", "--as", "ana").out == wording()
    assert desk.run("unhalt", "--as", "ana").out == wording()
    desk.do(lambda broker: broker.claim(one))


def test_a_halt_can_be_the_first_thing_a_store_holds(desk: Desk) -> None:
    assert desk.run("halt").code == 0
    assert desk.file.exists()
    assert desk.file.stat().st_mode & 0o077 == 0


def test_who_may_answer(desk: Desk, wording: Wording) -> None:
    assert desk.run("people").out == wording()
    day = f"{datetime.now(UTC) + timedelta(days=80):%Y-%m-%d}"
    desk.run("delegate", "ANA", "cleo", "--until", day, "--as", "ben")
    assert desk.run("people").out == wording(day=day)


def test_a_delegation_ends_before_its_time(desk: Desk, wording: Wording) -> None:
    desk.run("delegate", "ana", "cleo", "--until", "2d", "--as", "ana")
    assert desk.run("delegate", "ANA", "cleo", "--end", "--as", "ben").out == wording()
    assert desk.run("people", "--json").data["delegations"] == []
    assert "cleo stands in for ana no longer" in desk.run("audit", "log").out
    assert desk.run("delegate", "ana", "cleo", "--end").code == 2


def test_people_for_programs(desk: Desk) -> None:
    desk.run("delegate", "ana", "cleo", "--until", "2h", "--as", "ben")
    told = desk.run("people", "--json").data
    assert told["people"][0] == {"name": "ana", "roles": ["dev", "ops"]}
    [away] = told["delegations"]
    assert (away["absent"], away["deputy"], away["by"]) == ("ana", "cleo", "ben")
    assert away["until"].endswith("Z")


def test_nobody_is_on_file(desk: Desk, wording: Wording) -> None:
    (desk.directory / "signoff.yaml").write_text("policy: []\n")
    assert desk.run("people").out == wording()
    (desk.directory / "signoff.yaml").unlink()
    assert desk.run("people").out == wording()


@pytest.mark.parametrize(
    "arguments",
    [
        ["ana", "clea", "--until", "2d"],
        ["ana", "ANA", "--until", "2d"],
        ["ana", "cleo", "--until", "yesterday"],
        ["ana", "cleo", "--until", "2001-01-01"],
        ["ana", "cleo", "--until", "99w9"],
        ["ana", "cleo", "--until", "2h", "--as", "zoe"],
        ["ana", "cleo"],
        ["ana", "cleo", "--until", "91d"],
        ["ana", "cleo", "--until", "2d", "--end"],
        ["ana", "cleo", "--end"],
    ],
    ids=" ".join,
)
def test_delegations_that_cannot_be(desk: Desk, arguments: list[str], wording: Wording) -> None:
    said = desk.run("delegate", *arguments)
    assert said.code == 2
    assert said.err == wording(time=MOMENT)
    assert not desk.file.exists() or desk.run("people", "--json").data["delegations"] == []


@pytest.mark.parametrize("when", ["45m", "2h", "3d", "1w", "monday", "Next Friday", "90s"])
def test_times_as_people_write_them(desk: Desk, when: str) -> None:
    assert desk.run("delegate", "ana", "cleo", "--until", when).code == 0
    [away] = desk.run("people", "--json").data["delegations"]
    until = datetime.fromisoformat(away["until"])
    now = datetime.now(UTC)
    assert now < until <= now + timedelta(days=8)
    if "day" in when:
        assert (until.astimezone().strftime("%A").lower(), until.astimezone().hour) == (when.split()[-1].lower(), 0)


def test_nothing_hostile_moves_the_cursor(desk: Desk) -> None:
    run = desk.begin("runabc2345", agent=HOSTILE, prompt=HOSTILE, requester=HOSTILE)
    desk.open(asks(run=run, summary=HOSTILE))
    for arguments in (["runs"], ["runs", "--json"], ["cancel", run, "--as", "ana", "--note", HOSTILE], ["cancel", run]):
        said = desk.run(*arguments)
        everything: Any = said.out + said.err
        assert "\x1b" not in everything
        assert "\u202e" not in everything
        assert "\nsignoff: approved" not in everything
