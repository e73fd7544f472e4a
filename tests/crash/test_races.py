"""Race harness: eight processes do the same thing in the same instant, and one of them wins.

On PostgreSQL three of them run every day: one about a request, one about a run, and one about a grant. The others run
there at night.
"""

from __future__ import annotations

from collections import Counter
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from tests.crash.databases import AT_NIGHT_ON_POSTGRES, DATABASES
from tests.crash.fork import ForkServer
from tests.pairwise import cases
from tests.profiles import NIGHTLY

MANY = 8
MORE = 2 if NIGHTLY else 1
"""How many times as much is raced for at night."""


def race(fork_server: ForkServer, name: str, **options: Any) -> dict[str, Any]:
    ended = fork_server.call(f"tests.crash.races:{name}", **options)
    assert ended["record"] == []
    return ended


def kinds(ended: dict[str, Any], kind: str) -> Counter[str]:
    """How often that was recorded, by request."""
    return Counter(request for one, request, _ in ended["events"] if one == kind)


def winners(fared: list[list[list[str]]], place: int) -> list[int]:
    return [number for number, one in enumerate(fared) if one[place][0] == "won"]


def test_race_to_answer_the_same_requests(fork_server: ForkServer, url: str) -> None:
    count = 200 if NIGHTLY else 60
    ended = race(fork_server, "answers", url=url, count=count)
    for place, request in enumerate(ended["ids"]):
        [winner] = winners(ended["fared"], place)
        assert ended["requests"][request] == ["approved" if winner % 2 else "denied", f"person{winner}"]
        for number, one in enumerate(ended["fared"]):
            error, text = one[place]
            assert number == winner or (error == "AlreadySettled" and f"by person{winner} at " in text), text
    assert kinds(ended, "voted") == kinds(ended, "settled") == dict.fromkeys(ended["ids"], 1)
    won = Counter(number for place in range(count) for number in winners(ended["fared"], place))
    print(f"\nanswers won, by process: {sorted(won.values(), reverse=True)}")


@pytest.mark.parametrize(("database", "cancels"), cases(product(DATABASES, [0, 3]), [("sqlite", 0), ("postgres", 3)]))
def test_race_to_resume_the_same_runs(fork_server: ForkServer, url: str, tmp_path: Path, cancels: int) -> None:
    count = 6 * MORE
    ended = race(fork_server, "resumes", url=url, directory=str(tmp_path), count=count, cancels=cancels)
    ran = Counter(line["key"] for line in ended["lines"])
    assert set(ran.values()) <= {1}
    for place, (run, state) in enumerate(_in_order(ended)):
        resumed = [number for number in winners(ended["fared"], place) if number >= cancels]
        cancelled = [number for number in winners(ended["fared"], place) if number < cancels]
        assert len(resumed) <= 1 and len(cancelled) <= 1
        assert state == ("done" if resumed else "cancelled")
        assert [len(resumed), len(cancelled)] in ([1, 0], [0, 1])
        lost = {one[place][0] for one in ended["fared"]} - {"won"}
        assert lost <= {"RunTaken", "RunOver"}, lost
        story = [kind for kind, _, of in ended["events"] if of == run]
        assert "claimed" not in story[story.index("run ended") :]
    if not cancels:
        assert len(ended["lines"]) == count
    assert len(ended["lines"]) == sum(kinds(ended, "claimed").values())


def _in_order(ended: dict[str, Any]) -> list[tuple[str, str]]:
    return [(one[-1], ended["runs"][one[-1]]) for one in ended["fared"][0]]


@AT_NIGHT_ON_POSTGRES
def test_race_to_claim_the_same_approvals(fork_server: ForkServer, url: str) -> None:
    ended = race(fork_server, "claims", url=url, count=30 * MORE)
    for place in range(30 * MORE):
        assert len(winners(ended["fared"], place)) == 1
        assert Counter(one[place][0] for one in ended["fared"]) == {"won": 1, "AlreadySpent": MANY - 1}
    assert kinds(ended, "claimed") == dict.fromkeys(ended["ids"], 1)


@AT_NIGHT_ON_POSTGRES
def test_race_of_people_where_two_are_needed(fork_server: ForkServer, url: str) -> None:
    ended = race(fork_server, "quorum", url=url, count=20 * MORE)
    for place, request in enumerate(ended["ids"]):
        assert len(winners(ended["fared"], place)) == 2
        assert ended["requests"][request][0] == "approved"
    assert kinds(ended, "voted") == dict.fromkeys(ended["ids"], 2)
    assert kinds(ended, "settled") == dict.fromkeys(ended["ids"], 1)


def test_race_to_use_a_grant_up(fork_server: ForkServer, url: str) -> None:
    ended = race(fork_server, "grants", url=url, max_uses=5, limit=None)
    assert sum(ended["used"]) == 5
    assert ended["grants"] == [[5, "150"]] or ended["grants"] == [[5, "0"]]
    assert sum(kind == "grant used" for kind, _, _ in ended["events"]) == 5


@AT_NIGHT_ON_POSTGRES
def test_race_to_spend_a_budget(fork_server: ForkServer, url: str) -> None:
    ended = race(fork_server, "grants", url=url, max_uses=None, limit=100)
    assert sum(ended["used"]) == 3
    assert ended["grants"] == [[3, "90"]]
    assert sum(kind == "grant used" for kind, _, _ in ended["events"]) == 3


@AT_NIGHT_ON_POSTGRES
def test_race_to_say_what_became_of_a_call(fork_server: ForkServer, url: str) -> None:
    ended = race(fork_server, "tells", url=url, count=20 * MORE)
    for place, request in enumerate(ended["ids"]):
        [winner] = winners(ended["fared"], place)
        assert ended["requests"][request][0] == ("succeeded" if winner % 2 else "cancelled")
        assert Counter(one[place][0] for one in ended["fared"]) == {"won": 1, "AlreadySettled": MANY - 1}
    assert kinds(ended, "told") == kinds(ended, "unknown") == dict.fromkeys(ended["ids"], 1)


@AT_NIGHT_ON_POSTGRES
def test_race_to_sweep_what_is_due(fork_server: ForkServer, url: str) -> None:
    count = 15 * MORE
    ended = race(fork_server, "sweeps", url=url, count=count)
    swept = Counter(request for one in ended["swept"] for request, _ in one)
    assert len(swept) == 2 * count and set(swept.values()) == {1}
    states = Counter(state for state, _ in ended["requests"].values())
    assert states == {"expired": count, "unknown": count}
    assert kinds(ended, "unknown") == {one: 1 for one, (state, _) in ended["requests"].items() if state == "unknown"}
    assert {request: kinds(ended, "settled")[request] for request in ended["due"]} == dict.fromkeys(ended["due"], 1)


@AT_NIGHT_ON_POSTGRES
def test_race_between_an_answer_and_the_end_of_its_time(fork_server: ForkServer, url: str) -> None:
    ended = race(fork_server, "votes_and_time", url=url, count=30 * MORE)
    for place, request in enumerate(ended["ids"]):
        [winner] = winners(ended["fared"], place)
        assert ended["requests"][request][0] == ("approved" if winner % 2 else "expired")
        word = "approved by person" if winner % 2 else "expired"
        for number, one in enumerate(ended["fared"]):
            if number % 2 and number != winner:
                error, text = one[place]
                assert error == "AlreadySettled" and word in text
    assert kinds(ended, "settled") == dict.fromkeys(ended["ids"], 1)
    ends = Counter(state for state, _ in ended["requests"].values())
    print(f"\nhow they ended: {dict(ends)}")


@AT_NIGHT_ON_POSTGRES
def test_race_between_claims_and_the_kill_switch(fork_server: ForkServer, url: str) -> None:
    ended = race(fork_server, "halts", url=url, count=160)
    story = [kind for kind, _, _ in ended["events"]]
    assert "claimed" not in story[story.index("halted") :]
    fared = Counter(error for one in ended["fared"][1:] for error, _ in one)
    assert fared["won"] == story.count("claimed")
    assert set(fared) <= {"won", "Halted"}


@AT_NIGHT_ON_POSTGRES
def test_race_of_tasks_in_one_process_that_resume_the_same_run(
    fork_server: ForkServer, url: str, tmp_path: Path
) -> None:
    ended = race(fork_server, "in_one_process", url=url, directory=str(tmp_path), count=5)
    assert Counter(line["tool"] for line in ended["lines"]) == {"pay": 1}
    assert Counter(error for error, *_ in ended["fared"])["won"] == 1, ended["fared"]
