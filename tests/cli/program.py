"""What the program says when it was used wrongly."""

from __future__ import annotations

import subprocess


def refused(done: subprocess.CompletedProcess[str]) -> str:
    """What a wrong use was told: exit code 2, one message, no traceback, nothing on standard output."""
    assert done.returncode == 2, (done.returncode, done.stdout, done.stderr)
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
    return done.stderr
