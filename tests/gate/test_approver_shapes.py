"""What fits no approver is refused when it is given, wherever it is given; a function that requires `mode` gets it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from pydantic_ai import Agent, DeferredToolRequests
from pydantic_ai.messages import ToolCallPart
from tests.gate.agents import calls

from signoff import (
    ApprovalDecision,
    ApprovalMemory,
    ApprovalMode,
    ApprovalRequest,
    Signoff,
    collect_approvals,
    run_with_approval,
)
from signoff.channels.approver import ApproverChannel
from signoff.errors import WrongUse
from signoff.testing import ScriptedApprover, ScriptedModel


class WithoutMode:
    def choose(self, request: ApprovalRequest) -> bool:
        return True


class Nothing:
    def choose(self) -> bool:
        return True


class AllWithoutMode(ScriptedApprover):
    def choose_all(self, requests: Any) -> Any:
        return []


class Theirs:
    class ApprovalDecision:
        approved = True


ApprovalDecisionOfTheirs: Any = Theirs.ApprovalDecision


def theirs(request: Any) -> ApprovalDecisionOfTheirs:
    return ApprovalDecisionOfTheirs()


WRONG: dict[str, tuple[Any, str]] = {
    "a class": (ScriptedApprover, r"it is a class; give an object of it: ScriptedApprover\(…\)"),
    "choose without mode": (WithoutMode(), r"`choose` takes .*; write `def choose\(self, request, \*, mode\)`"),
    "choose of nothing": (Nothing(), r"`choose` takes "),
    "choose_all without mode": (AllWithoutMode([]), r"`choose_all` takes .*; write `def choose_all\(self, requests,"),
    "a function of nothing": (lambda: True, r"a function of the request, as in `def ask\(request\)`; it takes \(\)"),
    "a function of two": (lambda request, other: True, "a function of the request"),
    "a function that wants more": (lambda request, *, who: True, "a function of the request"),
    "written for another library": (
        theirs,
        "written for the ApprovalDecision of .*; import ApprovalDecision from signoff",
    ),
    "a number": (3, "it must be an object with `choose`, or a function of the request, not an int"),
}


@pytest.mark.mission("D11")
@pytest.mark.parametrize(("approver", "why"), WRONG.values(), ids=WRONG)
async def test_d11_an_approver_of_a_wrong_shape_is_refused_when_it_is_given(approver: Any, why: str) -> None:
    nothing = DeferredToolRequests()  # nobody would be asked
    agent = Agent(ScriptedModel([{"say": "done"}]))
    with pytest.raises(WrongUse, match=why):
        Signoff([], approver=approver)
    with pytest.raises(WrongUse, match=why):
        await collect_approvals(nothing, approver)
    with pytest.raises(WrongUse, match=why):
        await run_with_approval(agent, "go", approver=approver)
    with pytest.raises(WrongUse, match=why):
        ApproverChannel(approver)


def by_keyword(request: ApprovalRequest, *, mode: ApprovalMode) -> bool:
    return mode is ApprovalMode.INTERACTIVE


def by_position(request: ApprovalRequest, mode: ApprovalMode) -> bool:
    return mode is ApprovalMode.INTERACTIVE


async def later(request: ApprovalRequest, *, mode: ApprovalMode) -> ApprovalDecision:
    return ApprovalDecision(approved=mode is ApprovalMode.INTERACTIVE)


def with_default(request: ApprovalRequest, mode: str = "mine") -> bool:
    return mode == "mine"


def anything(*given: Any, **more: Any) -> bool:
    return len(given) == 1 and not more


class Callable_:
    def __call__(self, request: ApprovalRequest) -> bool:
        return True


RIGHT: list[Callable[..., Any]] = [
    by_keyword,
    by_position,
    later,
    with_default,
    anything,
    Callable_(),
    partial(by_position, mode=ApprovalMode.INTERACTIVE),
    lambda mode: True,
]


@pytest.mark.mission("D11")
@pytest.mark.parametrize("approver", RIGHT, ids=[str(number) for number in range(len(RIGHT))])
async def test_d11_a_function_gets_the_request_and_the_mode_if_it_requires_one(approver: Any) -> None:
    results = await collect_approvals(DeferredToolRequests(approvals=[ToolCallPart("pay", {}, "a")]), approver)
    assert getattr(results.approvals["a"], "kind", "") == "tool-approved"

    def pay() -> str:
        return "paid"

    gate = Signoff([], approver=approver, memory=ApprovalMemory(file=None))
    agent = Agent(ScriptedModel([calls(("pay", {})), {"say": "{{last}}"}]), tools=[pay], capabilities=[gate])
    assert (await agent.run("go")).output == "paid"


async def test_an_answer_of_another_library_is_told_apart_from_ours() -> None:
    def untyped(request):  # type: ignore[no-untyped-def]
        return ApprovalDecisionOfTheirs()

    requests = DeferredToolRequests(approvals=[ToolCallPart("pay", {}, "a")])
    with pytest.raises(WrongUse, match=rf"True or False, not the one of {__name__}"):
        await collect_approvals(requests, untyped)  # pyright: ignore[reportArgumentType]
