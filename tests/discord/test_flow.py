"""The whole way over Discord with the real program: a mention, a question, a press, the agent goes on (H1 to H3)."""

from __future__ import annotations

import pytest
from tests.discord.flow import PATIENCE, Flow, id_of, run_of, told


@pytest.mark.mission("H1")
@pytest.mark.mission("H2")
@pytest.mark.mission("H3")
async def test_h1_h2_h3_a_mention_a_question_a_press_and_the_answer_is_posted(flow: Flow) -> None:
    thread = await flow.mention("clerk: note the eggs")
    question = await flow.asked(thread, "`clerk.txt`")
    assert thread.parent is flow.service.channel and not flow.file("clerk.txt")
    await flow.recorded(id_of(question), "dated")
    await flow.ana.press(question, "Approve")
    answer = await flow.sees(thread, "**clerk** answered:", "Noted: wrote 4 bytes to clerk.txt")
    assert flow.file("clerk.txt") == "eggs"
    settled = await flow.until(question, "`write_file` ran", "**Result** `wrote 4 bytes to clerk.txt`")
    assert "**Approved** by `ana` via `discord`" in settled
    assert flow.by_bot(thread) == [question, answer], "each was said once"
    log = (await flow.signoff("audit", "log")).out
    story = [line.split()[4] for line in log.splitlines() if id_of(question) in line]
    assert story == ["asked", "dated", "voted", "settled", "claimed", "ran"]
    assert "ana" in next(line for line in log.splitlines() if "settled" in line and id_of(question) in line)


@pytest.mark.mission("H1")
async def test_h1_the_message_holds_the_chain_the_tool_why_the_rule_the_parameters_and_what_would_change(
    flow: Flow,
) -> None:
    (flow.directory / "desk" / "scribe.txt").write_text("one\ntwo\n")
    question = await flow.asks("chief", "scribe.txt")
    lines = [line for line in question.text.splitlines() if not line.startswith("**Earlier**")]  # other tests answered
    assert lines[:10] == [
        f"Asked: {' '.join(flow.people[name].mention for name in ('ana', 'ben', 'dan'))}",
        "May `write_file` run?",
        "`Write scribe.txt`",
        "**By** `chief > scribe > write_file`",
        "**From** `files`",
        "**Why** `what is written is read before`",
        "**Rule** `nothing-unread`",
        "**2 arguments**",
        "`path` = `scribe.txt`",
        "`content`",
    ], question.text
    assert "**What would change:** +1 -1" in question.text
    assert "\n**Task** `go on (for ana)`\n" in question.text
    assert "-one\n two\n+three\n" in question.text
    assert question.buttons == ["Approve", "Deny", "Deny with reason…", "Edit…", "Remember…"]
    await flow.ana.press(question, "Approve")
    await flow.sees(question.place, "**chief** answered:", "The scribe said: It is written")
    assert flow.file("scribe.txt") == "two\nthree\n"


@pytest.mark.mission("H1")
async def test_h1_a_run_that_was_begun_elsewhere_is_asked_about_in_a_thread_of_its_own_and_goes_on(flow: Flow) -> None:
    done = await flow.signoff("run", "outside", "Note the eggs", "--suspend", "--as", "ben")
    assert done.code == 3, done.out
    question = await flow.service.message(lambda one: "outside.txt" in one.text and bool(one.buttons), PATIENCE)
    assert question.place.parent is flow.service.channel and question.place.name.startswith("outside · ")
    await flow.ana.press(question, "Approve")
    await flow.sees(question.place, "**outside** answered:", "Begun elsewhere: wrote 4 bytes")
    assert flow.file("outside.txt") == "eggs"


@pytest.mark.mission("H1")
async def test_h1_an_edit_is_refused_privately_until_it_is_right_and_exactly_that_runs(flow: Flow) -> None:
    question = await flow.asks("edited", "edited.txt")
    modal = await (await flow.ana.press(question, "Edit…")).modal()
    assert modal.title == "Edit write_file" and '"content": "eggs"' in modal.field("args")["value"]
    for wrong, why in [
        ("{", "not valid JSON"),
        ('{"path": "edited.txt"}', "content"),
        ('{"path": "edited.txt", "content": 3}', "content"),
        ('{"path": ".env", "content": "x"}', "secrets stay where they are"),
    ]:
        refused = await modal.submit({"args": wrong})
        assert why in await told(refused), wrong
        reply = await refused.reply()
        assert reply.message is not None and reply.message.buttons == ["Edit again"]
        assert "Approve" in question.buttons and not flow.file("edited.txt")
        modal = await (await flow.ana.press(reply.message, "Edit again")).modal()
        assert modal.field("args")["value"] == wrong, "what was typed is not lost"
    await modal.submit({"args": '{"path": "edited.txt", "content": "ham and eggs"}'})
    text = await flow.until(question, "`write_file` ran")
    assert flow.file("edited.txt") == "ham and eggs"
    assert "**Edited:** +1 -1" in text and '+  "content": "ham and eggs"' in text
    said = await flow.sees(question.place, "I was told:")
    assert "A person changed the arguments" in said.text
    assert not flow.file(".env")


@pytest.mark.mission("H1")
@pytest.mark.mission("H3")
async def test_h1_h3_a_denial_with_a_reason_is_explained_by_the_agent_and_the_talk_goes_on(flow: Flow) -> None:
    question = await flow.asks("refused", "refused.txt")
    modal = await (await flow.ana.press(question, "Deny with reason…")).modal()
    await modal.submit({"reason": "not on a Friday"})
    text = await flow.until(question, "`write_file` was denied", "**Reason** `not on a Friday`")
    assert "**Denied** by `ana` via `discord`" in text
    said = await flow.sees(question.place, "I leave it, since:")
    assert "not on a Friday" in said.text and not flow.file("refused.txt")
    await flow.mention("is that so?", place=question.place)
    await flow.sees(question.place, "As you said before.")


@pytest.mark.mission("H2")
async def test_h2_a_plain_denial_says_by_whom(flow: Flow) -> None:
    question = await flow.asks("plain", "plain.txt")
    await flow.ben.press(question, "Deny")
    assert "**Denied** by `ben` via `discord`" in await flow.until(question, "was denied")
    await flow.sees(question.place, "No is no:")
    assert not flow.file("plain.txt")


@pytest.mark.mission("H2")
async def test_h2_a_call_that_fails_says_so_with_its_error(flow: Flow) -> None:
    question = await flow.asks("failing", "none.txt")
    await flow.ana.press(question, "Approve")
    await flow.sees(question.place, "It failed:")
    text = await flow.until(question, "`edit_file` failed", "**Approved** by `ana`", "**It failed** at")
    assert "`none.txt` does not exist" in text.partition("**Error**")[2].partition("**By**")[0], text


@pytest.mark.mission("H2")
@pytest.mark.mission("H4")
async def test_h2_h4_a_rules_own_timeout_denies_what_waits_and_says_so(flow: Flow) -> None:
    thread = await flow.mention("hasty: go on")
    question = await flow.sees(thread, "`write_file`: nobody answered")
    assert "**Timed out** at" in question.text and not question.buttons
    said = await flow.sees(thread, "Too late:")
    assert "nobody answered" in said.text and not flow.file("hasty.txt")


@pytest.mark.mission("H2")
async def test_h2_what_is_answered_elsewhere_is_told_here_and_goes_on_here(flow: Flow) -> None:
    question = await flow.asks("elsewhere", "elsewhere.txt")
    done = await flow.signoff("approve", id_of(question), "--as", "ben", "--note", "seen at my inbox")
    assert done.code == 0, done.out
    text = await flow.until(question, "`write_file` ran")
    assert "**Approved** by `ben` via `command`" in text and "seen at my inbox" in text
    await flow.sees(question.place, "Answered elsewhere: wrote 4 bytes")
    assert flow.file("elsewhere.txt") == "eggs"


@pytest.mark.mission("H2")
async def test_h2_what_is_withdrawn_has_no_buttons_left(flow: Flow) -> None:
    question = await flow.asks("cancelled", "cancelled.txt")
    done = await flow.signoff("cancel", await run_of(flow, id_of(question)), "--as", "ben", "--note", "wrong customer")
    assert done.code == 0, done.out
    await flow.until(question, "`write_file` was withdrawn", "**Withdrawn** at")
    said = await flow.sees(question.place, "**cancelled**", but=[question])
    assert "wrong customer" in said.text and "never said" not in said.text
    assert not flow.file("cancelled.txt")


@pytest.mark.mission("H3")
async def test_h3_the_talk_is_kept_by_thread(flow: Flow) -> None:
    thread = await flow.mention("talker: hello")
    await flow.sees(thread, "What shall I note?")
    await flow.mention("the milk", place=thread)
    question = await flow.asked(thread, "talker.txt")
    await flow.mention("and the bread", place=thread)
    await flow.sees(thread, "One at a time:")
    await flow.ana.press(question, "Approve")
    await flow.sees(thread, "First and second: wrote 4 bytes")
    other = await flow.mention("talker: hello")
    await flow.sees(other, "What shall I note?")
    assert flow.file("talker.txt") == "milk"
