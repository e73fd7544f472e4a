"""D5: the decisions about everything that a run deferred, handed to a real agent, which goes on with them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import Agent, DeferredToolRequests, DeferredToolResults, ToolApproved, ToolDenied
from pydantic_ai.messages import ModelMessage, ToolReturnPart

from signoff import ApprovalDecision, ApprovalMemory, ApprovalRequest, collect_approvals, collect_approvals_sync
from signoff.testing import ScriptedModel

NAMES = ("plain", "edited", "refused", "explained")


class Person:
    """Somebody without a name, who answers by what is written."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def choose(self, request: ApprovalRequest, *, mode: Any) -> ApprovalDecision:
        name = str(request.args["name"])
        self.asked.append(name)
        match name:
            case "edited":
                return ApprovalDecision(approved=True, edited_args={"name": "other"})
            case "refused":
                return ApprovalDecision(approved=False)
            case "explained":
                return ApprovalDecision(approved=False, note="not on a Sunday")
            case _:
                return ApprovalDecision(approved=True)


def writer(folder: Path, *names: str) -> Agent[None, Any]:
    """An agent that writes a file for each name, all in one step, and may do so only once somebody agreed."""
    turns = [{"calls": [{"tool": "write", "args": {"name": one}} for one in names]}, {"say": "Done."}]
    agent: Agent[None, Any] = Agent(ScriptedModel(turns), output_type=[str, DeferredToolRequests])

    @agent.tool_plain(requires_approval=True)
    def write(name: str) -> str:
        """Write a file."""
        (folder / f"{name}.txt").write_text(name)
        return f"wrote {name}"

    return agent


def told(messages: list[ModelMessage]) -> list[str]:
    """What the model was told of its calls, in order."""
    parts = (part for message in messages for part in message.parts)
    return [str(part.content) for part in parts if isinstance(part, ToolReturnPart)]


def written(folder: Path) -> list[str]:
    return sorted(one.name for one in folder.glob("*.txt"))


@pytest.mark.mission("D5")
@pytest.mark.usefixtures("sync_loop")
def test_d5_every_pending_call_is_decided_in_one_pass_and_the_agent_goes_on_with_it(tmp_path: Path) -> None:
    agent, person = writer(tmp_path, *NAMES), Person()
    paused = agent.run_sync("Go on")
    assert written(tmp_path) == []
    results = collect_approvals_sync(paused.output, person)
    assert person.asked == list(NAMES) and isinstance(results, DeferredToolResults)
    kinds = [type(one) for one in results.approvals.values()]
    assert kinds == [ToolApproved, ToolApproved, ToolDenied, ToolDenied]
    done = agent.run_sync(message_history=paused.all_messages(), deferred_tool_results=results)
    assert done.output == "Done." and written(tmp_path) == ["other.txt", "plain.txt"]
    plain, edited, refused, explained = told(done.all_messages())
    assert (plain, edited) == ("wrote plain", "wrote other")
    for said, reason in ((refused, "a person looked at this call and said no"), (explained, "not on a Sunday")):
        assert json.loads(said) == {
            "error": "permission_denied",
            "tool": "write",
            "by": "person",
            "reason": reason,
            "retryable": False,
        }


@pytest.mark.mission("D5")
@pytest.mark.parametrize(("mode", "files"), [("auto_approve", ["one.txt", "two.txt"]), ("auto_deny", ["one.txt"])])
async def test_d5_memory_comes_before_the_mode_and_the_mode_before_the_person(
    tmp_path: Path, mode: str, files: list[str]
) -> None:
    class Remembers(Person):
        def choose(self, request: ApprovalRequest, *, mode: Any) -> ApprovalDecision:
            self.asked.append(str(request.args["name"]))
            return ApprovalDecision(approved=True, remember="session")  # type: ignore[arg-type]

    memory, person = ApprovalMemory(file=None), Remembers()
    first = await writer(tmp_path, "one").run("Go on")
    await collect_approvals(first.output, person, memory=memory)
    agent = writer(tmp_path, "one", "two")
    paused = await agent.run("Go on")
    results = await collect_approvals(paused.output, person, memory=memory, mode=mode)
    assert person.asked == ["one"], "nobody is asked in these modes, and what was remembered is not asked again"
    done = await agent.run(message_history=paused.all_messages(), deferred_tool_results=results)
    assert written(tmp_path) == files
    if mode == "auto_deny":
        assert json.loads(told(done.all_messages())[-1])["by"] == "mode"
