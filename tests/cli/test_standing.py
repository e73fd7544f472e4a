"""How runs stand after answers of every kind: `runs`, `resume` and `resume --all` say and do what is so."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from tests import start
from tests.cli.program import signoff

AGENT = """
from pydantic_ai import Agent

def touch(name: str) -> str:
    return f"touched {name}"

agent = Agent("test", name="hand", tools=[touch])
"""
ONE_BY_ONE = """
- calls: [{tool: touch, args: {name: a}}]
- calls: [{tool: touch, args: {name: b}}]
- say: "{{last}}"
"""
TWO_AT_ONCE = """
- calls: [{tool: touch, args: {name: a}}, {tool: touch, args: {name: b}}]
- say: "{{last}}"
"""


class Shop:
    """A project with an agent that asks, and a store of its own."""

    def __init__(self, directory: Path, turns: str) -> None:
        self.directory = directory
        (directory / "shop.py").write_text(AGENT)
        (directory / "turns.yaml").write_text(turns)
        (directory / "signoff.yaml").write_text("policy: [{ask: touch}]\npeople: {ana: {}}\n")
        self.environment = {"XDG_STATE_HOME": str(directory / "state"), "SIGNOFF_AS": "ana"}
        done = self.does(3, "run", "shop:agent", "go", "--model", "script:turns.yaml", "--suspend")
        self.run = done.split("signoff resume ")[1].split()[0]

    def does(self, code: int, *command: str) -> str:
        done = signoff(*command, cwd=self.directory, **self.environment)
        assert done.returncode == code, (command, done.stdout, done.stderr)
        return done.stdout + done.stderr

    def waiting(self) -> list[str]:
        return [str(one["id"]) for one in json.loads(self.does(0, "inbox", "--json"))["requests"]]

    def stands(self) -> dict[str, Any]:
        [run] = json.loads(self.does(0, "runs", "--json"))["runs"]
        return dict(run)

    def events(self) -> int:
        return int(json.loads(self.does(0, "audit", "verify", "--json"))["events"])


def test_a_run_that_was_denied_once_waits_for_its_next_question(tmp_path: Path) -> None:
    shop = Shop(tmp_path, ONE_BY_ONE)
    [first] = shop.waiting()
    shop.does(0, "deny", first)
    assert shop.stands()["state"] == "ready"
    shop.does(3, "resume", shop.run, "--suspend")
    stands = shop.stands()
    assert (stands["state"], stands["answered"], len(stands["waiting"])) == ("waiting", [], 1)
    assert "requests are settled" not in shop.does(0, "runs")

    before = shop.events()
    for _ in range(2):
        assert "No run is ready to resume" in shop.does(0, "resume", "--all")
    assert shop.events() == before, "nothing is written where nothing is done"
    [second] = shop.waiting()
    shop.does(0, "approve", second)
    assert shop.stands()["state"] == "ready"
    assert "touched b" in shop.does(0, "resume", "--all")


@pytest.mark.parametrize("first", ["approve", "deny"])
def test_of_two_at_once_the_first_answer_is_gone_on_with_once(tmp_path: Path, first: str) -> None:
    shop = Shop(tmp_path, TWO_AT_ONCE)
    one, other = shop.waiting()
    shop.does(0, first, one)
    assert f"its other requests are settled: signoff resume {shop.run}" in shop.does(0, "runs")
    shop.does(3, "resume", shop.run, "--suspend")
    before = shop.events()
    assert "No run is ready to resume" in shop.does(0, "resume", "--all")
    assert (shop.stands()["state"], shop.events()) == ("waiting", before)
    shop.does(0, "approve", other)
    assert shop.stands()["state"] == "ready"
    assert "touched b" in shop.does(0, "resume", "--all")


def test_a_run_that_is_halted_before_it_begins_says_so(tmp_path: Path) -> None:
    shop = Shop(tmp_path, ONE_BY_ONE)
    shop.does(0, "halt")
    told = shop.does(3, "run", "shop:agent", "go", "--model", "script:turns.yaml", "--suspend")
    assert told.endswith("lifts the halt\n  No run was started.\n")


PROGRAM = """
from pydantic_ai import Agent, DeferredToolRequests
from signoff import Signoff
from signoff.testing import ScriptedModel

def touch(name: str) -> str:
    return f"touched {name}"

turns = [{"calls": [{"tool": "touch", "args": {"name": "a"}}]}, {"say": "{{last}}"}]
gate = Signoff([{"ask": "touch"}], store="sqlite:own.db", wait="suspend")
agent = Agent(ScriptedModel(turns), output_type=[str, DeferredToolRequests], tools=[touch], capabilities=[gate])
agent.run_sync("go")
"""


def test_a_run_of_a_program_is_not_said_to_go_on_by_a_command_that_cannot_do_it(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    (tmp_path / "signoff.yaml").write_text("policy: [{ask: touch}]\nstore: sqlite:own.db\n")
    environment = {"XDG_STATE_HOME": str(tmp_path / "state"), "SIGNOFF_AS": "ana"}
    start.run([sys.executable, "program.py"], cwd=tmp_path, env={**os.environ, **environment}, check=True)

    def does(*command: str) -> str:
        done = signoff(*command, cwd=tmp_path, **environment)
        assert done.returncode == 0, (done.stdout, done.stderr)
        return done.stdout + done.stderr

    [request] = json.loads(does("inbox", "--json"))["requests"]
    advice = f"the program that started it has to call signoff.resume(agent, '{request['run']}')"
    assert f"Its run can be resumed: {advice}" in does("approve", request["id"])
    assert f"its requests are settled: {advice}" in does("runs")
    told = does("resume", "--all")
    assert "No run is ready to resume." in told
    assert "1 run is ready, started by a program: only that program can resume it" in told
    assert "signoff resume" not in does("runs")


def test_a_question_that_too_few_may_answer_and_one_for_others_say_so_everywhere(tmp_path: Path) -> None:
    shop = Shop(tmp_path, ONE_BY_ONE)
    rules = "people: {ana: {roles: [dev]}, ben: {roles: [ops]}}\npolicy: [{ask: touch, by: ops, quorum: 2}]\n"
    (tmp_path / "signoff.yaml").write_text(rules)
    said = " ".join(shop.does(3, "run", "shop:agent", "go", "--model", "script:turns.yaml", "--suspend").split())
    short = "needs 2 people with the role ops; only 1 listed person may approve it, so it cannot run"
    refused = "you may not approve it: ana does not have the role ops"
    assert f"{short}; {refused}" in said
    assert "Answer: somebody else: signoff approve " in said
    run = said.split("signoff resume ")[1].split()[0]
    assert refused in " ".join(shop.does(3, "resume", run).split())
    _, request = shop.waiting()
    rows = " ".join(shop.does(0, "inbox").split())
    assert short in rows and "you may not" not in rows
    shown = " ".join(shop.does(0, "show", request, "--no-pager").split())
    assert "You may not approve it: ana does not have the role ops" in shown
    assert f"Somebody else: signoff approve {request}" in shown
    shop.environment["SIGNOFF_AS"] = "ben"
    assert "Somebody else" not in shop.does(0, "show", request, "--no-pager")
