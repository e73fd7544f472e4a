"""`resume_answered`: resumes answered runs of an agent in a program's own loop, as the answers come."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from signoff.broker.run_status import RunStatus
from signoff.core.run import SavedRun
from signoff.engine.fair_order import ready_since
from signoff.engine.resumable_runs import ResumableRuns
from signoff.engine.resumer import ResumeLoop
from signoff.errors import RunOver, RunTaken, SignoffError, StoreError, WaitsElsewhere, WrongUse

if TYPE_CHECKING:
    from signoff.gate.capability import Signoff
    from signoff.workers.runtime import Agent, AgentRunResult

DepsT = TypeVar("DepsT")
OutT = TypeVar("OutT")
AT_ONCE = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumedRun(Generic[OutT]):
    """A resumed run: it has ended, waits for its next answer, or failed."""

    run: str
    """Its id."""
    result: AgentRunResult[OutT] | None = None
    """None if it failed. Its `output` is `DeferredToolRequests` if the run waits again."""
    error: Exception | None = None


async def resume_answered(
    agent: Agent[DepsT, OutT],
    signoff: Signoff | None = None,
    *,
    watch: bool = True,
    at_once: int = AT_ONCE,
    **options: Any,
) -> AsyncGenerator[ResumedRun[OutT]]:
    """Resume the runs of an agent that were answered while no process executed them, and yield their results.

    ```python
    async for done in resume_answered(agent):
        print(done.run, done.result.output if done.result else done.error)
    ```

    It waits for answers without end; with `watch=False` it ends when no run can continue, for a job that is started
    every few minutes. The agent needs a name of its own (`Agent(name=…)`) and a `Signoff` with a store: only runs that
    an agent of this name began there are taken up, oldest answer first, `at_once` of them at a time. If several
    processes do this, each run goes to one of them. `options` go to `agent.run` (`deps`, `usage_limits` …). A run that
    fails has ended, and is yielded with its error; the others continue. If you leave the loop early, runs in progress
    are suspended.
    """
    answered: _AnsweredRuns[OutT] = _AnsweredRuns(agent, signoff, at_once, options)
    looking = asyncio.create_task(answered.loop.run())
    try:
        await asyncio.wait([looking], timeout=0)
        while True:
            while not answered.done.empty():
                yield answered.done.get_nowait()
            if not watch and await answered.is_idle():
                return
            waiting = asyncio.create_task(answered.news.wait())
            await asyncio.wait([looking, waiting], return_when=asyncio.FIRST_COMPLETED)
            waiting.cancel()
            answered.news.clear()
            if looking.done():
                looking.result()
                return
    finally:
        looking.cancel()
        await asyncio.gather(looking, return_exceptions=True)


@dataclass(slots=True)
class _AnsweredRuns(Generic[OutT]):
    agent: Agent[Any, OutT]
    signoff: Signoff | None
    at_once: int
    options: dict[str, Any]
    done: asyncio.Queue[ResumedRun[OutT]] = field(default_factory=asyncio.Queue["ResumedRun[OutT]"])
    news: asyncio.Event = field(default_factory=asyncio.Event)
    loop: ResumeLoop = field(init=False)
    _looking: ResumableRuns = field(init=False)
    _gate: Signoff = field(init=False)
    _has_looked: bool = False

    def __post_init__(self) -> None:
        from signoff.gate.gated_agents import signoff_of

        gate = self.signoff or signoff_of(self.agent)
        if gate is None or not gate.broker.store.is_durable:
            raise WrongUse(
                "runs are only saved if the agent has a Signoff with a store: Signoff(…, store='sqlite:FILE')"
            )
        if not self.agent.name or self.agent.name not in gate.gate.names:
            raise WrongUse("this agent has no name to know its runs by: write Agent(…, name='shop')")
        self._gate = gate
        self._looking = ResumableRuns(gate.broker, (), only=self._is_ours, looks_after=lambda run: True)
        self.loop = ResumeLoop(gate.broker, self._looking, found=self._found, failed=self._failed, ended=self._ended)

    async def is_idle(self) -> bool:
        """Return whether no run executes, and none can be resumed."""
        if not self._has_looked or self.loop.tasks or not self.done.empty():
            return False
        return not await self._looking.found(self.loop.tasks)

    def _is_ours(self, run: SavedRun) -> bool:
        return not run.agent and run.name == self.agent.name

    async def _found(self, found: Sequence[RunStatus]) -> None:
        for status in sorted(found, key=ready_since):
            if len(self.loop.tasks) < self.at_once:
                self.loop.go_on(status, self._go_on(status.run.id))
            else:
                self._looking.at(status.run.id)
        self._has_looked = True
        self.news.set()

    def _failed(self, error: SignoffError | OSError) -> None:
        """Ignore a failing store: the loop looks again."""

    def _ended(self, run_id: str, task: asyncio.Task[None]) -> None:
        self.news.set()

    async def _go_on(self, run_id: str) -> None:
        from signoff.gate.resume import resume_run

        try:
            result = await resume_run(self.agent, run_id, self._gate, **self.options)
        except RunOver:
            return  # another process finished it
        except (RunTaken, StoreError):  # if the other process does not act on the answer, it is retried
            self.loop.wait(run_id)
        except WaitsElsewhere:
            self._looking.rests(run_id)
        except Exception as error:  # agents are user code: the error goes to the caller that iterates
            self.done.put_nowait(ResumedRun(run=run_id, error=error))
            self.loop.wait(run_id)
        else:
            self._looking.went_on(run_id)
            self.done.put_nowait(ResumedRun(run=run_id, result=result))
