"""How long a question waits on Discord (H4): five minutes from when it is there, or what its rule says."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from tests.discord.flow import told
from tests.discord.service import Service
from tests.discord.timed import Timed

from signoff.core.request import State
from signoff.core.verdict import Requirement

FIVE = timedelta(minutes=5)
INSTANT = timedelta(seconds=1)


@pytest.fixture
def timeout() -> str | None:
    """What the project file says about it."""
    return None


@pytest.fixture
def house(service: Service, tmp_path: Path, timeout: str | None, monkeypatch: pytest.MonkeyPatch) -> Iterator[Timed]:
    monkeypatch.setenv("DISCORD_TOKEN", service.token)
    made = Timed(service, tmp_path, {} if timeout is None else {"timeout": timeout})
    yield made
    made.close()


@pytest.mark.mission("H4")
async def test_h4_five_minutes_from_when_it_is_there_then_it_is_denied_and_says_so(house: Timed) -> None:
    [request] = await house.ask()
    house.clock.advance(3600)  # nobody ran the bot: nobody could have answered
    async with house.posting() as post:
        await post.round()
        message = house.about(request)
        deadline = house.clock.now() + FIVE
        assert f"<t:{int(deadline.timestamp())}:R>" in message.text and "Approve" in message.buttons
        house.clock.advance(FIVE - INSTANT)
        await post.round()
        assert await house.state(request) is State.PENDING and "Approve" in message.buttons
        approve = message.child("Approve")
        house.clock.advance(INSTANT)
        await post.round()
        assert await house.state(request) is State.EXPIRED
        assert "`pay_invoice`: nobody answered" in message.text and "**Timed out** at" in message.text
        assert not message.buttons and message.edits == 1
        assert approve is not None
        late = await told(await house.ana.forge(message.place, approve["custom_id"], message))
        assert late.startswith("Too late:")
    decision = (await house.broker.get(request.id)).decision
    assert decision is not None and not decision.approved


@pytest.mark.mission("H4")
@pytest.mark.parametrize("own", [timedelta(minutes=1), timedelta(hours=2)], ids=str)
async def test_h4_a_rules_own_timeout_holds_instead(house: Timed, own: timedelta) -> None:
    [strict] = await house.ask(tool="strict", need=Requirement(timeout=own), talk="one")
    [plain] = await house.ask(tool="plain", talk="two")
    async with house.posting() as post:
        await post.round()
        first, second = sorted([(own, strict), (FIVE, plain)], key=lambda one: one[0])
        house.clock.advance(first[0])
        await post.round()
        assert [await house.state(one[1]) for one in (first, second)] == [State.EXPIRED, State.PENDING]
        assert not house.about(first[1]).buttons and "Approve" in house.about(second[1]).buttons
        house.clock.advance(second[0] - first[0])
        await post.round()
        assert await house.state(second[1]) is State.EXPIRED and "nobody answered" in house.about(second[1]).text


@pytest.mark.mission("H4")
@pytest.mark.parametrize("timeout", ["20m"])
async def test_h4_the_project_file_says_another_time_for_all(house: Timed) -> None:
    requests = await house.ask(count=2)
    async with house.posting() as post:
        await post.round()
        house.clock.advance(timedelta(minutes=20) - INSTANT)
        await post.round()
        assert [await house.state(one) for one in requests] == [State.PENDING, State.PENDING]
        house.clock.advance(INSTANT)
        await post.round()
        assert [await house.state(one) for one in requests] == [State.EXPIRED, State.EXPIRED]
        [both] = [one for one in house.service.messages() if "All 2 calls are answered" in one.text]
        assert both.text.count("timed out") == 2 and not both.buttons


@pytest.mark.mission("H4")
@pytest.mark.parametrize("timeout", ["none"])
async def test_h4_without_a_timeout_it_waits_as_long_as_it_takes(house: Timed) -> None:
    [request] = await house.ask()
    async with house.posting() as post:
        await post.round()
        house.clock.advance(timedelta(days=30))
        await post.round()
        message = house.about(request)
        assert "**Until**" not in message.text and "Approve" in message.buttons
        await house.ana.press(message, "Approve")
        await house.becomes(request, State.APPROVED)


@pytest.mark.mission("H4")
async def test_h4_a_restart_gives_no_new_time(house: Timed, service: Service) -> None:
    [request] = await house.ask()
    async with house.posting() as post:
        await post.round()
    house.clock.advance(timedelta(minutes=4))
    async with house.posting() as post:
        await post.round()
        assert await house.state(request) is State.PENDING
        house.clock.advance(timedelta(minutes=1))
        await post.round()
        assert await house.state(request) is State.EXPIRED and "nobody answered" in house.about(request).text
    assert len(service.threads()) == 1
