"""A coding agent's hook and the real server of the approval protocol, both in this process."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Any, cast

import pytest
import uvicorn
from tests.server.aap_desk import AapDesk

from signoff.broker import Broker
from signoff.core.decision import ApprovalDecision
from signoff.core.people import Actor
from signoff.core.request import ApprovalRequest, State
from signoff.core.request_status import status_of
from signoff.errors import Halted, ServerFailed
from signoff.outside.coding_agents import AGENTS, CLAUDE_CODE, CodingAgent, HookMoment
from signoff.store.store_factory import open_store
from signoff.testing.office import soon
from signoff.wiring.hook_answer import HookDesk, HookOptions

THERE = "policy: [{deny: Fetch, reason: not from here}, {allow: Look}]\n"
BEN = Actor(name="ben")


@dataclass
class Pair:
    """A server, and a project elsewhere whose hook asks it."""

    desk: AapDesk
    project: Path
    token: Path
    hooks: HookDesk = field(default_factory=HookDesk)
    instance: str = ""
    port: int = 0
    agent: str = "claude-code"
    patience: float = 60
    _server: asyncio.Task[None] | None = None
    _uvicorn: uvicorn.Server | None = None

    async def begin(self) -> None:
        """Listen, where it was listened before."""
        listening = socket.socket()
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(("127.0.0.1", self.port))
        self.port = listening.getsockname()[1]
        self._uvicorn = uvicorn.Server(uvicorn.Config(self.desk.app, log_level="error", lifespan="off"))
        self._server = asyncio.ensure_future(self._uvicorn.serve(sockets=[listening]))

    async def end(self) -> None:
        """Stop at once, as a process that is killed."""
        assert self._server is not None and self._uvicorn is not None
        self._uvicorn.force_exit = self._uvicorn.should_exit = True
        with suppress(asyncio.CancelledError):
            await self._server

    async def told(self, tool: str = "Write", number: str = "t1", **more: Any) -> str:
        """The decision and its reason; empty where nothing is said."""
        reply = await self.hooks.answer(json.dumps(self.event(tool, number, **more)).encode(), self.options, {})
        assert not reply.err, reply.err
        told = json.loads(reply.out or "{}")
        told = told.get("hookSpecificOutput", told)
        return " ".join(str(value) for name, value in told.items() if name != "hookEventName")

    def event(self, tool: str = "Write", number: str = "t1", **more: Any) -> dict[str, Any]:
        event = {"session_id": "s", "cwd": str(self.project), "hook_event_name": "PreToolUse", "tool_name": tool}
        event |= {"tool_input": {"file_path": "a", "content": "x"}, "tool_use_id": number, **more}
        if self.agent != "claude-code":
            del event["tool_use_id"]
        return event

    @property
    def options(self) -> HookOptions:
        return HookOptions(
            agent=self.agent,
            project=str(self.project),
            patience=timedelta(seconds=self.patience),
            server=f"http://127.0.0.1:{self.port}",
            token_file=str(self.token),
        )

    async def asked(self, broker: Broker | None = None) -> ApprovalRequest:
        broker = broker or self.desk.broker

        async def is_open() -> bool:
            return bool(await broker.pending())

        await soon(is_open, "the hook asked nothing")
        [request] = await broker.pending()
        return request

    async def answered(self, asking: Awaitable[str], then: Callable[[ApprovalRequest], Awaitable[Any]]) -> str:
        """What a hook is told after something happened to its request."""
        task = asyncio.ensure_future(asking)
        await then(await self.asked())
        return await task

    async def says(self, request: ApprovalRequest, approved: bool = True, **more: Any) -> None:
        await self.desk.broker.answer(request.id, ApprovalDecision(approved=approved, **more), by=BEN)

    async def states(self) -> list[State]:
        of = await self.desk.broker.store.read(lambda tx: tx.requests.like("", limit=50))
        return [(await self.desk.broker.get(one)).state for one in of]


@pytest.fixture
async def pair(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Pair]:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    there, here, token = tmp_path / "there", tmp_path / "here", tmp_path / "token"
    there.mkdir()
    (here / "sub").mkdir(parents=True)
    (here / "signoff.yaml").write_text("policy: [{deny: Drop, reason: never here}]\n")
    made = Pair(AapDesk(there, rules=THERE), here, token)
    agent = await made.desk.instance("coder")
    made.instance = agent.id
    token.write_text(agent.secret)
    token.chmod(0o600)
    await made.begin()
    yield made
    await made.end()
    made.hooks.close()
    await made.desk.close()


@pytest.fixture
def plain(monkeypatch: pytest.MonkeyPatch) -> CodingAgent:
    """An agent whose events have no call ids, and that runs no hook after a call."""
    moments = {"PreToolUse": HookMoment.BEFORE}
    made = replace(CLAUDE_CODE, name="plain", title="Plain", ids=False, moments=moments)
    monkeypatch.setitem(cast("dict[str, CodingAgent]", AGENTS), "plain", made)
    return made


async def test_here_too_an_agent_without_call_ids_that_tells_no_outcomes(
    pair: Pair, plain: CodingAgent, tmp_path: Path
) -> None:
    """Approvals are spent once, each by its own run of the hook, and nobody is asked what became of the calls."""
    pair.agent, store = plain.name, f"sqlite:{tmp_path / 'here.db'}"
    options = replace(pair.options, server="", token_file="", store=store)
    broker = Broker(open_store(store))
    event = json.dumps(pair.event()).encode()
    for at in (1, 2):
        task = asyncio.ensure_future(pair.hooks.answer(event, replace(options, attempt=f"run {at}"), {}))
        request = await pair.asked(broker)
        await broker.answer(request.id, ApprovalDecision(approved=True), by=BEN)
        assert '"allow"' in (await task).out
        done = await broker.get(request.id)
        assert done.state is State.SUCCEEDED and status_of(done).step == "approved by ben, handed over"
    assert await broker.sweep() == []
    broker.watch.close()
    broker.store.close()


async def test_a_call_from_the_question_to_its_outcome(pair: Pair) -> None:
    assert "deny signoff: refused by policy: never here" in await pair.told("Drop")
    assert "not from here" in await pair.told("Fetch", "t2") and "allow" in await pair.told("Look", "t3")
    said = await pair.answered(pair.told(), lambda request: pair.says(request, note="go on"))
    assert said == "allow signoff: go on" and await pair.states() == [State.CLAIMED]
    assert "its approval was already used: an approved call runs once" in await pair.told()
    after: dict[str, Any] = {"hook_event_name": "PostToolUse", "tool_response": "", "cwd": str(pair.project / "sub")}
    assert await pair.told(**after) == "" and await pair.states() == [State.SUCCEEDED]
    assert await pair.told(**after) == "" and await pair.told(number="t9", **after) == ""
    assert await pair.states() == [State.SUCCEEDED], "nobody is asked because something has run"


async def test_gemini_tells_outcomes_too_and_asks_nobody_for_them(pair: Pair) -> None:
    pair.agent = "gemini"
    before: dict[str, Any] = {"hook_event_name": "BeforeTool", "timestamp": "1"}
    assert "allow" in await pair.answered(pair.told(**before), pair.says)
    assert await pair.told(hook_event_name="AfterTool", timestamp="2", tool_response="") == ""
    assert await pair.states() == [State.SUCCEEDED]


async def test_an_agent_without_call_ids_that_tells_no_outcomes(pair: Pair, plain: CodingAgent) -> None:
    pair.agent = plain.name
    for _ in range(2):
        assert "allow" in await pair.answered(pair.told(), pair.says), "each call is asked about"
    assert await pair.states() == [State.SUCCEEDED, State.SUCCEEDED]
    assert (await pair.desk.kinds())[-8:] == ["asked", "voted", "settled", "handed over"] * 2


async def test_an_agent_that_leaves_while_people_think(pair: Pair) -> None:
    task = asyncio.ensure_future(pair.told())
    request = await pair.asked()
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
    assert (await pair.desk.broker.get(request.id)).state is State.CANCELLED


async def test_an_answer_that_its_agent_never_read_is_no_call_in_doubt(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "allow" in await pair.answered(pair.told(), pair.says)
    assert await pair.states() == [State.CLAIMED]
    question = pair.hooks.read(json.dumps(pair.event()).encode(), pair.options, {})
    assert question is not None
    await question.undelivered()
    assert await pair.states() == [State.FAILED]
    [failed] = await pair.desk.broker.store.read(lambda tx: tx.past.recent(limit=1))
    assert failed.claim is not None and "it did not run" in failed.claim.error


async def test_refused_edited_and_in_vain(pair: Pair) -> None:
    said = await pair.answered(pair.told(), lambda request: pair.says(request, False, note="not this week"))
    assert said.startswith("deny") and "not this week" in said
    edited = {"file_path": "a", "content": "better"}
    said = await pair.answered(pair.told(number="t2"), lambda request: pair.says(request, edited_args=edited))
    assert said.startswith("deny") and "better" in said
    pair.patience = 2
    said = await pair.told(number="t3")
    assert said.startswith("deny") and "nobody answered" in said and "already" not in said
    assert await pair.desk.broker.pending() == []


async def test_what_changes_there_while_people_think_counts(pair: Pair) -> None:
    async def policy(request: ApprovalRequest) -> None:
        pair.desk.file.write_text("policy: [{deny: Write, reason: by now}]\n")
        await pair.says(request)

    with pytest.raises(ServerFailed, match="approval_expired: the policy now refuses it: by now"):
        await pair.answered(pair.told(), policy)
    pair.desk.file.write_text(THERE)

    async def halt(request: ApprovalRequest) -> None:
        await pair.says(request)
        await pair.desk.broker.switch.halt(by="ana", why="stop")

    with pytest.raises(ServerFailed, match="halted: halted by ana"):
        await pair.answered(pair.told(number="t2"), halt)
    await pair.desk.broker.switch.unhalt(by="ana")
    try:
        told = await pair.answered(
            pair.told(number="t3"), lambda request: pair.desk.broker.aap.revoke(pair.instance, by="ana")
        )
    except ServerFailed as error:
        told = str(error)
    assert "invalid_credential" in told or told.startswith("deny"), "the request may have been withdrawn before that"
    assert State.CLAIMED not in await pair.states()


async def test_a_server_that_is_started_again_while_people_think(pair: Pair) -> None:
    async def again(request: ApprovalRequest) -> None:
        await pair.end()
        await pair.says(request)
        await pair.begin()

    assert (await pair.answered(pair.told(), again)).startswith("allow")
    assert await pair.states() == [State.CLAIMED]


async def test_a_halt_here_after_it_was_approved_there(pair: Pair) -> None:
    question = pair.hooks.read(
        json.dumps(
            {
                "session_id": "s",
                "cwd": str(pair.project),
                "hook_event_name": "PreToolUse",
                "tool_name": "Write",
                "tool_input": {},
                "tool_use_id": "t0",
            }
        ).encode(),
        HookOptions(agent="claude-code", project=str(pair.project)),
        {},
    )
    assert question is not None

    async def halt(request: ApprovalRequest) -> None:
        await question.gate.broker.switch.halt(by="ana")
        await pair.says(request)

    with pytest.raises(Halted):
        await pair.answered(pair.told(), halt)
    assert await pair.states() == [State.APPROVED], "nothing is consumed"
