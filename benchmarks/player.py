"""A process of its own that does pieces of work on request, so that it takes turns with everything else.

It is sent one line of JSON for each piece, and answers with one. Both ends are here, with the standard library only:
the process may run on another Python.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

Own = TypeVar("Own", bound="Player")


class Player:
    """The asking end. The process says its version first; one that ends without a word has nothing to play with."""

    work = 0.0
    """Seconds of the processor that all of them have taken."""

    def __init__(
        self, program: Path, python: str = sys.executable, environment: Mapping[str, str] | None = None
    ) -> None:
        self.python = python
        self._name = program.stem
        self._process = subprocess.Popen(
            [python, program],
            env=os.environ | {"LANGSMITH_TRACING": "false"} | dict(environment or {}),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.version = self._read()

    @property
    def there(self) -> bool:
        return bool(self.version)

    def ask(self, **work: Any) -> dict[str, Any]:
        """Have a piece of work done; what came of it."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(work) + "\n")
        self._process.stdin.flush()
        answer = self._read()
        if not answer:
            raise RuntimeError(f"the process {self._name} ended; what it said is above")
        played: dict[str, Any] = json.loads(answer)
        Player.work += played.get("work", 0.0)
        return played

    def close(self) -> None:
        with self._process as process:
            assert process.stdin is not None
            process.stdin.close()
            process.wait()

    def _read(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()

    def __enter__(self: Own) -> Own:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


Answer = Callable[[Any], Coroutine[Any, Any, dict[str, Any]]]


async def _stay() -> None: ...


def serve(version: str, answer: Answer, leave: Callable[[], Coroutine[Any, Any, None]] = _stay) -> None:
    """The other end: answer every line until there are no more."""
    print(version, flush=True)
    gc.collect()
    gc.freeze()
    with asyncio.Runner() as runner:
        for line in sys.stdin:
            print(json.dumps(runner.run(answer(json.loads(line)))), flush=True)
        runner.run(leave())


async def play(work: Callable[[], Awaitable[None]], *, at_once: int, each: int) -> dict[str, Any]:
    """What it takes that many at once, each doing the work so often, one after the other: seconds, of the clock and of
    the processor."""

    async def one_after_the_other() -> None:
        for _ in range(each):
            await work()

    gc.collect()
    worked, start = time.process_time(), time.perf_counter()
    await asyncio.gather(*(one_after_the_other() for _ in range(at_once)))
    return {"seconds": time.perf_counter() - start, "work": time.process_time() - worked}
