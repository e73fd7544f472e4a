"""Presses that come late, twice, at once, out of order, or to another process than the one that asked."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from tests.discord.house import House, plainly, press_id, thread_of, told
from tests.discord.service import Answered, Service

from signoff.channels.discord import replies
from signoff.channels.discord.custom_id import Verb
from signoff.core.decision import ApprovalDecision
from signoff.core.people import Actor
from signoff.core.request import State
from signoff.core.verdict import Requirement

BEN = Actor(name="ben", roles=frozenset({"ops", "dev"}), via="terminal")


@pytest.mark.mission("H6")
async def test_h6_a_late_press_is_told_what_happened(house: House) -> None:
    async with house.running():
        request, message = await house.shown()
        await house.broker.answer(request.id, ApprovalDecision(approved=False, note="**no** @here"), by=BEN)
        await house.message(request, lambda one: not one.buttons)
        for verb in (Verb.APPROVE, Verb.DENY, Verb.DENY_NOTE, Verb.EDIT, Verb.REMEMBER, Verb.WHOLE):
            answered = await house.ana.forge(thread_of(message), press_id(verb, request), message)
            reply = await answered.reply()
            assert plainly(reply.text).startswith(f"Too late: request {request.id} was denied by ben at 20"), verb
            assert r"\*\*no\*\* \@here" in reply.text and reply.is_private, verb


@pytest.mark.mission("H6")
async def test_h6_a_late_press_brings_the_message_up_to_date(house: House) -> None:
    """The edit was lost: what stands there is old."""
    async with house.running():
        request, message = await house.shown()
        old = list(message.components)
        await house.broker.answer(request.id, ApprovalDecision(approved=False), by=BEN)
        await house.message(request, lambda one: not one.buttons)
        message.components = old
        assert "Too late" in await told(await house.ana.press(message, "Approve"))
        await house.service.until(lambda: not message.buttons)


async def test_a_late_press_leaves_a_message_alone_that_is_right(house: House, service: Service) -> None:
    async with house.running():
        request, message = await house.shown()
        await house.broker.answer(request.id, ApprovalDecision(approved=False), by=BEN)
        await house.message(request, lambda one: not one.buttons)
        edits = message.edits
        for carrier in (message, message, None):  # the last one as from a private message
            answered = await house.ana.forge(thread_of(message), press_id(Verb.APPROVE, request), carrier)
            assert "Too late" in await told(answered)
        await house.shown()  # whatever was to be done before was done
    assert message.edits == edits


async def test_of_two_people_in_the_same_instant_one_wins_and_the_other_is_told(house: House) -> None:
    async with house.running():
        request, message = await house.shown()
        answers = await asyncio.gather(house.ana.press(message, "Approve"), house.ben.press(message, "Deny"))
        await house.message(request, lambda one: not one.buttons)

        def losers() -> list[Answered]:
            return [one for one in answers if len(one.replies) > 1]

        await house.service.until(losers)
        [loser] = losers()
        settled = await house.broker.get(request.id)
        assert settled.decision is not None and settled.decision.by is not None
        winner = settled.decision.by.name
        assert loser is answers[0 if winner == "ben" else 1]
        assert f"by {winner}" in await told(loser)
    assert len(settled.votes) == 1


async def test_the_same_event_twice_is_one_answer(house: House, service: Service) -> None:
    async with house.running():
        request, message = await house.shown(need=Requirement(quorum=2))
        service.duplicate_next("INTERACTION_CREATE")
        answered = await house.ana.press(message, "Approve")
        assert await told(answered) == "Your vote counts. 1 more is needed."
        await house.message(request, lambda one: "by `ana`" in one.text)
    assert len((await house.broker.get(request.id)).votes) == 1
    assert len(service.calls("POST", "/interactions/{}/{token}/callback")) == 1


async def test_events_out_of_order_lose_nothing(house: House, service: Service) -> None:
    async with house.running():
        first, one = await house.shown(talk="a")
        second, two = await house.shown(talk="b")
        service.reorder(2)
        await house.ana.press(one, "Approve")
        await house.ana.press(two, "Deny")
        await house.becomes(first, State.APPROVED)
        await house.becomes(second, State.DENIED)


@pytest.mark.parametrize(("status", "code"), [(404, 10062), (400, 40060), (503, 0)])
async def test_an_answer_counts_though_discord_does_not_take_the_acknowledgement(
    house: House, service: Service, status: int, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replies, "_IN_TIME", 1.5)  # long enough for discord.py to try once more
    async with house.running():
        request, message = await house.shown()
        service.fail("POST /interactions/*/*/callback", status, times=5, code=code)
        await house.ana.press(message, "Approve")
        await house.becomes(request, State.APPROVED)
        await house.message(request, lambda one: not one.buttons)


async def test_a_press_that_comes_before_the_inbox_knows_where_it_stands_counts(house: House, service: Service) -> None:
    held = service.hold("POST /channels/*/messages", after=True)
    async with house.running():
        [request] = await house.ask()
        message = await service.message(lambda one: f"request {request.id}" in one.text)
        held.release()
        await house.ana.press(message, "Approve")
        await house.becomes(request, State.APPROVED)


async def test_what_was_withdrawn_is_told(house: House) -> None:
    async with house.running():
        request, message = await house.shown()
        old = list(message.components)
        await house.broker.cancel(request.id, "the run ended")
        await house.message(request, lambda one: not one.buttons)
        message.components = old
        text = await told(await house.ana.press(message, "Approve"))
    assert text.startswith(f"Too late: request {request.id} was cancelled at") and "the run ended" in text


# --- another process ---


@pytest.mark.mission("H8")
async def test_h8_buttons_and_forms_outlive_the_bot(house: House, service: Service, tmp_path: Path) -> None:
    async with house.running():
        first, one = await house.shown(talk="a")
        second, two = await house.shown(talk="b")
        form = await (await house.ana.press(two, "Deny with reason…")).modal()
    house.close()
    again = House(service, tmp_path)
    try:
        async with again.running():
            await again.ana.press(one, "Approve")
            await form.submit({"reason": "not now"})
            await again.becomes(first, State.APPROVED)
            denied = await again.becomes(second, State.DENIED)
            assert denied.decision is not None and denied.decision.note == "not now"
            await service.message(lambda found: found is one and "by `ana`" in found.text)
            late = await again.ben.forge(thread_of(one), press_id(Verb.APPROVE, first), one)
            assert "Too late" in await told(late)
        assert len((await again.broker.get(first.id)).votes) == 1
    finally:
        again.close()
    assert len(service.threads()) == 2 and all(len(service.messages(thread)) == 1 for thread in service.threads())


async def test_a_form_that_two_people_have_open_is_taken_from_both(house: House) -> None:
    async with house.running():
        request, message = await house.shown(need=Requirement(quorum=2))
        forms = [await (await who.press(message, "Edit…")).modal() for who in (house.ana, house.ben)]
        assert forms[0].data["custom_id"] == forms[1].data["custom_id"]
        for form in forms:
            await form.submit({"args": '{"to": "ACME", "amount": 1}'})
        approved = await house.becomes(request, State.APPROVED)
    assert {vote.by.name for vote in approved.votes} == {"ana", "ben"}


async def test_a_press_while_the_bot_starts_is_not_lost(house: House, service: Service, tmp_path: Path) -> None:
    async with house.running():
        request, message = await house.shown()
    again = House(service, tmp_path)
    held = service.hold("GET /applications/*/guilds/*/commands")
    try:
        async with again.running():
            await again.ana.press(message, "Approve")
            await again.becomes(request, State.APPROVED)
            held.release()
    finally:
        again.close()
