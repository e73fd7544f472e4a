"""An answer that holds for calls like it, and calls that are like it only at first sight: through the public API."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import Agent
from tests.gate.agents import calls
from tests.ready import ready

from signoff import ApprovalDecision, Signoff
from signoff.core.people import Actor
from signoff.core.request import ApprovalRequest
from signoff.core.terms import Terms
from signoff.policy.grant_text import spelled_out
from signoff.policy.offer import wider_terms
from signoff.store.sqlite import SqliteStore
from signoff.testing import ScriptedModel
from signoff.toolsets import filesystem_rw, shell_file_ops

ANA = Actor(name="ana", via="terminal")
YES, NO = ApprovalDecision(approved=True, by=ANA), ApprovalDecision(approved=False, note="no", by=ANA)
AGAIN = "asked about"


class Once:
    """Answers the first question, as widely as that is offered, and says no to all others."""

    def __init__(self, first: ApprovalDecision = YES) -> None:
        self.asked: list[ApprovalRequest] = []
        self.shown: list[str] = []
        self._first = first

    def choose(self, request: ApprovalRequest, **_: object) -> ApprovalDecision:
        self.asked.append(request)
        if len(self.asked) > 1:
            return NO
        assert request.opened_at is not None
        wider = wider_terms(request, request.opened_at)
        answer = replace(self._first, terms=wider[-1] if wider else Terms())
        self.shown.append(spelled_out(request, answer))
        return answer


class Play:
    """Calls of one agent after another, over one store."""

    def __init__(self, directory: Path, approver: Once) -> None:
        self._store = SqliteStore(ready(directory / "signoff.db"))
        self.approver = approver

    def gate(self, rules: Sequence[dict[str, Any]] = (), **options: Any) -> Signoff:
        return Signoff(list(rules), approver=self.approver, store=self._store, **options)

    async def call(self, agent: Agent[Any, Any], tool: str, **args: Any) -> str:
        """What became of one call: what the tool returned, or that somebody was asked again, or the refusal."""
        before = len(self.approver.asked)
        with agent.override(model=ScriptedModel([calls((tool, args)), {"say": "{{last}}"}])):
            said = (await agent.run("go")).output
        return AGAIN if len(self.approver.asked) > before > 0 else said


@pytest.fixture
def play(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Play]:
    monkeypatch.chdir(tmp_path)
    return lambda first=YES: Play(tmp_path, Once(first))


# --- the same words elsewhere ---


@pytest.mark.parametrize(
    ("kind", "tool", "first", "like"),
    [
        (filesystem_rw, "write_file", {"path": "docs/a.txt", "content": "x"}, {"path": "docs/b.txt", "content": "y"}),
        (filesystem_rw, "delete_file", {"path": "docs/z.txt"}, {"path": "docs/z.txt"}),
        (shell_file_ops, "shell", {"command": "mkdir -p a"}, {"command": "mkdir -p b"}),
    ],
    ids=["a directory", "exactly", "a command"],
)
async def test_in_another_directory_it_is_another_call(
    play: Callable[..., Play], tmp_path: Path, kind: Any, tool: str, first: dict[str, str], like: dict[str, str]
) -> None:
    here = play()
    for name in ("sandbox", "prod"):
        (tmp_path / name / "docs").mkdir(parents=True)
        (tmp_path / name / "docs" / "z.txt").write_text("z")
    sandbox, prod = (Agent(toolsets=[kind(tmp_path / one)], capabilities=[here.gate()]) for one in ("sandbox", "prod"))
    await here.call(sandbox, tool, **first)
    assert 'paths starting from "sandbox"' in here.approver.shown[0]
    (tmp_path / "sandbox" / "docs" / "z.txt").write_text("z")
    assert await here.call(sandbox, tool, **like) != AGAIN
    assert await here.call(prod, tool, **like) == AGAIN
    assert here.approver.asked[-1].context.answers.target.approved == 0, "nor does it count as answered before"


async def test_the_tool_of_another_agent_is_another_tool(play: Callable[..., Play]) -> None:
    here, dropped = play(), []

    def delete(path: str) -> str:
        return f"{path} is in the bin"

    def drop(path: str) -> str:
        dropped.append(path)
        return "dropped"

    drop.__name__ = "delete"
    tidy = Agent(name="tidy", tools=[delete], capabilities=[here.gate()])
    admin = Agent(name="admin", tools=[drop], capabilities=[here.gate()])
    await here.call(tidy, "delete", path="data/x")
    assert await here.call(tidy, "delete", path="data/x") == "data/x is in the bin"
    assert await here.call(admin, "delete", path="data/x") == AGAIN
    assert dropped == []


async def test_where_nobody_says_where_paths_start_they_start_where_the_process_is(
    play: Callable[..., Play], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = play()
    (tmp_path / "outside").mkdir()
    (tmp_path / "sub" / "data").mkdir(parents=True)
    (tmp_path / "sub" / "data" / "link").symlink_to(tmp_path / "outside")
    (tmp_path / "data").mkdir()

    def write_file(path: str, content: str) -> str:
        Path(path).write_text(content)
        return "written"

    agent = Agent(tools=[write_file], capabilities=[here.gate()])
    await here.call(agent, "write_file", path="data/a.txt", content="x")
    assert await here.call(agent, "write_file", path="data/b.txt", content="x") == "written"
    monkeypatch.chdir("sub")
    assert await here.call(agent, "write_file", path="data/link/evil.txt", content="x") == AGAIN
    assert list((tmp_path / "outside").iterdir()) == []


# --- what is written may be what is done ---


def shell_of(*names: str) -> Callable[..., str]:
    """A tool that takes arguments of these names."""
    made: dict[str, Any] = {}
    exec(f"def tool({', '.join(f'{name}: str' for name in names)}) -> str: return 'done'", made)
    return made["tool"]


@pytest.mark.parametrize(
    ("tool", "args", "open_one"),
    [
        ("computer", {"action": "type", "text": "hello"}, "text"),
        ("write_stdin", {"session_id": "3", "text": "ls"}, "text"),
        ("type_text", {"window": "Terminal", "text": "ls"}, "text"),
        ("ask_db", {"db": "prod", "text": "select 1"}, "text"),
        ("patch", {"content": "+a", "strip": "1"}, "content"),
        ("assign_role", {"subject": "user:ana", "role": "admin"}, "subject"),
        ("forward", {"message": "17", "to": "bob"}, "message"),
        ("http_request", {"method": "POST", "url": "https://x", "body": "{}"}, "body"),
        ("post_tweet", {"text": "hi", "draft": "no"}, "text"),
        ("send_keys", {"to": "window 1", "text": "ls"}, "text"),
        ("send_command", {"to": "host", "message": "ls"}, "message"),
    ],
)
async def test_a_text_that_may_say_what_is_done_is_not_left_open(
    play: Callable[..., Play], tool: str, args: dict[str, str], open_one: str
) -> None:
    here = play()
    function = shell_of(*args)
    function.__name__ = tool
    agent = Agent(tools=[function], capabilities=[here.gate()])
    await here.call(agent, tool, **args)
    assert f"any {open_one}" not in here.approver.shown[0]
    assert await here.call(agent, tool, **(args | {open_one: "rm -rf ~"})) == AGAIN


async def test_an_amount_is_for_all_calls_together(play: Callable[..., Play]) -> None:
    here = play()

    def pay(to: str, amount: float) -> str:
        return "paid"

    agent = Agent(tools=[pay], capabilities=[here.gate()])
    await here.call(agent, "pay", to="shop", amount=100)
    assert "amount at most 100.0 in all" in here.approver.shown[0]
    assert [await here.call(agent, "pay", to="shop", amount=60) for _ in range(2)] == ["paid", AGAIN]


async def test_what_sets_something_to_an_amount_is_not_remembered_up_to_it(play: Callable[..., Play]) -> None:
    here = play()

    def set_price(item: str, amount: float) -> str:
        return "set"

    agent = Agent(tools=[set_price], capabilities=[here.gate()])
    await here.call(agent, "set_price", item="car", amount=100)
    assert await here.call(agent, "set_price", item="car", amount=0) == AGAIN


# --- beside rules, and against them ---

PRODUCTION = {"ask": {"tool": "write_file", "path": "config/prod/**"}, "reason": "production"}


@pytest.mark.parametrize("before", [[], [{"ask": "write_file"}]], ids=["no rule", "another rule"])
async def test_a_pattern_is_no_answer_to_a_rule_that_did_not_ask_then(
    play: Callable[..., Play], tmp_path: Path, before: list[dict[str, Any]]
) -> None:
    here = play()
    (tmp_path / "config" / "prod").mkdir(parents=True)
    tools = filesystem_rw(tmp_path)
    agent = Agent(toolsets=[tools], capabilities=[here.gate(before)])
    await here.call(agent, "write_file", path="config/a.txt", content="x")
    assert await here.call(agent, "write_file", path="config/prod/a.txt", content="x") != AGAIN
    later = Agent(toolsets=[tools], capabilities=[here.gate([PRODUCTION, *before])])
    assert await here.call(later, "write_file", path="config/b.txt", content="x") != AGAIN
    assert await here.call(later, "write_file", path="config/prod/b.txt", content="x") == AGAIN


async def test_a_no_to_a_directory_holds_however_a_path_is_spelled(play: Callable[..., Play], tmp_path: Path) -> None:
    here = play(NO)
    (tmp_path / "config").mkdir()
    (tmp_path / "way").symlink_to("config")
    agent = Agent(toolsets=[filesystem_rw(tmp_path)], capabilities=[here.gate(mode="auto_approve")])
    asking = Agent(toolsets=[filesystem_rw(tmp_path)], capabilities=[here.gate()])
    await here.call(asking, "write_file", path="config/a.txt", content="x")
    assert here.approver.shown[0].startswith('never write_file, with path any path inside "config", any content;')
    for path in ("config/b.txt", "config/.env", "config/conftest.py", "config/./c.txt", "config//d.txt", "way/e.txt"):
        await here.call(agent, "write_file", path=path, content="x")
    assert list((tmp_path / "config").iterdir()) == []
    await here.call(agent, "write_file", path="other.txt", content="x")
    assert (tmp_path / "other.txt").exists()
