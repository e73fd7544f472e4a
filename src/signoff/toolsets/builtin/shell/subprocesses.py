"""Start the processes of one call within limits, and kill all of them at its end.

The work is done in a thread of its own, so that the event loop is not blocked. A call's processes are recognised by
their session, and on Linux also by an environment variable and a resource limit that all of them inherit. So a daemon
that leaves the session, or clears its environment, is found and killed too.
"""

from __future__ import annotations

import asyncio
import codecs
import os
import resource
import selectors
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple, TypeVar
from uuid import uuid4

from signoff.core.counted import counted
from signoff.core.result_text import output_text
from signoff.toolsets.builtin.shell.environment import MARK, find_program
from signoff.toolsets.builtin.shell.sweep import started, sweep

T = TypeVar("T")

LINUX = sys.platform == "linux"
_TICK = 0.02
"""Polling interval in seconds for the end of a child, on systems without pidfd."""
_GRACE = 2.0
"""Seconds to wait until killed processes are gone."""


class ProcessLimits(NamedTuple):
    """The limits of one call: timeout, output, file size and glob matches."""

    seconds: float = 60.0
    output: int = 100_000
    """Bytes of output that are kept; the rest is counted."""
    file_size: int = 4 << 30
    """Bytes that a program may write into one file."""
    matches: int = 10_000
    """Files that the globs of one command may match."""


USUAL = ProcessLimits()


class CommandResult(NamedTuple):
    """How a command ended, and what it printed."""

    code: int
    """The exit status as a shell reports it: 128 plus the signal number if a signal ended it."""
    out: str = ""
    err: str = ""
    stopped: str = ""
    """Why it was stopped early (timeout or cancellation); empty if it was not."""
    doubt: str = ""
    """Why it, or the rest of it, was not run without approval."""

    @property
    def text(self) -> str:
        """For the model: the output, standard error marked, and the exit status unless it is 0."""
        return output_text(self.out, self.err, code=self.code, stopped=self.stopped)


class Capture:
    """The beginning and the end of a stream, and how much was left out between them."""

    def __init__(self, limit: int) -> None:
        self._half = max(limit // 2, 1)
        self._head = bytearray()
        self._tail = bytearray()
        self._left_out = 0

    def add(self, data: bytes) -> None:
        room = self._half - len(self._head)
        if room > 0:
            self._head += data[:room]
            data = data[room:]
        self._tail += data
        if len(self._tail) > 2 * self._half:
            self._trim()

    def _trim(self) -> None:
        if (extra := len(self._tail) - self._half) > 0:
            del self._tail[:extra]
            self._left_out += extra

    @property
    def text(self) -> str:
        """The kept output, cut between characters. A NUL is shown like an invalid byte: stores may not take it."""
        self._trim()
        if not self._left_out:
            return bytes(self._head + self._tail).decode("utf-8", "replace").replace("\0", "\ufffd")
        head = codecs.getincrementaldecoder("utf-8")("replace").decode(self._head)
        start = next((at for at, byte in enumerate(self._tail[:4]) if byte & 0xC0 != 0x80), 0)
        tail = self._tail[start:].decode("utf-8", "replace")
        return f"{head}\n[… {counted(self._left_out, 'byte')} left out …]\n{tail}".replace("\0", "\ufffd")


class CallProcesses:
    """The processes of one call. Use it with `with`, in a thread of its own: at the end all processes are gone."""

    def __init__(self, limits: ProcessLimits) -> None:
        self.limits = limits
        self.stopped = ""
        self._until = time.monotonic() + limits.seconds
        self._mark = uuid4()
        self._file_size = limits.file_size + self._mark.int % (1 << 24)
        self._children: list[subprocess.Popen[bytes]] = []
        self._since = 0
        self._lock = threading.Lock()
        self._closed = False
        self._out, self._err = Capture(limits.output * 3 // 4), Capture(limits.output // 4)
        self._selector = selectors.DefaultSelector()
        self._wake, self._waker = os.pipe()
        self._fds = [self._wake, self._waker]
        self._selector.register(self._wake, selectors.EVENT_READ, None)
        self.out, self.err = self._stream(self._out), self._stream(self._err)
        """The pipes that programs write to."""

    def _stream(self, capture: Capture) -> int:
        reads, writes = os.pipe()
        os.set_blocking(reads, False)
        self._fds.append(reads)
        self._selector.register(reads, selectors.EVENT_READ, capture)
        return writes

    def __enter__(self) -> CallProcesses:
        return self

    def __exit__(self, *_: object) -> None:
        """Kill what still runs, and collect its output."""
        try:
            self._end()
        finally:
            with self._lock:
                self._closed = True
                self._selector.close()
                for fd in self._fds:
                    os.close(fd)

    def cancel(self) -> None:
        """Stop the call. Thread-safe."""
        with self._lock:
            if not self._closed:
                os.write(self._waker, b"x")

    def outcome(self, code: int, doubt: str = "") -> CommandResult:
        """The result, once the call is over."""
        return CommandResult(code, self._out.text, self._err.text, self.stopped, doubt)

    def say(self, text: str) -> None:
        """Add a line to the command's standard error."""
        self.drain()
        self._err.add(text.encode("utf-8", "surrogateescape") + b"\n")

    def limit_words(self) -> list[str]:
        """Words in front of a command that set its resource limits before it starts; empty without `prlimit`."""
        found = find_program("prlimit") if LINUX else None
        if found is None or not found.path:
            return []
        wanted = {"core": resource.RLIMIT_CORE, "fsize": resource.RLIMIT_FSIZE, "cpu": resource.RLIMIT_CPU}
        limits = self._limits()
        return [found.path, *(f"--{name}={limits[kind]}" for name, kind in wanted.items()), "--"]

    def _limits(self) -> Mapping[int, int]:
        """The resource limits of every process. The limit on file size also marks the processes."""
        seconds = int(self.limits.seconds * (os.cpu_count() or 1)) + 10
        wanted = {
            resource.RLIMIT_CORE: 0,
            resource.RLIMIT_FSIZE: self._file_size,
            resource.RLIMIT_CPU: seconds,
        }
        hard = {kind: resource.getrlimit(kind)[1] for kind in wanted}
        return {
            kind: size if hard[kind] == resource.RLIM_INFINITY else min(size, hard[kind])
            for kind, size in wanted.items()
        }

    def _marking_size(self) -> int | None:
        """The limit on file size that only processes of this call have; None if a lower hard limit had to be used."""
        hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
        return self._file_size if hard == resource.RLIM_INFINITY or self._file_size < hard else None

    def spawn(
        self,
        argv: Sequence[str],
        *,
        program: str = "",
        directory: str,
        environment: Mapping[str, str],
        stdin: int,
        stdout: int,
        stderr: int,
    ) -> subprocess.Popen[bytes]:
        """Start a program. Raises `OSError` if it cannot be started."""
        child = subprocess.Popen(
            list(argv),
            executable=program or None,
            cwd=directory,
            env={**environment, MARK: self._mark.hex},
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            start_new_session=True,
            close_fds=True,
            restore_signals=True,  # SIGPIPE must end a writer whose reader is gone
            umask=0o022,
        )
        self._children.append(child)
        if LINUX:
            self._since = self._since or started(child.pid)
            for kind, size in self._limits().items():
                with suppress(OSError, ValueError):  # it may have ended already
                    resource.prlimit(child.pid, kind, (size, size))
        return child

    def wait(self, children: Sequence[subprocess.Popen[bytes]]) -> bool:
        """Collect output until all children have ended. Returns False if the call is over (timeout or cancellation)."""
        watched = [fd for child in children if (fd := self._watch(child)) is not None]
        try:
            while not self.over() and any(ended(child) is None for child in children):
                left = max(self._until - time.monotonic(), 0)
                self._take(left if len(watched) == len(children) else min(left, _TICK))
        finally:
            for fd in watched:
                self._selector.unregister(fd)
                os.close(fd)
        return not self.stopped

    def _watch(self, child: subprocess.Popen[bytes]) -> int | None:
        """Watch for the end of a child with a pidfd, if the system has them."""
        if not hasattr(os, "pidfd_open"):
            return None
        try:
            fd = os.pidfd_open(child.pid)
        except OSError:
            return None
        self._selector.register(fd, selectors.EVENT_READ, child)
        return fd

    def over(self) -> bool:
        """Whether the call was stopped or has timed out."""
        if not self.stopped and time.monotonic() >= self._until:
            self.stopped = f"it took longer than {self.limits.seconds:g} seconds"
        return bool(self.stopped)

    def drain(self) -> None:
        """Collect what has been printed so far."""
        while self._take(0):
            pass

    def _take(self, seconds: float) -> bool:
        """Wait for output or an event. Returns whether anything was read."""
        took = False
        for key, _ in self._selector.select(seconds):
            if isinstance(key.data, Capture):
                with suppress(BlockingIOError):
                    data = os.read(key.fd, 1 << 16)
                    key.data.add(data)
                    took = took or bool(data)
                    if not data:
                        self._selector.unregister(key.fd)
            elif key.data is None and not self.stopped:
                self.stopped = "the call was cancelled"
        return took

    def _end(self) -> None:
        for child in self._children:  # not reaped yet, so its pid cannot have been reused
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(child.pid, signal.SIGKILL)
        for child in self._children:
            with suppress(subprocess.TimeoutExpired):
                child.wait(_GRACE)
        if LINUX and self._children and not sweep(f"{MARK}={self._mark.hex}", self._marking_size(), self._since):
            self._err.add(b"[a process of this command could not be ended]\n")
        os.close(self.out)
        os.close(self.err)
        self._selector.unregister(self._wake)
        until = time.monotonic() + _GRACE
        while self._selector.get_map() and (left := until - time.monotonic()) > 0:
            self._take(left)


def ended(child: subprocess.Popen[bytes]) -> int | None:
    """The exit status of a child as a shell reports it; None while it runs.

    The child is not reaped, so that its pid cannot be reused.
    """
    if not hasattr(os, "waitid"):  # macOS before Python 3.13
        code = child.poll()
        return code if code is None or code >= 0 else 128 - code
    if child.returncode is None:
        try:
            found = os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:  # another part of this program has reaped it
            return child.wait()
        if found is None:
            return None
        return found.si_status if found.si_code == os.CLD_EXITED else 128 + found.si_status
    return child.returncode if child.returncode >= 0 else 128 - child.returncode


async def in_thread(
    limits: ProcessLimits, work: Callable[[CallProcesses], T], finish: Callable[[CallProcesses, T], CommandResult]
) -> CommandResult:
    """Do `work` with a new call in a thread. `finish` makes the result once all processes have ended.

    If the task is cancelled, the processes are killed before it ends.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[CommandResult] = loop.create_future()
    call = CallProcesses(limits)

    def tell(outcome: CommandResult | None, error: BaseException | None) -> None:
        if error is not None:
            done.set_exception(error)
        elif outcome is not None:
            done.set_result(outcome)

    def run() -> None:
        outcome, failed = None, None
        try:
            with call:
                made = work(call)
            outcome = finish(call, made)
        except BaseException as error:
            failed = error
        with suppress(RuntimeError):  # the event loop is closed, so nobody waits
            loop.call_soon_threadsafe(tell, outcome, failed)

    try:
        threading.Thread(target=run, name="signoff-shell").start()
    except RuntimeError:  # no more threads
        call.__exit__()
        raise
    cancelled = False
    while not done.done():
        try:
            await asyncio.wait([done])
        except asyncio.CancelledError:
            cancelled = True
            call.cancel()
    if cancelled:
        done.exception()
        raise asyncio.CancelledError
    return done.result()
