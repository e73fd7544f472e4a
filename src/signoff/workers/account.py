"""Usage accounting of worker runs: charged to every caller, and compared with their limits."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal
from typing import TypeVar

from pydantic_ai.messages import ModelResponse
from pydantic_ai.usage import RunUsage

from signoff.config.entries import WorkerFile
from signoff.errors import LimitReached, Place
from signoff.ports import Clock

T = TypeVar("T")

_KEPT = "signoff"
"""Prefix of the names under which figures are kept in a run's usage, which outlives the process with the run."""


def place_of(file: WorkerFile, limit: str) -> Place:
    """Return where a limit is set in a worker's file, or in what it extends."""
    return file.spots.get(f"limits.{limit}", file.spot).place


@dataclass(slots=True)
class Account:
    """The usage of one run of a worker. It is charged to the workers that called it, too."""

    file: WorkerFile
    clock: Clock
    parent: Account | None = None
    path: str = ""
    """The call that started it, as a path from the outermost run; empty for the outermost."""
    requests: int = 0
    tokens: int = 0
    cost: Decimal = Decimal(0)
    worked: timedelta = timedelta(0)
    """Time spent on requests and tools, without waiting for people."""
    usage: RunUsage = field(default_factory=RunUsage)
    """The usage of the run, as PydanticAI counts it; shared with the caller."""
    _busy: int = 0
    _since: datetime | None = None

    @property
    def worker(self) -> str:
        return self.file.name

    @property
    def line(self) -> Iterator[Account]:
        """This run and those that called it, innermost first."""
        one: Account | None = self
        while one is not None:
            yield one
            one = one.parent

    @property
    def chain(self) -> tuple[str, ...]:
        """The workers that led here, outermost first, this one last."""
        return tuple(one.worker for one in self.line)[::-1]

    def take_up(self, usage: RunUsage) -> None:
        """Begin or continue with what the run has used before."""
        self.usage = usage
        if self.parent is None:
            self.requests, self.tokens, self.cost = usage.requests, usage.total_tokens, usage.cost or Decimal(0)
        else:
            self.requests = usage.details.get(self._name("requests"), 0)
            self.tokens = usage.details.get(self._name("tokens"), 0)
            self.cost = Decimal(usage.details.get(self._name("nanodollars"), 0)) / 10**9
        self.worked = timedelta(milliseconds=usage.details.get(self._name("worked_ms"), 0))

    def close(self) -> None:
        """Remove the figures of a run that is over; the caller has its own."""
        for name in ("requests", "tokens", "nanodollars", "worked_ms"):
            self.usage.details.pop(self._name(name), None)

    # --- charging ---

    def begin_request(self) -> None:
        """Count a request before it is made. Raises `LimitReached` if this worker or a caller has none left."""
        for one in self.line:
            one.check(by=self)
            most = one.file.limits.requests
            if most is not None and one.requests >= most:
                raise one._reached("requests", f"has made all {most} model requests that its limit allows", self)
        for one in self.line:
            one.requests += 1
            one._keep()

    def charge(self, response: ModelResponse) -> None:
        """Count what a request used. Raises `LimitReached` if that exceeds a limit of this worker or a caller."""
        attempts = [attempt.usage for attempt in response.failed_attempts or () if attempt.usage is not None]
        for usage in (response.usage, *attempts):
            for one in self.line:
                one.tokens += usage.total_tokens
                one.cost += usage.cost or Decimal(0)
                one._keep()
        for one in self.line:
            if one.file.limits.cost is not None and response.usage.cost is None:
                what = f"has a limit on cost, but no price is known for an answer of {response.model_name or 'a model'}"
                raise one._reached("cost", what, self)
            one.check(by=self)

    @contextmanager
    def working(self) -> Generator[None]:
        """Within the context, time counts for this run and for those that called it."""
        line = tuple(self.line)
        for one in line:
            one._start()
        try:
            yield
        finally:
            for one in line:
                one._stop()

    @contextmanager
    def resting(self) -> Generator[None]:
        """Within `working`, stop counting time: another worker is running, and counts for itself."""
        line = tuple(self.line)
        for one in line:
            one._stop()
        try:
            yield
        finally:
            for one in line:
                one._start()

    def check(self, by: Account | None = None) -> None:
        """Raise `LimitReached` if this worker has used more than its limits allow."""
        limits = self.file.limits
        if limits.tokens is not None and self.tokens > limits.tokens:
            raise self._reached("tokens", f"has used {self.tokens} tokens, and its limit is {limits.tokens}", by)
        if limits.cost is not None and self.cost > Decimal(str(limits.cost)):
            raise self._reached("cost", f"has cost ${self.cost:.4f}, and its limit is ${limits.cost}", by)
        if limits.time is not None and self._worked_now() >= limits.time:
            raise self.out_of_time(by)

    def out_of_time(self, by: Account | None = None) -> LimitReached:
        return self._reached("time", f"has reached its time limit of {_seconds(self.file.limits.time)}", by)

    def may_delegate(self) -> str:
        """Return why no other worker can be called from here (the depth limit); empty if one can."""
        for depth, one in enumerate(self.line):
            most = one.file.limits.depth
            if most is not None and depth >= most:
                where = place_of(one.file, "depth")
                return f"{one.worker} may delegate {most} levels deep ({where}), and this would be one more"
        return ""

    async def in_time(self, work: Callable[[], Awaitable[T]]) -> T:
        """Return what `work` returns. It is cancelled when this worker or a caller reaches its time limit."""
        timed = [(one.file.limits.time - one._worked_now(), one) for one in self.line if one.file.limits.time]
        if not timed:
            return await work()
        left, first = min(timed, key=lambda pair: pair[0])
        task = asyncio.ensure_future(work())
        alarm = asyncio.ensure_future(self.clock.sleep_until(self.clock.now() + left))
        try:
            await asyncio.wait((task, alarm), return_when=asyncio.FIRST_COMPLETED)
            if task.done():
                return task.result()
            raise first.out_of_time(self)
        finally:
            for one in (task, alarm):
                one.cancel()
            await asyncio.gather(task, alarm, return_exceptions=True)

    # --- parts ---

    def _start(self) -> None:
        self._busy += 1
        if self._busy == 1:
            self._since = self.clock.now()

    def _stop(self) -> None:
        self._busy -= 1
        if self._busy == 0:
            self.worked, self._since = self._worked_now(), None
            self._keep()

    def _worked_now(self) -> timedelta:
        return self.worked + (self.clock.now() - self._since if self._since is not None else timedelta(0))

    def _keep(self) -> None:
        """Store the figures where they outlive the process. For the outermost run, PydanticAI's own are there."""
        details = self.usage.details
        if self.file.limits.time is not None:
            details[self._name("worked_ms")] = round(self.worked / timedelta(milliseconds=1))
        if self.parent is not None:
            details[self._name("requests")] = self.requests
            details[self._name("tokens")] = self.tokens
            if self.cost:
                details[self._name("nanodollars")] = round(self.cost * 10**9)

    def _name(self, figure: str) -> str:
        return f"{_KEPT}:{self.path}:{figure}" if self.path else f"{_KEPT}:{figure}"

    def _reached(self, limit: str, what: str, by: Account | None) -> LimitReached:
        helped = f", including what {by.worker} used for it" if by is not None and by is not self else ""
        return LimitReached(
            f"{self.worker} {what}{helped}",
            worker=self.worker,
            limit=limit,
            place=place_of(self.file, limit),
            fix="give it less to do, or raise the limit there",
        )


def _seconds(time: timedelta | None) -> str:
    seconds = time.total_seconds() if time is not None else 0
    return f"{seconds:g} second{'s' if seconds != 1 else ''}"
