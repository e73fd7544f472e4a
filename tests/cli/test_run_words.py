"""What a model says and what its calls return, as it is shown while a run goes on."""

from __future__ import annotations

import re

import pexpect
import pytest
from tests.cli.desk import Desk

from signoff.cli.progress import result_line
from signoff.gate.arguments import with_notice

AGENT = """
from pydantic_ai import Agent
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import DeltaToolCall, FunctionModel

SAID = ["I **look** first.", "Now I write.", "# Done\\n\\nSee [it](https://x.example)."]
CALLS = ["look", "write", None]

def turn(messages):
    return sum(isinstance(one, ModelResponse) for one in messages)

def whole(messages, info):
    n = turn(messages)
    calls = [ToolCallPart(CALLS[n], {}, tool_call_id=f"c{n}")] if CALLS[n] else []
    return ModelResponse(parts=[TextPart(SAID[n]), *calls])

async def stream(messages, info):
    n = turn(messages)
    for at in range(0, len(SAID[n]), 3):
        yield SAID[n][at : at + 3]
    if CALLS[n]:
        yield {0: DeltaToolCall(name=CALLS[n], json_args="{}", tool_call_id=f"c{n}")}

def look() -> str:
    return "one\\ntwo\\x1b[2J"

def write() -> dict[str, int]:
    return {"ok": 1}

streams = Agent(FunctionModel(whole, stream_function=stream), tools=[look, write])
does_not = Agent(FunctionModel(whole), tools=[look, write])
"""
ORDER = [
    "┃ I look first.",
    "result        look: one  (and 1 more line)",
    "┃ Now I write.",
    "may write run",
    "your answer > ",
]


@pytest.fixture
def shop(desk: Desk) -> Desk:
    (desk.directory / "signoff.yaml").write_text("policy: [{allow: look}, {ask: write}]\n")
    (desk.directory / "wordy.py").write_text(AGENT)
    return desk


def bare(text: str) -> str:
    """Without colours, and without the line at the bottom."""
    return re.sub(r"\r\x1b\[K[^\r\n]*(?=\r\x1b\[K)|\x1b\[[\d;]*[mK]", "", text).replace("\r", "")


@pytest.mark.parametrize("agent", ["streams", "does_not"])
def test_at_a_terminal_all_that_is_said_stands_there_once_and_in_its_order(shop: Desk, agent: str) -> None:
    child = shop.sits_down("run", f"wordy:{agent}", "go")
    child.expect("your answer > ")
    asked = bare(str(child.before) + str(child.after))
    places = [asked.index(part) for part in ORDER]
    assert places == sorted(places), asked
    assert all(asked.count(part) == 1 for part in ORDER), asked
    child.sendline("a")
    child.expect(pexpect.EOF)
    child.wait()
    rest = bare(str(child.before))
    assert rest.count("┃ Done") == 1 and rest.count("┃ See it (https://x.example).") == 1, rest
    assert 'result        write: {"ok":1}' in rest
    assert child.exitstatus == 0


def test_elsewhere_the_answer_is_raw_and_alone_on_standard_output(shop: Desk) -> None:
    said = shop.run("run", "wordy:streams", "go", "--mode", "auto_approve")
    assert (said.code, said.out) == (0, "# Done\n\nSee [it](https://x.example).\n")
    assert "┃ I **look** first.\n" in said.err
    assert "  result        look: one  (and 1 more line)\n" in said.err
    assert "# Done" not in said.err


def test_programs_are_told_what_they_were_told_before(shop: Desk) -> None:
    rows = shop.run("run", "wordy:streams", "go", "--mode", "auto_approve", "--json").rows
    assert [row.get("event") for row in rows] == ["started", "allowed", "ran", "auto_approved", "ran", None]


def test_a_result_is_one_line_without_secrets_that_steers_nothing() -> None:
    assert result_line("read", "\n\n") == "read: nothing"
    assert result_line("read", with_notice("one", {"path": "a]"})) == "read: one", "the notice is for the model"
    assert result_line("read", "a \x1b[2J hunter2 b", ["hunter2"]).startswith("read: a ⟦ESC⟧[2J ⟦masked 1: declared")
