"""Agents that are begun and go on from a channel: what people say begins a turn, what they answer lets it go on.

A turn is written down before anything of it happens, in nobody's hands; whoever looks next takes it up. So there is one
way to go on, whether a turn is new, was answered, or was left by a process that died.
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
from signoff.core.subject import Subject, SubjectKind
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
from signoff.wiring.resumable_runs import LONGEST, SERVED, SHORTEST, ResumableRuns, cannot
from signoff.wiring.resume_loop import ResumeLoop
from signoff.wiring.run_text import answer_text, failure_text, is_cut
from signoff.wiring.side_thread import in_side_thread

if TYPE_CHECKING:
    from signoff.workers.runtime import Finished

AT_ONCE = 16
"""Runs that go on side by side. A tool that hangs takes a place of these for as long as it does."""


def _as_found(found: Sequence[RunStatus], going: Collection[str]) -> Sequence[RunStatus]:
    return found


def _nowhere_else(run: SavedRun) -> Awaitable[str] | None:
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunCare:
    """Which runs are gone on with besides those of some channels, and how."""

    looks_after: Callable[[SavedRun], bool] = lambda run: False
    """Runs that go on here once they are answered, wherever people were asked."""
    cannot: Callable[[SavedRun], str] = cannot
    """Why a run cannot go on here, for people; empty where it can."""
    apart: Callable[[SavedRun], Awaitable[str] | None] = _nowhere_else
    """Goes on with a run in another process, and gives why that could not; None: it goes on in this one."""
    order: Callable[[Sequence[RunStatus], Collection[str]], Sequence[RunStatus]] = _as_found
    """In which order they are gone on with, given those that go on already."""
    home: Callable[[str], tuple[Settings, str]] | None = None
    """The project that a channel belongs to, and its directory; None: there is one project, here."""
    at_once: int = 0
    """How many go on side by side; 0: `AT_ONCE`."""
    marks: bool = False
    """Whether runs that are gone on with are in this program's care from then on."""
    store_failed: Callable[[StoreError], None] = lambda error: None
    """Told where something could not be done for the store's sake."""
    begins: Callable[[SavedRun], None] = lambda run: None
    ended: Callable[[SavedRun, bool], None] = lambda run, is_ok: None
    """Told of each attempt to go on with a run: when it begins, and whether it came to something."""


BUILDING = 60.0
"""Seconds that an agent may take to be made: to import what it is made of, above all."""
RECENT = 50
"""Runs to look through for answers that were not told whole."""


class Telling(Protocol):
    """Tells people what a run came to; `signoff.delivery.Reconciler` does."""

    in_hand: set[str]
    """Runs that somebody here is busy with, who says what they come to."""

    async def say(self, run_id: str, worker: str, state: RunState, text: str) -> object: ...

    def tell_line(self, run_id: str, message: RunMessage) -> None: ...


class Running:
    """Begins turns, and goes on with the runs of this directory that were begun or asked about on these channels."""

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
        """`options` say how agents are run here; `observe` is told, in a line each, what begins, ends or fails.

        `only`: which runs are gone on with here, where something else looks after others. `care`: what else than the
        runs of these channels is looked after, and how.
        """
        care = care or RunCare()
        self._telling = telling
        self._broker = broker
        self._settings = settings
        self._care = care
        self._names = frozenset(channel_names)
        # Nobody sits here: a run puts itself down at its first question, and is taken up when that is answered.
        # What they leave for later is written by this process, also where the store did not work when they ended.
        self._options = replace(options, unattended="park", wait=timedelta(0), requester=None, lent=broker.ledger.lend)
        self._observe = observe or _nobody
        self._line: set[str] = set()
        """Runs that could go on, and for which there is no room."""
        self._saying: set[asyncio.Task[None]] = set()
        self._building = asyncio.Lock()
        self._hanging: dict[str, asyncio.Future[Job]] = {}
        """Agents that were not made in time, each with what still makes it."""
        self._drains = False
        """Whether nothing new is gone on with."""
        marks = (SERVED,) if care.marks else ()
        self._looking = ResumableRuns(broker, [*channel_names, *marks], only=only, looks_after=care.looks_after)
        self._loop = ResumeLoop(
            broker, self._looking, found=self._found, failed=self._cannot_look, ended=self._task_ended
        )

    # --- beginning ---

    async def begin(self, heard: Heard) -> str:
        """Have a worker do what was said; gives what is to be replied at once, which may be nothing.

        One turn at a time in one place, each after the one before. What was heard before begins nothing.
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
            return redact_text(str(error))
        self._observe(f"{run.id}  {spoken_name(whom.worker)} starts for {heard.by.name}")
        before = len({*self._loop.tasks, *self._line})
        self._line.add(run.id)
        self._loop.look_at(run.id)
        if before < self._at_once:
            return ""
        return f"{before} runs are ahead of yours; it starts when one of them ends."

    # --- going on ---

    async def run(self) -> None:
        """Go on with whatever can, until cancelled: what was in hand then is put down, for any process to take up."""
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
        """Begin to go on with every run that can now, as far as there is room."""
        await self._loop.look()

    async def _found(self, found: Sequence[RunStatus]) -> None:
        self._telling.in_hand |= self._looking.turns  # whoever ends them, they are told whole
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
        self._observe(f"cannot read which runs are ready: {redact_text(str(error))}")

    @property
    def _at_once(self) -> int:
        return self._care.at_once or AT_ONCE

    def drain(self) -> None:
        """Go on with nothing new from now on; what goes on already is left alone."""
        self._drains = True

    def hurry(self) -> None:
        """What goes on when `run` is cancelled has only a moment to be put down."""
        self._loop.is_hurried = True

    @property
    def in_hand(self) -> int:
        """How many runs go on here right now."""
        return len(self._loop.tasks)

    def look_at(self, run_id: str) -> None:
        """Look soon whether this run can go on, whatever went wrong with it before."""
        self._looking.went_on(run_id)
        self._loop.look_at(run_id)

    async def idle(self) -> None:
        """Return once nothing goes on here."""
        while busy := {*self._loop.tasks.values(), *self._saying}:
            await asyncio.wait(busy)

    async def _go_on(self, run: SavedRun) -> None:
        """Take a run up, and tell what it comes to."""
        self._telling.in_hand.add(run.id)
        try:
            if (came_to := await self._attempt(run)) is not None:
                await self._tell(run, *came_to)
                self._looking.forget(run.id)
        finally:
            if run.id not in self._looking.turns:
                self._telling.in_hand.discard(run.id)

    async def _attempt(self, run: SavedRun) -> tuple[RunState, str] | None:
        """Take a run up: how it ended, and what is told of that. None for one that waits again or that others have."""
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
        except RunTaken:  # somebody else did; what they do not act upon is still to be done
            self._loop.wait(run.id)
        except RunOver:
            return None
        except WaitsElsewhere:
            await self._rest(run)
        except Halted:
            self._looking.go_back(run.id)
            if not await self._broker.switch.state():  # an agent with a gate of its own may hear of it late
                self._loop.wait(run.id)
        except StoreUnavailable as error:  # it is put down by now, or will be as soon as anything can be written
            self._care.ended(run, False)
            self._care.store_failed(error)
            self._observe(f"{run.id}  {_called(run)} continues when the store works again: {redact_text(str(error))}")
            self._loop.wait(run.id)
        except Exception as error:
            return await self._went_wrong(run, job, error)
        finally:
            if job is not None:
                job.close()
        return None

    async def _apart(self, run: SavedRun, apart: Awaitable[str]) -> None:
        """Have another process go on with a run, which says why it could not. What it came to stands in the store."""
        why = await apart
        status = await self._broker.runs.status(run.id)
        is_over = status.run.state is not RunState.GOING
        self._care.ended(run, not why and status.run.state is not RunState.FAILED)
        if is_over:
            self._observe(f"{run.id}  {_called(run)} is {status.run.state}")
        elif why:
            self._observe(f"{run.id}  {_called(run)} could not continue, retrying: {why}")
            self._loop.wait(run.id)
        elif self._looking.did_not_act(status):  # somebody halted everything, or was faster
            self._loop.wait(run.id)
        elif status.waiting:
            self._looking.went_on(run.id)
            self._observe(f"{run.id}  {_called(run)} waits for {_answers(len(status.waiting))}")
        elif not self._looking.is_news(status):  # nothing is to be waited for, and it did not go on: not at once again
            self._loop.wait(run.id)

    async def _paused(self, run: SavedRun, finished: Finished) -> None:
        """A run is not over. What it waited for may have been answered in the meantime: then it is found again."""
        status = await self._broker.runs.status(run.id)
        if status.waiting or self._looking.is_news(status):
            self._looking.went_on(run.id)
            if status.waiting:
                name = _called(run)
                self._observe(f"{run.id}  {name} waits for {_answers(len(status.waiting))}")
        elif finished.elsewhere:
            await self._rest(run)
        else:  # nothing is to be waited for, and it did not go on: not at once again
            self._loop.wait(run.id)

    async def _rest(self, run: SavedRun) -> None:
        """Leave a run alone that waits for what a tool began, and something else ends."""
        self._looking.rests(run.id)
        self._observe(f"{run.id}  {_called(run)} waits for an external result")
        await self._say_once(
            run,
            "It waits for an external result, and continues when a program supplies it. "
            f"To end it: signoff cancel {run.id}",
        )

    async def _tell(self, run: SavedRun, state: RunState, text: str) -> None:
        """Have people told what a run came to. Where the store does not work it is tried again until it does."""
        wait = timedelta(0)
        while True:
            try:
                await self._telling.say(run.id, _called(run), state, text)
            except StoreError as error:
                self._observe(f"{run.id}  its result cannot be reported yet: {redact_text(str(error))}")
            else:
                return
            await pause_for(self._broker.clock, wait)
            wait = min(wait * 2 or SHORTEST, LONGEST)

    async def _adopt(self, run: SavedRun) -> None:
        """Note where a run belongs from now on that was begun elsewhere: if this process dies, the next takes it up."""
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
        """Say whole what was only begun to be told: the process that had a turn in hand died right after its end."""

        def work(tx: Transaction) -> list[SavedRun]:
            return [run for run in tx.runs.all(limit=RECENT) if was_said(run) and self._is_cut(tx, run)]

        found: list[SavedRun] = []
        with suppress(StoreError):  # whoever looks for runs says so
            found = await self._broker.store.read(work)
        for run in found:
            await self._say_whole(run)

    async def _ended(self, run: SavedRun) -> None:
        """A turn that began here was brought to its end by somebody else; of one that failed no more is known."""
        try:
            if was_said(run) and await self._broker.store.read(lambda tx: self._is_cut(tx, run)):
                await self._say_whole(run)
        finally:
            self._telling.in_hand.discard(run.id)

    async def _say_whole(self, run: SavedRun) -> None:
        """Say what a turn that is over came to, out of its conversation."""
        job: Job | None = None
        try:
            job = await self._built(run)
            if (said := await job.runner.said_in(run.id)) is not None:
                text = answer_text(job.runner.last_answer(said), tuple(job.runner.gate.secrets))
                await self._tell(run, run.state, text)
        except Exception as error:  # what is told of it stays as it is
            self._observe(f"{run.id}  {failure_text(error)}")
        finally:
            if job is not None:
                job.close()

    def _is_cut(self, tx: Transaction, run: SavedRun) -> bool:
        return not self._care.cannot(run) and any(is_cut(tx, name, run) for name in self._names & {*run.places})

    async def _built(self, run: SavedRun) -> Job:
        """The run's job, made in a thread: what it imports may take seconds. One at a time.

        One that hangs is left to itself, and nothing else waits for it.
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
        """A line that a run's tool has for people; from any thread."""
        self._telling.tell_line(run_id, message)
        self._observe(f"{run_id}  {' > '.join(message.worker)} says: {message.text}")

    async def _went_wrong(self, run: SavedRun, job: Job | None, error: Exception) -> tuple[RunState, str] | None:
        """What is told of a run that failed. One that could not go on is over too if it came nowhere.

        Else it is tried again. One that is done although something went wrong is told as any that somebody else ended.
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
        """Say that a run is not over, and cannot go on here; not again if it was said, by whatever process."""
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
    """An agent takes too long to be made. Its runs are as they were."""


_HANGS = f"its agent could not be built within {BUILDING:g} s: an import hangs"


def _nobody(line: str) -> None:
    """Nobody wants to know."""


def _called(run: SavedRun) -> str:
    """What people call its agent."""
    return spoken_name(run.agent) or run.name


def _close(made: asyncio.Future[Job]) -> None:
    if not made.cancelled() and made.exception() is None:
        made.result().close()


def _answers(number: int) -> str:
    return "an answer" if number == 1 else f"{number} answers"
