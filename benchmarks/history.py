"""What a pause costs with a history before it: time, and bytes in the store."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any
from uuid import uuid4

from pydantic_ai.messages import ModelMessage, ModelRequest

from benchmarks.agents import agent, history, tools
from benchmarks.bench import SQLITE, Bench
from benchmarks.by_hand import SqliteRows
from benchmarks.courses import (
    ELSEWHERE,
    IN_PLACE,
    MEMORY,
    NO_LANGGRAPH,
    ROW,
    SAVERS,
    SUSPENDED,
    UNSEEN,
    Course,
    Leg,
    files,
    langgraph,
)
from benchmarks.durable_trips import approve, requests_as_json
from benchmarks.measure import Effort, Figure, Pairs, take_turns
from benchmarks.policies import ASK_ALL
from benchmarks.report import Report, Row, Table, Target
from benchmarks.script import PROMPT, Tally
from signoff import Signoff
from signoff.gate.resume import resume_run
from signoff.store.sqlite import SqliteStore

MOST_TIMES_MEMORY = 1.35
MOST_BYTES_A_MESSAGE = 250
MOST_BYTES_A_PAUSE = 2_500
WAYS = (MEMORY, ROW, SUSPENDED, ELSEWHERE, UNSEEN, IN_PLACE)
HELD = (SUSPENDED, ELSEWHERE)
SAVER = SAVERS[SQLITE][1]
SIGNOFF = "signoff"

Samples = Mapping[tuple[str, int], list[float]]
"""By way and number of messages."""


def measure(effort: Effort, bench: Bench) -> Report:
    course = files(bench)
    names = [*WAYS, *(name for name in (langgraph(SAVER), langgraph(f"{SAVER}, exit")) if name in course.ways)]
    legs = {(name, count): Leg(course, name, messages=count) for count in effort.histories for name in names}
    samples = take_turns(legs, effort)
    sizes = dict(_sizes(course, effort))
    pauses = {
        (where, count): asyncio.run(_second_pause(course.disk.directory, count, elsewhere=where == ELSEWHERE))
        for where in HELD
        for count in effort.histories
    }
    most = max(effort.histories)
    return Report(
        name="history",
        title="Pause and resume with a history",
        about=f"The trips of `durable`, {course.title}, one at a time, of runs that begin with messages of 200 "
        "characters. The floor is PydanticAI's own suspended trip in memory, with the same history. Another process "
        "has only the store to go by.",
        tables=(
            *(_table(samples, count) for count in effort.histories),
            _size_table(sizes, effort.histories),
            Table(
                "bytes written by the second pause of a run",
                ("new messages and the run", "the question and its event", "in all"),
                tuple(
                    Row(f"{where}, {count:,} messages", (*parts, sum(parts)))
                    for (where, count), parts in pauses.items()
                ),
            ),
        ),
        targets=(
            *(
                Target(
                    f"{name}, {most:,} messages, times PydanticAI in memory",
                    Pairs(samples[name, most], samples[MEMORY, most]).ratio.median,
                    MOST_TIMES_MEMORY,
                )
                for name in HELD
            ),
            Target(
                f"bytes a message of a suspended run with {most:,}", sizes[SIGNOFF, most] / most, MOST_BYTES_A_MESSAGE
            ),
            *(
                Target(
                    f"{where}, {most:,} messages, bytes written by a second pause",
                    sum(pauses[where, most]),
                    MOST_BYTES_A_PAUSE,
                )
                for where in HELD
            ),
        ),
        notes=(*(() if course.peer.there else (NO_LANGGRAPH,)), *bench.notes),
    )


def _table(samples: Samples, count: int) -> Table:
    floor, by_hand = samples[MEMORY, count], samples[ROW, count]
    rows = [
        Row(
            name,
            (
                Figure.of(seconds).times(1e3),
                Pairs(seconds, floor).ratio if name != MEMORY else None,
                Pairs(seconds, by_hand).ratio if name not in (MEMORY, ROW) else None,
            ),
        )
        for (name, size), seconds in samples.items()
        if size == count
    ]
    return Table(f"{count:,} messages", ("ms a trip", "times the floor", "times by hand"), tuple(rows))


# --- bytes of suspended runs ---


def _sizes(course: Course, effort: Effort) -> Iterator[tuple[tuple[str, int], float]]:
    """What one suspended run takes in the database, each with a history of its own."""
    for count in effort.histories:
        for name, pause in (("by hand", _pause_by_hand), (SIGNOFF, _pause)):
            path = course.disk.directory / f"size-{name}-{count}.db"
            yield (name, count), asyncio.run(_size(path, pause, count, effort.runs))
        if course.peer.there:
            path = course.disk.directory / f"size-langgraph-{count}.db"
            asked = {"variant": SAVER, "place": f"sqlite:{path}", "messages": count}
            course.peer.ask(**asked, pauses=1)
            before = _bytes_in(path)
            course.peer.ask(**asked, pauses=effort.runs)
            yield (langgraph(SAVER), count), (_bytes_in(path) - before) / effort.runs


Pause = Callable[[list[ModelMessage]], Awaitable[None]]


async def _size(path: Path, opened: Callable[[Path], tuple[Pause, Callable[[], Any]]], count: int, runs: int) -> float:
    pause, close = opened(path)
    before, shared = _bytes_in(path), history(count)
    for _ in range(runs):
        await pause([ModelRequest.user_text_prompt(str(uuid4())), *shared[1:]])
    if (closed := close()) is not None:
        await closed
    return (_bytes_in(path) - before) / runs


def _pause_by_hand(path: Path) -> tuple[Pause, Callable[[], Any]]:
    rows = SqliteRows(str(path))
    asking = agent(1, tools(Tally(), requires_approval=True), suspends=True)

    async def pause(before: list[ModelMessage]) -> None:
        paused = await asking.run(PROMPT, message_history=before)
        await rows.pause(str(uuid4()), paused.all_messages_json(), requests_as_json(paused.output))

    return pause, rows.close


def _pause(path: Path) -> tuple[Pause, Callable[[], Any]]:
    store = SqliteStore(path)
    asking = agent(1, tools(Tally()), Signoff(ASK_ALL, wait="suspend", store=store), suspends=True)

    async def pause(before: list[ModelMessage]) -> None:
        await asking.run(PROMPT, message_history=before)

    return pause, store.close


def _bytes_in(path: Path) -> int:
    """What a database takes, without what is free in it."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("pragma wal_checkpoint(truncate)")
        pages, free, size = (
            connection.execute(f"pragma {name}").fetchone()[0] for name in ("page_count", "freelist_count", "page_size")
        )
    return (pages - free) * size


def _size_table(sizes: Mapping[tuple[str, int], float], counts: tuple[int, ...]) -> Table:
    names = dict.fromkeys(name for name, _ in sizes)
    most = max(counts)
    return Table(
        "bytes of a suspended run",
        (*(f"{count:,} messages" for count in counts), f"each of {most:,}"),
        tuple(Row(name, (*(sizes[name, count] for count in counts), sizes[name, most] / most)) for name in names),
    )


# --- bytes of a second pause ---


async def _second_pause(directory: Path, count: int, *, elsewhere: bool) -> tuple[float, float]:
    """What stands in the database because a run that goes on paused again: its own part, and the question's."""
    path = directory / f"second-{count}-{elsewhere}.db"
    stores = [SqliteStore(path) for _ in range(1 + elsewhere)]
    gates = [Signoff(ASK_ALL, wait="suspend", store=store) for store in stores]
    asking = [agent(1, tools(Tally()), gate, suspends=True, turns=2) for gate in gates]
    run = await approve(gates[0], await asking[0].run(PROMPT, message_history=history(count)))
    with closing(sqlite3.connect(path)) as connection:
        [(last,)] = connection.execute("select max(nr) from segments").fetchall()
        await resume_run(asking[-1], run)
        [request] = await gates[0].pending()
        for store in stores:
            store.close()
        return (
            _bytes_of(connection, "segments", "nr > ?", last) + _bytes_of(connection, "runs", "id = ?", run),
            _bytes_of(connection, "requests", "id = ?", request.id)
            + _bytes_of(connection, "events", "request = ?", request.id),
        )


def _bytes_of(connection: sqlite3.Connection, table: str, where: str, value: object) -> int:
    names = [row[1] for row in connection.execute(f"pragma table_info({table})")]
    size = " + ".join(f"coalesce(length(cast({name} as blob)), 0)" for name in names)
    [(total,)] = connection.execute(f"select coalesce(sum({size}), 0) from {table} where {where}", (value,)).fetchall()
    return total
