"""Who is asked at the terminal of a run, what is offered to them, and what becomes of their answer."""

from __future__ import annotations

import json
import re
from functools import partial
from itertools import product

import pexpect
import pytest
from tests.cli.desk import Desk
from tests.pairwise import cases

from signoff.config import load_settings
from signoff.core.people import Actor
from signoff.delivery.channel_inbox import EditCheck
from signoff.wiring.program_inbox import project_inbox
from signoff.wiring.serve_lease import take_store

PEOPLE = "people: {ana: {roles: [ops]}, ben: {roles: [ops]}, cleo: {roles: [dev]}}\n"
FILES = "toolsets: {files: {use: filesystem_rw, config: {root: .}}}\n"
SCRIPT = "- calls: [{tool: write_file, args: {path: a.txt, content: eggs}}]\n- say: done\n"
COLOUR = re.compile(r"\x1b\[[0-9;]*[mK]")


@pytest.fixture
def shop(desk: Desk) -> Desk:
    (desk.directory / "workers").mkdir()
    (desk.directory / "workers" / "writer.yaml").write_text("instructions: Write.\ntoolsets: [files]\n")
    (desk.directory / "script.yaml").write_text(SCRIPT)
    return desk


def runs(shop: Desk, rule: str, who: str, **environment: str) -> pexpect.spawn[str]:
    """A run whose question somebody sees."""
    (shop.directory / "signoff.yaml").write_text(f"{PEOPLE}{FILES}policy:\n  - {{ask: write_file, {rule}}}\n")
    command = ["run", "writer", "go", "--model", "script:script.yaml"]
    return shop.sits_down(*command, SIGNOFF_AS=who, **environment)


def rest_of(child: pexpect.spawn[str]) -> str:
    child.expect(pexpect.EOF)
    child.wait()
    return COLOUR.sub("", str(child.before)).replace("\r", "")


BARRED = {
    "the requester": ("by: ops, not_by: requester", "ana", "ana is the requester, who may not answer this"),
    "no role": ("by: ops", "cleo", "cleo does not have the role ops"),
    "a stranger": ("by: ops", "zoe", "zoe does not have the role ops"),
}
LEAVES = {"q": "q\r", "Ctrl-C": "\x03"}
DAILY = [("the requester", "q"), ("no role", "Ctrl-C"), ("a stranger", "q")]


@pytest.mark.parametrize(("barred", "leaves"), cases(product(BARRED, LEAVES), DAILY))
def test_who_cannot_answer_is_told_so_with_the_way_out(shop: Desk, barred: str, leaves: str) -> None:
    rule, who, why = BARRED[barred]
    child = runs(shop, rule, who)
    child.expect("your answer > ")
    shown = COLOUR.sub("", str(child.before))
    assert f"You cannot answer this: {why}" in " ".join(shown.split())
    keys = shown.rpartition("╰─")[2]
    assert not re.search(r"(^|· )(a|d|r|e|s|w|l|u) ", keys, re.MULTILINE), keys
    assert "q stop the run (also Ctrl-C)" in keys
    for typed in ("a", "d", "e", "u"):
        child.sendline(typed)
        child.expect("Nothing is decided")
        child.expect("your answer > ")
    child.send(LEAVES[leaves])
    child.expect("left undecided at the terminal")
    assert "Resume:" in rest_of(child)
    assert child.exitstatus == 3 and not (shop.directory / "a.txt").exists()


def test_a_vote_is_called_a_vote_and_it_says_that_one_more_is_needed(shop: Desk) -> None:
    child = runs(shop, "by: ops, quorum: 2", "ana")
    child.expect("You answer as ana.")
    child.expect("your answer > ")
    assert "by a rule" not in str(child.before), "none is made that lets it run without these people"
    child.sendline("a")
    child.expect("you vote yes, once: ")
    told = rest_of(child)
    assert "1 of 2 have agreed so far; it is still pending: " in told.partition("Waiting for")[0]


def test_time_that_runs_out_is_said_once_on_a_line_of_its_own(shop: Desk) -> None:
    child = runs(shop, "timeout: 2s", "ana")
    child.expect("your answer > ")
    told = rest_of(child)
    assert told.startswith("\n")
    assert "denied    " not in told and "nobody waits" not in told
    assert len(re.findall(r"in time", told)) == 1


def test_a_file_that_changed_since_the_diff_was_shown_is_shown_anew(shop: Desk) -> None:
    file = shop.directory / "a.txt"
    child = runs(shop, "by: ops", "ana")
    child.expect("your answer > ")
    assert "+1 -0" in COLOUR.sub("", str(child.before))
    file.write_text("milk\n")
    child.sendline("a")
    child.expect("your answer > ")
    assert file.read_text() == "milk\n", "it is not overwritten before somebody saw that"
    again = " ".join(COLOUR.sub("", str(child.before)).split())
    assert "again `a.txt` changed after the question; ana approved it" in again
    assert "+1 -1" in again and "-milk" in again
    child.sendline("a")
    rest_of(child)
    assert file.read_text() == "eggs"
    log = shop.run("audit", "log").out
    assert "`a.txt` changed after the question; ana approved it" in log.partition("cancelled")[2].splitlines()[0]
    assert "asked again: `a.txt` changed" in log


def test_an_edit_is_shown_with_what_it_would_change(shop: Desk) -> None:
    (shop.directory / "a.txt").write_text("milk\n")
    editor = shop.directory / "editor.sh"
    editor.write_text('#!/bin/sh\nsed -i "s/eggs/oat milk/" "$1"\n')
    editor.chmod(0o755)
    child = runs(shop, "by: ops", "ana", EDITOR=str(editor), VISUAL="")
    child.expect("your answer > ")
    child.sendline("e")
    child.expect("run it like this")
    shown = COLOUR.sub("", str(child.before)).replace("\r", "")
    assert '+  "content": "oat milk"' in shown.partition("your changes: +1 -1")[2]
    assert "-milk\n│ +oat milk" in shown.partition("what it would change: +1 -1")[2]
    child.sendline("y")
    assert "result        write_file: wrote" in rest_of(child)
    assert (shop.directory / "a.txt").read_text() == "oat milk"


TEXT, PATH = {"path": "a.txt", "content": "oat milk"}, {"path": "b.txt", "content": "eggs"}
EFFECTS = {"the text": (TEXT, "milk\n", True), "the file": (PATH, "milk\n", False), "in vain": (TEXT, "beer\n", False)}


@pytest.mark.parametrize("edits", EFFECTS)
def test_an_edit_given_in_another_process_says_what_it_changes_or_that_it_is_not_known(shop: Desk, edits: str) -> None:
    args, since, known = EFFECTS[edits]
    (shop.directory / "a.txt").write_text("milk\n")
    (shop.directory / "b.txt").write_text("not for everybody\n")
    (shop.directory / "signoff.yaml").write_text(f"{PEOPLE}{FILES}policy:\n  - {{ask: write_file, by: ops}}\n")
    assert shop.run("run", "writer", "go", "--model", "script:script.yaml", "--suspend").code == 3
    [one] = [each["id"] for each in json.loads(shop.run("inbox", "--json").out)["requests"]]
    (shop.directory / "a.txt").write_text(since)

    def check(name: str) -> EditCheck:
        inbox = partial(project_inbox, settings=load_settings(shop.directory / "signoff.yaml"), channel="web")
        return shop.do(lambda broker: inbox(broker).edit_check(one, args, Actor(name=name)))

    effect = check("ana").effect
    assert effect is not None and (effect.kind == "diff") is known
    assert (
        "-milk\n+oat milk" if known else "Not known here. The preview is of the call as it was asked"
    ) in effect.text
    assert check("cleo") == EditCheck(), "who may not approve is told nothing about files"
    said = shop.run("approve", one, "--as", "ana", "--args", json.dumps(args)).out
    assert ("what it changes: +1 -1" in said and "          +oat milk" in said) is known
    assert ("Not known here." in said) is not known and "not for everybody" not in said
    shown = shop.run("show", one).out
    assert "-milk" not in shown and "+eggs" not in shown


def test_a_run_that_something_resumes_by_itself_is_not_said_to_need_a_command(shop: Desk) -> None:
    def suspended() -> str:
        (shop.directory / "signoff.yaml").write_text(f"{PEOPLE}{FILES}policy:\n  - {{ask: write_file, by: ops}}\n")
        return shop.run("run", "writer", "go", "--model", "script:script.yaml", "--suspend").err

    alone = suspended()
    assert "Resume:  signoff resume " in alone and "Then:" not in alone
    here = (str(shop.directory),)
    shop.do(lambda broker: take_store(broker.ledger, "http://127.0.0.1:18320", projects=here))
    served = suspended()
    assert "Then:    the server at http://127.0.0.1:18320 goes on with it\nResult:  signoff runs show " in served
    assert "Resume:" not in served
