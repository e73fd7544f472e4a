"""An answer that also holds for calls like the one that was asked about: through the gate, over a store on disk."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import Agent
from pydantic_ai.toolsets import FunctionToolset
from tests.gate.agents import Till, agent_with, calls, pays
from tests.ready import ready

from signoff import ApprovalDecision, Signoff
from signoff.core.people import Actor
from signoff.core.request import ApprovalRequest
from signoff.core.terms import Terms
from signoff.errors import RequestError
from signoff.policy.grant_text import spelled_out
from signoff.policy.offer import offers, wider_terms
from signoff.store.sqlite import SqliteStore
from signoff.testing import ScriptedModel
from signoff.toolsets import filesystem_rw, shell_file_ops

YES, NO = ApprovalDecision(approved=True), ApprovalDecision(approved=False, note="no")
ANA = Actor(name="ana", via="terminal")


class Approver:
    """Says yes to the first question, as widely as it can be said, or to exactly that call; and no to all others."""

    def __init__(self, by: Actor = ANA, *, exactly: bool = False) -> None:
        self.asked: list[ApprovalRequest] = []
        self._by = by
        self._exactly = exactly

    def choose(self, request: ApprovalRequest, **_: object) -> ApprovalDecision:
        self.asked.append(request)
        if len(self.asked) > 1:
            return replace(NO, by=self._by)
        assert request.opened_at is not None
        wider = wider_terms(request, request.opened_at) if not self._exactly else ()
        return replace(YES, terms=wider[-1] if wider else Terms(), by=self._by)


@pytest.fixture
def gate(tmp_path: Path) -> Callable[..., Signoff]:
    def made(approver: Any, rules: Sequence[dict[str, Any]] = (), **options: Any) -> Signoff:
        return Signoff(list(rules), approver=approver, store=SqliteStore(ready(tmp_path / "signoff.db")), **options)

    return made


Gate = Callable[..., Signoff]


def shell_in(directory: Path) -> tuple[FunctionToolset[Any], list[str]]:
    """A toolset whose commands start in this directory, and what it ran."""
    ran: list[str] = []

    def shell(command: str) -> str:
        ran.append(command)
        return "done"

    toolset = FunctionToolset[Any]([shell])
    toolset.starts_from = str(directory)  # type: ignore[attr-defined]
    return toolset, ran


async def test_a_command_by_its_first_words(gate: Gate, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "away").symlink_to("/etc")
    (tmp_path / "tests" / "near").symlink_to(tmp_path / "tests")
    toolset, ran = shell_in(tmp_path)
    like = ["pytest tests/b.py", "pytest", "pytest tests/near/c.py::test_d tests"]
    unlike = ["pytest -p evil", "pytest ../x", "pytest; rm x", "pytest tests/away/x", "pytest >x", "rm x", "pytest a=b"]
    unlike += ["pytest deploy.py", "pytest tests/notes.txt", "pytest os.path"]
    approver = Approver()
    signoff = gate(approver)
    for line in ["pytest tests/a.py", *like, *unlike]:
        model = ScriptedModel([calls(("shell", {"command": line})), {"say": "ok"}])
        await Agent(model, toolsets=[toolset], capabilities=[signoff]).run("go")
    assert ran == ["pytest tests/a.py", *like]
    assert [one.args["command"] for one in approver.asked] == ["pytest tests/a.py", *unlike]
    [text] = [grant.summary for grant in await signoff.broker.grants.list()]
    assert "pytest tests/a.py" in text


async def test_no_first_words_where_nobody_says_which_directory_it_starts_in(gate: Gate) -> None:
    def run(command: str, cwd: str) -> str:
        return f"{command} in {cwd}"

    approver = Approver()
    model = ScriptedModel([calls(("run", {"command": "mkdir -p a", "cwd": "/srv"})), {"say": "ok"}])
    await Agent(model, tools=[run], capabilities=[gate(approver)]).run("go")
    assert [one.name for one in offers(approver.asked[0])] == ["exact"]


async def test_a_package_script_is_remembered_word_for_word(gate: Gate, tmp_path: Path) -> None:
    """What is behind its name goes to a program that nobody here knows: `make`, with the name as its target."""
    toolset, ran = shell_in(tmp_path)
    approver = Approver()
    signoff = gate(approver)
    for line in ["npm run build web", "npm run build web", "npm run build deploy", "npm run build"]:
        model = ScriptedModel([calls(("shell", {"command": line})), {"say": "ok"}])
        await Agent(model, toolsets=[toolset], capabilities=[signoff]).run("go")
    assert [one.name for one in offers(approver.asked[0])] == ["exact"]
    assert ran == ["npm run build web"] * 2


async def test_a_directory_stands_for_no_secret_and_nothing_that_gets_run(gate: Gate, tmp_path: Path) -> None:
    home = tmp_path / "home"
    (home / "config").mkdir(parents=True)
    touchy = [".env", ".git/hooks/pre-commit", "conftest.py", "package.json", ".github/workflows/x.yml", "id_rsa"]
    touchy += ["deploy.sh", "bin/x", "database.yml", "keys.json", "dump.sql", "CLAUDE.local.md", "karma.conf.js"]
    approver = Approver()
    signoff = gate(approver)
    for name in ("a.txt", "b.txt", *touchy):
        call = ("write_file", {"path": f"config/{name}", "content": "x"})
        model = ScriptedModel([calls(call), {"say": "ok"}])
        await Agent(model, toolsets=[filesystem_rw(home)], capabilities=[signoff]).run("go")
    assert sorted(one.name for one in (home / "config").rglob("*") if one.is_file()) == ["a.txt", "b.txt"]
    assert [one.args["path"] for one in approver.asked] == [f"config/{name}" for name in ("a.txt", *touchy)]
    assert all(len(offers(one)) == 1 for one in approver.asked[1:]), "nor is anything wider offered for them"


async def test_what_a_toolset_insists_on_is_remembered_exactly_or_not_at_all(
    gate: Gate, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    (home / "bin").mkdir(parents=True)
    monkeypatch.chdir(home)
    approver = Approver()
    signoff = gate(approver)
    for line in ("mkdir -p docs", "mkdir -p notes", "mkdir -p bin/evil"):
        model = ScriptedModel([calls(("shell", {"command": line})), {"say": "ok"}])
        await Agent(model, toolsets=[shell_file_ops(home, programs=["bin"])], capabilities=[signoff]).run("go")
    assert sorted(one.name for one in home.iterdir()) == ["bin", "docs", "notes"] and not (home / "bin/evil").exists()
    assert len(approver.asked) == 2 and len(offers(approver.asked[1])) == 1


async def test_a_no_holds_though_whoever_said_it_has_lost_the_role(gate: Gate) -> None:
    till = Till()
    await paid(gate(Approver(), BY_OPS, people=PEOPLE), till)
    signoff = gate(Approver(), BY_OPS, people=PEOPLE, wait="suspend")
    await agent_with(signoff, pays(6), till, suspends=True).run("go")
    [request] = await signoff.pending()
    never = ApprovalDecision(approved=False, note="never", terms=Terms())
    await signoff.answer(request.id, never, by="cyd")
    cyd_left = {**PEOPLE, "cyd": ["dev"]}
    later = gate(Approver(), BY_OPS, people=cyd_left, wait="suspend")
    await agent_with(later, pays(6), till, suspends=True).run("go")
    assert till.paid == [(5, "shop")] and not await later.pending(), "denied, and nobody asked"


async def test_what_is_written_is_left_open(gate: Gate) -> None:
    sent: list[tuple[str, str]] = []

    def send(to: str, body: str) -> str:
        sent.append((to, body))
        return "sent"

    approver = Approver()
    signoff = gate(approver)
    for to, body in (("ana", "hi"), ("ana", "something else"), ("eve", "hi")):
        model = ScriptedModel([calls(("send", {"to": to, "body": body})), {"say": "ok"}])
        await Agent(model, tools=[send], capabilities=[signoff]).run("go")
    assert sent == [("ana", "hi"), ("ana", "something else")]
    [asked, _] = approver.asked
    [terms] = [one for one in wider_terms(asked, asked.opened_at) if one.scope == "project"]  # pyright: ignore[reportArgumentType]
    text = spelled_out(asked, replace(YES, terms=terms))
    assert text.startswith('always send, with to "ana", any body; anywhere in this project')


# --- by a role ---

BY_OPS = [{"ask": "pay", "by": "ops"}]
PEOPLE = {"ana": ["ops"], "ben": ["support"], "cyd": ["ops", "boss"]}


async def paid(signoff: Signoff, till: Till, amount: int = 5) -> list[tuple[int, str]]:
    await agent_with(signoff, pays(amount), till).run("go")
    return till.paid


async def test_a_rule_that_wants_a_role_is_remembered_by_that_role(gate: Gate) -> None:
    till, approver = Till(), Approver()
    first = gate(approver, BY_OPS, people=PEOPLE)
    assert await paid(first, till) == [(5, "shop")]
    [grant] = await first.broker.grants.list()
    assert grant.role == "ops"
    nobody = Approver(replace(ANA, name="ana"))
    nobody.asked.append(approver.asked[0])
    assert await paid(gate(nobody, BY_OPS, people=PEOPLE), till, 2) == [(5, "shop"), (2, "shop")], "nobody was asked"
    assert len(nobody.asked) == 1
    assert len(await paid(gate(nobody, BY_OPS, people=PEOPLE, mode="auto_approve"), till, 3)) == 3


@pytest.mark.parametrize(
    ("rules", "people"),
    [
        ([{"ask": "pay", "by": "boss"}], PEOPLE),
        ([{"ask": "pay", "by": "ops", "quorum": 2}], PEOPLE),
        ([{"ask": "pay", "by": "ops", "not_by": "requester"}], PEOPLE),
        (BY_OPS, {**PEOPLE, "ana": ["support"]}),
        (BY_OPS, {"cyd": ["ops"]}),
        ([{"deny": "pay"}], PEOPLE),
    ],
)
async def test_it_does_not_hold_for_others_nor_once_the_role_is_gone(
    gate: Gate, rules: list[dict[str, Any]], people: dict[str, list[str]]
) -> None:
    till = Till()
    await paid(gate(Approver(exactly=True), BY_OPS, people=PEOPLE), till)
    later = gate(Approver(), rules, people=people, wait="suspend", requester="rita")
    await agent_with(later, pays(5), till, suspends=True).run("go")
    assert till.paid == [(5, "shop")], "only what was approved"


@pytest.mark.parametrize("who", ["ben", "ana"])
async def test_what_anyone_had_remembered_does_not_stand_in_for_a_role(gate: Gate, who: str) -> None:
    """Nor does what somebody with the role said when the rule did not want it: they answered another question."""
    till = Till()
    await paid(gate(Approver(Actor(name=who), exactly=True), people=PEOPLE), till)
    later = gate(Approver(), BY_OPS, wait="suspend", people=PEOPLE)
    await agent_with(later, pays(5), till, suspends=True).run("go")
    assert till.paid == [(5, "shop")]
    assert len(await later.pending()) == 1


async def test_who_stands_in_for_the_role_cannot_have_it_remembered(gate: Gate) -> None:
    from datetime import timedelta

    from signoff.core.people import Delegation

    till = Till()
    signoff = gate(None, BY_OPS, wait="suspend", people=PEOPLE)
    now = signoff.broker.clock.now()
    away = Delegation(absent="ana", deputy="ben", since=now, until=now + timedelta(days=1))
    await signoff.broker.people.delegate(away)
    await agent_with(signoff, pays(5), till, suspends=True).run("go")
    [request] = await signoff.pending()
    assert len(offers(request)) == 2
    with pytest.raises(RequestError, match="only a person with the role 'ops'"):
        await signoff.answer(request.id, replace(YES, terms=Terms()), by="ben")
    with pytest.raises(RequestError, match="only a person with the role 'ops'"):
        await signoff.answer(request.id, ApprovalDecision(approved=True, remember="always"), by="ben")  # type: ignore[arg-type]
    await signoff.answer(request.id, YES, by="ben")
    assert await signoff.broker.grants.list() == []


# --- how people answered the like before ---


async def test_what_was_answered_for_another_toolset_is_not_exactly_this_call(gate: Gate) -> None:
    def delete_all(directory: str) -> str:
        return f"deleted {directory}"

    asked: list[ApprovalRequest] = []

    def approve(request: ApprovalRequest) -> ApprovalDecision:
        asked.append(request)
        return ApprovalDecision(approved=True, by=ANA)

    signoff = gate(approve)
    for name in ("sandbox", "sandbox", "production"):
        model = ScriptedModel([calls(("delete_all", {"directory": "data"})), {"say": "ok"}])
        await Agent(model, toolsets=[FunctionToolset([delete_all], id=name)], capabilities=[signoff]).run("go")
    counts = [(one.context.answers.call.approved, one.context.answers.tool.approved) for one in asked]
    assert counts == [(0, 0), (1, 1), (0, 2)]
