"""The kill switch: nothing new runs, and nothing that waits is lost."""

from __future__ import annotations

import asyncio
import json
from datetime import timedelta

import pytest
from tests.broker.conftest import Opens, ask, kinds

from signoff.broker import Broker
from signoff.core.decision import ApprovalDecision
from signoff.core.people import Actor
from signoff.core.request import ApprovalRequest, State
from signoff.core.run import SavedRun
from signoff.core.verdict import Requirement
from signoff.errors import Halted
from signoff.testing import FakeClock

ANA, YES = Actor(name="ana"), ApprovalDecision(approved=True)


async def approved(broker: Broker, call_id: str = "c1") -> str:
    request = await ask(broker, call_id)
    await broker.answer(request, YES, by=ANA)
    return request


async def test_nothing_new_runs_in_any_process_until_it_is_let_go(another: Opens) -> None:
    one, two = another(), another()
    request = await approved(one)
    said = await two.switch.halt(by="ana", why="fire")
    assert said == ("halted by ana at 2026-01-01 12:00:00 UTC: “fire”; `signoff unhalt` lifts the halt")
    for broker in (one, two):
        with pytest.raises(Halted, match=r"halted by ana at .*: “fire”"):
            await broker.claim(request)
        assert await broker.switch.state() == said
    with pytest.raises(Halted):
        await one.runs.begin(SavedRun(id="run1"))
    assert (await one.get(request)).state is State.APPROVED, "an approval is not spent by it"
    assert await one.switch.unhalt(by="ben") is True
    assert (await two.claim(request)).state is State.CLAIMED
    assert await two.switch.state() == ""


async def test_what_is_pending_stays_pending_and_everything_else_goes_on(another: Opens, clock: FakeClock) -> None:
    one, two = another(), another()
    running = await approved(one, "running")
    await one.claim(running)
    waits = await ask(one, "waits")
    ends = await ask(one, "ends", need=Requirement(timeout=timedelta(minutes=1)))
    await two.switch.halt(by="ana")
    assert {item.id for item in await two.inbox()} == {waits, ends}
    assert (await two.answer(waits, YES, by=ANA)).state is State.APPROVED, "people may go on answering"
    new = await ask(two, "new")
    one.finish(running)
    await one.store.flush()
    clock.advance(timedelta(minutes=1))
    await two.sweep()
    states = [(await two.get(request)).state for request in (running, waits, ends, new)]
    assert states == [State.SUCCEEDED, State.APPROVED, State.EXPIRED, State.PENDING]


async def test_pulling_it_twice_keeps_who_was_first(another: Opens, clock: FakeClock) -> None:
    one, two = another(), another()
    first = await one.switch.halt(by="ana", why="fire")
    clock.advance(60)
    assert await two.switch.halt(by="ben", why="water") == first
    assert await kinds(one) == ["halted"]
    assert await two.switch.unhalt(by="ben", why="it is out") is True
    assert await one.switch.unhalt(by="ana") is False
    assert await kinds(one) == ["halted", "unhalted"]
    last = (await one.store.read(lambda tx: tx.record.entries()))[-1]
    assert json.loads(last.body) == {"by": "ben", "why": "it is out"}


async def test_of_claims_and_the_switch_in_the_same_instant_the_record_shows_no_claim_after_it(another: Opens) -> None:
    one, two = another(), another()
    requests = [await approved(one, f"c{number}") for number in range(20)]
    claims = [one.claim(request) for request in requests]
    results = await asyncio.gather(*claims[:10], two.switch.halt(by="ana"), *claims[10:], return_exceptions=True)
    halted = [result for result in results if isinstance(result, Halted)]
    ran = [result for result in results if isinstance(result, ApprovalRequest)]
    assert len(halted) + len(ran) == 20
    happened = await kinds(two)
    assert happened.count("claimed") == len(ran)
    assert "claimed" not in happened[happened.index("halted") :]


async def test_who_pulled_it_knows_at_once_and_the_others_when_they_look(another: Opens) -> None:
    one, two = another(), another()
    await one.switch.halt(by="ana")
    with pytest.raises(Halted):
        one.switch.check_now()
    await two.watch.catch_up()
    with pytest.raises(Halted):
        two.switch.check_now()
    await one.switch.unhalt(by="ana")
    one.switch.check_now()


async def test_secrets_in_the_reason_are_masked(another: Opens) -> None:
    broker = another(masked=["hunter2hunter2"])
    said = await broker.switch.halt(by="ana", why="leaked hunter2hunter2")
    assert "hunter2" not in said
    entries = await broker.store.read(lambda tx: tx.record.entries())
    assert "hunter2" not in entries[0].body
