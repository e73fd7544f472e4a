"""Attempts to go on after somebody stopped a run, or everything."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import Agent
from tests.attacks.kept import Place, gated, paused, turns
from tests.gate.agents import calls

import signoff.processes as holder
from signoff import Signoff, resume
from signoff.core.request import State
from signoff.core.run import SavedRun
from signoff.errors import Halted, RunOver, RunTaken
from signoff.gate.run_saver import executing
from signoff.testing import FakeClock, ScriptedModel

ROOT = Path(__file__).parents[2]


class Steps:
    """Tools that count, and have something happen elsewhere during the first step."""

    def __init__(self, meanwhile: Any) -> None:
        self.made: list[int] = []
        self._meanwhile = meanwhile

    async def step(self, n: int) -> str:
        self.made.append(n)
        if len(self.made) == 1:
            await self._meanwhile()
        return "ok"

    def pay(self, n: int) -> str:
        self.made.append(-n)
        return "paid"


# --- one run ---


async def test_a_cancelled_run_makes_no_further_step(place: Place) -> None:
    async def cancel() -> None:
        await place.broker().runs.cancel(run, by="ana", reason="wrong shop")

    signoff, steps = place.gate([{"allow": "step"}, {"ask": "pay"}]), Steps(cancel)
    script = turns(("pay", {"n": 9}), ("step", {"n": 1}), ("step", {"n": 2}), ("step", {"n": 3}))

    def pay(n: int) -> str:
        return "paid"

    agent = gated(signoff, script, steps.step, pay)
    run = await paused(signoff, agent)
    await place.answer()
    with pytest.raises(RunOver, match="ana cancelled the run: “wrong shop”"):
        await resume(agent, run)
    assert steps.made == [1]


@pytest.mark.parametrize(
    "inside",
    [
        pytest.param(turns(("step", {"n": 1}), ("step", {"n": 2}), ("pay", {"n": 9})), id="its next step"),
        pytest.param([calls(("step", {"n": 1}), ("pay", {"n": 9})), {"say": "x"}], id="a question of the same step"),
    ],
)
async def test_a_cancelled_run_goes_on_and_asks_nowhere_inside(place: Place, inside: list[dict[str, Any]]) -> None:
    async def cancel() -> None:
        await place.broker().runs.cancel("r1", by="ana")

    signoff, steps = place.gate([{"allow": "delegate"}, {"allow": "step"}, {"ask": "pay"}]), Steps(cancel)
    inner = gated(signoff, inside, steps.step, steps.pay, name="inner")

    async def delegate() -> str:
        return str((await inner.run("x")).output)

    outer = gated(signoff, turns(("delegate", {})), delegate, name="outer")
    run = await signoff.broker.runs.begin(SavedRun(id="r1", agent="shop:agent", prompt="go"))
    with executing(run), pytest.raises(RunOver, match="ana cancelled the run"):
        await outer.run("go")
    assert steps.made == [1]
    assert await signoff.broker.inbox() == []
    assert await signoff.broker.store.read(lambda tx: tx.requests.of(run="r1")) == []


async def test_two_brokers_on_one_store_both_say_that_they_live(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    clock, store = FakeClock(), place.store()
    brokers = [Signoff([], store=store, clock=clock).broker for _ in range(2)]
    for number, broker in enumerate(brokers):
        await broker.runs.begin(SavedRun(id=f"r{number}"))
    for _ in range(6):
        clock.advance(timedelta(seconds=10))
        assert store.idle is not None
        store.idle()
        await store.flush()
    other = place.broker(clock=clock)
    monkeypatch.setattr(holder, "_host", lambda: "another machine")
    for number in range(2):
        with pytest.raises(RunTaken):
            await other.runs.take(f"r{number}")
    clock.advance(timedelta(seconds=50))
    await other.runs.take("r0")


# --- everything ---


@pytest.mark.parametrize("durable", [False, True])
async def test_a_halt_during_a_step_stops_before_the_next(place: Place, durable: bool) -> None:
    signoff = place.gate([{"allow": "step"}]) if durable else Signoff([{"allow": "step"}])
    steps = Steps(lambda: signoff.broker.switch.halt(by="ana", why="something is odd"))
    with pytest.raises(Halted, match="something is odd"):
        await gated(signoff, turns(("step", {"n": 1}), ("step", {"n": 2})), steps.step).run("go")
    assert steps.made == [1]


@pytest.mark.parametrize("durable", [False, True])
async def test_a_halt_while_a_call_is_judged_stops_that_call(place: Place, durable: bool) -> None:
    async def judge(call: Any, ctx: Any) -> str:
        await signoff.broker.switch.halt(by="ana")
        return "allow"

    rules = [{"allow": "step"}]
    signoff = place.gate(rules, judge=judge) if durable else Signoff(rules, judge=judge)
    steps = Steps(None)
    with pytest.raises(Halted):
        await gated(signoff, turns(("step", {"n": 1})), steps.step).run("go")
    assert steps.made == []


async def test_a_halt_inside_leaves_the_outer_call_unknown(place: Place) -> None:
    signoff = place.gate([{"ask": "delegate"}, {"allow": "step"}])
    steps = Steps(lambda: signoff.broker.switch.halt(by="ana"))
    inner = Agent(
        ScriptedModel(turns(("step", {"n": 1}), ("step", {"n": 2}))), tools=[steps.step], capabilities=[signoff]
    )

    async def delegate() -> str:
        return (await inner.run("x")).output

    outer = gated(signoff, turns(("delegate", {})), delegate)
    run = await paused(signoff, outer)
    [request] = await place.answer()
    with pytest.raises(Halted):
        await resume(outer, run)
    assert steps.made == [1]
    assert (await signoff.broker.get(request.id)).state is State.UNKNOWN
    await signoff.broker.switch.unhalt(by="ana")
    other = place.broker()
    assert (await other.runs.status(run)).word == "waiting"
    assert [one.id for one in await other.inbox()] == [request.id], "a person says what became of it"
