"""A coding agent's hook that asks the people of a real `signoff serve`: policy here first, then theirs."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests import start
from tests.server.serving import Served, Shop, until

from signoff.broker import Broker
from signoff.core.decision import ApprovalDecision
from signoff.core.people import Actor
from signoff.core.request import State
from signoff.store.store_factory import open_store
from signoff.wiring import hook_launcher

ID, SECRET = "6c1f0a50-1a52-4a26-9f0b-6f2f0d0c7c11", "soi_for-tests"
THERE = "policy: [{deny: Fetch, reason: not from here}, {allow: Look}]\n"
HERE = "policy: [{deny: Drop, reason: never here}, {allow: {label: proc.exec, command: read-only}}]\n"
ANA = Actor(name="ana")
KEY = "sk-ant-api03-" + "Ab3dEf9h" * 12 + "AA"


class Desk:
    """A server with its people, and a project elsewhere whose hook asks them."""

    def __init__(self, directory: Path) -> None:
        self.shop = Shop(directory / "there").write(THERE)
        self.project, self.home = directory / "here", directory / "home"
        self.project.mkdir()
        self.home.mkdir()
        (self.project / "signoff.yaml").write_text(HERE)
        self.token = directory / "token"
        self.token.write_text(SECRET)
        self.token.chmod(0o600)
        self.url = ""
        self.at(lambda broker: broker.aap.provision(ID, "coder", SECRET, owner="ana", by="ana", lasts=None))

    def at(self, work: Callable[[Broker], Awaitable[Any]]) -> Any:
        """Do something at the server's store, beside it."""

        async def done() -> Any:
            broker = Broker(open_store(self.shop.store))
            try:
                return await work(broker)
            finally:
                broker.watch.close()
                broker.store.close()

        return asyncio.run(done())

    def begin(self, tool: str, given: dict[str, Any], number: str = "t1", **more: Any) -> start.Process:
        limit = str(more.pop("limit", 60))
        event = {"session_id": "s1", "cwd": str(self.project), "hook_event_name": "PreToolUse", "tool_name": tool}
        event |= {"tool_input": given, "tool_use_id": number, **more}
        words = ["claude-code", "--limit", limit, "--project", str(self.project)]
        words += ["--server", self.url, "--token-file", str(self.token)]
        process = start.Process(
            [sys.executable, hook_launcher.__file__, *words],
            cwd=self.project,
            env={"HOME": str(self.home), "PATH": os.environ["PATH"], "SIGNOFF_HOOK_RESIDENT": "0", "SIGNOFF_AS": "ana"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        assert process.stdin is not None
        process.stdin.write(json.dumps(event).encode())
        process.stdin.close()
        process.stdin = None
        return process

    def ended(self, process: start.Process) -> tuple[int, str]:
        """The exit code, and the decision with its reason, or what was said about the fault."""
        with process:
            out, err = process.communicate(timeout=start.PATIENCE)
        if not out:
            return process.returncode, err.decode()
        told = json.loads(out)["hookSpecificOutput"]
        return process.returncode, f"{told['permissionDecision']} {told['permissionDecisionReason']}"

    def told(self, tool: str, given: dict[str, Any], number: str = "t1", **more: Any) -> tuple[int, str]:
        return self.ended(self.begin(tool, given, number, **more))

    def answer(self, approved: bool, note: str = "") -> Any:
        [request] = until(lambda: self.at(lambda broker: broker.pending()), "the call is asked about there")
        decision = ApprovalDecision(approved=approved, note=note)
        self.at(lambda broker: broker.answer(request.id, decision, by=ANA))
        return request


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


@pytest.fixture
def served(desk: Desk) -> Iterator[Served]:
    with desk.shop.serving() as served:
        desk.url = served.url
        yield served


@pytest.mark.nightly
@pytest.mark.timeout(300)
def test_policy_here_then_policy_there_then_their_people_once(desk: Desk, served: Served) -> None:
    assert desk.told("Bash", {"command": "git log"})[1].startswith("allow"), "what policy here allows never gets there"
    code, said = desk.told("Drop", {"table": "x"})
    assert (code, said.split()[0]) == (0, "deny") and "never here" in said
    assert desk.at(lambda broker: broker.pending()) == []
    assert desk.told("Fetch", {"url": "x"}, "t2")[1].startswith("deny") and not desk.at(lambda one: one.pending())
    assert desk.told("Look", {"at": "x"}, "t3")[1].startswith("allow")

    given = {"file_path": "a.txt", "content": "x"}
    transcript = desk.home / "t.jsonl"
    said_before = [{"type": "text", "text": f"I write it with {KEY}"}, {"type": "tool_use", "id": "t4"}]
    lines = [
        {"type": "user", "message": {"content": f"Do it with {KEY}"}},
        {"type": "assistant", "message": {"id": "m", "content": said_before}},
    ]
    transcript.write_text("\n".join(map(json.dumps, lines)))
    process = desk.begin("Write", given, "t4", transcript_path=str(transcript))
    request = desk.answer(approved=True)
    context = request.context
    assert (context.session, context.directory, context.is_claimed) == ("s1", str(desk.project), True)
    assert context.words.startswith("I write it with [masked 1: ") and context.prompt.startswith("Do it with [masked")
    assert KEY not in repr(request), "it is masked before it is sent"
    assert request.tool_name == "Write" and dict(request.args) == given and "coder" in str(request.call.worker)
    assert desk.ended(process)[1].startswith("allow")
    again = desk.told("Write", given, "t4", transcript_path=str(transcript))
    assert again[1].startswith("deny"), "an approval is spent once"
    assert "nobody answered" in desk.told("Write", given, "t4", limit=8)[1], "told otherwise, it is another request"
    assert desk.at(lambda broker: broker.get(request.id)).state is State.CLAIMED
    (desk.project / "sub").mkdir()  # the call has moved the agent
    after: dict[str, Any] = {
        "hook_event_name": "PostToolUse",
        "tool_response": "done",
        "cwd": str(desk.project / "sub"),
    }
    assert desk.told("Write", given, "t4", **after) == (0, "")
    assert desk.at(lambda broker: broker.get(request.id)).state is State.SUCCEEDED
    assert desk.told("Write", given, "t9", **after) == (0, ""), "a call nobody was asked about"
    assert desk.at(lambda broker: broker.pending()) == []

    process = desk.begin("Write", {**given, "content": "y"}, "t5")
    desk.answer(approved=False, note="not in this week")
    code, said = desk.ended(process)
    assert said.startswith("deny") and "not in this week" in said

    code, said = desk.told("Write", given, "t6", limit=8)
    assert (code, said.split()[0]) == (0, "deny") and "nobody answered" in said
    assert desk.at(lambda broker: broker.pending()) == [], "what nobody waits for any longer is withdrawn"


@pytest.mark.nightly
@pytest.mark.timeout(300)
def test_a_server_that_cannot_be_asked_lets_nothing_run_that_policy_here_does_not(desk: Desk) -> None:
    desk.url = "http://127.0.0.1:9"
    code, said = desk.told("Write", {"file_path": "a"})
    assert code == 2 and "cannot be reached" in said
    assert desk.told("Bash", {"command": "git log"})[1].startswith("allow")
    with desk.shop.serving() as served:
        desk.url = served.url
        process = desk.begin("Write", {"file_path": "a"}, "t2", limit=20)
        until(lambda: desk.at(lambda broker: broker.pending()), "the call is asked about there")
        served.process.kill()
        served.process.wait()
        code, said = desk.ended(process)
        assert code == 2 or said.startswith("deny"), said
    with desk.shop.serving() as served:
        desk.url = served.url
        desk.at(lambda broker: broker.aap.revoke(ID, by="ana"))
        code, said = desk.told("Write", {"file_path": "b"}, "t3")
        assert (code == 2 and "401" in said) or "credential" in said, said


@pytest.mark.parametrize(
    ("url", "mode", "token", "why"),
    [
        ("http://signoff.example.com", 0o600, SECRET, "use https"),
        ("ftp://127.0.0.1", 0o600, SECRET, "not a server address"),
        ("http://127.0.0.1:9", 0o644, SECRET, "others can read"),
        ("http://127.0.0.1:9", 0o600, "sot_a-persons", "credential of an instance"),
        ("http://127.0.0.1:9", 0o600, "soi_a b", "holds no credential"),
    ],
)
def test_a_server_that_is_set_up_wrongly_refuses(desk: Desk, url: str, mode: int, token: str, why: str) -> None:
    desk.url = url
    desk.token.write_text(token)
    desk.token.chmod(mode)
    code, said = desk.told("Write", {"file_path": "a"})
    assert code == 2 and why in said
