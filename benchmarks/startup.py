"""How long commands take to start."""

from __future__ import annotations

import subprocess
import sys
from functools import partial
from pathlib import Path

from benchmarks.measure import Effort, Figure, pooled, sync_sampler, take_pairs
from benchmarks.peer import LangChain
from benchmarks.report import Report, Row, Table, Target

LIMIT = 1.5
PROGRAM = str(Path(sys.executable).with_name("signoff"))
CLICK = "python -c 'import click'"
HELP = "signoff --help"
COMMANDS = {
    "python -c pass": [sys.executable, "-c", "pass"],
    CLICK: [sys.executable, "-c", "import click"],
    "python -c 'import signoff'": [sys.executable, "-c", "import signoff"],
    HELP: [PROGRAM, "--help"],
    "signoff policy --help": [PROGRAM, "policy", "--help"],
    "python -c 'import pydantic_ai'": [sys.executable, "-c", "import pydantic_ai"],
}


def measure(effort: Effort, peer: LangChain) -> Report:
    samplers = {name: sync_sampler(partial(_run, command)) for name, command in COMMANDS.items()}
    base_of = {name: CLICK for name in COMMANDS if name != CLICK}
    pairs = take_pairs(samplers, base_of, effort)
    rows = [Row(CLICK, (Figure.of(pooled(pairs, base_of, CLICK)).times(1e3), None))]
    rows += [Row(name, (Figure.of(pair.values).times(1e3), pair.ratio)) for name, pair in pairs.items()]
    return Report(
        name="startup",
        title="Start-up",
        about="From the start of the process to its end.",
        tables=(Table("command", ("ms", "ratio to importing click"), tuple(rows)),),
        targets=(Target(f"{HELP}, times {CLICK}", pairs[HELP].ratio.median, LIMIT),),
    )


def _run(command: list[str]) -> None:
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
