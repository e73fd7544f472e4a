"""A program from the fork server is the program that an interpreter of its own would be."""

from __future__ import annotations

import ast
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pexpect
import pytest
from tests import start
from tests.pairwise import cases

linux = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere every program has an interpreter of its own")

PROBES = {
    "arguments": "import sys; print(sys.argv)",
    "directory": "import os, sys; print(os.getcwd(), sys.path[0])",
    "import path": "import sys; print(sys.path)",
    "environment": "import os; print(sorted(os.environ.items()))",
    "time zone": "import time; print(time.strftime('%Z', time.localtime(0)))",
    "parent": "import os; print(os.getppid())",
    "group and session": "import os; print(os.getpgrp(), os.getsid(0))",
    "standard input": "import sys; print(sys.stdin.read(), sys.stdin.isatty())",
    "descriptors": "import os; print(sorted(map(int, os.listdir('/proc/self/fd')))[:-1])",
    "signals": (
        "import signal; print({s.name: signal.getsignal(s) for s in signal.valid_signals() "
        "if hasattr(s, 'name') and s not in (9, 19)}, signal.pthread_sigmask(signal.SIG_BLOCK, []))"
    ),
    "streams": (
        "import sys; [print(s.encoding, s.errors, s.line_buffering, s.mode, s.name) "
        "for s in (sys.stdin, sys.stdout, sys.stderr)]"
    ),
    "main": "import __main__, sys; print(__name__, __main__ is sys.modules['__main__'], sorted(vars(__main__))[-3:])",
    "exit code": "raise SystemExit(7)",
    "exit with a text": "raise SystemExit('bad')",
    "exit with nothing": "import sys; sys.exit()",
    "traceback": "def f():\n    1/0\nf()",
    "interrupted": "raise KeyboardInterrupt",
    "at exit": "import atexit; atexit.register(print, 'bye'); print('hi')",
    "a thread that goes on": "import threading, time; threading.Timer(0.01, print, ['late']).start()",
    "killed": "import os; print('lost'); os.kill(os.getpid(), 9)",
    "half a line": "import sys; sys.stdout.write('half')",
    "both streams": "import sys; print('out'); print('err', file=sys.stderr)",
    "a warning": "import warnings; warnings.warn('careful')",
}


def both(command: list[str], **options: Any) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Exit code and output of a program from the fork server, and of the same in an interpreter of its own."""
    told = []
    for fresh in (False, True):
        done = start.run(command, fresh=fresh, capture_output=True, text=True, input="given", **options)
        told.append((done.returncode, done.stdout, done.stderr))
    return told[0], told[1]


WAYS = [
    *(("-c", probe) for probe in PROBES),
    *((way, probe) for way in ("script", "-m") for probe in ("arguments", "import path", "main", "traceback")),
]


@linux
@pytest.mark.parametrize(("way", "probe"), cases(WAYS, WAYS[::3]))  # what is compared changes with these tests only
def test_it_is_like_a_start(way: str, probe: str, tmp_path: Path) -> None:
    (tmp_path / "probe.py").write_text(PROBES[probe])
    words = {"-c": ["-c", PROBES[probe]], "script": ["probe.py"], "-m": ["-m", "probe"]}[way]
    environment = {**os.environ, "TZ": "Asia/Tokyo", "PYTHONPATH": f"{tmp_path}:/nowhere", "OF_THIS_TEST": "1"}
    command = [sys.executable, *words, "one", "--two", ""]
    forked, fresh = both(command, cwd=tmp_path, env=environment)
    if way == "-m" and fresh[2]:  # Python's own lines of running a module
        forked, fresh = (*forked[:2], forked[2][-40:]), (*fresh[:2], fresh[2][-40:])
    assert forked == fresh


@linux
def test_warnings_are_errors_where_they_are_meant_to_be() -> None:
    forked, fresh = both([sys.executable, "-W", "error", "-c", PROBES["a warning"]])
    assert forked == fresh
    assert forked[0] == 1


@linux
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL, signal.SIGHUP])
@pytest.mark.parametrize("fresh", [False, True], ids=["forked", "fresh"])
def test_signals_reach_it_also_where_the_tests_ignore_them(number: signal.Signals, fresh: bool) -> None:
    """As under `nohup ./dev test &`."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        # Not `pause`: a signal that comes just before it is noted, and then waits for another one.
        code = "import time\nprint('ready', flush=True)\nwhile True: time.sleep(0.01)"
        with start.Process(
            [sys.executable, "-c", code], fresh=fresh, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        ) as process:
            start.Lines(process).next("ready")
            process.send_signal(number)
            assert process.wait(30) == -number
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_terminal_is_its_own() -> None:
    code = (
        "import os; print(os.isatty(0), os.get_terminal_size(), os.getsid(0) == os.getpid(), os.tcgetpgrp(0) == "
        "os.getpid()); input('name? ')"
    )
    child = start.terminal([sys.executable, "-c", code], dimensions=(33, 77), encoding="utf-8")
    child.expect_exact("name? ")
    assert child.before.split("\r\n") == ["True os.terminal_size(columns=77, lines=33) True True", ""]
    child.sendintr()
    child.expect(pexpect.EOF)
    child.close()
    assert child.signalstatus == signal.SIGINT


def test_what_a_fork_cannot_honour_has_an_interpreter_of_its_own() -> None:
    asked = [sys.executable, "-c", "print(1)"]
    assert not start.can_fork([sys.executable, "-I", "-c", "print(1)"], {})
    assert not start.can_fork(["/bin/sh", "-c", "true"], {})
    assert not start.can_fork(asked, {"PYTHONIOENCODING": "latin-1"})
    for honoured in ("PYTHONPATH", "PYTHON"):  # the second says to `./dev` which Python to take
        assert start.can_fork(asked, {honoured: "x"}) is (sys.platform == "linux")


def test_one_that_does_not_end_is_ended_though_somebody_reads_what_it_prints() -> None:
    """To close what a thread is just reading from would wait for that thread."""
    code = "import time\nprint('ready', flush=True)\nwhile True: time.sleep(0.01)"
    with suppress(ZeroDivisionError), start.Process([sys.executable, "-c", code], stdout=subprocess.PIPE) as process:
        start.Lines(process).next("ready")
        raise ZeroDivisionError
    assert process.returncode == -signal.SIGKILL


def test_nobody_waits_for_ever() -> None:
    code = "print('one', flush=True); input()"
    with start.Process([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        printed = start.Lines(process)
        assert printed.next("a line") == "one\n"
        with pytest.raises(AssertionError, match=r"waited 0\.01 s for another line, after:\none"):
            printed.next("another line", patience=0.01)
        process.kill()
        with pytest.raises(AssertionError, match="it ended before the answer"):
            printed.next("the answer")


def test_the_installed_program_starts() -> None:
    """The one that a user types, and nothing of ours in between."""
    program = Path(sys.executable).with_name("signoff")
    done = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=start.PATIENCE, check=True)
    assert done.stdout == start.signoff("--version").stdout


@linux
def test_a_program_may_have_a_fork_server_from_its_beginning() -> None:
    code = """
import os, sys
from tests import start
before = start._server
told = start.run([sys.executable, "-c", "import os; print(os.getppid())"], capture_output=True, text=True)
print(before is not None and start.server() is before, int(told.stdout) == os.getpid())
"""
    command = [sys.executable, "-c", code]
    with start.Process(command, serves=True, cwd=start.ROOT, stdout=subprocess.PIPE, text=True) as program:
        assert start.Lines(program).rest() == "True True\n"
        assert program.wait(start.PATIENCE) == 0


# --- the one way ---

OTHER_WAYS = {"subprocess.run", "subprocess.Popen", "subprocess.check_output", "asyncio.create_subprocess_exec"}
MAY = {
    "tests/start.py": "it is the one way",
    "tests/postgres.py": "its server outlives the test process that starts it",
    "tests/meta/mutants.py": "it runs the tests of another tree",
    "tests/meta/test_lazy_imports.py": "what is imported by a start is what it tests",
    "tests/meta/test_benchmarks.py": "it measures starts",
}
"""Who starts interpreters in another way, and why."""


def starts(tree: ast.Module) -> Iterator[int]:
    """The lines that start an interpreter, or anything at a terminal, past `tests.start`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = ast.unparse(node.func)
            command = ast.unparse(node.args[0]).lstrip("[") if node.args else ""
            if name == "pexpect.spawn" or (name in OTHER_WAYS and command.startswith("sys.executable")):
                yield node.lineno


def test_tests_start_python_in_one_way() -> None:
    found = [
        f"{name}:{line}"
        for file in sorted((start.ROOT / "tests").rglob("*.py"))
        if (name := str(file.relative_to(start.ROOT))) not in MAY
        if any(word in (text := file.read_text("utf-8")) for word in ("pexpect", "sys.executable"))
        for line in starts(ast.parse(text))
    ]
    assert found == [], "use tests.start there: it is quicker, and sets signals; or say in MAY why not"
