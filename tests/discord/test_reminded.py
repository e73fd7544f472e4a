"""Reminders and escalations: a new message in the thread, once each, for those who may answer by then."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.discord.house import ROLES
from tests.discord.service import Message, Service
from tests.discord.timed import Timed

from signoff.broker import Broker
from signoff.core.decision import ApprovalDecision
from signoff.core.people import Actor
from signoff.core.request import ApprovalRequest, State
from signoff.core.run import RunState
from signoff.core.verdict import OnTimeout, Requirement
from signoff.delivery import Reconciler

MINUTES = timedelta(minutes=1)
REMINDS = Requirement(role="ops", timeout=10 * MINUTES, remind=5 * MINUTES)
ESCALATES = Requirement(role="dev", timeout=10 * MINUTES, on_timeout=OnTimeout.ESCALATE, escalate_to="ops")


@pytest.fixture
def house(service: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Timed]:
    monkeypatch.setenv("DISCORD_TOKEN", service.token)
    made = Timed(service, tmp_path)
    yield made
    made.close()


def notified(message: Message) -> list[str]:
    return [user.name for user in message.notified]


def link(house: Timed, request: ApprovalRequest) -> str:
    card = house.about(request)
    return f"(https://discord.com/channels/{house.service.guild_id}/{card.place.id}/{card.id})"


async def test_a_reminder_notifies_those_who_may_answer_once(house: Timed) -> None:
    [request] = await house.ask(need=REMINDS)
    async with house.posting() as post:
        await post.round()
        card, deadline = house.about(request), request.deadline
        assert deadline is not None and house.others() == []
        house.clock.advance(5 * MINUTES)
        for _ in range(3):
            await post.round()
            house.clock.advance(MINUTES)
        [reminder] = house.others()
    async with house.posting() as post:
        await post.round()
        assert house.others() == [reminder], "the next process does not remind of it again"
    assert reminder.place is card.place and notified(reminder) == ["ana", "ben"]
    assert f"**Still waiting:** may `pay_invoice` run? Otherwise it is denied <t:{int(deadline.timestamp())}:R>." in (
        reminder.text
    )
    assert link(house, request) in reminder.text and reminder.flags & 4, "nobody fetches anything"


async def test_an_escalation_notifies_those_who_are_asked_now_and_the_card_says_so(house: Timed) -> None:
    [request] = await house.ask(need=ESCALATES)
    async with house.posting() as post:
        await post.round()
        assert notified(house.about(request)) == ["ben"] and "escalated" not in house.about(request).text
        house.clock.advance(10 * MINUTES)
        await post.round()
        await post.round()
    [told] = house.others()
    assert notified(told) == ["ana", "ben"]
    assert "**Escalated to `ops`:** nobody answered in time. May `pay_invoice` run?" in told.text
    assert link(house, request) in told.text
    assert "somebody with the role ops; escalated, as nobody answered in time" in house.about(request).text


async def test_whoever_agreed_already_is_not_reminded(house: Timed) -> None:
    [request] = await house.ask(need=Requirement(role="ops", quorum=2, timeout=10 * MINUTES, remind=5 * MINUTES))
    async with house.posting() as post:
        await post.round()
        await house.broker.answer(request.id, ApprovalDecision(approved=True), by=Actor(name="ana"))
        house.clock.advance(5 * MINUTES)
        await post.round()
    [reminder] = house.others()
    assert notified(reminder) == ["ben"]


async def test_calls_that_were_asked_at_once_notify_each_person_once(house: Timed) -> None:
    await house.ask(need=REMINDS, count=3)
    async with house.posting() as post:
        await post.round()
        house.clock.advance(5 * MINUTES)
        await post.round()
    reminders = [one for one in house.others() if "Still waiting" in one.text]
    assert [notified(one) for one in reminders] == [["ana", "ben"], [], []]


@pytest.mark.parametrize(
    ("needs", "pauses"),
    [
        ([replace(REMINDS, remind=one * MINUTES) for one in (5, 2)], (5, 3)),
        ([replace(ESCALATES, timeout=one * MINUTES) for one in (40, 60)], (40, 20)),
    ],
    ids=["reminded", "escalated"],
)
async def test_of_calls_that_were_asked_at_once_each_notifies_when_its_own_time_comes(
    house: Timed, needs: list[Requirement], pauses: tuple[int, ...]
) -> None:
    await house.ask(needs=needs)
    async with house.posting() as post:
        await post.round()
        for minutes in pauses:
            house.clock.advance(minutes * MINUTES)
            await post.round()
            await post.round()
    told = [one for one in house.others() if "The call" in one.text]
    assert [notified(one) for one in told] == [["ana", "ben"]] * 2


async def test_what_was_missed_does_not_pile_up(house: Timed) -> None:
    need = Requirement(
        role="dev", timeout=10 * MINUTES, remind=5 * MINUTES, on_timeout=OnTimeout.ESCALATE, escalate_to="ops"
    )
    [request] = await house.ask(need=need)
    async with house.posting() as post:
        await post.round()
    for _ in range(2):  # time goes on elsewhere, and nobody shows it
        house.clock.advance(5 * MINUTES)
        await house.broker.sweep()
    assert (await house.broker.get(request.id)).escalated
    async with house.posting() as post:
        await post.round()
        [escalated] = house.others()
        assert "Escalated" in escalated.text
        house.clock.advance(5 * MINUTES)
        await post.round()
        assert len(house.others()) == 2 and "Still waiting" in house.others()[-1].text, "those it was escalated to"


async def test_a_question_that_comes_late_is_not_reminded_of_at_once(house: Timed) -> None:
    [request] = await house.ask(need=REMINDS)
    house.clock.advance(6 * MINUTES)
    await house.broker.sweep()
    async with house.posting() as post:
        await post.round()
        await house.broker.assign(request.id, "ana", by=Actor(name="ana"))
        await post.round()
    assert notified(house.about(request)) == ["ana", "ben"] and house.others() == []


async def test_what_is_answered_meanwhile_is_not_reminded_of(house: Timed, service: Service) -> None:
    [request] = await house.ask(need=REMINDS)
    async with house.posting() as post:
        await post.round()
        await service.deny(service.channel, "send_messages_in_threads")
        house.clock.advance(5 * MINUTES)
        await post.round()
        await house.broker.answer(request.id, ApprovalDecision(approved=False), by=Actor(name="ana"))
        await service.allow(service.channel, "send_messages_in_threads")
        house.clock.advance(2 * MINUTES)
        await post.round()
        assert await house.state(request) is State.DENIED and "was denied" in house.about(request).text
    assert house.others() == []


async def test_a_reminder_that_is_refused_comes_when_it_can(house: Timed, service: Service) -> None:
    await house.ask(need=REMINDS)
    async with house.posting() as post:
        await post.round()
        await service.deny(service.channel, "send_messages_in_threads")
        house.clock.advance(5 * MINUTES)
        await post.round()
        assert house.others() == []
        await service.allow(service.channel, "send_messages_in_threads")
        house.clock.advance(2 * MINUTES)
        await post.round()
        assert len(house.others()) == 1


@pytest.mark.parametrize("refused", [True, False], ids=["refused", "told"])
async def test_a_card_that_is_only_brought_up_to_date_takes_no_reminder_away(
    house: Timed, service: Service, refused: bool
) -> None:
    """To edit a message notifies nobody, though it was taken for gone."""
    [request] = await house.ask(need=REMINDS)
    async with house.posting() as post:
        await post.round()
        card = house.about(request)
        service.fail("POST /channels/*/messages", 403, code=50013, times=int(refused))
        house.clock.advance(5 * MINUTES)
        await post.round()
        assert len(house.others()) == int(not refused)
        await house.inbox().gone(request.id)
        await post.round()
        house.clock.advance(2 * MINUTES)
        await post.round()
        assert house.about(request) is card and len(house.others()) == 1


@pytest.mark.parametrize("lost", ["the reply", "the process"])
async def test_a_card_nobody_heard_of_takes_no_reminder_away(house: Timed, service: Service, lost: str) -> None:
    """People may have seen it: the process that showed it ended before it could write that down, or heard nothing."""
    [request] = await house.ask(need=REMINDS)
    async with house.posting() as post:
        if lost == "the reply":
            service.kill_response("POST /channels/*/messages")
            await post.round()
        else:
            await _ends_as_soon_as_it_shows(house, post)
    card = house.about(request)
    house.clock.advance(5 * MINUTES)
    await house.broker.sweep()
    async with house.posting() as post:
        await post.round()
        await post.round()
    assert house.about(request) is card and len(house.others()) == 1


async def _ends_as_soon_as_it_shows(house: Timed, post: Reconciler) -> None:
    """The message stands in the thread, and nothing is written down after that."""
    write = house.store.write

    async def only_before(name: str, work: Any, **options: Any) -> Any:
        if name == "shown":
            raise asyncio.CancelledError
        return await write(name, work, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(house.store, "write", only_before)
        with contextlib.suppress(asyncio.CancelledError):
            await post.round()


@pytest.mark.parametrize("restarts", [False, True], ids=["running", "restarted"])
async def test_a_reminder_whose_reply_was_lost_comes_once(house: Timed, service: Service, restarts: bool) -> None:
    await house.ask(need=REMINDS)
    async with house.posting() as post:
        await post.round()
        service.kill_response("POST /channels/*/messages")
        house.clock.advance(5 * MINUTES)
        await post.round()
        house.clock.advance(2 * MINUTES)
        if not restarts:
            await post.round()
    async with house.posting() as post:
        house.clock.advance(MINUTES)
        await post.round()
    assert len(house.others()) == 1 and notified(house.others()[0]) == ["ana", "ben"]


async def test_a_reminder_whose_reply_was_lost_comes_once_whoever_may_answer_by_now(
    house: Timed, service: Service
) -> None:
    await house.ask(need=REMINDS)
    async with house.posting() as post:
        await post.round()
        service.kill_response("POST /channels/*/messages")
        house.clock.advance(5 * MINUTES)
        await post.round()
    await service.pass_time(3600)  # Discord does not know it by its nonce any longer
    house.broker.people.follow(lambda: ROLES | {"ben": frozenset({"dev"})})
    async with house.posting() as post:
        house.clock.advance(MINUTES)
        await post.round()
    [reminder] = house.others()
    assert notified(reminder) == ["ana", "ben"] and f"<@{house.ben.id}>" in reminder.content


async def test_what_a_run_came_to_is_told_where_its_call_moved_after_a_reminder(house: Timed, service: Service) -> None:
    [request] = await house.ask(need=replace(REMINDS, quorum=2))
    async with house.posting() as post:
        await post.round()
        house.clock.advance(5 * MINUTES)
        await post.round()
        old, [_] = house.about(request), house.others()
        for method in ("PATCH", "POST"):
            service.fail(f"{method} /channels/{old.place.id}/*", 403, code=50001, times=50)
        await house.broker.answer(request.id, ApprovalDecision(approved=True), by=Actor(name="ben"))
        await post.round()
        await house.broker.answer(request.id, ApprovalDecision(approved=True), by=Actor(name="ana"))
        await post.say("talk", "triage", RunState.DONE, "all paid")
        await post.round()
    [answer] = [one for one in house.others() if "all paid" in one.text]
    assert answer.place is not old.place


async def test_whoever_may_know_what_became_of_a_call_is_notified(house: Timed) -> None:
    [request] = await house.ask(need=Requirement(role="ops"))
    async with house.posting() as post:
        await post.round()
        await house.broker.answer(request.id, ApprovalDecision(approved=True), by=Actor(name="ana"))
        gone = Broker(house.store, house.clock)
        gone.ledger._process = replace(gone.process, id="gone", born="before")
        await gone.claim(request.id)
        house.clock.advance(60 * MINUTES)
        await post.round()
        await post.round()
    assert await house.state(request) is State.UNKNOWN
    [told] = house.others()
    assert notified(told) == ["ana", "ben"] and "**It is unknown whether `pay_invoice` ran.**" in told.text
    assert link(house, request) in told.text


async def test_with_nobody_to_notify_it_is_said_all_the_same(
    service: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DISCORD_TOKEN", service.token)
    house = Timed(service, tmp_path, {"notify": "nobody"})
    await house.ask(need=REMINDS)
    async with house.posting() as post:
        await post.round()
        house.clock.advance(5 * MINUTES)
        await post.round()
    house.close()
    [reminder] = house.others()
    assert reminder.text.startswith("**Still waiting:**") and notified(reminder) == []
