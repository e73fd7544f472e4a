"""Read lines from the terminal so that Ctrl-C is an answer and not a signal.

The gate asks in a thread, but SIGINT goes to the main thread, where it would end the run. So while a line is read,
the terminal sends no signal for Ctrl-C; Ctrl-C ends the line instead, and the reading thread sees it.
"""

from __future__ import annotations

import os
import select
import sys
import termios
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from typing import IO, Any

_CTRL_C = b"\x03"
_LFLAG, _CC = 3, 6


class NoLine(Exception):
    """No line was typed; the message says why."""


class Interrupted(NoLine):
    """Ctrl-C."""


class EndOfInput(NoLine):
    """Ctrl-D, or the terminal was closed."""


class LeftOpen(NoLine):
    """The person leaves the question open and stops the run."""


class Withdrawn(NoLine):
    """The question is moot: somebody else answered it, or it was withdrawn."""


class Keyboard:
    """The keyboard of a terminal, given as a stream (standard input by default)."""

    def __init__(self, stream: IO[str] | None = None) -> None:
        self._stream = stream
        self._lock = threading.Lock()
        self._wake: int | None = None

    @property
    def is_here(self) -> bool:
        """Whether somebody may be typing: a terminal, with this process in its foreground."""
        fd = self.fd()
        if fd is None or not os.isatty(fd):
            return False
        try:
            return os.tcgetpgrp(fd) == os.getpgrp()
        except OSError:  # not our controlling terminal, as under `su -c`: then there is no background
            return True

    def line(self, prompt: Callable[[], None], moot: Callable[[], str] = lambda: "") -> str:
        """Return the line typed after `prompt` printed its text, without the line end. Raises `NoLine`.

        Input typed before the prompt is discarded. `moot` is called at the start and after each `wake`; if it returns a
        reason, reading stops with `Withdrawn`.
        """
        fd = self.fd()
        if fd is None:
            raise EndOfInput("there is no terminal")
        woken, self_wake = os.pipe()
        with self._lock:
            self._wake = self_wake
        try:
            # Before the prompt appears: a person who sees it may press Ctrl-C at once.
            with self.without_signals(ends_line=True):
                self._forget(fd)
                prompt()
                return self._read(fd, woken, moot)
        except KeyboardInterrupt:
            raise Interrupted("interrupted at the terminal") from None
        except (OSError, termios.error) as error:
            raise EndOfInput("the terminal was closed") from error
        finally:
            with self._lock:
                self._wake = None
            os.close(self_wake)
            os.close(woken)

    def wake(self) -> None:
        """Make a `line` that blocks in another thread check whether its question is still open."""
        with self._lock:
            if self._wake is not None:
                os.write(self._wake, b"!")

    @contextmanager
    def without_signals(self, *, ends_line: bool = False) -> Generator[None]:
        """Within this context Ctrl-C sends no signal; with `ends_line` it ends the line that is read."""
        fd = self.fd()
        try:
            before = termios.tcgetattr(fd) if fd is not None else None
        except termios.error:
            before = None
        if fd is None or before is None:
            yield
            return
        keys = list(before[_CC])
        keys[termios.VINTR] = bytes([os.fpathconf(fd, "PC_VDISABLE") & 0xFF])
        if ends_line:
            keys[termios.VEOL] = _CTRL_C
        now: list[Any] = [*before[:_CC], keys]
        now[_LFLAG] |= termios.ICANON | termios.ECHO | termios.ISIG
        termios.tcsetattr(fd, termios.TCSADRAIN, now)
        try:
            yield
        finally:
            with suppress(termios.error):
                termios.tcsetattr(fd, termios.TCSADRAIN, before)

    def _forget(self, fd: int) -> None:
        """Discard what was typed before the question appeared."""
        with suppress(termios.error):
            termios.tcflush(fd, termios.TCIFLUSH)

    def _read(self, fd: int, woken: int, moot: Callable[[], str]) -> str:
        typed = b""
        while True:
            if reason := moot():
                raise Withdrawn(reason)
            ready, _, _ = select.select([fd, woken], [], [])
            if woken in ready:
                os.read(woken, 64)
                continue
            chunk = os.read(fd, 4096)
            typed += chunk
            if _CTRL_C in chunk:
                raise Interrupted("interrupted at the terminal")
            if not chunk:
                raise EndOfInput("the terminal was closed")
            if typed.endswith(b"\n"):
                return typed.decode("utf-8", "replace").rstrip("\r\n")

    def fd(self) -> int | None:
        """Return the terminal's file descriptor, or None if the stream has none."""
        try:
            return (self._stream if self._stream is not None else sys.stdin).fileno()
        except (AttributeError, OSError, ValueError):
            return None
