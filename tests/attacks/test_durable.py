"""Attempts to run a call twice, to run another call than was approved, or to lose a run, by way of a kept run."""

from __future__ import annotations

import asyncio
import os
import shutil
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import anyio
import pytest
from pydantic_ai import Agent, DeferredToolRequests
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.toolsets import ExternalToolset, FunctionToolset
from tests.attacks.kept import ANA, YES, Place, Silent, falls_asleep, gated, paused, soon, turns
from tests.gate.agents import returns

from signoff import Signoff, SuspendedRun, resume
from signoff.broker import runs
from signoff.core.request import State
from signoff.core.run import RunState, SavedRun
from signoff.errors import AlreadySpent, RunOver, RunTaken
from signoff.store.memory_store import MemoryStore
from signoff.testing import FakeClock, ScriptedApprover

ASK = [{"ask": "pay"}]
PAY = turns(("pay", {"n": 1}))


class Bank:
    """A tool that takes as long as the test wants."""

    def __init__(self, *, slow: bool = False) -> None:
        self.paid: list[int] = []
        self.entered, self.go_on = asyncio.Event(), asyncio.Event()
        if not slow:
            self.go_on.set()

    async def pay(self, n: int) -> str:
        self.paid.append(n)
        self.entered.set()
        await self.go_on.wait()
        return f"paid {n}"


# --- one claim, one run ---


async def test_a_cancelled_attempt_does_not_take_the_claim_from_the_one_that_runs(place: Place) -> None:
    signoff, bank = Signoff(ASK, wait="suspend", store=MemoryStore()), Bank(slow=True)
    agent = gated(signoff, PAY, bank.pay)
    waits = SuspendedRun.of(await agent.run("go"))
    [request] = await signoff.pending()
    approved = await signoff.answer(request.id, YES, by="ana")
    first = asyncio.create_task(resume(agent, waits))
    await soon(bank.entered.wait())
    claiming = asyncio.Event()

    async def stuck(*_: Any, **__: Any) -> Any:
        claiming.set()
        await asyncio.Event().wait()

    signoff.broker.claim = stuck  # type: ignore[method-assign]
    signoff.broker.about = _as_it_was(approved)  # type: ignore[method-assign]
    second = asyncio.create_task(resume(agent, waits))
    await soon(claiming.wait())
    second.cancel()
    await asyncio.gather(second, return_exceptions=True)
    assert (await signoff.broker.get(request.id)).state is State.CLAIMED
    bank.go_on.set()
    assert (await first).output == "paid 1"
    assert bank.paid == [1]
    assert (await signoff.broker.get(request.id)).state is State.SUCCEEDED


def _as_it_was(request: Any) -> Any:
    async def about(_: str) -> Any:
        return request

    return about


async def test_only_the_attempt_that_has_the_claim_gives_it_back(place: Place) -> None:
    signoff = place.gate(ASK)
    await paused(signoff, gated(signoff, PAY, Bank().pay))
    [request] = await place.answer()
    broker = signoff.broker
    await broker.claim(request.id, token="winner")
    for attempt in ("loser", ""):
        broker.give_back(request.id, attempt)
        assert (await broker.get(request.id)).state is State.CLAIMED
    broker.give_back(request.id, "winner")
    assert (await broker.get(request.id)).state is State.APPROVED, "nothing ran on it, so nobody is asked again"
    await broker.claim(request.id, token="next")
    with pytest.raises(AlreadySpent):
        await broker.claim(request.id, token="another")


async def test_a_run_that_is_stopped_while_it_claims_leaves_the_approval_good(place: Place) -> None:
    signoff, bank = place.gate(ASK), Bank()
    agent = gated(signoff, PAY, bank.pay)
    await paused(signoff, agent)
    [request] = await place.answer()
    taken, claim = asyncio.Event(), signoff.broker.claim

    async def stopped(*args: Any, **options: Any) -> Any:
        await claim(*args, **options)
        taken.set()
        await asyncio.Event().wait()

    signoff.broker.claim = stopped  # type: ignore[method-assign]
    first = asyncio.create_task(resume(agent, request.run))
    await soon(taken.wait())
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)
    signoff.broker.claim = claim  # type: ignore[method-assign]
    await signoff.broker.store.flush()
    [status] = await signoff.broker.runs.list(going=True)
    assert [(one.id, one.state) for one in status.answered] == [(request.id, State.APPROVED)], "it can be resumed"
    assert bank.paid == []
    assert (await resume(agent, request.run)).output == "paid 1"
    assert bank.paid == [1]
    once = await signoff.broker.get(request.id)
    assert once.state is State.SUCCEEDED, "nobody was asked a second time"
    assert await signoff.pending() == []


async def test_two_resumes_in_one_process_one_goes_on(place: Place) -> None:
    signoff, bank, mailed = place.gate([*ASK, {"allow": "mail"}]), Bank(slow=True), []

    def mail(text: str) -> str:
        mailed.append(text)
        return "mailed"

    agent = gated(signoff, turns(("pay", {"n": 1}), ("mail", {"text": "{{last}}"})), bank.pay, mail)
    run = await paused(signoff, agent)
    await place.answer()
    first = asyncio.create_task(resume(agent, run))
    await soon(bank.entered.wait())
    with pytest.raises(RunTaken, match="executed by this process"):
        await resume(agent, run)
    other = place.gate([*ASK, {"allow": "mail"}])
    with pytest.raises(RunTaken, match="already being executed by process"):
        await resume(gated(other, PAY, bank.pay, mail), run)
    bank.go_on.set()
    assert (await first).output == "mailed"
    assert (bank.paid, mailed) == ([1], ["paid 1"])


async def test_a_run_that_waits_in_place_is_not_resumed_beside_itself(place: Place) -> None:
    signoff, bank = place.gate(ASK, wait="inline", approver=Silent()), Bank()
    asleep, agent = falls_asleep(signoff.broker), gated(signoff, PAY, bank.pay)
    waits = asyncio.create_task(agent.run("go"))
    await soon(asleep.wait())
    with pytest.raises(RunTaken, match="executed by this process"):
        await soon(resume(agent, (await signoff.pending())[0].run))
    await place.answer()
    assert (await soon(waits)).output == "paid 1"
    assert bank.paid == [1]


async def test_resuming_a_suspended_run_goes_on_with_the_kept_one(place: Place) -> None:
    signoff, bank = place.gate(ASK), Bank()
    agent = gated(signoff, PAY, bank.pay)
    saved = SuspendedRun.of(await agent.run("go")).to_json()
    [request] = await place.answer()
    other = place.gate(ASK)
    result = await resume(gated(other, PAY, bank.pay), SuspendedRun.from_json(saved))
    assert result.output == "paid 1"
    assert (await other.broker.runs.get(request.run)).state is RunState.DONE
    with pytest.raises(RunOver, match="done"):
        await resume(agent, SuspendedRun.from_json(saved))
    assert bank.paid == [1]


async def test_the_result_of_a_call_is_not_told_for_another_with_the_same_id(place: Place) -> None:
    paid: list[str] = []
    moment = datetime(2026, 1, 1, tzinfo=UTC)

    def model(messages: list[ModelMessage], _: Any) -> ModelResponse:
        turn = sum(isinstance(one, ModelResponse) for one in messages)
        if turn == 2:
            return ModelResponse(parts=[TextPart("done")])
        return ModelResponse(parts=[ToolCallPart("pay", {"to": ["ana", "bob"][turn]}, "c1")], timestamp=moment)

    def pay(to: str) -> str:
        paid.append(to)
        return f"paid {to}"

    signoff = place.gate(ASK, wait="inline", approver=ScriptedApprover(["approve", "approve"]))
    result = await Agent(FunctionModel(model), tools=[pay], capabilities=[signoff]).run("go")
    told = returns(result.all_messages())
    assert told[0] == ("success", "paid ana")
    assert told[1] == ("success", "paid bob") or told[1][0] == "denied"
    assert len(paid) == len([one for one, _ in told if one == "success"])


@pytest.mark.parametrize("happened", [True, False])
async def test_what_is_said_about_an_unknown_call_reaches_a_run_that_waits_in_place(
    place: Place, happened: bool
) -> None:
    signoff, bank = place.gate(ASK), Bank()
    run = await paused(signoff, gated(signoff, PAY, bank.pay))
    dies = place.gate(ASK, dies=True)
    [request] = await place.answer()
    await dies.broker.runs.take(run)
    await dies.broker.claim(request.id)
    waits = place.gate(ASK, wait=600.0, approver=Silent())
    asleep = falls_asleep(waits.broker)
    going = asyncio.create_task(resume(gated(waits, PAY, bank.pay), run))
    await soon(asleep.wait())
    assert (await signoff.broker.get(request.id)).state is State.UNKNOWN
    asleep.clear()
    await signoff.broker.tell(request.id, happened=happened, by=ANA)
    if not happened:
        while not await signoff.pending():  # it may look, and fall asleep again, before it asks
            await soon(asleep.wait())
            asleep.clear()
        assert bank.paid == [], "a fresh approval is needed"
        [again] = await place.answer()
        assert again.id != request.id
    result = await soon(going)
    [(outcome, content)] = returns(result.all_messages())
    assert outcome == "success"
    assert bank.paid == ([] if happened else [1])
    assert ("ana confirmed" in content) is happened


# --- what was approved is what runs ---


async def test_an_escalated_approval_holds_when_the_run_goes_on(place: Place) -> None:
    rule = {"ask": "pay", "by": "ops", "timeout": "10m", "on_timeout": "escalate", "escalate_to": "boss"}
    clock, bank = FakeClock(), Bank()
    signoff = place.gate([rule], clock=clock, people={"ana": ["ops"], "bob": ["boss"]})
    agent = gated(signoff, PAY, bank.pay)
    run = await paused(signoff, agent)
    clock.advance(timedelta(minutes=11))
    await signoff.broker.sweep()
    [request] = await signoff.pending()
    assert request.escalated
    await signoff.answer(request.id, YES, by="bob")
    assert (await resume(agent, run)).output == "paid 1"
    assert await signoff.pending() == []


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("toolset", "the toolset (it was staging)"),
        ("directory", "the directory its paths start from"),
        ("link", "where its paths lead"),
        ("nothing", ""),
    ],
)
async def test_an_approval_is_for_one_toolset_one_directory_and_where_paths_lead(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: str, said: str
) -> None:
    staging, production = tmp_path / "staging", tmp_path / "production"
    wiped: list[str] = []
    for directory in (staging, production):
        (directory / "out" / "data").mkdir(parents=True)

    def agent(toolset_id: str) -> tuple[Signoff, Agent[Any, Any]]:
        toolset: FunctionToolset[Any] = FunctionToolset(id=toolset_id)

        @toolset.tool_plain
        def wipe(path: str) -> str:
            wiped.append(os.path.realpath(path))
            return "wiped"

        signoff = place.gate([{"ask": {"tool": "wipe", "path": "**"}}])
        return signoff, gated(signoff, turns(("wipe", {"path": "out/data"})), toolsets=[toolset])

    monkeypatch.chdir(staging)
    run = await paused(*agent("staging"))
    [approved] = await place.answer()
    if change == "directory":
        monkeypatch.chdir(production)
    elif change == "link":
        shutil.rmtree(staging / "out")
        (staging / "out").symlink_to(production / "out")
    signoff, again = agent("production" if change == "toolset" else "staging")
    result = await resume(again, run)
    if not said:
        assert (result.output, wiped) == ("wiped", [str(staging / "out" / "data")])
        return
    assert wiped == []
    [asked] = await signoff.pending()
    assert asked.id != approved.id
    assert said in asked.changed[0] and "changed after the question; ana approved it" in asked.changed[0]


async def test_a_run_beside_the_kept_one_does_not_take_its_place(place: Place) -> None:
    signoff, bank = place.gate(ASK), Bank()
    checker = gated(signoff, [{"say": "all is well"}], name="checker")
    agent = gated(signoff, turns(("pay", {"n": 1}), ("pay", {"n": 2})), bank.pay, name="main")

    @agent.instructions
    async def checked() -> str:
        return (await checker.run("is all well?")).output

    run = await paused(signoff, agent)
    for paid in ([], [1]):
        [status] = await signoff.broker.runs.list()
        assert (status.run.id, status.word, status.run.prompt) == (run, "waiting", "go")
        assert bank.paid == paid
        await place.answer()
        result = await resume(agent, run)
    assert result.output == "paid 2"
    assert (await signoff.broker.runs.get(run)).state is RunState.DONE


# --- nothing keeps a run from others ---


async def test_a_resume_with_a_wrong_option_leaves_the_run_to_others(place: Place) -> None:
    signoff = place.gate(ASK)
    agent = gated(signoff, PAY, Bank().pay)
    run = await paused(signoff, agent)
    await place.answer()
    with pytest.raises(TypeError, match="depz"):
        await resume(agent, run, depz=1)
    await signoff.broker.store.flush()
    assert (await place.broker().runs.status(run)).word == "ready"
    other = place.gate(ASK)
    assert (await resume(gated(other, PAY, Bank().pay), run)).output == "paid 1"


@pytest.mark.parametrize("resumed", [False, True])
async def test_a_run_stopped_by_a_cancel_scope_is_left_to_others(place: Place, resumed: bool) -> None:
    rules = [{"ask": "pay"}]
    signoff = place.gate(rules, wait="inline", approver=Silent())
    agent, asleep = gated(signoff, PAY, Bank().pay), falls_asleep(signoff.broker)
    run = ""
    if resumed:
        first = place.gate(rules)
        run = await paused(first, gated(first, PAY, Bank().pay))
    with anyio.CancelScope() as scope:

        async def stops() -> None:
            await asleep.wait()
            scope.cancel()

        stopping = asyncio.create_task(stops())
        await (resume(agent, run) if resumed else agent.run("go"))
    await stopping
    await signoff.broker.store.flush()
    [status] = await place.broker().runs.list()
    assert status.word == "waiting"
    assert status.run.holder == ""
    await place.answer()
    other = place.gate(rules)
    assert (await resume(gated(other, PAY, Bank().pay), status.run.id)).output == "paid 1"


async def test_a_run_whose_taking_up_is_cancelled_is_left_to_others(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The write is under way when nobody waits for it any longer: it goes through, and is undone."""
    signoff = place.gate(ASK)
    agent = gated(signoff, PAY, Bank().pay)
    run = await paused(signoff, agent)
    await place.answer()
    entered, go_on, loop = asyncio.Event(), threading.Event(), asyncio.get_running_loop()
    real = runs._take

    def held(*given: Any) -> SavedRun:
        loop.call_soon_threadsafe(entered.set)
        assert go_on.wait(20)
        return real(*given)

    monkeypatch.setattr(runs, "_take", held)
    taking = asyncio.create_task(resume(agent, run))
    await soon(entered.wait())
    taking.cancel()
    await asyncio.gather(taking, return_exceptions=True)
    go_on.set()
    await signoff.broker.store.flush()
    assert (await place.broker().runs.status(run)).word == "ready"
    monkeypatch.undo()
    assert (await resume(agent, run)).output == "paid 1", "this process may take it up again, too"


async def test_a_taking_up_that_is_refused_takes_nothing_from_whoever_has_it(place: Place) -> None:
    holder, other = place.gate(ASK), place.gate(ASK)
    run = await paused(holder, gated(holder, PAY, Bank().pay))
    await place.answer()
    taken = await holder.broker.runs.take(run)
    for _ in range(2):
        with pytest.raises(RunTaken, match="already being executed by process"):
            await resume(gated(other, PAY, Bank().pay), run)
    await other.broker.store.flush()
    assert (await other.broker.runs.get(run)).holder == taken.holder
    await holder.broker.runs.put_down(run, taken.epoch)
    assert (await resume(gated(other, PAY, Bank().pay), run)).output == "paid 1"


async def test_a_run_that_waits_only_for_what_is_made_elsewhere_is_left_to_others(place: Place) -> None:
    ship = ToolDefinition(
        name="ship", parameters_json_schema={"type": "object", "properties": {"n": {"type": "integer"}}}
    )
    script = turns(("ship", {"n": 1}))
    signoff = place.gate([{"ask": "ship"}])
    agent = gated(signoff, script, toolsets=[ExternalToolset([ship])])
    run = await paused(signoff, agent)
    await place.answer()
    result = await resume(agent, run)
    assert isinstance(result.output, DeferredToolRequests)
    [call] = result.output.calls
    assert (await place.broker().runs.status(run)).word == "ready"
    other = gated(place.gate([{"ask": "ship"}]), script, toolsets=[ExternalToolset([ship])])
    done = await resume(other, run, calls={call.tool_call_id: "it is number 77"})
    assert done.output == "it is number 77"
