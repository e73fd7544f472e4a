"""`signoff runs`, `cancel`, `halt`, `unhalt`, `people`, `delegate`."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from tests.cli.desk import Desk, asks

from signoff.broker import Broker
from signoff.core.request import State
from signoff.core.run import KeptRun, RunState
from signoff.testing import FakeClock

HOSTILE = "fine\x1b[2J\r\nsignoff: approved\u202e"


def died(desk: Desk, run_id: str) -> str:
    """A run that a process had in hand when it was killed."""

    async def work(broker: Broker) -> str:
        run = await broker.runs.begin(KeptRun(id=run_id, agent="shop:agent", prompt="Go"))
        gone = replace(broker.process, pid=2**22 + 1)
        await broker.store.write("die", lambda tx: tx.put_process(gone))
        return run.id

    return desk.do(work)


def test_runs_and_what_they_wait_for(desk: Desk) -> None:
    desk.clock = FakeClock(datetime.now(UTC) - timedelta(hours=2, minutes=3))
    waiting = desk.begin("runwaiting", prompt="Pay   the\nbills, token ghp_" + "a" * 36, requester="cleo")
    ready = desk.begin("runready23", agent="")
    dead = died(desk, "rundied234")
    [asked, other] = desk.open(asks(run=waiting), asks(run=ready))
    desk.decide(other)
    lines = desk.run("runs").out.splitlines()
    assert lines == [
        f"{dead}  died       shop:agent  started 2 h 3 min ago",
        "            Go",
        f"            its process is gone: signoff resume {dead}",
        "",
        f"{ready}  ready      an agent of a program  started 2 h 3 min ago",
        "            Pay the bills",
        "",
        f"{waiting}  waiting    shop:agent  started 2 h 3 min ago",
        "            Pay the bills, token ⟦masked 1: GitHub token⟧",
        f'            waits for {asked}: pay(to="ana", amount=250, currency="EUR")',
    ]
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
    assert limited.out.endswith("The newest 1; --limit shows more\n")


def test_a_run_that_some_process_has_in_hand(desk: Desk) -> None:
    async def work(broker: Broker) -> None:
        await broker.runs.begin(KeptRun(id="runabc2345", agent="shop:agent"))

    desk.do(work)
    assert desk.run("runs").out.startswith("runabc2345  running ")
    assert "its process stops at its next step" in desk.run("cancel", "runa").out


def test_runs_that_are_over(desk: Desk) -> None:
    run = desk.begin("runabc2345")

    async def end(broker: Broker) -> None:
        taken = await broker.runs.take(run)
        await broker.runs.end(run, taken.epoch, RunState.DONE, "all paid")

    desk.do(end)
    assert desk.run("runs").out == "No run is going. signoff runs --all lists those that are over.\n"
    out = desk.run("runs", "--all").out
    assert "runabc2345  done " in out
    assert out.endswith("            all paid\n")


def test_there_are_none(desk: Desk) -> None:
    assert desk.run("runs", "--all").out == "There are no runs.\n"
    assert desk.run("runs", "--json").data == {"halted": None, "runs": [], "more": False}


def test_cancel_withdraws_what_was_asked(desk: Desk) -> None:
    run = desk.begin("runabc2345")
    [one, two] = desk.open(asks(run=run), asks(run=run))
    desk.decide(two)
    said = desk.run("cancel", "runabc", "--as", "ben", "--note", "wrong customer")
    assert (said.code, said.out) == (0, f"cancelled  run {run}; 1 question withdrawn\n")
    assert desk.request(one).state is desk.request(two).state is State.CANCELLED
    said = desk.run("approve", one)
    assert said.code == 1
    assert "was cancelled at " in said.err
    assert said.err.endswith(": ben cancelled the run: wrong customer\n")
    again = desk.run("cancel", run)
    assert again.code == 1
    assert again.err == f"signoff: run {run} is cancelled: ben cancelled the run: wrong customer\n"


def test_a_run_that_is_not_there(desk: Desk) -> None:
    desk.begin("runabc2345")
    desk.begin("runabd2345")
    assert desk.run("cancel", "nope").err == "signoff: no run has the id 'nope'\n"
    said = desk.run("cancel", "runab")
    assert said.code == 1
    assert "more than one run begins with 'runab': runabc2345, runabd2345" in said.err


def test_halt_and_unhalt(desk: Desk) -> None:
    [one] = desk.open(asks())
    said = desk.run("halt", "--note", "wrong prices", "--as", "ben")
    assert said.code == 0
    assert said.out.startswith("Nothing new runs: halted by ben at ")
    assert "wrong prices" in said.out
    assert "halted by ben" in desk.run("halt", "--as", "ana").out, "it stays as it is"
    assert desk.run("approve", one).code == 0, "answers are taken all the same"
    with pytest.raises(Exception, match="halted by ben"):
        desk.do(lambda broker: broker.claim(one))
    assert desk.run("unhalt", "--as", "ana").out == "Things run again.\n"
    assert desk.run("unhalt", "--as", "ana").out == "Nothing was halted.\n"
    desk.do(lambda broker: broker.claim(one))


def test_a_halt_can_be_the_first_thing_a_store_holds(desk: Desk) -> None:
    assert desk.run("halt").code == 0
    assert desk.file.exists()
    assert desk.file.stat().st_mode & 0o077 == 0


def test_who_may_answer(desk: Desk) -> None:
    assert desk.run("people").out == "ana   dev, ops\nben   ops\ncleo  dev\n"
    day = f"{datetime.now(UTC) + timedelta(days=300):%Y-%m-%d}"
    desk.run("delegate", "ANA", "cleo", "--until", day, "--as", "ben")
    assert desk.run("people").out.endswith(f"\n\ncleo stands in for ana until {day} 00:00:00 (arranged by ben)\n")


def test_people_for_programs(desk: Desk) -> None:
    desk.run("delegate", "ana", "cleo", "--until", "2h", "--as", "ben")
    told = desk.run("people", "--json").data
    assert told["people"][0] == {"name": "ana", "roles": ["dev", "ops"]}
    [away] = told["delegations"]
    assert (away["absent"], away["deputy"], away["by"]) == ("ana", "cleo", "ben")
    assert away["until"].endswith("Z")


def test_nobody_is_on_file(desk: Desk) -> None:
    (desk.folder / "signoff.yaml").write_text("policy: []\n")
    assert desk.run("people").out.startswith("signoff.yaml names nobody: whoever can use this store may answer")
    (desk.folder / "signoff.yaml").unlink()
    assert desk.run("people").out.startswith("There is no policy file here that names people: ")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["ana", "clea", "--until", "2d"], "knows nobody called clea\n  did you mean `cleo`?"),
        (["ana", "ANA", "--until", "2d"], "that is the same person"),
        (["ana", "cleo", "--until", "yesterday"], "is no time that signoff reads"),
        (["ana", "cleo", "--until", "2001-01-01"], "is over already"),
        (["ana", "cleo", "--until", "99w9"], "write 45m, 2h, 3d"),
        (["ana", "cleo", "--until", "2h", "--as", "zoe"], "knows nobody called 'zoe'"),
        (["ana", "cleo"], "--until"),
    ],
)
def test_delegations_that_cannot_be(desk: Desk, arguments: list[str], says: str) -> None:
    said = desk.run("delegate", *arguments)
    assert said.code == 2
    assert says in said.err
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
