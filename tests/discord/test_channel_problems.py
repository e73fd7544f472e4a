"""What goes wrong outside, in words; the names of threads; and what logs do not hold."""

from __future__ import annotations

import errno
import logging
from pathlib import Path
from typing import Any

import aiohttp
import discord
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.discord.house import House, told
from tests.discord.service import Service

from signoff.channels.discord import presses
from signoff.channels.discord.problems import OUTSIDE, failed, place_of
from signoff.channels.discord.sheet import size
from signoff.channels.discord.threads import place, read_place, thread_name
from signoff.errors import ChannelFailed, StoreError

SECRET = "sk-live-1234567890abcdef"


@pytest.mark.parametrize(
    ("error", "again", "whole", "after", "words"),
    [
        (OSError(errno.ECONNREFUSED, "Connection refused"), True, True, None, "cannot be reached (Connection refused)"),
        (aiohttp.ServerDisconnectedError(), True, True, None, "cannot be reached;"),
        (TimeoutError(), True, True, None, "does not answer in time"),
        (discord.GatewayNotFound(), True, True, None, "cannot be reached"),
        (discord.RateLimited(77.5), True, False, 77.5, "rate-limiting"),
        (discord.ClientException("not like this"), False, False, None, "not like this"),
    ],
)
def test_what_goes_wrong_says_whether_to_try_again(
    error: Exception, again: bool, whole: bool, after: float | None, words: str
) -> None:
    assert isinstance(error, OUTSIDE)
    made = failed(error, "show it", at="1/")
    assert (made.again, made.whole, made.after, made.at) == (again, whole, after, "1/")
    assert words in str(made)


class _Answer:
    """As far as discord.py looks at an answer."""

    status, reason, headers = 401, "Unauthorized", dict[str, str]()


def test_an_old_press_says_nothing_about_the_token_of_the_bot() -> None:
    old = discord.HTTPException(_Answer(), {"code": 50027, "message": "Invalid Webhook Token"})  # type: ignore[arg-type]
    made = failed(old, "reply")
    assert "has expired" in str(made) and not made.again and not made.whole
    wrong = failed(discord.HTTPException(_Answer(), {"code": 0, "message": "401: Unauthorized"}), "reply")  # type: ignore[arg-type]
    assert "no longer accepts the token" in str(wrong) and wrong.whole


def test_a_failure_that_knows_more_is_kept() -> None:
    inner = ChannelFailed("no", at="5/")
    assert failed(inner, "show it", at="1/") is inner and inner.at == "5/"


def test_a_log_line_about_an_exception_leaves_out_what_it_says() -> None:
    try:
        raise ValueError(f"amount {SECRET}")
    except ValueError as error:
        said = place_of(error)
    assert said.startswith("ValueError at test_channel_problems.py:") and SECRET not in said


@example(worker="🐙" * 150, trails=["a", "🐙" * 26])
@given(
    worker=st.text(max_size=150),
    trails=st.lists(st.text(min_size=1, max_size=150), min_size=2, max_size=4, unique=True),
)
def test_every_trail_has_a_thread_name_of_its_own(worker: str, trails: list[str]) -> None:
    names = [thread_name(worker, trail) for trail in trails]
    assert all(1 <= size(name) <= 100 and name == name.strip() and name.isprintable() for name in names)
    assert len(set(names)) == len(names)


def test_an_address_is_read_as_it_was_written() -> None:
    assert read_place(place(12, 34)) == (12, 34) and read_place(place(12)) == (12, 0)
    assert [read_place(text) for text in ("", "x/y", "/5", "5")] == [(0, 0), (0, 0), (0, 5), (5, 0)]


async def test_logs_hold_neither_the_token_nor_what_calls_are_about(
    service: Service, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.DEBUG, "signoff.discord")
    monkeypatch.setattr(presses, "_SOMEBODY_ELSE", 0.0)  # nobody else is there
    house = House(service, tmp_path)

    async def broken(*_: Any, **__: Any) -> Any:
        raise StoreError(f"the disk is full of {SECRET}")

    async def bug(*_: Any, **__: Any) -> Any:
        raise ValueError(f"{SECRET} {service.token}")

    async with house.running():
        _, message = await house.shown(args={"to": SECRET, "amount": 1})
        monkeypatch.setattr(house.broker, "find", bug)
        assert "signoff has an internal error" in await told(await house.ana.press(message, "Approve"))
        monkeypatch.setattr(house.broker, "find", broken)
        text = await told(await house.ana.press(message, "Approve"))
        assert text == "signoff's store is not responding; nothing was decided."
        monkeypatch.undo()
        await service.close_sockets(4013)
        await service.connected(2)
    house.close()
    lines = [record.getMessage() for record in caplog.records if record.name == "signoff.discord"]
    assert any("a press could not be handled: ValueError at" in line for line in lines)
    assert not any(SECRET in line or service.token in line for line in lines)
