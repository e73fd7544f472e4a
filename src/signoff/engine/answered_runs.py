"""`resume_answered`: resumes answered runs of an agent in a program's own loop, as the answers come."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from signoff.core.run import SavedRun
from signoff.engine.care import Executor, RunCare
from signoff.engine.resumer import Resumer
from signoff.engine.segment_end import Came, SegmentEnd
from signoff.errors import WrongUse

if TYPE_CHECKING:
    from signoff.gate.capability import Signoff
    from signoff.workers.runtime import Agent, AgentRunResult, Finished

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
    care: AgentRuns[OutT] = AgentRuns(agent, gate_of(agent, signoff), options, at_once)
    looking = asyncio.create_task(Resumer(care).run(watch=watch))
    looking.add_done_callback(lambda _: care.news.set())
    try:
        while True:
            await care.news.wait()
            care.news.clear()
            while not care.done.empty():
                yield care.done.get_nowait()
            if looking.done():
                looking.result()
                return
    finally:
        looking.cancel()
        await asyncio.gather(looking, return_exceptions=True)


def gate_of(agent: Agent[Any, Any], signoff: Signoff | None) -> Signoff:
    """Return the gate with the store of an agent's runs. Raises `WrongUse` if they cannot be found there."""
    from signoff.gate.gated_agents import signoff_of

    gate = signoff or signoff_of(agent)
    if gate is None or not gate.broker.store.is_durable:
        raise WrongUse("runs are only saved if the agent has a Signoff with a store: Signoff(…, store='sqlite:FILE')")
    if not agent.name or agent.name not in gate.gate.names:
        raise WrongUse("this agent has no name to know its runs by: write Agent(…, name='shop')")
    return gate


class AgentRuns(RunCare, Generic[OutT]):
    """The runs of an agent in a program's own loop. They are executed by the agent itself."""

    secrets = ()

    def __init__(self, agent: Agent[Any, OutT], gate: Signoff, options: Mapping[str, Any], at_once: int) -> None:
        super().__init__(gate.broker, at_once=at_once)
        self._agent = agent
        self._gate = gate
        self._options = options
        self.done: asyncio.Queue[ResumedRun[OutT]] = asyncio.Queue()
        self.news = asyncio.Event()
        """Set when a run is done, or the loop is over."""

    def looks_after(self, run: SavedRun) -> bool:
        return not run.agent and run.name == self._agent.name

    async def executor(self, run: SavedRun) -> Executor:
        return self

    async def resume(self, run: SavedRun) -> Finished | None:
        from signoff.gate.resume import resume_run
        from signoff.workers.runtime import finished_of

        result = await resume_run(self._agent, run.id, self._gate, **self._options)
        self._tell(ResumedRun(run=run.id, result=result))
        return finished_of(result)

    async def flush(self) -> None:
        await self.broker.store.flush()

    def close(self) -> None:
        """Do nothing: the agent stays."""

    async def ended(self, run: SavedRun, end: SegmentEnd, *, again: bool) -> None:
        """Tell the program about an error: of a run that failed, or once of one that cannot go on now."""
        if end.error is not None and end.came in (Came.ENDED, Came.FAILED) and not again:
            self._tell(ResumedRun(run=run.id, error=end.error))

    def trouble(self, error: Exception, run_id: str = "") -> None:
        """Ignore a failing store: the loop looks again."""

    def _tell(self, done: ResumedRun[OutT]) -> None:
        self.done.put_nowait(done)
        self.news.set()
