"""The program called in the tests' own process, and what it says when it was used wrongly."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
import traceback
import warnings
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from io import BytesIO, TextIOWrapper
from pathlib import Path
from unittest import mock

from tests import start


def signoff(
    *arguments: str, cwd: Path | None = None, given: str = "", **environment: str
) -> subprocess.CompletedProcess[str]:
    """What `tests.start.signoff` gives, without a process: for tests of what is said and done."""
    return called(arguments, cwd or Path.cwd(), {**os.environ, "COLUMNS": "80", "TERM": "dumb", **environment}, given)


def called(
    arguments: Sequence[str], directory: Path, environment: Mapping[str, str], given: str = ""
) -> subprocess.CompletedProcess[str]:
    """The same line that starts the program elsewhere, run here.

    Each call has its directory, environment, streams and warnings, and imports the project's own modules anew.
    """
    out, err = (TextIOWrapper(BytesIO(), "utf-8", write_through=True) for _ in range(2))
    stdin = TextIOWrapper(BytesIO(given.encode()), "utf-8")
    code = 0
    with (
        mock.patch.dict(os.environ, environment, clear=True),
        mock.patch.multiple(sys, argv=["signoff", *arguments], stdin=stdin, path=[*sys.path]),
        redirect_stdout(out),
        redirect_stderr(err),
        warnings.catch_warnings(),
        _standing_in(directory),
    ):
        _warns_as_a_program()
        try:
            exec(start.SIGNOFF[-1], {})
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
        except Exception:
            traceback.print_exc()
            code = 1
    said = [stream.buffer.getvalue().decode() for stream in (out, err)]  # type: ignore[attr-defined]
    return subprocess.CompletedProcess(["signoff", *arguments], code, *said)


SCRATCH = f"{os.sep}pytest-of-"
"""In the path of every directory that pytest makes for a test."""
_lasting: set[str] = set()
"""Names of modules that are not of such a directory."""


@contextmanager
def _standing_in(directory: Path) -> Generator[None]:
    before = os.getcwd()
    _forget_scratch_modules()
    os.chdir(directory)
    importlib.invalidate_caches()
    try:
        yield
    finally:
        os.chdir(before)
        _forget_scratch_modules()


def _forget_scratch_modules() -> None:
    """Two tests may each have a module of one name, here or in the directory of a run: a new process knows neither."""
    for name in sys.modules.keys() - _lasting:  # there are thousands, and few are new
        if SCRATCH in (getattr(sys.modules[name], "__file__", None) or ""):
            del sys.modules[name]
        else:
            _lasting.add(name)


def _warns_as_a_program() -> None:
    warnings.simplefilter("default")
    for silent in (DeprecationWarning, PendingDeprecationWarning, ImportWarning, ResourceWarning):
        warnings.simplefilter("ignore", silent)


def refused(done: subprocess.CompletedProcess[str]) -> str:
    """What a wrong use was told: exit code 2, one message, no traceback, nothing on standard output."""
    assert done.returncode == 2, (done.returncode, done.stdout, done.stderr)
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
    return done.stderr
