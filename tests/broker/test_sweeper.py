"""Time: deadlines, reminders, escalation, and calls whose process is gone; fed by any number of processes at once."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from tests.broker.conftest import Opens, ask, kill, kinds

from signoff.broker import Broker
from signoff.broker.deadlines import EVERY
from signoff.broker.wall_clock import SystemClock
from signoff.core.decision import ApprovalDecision
from signoff.core.people import Actor, ActorKind
from signoff.core.request import State
from signoff.core.run import Process
from signoff.core.verdict import OnTimeout, Requirement
from signoff.errors import AlreadySettled, AlreadySpent
from signoff.store.memory_store import MemoryStore
from signoff.testing import FakeClock

ANA, YES = Actor(name="ana"), ApprovalDecision(approved=True)
SECOND, MINUTE, LEASE = timedelta(seconds=1), timedelta(minutes=1), timedelta(seconds=40)


def within_a_minute(on_timeout: OnTimeout = OnTimeout.DENY, **more: object) -> Requirement:
    return Requirement(timeout=MINUTE, on_timeout=on_timeout, **more)  # type: ignore[arg-type]


async def claimed(broker: Broker) -> str:
    request = await ask(broker)
    await broker.answer(request, YES, by=ANA)
    await broker.claim(request)
    return request


# --- deadlines ---


async def test_silence_is_no_not_earlier_and_not_later(broker: Broker, clock: FakeClock) -> None:
    request = await ask(broker, need=within_a_minute())
    clock.advance(MINUTE - timedelta(microseconds=1))
    assert await broker.sweep() == []
    clock.advance(timedelta(microseconds=1))
    [expired] = await broker.sweep()
    assert (expired.id, expired.state) == (request, State.EXPIRED)
    assert await broker.sweep() == []
    with pytest.raises(AlreadySettled):
        await broker.claim(request)
    assert await kinds(broker) == ["asked", "settled"]


async def test_silence_allows_only_in_words_and_is_nobody(broker: Broker, clock: FakeClock) -> None:
    request = await ask(broker, need=within_a_minute(OnTimeout.ALLOW))
    clock.advance(MINUTE)
    [allowed] = await broker.sweep()
    assert allowed.state is State.APPROVED
    assert allowed.decision is not None and allowed.decision.by is not None
    assert allowed.decision.by.kind is ActorKind.MODE
    entries = await broker.store.read(lambda tx: tx.record.entries(request=request))
    assert json.loads(entries[-1].body)["by"] == "nobody in time"
    await broker.claim(request)


async def test_parked_waits_for_ever(broker: Broker, clock: FakeClock) -> None:
    request = await ask(broker, need=within_a_minute(OnTimeout.PARK, remind=20 * SECOND))
    clock.advance(MINUTE)
    [parked] = await broker.sweep()
    assert (parked.state, parked.deadline, parked.remind_at) == (State.PENDING, None, None)
    clock.advance(timedelta(days=365))
    assert await broker.sweep() == []
    assert [item.id for item in await broker.inbox()] == [request]
    assert await kinds(broker) == ["asked", "parked"]
    assert (await broker.answer(request, YES, by=ANA)).state is State.APPROVED


async def test_escalation_asks_others_once_with_a_deadline_of_their_own(broker: Broker, clock: FakeClock) -> None:
    need = within_a_minute(OnTimeout.ESCALATE, role="ops", escalate_to="boss", remind=20 * SECOND)
    request = await ask(broker, need=need)
    await broker.assign(request, "ana", by=ANA)
    clock.advance(MINUTE + 5 * SECOND)
    [escalated] = await broker.sweep()
    assert (escalated.requirement.role, escalated.assigned) == ("boss", "")
    assert escalated.deadline == clock.now() + MINUTE
    assert escalated.remind_at == clock.now() + 40 * SECOND
    [item] = await broker.inbox()
    assert (item.role, item.escalated) == ("boss", True)
    clock.advance(40 * SECOND)
    assert [one.id for one in await broker.sweep()] == [request]
    clock.advance(20 * SECOND)
    [expired] = await broker.sweep()
    assert expired.state is State.EXPIRED
    assert await kinds(broker) == ["asked", "assigned", "escalated", "reminded", "settled"]


async def test_people_are_reminded_once_before_the_deadline(broker: Broker, clock: FakeClock) -> None:
    await ask(broker, need=within_a_minute(remind=20 * SECOND))
    clock.advance(40 * SECOND - timedelta(microseconds=1))
    assert await broker.sweep() == []
    clock.advance(timedelta(microseconds=1))
    [reminded] = await broker.sweep()
    assert (reminded.state, reminded.remind_at) == (State.PENDING, None)
    assert await broker.sweep() == []
    clock.advance(20 * SECOND)
    assert [one.state for one in await broker.sweep()] == [State.EXPIRED]


async def test_nobody_is_reminded_of_what_is_over(broker: Broker, clock: FakeClock) -> None:
    request = await ask(broker, need=within_a_minute(remind=20 * SECOND))
    await broker.answer(request, YES, by=ANA)
    clock.advance(MINUTE)
    assert await broker.sweep() == []


async def test_many_processes_sweep_at_once_and_it_happens_once(another: Opens, clock: FakeClock) -> None:
    brokers = [another() for _ in range(4)]
    for number in range(5):
        await ask(brokers[0], f"deny{number}", need=within_a_minute())
        await ask(brokers[0], f"park{number}", need=within_a_minute(OnTimeout.PARK))
        await ask(brokers[0], f"up{number}", need=within_a_minute(OnTimeout.ESCALATE, role="ops", escalate_to="boss"))
    clock.advance(MINUTE)
    swept = await asyncio.gather(*(broker.sweep() for broker in brokers * 2))
    ids = [request.id for found in swept for request in found]
    assert len(ids) == len(set(ids)) == 15, "each was told to one of them"
    happened = await kinds(brokers[0])
    assert [happened.count(kind) for kind in ("settled", "parked", "escalated")] == [5, 5, 5]


async def test_of_an_answer_and_the_deadline_in_the_same_instant_one_wins(another: Opens, clock: FakeClock) -> None:
    one, two = another(), another()
    requests = [await ask(one, f"c{number}", need=within_a_minute(OnTimeout.PARK)) for number in range(10)]
    clock.advance(MINUTE)
    answers = (one.answer(request, YES, by=ANA) for request in requests)
    await asyncio.gather(two.sweep(), *answers)
    assert {(await two.get(request)).state for request in requests} == {State.APPROVED}
    assert (await kinds(one)).count("parked") == 10


async def test_it_sweeps_by_itself_every_few_seconds(broker: Broker, clock: FakeClock) -> None:
    request = await ask(broker, need=within_a_minute())
    sweeping = asyncio.ensure_future(broker.deadlines.sweep_forever())
    waiting = asyncio.ensure_future(broker.wait(request))
    try:
        for _ in range(13):
            for _ in range(50):
                await asyncio.sleep(0)
            assert not sweeping.done()
            clock.advance(EVERY)
        assert (await waiting).state is State.EXPIRED
    finally:
        sweeping.cancel()
        await asyncio.gather(sweeping, return_exceptions=True)


# --- calls whose process is gone ---


async def test_a_call_whose_process_died_is_unknown_and_waits_for_a_person(another: Opens) -> None:
    one, two = another(), another()
    request = await claimed(one)
    assert await two.sweep() == [], "it lives"
    await kill(one)
    [unknown] = await two.sweep()
    assert (unknown.id, unknown.state) == (request, State.UNKNOWN)
    assert await two.sweep() == []
    [item] = await two.inbox()
    assert (item.id, item.state) == (request, State.UNKNOWN)
    assert not await two.pending(), "it waits for a word, not for leave"
    with pytest.raises(AlreadySpent):
        await two.claim(request)
    with pytest.raises(AlreadySettled, match="its outcome is unknown"):
        await two.answer(request, YES, by=ANA)
    assert (await kinds(two))[-2:] == ["claimed", "unknown"]


async def test_far_away_a_silent_process_counts_as_gone_and_may_come_back(another: Opens, clock: FakeClock) -> None:
    here, far = another(), another(far=True)
    request = await claimed(far)
    clock.advance(LEASE - SECOND)
    assert await here.sweep() == []
    far.ledger.beat()
    await far.store.flush()
    clock.advance(LEASE - SECOND)
    assert await here.sweep() == []
    clock.advance(SECOND)
    assert await far.sweep() == [], "who runs it knows that it lives"
    assert [one.state for one in await here.sweep()] == [State.UNKNOWN]
    far.finish(request, digest="d", preview="done")
    await far.store.flush()
    assert (await here.get(request)).state is State.SUCCEEDED
    assert not await here.inbox()


async def test_what_comes_back_after_somebody_said_what_happened_is_only_noted(another: Opens) -> None:
    one, two = another(), another()
    request = await claimed(one)
    await kill(one)
    await two.sweep()
    await two.tell(request, happened=False, by=ANA)
    one.finish(request)
    await one.store.flush()
    assert (await two.get(request)).state is State.CANCELLED
    assert (await kinds(two, request=request))[-2:] == ["told", "late outcome"]


async def test_many_find_the_dead_at_once_and_it_happens_once(another: Opens) -> None:
    one, *others = [another() for _ in range(4)]
    request = await claimed(one)
    await kill(one)
    swept = await asyncio.gather(*(other.sweep() for other in others * 2))
    assert [found.id for sweep in swept for found in sweep] == [request]
    assert (await kinds(one)).count("unknown") == 1


async def test_a_process_that_never_lived_holds_nothing(another: Opens) -> None:
    """A claim in the name of a process nobody has heard of."""
    one, two = another(), another()
    request = await claimed(one)
    stored = await one.get(request)
    assert stored.claim is not None
    forged = stored.changed_to(claim=type(stored.claim)(holder="ghost", at=stored.claim.at), version=stored.version + 1)
    await one.store.write("forge", lambda tx: tx.requests.put(forged))
    assert [found.state for found in await two.sweep()] == [State.UNKNOWN]


# --- requests that end with the process that waits for them ---


HOOK = Process(id="elsewhere/7/1", host="elsewhere", pid=7, born="1", seen_at=FakeClock().now())


async def waits(broker: Broker) -> str:
    request = await ask(broker)
    await broker.wait_as(request, replace(HOOK, seen_at=broker.clock.now()))
    return request


async def test_a_request_ends_with_the_process_that_waits_for_it(broker: Broker, clock: FakeClock) -> None:
    request, other = await waits(broker), await ask(broker, "other")
    clock.advance(LEASE - SECOND)
    broker.beat_for(HOOK)
    clock.advance(LEASE - SECOND)
    assert await broker.sweep() == [], "it sends heartbeats"
    clock.advance(SECOND)
    with pytest.raises(AlreadySettled, match="nobody waits for it any more"):  # nobody has swept yet
        await broker.answer(request, YES, by=ANA)
    [withdrawn] = await broker.sweep()
    assert (withdrawn.id, withdrawn.state) == (request, State.CANCELLED)
    assert [item.id for item in await broker.inbox()] == [other]


async def test_an_approval_that_nobody_waits_for_is_withdrawn(broker: Broker, clock: FakeClock) -> None:
    request = await waits(broker)
    await broker.answer(request, YES, by=ANA)
    clock.advance(LEASE)
    [withdrawn] = await broker.sweep()
    assert withdrawn.state is State.CANCELLED
    with pytest.raises(AlreadySettled, match="nobody waits for it any more"):
        await broker.claim(request)


async def test_another_process_waits_from_now_on(broker: Broker, clock: FakeClock) -> None:
    request = await waits(broker)
    clock.advance(LEASE - SECOND)
    await broker.wait_as(request, replace(HOOK, id="elsewhere/8/1", seen_at=clock.now()))
    clock.advance(SECOND)
    assert await broker.sweep() == []
    clock.advance(LEASE)
    assert [one.id for one in await broker.sweep()] == [request]


# --- a clock that is set ---


class Machine:
    """The clocks of a machine."""

    def __init__(self) -> None:
        self.wall, self.steady = datetime(2026, 1, 1, 12, tzinfo=UTC), 5.0

    def clock(self) -> SystemClock:
        return SystemClock(lambda: self.wall, lambda: self.steady)

    def passes(self, span: timedelta) -> None:
        """Time passes, or the machine is suspended."""
        self.wall += span
        self.steady += span.total_seconds()


@pytest.fixture
def machine() -> Machine:
    return Machine()


@pytest.mark.parametrize("on_timeout", [OnTimeout.ALLOW, OnTimeout.DENY, OnTimeout.PARK])
async def test_a_clock_that_is_set_forward_brings_no_deadline_forward(machine: Machine, on_timeout: OnTimeout) -> None:
    broker = Broker(MemoryStore(), machine.clock())
    early = await ask(broker, need=within_a_minute(on_timeout))
    machine.passes(20 * SECOND)
    machine.wall += timedelta(days=1)
    assert await broker.sweep() == []
    late = await ask(broker, "c2", need=within_a_minute(on_timeout))
    waiting = asyncio.ensure_future(broker.wait(early))
    for _ in range(3):
        await asyncio.sleep(0)
    machine.passes(40 * SECOND - timedelta(milliseconds=1))
    assert await broker.sweep() == []
    machine.passes(timedelta(milliseconds=2))
    assert [one.id for one in await broker.sweep()] == [early], "a minute after it was asked"
    machine.passes(20 * SECOND)
    assert [one.id for one in await broker.sweep()] == [late]
    waiting.cancel()


async def test_a_machine_that_was_suspended_is_no_clock_that_was_set(machine: Machine) -> None:
    broker = Broker(MemoryStore(), machine.clock())
    asked = await ask(broker, need=within_a_minute())
    machine.passes(timedelta(hours=8))
    [expired] = await broker.sweep()
    assert expired.id == asked


async def test_a_clock_that_is_set_back_and_corrected_moves_no_deadline(machine: Machine) -> None:
    broker = Broker(MemoryStore(), machine.clock())
    asked = await ask(broker, need=within_a_minute())
    machine.wall -= timedelta(hours=1)
    assert await broker.sweep() == []
    machine.wall += timedelta(hours=1, milliseconds=300)
    assert await broker.sweep() == []
    machine.passes(MINUTE)
    assert [one.id for one in await broker.sweep()] == [asked]


async def test_a_vote_within_the_time_counts_although_the_clock_was_set_forward(machine: Machine) -> None:
    broker = Broker(MemoryStore(), machine.clock())
    asked = await ask(broker, need=within_a_minute())
    machine.wall += timedelta(days=1)
    assert (await broker.answer(asked, YES, by=ANA)).state is State.APPROVED
