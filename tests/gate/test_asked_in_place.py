"""Who is asked while a run waits: any object with `choose`, or a function, is a channel that the run itself runs."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import pytest
from tests import start
from tests.gate.agents import ASK_ALL, Till, agent_with, pays

from signoff import (
    Actor,
    ApprovalDecision,
    ApprovalMemory,
    ApprovalRequest,
    Signoff,
    collect_approvals,
    run_with_approval,
)
from signoff.channels.approver import UNNAMED
from signoff.core.decision import Ending, Remember
from signoff.core.mode import ApprovalMode
from signoff.core.request import State
from signoff.errors import NotEntitled, WrongUse
from signoff.testing import FakeClock
from signoff.testing.office import soon

YES, NO = ApprovalDecision(approved=True), ApprovalDecision(approved=False)


@pytest.fixture
def till() -> Till:
    return Till()


def gate(approver: Any, rules: Any = ASK_ALL, **options: Any) -> Signoff:
    return Signoff(rules, approver=approver, memory=ApprovalMemory(file=None), **options)


# --- functions ---


def plain(request: ApprovalRequest) -> ApprovalDecision:
    return ApprovalDecision(approved=request.args["amount"] < 10, note="too much")


async def awaited(request: ApprovalRequest) -> ApprovalDecision:
    await asyncio.sleep(0)
    return plain(request)


def under_ten(request: ApprovalRequest) -> bool:
    return request.args["amount"] < 10


@pytest.mark.parametrize("approver", [plain, awaited, under_ten, lambda request: awaited(request)])
async def test_a_function_of_the_request_is_an_approver(till: Till, approver: Any) -> None:
    result = await agent_with(gate(approver), pays(5, 50), till).run("go")
    assert till.paid == [(5, "shop")]
    assert "denied" in result.output


@pytest.mark.parametrize("returned", [None, "yes", 1, object()])
async def test_what_is_no_decision_approves_nothing(till: Till, returned: object) -> None:
    with pytest.raises(WrongUse, match="an approver returns an ApprovalDecision, True or False, not"):
        await agent_with(gate(lambda request: returned), pays(5), till).run("go")
    assert till.paid == []


async def test_a_function_is_asked_by_run_with_approval_too(till: Till) -> None:
    agent = agent_with(gate(lambda request: NO), pays(5), till)
    await run_with_approval(agent, "go", approver=under_ten)
    assert till.paid == [(5, "shop")]


async def test_a_function_is_asked_where_there_is_no_gate() -> None:
    from pydantic_ai.messages import ToolCallPart
    from pydantic_ai.tools import DeferredToolRequests, ToolApproved, ToolDenied

    parts = [ToolCallPart("pay", {"amount": amount}, f"c{amount}") for amount in (5, 50)]
    results = await collect_approvals(DeferredToolRequests(approvals=parts), under_ten)
    assert isinstance(results.approvals["c5"], ToolApproved)
    assert isinstance(results.approvals["c50"], ToolDenied)


async def test_what_a_function_raises_ends_the_run(till: Till) -> None:
    answers: Iterator[ApprovalDecision] = iter([YES])
    with pytest.raises(RuntimeError, match="raised StopIteration"):
        await agent_with(gate(lambda request: next(answers)), pays(5, 6), till).run("go")
    assert till.paid in ([], [(5, "shop")])


async def test_an_approver_that_failed_is_asked_nothing_more(till: Till) -> None:
    asked: list[ApprovalRequest] = []

    def approver(request: ApprovalRequest) -> bool:
        asked.append(request)
        raise LookupError("no such person")

    with pytest.raises(LookupError, match="no such person"):
        await agent_with(gate(approver), pays(5, 6, 7), till).run("go")
    assert len(asked) == 1 and till.paid == []


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("it has no words")


class Grave(BaseException):
    """As `pytest.fail` raises."""


@pytest.mark.parametrize("error", [Grave("it"), Unspeakable(), NotEntitled("no approver for this tenant")], ids=type)
async def test_whatever_an_approver_raises_ends_the_run(till: Till, error: BaseException) -> None:
    def approver(request: ApprovalRequest) -> bool:
        raise error

    with pytest.raises(type(error)):
        async with asyncio.timeout(start.PATIENCE):
            await agent_with(gate(approver), pays(5, 6), till).run("go")
    assert till.paid == []


async def test_a_memory_that_fails_while_a_question_waits_ends_the_run(till: Till) -> None:
    class Torn(ApprovalMemory):
        lookups = 0

        def lookup(self, call: Any) -> Any:
            self.lookups += 1
            if self.lookups > 2:  # both were looked up before anybody was asked
                raise OSError("the file is torn")
            return None

    made = Signoff(ASK_ALL, approver=lambda request: YES, memory=Torn(file=None))
    with pytest.raises(OSError, match="torn"):
        async with asyncio.timeout(start.PATIENCE):
            await agent_with(made, pays(5, 6), till).run("go")


async def test_a_decision_that_ran_out_of_time_is_a_no_of_its_approver(till: Till) -> None:
    late = ApprovalDecision(approved=False, note="nobody reacted in my form", ending=Ending.EXPIRED)
    result = await agent_with(gate(lambda request: late), pays(5), till).run("go")
    assert "nobody reacted in my form" in result.output


async def test_what_the_tool_said_need_not_be_copied_where_there_is_no_gate() -> None:
    from pydantic_ai.messages import ToolCallPart
    from pydantic_ai.tools import DeferredToolRequests, ToolApproved

    said = {"c": {"lock": threading.Lock()}}
    deferred = DeferredToolRequests(approvals=[ToolCallPart("pay", {}, "c")], metadata=said)
    results = await collect_approvals(deferred, lambda request: "lock" in request.metadata)
    assert isinstance(results.approvals["c"], ToolApproved)


async def test_who_answered_is_on_record_as_the_approver_said_it(till: Till) -> None:
    made = gate(lambda request: ApprovalDecision(approved=True, by=Actor(name="ana")))
    await agent_with(made, pays(5), till).run("go")
    unnamed = gate(under_ten)
    await agent_with(unnamed, pays(5), till).run("go")
    by: list[Actor | None] = []
    for one in (made, unnamed):
        [request] = await one.broker.store.read(lambda tx: tx.past.recent(limit=5))
        assert request.decision is not None
        by.append(request.decision.by)
    assert by == [Actor(name="ana"), UNNAMED]


async def test_a_plain_approver_sees_the_context_of_the_run(till: Till) -> None:
    tenant: ContextVar[str] = ContextVar("tenant")
    tenant.set("acme")
    seen: list[str] = []

    def approver(request: ApprovalRequest) -> bool:
        seen.append(tenant.get())
        assert threading.current_thread() is not threading.main_thread()
        return True

    await agent_with(gate(approver), pays(5), till).run("go")
    assert seen == ["acme"]


async def test_an_approver_cannot_change_what_it_is_asked_about(till: Till) -> None:
    shown: list[int] = []

    def approver(request: ApprovalRequest) -> ApprovalDecision:
        shown.append(request.args["amount"])
        request.args["amount"] = 5_000  # type: ignore[index]
        refused = {"amount": "plenty", "to": "shop"} if not request.problem else None
        return ApprovalDecision(approved=True, edited_args=refused)

    await agent_with(gate(approver), pays(5), till).run("go")
    assert shown == [5, 5]
    assert till.paid == [(5, "shop")]


# --- several at once ---


class Clerk:
    """Decides what lies before it together, and is told what was settled elsewhere."""

    def __init__(self, decide: Callable[[ApprovalRequest], ApprovalDecision]) -> None:
        self.decide = decide
        self.sittings: list[list[ApprovalRequest]] = []

    def choose(self, request: ApprovalRequest, *, mode: ApprovalMode) -> ApprovalDecision:
        return self.choose_all([request], mode=mode)[0]

    def choose_all(self, requests: Any, *, mode: ApprovalMode) -> list[ApprovalDecision]:
        self.sittings.append(list(requests))
        return [self.decide(request) for request in requests]


async def test_several_are_decided_together_and_only_what_was_refused_is_asked_again(till: Till) -> None:
    def decide(request: ApprovalRequest) -> ApprovalDecision:
        if request.problem:
            return NO
        edited = {"amount": "plenty", "to": "shop"} if request.args["amount"] == 6 else None
        return ApprovalDecision(approved=True, edited_args=edited)

    clerk = Clerk(decide)
    await agent_with(gate(clerk), pays(5, 6, 7), till).run("go")
    assert [[request.args["amount"] for request in sitting] for sitting in clerk.sittings] == [[5, 6, 7], [6]]
    assert sorted(till.paid) == [(5, "shop"), (7, "shop")]


async def test_who_decides_together_is_not_overruled_by_what_they_said_to_remember(till: Till) -> None:
    """The same call twice in one sitting: the answer to the first is remembered, the second was denied all the same."""
    answers = iter([ApprovalDecision(approved=True, remember="session"), NO])  # type: ignore[arg-type]
    clerk = Clerk(lambda request: next(answers))
    await agent_with(gate(clerk), pays(5, 5), till).run("go")
    assert till.paid == [(5, "shop")]


async def test_what_an_answer_before_it_covers_is_not_asked(till: Till) -> None:
    asked: list[ApprovalRequest] = []

    def once(request: ApprovalRequest) -> ApprovalDecision:
        asked.append(request)
        return ApprovalDecision(approved=True, remember="session")  # type: ignore[arg-type]

    await agent_with(gate(once), pays(5, 5, 6), till).run("go")
    assert [request.args["amount"] for request in asked] == [5, 6]
    assert sorted(till.paid) == [(5, "shop"), (5, "shop"), (6, "shop")]


@pytest.mark.parametrize("approved", [True, False])
async def test_what_somebody_elsewhere_said_to_remember_covers_what_waits_in_line(till: Till, approved: bool) -> None:
    asked: list[ApprovalRequest] = []

    async def approver(request: ApprovalRequest) -> bool:
        asked.append(request)
        return not approved if len(asked) > 1 else await asyncio.get_running_loop().create_future()

    made = gate(approver)
    running = asyncio.ensure_future(agent_with(made, pays(5, 5), till).run("go"))
    await soon(lambda: len(asked) == 1, "nobody is asked")
    decision = ApprovalDecision(approved=approved, remember=Remember.SESSION)
    await made.answer(asked[0].id, decision, by=Actor(name="ana"))
    await running
    assert len(asked) == 1 and till.paid == ([(5, "shop")] * 2 if approved else [])


class Slow:
    """An approver that waits for what it is told, and a judge who takes their time over an edit."""

    def __init__(self) -> None:
        self.asked: list[ApprovalRequest] = []
        self.withdrawn: list[str] = []
        self.judging, self.goes_on = asyncio.Event(), asyncio.Event()

    async def choose(self, request: ApprovalRequest, *, mode: ApprovalMode) -> ApprovalDecision:
        self.asked.append(request)
        return ApprovalDecision(approved=True, edited_args={**request.args, "to": "mallory"})

    def withdraw(self, request_id: str, why: str) -> None:
        self.withdrawn.append(request_id)

    async def judge(self, call: Any, ctx: Any) -> str:
        if call.args.get("to") == "mallory":
            self.judging.set()
            await self.goes_on.wait()
            return "deny"
        return "ask"


@pytest.mark.parametrize("how", ["elsewhere", "cancelled"])
async def test_an_edit_that_is_refused_late_is_not_asked_about_again(till: Till, how: str) -> None:
    slow = Slow()
    made = gate(slow, judge=slow.judge)
    running = asyncio.ensure_future(agent_with(made, pays(5), till).run("go"))
    await asyncio.wait_for(slow.judging.wait(), start.PATIENCE)
    if how == "elsewhere":
        [request] = await made.pending()
        await made.answer(request.id, NO, by=Actor(name="ana"))
    else:
        running.cancel()
        await asyncio.wait([running], timeout=start.PATIENCE)
    slow.goes_on.set()
    await asyncio.wait([running], timeout=start.PATIENCE)
    assert running.done()
    others = {task for task in asyncio.all_tasks() if task is not asyncio.current_task()}
    if others:
        await asyncio.wait(others, timeout=start.PATIENCE)
    assert len(slow.asked) == 1 and till.paid == []


async def test_an_approver_that_fails_to_be_told_keeps_nobody_waiting(till: Till) -> None:
    class Away(Slow):
        async def choose(self, request: ApprovalRequest, *, mode: ApprovalMode) -> ApprovalDecision:
            self.asked.append(request)
            return await asyncio.get_running_loop().create_future()

        def withdraw(self, request_id: str, why: str) -> None:
            raise ConnectionError("the chat is down")

    told: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: told.append(context))
    away = Away()
    made = gate(away)
    running = asyncio.ensure_future(agent_with(made, pays(5), till).run("go"))
    await soon(lambda: len(away.asked) == 1, "nobody is asked")
    await made.answer(away.asked[0].id, YES, by=Actor(name="ana"))
    await asyncio.wait_for(running, start.PATIENCE)
    assert till.paid == [(5, "shop")]
    assert {type(one["exception"]) for one in told} == {ConnectionError}


async def test_an_approver_without_an_answer_leaves_only_its_own_question_open(till: Till) -> None:
    cancelled = ApprovalDecision(approved=False, ending=Ending.CANCELLED)
    made = gate(lambda request: cancelled if request.args["amount"] == 5 else YES, wait=60, clock=FakeClock())
    running = asyncio.ensure_future(agent_with(made, pays(5, 6), till).run("go"))

    async def one_waits() -> bool:
        return [one.args["amount"] for one in await made.pending()] == [5] and not running.done()

    await soon(one_waits, "the other one is not approved")
    [first] = await made.pending()
    await made.answer(first.id, NO, by=Actor(name="ana"))
    await running
    assert till.paid == [(6, "shop")]


async def test_who_may_not_answer_is_told_once_and_then_left_alone(till: Till) -> None:
    asked: list[str] = []

    def approver(request: ApprovalRequest) -> bool:
        asked.append(request.problem)
        return True

    rules = [{"ask": "*", "by": "ops"}]
    made = gate(approver, rules, wait=60, people={"ana": ["ops"]}, clock=FakeClock())
    running = asyncio.ensure_future(agent_with(made, pays(5), till).run("go"))
    await soon(lambda: len(asked) == 2, "it is not told why")
    [request] = await made.pending()
    assert request.state is State.PENDING
    await made.answer(request.id, YES, by=Actor(name="ana"))
    await running
    assert till.paid == [(5, "shop")]
    assert len(asked) == 2 and asked[0] == "" and "ops" in asked[1]


# --- nobody keeps a program from ending ---

_STUCK = """
import asyncio, threading
from pydantic_ai import Agent
from pydantic_ai.models.test import TestModel
from signoff import Actor, ApprovalDecision, Signoff

asked = threading.Event()

def approver(request):
    asked.set()
    threading.Event().wait()  # somebody who never answers

gate = Signoff([{"ask": "*"}], approver=approver)
agent = Agent(TestModel(call_tools=["pay"], custom_output_text="done"), capabilities=[gate])

@agent.tool_plain
def pay(amount: int) -> str:
    return "paid"

async def main():
    running = asyncio.ensure_future(agent.run("Pay."))
    await asyncio.to_thread(asked.wait)
    [request] = await gate.pending()
    await gate.answer(request.id, ApprovalDecision(approved=True), by=Actor(name="ana"))
    print((await running).output)

asyncio.run(main())
"""


_TOLD = _STUCK.replace(
    "gate = Signoff(",
    """
from signoff.channels import approver as channel
channel._GRACE = 0.05  # it takes longer than anybody waits for it

class Person:
    def __init__(self):
        self.gone = threading.Event()

    def choose(self, request, *, mode):
        asked.set()
        self.gone.wait()
        threading.Event().wait(0.3)  # a terminal is put right, an editor closed
        print("put right", flush=True)
        return False

    def withdraw(self, request_id, why):
        self.gone.set()

approver = Person()
gate = Signoff(""",
)


def test_an_approver_that_can_be_told_comes_to_its_end(tmp_path: Path) -> None:
    """Otherwise a terminal would be left as it was in the middle of a question, with what comes next in it."""
    script = tmp_path / "told.py"
    script.write_text(_TOLD)
    command = [sys.executable, str(script)]
    done = start.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=start.PATIENCE)
    assert (done.returncode, sorted(done.stdout.split("\n"))) == (0, ["", "done", "put right"]), done.stderr


def test_a_program_ends_though_its_approver_never_answers(tmp_path: Path) -> None:
    script = tmp_path / "stuck.py"
    script.write_text(_STUCK)
    command = [sys.executable, str(script)]
    done = start.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=start.PATIENCE)
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr
