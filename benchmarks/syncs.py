"""Counts the syncs of a program, and makes each take the same time: a disk of one's own has neither bad nor good days.

A small library does it (`syncs.c`), which is built on the spot and loaded into the programs that are measured.
"""

from __future__ import annotations

import mmap
import os
import shutil
import struct
import subprocess
import sys
from pathlib import Path

SOURCE = Path(__file__).with_name("syncs.c")
_NUMBERS = struct.Struct("=qq")


class CannotBuild(Exception):
    """Why the library cannot be had here."""


def build(directory: Path) -> Path:
    """The library, made in a directory. Raises `CannotBuild`."""
    compiler = shutil.which("cc")
    if not sys.platform.startswith("linux"):
        raise CannotBuild("syncs are counted and slowed on Linux only")
    if compiler is None:
        raise CannotBuild("there is no C compiler (cc) to build what counts and slows syncs")
    library = directory / "syncs.so"
    command = [compiler, "-O2", "-shared", "-fPIC", "-o", library, SOURCE, "-ldl"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise CannotBuild(f"{compiler} cannot build what counts and slows syncs: {done.stderr.strip()[-300:]}")
    library.chmod(0o755)
    return library


class Syncs:
    """The syncs of all programs that were started with its `environment`."""

    def __init__(self, library: Path, page: Path) -> None:
        page.write_bytes(_NUMBERS.pack(0, 0))
        page.chmod(0o666)  # a PostgreSQL server runs as somebody else
        with page.open("r+b") as file:
            self._numbers = mmap.mmap(file.fileno(), _NUMBERS.size)
        self.environment = {"LD_PRELOAD": str(library), "BENCH_SYNCS": str(page)}

    @property
    def count(self) -> int:
        """How many there were."""
        return _NUMBERS.unpack_from(self._numbers)[1]

    def take(self, microseconds: int) -> None:
        """Have every sync from now on take that long, and do nothing; with 0 they go to the disk."""
        struct.pack_into("=q", self._numbers, 0, microseconds)

    def reach(self, python: str = sys.executable) -> bool:
        """Whether a program that is started with them really has its syncs counted."""
        before = self.count
        program = "import os, tempfile; os.fsync(tempfile.TemporaryFile().fileno())"
        subprocess.run([python, "-c", program], env=os.environ | self.environment, check=False, capture_output=True)
        return self.count > before
