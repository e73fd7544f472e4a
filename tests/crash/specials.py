"""Crashes that need a stage of their own. Each function is a whole case, for a process that may fork."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.crash.drive import OPERATOR, Shown, finish, requests_of
from tests.crash.faults import Faults, Log, count_statements
from tests.crash.fork import PATIENCE, Child
from tests.crash.stage import Stage, answer, begin, kept_run_of, opened, play, prepare, take_up
from tests.crash.trips import ANSWER, RUN, Case
from tests.crash.wire import Wire

import signoff.processes as holder
from signoff.broker import Broker, ledger
from signoff.core.decision import ApprovalDecision
from signoff.core.people import Actor
from signoff.core.request import State
from signoff.errors import RunTaken
from signoff.ports import Transaction
from signoff.store.store_factory import open_store
from signoff.testing import FakeClock


def first_start(url: str, directory: str, statement: int) -> dict[str, Any]:
    """A process dies while it makes a new store; the next one finds it usable."""
    log = Log(Case(id="", trip="", url=url, directory=directory).log.path)
    wire = Wire(url, log, "first", statement) if url.startswith("postgres") else None

    def first() -> int:
        counted = count_statements(Faults(log, "first"), statement, reads=True) if wire is None else lambda: 0
        prepare(wire.url if wire is not None else url)
        return counted()

    child = Child(first)
    count = child.wait()
    if wire is not None:
        count = wire.seen[0]
        wire.close()
    Child(prepare, url).wait()
    return {"killed": child.status == -signal.SIGKILL, "statements": count}


def told_while_waiting(url: str, directory: str, point: str, *, happened: bool) -> dict[str, Any]:
    """A run is taken up while the outcome of its call is unknown, and waits; then somebody says what became of it."""
    case = Case(id=directory, trip="suspended", url=url, directory=directory)
    prepare_paused(case)
    dying = replace(case, act="resume", point=point)
    assert Child(play, dying, dying.does.acts[-1]).wait() is None

    async def waits() -> str:
        stage = Stage(case, open_store(url), Faults(case.log, "restart"), wait=PATIENCE)
        output = str(await take_up(stage))
        stage.broker.store.close()
        return output

    async def tells() -> None:
        async with opened(url) as store:
            broker, changed = Broker(store), asyncio.Event()
            loop = asyncio.get_running_loop()
            store.watch(lambda: loop.call_soon_threadsafe(changed.set))
            while True:
                [*_, last] = await requests_of(case, broker)
                if last.state is State.UNKNOWN and (await broker.runs.status(last.run)).alive:
                    await broker.tell(last.id, happened=happened, by=OPERATOR)
                elif last.state is State.PENDING:
                    await broker.answer(last.id, ApprovalDecision(approved=True), by=Actor(name="ana"))
                elif last.state is State.SUCCEEDED:
                    return
                await changed.wait()
                changed.clear()

    child = Child(lambda: asyncio.run(waits()))
    Child(lambda: asyncio.run(tells())).wait()
    return {"output": child.wait(), **finish(case)}


def prepare_paused(case: Case) -> None:
    """A run that ended with a question, which was answered."""
    for act in (RUN, ANSWER):
        Child(play, case, act).wait()


def split_brain(url: str, directory: str) -> dict[str, Any]:
    """A process that waits in place is taken for dead, as on a machine that was cut off; it is not, and goes on."""
    case = Case(id=directory, trip="in place", url=url, directory=directory)

    def waits(shown: Callable[[], None]) -> str:
        async def work() -> str:
            stage = Stage(case, open_store(url), Faults(case.log, "cut off"))
            stage.shown = shown
            try:
                return str(await begin(stage))
            except Exception as error:
                return f"{type(error).__name__}: {error}"
            finally:
                stage.broker.store.close()

        return asyncio.run(work())

    shown = Shown()
    cut_off = Child(waits, shown.tell)
    assert shown.is_told()

    async def takes_over() -> None:
        async with opened(url) as store:
            broker = Broker(store)
            run = await kept_run_of(case, broker)
            assert run is not None
            process = await store.read(lambda tx: tx.processes.get(run.holder))
            assert process is not None
            elsewhere = replace(process, host="another machine", seen_at=datetime(2020, 1, 1, tzinfo=UTC))
            await store.write("test", lambda tx: tx.processes.put(elsewhere))
        stage = Stage(case, open_store(url), Faults(case.log, "restart"), wait="suspend")
        await take_up(stage)
        await answer(case, stage.broker, ANSWER)
        stage.broker.store.close()

    Child(lambda: asyncio.run(takes_over())).wait()
    return {"cut off": cut_off.wait(), **finish(case)}


def another_machine(url: str, directory: str) -> list[Any]:
    """A process dies on one machine, and is found to be gone on another: when it has given no sign of life for long."""
    case = Case(id=directory, trip="at the terminal", url=url, directory=directory, act="run", point="pay done")
    Child(play, case, RUN).wait()

    def look(after: timedelta) -> list[str]:
        holder._host = lambda: "another machine"

        async def work() -> list[str]:
            async with opened(url) as store:
                broker = Broker(store, FakeClock(datetime.now(UTC) + after))
                run = await kept_run_of(case, broker)
                assert run is not None
                swept = [str(one.state) for one in await broker.sweep()]
                try:
                    return [*swept, f"epoch {(await broker.runs.take(run.id)).epoch}"]
                except RunTaken as error:
                    return [*swept, str(error)]

        return asyncio.run(work())

    return [Child(look, holder.LEASE + timedelta(seconds=seconds)).wait() for seconds in (-10, 1)]


def signs_of_life(url: str, directory: str) -> int:
    """A process that only waits says that it lives, again and again; how often that was seen to change."""
    case = Case(id=directory, trip="in place", url=url, directory=directory, timing=True)

    def waits(shown: Callable[[], None]) -> None:
        ledger.BEAT = timedelta(seconds=0.02)
        play(case, RUN, shown)

    shown = Shown()
    waiting = Child(waits, shown.tell)
    assert shown.is_told()

    async def watches() -> int:
        async with opened(url) as store:
            run = await kept_run_of(case, Broker(store))
            assert run is not None
            seen: set[datetime] = set()
            while len(seen) < 3:
                process = await store.read(lambda tx: tx.processes.get(run.holder))
                assert process is not None
                seen.add(process.seen_at)
            return len(seen)

    seen = Child(lambda: asyncio.run(watches())).wait()
    waiting.kill()
    return seen


def left_as_a_zombie(url: str, directory: str) -> dict[str, Any]:
    """A process dies, and its parent does not look."""
    case = Case(id=directory, trip="at the terminal", url=url, directory=directory, act="run", point="pay done")
    dead = Shown()
    child = Child(play, case, RUN)
    assert not dead.is_told()  # it is gone, and nobody has asked how
    driven = Child(finish, case).wait()
    child.wait()
    return driven


def crowd(url: str, directory: str, count: int, statement: int) -> dict[str, Any]:
    """Many runs of one process share its transactions. It dies; each of them is driven to its end."""
    prepare(url)
    cases = [
        Case(
            id=f"{directory} {number}", trip="at the terminal", url=url, directory=f"{directory}/{number}", timing=True
        )
        for number in range(count)
    ]
    for case in cases:
        os.mkdir(case.directory)
    log = Log(cases[0].log.path.parent.parent / "log")
    wire = Wire(url, log, "crowd", statement) if url.startswith("postgres") else None

    def all_at_once() -> int:
        counted = count_statements(Faults(log, "crowd"), statement, reads=False) if wire is None else lambda: 0

        async def work() -> None:
            store = open_store(wire.url if wire is not None else url)
            await asyncio.gather(*(_one(case, store) for case in cases))
            store.close()

        asyncio.run(work())
        return counted()

    child = Child(all_at_once)
    statements = child.wait()
    if wire is not None:
        statements = wire.seen[0]
        wire.close()
    driven = [Child(finish, case).wait() for case in cases]
    return {
        "killed": child.status == -signal.SIGKILL,
        "statements": statements,
        "found": [one["found"] for one in driven],
        "problems": [problem for one in driven for problem in one["problems"]],
    }


async def _one(case: Case, store: Any) -> None:
    stage = Stage(case, store, Faults(case.log, "crowd"))
    case.log.add(output=str(await begin(stage)), process="crowd")


def broken(url: str, directory: str, trip: str, write: str) -> list[str]:
    """The harness finds out when a store says that something is durable and it is not."""
    case = Case(id=directory, trip=trip, url=url, directory=directory)
    prepare(url)

    def play_with(act: Any) -> None:
        from tests.crash import stage

        real = stage.open_store
        stage.open_store = lambda url: Forgetful(real(url), write)  # type: ignore[assignment]
        play(case, act)

    for act in case.does.acts:
        child = Child(play_with, act)
        try:
            child.wait()
        except RuntimeError:
            break
    try:
        return Child(finish, case).wait()["problems"]
    except RuntimeError as error:
        return [str(error).splitlines()[-1]]


class Forgetful:
    """A store that loses one kind of write."""

    def __init__(self, store: Any, write: str) -> None:
        self._store, self._lost = store, write

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def write(self, name: str, work: Callable[[Transaction], Any], **options: Any) -> Any:
        if name != self._lost:
            return await self._store.write(name, work, **options)
        said: list[Any] = []

        def undone(tx: Transaction) -> None:
            said.append(work(tx))
            raise LookupError

        try:
            await self._store.write(name, undone)
        except LookupError:
            return said[-1]

    def later(self, name: str, work: Callable[[Transaction], object]) -> None:
        if name != self._lost:
            self._store.later(name, work)
