"""Timing. What is compared is sampled back to back, and variants take turns, so that a busy machine is fair to all."""

from __future__ import annotations

import asyncio
import gc
import statistics
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeVar

from benchmarks.player import Player

Name = TypeVar("Name")
Sampler = Callable[[], float]
"""Does a piece of work once and says how many seconds it took."""

SPIN = 0.003
"""Seconds of the processor that are spent before every sample, to see whether anybody else wants it."""
MOST_STRETCHED = 1.1
"""How many times as long that may take by the clock, in all but one of ten cases."""
stretches: list[float] = []
"""How many times as long it took, since a benchmark began."""


@dataclass(frozen=True, slots=True)
class Effort:
    """How much work a benchmark does. Tests take tiny amounts of it."""

    rounds: int = 30
    """Samples of every variant."""
    warm_up: int = 2
    """Samples before those, which do not count."""
    calls: int = 100
    """Tool calls in one turn of the model."""
    lines: int = 100_000
    """Lines in the file that the command judges."""
    grants: int = 100_000
    """Remembered decisions in memory."""
    trips: int = 4
    """Durable trips in one sample, where they come one after the other."""
    at_once: int = 16
    """Durable trips in one sample, where they come all at once."""
    histories: tuple[int, ...] = (10, 100, 1_000)
    """Messages that a run begins with."""
    runs: int = 20
    """Suspended runs whose size is taken."""
    settled: tuple[int, ...] = (1_000, 100_000, 1_000_000)
    """Requests in the store that were answered long ago."""
    pending: int = 10_000
    """Requests in the store that wait."""
    answers: int = 200
    """Requests that are answered in one sample."""
    kept_grants: int = 1_000_000
    """Remembered decisions in the store."""
    delay_size: int = 1_000_000
    """Bytes of a message that may delay others."""
    serve_waiting: int = 200
    """Requests that wait while a server is under load."""
    serve_watchers: int = 50
    """Clients that follow its events."""
    serve_arriving: int = 500
    """Requests that arrive meanwhile, and are decided over HTTP."""
    serve_votes: int = 20
    """Votes in one sample, beside as many writes of a bare route."""
    serve_decided: int = 20_000
    """Requests that are decided while the memory of the server is looked at."""


@dataclass(frozen=True, slots=True)
class Figure:
    """The median of some samples, and where the middle eight tenths of them lie."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Figure:
        if len(values) == 1:
            return cls(values[0], values[0], values[0])
        tenths = statistics.quantiles(values, n=10, method="inclusive")
        return cls(statistics.median(values), tenths[0], tenths[-1])

    def times(self, factor: float) -> Figure:
        """The same in another unit."""
        return Figure(self.median * factor, self.low * factor, self.high * factor)


@dataclass(frozen=True, slots=True)
class Pairs:
    """Samples of a variant, and of its base right before or after each of them."""

    values: list[float] = field(default_factory=list[float])
    bases: list[float] = field(default_factory=list[float])
    work: list[float] = field(default_factory=list[float])
    """Seconds of the processor, for each of `values`."""
    base_work: list[float] = field(default_factory=list[float])

    @property
    def of_processor(self) -> Figure:
        """As `ratio`, of the time of the processor: other programs make next to no difference."""
        return Figure.of([value / base for value, base in zip(self.work, self.base_work, strict=True)])

    @property
    def difference(self) -> Figure:
        return Figure.of([value - base for value, base in zip(self.values, self.bases, strict=True)])

    @property
    def ratio(self) -> Figure:
        return Figure.of([value / base for value, base in zip(self.values, self.bases, strict=True)])


def sync_sampler(work: Callable[[], object]) -> Sampler:
    def sample() -> float:
        start = time.perf_counter()
        work()
        return time.perf_counter() - start

    return sample


async def timed(work: Callable[[], Awaitable[object]]) -> float:
    start = time.perf_counter()
    await work()
    return time.perf_counter() - start


def async_sampler(runner: asyncio.Runner, work: Callable[[], Awaitable[object]]) -> Sampler:
    return lambda: runner.run(timed(work))


def take_turns(samplers: Mapping[Name, Sampler], effort: Effort) -> dict[Name, list[float]]:
    """Sample every variant once a round, in an order that changes from round to round."""
    samples: dict[Name, list[float]] = {name: [] for name in samplers}
    with _warmed_up(samplers, effort):
        for number in range(effort.rounds):
            for name in _rotated(list(samplers), number):
                samples[name].append(_sample(samplers[name]))
    return samples


def take_pairs(samplers: Mapping[Name, Sampler], base_of: Mapping[Name, Name], effort: Effort) -> dict[Name, Pairs]:
    """As `take_turns`, each variant together with its base, now one first and now the other."""
    pairs = {name: Pairs() for name in base_of}
    with _warmed_up(samplers, effort):
        for number in range(effort.rounds):
            for name in _rotated(list(base_of), number):
                pair, base = pairs[name], base_of[name]
                both = [(name, pair.values, pair.work), (base, pair.bases, pair.base_work)]
                for one, samples, work in both if number % 2 else reversed(both):
                    before = _worked()
                    samples.append(_sample(samplers[one]))
                    work.append(_worked() - before - SPIN)
    return pairs


def pooled(pairs: Mapping[Name, Pairs], base_of: Mapping[Name, Name], base: Name) -> list[float]:
    """All samples of a base."""
    return [sample for name, pair in pairs.items() if base_of[name] == base for sample in pair.bases]


@contextmanager
def _warmed_up(samplers: Mapping[Name, Sampler], effort: Effort) -> Iterator[None]:
    """Takes what is there before the first sample out of the garbage collector's sight."""
    for sampler in samplers.values():
        for _ in range(effort.warm_up):
            sampler()
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def _sample(sampler: Sampler) -> float:
    """The collector stays on, as it is part of what a variant costs; it starts with nothing to collect."""
    gc.collect()
    stretches.append(_stretch())
    return sampler()


def _stretch() -> float:
    """How many times as long as the processor works something takes that only computes: 1 where nobody else works."""
    begun, worked = time.perf_counter(), time.thread_time()
    while (now := time.thread_time()) < worked + SPIN:
        pass
    return (time.perf_counter() - begun) / (now - worked)


def _worked() -> float:
    """Seconds of the processor that this process and those that play have taken so far."""
    return time.process_time() + Player.work


def too_busy(stretches: Sequence[float]) -> tuple[str, ...]:
    """What to say of a machine that was busy with something else."""
    if not stretches or (often := Figure.of(stretches).high) <= MOST_STRETCHED:
        return ()
    return (
        f"times by the clock are worth nothing here: other programs were busy, and what only computes took up to "
        f"{often:.2f} times its time of the processor; ratios of the processor and counts hold",
    )


def _rotated(names: list[Name], number: int) -> list[Name]:
    start = number % len(names)
    turned = names[start:] + names[:start]
    return turned[::-1] if number % 2 else turned
