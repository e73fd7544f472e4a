"""What a trip does, counted: no machine and no other program on it makes a difference.

    python -m benchmarks.counts

`tests/meta/test_counts.py` holds every figure, so that a change which makes a trip do more is seen when it is made.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import os
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from benchmarks.instructions import MANY, VARIANTS, slow_down
from signoff.core import canonical, codec
from signoff.core.request import ApprovalRequest
from signoff.gate.capability import Signoff
from signoff.store import request_table
from signoff.store.durable_store import _close_all
from signoff.store.sqlite import SqliteStore
from signoff.store.writer import Writer

BEFORE, TRIPS = 3, 10
TRIPS_OF_MANY = 3
"""Of a hundred calls each."""
BEGINNING = 10
"""Offset of the first instructions of a coroutine."""
STATEMENTS = frozenset({"Connection.execute", "Connection.executemany"})
HOOKS = (
    "for_run wrap_run before_node_run get_wrapper_toolset prepare_tools before_model_request after_model_request "
    "wrap_tool_execute handle_deferred_tool_calls"
).split()
COUNTED = (
    "signoff, suspended",
    "signoff, in place",
    f"{MANY} asked, signoff in place",
    f"{MANY} asked, signoff suspended",
    "two levels",
)


def _codes(*functions: Callable[..., Any]) -> tuple[CodeType, ...]:
    return tuple(inspect.unwrap(function).__code__ for function in functions)


WATCHED: dict[str, tuple[CodeType, ...]] = {
    "transactions": _codes(SqliteStore._attempt),
    "reads": _codes(SqliteStore._read),
    "hand-overs": _codes(Writer._put),
    "canonicalisations": _codes(canonical.canonical),
    "texts written": _codes(codec.dumps),
    "requests read": _codes(request_table.request_of.make),
    "copies of a request": _codes(ApprovalRequest.changed_to),
    "hooks": tuple(vars(Signoff)[name].__code__ for name in HOOKS if name in vars(Signoff)),
}
"""By name: the functions whose calls are counted, in all threads but those that watch."""


def _begins(frame: FrameType) -> bool:
    """Whether a function is called. A coroutine is called again whenever it goes on: only its beginning counts."""
    return not frame.f_code.co_flags & inspect.CO_COROUTINE or frame.f_lasti < BEGINNING


class Counts:
    """Counts what is done in this thread, and in those that begin from now on."""

    def __init__(self) -> None:
        self.is_on = False
        self.found: Counter[str] = Counter()
        self._names = {code: name for name, codes in WATCHED.items() for code in codes}
        threading.setprofile(self._see)
        sys.setprofile(self._see)

    def end(self) -> None:
        threading.setprofile(None)  # type: ignore[arg-type]
        sys.setprofile(None)

    def _see(self, frame: FrameType, event: str, arg: Any) -> None:
        if not self.is_on:
            return
        if event == "call":
            if (name := self._names.get(frame.f_code)) is not None and _begins(frame):
                self.found[name] += 1
        elif event == "c_call" and getattr(arg, "__qualname__", "") in STATEMENTS:
            if threading.current_thread().name != "signoff store watch":
                self.found["statements"] += 1


def counted(variant: str) -> dict[str, float]:
    """By name: how often one trip does it."""
    with tempfile.TemporaryDirectory() as directory:
        try:
            return asyncio.run(_counted(variant, Path(os.path.realpath(directory))))
        finally:
            _close_all()  # before the directory goes


async def _counted(variant: str, directory: Path) -> dict[str, float]:
    slow_down()
    trips = TRIPS_OF_MANY if variant.startswith(f"{MANY} asked") else TRIPS
    counts = Counts()
    try:
        trip = await VARIANTS[variant][0](directory)
        for _ in range(BEFORE):
            await trip()
        counts.is_on = True
        for _ in range(trips):
            await trip()
        counts.is_on = False
    finally:
        counts.end()
    return {name: counts.found[name] / trips for name in ("statements", *WATCHED)}


def main(variants: Sequence[str]) -> None:
    """Print a table; of a single variant, its figures as JSON."""
    if len(variants) == 1:
        print(json.dumps(counted(variants[0])))
        return
    names = ["statements", *WATCHED]
    print(f"{'':32}" + "".join(f"{name:>20}" for name in names))
    for variant in variants or COUNTED:
        found = counted(variant)
        print(f"{variant:32}" + "".join(f"{found[name]:>20.1f}" for name in names), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
