"""What a whole trip costs in memory: calls are asked about, approved, and run."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from functools import partial
from itertools import pairwise

from benchmarks.measure import Effort, Figure, Sampler, async_sampler, take_turns
from benchmarks.peer import LangChain
from benchmarks.report import Report, Row, Table, Target
from benchmarks.trips import BARE, IN_PLACE, NATIVE, SUSPENDED, trips

MOST_ADDED = 1.2
"""In suspended trips of PydanticAI's own."""
MOST_GROWTH = 1.2
OURS = (IN_PLACE, SUSPENDED)
PEER_BARE = "LangChain, nobody is asked"
PEERS = {PEER_BARE: "bare", "LangChain, batched, InMemorySaver": "approved"}

Samples = Mapping[tuple[str, int], list[float]]
"""Seconds a cycle, by variant and number of calls in the batch."""


def measure(effort: Effort, peer: LangChain) -> Report:
    batches = (1, effort.calls, 4 * effort.calls)
    with asyncio.Runner() as runner:
        samplers = {(name, calls): one for calls in batches for name, one in _samplers(runner, calls, peer)}
        samples = take_turns(samplers, effort)
    names = list(dict.fromkeys(name for name, _ in samples))
    growth = [Row(name, tuple(_growth(samples, name, batches))) for name in names]
    return Report(
        name="ask",
        title="Asked, approved and run, in memory",
        about="A cycle is one run whose only turn makes all the calls of a batch; each is asked about and approved. "
        "Added: over the bare agent of the same framework. A trip: PydanticAI's own, suspended and resumed.",
        tables=(
            *(_table(samples, names, calls) for calls in batches),
            Table(
                "a call's share of the cycle",
                tuple(f"in a batch of {more}, to {few}" for few, more in pairwise(batches)),
                tuple(growth),
            ),
        ),
        targets=(
            *(_added_target(samples, name, calls) for name in OURS for calls in batches),
            *(_growth_target(samples, name, batches) for name in OURS),
        ),
        notes=peer.notes,
    )


def _samplers(runner: asyncio.Runner, calls: int, peer: LangChain) -> Iterator[tuple[str, Sampler]]:
    for name, trip in trips(calls).items():
        yield name, async_sampler(runner, trip)
    if peer.there:
        for name, variant in PEERS.items():
            yield name, partial(peer.sample, variant, calls)


def _table(samples: Samples, names: list[str], calls: int) -> Table:
    title = "1 call" if calls == 1 else f"{calls} calls in one batch"
    rows = tuple(_row(samples, name, calls) for name in names)
    return Table(title, ("cycle, ms", "cycle, in trips", "added per call, µs", "added, in trips"), rows)


def _row(samples: Samples, name: str, calls: int) -> Row:
    taken, trip = samples[name, calls], samples[NATIVE, calls]
    cycle = (Figure.of(taken).times(1e3), Figure.ratio(taken, trip))
    if name in (BARE, PEER_BARE):
        return Row(name, (*cycle, None, None))
    added = _added(samples, name, calls)
    return Row(name, (*cycle, Figure.of(added).times(1e6 / calls), Figure.ratio(added, trip)))


def _added(samples: Samples, name: str, calls: int) -> list[float]:
    bare = samples[PEER_BARE if name in PEERS else BARE, calls]
    return [whole - part for whole, part in zip(samples[name, calls], bare, strict=True)]


def _growth(samples: Samples, name: str, batches: tuple[int, ...]) -> Iterator[Figure]:
    """How a call's share changes from batch to larger batch: 1 is linear, less is a fixed part shared by more calls."""
    for few, more in pairwise(batches):
        yield Figure.ratio(samples[name, more], samples[name, few]).times(few / more)


def _added_target(samples: Samples, name: str, calls: int) -> Target:
    added = Figure.ratio(_added(samples, name, calls), samples[NATIVE, calls])
    return Target(f"{name}, batch of {calls}, added, in PydanticAI's suspended trips", added.median, MOST_ADDED)


def _growth_target(samples: Samples, name: str, batches: tuple[int, ...]) -> Target:
    *_, last = _growth(samples, name, batches)
    return Target(f"{name}, growth of a call's share", last.median, MOST_GROWTH)
