"""Crash harness: a process is killed with SIGKILL at every step from "judged" to "outcome recorded" and the run's end.

Each case: the processes of a trip, one of which dies exactly there; then a restart drives everything to its end as an
operator would. No request and no decision may be lost, no approved call may run twice, none that nobody approved may
run, the run has to end with an output, and the record has to verify. `tests/crash/checks.py` says it in full.
"""

from __future__ import annotations

import re

import pytest
from tests.crash.databases import on_both
from tests.crash.table import OK, Place, hold_against, text_of, written_of
from tests.crash.trips import DECISIVE, TRIPS

DAILY = ("in place", "suspended", "grant")
"""At night all of them are killed everywhere."""


@on_both("trip", DAILY, postgres=["suspended"], at_night=False)
def test_crash_at_every_point(trip: str, database: str, place: Place) -> None:
    which = TRIPS[trip].every_day if database == "sqlite" else DECISIVE
    rows = place.rows(trip, database, place.points(trip, which))
    print(f"\n{trip}: {TRIPS[trip].title}\n{text_of(rows)}")
    assert [row for row in rows if row.verdict != OK] == []
    hold_against(written_of(trip, database, which), rows, place, database)
    assert rows


@pytest.mark.nightly
@pytest.mark.parametrize("trip", TRIPS)
def test_crash_at_really_every_point(trip: str, database: str, place: Place) -> None:
    rows = place.rows(trip, database, place.points(trip))
    assert [row for row in rows if row.verdict != OK] == []
    shown = [row for row in rows if re.search(TRIPS[trip].shown, row.point)]
    print(f"\n{trip}: {TRIPS[trip].title}\n{text_of(shown)}")
    hold_against(written_of(trip, database), shown, place, database)


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("database", "first", "points"),
    [
        ("sqlite", "pay done", "committed$"),
        ("postgres", "claim: committed", "^(take|ask|vote|outcome).*: committed$"),
    ],
)
def test_crash_of_the_restart_as_well(first: str, points: str, place: Place) -> None:
    place.crash_again({"trip": "at the terminal", "act": "run", "point": first}, points)


@pytest.mark.nightly
@pytest.mark.parametrize("first", ["ask: committed", "claim: committed", "pay done", "outcome: committed"])
@pytest.mark.parametrize("trip", ["in place", "at the terminal", "grant"])
def test_crash_of_the_restart_as_well_everywhere(first: str, trip: str, place: Place) -> None:
    place.crash_again({"trip": trip, "act": "run", "point": first}, "")
