"""What Discord drops or fetches by itself: frames without the permission for them, and pages behind addresses."""

from __future__ import annotations

import pytest
from tests.discord.house import House, plainly, thread_of
from tests.discord.service import Service

from signoff.core.notice import Asked, RunResult
from signoff.core.request import ApprovalRequest
from signoff.core.run import RunState
from signoff.core.verdict import Requirement
from signoff.delivery.delivery_status import troubles_of
from signoff.errors import ChannelFailed


async def _has_trouble(house: House, request: ApprovalRequest) -> bool:
    troubles = await troubles_of(house.broker.ledger, [request.id])
    return any("Embed Links" in one.problem for one in troubles.get(request.id, ()))


async def test_buttons_without_what_they_are_about_do_not_count_as_shown(house: House, service: Service) -> None:
    channel = house.channel()
    await channel.start(house.inbox())
    await service.deny(service.channel, "embed_links")
    [request] = await house.ask()
    with pytest.raises(ChannelFailed, match="Embed Links") as failure:
        await channel.show(Asked(request=request))
    assert not failure.value.again
    await service.allow(service.channel, "embed_links")
    at = await channel.show(Asked(request=request), at=failure.value.at)
    await channel.stop()
    [message] = service.messages(service.threads()[0])
    assert at == failure.value.at == f"{message.place.id}/{message.id}" and "pay_invoice" in message.text


async def test_a_card_that_lost_what_it_said_is_in_trouble(house: House, service: Service) -> None:
    async with house.running():
        request, message = await house.shown(need=Requirement(quorum=2))
        await service.deny(service.channel, "embed_links")
        await house.ana.press(message, "Approve")
        await house.until(lambda: _has_trouble(house, request))


async def test_what_a_program_says_does_not_tell_where_files_are(house: House, service: Service) -> None:
    cases = [
        (RunState.FAILED, "/srv/team/alpha.turns: the agent asks for turn 3", "alpha.turns: the agent asks for turn 3"),
        (RunState.FAILED, "cannot read '/home/ana/x.yaml', line 3", "cannot read 'x.yaml', line 3"),
        (RunState.FAILED, r"no such file: C:\Users\ana\x.yaml", "no such file: x.yaml"),
        (RunState.FAILED, "see https://a.example/b/c and inbox/a.txt", "see https://a.example/b/c and inbox/a.txt"),
        (RunState.GOING, "the store /srv/s.db is locked", "the store s.db is locked"),
        (RunState.DONE, "I wrote /srv/report.txt", "I wrote /srv/report.txt"),
    ]
    channel = house.channel()
    await channel.start(house.inbox())
    for number, (state, text, shown) in enumerate(cases):
        at = await channel.show(RunResult(run=f"talk-{number}", state=state, worker="triage", text=text))
        [said] = [one for thread in service.threads() for one in service.messages(thread) if at.endswith(f"/{one.id}")]
        assert shown in plainly(said.text) and (state is RunState.DONE or "/srv" not in said.text)
    await channel.stop()


async def test_nobody_fetches_what_an_agent_names(house: House, service: Service) -> None:
    channel = house.channel()
    async with house.running(channel):
        _, message = await house.shown()
        beside = f"{message.place.id}/{message.id}"
        said = RunResult(run="talk", state=RunState.DONE, worker="triage", text="see https://evil.example/?q=c2VjcmV0")
        at = await channel.show(said, beside=beside)
        assert await channel.show(said, at=at, beside=beside) == at, "brought up to date"
    answer = service.messages(thread_of(message))[-1]
    assert "evil.example" in answer.text and answer.flags & 4
    assert not message.flags & 4
