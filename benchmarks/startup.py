"""How long commands take to start."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from benchmarks.bench import Bench
from benchmarks.copies import with_requests
from benchmarks.measure import Effort, Figure, pooled, sync_sampler, take_pairs
from benchmarks.report import Report, Row, Table, Target

LIMIT = 1.5
MOST_OF_A_LIST = 2.3
"""To open a store and print a page; what the fastest command of the peers takes for its help."""
PROGRAM = str(Path(sys.executable).with_name("signoff"))
CLICK = "python -c 'import click'"
HELP = "signoff --help"
APPROVE = "signoff approve --help"
INBOX = "signoff inbox"
WAITING = 50
"""Requests that the inbox shows."""
COMMANDS = {
    "python -c pass": [sys.executable, "-c", "pass"],
    CLICK: [sys.executable, "-c", "import click"],
    "python -c 'import signoff'": [sys.executable, "-c", "import signoff"],
    HELP: [PROGRAM, "--help"],
    "signoff policy --help": [PROGRAM, "policy", "--help"],
    APPROVE: [PROGRAM, "approve", "--help"],
    INBOX: [PROGRAM, "inbox"],
    "python -c 'import pydantic_ai'": [sys.executable, "-c", "import pydantic_ai"],
}


def measure(effort: Effort, bench: Bench) -> Report:
    place = bench.disk.file("startup")
    asyncio.run(with_requests(place, settled=0, pending=WAITING)).close()
    environment = os.environ | {"SIGNOFF_STORE": place}
    samplers = {name: sync_sampler(partial(_run, command, environment)) for name, command in COMMANDS.items()}
    base_of = {name: CLICK for name in COMMANDS if name != CLICK}
    pairs = take_pairs(samplers, base_of, effort)
    rows = [Row(CLICK, (Figure.of(pooled(pairs, base_of, CLICK)).times(1e3), None))]
    rows += [Row(name, (Figure.of(pair.values).times(1e3), pair.ratio)) for name, pair in pairs.items()]
    return Report(
        name="startup",
        title="Start-up",
        about=f"From the start of the process to its end. The inbox has {WAITING} requests in an SQLite file.",
        tables=(Table("command", ("ms", "ratio to importing click"), tuple(rows)),),
        targets=tuple(
            Target(f"{name}, times {CLICK}", pairs[name].ratio.median, limit)
            for name, limit in {HELP: LIMIT, APPROVE: LIMIT, INBOX: MOST_OF_A_LIST}.items()
        ),
    )


def _run(command: list[str], environment: Mapping[str, str]) -> None:
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True, env=environment)
