"""`Running`: starts turns of agents from a channel, and resumes them once people have answered.

A turn is saved before it starts, and no process holds it then. The next look for resumable runs takes it. So there is
one way to execute a turn, whether it is new, was answered, or was left by a process that died.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Protocol
from uuid import uuid4

from signoff.broker import Broker, new_id
from signoff.broker.conversations import was_said
from signoff.broker.run_status import RunStatus
from signoff.broker.wall_clock import pause_for
from signoff.config import Settings
from signoff.core.address import spoken_name
from signoff.core.event import RunMessage
from signoff.core.redact import redact_text
from signoff.core.run import RunState, SavedRun
from signoff.core.safe_text import in_one_line
from signoff.core.subject import Subject, SubjectKind
from signoff.engine.care import AT_ONCE, Executor, RunCare
from signoff.engine.resumable_runs import LONGEST, SHORTEST
from signoff.engine.resumer import Resumer
from signoff.engine.run_text import answer_text, cannot_now, failure_text, is_cut, rests_text
from signoff.engine.segment_end import Came, SegmentEnd
from signoff.errors import AlreadyHeard, HeardTooLate, RunTaken, SignoffError, StoreError
from signoff.ports import Heard, Transaction
from signoff.wiring.conversation_place import addressed, conversation_of
from signoff.wiring.job import WORKER, Job, RunOptions, check_name, setup_of
from signoff.wiring.job_builds import JobBuilds
from signoff.wiring.run_location import cannot

RECENT = 50
"""How many recent runs are searched for answers that were shown only in part."""


class Telling(Protocol):
    """Shows people the result of a run. `signoff.delivery.Reconciler` implements it."""

    in_hand: set[str]
    """Runs whose result is shown by somebody in this process."""

    async def say(self, run_id: str, worker: str, state: RunState, text: str) -> object: ...

    def tell_line(self, run_id: str, message: RunMessage) -> None: ...


class Running(RunCare):
    """Starts turns, and resumes runs that were started or asked about on these channels."""

    def __init__(
        self,
        telling: Telling,
        broker: Broker,
        settings: Settings,
        channel_names: Collection[str],
        options: RunOptions,
        *,
        observe: Callable[[str], None] | None = None,
        only: Callable[[SavedRun], bool] | None = None,
        marks: Collection[str] = (),
        at_once: int = AT_ONCE,
    ) -> None:
        """`options` say how agents are run; `observe` gets a line for each start, end or failure.

        `only` filters the runs that are resumed here, if something else resumes others. `marks` are recorded with runs
        that are resumed here: runs with them belong here from then on.
        """
        super().__init__(broker, [*channel_names, *marks], at_once=at_once)
        self._telling = telling
        self._settings = settings
        self._marks = dict.fromkeys(marks, "")
        self._only = only
        # Nobody sits here: a run suspends at its first question, and is resumed when that is answered.
        # Jobs borrow the store of this process, so it also writes what was left when the store failed at their end.
        self.options = replace(options, unattended="park", wait=timedelta(0), requester=None, lent=broker.ledger.lend)
        self._observe = observe or _nobody
        self._saying: set[asyncio.Task[None]] = set()
        self._builds = JobBuilds(self._built_late)
        self._turns: set[str] = set()
        """Chat turns that were started in these channels and were unfinished at the last look."""
        self._here: set[str] = set()
        """Runs that execute here: what they come to is shown by us."""
        self._told: set[str] = set()
        """Runs that people were told cannot be resumed here."""
        self.resumer = Resumer(self)

    # --- starting ---

    async def begin(self, heard: Heard) -> str:
        """Start a worker on what somebody said. Returns the immediate reply, which may be empty.

        One turn at a time in one conversation. A message that was heard before (a duplicate delivery) starts nothing.
        """
        conversation = conversation_of(heard)
        settings, directory = self.home(heard.channel)
        entry = settings.channels.get(heard.channel)
        last = await self.broker.runs.last_turn(conversation)
        whom = addressed(
            heard.text,
            entry.workers if entry is not None else (),
            last.agent.removeprefix(WORKER) if last is not None else "",
        )
        if isinstance(whom, str):
            return whom
        try:
            is_worker = ":" not in whom.worker
            if is_worker:
                check_name(settings, whom.worker, directory)
            run = await self.broker.runs.begin(
                SavedRun(
                    id=new_id(),
                    conversation_id=str(uuid4()),
                    agent=f"{WORKER}{whom.worker}" if is_worker else whom.worker,
                    prompt=whom.text,
                    requester=heard.by.name,
                    setup=setup_of(replace(self.options, chat=True, directory=directory), settings),
                    places={heard.channel: heard.at},
                ),
                conversation=conversation,
                heard=heard.id,
                put_down=True,
            )
        except AlreadyHeard:
            return ""
        except HeardTooLate:
            return "Please send that again: a newer message arrived first."
        except RunTaken as taken:
            return f"One at a time: {taken}. `signoff cancel` ends it."
        except SignoffError as error:
            return redact_text(in_one_line(str(error)))
        self._observe(f"{run.id}  {spoken_name(whom.worker)} starts for {heard.by.name}")
        before = self.resumer.offered(run.id)
        if before < self.at_once:
            return ""
        return f"{before} runs are ahead of yours; it starts when one of them ends."

    def home(self, channel: str) -> tuple[Settings, str]:
        """Return the project of a channel, and its directory: empty for the working directory."""
        return self._settings, ""

    # --- resuming ---

    async def run(self) -> None:
        """Resume runs until cancelled. Runs that execute then are suspended; any process can resume them."""
        saying = asyncio.create_task(self._say_in_full())
        try:
            await self.resumer.run()
        finally:
            tasks = [saying, *self._saying]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            self._telling.in_hand -= self._turns | self._here

    async def idle(self) -> None:
        """Return once no run executes here, and all was said."""
        while self.resumer.tasks or self._saying:
            await self.resumer.idle()
            if self._saying:
                await asyncio.wait(self._saying)

    def only(self, run: SavedRun) -> bool:
        return self._only is None or self._only(run)

    def looked(self, going: Sequence[SavedRun], over: Sequence[SavedRun]) -> None:
        for run in over:
            self._told.discard(run.id)
            if run.id in self._turns:
                self._turns.discard(run.id)
                self._saying.add(task := asyncio.create_task(self._ended(run), name=f"end of run {run.id}"))
                task.add_done_callback(self._saying.discard)
        self._turns |= {run.id for run in going if run.setup.chat and self.began(run)}
        self._telling.in_hand |= self._turns  # shown in full, whichever process ends them

    def why_not(self, run: SavedRun) -> str:
        """Return why a run cannot be resumed here, as text for people; empty if it can."""
        return cannot(run)

    async def is_hindered(self, status: RunStatus) -> bool:
        if why := self.why_not(status.run):
            if status.answered and not status.waiting:
                await self._say_once(status.run, why)
            return True
        return False

    def hold(self, run: SavedRun) -> None:
        """Note that what the run comes to is shown by us."""
        self._here.add(run.id)
        self._telling.in_hand.add(run.id)

    async def executor(self, run: SavedRun) -> Executor:
        self.hold(run)
        await self.adopt(run)
        return await self._builds.built(run, replace(self.options, message=partial(self._line_of, run.id)))

    async def ended(self, run: SavedRun, end: SegmentEnd, *, again: bool) -> None:
        name = _called(run)
        try:
            match end.came:
                case Came.ENDED:
                    text = end.text if end.finished is None else answer_text(end.finished.output, end.secrets)
                    how = "is done" if end.state is RunState.DONE else f"failed: {text}"
                    self._observe(f"{run.id}  {name} {how}")
                    await self._tell(run, end.state, text)
                    self._turns.discard(run.id)
                    self._told.discard(run.id)
                case Came.OVER if end.text:
                    self._observe(f"{run.id}  {name} failed: {end.text}")
                case Came.OVER if end.state is not RunState.GOING:
                    self._observe(f"{run.id}  {name} is {end.state}")
                case Came.WAITS:
                    self._observe(f"{run.id}  {name} waits for {_answers(end.waits)}")
                case Came.RESTS:
                    self._observe(f"{run.id}  {name} waits for an external result")
                    await self._say_once(run, rests_text(run.id))
                case Came.UNREACHABLE:
                    self._observe(f"{run.id}  {name} continues when the store works again: {in_one_line(end.text)}")
                case Came.FAILED:
                    self._observe(f"{run.id}  {name} failed: {end.text}")
                    await self._say_once(run, cannot_now(run.id, end.text))
                case Came.OVER | Came.ANSWERED | Came.LEFT | Came.HALTED:
                    pass
        finally:
            self._here.discard(run.id)
            if run.id not in self._turns:
                self._telling.in_hand.discard(run.id)

    def trouble(self, error: Exception, run_id: str = "") -> None:
        if run_id:
            self._observe(f"{run_id}  {failure_text(error)}")
        else:
            self._observe(f"cannot read which runs are ready: {redact_text(in_one_line(str(error)))}")

    async def _tell(self, run: SavedRun, state: RunState, text: str) -> None:
        """Show people the result of a run. If the store fails, retry with exponential backoff until it works."""
        wait = timedelta(0)
        while True:
            try:
                await self._telling.say(run.id, _called(run), state, text)
            except StoreError as error:
                self._observe(f"{run.id}  its result cannot be reported yet: {redact_text(in_one_line(str(error)))}")
            else:
                return
            await pause_for(self.broker.clock, wait)
            wait = min(wait * 2 or SHORTEST, LONGEST)

    async def adopt(self, run: SavedRun) -> None:
        """Record the places of a run that was started elsewhere, so that the next process resumes it after a crash."""
        if self.began(run) and self._marks.keys() <= run.places.keys():
            return

        def work(tx: Transaction) -> None:
            stored = tx.runs.get(run.id)
            shown = {one.channel: one.place for one in tx.deliveries.find(trail=run.id) if one.channel in self.names}
            if stored is not None and stored.state is RunState.GOING and (shown or self._marks):
                tx.runs.put(replace(stored, places={**stored.places, **shown, **self._marks}))

        await self.broker.store.write("adopt", work)

    async def _say_in_full(self) -> None:
        """Show in full what was shown only in part because the process with the turn died right after its end."""

        def work(tx: Transaction) -> list[SavedRun]:
            return [run for run in tx.runs.all(limit=RECENT) if was_said(run) and self._is_cut(tx, run)]

        found: list[SavedRun] = []
        with suppress(StoreError):  # the loop that looks for runs reports it
            found = await self.broker.store.read(work)
        for run in found:
            await self._say_whole(run)

    async def _ended(self, run: SavedRun) -> None:
        """Show the result of a turn that began here and another process ended. Of a failed one no more is known."""
        try:
            if was_said(run) and await self.broker.store.read(lambda tx: self._is_cut(tx, run)):
                await self._say_whole(run)
        finally:
            self._telling.in_hand.discard(run.id)

    async def _say_whole(self, run: SavedRun) -> None:
        """Show the result of a finished turn, read from its conversation."""
        job: Job | None = None
        try:
            job = await self._builds.built(run, self.options)
            if (said := await job.runner.said_in(run.id)) is not None:
                text = answer_text(job.runner.last_answer(said), tuple(job.secrets))
                await self._tell(run, run.state, text)
        except Exception as error:  # what is shown stays as it is
            self._observe(f"{run.id}  {failure_text(error)}")
        finally:
            if job is not None:
                job.close()

    def _is_cut(self, tx: Transaction, run: SavedRun) -> bool:
        return not self.why_not(run) and any(is_cut(tx, name, run) for name in self.names & {*run.places})

    def _built_late(self, run: SavedRun) -> None:
        """Try a run again whose agent took too long to build, now that it is."""
        self.resumer.look_at(run.id)

    def _line_of(self, run_id: str, message: RunMessage) -> None:
        """Pass on a line that a tool of a run has for people. Thread-safe."""
        self._telling.tell_line(run_id, message)
        self._observe(f"{run_id}  {' > '.join(message.worker)} says: {message.text}")

    async def _say_once(self, run: SavedRun, text: str) -> None:
        """Show that a run is not over and cannot be resumed here, unless any process showed that before."""
        if run.id in self._told:
            return
        subject = Subject(SubjectKind.RESULT, run.id)
        names = self.names
        if not await self.broker.store.read(
            lambda tx: any(tx.deliveries.get(one, subject) is not None for one in names)
        ):
            await self._telling.say(run.id, _called(run), RunState.GOING, text)
        self._told.add(run.id)


def _nobody(line: str) -> None:
    """Discard the line."""


def _called(run: SavedRun) -> str:
    """The name that people use for its agent."""
    return spoken_name(run.agent) or run.name


def _answers(number: int) -> str:
    return "an answer" if number == 1 else f"{number} answers"
