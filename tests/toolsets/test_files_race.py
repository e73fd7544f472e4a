"""Somebody swaps links and directories while we read and write. Nothing outside is read or written."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests import start
from tests.profiles import NIGHTLY

from signoff.toolsets.builtin.files.root_directory import How, Root

READS = 20_000 if NIGHTLY else 5_000
MOST_READS = 1_000_000
EACH = READS // 1_000
"""Each way of opening."""
WRITES = 20_000
"""At most; enough of both outcomes are usually seen long before."""
DONE, REFUSED = (60, 600) if NIGHTLY else (20, 200)

SWAPPER = """
import ctypes, os, sys
os.chdir(sys.argv[1])
os.symlink("../outside", "bad")
exchange = ctypes.CDLL(None, use_errno=True).renameat2  # both names at once: `directory` is never missing
print("ready", flush=True)
while exchange(-100, b"directory", -100, b"bad", 2) == 0:
    os.symlink("../outside/file", "next")
    os.replace("next", "name")
    if exchange(-100, b"directory", -100, b"bad", 2):
        break
    with open("next", "w") as file:
        file.write("inside")
    os.replace("next", "name")
    for number in range(3):  # as long in the one state as in the other
        os.symlink("../outside/file", "spare")
        os.unlink("spare")
"""


@contextmanager
def swapping(root: Path) -> Iterator[None]:
    """A real process that swaps `directory` and `name` below the root for links to outside, and back."""
    process = start.Process([sys.executable, "-I", "-c", SWAPPER, str(root)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        start.Lines(process).next("ready")
        yield
        assert process.poll() is None, "the swapper gave up: nothing was tested"
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A root with a directory and a file to fight over, and an outside of the same shape."""
    for name, text in (("root", "inside"), ("outside", "outside")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_text(text)
    (tmp_path / "root" / "directory").mkdir()
    (tmp_path / "root" / "directory" / "file").write_text("inside")
    (tmp_path / "root" / "name").write_text("inside")
    return tmp_path / "root"


def count(read: Callable[[str], str], tries: int, *, each: int = 0) -> dict[str, int]:
    """How often each outcome was seen; not before what is inside, and a refusal, were seen `each` times.

    On a busy machine whoever swaps may stand still meanwhile: then there is but one outcome for thousands of tries.
    """
    seen = {"inside": 0, "outside": 0, "refused": 0}
    for number in range(MOST_READS):
        if number >= tries and min(seen["inside"], seen["refused"]) >= each:
            break
        try:
            seen[read("directory/file" if number % 2 else "name")] += 1
        except OSError:
            seen["refused"] += 1
    return seen


def naive(root: Path) -> Callable[[str], str]:
    """What many tools do: resolve, compare, open."""

    def read(path: str) -> str:
        real = (root / path).resolve()
        if not real.is_relative_to(root):
            raise PermissionError(path)
        return real.read_text()

    return read


pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux can swap two names at once")


@pytest.mark.parametrize("way", ["openat2", "walk"])
def test_no_read_leaks(root: Path, way: How) -> None:
    try:
        confined = Root(root, how=way)
    except OSError as error:
        pytest.skip(f"this kernel has no openat2: {error}")

    def read(path: str) -> str:
        with confined.reach(path) as found:
            return found.read(100).decode() or "inside"  # empty: between being created and being written

    with swapping(root):
        seen = count(read, READS, each=EACH)
        compared = count(naive(root), 1000)
    print(f"{way}: {seen}; resolve, then open: {compared}")
    assert seen["outside"] == 0
    assert seen["inside"] >= EACH, "nothing was ever read: nothing was tested"
    assert seen["refused"] >= EACH, "no swap was ever met: nothing was tested"


@pytest.mark.parametrize("way", ["openat2", "walk"])
def test_no_write_lands_outside(root: Path, way: How) -> None:
    try:
        confined = Root(root, how=way)
    except OSError as error:
        pytest.skip(f"this kernel has no openat2: {error}")
    outside = root.parent / "outside"
    seen = {"done": 0, "refused": 0}
    with swapping(root):
        for number in range(WRITES):
            if seen["done"] >= DONE and seen["refused"] >= REFUSED:
                break
            try:
                match number % 4:
                    case 0:
                        confined.mkdir(f"directory/deep{number}/deeper")
                    case 1:
                        confined.replace(f"directory/new{number}", b"inside")
                    case 2:
                        confined.replace("name", b"inside")
                    case _:
                        confined.rename(f"directory/new{number - 2}", "directory/moved", overwrite=True)
                seen["done"] += 1
            except OSError:
                seen["refused"] += 1
    print(f"{way}: {seen}")
    assert all(seen.values()), "one side of the race was never seen: nothing was tested"
    assert os.listdir(outside) == ["file"]
    assert (outside / "file").read_text() == "outside"
