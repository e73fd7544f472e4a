"""How many of signoff's files one call walks through, and how often it changes from one file to another.

    python -m benchmarks.files
    python -m tests.discord.walk        # the same of a press on Discord, against the stand-in of the tests

Counted are calls of Python functions in signoff's own files, in all threads, during the second of two equal trips. The
figures do not depend on the machine. A walk through many files is one that a reader has to make as well.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import threading
from collections.abc import Awaitable, Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

import signoff
from benchmarks import durable_trips, trips
from benchmarks.script import Tally

OURS = str(Path(signoff.__file__).parent)


@dataclass
class Walk:
    """The files that were walked through, by thread."""

    last: dict[int, str] = field(default_factory=dict[int, str])
    files: set[str] = field(default_factory=set[str])
    changes: int = 0

    def begin(self) -> None:
        """Whatever was before does not count."""
        self.last, self.files, self.changes = {}, set(), 0

    def step(self, frame: FrameType, event: str, _: object) -> None:
        """What `sys.setprofile` calls."""
        file = frame.f_code.co_filename
        if event != "call" or not file.startswith(OURS):
            return
        here = threading.get_ident()
        if self.last.get(here) != file:
            self.changes += here in self.last
            self.last[here] = file
            self.files.add(file)


@contextmanager
def walked() -> Generator[Walk]:
    """Within, the walk is noted: in this thread, and in those that begin from now on."""
    walk = Walk()
    threading.setprofile(walk.step)
    sys.setprofile(walk.step)
    try:
        yield walk
    finally:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]


async def of_second(trip: Callable[[], Awaitable[Any]]) -> Walk:
    """The walk of a trip that does nothing for the first time."""
    with walked() as walk:
        await trip()
        walk.begin()
        await trip()
    return walk


async def in_memory() -> Walk:
    """A call that is asked about and approved in place, with nothing kept."""
    return await of_second(trips.trips(1)[trips.IN_PLACE])


async def on_sqlite(variant: str) -> Walk:
    """The same with a store: asked in place, or suspended, answered from elsewhere and resumed."""
    with tempfile.TemporaryDirectory() as directory:
        ways = await durable_trips.trips(variant, f"sqlite:{directory}/signoff.db", 0, Tally())
        try:
            return await of_second(ways.trip)
        finally:
            await ways.close()


def print_walks(walks: Mapping[str, Walk], what: str) -> None:
    print(f"{what:34}{'files':>7}{'changes of file':>18}")
    for name, walk in walks.items():
        print(f"{name:34}{len(walk.files):>7}{walk.changes:>18}")


async def main() -> None:
    walks = {
        "approved in place, in memory": await in_memory(),
        "approved in place, SQLite": await on_sqlite("in place"),
        "suspended and resumed, SQLite": await on_sqlite("suspended"),
    }
    print_walks(walks, "one approved call")


if __name__ == "__main__":
    asyncio.run(main())
