"""What a whole trip costs in memory: calls are asked about, approved, and run."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from functools import partial
from itertools import pairwise

from benchmarks.bench import Bench
from benchmarks.measure import Effort, Figure, Pairs, Sampler, async_sampler, pooled, take_pairs
from benchmarks.peer import LangChain
from benchmarks.report import Report, Row, Table, Target
from benchmarks.trips import BARE, IN_PLACE, NATIVE, SUSPENDED, trips

MOST_ADDED = 1.2
"""In suspended trips of PydanticAI's own."""
MOST_GROWTH = 1.2
OURS = (IN_PLACE, SUSPENDED)
PEER_BARE = "LangChain, nobody is asked"
PEERS = {PEER_BARE: "bare", "LangChain, batched, InMemorySaver": "approved"}

Key = tuple[str, int]
"""A variant, and the number of calls in the batch."""


def measure(effort: Effort, bench: Bench) -> Report:
    peer = bench.peer
    batches = (1, effort.calls, 4 * effort.calls)
    with asyncio.Runner() as runner:
        samplers = {(name, calls): one for calls in batches for name, one in _samplers(runner, calls, peer)}
        base_of = {(name, calls): (NATIVE, calls) for name, calls in samplers if name != NATIVE}
        pairs = take_pairs(samplers, base_of, effort)
    native = {calls: pooled(pairs, base_of, (NATIVE, calls)) for calls in batches}
    growth = {name: tuple(_growth(pairs, name, batches)) for name, calls in pairs if calls == 1}
    return Report(
        name="ask",
        title="Asked, approved and run, in memory",
        about="A cycle is one run whose only turn makes all the calls of a batch; each is asked about and approved. "
        "A trip: PydanticAI's own cycle, suspended and resumed. Added: over the bare agent of the same framework.",
        tables=(
            *(_table(pairs, native[calls], calls) for calls in batches),
            Table(
                "a call's share of the cycle",
                tuple(f"in a batch of {more}, to {few}" for few, more in pairwise(batches)),
                tuple(Row(name, cells) for name, cells in growth.items()),
            ),
        ),
        targets=(
            *(
                Target(f"{name}, batch of {calls}, added, in trips", _added(pairs, name, calls), MOST_ADDED)
                for name in OURS
                for calls in batches
            ),
            *(Target(f"{name}, growth of a call's share", growth[name][-1].median, MOST_GROWTH) for name in OURS),
        ),
        notes=peer.notes,
    )


def _samplers(runner: asyncio.Runner, calls: int, peer: LangChain) -> Iterator[tuple[str, Sampler]]:
    for name, trip in trips(calls).items():
        yield name, async_sampler(runner, trip)
    if peer.there:
        for name, variant in PEERS.items():
            yield name, partial(peer.sample, variant, calls)


def _table(pairs: Mapping[Key, Pairs], native: list[float], calls: int) -> Table:
    title = "1 call" if calls == 1 else f"{calls} calls in one batch"
    rows = [Row(NATIVE, (Figure.of(native).times(1e3), None, None, 1 - pairs[BARE, calls].ratio.median))]
    for (name, size), pair in pairs.items():
        if size == calls:
            added = None if name in (BARE, PEER_BARE) else _added(pairs, name, calls)
            rows.append(Row(name, (Figure.of(pair.values).times(1e3), pair.ratio, pair.of_processor, added)))
    return Table(title, ("cycle, ms", "cycle, in trips", "the same, of the processor", "added, in trips"), tuple(rows))


def _added(pairs: Mapping[Key, Pairs], name: str, calls: int) -> float:
    """What the asking takes, in trips."""
    bare = pairs[PEER_BARE if name in PEERS else BARE, calls]
    return pairs[name, calls].ratio.median - bare.ratio.median


def _growth(pairs: Mapping[Key, Pairs], name: str, batches: tuple[int, ...]) -> Iterator[Figure]:
    """How a call's share changes from batch to larger batch: 1 is linear, less is a fixed part shared by more calls."""
    for few, more in pairwise(batches):
        yield Pairs(pairs[name, more].values, pairs[name, few].values).ratio.times(few / more)
