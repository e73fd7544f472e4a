"""A process that has everything imported, and forks Python programs on request. `tests.start` talks to it.

Importing PydanticAI takes two seconds, a fork of a process that has done so some milliseconds. The server holds neither
threads nor connections, so a fork of it is as fresh as a process that was just started: its environment, directory,
terminal, signals, arguments and import path are those of the order.

The program is forked twice, and the process in between ends at once. The program is thereby handed to whoever asked for
it, which is its parent from then on: it can be waited for, and killed, like a child that was started the usual way.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import fcntl
import gc
import importlib
import io
import json
import linecache
import os
import pkgutil
import signal
import socket
import struct
import sys
import termios
import threading
import time
import traceback
import types
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn, cast

MOST_DESCRIPTORS = 16
HUGE_PAGE = 2 << 20
MADV_COLLAPSE = 25
NEEDED = (
    "mcp.server.mcpserver",
    "uvicorn",
    "pydantic_ai.mcp",
    "psycopg",
    "discord",
    "sqlglot",
    "textual.app",
    "jsonschema",
)
"""What programs import beside signoff itself."""


def receive(connection: socket.socket) -> tuple[dict[str, Any], list[int]] | None:
    """The next order and the descriptors that came with it; None when nobody is left to send one."""
    head, descriptors, _, _ = socket.recv_fds(connection, 4, MOST_DESCRIPTORS)
    if not head:
        return None
    (left,) = struct.unpack("!I", head)
    parts: list[bytes] = []
    while left:
        parts.append(connection.recv(min(left, 1 << 16)))
        if not parts[-1]:
            return None
        left -= len(parts[-1])
    return json.loads(b"".join(parts)), descriptors


def serve(connection: socket.socket) -> None:
    given = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    inherited = [each for each in sys.path[1:] if each not in given]
    _warm_up()
    gc.collect()
    gc.freeze()  # so that no fork looks through all there is, and has to copy it for that
    _use_huge_pages()
    connection.sendall(b"!")
    _take_orders(connection, inherited)


def _take_orders(connection: socket.socket, inherited: list[str]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the programs, and for whoever started this one
    while (order := receive(connection)) is not None:
        asked, descriptors = order
        read, write = os.pipe()
        between = os.fork()
        if not between:
            between_id = os.getpid()
            program = os.fork()
            if program:
                os.write(write, struct.pack("!I", program))
                os._exit(0)
            while os.getppid() == between_id:
                os.sched_yield()
            become(asked, descriptors, inherited)
        os.waitpid(between, 0)
        for descriptor in descriptors:
            os.close(descriptor)
        connection.sendall(os.read(read, 4))
        os.close(read)
        os.close(write)


def _use_huge_pages() -> None:
    """Have the kernel put the heap into pages of 2 MB: a fork copies the table of pages, and its end frees it again.

    Linux does so from 6.1 on. Where it does not, forks take longer.
    """
    advise = ctypes.CDLL(None).madvise
    advise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    for line in Path("/proc/self/maps").read_text().splitlines():
        span, access, _, _, _, *of = line.split(maxsplit=5)
        if access == "rw-p" and of in ([], ["[heap]"]):
            first, end = (int(address, 16) for address in span.split("-"))
            first = -(-first // HUGE_PAGE) * HUGE_PAGE
            if (size := end // HUGE_PAGE * HUGE_PAGE - first) > 0:
                advise(first, size, MADV_COLLAPSE)


def _warm_up() -> None:
    """Import all there is, and go through one whole run, which loads what is loaded on first use."""
    import signoff

    for module in pkgutil.walk_packages(signoff.__path__, "signoff."):
        importlib.import_module(module.name)
    for name in NEEDED:
        importlib.import_module(name)
    # No test turns the power off. To wait for the disk is a third of what tests with a store take.
    sys.modules["signoff.store.sqlite_file"].SYNCED = "off"  # type: ignore[attr-defined]
    from tests.crash.stage import warm_up

    warm_up()
    for thread in threading.enumerate():
        if thread is not threading.current_thread():
            thread.join(10)
    assert threading.active_count() == 1, f"{threading.enumerate()}: a process with threads is not forked safely"


# --- in the program ---


def become(order: dict[str, Any], descriptors: Sequence[int], path: list[str]) -> NoReturn:
    """Be the program that was asked for, from its first line to its exit code."""
    code = 1
    try:
        _descriptors(order, descriptors)
        if order["serves"]:
            _have_served(path)
        _signals()
        os.environ.clear()
        os.environ.update(order["environment"])
        time.tzset()
        os.chdir(order["directory"])
        flags, what, arguments = python_command(order["arguments"])
        _streams(unbuffered="-u" in flags or bool(os.environ.get("PYTHONUNBUFFERED")))
        for flag in flags:
            if flag.startswith("-W"):
                warnings._setoption(flag.removeprefix("-W"))  # type: ignore[attr-defined]
        first, main = _main(what, arguments)
        extra = [each for each in os.environ.get("PYTHONPATH", "").split(os.pathsep) if each]
        sys.path[:] = [first, *extra, *path]
        importlib.invalidate_caches()
        code = _run(main)
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def _have_served(path: list[str]) -> None:
    """Leave a server for what this program starts: it has everything imported as well."""
    ours, theirs = socket.socketpair()
    server = os.fork()
    if not server:
        ours.close()
        with open(os.devnull) as nothing:
            os.dup2(nothing.fileno(), 0)
        os.dup2(2, 1)
        _take_orders(theirs, path)
        os._exit(0)
    theirs.close()
    from tests import start

    start.adopt(start.Server(ours, server))


def _descriptors(order: dict[str, Any], descriptors: Sequence[int]) -> None:
    if order["session"]:
        os.setsid()
    kept = order["kept"]  # their numbers, after the three of every program
    high = [fcntl.fcntl(each, fcntl.F_DUPFD, 512) for each in descriptors]
    for number, each in zip([0, 1, 2, *kept], high, strict=True):
        os.dup2(each, number)
    at = 3
    for number in [*sorted(kept), os.sysconf("SC_OPEN_MAX")]:
        os.closerange(at, number)
        at = number + 1
    if order["terminal"]:
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def _signals() -> None:
    for number in signal.valid_signals():
        with contextlib.suppress(OSError, ValueError):
            signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)  # as Python does
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def _streams(*, unbuffered: bool) -> None:
    locale = next((os.environ[name] for name in ("LC_ALL", "LC_CTYPE", "LANG") if os.environ.get(name)), "C")
    usual = "surrogateescape" if locale in ("C", "POSIX", "C.UTF-8", "C.utf8", "UTF-8") else "strict"
    for number, name, mode, errors in (
        (0, "stdin", "r", usual),
        (1, "stdout", "w", usual),
        (2, "stderr", "w", "backslashreplace"),
    ):
        raw = io.FileIO(number, mode, closefd=False)
        raw.name = f"<{name}>"  # type: ignore[misc]
        buffer = io.BufferedReader(raw) if mode == "r" else raw if unbuffered else io.BufferedWriter(raw)
        lines = mode == "w" and not unbuffered and (name == "stderr" or raw.isatty())
        stream = io.TextIOWrapper(
            cast(Any, buffer), "utf-8", errors, line_buffering=lines, write_through=unbuffered and mode == "w"
        )
        stream.mode = mode  # type: ignore[misc]
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)


def python_command(arguments: Sequence[str]) -> tuple[list[str], str, list[str]]:
    """What stands behind `python`: its flags, then `-c`, `-m` or the script, and what the program is told.

    Raises `LookupError` for flags that only a real start can honour.
    """
    flags: list[str] = []
    rest = list(arguments)
    while rest and rest[0].startswith("-"):
        word = rest.pop(0)
        if word in ("-c", "-m"):
            return flags, word, rest
        if word == "-W":
            flags.append(f"-W{rest.pop(0)}")
        elif word == "-u":
            flags.append(word)
        else:
            raise LookupError(word)
    if not rest:
        raise LookupError("a script")
    return flags, "script", rest


def _main(what: str, arguments: list[str]) -> tuple[str, Callable[[], object]]:
    """Where the program's own imports start, and what runs it."""
    name, *rest = arguments
    if what == "-m":
        import runpy

        sys.argv = ["-m", *rest]
        return os.getcwd(), lambda: runpy.run_module(name, run_name="__main__", alter_sys=True)
    module = types.ModuleType("__main__")
    module.__builtins__ = __builtins__  # type: ignore[attr-defined]
    sys.modules["__main__"] = module
    if what == "-c":
        sys.argv = ["-c", *rest]
        code = compile(name, "<string>", "exec")
        if sys.version_info >= (3, 13):  # whose tracebacks quote it
            linecache.cache["<string>"] = (len(name), None, name.splitlines(keepends=True), "<string>")
        return "", lambda: exec(code, vars(module))
    sys.argv = [name, *rest]
    file = Path(name).absolute()
    module.__file__ = str(file)
    script = compile(file.read_bytes(), str(file), "exec")
    return str(file.resolve().parent), lambda: exec(script, vars(module))


def _run(main: Callable[[], object]) -> int:
    """Run it as the interpreter would; the exit code."""
    code, interrupted = 0, False
    try:
        main()
    except SystemExit as end:
        code = _exit_code(end.code)
    except BaseException as error:
        trace = error.__traceback__
        while trace is not None and trace.tb_frame.f_code.co_filename in (__file__, "<frozen runpy>"):
            trace = trace.tb_next
        sys.excepthook(type(error), error.with_traceback(trace), trace)
        code, interrupted = 1, isinstance(error, KeyboardInterrupt)
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        code = 120
    except ValueError:
        pass  # closed by the program
    with contextlib.suppress(OSError, ValueError):
        sys.stderr.flush()
    if interrupted:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)
    return code


def _exit_code(code: object) -> int:
    if code is None:
        return 0
    if isinstance(code, int):
        return code & 0xFF
    print(code, file=sys.stderr)
    return 1


if __name__ == "__main__":
    serve(socket.socket(fileno=int(sys.argv[1])))
