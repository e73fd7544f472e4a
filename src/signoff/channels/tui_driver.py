"""A Textual driver that runs in a thread other than the main thread.

The gate asks in threads while the main thread runs the agent, and only the main thread may set signal handlers. So
this driver sets none, and polls the terminal's size instead of waiting for SIGWINCH.
"""

# pyright: reportUnknownMemberType=false
# textual does not type which app a widget belongs to.

from __future__ import annotations

import os
import signal
import sys
import termios
import threading
from contextlib import suppress
from typing import Any

from textual.app import App
from textual.drivers import linux_driver
from textual.events import Resize
from textual.geometry import Size
from textual.message import Message

LOOK_AT_SIZE = 0.25
"""Interval in seconds for polling the terminal's size."""


class TerminalGone(Message):
    """The terminal was closed: nobody can type any more."""


class _Signals:
    """Python's `signal`, except that setting a handler outside the main thread does nothing."""

    def __getattr__(self, name: str) -> Any:
        return getattr(signal, name)

    @staticmethod
    def signal(number: int, handler: Any) -> Any:
        if threading.current_thread() is threading.main_thread():
            return signal.signal(number, handler)
        return signal.SIG_DFL


# textual's driver sets handlers when it is created, started and stopped, and has no option to turn that off.
setattr(linux_driver, "signal", _Signals())  # noqa: B010 - its type is that of the module


class ThreadDriver(linux_driver.LinuxDriver):
    """Draws on standard error or output, whichever is a terminal."""

    def __init__(self, app: App[Any], **options: Any) -> None:
        super().__init__(app, **options)
        streams = [stream for stream in (sys.__stderr__, sys.__stdout__) if stream is not None and stream.isatty()]
        self._file = streams[0] if streams else sys.__stderr__
        self._last = self._get_terminal_size()

    def _get_terminal_size(self) -> tuple[int, int]:
        stream = self._file
        try:
            assert stream is not None
            width, height = os.get_terminal_size(stream.fileno())
        except (OSError, ValueError):
            return 80, 24
        return width or 80, height or 24

    def start_application_mode(self) -> None:
        with suppress(termios.error):  # discard what was typed before the question appeared
            termios.tcflush(self.fileno, termios.TCIFLUSH)
        super().start_application_mode()

    def look_at_size(self) -> None:
        """Tell the app if the terminal was resized."""
        if (now := self._get_terminal_size()) != self._last:
            self._last = now
            size = Size(*now)
            self._app.post_message(Resize(size, size))

    def run_input_thread(self) -> None:
        """Read keys. If reading ends although nobody stopped it, the terminal was closed."""
        super().run_input_thread()
        if not self.exit_event.is_set():
            self._app.post_message(TerminalGone())
