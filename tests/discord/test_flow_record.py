"""What is shown and kept (H9), with the real program: a rule's own words, secrets masked, long values, history."""

from __future__ import annotations

import json

import pytest
from tests.discord.flow import Flow, id_of, told
from tests.discord.stories import LONG, TOKEN


def everything(flow: Flow) -> str:
    """All that anybody has ever been shown, on Discord or by the bot at its terminal, edits among it."""
    sent = json.dumps([one.payload for one in flow.service.requests], ensure_ascii=False, default=repr)
    private = [one for person in flow.people.values() for one in flow.service.private(person)]
    papers = [paper.text for one in (*flow.service.messages(), *private) for paper in one.attachments]
    return "\n".join([sent, *papers, flow.log.read_text()])


@pytest.mark.mission("H9")
async def test_h9_a_rules_own_words_are_shown(flow: Flow) -> None:
    question = await flow.asks("wordy")
    assert "**Message** `Is the @everyone deploy through?`" in question.text and not question.everyone
    assert "**Why** `deploys wake people`" in question.text
    await flow.ana.press(question, "Approve")
    await flow.sees(question.place, "wordy: wordy was rung")


@pytest.mark.mission("H9")
async def test_h9_a_secret_is_masked_everywhere_and_runs_as_it_is(flow: Flow) -> None:
    question = await flow.asks("secret", "secret.txt")
    assert "⟦masked 1: GitHub token⟧" in question.text and "user bob" in question.text
    shown = await told(await flow.ana.command("signoff show", question.place, id=id_of(question)))
    assert "⟦masked 1: GitHub token⟧" in shown
    modal = await (await flow.ana.press(question, "Edit…")).modal()
    assert "⟦masked 1: GitHub token⟧" in modal.field("args")["value"]
    await flow.ana.press(question, "Approve")
    said = await flow.sees(question.place, "I used", but=[question])
    await flow.until(question, "`write_file` ran")
    assert "wrote" in said.text and flow.file("secret.txt") == f"token {TOKEN}\nuser bob\n"
    for command in (["show", id_of(question)], ["show", id_of(question), "--json"], ["audit", "log"]):
        assert TOKEN not in (await flow.signoff(*command)).out
    assert TOKEN not in everything(flow)


@pytest.mark.mission("H9")
async def test_h9_what_is_edited_around_a_mask_keeps_the_secret(flow: Flow) -> None:
    question = await flow.asks("masked", "masked.txt")
    modal = await (await flow.ana.press(question, "Edit…")).modal()
    await modal.submit({"args": modal.field("args")["value"].replace("user bob", "user ana")})
    await flow.sees(question.place, "masked:")
    assert flow.file("masked.txt") == f"token {TOKEN}\nuser ana\n"
    await flow.until(question, "`write_file` ran", "user ana")
    assert TOKEN not in everything(flow)


@pytest.mark.mission("H9")
async def test_h9_a_long_value_is_whole_behind_a_button_and_locked_until_that_person_opened_it(flow: Flow) -> None:
    question = await flow.asks("long", "long.txt")
    assert question.buttons[0] == "Approve: open it first" and "Show whole" in question.buttons
    assert "characters are left out" in question.text and "line 150 of" not in question.text
    opened = await (await flow.ana.press(question, "Approve: open it first")).reply()
    assert opened.is_private and opened.message is not None, "the first press only opens it"
    [paper] = opened.message.attachments
    assert LONG in paper.text.replace("\n│ ", "\n") and opened.message.buttons == ["Approve", "Deny"]
    await flow.recorded(id_of(question), "opened")
    other = await (await flow.ben.press(question, "Approve: open it first")).reply()
    assert other.message is not None and other.message.attachments, "who has not opened it opens it, too"
    assert "Deny" in question.buttons and not flow.file("long.txt")
    await flow.ana.press(opened.message, "Approve")
    await flow.sees(question.place, "long: wrote")
    await flow.until(question, "**Approved** by `ana`", "`write_file` ran")
    assert flow.file("long.txt") == LONG
    log = (await flow.signoff("audit", "log")).out
    assert any("opened" in line and "ana" in line for line in log.splitlines() if id_of(question) in line)


@pytest.mark.mission("H9")
async def test_h9_what_nobody_opened_can_be_denied(flow: Flow) -> None:
    question = await flow.asks("denied", "denied.txt")
    await flow.ben.press(question, "Deny")
    await flow.until(question, "**Denied** by `ben`")
    await flow.sees(question.place, "denied:")
    assert not flow.file("denied.txt")


@pytest.mark.mission("H1")
@pytest.mark.mission("H9")
async def test_h1_h9_what_is_remembered_is_spelled_out_before_and_holds_for_the_next_call(flow: Flow) -> None:
    question = await flow.asks("remembered")
    offered = await (await flow.ana.press(question, "Remember…")).reply()
    assert offered.message is not None and offered.is_private
    menu = next(offered.message.children())
    chosen = await flow.ana.choose(offered.message, menu["custom_id"], menu["options"][0]["value"])
    confirm = await chosen.reply()
    assert confirm.message is not None and "Confirm?" in confirm.text
    assert 'allow ring, exactly as in: ring(name="remembered")' in confirm.text
    assert flow.rung("remembered") == 0
    await flow.ana.press(confirm.message, "Approve and remember")
    said = await flow.sees(question.place, "remembered: remembered was rung")
    assert flow.rung("remembered") == 2 and flow.by_bot(question.place) == [question, said], "the second is not asked"
    await flow.until(question, "**Remembered**")
    assert "remembered" in (await flow.signoff("grants")).out


@pytest.mark.mission("H9")
async def test_h9_what_waits_and_what_was_decided_is_listed_and_on_the_record(flow: Flow) -> None:
    question = await flow.asks("listed")
    asked = id_of(question)
    await flow.recorded(asked, "dated")  # a message stands there a moment before that is written down
    pending = await told(await flow.dan.command("signoff pending", flow.service.channel))
    link = f"https://discord.com/channels/{flow.service.guild_id}/{question.place.id}/{question.id}"
    assert asked in pending and link in pending
    shown = await (await flow.dan.command("signoff show", flow.service.channel, id=asked[:6])).reply()
    assert shown.is_private and "May `ring` run?" in shown.text and not (shown.message and shown.message.buttons)
    stranger = await told(await flow.eve.command("signoff pending", flow.service.channel))
    assert "not listed" in stranger and asked not in stranger
    await flow.ben.press(question, "Approve")
    await flow.sees(question.place, "listed: listed was rung")
    await flow.until(question, "`ring` ran")
    assert asked not in await told(await flow.dan.command("signoff pending", flow.service.channel))
    history = await told(await flow.dan.command("signoff history", flow.service.channel, n=5))
    line = next(line for line in history.splitlines() if asked in line)
    assert "approved by `ben`, ran" in line
    log = (await flow.signoff("audit", "log")).out
    assert [one.split()[4] for one in log.splitlines() if asked in one] == [
        *("asked", "dated", "voted", "settled", "claimed", "ran"),
    ]
    verified = await flow.signoff("audit", "verify")
    assert verified.code == 0 and "nothing is missing, changed or out of order" in verified.out
