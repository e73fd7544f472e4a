"""P3 and P11: a toolset of a project uses every part of the context that it is given, under the real command."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.proofs.outside import Project

PROJECT = """\
toolsets:
  teller:
    use: "teller:Teller"
    config: {key: "${TELLER_KEY:-none}"}
    policy:
      - {allow: [look, invite, say, hand_over, found]}
      - {deny: {tool: confirm_invitation, args: {who: mallory}}, reason: mallory stays outside}
plugins: {allow: [teller]}
policy: []
"""
TELLER = '''\
import json
from pathlib import Path

from pydantic_ai import RunContext
from pydantic_ai.toolsets import FunctionToolset

from signoff.toolsets import ToolsetContext


class Teller(FunctionToolset):
    def __init__(self, config, context: ToolsetContext):
        super().__init__([self.look, self.invite, self.say, self.hand_over, self.found])
        self.key, self.context = config["key"], context

    def look(self) -> str:
        """Tell what is there."""
        c = self.context
        parts = ("approvals", "delegation", "create", "message")
        return json.dumps({
            "worker": c.worker,
            "workspace": c.workspace,
            "catalog": "filesystem_ro" in c.catalog.names(),
            "model": type(c.model).__name__,
            "attachments": [Path(one).name for one in c.attachments],
            "there": [one for one in parts if getattr(c, one) is not None],
        })

    async def invite(self, ctx: RunContext, who: str) -> str:
        """Invite somebody."""
        known = await self.context.approvals.remembered(ctx, "confirm_invitation", {"who": who})
        answer = await self.context.approvals.ask(
            ctx, "confirm_invitation", {"who": who}, summary=f"Invite {who} to the house"
        )
        with open("asked.log", "a") as log:
            before = "-" if known is None else f"{known.approved} by {known.by}"
            log.write(f"{who}: remembered {before}, {answer.approved} by {answer.by}, {answer.note}\\n")
        if answer.approved:
            Path(f"{(answer.edited_args or {'who': who})['who']}.invited").touch()
        return "invited" if answer.approved else f"not invited: {answer.note}"

    def say(self, text: str) -> str:
        """Say something to whoever watches."""
        self.context.message(f"{text} {self.key}")
        return "said"

    async def hand_over(self, ctx: RunContext, attachments: list[str]) -> str:
        """Have the clerk do it."""
        return await self.context.delegation(ctx, "clerk", "Look", attachments=attachments)

    async def found(self, ctx: RunContext, name: str) -> str:
        """Write a new worker."""
        return await self.context.create(ctx, name, "instructions: Help.\\ntoolsets: [filesystem_rw, teller]\\n")
'''
WORKERS = {
    "workers/chief.yaml": "toolsets: [teller, filesystem_ro]\ndelegates: [clerk]\ncreates: true\n",
    "workers/clerk.yaml": "toolsets: [teller]\nmodel: script:clerk.turns\n",
    "workers/clerk.turns": '- calls: [{tool: look}]\n- say: "{{last}}"\n',
}


@pytest.fixture
def house(project: Project) -> Project:
    project.write(signoff=PROJECT)
    project.put({"teller.py": TELLER, "plan.txt": "the plan", ".hidden.txt": "x", **WORKERS})
    (project.directory / "link.txt").symlink_to("/etc/hostname")
    return project


def does(house: Project, *calls: tuple[str, dict[str, Any]]) -> None:
    """Have the chief make these calls, one after the other, and answer with what the last one gave."""
    turns = [{"calls": [{"tool": tool, "args": args}]} for tool, args in calls]
    house.put({"workers/chief.turns": json.dumps([*turns, {"say": "{{last}}"}])})


ALL = ["approvals", "delegation", "create", "message"]


@pytest.mark.mission("P3")
def test_p3_a_toolset_is_given_what_there_is_and_none_for_the_rest(house: Project) -> None:
    does(house, ("look", {}))
    told = json.loads(house.run("chief", "--attach", "plan.txt").rows[-1]["output"])
    workspace = str(house.directory.resolve())
    whole = {"worker": "chief", "workspace": workspace, "catalog": True, "model": "ScriptedModel"}
    assert told == {**whole, "attachments": ["plan.txt"], "there": ALL}
    alone = house.signoff("run", "clerk", "Go on", "--json").rows[-1]["output"]
    assert json.loads(alone)["there"] == ["approvals", "message"], "it may neither call nor write workers"
    assert json.loads(alone)["attachments"] == []


@pytest.mark.mission("P11")
def test_p11_a_question_of_a_toolset_is_judged_asked_recorded_and_goes_on_in_another_process(house: Project) -> None:
    does(house, ("say", {"text": "it\u202e begins"}), ("invite", {"who": "bob"}), ("invite", {"who": "mallory"}))
    paused = house.run("chief", "--suspend", TELLER_KEY="hv7-quiet-otter-91")
    assert [row["text"] for row in paused.rows if row.get("event") == "message"] == [
        "it\u202e begins ⟦masked 1: declared secret⟧"
    ]
    assert not house.has("asked.log") and paused.events("confirm_invitation") == ["asked"]
    request = paused.rows[-1]["waiting"][0]["request"]
    card = house.signoff("show", request).out
    assert "Invite bob to the house" in card and "chief > confirm_invitation  (from teller)" in card
    done = house.answers(paused, "approve", "--note", "he is nice", "--remember", "1", "--yes")
    assert done.code == 0, done.err
    assert house.read("asked.log").splitlines() == [
        "bob: remembered True by ana, True by ana, he is nice",  # the tool is called again from its beginning
        "mallory: remembered -, False by policy (mode), mallory stays outside",
    ]
    assert house.has("bob.invited") and not house.has("mallory.invited")
    log = [line for line in house.signoff("audit", "log").out.splitlines() if request in line]
    assert [line.split()[4] for line in log] == ["asked", "voted", "settled", "claimed", "ran"]
    does(house, ("invite", {"who": "bob"}), ("invite", {"who": "eve"}))
    again = house.run("chief")
    assert house.read("asked.log").splitlines()[2:] == [
        "bob: remembered True by ana, True by ana, he is nice",
        "eve: remembered -, False by approver, no terminal to ask at",
    ], again.out
    assert not house.has("eve.invited"), "nobody is there to be asked: no"
    assert house.signoff("audit", "verify").code == 0


@pytest.mark.mission("P11")
def test_p11_a_person_edits_or_refuses_the_question(house: Project) -> None:
    does(house, ("invite", {"who": "bob"}))
    paused = house.run("chief", "--suspend")
    edited = house.answers(paused, "approve", "--args", '{"who": "rob"}')
    assert edited.code == 0 and house.has("rob.invited") and not house.has("bob.invited"), edited.err
    refused = house.answers(house.run("chief", "--suspend"), "deny", "--note", "no room")
    assert refused.rows[-1]["output"] == "not invited: no room" and not house.has("bob.invited")


@pytest.mark.mission("P11")
def test_p11_a_toolset_delegates_with_attachments_and_writes_workers_by_the_approved_path(house: Project) -> None:
    does(house, ("hand_over", {"attachments": ["plan.txt"]}))
    handed = house.run("chief")
    assert json.loads(handed.rows[-1]["output"])["attachments"] == ["plan.txt"], handed.out
    does(house, ("found", {"name": "helper"}))
    paused = house.run("chief", "--suspend")
    assert paused.events("worker_create") == ["asked"] and not house.has("workers/helper.yaml")
    done = house.answers(paused)
    assert done.code == 0 and "was written" in done.rows[-1]["output"], done
    made = house.read("workers/helper.yaml")
    assert "teller" in made and "filesystem_rw" not in made, "never more than its creator has"


OUTSIDE = ("../secret.txt", "/etc/hostname", "link.txt", ".hidden.txt", "nothing.txt", "")


@pytest.mark.mission("P11")
def test_p11_worker_call_takes_attachments_inside_the_workspace_only(house: Project) -> None:
    (house.directory.parent / "secret.txt").write_text("secret")
    calls: list[tuple[str, dict[str, Any]]] = []
    for outside in OUTSIDE:
        calls += [
            ("worker_call", {"worker": "clerk", "prompt": "Look", "attachments": ["plan.txt", outside]}),
            ("say", {"text": "{{last}}"}),
            ("hand_over", {"attachments": [outside]}),
            ("say", {"text": "{{last}}"}),
        ]
    does(house, *calls)
    refused = house.run("chief", "--mode", "auto_approve")
    told = [row["text"] for row in refused.rows if row.get("event") == "message"]
    assert len(told) == 2 * len(OUTSIDE), refused.out
    assert [text for text in told if "cannot be attached" not in text] == []
    assert refused.events("look") == [], "the clerk was not called"


@pytest.mark.mission("P11")
def test_p11_what_goes_with_a_call_is_judged_as_if_the_caller_read_it(house: Project) -> None:
    call = ("worker_call", {"worker": "clerk", "prompt": "Look", "attachments": ["plan.txt"]})
    does(house, call)
    passed = house.run("chief")
    assert json.loads(passed.rows[-1]["output"])["attachments"] == ["plan.txt"], passed.out
    house.write(signoff=PROJECT.replace("policy: []", "policy: [{ask: {path: plan.txt}}]"))
    assert house.run("chief", "--suspend").events("worker_call") == ["asked"]
    house.write(signoff=PROJECT.replace("policy: []", "policy: [{deny: {path: plan.txt}, reason: it is ours}]"))
    denied = house.run("chief")
    assert denied.events("worker_call") == ["denied"] and "it is ours" in denied.rows[-1]["output"]
    house.write(signoff=PROJECT)
    house.put({"workers/chief.yaml": "toolsets: [teller]\ndelegates: [clerk]\n"})
    assert "has no tool to read it with" in house.run("chief").rows[-1]["output"]
    given = house.run("chief", "--attach", "plan.txt")
    assert json.loads(given.rows[-1]["output"])["attachments"] == ["plan.txt"], "it was given the file itself"
