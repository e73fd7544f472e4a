"""Whatever is sent to the paths of the Agent Approval Protocol is answered in its shape, and never with a 500."""

from __future__ import annotations

import asyncio
import json
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote
from uuid import uuid4

import httpx
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from tests.server.aap_desk import RULES, AapDesk, Agent

from signoff.core.card import card_for
from signoff.core.visible_text import is_clean
from signoff.testing import FakeClock

HOSTILE = [
    "\u202e",
    "\u200b",
    "\x00",
    "\ud800",
    "\x1b[2J",
    "`@everyone`",
    "**x**",
    "<b>",
    "\n",
    "${x}",
    "a" * 300,
    "é",
    "é",
]
names = st.one_of(
    st.sampled_from(["tool", "arguments", "timeout", "server", "agent_reasoning", "context", "status", "note", "id"]),
    st.sampled_from(["instance_name", "delivery", "decision", "consumption", *HOSTILE]),
    st.text(max_size=8),
)
texts = st.one_of(
    st.sampled_from(["look", "refund", "30m", "1s", "720h", "succeeded", "*", *HOSTILE]), st.text(max_size=30)
)
numbers = st.one_of(
    st.integers(), st.floats(allow_nan=True), st.sampled_from([10**400, -(10**400), 1e308, -0.0, 2**53 + 1, 5e-324])
)
leaves = st.one_of(st.none(), st.booleans(), numbers, texts)
values = st.recursive(
    leaves, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(names, inner, max_size=4), max_leaves=12
)
objects = st.dictionaries(names, values, max_size=5)
calls = st.fixed_dictionaries(
    {
        "tool": st.sampled_from(["look", "refund", "own", "brief", "other", *HOSTILE]),
        "arguments": objects,
        "timeout": st.sampled_from(["1s", "30m", "720h"]),
    },
    optional={
        "server": st.sampled_from(["files", *HOSTILE]),
        "agent_reasoning": st.sampled_from(["because", *HOSTILE]),
        "context": objects,
    },
)


@st.composite
def spelled(draw: st.DrawFn, what: st.SearchStrategy[Any]) -> bytes:
    """A body, as clients may send it, and as none should."""
    value = draw(what)
    text = json.dumps(value, ensure_ascii=draw(st.booleans()), indent=draw(st.sampled_from([None, 2])))
    raw = text.encode("utf-8", "surrogatepass")
    match draw(st.integers(0, 9)):
        case 0:
            cut = draw(st.integers(0, len(raw)))
            return raw[:cut]
        case 1:
            at = draw(st.integers(0, len(raw)))
            return raw[:at] + draw(st.binary(max_size=4)) + raw[at:]
        case 2:
            exponent = draw(
                st.sampled_from([b"1e999", b"1e-99999999999999999999", b"9" * 4_400, b"-0", b"1.0", b"NaN"])
            )
            return raw.replace(b"true", exponent).replace(
                b'"look"', b'"look", "tool" : "look"', draw(st.integers(0, 1))
            )
        case _:
            return raw


bodies = st.one_of(spelled(calls), spelled(objects), spelled(values), st.binary(max_size=40))
ids = st.one_of(st.sampled_from(["KNOWN", "KNOWN", str(uuid4()), "x", "..", "%00", "{KNOWN}"]), st.text(max_size=6))


def path_of(where: str, id: str | None, rest: str) -> str:
    return f"/{where}{'' if id is None else '/' + quote(id, safe='%', errors='replace')}{rest}"


paths = st.builds(
    path_of,
    st.sampled_from(["requests", "requests", "instances", "other"]),
    st.none() | ids,
    st.sampled_from(["", "", "/consume", "/outcome", "/", "/x", "?wait=1h", "?wait=%ff", "?wait=" + "9" * 40 + "s"]),
)
headers = st.fixed_dictionaries(
    {"Content-Type": st.sampled_from(["application/json", "application/json; charset=x", "text/plain", "é"])},
    optional={
        "Idempotency-Key": st.sampled_from(["k1", "k2", "", " ", "é", "x" * 256]),
        "Content-Length": st.sampled_from(["9" * 5_000, "-1", "x"]),
        "X-Request-ID": st.sampled_from(["mine", "x" * 100, "\x1b"]),
    },
)


HOW: Any = {
    "deadline": None,
    "database": None,
    "suppress_health_check": list(HealthCheck),
    "phases": [Phase.generate],  # what fails is small enough to read, and each example is several requests
}


class Fuzzed:
    """A desk, and an event loop that it keeps over many examples."""

    def __init__(self, directory: Path) -> None:
        self.runner = asyncio.Runner()
        self.desk, self.agent, self.program = self.runner.run(self._open(directory))

    async def _open(self, directory: Path) -> tuple[AapDesk, Agent, Agent]:
        desk = AapDesk(directory, clock=FakeClock(), rules=RULES)
        return desk, await desk.instance(), await desk.provisioner()

    def send(self, agent: Agent, method: str, path: str, body: bytes | None, more: dict[str, str]) -> httpx.Response:
        sent = {name.encode(): value.encode("latin-1", "replace") for name, value in more.items()}
        sent[b"Authorization"] = f"Bearer {agent.secret}".encode()
        request = self.desk.client.build_request(method, f"/aap/v1{path}", content=body, headers=sent)
        return self.runner.run(self.desk.client.send(request))

    def close(self) -> None:
        self.runner.run(self.desk.close())
        self.runner.close()


@pytest.fixture(scope="module")
def fuzzed() -> Iterator[Fuzzed]:
    with tempfile.TemporaryDirectory() as directory:
        made = Fuzzed(Path(directory))
        yield made
        made.close()


def is_safe(text: str) -> bool:
    """Whether nothing in a text is hidden, but what is marked."""
    return is_clean(re.sub("⟦[^⟧]*⟧", "", text))


def is_protocols(reply: httpx.Response) -> bool:
    """Whether it is an answer of the protocol: what was asked for, or an error in its shape that tells no secret."""
    if reply.status_code == 204:
        return True
    assert reply.headers["content-type"] == "application/json", (reply.status_code, reply.text[:500])
    data = reply.json()
    if reply.status_code < 300:
        return "id" in data or "instance" in data
    error = data["error"]
    assert error.keys() - {"param"} == {"type", "code", "message", "request_id"}
    assert len(reply.content) < 2_000, "an error is short, whatever was sent"
    return error["request_id"] == reply.headers["x-request-id"] and is_safe(error["message"])


@pytest.mark.parametrize("examples", [pytest.param(10), pytest.param(400, marks=pytest.mark.nightly)])
def test_whatever_is_sent_is_answered_as_the_protocol_says(fuzzed: Fuzzed, examples: int) -> None:
    known = fuzzed.runner.run(fuzzed.agent.ask())["id"]

    @settings(max_examples=examples, **HOW)
    @given(
        method=st.sampled_from(["POST", "POST", "POST", "GET", "DELETE", "PATCH", "PUT"]),
        path=paths,
        body=st.none() | bodies,
        more=headers,
        is_program=st.sampled_from([False, False, False, True]),
    )
    def send(method: str, path: str, body: bytes | None, more: dict[str, str], is_program: bool) -> None:
        who = fuzzed.program if is_program else fuzzed.agent
        polls = method == "GET" and "wait=" in path and "KNOWN" in path
        reply = fuzzed.send(who, method, path.replace("KNOWN", known if not polls else str(uuid4())), body, more)
        assert reply.status_code < 500, reply.text
        assert is_protocols(reply), reply.text[:500]

    send()


@pytest.mark.parametrize("examples", [pytest.param(5), pytest.param(150, marks=pytest.mark.nightly)])
def test_a_call_that_is_taken_comes_back_to_the_letter_and_is_safe_to_show(fuzzed: Fuzzed, examples: int) -> None:
    @settings(max_examples=examples, **HOW)
    @given(body=spelled(calls), more=st.just({"Content-Type": "application/json"}))
    def send(body: bytes, more: dict[str, str]) -> None:
        key = {"Idempotency-Key": str(uuid4())}
        reply = fuzzed.send(fuzzed.agent, "POST", "/requests", body, {**more, **key})
        assert reply.status_code in (201, 400, 429), reply.text
        if reply.status_code != 201:
            assert is_protocols(reply)
            return
        assert reply.content.startswith(body.strip()[:-1])
        again = fuzzed.send(fuzzed.agent, "POST", "/requests", body, {**more, **key})
        assert (again.status_code, again.content) == (200, reply.content)
        told, path = reply.json(), f"/requests/{reply.json()['id']}"
        for request in fuzzed.runner.run(fuzzed.desk.broker.pending()):
            if request.tool_call_id == told["id"]:
                card = card_for(request)
                assert is_safe(request.title) and is_safe(card.title) and is_safe(card.tool), (
                    request.title,
                    card.title,
                )
        if told["status"] == "approved":
            assert fuzzed.send(fuzzed.agent, "POST", f"{path}/consume", None, key).status_code == 200
            end = json.dumps({"status": "failed", "note": "\u202e\ud800 x"}).encode()
            assert fuzzed.send(fuzzed.agent, "POST", f"{path}/outcome", end, more).status_code == 200
        assert fuzzed.send(fuzzed.agent, "DELETE", path, None, {}).status_code in (200, 409)

    send()
