"""How long `signoff run` takes from the start of the process to the first request to the model."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from benchmarks.bench import Bench
from benchmarks.measure import Effort, Figure, Pairs, take_turns
from benchmarks.report import Report, Row, Table, Target
from benchmarks.script import DONE
from benchmarks.startup import PROGRAM

MOST_TIMES_PLAIN = 1.5
HERE = Path(__file__).with_name("first_request")
"""What is on the path of every program here: what notes the moment, and the plain program."""
PLAIN = "PydanticAI, the plainest program"
AGENT = "signoff run MODULE:AGENT, the same agent"
WORKER = "signoff run WORKER"
OURS = (AGENT, WORKER)

PROJECT = """\
policy:
  - deny: delete_file
toolsets:
  notes: {use: filesystem_rw, config: {root: notes}, policy: [{allow: {tool: write_file, path: "drafts/**"}}]}
  reading: {use: filesystem_ro, config: {root: notes}}
  checks: {use: shell_readonly, config: {root: notes}}
"""
WORKERS = {
    "writer.yaml": "instructions: Write the notes.\nmodel: script:turns\ntoolsets: [notes]\ndelegates: [reader]\n",
    "reader.yaml": "instructions: Read the notes.\nmodel: script:turns\ntoolsets: [reading, checks]\n",
    "turns": f"- say: {DONE}\n",
}


def measure(effort: Effort, bench: Bench) -> Report:
    directory = bench.disk.directory / "start"
    _write_project(directory)
    environment = _environment(directory, bench.disk.file("start"))
    programs = {
        PLAIN: _Program((sys.executable, str(HERE / "plain.py")), directory, environment),
        AGENT: _Program((PROGRAM, "run", "plain:agent", "Go."), directory, environment),
        WORKER: _Program((PROGRAM, "run", "writer", "Go."), directory, environment),
    }
    # Whole programs take their time.
    less = replace(effort, rounds=max(1, effort.rounds // 3), warm_up=min(1, effort.warm_up))
    samples = take_turns(programs, less)
    ratios = {name: Pairs(samples[name], samples[PLAIN]).ratio for name in OURS}
    return Report(
        name="start",
        title="Start of a run",
        about="From the start of the process to the first request to the model, noted inside the process, as is the "
        "time that `import pydantic_ai` takes there. The worker has a built-in toolset and may call another worker "
        "with two; models are scripts, and the store is an SQLite file that exists. The plainest program makes an "
        "agent of two functions and a scripted model, and runs it.",
        tables=(
            Table(
                "program",
                ("ms", "ratio to plain", "importing pydantic_ai, ms", "that is, %", "the rest, ms"),
                tuple(_row(name, programs[name], seconds, ratios.get(name)) for name, seconds in samples.items()),
            ),
        ),
        targets=tuple(Target(f"{name}, times plain", ratio.median, MOST_TIMES_PLAIN) for name, ratio in ratios.items()),
    )


def _row(name: str, program: _Program, seconds: list[float], ratio: Figure | None) -> Row:
    imports = program.imports[-len(seconds) :]  # those before were to warm up
    return Row(
        name,
        (
            Figure.of(seconds).times(1e3),
            ratio,
            Figure.of(imports).times(1e3),
            Pairs(imports, seconds).ratio.times(100),
            Pairs(seconds, imports).difference.times(1e3),
        ),
    )


def _write_project(directory: Path) -> None:
    for inside in ("workers", "notes", "home"):
        (directory / inside).mkdir(parents=True, exist_ok=True)
    (directory / "signoff.yaml").write_text(PROJECT, encoding="utf-8")
    for name, text in WORKERS.items():
        (directory / "workers" / name).write_text(text, encoding="utf-8")


def _environment(directory: Path, store: str) -> Mapping[str, str]:
    """This one's, without what whoever measures has set up for signoff."""
    own = {name: value for name, value in os.environ.items() if not name.startswith("SIGNOFF_")}
    path = [str(HERE), *filter(None, [own.get("PYTHONPATH")])]
    ours = {"SIGNOFF_STORE": store, "SIGNOFF_AS": "ana", "XDG_CONFIG_HOME": str(directory / "home")}
    return {**own, **ours, "PYTHONPATH": os.pathsep.join(path)}


@dataclass
class _Program:
    """A program that asks a model; says how many seconds after its start it did."""

    command: tuple[str, ...]
    directory: Path
    environment: Mapping[str, str]
    imports: list[float] = field(default_factory=list[float])
    """Seconds of those that went to importing PydanticAI."""

    def __call__(self) -> float:
        note = self.directory / "noted"
        note.unlink(missing_ok=True)
        start = time.monotonic()
        done = subprocess.run(
            self.command,
            cwd=self.directory,
            env={**self.environment, "BENCH_FIRST_REQUEST": str(note)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert done.stdout.splitlines()[0] == DONE, done.stdout
        moment, imported = map(float, note.read_text(encoding="utf-8").split())
        self.imports.append(imported)
        return moment - start
