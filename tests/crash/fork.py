"""Processes that begin in no time: a server that has everything imported forks them.

Importing PydanticAI takes a second, a fork of a process that has done so some milliseconds. Whoever forks holds neither
threads nor connections, so what it forks is as fresh as a process that was just started.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
PATIENCE = 60
"""Seconds until a process that hangs is ended, which is then a failure."""
AT_ONCE = 2
"""Cases that run side by side."""


class Child:
    """A process that calls one function. What that returns is JSON."""

    def __init__(self, function: Callable[..., Any], *args: Any, **options: Any) -> None:
        handle, name = tempfile.mkstemp(prefix="signoff-child-")
        os.close(handle)
        self._answer = Path(name)
        self.status: int | None = None
        """How it ended, as `subprocess` tells it: minus the signal that killed it."""
        sys.stdout.flush()
        sys.stderr.flush()
        for thread in threading.enumerate():
            if thread is not threading.current_thread():
                thread.join(PATIENCE)  # left over from an event loop that has ended
        assert threading.active_count() == 1, f"{threading.enumerate()}: a process with threads is not forked safely"
        self.pid = os.fork()
        if not self.pid:
            self._main(function, args, options)

    def _main(self, function: Callable[..., Any], args: Sequence[Any], options: dict[str, Any]) -> None:
        code = 1
        try:
            signal.alarm(PATIENCE)
            answer = {"value": function(*args, **options)}
            code = 0
        except BaseException:
            answer = {"error": traceback.format_exc()}
        try:
            self._answer.write_text(json.dumps(answer), "utf-8")
        finally:
            os._exit(code)

    def wait(self) -> Any:
        """Its answer, once it has ended; raises where it failed. None where it was killed."""
        if self.status is None:
            self.ended(os.waitpid(self.pid, 0)[1])
        return self.answer()

    def ended(self, status: int) -> None:
        self.status = os.waitstatus_to_exitcode(status)

    def answer(self) -> Any:
        text = self._answer.read_text("utf-8")
        self._answer.unlink()
        if self.status == -signal.SIGKILL:
            return None
        told = json.loads(text) if text else {"error": f"it ended with {self.status}"}
        if "error" in told:
            raise RuntimeError(f"a process of the test failed:\n{told['error']}")
        return told["value"]

    def kill(self) -> None:
        """End it, if it has not."""
        if self.status is None:
            os.kill(self.pid, signal.SIGKILL)
            self.ended(os.waitpid(self.pid, 0)[1])
            self._answer.unlink()


def together(count: int, function: Callable[..., Any], *, rounds: int = 1) -> list[Any]:
    """Call `function(number, ready)` in that many processes. `ready()` returns in all of them at once, every time."""
    arrived, arrive = os.pipe()
    starts = [os.pipe() for _ in range(rounds)]

    def one(number: int) -> Any:
        waiting = iter(starts)
        for _, go in starts:
            os.close(go)

        def ready() -> None:
            start, _ = next(waiting)
            os.write(arrive, b".")
            os.read(start, 1)  # until the last of them is there, and the other end is closed

        return function(number, ready)

    children = [Child(one, number) for number in range(count)]
    os.close(arrive)
    for _, go in starts:
        left = count
        while left and (there := os.read(arrived, left)):
            left -= len(there)
        os.close(go)
    for start, _ in starts:
        os.close(start)
    os.close(arrived)
    return [child.wait() for child in children]


class ForkServer:
    """The server, seen from the tests."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.crash.fork"],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYDANTIC_AI_NO_BANNER": "1"},
        )

    def map(self, function: str, cases: Sequence[dict[str, Any]], *, at_once: int = AT_ONCE) -> list[Any]:
        """Call `module:function` with each of the cases, that many side by side, each in a process that may fork."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps({"function": function, "cases": cases, "at_once": at_once}) + "\n")
        self._process.stdin.flush()
        told = json.loads(self._process.stdout.readline())
        if "error" in told:
            raise AssertionError(told["error"])
        return told["values"]

    def call(self, function: str, **case: Any) -> Any:
        return self.map(function, [case])[0]

    def close(self) -> None:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()


# --- in the server ---


def serve() -> None:
    """Answer one line of cases with one line of results, until there are no more."""
    _warm_up()
    gc.collect()
    gc.freeze()  # so that no fork looks through all there is, and has to copy it for that
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # whatever a case prints goes where errors go
    for line in sys.stdin:
        asked = json.loads(line)
        module, _, name = asked["function"].partition(":")
        function = getattr(importlib.import_module(module), name)
        try:
            told = {"values": _all(function, asked["cases"], asked["at_once"])}
        except Exception:
            told = {"error": traceback.format_exc()}
        answers.write(json.dumps(told) + "\n")
        answers.flush()


def _all(function: Callable[..., Any], cases: Sequence[dict[str, Any]], at_once: int) -> list[Any]:
    workers = [Child(_some, function, cases[number::at_once]) for number in range(min(at_once, len(cases)))]
    values: list[Any] = [None] * len(cases)
    for number, worker in enumerate(workers):
        values[number::at_once] = worker.wait()
    return values


def _some(function: Callable[..., Any], cases: Sequence[dict[str, Any]]) -> list[Any]:
    values: list[Any] = []
    for case in cases:
        signal.alarm(PATIENCE)
        values.append(function(**case))
    return values


def _warm_up() -> None:
    """One whole trip, so that everything that is loaded on first use is there before the first fork."""
    from tests.crash.stage import warm_up

    warm_up()


if __name__ == "__main__":
    serve()
