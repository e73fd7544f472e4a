"""The pictures in the documentation are what would be sent today."""

from __future__ import annotations

import pytest
from tests.discord.house import House
from tests.discord.picture import DIRECTORY, draw, pictures
from tests.discord.service import Service


async def test_the_pictures_are_what_is_sent(house: House, service: Service) -> None:
    drawn = await pictures(house)
    assert list(drawn) == ["discord-asked", "discord-settled"]
    for name, svg in drawn.items():
        assert DIRECTORY.joinpath(f"{name}.svg").read_text("utf-8") == svg, "run python -m tests.discord.picture"
    [message] = service.messages(service.threads()[0])
    assert "ran" in message.text and not message.buttons, "both pictures are of one message"


def test_a_picture_shows_what_is_sent_and_refuses_what_would_act() -> None:
    svg = draw({"content": "hello **there** `x<y`", "embeds": [], "components": []})
    assert ">hello </text>" in svg and 'font-weight="700"' in svg and "x&lt;y" in svg
    with pytest.raises(AssertionError, match="acts: mention"):
        draw({"content": "hello @everyone"})
