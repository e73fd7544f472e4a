"""Crash harness, between any two SQL statements: nothing is held back here, everything is written when it always is.

SQLite: where Python hands the statement over. PostgreSQL: on the wire, before the statement reaches the server; and
after every commit has, so that the server does it and nobody hears of it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from tests.crash.databases import on_both
from tests.crash.table import Place
from tests.crash.trips import TRIPS

ON_BOTH = "suspended"
"""The trip of which more statements are played every day, and some on PostgreSQL as well."""
EVERY_DAY = (ON_BOTH, "batch")
TRIES = 3
MAY_BE_FEWER = 12
"""Statements of an act: two pieces of work that nobody waits for are written by themselves, or with what is next."""


@on_both("trip", EVERY_DAY, postgres=[ON_BOTH], at_night=False)
def test_crash_between_statements(trip: str, database: str, place: Place) -> None:
    _play(place, trip, database, stride=20 if (trip, database) == (ON_BOTH, "sqlite") else 60)


@pytest.mark.nightly
@pytest.mark.parametrize("trip", TRIPS)
def test_crash_between_all_statements(trip: str, database: str, place: Place) -> None:
    _play(place, trip, database, stride=1, reads=database == "sqlite")


def _play(place: Place, trip: str, database: str, *, stride: int, reads: bool = False) -> None:
    base: dict[str, Any] = {"trip": trip, "timing": True, "reads": reads}
    # A busy machine adds statements, such as signs of life: what the quickest of some plays did, all of them do.
    wholes = place.play([base] * (TRIES if stride == 1 else 1))
    assert [one["problems"] for one in wholes if one["problems"]] == []
    whole = {what: _fewest(one[what] for one in wholes) for what in ("statements", "commits")}
    cases = [{**base, "act": act, "statement": number} for act, number in _each(whole["statements"])[::stride]]
    commits = _each(whole["commits"])[:: 1 if stride == 1 else 2]
    cases += [{**base, "act": act, "statement": number, "sent": True} for act, number in commits]
    played = place.play(cases)
    wrong = [(one["killed"], one["found"], one["problems"]) for one in played if one["problems"]]
    assert wrong == []
    # How many statements there are depends a little on how fast the machine is, and on what the first play left in a
    # database that all of them share: the last of an act may not be reached.
    killed = [one["killed"] for one in played if one["killed"]]
    missed = [case for case, one in zip(cases, played, strict=True) if not one["killed"]]
    if stride == 1 and missed:  # the machine may have become less busy in the meantime
        wholes += place.play([base] * TRIES)
        fewest = {what: _fewest(one[what] for one in wholes) for what in ("statements", "commits")}
    else:
        fewest = whole

    def is_last(case: dict[str, Any]) -> bool:
        counts: dict[str, int] = fewest["commits" if "sent" in case else "statements"]
        return case["statement"] > counts[case["act"]] - MAY_BE_FEWER

    assert all(map(is_last, missed)) and len(missed) <= max(2, 0.2 * len(cases)), missed
    print(f"\n{trip}, {database}: killed at {len(killed)} of {sum(whole['statements'].values())} statements")


def _fewest(plays: Iterable[dict[str, int]]) -> dict[str, int]:
    """The fewest of each act."""
    first, *others = plays
    return {act: min([count, *(other[act] for other in others if act in other)]) for act, count in first.items()}


def _each(counts: dict[str, int]) -> list[tuple[str, int]]:
    return [(act, number) for act, count in counts.items() for number in range(1, count + 1)]
