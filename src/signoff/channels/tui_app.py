"""The full-screen Textual app: runs until nothing is pending or the person leaves."""

# pyright: reportUnknownMemberType=false
# textual does not type which app a widget belongs to.

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from datetime import UTC, datetime

from textual.app import App
from textual.driver import Driver
from textual.message import Message
from textual.screen import Screen

from signoff.channels.rule_drafts import DraftRules
from signoff.channels.tui_board import Board
from signoff.channels.tui_driver import LOOK_AT_SIZE, TerminalGone, ThreadDriver
from signoff.channels.tui_prompts import SHEETS
from signoff.channels.tui_requests import WaitingRequests
from signoff.core.people import Actor

_WIDTHS = [(0, "-narrow"), (72, "-wide"), (110, "-vast")]
_STYLE = """
Board #head { height: 1; background: $primary; color: $text; padding: 0 1; }
Board #body { layout: horizontal; height: 1fr; }
Board #list { width: 25; border-right: solid $primary; }
Board.-vast #list { width: 36; }
Board #card { width: 1fr; height: 1fr; padding: 0 0 0 1; }
Board.-narrow #body { layout: vertical; }
Board.-narrow #list { width: 100%; height: 4; border-right: none; border-bottom: solid $primary; }
Board.-narrow #card { padding: 0; }
Board #said { height: auto; min-height: 2; max-height: 6; padding: 0 1; }
Board #keys { padding: 0 1; background: $surface; }
"""


def now() -> datetime:
    """Return the current time in UTC."""
    return datetime.now(UTC)


class Changed(Message):
    """Something was added or withdrawn by another thread."""

    def can_replace(self, message: Message) -> bool:
        """Collapse several changes into one redraw."""
        return isinstance(message, Changed)


class TuiApp(App[None]):
    """The Textual app of the full-screen approver: runs until nothing is pending or the person leaves."""

    ENABLE_COMMAND_PALETTE = False
    HORIZONTAL_BREAKPOINTS = _WIDTHS
    TITLE = "signoff"
    CSS = _STYLE + SHEETS

    def __init__(
        self,
        waiting: WaitingRequests,
        by: Actor,
        *,
        secrets: Iterable[str] = (),
        draft_rules: DraftRules | None = None,
        clock: Callable[[], datetime] = now,
        driver_class: type[Driver] | None = None,
    ) -> None:
        super().__init__(driver_class=driver_class)
        self._waiting = waiting
        self._board = Board(waiting, by, secrets=secrets, draft_rules=draft_rules, clock=clock)
        self._printed: list[tuple[str, bool]] = []
        """What the program printed meanwhile, each with whether it went to standard error."""
        self._streams = (sys.stdout, sys.stderr)
        self._is_over = False

    def get_default_screen(self) -> Screen[None]:
        return self._board

    def on_mount(self) -> None:
        self._waiting.changed = self._tell_board
        if isinstance(driver := self._driver, ThreadDriver):
            self.set_interval(LOOK_AT_SIZE, driver.look_at_size)

    def _tell_board(self) -> None:
        self.post_message(Changed())

    def on_changed(self) -> None:
        self._board.take_up()

    def on_terminal_gone(self, event: TerminalGone) -> None:
        self._board.action_leave()

    def _print(self, text: str, stderr: bool = False) -> None:
        """Buffer what the program prints while the screen is in use, until it is free again."""
        if self.is_headless:
            super()._print(text, stderr)
        elif self._is_over:
            self._streams[stderr].write(text)
        else:
            self._printed.append((text, stderr))

    def print_what_was_kept(self) -> None:
        """Print the buffered output, once the screen is free again."""
        self._is_over = True
        for text, stderr in self._printed:
            self._streams[stderr].write(text)
        for stream in self._streams:
            stream.flush()

    async def action_quit(self) -> None:
        self._board.action_leave()
