"""The scripted model: plays its turns, and says where a script is wrong."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import Agent

from signoff.errors import ScriptEnded, ScriptError, WrongUse
from signoff.testing import ScriptedApprover, ScriptedModel, decision_from
from signoff.workers.models import model_named


def echoing(model: Any) -> Agent[None, str]:
    agent = Agent(model)

    @agent.tool_plain
    def echo(text: str) -> str:
        return f"<{text}>"

    return agent


SCRIPT = """
- calls:
    - {tool: echo, args: {text: a}}
    - {tool: echo, args: {text: b}}
- say: Again.
  calls: [{tool: echo, args: {text: "{{last.1}} and {{ last.0 }}"}}]
- say: "It was {{last}}"
"""


@pytest.mark.usefixtures("sync_loop")
def test_turns_are_played_and_refer_to_the_last_results(tmp_path: Path) -> None:
    file = tmp_path / "turns.yaml"
    file.write_text(SCRIPT)
    agent = echoing(model_named(f"script:{file}"))
    assert agent.run_sync("go").output == "It was <<b> and <a>>"


async def test_one_model_serves_many_runs_and_streams() -> None:
    agent = echoing(ScriptedModel([{"calls": [{"tool": "echo", "args": {"text": "x"}}]}, {"say": "got {{last}} now"}]))
    outputs = await asyncio.gather(*(agent.run("go") for _ in range(5)))
    assert {one.output for one in outputs} == {"got <x> now"}
    async with agent.run_stream("go") as stream:
        pieces = [piece async for piece in stream.stream_text(delta=True, debounce_by=None)]
    assert "".join(pieces) == "got <x> now"
    assert len(pieces) > 1


@pytest.mark.usefixtures("sync_loop")
def test_a_conversation_goes_on_where_it_was() -> None:
    agent = Agent(ScriptedModel([{"say": "one"}, {"say": "two"}]))
    first = agent.run_sync("a")
    assert agent.run_sync("b", message_history=first.all_messages()).output == "two"


@pytest.mark.usefixtures("sync_loop")
def test_a_script_that_runs_out_says_so() -> None:
    with pytest.raises(ScriptEnded, match=r"asks for turn 2, but the script holds 1 turn.\n.*say: Done"):
        echoing(ScriptedModel([{"calls": [{"tool": "echo", "args": {"text": "x"}}]}])).run_sync("go")
    with pytest.raises(ScriptEnded, match=r"last\.3.*0 results"):
        Agent(ScriptedModel([{"say": "{{last.3}}"}])).run_sync("go")


@pytest.mark.parametrize(
    ("text", "place", "problem"),
    [
        ("- say: [", ":2:1", "not YAML"),
        ("say: hello", ":1:1", "a script is a list of turns"),
        ("[]", ":1:1", "a script is a list of turns"),
        ("- hello", ":1:3: [0]", "this should be a turn: a mapping with `say` and `calls`, not a text"),
        ("- sya: hello", ":1", "unknown key `sya`\n  did you mean `say`?"),
        ("- say: 3", ":1:8: [0].say", "write it in quotes"),
        ("- {}", ":1", "needs `say`, or at least one call"),
        ("- say: a\n- calls: []", ":2", "at least one call"),
        ("- calls: {}", ":1", "this should be a list of calls"),
        ("- calls:\n    - {args: {}}", ":2:7: [0].calls[0]", "needs `tool`"),
        ("- calls:\n    - {tool: t, args: 3}", ":2:23: [0].calls[0].args", "this should be a mapping, not a number"),
        ("- calls:\n    - {tool: t, argz: {}}", ":2", "unknown key `argz`\n  did you mean `args`?"),
        ("- calls:\n    - {tool: t, id: 3}", ":2", "this should be a text, not a number"),
        ("- say: '{{first}}'", ":1:8: [0].say", "refers to nothing"),
        ("- calls:\n    - {tool: t, args: {a: ['{{lst}}']}}", ":2", "refers to nothing"),
    ],
)
def test_a_wrong_script_says_where(tmp_path: Path, text: str, place: str, problem: str) -> None:
    file = tmp_path / "turns.yaml"
    file.write_text(text)
    with pytest.raises(ScriptError) as raised:
        ScriptedModel.from_file(file)
    assert f"{file}{place}" in str(raised.value)
    assert problem in str(raised.value)


def test_a_script_or_model_that_is_not_there_says_so(tmp_path: Path) -> None:
    with pytest.raises(
        ScriptError, match=r"none.yaml: the model.s script is missing: .*\n  create it, or name another script or model"
    ):
        model_named(f"script:{tmp_path}/none.yaml")
    with pytest.raises(WrongUse, match="cannot be used"):
        model_named("nobody:nothing")


@pytest.mark.parametrize("word", ["yes", "", "edit", "edit:{", "approve!"])
def test_only_known_words_are_answers(word: str) -> None:
    with pytest.raises(WrongUse):
        decision_from(word)


def test_an_approver_without_answers_left_says_what_it_was_asked() -> None:
    from signoff import ApprovalMode, ApprovalRequest

    ui = ScriptedApprover([])
    with pytest.raises(ScriptEnded, match="the script has 0 answers, but 'pay 5' is asked next"):
        ui.choose(ApprovalRequest(tool_call_id="1", tool_name="pay", summary="pay 5"), mode=ApprovalMode.INTERACTIVE)
