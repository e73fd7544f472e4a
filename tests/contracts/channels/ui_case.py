"""Approvers as channels: one that a test answers, and the terminal with somebody at it."""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import re
import struct
import sys
import termios
import tty
import unicodedata
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, ClassVar

from rich.console import Console

from signoff.channels.approver import ApproverChannel
from signoff.channels.terminal import TerminalApprover
from signoff.core.card import card_for
from signoff.core.decision import ApprovalDecision
from signoff.core.mode import ApprovalMode
from signoff.core.notice import Asked, Notice
from signoff.core.request import ApprovalRequest
from signoff.ports import Channel
from signoff.testing import ChannelCase, Skill
from signoff.testing.office import ANA, soon

NO_CONNECTION = {Skill.OUTAGE: "it has no connection"}
PROMPT = "your answer > "
PAGE = "b back > "
COLOUR = re.compile(r"\x1b\[[0-9;]*m")
FRAME = re.compile(r"[│╭╰├─↳]+")


class Booth:
    """A minimal approver of somebody's own: one async method, and a way to be told."""

    def __init__(self) -> None:
        self.now: tuple[ApprovalRequest, asyncio.Future[ApprovalDecision]] | None = None
        self.papers: list[str] = []
        self.said: list[str] = []

    async def choose(self, request: ApprovalRequest, *, mode: ApprovalMode) -> ApprovalDecision:
        assert self.now is None, "one question at a time"
        self.papers.append(str(card_for(request)))
        self.now = request, asyncio.get_running_loop().create_future()
        try:
            return await self.now[1]
        finally:
            self.now = None

    def withdraw(self, request_id: str, why: str) -> None:
        if self.now is not None and self.now[0].id == request_id:
            self.said.append(why)
            if not self.now[1].done():
                self.now[1].cancel()

    def say(self, text: str) -> None:
        self.said.append(text)


class BoothCase(ChannelCase):
    """`ApproverChannel` around an approver that only has `choose`, as most people's own will."""

    lacks: ClassVar[Mapping[Skill, str]] = {
        **NO_CONNECTION,
        Skill.LONG: "what is shown, and how, is up to the approver",
    }

    def __init__(self) -> None:
        self.ui = Booth()

    def make(self) -> Channel:
        return ApproverChannel(self.ui, name="booth", by=ANA)

    async def seen(self, notice: Notice) -> str:
        return "\n".join(self.ui.papers + self.ui.said)

    async def dangers(self, notice: Notice) -> Sequence[str]:
        return raw_characters(await self.seen(notice))

    async def standing(self, notice: Asked) -> int:
        return int(self.ui.now is not None and self.ui.now[0].id == notice.request.id)

    async def approve(self, notice: Asked) -> None:
        await self._decides(notice, ApprovalDecision(approved=True))

    async def deny(self, notice: Asked, note: str = "") -> None:
        await self._decides(notice, ApprovalDecision(approved=False, note=note))

    async def edit(self, notice: Asked, args: Mapping[str, Any]) -> None:
        await self._decides(notice, ApprovalDecision(approved=True, edited_args=args))

    async def told(self) -> Sequence[str]:
        return self.ui.said

    async def _decides(self, notice: Asked, decision: ApprovalDecision) -> None:
        async def asked() -> bool:
            return await self.standing(notice) == 1

        await soon(asked, "it is never asked")
        assert self.ui.now is not None
        self.ui.now[1].set_result(decision)


class Pty:
    """A real pseudo-terminal of 100 columns, and all that was printed on it."""

    def __init__(self) -> None:
        self._outside, self._inside = os.openpty()
        tty.setcbreak(self._inside)
        attributes = termios.tcgetattr(self._inside)
        attributes[3] |= termios.ICANON | termios.ECHO | termios.ISIG
        termios.tcsetattr(self._inside, termios.TCSANOW, attributes)
        fcntl.ioctl(self._inside, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 100, 0, 0))
        self.input = os.fdopen(os.dup(self._inside), "r", encoding="utf-8")
        self.output = os.fdopen(os.dup(self._inside), "w", encoding="utf-8")
        self._read = bytearray()
        os.set_blocking(self._outside, False)
        asyncio.get_running_loop().add_reader(self._outside, self._more)

    def _more(self) -> None:
        self._read += os.read(self._outside, 65_536)

    @property
    def raw(self) -> str:
        return self._read.decode("utf-8", "replace")

    @property
    def text(self) -> str:
        return COLOUR.sub("", self.raw).replace("\r", "")

    async def sees(self, text: str, after: int = 0) -> int:
        """Wait for a text; where it ends."""
        await soon(lambda: text in self.text[after:], lambda: f"{text!r} never came:\n{self.text[after:]}")
        return self.text.index(text, after) + len(text)

    def types(self, keys: str) -> None:
        os.write(self._outside, keys.encode())

    def close(self) -> None:
        asyncio.get_running_loop().remove_reader(self._outside)
        for stream in (self.input, self.output):
            stream.close()
        for fd in (self._outside, self._inside):
            os.close(fd)


EDITOR = "import pathlib, sys; pathlib.Path(sys.argv[2]).write_text(pathlib.Path(sys.argv[1]).read_text())"


class TerminalCase(ChannelCase):
    """The terminal, with ana at it. What she sees is all that was printed, folds and frames taken out."""

    lacks: ClassVar[Mapping[Skill, str]] = NO_CONNECTION

    def __init__(self, directory: Path) -> None:
        self.pty = Pty()
        self._edited = directory / "edited.json"
        script = directory / "editor.py"
        script.write_text(EDITOR)
        self._editor = f"{sys.executable} {script} {self._edited}"
        self._read = 0

    def make(self) -> Channel:
        # Another program that was killed has let go of the terminal, and of the question on it.
        console = Console(file=self.pty.output, width=100, height=30, _environ={"TERM": "xterm-256color"})
        approver = TerminalApprover(console, stdin=self.pty.input, actor=ANA, editor=self._editor)
        return ApproverChannel(approver)

    async def seen(self, notice: Notice) -> str:
        return FRAME.sub(" ", self.pty.text)

    async def dangers(self, notice: Notice) -> Sequence[str]:
        return raw_characters(self.pty.text)

    async def standing(self, notice: Asked) -> int:
        return int(self.pty.text.endswith(PROMPT) and self._asks_about(notice))

    def _asks_about(self, notice: Asked) -> bool:
        card = self.pty.text.rpartition("╰─ request ")[2]
        return card.startswith(notice.request.id)

    async def _answers(self, notice: Asked, *lines: tuple[str, str]) -> None:
        """Type each answer to its prompt, and wait until something came of it."""

        async def asked() -> bool:
            return await self.standing(notice) == 1

        await soon(asked, lambda: f"it is never asked:\n{self.pty.text}")
        for prompt, typed in lines:
            at = await self.pty.sees(prompt, self._read)
            self._read = at
            self.pty.types(f"{typed}\r")
        await soon(lambda: "\n" in self.pty.text[self._read :].rstrip(), "nothing came of it")

    async def approve(self, notice: Asked) -> None:
        await self._answers(notice, (PROMPT, "a"))

    async def deny(self, notice: Asked, note: str = "") -> None:
        if note:
            await self._answers(notice, (PROMPT, "r"), ("the audit log > ", note))
        else:
            await self._answers(notice, (PROMPT, "d"))

    async def edit(self, notice: Asked, args: Mapping[str, Any]) -> None:
        self._edited.write_text(json.dumps(args))
        await self._answers(notice, (PROMPT, "e"), ("run it like this? y yes, Enter no > ", "y"))

    async def open_whole(self, notice: Asked) -> str:
        start = self._read
        await self._answers(notice, (PROMPT, "m"))
        while True:
            await soon(lambda: self.pty.text.endswith((PAGE, PROMPT)), "no page comes")
            self._read = len(self.pty.text)
            if self.pty.text.endswith(PROMPT):
                break
            self.pty.types("\r")
            await soon(lambda: len(self.pty.text) > self._read + 1, "no page comes")
        self._read -= len(PROMPT)  # it is answered next
        return FRAME.sub(" ", self.pty.text[start:])

    async def told(self) -> Sequence[str]:
        return self.pty.text.split("\n")


def raw_characters(text: str) -> list[str]:
    """What would move a cursor or hide, on a screen."""
    odd = {char for char in text if char != "\n" and unicodedata.category(char) in {"Cc", "Cf", "Cs", "Co"}}
    return [f"U+{ord(char):04X} as it is" for char in sorted(odd)]


@asynccontextmanager
async def terminal_case(directory: Path) -> AsyncIterator[TerminalCase]:
    case = TerminalCase(directory)
    try:
        yield case
    finally:
        case.pty.close()


@asynccontextmanager
async def booth_case() -> AsyncIterator[BoothCase]:
    yield BoothCase()
