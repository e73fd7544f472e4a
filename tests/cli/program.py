"""The real program, as a user starts it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path


def signoff(
    *arguments: str, cwd: Path | None = None, given: str = "", **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run `signoff` in a process of its own, with no terminal."""
    return subprocess.run(
        [sys.executable, "-c", "from signoff.cli.main import main; main()", *arguments],
        cwd=cwd,
        input=given,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={**os.environ, "COLUMNS": "80", "TERM": "dumb", **environment},
    )


def refused(done: subprocess.CompletedProcess[str]) -> str:
    """What a wrong use was told: exit code 2, one message, no traceback, nothing on standard output."""
    assert done.returncode == 2, (done.returncode, done.stdout, done.stderr)
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
    return done.stderr
