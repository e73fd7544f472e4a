"""`on_denied` in signoff.yaml and in worker files: whether a denial is told to the model, or ends the run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pydantic_ai import Agent
from tests.gate.agents import calls, returns
from tests.workers.project import calling, project, run, saying

from signoff import Signoff
from signoff.errors import ApprovalBlocked, PolicyError
from signoff.testing import ScriptedModel
from signoff.workers.project_workers import Workers

FILE = "policy: [{deny: write_file, reason: not here}]\n"
WRITES = calling("write_file", path="a.txt", content="x")


@pytest.mark.mission("W5")
@pytest.mark.parametrize(
    ("of_project", "of_worker", "raises"),
    [
        ("", "", False),
        ("on_denied: raise", "", True),
        ("on_denied: tell", "", False),
        ("", "on_denied: raise", True),
        ("on_denied: raise", "on_denied: tell", False),
        ("defaults: {worker: {on_denied: raise}}", "", True),
    ],
)
async def test_w5_a_file_says_whether_a_denial_ends_the_run(
    tmp_path: Path, of_project: str, of_worker: str, *, raises: bool
) -> None:
    workers = {"top": f"toolsets: [filesystem_rw]\n{of_worker}"}
    shop = Workers(project(tmp_path, workers, file=f"{FILE}{of_project}\n"), model=saying(WRITES, "Done."))
    if raises:
        with pytest.raises(ApprovalBlocked, match="not here"):
            await run(shop, "top")
        return
    result = await run(shop, "top")
    [content] = [content for _, content in returns(result.all_messages())]
    assert (result.output, json.loads(content)["reason"]) == ("Done.", "not here")


async def test_a_worker_that_ends_with_a_denial_is_a_denied_call_of_its_caller(tmp_path: Path) -> None:
    workers = {
        "top": "delegates: [leaf]",
        "leaf": "toolsets: [filesystem_rw]\non_denied: raise\nmodel: script:leaf.turns",
    }
    scripts = {"leaf": "- calls: [{tool: write_file, args: {path: a, content: x}}]\n- say: leaf"}
    turns = (calling("worker_call", worker="leaf", prompt="Go."), "Done.")
    shop = Workers(project(tmp_path, workers, file=FILE, scripts=scripts), model=saying(*turns))
    result = await run(shop, "top")
    [(outcome, content)] = returns(result.all_messages())
    assert (result.output, outcome) == ("Done.", "denied") and "not here" in content


@pytest.mark.parametrize(("option", "raises"), [(None, True), ("raise", True), ("tell", False)])
async def test_a_gate_that_reads_a_file_does_as_it_says(tmp_path: Path, option: str | None, *, raises: bool) -> None:
    (tmp_path / "signoff.yaml").write_text("policy: [{deny: pay, reason: never}]\non_denied: raise\n")
    gate = Signoff(tmp_path / "signoff.yaml", on_denied=option)  # type: ignore[arg-type]

    def pay() -> str:
        return "paid"

    agent = Agent(ScriptedModel([calls(("pay", {})), {"say": "done"}]), tools=[pay], capabilities=[gate])
    if raises:
        with pytest.raises(ApprovalBlocked, match="never"):
            await agent.run("go")
    else:
        assert (await agent.run("go")).output == "done"


def test_another_word_is_an_error_with_its_place(tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match=r"signoff\.yaml:2:12: on_denied"):
        project(tmp_path, {}, file="policy: []\non_denied: rise\n")
