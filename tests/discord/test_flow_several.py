"""Several calls at once, the right people, presses that come late or from nowhere: H5 to H7, with the real program."""

from __future__ import annotations

import asyncio

import pytest
from tests.discord.flow import Flow, id_of, told
from tests.discord.service import Message, Person
from tests.discord.stories import LONG

ALL = ["Approve all", "Deny all"]


async def together(flow: Flow, worker: str, count: int) -> tuple[list[Message], Message]:
    """Have a worker ask about several calls at once; the messages about each, and the one about all."""
    thread = await flow.mention(f"{worker}: go on")
    each = [await flow.asked(thread, f"({number} of {count})") for number in range(1, count + 1)]
    return each, await flow.sees(thread, f"{count} calls wait for an answer")


# --- several at once ---


@pytest.mark.mission("H5")
async def test_h5_two_calls_of_one_step_are_decided_differently_one_by_one(flow: Flow) -> None:
    (first, second), all_of_them = await together(flow, "pair", 2)
    assert [first, second, all_of_them] == flow.by_bot(first.place), "each once, in order"
    await flow.ana.press(first, "Approve")
    await flow.until(all_of_them, "1 of 2 calls wait for an answer", buttons=ALL)
    modal = await (await flow.ben.press(second, "Deny with reason…")).modal()
    await modal.submit({"reason": "one is enough"})
    said = await flow.sees(first.place, "pair was told:")
    assert "wrote 3 bytes to pair1.txt" in said.text and "one is enough" in said.text
    assert (flow.file("pair1.txt"), flow.file("pair2.txt")) == ("one", "")
    assert "**Approved** by `ana`" in await flow.until(first, "`write_file` ran")
    assert "**Denied** by `ben`" in await flow.until(second, "was denied")
    text = await flow.until(all_of_them, "All 2 calls are answered")
    assert "`Write pair1.txt` approved by `ana`" in text and "`Write pair2.txt` denied by `ben`" in text


@pytest.mark.mission("H5")
async def test_h5_all_are_approved_at_once(flow: Flow) -> None:
    each, all_of_them = await together(flow, "all", 3)
    reply = await told(await flow.ana.press(all_of_them, "Approve all"))
    assert reply.splitlines() == [f"**{number}** `write_file`: approved." for number in (1, 2, 3)]
    for message in each:
        assert "**Approved** by `ana`" in await flow.until(message, "`write_file` ran")
    await flow.until(all_of_them, "All 3 calls are answered")
    await flow.sees(all_of_them.place, "all was told:", "all1.txt", "all2.txt", "all3.txt")
    assert [flow.file(f"all{number}.txt") for number in (1, 2, 3)] == ["one", "two", "three"]


@pytest.mark.mission("H5")
async def test_h5_all_are_denied_at_once(flow: Flow) -> None:
    each, all_of_them = await together(flow, "none", 2)
    await flow.ana.press(all_of_them, "Deny all")
    for message in each:
        assert "**Denied** by `ana`" in await flow.until(message, "was denied")
    await flow.until(all_of_them, "All 2 calls are answered")
    await flow.sees(all_of_them.place, "none was told:")
    assert not flow.file("none1.txt") and not flow.file("none2.txt")


@pytest.mark.mission("H5")
@pytest.mark.mission("H9")
async def test_h5_h9_what_has_to_be_opened_first_is_left_out_until_it_was(flow: Flow) -> None:
    (short, long), all_of_them = await together(flow, "opened", 2)
    assert "**1** of them have to be opened first" in all_of_them.text
    assert all_of_them.buttons == ["Approve all: open 1 first", "Deny all"]
    reply = await told(await flow.ana.press(all_of_them, "Approve all: open 1 first"))
    assert reply.splitlines()[0] == "**1** `write_file`: approved." and "open it there first" in reply.splitlines()[1]
    await flow.until(short, "**Approved** by `ana`")
    await flow.until(all_of_them, "1 of 2 calls wait", buttons=["Approve all: open 1 first", "Deny all"])
    opened = await (await flow.ana.press(long, "Show whole")).reply()
    assert opened.message is not None and opened.is_private
    paper = opened.message.attachments[0].text.replace("\n│ ", "\n")
    assert LONG in paper, "not the whole of it"
    await flow.recorded(id_of(long), "opened")
    assert "open it there first" in await told(await flow.ben.press(all_of_them, "Approve all: open 1 first"))
    assert "Show whole" in long.buttons, "only who opened it may"
    assert "approved" in await told(await flow.ana.press(all_of_them, "Approve all: open 1 first"))
    await flow.sees(long.place, "opened was told:")
    assert flow.file("opened2.txt") == LONG and flow.file("opened1.txt") == "one"


# --- late, forged, in the same instant ---


@pytest.mark.mission("H6")
async def test_h6_a_late_press_is_told_what_happened_and_nobody_else_is(flow: Flow) -> None:
    question = await flow.asks("late", "`late`")
    presses = {name: question.child(name) for name in question.buttons}
    await flow.ana.press(question, "Deny")
    await flow.until(question, "was denied")
    said = await flow.sees(question.place, "late:")
    for name, child in presses.items():
        assert child is not None
        late = await told(await flow.ben.forge(question.place, child["custom_id"], question))
        assert late.startswith("Too late:") and "denied by ana" in late, name
    assert flow.by_bot(question.place) == [question, said] and flow.rung("late") == 0


@pytest.mark.mission("H6")
async def test_h6_a_forged_press_does_nothing(flow: Flow) -> None:
    question = await flow.asks("forged", "`forged`")
    child = question.child("Approve")
    assert child is not None
    *_, digest = child["custom_id"].split(":")
    forged = {
        child["custom_id"].replace(digest, "0" * 12): "changed since",
        f"signoff:1:approve:nosuchone:{digest}": "has no request",
        f"signoff:1:settle:{id_of(question)}:{digest}": "is from another signoff",
        f"signoff:2:approve:{id_of(question)}:{digest}": "is from another signoff",
        f"signoff:1:happened:{id_of(question)}:{digest}": "has not been answered yet",
        f"signoff:1:remember_yes:{id_of(question)}:{digest}:99-project": "no longer offered",
    }
    presses = [await flow.ana.forge(question.place, custom_id, question) for custom_id in forged]
    # Together: some are told only once it is sure that no other program made them.
    said = await asyncio.gather(*map(told, presses))
    for (custom_id, why), one in zip(forged.items(), said, strict=True):
        assert why in one, custom_id
    assert "signoff knows" not in question.text and "Approve" in question.buttons and flow.rung("forged") == 0
    await flow.ana.press(question, "Approve")
    await flow.sees(question.place, "forged: forged was rung")
    assert flow.rung("forged") == 1


@pytest.mark.mission("H6")
async def test_h6_of_two_who_press_in_the_same_instant_one_wins_and_the_other_is_told(flow: Flow) -> None:
    question = await flow.asks("race", "`race`")
    child = question.child("Approve")
    assert child is not None

    async def press(person: Person) -> str:
        answered = await person.forge(question.place, child["custom_id"], question)
        return "\n".join(reply.text for reply in [await answered.acknowledged()])

    await asyncio.gather(press(flow.ana), press(flow.ben))
    await flow.sees(question.place, "race: race was rung")
    text = await flow.until(question, "`ring` ran")
    loser, winner = (flow.ana, "ben") if "by `ben`" in text else (flow.ben, "ana")

    def heard() -> str | None:
        private = [one.text for one in flow.service.private(loser) if one.place is question.place]
        return next((one for one in private if "Too late" in one), None)

    assert f"by {winner}" in await flow.service.until(heard, "nobody told who came late")
    assert flow.rung("race") == 1
    log = (await flow.signoff("audit", "log")).out
    assert sum("claimed" in line for line in log.splitlines() if id_of(question) in line) == 1


@pytest.mark.mission("H6")
async def test_h6_a_press_that_the_gateway_tells_twice_counts_once(flow: Flow) -> None:
    question = await flow.asks("twice", "`twice`")
    flow.service.duplicate_next("INTERACTION_CREATE")
    answered = await flow.ana.press(question, "Approve")
    await flow.sees(question.place, "twice: twice was rung")
    await flow.until(question, "`ring` ran")
    assert flow.rung("twice") == 1
    assert not [reply.text for reply in answered.replies if "Too late" in reply.text]


# --- the right people, in the right place ---


@pytest.mark.mission("H7")
async def test_h7_who_lacks_the_role_or_is_not_on_file_is_told_why_not(flow: Flow) -> None:
    question = await flow.asks("ops", "`ops`")
    for button in ("Approve", "Deny"):
        assert "ops" in await told(await flow.dan.press(question, button))
        stranger = await told(await flow.eve.press(question, button))
        assert "not listed" in stranger and f'discord: "{flow.eve.id}"' in stranger
    assert "**Needs**" in question.text and "Approve" in question.buttons and flow.rung("ops") == 0
    await flow.ben.press(question, "Approve")
    await flow.sees(question.place, "ops: ops was rung")
    await flow.until(question, "**Approved** by `ben`")


@pytest.mark.mission("H7")
async def test_h7_somebody_who_is_not_on_file_cannot_begin_anything(flow: Flow) -> None:
    said = await flow.eve.say(flow.service.channel, f"{flow.service.bot.mention} ops: go on")
    reply = await flow.sees(flow.service.channel, "not listed", str(flow.eve.id))
    assert reply.reference is not None and int(reply.reference["message_id"]) == said.id and said.thread is None


@pytest.mark.mission("H7")
async def test_h7_a_press_in_another_thread_is_sent_to_where_it_was_asked(flow: Flow) -> None:
    question = await flow.asks("here", "`here`")
    child = question.child("Approve")
    assert child is not None
    other = await flow.ana.start_thread(flow.service.channel, "elsewhere")
    presses = [await flow.ana.forge(place, child["custom_id"]) for place in (other, flow.service.channel)]
    for answer in await asyncio.gather(*map(told, presses)):
        assert f"/{question.place.id}/{question.id}" in answer
    assert "Approve" in question.buttons and flow.rung("here") == 0
    await flow.ana.press(question, "Approve")
    await flow.sees(question.place, "here: here was rung")


@pytest.mark.mission("H7")
async def test_h7_where_two_have_to_agree_one_alone_changes_nothing(flow: Flow) -> None:
    question = await flow.asks("quorum", "`quorum`")
    assert "1 more is needed" in await told(await flow.ana.press(question, "Approve"))
    await flow.until(question, "**Approved** by `ana`", buttons=question.buttons)
    assert await told(await flow.ana.press(question, "Approve")), "nobody agrees twice"
    assert "Approve" in question.buttons and flow.rung("quorum") == 0
    await flow.ben.press(question, "Approve")
    await flow.sees(question.place, "quorum: quorum was rung")
    await flow.until(question, "`ring` ran", "by `ben`")
    assert flow.rung("quorum") == 1


@pytest.mark.mission("H7")
async def test_h7_who_asked_for_it_is_not_who_approves_it(flow: Flow) -> None:
    question = await flow.asks("eyes", "`eyes`", by=flow.ana)
    refused = await told(await flow.ana.press(question, "Approve"))
    assert refused.startswith("Not accepted:") and "ana" in refused
    assert "Approve" in question.buttons and flow.rung("eyes") == 0
    await flow.dan.press(question, "Approve")
    await flow.sees(question.place, "eyes: eyes was rung")
    await flow.until(question, "**Approved** by `dan`")
