"""Pictures of the card and of the full screen, taken of the real ones: `./dev docs --write` makes them anew.

Those of Discord are made by `tests/discord/picture.py`. Fonts are the reader's own: nothing is loaded from elsewhere.
"""

from __future__ import annotations

import asyncio
import io
import re
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

from rich.console import Console
from tests.channels.person import request
from tests.channels.tui import ANA, START, reading

from signoff.channels.dialog import Dialog
from signoff.channels.keyboard import EndOfInput, Keyboard
from signoff.channels.terminal_screen import Screen
from signoff.core.card import card_for
from signoff.core.request import ApprovalRequest

DIRECTORY = Path(__file__).parents[2] / "docs" / "pictures"
WIDTH, HEIGHT = 84, 30
_LOADED_FONT = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)


def pictures() -> dict[str, str]:
    """The pictures by the names of their files."""
    return {"card": card(), "tui": asyncio.run(full_screen())}


def example() -> ApprovalRequest:
    """A call that changes a file, with a secret in it."""
    before = "replicas: 2\nregion: eu-west\nlimits:\n  memory: 512Mi\n"
    after = "replicas: 6\nregion: eu-west\nlimits:\n  memory: 2Gi\n"
    return request(
        args={"path": "deploy/shop.yaml", "content": after, "api_token": "ghp_exampleexampleexampleexampleexample"},
        metadata={"summary": "Scale the shop up", "before": before, "after": after, "path": "deploy/shop.yaml"},
        id="pjssg8cwde",
    )


def card() -> str:
    """The card at the terminal, with the keys below it."""
    console = Console(
        record=True,
        file=io.StringIO(),
        width=WIDTH,
        height=HEIGHT,
        force_terminal=True,
        color_system="truecolor",
        legacy_windows=False,
        markup=False,
        emoji=False,
        highlight=False,
        _environ={"TERM": "xterm-256color", "LANG": "C.UTF-8"},
    )
    asked = example()
    with suppress(EndOfInput):
        Dialog(asked, card_for(asked), Screen(console, _Silence()), ANA).run()
    return _offline(console.export_svg(title="signoff run"))


async def full_screen() -> str:
    """The full screen with two requests."""
    other = request("shell", {"command": "git push"}, id="q8w2ns7ydt", opened_at=START - timedelta(minutes=7))
    async with reading(example().changed_to(opened_at=START), other, size=(100, 26)) as (reader, _):
        await reader.settles()
        return _offline(reader.pilot.app.export_screenshot(title="signoff inbox --tui"))


class _Silence(Keyboard):
    """Nobody types."""

    def line(self, prompt: Callable[[], None], moot: Callable[[], str] = lambda: "") -> str:
        prompt()
        raise EndOfInput


def _offline(svg: str) -> str:
    return "\n".join(line.rstrip() for line in _LOADED_FONT.sub("", svg).splitlines()) + "\n"
