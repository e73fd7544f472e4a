"""Other processes, for tests of what they share."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests import start

ROOT = Path(__file__).parents[2]
NOBODY = 65534


def forked(function: Callable[[], Any], *, unprivileged: bool = False) -> Any:
    """What the function returns in a fork of this process, where it raises it raises here."""
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of forking beside threads: which is what is tested
        pid = os.fork()
    if not pid:
        try:
            if unprivileged and os.geteuid() == 0:
                os.setgid(NOBODY)
                os.setuid(NOBODY)
            answer: Any = (True, function())
        except BaseException as error:
            answer = (False, f"{error}\n{traceback.format_exc()}")
        os.write(writing, pickle.dumps(answer))
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        content = pipe.read()
    os.waitpid(pid, 0)
    done, value = pickle.loads(content)
    if not done:
        raise AssertionError(value)
    return value


def started(script: str, *args: object) -> subprocess.Popen[str]:
    """A Python process of its own that runs a script."""
    command = [sys.executable, "-W", "error", "-c", script, *map(str, args)]
    return start.Process(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def ended(process: subprocess.Popen[str]) -> str:
    """What it printed, once it has ended well."""
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    return out
