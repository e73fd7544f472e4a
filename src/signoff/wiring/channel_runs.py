"""`Running`: starts turns of agents from a channel, and resumes them once people have answered.

A turn is saved before it starts, and no process holds it then. The next look for resumable runs takes it. So there is
one way to execute a turn, whether it is new, was answered, or was left by a process that died.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Protocol
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
from signoff.engine.resumable_runs import LONGEST, SERVED, SHORTEST, ResumableRuns
from signoff.engine.resumer import ResumeLoop
from signoff.engine.run_text import answer_text, failure_text, is_cut
from signoff.errors import (
    AlreadyHeard,
    Halted,
    HeardTooLate,
    RunOver,
    RunTaken,
    SignoffError,
    StoreError,
    StoreUnavailable,
    WaitsElsewhere,
)
from signoff.ports import Heard, Transaction
from signoff.wiring.conversation_place import addressed, conversation_of
from signoff.wiring.job import WORKER, Job, RunOptions, check_name, job_of, setup_of
from signoff.wiring.run_location import cannot
from signoff.wiring.side_thread import in_side_thread

if TYPE_CHECKING:
    from signoff.workers.runtime import Finished

AT_ONCE = 16
"""Maximum of concurrent runs. A tool that hangs occupies one of these places as long as it hangs."""


def _as_found(found: Sequence[RunStatus], going: Collection[str]) -> Sequence[RunStatus]:
    return found


def _nowhere_else(run: SavedRun) -> Awaitable[str] | None:
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunCare:
    """Which runs are resumed besides those of the channels, and how."""

    looks_after: Callable[[SavedRun], bool] = lambda run: False
    """Returns whether a run is resumed here once it is answered, wherever people were asked."""
    cannot: Callable[[SavedRun], str] = cannot
    """Returns why a run cannot be resumed here, as text for people; empty if it can."""
    apart: Callable[[SavedRun], Awaitable[str] | None] = _nowhere_else
    """Resumes a run in another process, and returns why that failed. None: the run is resumed in this process."""
    order: Callable[[Sequence[RunStatus], Collection[str]], Sequence[RunStatus]] = _as_found
    """Sorts the runs to resume, given the ids of those that already execute."""
    home: Callable[[str], tuple[Settings, str]] | None = None
    """Returns the project of a channel and its directory. None: there is one project, this one."""
    at_once: int = 0
    """Maximum of concurrent runs; 0: `AT_ONCE`."""
    marks: bool = False
    """Whether resumed runs are marked as looked after by this program from then on."""
    store_failed: Callable[[StoreError], None] = lambda error: None
    """Called when the store failed."""
    begins: Callable[[SavedRun], None] = lambda run: None
    ended: Callable[[SavedRun, bool], None] = lambda run, is_ok: None
    """`begins` is called when an attempt to resume a run starts, `ended` with whether it succeeded."""


BUILDING = 60.0
"""Timeout in seconds for building an agent. Most of it is imports."""
RECENT = 50
"""How many recent runs are searched for answers that were shown only in part."""


class Telling(Protocol):
    """Shows people the result of a run. `signoff.delivery.Reconciler` implements it."""

    in_hand: set[str]
    """Runs whose result is shown by somebody in this process."""

    async def say(self, run_id: str, worker: str, state: RunState, text: str) -> object: ...

    def tell_line(self, run_id: str, message: RunMessage) -> None: ...


class Running:
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
        only: Callable[[SavedRun], bool] = lambda run: True,
        care: RunCare | None = None,
    ) -> None:
        """`options` say how agents are run; `observe` gets a line for each start, end or failure.

        `only` filters the runs that are resumed here, if something else resumes others. `care` adds runs besides those
        of these channels, and says how they are resumed.
        """
        care = care or RunCare()
        self._telling = telling
        self._broker = broker
        self._settings = settings
        self._care = care
        self._names = frozenset(channel_names)
        # Nobody sits here: a run suspends at its first question, and is resumed when that is answered.
        # Jobs borrow the store of this process, so it also writes what was left when the store failed at their end.
        self._options = replace(options, unattended="park", wait=timedelta(0), requester=None, lent=broker.ledger.lend)
        self._observe = observe or _nobody
        self._line: set[str] = set()
        """Runs that could be resumed but wait for a free place."""
        self._saying: set[asyncio.Task[None]] = set()
        self._building = asyncio.Lock()
        self._hanging: dict[str, asyncio.Future[Job]] = {}
        """Builds that timed out, by agent, each with the future that still builds it."""
        self._drains = False
        """Whether it is draining: nothing new is resumed."""
        marks = (SERVED,) if care.marks else ()
        self._looking = ResumableRuns(broker, [*channel_names, *marks], only=only, looks_after=care.looks_after)
        self._loop = ResumeLoop(
            broker, self._looking, found=self._found, failed=self._cannot_look, ended=self._task_ended
        )

    # --- starting ---

    async def begin(self, heard: Heard) -> str:
        """Start a worker on what somebody said. Returns the immediate reply, which may be empty.

        One turn at a time in one conversation. A message that was heard before (a duplicate delivery) starts nothing.
        """
        conversation = conversation_of(heard)
        settings, directory = self._care.home(heard.channel) if self._care.home is not None else (self._settings, "")
        entry = settings.channels.get(heard.channel)
        last = await self._broker.runs.last_turn(conversation)
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
            run = await self._broker.runs.begin(
                SavedRun(
                    id=new_id(),
                    conversation_id=str(uuid4()),
                    agent=f"{WORKER}{whom.worker}" if is_worker else whom.worker,
                    prompt=whom.text,
                    requester=heard.by.name,
                    setup=setup_of(replace(self._options, chat=True, directory=directory), settings),
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
        before = len({*self._loop.tasks, *self._line})
        self._line.add(run.id)
        self._loop.look_at(run.id)
        if before < self._at_once:
            return ""
        return f"{before} runs are ahead of yours; it starts when one of them ends."

    # --- resuming ---

    async def run(self) -> None:
        """Resume runs until cancelled. Runs that execute then are suspended; any process can resume them."""
        saying = asyncio.create_task(self._say_in_full())
        try:
            await self._loop.run()
        finally:
            tasks = [saying, *self._saying]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            self._telling.in_hand -= self._looking.turns

    async def look(self) -> None:
        """Start to resume every run that is ready, as far as there are free places."""
        await self._loop.look()

    async def _found(self, found: Sequence[RunStatus]) -> None:
        self._telling.in_hand |= self._looking.turns  # shown in full, whichever process ends them
        for run in self._looking.ended:
            self._saying.add(task := asyncio.create_task(self._ended(run), name=f"end of run {run.id}"))
            task.add_done_callback(self._saying.discard)
        self._line.clear()
        for status in self._care.order(found, self._loop.tasks):
            run = status.run
            if why := self._care.cannot(run):
                await self._say_once(run, why, only_if=bool(status.answered) and not status.waiting)
            elif len(self._loop.tasks) < self._at_once and not self._drains:
                self._care.begins(run)
                self._loop.go_on(status, self._go_on(run))
            else:
                self._line.add(run.id)
                self._looking.at(run.id)

    def _cannot_look(self, error: SignoffError | OSError) -> None:
        if isinstance(error, StoreError):
            self._care.store_failed(error)
        self._observe(f"cannot read which runs are ready: {redact_text(in_one_line(str(error)))}")

    @property
    def _at_once(self) -> int:
        return self._care.at_once or AT_ONCE

    def drain(self) -> None:
        """Resume nothing new from now on. Runs in progress continue."""
        self._drains = True

    def hurry(self) -> None:
        """Give runs in progress only a moment to suspend when `run` is cancelled."""
        self._loop.is_hurried = True

    @property
    def in_hand(self) -> int:
        """How many runs execute here right now."""
        return len(self._loop.tasks)

    def look_at(self, run_id: str) -> None:
        """Check soon whether this run can be resumed, even if it failed before."""
        self._looking.went_on(run_id)
        self._loop.look_at(run_id)

    async def idle(self) -> None:
        """Return once no run executes here."""
        while busy := {*self._loop.tasks.values(), *self._saying}:
            await asyncio.wait(busy)

    async def _go_on(self, run: SavedRun) -> None:
        """Resume a run and show its result."""
        self._telling.in_hand.add(run.id)
        try:
            if (came_to := await self._attempt(run)) is not None:
                await self._tell(run, *came_to)
                self._looking.forget(run.id)
        finally:
            if run.id not in self._looking.turns:
                self._telling.in_hand.discard(run.id)

    async def _attempt(self, run: SavedRun) -> tuple[RunState, str] | None:
        """Resume a run. Returns its final state and the text about it, or None if it waits again or others have it."""
        job: Job | None = None
        try:
            await self._adopt(run)
            if (apart := self._care.apart(run)) is not None:
                await self._apart(run, apart)
                return None
            job = await self._built(run)
            finished = await job.resume(run)
            if finished.paused:
                await self._paused(run, finished)
                self._care.ended(run, True)
                return None
            self._observe(f"{run.id}  {_called(run)} is done")
            self._care.ended(run, True)
            return RunState.DONE, answer_text(finished.output, tuple(job.runner.gate.secrets))
        except RunTaken:  # another process took it; if that one does not act on the answer, it is retried here
            self._loop.wait(run.id)
        except RunOver:
            return None
        except WaitsElsewhere:
            await self._rest(run)
        except Halted:
            self._looking.go_back(run.id)
            if not await self._broker.switch.state():  # an agent with a gate of its own may notice the halt late
                self._loop.wait(run.id)
        except StoreUnavailable as error:  # it is suspended by now, or will be as soon as the store can be written
            self._care.ended(run, False)
            self._care.store_failed(error)
            self._observe(
                f"{run.id}  {_called(run)} continues when the store works again: {redact_text(in_one_line(str(error)))}"
            )
            self._loop.wait(run.id)
        except Exception as error:
            return await self._went_wrong(run, job, error)
        finally:
            if job is not None:
                job.close()
        return None

    async def _apart(self, run: SavedRun, apart: Awaitable[str]) -> None:
        """Have another process resume a run, and log why it could not. Its result is in the store."""
        why = await apart
        status = await self._broker.runs.status(run.id)
        is_over = status.run.state is not RunState.GOING
        self._care.ended(run, not why and status.run.state is not RunState.FAILED)
        if is_over:
            self._observe(f"{run.id}  {_called(run)} is {status.run.state}")
        elif why:
            self._observe(f"{run.id}  {_called(run)} could not continue, retrying: {why}")
            self._loop.wait(run.id)
        elif self._looking.did_not_act(status):  # a halt, or another process was faster
            self._loop.wait(run.id)
        elif status.waiting:
            self._looking.went_on(run.id)
            self._observe(f"{run.id}  {_called(run)} waits for {_answers(status.waits)}")
        elif not self._looking.is_news(status):  # it waits for nothing and made no progress: retry with a delay
            self._loop.wait(run.id)

    async def _paused(self, run: SavedRun, finished: Finished) -> None:
        """Handle a run that paused. If its questions were answered meanwhile, the next look finds it again."""
        status = await self._broker.runs.status(run.id)
        if status.waiting or self._looking.is_news(status):
            self._looking.went_on(run.id)
            if status.waiting:
                name = _called(run)
                self._observe(f"{run.id}  {name} waits for {_answers(status.waits)}")
        elif finished.elsewhere:
            await self._rest(run)
        else:  # it waits for nothing and made no progress: retry with a delay
            self._loop.wait(run.id)

    async def _rest(self, run: SavedRun) -> None:
        """Leave a run alone that waits for an external result of a deferred tool call."""
        self._looking.rests(run.id)
        self._observe(f"{run.id}  {_called(run)} waits for an external result")
        await self._say_once(
            run,
            "It waits for an external result, and continues when a program supplies it. "
            f"To end it: signoff cancel {run.id}",
        )

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
            await pause_for(self._broker.clock, wait)
            wait = min(wait * 2 or SHORTEST, LONGEST)

    async def _adopt(self, run: SavedRun) -> None:
        """Record the places of a run that was started elsewhere, so that the next process resumes it after a crash."""
        marks = {SERVED: ""} if self._care.marks else {}
        if self._looking.has_place(run) and marks.keys() <= run.places.keys():
            return

        def work(tx: Transaction) -> None:
            stored = tx.runs.get(run.id)
            shown = {one.channel: one.place for one in tx.deliveries.find(trail=run.id) if one.channel in self._names}
            if stored is not None and stored.state is RunState.GOING and (shown or marks):
                tx.runs.put(replace(stored, places={**stored.places, **shown, **marks}))

        await self._broker.store.write("adopt", work)

    async def _say_in_full(self) -> None:
        """Show in full what was shown only in part because the process with the turn died right after its end."""

        def work(tx: Transaction) -> list[SavedRun]:
            return [run for run in tx.runs.all(limit=RECENT) if was_said(run) and self._is_cut(tx, run)]

        found: list[SavedRun] = []
        with suppress(StoreError):  # the loop that looks for runs reports it
            found = await self._broker.store.read(work)
        for run in found:
            await self._say_whole(run)

    async def _ended(self, run: SavedRun) -> None:
        """Show the result of a turn that began here and another process ended. Of a failed one no more is known."""
        try:
            if was_said(run) and await self._broker.store.read(lambda tx: self._is_cut(tx, run)):
                await self._say_whole(run)
        finally:
            self._telling.in_hand.discard(run.id)

    async def _say_whole(self, run: SavedRun) -> None:
        """Show the result of a finished turn, read from its conversation."""
        job: Job | None = None
        try:
            job = await self._built(run)
            if (said := await job.runner.said_in(run.id)) is not None:
                text = answer_text(job.runner.last_answer(said), tuple(job.runner.gate.secrets))
                await self._tell(run, run.state, text)
        except Exception as error:  # what is shown stays as it is
            self._observe(f"{run.id}  {failure_text(error)}")
        finally:
            if job is not None:
                job.close()

    def _is_cut(self, tx: Transaction, run: SavedRun) -> bool:
        return not self._care.cannot(run) and any(is_cut(tx, name, run) for name in self._names & {*run.places})

    async def _built(self, run: SavedRun) -> Job:
        """Build the run's job in a thread, because imports may take seconds. One at a time.

        After the timeout `BUILDING` a build is abandoned, so that others do not wait for it. Raises `CannotBeMade`.
        """
        agent = run.agent or run.name
        async with self._building:
            if (hanging := self._hanging.get(agent)) is not None and not hanging.done():
                raise CannotBeMade(_HANGS)
            options = replace(self._options, message=partial(self._line_of, run.id))
            making = in_side_thread(lambda: job_of(run, options))
            try:
                return await asyncio.wait_for(asyncio.shield(making), BUILDING)
            except TimeoutError:
                self._hanging[agent] = making
                making.add_done_callback(_close)
                making.add_done_callback(lambda made: self.look_at(run.id))
                raise CannotBeMade(_HANGS) from None
            except asyncio.CancelledError:
                making.add_done_callback(_close)
                raise

    def _line_of(self, run_id: str, message: RunMessage) -> None:
        """Pass on a line that a tool of a run has for people. Thread-safe."""
        self._telling.tell_line(run_id, message)
        self._observe(f"{run_id}  {' > '.join(message.worker)} says: {message.text}")

    async def _went_wrong(self, run: SavedRun, job: Job | None, error: Exception) -> tuple[RunState, str] | None:
        """Return what is shown of a run that failed, or None. A run without saved progress ends as failed.

        Otherwise it is retried. A run that is done although something failed is shown like one that another process
        ended.
        """
        if job is not None:
            await job.runner.gate.broker.store.flush()
        text = failure_text(error, tuple(job.runner.gate.secrets) if job is not None else ())
        name = _called(run)
        self._care.ended(run, False)
        stands = await self._broker.runs.inside(run.id)
        if stands is None:
            return None
        if stands.state is RunState.GOING and not stands.rest and not isinstance(error, StoreError | CannotBeMade):
            with suppress(RunOver, RunTaken):
                taken = await self._broker.runs.take(run.id)
                await self._broker.runs.end(run.id, taken.epoch, RunState.FAILED, text)
                stands = replace(stands, state=RunState.FAILED)
        self._observe(f"{run.id}  {name} failed: {text}")
        if stands.state is RunState.DONE:
            return None
        if stands.state is not RunState.GOING:
            return stands.state, text
        self._loop.wait(run.id)
        await self._say_once(run, f"It cannot continue now: {text}\nsignoff retries; or run: signoff resume {run.id}")
        return None

    async def _say_once(self, run: SavedRun, text: str, *, only_if: bool = True) -> None:
        """Show that a run is not over and cannot be resumed here, unless any process showed that before."""
        if not only_if or run.id in self._looking.told:
            return
        subject = Subject(SubjectKind.RESULT, run.id)
        names = self._names
        if not await self._broker.store.read(
            lambda tx: any(tx.deliveries.get(one, subject) is not None for one in names)
        ):
            await self._telling.say(run.id, _called(run), RunState.GOING, text)
        self._looking.told.add(run.id)

    def _task_ended(self, run_id: str, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            self._observe(f"{run_id}  {failure_text(error) if isinstance(error, Exception) else error!r}")
            self._loop.wait(run_id)


class CannotBeMade(Exception):
    """Building an agent takes too long. Its runs stay as they were."""


_HANGS = f"its agent could not be built within {BUILDING:g} s: an import hangs"


def _nobody(line: str) -> None:
    """Discard the line."""


def _called(run: SavedRun) -> str:
    """The name that people use for its agent."""
    return spoken_name(run.agent) or run.name


def _close(made: asyncio.Future[Job]) -> None:
    if not made.cancelled() and made.exception() is None:
        made.result().close()


def _answers(number: int) -> str:
    return "an answer" if number == 1 else f"{number} answers"
