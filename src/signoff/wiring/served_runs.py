"""`ServedRuns`: starts and resumes runs for `signoff serve`, with fair scheduling between projects."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any
from uuid import uuid4

from signoff.broker import Broker, new_id
from signoff.broker.run_status import RunStatus
from signoff.config import Settings, load_worker, worker_names
from signoff.core.comment import Comment
from signoff.core.people import Actor, ActorKind
from signoff.core.request import ApprovalRequest
from signoff.core.run import RunState, SavedRun
from signoff.core.safe_text import in_one_line
from signoff.engine.care import AT_ONCE, SERVED, Executor
from signoff.engine.fair_order import fair_order
from signoff.engine.run_text import failure_text
from signoff.engine.segment_end import Came, SegmentEnd
from signoff.errors import RequestError, RunError, RunOver, RunTaken, SignoffError, StoreError, WrongUse
from signoff.policy.phrases import did_you_mean, shown
from signoff.ports import Transaction
from signoff.server.meters import Meters
from signoff.side_thread import in_side_thread
from signoff.wiring.agent_answers import answer_question, run_to_ask
from signoff.wiring.channel_runs import Running, Telling
from signoff.wiring.job import WORKER, RunOptions, Task, check_name, directory_of, job_for, setup_of
from signoff.wiring.job_builds import BUILDING
from signoff.wiring.run_location import cannot, setup_now
from signoff.wiring.run_process import RunProcess
from signoff.wiring.served_projects import ServedProject, ServedProjects

ASKING = 150.0
"""Timeout in seconds for an agent to answer a question asked beside its run, including building it."""


class ServedRuns(Running):
    """Resumes the runs of some projects, and starts new ones. It implements `server.state.RunControl`."""

    def __init__(
        self,
        telling: Telling,
        broker: Broker,
        projects: ServedProjects,
        options: RunOptions,
        *,
        channel_names: Collection[str] = (),
        concurrency: int = AT_ONCE,
        meters: Meters | None = None,
        observe: Callable[[str], None] | None = None,
        store_failed: Callable[[StoreError], None] = lambda error: None,
    ) -> None:
        """`options` say how agents are run; `observe` gets a line for each start, end or failure."""
        super().__init__(
            telling,
            broker,
            projects.first.settings,
            channel_names,
            replace(options, own=projects.first.file),
            observe=observe,
            marks=(SERVED,),
            at_once=concurrency,
        )
        self._projects = projects
        self._store_failed = store_failed
        self._meters = meters or Meters()
        self._meters.in_hand = lambda: len(self.resumer.tasks)
        self._here_now = os.getcwd()
        self._projects_of: dict[str, str] = {}
        """Project directories of the runs that execute or were found, by run id."""
        self._drains = False
        self._asking: dict[str, asyncio.Task[None]] = {}
        """Tasks of agents that answer a question, by the id of the request it is about."""

    # --- for the API ---

    async def start(
        self,
        worker: str,
        prompt: str,
        *,
        input: Mapping[str, Any] | None,
        requester: str,
        behind: str | None = None,
    ) -> str:
        """Start a run of a worker and return its id. Raises `WrongUse` for an unknown worker or unfit input."""
        if self._drains:
            raise RunError("this server is shutting down and starts nothing new")
        project, name = self._named(worker)
        directory = project.directory
        check_name(project.settings, name, directory)
        options = replace(self.options, directory=directory, own=project.file)
        await self._try_out(name, options, Task(text=prompt, input=input))
        setup = replace(setup_of(options, project.settings), input=input)
        run = await self.broker.runs.begin(
            SavedRun(
                id=new_id(),
                conversation_id=str(uuid4()),
                agent=f"{WORKER}{name}",
                prompt=prompt,
                requester=requester,
                behind=behind,
                setup=setup,
                places={SERVED: ""},
            ),
            put_down=True,
        )
        self.resumer.look_at(run.id)
        return run.id

    async def resume(self, run_id: str) -> None:
        """Have a run checked now: it is resumed if it can be, and this server looks after it from then on.

        Raises `RunOver`, `RunTaken` or `RunError` if it cannot be resumed here.
        """
        status = await self.broker.runs.status((await self.broker.runs.get(run_id)).id)
        run = status.run
        if run.state is not RunState.GOING:
            raise RunOver(f"run {run.id} is {run.state}")
        if status.alive:
            raise RunTaken(f"run {run.id} is already running")
        if status.word == "waiting":
            raise RunError(f"run {run.id} waits for an answer")
        if why := self._hindrance(run):
            raise RunError(f"run {run.id} cannot be resumed here: {why}")
        if self._drains:
            raise RunError("this server is shutting down and resumes nothing")

        def work(tx: Transaction) -> None:
            stored = tx.runs.get(run.id)
            if stored is not None and stored.state is RunState.GOING:
                tx.runs.put(replace(stored, places={**stored.places, SERVED: ""}))

        await self.broker.store.write("adopt", work)
        self.resumer.look_at(run.id)

    async def hindrance(self, run_id: str) -> str:
        """Return why a run cannot be resumed here; empty if it can."""
        return self._hindrance(await self.broker.runs.get(run_id))

    async def check_agent(self, request: ApprovalRequest) -> None:
        """Raise `RequestError` if the agent that waits for a request cannot be asked about it here."""
        if self._drains:
            raise RequestError("this server is shutting down and asks no agents")
        if request.id in self._asking:
            raise RequestError(f"the agent is already answering another question about request {request.id}")
        run = await run_to_ask(self.broker, request)
        if why := self.why_not(run) or self._not_here(run):
            raise RequestError(f"the agent of run {run.id} cannot be asked here: {why}")

    def ask_agent(self, question: Comment) -> None:
        """Have the agent answer a question about the request, beside its run. A failure is added as a comment."""
        task = asyncio.create_task(self._agent_answers(question), name=f"question {question.id}")
        self._asking[question.request] = task
        task.add_done_callback(lambda _: self._asking.pop(question.request, None))

    async def _agent_answers(self, question: Comment) -> None:
        try:
            await asyncio.wait_for(answer_question(self.broker, question, self.options), ASKING)
        except Exception as error:  # agents are user code and may raise anything
            why = f"no answer within {ASKING:g} s" if isinstance(error, TimeoutError) else failure_text(error)
            self._observe(f"{question.request}  its agent was asked, and did not answer: {why}")
            by = Actor(name="signoff", kind=ActorKind.SCRIPT, via="agent")
            with suppress(SignoffError):  # then only the log has it
                await self.broker.comments.add(question.request, f"The agent did not answer: {why}", by=by)

    async def ask_nobody(self) -> None:
        """Cancel the questions to agents: nobody would receive their answers."""
        tasks = list(self._asking.values())
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=1)

    def workers(self) -> Mapping[str, str]:
        """Return the workers that can be started, by name, each with its description."""
        found: dict[str, str] = {}
        for spoken, (project, name) in self._startable().items():
            found[spoken] = ""
            with suppress(SignoffError):  # an invalid one is listed; starting it reports the error
                found[spoken] = load_worker(project.settings, name).description or ""
        return found

    def drain(self) -> None:
        """Start and resume nothing new from now on."""
        self._drains = True
        self.resumer.drain()

    # --- resuming ---

    def _startable(self) -> dict[str, tuple[ServedProject, str]]:
        """Return the workers by their names. A name in several projects is prefixed with the project's label."""
        every = [(project, name) for project in self._projects.all for name in worker_names(project.settings)]
        names = [name for _, name in every]
        return {
            name if names.count(name) == 1 else f"{project.label}/{name}": (project, name) for project, name in every
        }

    def _named(self, worker: str) -> tuple[ServedProject, str]:
        known = self._startable()
        if worker not in known:
            raise WrongUse(f"there is no worker {shown(worker)}\n  {did_you_mean(worker, known)}")
        return known[worker]

    async def _try_out(self, worker: str, options: RunOptions, task: Task) -> None:
        """Raise if a worker cannot be built or does not accept the task, before anything is saved."""

        def work() -> None:
            job = job_for(worker, options)
            try:
                job.prompt(task)
            finally:
                job.close()

        try:
            await asyncio.wait_for(in_side_thread(work), BUILDING)
        except TimeoutError:
            raise RunError(f"the worker {worker} could not be built within {BUILDING:g} s") from None

    def home(self, channel: str) -> tuple[Settings, str]:
        project = self._projects.of_channel(channel)
        return project.settings, project.directory

    def looks_after(self, run: SavedRun) -> bool:
        return self._of(run) is not None

    def order(self, found: Sequence[RunStatus], busy: Collection[str]) -> Sequence[RunStatus]:
        """Sort by projects: none starves behind the runs of others."""
        going = {one: self._projects_of.get(one, "") for one in busy}
        self._projects_of = going | {one.run.id: self._project(one.run) for one in found}
        return fair_order(found, going.values(), lambda one: self._projects_of[one.run.id])

    def why_not(self, run: SavedRun) -> str:
        try:
            if self._of(run) is None:
                return cannot(run)
            if run.agent:
                directory_of(run)
        except (SignoffError, OSError) as error:
            return in_one_line(str(error))
        return ""

    async def executor(self, run: SavedRun) -> Executor:
        """Return what executes the run: its own process, if it belongs to another directory."""
        if not (directory := self._elsewhere(run)):
            return await super().executor(run)
        self.hold(run)
        await self.adopt(run)
        return RunProcess(directory, self._projects.store.address)

    async def ended(self, run: SavedRun, end: SegmentEnd, *, again: bool) -> None:
        if end.has_failed or end.went_on:
            self._meters.resumes["failed" if end.has_failed else "ok"] += 1
        if end.came is Came.UNREACHABLE and isinstance(end.error, StoreError):
            self._store_failed(end.error)
        await super().ended(run, end, again=again)

    def trouble(self, error: Exception, run_id: str = "") -> None:
        if isinstance(error, StoreError) and not run_id:
            self._store_failed(error)
        super().trouble(error, run_id)

    def _hindrance(self, run: SavedRun) -> str:
        return self.why_not(run) or self._not_ours(run)

    def _of(self, run: SavedRun) -> ServedProject | None:
        """Return the project of a run. None if it cannot be looked up: one run must not block all others."""
        try:
            return self._projects.of(run)
        except (SignoffError, OSError):
            return None

    def _not_ours(self, run: SavedRun) -> str:
        return "" if self._of(run) is not None else "it belongs to no project here"

    def _not_here(self, run: SavedRun) -> str:
        if why := self._not_ours(run):
            return why
        elsewhere = self._elsewhere(run)
        return f"it runs in a separate process, in {elsewhere}" if elsewhere else ""

    def _elsewhere(self, run: SavedRun) -> str:
        """Return the directory of a run that needs its own process; empty if it runs in this one."""
        project = self._of(run)
        directory = setup_now(run.setup).directory if run.agent or project is None else project.directory
        return "" if os.path.realpath(directory) == os.path.realpath(self._here_now) else directory

    def _project(self, run: SavedRun) -> str:
        project = self._of(run)
        return project.directory if project is not None else ""
