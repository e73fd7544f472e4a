"""How tests start Python programs: in milliseconds, with everything imported already.

    start.run([sys.executable, "-c", "print(1)"], capture_output=True, text=True)     as subprocess.run
    start.Process([sys.executable, "script.py"], stdout=subprocess.PIPE)              as subprocess.Popen
    start.terminal([sys.executable, "script.py"], dimensions=(24, 80))                as pexpect.spawn
    start.signoff("inbox", "--json", cwd=...)                                         the program, as a user starts it

Each is a child of the test's own process that can be waited for, signalled and killed. Every one begins with default
signals, also where the tests themselves ignore SIGINT (`nohup ./dev test &`). What a fork could not honour, such as
`-I` or PYTHONIOENCODING, starts an interpreter as ever; so does everything on systems other than Linux, and everything
where SIGNOFF_TEST_STARTS=real.

One server a test process forks them (`tests.forkserver`), begun by the first test that needs it.
"""

from __future__ import annotations

import atexit
import ctypes
import inspect
import json
import os
import queue
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pexpect
import ptyprocess

from tests.forkserver import python_command

ROOT = Path(__file__).parents[1]
SIGNOFF = [sys.executable, "-c", "from signoff.cli.main import main; main()"]
"""The program; its arguments come behind."""
PATIENCE = 120
"""Seconds until a program that has not ended is killed, which is a failure of the test."""
HONOURED = frozenset({"PYTHON", "PYTHONPATH", "PYTHONUNBUFFERED", "PYTHONDONTWRITEBYTECODE"})
"""What a fork can do of that which Python reads from the environment when it starts; `PYTHON` only `./dev` reads."""
PR_SET_CHILD_SUBREAPER = 36


def run(
    command: Sequence[str],
    *,
    input: str | bytes | None = None,
    capture_output: bool = False,
    check: bool = False,
    timeout: float = PATIENCE,
    **options: Any,
) -> subprocess.CompletedProcess[Any]:
    """Start it and wait for its end, as `subprocess.run`."""
    if input is not None:
        options["stdin"] = subprocess.PIPE
    if capture_output:
        options["stdout"] = options["stderr"] = subprocess.PIPE
    with Process(command, **options) as process:
        try:
            out, err = process.communicate(input, timeout)
        except BaseException:
            process.kill()
            raise
    done = subprocess.CompletedProcess(list(command), process.returncode, out, err)
    if check:
        done.check_returncode()
    return done


def signoff(
    *arguments: str, cwd: Path | None = None, given: str = "", **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run `signoff` in a process of its own, with no terminal."""
    plain = {**os.environ, "COLUMNS": "80", "TERM": "dumb", **environment}
    return run([*SIGNOFF, *arguments], cwd=cwd, input=given, capture_output=True, text=True, env=plain)


def fresh(code: str, *arguments: str, **options: Any) -> str:
    """What code prints in an interpreter of its own that has imported nothing yet."""
    command = [sys.executable, "-c", code, *arguments]
    return run(command, fresh=True, stdout=subprocess.PIPE, text=True, check=True, **options).stdout


class Process(subprocess.Popen[Any]):
    """A process, as `subprocess.Popen`."""

    def __init__(self, command: Sequence[str], *, fresh: bool = False, serves: bool = False, **options: Any) -> None:
        """`fresh`: an interpreter of its own, for tests of what is imported, and when.

        `serves`: with a fork server of its own, where this one comes from one as well.
        """
        self.has_reader = False
        """Whether a thread reads what it prints."""
        self._serves = serves
        self._forks = not fresh and can_fork(command, options.get("env")) and not (OWN_WAYS & options.keys())
        if not self._forks:
            options.setdefault("preexec_fn", default_signals)
        super().__init__(list(command), **options)

    def __exit__(self, kind: type[BaseException] | None, *error: Any) -> None:
        """Wait until it has ended; where something failed it is ended. Popen would first close what somebody reads."""
        if kind is not None:
            self.kill()
        if self.has_reader:
            if self.stdin is not None:
                self.stdin.close()
            try:
                self.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                self.kill()
                raise AssertionError(f"it did not end within {PATIENCE} s: {self.args}") from None
        super().__exit__(kind, *error)

    def _execute_child(self, *options: Any) -> None:  # between what Popen prepares and what it waits for
        if not self._forks:
            super()._execute_child(*options)  # type: ignore[misc]
            return
        given = inspect.signature(super()._execute_child).bind(*options).arguments  # type: ignore[misc]
        pipes = [given[name] for name in ("p2cread", "p2cwrite", "c2pread", "c2pwrite", "errread", "errwrite")]
        stdin, _, _, stdout, _, stderr = pipes
        try:
            self.pid = server().fork(
                given["args"][1:],
                descriptors=[each if each != -1 else number for number, each in enumerate((stdin, stdout, stderr))],
                kept=given["pass_fds"],
                directory=given["cwd"],
                environment=given["env"],
                session=given["start_new_session"],
                serves=self._serves,
            )
            self._child_created = True
        finally:
            self._close_pipe_fds(*pipes)  # type: ignore[attr-defined]


class Lines:
    """What a program prints, line by line as it comes. Nobody waits for ever."""

    def __init__(self, process: Process) -> None:
        assert process.stdout is not None
        process.has_reader = True
        self.seen: list[str] = []
        """The lines that were waited for so far."""
        self._queue: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        threading.Thread(target=self._read, args=(process.stdout,), daemon=True).start()

    def _read(self, stream: Any) -> None:
        try:
            for line in stream:
                self._queue.put(line if isinstance(line, str) else line.decode())
        except ValueError:
            pass  # closed by whoever had enough
        self._queue.put(None)

    def next(self, what: str, patience: float = PATIENCE) -> str:
        """The next line, which should be `what`."""
        line = self._next(what, patience)
        assert line is not None, f"it ended before {what}, after:\n{self.text}"
        return line

    def until(self, part: str, patience: float = PATIENCE) -> str:
        """The first line with this in it, also among those that were seen already."""
        for line in self.seen:
            if part in line:
                return line
        while part not in (line := self.next(f"a line with {part!r}", patience)):
            pass
        return line

    def rest(self, patience: float = PATIENCE) -> str:
        """Everything it printed, once it closed its output."""
        while self._next("its end", patience) is not None:
            pass
        return self.text

    @property
    def text(self) -> str:
        return "".join(self.seen)

    def _next(self, what: str, patience: float) -> str | None:
        try:
            line = self._queue.get(timeout=patience)
        except queue.Empty:
            raise AssertionError(f"waited {patience} s for {what}, after:\n{self.text}") from None
        if line is None:
            self._queue.put(None)
        else:
            self.seen.append(line)
        return line


OWN_WAYS = frozenset({"preexec_fn", "user", "group", "extra_groups", "umask", "shell", "executable", "process_group"})
"""Options of Popen that are left to it."""


class _Terminal(pexpect.spawn):  # type: ignore[type-arg]
    """A program at a pseudo-terminal of its own."""

    def __init__(self, command: Sequence[str], *, fresh: bool, **options: Any) -> None:
        self._fresh = fresh
        super().__init__(command[0], list(command[1:]), **options)

    def _spawnpty(self, args: list[Any], **options: Any) -> ptyprocess.PtyProcess:
        words = [word.decode() if isinstance(word, bytes) else word for word in args]
        if self._fresh or not can_fork(words, self.env):
            return super()._spawnpty(args, **options)
        ours, theirs = os.openpty()
        try:
            rows, columns = options.get("dimensions") or (24, 80)
            ptyprocess.ptyprocess._setwinsize(theirs, rows, columns)
            pid = server().fork(
                words[1:], descriptors=[theirs] * 3, directory=self.cwd, environment=self.env, terminal=True
            )
        except BaseException:
            os.close(ours)
            raise
        finally:
            os.close(theirs)
        return ptyprocess.PtyProcess(pid, ours)


def terminal(command: Sequence[str], *, fresh: bool = False, **options: Any) -> Any:
    """A program at a real (pseudo) terminal, as `pexpect.spawn`; `fresh` as for a `Process`."""
    options.setdefault("timeout", 60)
    options.setdefault("dimensions", (24, 80))
    options.setdefault("preexec_fn", default_signals)
    if isinstance(options.get("cwd"), Path):
        options["cwd"] = str(options["cwd"])
    return _Terminal(command, fresh=fresh, **options)


def default_signals() -> None:
    """For whatever starts programs in another way: ignored signals are inherited."""
    for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGHUP, signal.SIGTSTP):
        signal.signal(number, signal.SIG_DFL)


# --- the server, seen from the tests ---


def can_fork(command: Sequence[str], environment: Mapping[str, str] | None) -> bool:
    """Whether a fork does the same as a start of this command."""
    if sys.platform != "linux" or command[0] != sys.executable or os.environ.get("SIGNOFF_TEST_STARTS") == "real":
        return False
    given = os.environ if environment is None else environment
    if any(name.startswith("PYTHON") and name not in HONOURED for name in given):
        return False
    try:
        python_command(command[1:])
    except LookupError:
        return False
    return True


class Server:
    """The fork server of this process."""

    def __init__(self, connection: socket.socket, process: int) -> None:
        self.owner = os.getpid()
        self._lock = threading.Lock()
        self._prctl: Callable[..., int] = ctypes.CDLL(None).prctl
        self._connection, self._process = connection, process
        self._connection.settimeout(PATIENCE)

    @classmethod
    def begun(cls) -> Server:
        """One that imports everything first."""
        ours, theirs = socket.socketpair()
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.forkserver", str(theirs.fileno())],
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=2,
            pass_fds=[theirs.fileno()],
            env={**os.environ, "PYDANTIC_AI_NO_BANNER": "1"},
        )
        theirs.close()
        made = cls(ours, process.pid)
        assert ours.recv(1) == b"!", "the fork server did not start: its errors are above"
        process.returncode = 0  # its end is waited for by its number
        return made

    def fork(
        self,
        arguments: Sequence[str],
        *,
        descriptors: Sequence[int],
        kept: Sequence[int] = (),
        directory: object = None,
        environment: Mapping[str, str] | None = None,
        session: bool = False,
        terminal: bool = False,
        serves: bool = False,
    ) -> int:
        """Start `python ARGUMENTS`; the id of the process, which is a child of this one.

        With `serves` it has a fork server of its own from the beginning.
        """
        order = {
            "serves": serves,
            "arguments": list(arguments),
            "directory": str(directory or os.getcwd()),
            "environment": dict(os.environ if environment is None else environment),
            "session": session or terminal,
            "terminal": terminal,
            "kept": list(kept),
        }
        content = json.dumps(order).encode()
        with self._lock:
            # Whoever asks adopts the program when the process in between ends, and only then: other orphans go to init.
            self._prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
            try:
                socket.send_fds(self._connection, [struct.pack("!I", len(content))], [*descriptors, *kept])
                self._connection.sendall(content)
                (pid,) = struct.unpack("!I", self._connection.recv(4))
            finally:
                self._prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)
        return pid

    def close(self) -> None:
        if os.getpid() == self.owner:
            self._connection.shutdown(socket.SHUT_RDWR)  # then it ends, whoever else has inherited the connection
            ending = os.pidfd_open(self._process)
            assert select.select([ending], [], [], PATIENCE)[0], "the fork server does not end"
            os.close(ending)
            os.waitpid(self._process, 0)
        self._connection.close()


_server: Server | None = None


def server() -> Server:
    """The fork server of this process, begun by the first who asks."""
    if _server is None or _server.owner != os.getpid():
        adopt(Server.begun())
    assert _server is not None
    return _server


def adopt(made: Server) -> None:
    global _server
    _server = made
    atexit.register(made.close)
