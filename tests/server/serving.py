"""The real `signoff serve`, started as a program of its own, and a project for it to look after."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests import start
from tests.cli.program import called

PATIENCE = 90
"""Seconds until a test that waits for something gives up."""
PROJECT = """\
policy: [{ask: "*"}]
"""
WORKER = "description: Stamps things.\ninstructions: Stamp it.\nmodel: script:scribe.turns\ntoolsets: [stamps]\n"
TURNS = """\
- calls: [{tool: stamp, args: {text: one}}]
- say: "Stamped: {{last}}"
"""
TWICE = """\
- calls: [{tool: stamp, args: {text: one}}]
- calls: [{tool: stamp, args: {text: two}}]
- say: "Stamped: {{last}}"
"""
STAMPS = '''
"""A tool that leaves a trace each time it runs, where it stands; it takes as long as there is a file called `wait`."""

import asyncio
from pathlib import Path

from pydantic_ai.toolsets import FunctionToolset

stamps = FunctionToolset()


@stamps.tool_plain
async def stamp(text: str) -> str:
    """Stamp a text."""
    with open("stamps.txt", "a") as file:
        file.write(f"{text}\\n")
    while Path("wait").exists():
        await asyncio.sleep(0.02)
    return f"{text} is stamped"


TOOLSETS = {"stamps": stamps}
'''
AGENT = '''
"""A program with an agent of its own."""

import asyncio
import sys
from pathlib import Path

from pydantic_ai import Agent, DeferredToolRequests

from signoff import Signoff
from signoff.testing import ScriptedModel

MODEL = ScriptedModel(
    [{"calls": [{"tool": "pay", "args": {"to": "ben"}}]}, {"say": "Paid: {{last}}"}]
)
GATE = Signoff([{"ask": "*"}], store="sqlite:%(store)s", wait="suspend")
agent = Agent(MODEL, name="%(name)s", output_type=[str, DeferredToolRequests], capabilities=[GATE])


@agent.tool_plain
def pay(to: str) -> str:
    """Pay somebody."""
    with open("paid.txt", "a") as file:
        file.write(f"%(name)s pays {to}\\n")
    return "done"


async def main() -> None:
    async with asyncio.timeout(60):
        await agent.run("Pay Ben.")


if __name__ == "__main__":
    asyncio.run(main())
'''


def until(holds: Callable[[], Any], what: str, patience: float = PATIENCE) -> Any:
    """What `holds` gives as soon as that is something."""
    end, never = time.monotonic() + patience, threading.Event()
    while not (found := holds()):
        assert time.monotonic() < end, f"waited {patience} s until {what}"
        never.wait(0.02)
    return found


DESK = frozenset({"approve", "deny", "inbox", "runs", "tokens"})


@dataclass
class Shop:
    """A project in a directory, and commands typed there."""

    directory: Path
    store: str = ""
    environment: Mapping[str, str] = field(default_factory=dict[str, str])

    def __post_init__(self) -> None:
        self.directory.mkdir(parents=True, exist_ok=True)
        self.store = self.store or f"sqlite:{self.directory / 'approvals.db'}"

    def write(self, project: str = PROJECT, turns: str = TURNS) -> Shop:
        (self.directory / "signoff.yaml").write_text(project)
        (self.directory / "toolsets.py").write_text(STAMPS)
        (self.directory / "workers").mkdir(exist_ok=True)
        (self.directory / "workers" / "scribe.yaml").write_text(WORKER)
        (self.directory / "workers" / "scribe.turns").write_text(turns)
        return self

    def put(self, name: str, text: str = "") -> Path:
        (self.directory / name).write_text(text)
        return self.directory / name

    @property
    def plain(self) -> dict[str, str]:
        """What its commands find in the environment."""
        plain = {"COLUMNS": "80", "TERM": "dumb", "NO_COLOR": "1", "SIGNOFF_AS": "ana", "PYTHONUNBUFFERED": "1"}
        return {**os.environ, **plain, "SIGNOFF_STORE": self.store, **self.environment}

    def signoff(self, *words: str, code: int | None = 0) -> str:
        """What a command prints. One that looks or answers, and succeeds, has no need of a process of its own."""
        if code == 0 and words[0] in DESK:
            done = called(words, self.directory, self.plain)
        else:
            command = [*start.SIGNOFF, *words]
            done = start.run(command, cwd=self.directory, capture_output=True, text=True, env=self.plain)
        assert code is None or done.returncode == code, (words, done.returncode, done.stdout, done.stderr)
        return done.stdout if code == 0 else done.stdout + done.stderr

    def asks(self, worker: str = "scribe") -> tuple[str, str]:
        """A run that suspends at its first question: its id, and that of the request."""
        said = json.loads(self.signoff("run", worker, "Stamp it", "--suspend", "--json", code=3).splitlines()[-1])
        return said["run"], said["waiting"][0]["request"]

    def token(self, *permissions: str) -> str:
        """A key of whoever works here."""
        asked = [word for one in permissions for word in ("--permission", one)]
        return self.signoff("tokens", "create", "ana", *asked).strip()

    def waiting(self) -> list[str]:
        return [one["id"] for one in json.loads(self.signoff("inbox", "--json"))["requests"]]

    def run_word(self, run: str) -> str:
        """How a run stands."""
        return next(one["state"] for one in self.runs() if one["id"] == run)

    def runs(self) -> list[dict[str, Any]]:
        return json.loads(self.signoff("runs", "--json", "--all"))["runs"]

    def lines(self, name: str = "stamps.txt") -> list[str]:
        file = self.directory / name
        return file.read_text().splitlines() if file.exists() else []

    @contextmanager
    def serving(self, *words: str, log: str = "json") -> Generator[Served]:
        """The server with these options; killed in the end, if it has not ended."""
        process = start.Process(
            [*start.SIGNOFF, "serve", "--port", "0", "--log", log, *words],
            cwd=self.directory,
            env=self.plain,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE if log == "json" else subprocess.STDOUT,
            text=True,
        )
        with process:
            served = Served(process, start.Lines(process))
            try:
                yield served
            finally:
                process.kill()


@dataclass
class Served:
    """A server, while it runs."""

    process: start.Process
    printed: start.Lines

    def event(self, name: str) -> dict[str, Any]:
        """The first event of that name, which may be yet to come."""
        return json.loads(self.printed.until(f'"event": "{name}"', PATIENCE))

    @property
    def url(self) -> str:
        return self.event("listening")["url"]

    def get(self, path: str, **headers: str) -> tuple[int, str]:
        """Status and body."""
        request = urllib.request.Request(f"{self.url}{path}", headers=headers)
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def call(self, method: str, path: str, token: str, body: object = None) -> tuple[int, Any]:
        """Status and data of a request to the API."""
        data = json.dumps(body).encode() if body is not None else None
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        request = urllib.request.Request(f"{self.url}/api/v1{path}", data, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return answer.status, json.loads(answer.read())
        except urllib.error.HTTPError as error:
            return error.code, json.loads(error.read())

    def metric(self, line: str) -> float:
        """The value of a line of the metrics; 0 where it is not there."""
        found = (one.rpartition(" ") for one in self.get("/metrics")[1].splitlines())
        return next((float(value) for name, _, value in found if name == line), 0.0)

    def stop(self, number: int = signal.SIGTERM) -> int:
        """Its exit code, once it has printed everything."""
        self.process.send_signal(number)
        self.printed.rest(PATIENCE)
        return self.process.wait(PATIENCE)

    def errors(self) -> str:
        """What it printed for people beside the log, once it has ended."""
        assert self.process.stderr is not None
        return self.process.stderr.read()

    def events(self) -> list[dict[str, Any]]:
        """Everything that was printed so far, each line one object."""
        return [json.loads(line) for line in self.printed.text.splitlines()]
