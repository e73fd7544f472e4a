"""Machines whose clocks differ: deadlines go by the clock of the server that they share."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from tests.broker.conftest import PEOPLE, ask

from signoff import Policy
from signoff.broker import Broker
from signoff.cli.doctor_store import look_at_store
from signoff.config import Settings
from signoff.core.access import AccessKind
from signoff.core.request import State
from signoff.core.verdict import OnTimeout, Requirement
from signoff.store import postgres
from signoff.store.postgres import PostgresStore

HOUR, MINUTE = timedelta(hours=1), timedelta(minutes=1)
HERE = Settings(policy=Policy(rules=()), people={})
NEED = Requirement(timeout=timedelta(minutes=15), on_timeout=OnTimeout.ALLOW)


class Off:
    """The clock of a machine, which is off by so much."""

    def __init__(self, by: timedelta) -> None:
        self.by = by

    def now(self) -> datetime:
        return datetime.now(UTC) + self.by

    async def sleep_until(self, moment: datetime) -> None:
        raise AssertionError("nobody waits here")


@pytest.fixture
def machine(postgres_store: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[timedelta], Broker]]:
    """A broker on a machine whose clock is off by so much; it looks at it when it first reaches the store."""
    stores: list[PostgresStore] = []

    def opened(by: timedelta) -> Broker:
        monkeypatch.setattr(postgres, "machine_time", Off(by).now)
        stores.append(PostgresStore(postgres_store))
        return Broker(stores[-1], Off(by), people=PEOPLE)

    yield opened
    for store in stores:
        store.close()


@pytest.mark.parametrize("by", [HOUR, -HOUR], ids=["fast", "slow"])
async def test_a_clock_that_is_off_settles_nothing(machine: Callable[[timedelta], Broker], by: timedelta) -> None:
    right = machine(timedelta(0))
    asked = await ask(right, need=NEED)
    assert right.store.clock_lead == timedelta(0)

    wrong = machine(by)
    assert await wrong.sweep() == [], "the first thing it does"
    assert (await right.get(asked)).state is State.PENDING
    lead = wrong.store.clock_lead
    assert lead is not None and abs(lead + by) < timedelta(seconds=30)

    late = await ask(wrong, "c2", need=NEED)
    deadline = (await right.get(late)).deadline
    assert deadline is not None
    assert abs(deadline - datetime.now(UTC) - timedelta(minutes=15)) < timedelta(minutes=1)


@pytest.fixture
def jumping(postgres_store: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Broker, Off]]:
    """A broker that reached the store, on a machine whose clock is set by the test afterwards."""
    clock = Off(timedelta(0))
    monkeypatch.setattr(postgres, "machine_time", clock.now)
    store = PostgresStore(postgres_store)
    yield Broker(store, clock, people=PEOPLE), clock
    store.close()


@pytest.mark.parametrize("by", [HOUR, -HOUR, 400 * 24 * HOUR], ids=["ahead", "back", "a year ahead"])
async def test_a_clock_that_is_set_while_a_process_runs_settles_nothing(
    jumping: tuple[Broker, Off], machine: Callable[[timedelta], Broker], by: timedelta
) -> None:
    broker, clock = jumping
    asked = await ask(broker, need=NEED)
    before = broker.clock.now()
    clock.by = by
    assert abs(broker.clock.now() - before) < MINUTE, "without any question to the server"
    assert await broker.sweep() == []
    assert (await broker.get(asked)).state is State.PENDING
    late = (await broker.get(await ask(broker, "c2", need=NEED))).deadline
    assert late is not None and abs(late - datetime.now(UTC) - timedelta(minutes=15)) < MINUTE
    clock.by = timedelta(0)
    assert await broker.sweep() == []


@pytest.mark.parametrize("by", [HOUR, -HOUR], ids=["ahead", "back"])
async def test_whoever_waits_is_not_answered_by_a_clock_that_is_set(jumping: tuple[Broker, Off], by: timedelta) -> None:
    """A waiter looks at its clock by itself, without anybody who sweeps."""
    broker, clock = jumping
    asked = await ask(broker, need=NEED)
    slept = asyncio.Event()

    async def sleep_until(moment: datetime) -> None:
        clock.by = by if not slept.is_set() else clock.by
        if slept.is_set():
            await asyncio.Event().wait()
        slept.set()

    clock.sleep_until = sleep_until
    waiting = asyncio.ensure_future(broker.wait(asked))
    await slept.wait()
    await broker.store.flush()
    assert (await broker.get(asked)).state is State.PENDING and not waiting.done()
    waiting.cancel()


async def test_what_a_process_decides_first_goes_by_the_clock_of_the_server(
    machine: Callable[[timedelta], Broker],
) -> None:
    """Before it has reached the store, it does not know that its own clock is off."""
    deadline = (await machine(-HOUR).get(await ask(machine(-HOUR), need=NEED))).deadline
    assert deadline is not None and abs(deadline - datetime.now(UTC) - timedelta(minutes=15)) < MINUTE
    right = machine(timedelta(0))
    key, secret = await right.access.issue(AccessKind.TOKEN, "ana", by="ana", lasts=30 * MINUTE)
    assert await machine(HOUR).access.find(AccessKind.TOKEN, secret) is not None, "it is not over yet"
    over = machine(timedelta(0))
    await over.store.write("end", lambda tx: tx.access_keys.put(replace(key, expires_at=datetime.now(UTC) - MINUTE)))
    assert await machine(-HOUR).access.find(AccessKind.TOKEN, secret) is None, "it is over"


@pytest.mark.parametrize("seconds", [-7200, 7200])
async def test_a_server_whose_clock_is_set_is_followed(
    jumping: tuple[Broker, Off], monkeypatch: pytest.MonkeyPatch, seconds: int
) -> None:
    """As after a failover to another machine: the next write goes by what its clock says."""
    broker, _ = jumping
    await ask(broker, need=NEED)
    monkeypatch.setattr(postgres, "EPOCH", postgres.EPOCH + timedelta(seconds=seconds))
    opened = (await broker.get(await ask(broker, "c2", need=NEED))).opened_at
    assert opened is not None and abs(opened - datetime.now(UTC) - timedelta(seconds=seconds)) < MINUTE


def test_the_doctor_names_a_clock_that_is_off(postgres_store: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert look_at_store(postgres_store, HERE).findings == []
    monkeypatch.setattr(postgres, "machine_time", Off(HOUR).now)
    [finding] = look_at_store(postgres_store, HERE).findings

    assert "the clock of this machine is 1 h ahead of the store's clock" in finding.what
