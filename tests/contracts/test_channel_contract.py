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
from signoff.testing.channel_bench import Check
from signoff.testing.channel_contract import OpenCase

Opens = Callable[[Path], OpenCase]

CASES: dict[type[ChannelCase], Opens] = {
    BoothCase: lambda directory: booth_case,
    TerminalCase: lambda directory: lambda: terminal_case(directory),
    TuiCase: lambda directory: tui_case,
    DiscordCase: lambda directory: discord_case,
    WebhookCase: lambda directory: lambda: sketch_case(WebhookCase),
    NotificationCase: lambda directory: lambda: sketch_case(NotificationCase),
    SlackLikeCase: lambda directory: lambda: sketch_case(SlackLikeCase),
}


DONE_BY_THE_TERMINAL = {
    "an_approval_reaches_the_inbox_once",
    "a_denial_reaches_the_inbox",
    "edited_arguments_are_what_counts",
    "an_answer_of_the_wrong_person_is_told",
    "showing_it_again_changes_nothing",
    "what_was_shown_though_nobody_heard_is_found_again",
    "the_outcome_is_shown",
    "several_are_decided_differently",
    "what_a_run_came_to_is_said",
    "stopping_leaves_nothing_running",
}
"""Checks of what the terminal and the full screen leave to the same `ApproverChannel`: by day the terminal has them."""


def is_daily(case: type[ChannelCase], number: int, check: Check) -> bool:
    """By day, of the two sketches that can be answered at, one has a check and the other the next."""
    if case is TuiCase:
        return check.name not in DONE_BY_THE_TERMINAL
    if case in (WebhookCase, SlackLikeCase):
        other = SlackLikeCase if case is WebhookCase else WebhookCase
        return bool(check.why_not(other)) or (case is WebhookCase) == (number % 2 == 0)
    return True


def applying() -> list[pytest.param]:
    """Every check with every channel it is for."""
    return [
        pytest.param(
            case,
            check,
            id=f"{case.__name__}-{check}",
            marks=[] if is_daily(case, number, check) else [pytest.mark.nightly],
        )
        for case in CASES
        for number, check in enumerate(ChannelContract.checks)
        if not check.why_not(case)
    ]


@pytest.mark.parametrize(("case", "check"), applying())
async def test_a_channel_keeps_the_contract(tmp_path: Path, case: type[ChannelCase], check: Check) -> None:
    contract = ChannelContract(
        CASES[case](tmp_path), office=lambda: Office(SqliteStore(ready(tmp_path / "signoff.db")))
    )
    assert await contract.run(check) == ""
