"""`signoff run --chat`: several turns of one conversation, each a kept run."""

from __future__ import annotations

import asyncio
import json
import re
from dataclasses import replace

import pexpect
import pytest
from tests.cli.desk import Desk
from tests.cli.wording import Wording

from signoff.core.mode import ApprovalMode
from signoff.core.run import RunSetup, SavedRun
from signoff.errors import WrongUse
from signoff.wiring.job import RunOptions, Task, job_for

PROJECT = "toolsets: {files: {use: filesystem_rw, config: {root: .}}}\n"
WORKER = "instructions: Talk.\ntoolsets: [files]\n"
SCRIPT = """\
- say: Hello. What shall I note?
- calls: [{tool: write_file, args: {path: a.txt, content: eggs}}]
- say: "{{last}}"
- say: That was the third.
"""
CHAT = ("run", "talker", "--chat", "--model", "script:talk.yaml")


@pytest.fixture
def shop(desk: Desk) -> Desk:
    (desk.directory / "signoff.yaml").write_text(PROJECT)
    (desk.directory / "workers").mkdir()
    (desk.directory / "workers" / "talker.yaml").write_text(WORKER)
    (desk.directory / "talk.yaml").write_text(SCRIPT)
    return desk


def runs(shop: Desk) -> list[tuple[str, str]]:
    told = shop.run("runs", "--all", "--json").data["runs"]
    return [(one["prompt"], one["state"]) for one in reversed(told)]


def test_lines_from_a_pipe_are_turns_of_one_conversation(shop: Desk) -> None:
    shop.types("hi\n\nnote the eggs\nand now?\n")
    said = shop.run(*CHAT, "--mode", "auto_approve")
    assert said.code == 0, said.err
    assert said.out == "Hello. What shall I note?\nwrote 4 bytes to a.txt\nThat was the third.\n"
    assert runs(shop) == [("hi", "done"), ("note the eggs", "done"), ("and now?", "done")]
    kept = [one.run for one in reversed(shop.do(lambda broker: broker.runs.list()))]
    [talk] = {one.conversation_id for one in kept}
    assert talk
    assert [one.setup.after for one in kept] == ["", kept[0].id, kept[1].id]


def test_the_prompt_is_the_first_turn_and_quit_the_last(shop: Desk) -> None:
    shop.types("/quit\nnote the eggs\n")
    said = shop.run(*CHAT, "hi")
    assert (said.code, said.out) == (0, "Hello. What shall I note?\n")
    assert runs(shop) == [("hi", "done")]


def test_json_has_every_turn(shop: Desk) -> None:
    shop.types("hi\nnote the eggs\n")
    rows = shop.run(*CHAT, "--json", "--mode", "auto_approve").rows
    assert [row.get("event", "answer") for row in rows] == [
        "started",
        "answer",
        "started",
        "auto_approved",
        "ran",
        "answer",
    ]
    assert rows[1]["run"] == rows[0]["run"] != rows[2]["run"]
    assert (rows[1]["usage"]["requests"], rows[-1]["usage"]["requests"]) == (1, 2), "each turn for itself"


def test_a_turn_that_fails_ends_a_piped_chat(shop: Desk, wording: Wording) -> None:
    (shop.directory / "shop.py").write_text(
        "from pydantic_ai import Agent\n"
        "def broken() -> str:\n    raise RuntimeError('out of order')\n"
        "agent = Agent(tools=[broken])\n"
    )
    (shop.directory / "talk.yaml").write_text("- calls: [{tool: broken}]\n- say: done\n")
    shop.types("hi\nagain\n")
    said = shop.run("run", "shop:agent", *CHAT[2:], "--mode", "auto_approve")
    assert (said.code, said.out) == (1, "")
    assert said.err == wording()


def sits_down(shop: Desk) -> pexpect.spawn[str]:
    child = shop.sits_down(*CHAT)
    child.expect("Chatting with talker")
    child.expect("you >")
    child.sendline("hi")
    child.expect("Hello. What shall I note")
    child.expect("you >")
    return child


def test_at_the_terminal_with_an_approval_in_between(shop: Desk) -> None:
    child = sits_down(shop)
    child.sendline("note the eggs")
    child.expect("may write_file run")
    child.expect("your answer > ")
    child.sendline("a")
    child.expect("wrote 4 bytes to a.txt")
    child.expect("you >")
    child.sendline("and now?")
    child.expect("That was the third")
    child.expect("you >")
    child.sendline("/quit")
    child.expect(pexpect.EOF)
    child.wait()
    assert child.exitstatus == 0


@pytest.mark.parametrize("key", ["c", "d"])
def test_ctrl_c_and_ctrl_d_leave_at_the_prompt(shop: Desk, key: str) -> None:
    child = sits_down(shop)
    child.sendcontrol(key)
    child.expect(pexpect.EOF)
    child.wait()
    assert child.exitstatus == 0
    assert runs(shop) == [("hi", "done")]


def test_ctrl_c_stops_a_turn_and_the_chat_goes_on(shop: Desk) -> None:
    (shop.directory / "shop.py").write_text(
        "import asyncio\n"
        "from pydantic_ai import Agent\n"
        "async def wait() -> None:\n    print('the tool waits', flush=True)\n    await asyncio.Event().wait()\n"
        "agent = Agent(tools=[wait])\n"
    )
    (shop.directory / "signoff.yaml").write_text("policy: [{allow: wait}]\n")
    (shop.directory / "talk.yaml").write_text("- calls: [{tool: wait}]\n- say: Not reached.\n" * 2)
    child = shop.sits_down("run", "shop:agent", *CHAT[2:])
    for _ in range(2):  # the second press ends no more than the first
        child.expect("you >")
        child.sendline("wait")
        child.expect("the tool waits")
        child.sendcontrol("c")
        child.expect("this turn was stopped; the chat continues without it.")
    child.expect("you >")
    child.sendline("/quit")
    child.expect(pexpect.EOF)
    child.wait()
    assert child.exitstatus == 0
    assert "running" not in {state for _, state in runs(shop)}


def test_a_turn_that_waits_is_resumed_and_the_chat_goes_on(shop: Desk) -> None:
    shop.types("hi\nnote the eggs\nand now?\n")
    begun = shop.run(*CHAT, "--suspend", "--json")
    assert begun.code == 3, begun.err
    assert begun.rows[1]["output"] == "Hello. What shall I note?"
    assert shop.run("approve", begun.rows[-1]["waiting"][0]["request"]).code == 0
    child = shop.sits_down("resume", begun.rows[-1]["run"])
    child.expect("wrote 4 bytes to a.txt")
    child.expect("you >")
    child.sendline("and now?")
    child.expect("That was the third")
    child.expect("you >")
    child.sendcontrol("d")
    child.expect(pexpect.EOF)
    child.wait()
    assert child.exitstatus == 0
    assert runs(shop) == [("hi", "done"), ("note the eggs", "done"), ("and now?", "done")]


def test_without_a_terminal_the_turn_is_finished_and_no_more(shop: Desk) -> None:
    shop.types("hi\nnote the eggs\n")
    begun = shop.run(*CHAT, "--suspend", "--json")
    shop.run("approve", begun.rows[-1]["waiting"][0]["request"])
    shop.types("and now?\n")
    said = shop.run("resume", begun.rows[-1]["run"])
    assert (said.code, said.out) == (0, "wrote 4 bytes to a.txt\n")


def test_a_turn_that_died_before_its_model_was_asked_is_not_begun_without_what_was_said(
    shop: Desk, wording: Wording
) -> None:
    setup = RunSetup(directory=str(shop.directory), model="script:talk.yaml", chat=True, after="x")
    run = shop.begin("runabc2345", agent="worker:talker", prompt="it", setup=setup)
    said = shop.run("resume", run)
    assert said.code == 2
    assert f"signoff cancel {run}" in said.err
    assert said.err == wording()


def kept(shop: Desk) -> list[SavedRun]:
    return [one.run for one in reversed(shop.do(lambda broker: broker.runs.list()))]


def test_a_turn_that_died_before_its_model_was_asked_begins_after_the_one_before(shop: Desk) -> None:
    shop.types("hi\n")
    assert shop.run(*CHAT).code == 0
    [first] = kept(shop)
    setup = replace(first.setup, after=first.id)
    run = shop.begin("runabc2345", agent=first.agent, prompt="it", setup=setup, conversation_id=first.conversation_id)
    said = shop.run("resume", run, "--suspend", "--json")
    assert said.code == 3, said.err
    assert shop.run("approve", said.rows[-1]["waiting"][0]["request"]).code == 0
    said = shop.run("resume", run, "--json")
    assert said.rows[-1]["output"] == "wrote 4 bytes to a.txt", "the model was told what was said before"
    assert [one.conversation_id for one in kept(shop)] == [first.conversation_id] * 2


def follows(shop: Desk, turn: str, text: str) -> str:
    """What the next turn says, begun by another process that knows no more than the id of the last one."""

    async def work() -> str:
        job = job_for("talker", RunOptions(model="script:talk.yaml", mode=ApprovalMode.AUTO_APPROVE, chat=True))
        try:
            return (await job.run(Task(text=text), after=turn)).output
        finally:
            job.close()

    return asyncio.run(work())


def test_a_turn_can_follow_one_that_only_the_store_knows(shop: Desk) -> None:
    shop.types("hi\n")
    assert shop.run(*CHAT).code == 0
    assert follows(shop, kept(shop)[-1].id, "note the eggs") == "wrote 4 bytes to a.txt"
    assert follows(shop, kept(shop)[-1].id, "and now?") == "That was the third."
    assert [one.prompt for one in kept(shop)] == ["hi", "note the eggs", "and now?"]
    one, two, three = kept(shop)
    assert [turn.setup.after for turn in (one, two, three)] == ["", one.id, two.id]
    chain = shop.do(lambda broker: broker.runs.messages(three))
    assert [segment.id for segment in chain if segment.id in (one.tip, two.tip)] == [one.tip, two.tip], "stored once"


def test_nothing_follows_a_run_whose_conversation_is_not_kept(shop: Desk) -> None:
    run = shop.begin("runabc2345", agent="worker:talker", prompt="hi")
    with pytest.raises(WrongUse, match=f"run {run} is not done, or its conversation was not saved"):
        follows(shop, run, "and?")


GO_ON = ("run", "talker", "--continue", "--model", "script:talk.yaml", "--mode", "auto_approve")


def test_the_last_run_that_is_done_is_gone_on_with(shop: Desk) -> None:
    assert shop.run("run", "talker", "hi", "--model", "script:talk.yaml").code == 0
    said = shop.run(*GO_ON, "note the eggs")
    assert (said.code, said.out) == (0, "wrote 4 bytes to a.txt\n"), said.err
    assert f"Continuing after run {kept(shop)[0].id}: hi" in said.err
    shop.types("and now?\n")
    assert shop.run(*GO_ON, "--chat").out == "That was the third.\n"
    assert [one.setup.after for one in kept(shop)] == ["", kept(shop)[0].id, kept(shop)[1].id]
    assert shop.run(*GO_ON, "--as", "ben", "and mine?").code == 2, "what was said to somebody else is theirs"


def test_with_nothing_to_go_on_with_it_says_so(shop: Desk, wording: Wording) -> None:
    said = shop.run(*GO_ON, "note the eggs")
    assert (said.code, said.out) == (2, "")
    assert said.err == wording()


def test_commands_are_not_sent_and_paths_are(shop: Desk, wording: Wording) -> None:
    shop.types("/help\n/new\n/etc/hosts, what is it?\n/foo\nnote the eggs\n")
    said = shop.run(*CHAT)
    assert (said.code, said.out) == (2, "Hello. What shall I note?\n")
    assert runs(shop) == [("/etc/hosts, what is it?", "done")]
    assert said.err == wording()


def test_a_script_that_runs_out_ends_the_turn_and_not_the_chat(shop: Desk) -> None:
    (shop.directory / "talk.yaml").write_text("- say: Hello. What shall I note?\n")
    child = sits_down(shop)
    child.sendline("note the eggs")
    child.expect("this turn failed: talk.yaml: the agent asks for turn 2, but the script holds 1 turn")
    child.expect("The script has no more turns")
    child.expect("you >")
    child.sendline("/foo")
    child.expect("unknown command /foo; nothing was sent to the model")
    child.expect("you >")
    child.sendline("/new")
    child.expect("you >")
    child.sendline("again")
    child.expect("Hello. What shall I note")
    child.expect("you >")
    child.sendcontrol("d")
    child.expect(pexpect.EOF)
    child.wait()
    assert child.exitstatus == 0


def test_what_was_typed_is_called_back_and_may_have_several_lines(shop: Desk) -> None:
    child = sits_down(shop)
    child.send("one\x1b\rtwo")
    child.expect("two")
    child.sendcontrol("c")
    child.send("\x1b[A")
    child.expect("hi")
    child.send(" my key is ghp_abcdefghijklmnopqrstuvwxyz0123456789\\\rthere\r")
    child.expect("may write_file run")
    child.expect("your answer > ")
    child.sendline("d")
    child.expect("you >")
    child.sendcontrol("c")
    child.expect(pexpect.EOF)
    child.wait()
    assert child.exitstatus == 0
    assert [one.prompt.count("\n") for one in kept(shop)] == [0, 1]
    history = shop.directory / "state" / "signoff" / "chat_history"
    assert history.stat().st_mode & 0o777 == 0o600
    assert "+hi\n" in history.read_text()
    assert "ghp_" not in history.read_text()


def test_a_run_is_stopped_at_its_question_and_resumed(shop: Desk) -> None:
    child = sits_down(shop)
    child.sendline("note the eggs")
    child.expect("q stop the run")
    child.expect("your answer > ")
    child.sendline("q")
    child.expect("left undecided at the terminal")
    child.expect(r"Resume:  signoff resume (\w+)")
    run = str(child.match[1]) if isinstance(child.match, re.Match) else ""
    child.expect(pexpect.EOF)
    child.wait()
    assert (child.exitstatus, runs(shop)[-1]) == (3, ("note the eggs", "waiting"))
    child = shop.sits_down("resume", run)
    child.expect("your answer > ")
    child.sendline("a")
    child.expect("wrote 4 bytes to a.txt")
    assert "is thinking" not in str(child.before), "nothing is drawn over a question"
    child.expect("you >")
    child.sendcontrol("d")
    child.expect(pexpect.EOF)
    child.wait()
    assert runs(shop)[-1] == ("note the eggs", "done")


STEERS = "Hi\x1b[2J\x1b]52;c;cm0=\x07 \u202egnp.exe\u2066\r\n\tred \u2764\ufe0f\u200d\u2764 caf\u00e9"


def test_at_a_terminal_nothing_that_the_model_says_steers_it(shop: Desk) -> None:
    (shop.directory / "talk.yaml").write_text(json.dumps([{"say": STEERS}, {"say": STEERS}]))
    child = shop.sits_down(*CHAT)
    child.expect("you >")
    child.sendline("hi")
    child.expect("Hi.*café")
    shown = str(child.match[0]) if isinstance(child.match, re.Match) else ""
    shown = re.sub(r"[^\r\n]*\r\x1b\[K", "", shown)  # the line at the bottom, which was erased
    shown = shown.replace("\x1b[2m┃ \x1b[0m", "┃ ")  # the bar is ours
    assert "Hi⟦ESC⟧[2J⟦ESC⟧]52;c;cm0=⟦BEL⟧ ⟦U+202E⟧gnp.exe⟦U+2066⟧" in shown
    assert not set(shown) & {"\x1b", "\x07", "\u202e"}
    assert "\u200d" in shown, "emoji and scripts are left alone"
    child.expect("you >")
    child.sendcontrol("d")
    child.expect(pexpect.EOF)
    child.wait()
    shop.types("hi\n")
    assert "\x07 \u202egnp.exe\u2066" in shop.run(*CHAT).out, "a program gets it as it is"


def test_at_a_terminal_a_turn_that_fails_steers_it_neither(shop: Desk) -> None:
    (shop.directory / "shop.py").write_text(
        "from pydantic_ai import Agent\n"
        "def broken() -> str:\n    raise RuntimeError('out \\x1b[2J of order')\n"
        "agent = Agent(tools=[broken])\n"
    )
    (shop.directory / "talk.yaml").write_text("- calls: [{tool: broken}]\n- say: done\n")
    child = shop.sits_down("run", "shop:agent", *CHAT[2:], "--mode", "auto_approve")
    child.expect("you >")
    child.sendline("hi")
    child.expect_exact("this turn failed: RuntimeError: out ⟦ESC⟧[2J of order")
    child.expect("you >")
    child.sendcontrol("d")
    child.expect(pexpect.EOF)
    child.wait()
