"""Presses, forms and menus on Discord: who may answer, where, and what they are told."""

from __future__ import annotations

import json

import pytest
from tests.discord.house import House, press_id, thread_of, told
from tests.discord.service import Answered, Service

from signoff.channels.discord import presses
from signoff.channels.discord.custom_id import Verb
from signoff.core.people import Actor
from signoff.core.request import State
from signoff.core.verdict import Requirement

LONG = {"to": "ACME" * 1500, "amount": 1}


async def quiet(answered: Answered) -> None:
    """Nothing was said: the message itself tells it."""
    assert (await answered.acknowledged()).kind == "deferred update"
    assert [reply.kind for reply in answered.replies] == ["deferred update"]


# --- answers ---


@pytest.mark.parametrize(("button", "state"), [("Approve", State.APPROVED), ("Deny", State.DENIED)])
async def test_a_press_is_an_answer_of_the_person_behind_the_account(
    house: House, service: Service, button: str, state: State
) -> None:
    async with house.running():
        request, message = await house.shown()
        answered = await house.ana.press(message, button)
        settled = await house.becomes(request, state)
        await house.message(request, lambda one: "by `ana`" in one.text and not one.buttons)
        await quiet(answered)
    assert settled.decision is not None and settled.decision.by is not None
    assert (settled.decision.by.name, settled.decision.by.via) == ("ana", "discord")


async def test_deny_with_a_reason_asks_for_it(house: House) -> None:
    async with house.running():
        request, message = await house.shown()
        form = await (await house.ana.press(message, "Deny with reason…")).modal()
        await form.submit({"reason": "not on a Friday"})
        denied = await house.becomes(request, State.DENIED)
    assert denied.decision is not None and denied.decision.note == "not on a Friday"


async def test_edited_arguments_are_checked_before_they_are_taken_and_the_draft_is_kept(house: House) -> None:
    async with house.running():
        request, message = await house.shown()
        form = await (await house.ana.press(message, "Edit…")).modal()
        assert json.loads(form.values["args"]) == {"to": "ACME", "amount": 250}
        refused = await form.submit({"args": '{"to": "ACME", "amount": "much"}'})
        reply = await refused.reply()
        assert "Nothing was decided" in reply.text and "amount" in reply.text and reply.message is not None
        assert await house.state(request) is State.PENDING
        again = await (await house.ana.press(reply.message, "Edit again")).modal()
        assert again.values["args"] == '{"to": "ACME", "amount": "much"}'
        await again.submit({"args": '{"to": "ACME", "amount": 10}'})
        approved = await house.becomes(request, State.APPROVED)
    assert approved.effective_args == {"to": "ACME", "amount": 10}


async def test_a_draft_is_its_owners_and_is_gone_with_the_process(house: House) -> None:
    async with house.running():
        request, message = await house.shown()
        form = await (await house.ana.press(message, "Edit…")).modal()
        await (await form.submit({"args": "{}"})).reply()
        again = press_id(Verb.EDIT, request, rest="again")
        other = await (await house.ben.forge(thread_of(message), again, message)).modal()
    assert json.loads(other.values["args"]) == {"to": "ACME", "amount": 250}


async def test_remembering_shows_the_exact_grant_before_it_is_given(house: House) -> None:
    async with house.running():
        request, message = await house.shown()
        offered = (await (await house.ana.press(message, "Remember…")).reply()).message
        assert offered is not None and offered.seen_by == house.ana.id
        menu = next(offered.children())
        confirm = await house.ana.choose(offered, menu["custom_id"], menu["options"][0]["value"])
        sheet = (await confirm.reply()).message
        assert sheet is offered and await house.state(request) is State.PENDING
        [yes] = [label for label in sheet.buttons if "emember" in label]
        await house.ana.press(sheet, yes)
        await house.becomes(request, State.APPROVED)
        await house.service.until(lambda: offered.content == "Approved." and not offered.buttons)
        [grant] = await house.store.read(lambda tx: tx.grants.all())
    assert grant.tool == "pay_invoice"


async def test_a_vote_that_is_not_the_last_is_confirmed_privately(house: House) -> None:
    async with house.running():
        request, message = await house.shown(need=Requirement(role="ops", quorum=2))
        assert await told(await house.ana.press(message, "Approve")) == "Your vote counts. 1 more is needed."
        await house.message(request, lambda one: "by `ana`" in one.text and "Approve" in one.buttons)
        await house.ben.press(message, "Approve")
        await house.becomes(request, State.APPROVED)


# --- who, and where ---


@pytest.mark.mission("H7")
async def test_h7_whoever_is_not_on_file_is_told_how_to_get_there(house: House, service: Service) -> None:
    async with house.running():
        request, message = await house.shown()
        eve = service.person("eve")
        text = await told(await eve.press(message, "Approve"))
        assert "not listed" in text and f'discord: "{eve.id}"' in text
        assert await house.state(request) is State.PENDING


@pytest.mark.mission("H7")
async def test_h7_whoever_lacks_the_role_is_told_which_one(house: House) -> None:
    async with house.running():
        request, message = await house.shown(need=Requirement(role="ops"))
        text = await told(await house.dan.press(message, "Approve"))
        assert text == "Not accepted: dan does not have the role ops, and this needs somebody with the role ops."
        assert await house.state(request) is State.PENDING


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody shares the bot, so nobody has to be waited for."""
    monkeypatch.setattr(presses, "_SOMEBODY_ELSE", 0.0)


@pytest.mark.mission("H7")
@pytest.mark.usefixtures("alone")
async def test_h7_it_can_be_answered_only_in_the_thread_it_was_asked_in(house: House, service: Service) -> None:
    async with house.running():
        request, message = await house.shown()
        _, other = await house.shown(talk="another")
        for verb in Verb:
            text = await told(await house.ana.forge(thread_of(other), press_id(verb, request), other))
            assert text.startswith("This can be answered only where it was asked: https://"), verb
            assert f"/{message.place.id}/{message.id}" in text
            assert "only where it was asked" in await told(
                await house.ana.forge(service.channel, press_id(verb, request), message)
            ), verb
            assert await house.state(request) is State.PENDING, verb


@pytest.mark.usefixtures("alone")
async def test_a_press_in_another_channel_is_refused_too(house: House, service: Service) -> None:
    elsewhere = service.new_channel("elsewhere")
    async with house.running():
        request, message = await house.shown()
        thread = await house.ana.start_thread(elsewhere, "copy")
        answered = await house.ana.forge(thread, press_id(Verb.APPROVE, request), message)
        assert "only where it was asked" in await told(answered)
        assert await house.state(request) is State.PENDING


# --- what was shown is what runs ---


async def test_other_arguments_than_were_shown_are_not_approved(house: House) -> None:
    async with house.running():
        request, message = await house.shown()
        forged = press_id(Verb.APPROVE, request, digest="0" * 12)
        assert "has changed" in await told(await house.ana.forge(thread_of(message), forged, message))
        assert await house.state(request) is State.PENDING


async def test_what_a_moderator_hid_cannot_be_approved_and_comes_back(house: House) -> None:
    async with house.running():
        request, message = await house.shown()
        await house.ben.suppress_embeds(message)
        assert "hidden" in await told(await house.ana.press(message, "Approve"))
        assert await house.state(request) is State.PENDING
        await house.message(request, lambda one: not one.flags & 4)
        await house.ana.press(message, "Approve")
        await house.becomes(request, State.APPROVED)


@pytest.mark.mission("H9")
@pytest.mark.parametrize("button", ["Approve: open it first", "Show whole", "Edit…"])
async def test_h9_a_long_call_is_approved_only_by_whoever_opened_it(house: House, button: str) -> None:
    async with house.running():
        request, message = await house.shown(args=LONG)
        given = (await (await house.ana.press(message, button)).reply()).message
        assert given is not None and given.seen_by == house.ana.id
        assert LONG["to"] in given.attachments[0].text
        assert await house.state(request) is State.PENDING
        # To have been given to one is not to have been given to another.
        other = (await (await house.ben.press(message, "Approve: open it first")).reply()).message
        assert other is not None and other.attachments and await house.state(request) is State.PENDING
        await house.ana.press(given, "Approve")
        approved = await house.becomes(request, State.APPROVED)
        await house.service.until(lambda: given.content == "Approved." and not given.buttons)
    assert approved.decision is not None and str(approved.decision.by) == "ana"


async def test_a_long_call_that_was_opened_can_be_approved_where_it_stands(house: House) -> None:
    async with house.running():
        request, message = await house.shown(args=LONG)
        await (await house.ana.press(message, "Show whole")).reply()
        await house.ana.press(message, "Approve: open it first")
        await house.becomes(request, State.APPROVED)


async def test_what_could_not_be_handed_out_does_not_count_as_opened(house: House, service: Service) -> None:
    async with house.running():
        request, message = await house.shown(args=LONG)
        service.fail("POST /webhooks/*", 403, times=1, code=50001, message="Missing Access")
        await (await house.ana.press(message, "Show whole")).acknowledged()
        await service.until(lambda: [one for one in service.requests if one.status == 403])
    assert not await house.inbox().has_opened(request.id, Actor(name="ana"))


# --- several at once ---


@pytest.mark.mission("H5")
async def test_h5_several_calls_are_approved_together(house: House, service: Service) -> None:
    async with house.running():
        requests = await house.ask(tools=["one", "two"])
        for request in requests:
            await house.message(request)
        both = await service.message(lambda one: "2 calls wait" in one.text)
        text = await told(await house.ana.press(both, "Approve all"))
        assert text == "**1** `one`: approved.\n**2** `two`: approved."
        await service.message(lambda one: "All 2 calls are answered" in one.text and not one.buttons)
    assert [await house.state(one) for one in requests] == [State.APPROVED] * 2


@pytest.mark.mission("H5")
async def test_h5_one_is_denied_and_then_the_rest_together(house: House, service: Service) -> None:
    async with house.running():
        requests = await house.ask(tools=["one", "two", "three"])
        messages = [await house.message(request) for request in requests]
        await service.message(lambda one: "3 calls wait" in one.text)
        await house.ana.press(messages[0], "Deny")
        rest = await service.message(lambda one: "2 of 3 calls wait" in one.text)
        text = await told(await house.ana.press(rest, "Approve all"))
        assert text == "**2** `two`: approved.\n**3** `three`: approved.", "numbered as the message numbers them"
    assert [await house.state(one) for one in requests] == [State.DENIED, State.APPROVED, State.APPROVED]


async def test_together_only_what_was_opened_is_approved_and_what_was_not_is_named(
    house: House, service: Service
) -> None:
    async with house.running():
        long, *_ = await house.ask(args=LONG, tools=["one", "two"])
        for request in await house.broker.pending():
            await house.message(request)
        both = await service.message(lambda one: "2 calls wait" in one.text)
        await (await house.ana.press(await house.message(long), "Show whole")).reply()
        text = await told(await house.ana.press(both, "Approve all: open 2 first"))
    one, two = text.splitlines()
    assert one == "**1** `one`: approved."
    assert two == "**2** `two`: not approved. It is too long for its message; open it there first."


async def test_together_each_is_judged_on_its_own(house: House, service: Service) -> None:
    async with house.running():
        requests = await house.ask(tools=["one", "two"], need=Requirement(role="dev"))
        for request in requests:
            await house.message(request)
        both = await service.message(lambda one: "2 calls wait" in one.text)
        text = await told(await house.ana.press(both, "Deny all"))
        assert text.count("Not accepted: ana does not have the role dev") == 2
        await told(await house.ben.press(both, "Deny all"))
        assert "Too late" in await told(await house.ben.forge(both.place, press_id(Verb.ALL_DENY, requests[0]), both))


async def test_together_another_set_of_calls_than_was_shown_is_not_approved(house: House, service: Service) -> None:
    async with house.running():
        requests = await house.ask(tools=["one", "two"])
        for request in requests:
            await house.message(request)
        both = await service.message(lambda one: "2 calls wait" in one.text)
        forged = press_id(Verb.ALL_APPROVE, requests[0], digest="f" * 12)
        assert "has changed" in await told(await house.ana.forge(both.place, forged, both))
    assert [await house.state(one) for one in requests] == [State.PENDING] * 2


# --- what became of a call ---


@pytest.mark.parametrize(
    ("button", "state"), [("It happened", State.SUCCEEDED), ("It did not happen", State.CANCELLED)]
)
async def test_a_person_says_what_became_of_a_call(house: House, button: str, state: State) -> None:
    async with house.running():
        request, message = await house.shown()
        await house.ana.press(message, "Approve")
        await house.becomes(request, State.APPROVED)
        await house.broker.claim(request.id)
        await house.broker.lose(request.id)
        asked = await house.message(request, lambda one: button in one.buttons)
        await house.ana.press(asked, button)
        await house.becomes(request, state)
        await house.message(request, lambda one: not one.buttons)


async def test_only_a_call_of_which_nobody_knows_is_told_of(house: House) -> None:
    async with house.running():
        request, message = await house.shown()
        forged = press_id(Verb.HAPPENED, request)
        assert "not been answered yet" in await told(await house.ana.forge(thread_of(message), forged, message))
        assert await house.state(request) is State.PENDING
