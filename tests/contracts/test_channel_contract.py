"""Every channel keeps the contract of `signoff.testing.ChannelContract`, over a real broker and its stores."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.contracts.channels.discord_case import DiscordCase, discord_case
from tests.contracts.channels.sketch_case import NotificationCase, SlackLikeCase, WebhookCase, sketch_case
from tests.contracts.channels.tui_case import TuiCase, tui_case
from tests.contracts.channels.ui_case import BoothCase, TerminalCase, booth_case, terminal_case
from tests.ready import ready

from signoff.store.sqlite import SqliteStore
from signoff.testing import ChannelCase, ChannelContract, Office
from signoff.testing.bench import Check
from signoff.testing.channels import OpenCase

Opens = Callable[[Path], OpenCase]

CASES: dict[type[ChannelCase], Opens] = {
    BoothCase: lambda folder: booth_case,
    TerminalCase: lambda folder: lambda: terminal_case(folder),
    TuiCase: lambda folder: tui_case,
    DiscordCase: lambda folder: discord_case,
    WebhookCase: lambda folder: lambda: sketch_case(WebhookCase),
    NotificationCase: lambda folder: lambda: sketch_case(NotificationCase),
    SlackLikeCase: lambda folder: lambda: sketch_case(SlackLikeCase),
}


def applying() -> list[pytest.param]:
    """Every check with every channel it is for."""
    return [
        pytest.param(case, check, id=f"{case.__name__}-{check}")
        for case in CASES
        for check in ChannelContract.checks
        if not check.why_not(case)
    ]


@pytest.mark.parametrize(("case", "check"), applying())
async def test_a_channel_keeps_the_contract(tmp_path: Path, case: type[ChannelCase], check: Check) -> None:
    contract = ChannelContract(
        CASES[case](tmp_path), office=lambda: Office(SqliteStore(ready(tmp_path / "signoff.db")))
    )
    assert await contract.run(check) == ""
