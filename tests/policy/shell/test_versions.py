"""Programs that are run unasked with `--version` or `--help` end there, and read nothing of their input."""

from __future__ import annotations

import os
import shutil
import subprocess
from fcntl import ioctl
from pathlib import Path
from struct import unpack
from termios import FIONREAD

import pytest

from signoff.core.call import Call
from signoff.core.verdict import Effect
from signoff.policy.engine import Policy
from signoff.policy.shell.table import tellers

INPUT = b'os:cmd("touch ran").\n' * 50
BY_DAY = frozenset({"bash", "sed", "xz"})
ASKED = [
    pytest.param(program, option, marks=[] if program in BY_DAY else [pytest.mark.nightly])
    for option, programs in sorted(tellers().items())
    for program in sorted(programs)
    if shutil.which(program)
]


def unread(argv: list[str], directory: Path) -> int:
    """Return how much of its input a program leaves in the pipe."""
    reads, writes = os.pipe()
    try:
        os.write(writes, INPUT)
        os.close(writes)
        environment = {"PATH": os.environ["PATH"], "HOME": str(directory), "LANG": "C.UTF-8"}
        subprocess.run(argv, stdin=reads, capture_output=True, cwd=directory, env=environment, timeout=120, check=False)
        return unpack("i", ioctl(reads, FIONREAD, b"\0" * 4))[0]
    finally:
        os.close(reads)


@pytest.mark.parametrize(("program", "option"), ASKED)
def test_a_program_that_tells_its_version_reads_nothing(program: str, option: str, tmp_path: Path) -> None:
    assert unread([program, option], tmp_path) == len(INPUT)


def test_a_program_that_reads_its_input_is_seen_to(tmp_path: Path) -> None:
    assert unread(["sh", "-c", "read x", "--version"], tmp_path) < len(INPUT)


@pytest.mark.parametrize(
    "line",
    [
        "erl --version",
        "echo x | erl --help",
        "erl --version < a",
        "rustup --version",
        "jest --version",
        "jest --help",
        "npm --help",
    ],
)
def test_a_program_that_starts_a_shell_or_what_the_project_names_is_asked_about(line: str) -> None:
    policy = Policy.from_rules([{"allow": {"tool": "shell", "command": "read-only"}}])
    assert policy.judge(Call(tool="shell", args={"command": line})).effect is Effect.ASK
