"""Crash harness, for agents inside calls of other agents: killed while the innermost waits, and while it goes on.

What has to hold is what always has to, and more: each question stays the one it was, every answer counts, approved
calls run once on every level. An approved call around others whose process died is unknown, and not made again before
a person has said what became of it; unless its tool promised to do nothing but wait (`ends_call`): then it is made
again on the same approval.
"""

from __future__ import annotations

import re
from itertools import product
from pathlib import Path

import pytest
from tests.crash.databases import DATABASES, on_both
from tests.crash.fork import ForkServer
from tests.crash.nested_trips import ADDED, EVERY_DAY, NESTED, SHOWN
from tests.crash.table import OK, Place, hold_against, text_of, written_of
from tests.pairwise import cases

TWICE = ("2 levels, asked about, goes on, suspended", "2 levels, asked about, ends, suspended")
"""Trips whose restart is killed as well: one around which nothing is promised, and one where it is."""


@on_both("trip", EVERY_DAY, postgres=["2 levels, asked about, ends, suspended"], at_night=False)
def test_crash_inside_a_call(trip: str, database: str, place: Place) -> None:
    which = EVERY_DAY[trip] if database == "sqlite" else ADDED
    rows = place.rows(trip, database, place.points(trip, which))
    print(f"\n{trip}: {NESTED[trip].title}\n{text_of(rows)}")
    assert [row for row in rows if row.verdict != OK] == []
    assert rows
    hold_against(written_of(trip, database, which), rows, place, database)


@pytest.mark.nightly
@pytest.mark.parametrize("trip", NESTED)
def test_crash_inside_a_call_at_really_every_point(trip: str, database: str, place: Place) -> None:
    rows = place.rows(trip, database, place.points(trip))
    assert [row for row in rows if row.verdict != OK] == []
    shown = [row for row in rows if re.search(NESTED[trip].shown, row.point)]
    print(f"\n{trip}: {NESTED[trip].title}\n{text_of(shown)}")
    hold_against(written_of(trip, database), shown, place, database)


@on_both("trip", TWICE[1:], postgres=(), at_night=False)
def test_crash_inside_a_call_and_of_the_restart_as_well(trip: str, place: Place) -> None:
    first = {"trip": trip, "act": "resume 2", "point": "claim (2): committed"}
    place.crash_again(first, r"^(enter|outcome).*: committed$")


@pytest.mark.nightly
@pytest.mark.parametrize("first", ["take: committed", "claim: committed", "claim (2): committed", "outcome: committed"])
@pytest.mark.parametrize("trip", TWICE)
def test_crash_inside_a_call_and_of_the_restart_everywhere(trip: str, first: str, place: Place) -> None:
    place.crash_again({"trip": trip, "act": "resume 2", "point": first}, "")


WAITS_IN_PLACE = {"goes on": "hand unknown, and it did not happen", "ends": "hand approved"}


@on_both("after", WAITS_IN_PLACE, postgres=["ends"])
def test_crash_while_a_run_inside_waits_leaves_an_approved_call_unknown_unless_it_promised_to_wait(
    after: str, place: Place
) -> None:
    [played] = place.play([{"trip": f"2 levels, asked about, {after}, in place", "act": "run", "point": "shown pay"}])
    assert played["problems"] == []
    assert played["found"] == f"run waiting; {WAITS_IN_PLACE[after]}; pay pending"


@pytest.mark.nightly
@pytest.mark.parametrize("trip", SHOWN)
def test_crash_inside_a_call_between_statements(trip: str, database: str, place: Place) -> None:
    base = {"trip": trip, "timing": True}
    [whole] = place.play([base])
    assert whole["problems"] == []
    each = [(act, number) for act, count in whole["statements"].items() for number in range(1, count + 1)]
    played = place.play([{**base, "act": act, "statement": number} for act, number in each])
    assert [(one["killed"], one["found"], one["problems"]) for one in played if one["problems"]] == []
    killed = [one for one in played if one["killed"]]
    assert len(killed) >= min(0.9 * len(each), len(each) - 2)


INSIDE = ("shown pay", "claim: committed", "pay done", "told: pay ran")
BEGUN = ("begun by the program", "in a program of one's own")
BY_DAY = [("sqlite", point, BEGUN[number % 2]) for number, point in enumerate(INSIDE)]
BY_DAY += [("postgres", "shown pay", BEGUN[1])]


@pytest.mark.parametrize(("database", "point", "begun"), cases(product(DATABASES, INSIDE, BEGUN), BY_DAY))
def test_crash_inside_a_tool_that_runs_an_agent_by_itself(
    fork_server: ForkServer, url: str, tmp_path: Path, point: str, begun: str
) -> None:
    special = "tests.crash.nested_specials:nested"
    kept = begun == "begun by the program"
    ended = fork_server.call(special, url=url, directory=str(tmp_path), point=point, begun=kept)
    was_asked = point == "shown pay"
    assert ended["found"] == (["pending"] if was_asked else ["unknown"])
    # One question, which stays what it was: answered after the restart, or told about by the operator.
    assert ended["states"] == ["succeeded"]
    assert ("pay done" if was_asked else "olga confirmed that this call happened") in ended["output"]
    assert [on for _, on in ended["lines"]] == ([] if point == "claim: committed" else ["claimed"])


@on_both(
    "how outcomes",
    ["fails", "has no JSON form"],
    ["its outcomes written", "its outcomes lost"],
    postgres=[("fails", "its outcomes lost")],
)
def test_crash_after_a_run_inside_that_nobody_remembers_repeats_nothing(
    fork_server: ForkServer, url: str, tmp_path: Path, how: str, outcomes: str
) -> None:
    special, written = "tests.crash.nested_specials:goes_on", outcomes == "its outcomes written"
    ended = fork_server.call(special, url=url, directory=str(tmp_path), how=how, written=written)
    assert ended["found"] == {"hand": "unknown", "pay": "succeeded" if written else "unknown"}
    assert ended["ran"] == ["pay", "hand"]
    assert "olga confirmed that this call happened" in ended["output"]
