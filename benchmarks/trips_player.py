"""Makes durable trips in a process of its own, whose syncs can be counted and slowed."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.durable_trips import Trips, trips
from benchmarks.nested_trips import VARIANTS, nested_trips
from benchmarks.player import play, serve
from benchmarks.script import Tally

TALLY = Tally()
TRIPS: dict[tuple[str, str, int], Trips] = {}


async def answer(asked: dict[str, Any]) -> dict[str, Any]:
    key = asked["variant"], asked["place"], asked["messages"]
    if key not in TRIPS:
        variant, place, _ = key
        nested = variant in VARIANTS
        TRIPS[key] = await (nested_trips(variant, place, TALLY) if nested else trips(*key, TALLY))
    way, at_once, each = TRIPS[key], asked["at_once"], asked["each"]
    before = way.commits()
    played = await play(way.trip, at_once=at_once, each=each)
    TALLY.expect(at_once * each)
    return {**played, "commits": way.commits() - before}


async def leave() -> None:
    for way in TRIPS.values():
        await way.close()


if __name__ == "__main__":
    serve("signoff", answer, leave)
