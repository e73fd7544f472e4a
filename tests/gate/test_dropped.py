"""Gates and inboxes that a program makes for a request and drops: nothing of them stays behind."""

from __future__ import annotations

import asyncio
import gc
import os
import sys
import threading
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import Agent
from tests import start
from tests.profiles import NIGHTLY

from signoff import ApprovalDecision, Signoff
from signoff.channels import open_inbox
from signoff.core.people import Actor
from signoff.core.request import ApprovalRequest, State
from signoff.core.verdict import Effect, Verdict
from signoff.processes import BEAT
from signoff.store.sqlite import SqliteStore
from signoff.store.store_factory import open_store
from signoff.testing import ScriptedModel
from signoff.testing.office import soon

RULES: list[dict[str, Any]] = [{"allow": "*"}]


@pytest.fixture(autouse=True)
def only_what_is_made_here_is_looked_at() -> None:
    """To look for garbage among all that other tests have left takes a third of a second each time."""
    gc.freeze()


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return f"sqlite:{tmp_path / 'a.db'}" if request.param == "sqlite" else request.getfixturevalue("postgres_store")


def threads() -> int:
    return sum(thread.name in ("signoff store", "signoff store watch") for thread in threading.enumerate())


def open_files() -> int:
    return len(os.listdir("/proc/self/fd")) if sys.platform == "linux" else 0


def look() -> str:
    return "nothing"


def question() -> ApprovalRequest:
    verdict = Verdict(effect=Effect.ASK, reason="a rule")
    return ApprovalRequest(tool_call_id="c", tool_name="look", summary="Look", verdict=verdict)


async def run(gate: Signoff) -> None:
    agent = Agent(ScriptedModel([{"calls": [{"tool": "look"}]}, {"say": "done"}]), capabilities=[gate])
    agent.tool_plain(look)
    await agent.run("hello")


async def gone(what: str, is_so: Callable[[], bool], *, patience: float | None = None) -> None:
    looks = count()

    def collected() -> bool:
        if (number := next(looks)) & (number - 1) == 0:  # more and more rarely: it takes long
            gc.collect()
        return is_so()

    await soon(collected, what, patience=patience)


async def test_a_gate_for_each_request_leaves_no_thread_and_no_file_open(url: str) -> None:
    before = threads()
    await run(Signoff(RULES, store=url))
    await gone("the first gate's threads are still there", lambda: threads() <= before)
    files = open_files()
    for _ in range(5):
        await run(Signoff(RULES, store=url))
    await gone("threads of dropped gates are still there", lambda: threads() <= before)
    await gone("files of dropped gates are still open", lambda: open_files() <= files)


async def test_what_a_dropped_gate_has_still_to_write_is_written(url: str) -> None:
    await run(Signoff(RULES, store=url))
    gc.collect()
    store = open_store(url)
    try:

        async def is_recorded() -> bool:
            return await store.read(lambda tx: tx.record.head()[0]) > 0

        await soon(is_recorded, "the audit log of the run was lost")
    finally:
        store.close()


async def test_a_store_stays_open_for_whoever_holds_a_part_of_the_gate(url: str) -> None:
    gate = Signoff(RULES, store=url)
    await run(gate)
    broker, alive = gate.broker, weakref.ref(gate)
    runs = broker.runs
    del gate, broker
    await gone("the gate is still held", lambda: alive() is None)
    assert await runs.list() == []


async def test_an_inbox_for_each_request_leaves_no_thread(url: str) -> None:
    before = threads()
    inbox = open_inbox(url)
    assert await inbox.pending() == []
    del inbox
    await gone("threads of a dropped inbox are still there", lambda: threads() <= before)


async def test_a_store_that_is_handed_in_is_not_closed_and_forgets_who_is_gone(tmp_path: Path) -> None:
    class Counting(SqliteStore):
        registered = 0

        def watch(self, tick: Callable[[], None]) -> Callable[[], None]:
            return self._counted(super().watch(tick))

        def remind(self, every: float, hook: Callable[[], None]) -> Callable[[], None]:
            return self._counted(super().remind(0.001, hook))

        def _counted(self, stop: Callable[[], None]) -> Callable[[], None]:
            self.registered += 1

            def stopped() -> None:
                self.registered -= 1
                stop()

            return stopped

    store = Counting(tmp_path / "a.db")
    for _ in range(3):
        await run(Signoff(RULES, store=store))
    assert store.registered == 6, "a watch and a heartbeat for each gate"
    ledgers = [
        weakref.ref(each) for each in gc.get_objects() if type(each).__name__ == "Ledger" and each.store is store
    ]
    assert len(ledgers) == 3
    await gone("a dropped gate is still held", lambda: not any(each() for each in ledgers))

    async def is_forgotten() -> bool:
        await store.write("a change", lambda tx: tx.settings.put("any", "thing"))
        return store.registered == 0

    await soon(is_forgotten, lambda: f"{store.registered} callbacks of dropped gates are still registered")
    store.close()


async def test_a_gate_that_asked_does_not_wait_for_the_next_heartbeat(url: str) -> None:
    before = threads()
    await run(Signoff([{"ask": "*"}], store=url, approver=lambda _: True))
    half = BEAT.total_seconds() / 2
    await gone("the last batch still holds the gate", lambda: threads() <= before, patience=half)


async def test_whoever_waits_hears_of_the_answer_though_nobody_holds_the_gate(url: str) -> None:
    asked: list[str] = []
    heard: list[State] = []

    async def ask() -> None:
        gate = Signoff([{"ask": "*"}], store=url)
        [opened] = await gate.broker.open([question()])
        asked.append(opened.id)
        heard.append((await gate.broker.wait(opened.id)).state)

    asyncio.create_task(ask())  # noqa: RUF006, nobody holds it
    await soon(lambda: bool(asked), "nothing was asked")
    for _ in range(20):
        await asyncio.wait([asyncio.create_task(asyncio.to_thread(gc.collect))])
    inbox = open_inbox(url)
    await inbox.answer(asked[0], ApprovalDecision(approved=True, by=Actor(name="ana", via="api")))
    await soon(lambda: heard == [State.APPROVED], "the waiter is gone")


async def test_new_gates_on_a_store_do_not_put_off_the_heartbeat_of_others(tmp_path: Path) -> None:
    store, beats = SqliteStore(tmp_path / "a.db"), list[int]()
    await store.write("a change", lambda tx: tx.settings.put("any", "thing"))
    store.remind(0.5, lambda: beats.append(1))

    def another_one_comes() -> bool:
        store.remind(0.5, lambda: None)
        return bool(beats)

    await soon(another_one_comes, "the heartbeat was put off for ever", patience=10)


async def test_a_store_may_be_written_to_while_another_on_its_file_is_closed(tmp_path: Path) -> None:
    with ThreadPoolExecutor(1) as closer:
        for number in range(2_000 if NIGHTLY else 60):
            store = SqliteStore(tmp_path / "a.db")
            store.watch(lambda: None)
            await store.write("a change", lambda tx, text=str(number): tx.settings.put("any", text))
            closer.submit(store.close)


async def test_a_store_of_others_need_not_say_how_to_stop(tmp_path: Path) -> None:
    class Older(SqliteStore):
        def remind(self, every: float, hook: Callable[[], None]) -> Any:
            hooks.append(hook)

    hooks: list[Callable[[], None]] = []
    await run(Signoff(RULES, store=Older(tmp_path / "a.db")))
    gc.collect()
    for hook in hooks:
        hook()


def test_a_process_that_was_forked_closes_what_it_drops(tmp_path: Path) -> None:
    code = """
import asyncio, gc, os, sys, threading
from signoff import Signoff
from signoff.store import sqlite_file
from signoff.testing.office import soon

def threads():
    return [one.name for one in threading.enumerate() if one.name.startswith("signoff store")]

async def used():
    gate = Signoff([{"allow": "*"}], store=sys.argv[1])
    await gate.broker.switch.halt(by="ana")

async def dropped():
    await used()
    gc.collect()
    await soon(lambda: not threads() and not sqlite_file._open, lambda: str(threads()))

asyncio.run(dropped())
child = os.fork()
if not child:
    asyncio.run(dropped())
    os._exit(0)
os._exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    done = start.run([sys.executable, "-c", code, f"sqlite:{tmp_path / 'a.db'}"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
