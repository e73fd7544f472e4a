"""Read prompts in a chat: with editing, history and several lines, or line by line from a pipe."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import termios
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from signoff.channels.keyboard import Keyboard, NoLine
from signoff.channels.terminal_screen import Screen, terminal_console
from signoff.core.redact import redact_text
from signoff.store.place import state_root

if TYPE_CHECKING:
    from prompt_toolkit import PromptSession
    from prompt_toolkit.history import History
    from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent

HISTORY = "chat_history"
"""File in the user's state directory with prompts typed in chats, for the arrow keys."""


class Prompt(Protocol):
    """A source of prompts."""

    is_typed: bool
    """Whether a person is there who can be told something and send the prompt again."""

    async def read(self) -> str | None:
        """The next prompt; None at the end of input."""
        ...


def prompt_here(secrets: Callable[[], Iterable[str]]) -> Prompt:
    """The terminal, if a person is at it; else standard input. Prompts that contain one of `secrets` are not stored."""
    keyboard, console = Keyboard(), terminal_console()
    if console is None or not keyboard.is_here:
        return PipedPrompt()
    if console.is_dumb_terminal:
        return DumbPrompt(Screen(console, keyboard))
    return TypedPrompt(secrets)


class PipedPrompt:
    """Each line of standard input is a prompt."""

    is_typed = False

    async def read(self) -> str | None:
        line = await asyncio.to_thread(sys.stdin.readline)
        return line.rstrip("\n") if line else None


class DumbPrompt:
    """A line typed at a terminal that can only print (`TERM=dumb`)."""

    is_typed = True

    def __init__(self, screen: Screen) -> None:
        self._screen = screen

    async def read(self) -> str | None:
        try:
            return await asyncio.to_thread(self._screen.ask, "you")
        except NoLine:
            return None


class TypedPrompt:
    """A prompt typed at a terminal. Enter sends it; Alt-Enter, or a `\\` at the end of a line, begins another line.

    Pasted text may have several lines. Ctrl-C clears the input; on an empty line it quits, like Ctrl-D.
    """

    is_typed = True

    def __init__(self, secrets: Callable[[], Iterable[str]]) -> None:
        from prompt_toolkit import PromptSession
        from prompt_toolkit.output.vt100 import Vt100_Output

        stream = sys.stderr if sys.stderr.isatty() else sys.stdout
        output = Vt100_Output.from_pty(stream, term=os.environ.get("TERM"))
        # CPR asks the terminal for its cursor position; a late reply would be read as typed keys.
        output.enable_cpr = False
        self._session: PromptSession[str] = PromptSession(
            "you > ",
            output=output,
            history=_history(secrets),
            key_bindings=_keys(),
            multiline=True,
            prompt_continuation=lambda width, number, wraps: "… > ".rjust(width),
        )

    async def read(self) -> str | None:
        with suppress(termios.error):  # discard input typed before the prompt was shown
            termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)
        # The prompt installs its own wakeup fd and does not restore the previous one.
        wakes = signal.set_wakeup_fd(-1)
        try:
            return await self._session.prompt_async(handle_sigint=False)
        except (EOFError, KeyboardInterrupt):
            return None
        finally:
            signal.set_wakeup_fd(wakes, warn_on_full_buffer=False)


def _keys() -> KeyBindings:
    from prompt_toolkit.key_binding import KeyBindings

    keys = KeyBindings()

    @keys.add("enter")
    def _(event: KeyPressEvent) -> None:  # pyright: ignore[reportUnusedFunction]
        buffer = event.current_buffer
        if buffer.document.text_before_cursor.endswith("\\"):
            buffer.delete_before_cursor()
            buffer.insert_text("\n")
        else:
            buffer.validate_and_handle()

    @keys.add("escape", "enter")
    def _(event: KeyPressEvent) -> None:  # pyright: ignore[reportUnusedFunction]
        event.current_buffer.insert_text("\n")

    @keys.add("c-c")
    def _(event: KeyPressEvent) -> None:  # pyright: ignore[reportUnusedFunction]
        if event.current_buffer.text:
            event.current_buffer.reset()
        else:
            event.app.exit(exception=KeyboardInterrupt)

    return keys


def _history(secrets: Callable[[], Iterable[str]]) -> History:
    """The history of earlier chats, readable by its owner only; in memory if no file can be written."""
    from prompt_toolkit.history import FileHistory, InMemoryHistory

    class PromptHistory(FileHistory):
        def store_string(self, string: str) -> None:
            # What looks like a secret stays in memory for this chat and is not written to disk.
            if redact_text(string, secrets=tuple(secrets())) == string:
                with suppress(OSError):
                    super().store_string(string)

    root = state_root()
    if root is None:
        return InMemoryHistory()
    file = root / HISTORY
    try:
        root.mkdir(mode=0o700, parents=True, exist_ok=True)
        _make_private(file)
    except OSError:
        return InMemoryHistory()
    return PromptHistory(str(file))


def _make_private(file: Path) -> None:
    """Create a file that only its owner can read; a symlink is refused."""
    number = os.open(file, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK, 0o600)
    try:
        os.fchmod(number, 0o600)
    finally:
        os.close(number)
