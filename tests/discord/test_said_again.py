"""An answer that Discord refused: told as soon as somebody has put right what was wrong, and not given up before."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from tests.discord.service import Message, Service
from tests.discord.timed import Timed

from signoff.core.run import RunState

LONG = "\n".join(f"line {number} of an answer that does not fit into a message" for number in range(80))


@pytest.fixture
def house(service: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Timed]:
    monkeypatch.setenv("DISCORD_TOKEN", service.token)
    made = Timed(service, tmp_path, {"timeout": "none"})
    yield made
    made.close()


def answers(house: Timed) -> list[Message]:
    return [one for one in house.others() if "answered" in one.text]


@pytest.mark.parametrize(
    ("right", "text", "restarts"),
    [
        ("send_messages_in_threads", "42", True),
        ("attach_files", LONG, False),
        pytest.param("send_messages_in_threads", "42", False, marks=pytest.mark.nightly),
        pytest.param("attach_files", LONG, True, marks=pytest.mark.nightly),
    ],
    ids=["send-restarted", "attach-running", "send-running", "attach-restarted"],
)
async def test_an_answer_is_told_once_the_bot_may_again(
    house: Timed, service: Service, right: str, text: str, restarts: bool
) -> None:
    await house.ask()
    async with house.posting() as post:
        await post.round()
        await service.deny(service.channel, right)
        await post.say("talk", "triage", RunState.DONE, text)
        await post.round()
        house.clock.advance(timedelta(hours=3))
        await post.round()
        assert not answers(house)
        await service.allow(service.channel, right)
        house.clock.advance(timedelta(seconds=61))
        if not restarts:
            await post.round()
    if restarts:
        async with house.posting() as post:
            await post.round()
    [answer] = answers(house)
    assert len(service.threads()) == 1, "it is told where the call was asked"
    assert bool(answer.attachments) is (text is LONG)
    async with house.posting() as post:
        house.clock.advance(timedelta(days=2))
        await post.round()
    assert answers(house) == [answer], "it is told once"


async def test_what_is_refused_for_a_day_is_given_up_and_that_is_said(house: Timed, service: Service) -> None:
    await house.ask()
    async with house.posting() as post:
        await post.round()
        await service.deny(service.channel, "send_messages_in_threads")
        await post.say("talk", "triage", RunState.DONE, "42")
        await post.round()
        house.clock.advance(timedelta(days=1))
        with pytest.warns(RuntimeWarning, match="discord.* run talk; giving up after a day.*does not let the bot"):
            await post.round()
        await service.allow(service.channel, "send_messages_in_threads")
        house.clock.advance(timedelta(hours=1))
        await post.round()
    assert not answers(house)
