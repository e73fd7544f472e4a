"""Every way of resuming does the same with a run that cannot simply go on, and says it in the same words."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import Agent, DeferredToolRequests
from tests.wiring.town import ANA, PROJECT, TURNS, Town

from signoff import ApprovalDecision, Signoff, resume
from signoff.broker import Broker
from signoff.broker.run_status import RunStatus
from signoff.cli.resume_watch import WatchedRuns
from signoff.cli.run_screen import Going
from signoff.core.event import RunMessage
from signoff.core.run import RunState, SavedRun
from signoff.engine.answered_runs import AgentRuns, gate_of
from signoff.engine.care import SERVED, RunCare
from signoff.engine.resumer import Resumer
from signoff.engine.run_text import failure_text
from signoff.engine.segment import segment
from signoff.engine.segment_end import Came, SegmentEnd
from signoff.ports import Transaction
from signoff.testing import ScriptedModel
from signoff.wiring.caller import Caller
from signoff.wiring.channel_runs import Running
from signoff.wiring.job import RunOptions, Task, job_for, setup_of
from signoff.wiring.program_runs import Resumption
from signoff.wiring.served_projects import served_projects
from signoff.wiring.served_runs import ServedRuns

CALLS = [{"calls": [{"tool": "pay", "args": {"to": "ben"}}]}, {"say": "Paid."}]
TOLD = "It cannot continue now: "
NOTES = TURNS.splitlines(keepends=True)[1]
"""The turn that asks to note the eggs."""


@dataclass
class Crier:
    """Keeps what people are told, as the reconciler of channels would show it."""

    in_hand: set[str] = field(default_factory=set[str])
    told: list[str] = field(default_factory=list[str])

    async def say(self, run_id: str, worker: str, state: RunState, text: str) -> object:
        self.told.append(text)
        return ()

    def tell_line(self, run_id: str, message: RunMessage) -> None: ...


class Between:
    """An engine that lets something happen between the look and the segment, as another process would."""

    def __init__(self, care: RunCare, happens: Callable[[RunStatus], Awaitable[object]]) -> None:
        self._care = care
        self.happens = happens
        self.ends: list[SegmentEnd] = []

    async def go_on(self, status: RunStatus) -> SegmentEnd:
        await self.happens(status)
        self.ends.append(await segment(self._care, status))
        return self.ends[-1]


class Way:
    """One way of resuming in a project, with a run that was answered."""

    def __init__(self, name: str, town: Town, capsys: pytest.CaptureFixture[str] | None = None) -> None:
        self.name = name
        self._town = town
        self._capsys = capsys
        self._crier = Crier()
        self._log: list[str] = []
        self.options: dict[str, Any] = {}
        self.calls = CALLS

    def care(self) -> RunCare:
        broker, options = self._town.broker, RunOptions(unattended="park", wait=timedelta(0), caller=Caller.here())
        crier: Any = self._crier
        match self.name:
            case "channels":
                return Running(crier, broker, self._town.settings, ["discord"], options, observe=self._log.append)
            case "serve":
                failed = self._crier.told.append
                served = served_projects(["."], None)
                return ServedRuns(crier, broker, served, options, store_failed=lambda error: failed("store failed"))
            case "watch":
                return WatchedRuns(broker, options, Going(as_json=False), self._town.settings.agents, traceback=False)
            case "bot":
                log = logging.getLogger("signoff.discord")
                return Resumption(
                    broker, crier, "discord", lambda run: resume(self.agent, run, **self.options), log=log
                )
            case _:
                self._runs = AgentRuns(self.agent, gate_of(self.agent, None), self.options, 8)
                return self._runs

    @property
    def is_of_program(self) -> bool:
        return self.name in ("bot", "loop")

    async def answered(self) -> str:
        """Begin a run that asks, and answer."""
        broker = self._town.broker
        if self.is_of_program:
            self.agent = agent_on(self._town, self.calls)
            await self.agent.run("Pay.")
        else:
            job = job_for("talker", RunOptions(unattended="park", wait=timedelta(0)))
            await job.run(Task(text="note the eggs"))
            job.close()
        [status] = await broker.runs.list(going=True)
        await broker.answer(status.waiting[0].id, ApprovalDecision(approved=True), by=ANA)
        if self.name in ("channels", "bot"):  # else only runs that were shown there are resumed
            await broker.store.write(
                "shown", lambda tx: tx.runs.put(status.run.changed(places={"discord": "1/"}, heard=()))
            )
        return status.run.id

    def said(self) -> str:
        """What people were told so far; or the program, of what went wrong."""
        errors: list[str] = []
        printed = self._capsys.readouterr().err if self._capsys is not None else ""
        while self.name == "loop" and not self._runs.done.empty():
            if (error := self._runs.done.get_nowait().error) is not None:
                errors.append(f"{TOLD}{failure_text(error)}")
        return "\n".join([*self._crier.told, *errors, printed])


def agent_on(town: Town, calls: list[dict[str, Any]]) -> Agent[None, Any]:
    agent: Agent[None, Any] = Agent(
        ScriptedModel(calls),
        name="shop",
        output_type=[str, DeferredToolRequests],
        capabilities=[Signoff([{"allow": "leave"}, {"ask": "*"}], store=town.store, wait="suspend", clock=town.clock)],
    )

    @agent.tool_plain
    def pay(to: str) -> str:
        Path("paid").write_text(to)
        return "done"

    @agent.tool_plain
    async def leave(how: str) -> None:
        await LEAVING[how]()

    agent.tool_plain(leave, name="leave_if_asked")
    return agent


async def cancelled() -> None:
    raise asyncio.CancelledError


async def exits() -> None:
    raise SystemExit(7)


async def cancels() -> None:
    task = asyncio.current_task()
    assert task is not None
    task.cancel()
    await asyncio.sleep(0)


LEAVING = {"cancelled": cancelled, "exits": exits, "cancels": cancels}
"""Ways for a tool to leave its call that are not its to use."""
LEAVES = """\
from pydantic_ai.toolsets import FunctionToolset
from tests.engine.test_ways import LEAVING

leaving = FunctionToolset()


@leaving.tool_plain
async def leave(how: str) -> None:
    await LEAVING[how]()
"""


@pytest.fixture
def town(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Town:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SIGNOFF_STORE", f"sqlite:{tmp_path / 'signoff.db'}")
    return Town(tmp_path).write(PROJECT, talker=TURNS.partition("\n")[2])


@pytest.fixture(params=["channels", "serve", "watch", "bot", "loop"])
def way(request: pytest.FixtureRequest, town: Town, capsys: pytest.CaptureFixture[str]) -> Way:
    return Way(request.param, town, capsys)


async def nothing(status: RunStatus) -> None: ...


async def tried(town: Town, way: Way, happens: Callable[[RunStatus], Awaitable[object]], times: int = 2) -> Between:
    """Look, and go on with what is found, after `happens`; and again when it is due."""
    await way.answered()
    care = way.care()
    engine = Between(care, happens)
    resumer = Resumer(care, engine)
    for _ in range(times):
        await resumer.look()
        await resumer.idle()
        town.clock.advance(timedelta(minutes=2))
    return engine


async def test_an_answered_run_goes_on(town: Town, way: Way) -> None:
    with town.at_work():
        engine = await tried(town, way, nothing)
        assert [end.came for end in engine.ends] == [Came.ENDED]
        [status] = await town.broker.runs.list()
        assert status.word == "done"


async def test_who_loses_the_race_says_nothing_and_looks_again(town: Town, way: Way) -> None:
    other: list[Broker] = []

    async def takes(status: RunStatus) -> None:
        other.append(Broker(town.store, town.clock))
        await other[0].runs.take(status.run.id)

    with town.at_work():
        await way.answered()
        care = way.care()
        engine = Between(care, takes)
        resumer = Resumer(care, engine)
        await resumer.look()
        await resumer.idle()
        assert [end.came for end in engine.ends] == [Came.LEFT]
        assert "already being executed" not in way.said()
        [status] = await town.broker.runs.list()
        await other[0].runs.put_down(status.run.id, status.run.epoch)
        engine.happens = nothing
        town.clock.advance(timedelta(minutes=2))
        await resumer.look()
        await resumer.idle()
        assert engine.ends[-1].came is Came.ENDED, "the other did not act on the answer"


async def test_what_another_process_ended_is_left(town: Town, way: Way) -> None:
    with town.at_work():
        engine = await tried(town, way, lambda status: town.broker.runs.cancel(status.run.id, by="ana"))
        assert [end.came for end in engine.ends] == [Came.OVER]
        assert TOLD not in way.said()


async def test_a_halt_in_between_is_no_failure_and_the_run_goes_on_when_it_is_lifted(town: Town, way: Way) -> None:
    with town.at_work():
        await way.answered()
        care = way.care()
        engine = Between(care, lambda status: town.broker.switch.halt(by="ana", why="lunch"))
        resumer = Resumer(care, engine)
        for _ in range(2):
            await resumer.look()
            await resumer.idle()
        assert [end.came for end in engine.ends] == [Came.HALTED], "while it is halted nothing is tried"
        assert TOLD not in way.said()
        await town.broker.switch.unhalt(by="ana")
        engine.happens = nothing
        await resumer.look()
        await resumer.idle()
        assert engine.ends[-1].came is Came.ENDED


async def test_a_damaged_run_stays_and_that_is_said_once(town: Town, way: Way) -> None:
    async def damage(status: RunStatus) -> None:
        run = await town.broker.runs.inside(status.run.id)
        assert run is not None
        await town.store.write("damage", lambda tx: tx.runs.put(run.changed(rest="{")))

    with town.at_work():
        engine = await tried(town, way, damage)
        assert [end.came for end in engine.ends] == [Came.FAILED] * 2
        assert "cannot read" in engine.ends[0].text
        check_said_once(way, engine)
        assert "store failed" not in way.said()
        [status] = await town.broker.runs.list()
        assert status.word == "ready"


async def test_a_worker_whose_file_is_gone_is_said_once_and_its_run_stays(town: Town, way: Way) -> None:
    async def vanish(status: RunStatus) -> None:
        (town.directory / "workers" / "talker.yaml").unlink(missing_ok=True)
        way.options["no such option"] = 1  # as a program's agent whose options are wrong

    with town.at_work():
        engine = await tried(town, way, vanish)
        assert [end.came for end in engine.ends] == [Came.FAILED] * 2
        check_said_once(way, engine)
        [status] = await town.broker.runs.list()
        assert status.word == "ready"


@pytest.mark.parametrize("how", ["cancelled", "exits", "cancels"])
async def test_a_tool_that_ends_its_task_or_the_program_fails_alone(town: Town, way: Way, how: str) -> None:
    """Nobody stops the run then: it is not repeated without end, and what executes it stays."""
    calls = [{"tool": "leave", "args": {"how": how}}]
    project = PROJECT.replace("toolsets: {", 'plugins: {allow: [leaving]}\ntoolsets: {own: {use: "leaving:leaving"}, ')
    town.write(project.replace("policy: []", "policy: [{allow: leave}]"), talker=f"{NOTES}- calls: {json.dumps(calls)}")
    (town.directory / "leaving.py").write_text(LEAVES)
    worker = town.directory / "workers" / "talker.yaml"
    worker.write_text(worker.read_text().replace("[files]", "[files, own]"))
    way.calls = [CALLS[0], {"calls": calls}]
    with town.at_work():
        engine = await tried(town, way, nothing)
        assert [end.came for end in engine.ends] == [Came.ENDED]
        [status] = await town.broker.runs.list()
        assert status.word == "failed"
        assert ("sys.exit(7)" if how == "exits" else "CancelledError") in status.run.detail


async def test_a_call_that_cancels_its_task_is_asked_about(town: Town) -> None:
    way = Way("loop", town)
    way.calls = [{"calls": [{"tool": "leave_if_asked", "args": {"how": "cancels"}}]}]
    with town.at_work():
        engine = await tried(town, way, nothing)
        assert [end.came for end in engine.ends] == [Came.WAITS]
        [status] = await town.broker.runs.list()
        assert status.waiting[0].state == "unknown"


def check_said_once(way: Way, engine: Between) -> None:
    said = way.said()
    if way.name == "bot":  # whoever runs it reads it in the log, with the traceback
        return
    assert said.count(f"{TOLD}{engine.ends[0].text}") == said.count(TOLD) == 1
    headings = [line for line in said.splitlines() if line.startswith("run ")]
    assert len(headings) == (1 if way.name == "watch" else 0), "a try that says nothing new has no heading"
    assert way.is_of_program or "\nsignoff retries; or run: signoff resume " in said


@pytest.mark.parametrize("name", ["channels", "serve", "watch"])
async def test_a_run_whose_directory_is_gone_is_not_tried_and_that_is_said_once(
    town: Town, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    way = Way(name, town, capsys)
    with town.at_work():
        gone = str(town.directory / "gone")

        def move(tx: Transaction) -> None:
            run = tx.runs.get(run_id)
            assert run is not None
            tx.runs.put(run.changed(setup=replace(run.setup, directory=gone)))

        run_id = await way.answered()
        await town.store.write("move", move)
        care = way.care()
        engine = Between(care, nothing)
        resumer = Resumer(care, engine)
        for _ in range(2):
            await resumer.look()
            town.clock.advance(timedelta(minutes=2))
        assert engine.ends == []
        assert way.said().count(run_id) == 1


@pytest.mark.parametrize(("name", "word"), [("channels", "failed"), ("serve", "failed"), ("watch", "ready")])
async def test_a_run_of_which_nothing_is_saved_ends_as_failed_where_somebody_waits_for_it(
    town: Town, name: str, word: str, capsys: pytest.CaptureFixture[str]
) -> None:
    way = Way(name, town, capsys)
    places = {"channels": {"discord": "1/"}, "serve": {SERVED: ""}, "watch": {}}[name]
    with town.at_work():
        setup = setup_of(RunOptions(), town.settings)
        run = SavedRun(id="r", agent="worker:talker", prompt="note it", setup=setup, places=places)
        await town.broker.runs.begin(run, put_down=True)
        (town.directory / "workers" / "talker.yaml").unlink()
        care = way.care()
        end = await segment(care, await town.broker.runs.status("r"))
        assert "there is no worker `talker`" in end.text
        assert (await town.broker.runs.status("r")).word == word


async def test_an_engine_may_execute_segments_in_another_process(town: Town) -> None:
    """All that such an engine needs: it is told of a run that has news, and its worker calls `segment`."""
    offered: list[str] = []

    class Elsewhere:
        async def go_on(self, status: RunStatus) -> SegmentEnd:
            offered.append(status.run.id)
            return SegmentEnd(came=Came.LEFT)

    with town.at_work():
        run = await Way("channels", town).answered()
        here = Resumer(town.running, Elsewhere())
        for _ in range(2):
            await here.look()
            await here.idle()
        assert offered == [run], "not again at once"
        town.clock.advance(timedelta(minutes=2))
        await here.look()
        await here.idle()
        assert offered == [run, run], "again after a while: what was told may have been lost"
        worker = Broker(town.store, town.clock)
        crier: Any = Crier()
        options = RunOptions(unattended="park", wait=timedelta(0), caller=Caller.here())
        there = Running(crier, worker, town.settings, ["discord"], options)
        ends = [await segment(there, await worker.runs.status(run)) for _ in offered]
        assert [end.came for end in ends] == [Came.ENDED, Came.OVER], "it was told twice, and one segment ran"
        town.clock.advance(timedelta(minutes=2))
        await here.look()
        assert (len(offered), town.note()) == (2, "eggs")
