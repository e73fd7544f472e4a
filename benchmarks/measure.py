"""Timing. Variants take turns, so that whatever else the machine does falls on all of them alike."""

from __future__ import annotations

import asyncio
import gc
import statistics
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

Name = TypeVar("Name")
Sampler = Callable[[], float]
"""Does a piece of work once and says how many seconds it took."""


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
    """Remembered decisions."""


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

    @classmethod
    def difference(cls, values: Sequence[float], base: Sequence[float]) -> Figure:
        """How much more than the base, each sample held against the one of the same round."""
        return cls.of([value - other for value, other in zip(values, base, strict=True)])

    @classmethod
    def ratio(cls, values: Sequence[float], base: Sequence[float]) -> Figure:
        """How many times the base, each sample held against the one of the same round."""
        return cls.of([value / other for value, other in zip(values, base, strict=True)])

    def times(self, factor: float) -> Figure:
        """The same in another unit."""
        return Figure(self.median * factor, self.low * factor, self.high * factor)


def sync_sampler(work: Callable[[], object]) -> Sampler:
    def sample() -> float:
        start = time.perf_counter()
        work()
        return time.perf_counter() - start

    return sample


def async_sampler(runner: asyncio.Runner, work: Callable[[], Awaitable[object]]) -> Sampler:
    async def timed() -> float:
        start = time.perf_counter()
        await work()
        return time.perf_counter() - start

    return lambda: runner.run(timed())


def take_turns(samplers: Mapping[Name, Sampler], effort: Effort) -> dict[Name, list[float]]:
    """Sample every variant once a round, in an order that changes from round to round.

    The garbage collector stays on, as it is part of what a variant costs. What is there before the first sample is
    taken out of its sight, and what a sample leaves behind is collected before the next.
    """
    for sampler in samplers.values():
        for _ in range(effort.warm_up):
            sampler()
    names = list(samplers)
    samples: dict[Name, list[float]] = {name: [] for name in names}
    gc.collect()
    gc.freeze()
    try:
        for number in range(effort.rounds):
            for name in _rotated(names, number):
                gc.collect()
                samples[name].append(samplers[name]())
    finally:
        gc.unfreeze()
    return samples


def _rotated(names: list[Name], number: int) -> list[Name]:
    start = number % len(names)
    turned = names[start:] + names[:start]
    return turned[::-1] if number % 2 else turned
