"""What it costs to have another agent do something: every call, and a pause inside of one."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

from pydantic_ai import Agent
from pydantic_ai.toolsets import FunctionToolset

from benchmarks.agents import Empty
from benchmarks.bench import Bench
from benchmarks.courses import AGENT_ALONE, AGENT_INSIDE, WORKER_ALONE, WORKER_INSIDE, Course, Leg, files
from benchmarks.delegating import (
    CALL,
    CALLED,
    CALLER,
    NO_LIMIT,
    Call,
    as_a_tool,
    by_call_agent,
    delegation,
    model,
    named,
    project,
)
from benchmarks.measure import Effort, Figure, Pairs, Sampler, async_sampler, pooled, take_pairs, take_turns, timed
from benchmarks.report import Report, Row, Table, Target
from benchmarks.script import DONE, PROMPT, Tally
from signoff import Signoff
from signoff.ports import Store
from signoff.store.memory_store import MemoryStore
from signoff.store.sqlite import SqliteStore
from signoff.workers.project_workers import Workers

MOST_TIMES_PLAIN = 1.5
"""Of a delegated call that policy allows, to PydanticAI's agent as a tool."""
MOST_TIMES_ONE_LEVEL = 2.0
"""Of a suspended trip two levels deep, to one level: there are twice as many runs to begin and to go on with."""
MOST_COMMITS = 6
"""Of a suspended trip two levels deep, as it was when this was first measured: a guard, no goal. One level takes 4."""
PLAIN = "PydanticAI, an agent as a tool"
EMPTY = "PydanticAI, the same, an empty capability on both"
OURS = "signoff, "
RECORDED = "the same until all is on the record and durable, worker_call"
BASE_OF = {AGENT_INSIDE: AGENT_ALONE, WORKER_INSIDE: WORKER_ALONE}
LEVELS = (AGENT_ALONE, AGENT_INSIDE, WORKER_ALONE, WORKER_INSIDE)

Run = Callable[[], Awaitable[None]]


def measure(effort: Effort, bench: Bench) -> Report:
    calls = max(1, effort.calls // 10)
    with ExitStack() as stack:
        runner = stack.enter_context(asyncio.Runner())
        samplers = dict(_samplers(runner, stack, bench.disk.directory / "delegate", calls))
        base_of = {name: PLAIN for name in samplers if name != PLAIN}
        pairs = take_pairs(samplers, base_of, effort)
    plain = pooled(pairs, base_of, PLAIN)
    trips = [_Trips(effort, files(bench, disk)) for disk in bench.disks]
    return Report(
        name="delegate",
        title="Delegated calls",
        about=f"One run whose only turn makes {calls} delegated call{'s' if calls > 1 else ''}; the agent that is "
        "called answers at once, so that nothing but the calling is measured, and policy allows it. Below, the "
        "suspended trip of `durable` (asked, kept, answered, claimed, run), by an agent that a person runs, and by "
        "the same agent inside a call of another one, which pauses and goes on with it.",
        tables=(_table(plain, pairs, calls), *(one.table for one in trips)),
        targets=(
            *(
                Target(f"{name}, times an agent as a tool", pair.ratio.median, MOST_TIMES_PLAIN)
                for name, pair in pairs.items()
                if name.startswith(OURS)
            ),
            *(target for one in trips for target in one.targets),
        ),
        notes=bench.notes,
    )


def _table(plain: list[float], pairs: Mapping[str, Pairs], calls: int) -> Table:
    each = 1e6 / calls
    rows = [Row(PLAIN, (Figure.of(plain).times(each), None, None, None))]
    rows += [
        Row(name, (Figure.of(pair.values).times(each), pair.difference.times(each), pair.ratio, pair.of_processor))
        for name, pair in pairs.items()
    ]
    columns = ("µs a delegated call", "added, µs", "ratio to an agent as a tool", "the same, of the processor")
    return Table("variant", columns, tuple(rows))


# --- calls that policy allows ---


def _samplers(runner: asyncio.Runner, stack: ExitStack, directory: Path, calls: int) -> Iterator[tuple[str, Sampler]]:
    settings = project(directory)
    ended = Tally()
    said = model(calls, writes=False, ended=ended)

    def pair(call: Call, *capabilities: Any) -> Run:
        """A caller and the one it calls, each with one of the capabilities, if there are any."""
        called = named(CALLED, said, FunctionToolset(), *capabilities[:1])
        caller = named(CALLER, said, delegation(called, call), *capabilities[1:])
        return partial(_run, caller, PROMPT, {"usage_limits": NO_LIMIT}, ended, calls)

    def gated(store: Store) -> Run:
        return pair(by_call_agent, *(Signoff([{"allow": CALL}], store=store) for _ in range(2)))

    def workers(store: Store) -> Run:
        worker = Workers(settings, store=store, model=said).worker(CALLER)
        return partial(_run, worker.agent, worker.prompt(PROMPT), worker.run_options(), ended, calls)

    yield PLAIN, async_sampler(runner, pair(as_a_tool))
    yield EMPTY, async_sampler(runner, pair(as_a_tool, Empty(), Empty()))
    for name, make in {"call_agent": gated, "worker_call": workers}.items():
        yield f"{OURS}{name}, in memory", async_sampler(runner, make(MemoryStore()))
        store = SqliteStore(directory / f"{name}.db")
        stack.callback(store.close)
        yield f"{OURS}{name}, SQLite store", partial(_before_the_record, runner, make(store), store)
    store = SqliteStore(directory / "recorded.db")
    stack.callback(store.close)
    yield RECORDED, async_sampler(runner, partial(_with_the_record, workers(store), store))


async def _run(agent: Agent[Any, Any], prompt: Any, options: dict[str, Any], ended: Tally, calls: int) -> None:
    """Run to the end, and make sure that every delegated run came to its own."""
    result = await agent.run(prompt, **options)
    assert result.output == DONE
    ended.expect(calls)


def _before_the_record(runner: asyncio.Runner, run: Run, store: SqliteStore) -> float:
    """The record is written when nobody waits for it; before the next sample, so that this pays for itself alone."""

    async def sample() -> float:
        seconds = await timed(run)
        await store.flush()
        return seconds

    return runner.run(sample())


async def _with_the_record(run: Run, store: SqliteStore) -> None:
    await run()
    await store.flush()


# --- a pause inside of a call ---


class _Trips:
    """Suspended trips of one and of two levels, on one disk."""

    def __init__(self, effort: Effort, course: Course) -> None:
        self.course = course
        self.legs = {name: Leg(course, name, each=max(1, effort.trips // 2)) for name in LEVELS}
        self.samples = take_turns(self.legs, effort)

    @property
    def table(self) -> Table:
        columns = ("ms a trip", "of the processor", "times one level", "commits a trip", "syncs a trip")
        return Table(f"{self.course.title}, suspended", columns, tuple(self._row(name) for name in LEVELS))

    @property
    def targets(self) -> Iterator[Target]:
        for name, base in BASE_OF.items():
            where = f"{self.course.title}, {name}"
            yield Target(f"{where}, times one level", self._ratio(name, base).median, MOST_TIMES_ONE_LEVEL)
            yield Target(f"{where}, durable commits a trip", Figure.of(self.legs[name].commits).median, MOST_COMMITS)

    def _row(self, name: str) -> Row:
        leg = self.legs[name]
        ratio = self._ratio(name, BASE_OF[name]) if name in BASE_OF else None
        return Row(
            name,
            (
                Figure.of(self.samples[name]).times(1e3),
                Figure.of(leg.work).times(1e3).median,
                ratio,
                Figure.of(leg.commits),
                Figure.of(leg.syncs) if leg.syncs else None,
            ),
        )

    def _ratio(self, name: str, base: str) -> Figure:
        return Pairs(self.samples[name], self.samples[base]).ratio
