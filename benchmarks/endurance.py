"""One process that makes many durable trips: whether its memory, its files and what a trip costs stay the same.

    python -m benchmarks.endurance          # 5,000 suspended trips and as many in place, on SQLite: some minutes
    python -m benchmarks.endurance 500

Given after each tenth of the trips. Memory is what the process holds once everything that can be collected is; cost is
the time of the processor, in all threads, so that other programs change it little.
"""

from __future__ import annotations

import asyncio
import gc
import os
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from benchmarks import durable_trips
from benchmarks.script import Tally
from signoff.ports import Store
from signoff.store.dropped_stores import close_with
from signoff.store.durable_store import _close_all

BLOCKS = 10
WAYS = ("suspended", "in place")


@dataclass(frozen=True, slots=True)
class Block:
    """What a process holds after some trips, and what each of them took."""

    trips: int
    megabytes: float
    handles: int
    threads: int
    objects: int
    milliseconds: float
    commits: float


async def endured(way: str, trips: int, directory: Path) -> list[Block]:
    made = await durable_trips.trips(way, f"sqlite:{directory}/{way.replace(' ', '-')}.db", 0, Tally())
    for _ in range(5):  # what is made once is made
        await made.trip()
    blocks: list[Block] = []
    each = max(1, trips // BLOCKS)
    for number in range(BLOCKS):
        worked, commits = time.process_time(), made.commits()
        for _ in range(each):
            await made.trip()
        took = (time.process_time() - worked) / each * 1e3
        blocks.append(_block(each * (number + 1), took, (made.commits() - commits) / each))
    await made.close()
    return blocks


class _LastStore:
    """The last in the queue of dropped stores: when it is closed, all before it are."""

    def __init__(self) -> None:
        self.is_closed = threading.Event()

    def close(self) -> None:
        self.is_closed.set()


class _Owner: ...


def _wait_for_dropped_stores() -> None:
    """The stores of gates that were dropped are closed by another thread."""
    last, owner = _LastStore(), _Owner()
    close_with(owner, cast(Store, last))
    del owner
    assert last.is_closed.wait(60), "the stores of dropped gates are not closed"


def _block(trips: int, milliseconds: float, commits: float) -> Block:
    gc.collect()
    _wait_for_dropped_stores()
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    tasks, handles = _held("task"), _held("fd")
    megabytes = pages * os.sysconf("SC_PAGE_SIZE") / 2**20
    return Block(trips, megabytes, handles, tasks, len(gc.get_objects()), milliseconds, commits)


def _held(what: str) -> int:
    """The fewest of several looks: a thread that copies a signature comes and goes, and opens files meanwhile."""
    counts: list[int] = []
    for _ in range(10):
        counts.append(len(os.listdir(f"/proc/self/{what}")))
        time.sleep(0.01)
    return min(counts)


def main(trips: int) -> int:
    if not Path("/proc/self/statm").exists():
        print("this needs /proc, where Linux says what a process holds", file=sys.stderr)
        return 2
    for way in WAYS:
        print(f"{way:10}{'memory, MB':>12}{'handles':>9}{'threads':>9}{'objects':>10}{'ms a trip':>11}{'commits':>9}")
        with tempfile.TemporaryDirectory() as directory:
            for one in asyncio.run(endured(way, trips, Path(directory).resolve())):
                print(
                    f"{one.trips:<10,}{one.megabytes:>12.1f}{one.handles:>9}{one.threads:>9}{one.objects:>10,}"
                    f"{one.milliseconds:>11.2f}{one.commits:>9.2f}",
                    flush=True,
                )
            _close_all()  # before the directory goes
    return 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if sys.argv[1:] else 5_000))
