"""D1 to D6: a real agent defers its calls, somebody decides, the agent goes on, and the disk shows what ran."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest
from pydantic_ai import (
    Agent,
    ApprovalRequired,
    DeferredToolRequests,
    DeferredToolResults,
    RunContext,
    ToolApproved,
    ToolDenied,
)
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import FunctionModel
from tests import start

from signoff import (
    ApprovalDecision,
    ApprovalMemory,
    ApprovalRequest,
    SignoffError,
    build_approval_requests,
    collect_approvals,
    collect_approvals_sync,
    run_with_approval,
)
from signoff.testing import ScriptedModel, scripted_approver

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


def writer(directory: Path, *names: str) -> Agent[None, Any]:
    """An agent that writes a file for each name, all in one step, and may do so only once somebody agreed."""
    turns = [{"calls": [{"tool": "write", "args": {"name": one}} for one in names]}, {"say": "Done."}]
    agent: Agent[None, Any] = Agent(ScriptedModel(turns), output_type=[str, DeferredToolRequests])

    @agent.tool_plain(requires_approval=True)
    def write(name: str) -> str:
        """Write a file."""
        (directory / f"{name}.txt").write_text(name)
        return f"wrote {name}"

    return agent


def told(messages: list[ModelMessage]) -> list[str]:
    """What the model was told of its calls, in order."""
    parts = (part for message in messages for part in message.parts)
    return [str(part.content) for part in parts if isinstance(part, ToolReturnPart)]


def written(directory: Path) -> list[str]:
    return sorted(one.name for one in directory.glob("*.txt"))


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
    for said, reason in ((refused, "the answer was no"), (explained, "not on a Sunday")):
        assert json.loads(said) == {
            "error": "permission_denied",
            "tool": "write",
            "by": "approver",
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


# --- the values, and who fits ---


class Card:
    """Writes down the question, and answers as it is told."""

    def __init__(self, answer: ApprovalDecision) -> None:
        self.answer, self.request, self.mode = answer, None, ""

    def choose(self, request: ApprovalRequest, *, mode: Any) -> ApprovalDecision:
        self.request, self.mode = request, str(mode)
        return self.answer


@pytest.mark.mission("D1")
async def test_d1_the_question_holds_the_call_and_each_part_of_the_answer_has_its_effect(tmp_path: Path) -> None:
    agent: Agent[None, Any] = Agent(
        ScriptedModel([{"calls": [{"tool": "note", "args": {"text": "milk"}}]}, {"say": "{{last}}"}])
    )

    @agent.tool
    def note(ctx: RunContext[None], text: str) -> str:
        """Note something."""
        if not ctx.tool_call_approved:
            raise ApprovalRequired(metadata={"summary": f"Note {text}", "shelf": 3})
        (tmp_path / "note.txt").write_text(text)
        return "noted"

    card = Card(ApprovalDecision(approved=False, note="not today"))
    memory = ApprovalMemory(file=None)
    refused = await run_with_approval(agent, "Go on", approver=card, memory=memory)
    asked = card.request
    assert asked is not None and card.mode == "interactive"
    assert (asked.tool_name, dict(asked.args), asked.summary) == ("note", {"text": "milk"}, "Note milk")
    assert asked.metadata["shelf"] == 3
    made = [part for message in refused.all_messages() for part in message.parts if isinstance(part, ToolCallPart)]
    assert asked.tool_call_id == made[0].tool_call_id
    assert "not today" in refused.output and written(tmp_path) == []

    card.answer = ApprovalDecision(approved=True, edited_args={"text": "eggs"})
    assert (await run_with_approval(agent, "Go on", approver=card, memory=memory)).output == "noted"
    assert (tmp_path / "note.txt").read_text() == "eggs", "as it was edited"

    card.answer, card.request = ApprovalDecision(approved=True, remember="session"), None
    await run_with_approval(agent, "Go on", approver=card, memory=memory)
    assert card.request is not None, "neither a no nor an edit was to be remembered"
    card.request = None
    await run_with_approval(agent, "Go on", approver=card, memory=memory)
    assert card.request is None and (tmp_path / "note.txt").read_text() == "milk"
    with pytest.raises(ValueError, match="forever"):
        ApprovalDecision(approved=True, remember="forever")


class Later:
    """An async method: the answer comes when it comes."""

    async def choose(self, request: ApprovalRequest, *, mode: Any) -> ApprovalDecision:
        await asyncio.sleep(0)
        return ApprovalDecision(approved=request.args["name"] == "yes")


class Page:
    """A web handler: a question waits until a request over HTTP answers it."""

    def __init__(self) -> None:
        self.waiting: dict[str, asyncio.Future[bool]] = {}

    async def choose(self, request: ApprovalRequest, *, mode: Any) -> ApprovalDecision:
        answer = self.waiting[request.tool_call_id] = asyncio.get_running_loop().create_future()
        async with await asyncio.start_server(self._answers, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            async with httpx.AsyncClient() as somebody:
                word = "approve" if request.args["name"] == "yes" else "deny"
                await somebody.post(f"http://127.0.0.1:{port}/{request.tool_call_id}/{word}")
            return ApprovalDecision(approved=await answer)

    async def _answers(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        _, path, _ = (await reader.readline()).decode().split()
        _, call_id, word = path.split("/")
        self.waiting[call_id].set_result(word == "approve")
        writer.write(b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n")
        writer.close()


def by_function(request: ApprovalRequest) -> bool:
    return request.args["name"] == "yes"


class Plain:
    def choose(self, request: ApprovalRequest, *, mode: Any) -> ApprovalDecision:
        return ApprovalDecision(approved=by_function(request))


@pytest.mark.mission("D2")
@pytest.mark.parametrize(
    "ui",
    [Plain(), Later(), Page(), by_function, scripted_approver(["approve", "deny"])],
    ids=["plain", "async", "web", "function", "test double"],
)
async def test_d2_whatever_has_the_one_method_asks_the_person_and_the_answer_holds(tmp_path: Path, ui: Any) -> None:
    agent = writer(tmp_path, "yes", "no")
    assert (await run_with_approval(agent, "Go on", approver=ui)).output == "Done."
    assert written(tmp_path) == ["yes.txt"]


# --- what is remembered ---

SHOP = """\
import sys
from pydantic_ai import Agent
from signoff import ApprovalMemory, run_with_approval_sync
from signoff.testing import ScriptedModel, ScriptedApprover

first, second = sys.argv[1:]
agent = Agent(ScriptedModel([{"calls": [{"tool": "pay", "args": {"to": "ana", "amount": 2}},
                                        {"tool": "pay", "args": {"to": "ben", "amount": 2}},
                                        {"tool": "pay", "args": {"to": "eve", "amount": 2}}]}, {"say": "done"}]))

@agent.tool_plain(requires_approval=True)
async def pay(to: str, amount: float) -> str:
    print("paid", to)
    return "paid"

ui = ScriptedApprover([*(["always", "session", "approve"] if first == "first" else []), *["deny"] * 3])
memory = ApprovalMemory("grants.db")
for _ in range(int(second)):
    run_with_approval_sync(agent, "pay", approver=ui, memory=memory)
print("asked about", *(request.args["to"] for request in ui.asked))
"""


@pytest.mark.mission("D3")
def test_d3_session_lives_as_long_as_the_object_always_as_long_as_the_file_and_once_is_once(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(SHOP)

    def runs(*arguments: str) -> list[str]:
        command = [sys.executable, str(tmp_path / "shop.py"), *arguments]
        done = start.run(command, cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()

    paid = [f"paid {name}" for name in ("ana", "ben", "eve")]
    assert runs("first", "2") == [*paid, *paid[:2], "asked about ana ben eve eve"]
    assert runs("next", "1") == [paid[0], "asked about ben eve"], "in another process only always is left"


@pytest.mark.mission("D3")
@pytest.mark.parametrize(
    ("text", "covered"),
    [
        ('{"amount": 2, "to": "André"}', True),
        ('{"to":"André","amount":2.0}', True),
        ('{"to": "Andr\\u00e9", "amount": 2e0}', True),
        ('{"to": "André", "amount": 3}', False),
        ('{"to": "Andre", "amount": 2}', False),
    ],
)
async def test_d3_arguments_are_the_same_however_they_are_spelled(text: str, covered: bool) -> None:
    memory = ApprovalMemory(file=None)
    paid: list[float] = []

    async def run(args: str, *answers: str) -> int:
        turns = [ModelResponse([ToolCallPart("pay", args)]), ModelResponse([TextPart("done")])]
        agent = Agent(FunctionModel(lambda messages, info: turns.pop(0)))

        @agent.tool_plain(requires_approval=True)
        def pay(to: str, amount: float) -> str:
            paid.append(amount)
            return "paid"

        ui = scripted_approver(answers)
        await run_with_approval(agent, "Pay", approver=ui, memory=memory)
        return len(ui.asked)

    assert await run('{"to": "André", "amount": 2}', "session") == 1
    assert await run(text, "deny") == (0 if covered else 1)
    assert paid == ([2, 2] if covered else [2])


# --- what is asked, and in which mode ---


@pytest.mark.mission("D4")
async def test_d4_a_request_for_every_call_that_a_run_deferred_whatever_form_its_arguments_have() -> None:
    parts = [
        ToolCallPart("write", {"path": "a.txt"}, tool_call_id="1"),
        ToolCallPart("write", '{"path": "b.txt"}', tool_call_id="2"),
        ToolCallPart("guarded", '{"why": "it is big"}', tool_call_id="3"),
        ToolCallPart("guarded", {"why": ""}, tool_call_id="4"),
    ]
    agent = Agent(FunctionModel(lambda messages, info: ModelResponse(parts)), output_type=[str, DeferredToolRequests])

    @agent.tool_plain(requires_approval=True)
    def write(path: str) -> str:
        raise AssertionError("nobody approved it")

    @agent.tool
    def guarded(ctx: RunContext[None], why: str) -> str:
        raise ApprovalRequired(metadata={"reason": why, "path": "c.txt"} if why else {"path": "c.txt"})

    deferred = (await agent.run("Go on")).output
    assert isinstance(deferred, DeferredToolRequests)
    before = repr(deferred)
    first, second = build_approval_requests(deferred), build_approval_requests(deferred)
    assert [one.tool_call_id for one in first] == [one.tool_call_id for one in deferred.approvals]
    assert sorted((one.tool_call_id, dict(one.args), one.summary) for one in first) == [
        ("1", {"path": "a.txt"}, 'write(path="a.txt")'),
        ("2", {"path": "b.txt"}, 'write(path="b.txt")'),
        ("3", {"why": "it is big"}, "guarded: it is big (c.txt)"),
        ("4", {"why": ""}, "guarded c.txt"),
    ]
    assert repr(deferred) == before and [one.summary for one in second] == [one.summary for one in first]


@pytest.mark.mission("D6")
@pytest.mark.parametrize(
    ("mode", "asked", "files"),
    [("interactive", ["yes", "no"], ["yes.txt"]), ("auto_approve", [], ["no.txt", "yes.txt"]), ("auto_deny", [], [])],
)
async def test_d6_who_is_asked_and_what_runs_in_each_mode(
    tmp_path: Path, mode: str, asked: list[str], files: list[str]
) -> None:
    ui = scripted_approver(["approve", "deny"])
    await run_with_approval(writer(tmp_path, "yes", "no"), "Go on", approver=ui, mode=mode)
    assert ([request.args["name"] for request in ui.asked], written(tmp_path)) == (asked, files)
    with pytest.raises(SignoffError, match=r"sometimes.*must be one of"):
        await run_with_approval(writer(tmp_path, "yes"), "Go on", mode="sometimes")
