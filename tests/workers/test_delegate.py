"""Workers that call workers: who may, with what, how deep, and under whose rules."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import DeferredToolRequests
from pydantic_ai.messages import ModelMessage, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo
from pydantic_ai.run import AgentRunResult
from tests.workers.project import calling, project, run, saying, seeing

from signoff.core.decision import ApprovalDecision
from signoff.core.event import CallEvent, CallStep, RunMessage
from signoff.core.request import ApprovalRequest
from signoff.errors import WrongFile
from signoff.gate.resume import resume_run
from signoff.testing import FakeClock, scripted_approver
from signoff.workers.project_workers import Workers

CALLS_LEAF = calling("worker_call", worker="leaf", prompt="Go.")


def told(result: AgentRunResult[Any], tool: str = "worker_call") -> list[str]:
    parts = (part for message in result.all_messages() for part in message.parts)
    return [str(part.content) for part in parts if isinstance(part, ToolReturnPart) and part.tool_name == tool]


THREE = {
    "top": "delegates: [middle]\nmodel: script:top.turns",
    "middle": "delegates: [leaf]\nmodel: script:middle.turns",
    "leaf": "toolsets: [files]\nmodel: script:leaf.turns",
}
TURNS = {
    "top": "- calls: [{tool: worker_call, args: {worker: middle, prompt: Go.}}]\n- say: 'top: {{last}}'",
    "middle": "- calls: [{tool: worker_call, args: {worker: leaf, prompt: Go.}}]\n- say: 'middle: {{last}}'",
    "leaf": "- calls: [{tool: write_file, args: {path: a.txt, content: x}}]\n- say: 'leaf: {{last}}'",
}


@pytest.mark.mission("P9")
async def test_p9_a_worker_calls_a_worker_that_calls_a_worker(tmp_path: Path) -> None:
    seen: list[CallEvent] = []
    settings = project(tmp_path, THREE, scripts=TURNS)
    shop = Workers(settings, approver=scripted_approver(["approve"]), observe=seen.append)
    result = await run(shop, "top")
    assert result.output.startswith("top: middle: leaf: ")
    assert (tmp_path / "notes" / "a.txt").read_text() == "x"
    [asked] = [event for event in seen if event.what is CallStep.ASKED]
    assert asked.call.chain == "top > middle > leaf > write_file"


@pytest.mark.mission("P9")
async def test_p9_a_pause_three_levels_down_goes_on_in_another_process(tmp_path: Path) -> None:
    settings, store = project(tmp_path, THREE, scripts=TURNS), f"sqlite:{tmp_path}/store.db"
    first = Workers(settings, store=store, wait="suspend")
    assert isinstance((await run(first, "top")).output, DeferredToolRequests)
    gate = first.worker("top").gate
    [asked] = await gate.pending()
    assert asked.call is not None and asked.call.chain == "top > middle > leaf > write_file"
    await gate.answer(asked.id, ApprovalDecision(approved=True), by="ana")
    first.shared_store.close()

    second = Workers(settings, store=store, wait="suspend")
    top = second.worker("top")
    result = await resume_run(top.agent, asked.run, **top.run_options())
    assert result.output.startswith("top: middle: leaf: ")
    assert result.usage.details == {}
    second.shared_store.close()


async def test_the_schema_names_the_workers_that_may_be_called(tmp_path: Path) -> None:
    def offered(messages: list[ModelMessage], info: AgentInfo) -> str:
        tools = {tool.name: tool for tool in info.function_tools}
        call = tools.get("worker_call")
        if call is None:
            return "none"
        return json.dumps([call.parameters_json_schema["properties"]["worker"]["enum"], call.description])

    workers = {
        "named": "delegates: [leaf]",
        "every": 'delegates: "*"',
        "alone": "instructions: Hi.",
        "leaf": "description: Reads things.",
    }
    shop = Workers(project(tmp_path, workers), model=seeing(offered))
    enum, description = json.loads((await run(shop, "named")).output)
    assert enum == ["leaf"] and "- leaf: Reads things." in description
    assert json.loads((await run(shop, "every")).output)[0] == ["alone", "leaf", "named"]
    assert (await run(shop, "alone")).output == "none"


@pytest.mark.parametrize(
    ("delegates", "worker", "why"),
    [
        ("[leaf]", "laef", "top may not call `laef`; did you mean `leaf`?"),
        ("[leaf]", "other", "top may not call `other`"),
        ('"*"', "top", "it is already running (top), and workers cannot call each other in a cycle"),
    ],
)
@pytest.mark.mission("P9")
async def test_p9_a_worker_that_may_not_be_called_is_denied(
    tmp_path: Path, delegates: str, worker: str, why: str
) -> None:
    workers = {"top": f"delegates: {delegates}", "leaf": "name: leaf", "other": "name: other"}
    turns = (calling("worker_call", worker=worker, prompt="Go."), "Done.")
    seen: list[CallEvent] = []
    store = f"sqlite:{tmp_path}/store.db"
    shop = Workers(project(tmp_path, workers), model=saying(*turns), observe=seen.append, store=store)
    result = await run(shop, "top")
    assert result.output == "Done."
    [answer] = map(json.loads, told(result))
    assert (answer["error"], answer["by"]) == ("permission_denied", "policy")
    assert answer["reason"].startswith(f"{worker} was not called: ") and why in answer["reason"]
    assert [event.what for event in seen] == [CallStep.DENIED]
    shop.shared_store.close()
    with closing(sqlite3.connect(tmp_path / "store.db")) as connection:
        recorded = {kind for (kind,) in connection.execute("select kind from events")}
    assert "denied" in recorded and not recorded & {"allowed", "ran"}


@pytest.mark.mission("P9")
async def test_p9_a_worker_in_the_chain_is_not_entered_again(tmp_path: Path) -> None:
    workers = {"top": 'delegates: "*"\nmodel: script:top.turns', "leaf": 'delegates: "*"\nmodel: script:leaf.turns'}
    scripts = {
        "top": "- calls: [{tool: worker_call, args: {worker: leaf, prompt: Go.}}]\n- say: '{{last}}'",
        "leaf": "- calls: [{tool: worker_call, args: {worker: top, prompt: Go.}}]\n- say: '{{last}}'",
    }
    said = json.loads((await run(Workers(project(tmp_path, workers, scripts=scripts)), "top")).output)
    why = "top was not called: it is already running (top > leaf), and workers cannot call each other in a cycle"
    assert (said["error"], said["reason"]) == ("permission_denied", why)


async def test_under_every_worker_one_with_a_wrong_file_is_refused_and_the_run_goes_on(tmp_path: Path) -> None:
    workers = {"top": 'delegates: "*"', "leaf": "toolsts: [files]"}
    result = await run(Workers(project(tmp_path, workers), model=saying(CALLS_LEAF, "Done.")), "top")
    assert result.output == "Done."
    assert "leaf.yaml:1:1: toolsts: unknown key `toolsts`" in told(result)[0]


async def test_input_is_checked_and_output_is_passed_as_json(tmp_path: Path) -> None:
    leaf = """
    instructions: Count {{what}}.
    input: {type: object, properties: {what: {type: string}}, required: [what]}
    output: {type: object, properties: {count: {type: integer}}, required: [count]}
    model: script:leaf.turns
    """
    turns = (
        calling("worker_call", worker="leaf", prompt="Go.", input={"waht": 1}),
        calling("worker_call", worker="leaf", prompt="Go.", input={"what": "é"}),
        "Done.",
    )
    scripts = {"leaf": "- calls: [{tool: final_result, args: {count: 3}}]"}
    settings = project(tmp_path, {"top": "delegates: [leaf]", "leaf": leaf}, scripts=scripts)
    first, second = told(await run(Workers(settings, model=saying(*turns)), "top"))
    assert "the input does not fit what leaf takes" in first and "'what' is a required property" in first
    assert json.loads(second) == {"count": 3}


@pytest.mark.mission("P9")
async def test_p9_the_callers_rules_hold_below_it(tmp_path: Path) -> None:
    """The worker below may write, and the project lets it; its caller may not, so it may not for this caller."""
    file = "policy: [{allow: write_file}]\ntoolsets: {files: {use: filesystem_rw, config: {root: notes}}}"
    workers = {**THREE, "top": f"{THREE['top']}\npolicy: [{{deny: write_file, reason: not for top}}]"}
    settings = project(tmp_path, workers, file=file, scripts=TURNS)
    assert "not for top" in (await run(Workers(settings), "top")).output
    assert not (tmp_path / "notes" / "a.txt").exists()
    assert "not for top" not in (await run(Workers(settings), "middle")).output
    assert (tmp_path / "notes" / "a.txt").exists()


async def test_a_rule_may_ask_about_delegating_itself(tmp_path: Path) -> None:
    file = "policy: [{ask: {tool: worker_call, args: {worker: leaf}}}]"
    settings = project(tmp_path, {"top": "delegates: [leaf]", "leaf": "model: script:leaf.turns"}, file=file)
    (tmp_path / "workers" / "leaf.turns").write_text("- say: leaf")
    shop = Workers(
        settings,
        model=saying(CALLS_LEAF, "Done."),
        approver=scripted_approver([ApprovalDecision(approved=False, note="not now")]),
    )
    assert "not now" in told(await run(shop, "top"))[0]
    shop = Workers(settings, model=saying(CALLS_LEAF, "Done."), approver=scripted_approver(["approve"]))
    assert told(await run(shop, "top")) == ["leaf"]


async def test_several_runs_of_one_worker_do_not_share_their_figures(tmp_path: Path) -> None:
    workers = {"top": "delegates: [leaf]", "leaf": "model: script:leaf.turns\nlimits: {requests: 1}"}
    twice = [calling("worker_call", worker="leaf", prompt="One."), calling("worker_call", worker="leaf", prompt="Two.")]
    settings = project(tmp_path, workers, scripts={"leaf": "- say: leaf"})
    shop = Workers(settings, model=saying(twice, CALLS_LEAF, "Done."))
    assert told(await run(shop, "top")) == ["leaf", "leaf", "leaf"]


async def test_a_stopped_run_leaves_no_figures_to_a_later_call_with_the_same_id(tmp_path: Path) -> None:
    """Providers reuse call ids: the second call is a run of its own, and has its own two requests."""
    leaf = "toolsets: [reading]\nmodel: script:leaf.turns\nlimits: {requests: 2}"
    turns = "- calls: [{tool: list_files, args: {}}]\n- calls: [{tool: list_files, args: {}}]\n- say: leaf"
    file = "policy: [{allow: list_files}]\ntoolsets: {reading: {use: filesystem_ro, config: {root: notes}}}"
    settings = project(tmp_path, {"top": "delegates: [leaf]", "leaf": leaf}, file=file, scripts={"leaf": turns})
    again = ToolCallPart("worker_call", {"worker": "leaf", "prompt": "Go."}, tool_call_id="same")
    result = await run(Workers(settings, model=saying(again, again, "Done.")), "top")
    assert [answer.startswith("leaf was stopped") for answer in told(result)] == [True, True]
    assert result.usage.requests == 3 + 2 + 2


async def test_a_worker_whose_model_makes_no_sense_does_not_end_its_callers_run(tmp_path: Path) -> None:
    output = (
        "output: {type: object, properties: {n: {type: integer}}, required: [n]}\nretries: 0\nmodel: script:leaf.turns"
    )
    scripts = {"leaf": "- calls: [{tool: final_result, args: {n: many}}]"}
    settings = project(tmp_path, {"top": "delegates: [leaf]", "leaf": output}, scripts=scripts)
    result = await run(Workers(settings, model=saying(CALLS_LEAF, "Done.")), "top")
    assert result.output == "Done."
    assert told(result)[0].startswith("leaf gave no valid answer: ")


TOOLS = """
from typing import Any
from pydantic_ai import RunContext
from pydantic_ai.toolsets import FunctionToolset

def mine(context: Any) -> FunctionToolset[Any]:
    async def ask_leaf(ctx: RunContext[Any]) -> str:
        context.message(f"{context.worker} asks")
        return f"<{await context.delegation(ctx, 'leaf', 'Go.')}>"

    return FunctionToolset([ask_leaf])

TOOLSETS = {"mine": mine}
"""


@pytest.mark.mission("P3")
async def test_p3_a_toolset_is_told_where_it_is_used_and_may_delegate(tmp_path: Path) -> None:
    file = "policy: [{allow: ask_leaf}]\ntoolsets: {files: {use: filesystem_rw, config: {root: notes}}}"
    workers = {"top": "toolsets: [mine]\ndelegates: [leaf]\nlimits: {time: 25s}", "leaf": THREE["leaf"]}
    settings = project(tmp_path, workers, file=file, scripts=TURNS)
    (tmp_path / "toolsets.py").write_text(TOOLS)
    clock, said = FakeClock(), list[RunMessage]()

    def slowly(request: ApprovalRequest) -> ApprovalDecision:
        clock.advance(3600)  # waiting for a person counts for nobody
        return ApprovalDecision(approved=True)

    shop = Workers(
        settings,
        model=saying(calling("ask_leaf"), "Done."),
        approver=scripted_approver([slowly]),
        message=said.append,
        clock=clock,
    )
    result = await run(shop, "top")
    assert (said[0].worker, said[0].text) == (("top",), "top asks")
    assert told(result, "ask_leaf")[0].startswith("<leaf: ")
    assert (tmp_path / "notes" / "a.txt").exists()


async def test_tools_outside_of_a_worker_say_so(tmp_path: Path) -> None:
    from pydantic_ai import Agent

    from signoff.errors import WrongUse
    from signoff.gate.capability import Signoff
    from signoff.workers.delegation_toolset import DelegationToolset

    settings = project(tmp_path, {"top": "delegates: [leaf]", "leaf": "name: leaf"})
    shop = Workers(settings, model=saying("x"))
    tools = DelegationToolset(shop, shop.file("top"))
    agent = Agent(saying(CALLS_LEAF, "Done."), toolsets=[tools], capabilities=[Signoff([])])
    with pytest.raises(WrongUse, match="works only in runs of a worker"):
        await agent.run("Go.")


def test_a_circle_of_named_delegates_is_found_when_the_files_are_read(tmp_path: Path) -> None:
    settings = project(tmp_path, {"top": "delegates: [leaf]", "leaf": "delegates: [top]"})
    with pytest.raises(WrongFile, match="cycle: top > leaf > top"):
        Workers(settings, model=saying("x")).worker("top")
