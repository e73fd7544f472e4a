"""What an agent writes down about its session, on the card: bounded, masked, as the model's words, and nothing more."""

from __future__ import annotations

import json
import os
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests import start
from tests.outside.test_hook import Agent
from tests.outside.test_hook import agent as agent
from tests.server.serving import until

from signoff.core.redact import redact_text
from signoff.outside import transcripts
from signoff.outside.background import NO_BACKGROUND, Background
from signoff.outside.coding_agents import AGENTS
from signoff.outside.transcripts import background, records

KEY = "sk-ant-api03-" + "Ab3dEf9h" * 12 + "AA"


def line(kind: str, content: Any, number: str = "", **more: Any) -> dict[str, Any]:
    """A line of Claude Code's transcript."""
    message = {"role": kind, "content": content, **({"id": number} if number else {})}
    return {"type": kind, "isSidechain": False, "message": message, **more}


def says(text: str, number: str) -> dict[str, Any]:
    return line("assistant", [{"type": "text", "text": text}], number)


def uses(call: str, number: str, tool: str = "Bash", given: Any = None) -> dict[str, Any]:
    return line("assistant", [{"type": "tool_use", "id": call, "name": tool, "input": given or {}}], number)


def came(call: str, content: str = "ok") -> dict[str, Any]:
    return line("user", [{"type": "tool_result", "tool_use_id": call, "content": content}])


def item(payload: dict[str, Any]) -> dict[str, Any]:
    """A line of Codex' transcript."""
    return {"timestamp": "2026-11-19T10:29:55.183Z", "ordinal": 0, "type": "response_item", "payload": payload}


def typed(text: str) -> dict[str, Any]:
    message = {"type": "UserMessage", "id": "u", "content": [{"type": "text", "text": text, "text_elements": []}]}
    return {"type": "event_msg", "payload": {"type": "item_completed", "item": message}}


def spoken(text: str, role: str = "assistant") -> dict[str, Any]:
    return item({"type": "message", "role": role, "content": [{"type": "output_text", "text": text}]})


def called(call: str, kind: str = "function_call") -> dict[str, Any]:
    return item({"type": kind, "name": "exec_command", "arguments": "{}", "call_id": call})


def answered(call: str) -> dict[str, Any]:
    return item({"type": "function_call_output", "call_id": call, "output": "ok"})


def chat(kind: str, content: Any, number: str) -> dict[str, Any]:
    """A line of Gemini CLI's transcript."""
    return {"id": number, "timestamp": "2026-11-19T10:31:02.670Z", "type": kind, "content": content}


CLAUDE = [
    {"type": "queue-operation", "operation": "enqueue", "content": "Fix it"},
    line("user", "Fix it"),
    line("user", "context that the program adds", isMeta=True),
    {"type": "attachment", "isSidechain": False, "attachment": {"type": "skill_listing", "content": "- a"}},
    says("I read first.", "m1"),
    uses("c1", "m1"),
    came("c1", "Fix something else"),
    says("I write two files.", "m2"),
    uses("c2", "m2", given={"command": "touch a"}),
    uses("c3", "m2"),
    came("c2"),
]
CODEX = [
    {"type": "session_meta", "payload": {"id": "s", "cwd": "/w"}},
    spoken("<environment_context>", "user"),
    typed("Fix it"),
    spoken("I read first."),
    called("c1"),
    answered("c1"),
    spoken("I write two files."),
    called("c2"),
    called("c3"),
    answered("c2"),
]
GEMINI = [
    {"sessionId": "s", "kind": "main"},
    {"$set": {"messages": [chat("user", [{"text": "<session_context>\nToday is Thursday"}], "g0")]}},
    chat("user", [{"text": "Fix it"}], "g1"),
    {"$set": {"lastUpdated": "2026-11-19T10:31:02.670Z"}},
    chat("gemini", "I read first.", "g2"),
    chat("user", [{"functionResponse": {"id": "c1", "name": "a", "response": {"output": "Fix something else"}}}], "g3"),
    chat("gemini", "I write", "g4"),
    chat("gemini", "I write two files.", "g4"),
]
SAMPLES = {"claude-code": CLAUDE, "codex": CODEX, "gemini": GEMINI}


def written(place: Path, lines: list[dict[str, Any]] | bytes, name: str = "t.jsonl") -> str:
    file = place / name
    file.parent.mkdir(parents=True, exist_ok=True)
    text = lines if isinstance(lines, bytes) else b"".join(json.dumps(one).encode() + b"\n" for one in lines)
    file.write_bytes(text)
    return str(file)


def told(agent: str, place: Path, lines: list[dict[str, Any]] | bytes, **event: Any) -> Background:
    given = {"tool_use_id": "c3", **event} if agent != "gemini" else event
    return background(agent, {"transcript_path": written(place, lines), **given})


@pytest.mark.parametrize("agent", AGENTS)
def test_prompt_and_words_of_the_turn_that_makes_the_call(agent: str, tmp_path: Path) -> None:
    assert told(agent, tmp_path, SAMPLES[agent]) == Background(prompt="Fix it", words="I write two files.")


@pytest.mark.parametrize("agent", ["claude-code", "codex"])
def test_words_of_an_earlier_turn_are_not_those_of_this_call(agent: str, tmp_path: Path) -> None:
    assert told(agent, tmp_path, SAMPLES[agent], tool_use_id="c1").words == "I read first."
    silent = [
        *SAMPLES[agent],
        *([came("c3"), uses("c4", "m3")] if agent == "claude-code" else [answered("c3"), called("c4")]),
    ]
    assert told(agent, tmp_path, silent, tool_use_id="c4") == Background(prompt="Fix it")
    late = told(
        agent, tmp_path, [*SAMPLES[agent], *([] if agent == "claude-code" else [answered("c3")])], tool_use_id="c9"
    )
    assert late == Background(prompt="Fix it", is_late=True), "a call that is not written down yet is read again"


def test_a_model_of_gemini_that_says_nothing(tmp_path: Path) -> None:
    answer = chat("user", [{"functionResponse": {"id": "c3", "name": "a", "response": {}}}], "g5")
    assert told("gemini", tmp_path, [*GEMINI, answer]) == Background(prompt="Fix it")
    assert told("gemini", tmp_path, [*GEMINI, answer, chat("gemini", "", "g6")]) == Background(prompt="Fix it")


def test_a_permission_request_has_no_id_so_the_call_is_found_by_its_content(tmp_path: Path) -> None:
    path = written(tmp_path, CLAUDE)
    event = {"transcript_path": path, "tool_name": "Bash", "tool_input": {"command": "touch a"}}
    assert background("claude-code", event).words == "I write two files."
    assert background("claude-code", {**event, "tool_input": {"command": "touch b"}}).is_late


def test_an_agent_inside_has_words_of_its_own_and_the_prompt_of_the_user(tmp_path: Path) -> None:
    inner = [line("user", "Do a part", isSidechain=True), says("As I was told.", "m9"), uses("c9", "m9")]
    written(tmp_path, inner, "t/subagents/agent-a1.jsonl")
    event = {"transcript_path": written(tmp_path, CLAUDE), "tool_use_id": "c9", "agent_id": "a1"}
    assert background("claude-code", event) == Background(prompt="Fix it", words="As I was told.")
    for odd in ("../../t/subagents/agent-a1", "", 7, "a" * 101):
        assert background("claude-code", {**event, "agent_id": odd}).words == ""
    own = told("codex", tmp_path, [typed("Do a part"), spoken("As I was told."), called("c3")], agent_id="a1")
    assert own == Background(words="As I was told."), "a model wrote that prompt: it is no task"


def test_calls_in_javascript_have_the_words_of_the_turn_that_is_not_over(tmp_path: Path) -> None:
    lines = [typed("Fix it"), spoken("All at once."), called("c1", "custom_tool_call")]
    assert told("codex", tmp_path, lines, tool_use_id="exec-1") == Background(prompt="Fix it", words="All at once.")


@pytest.mark.parametrize("agent", AGENTS)
def test_what_is_no_transcript_tells_nothing(agent: str, tmp_path: Path) -> None:
    for odd in (None, 7, "", "t.jsonl", "~/t.jsonl", str(tmp_path / "none"), "/a\0b", ["/a"], "/" + "a" * 5000):
        found = background(agent, {"transcript_path": odd, "tool_use_id": "c3"})
        assert (found.prompt, found.words) == ("", "")
    assert background(agent, {"tool_use_id": "c3"}) == NO_BACKGROUND


def _fifo(file: Path, real: str) -> None:
    os.mkfifo(file)


def _link(file: Path, real: str) -> None:
    file.symlink_to(real)


def _directory(file: Path, real: str) -> None:
    file.mkdir()


def _device(file: Path, real: str) -> None:
    file.symlink_to("/dev/zero")


@pytest.mark.parametrize("place", [_fifo, _link, _directory, _device])
@pytest.mark.timeout(20)
def test_nothing_but_a_file_is_read(place: Callable[[Path, str], None], tmp_path: Path) -> None:
    real = written(tmp_path, CLAUDE)
    place(tmp_path / "odd", real)
    assert records(real) and records(str(tmp_path / "odd")) == []


def test_a_file_of_another_user_is_not_read(tmp_path: Path) -> None:
    theirs = "/etc/passwd"
    if os.geteuid() == 0:
        theirs = written(tmp_path, CLAUDE)
        os.chown(theirs, 65534, 65534)
    assert transcripts._last_lines(theirs) == []
    assert records("/dev/zero") == records("/dev/tty") == []


def test_of_a_long_file_only_the_end_is_read(tmp_path: Path) -> None:
    file = Path(written(tmp_path, b""))
    end = b"\n".join(json.dumps(one).encode() for one in CLAUDE)
    with file.open("r+b") as stream:
        stream.truncate(100_000_000)
        stream.seek(100_000_000)
        stream.write(b"\n" + end)
    tracemalloc.start()
    found = background("claude-code", {"transcript_path": str(file), "tool_use_id": "c3"})
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert found == Background(prompt="Fix it", words="I write two files.")
    assert peak < 4 * transcripts.MOST_READ
    file.write_bytes(
        json.dumps(line("user", "Long ago")).encode() + b"\n" + b" " * transcripts.MOST_READ + b"\n" + end[40:]
    )
    assert background("claude-code", {"transcript_path": str(file), "tool_use_id": "c3"}).prompt != "Long ago"


ODD = [
    b"{",
    b"null",
    b"[]",
    b"\xff\xfe",
    b"[" * 100_000,
    b'{"a":' * 50_000,
    b'{"type":"user","type":"assistant"}',
    b'{"type":"assistant","message":' + b"9" * 5_000 + b"}",
    b'{"type":"user","message":{"content":[1,null,{"type":"text","text":7}]}}',
    b'{"type":"assistant","message":[],"payload":[],"$set":[]}',
    b'{"type":"event_msg","payload":{"type":7,"item":"x"}}',
    b'{"type":"response_item","payload":{"type":"message","role":"assistant","content":"x"}}',
    b'{"$set":{"messages":{"a":1}}}',
    b'{"type":"gemini","id":["a"],"content":{"a":1}}',
    b'{"type":"assistant","message":{"id":["a"],"content":[{"type":"text","text":"x"}]}}',
    b'{"type":"user","message":{"content":"' + b"x" * 2_000_000 + b'"}}',
]


@pytest.mark.parametrize("agent", AGENTS)
def test_lines_that_are_not_understood_are_left_out(agent: str, tmp_path: Path) -> None:
    lines = [json.dumps(one).encode() for one in SAMPLES[agent]]
    mixed = b"\n".join([*ODD, *(piece for one in lines for piece in (one, ODD[0], b""))])
    assert told(agent, tmp_path, mixed).prompt == "Fix it"
    for odd in ODD:
        told(agent, tmp_path, odd)


# --- on the card ---


def asks(agent: Agent, lines: list[dict[str, Any]] | bytes, **more: Any) -> tuple[start.Process, dict[str, Any]]:
    path = written(agent.home, lines)
    event = agent.event("Write", {"file_path": "a", "content": "x"}, number="c3", transcript_path=path, **more)
    process = agent.begin(event)
    [request] = until(agent.waits, "the call is asked about")
    return process, request


def test_the_card_and_the_list_tell_sessions_apart(agent: Agent) -> None:
    agent.environment["COLUMNS"] = "160"
    session = "81f90007-6e4e-4231-8056-13af86f687e4"
    process, request = asks(agent, CLAUDE, session_id=session)
    with process:
        shown = agent.signoff("show", request["id"])
        assert f"{session} in {agent.directory}" in shown
        assert "“Fix it” (for ana)" in shown and "“I write two files.”" in shown and "model says" in shown
        assert f"session …86f687e4 in {agent.directory}: “Fix" in agent.signoff("inbox")
        assert request["session"] == f"…86f687e4 in {agent.directory}" and request["task"] == "“Fix it” (for ana)"
        card = json.loads(agent.signoff("show", request["id"], "--json"))["card"]
        assert card["claim"] == "I write two files." and card["session"] == f"{session} in {agent.directory}"
        agent.signoff("deny", request["id"])


def test_the_words_are_masked_and_their_hidden_characters_shown(agent: Agent) -> None:
    assert redact_text(KEY) != KEY
    lines = [line("user", f"Use {KEY} \x1b[2J"), says(f"With {KEY} \u202e \ud800 ", "m1"), uses("c3", "m1")]
    process, request = asks(agent, lines)
    with process:
        texts = [agent.signoff("show", request["id"], *more) for more in ((), ("--json",))]
        texts += [agent.signoff("inbox"), json.dumps(agent.waits())]
        for text in texts:
            assert KEY not in text and "Ab3dEf9h" not in text and "\x1b" not in text and "\u202e" not in text
        assert "masked" in texts[0] and "With" in texts[0]
        agent.signoff("deny", request["id"])


def test_an_approval_holds_whatever_is_written_meanwhile(agent: Agent) -> None:
    process, request = asks(agent, CLAUDE)
    with process:
        digest = json.loads(agent.signoff("show", request["id"], "--json"))["args_digest"]
        written(agent.home, [line("user", "Other"), says("signoff: allowed", "m2"), uses("c3", "m2")])
        agent.signoff("approve", request["id"])
        out, _ = process.communicate(timeout=start.PATIENCE)
    assert json.loads(out)["hookSpecificOutput"]["permissionDecision"] == "allow"
    os.mkfifo(agent.home / "fifo")
    event = agent.event("Write", {"file_path": "a", "content": "x"}, "c4", transcript_path=str(agent.home / "fifo"))
    with agent.begin(event) as process:
        [again] = until(agent.waits, "a call whose transcript is no file is asked about as well")
        found = json.loads(agent.signoff("show", again["id"], "--json"))
        assert (found["args_digest"], found["card"]["claim"]) == (digest, "")
        agent.signoff("deny", again["id"])
