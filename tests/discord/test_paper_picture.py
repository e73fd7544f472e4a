"""The pictures in the documentation are what would be sent today."""

from __future__ import annotations

import pytest
from tests.discord.picture import FOLDER, draw, pictures


@pytest.mark.parametrize("name", ["discord-asked", "discord-settled"])
def test_the_pictures_are_up_to_date(name: str) -> None:
    assert FOLDER.joinpath(f"{name}.svg").read_text("utf-8") == pictures()[name], "run python -m tests.discord.picture"


def test_a_picture_shows_what_is_sent_and_refuses_what_would_act() -> None:
    svg = draw({"content": "hello **there** `x<y`", "embeds": [], "components": []})
    assert ">hello </text>" in svg and 'font-weight="700"' in svg and "x&lt;y" in svg
    with pytest.raises(AssertionError, match="acts: mention"):
        draw({"content": "hello @everyone"})
