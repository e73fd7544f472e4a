"""Somebody at a real (pseudo) terminal of 80 columns, who reads everything that is printed."""

from __future__ import annotations

import io
import os
import pickle
import re
import sys
import termios
import unicodedata
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pexpect
from rich.cells import cell_len
from tests import start
from tests.matches import varying

from signoff.core.call import Call
from signoff.core.decision import ApprovalDecision
from signoff.core.request import ApprovalRequest
from signoff.core.verdict import Effect, Requirement, Verdict
from signoff.errors import NobodyHere

ROOT = Path(__file__).parents[2]
PROMPT = "your answer > "
PAGE = "Enter next, g to the end, b back"
COLOUR = re.compile(rb"\x1b\[[0-9;]*m")


def request(tool: str = "write_file", args: dict[str, Any] | None = None, **fields: Any) -> ApprovalRequest:
    args = {"path": "notes.txt", "content": "hello"} if args is None else args
    verdict = Verdict(
        effect=Effect.ASK,
        rules=("files:2",),
        reason="writing needs a yes",
        requirement=fields.pop("requirement", Requirement()),
        errors=fields.pop("errors", ()),
    )
    call = Call(tool=tool, args=args, worker=("triage",), toolset="files", labels=frozenset({"fs.write"}))
    known: dict[str, Any] = {
        "tool_call_id": "c1",
        "id": f"r-{tool}",
        "tool_name": tool,
        "args": args,
        "call": call,
        "verdict": verdict,
    }
    known["may_vary"] = varying(fields.get("call") or call)
    return ApprovalRequest(**known | fields)


class Person:
    """Types, and waits for what should appear."""

    def __init__(
        self, directory: Path, batches: Sequence[Sequence[ApprovalRequest]], *, is_real: bool = False, **how: Any
    ) -> None:
        """`is_real`: an interpreter is started for it, whatever that takes."""
        self.directory = directory
        self.width, height = how.pop("width", 80), how.pop("height", 24)
        environment = {"TERM": "xterm-256color", "LANG": "C.UTF-8", "SIGNOFF_AS": "ana", "PATH": os.environ["PATH"]}
        environment |= {"PYTHONPATH": str(ROOT / "src")} | how.pop("env", {})
        asked = {"waits": False, "withdraws": [], "in_main_thread": False, "options": {}} | how
        directory.joinpath("asked.pickle").write_bytes(
            pickle.dumps({"batches": [list(each) for each in batches]} | asked)
        )
        for pipe in ("go", "withdraw"):
            os.mkfifo(directory / pipe)
        self._screen = io.BytesIO()
        command = [sys.executable, str(Path(__file__).with_name("asked.py")), str(directory)]
        how_started = {"env": environment, "dimensions": (height, self.width), "timeout": 30}
        self._program = start.terminal(command, fresh=is_real, **how_started)
        self._program.delaybeforesend = None
        self._program.logfile_read = self._screen

    def sees(self, text: str) -> str:
        """Wait for a text; what was printed before it."""
        self._program.expect_exact(text.encode())
        return self._program.before.decode()

    def types(self, text: str) -> None:
        """A line and Enter."""
        self._program.send(f"{text}\r")

    def presses(self, key: str) -> None:
        """A key, without Enter."""
        self._program.send(key)

    def answers(self, text: str, prompt: str = PROMPT) -> None:
        """Wait to be asked, then answer."""
        self.sees(prompt)
        self.types(text)

    def pages(self, prompt: str = PROMPT) -> str:
        """Read on, a page at a time, until asked; all that was shown, without colours."""
        shown: list[bytes] = []
        while self._program.expect_exact([f"{PAGE} > ".encode(), prompt.encode()]) == 0:
            shown.append(self._program.before)
            self._program.send("\r")
        return COLOUR.sub(b"", b"".join((*shown, self._program.before))).decode().replace("\r", "")

    def settings(self) -> list[Any]:
        """How the terminal is set: echo, signals, keys."""
        return termios.tcgetattr(self._program.child_fd)

    def decides(self) -> list[ApprovalDecision]:
        """The decisions of the first batch, once the program has gone on and ended."""
        return self.decides_all()[0]

    def decides_all(self) -> list[list[ApprovalDecision]]:
        self.sees("the program goes on")
        self._program.expect(pexpect.EOF)
        return pickle.loads(self.directory.joinpath("decided.pickle").read_bytes())

    def leaves(self) -> str:
        """Why nobody is there any longer, once the program has gone on and ended: nothing was decided."""
        [left] = self.decides_all()
        assert isinstance(left, NobodyHere)
        return str(left)

    @property
    def screen(self) -> str:
        """Everything printed so far, without colours."""
        return COLOUR.sub(b"", self._screen.getvalue()).decode()

    @property
    def raw(self) -> bytes:
        return self._screen.getvalue()

    def check(self) -> None:
        """Nothing but colours and plain text ever reached the terminal, and no line is too wide."""
        shown = self.screen
        odd = {char for char in shown if char not in "\r\n" and unicodedata.category(char) in {"Cc", "Cf", "Cs", "Co"}}
        assert odd == set(), f"reached the terminal raw: {sorted(map(ascii, odd))}"
        assert not set(shown) & set("\ufe0f\u3164\u2800\u115f")
        wide = [line for line in shown.replace("\r", "").split("\n") if cell_len(line) > self.width]
        assert wide == []

    def close(self) -> None:
        self._program.close(force=True)


@contextmanager
def sitting_at(directory: Path, *batches: Sequence[ApprovalRequest], **how: Any) -> Iterator[Person]:
    """Somebody to whom each batch is put from a thread of its own."""
    directory.mkdir(exist_ok=True)
    person = Person(directory, batches, **how)
    try:
        yield person
        person.check()
    finally:
        person.close()
