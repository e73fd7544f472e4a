"""Large calls are drawn beside everything else, and once."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
from tests.discord.asking import asked

from signoff.channels.discord import drawings
from signoff.channels.discord.drawings import LARGE, DrawingCache, is_large
from signoff.channels.discord.notice_message import sheet_for, shows_whole
from signoff.channels.discord.request_file import whole
from signoff.core.notice import Asked, Together


@pytest.mark.parametrize(
    ("args", "large"),
    [
        ({"to": "ACME"}, False),
        ({"to": "a" * (LARGE + 1)}, True),
        ({"to": [{"x": "a" * 100}] * (LARGE // 100)}, True),
        ({"a" * LARGE: 1}, True),
        ({"to": list(range(LARGE + 1))}, True),
    ],
)
def test_how_large_a_call_is_is_found_out_first(args: dict[str, Any], large: bool) -> None:
    assert is_large(asked(args=args)) is large
    assert is_large(asked(args={}, metadata=args)) is large


@pytest.mark.parametrize("args", [{"to": "ACME"}, {"to": "a b\n" * LARGE}])
async def test_it_is_drawn_alike(args: dict[str, Any]) -> None:
    request, made = asked(args=args), DrawingCache()
    for notice in (
        Asked(request=request, number=2, of=3),
        Together(requests=(request, request)),
        Asked(request=request),
    ):
        assert await made.sheet(notice) == sheet_for(notice)
    assert await made.whole(request) == whole(request)
    assert await made.shows_whole(request) is shows_whole(request)
    later = request.changed_to(problem="no", version=request.version + 1)
    assert await made.sheet(Asked(request=later)) == sheet_for(Asked(request=later))


async def test_a_large_call_is_drawn_once_and_keeps_nobody_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    go_on, drawn = threading.Event(), list[str]()
    begun = asyncio.Event()
    loop = asyncio.get_running_loop()

    def slow(request: Any) -> str:
        drawn.append(request.id)
        loop.call_soon_threadsafe(begun.set)
        assert go_on.wait(20)
        return "all of it"

    monkeypatch.setattr(drawings, "whole", slow)
    request, made = asked(args={"to": "a" * LARGE}), DrawingCache()
    first, second, third = (asyncio.create_task(made.whole(request)) for _ in range(3))
    await begun.wait()  # everything else goes on meanwhile
    first.cancel()
    await asyncio.wait((first,))
    go_on.set()
    assert [await second, await third, await made.whole(request)] == ["all of it"] * 3
    assert drawn == [request.id]


async def test_what_cannot_be_drawn_is_said_to_everybody_who_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_: Any) -> str:
        raise ValueError("no")

    monkeypatch.setattr(drawings, "whole", broken)
    request, made = asked(args={"to": "a" * LARGE}), DrawingCache()
    for _ in range(2):
        with pytest.raises(ValueError, match="no"):
            await made.whole(request)
