"""The terminal as textual drives it, from a thread that is not the main one.

The gate asks in threads, while the main thread runs the agent; and only the main thread may set signal handlers.
So none are set, and the size is looked at instead of waiting for the signal that tells of a new one.
"""

# pyright: reportUnknownMemberType=false
# textual leaves open what kind of app a widget belongs to.

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
"""Seconds between two looks at the terminal's size."""


class TerminalGone(Message):
    """Nobody can type any longer."""


class _Signals:
    """Python's `signal`, except that setting a handler outside of the main thread does nothing."""

    def __getattr__(self, name: str) -> Any:
        return getattr(signal, name)

    @staticmethod
    def signal(number: int, handler: Any) -> Any:
        if threading.current_thread() is threading.main_thread():
            return signal.signal(number, handler)
        return signal.SIG_DFL


# textual's driver sets handlers where it is made, started and stopped, and has no switch for it.
setattr(linux_driver, "signal", _Signals())  # noqa: B010 - its type is that of the module


class ThreadDriver(linux_driver.LinuxDriver):
    """Draws on whichever of standard error and output is a terminal."""

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
        with suppress(termios.error):  # what was typed before the question was there does not count
            termios.tcflush(self.fileno, termios.TCIFLUSH)
        super().start_application_mode()

    def look_at_size(self) -> None:
        """Tell the app if the terminal has another size than before."""
        if (now := self._get_terminal_size()) != self._last:
            self._last = now
            size = Size(*now)
            self._app.post_message(Resize(size, size))

    def run_input_thread(self) -> None:
        """Read keys; if they end although nobody ended them, the terminal is gone."""
        super().run_input_thread()
        if not self.exit_event.is_set():
            self._app.post_message(TerminalGone())
