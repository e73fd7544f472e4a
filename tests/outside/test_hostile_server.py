"""A hook that asks a server which lies, hangs, drips or is not there: whatever it does, nothing runs unapproved."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest
from tests.outside.aap_provider import ID, Answer, Provider

from signoff.broker import Broker
from signoff.broker.wall_clock import SystemClock
from signoff.errors import Halted, ServerFailed, SignoffError, WrongUse
from signoff.http_exchange import EXCHANGE, HttpExchange, server_address
from signoff.outside import consumed_calls
from signoff.outside.aap_client import AapClient, read_token
from signoff.outside.consumed_calls import ConsumedCalls
from signoff.outside.hook_check import check_hooks
from signoff.outside.outside_call import OutsideCall
from signoff.outside.outside_gate import CallPermission, OutsideGate
from signoff.outside.server_gate import ServerGate
from signoff.policy.engine import Policy
from signoff.policy.layers import Layers
from signoff.store.memory_store import MemoryStore
from signoff.testing import FakeClock
from signoff.testing.office import soon
from signoff.wiring.hook_answer import HookDesk, HookOptions, answer_hook

SECRET = "soi_not-to-be-told"
OTHER = "11111111-2222-3333-4444-555555555555"
Twist = Callable[[str, Answer], Answer | None]


@pytest.fixture
def provider() -> Iterator[Provider]:
    with Provider().serving() as made:
        yield made


@dataclass
class Hook:
    """A project whose hook asks a server."""

    project: Path
    token: Path
    provider: Provider
    agent: str = "claude-code"
    patience: float = 20

    @property
    def options(self) -> HookOptions:
        return HookOptions(
            agent=self.agent,
            project=str(self.project),
            patience=timedelta(seconds=self.patience),
            server=self.provider.url,
            token_file=str(self.token),
        )

    def event(self, number: str = "t1", **more: Any) -> bytes:
        event = {"session_id": "s", "cwd": str(self.project), "hook_event_name": "PreToolUse", "tool_name": "Write"}
        event |= {"tool_input": {"file_path": "a", "force": True}, "tool_use_id": number, **more}
        return json.dumps(event).encode()

    def told(self, number: str = "t1", **more: Any) -> str:
        """The decision and its reason, or the error."""
        try:
            reply = answer_hook(self.event(number, **more), self.options, {})
        except Exception as error:
            return f"error {type(error).__name__}: {error}"
        if not reply.out:
            return reply.err
        told = json.loads(reply.out)
        if "decision" in told:
            return f"{told['decision']} {told['reason']}"
        told = told["hookSpecificOutput"]
        return f"{told['permissionDecision']} {told['permissionDecisionReason']}"

    def after(self, number: str = "t1", **more: Any) -> str:
        return self.told(number, **{"hook_event_name": "PostToolUse", "tool_response": "done", **more})


@pytest.fixture
def hook(tmp_path: Path, provider: Provider, monkeypatch: pytest.MonkeyPatch) -> Hook:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    project, token = tmp_path / "project", tmp_path / "token"
    project.mkdir()
    (project / "signoff.yaml").write_text("policy: [{deny: Drop}, {allow: Look}]\n")
    token.write_text(f"{SECRET}\n")
    token.chmod(0o600)
    return Hook(project, token, provider)


# --- what a server answers ---


def at(step: str, change: Callable[[Answer], Answer | None]) -> Twist:
    """Only one step is answered otherwise."""
    return lambda found, answer: change(answer) if found == step else answer


def with_fields(**fields: Any) -> Callable[[Answer], Answer]:
    return lambda answer: Answer(answer.status, {**answer.body, **fields})


def only(body: Any, status: int = 200, **headers: str) -> Callable[[Answer], Answer]:
    return lambda _: Answer(status, body, headers)


OTHER_CALLS: dict[str, dict[str, Any]] = {
    "another id": {"id": OTHER},
    "another tool": {"tool": "Read"},
    "other arguments": {"arguments": {"file_path": "b", "force": True}},
    "arguments that only Python takes for the same": {"arguments": {"file_path": "a", "force": 1}},
    "more arguments": {"arguments": {"file_path": "a", "force": True, "also": 1}},
}
NO_ANSWERS: dict[str, Callable[[Answer], Answer | None]] = {
    "nothing of it": only({}),
    "a bare yes": only({"status": "approved"}),
    "no id": with_fields(id=None),
    "an id that is a path": with_fields(id="../../api/v1/keys"),
    "a status that is none": with_fields(status="approvedish"),
    "a list for a status": with_fields(status=["approved"]),
    "no JSON": only(b"<html>approved</html>"),
    "a list": only(b"[]"),
    "half of it": only(b'{"status": "appro'),
    "doubled keys": only(b'{"status": "denied", "status": "approved"}'),
    "too deep": only(b'{"a":' * 100_000),
    "too large": only(b'{"a": "' + b"x" * 5_000_000 + b'"}'),
    "a number of many digits": only(b'{"a": ' + b"9" * 10_000 + b"}"),
    "a redirect": only(b"", 307, Location="http://127.0.0.1:9/"),
    "a redirect with a yes": lambda answer: Answer(302, answer.body, {"Location": "http://127.0.0.1:9/"}),
    "a yes with another status": lambda answer: Answer(203, answer.body),
    "refused": only({"error": {"code": "invalid_credential", "message": "no"}}, 401),
    "halted": only({"error": {"code": "halted", "message": "stop"}}, 503),
    "an error that is none": only({"error": ["no"]}, 400),
}


@pytest.mark.parametrize("step", ["submit", "look", "consume"])
def test_no_answer_but_a_yes_about_this_very_call_lets_it_run(hook: Hook, step: str) -> None:
    hook.provider.looks = 1
    for name, change in {**{name: with_fields(**one) for name, one in OTHER_CALLS.items()}, **NO_ANSWERS}.items():
        if (step, name) == ("submit", "another id"):
            continue  # it is the server that gives ids
        hook.provider.sent.clear()
        hook.provider.twist = at(step, change)
        said = hook.told(name)
        assert said.startswith("error ServerFailed: the server http://127.0.0.1:"), (name, said)
        assert hook.provider.steps[-1] == step, "nothing else is asked of such a server"
        assert SECRET not in said and len(said) < 700


@pytest.mark.parametrize("status", ["denied", "expired", "cancelled"])
def test_what_was_not_approved_is_never_consumed(hook: Hook, status: str) -> None:
    hook.provider.decides, hook.provider.looks = status, 1
    assert hook.told() == (
        f"deny signoff: refused by the server: the request was {status} (request {ID}). Do not try to get around it."
    )
    assert hook.provider.steps == ["submit", "look"]


def test_an_approval_that_the_server_does_not_mark_as_used_is_none(hook: Hook) -> None:
    def unused(answer: Answer) -> Answer:
        return Answer(200, {name: value for name, value in answer.body.items() if name != "consumption"})

    hook.provider.twist = at("consume", unused)
    assert "does not say that the approval was used" in hook.told()


def test_an_approval_is_used_once_and_for_one_directory(hook: Hook) -> None:
    (hook.project / "sub").mkdir()
    assert hook.told().startswith("allow signoff: approved on http://127.0.0.1:")
    assert "its approval was already used: an approved call runs once" in hook.told()
    keys = {one.headers["idempotency-key"] for one in hook.provider.sent if one.step == "submit"}
    assert len(keys) == 1
    assert hook.told(cwd=str(hook.project / "sub")).startswith("allow"), "there it is another call, and asked about"
    assert len({one.headers["idempotency-key"] for one in hook.provider.sent if one.step == "submit"}) == 2


@pytest.mark.parametrize("step", ["submit", "look", "consume"])
def test_the_credential_is_told_to_nobody_even_where_the_server_repeats_it(hook: Hook, step: str) -> None:
    echo = {"error": {"code": "debug", "message": f"your header was Authorization: Bearer {SECRET}"}}
    hook.provider.looks, hook.provider.twist = 1, at(step, only(echo, 400))
    said = hook.told()
    assert "Bearer [credential]" in said and SECRET not in said
    hook.provider.twist = lambda _, answer: with_fields(decision={"note": f"by {SECRET}\x1b[2J\u202e{'x' * 90_000}"})(
        answer
    )
    said = hook.told("t2")
    assert said.startswith("allow signoff: by [credential]⟦ESC⟧[2J⟦U+202E⟧xxx") and len(said) < 5_000


def test_the_credential_is_not_sent_where_a_server_redirects_to(hook: Hook) -> None:
    with Provider().serving() as elsewhere:
        hook.provider.twist = lambda _, answer: Answer(307, b"", {"Location": f"{elsewhere.url}/aap/v1/requests"})
        assert "redirects elsewhere, where the credential is not sent" in hook.told()
        assert elsewhere.sent == []


def test_no_proxy_of_the_environment_gets_the_credential(hook: Hook, monkeypatch: pytest.MonkeyPatch) -> None:
    with Provider().serving() as proxy:
        for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "all_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, proxy.url)
        assert hook.told().startswith("allow")
        assert proxy.sent == []


# --- policy here, and halts ---


def test_what_policy_here_decides_never_gets_to_the_server(hook: Hook) -> None:
    assert hook.told(tool_name="Drop").startswith("deny") and hook.told("t2", tool_name="Look").startswith("allow")
    assert hook.provider.sent == []


@pytest.mark.parametrize(
    ("policy", "said"),
    [
        ("policy: [{deny: Write, reason: by now}]\n", "refused here by now: by now"),
        ("policy: [{alow: x}]\n", "error PolicyError"),
    ],
)
def test_policy_here_counts_again_after_people_have_answered(hook: Hook, policy: str, said: str) -> None:
    def change(answer: Answer) -> Answer:
        (hook.project / "signoff.yaml").write_text(policy)
        return answer

    hook.provider.looks, hook.provider.twist = 1, at("look", change)
    assert said in hook.told()
    assert "consume" not in hook.provider.steps


def test_a_file_that_is_no_longer_trusted_by_then_lets_nothing_run(hook: Hook, monkeypatch: pytest.MonkeyPatch) -> None:
    from signoff.wiring import project_trust

    project_trust.trust(str(hook.project / "signoff.yaml"))

    def change(answer: Answer) -> Answer:
        project_trust.distrust(str(hook.project / "signoff.yaml"))
        return answer

    hook.provider.looks, hook.provider.twist = 1, at("look", change)
    options = HookOptions(
        agent="claude-code", server=hook.provider.url, token_file=str(hook.token), patience=timedelta(seconds=20)
    )
    reply = answer_hook(hook.event(), options, {})
    assert '"deny"' in reply.out and "signoff hook trust" in reply.out and "consume" not in hook.provider.steps


def halt(hook: Hook, *, lift: bool = False) -> None:
    desk = HookDesk()
    question = desk.read(hook.event(), hook.options, {})
    assert question is not None
    switch = question.gate.broker.switch
    asyncio.run(switch.unhalt(by="ana") if lift else switch.halt(by="ana"))
    desk.close()


def test_a_halt_here_stops_what_a_server_would_be_asked_about_and_what_it_approved(hook: Hook) -> None:
    halt(hook)
    assert hook.told().startswith("error Halted: halted by ana") and hook.provider.sent == []
    halt(hook, lift=True)

    def change(answer: Answer) -> Answer:
        halt(hook)
        return answer

    hook.provider.looks, hook.provider.twist = 1, at("look", change)
    assert hook.told("t2").startswith("error Halted") and "consume" not in hook.provider.steps


# --- outcomes ---


def test_an_outcome_is_told_once_of_calls_that_ran_on_an_approval_and_nobody_is_asked_for_it(hook: Hook) -> None:
    (hook.project / "sub").mkdir()
    assert hook.after() == "" and hook.provider.sent == [], "a call nobody was asked about"
    assert hook.told().startswith("allow")
    assert hook.after(cwd=str(hook.project / "sub")) == "", "the call may have moved the agent"
    assert hook.provider.steps == ["submit", "consume", "report"] and hook.provider.sent[-1].body == {
        "status": "succeeded"
    }
    assert hook.after() == "" and len(hook.provider.sent) == 3
    assert hook.told("t2").startswith("allow")
    (hook.project / "signoff.yaml").write_text("policy: [{allow: Write}]\n")
    assert hook.after("t3") == "", "another call, although it is the same"
    assert hook.after("t2", hook_event_name="PostToolUseFailure", error="disk full") == ""
    assert hook.provider.sent[-1].body == {"status": "failed"} and hook.provider.steps.count("submit") == 2


def test_gemini_whose_calls_have_no_ids_has_outcomes_too(hook: Hook) -> None:
    hook.agent = "gemini"
    plain = json.loads(hook.event())
    del plain["tool_use_id"]

    def told(name: str, second: int) -> str:
        event = {**plain, "hook_event_name": name, "timestamp": f"2026-01-01T12:00:{second:02}Z"}
        return answer_hook(json.dumps(event).encode(), hook.options, {}).out

    assert '"allow"' in told("BeforeTool", 1) and told("AfterTool", 3) == ""
    assert hook.provider.steps == ["submit", "consume", "report"]
    assert '"allow"' in told("BeforeTool", 5), "the same call again is another one, and asked about"


def test_what_fails_after_a_call_ran_does_not_say_that_it_was_refused(hook: Hook) -> None:
    assert hook.told().startswith("allow")
    hook.provider.twist = lambda _, answer: None
    said = hook.after()
    assert said.startswith("signoff: the call ran, but its outcome could not be recorded: the server http://127")
    (hook.project / "signoff.yaml").write_text("policy: [{alow: x}]\n")
    assert "the call ran, but its outcome could not be recorded" in hook.after("t2")
    assert hook.told("t3").startswith("error PolicyError")


def call(number: str = "1", **more: Any) -> OutsideCall:
    given: dict[str, Any] = {"agents": ("a",), "session": "s", "tool": "Write", "args": {"a": 1}, "directory": "/"}
    named: dict[str, Any] = {**given, "call_id": number, **more}
    return OutsideCall(**named)


def test_calls_whose_outcome_nobody_tells_are_forgotten_in_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(consumed_calls, "MOST", 5)
    calls = ConsumedCalls(str(tmp_path / "calls"), "https://a")
    for number in range(9):
        calls.add(call(str(number)), ID)
        os.utime(tmp_path / "calls" / calls.find(call(str(number))), (number, number))
    assert len(os.listdir(tmp_path / "calls")) == 5 and calls.take(call("8")) == ID
    assert calls.take(call("8")) == "" and calls.take(call("0")) == ""
    assert ConsumedCalls(str(tmp_path / "calls"), "https://b").find(call("7")) == "", "another server"
    assert calls.take(call("")) == ID and not calls.find(call("7")), "without an id: the newest that is alike"
    nowhere = ConsumedCalls("", "https://a")
    nowhere.add(call(), ID)
    assert nowhere.take(call()) == ""
    (tmp_path / "file").write_text("")
    ConsumedCalls(str(tmp_path / "file"), "https://a").add(call(), ID)  # the call runs all the same


# --- time ---


class Busy(AapClient):
    """Knows whether it waits for an answer."""

    exchanges = 0

    async def _answer(self, *given: Any, **more: Any) -> dict[str, Any]:
        self.exchanges += 1
        try:
            return await super()._answer(*given, **more)
        finally:
            self.exchanges -= 1


@dataclass
class Timed:
    """A gate that asks a server, by a clock that the test turns."""

    provider: Provider
    clock: FakeClock
    gate: OutsideGate
    server: ServerGate
    client: Busy

    async def decided(self) -> CallPermission:
        """What is decided. An exchange takes no time; between exchanges it flies."""
        task = asyncio.ensure_future(self.server.decide(call()))

        def is_done() -> bool:
            if not self.client.exchanges:
                self.clock.advance(0.5)
            return task.done()

        await soon(is_done, "nothing was decided")
        return task.result()


@pytest.fixture
def timed(provider: Provider, tmp_path: Path) -> Timed:
    clock = FakeClock()
    gate = OutsideGate(broker=Broker(MemoryStore(), clock), policy=Layers((Policy.from_rules([{"ask": "*"}]),)))
    client = Busy(provider.url, SECRET, patience=60)
    calls = ConsumedCalls(str(tmp_path / "calls"), client.url)
    return Timed(provider, clock, gate, ServerGate(lambda: gate, client, calls, timedelta(minutes=10)), client)


async def test_nobody_answers_in_time_and_the_request_is_withdrawn(timed: Timed) -> None:
    timed.provider.decides = "pending"
    timed.server.patience = timedelta(seconds=30)
    found = await timed.decided()
    assert (found.allowed, found.by) == (False, "timeout") and "nobody answered before" in found.reason
    steps = timed.provider.steps
    assert steps[0] == "submit" and steps.count("cancel") == 1 and "the server" not in found.reason
    assert steps.count("look") <= 31, "a server that does not wait for people is not asked without a pause"
    assert timed.provider.sent[0].body["timeout"] == "29s"


async def test_an_approval_that_comes_too_late_is_not_consumed(timed: Timed) -> None:
    timed.provider.looks = 1
    timed.server.patience = timedelta(seconds=0.1)
    late, consumed = threading.Event(), threading.Event()

    def twist(step: str, answer: Answer) -> Answer:
        if step == "look":
            late.wait(30)
        if step == "consume":
            consumed.set()
        if step == "cancel":
            late.set()
            consumed.wait(0.3)  # as long as an approval would take to be found and consumed
        return answer

    timed.provider.twist = twist
    task = asyncio.ensure_future(timed.server.decide(call()))
    await soon(lambda: "look" in timed.provider.steps, "nobody looked")
    timed.clock.advance(1)
    assert (await task).by == "timeout" and "consume" not in timed.provider.steps


async def test_a_clock_on_the_wall_that_is_set_changes_nothing_about_how_long_is_waited(timed: Timed) -> None:
    class Jumping(SystemClock):
        jumps = itertools.cycle((0, -7_200, 7_200, -86_400))

        def now(self) -> datetime:
            return super().now() + timedelta(seconds=next(self.jumps))

    gate = OutsideGate(broker=Broker(MemoryStore(), Jumping()), policy=timed.gate.policy)
    timed.provider.decides, timed.server.gate = "pending", lambda: gate
    timed.server.patience = timedelta(seconds=0.3)
    assert (await asyncio.wait_for(timed.server.decide(call()), 60)).by == "timeout"
    timed.provider.decides, timed.server.patience = "approved", timedelta(minutes=1)
    assert (await timed.server.decide(call("2"))).allowed


async def test_a_server_may_be_away_for_a_while_and_an_answer_may_be_lost(timed: Timed) -> None:
    """It is restarted while people think, and the answer to the consume is lost: it is sent again, by the same name."""
    timed.provider.looks = 8
    lost = iter([None, Answer(502, b"<html>"), Answer(500, {"error": {"code": "internal"}})])

    def twist(step: str, answer: Answer) -> Answer | None:
        looked = timed.provider.steps.count("look")
        if step == "look" and looked in (2, 3):
            return None
        if step == "look" and looked == 4:
            return Answer(429, {"error": {"code": "too_many_requests"}}, {"Retry-After": "5"})
        return next(lost, answer) if step == "consume" else answer

    timed.provider.twist = twist
    assert (await timed.decided()).allowed
    consumed = [one.headers["idempotency-key"] for one in timed.provider.sent if one.step == "consume"]
    assert len(consumed) == 4 and len(set(consumed)) == 1


async def test_a_server_that_stays_away_refuses(timed: Timed) -> None:
    timed.provider.looks, timed.provider.twist = 1, at("look", lambda answer: None)
    began = timed.clock.now()
    with pytest.raises(ServerFailed, match="cannot be reached"):
        await timed.decided()
    assert 30 <= (timed.clock.now() - began).total_seconds() < 60


@pytest.mark.parametrize("step", ["look", "consume"])
async def test_a_server_that_refuses_is_not_asked_again(timed: Timed, step: str) -> None:
    refusal = {"error": {"code": "approval_expired", "message": "the policy now refuses it"}}
    timed.provider.looks, timed.provider.twist = 1, at(step, only(refusal, 409))
    with pytest.raises(ServerFailed, match="approval_expired: the policy now refuses it"):
        await timed.decided()
    assert timed.provider.steps.count(step) == 1


def silent(connection: socket.socket) -> None:
    """Nothing is said until the other side hangs up."""
    with suppress(OSError):
        connection.settimeout(20)
        connection.recv(1)


def dripping(beginning: bytes, drop: bytes) -> Callable[[socket.socket], None]:
    def drip(connection: socket.socket) -> None:
        with suppress(OSError):
            connection.settimeout(0.01)
            connection.sendall(beginning)
            while True:
                connection.sendall(drop)
                with suppress(TimeoutError):
                    if not connection.recv(1):
                        return

    return drip


SLOW = {
    "silence": silent,
    "a body that drips": dripping(b"HTTP/1.1 200 OK\r\nContent-Length: 4000000\r\n\r\n{", b" "),
    "a body that drips before the connection closes": dripping(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n{", b" "),
    "a body in endless chunks": dripping(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"1\r\n \r\n"),
    "a header without an end": dripping(b"HTTP/1.1 200 OK\r\nX: ", b"x"),
    "an answer that never begins": dripping(b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
}


@pytest.mark.parametrize("name", SLOW)
async def test_a_server_that_never_ends_its_answer_is_given_up(timed: Timed, name: str) -> None:
    timed.provider.twist = lambda _, answer: Answer(raw=SLOW[name])
    timed.server.client = AapClient(timed.provider.url, SECRET, patience=0.3)
    with pytest.raises(ServerFailed, match=r"no whole answer within 0\.3 seconds"):
        await asyncio.wait_for(timed.server.decide(call()), 60)
    await soon(lambda: not exchanges(), "a thread still listens to the server")


def exchanges() -> list[threading.Thread]:
    return [one for one in threading.enumerate() if one.name == EXCHANGE]


async def test_what_was_given_up_while_it_connects_is_not_sent(timed: Timed, monkeypatch: pytest.MonkeyPatch) -> None:
    """A late consume would use up an approval for a call that was refused."""
    given_up, connect = threading.Event(), HTTPConnection.connect

    def slowly(connection: HTTPConnection) -> None:
        given_up.wait(30)
        connect(connection)

    monkeypatch.setattr(HTTPConnection, "connect", slowly)
    timed.server.client = AapClient(timed.provider.url, SECRET, patience=0.1)
    with pytest.raises(ServerFailed, match="no whole answer"):
        await timed.server.decide(call())
    given_up.set()
    await soon(lambda: not exchanges(), "a thread still talks to the server")
    assert timed.provider.steps == []


async def test_however_many_calls_wait_the_next_one_is_asked_about_at_once(timed: Timed) -> None:
    timed.provider.decides = "pending"
    timed.provider.twist = lambda step, answer: Answer(raw=silent) if step == "look" else answer
    tasks = [asyncio.ensure_future(timed.server.decide(call(str(number)))) for number in range(40)]
    await soon(
        lambda: timed.provider.steps.count("submit") == len(tasks), lambda: str(timed.provider.steps), patience=30
    )
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def test_a_halt_while_people_think(timed: Timed) -> None:
    timed.provider.looks = 5
    task = asyncio.ensure_future(timed.decided())
    await soon(lambda: "look" in timed.provider.steps, "nobody looked")
    await timed.gate.broker.switch.halt(by="ana")
    with pytest.raises(Halted):
        await task
    assert "consume" not in timed.provider.steps


async def test_doubt_about_a_call_is_told_to_the_server(timed: Timed) -> None:
    await timed.server.decide(call(doubt="it names two commands"))
    assert timed.provider.sent[0].body["context"]["doubt"] == "it names two commands"


# --- addresses and credentials ---


@pytest.mark.parametrize(
    "url",
    [
        "https://host:0",
        "https://host:99999",
        "https://host:port",
        "https://[::1",
        "https://:pass@host",
        "https://user:pass@host",
        "https://host/?a=b",
        "https://host/#a",
        "https://ho st",
        "https://host/\n",
        "https://hôst",
        "https://",
        "host",
        "",
        "file:///etc/passwd",
    ],
)
def test_what_is_no_address_is_refused_when_it_is_installed(url: str) -> None:
    with pytest.raises(WrongUse, match="is not a server address") as refused:
        AapClient(url, SECRET)
    assert "pass" not in str(refused.value).replace("passwd", "")


@pytest.mark.parametrize("url", ["http://host", "http://0.0.0.0", "http://10.0.0.1", "http://localhost.example.com"])
def test_the_credential_is_not_sent_unencrypted_to_other_machines(url: str) -> None:
    with pytest.raises(WrongUse, match="is not encrypted"):
        AapClient(url, SECRET)


async def test_the_address_may_be_the_one_that_other_clients_are_given(provider: Provider) -> None:
    for end in ("", "/", "/aap", "/aap/"):
        client = AapClient(provider.url + end, SECRET)
        assert client.url == provider.url
        await client.submit("key", {"tool": "a", "arguments": {}})
    assert {one.path for one in provider.sent} == {"/aap/v1/requests"}


def test_an_address_with_colons_keeps_its_last_part() -> None:
    exchange = HttpExchange(server_address("https://[2001:db8::1:443]"), seconds=1, most=1)
    connection = exchange._connection  # pyright: ignore[reportPrivateUsage]
    assert (connection.host, connection.port) == ("2001:db8::1:443", 443)


def test_a_file_that_holds_no_credential(tmp_path: Path) -> None:
    file = tmp_path / "token"
    with pytest.raises(WrongUse, match=r"(?s)No such file.*signoff aap instance create"):
        read_token(str(file))
    os.mkfifo(file, 0o600)
    with pytest.raises(WrongUse, match="it is not a regular file"):
        read_token(str(file))
    file.unlink()
    for text in ("", "\n", "soi_a\nsoi_b\n", "soi_a b", "soi_ü", "\x00"):
        file.write_text(text)
        file.chmod(0o600)
        with pytest.raises(WrongUse, match=r"(?s)holds no credential.*signoff aap instance create") as refused:
            read_token(str(file))
        assert "soi" not in str(refused.value)
    file.write_text(f" {SECRET} \r\n")
    assert read_token(str(file)) == SECRET
    link = tmp_path / "link"
    link.symlink_to(file)
    assert read_token(str(link)) == SECRET
    file.chmod(0o640)
    for name in (file, link):
        with pytest.raises(WrongUse, match="others can read"):
            read_token(str(name))


def test_status_says_that_the_credential_or_the_address_is_wrong(hook: Hook, tmp_path: Path) -> None:
    file = tmp_path / "home" / ".claude" / "settings.json"
    file.parent.mkdir(parents=True)

    def problems(server: str) -> tuple[str, ...]:
        from signoff.outside.hook_settings import hook_command, installed, user_places
        from signoff.wiring import hook_launcher

        place, wait = user_places(str(tmp_path / "home"))["claude-code"], timedelta(hours=1)
        command = hook_command("claude-code", hook_launcher.__file__, wait, server=server, token_file=str(hook.token))
        file.write_text(installed("", place, command, wait))
        [found] = check_hooks(str(tmp_path / "home"), "")
        return found.problems

    assert problems("https://signoff.example.com") == ()
    assert "use https" in problems("http://signoff.example.com")[0]
    hook.token.chmod(0o644)
    [problem] = problems("https://signoff.example.com")
    assert problem.startswith("every call is refused: others can read")
    hook.token.unlink()
    assert "No such file" in problems("https://signoff.example.com")[0]


def test_errors_are_ours(hook: Hook) -> None:
    hook.provider.url = "http://127.0.0.1:1"
    said = hook.told()
    assert said == "error ServerAway: the server http://127.0.0.1:1: it cannot be reached: Connection refused"
    with pytest.raises(SignoffError):
        answer_hook(hook.event("t2"), hook.options, {})
