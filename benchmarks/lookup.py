"""What it costs to find a remembered decision in the store, however many there are."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Iterator
from functools import partial

from benchmarks.bench import SQLITE, Bench
from benchmarks.copies import with_grants
from benchmarks.measure import Effort, Figure, Pairs, Sampler, async_sampler, sync_sampler, take_turns
from benchmarks.report import Report, Row, Table, Target
from benchmarks.script import DIRECTORY, TOOL, arguments
from signoff.broker import Broker
from signoff.core.call import Call
from signoff.core.grant import Grant
from signoff.core.terms import Scope
from signoff.policy.call_paths import Facts

MOST_GROWTH = 1.5
"""A tree with a thousand times as many leaves is twice as high."""
FEW = 1_000
CALLS = 100
"""Looks in one sample, and calls that are remembered each by itself."""
PATTERNS = {"edit_file": 10, "move_file": 100}
"""Tools whose calls are remembered by patterns: how many for each."""
BARE = "a bare look by primary key, SQLite"

EXACT = "exactly this call"
NOTHING = "nothing"
WAYS = {EXACT: TOOL, NOTHING: TOOL, **{f"one of {count} patterns": tool for tool, count in PATTERNS.items()}}
"""What is remembered about the calls that are looked up, and their tool."""

Key = tuple[str, str, int]
"""A kind of database, a way, and how many grants there are."""


def measure(effort: Effort, bench: Bench) -> Report:
    sizes = (min(FEW, effort.kept_grants), effort.kept_grants)
    with asyncio.Runner() as runner:
        places = {(kind, size): place(f"grants_{size}") for kind, place in bench.disk.places.items() for size in sizes}
        stores = {key: runner.run(with_grants(place, list(_grants()), copies=key[1])) for key, place in places.items()}
        looks: dict[Key, Sampler] = {
            (kind, way, size): async_sampler(runner, partial(_recall, Broker(store), way))
            for (kind, size), store in stores.items()
            for way in WAYS
        }
        bare = _bare(f"{bench.disk.directory}/bare.db", effort.kept_grants)
        samples = take_turns({**looks, (SQLITE, BARE, effort.kept_grants): bare}, effort)
        for store in stores.values():
            store.close()
    kinds = list(bench.disk.places)
    return Report(
        name="lookup",
        title="A remembered decision, looked up in the store",
        about=f"`broker.grants.recall()` of calls whose keys are not known yet, among {sizes[1]:,} grants of which all "
        "but some hundred are for other arguments of one tool.",
        tables=(
            Table(BARE, ("µs",), (Row(f"among {sizes[1]:,}", (_figure(samples[SQLITE, BARE, sizes[1]]),)),)),
            *(_table(kind, samples, sizes) for kind in kinds),
        ),
        targets=tuple(
            Target(
                f"{kind}, {way} is remembered, {sizes[1]:,} grants, times {sizes[0]:,}",
                Pairs(samples[kind, way, sizes[1]], samples[kind, way, sizes[0]]).ratio.median,
                MOST_GROWTH,
            )
            for kind in kinds
            for way in WAYS
        ),
        notes=bench.notes,
    )


def _figure(seconds: list[float]) -> Figure:
    return Figure.of(seconds).times(1e6 / CALLS)


def _table(kind: str, samples: dict[Key, list[float]], sizes: tuple[int, int]) -> Table:
    few, many = sizes
    rows = [
        Row(
            f"{way} is remembered",
            (
                _figure(samples[kind, way, few]),
                _figure(samples[kind, way, many]),
                Pairs(samples[kind, way, many], samples[SQLITE, BARE, many]).ratio,
            ),
        )
        for way in WAYS
    ]
    return Table(kind, (f"µs among {few:,}", f"among {many:,}", "times the bare look"), tuple(rows))


# --- what is remembered ---


def _grants() -> Iterator[Grant]:
    """The first is the one that is copied: nobody calls for it."""
    for number in range(-1, CALLS):
        call = _call(EXACT, number)
        yield Grant(
            tool=TOOL, memory_key=call.memory_key, approved=True, scope=Scope.PROJECT, id=f"exact{number}", by="ana"
        )
    for tool, count in PATTERNS.items():
        for number in range(count):
            directory = f"{DIRECTORY}/{number}"
            below = {"matches": f"{directory}/**", "below": directory}
            match = {"args": {"path": below, "body": {"exists": True}, "*": {"exists": False}}}
            yield Grant(
                tool=tool,
                memory_key="",
                approved=True,
                scope=Scope.PROJECT,
                match=match,
                id=f"{tool}{number}",
                by="ana",
            )


def _call(way: str, number: int) -> Call:
    """A call as policy sees it; its key is not known yet."""
    args = arguments(number)
    if way == NOTHING:
        args["body"] = "something else"
    elif way != EXACT:
        args["path"] = f"{DIRECTORY}/{number % PATTERNS[WAYS[way]]}/file"
    return Call(tool=WAYS[way], args=args)


async def _recall(broker: Broker, way: str) -> None:
    for number in range(CALLS):
        grant = await broker.grants.recall(Facts(_call(way, number), None), {})
        assert (grant is None) is (way == NOTHING)


def _bare(path: str, count: int) -> Sampler:
    """Keys of the same length, in a table of their own."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("pragma synchronous = off")
    connection.execute("create table grants (memory_key text primary key, body text not null) without rowid")
    keys = [_call(EXACT, number).memory_key for number in range(CALLS)]
    connection.execute("begin")
    connection.execute(
        "insert into grants with recursive n (i) as (select 1 union all select i + 1 from n where i < ?) "
        "select lower(hex(randomblob(32))) as key, 'yes' from n order by key",
        (count,),
    )
    connection.executemany("insert into grants values (?, 'yes')", [(key,) for key in keys])
    connection.execute("commit")

    def look() -> None:
        for key in keys:
            assert connection.execute("select body from grants where memory_key = ?", (key,)).fetchone()

    return sync_sampler(look)
