"""What a trip costs in instructions of the processor, counted by callgrind: a busy machine makes no difference.

    python -m benchmarks.instructions                 # all variants, about a quarter of an hour
    python -m benchmarks.instructions "suspended"     # those whose ratio is called so, and what they are held against

Needs valgrind. Each variant runs in a process of its own. A few trips go before, so that nothing is done for the first
time; then counting is switched on for some trips, in all threads. Two counts of one variant differ by about a percent.
"""

from __future__ import annotations

import asyncio
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.toolsets import AbstractToolset, WrapperToolset

from benchmarks import durable_trips, nested_trips, trips
from benchmarks.agents import agent, run_whole, tools
from benchmarks.policies import ONE_RULE, realistic
from benchmarks.script import DIRECTORY, Tally
from signoff import Policy, Signoff
from signoff.broker import signatures, watch
from signoff.store import sqlite
from signoff.store.writer import Writer

Trip = Callable[[], Awaitable[Any]]
BEFORE = 3
"""Trips before counting."""
MANY = 100
"""Calls in one turn of the model."""
SLOWER = 50
"""How many times as long a trip takes while it is counted, or more."""


class Hooked(AbstractCapability[Any]):
    """Has every hook that `Signoff` has, and does nothing: what PydanticAI takes for any capability like it."""

    async def for_run(self, ctx: Any) -> Any:
        return Hooked()

    async def wrap_run(self, ctx: Any, *, handler: Any) -> Any:
        return await handler()

    async def before_node_run(self, ctx: Any, *, node: Any) -> Any:
        return node

    def get_wrapper_toolset(self, toolset: AbstractToolset[Any]) -> AbstractToolset[Any]:
        return WrapperToolset(toolset)

    async def prepare_tools(self, ctx: Any, tool_defs: Any) -> Any:
        return tool_defs

    async def before_model_request(self, ctx: Any, request_context: Any) -> Any:
        return request_context

    async def prepare_model_request(self, ctx: Any, request_context: Any) -> Any:
        return request_context

    async def after_model_request(self, ctx: Any, *, request_context: Any, response: Any) -> Any:
        return response

    async def wrap_tool_execute(self, ctx: Any, *, call: Any, tool_def: Any, args: Any, handler: Any) -> Any:
        return await handler(args)

    async def handle_deferred_tool_calls(self, ctx: Any, *, requests: Any) -> Any:
        return None


async def _durable(variant: str, directory: Path) -> Trip:
    return (await durable_trips.trips(variant, f"sqlite:{directory}/signoff.db", 0, Tally())).trip


async def _nested(variant: str, directory: Path) -> Trip:
    return (await nested_trips.nested_trips(variant, f"sqlite:{directory}/signoff.db", Tally())).trip


async def _asked(variant: str, directory: Path) -> Trip:
    return trips.trips(MANY)[variant]


async def _floor(calls: int, directory: Path) -> Trip:
    tally = Tally()
    asks = agent(calls, tools(tally).approval_required(), Hooked(), suspends=True)
    return partial(trips.native_trip, asks, tally, calls)


async def _allowed(rules: Any, directory: Path) -> Trip:
    tally = Tally()
    (directory / DIRECTORY).mkdir(exist_ok=True)
    gate = [] if rules is None else [Signoff(Policy.from_rules(rules, root=str(directory)))]
    return partial(run_whole, agent(MANY, tools(tally), *gate), tally, MANY)


FLOOR, BARE = f"{MANY} asked, floor with our hooks", f"{MANY} allowed, bare agent"
HAND = "a row by hand, suspended"

VARIANTS: dict[str, tuple[Callable[[Path], Awaitable[Trip]], int]] = {
    "PydanticAI alone, suspended": (partial(_durable, "memory"), 20),
    "the same, with our hooks": (partial(_floor, 1), 20),
    HAND: (partial(_durable, "row, suspended"), 20),
    "a row by hand, in place": (partial(_durable, "row, in place"), 20),
    "signoff, suspended": (partial(_durable, "suspended"), 20),
    "signoff, in place": (partial(_durable, "in place"), 20),
    FLOOR: (partial(_floor, MANY), 3),
    f"{MANY} asked, signoff in place": (partial(_asked, trips.IN_PLACE), 3),
    f"{MANY} asked, signoff suspended": (partial(_asked, trips.SUSPENDED), 3),
    BARE: (partial(_allowed, None), 5),
    f"{MANY} allowed, one rule": (partial(_allowed, ONE_RULE), 5),
    f"{MANY} allowed, 20 rules by path": (partial(_allowed, realistic("allow")), 5),
    "one level": (partial(_nested, "agent alone"), 20),
    "two levels": (partial(_nested, "agent inside"), 20),
}
"""What makes a trip in a directory, and how many are counted."""


@dataclass(frozen=True)
class Ratio:
    name: str
    variant: str
    base: str
    target: float


RATIOS = (
    Ratio("suspended, SQLite, to a row by hand", "signoff, suspended", HAND, 1.25),
    Ratio("in place, SQLite, to a row by hand", "signoff, in place", HAND, 1.08),
    Ratio("asked in place, to the floor", f"{MANY} asked, signoff in place", FLOOR, 1.4),
    Ratio("asked and suspended, to the floor", f"{MANY} asked, signoff suspended", FLOOR, 1.4),
    Ratio("allowed by one rule, to the bare agent", f"{MANY} allowed, one rule", BARE, 1.22),
    Ratio("allowed by 20 rules, to the bare agent", f"{MANY} allowed, 20 rules by path", BARE, 1.4),
    Ratio("two levels deep, to one level", "two levels", "one level", 1.7),
)


# --- in the process that is counted ---


def slow_down() -> None:
    """What is done by the clock is to be done as often in a trip as it is where nobody counts."""
    sqlite.LOOK *= SLOWER
    watch.NOT_URGENT *= SLOWER
    signatures.WITHIN *= SLOWER
    Writer.__init__.__kwdefaults__["soon"] *= SLOWER


async def play(variant: str, directory: Path) -> None:
    slow_down()
    make, count = VARIANTS[variant]
    trip = await make(directory)
    for _ in range(BEFORE):
        await trip()
    print("ready", flush=True)
    await asyncio.to_thread(sys.stdin.readline)
    for _ in range(count):
        await trip()
    print("done", flush=True)
    await asyncio.to_thread(sys.stdin.readline)


# --- counting ---


def counted(variant: str) -> float:
    """Millions of instructions that one trip takes."""
    with tempfile.TemporaryDirectory() as directory:
        directory = str(Path(directory).resolve())
        report = Path(directory, "callgrind.out")
        command = ["valgrind", "-q", "--tool=callgrind", "--instr-atstart=no", f"--callgrind-out-file={report}"]
        played = [sys.executable, "-m", "benchmarks.instructions", "--play", variant, directory]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "text": True}
        with subprocess.Popen([*command, *played], **pipes) as process:  # type: ignore[call-overload]
            assert process.stdin is not None
            assert process.stdout is not None
            for said, order in (("ready", ["-i", "on"]), ("done", ["-d"])):
                if process.stdout.readline().strip() != said:
                    raise RuntimeError(f"{variant} did not come as far as {said!r}")
                subprocess.run(["callgrind_control", *order, str(process.pid)], check=True, capture_output=True)
                process.stdin.write("\n")
                process.stdin.flush()
        totals = re.search(r"^(?:summary|totals): (\d+)", report.with_suffix(".out.1").read_text(), re.MULTILINE)
        if totals is None:
            raise RuntimeError(f"callgrind wrote no total for {variant}")
        return int(totals[1]) / VARIANTS[variant][1] / 1e6


def main(wanted: str) -> int:
    if shutil.which("valgrind") is None:
        print("valgrind is not installed: it counts the instructions", file=sys.stderr)
        return 2
    ratios = [one for one in RATIOS if wanted in one.name]
    names = [name for name in VARIANTS if not wanted or any(name in (one.variant, one.base) for one in ratios)]
    counts: dict[str, float] = {}
    for name in names:
        counts[name] = counted(name)
        print(f"{name:42}{counts[name]:>9.1f} M instructions a trip", flush=True)
    print()
    for one in ratios:
        ratio = counts[one.variant] / counts[one.base]
        print(f"{one.name:42}{ratio:>9.2f}   target {one.target}{'' if ratio <= one.target else '   missed'}")
    return 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["--play"]:
        asyncio.run(play(sys.argv[2], Path(sys.argv[3])))
    else:
        sys.exit(main(" ".join(sys.argv[1:])))
