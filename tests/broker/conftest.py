"""Brokers on one store: in memory, and in a file that each of them has open on its own."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Protocol

import pytest
from tests.matches import varying
from tests.ready import ready

from signoff.broker import Broker
from signoff.core.call import Call
from signoff.core.request import ApprovalRequest
from signoff.core.run import Process
from signoff.core.verdict import Effect, Requirement, Verdict
from signoff.ports import Store, Transaction
from signoff.store.memory_store import MemoryStore
from signoff.testing import FakeClock

PEOPLE = {
    "ana": frozenset({"ops", "dev"}),
    "ben": frozenset({"dev"}),
    "cleo": frozenset({"ops"}),
    "dan": frozenset[str](),
    "eve": frozenset({"boss"}),
    "rita": frozenset({"ops"}),
    "sam": frozenset({"security"}),
}
NOBODYS_PID = 2**30
RAM = "/dev/shm" if os.path.isdir("/dev/shm") else None
"""Where files that only a test looks at cost no disk."""


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


class Opens(Protocol):
    """Makes one more broker on the store: another process, as far as the store can tell."""

    def __call__(self, *, far: bool = False, **options: Any) -> Broker: ...


@pytest.fixture
def ram() -> Iterator[Path]:
    """A directory in memory where there is one: what is looked at is what brokers write, not how a disk keeps it."""
    with TemporaryDirectory(dir=RAM) as directory:
        yield Path(directory)


@pytest.fixture(params=["memory", "sqlite"])
def another(request: pytest.FixtureRequest, ram: Path, clock: FakeClock) -> Iterator[Opens]:
    stores: list[Store] = []
    make = maker(request.param, ram)

    def open_one(*, far: bool = False, **options: Any) -> Broker:
        stores.append(make())
        broker = Broker(stores[-1], clock, **{"people": PEOPLE, **options})
        broker.remembers = options.get("remembers", True)  # also where it does not outlive the process
        broker.store.remind(3_600, lambda: None)  # only the test says that a process lives
        if far:
            broker.ledger._process = replace(broker.process, host="another machine")
        return broker

    yield open_one
    for store in stores:
        store.close()


def maker(kind: str, directory: Path) -> Callable[[], Store]:
    """Opens the same store once more."""
    if kind == "memory":
        store = MemoryStore(record=True)
        return lambda: store
    from signoff.store.sqlite import SqliteStore

    return lambda: SqliteStore(ready(directory / "signoff.db"))


@pytest.fixture
def broker(another: Opens) -> Broker:
    return another()


async def ask(broker: Broker, call_id: str = "c1", *, need: Requirement | None = None, **more: Any) -> str:
    """Ask whether something may be paid; the id of the request."""
    args = more.pop("args", {"to": "bob", "amount": 5})
    places = {name: more.pop(name) for name in ("conversation_id", "worker", "schema_hash", "toolset") if name in more}
    tool = more.pop("tool", "pay")
    call = Call(tool=tool, args=args, call_id=call_id, run_id="run", **places)
    request = ApprovalRequest(
        tool_call_id=call_id,
        tool_name=tool,
        args=args,
        call=call,
        may_vary=varying(call),
        verdict=Verdict(effect=Effect.ASK, requirement=need or Requirement()),
        **more,
    )
    [opened] = await broker.open([request])
    return opened.id


async def kinds(broker: Broker, **of: str) -> list[str]:
    """What the record says happened."""
    return [entry.kind for entry in await broker.store.read(lambda tx: tx.record.entries(**of))]


async def kill(broker: Broker) -> None:
    """The process is gone; nobody had the time to write that down but the system."""

    def gone(tx: Transaction) -> None:
        row: Process | None = tx.processes.get(broker.process.id)
        assert row is not None, "it never held anything"
        tx.processes.put(replace(row, pid=NOBODYS_PID))

    await broker.store.write("kill", gone)
