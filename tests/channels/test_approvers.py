"""The ready-made approvers: each made by a factory, each fits the one port, none approves by itself."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from pydantic_ai import DeferredToolRequests
from tests import start
from tests.gate.agents import Till, agent_with, pays

from signoff import ApprovalMemory, ApprovalMode, ApprovalRequest, Approver, Signoff, resume
from signoff.channels import headless_approver, terminal_approver, tui_approver
from signoff.errors import NobodyHere, WrongUse
from signoff.testing import scripted_approver

REQUEST = ApprovalRequest(tool_call_id="1", tool_name="pay", args={"amount": 5}, summary="pay 5")


@pytest.mark.mission("W6")
def test_w6_every_ready_made_approver_fits_the_port() -> None:
    screens = (terminal_approver(), tui_approver())
    for approver in (*screens, headless_approver(), headless_approver("park"), scripted_approver([])):
        assert isinstance(approver, Approver)
    for approver in screens:
        assert callable(approver.choose_all) and callable(approver.withdraw)


@pytest.mark.mission("W6")
@pytest.mark.parametrize(
    "make",
    [headless_approver, lambda how: terminal_approver(headless=how), lambda how: tui_approver(headless=how)],
    ids=["headless", "terminal", "tui"],
)
def test_w6_without_a_terminal_nothing_is_approved(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    decision = make("deny").choose(REQUEST, mode=ApprovalMode.INTERACTIVE)
    assert not decision.approved
    assert "no terminal" in decision.note
    with pytest.raises(NobodyHere):
        make("park").choose(REQUEST, mode=ApprovalMode.INTERACTIVE)
    with pytest.raises(WrongUse, match="'deny' or 'park'"):
        make("allow")


@pytest.mark.mission("W6")
def test_w6_the_full_screen_names_its_extra_and_nothing_else_needs_it() -> None:
    code = """
import sys
sys.modules["textual"] = None  # as if it were not installed
import signoff.channels
from signoff.errors import MissingExtra
signoff.channels.terminal_approver()
signoff.channels.headless_approver()
try:
    signoff.channels.tui_approver()
except MissingExtra as error:
    print(error)
"""
    told = start.fresh(code)
    assert told == ("The full-screen approver needs an extra that is not installed: pip install 'signoff[tui]'\n")


@pytest.mark.mission("W6")
async def test_w6_headless_denies_or_parks_a_real_run() -> None:
    till = Till()
    deny = Signoff([], approver=headless_approver("deny"), memory=ApprovalMemory(None))
    result = await agent_with(deny, pays(5), till).run("go")
    assert till.paid == []
    assert json.loads(result.output)["reason"] == "no terminal to ask at"

    park = Signoff([], approver=headless_approver("park"), memory=ApprovalMemory(None))
    agent = agent_with(park, pays(5, 6), till, suspends=True)
    paused = await agent.run("go")
    assert isinstance(paused.output, DeferredToolRequests)
    assert till.paid == []
    one, _ = await park.pending()
    await park.answer(one.id, scripted_approver(["approve"]).choose(one, mode=ApprovalMode.INTERACTIVE), by="ana")
    await resume(agent, paused)
    assert till.paid == [(5, "shop")]


async def test_an_approver_is_told_when_somebody_else_was_faster(monkeypatch: pytest.MonkeyPatch) -> None:
    """The terminal would go on asking about a settled request; it is told, with who and when."""
    monkeypatch.setattr("signoff.channels.approver._GRACE", 0.0)  # it does not end by itself
    told: list[tuple[str, str]] = []

    class Slow:
        def __init__(self) -> None:
            self.asked = asyncio.Event()

        async def choose(self, request: ApprovalRequest, *, mode: ApprovalMode) -> Any:
            self.asked.set()
            await asyncio.Event().wait()

        def withdraw(self, request_id: str, why: str) -> None:
            told.append((request_id, why))

    till, slow = Till(), Slow()
    signoff = Signoff([], approver=slow, memory=ApprovalMemory(None))
    running = asyncio.ensure_future(agent_with(signoff, pays(5), till).run("go"))
    await slow.asked.wait()
    [request] = await signoff.pending()
    await signoff.answer(
        request.id, scripted_approver(["approve"]).choose(request, mode=ApprovalMode.INTERACTIVE), by="ana"
    )
    await running
    assert till.paid == [(5, "shop")]
    assert told[0][0] == request.id
    assert "approved by ana at" in told[0][1]
