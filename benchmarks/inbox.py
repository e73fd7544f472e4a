"""What the first page of the inbox costs, however much was answered before."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from functools import partial

from benchmarks.bench import Bench
from benchmarks.copies import with_requests
from benchmarks.measure import Effort, Figure, Pairs, async_sampler, take_turns
from benchmarks.report import Report, Row, Table, Target
from signoff.broker import Broker

MOST_MS = 2.0
MOST_GROWTH = 1.25
PAGE = 50
LOOKS = 20
"""In one sample."""

Key = tuple[str, int]
"""A kind of database, and how many requests in it were answered."""


def measure(effort: Effort, bench: Bench) -> Report:
    with asyncio.Runner() as runner:
        brokers = dict(_brokers(runner, effort, bench))
        looks = {key: async_sampler(runner, partial(_look, broker)) for key, broker in brokers.items()}
        samples = take_turns(looks, effort)
        for broker in brokers.values():
            broker.store.close()
    kinds = dict.fromkeys(kind for kind, _ in samples)
    few, most = min(effort.settled), max(effort.settled)
    return Report(
        name="inbox",
        title="The first page of the inbox",
        about=f"`broker.inbox()`: the {PAGE} oldest of {effort.pending:,} requests that wait, beside requests that "
        "were answered, run and ended.",
        tables=tuple(_table(kind, samples, few) for kind in kinds),
        targets=tuple(
            target
            for kind in kinds
            for target in (
                Target(f"{kind}, {most:,} answered, ms", _figure(samples[kind, most]).median, MOST_MS),
                Target(
                    f"{kind}, {most:,} answered, times {few:,}",
                    Pairs(samples[kind, most], samples[kind, few]).ratio.median,
                    MOST_GROWTH,
                ),
            )
        ),
        notes=bench.notes,
    )


def _brokers(runner: asyncio.Runner, effort: Effort, bench: Bench) -> Iterator[tuple[Key, Broker]]:
    for kind, place in bench.disk.places.items():
        for settled in effort.settled:
            filled = with_requests(place(f"inbox_{settled}"), settled=settled, pending=effort.pending)
            yield (kind, settled), Broker(runner.run(filled))


async def _look(broker: Broker) -> None:
    for _ in range(LOOKS):
        page = await broker.inbox(limit=PAGE)
        assert len(page) == PAGE


def _figure(seconds: list[float]) -> Figure:
    return Figure.of(seconds).times(1e3 / LOOKS)


def _table(kind: str, samples: Mapping[Key, list[float]], few: int) -> Table:
    rows = [
        Row(
            f"{settled:,} answered",
            (_figure(seconds), Pairs(seconds, samples[kind, few]).ratio if settled != few else None),
        )
        for (one, settled), seconds in samples.items()
        if one == kind
    ]
    return Table(kind, ("ms", f"times {few:,}"), tuple(rows))
