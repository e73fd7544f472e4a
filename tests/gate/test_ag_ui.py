"""AG-UI interrupts: the client's word is a vote of whoever is signed in, and the store decides what runs."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import Agent, DeferredToolRequests, DeferredToolResults

from signoff import Actor, ApprovalDecision, Signoff
from signoff.channels import take_interrupts
from signoff.core.call import Call
from signoff.core.request import ApprovalRequest
from signoff.errors import EditRefused, NotEntitled, UnknownRequest, WrongUse
from signoff.testing import ScriptedModel

ag_ui = pytest.importorskip("ag_ui.core", reason="no AG-UI here: .venv/bin/uv pip install ag-ui-protocol brings it")

ANA, BEN = Actor(name="ana", via="ag-ui"), Actor(name="ben", via="ag-ui")


class Shop:
    """An application with an agent behind AG-UI; a client's thread goes on where it was."""

    def __init__(self, directory: Path, *rules: dict[str, Any]) -> None:
        self.paid: list[int] = []
        self.signoff = Signoff([*rules], wait="suspend", store=f"sqlite:{directory / 'a.db'}")
        turns = [{"calls": [{"tool": "pay", "args": {"amount": 3}, "id": "c1"}]}, {"say": "done"}]
        self.agent = Agent(
            ScriptedModel(turns), name="shop", capabilities=[self.signoff], output_type=[str, DeferredToolRequests]
        )
        self.messages: list[Any] = [{"id": "m1", "role": "user", "content": "pay"}]
        self.thread = "t1"

        @self.agent.tool_plain
        def pay(amount: int) -> str:  # pyright: ignore[reportUnusedFunction]
            self.paid.append(amount)
            return "paid"

    async def sends(self, *answers: dict[str, Any], by: Actor | None = None) -> dict[str, Any]:
        """What the run ends with, after these answers; with nobody signed in, they are not taken as votes."""
        from pydantic_ai.ui.ag_ui import AGUIAdapter

        run_input = ag_ui.RunAgentInput.model_validate(
            {
                "threadId": self.thread,
                "runId": f"r{len(self.messages)}",
                "protocolVersion": "1.0",
                "state": {},
                "messages": self.messages,
                "tools": [],
                "context": [],
                "forwardedProps": {},
                "resume": list(answers),
            }
        )
        results = await take_interrupts(self.signoff, run_input, by=by) if by is not None else None
        adapter = AGUIAdapter(agent=self.agent, run_input=run_input)
        events = [event async for event in _events(adapter, results)]
        self.messages = [*self.messages, *_messages(events)]
        return events[-1]


async def _events(adapter: Any, results: DeferredToolResults | None) -> AsyncIterator[dict[str, Any]]:
    async for line in adapter.encode_stream(adapter.run_stream(deferred_tool_results=results)):
        if line.startswith("data: "):
            yield json.loads(line.removeprefix("data: "))


def _messages(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What a client makes of the events for the next request."""
    found: list[dict[str, Any]] = []
    for event in events:
        if event["type"] == "TOOL_CALL_START":
            call = {
                "id": event["toolCallId"],
                "type": "function",
                "function": {"name": event["toolCallName"], "arguments": '{"amount": 3}'},
            }
            found.append({"id": f"a{event['toolCallId']}", "role": "assistant", "toolCalls": [call]})
    return found


def yes(**more: Any) -> dict[str, Any]:
    return {"interruptId": "int-c1", "status": "resolved", "payload": {"approved": True, **more}}


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return Shop(tmp_path, {"ask": "pay"})


def interrupts(event: dict[str, Any]) -> list[str]:
    assert event["type"] == "RUN_FINISHED", event
    return [one["id"] for one in event["outcome"].get("interrupts", [])]


async def test_the_word_of_a_client_alone_runs_nothing(shop: Shop) -> None:
    assert interrupts(await shop.sends()) == ["int-c1"]
    assert interrupts(await shop.sends(yes())) == ["int-c1"], "nobody has voted"
    assert shop.paid == []


async def test_as_a_vote_of_whoever_is_signed_in_it_counts_once(shop: Shop) -> None:
    await shop.sends()
    assert interrupts(await shop.sends(yes(), by=ANA)) == []
    assert shop.paid == [3]
    [request] = await shop.signoff.requests_of("t1")
    assert request.state == "succeeded" and [str(one.by) for one in request.votes] == ["ana"]


async def test_a_no_reaches_the_model_with_its_reason(shop: Shop) -> None:
    await shop.sends()
    no = {"interruptId": "int-c1", "status": "resolved", "payload": {"approved": False, "reason": "too much"}}
    assert interrupts(await shop.sends(no, by=ANA)) == []
    [request] = await shop.signoff.requests_of("t1")
    assert shop.paid == [] and request.decision is not None and request.decision.note == "too much"


async def test_a_dialog_that_is_closed_is_a_no(shop: Shop) -> None:
    await shop.sends()
    await shop.sends({"interruptId": "int-c1", "status": "cancelled"}, by=ANA)
    [request] = await shop.signoff.requests_of("t1")
    assert request.state == "denied" and shop.paid == []


async def test_other_arguments_run_instead(shop: Shop) -> None:
    await shop.sends()
    await shop.sends(yes(editedArgs={"amount": 2}), by=ANA)
    assert shop.paid == [2]


async def test_what_was_edited_in_the_inbox_runs_once_the_client_goes_on(shop: Shop) -> None:
    await shop.sends()
    [request] = await shop.signoff.requests_of("t1")
    await shop.signoff.answer(request.id, ApprovalDecision(approved=True, edited_args={"amount": 1}), by=BEN)
    assert interrupts(await shop.sends(yes(editedArgs={"amount": 100}), by=ANA)) == []
    assert shop.paid == [1], "ben was faster"


async def test_where_two_have_to_agree_the_run_is_interrupted_again(tmp_path: Path) -> None:
    shop = Shop(tmp_path, {"ask": "pay", "quorum": 2})
    await shop.sends()
    assert interrupts(await shop.sends(yes(), by=ANA)) == ["int-c1"]
    assert interrupts(await shop.sends(yes(), by=ANA)) == ["int-c1"], "one person, twice"
    assert shop.paid == []
    assert interrupts(await shop.sends(yes(), by=BEN)) == []
    assert shop.paid == [3]


async def test_whoever_may_not_answer_is_told_so(tmp_path: Path) -> None:
    shop = Shop(tmp_path, {"ask": "pay", "by": "ops"})
    await shop.sends()
    with pytest.raises(NotEntitled):
        await shop.sends(yes(), by=ANA)
    with pytest.raises(EditRefused):
        await shop.sends(yes(editedArgs={"amount": "all"}), by=Actor(name="ana", roles=frozenset({"ops"})))
    assert shop.paid == []


async def test_what_somebody_else_decided_meanwhile_stands(shop: Shop) -> None:
    await shop.sends()
    [request] = await shop.signoff.requests_of("t1")
    await shop.signoff.answer(request.id, ApprovalDecision(approved=False, note="no"), by=BEN)
    assert interrupts(await shop.sends(yes(), by=ANA)) == []
    assert shop.paid == []


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        ({"interruptId": "int-c2", "status": "resolved", "payload": {"approved": True}}, UnknownRequest),
        ({"interruptId": "c1", "status": "resolved", "payload": {"approved": True}}, WrongUse),
        ({"interruptId": "int-c1", "status": "resolved", "payload": {"approved": 1}}, WrongUse),
        ({"interruptId": "int-c1", "status": "resolved", "payload": "yes"}, WrongUse),
        ({"interruptId": "int-c1", "status": "resolved"}, WrongUse),
        ({"interruptId": "int-c1", "status": "resolved", "payload": {"approved": True, "editedArgs": []}}, WrongUse),
    ],
)
async def test_what_is_no_answer_is_refused_and_nothing_is_taken(
    shop: Shop, answer: dict[str, Any], error: type[Exception]
) -> None:
    await shop.sends()
    with pytest.raises(error):
        await shop.sends(yes(), answer, by=ANA)
    [request] = await shop.signoff.requests_of("t1")
    assert request.state == "pending" and request.votes == ()


async def test_two_answers_to_one_question_are_none(shop: Shop) -> None:
    await shop.sends()
    for answers in ((yes(), {**yes(), "status": "cancelled"}), (yes(), yes(editedArgs={"amount": 2}))):
        with pytest.raises(WrongUse, match="is answered twice"):
            await shop.sends(*answers, by=ANA)
    [request] = await shop.signoff.requests_of("t1")
    assert request.state == "pending" and request.votes == () and shop.paid == []


async def test_a_call_that_the_client_rewrites_after_its_approval_is_asked_about_again(shop: Shop) -> None:
    await shop.sends()
    shop.messages[-1]["toolCalls"][0]["function"]["arguments"] = '{"amount": 300}'
    assert interrupts(await shop.sends(yes(), by=ANA)) == ["int-c1"], "it was approved for other arguments"
    assert shop.paid == [] and [one.votes for one in await shop.signoff.requests_of("t1")] == [(), ()]


async def test_a_call_that_the_client_shows_under_the_name_of_another_tool_is_not_approved(shop: Shop) -> None:
    await shop.sends()
    shop.messages[-1]["toolCalls"][0]["function"]["name"] = "drop"
    await shop.sends(yes(), by=ANA)
    assert shop.paid == [] and all(not one.votes for one in await shop.signoff.requests_of("t1"))


@pytest.mark.parametrize("shown", [None, "", "3", '{"amount": 3, "amount": 3}'])
async def test_an_answer_without_the_call_that_it_is_about_is_none(shop: Shop, shown: str | None) -> None:
    await shop.sends()
    if shown is None:
        del shop.messages[-1]
    else:
        shop.messages[-1]["toolCalls"][0]["function"]["arguments"] = shown
    if shown == "":  # a call without arguments, which is another one
        assert interrupts(await shop.sends(yes(), by=ANA)) == []
    else:
        with pytest.raises(WrongUse, match="do not have the call 'c1'"):
            await shop.sends(yes(), by=ANA)
    assert shop.paid == [] and all(not one.votes for one in await shop.signoff.requests_of("t1"))


async def test_the_same_answer_sent_again_runs_nothing_again(shop: Shop) -> None:
    await shop.sends()
    waiting = list(shop.messages)
    await shop.sends(yes(), by=ANA)
    shop.messages = waiting
    await shop.sends(yes(), by=ANA)
    await shop.sends(yes(), by=BEN)
    assert shop.paid == [3]


@pytest.mark.parametrize("path", ["", "delegate-1/c1"])
async def test_only_what_a_client_was_shown_as_an_interrupt_can_be_answered_as_one(shop: Shop, path: str) -> None:
    """Not what another program asks on the same store, nor a call of an agent inside another call."""
    call = Call(tool="Bash", args={"command": "x"}, call_id="c1", run_id="r0", conversation_id="mcp:desktop", path=path)
    [request] = await shop.signoff.broker.open(
        [ApprovalRequest(tool_call_id="c1", tool_name="Bash", args=call.args, call=call)]
    )
    shop.thread = "mcp:desktop"
    with pytest.raises(UnknownRequest):
        await shop.sends(yes(), by=ANA)
    assert (await shop.signoff.broker.get(request.id)).votes == ()


async def test_an_answer_without_a_thread_is_none(shop: Shop) -> None:
    call = Call(tool="pay", args={"amount": 3}, call_id="c1", run_id="r0", path="c1")
    request = ApprovalRequest(tool_call_id="c1", tool_name="pay", args=call.args, call=call)
    [request] = await shop.signoff.broker.open([request])
    shop.thread = ""
    with pytest.raises(WrongUse, match="has to name its thread"):
        await shop.sends(yes(), by=ANA)
    assert (await shop.signoff.broker.get(request.id)).votes == ()
