"""Agents elsewhere that mean harm, clocks that are wrong, and moments that are badly chosen."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.server.aap_desk import LOOK, REFUND, RULES, AapDesk, Agent
from tests.tables import table

from signoff.broker.aap_requests import BrokerAap
from signoff.core.access import AccessKind, Permission
from signoff.core.decision import ApprovalDecision, Remember
from signoff.core.people import Actor
from signoff.core.request import State
from signoff.core.strict_json import MOST_LEVELS, MOST_PARTS
from signoff.core.terms import Scope, Terms
from signoff.outside.client_gate import ClientGate
from signoff.server.aap_wire import AapProblem, read_submission
from signoff.testing import FakeClock

BEN = Actor(name="ben", roles=frozenset({"finance"}))


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
async def desk(tmp_path: Path, clock: FakeClock) -> AsyncIterator[AapDesk]:
    desk = AapDesk(tmp_path, clock=clock)
    yield desk
    await desk.close()


@pytest.fixture
async def agent(desk: AapDesk) -> Agent:
    return await desk.instance()


# --- bodies ---

NUMBERS = ("1e9999999999999999999", "1e-9999999999999999999999", "-1E+" + "9" * 400, "0e" + "9" * 30)


@pytest.mark.parametrize("number", NUMBERS)
async def test_a_number_beyond_all_numbers_is_refused(agent: Agent, number: str) -> None:
    body = f'{{"tool": "look", "arguments": {{"a": {number}}}, "timeout": "1m"}}'.encode()
    said = await agent.refused(400, "invalid_json", "POST", "/requests", body, key="one")
    assert len(said) < 300


async def test_what_is_wrong_with_a_body_is_said_shortly(agent: Agent) -> None:
    key = json.dumps("k" * 100_000)
    body = f'{{"tool": "look", "arguments": {{{key}: 1, {key}: 2}}, "timeout": "1m"}}'.encode()
    said = await agent.refused(400, "invalid_json", "POST", "/requests", body, key="one")
    assert len(said) < 300
    body = f'{{{key}: 1, "tool": "look", "arguments": {{}}, "timeout": "1m"}}'.encode()
    assert len((await agent.send("POST", "/requests", body, key="one")).content) < 1_000


MANY = {
    "numbers": {"a": [1.5] * MOST_PARTS},
    "whole numbers": {"a": [1] * MOST_PARTS},
    "names": {f"a{number}": 1 for number in range(MOST_PARTS)},
    "objects": {"a": [{}] * MOST_PARTS},
    "lists of lists": {"a": [[[]] * 2] * MOST_PARTS},
}


@table("parts", MANY)
def test_only_so_many_names_and_values_are_read(parts: str) -> None:
    raw = json.dumps({"tool": "look", "arguments": MANY[parts], "timeout": "1m"}).encode()
    with pytest.raises(AapProblem) as refused:
        read_submission(raw)
    assert (refused.value.status, refused.value.code) == (413, "request_too_large")
    assert refused.value.message == f"the body has more than {MOST_PARTS:,} names and values"


async def test_an_agent_that_sends_too_many_parts_is_told(agent: Agent) -> None:
    body = {"tool": "look", "arguments": {"a": [1] * MOST_PARTS}, "timeout": "1m"}
    said = await agent.refused(413, "request_too_large", "POST", "/requests", body, key="one")
    assert said == f"the body has more than {MOST_PARTS:,} names and values"
    few = {"tool": "look", "arguments": {"a": [1] * (MOST_PARTS - 10)}, "timeout": "1m"}
    assert (await agent.send("POST", "/requests", few, key="two")).status_code == 201


def test_what_is_nested_as_deep_as_it_may_be_is_read() -> None:
    def nested(levels: int) -> bytes:
        return f'{{"tool": "look", "arguments": {{"a": {"[" * levels}{"]" * levels}}}, "timeout": "1m"}}'.encode()

    assert read_submission(nested(MOST_LEVELS - 2)).tool == "look"
    with pytest.raises(AapProblem, match="nested more than 64 levels"):
        read_submission(nested(MOST_LEVELS - 1))


async def test_a_length_beyond_all_numbers_is_refused(agent: Agent) -> None:
    headers = {"Content-Length": "9" * 5_000}
    await agent.refused(413, "request_too_large", "POST", "/requests", LOOK, key="one", headers=headers)


async def test_an_agent_that_hangs_up_half_way_is_no_error_of_ours(
    desk: AapDesk, agent: Agent, caplog: pytest.LogCaptureFixture
) -> None:
    parts: list[Any] = [{"type": "http.request", "body": b"{", "more_body": True}, {"type": "http.disconnect"}]
    headers = [
        (b"host", b"127.0.0.1:8420"),
        (b"authorization", f"Bearer {agent.secret}".encode()),
        (b"content-type", b"application/json"),
        (b"idempotency-key", b"one"),
    ]
    scope: Any = {
        "type": "http", "http_version": "1.1", "method": "POST", "scheme": "http", "path": "/aap/v1/requests",
        "raw_path": b"/aap/v1/requests", "query_string": b"", "root_path": "", "headers": headers,
        "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 8420),
    }  # fmt: skip

    async def receive() -> Any:
        return parts.pop(0)

    async def send(message: Any) -> None:
        pass

    await desk.app(scope, receive, send)
    assert [one for one in caplog.records if one.exc_info] == []
    assert desk.log[-1].status < 500


@pytest.mark.parametrize("path", ["/requests/", "/requests//", "/instances/", "/requests/x/consume/"])
async def test_a_path_that_is_not_the_protocols_is_unknown_and_leads_nowhere_else(agent: Agent, path: str) -> None:
    await agent.refused(404, "not_found", "POST", path, LOOK, key="one")


# --- moments ---


async def test_what_is_approved_while_it_is_consumed_is_judged_again_all_the_same(
    desk: AapDesk, agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = await agent.ask()
    request = await desk.only()
    look = BrokerAap.look

    async def late(self: BrokerAap, request_id: str, instance: str) -> Any:
        seen = await look(self, request_id, instance)
        monkeypatch.setattr(BrokerAap, "look", look)
        desk.file.write_text(RULES.replace('amount: {">": 500}', 'amount: {">": 30}'))
        await desk.broker.answer(request.id, ApprovalDecision(approved=True), by=BEN)
        return seen

    monkeypatch.setattr(BrokerAap, "look", late)
    said = await agent.refused(409, "approval_expired", "POST", f"/requests/{asked['id']}/consume", key="x")
    assert said == "the policy now refuses it: more than 500 is refunded by the bank"
    assert (await desk.broker.get(request.id)).state is State.CANCELLED


@pytest.mark.parametrize("how", ["instance", "key", "expired"])
async def test_an_instance_that_is_revoked_while_it_consumes_gets_nothing(
    desk: AapDesk, agent: Agent, clock: FakeClock, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked = await agent.ask(LOOK)
    second_look = ClientGate.second_look
    if how == "expired":
        clock.advance(timedelta(hours=23, minutes=59))
        looked = await agent.ask(LOOK)

    async def late(self: ClientGate, *given: Any) -> Any:
        found = await second_look(self, *given)
        if how == "instance":
            await desk.broker.aap.revoke(agent.id, by="ana")
        elif how == "key":
            await desk.broker.access.revoke(agent.id, by="ana")
        else:
            clock.advance(timedelta(minutes=2))
        return found

    monkeypatch.setattr(ClientGate, "second_look", late)
    await agent.refused(401, "invalid_credential", "POST", f"/requests/{looked['id']}/consume", key="x")
    assert "claimed" not in await desk.kinds()


@pytest.mark.parametrize("body", [LOOK, REFUND], ids=["allowed", "asked"])
async def test_a_key_that_is_revoked_while_its_agent_asks_gets_nothing(
    desk: AapDesk, agent: Agent, body: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    judge = ClientGate.judge

    async def late(self: ClientGate, *given: Any) -> Any:
        found = await judge(self, *given)
        await desk.broker.access.revoke(agent.id, by="ana")
        return found

    monkeypatch.setattr(ClientGate, "judge", late)
    await agent.refused(401, "invalid_credential", "POST", "/requests", body, key="x")
    assert await desk.broker.pending() == []


async def test_while_everything_is_halted_nobody_is_told_again_to_go_on(desk: AapDesk, agent: Agent) -> None:
    looked, told = await agent.ask(LOOK), await agent.ask(LOOK)
    consumed = await agent.consume(looked, "x")
    await agent.consume(told, "x")
    done = await agent.data("POST", f"/requests/{told['id']}/outcome", {"status": "succeeded"})
    await desk.broker.switch.halt(by="ana", why="fire")
    await agent.refused(503, "halted", "POST", f"/requests/{looked['id']}/consume", key="x")
    await agent.refused(409, "already_consumed", "POST", f"/requests/{looked['id']}/consume", key="y")
    assert await agent.consume(told, "x") == done, "that is over"
    await desk.broker.switch.unhalt(by="ana")
    assert await agent.consume(looked, "x") == consumed


async def test_a_clock_that_is_set_back_puts_nothing_in_the_wrong_order(
    desk: AapDesk, agent: Agent, clock: FakeClock
) -> None:
    looked, waiting, asked = await agent.ask(LOOK), await agent.ask({**REFUND, "tool": "own"}), await agent.ask()
    request = next(one for one in await desk.broker.pending() if one.tool_call_id == asked["id"])
    clock.advance(timedelta(minutes=-10))
    cancelled = await agent.data("DELETE", f"/requests/{waiting['id']}")
    assert cancelled["decision"]["decided_at"] >= cancelled["created_at"]
    await desk.answer(request.id)
    approved = await agent.get(asked)
    assert approved["decision"]["decided_at"] >= approved["created_at"]
    clock.advance(timedelta(minutes=-10))
    for one in (looked, asked):
        consumed = await agent.consume(one)
        assert consumed["consumption"]["consumed_at"] >= consumed["decision"]["decided_at"]
        clock.advance(timedelta(minutes=-10))
        done = await agent.data("POST", f"/requests/{one['id']}/outcome", {"status": "succeeded"})
        assert done["consumption"]["outcome"]["reported_at"] >= done["consumption"]["consumed_at"]


# --- two servers over one store ---


async def test_two_servers_ask_once_and_spend_once(desk: AapDesk, agent: Agent, tmp_path: Path) -> None:
    other = AapDesk(tmp_path, clock=desk.broker.clock)
    try:
        both = [agent, Agent(other, agent.id, agent.secret)]
        body = json.dumps(REFUND).encode()
        replies = await asyncio.gather(*(one.send("POST", "/requests", body, key="one") for one in both * 4))
        assert sorted(one.status_code for one in replies) == [200] * 7 + [201]
        [asked] = {one.json()["id"] for one in replies}
        await desk.answer((await desk.only()).id)
        paths = [f"/requests/{asked}/consume", f"/requests/{(await agent.ask(LOOK))['id']}/consume"]
        for path in paths:
            keys = enumerate(both * 4)
            replies = await asyncio.gather(*(one.send("POST", path, key=f"run-{n}") for n, one in keys))
            assert sorted(one.status_code for one in replies) == [200] + [409] * 7
        ends = [{"status": "succeeded"}, {"status": "failed"}]
        path = f"/requests/{asked}/outcome"
        sent = zip(both * 4, ends * 4, strict=True)
        replies = await asyncio.gather(*(one.send("POST", path, end) for one, end in sent))
        assert sorted(one.status_code for one in replies) == [200] * 4 + [409] * 4
    finally:
        await other.close()


async def test_a_call_is_answered_or_withdrawn_and_never_both(desk: AapDesk, agent: Agent, tmp_path: Path) -> None:
    other = AapDesk(tmp_path, clock=desk.broker.clock)
    try:
        for n in range(6):
            asked = await agent.ask(key=f"call-{n}")
            request = await desk.only()
            yes = ApprovalDecision(approved=True)
            path = f"/requests/{asked['id']}"
            cancelled, _, consumed = await asyncio.gather(
                agent.send("DELETE", path),
                other.broker.answer(request.id, yes, by=BEN),
                Agent(other, agent.id, agent.secret).send("POST", f"{path}/consume", key="x"),
                return_exceptions=True,
            )
            assert not isinstance(cancelled, BaseException) and not isinstance(consumed, BaseException)
            assert (cancelled.status_code, consumed.status_code) != (200, 200)
            told = await agent.get(asked)
            assert ("consumption" in told) == (consumed.status_code == 200)
            assert (told["status"] == "cancelled") == (cancelled.status_code == 200)
    finally:
        await other.close()


# --- remembered answers ---


async def remembered(desk: AapDesk, agent: Agent, *, approved: bool = True, **terms: Any) -> None:
    """Ben answers a call of the agent, and for those like it."""
    await agent.ask()
    decision = ApprovalDecision(
        approved=approved, remember=Remember.ALWAYS, terms=Terms(scope=Scope.PROJECT, **terms) if terms else None
    )
    await desk.broker.answer((await desk.only()).id, decision, by=BEN)


async def test_an_answer_for_so_many_calls_is_used_up_by_those_that_run(desk: AapDesk, agent: Agent) -> None:
    await remembered(desk, agent, max_uses=2)
    asked = [await agent.ask() for _ in range(4)]
    assert {one["status"] for one in asked} == {"approved"}
    [grant] = await desk.broker.grants.list()
    assert grant.used == 0, "nothing ran"
    path = f"/requests/{asked[0]['id']}/consume"
    replies = await asyncio.gather(*(agent.send("POST", path, key="same") for _ in range(4)))
    assert {one.status_code for one in replies} == {200}
    await agent.consume(asked[3])
    [grant] = await desk.broker.grants.list()
    assert grant.used == 2
    said = await agent.refused(409, "approval_expired", "POST", f"/requests/{asked[1]['id']}/consume", key="x")
    assert said == "the rule or remembered answer that allowed it no longer applies"
    assert (await agent.ask())["status"] == "pending"
    assert (await desk.kinds()).count("grant used") == 2


async def test_two_servers_use_the_last_of_an_answer_once(desk: AapDesk, agent: Agent, tmp_path: Path) -> None:
    await remembered(desk, agent, max_uses=1)
    asked = [await agent.ask() for _ in range(6)]
    other = AapDesk(tmp_path, clock=desk.broker.clock)
    try:
        both = [agent, Agent(other, agent.id, agent.secret)] * 3
        paths = [f"/requests/{one['id']}/consume" for one in asked]
        sent = zip(both, paths, strict=True)
        replies = await asyncio.gather(*(one.send("POST", path, key="x") for one, path in sent))
        assert sorted(one.status_code for one in replies) == [200] + [409] * 5
        assert {one.json()["error"]["code"] for one in replies if one.status_code == 409} == {"approval_expired"}
    finally:
        await other.close()


async def test_a_no_that_came_later_counts_more_than_the_yes_before(desk: AapDesk, agent: Agent) -> None:
    first = await agent.ask()
    early = await desk.only()
    await remembered_later(desk, agent, first)
    third = await agent.ask()
    assert third["status"] == "approved"
    never = ApprovalDecision(approved=False, remember=Remember.ALWAYS)
    await desk.broker.answer(early.id, never, by=BEN)
    await agent.refused(409, "approval_expired", "POST", f"/requests/{third['id']}/consume", key="x")


async def remembered_later(desk: AapDesk, agent: Agent, first: Any) -> None:
    second = await agent.ask()
    request = next(one for one in await desk.broker.pending() if one.tool_call_id == second["id"])
    await desk.broker.answer(request.id, ApprovalDecision(approved=True, remember=Remember.ALWAYS), by=BEN)


# --- whose key ---


async def test_a_programs_key_is_no_instances_whatever_it_is_called_and_may(desk: AapDesk, agent: Agent) -> None:
    asked = await agent.ask()
    _, secret = await desk.broker.access.issue(
        AccessKind.TOKEN,
        agent.id,
        by="ana",
        lasts=timedelta(days=1),
        is_program=True,
        permissions=frozenset({Permission.REQUEST, Permission.PROVISION}),
    )
    thief = Agent(desk, agent.id, secret)
    await thief.refused(403, "not_permitted", "GET", f"/requests/{asked['id']}")
    await thief.refused(403, "not_permitted", "DELETE", f"/requests/{asked['id']}")


# --- paths of another machine ---

PATHS = """\
policy:
  - deny: {tool: write, path: "secrets/**"}
  - allow: {tool: write, path: "docs/**"}
  - allow: {tool: write, path: "**", worker: "aap:trusted:*"}
  - allow: {tool: list, path: "docs/**"}
  - {otherwise: deny, tool: [write, list]}
  - allow: {tool: read, path: "docs/**"}
  - allow: {tool: shell, command: read-only}
  - allow: look
"""


def write(path: str, tool: str = "write") -> dict[str, Any]:
    return {"tool": tool, "arguments": {"path": path}, "timeout": "30m"}


@pytest.fixture
async def paths(tmp_path: Path, clock: FakeClock) -> AsyncIterator[AapDesk]:
    desk = AapDesk(tmp_path, clock=clock, rules=PATHS)
    yield desk
    await desk.close()


async def test_a_rule_about_paths_allows_nothing_on_another_machine(paths: AapDesk) -> None:
    agent, here = await paths.instance(), await paths.instance(is_here=True)
    for path, tool in (("docs/a.md", "write"), ("docs/a.md", "read"), ("docs/./a.md", "read")):
        assert (await here.ask(write(path, tool)))["status"] == "approved", path
        assert (await agent.ask(write(path, tool)))["status"] == ("pending" if tool == "read" else "denied"), path
    reasons = [one.verdict.reason for one in await paths.broker.pending() if one.verdict is not None]
    refused = (await agent.ask(write("docs/a.md", "list")))["decision"]["note"]
    assert all(one.endswith("but its paths are those of another machine") for one in (*reasons, refused)), reasons
    for one in (agent, here):
        assert (await one.ask(write("secrets/a")))["status"] == "denied", "what refuses still does"
        assert (await one.ask(write("elsewhere/a")))["status"] == "denied"
        assert (await one.ask(LOOK))["status"] == "approved", "nothing here is about paths"
    anywhere = await paths.instance("trusted")
    assert (await anywhere.ask(write("docs/a.md")))["status"] == "approved", "that rule holds wherever it leads"
    assert (await anywhere.ask(write("secrets/a.md")))["status"] == "denied"


async def test_a_link_on_our_disk_makes_it_stricter_and_never_more_lenient(paths: AapDesk, tmp_path: Path) -> None:
    (tmp_path / "secrets").mkdir()
    (tmp_path / "notes").symlink_to("secrets")
    agent = await paths.instance("trusted")
    assert (await agent.ask(write("notes/a")))["status"] == "denied"


async def test_what_a_command_reads_on_another_machine_is_not_known(paths: AapDesk) -> None:
    agent, here = await paths.instance(), await paths.instance(is_here=True)
    for command, elsewhere in (("git status", "approved"), ("cat notes.txt", "pending"), ("cd a && cat b", "pending")):
        body = {"tool": "shell", "arguments": {"command": command, "x": "notes.txt"}, "timeout": "30m"}
        assert (await agent.ask(body))["status"] == elsewhere, command
        assert (await here.ask(body))["status"] == "approved", command


async def test_an_approval_of_a_path_on_another_machine_is_consumed_as_any(paths: AapDesk) -> None:
    agent = await paths.instance()
    asked = await agent.ask(write("docs/a.md", "read"))
    await paths.broker.answer((await paths.only()).id, ApprovalDecision(approved=True), by=BEN)
    await agent.consume(asked)
