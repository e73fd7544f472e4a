"""The full screen on a real (pseudo) terminal: opened from threads, shared, and left as it was found.

Here is what only a terminal can show: its modes, its size, its kind, what is printed around the screen. All else is in
`test_tui.py` and `test_tui_approver.py`, without one.
"""

from __future__ import annotations

import os
import pickle
import re
import sys
import termios
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pexpect
from tests import start

ROOT = Path(__file__).parents[2]
ESCAPES = re.compile(rb"\x1b(?:\[[0-9;?<>=]*[ -/]*[@-~]|[()][A-Z0-9]|[=>78])")
LEFT_SCREEN = b"\x1b[?1049l"


class Seat:
    """A terminal of 80 columns with the program on it."""

    def __init__(self, directory: Path, task: str, env: dict[str, str]) -> None:
        self.directory = directory
        for pipe in ("go", "more"):
            os.mkfifo(directory / pipe)
        environment = {"TERM": "xterm-256color", "LANG": "C.UTF-8", "SIGNOFF_AS": "ana", "PATH": os.environ["PATH"]}
        environment |= {"PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}", "XDG_STATE_HOME": str(directory)} | env
        command = [sys.executable, str(Path(__file__).with_name("asked_tui.py")), str(directory), task]
        self.program: Any = start.terminal(command, env=environment)
        self.program.delaybeforesend = None
        self.shown = b""
        """All that came since the last key: what is on the screen is not painted again only because more is."""

    def sees(self, text: str) -> None:
        if text.encode() not in self.shown:
            self.program.expect_exact(text.encode())
            self.shown += self.program.before + self.program.after

    def presses(self, keys: str) -> None:
        self.shown = b""
        self.program.send(keys)

    def says(self, pipe: str, text: str = "now") -> None:
        self.directory.joinpath(pipe).write_text(text)

    def came(self) -> tuple[str, Any]:
        """What is on the terminal after the screen was left, and what the program made of the answers."""
        self.program.expect_exact(LEFT_SCREEN)
        self.program.expect_exact(b"the program goes on")
        printed = ESCAPES.sub(b"", self.program.before).decode().replace("\r", "")
        self.program.expect(pexpect.EOF)
        return printed, pickle.loads(self.directory.joinpath("came.pickle").read_bytes())


@contextmanager
def seated(directory: Path, task: str = "ask", **env: str) -> Iterator[Seat]:
    seat = Seat(directory, task, env)
    try:
        yield seat
    finally:
        seat.program.close(force=True)


def read_and_press(seat: Seat, tool: str, key: str) -> None:
    """Read a card to its end, then press a key."""
    seat.sees(f"may {tool} run?")
    for line in ("line 31.", "line 48.", "line 59."):
        seat.presses(" ")
        seat.sees(line)
    seat.presses(key)


def test_several_threads_share_one_screen(tmp_path: Path) -> None:
    with seated(tmp_path) as ana:
        ana.sees("2 calls wait")
        ana.says("more")
        ana.sees("3 calls wait")
        read_and_press(ana, "read", "a")
        read_and_press(ana, "write", "d")
        read_and_press(ana, "send", "a")
        printed, [first, second] = ana.came()
    assert [decision.approved for decision in (*first, *second)] == [True, False, True]
    assert {(decision.by.name, decision.by.via) for decision in (*first, *second)} == {("ana", "tui")}
    # Nothing that the program printed is lost, and nothing of it was written across the screen.
    told = [line.partition(":")[0] for line in printed.split("\n") if line]
    assert told[:2] == ["printed meanwhile", "thread 0 goes on"]
    assert told[2:] == ["you approve it once", "you deny it", "you approve it once", "thread 1 goes on"]


def test_the_terminal_is_left_as_it_was_and_what_was_typed_before_does_not_count(tmp_path: Path) -> None:
    with seated(tmp_path, "wait") as ana:
        ana.sees("not asking yet")
        before = termios.tcgetattr(ana.program.child_fd)
        ana.presses("q")
        ana.says("go")
        ana.sees("may read run?")
        ana.says("more")
        ana.sees("3 calls wait")
        assert termios.tcgetattr(ana.program.child_fd) != before
        ana.presses("q")
        ana.program.expect_exact(LEFT_SCREEN)
        ana.sees("the program goes on")
        assert termios.tcgetattr(ana.program.child_fd) == before


def test_the_screen_follows_the_size_of_the_terminal(tmp_path: Path) -> None:
    with seated(tmp_path) as ana:
        ana.sees("may read run?")
        ana.says("more")
        ana.program.setwinsize(80, 120)
        ana.sees("line 59.")
        ana.presses("q")
        ana.came()


def test_a_dumb_terminal_has_no_full_screen(tmp_path: Path) -> None:
    with seated(tmp_path, TERM="dumb") as ana:
        ana.says("more")
        ana.sees("the program goes on")
        ana.program.expect(pexpect.EOF)
        came = pickle.loads(tmp_path.joinpath("came.pickle").read_bytes())
    assert [decision.note for each in came for decision in each] == ["no terminal to ask at"] * 3
