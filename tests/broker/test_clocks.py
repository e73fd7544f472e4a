"""Machines whose clocks differ: deadlines go by the clock of the server that they share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta

import pytest
from tests.broker.conftest import PEOPLE, ask

from signoff import Policy
from signoff.broker import Broker
from signoff.cli.doctor_store import look_at_store
from signoff.config import Settings
from signoff.core.request import State
from signoff.core.verdict import OnTimeout, Requirement
from signoff.store import postgres
from signoff.store.postgres import PostgresStore

HOUR = timedelta(hours=1)
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


def test_the_doctor_names_a_clock_that_is_off(postgres_store: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert look_at_store(postgres_store, HERE).findings == []
    monkeypatch.setattr(postgres, "machine_time", Off(HOUR).now)
    [finding] = look_at_store(postgres_store, HERE).findings

    assert "the clock of this machine is 1 h ahead of the store's clock" in finding.what
