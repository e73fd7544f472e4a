"""What a whole trip costs that outlives the process: asked, kept, answered, claimed, run, and on the record."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial

from benchmarks.bench import POSTGRES, SQLITE, Bench
from benchmarks.courses import (
    IN_PLACE,
    MEMORY,
    NO_LANGGRAPH,
    ROW,
    ROW_IN_PLACE,
    SAVERS,
    SUSPENDED,
    Course,
    Leg,
    courses,
    langgraph,
)
from benchmarks.measure import Effort, Figure, Pairs, take_turns
from benchmarks.report import Report, Row, Table, Target

MOST_BY_HAND = 1.25
MOST_COMMITS = 4
WAYS = (MEMORY, ROW, ROW_IN_PLACE, SUSPENDED, IN_PLACE)
BY_HAND = {SUSPENDED: ROW, IN_PLACE: ROW_IN_PLACE}
"""What ours is held against: the same, done by hand."""
LEAST_FASTER = {SQLITE: 1.3, POSTGRES: 2.0}
"""Than LangGraph as it comes, on any disk."""
LEAST_FASTER_WHERE_SYNCS_COUNT = {
    (SQLITE, SUSPENDED): (2.0, 3.0),
    (SQLITE, IN_PLACE): (2.5, 4.0),
    (POSTGRES, SUSPENDED): (2.3, 3.4),
}
"""Than LangGraph as it comes, where every sync takes a millisecond: one at a time, many at once."""


@dataclass(frozen=True)
class Result:
    """All ways on one course, with so many at once."""

    course: Course
    at_once: int
    legs: Mapping[str, Leg]
    samples: Mapping[str, list[float]]

    @property
    def title(self) -> str:
        return f"{self.course.title}, {'one at a time' if self.at_once == 1 else f'{self.at_once} at once'}"

    @property
    def base(self) -> str:
        """LangGraph as it comes."""
        return langgraph(SAVERS[self.course.kind][1])

    def ratio(self, name: str, base: str) -> Figure | None:
        """How many times as long as the base something takes, both from the same round."""
        if name == base or not {name, base} <= self.samples.keys():
            return None
        return Pairs(self.samples[name], self.samples[base]).ratio


def measure(effort: Effort, bench: Bench) -> Report:
    syncs = [bench.disk.sync() for _ in range(effort.rounds)]
    results = [result for course in courses(bench) for result in _results(course, effort)]
    syncs += [bench.disk.sync() for _ in range(effort.rounds)]
    there = any(result.base in result.samples for result in results)
    return Report(
        name="durable",
        title="Asked, approved and run, outliving the process",
        about="A trip: one run that asks about one call, is kept, answered, claimed, run and ended; durable at every "
        "step (SQLite: WAL, synchronous=FULL). Added: over PydanticAI's own suspended trip in memory.",
        tables=(*map(_table, results), Table("the disk", ("ms a sync",), (Row("4 KB", (_in_ms(syncs),)),))),
        targets=tuple(target for result in results for target in _targets(result)),
        notes=(*(() if there else (NO_LANGGRAPH,)), *bench.notes),
    )


def _results(course: Course, effort: Effort) -> Iterator[Result]:
    for at_once in (1, effort.at_once):
        alone = at_once == 1
        plain, concurrent = (langgraph(saver) for saver in SAVERS[course.kind])
        names = [*WAYS, *((plain,) if alone else ()), concurrent, f"{concurrent}, durability='exit'"]
        legs = {name: Leg(course, name, at_once, effort.trips if alone else 1) for name in names if name in course.ways}
        rounds = effort.rounds if alone else max(1, effort.rounds // 3)
        yield Result(course, at_once, legs, take_turns(legs, replace(effort, rounds=rounds)))


def _in_ms(seconds: list[float]) -> Figure:
    return Figure.of(seconds).times(1e3)


def _table(result: Result) -> Table:
    rows: list[Row] = []
    for name, seconds in result.samples.items():
        leg = result.legs[name]
        rows.append(
            Row(
                name,
                (
                    _in_ms(seconds),
                    _in_ms(leg.work).median,
                    Pairs(seconds, result.samples[MEMORY]).difference.times(1e3) if name != MEMORY else None,
                    result.ratio(name, BY_HAND.get(name, ROW)) if name != MEMORY else None,
                    result.ratio(result.base, name) if name in BY_HAND else None,
                    Figure.of(leg.commits) if name in BY_HAND else None,
                    Figure.of(leg.syncs) if leg.syncs and name != MEMORY else None,
                ),
            )
        )
    columns = (
        "ms a trip",
        "of the processor",
        "added, ms",
        "times by hand",
        "LangGraph takes, times",
        "commits a trip",
        "syncs a trip",
    )
    return Table(result.title, columns, tuple(rows))


def _targets(result: Result) -> Iterator[Target]:
    for name, row in BY_HAND.items():
        where = partial("{}, {}, {}".format, result.title, name)
        if (by_hand := result.ratio(name, row)) is not None:
            yield Target(where("times by hand"), by_hand.median, MOST_BY_HAND)
        if (slower := result.ratio(result.base, name)) is not None:
            yield Target(where(f"{result.base} takes, times"), slower.median, _least_faster(result, name), least=True)
        if result.at_once == 1:
            yield Target(where("durable commits a trip"), Figure.of(result.legs[name].commits).median, MOST_COMMITS)


def _least_faster(result: Result, name: str) -> float:
    kind = result.course.kind
    goals = LEAST_FASTER_WHERE_SYNCS_COUNT.get((kind, name))
    if goals is None or not result.course.disk.microseconds:
        return LEAST_FASTER[kind]
    return goals[result.at_once > 1]
