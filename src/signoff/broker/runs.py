"""Runs that outlive their process: begun, saved at every pause, executed by one process at a time, ended."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import datetime

from signoff.broker.conversations import conversation_log, following, not_news, note_heard, note_turn
from signoff.broker.deadlines import feed
from signoff.broker.ledger import Ledger
from signoff.broker.requests import enter, settle
from signoff.broker.run_status import RunStatus, run_status
from signoff.broker.signatures import Signed, Signing
from signoff.broker.switch import check_not_halted
from signoff.core.lifecycle import Cancelled
from signoff.core.loosening import NOT_LOOSENED, Loosened
from signoff.core.moment import moment_text
from signoff.core.record import EventDraft
from signoff.core.request import ApprovalRequest, State
from signoff.core.run import FORMAT, RunState, SavedRun, Segment
from signoff.core.visible import quoted
from signoff.errors import RunError, RunOver, RunTaken, SignoffError, Stale, StoreUnavailable, UnknownRun
from signoff.ports import Transaction
from signoff.processes import is_alive

LONGEST_DETAIL = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class RunProgress:
    """How far a run came: what is to be saved of it, and which messages are new."""

    run: SavedRun
    segments: tuple[Segment, ...] = ()
    put_down: bool = False
    """Whether the process lets go of it, for any other to take up."""
    fence: tuple[str, int] = ("", 0)
    """For a run inside another: the outermost run and its epoch, which has to be in this process's hands."""
    entered: tuple[str, str] = ("", "")
    """The request on whose approval a call runs that only waits for runs inside it, and the claim's token."""


class BrokerRuns:
    """The broker's part about runs."""

    def __init__(self, ledger: Ledger, signing: Signing) -> None:
        self._ledger = ledger
        self._signing = signing

    # --- within this process ---

    @contextmanager
    def in_hand(self, run_id: str) -> Generator[None]:
        """Within, nothing else in this process takes the run up: raises `RunTaken` where something has it already."""
        self._hold(run_id, object())
        try:
            yield
        finally:
            self.let_go(run_id)

    def _hold(self, run_id: str, attempt: object) -> None:
        if self._ledger.in_hand.setdefault(run_id, attempt) is not attempt:
            raise RunTaken(f"run {run_id} is already being executed by this process")

    def let_go(self, run_id: str) -> None:
        """Undo what `take_up` says about this process."""
        self._ledger.in_hand.pop(run_id, None)

    # --- beginning, saving ---

    async def begin(
        self, run: SavedRun, *, conversation: str = "", heard: str = "", put_down: bool = False
    ) -> SavedRun:
        """Keep a new run, in this process's hand, or `put_down` for any process to take up.

        `conversation` names a place where turns follow each other: the run follows the last one of its agent there, and
        `RunTaken` is raised while any other is going. `heard` is the number of the message that it begins with;
        raises `AlreadyHeard` where that was heard there, `HeardTooLate` where only a later one was.
        """
        ledger, now = self._ledger, self._ledger.now()
        holder = "" if put_down else ledger.process.id

        def work(tx: Transaction) -> SavedRun | RunError:
            check_not_halted(tx)
            if not conversation:
                return _begin(tx, ledger, run, now, holder)
            known = conversation_log(tx, conversation)
            if (why := not_news(known, heard)) is not None:
                note_heard(tx, known, heard)  # told again, it is no longer too late but known
                return why
            last = tx.runs.get(known.run)
            if last is not None and last.state is RunState.GOING:
                note_heard(tx, known, heard)  # whoever said it is told so, and it does not begin by itself later
                waits = bool(run_status(tx, ledger, last).waiting)
                return RunTaken(f"run {last.id} {'waits for an answer' if waits else 'is still running'}")
            begun = _begin(tx, ledger, following(tx, known, run), now, holder)
            note_turn(tx, known, heard, begun)
            return begun

        done = await ledger.store.write("begin", work)
        if isinstance(done, RunError):
            raise done
        return done

    async def last_turn(self, name: str) -> SavedRun | None:
        """The last turn of a conversation; None where nothing was said there yet."""
        return await self._ledger.store.read(lambda tx: tx.runs.get(conversation_log(tx, name).run))

    async def save(self, progress: RunProgress) -> None:
        """Save how far a run came. Raises `Stale` where the messages it builds upon are not there."""
        await self._ledger.write("save", lambda tx, now: save(tx, self._ledger, progress, now))

    def save_later(self, made: Callable[[], RunProgress | None], *, lost: Callable[[], None] = lambda: None) -> None:
        """As `save`, without waiting: for steps in which nobody is asked. `made` is called when it is written.

        `lost` is told where messages are missing that it builds upon; then it is made once more.
        """

        def work(tx: Transaction, now: datetime) -> None:
            with suppress(RunError):  # in other hands by now, or over: whoever goes on finds out with the next step
                try:
                    _save_if_any(tx, self._ledger, made(), now)
                except Stale:
                    lost()
                    _save_if_any(tx, self._ledger, made(), now)

        self._ledger.later("save", work)

    async def put_down(self, run_id: str, epoch: int, heard: Sequence[str] = ()) -> None:
        """Let go of a run, for any process to take up. `heard` are the refusals that it has gone on with."""
        await self._ledger.store.write("put down", lambda tx: _put_down(tx, run_id, epoch, heard))

    def put_down_later(self, run_id: str, epoch: int) -> None:
        """As `put_down`, without waiting: for whoever is being stopped. Not ours any longer: nothing."""

        def work(tx: Transaction) -> None:
            with suppress(RunError):
                _put_down(tx, run_id, epoch)

        self._ledger.store.later("put down", work)

    # --- resuming ---

    async def take(self, run_id: str) -> SavedRun:
        """Take a run up. Of two processes that try at once one wins; a run somebody has in hand is not given away."""
        # Others have to see it, no more: after a power cut no process has anything in hand.
        return await self._ledger.write(
            "take", lambda tx, now: _take(tx, self._ledger, _going(tx, run_id), now), synced=False
        )

    async def take_up(
        self, prefix: str, *, loosened: Loosened = NOT_LOOSENED
    ) -> tuple[SavedRun, Sequence[ApprovalRequest]]:
        """As `take`, to go on with it: by the beginning of its id, with its requests after time was fed to them.

        `loosened` is what whoever resumes it loosened; from now on the run says so. Nothing else in this process takes
        it up until `let_go`.
        """
        ledger, now = self._ledger, self._ledger.now()
        import asyncio

        attempt: dict[str, int] = {}

        def work(tx: Transaction) -> tuple[SavedRun, Sequence[ApprovalRequest]]:
            check_not_halted(tx)
            run = _still_going(_by_prefix(tx, prefix))
            self._hold(run.id, attempt)
            attempt[run.id] = run.epoch + 1
            taken = _take(tx, ledger, run, ledger.now(), loosened)
            requests = tx.requests.of(run=taken.id)
            return taken, [feed(tx, ledger, one.id, now) or one for one in requests]

        try:
            return await ledger.store.write("take", work, synced=False)
        except asyncio.CancelledError:  # nobody goes on with it here, and it may yet be written
            self._give_up_later(attempt)
            raise
        except BaseException as error:
            for run_id in attempt:
                self.let_go(run_id)
            if isinstance(error, StoreUnavailable):  # whether it arrived may not be known
                self._give_up_later(attempt)
            raise

    def _give_up_later(self, attempt: Mapping[str, int]) -> None:
        """Undo an attempt to take a run up, if it comes to anything: the epoch it takes it up with, by its id."""

        def work(tx: Transaction) -> None:
            for run_id, epoch in attempt.items():
                if self._ledger.in_hand.get(run_id) is attempt:
                    self.let_go(run_id)
                run = tx.runs.get(run_id)
                if run is not None and (run.holder, run.epoch) == (self._ledger.process.id, epoch):
                    tx.runs.put(run.changed(holder=""))

        self._ledger.store.later("put down", work)

    async def still(self, run_id: str, epoch: int) -> None:
        """Raise `RunTaken` or `RunOver` where the run is no longer in this process's hands."""
        await self._ledger.store.read(lambda tx: check(tx, run_id, epoch), own=False)

    # --- ending ---

    async def end(
        self,
        run_id: str,
        epoch: int,
        state: RunState,
        detail: str = "",
        *,
        secrets: Sequence[str] = (),
        last: RunProgress | None = None,
    ) -> None:
        """Record how a run ended, sign that, and keep `last`, its messages. What it still asked is withdrawn.

        Raises `Stale` where the messages that those build upon are not there.
        """
        text, now = self._detail(detail, secrets), self._ledger.now()

        def work(tx: Transaction) -> Signed | SignoffError | None:
            _end(tx, self._ledger, run_id, epoch, state, text, now, last)
            return self._signing.sign_in(tx, now)

        self._signing.get_ready()
        self._signing.keep(await self._ledger.store.write("end", work))

    def end_later(
        self, run_id: str, epoch: int, state: RunState, detail: str = "", *, secrets: Sequence[str] = ()
    ) -> None:
        """As `end`, without waiting: for whoever is being stopped. Not ours any longer, or over: nothing."""
        text = self._detail(detail, secrets)

        def work(tx: Transaction, now: datetime) -> None:
            with suppress(RunError):
                _end(tx, self._ledger, run_id, epoch, state, text, now)

        self._ledger.later("end", work)

    def _detail(self, detail: str, secrets: Sequence[str]) -> str:
        return self._ledger.journal.text(detail, longest=LONGEST_DETAIL, secrets=secrets, lines=True)

    async def cancel(self, run_id: str, *, by: str, reason: str = "") -> SavedRun:
        """End a run from outside: its questions are withdrawn, its approvals void, and it is not taken up again."""
        ledger, now = self._ledger, self._ledger.now()
        why = ledger.journal.text(f"{by} cancelled the run" + (f": {quoted(reason)}" if reason else ""))

        def work(tx: Transaction) -> SavedRun:
            return _close(tx, ledger, _going(tx, run_id), RunState.CANCELLED, why, now, why=why)

        return await ledger.store.write("cancel run", work)

    # --- looking ---

    async def get(self, prefix: str) -> SavedRun:
        """The run whose id begins so; raises `UnknownRun`."""
        return await self._ledger.store.read(lambda tx: _by_prefix(tx, prefix))

    async def list(self, *, going: bool = False, limit: int | None = None, before: str = "") -> Sequence[RunStatus]:
        """Runs, newest first, each with what it waits for; those begun before the run `before`, where it is given."""

        def work(tx: Transaction) -> Sequence[RunStatus]:
            return [run_status(tx, self._ledger, run) for run in tx.runs.all(going=going, limit=limit, before=before)]

        return await self._ledger.store.read(work)

    async def status(self, run_id: str) -> RunStatus:
        """One run, with what it waits for."""
        return await self._ledger.store.read(lambda tx: run_status(tx, self._ledger, _known(tx, run_id)))

    async def inside(self, run_id: str) -> SavedRun | None:
        """A run inside another one, as it was kept last."""
        return await self._ledger.store.read(lambda tx: tx.runs.get(run_id))

    async def messages(self, run: SavedRun) -> Sequence[Segment]:
        """What was saved of a run's messages, oldest first."""
        return await self._ledger.store.read(lambda tx: tx.segments.chain(run.tip) if run.tip else ())

    # --- calls that runs are inside of ---

    def enter_later(self, request_id: str, token: str, fence: tuple[str, int]) -> None:
        """Record that all a claimed call does is to wait for runs inside it, if this process still executes `fence`."""

        def work(tx: Transaction, now: datetime) -> None:
            with suppress(RunError):  # another process executes it by now
                if fence[0]:
                    check(tx, *fence)
                enter(tx, self._ledger.journal, request_id, token, now)

        self._ledger.later("enter", work)

    async def enter_again(self, entry: SavedRun) -> bool:
        """Whether a call was let through before and paused: it may pass once more, this time, and no more often."""

        def work(tx: Transaction) -> bool:
            known = tx.runs.get(entry.id)
            if known is None or known.state is not RunState.GOING:
                return False
            if (known.parent, known.entered) != (entry.parent, entry.entered):
                return False
            tx.runs.put(known.changed(state=RunState.DONE))
            return True

        return await self._ledger.store.write("enter", work)


# --- inside a transaction ---


def save(tx: Transaction, ledger: Ledger, progress: RunProgress, now: datetime) -> None:
    """Save how far a run came. Raises `Stale` where the messages it builds upon are not there."""
    run = progress.run
    if progress.fence[0]:
        check(tx, *progress.fence)
    if progress.entered[0]:
        enter(tx, ledger.journal, *progress.entered, now)
    holder = "" if progress.put_down or run.parent else ledger.process.id
    if (stored := tx.runs.get(run.id)) is None:
        _begin(tx, ledger, run, now, holder)
    elif run.parent:
        tx.runs.put(run.changed(started_at=stored.started_at, changed_at=now))
    else:
        _still_ours(stored, run.epoch)
        heard = _heard(stored, run.heard)
        tx.runs.put(stored.changed(tip=run.tip, rest=run.rest, heard=heard, holder=holder, changed_at=now))
    _add_segments(tx, progress)


def _save_if_any(tx: Transaction, ledger: Ledger, progress: RunProgress | None, now: datetime) -> None:
    if progress is not None:
        save(tx, ledger, progress, now)


def check(tx: Transaction, run_id: str, epoch: int, holder: str = "") -> SavedRun:
    """The run, if whoever comes with this epoch still has it in hand; raises `RunTaken` or `RunOver`.

    With a `holder`, that process has to have it: not so once it was put down, whoever is still busy with it.
    """
    run = _still_ours(_known(tx, run_id), epoch)
    if holder and run.holder != holder:
        raise RunTaken(f"run {run.id} was suspended; resume it to continue")
    return run


def refuse_over(tx: Transaction, run_id: str) -> None:
    """Raise `RunOver` for a run that is stored and has ended: nothing more is asked for it."""
    if run_id and (run := tx.runs.get(run_id)) is not None:
        _still_going(run)


def _begin(tx: Transaction, ledger: Ledger, run: SavedRun, now: datetime, holder: str) -> SavedRun:
    if run.parent:  # part of a run that is on record: whoever has that in hand has it too
        begun = run.changed(started_at=now, changed_at=now)
        tx.runs.add(begun)
        return begun
    begun = run.changed(started_at=now, changed_at=now, holder=holder)
    tx.runs.add(begun)
    ledger.enlist(tx, now)
    tx.record.append([ledger.journal.run(begun, "run started", now, agent=run.agent, requester=run.requester)])
    return begun


def _put_down(tx: Transaction, run_id: str, epoch: int, heard: Sequence[str] = ()) -> None:
    run = check(tx, run_id, epoch)
    tx.runs.put(run.changed(holder="", heard=_heard(run, heard)))


def _take(tx: Transaction, ledger: Ledger, run: SavedRun, now: datetime, loosened: Loosened = NOT_LOOSENED) -> SavedRun:
    if run.holder and run.holder != ledger.process.id:
        process = tx.processes.get(run.holder)
        if is_alive(process, now):
            where = f"process {process.pid} on {process.host.partition('/')[0]}" if process else run.holder
            raise RunTaken(f"run {run.id} is already being executed by {where}")
    if run.format != FORMAT:
        raise UnknownRun(f"run {run.id} was saved in format {run.format}; this program reads format {FORMAT}")
    policies = (run.setup.loosened | loosened).policies
    setup = run.setup if policies == run.setup.other_policies else replace(run.setup, other_policies=policies)
    taken = run.changed(epoch=run.epoch + 1, holder=ledger.process.id, changed_at=now, setup=setup)
    tx.runs.put(taken)
    ledger.enlist(tx, now)
    tx.record.append([ledger.journal.run(taken, "run resumed", now, epoch=taken.epoch)])
    return taken


def _end(
    tx: Transaction,
    ledger: Ledger,
    run_id: str,
    epoch: int,
    state: RunState,
    detail: str,
    now: datetime,
    last: RunProgress | None = None,
) -> None:
    run = check(tx, run_id, epoch)
    if last is not None:
        _add_segments(tx, last)
        run = run.changed(tip=last.run.tip, rest=last.run.rest)
    _close(tx, ledger, run, state, detail, now, why="the run ended")


def _close(
    tx: Transaction, ledger: Ledger, run: SavedRun, state: RunState, detail: str, now: datetime, *, why: str
) -> SavedRun:
    for request in tx.requests.of(run=run.id):
        if request.state in (State.PENDING, State.APPROVED):
            settle(tx, ledger.journal, request, Cancelled(why), now)
    tx.results.drop(run.id)
    # One more epoch: whoever still has it in hand finds out with its next step.
    epoch = run.epoch + 1 if state is RunState.CANCELLED else run.epoch
    closed = run.changed(state=state, detail=detail, holder="", epoch=epoch, changed_at=now)
    tx.runs.put(closed)
    tx.record.append([EventDraft(kind="run ended", at=now, run=run.id, body={"state": str(state), "detail": detail})])
    return closed


def _known(tx: Transaction, run_id: str) -> SavedRun:
    run = tx.runs.get(run_id)
    if run is None:
        raise UnknownRun(f"no run has the ID {run_id!r}")
    return run


def _by_prefix(tx: Transaction, prefix: str) -> SavedRun:
    if (run := tx.runs.get(prefix)) is not None:
        return run
    own = [run for one in tx.runs.like(prefix) if (run := tx.runs.get(one)) is not None] if prefix else []
    found = [run for run in own if not run.parent]
    if len(found) == 1:
        return found[0]
    if found:
        raise RunError(f"more than one run starts with {prefix!r}: {', '.join(one.id for one in found)}")
    raise UnknownRun(f"no run has the ID {prefix!r}")


def text_of(segment: Segment) -> bytes:
    """The messages of a segment, as JSON."""
    return zlib.decompress(segment.body[1:]) if segment.body[:1] == b"z" else segment.body[1:]


def _add_segments(tx: Transaction, progress: RunProgress) -> None:
    for segment in progress.segments:
        if segment.parent and not tx.segments.has(segment.parent):
            raise Stale(f"messages of run {progress.run.id} are missing")
        tx.segments.add(segment)


def _heard(run: SavedRun, more: Sequence[str]) -> tuple[str, ...]:
    return run.heard if set(more) <= set(run.heard) else tuple(sorted({*run.heard, *more}))


def _going(tx: Transaction, run_id: str) -> SavedRun:
    return _still_going(_known(tx, run_id))


def _still_ours(run: SavedRun, epoch: int) -> SavedRun:
    _still_going(run)
    if run.epoch != epoch:
        when = f" at {moment_text(run.changed_at)}" if run.changed_at is not None else ""
        raise RunTaken(f"run {run.id} was taken over by another process{when}").with_moment(run.changed_at)
    return run


def _still_going(run: SavedRun) -> SavedRun:
    if run.parent:
        raise UnknownRun(f"{run.id} is an inner run of another run: resume that run")
    if run.state is not RunState.GOING:
        how = f": {' '.join(run.detail.split())}" if run.detail else ""
        raise RunOver(f"run {run.id} is {run.state}{how}")
    return run
