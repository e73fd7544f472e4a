"""Processes that call one function each: a server without threads or connections forks them.

It is a fork of the server of `tests.start`, which has everything imported; a process that had imported less would not
be forked more quickly.
"""

from __future__ import annotations

import faulthandler
import gc
import importlib
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, ClassVar

from tests import start

ROOT = Path(__file__).parents[2]
PATIENCE = 60
"""Seconds until a process that hangs is ended, which is then a failure."""
PATIENCE_WITH_A_CASE = 2 * PATIENCE
"""The same for one that conducts a case: longer, so that whichever hangs of those it started is ended first."""
AT_ONCE = 2
"""Cases that run side by side."""


def heard(pipe: int, what: str, most: int = 1, *, within: float = PATIENCE / 2) -> bytes:
    """What comes through a pipe; nothing, once nobody can say anything any more. Fails where neither happens.

    `what` is what is waited for, in words for whoever reads of the failure.
    """
    ready, _, _ = select.select([pipe], [], [], within)
    assert ready, f"waited {within:g} s for this, and it did not happen: {what}"
    return os.read(pipe, most)


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
        stood = open(self._answer, "w", encoding="utf-8")  # noqa: SIM115, open until the process is gone
        try:
            limited(stood)
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
        if self.status is None:  # which it does: its own limit ends it
            self.ended(os.waitpid(self.pid, 0)[1])
        return self.answer()

    def ended(self, status: int) -> None:
        self.status = os.waitstatus_to_exitcode(status)

    def answer(self) -> Any:
        text = self._answer.read_text("utf-8")
        self._answer.unlink()
        if self.status == -signal.SIGKILL:
            return None
        if self.status == -signal.SIGALRM:
            raise RuntimeError(f"a process of the test was not done in time, and stood here:\n{text}")
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


def limited(stood: IO[str]) -> None:
    """End this process when its time is up, and say before that where every thread of it stood."""
    faulthandler.register(signal.SIGALRM, stood, all_threads=True, chain=True)
    signal.alarm(PATIENCE)


def together(count: int, function: Callable[..., Any], *, rounds: int = 1) -> list[Any]:
    """Call `function(number, ready)` in that many processes. `ready()` returns in all of them at once, every time."""
    arrived, arrive = os.pipe()
    starts = [os.pipe() for _ in range(rounds)]

    def one(number: int) -> Any:
        waiting = iter(starts)
        for _, go in starts:
            os.close(go)

        def ready() -> None:
            begin, _ = next(waiting)
            os.write(arrive, b".")
            heard(begin, f"all {count} are there")  # then the other end is closed

        return function(number, ready)

    children = [Child(one, number) for number in range(count)]
    os.close(arrive)
    for number, (_, go) in enumerate(starts):
        left = count
        while left and (there := heard(arrived, f"{left} more of {count} arrive for round {number}", left)):
            left -= len(there)
        os.close(go)
    for begin, _ in starts:
        os.close(begin)
    os.close(arrived)
    return [child.wait() for child in children]


class ForkServer:
    """The server, seen from the tests."""

    _shared: ClassVar[list[ForkServer]] = []
    _users: ClassVar[int] = 0

    @classmethod
    @contextmanager
    def shared(cls) -> Iterator[ForkServer]:
        """The one server of this process, which lives as long as anybody is inside."""
        if not cls._shared:
            cls._shared.append(cls())
        cls._users += 1
        try:
            yield cls._shared[0]
        finally:
            cls._users -= 1
            if not cls._users:
                cls._shared.pop().close()

    def __init__(self) -> None:
        self._process = start.Process(
            [sys.executable, "-m", "tests.crash.fork"],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYDANTIC_AI_NO_BANNER": "1"},
        )

    def map(self, function: str, cases: Sequence[dict[str, Any]], *, at_once: int = AT_ONCE) -> list[Any]:
        """Call `module:function` with each of the cases, that many side by side, each in a process that may fork."""
        assert self._process.stdin is not None
        # The server outlives the test that started it, and each test keeps its keys in a place of its own.
        state = os.environ["XDG_STATE_HOME"]
        asked = {"function": function, "cases": cases, "at_once": at_once, "state": state}
        self._process.stdin.write(json.dumps(asked).encode() + b"\n")
        self._process.stdin.flush()
        # No case takes longer than its limit; on top of that, the server may have to start.
        within = PATIENCE_WITH_A_CASE * -(-len(cases) // at_once) + PATIENCE
        told = json.loads(self._line(f"{len(cases)} cases of {function}, the first of them {cases[:1]}", within))
        if "error" in told:
            raise AssertionError(told["error"])
        return told["values"]

    def _line(self, what: str, within: float) -> bytes:
        """The next line that the server says; it says one for each that it is told."""
        assert self._process.stdout is not None
        end, line = time.monotonic() + within, b""
        while not line.endswith(b"\n"):
            more = heard(self._process.stdout.fileno(), what, 1 << 16, within=max(0, end - time.monotonic()))
            assert more, f"the fork server ended with {self._process.wait(PATIENCE)} instead of doing this: {what}"
            line += more
        return line

    def call(self, function: str, **case: Any) -> Any:
        return self.map(function, [case])[0]

    def close(self) -> None:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        try:
            self._process.wait(PATIENCE)
        finally:
            self._process.kill()
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
        os.environ["XDG_STATE_HOME"] = asked["state"]
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
        signal.alarm(PATIENCE_WITH_A_CASE)
        values.append(function(**case))
    return values


def _warm_up() -> None:
    """One whole trip, so that everything that is loaded on first use is there before the first fork."""
    from tests.crash.stage import warm_up

    warm_up()


if __name__ == "__main__":
    serve()
