"""A project in a fresh directory, used as a user does: files are written, the program is run, the disk is looked at."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent
from typing import Any

from tests import start
from tests.cli.program import called
from tests.profiles import NIGHTLY


@dataclass(frozen=True)
class Done:
    """What the program printed, and how it ended."""

    code: int
    out: str
    err: str

    @property
    def rows(self) -> list[dict[str, Any]]:
        """What `--json` printed, a line each."""
        return [json.loads(line) for line in self.out.splitlines()]

    @property
    def data(self) -> Any:
        """The one JSON value it printed."""
        return json.loads(self.out)

    def events(self, tool: str) -> list[str]:
        """What happened to the calls of a tool, in order."""
        return [row["event"] for row in self.rows if row.get("tool") == tool]


class Project:
    """A directory with `signoff.yaml`, and a home for whoever sits there."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory / "project"
        self.directory.mkdir()
        home = directory / "home"
        home.mkdir()
        kept = {name: value for name, value in os.environ.items() if not name.startswith("SIGNOFF_")}
        self.environment = {
            **kept,
            "HOME": str(home),
            "XDG_STATE_HOME": str(home / "state"),
            "XDG_CONFIG_HOME": str(home / "config"),
            "SIGNOFF_STORE": f"sqlite:{self.directory / 'store.db'}",
            "SIGNOFF_AS": "ana",
            "COLUMNS": "100",
            "TERM": "dumb",
        }

    def write(self, **files: str) -> None:
        """Files by name: `__` is `/`, and what has no suffix gets `.yaml`."""
        self.put({name.replace("__", "/"): text for name, text in files.items()})

    def put(self, files: Mapping[str, str]) -> None:
        for name, text in files.items():
            path = self.directory / (name if "." in name else f"{name}.yaml")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(dedent(text))

    def read(self, name: str) -> str:
        """What a file holds; empty where there is none."""
        found = self.directory / name
        return found.read_text() if found.exists() else ""

    def has(self, name: str) -> bool:
        return (self.directory / name).exists()

    def signoff(self, *arguments: str, given: str = "", **environment: str) -> Done:
        """Run the program, without a terminal.

        What goes on with a run is always a process of its own, which knows nothing but what was kept; at night
        everything is.
        """
        there = {**self.environment, **environment}
        done: subprocess.CompletedProcess[str]
        if NIGHTLY or "resume" in arguments or "PYTHONPATH" in environment:
            command = [*start.SIGNOFF, *arguments]
            done = start.run(command, cwd=self.directory, input=given, capture_output=True, text=True, env=there)
        else:
            done = called(arguments, self.directory, there, given)
        return Done(done.returncode, done.stdout, done.stderr)

    def run(self, worker: str, *flags: str, **environment: str) -> Done:
        """Run a worker by the script beside it, with `--json`."""
        script = f"script:workers/{worker}.turns"
        return self.signoff("run", worker, "Go on", "--model", script, "--json", *flags, **environment)

    def answers(self, paused: Done, *how: str, **environment: str) -> Done:
        """Answer everything that a run waits for, and go on with it in another process."""
        assert paused.code == 3, paused
        for one in paused.rows[-1]["waiting"]:
            answered = self.signoff(*(how or ("approve",)), one["request"], **environment)
            assert answered.code == 0, answered
        return self.signoff("resume", paused.rows[-1]["run"], "--json", **environment)

    def everything_kept(self) -> Iterator[tuple[str, bytes]]:
        """Every file below the directory and the home, with what it holds."""
        for path in sorted(self.directory.parent.rglob("*")):
            if path.is_file():
                yield path.name, path.read_bytes()
