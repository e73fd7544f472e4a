"""Agents from worker files: what they are told, what they answer, and where a file is wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import BinaryContent
from pydantic_ai.capabilities import NativeTool
from pydantic_ai.messages import ModelMessage, ModelRequest, UserPromptPart
from pydantic_ai.models.function import AgentInfo
from pydantic_ai.native_tools import WebSearchTool
from tests.workers.project import calling, project, run, saying, seeing

from signoff.errors import WrongFile, WrongUse
from signoff.workers import worker_prompt as prompts
from signoff.workers.project_workers import Workers

ISSUE = """
instructions: Look at {{issue.title}} for {{#each names}}{{this}} {{/each}}
input:
  type: object
  properties:
    issue: {type: object, properties: {title: {type: string}}}
    names: {type: array, items: {type: string}}
    rest: {type: string}
  required: [issue]
"""


def told(messages: list[ModelMessage], info: AgentInfo) -> str:
    [first] = [part for part in messages[0].parts if isinstance(part, UserPromptPart)]
    return json.dumps({"instructions": info.instructions, "prompt": str(first.content)})


async def test_the_input_fills_the_instructions_and_the_rest_goes_with_the_prompt(tmp_path: Path) -> None:
    shop = Workers(project(tmp_path, {"triage": ISSUE}), model=seeing(told))
    given = {"issue": {"title": "a < b"}, "names": ["ana", "bo"], "rest": "by friday"}
    said = json.loads((await run(shop, "triage", "Sort it.", given)).output)
    assert said["instructions"].strip() == "Look at a < b for ana bo"
    assert said["prompt"] == 'Sort it.\n\nInput:\n{\n  "rest": "by friday"\n}'


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (None, "'issue' is a required property"),
        ({"issue": 5}, "issue: 5 is not of type 'object'"),
    ],
)
def test_an_input_that_does_not_fit_is_refused_before_anything_runs(tmp_path: Path, given: Any, why: str) -> None:
    worker = Workers(project(tmp_path, {"triage": ISSUE}), model=saying("x")).worker("triage")
    with pytest.raises(WrongUse) as error:
        worker.run_options(given)
    assert why in str(error.value) and "triage.yaml" in str(error.value)
    with pytest.raises(WrongUse):
        worker.prompt("Go.", given)


def test_a_worker_without_input_takes_none(tmp_path: Path) -> None:
    worker = Workers(project(tmp_path, {"triage": "instructions: Hi."}), model=saying("x")).worker("triage")
    with pytest.raises(WrongUse, match="triage takes no input"):
        worker.run_options({"a": 1})


WRONG = {
    "a field that the input lacks": (
        "instructions: Look at {{isue}}.\ninput: {type: object, properties: {issue: {type: string}}}",
        "triage.yaml:1:15: instructions: the template names `isue`, which the worker's `input` does not have",
        "did you mean `issue`?",
    ),
    "a field without any input": (
        "instructions: Look at {{issue}}.",
        "triage.yaml:1:15: instructions: {{issue}} stands for a field of the worker's input, but it takes none",
        "input: {type: object, properties: {issue: {type: string}}}",
    ),
    "a template that is none": (
        "instructions: [Hello., 'Look at {{#each issue.']\ninput: {type: object, properties: {}}",
        "triage.yaml:1:24: instructions[1]: this template cannot be read",
        "fields are written {{field}}",
    ),
    "an unknown capability": (
        "capabilities: [Thinking, Cachin]",
        "triage.yaml:1:26: capabilities[1]: unknown capability `Cachin`",
        "did you mean `Caching`?",
    ),
    "a capability that is given the wrong things": (
        "capabilities: [{Thinking: {effrt: high}}]",
        "triage.yaml:1:15: capabilities: a capability cannot be made",
        "effrt",
    ),
    "an output that is no object": (
        "output: {type: string}",
        "triage.yaml:1:9: output: this should be a JSON schema of type `object`",
        "for example {type: object",
    ),
    "a misspelt toolset": (
        "toolsets: [reading, flies]",
        "triage.yaml:1:21: toolsets[1]: there is no toolset `flies`",
        "did you mean `files`?",
    ),
    "two tools with one name": (
        "toolsets: [reading, files]",
        "triage.yaml:1:21: toolsets[1]: `reading` and `files` both have a tool",
        "prefix",
    ),
    "two roles that answer": (
        "approvers: [ops, dev]",
        "triage.yaml:1:18: approvers[1]: only one role can answer for a worker",
        "one common role",
    ),
    "a model that is none": (
        "model: nobody:knows",
        "triage.yaml:1:8: model: the model 'nobody:knows' cannot be used",
        "nobody",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_worker_says_where_and_what_to_do(tmp_path: Path, case: str) -> None:
    text, what, fix = WRONG[case]
    model = None if text.startswith("model:") else saying("x")
    shop = Workers(project(tmp_path, {"triage": text}), model=model)
    with pytest.raises(WrongFile) as error:
        shop.worker("triage")
    assert what in str(error.value)
    assert fix in str(error.value)


def test_a_wrong_delegate_is_found_before_the_run(tmp_path: Path) -> None:
    workers = {
        "triage": "delegates: [middle]",
        "middle": "delegates: [leaf]",
        "leaf": "toolsets: [flies]",
    }
    shop = Workers(project(tmp_path, workers), model=saying("x"))
    with pytest.raises(WrongFile, match=r"leaf\.yaml:1:12: toolsets\[0\]: there is no toolset `flies`"):
        shop.worker("triage")


def test_without_a_model_the_error_says_how_to_name_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SIGNOFF_MODEL", raising=False)
    shop = Workers(project(tmp_path, {"triage": "instructions: Hi."}))
    with pytest.raises(WrongUse) as error:
        shop.worker("triage")
    assert all(way in str(error.value) for way in ("triage has no model", "--model", "signoff.yaml", "SIGNOFF_MODEL"))


async def test_the_model_is_the_given_one_then_its_own_then_the_projects(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    turns = {"own": "- say: its own", "project": "- say: the project's"}
    workers = {"named": "model: script:own.turns", "nameless": "instructions: Hi."}
    settings = project(tmp_path, workers, file="policy: []\nmodel: script:workers/project.turns\n", scripts=turns)
    assert (await run(Workers(settings), "named")).output == "its own"
    assert (await run(Workers(settings), "nameless")).output == "the project's"
    given = Workers(settings, model=saying("given"))
    assert (await run(given, "named")).output == "given"
    called = given.delegate("named")  # whoever names a model keeps it when it is called
    assert (await called.agent.run("Hi.", **called.run_options())).output == "its own"

    monkeypatch.setenv("SIGNOFF_MODEL", f"script:{tmp_path}/workers/own.turns")
    assert (await run(Workers(settings), "nameless")).output == "the project's"
    bare = project(tmp_path / "bare", {"nameless": "instructions: Hi."})
    assert (await run(Workers(bare), "nameless")).output == "its own"


async def test_an_answer_that_does_not_fit_the_schema_goes_back_to_the_model(tmp_path: Path) -> None:
    output = "output: {type: object, properties: {score: {type: integer, minimum: 1}}, required: [score]}"
    turns = (calling("final_result", score=0), calling("final_result"), calling("final_result", score=3))
    shop = Workers(project(tmp_path, {"judge": f"{output}\nretries: 3"}), model=saying(*turns))
    result = await run(shop, "judge")
    assert result.output == {"score": 3}
    back = [str(part.content) for one in result.all_messages() if isinstance(one, ModelRequest) for part in one.parts]
    assert any("0 is less than the minimum of 1" in text for text in back)
    assert any("'score' is a required property" in text for text in back)


@pytest.mark.mission("C2")
async def test_c2_a_worker_has_the_toolsets_it_names_and_no_others(tmp_path: Path) -> None:
    def offered(messages: list[ModelMessage], info: AgentInfo) -> str:
        return " ".join(sorted(tool.name for tool in info.function_tools)) or "nothing"

    settings = project(tmp_path, {"reader": "toolsets: [reading]", "writer": "toolsets: [files]", "none": "name: none"})
    shop = Workers(settings, model=seeing(offered))
    assert "read_file" in (await run(shop, "reader")).output
    assert "write_file" not in (await run(shop, "reader")).output
    assert "write_file" in (await run(shop, "writer")).output
    assert (await run(shop, "none")).output == "nothing"


async def test_attachments_come_from_the_worker_and_from_the_run(tmp_path: Path) -> None:
    settings = project(tmp_path, {"triage": "instructions: Hi.\nattachments: [../notes/style.md]"})
    (tmp_path / "notes" / "style.md").write_text("Be kind.\n")
    (tmp_path / "plot.png").write_bytes(b"\x89PNG\r\n\x1a\n\0\0")
    (tmp_path / "paper.pdf").write_bytes(b"%PDF-1.7\n\0\xff")
    worker = Workers(settings, model=saying("x")).worker("triage")
    text, style, plot, paper = worker.prompt("Sort it.", attachments=[tmp_path / "plot.png", tmp_path / "paper.pdf"])
    assert (text, style) == ("Sort it.", "The file style.md:\nBe kind.\n")
    assert isinstance(plot, BinaryContent) and (plot.media_type, plot.identifier) == ("image/png", "plot.png")
    assert isinstance(paper, BinaryContent) and paper.media_type == "application/pdf"
    assert (await worker.agent.run([text, style, plot, paper], **worker.run_options())).output == "x"


def test_an_attachment_that_cannot_be_given_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = project(tmp_path, {"triage": "instructions: Hi.\nattachments: [../notes/style.md]"})
    worker = Workers(settings, model=saying("x")).worker("triage")
    with pytest.raises(
        WrongFile, match=r"triage\.yaml:2:15: attachments\[0\]: the file .*style\.md cannot be attached"
    ):
        worker.prompt("Go.")
    (tmp_path / "notes" / "style.md").write_text("Be kind.")
    (tmp_path / "box.zip").write_bytes(b"PK\3\4\0\0")
    for path, why in (("missing.txt", "missing.txt cannot be attached: No such file"), ("box.zip", "neither text nor")):
        with pytest.raises(WrongUse, match=why):
            worker.prompt("Go.", attachments=[tmp_path / path])
    monkeypatch.setattr(prompts, "LARGEST_FILE", 4)
    with pytest.raises(WrongFile, match="is over 4 bytes"):
        worker.prompt("Go.")
    monkeypatch.setattr(prompts, "LARGEST_FILE", 8)
    monkeypatch.setattr(prompts, "LARGEST_ALL", 12)
    with pytest.raises(WrongUse, match="all attached files together are over 12 bytes"):
        worker.prompt("Go.", attachments=[tmp_path / "notes" / "style.md"])


def test_nothing_to_say_is_refused(tmp_path: Path) -> None:
    worker = Workers(project(tmp_path, {"triage": "instructions: Hi."}), model=saying("x")).worker("triage")
    with pytest.raises(WrongUse, match="the prompt for triage is empty"):
        worker.prompt("  ")


def test_variables_in_a_toolsets_config_are_secrets_of_the_gate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NOTES_DIRECTORY", "notes")
    file = "policy: []\ntoolsets: {files: {use: filesystem_rw, config: {root: '${NOTES_DIRECTORY}'}}}"
    worker = Workers(project(tmp_path, {"r": "toolsets: [files]"}, file=file), model=saying("x")).worker("r")
    assert "notes" in tuple(worker.gate.secrets)


@pytest.mark.mission("C8")
def test_c8_a_native_tool_comes_with_its_rules(tmp_path: Path) -> None:
    file = "policy: []\ntoolsets: {web: {use: native, config: {kind: web_search}, policy: [{allow: web_search}]}}"
    worker = Workers(project(tmp_path, {"r": "toolsets: [web]"}, file=file), model=saying("x")).worker("r")
    [tool] = [one.tool for one in worker.agent.root_capability.capabilities if isinstance(one, NativeTool)]
    assert isinstance(tool, WebSearchTool)
    [own] = worker.gate.native["web_search"]
    assert [rule.id for rule in own.rules] == ["web/rule-1"]


async def test_without_models_workers_can_be_looked_at(tmp_path: Path) -> None:
    worker = Workers(project(tmp_path, {"triage": "model: nobody:knows\ntoolsets: [files]"}), models=False).worker(
        "triage"
    )
    assert worker.agent.model is None
    assert worker.file.toolsets == ("files",)


TOOLS = """
import asyncio
from typing import Any
from pydantic_ai import RunContext
from pydantic_ai.toolsets import FunctionToolset, WrapperToolset

async def forever() -> str:
    await asyncio.Event().wait()
    return "never"

class Foreign(WrapperToolset[Any]):
    async def get_tools(self, ctx: RunContext[Any]) -> dict[str, Any]:
        from pydantic_ai.toolsets import ToolsetTool
        found = await self.wrapped.get_tools(ctx)
        return {n: ToolsetTool(toolset=self, tool_def=t.tool_def, max_retries=1, args_validator=t.args_validator)
                for n, t in found.items()}

    async def call_tool(self, name: str, tool_args: dict[str, Any], ctx: RunContext[Any], tool: Any) -> str:
        return await forever()

TOOLSETS = {"plain": FunctionToolset([forever]), "foreign": Foreign(FunctionToolset([forever]))}
"""


@pytest.mark.parametrize("toolset", ["plain", "foreign"])
async def test_tool_timeout_holds_for_the_tools_of_the_catalog(tmp_path: Path, toolset: str) -> None:
    settings = project(tmp_path, {"r": f"toolsets: [{toolset}]\ntool_timeout: 0.01"}, file="policy: [{allow: forever}]")
    (tmp_path / "toolsets.py").write_text(TOOLS)
    result = await run(Workers(settings, model=saying(calling("forever"), "Done.")), "r")
    assert result.output == "Done."
    assert "Timed out after 0.01 seconds." in str(result.all_messages())


async def test_the_rules_of_the_project_the_worker_and_the_caller_all_hold(tmp_path: Path) -> None:
    from signoff.policy.engine import Policy

    file = "policy: [{allow: write_file}, {allow: read_file}, {allow: list_files}]\n" + (
        "toolsets: {files: {use: filesystem_rw, config: {root: notes}}}"
    )
    worker = "toolsets: [files]\npolicy: [{deny: {tool: write_file, path: '**/b.txt'}, reason: not b}]"
    turns = [[calling("write_file", path=f"{name}.txt", content="x") for name in "abc"], "Done."]
    caller = Policy.from_rules(
        [{"deny": {"tool": "write_file", "path": "**/c.txt"}, "reason": "not c"}], name="caller", root=str(tmp_path)
    )
    shop = Workers(project(tmp_path, {"writer": worker}, file=file), model=saying(*turns), caller=(caller,))
    result = await run(shop, "writer")
    assert [path.name for path in (tmp_path / "notes").iterdir()] == ["a.txt"]
    told = " ".join(
        str(part.content) for one in result.all_messages() for part in one.parts if hasattr(part, "content")
    )
    assert "not b" in told and "not c" in told
