"""Crash harness: what needs a stage of its own.

On PostgreSQL every day: the making of a store, hearing of an answer, signs of life.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.crash.databases import AT_NIGHT_ON_POSTGRES, on_both
from tests.crash.fork import ForkServer


def test_crash_while_a_store_is_made(fork_server: ForkServer, database: str, url: str, tmp_path: Path) -> None:
    _kill_while_it_is_made(fork_server, database, url, tmp_path, stride=9 if database == "sqlite" else 16)


@pytest.mark.nightly
def test_crash_at_every_statement_while_a_store_is_made(
    fork_server: ForkServer, database: str, url: str, tmp_path: Path
) -> None:
    _kill_while_it_is_made(fork_server, database, url, tmp_path, stride=1)


def _kill_while_it_is_made(server: ForkServer, database: str, url: str, tmp_path: Path, *, stride: int) -> None:
    def case(number: int) -> dict[str, object]:
        directory = tmp_path / str(number)
        directory.mkdir()
        here = f"sqlite:{directory / 'signoff.db'}" if database == "sqlite" else f"{url}_{number}"
        return {"url": here, "directory": str(directory), "statement": number}

    whole = server.call("tests.crash.specials:first_start", **case(0))
    assert not whole["killed"]
    numbers = range(1, whole["statements"] + 1, stride)
    ended = server.map("tests.crash.specials:first_start", [case(number) for number in numbers])
    assert all(one["killed"] for one in ended)


@on_both("point", ["pay done", "pay started"], postgres=["pay done"])
def test_crash_whose_outcome_is_told_while_the_resumed_run_waits(
    fork_server: ForkServer, url: str, tmp_path: Path, point: str
) -> None:
    happened = point == "pay done"
    ended = fork_server.call(
        "tests.crash.specials:told_while_waiting", url=url, directory=str(tmp_path), point=point, happened=happened
    )
    assert ("olga confirmed that this call happened" if happened else "pay done") in ended["output"]
    assert ended["ran"]["pay"] == 1
    assert ended["problems"] == []


@AT_NIGHT_ON_POSTGRES
def test_crash_that_was_none_a_process_cut_off_does_not_run_what_another_took_up(
    fork_server: ForkServer, url: str, tmp_path: Path
) -> None:
    ended = fork_server.call("tests.crash.specials:split_brain", url=url, directory=str(tmp_path))
    assert ended["cut off"].startswith("RunTaken: ")
    assert ended["ran"]["pay"] == 1
    assert ended["problems"] == []


@AT_NIGHT_ON_POSTGRES
def test_crash_on_another_machine_is_found_out_when_signs_of_life_fail(
    fork_server: ForkServer, url: str, tmp_path: Path
) -> None:
    early, late = fork_server.call("tests.crash.specials:another_machine", url=url, directory=str(tmp_path))
    assert [line.startswith("run ") and " is already being executed by process " in line for line in early] == [True]
    assert late == ["unknown", "epoch 2"]


def test_crash_that_is_none_a_process_that_waits_says_that_it_lives(
    fork_server: ForkServer, url: str, tmp_path: Path
) -> None:
    assert fork_server.call("tests.crash.specials:signs_of_life", url=url, directory=str(tmp_path)) == 3


@AT_NIGHT_ON_POSTGRES
def test_crash_of_a_process_whose_parent_does_not_look(fork_server: ForkServer, url: str, tmp_path: Path) -> None:
    ended = fork_server.call("tests.crash.specials:left_as_a_zombie", url=url, directory=str(tmp_path))
    assert ended["found"] == "run waiting; pay unknown, and it happened"
    assert ended["problems"] == []


@AT_NIGHT_ON_POSTGRES
def test_crash_of_many_runs_that_share_their_transactions(
    fork_server: ForkServer, database: str, url: str, tmp_path: Path
) -> None:
    _kill_a_crowd(fork_server, database, url, tmp_path, kills=3)


@pytest.mark.nightly
def test_crash_of_many_runs_that_share_their_transactions_more_often(
    fork_server: ForkServer, database: str, url: str, tmp_path: Path
) -> None:
    _kill_a_crowd(fork_server, database, url, tmp_path, kills=12)


def _kill_a_crowd(server: ForkServer, database: str, url: str, tmp_path: Path, *, kills: int) -> None:
    def case(number: int) -> dict[str, object]:
        directory = tmp_path / f"crowd {number}"
        directory.mkdir()
        here = f"sqlite:{directory / 'signoff.db'}" if database == "sqlite" else url
        return {"url": here, "directory": str(directory), "count": 4, "statement": number}

    whole = server.call("tests.crash.specials:crowd", **case(0))
    assert whole["problems"] == []
    numbers = range(5, whole["statements"], max(1, whole["statements"] // kills))
    ended = server.map("tests.crash.specials:crowd", [case(number) for number in numbers], at_once=1)
    assert [problem for one in ended for problem in one["problems"]] == []
    assert sum(one["killed"] for one in ended) >= max(2, len(ended) - 2)


@pytest.mark.parametrize("write", ["ask", "vote", "claim", "end"])
def test_crash_harness_finds_out_when_a_write_is_lost(fork_server: ForkServer, tmp_path: Path, write: str) -> None:
    url = f"sqlite:{tmp_path / 'signoff.db'}"
    problems = fork_server.call(
        "tests.crash.specials:broken", url=url, directory=str(tmp_path), trip="suspended", write=write
    )
    assert problems != []
