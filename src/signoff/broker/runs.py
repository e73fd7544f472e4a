"""Runs that outlive their process: begin, save at every pause, resume in one process at a time, end.

The epoch of a run is its fencing token: taking over or cancelling a run raises it, and an older epoch is refused.
"""

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
from signoff.core.lifecycle import OPEN, Cancelled
from signoff.core.loosening import NOT_LOOSENED, Loosened
from signoff.core.moment import moment_text
from signoff.core.record import EventDraft
from signoff.core.request import ApprovalRequest, State
from signoff.core.run import FORMAT, RunState, SavedRun, Segment
from signoff.core.visible_text import quoted
from signoff.errors import RunError, RunOver, RunTaken, SignoffError, Stale, StoreUnavailable, UnknownRun
from signoff.ports import Transaction
from signoff.processes import is_alive

LONGEST_DETAIL = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class RunProgress:
    """The progress of a run: what is saved of it, and its new messages."""

    run: SavedRun
    segments: tuple[Segment, ...] = ()
    put_down: bool = False
    """Whether the process releases the run, so that any process can resume it."""
    fence: tuple[str, int] = ("", 0)
    """For a run inside another: the outermost run and its epoch, which this process has to hold."""
    entered: tuple[str, str] = ("", "")
    """For a call that only waits for runs inside it: the request it runs on, and the token of its claim."""


class BrokerRuns:
    """The part of the broker for runs."""

    def __init__(self, ledger: Ledger, signing: Signing) -> None:
        self._ledger = ledger
        self._signing = signing

    # --- within this process ---

    @contextmanager
    def in_hand(self, run_id: str) -> Generator[None]:
        """Lock the run within this process for the duration of the block; raises `RunTaken` if it is locked already."""
        self._hold(run_id, object())
        try:
            yield
        finally:
            self.let_go(run_id)

    def _hold(self, run_id: str, attempt: object) -> None:
        if self._ledger.in_hand.setdefault(run_id, attempt) is not attempt:
            raise RunTaken(f"run {run_id} is already being executed by this process")

    def let_go(self, run_id: str) -> None:
        """Release the lock of `take_up` within this process."""
        self._ledger.in_hand.pop(run_id, None)

    # --- beginning, saving ---

    async def begin(
        self, run: SavedRun, *, conversation: str = "", heard: str = "", put_down: bool = False
    ) -> SavedRun:
        """Store a new run, held by this process, or `put_down` for any process to resume.

        `conversation` names a place where turns follow each other: the run follows the last one of its agent there, and
        `RunTaken` is raised while any other run is going. `heard` is the number of the message that starts the run;
        raises `AlreadyHeard` for a duplicate, and `HeardTooLate` if a later message was handled before.
        """
        ledger = self._ledger
        holder = "" if put_down else ledger.process.id

        def work(tx: Transaction, now: datetime) -> SavedRun | RunError:
            check_not_halted(tx)
            if not conversation:
                return _begin(tx, ledger, run, now, holder)
            known = conversation_log(tx, conversation)
            if (why := not_news(known, heard)) is not None:
                note_heard(tx, known, heard)  # if it arrives again it is a duplicate, no longer too late
                return why
            last = tx.runs.get(known.run)
            if last is not None and last.state is RunState.GOING:
                note_heard(tx, known, heard)  # the sender gets an error, and the message starts no run later
                waits = bool(run_status(tx, ledger, last).waiting)
                return RunTaken(f"run {last.id} {'waits for an answer' if waits else 'is still running'}")
            begun = _begin(tx, ledger, following(tx, known, run), now, holder)
            note_turn(tx, known, heard, begun)
            return begun

        done = await ledger.write("begin", work)
        if isinstance(done, RunError):
            raise done
        return done

    async def last_turn(self, name: str) -> SavedRun | None:
        """Return the last turn of a conversation; None if there was none yet."""
        return await self._ledger.store.read(lambda tx: tx.runs.get(conversation_log(tx, name).run))

    async def save(self, progress: RunProgress) -> None:
        """Save the progress of a run. Raises `Stale` if the messages it builds upon are missing."""
        await self._ledger.write("save", lambda tx, now: save(tx, self._ledger, progress, now))

    def save_later(self, made: Callable[[], RunProgress | None], *, lost: Callable[[], None] = lambda: None) -> None:
        """As `save`, without waiting: for steps in which nobody is asked. `made` is called when the write happens.

        If the messages it builds upon are missing, `lost` is called, and then `made` once more.
        """

        def work(tx: Transaction, now: datetime) -> None:
            with suppress(RunError):  # taken over or ended: the caller notices at its next step
                try:
                    _save_if_any(tx, self._ledger, made(), now)
                except Stale:
                    lost()
                    _save_if_any(tx, self._ledger, made(), now)

        self._ledger.later("save", work)

    async def put_down(self, run_id: str, epoch: int, heard: Sequence[str] = ()) -> None:
        """Release a run, so that any process can resume it.

        `heard` are the refusals that it has already continued with.
        """
        await self._ledger.store.write("put down", lambda tx: _put_down(tx, run_id, epoch, heard))

    def put_down_later(self, run_id: str, epoch: int) -> None:
        """As `put_down`, without waiting, for a caller that is being stopped.

        Does nothing if this process lost the run.
        """

        def work(tx: Transaction) -> None:
            with suppress(RunError):
                _put_down(tx, run_id, epoch)

        self._ledger.store.later("put down", work)

    # --- resuming ---

    async def take(self, run_id: str) -> SavedRun:
        """Take over a run.

        If two processes try at once, one wins; a run that a live process holds raises `RunTaken`.
        """
        # No sync to disk: others only have to see it, and after a power cut no process holds anything.
        return await self._ledger.write(
            "take", lambda tx, now: _take(tx, self._ledger, _going(tx, run_id), now), synced=False
        )

    async def take_up(
        self, prefix: str, *, loosened: Loosened = NOT_LOOSENED
    ) -> tuple[SavedRun, Sequence[ApprovalRequest]]:
        """As `take`, to resume a run by a prefix of its id. Returns the run and its requests, with deadlines applied.

        `loosened` is what the caller loosened; it is stored with the run. The run is locked within this process until
        `let_go`.
        """
        import asyncio

        ledger = self._ledger

        attempt: dict[str, int] = {}

        def work(tx: Transaction, now: datetime) -> tuple[SavedRun, Sequence[ApprovalRequest]]:
            check_not_halted(tx)
            run = _still_going(_by_prefix(tx, prefix))
            self._hold(run.id, attempt)
            attempt[run.id] = run.epoch + 1
            taken = _take(tx, ledger, run, now, loosened)
            requests = tx.requests.of(run=taken.id)
            return taken, [feed(tx, ledger, one.id, now) or one for one in requests]

        try:
            return await ledger.write("take", work, synced=False)
        except asyncio.CancelledError:  # nobody continues here, but the write may still happen
            self._give_up_later(attempt)
            raise
        except BaseException as error:
            for run_id in attempt:
                self.let_go(run_id)
            if isinstance(error, StoreUnavailable):  # the write may or may not have happened
                self._give_up_later(attempt)
            raise

    def _give_up_later(self, attempt: Mapping[str, int]) -> None:
        """Undo an attempt to take over runs, if it succeeds later. `attempt` has the new epoch by run id."""

        def work(tx: Transaction) -> None:
            for run_id, epoch in attempt.items():
                if self._ledger.in_hand.get(run_id) is attempt:
                    self.let_go(run_id)
                run = tx.runs.get(run_id)
                if run is not None and (run.holder, run.epoch) == (self._ledger.process.id, epoch):
                    tx.runs.put(run.changed(holder=""))

        self._ledger.store.later("put down", work)

    async def still(self, run_id: str, epoch: int) -> None:
        """Raise `RunTaken` or `RunOver` if this process no longer holds the run."""
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
        """Record how a run ended, sign the audit log, and store `last`, its messages. Its open requests are withdrawn.

        Raises `Stale` if the messages that `last` builds upon are missing.
        """
        text = self._detail(detail, secrets)

        def work(tx: Transaction, now: datetime) -> Signed | SignoffError | None:
            _end(tx, self._ledger, run_id, epoch, state, text, now, last)
            return self._signing.sign_in(tx, now)

        await self._signing.get_ready()
        self._signing.keep(await self._ledger.write("end", work))

    def end_later(
        self, run_id: str, epoch: int, state: RunState, detail: str = "", *, secrets: Sequence[str] = ()
    ) -> None:
        """As `end`, without waiting, for a caller that is being stopped.

        Does nothing if the run was taken over or has ended.
        """
        text = self._detail(detail, secrets)

        def work(tx: Transaction, now: datetime) -> None:
            with suppress(RunError):
                _end(tx, self._ledger, run_id, epoch, state, text, now)

        self._ledger.later("end", work)

    def _detail(self, detail: str, secrets: Sequence[str]) -> str:
        return self._ledger.journal.text(detail, longest=LONGEST_DETAIL, secrets=secrets, lines=True)

    async def cancel(self, run_id: str, *, by: str, reason: str = "") -> SavedRun:
        """End a run from outside: its requests are withdrawn, its approvals are void, and it cannot be resumed."""
        ledger = self._ledger
        why = ledger.journal.text(f"{by} cancelled the run" + (f": {quoted(reason)}" if reason else ""))

        def work(tx: Transaction, now: datetime) -> SavedRun:
            return _close(tx, ledger, _going(tx, run_id), RunState.CANCELLED, why, now, why=why)

        return await ledger.write("cancel run", work)

    # --- looking ---

    async def get(self, prefix: str) -> SavedRun:
        """Return the run whose id starts with `prefix`; raises `UnknownRun` for none, `RunError` for several."""
        return await self._ledger.store.read(lambda tx: _by_prefix(tx, prefix))

    async def list(self, *, going: bool = False, limit: int | None = None, before: str = "") -> Sequence[RunStatus]:
        """List runs, newest first, each with what it waits for; with `before`, only runs begun before that run."""

        def work(tx: Transaction) -> Sequence[RunStatus]:
            return [run_status(tx, self._ledger, run) for run in tx.runs.all(going=going, limit=limit, before=before)]

        return await self._ledger.store.read(work)

    async def status(self, run_id: str) -> RunStatus:
        """Return one run, with what it waits for."""
        return await self._ledger.store.read(lambda tx: run_status(tx, self._ledger, _known(tx, run_id)))

    async def waiting(self, run_id: str) -> tuple[ApprovalRequest, ...]:
        """Return every request of a run that waits for a person, oldest first."""
        found = await self._ledger.store.read(lambda tx: tx.requests.of(run=run_id))
        return tuple(one for one in found if one.state in OPEN)

    async def inside(self, run_id: str) -> SavedRun | None:
        """Return a run inside another one as it was last saved, or None."""
        return await self._ledger.store.read(lambda tx: tx.runs.get(run_id))

    async def messages(self, run: SavedRun) -> Sequence[Segment]:
        """Return the saved messages of a run, oldest first."""
        return await self._ledger.store.read(lambda tx: tx.segments.chain(run.tip) if run.tip else ())

    # --- calls that contain runs ---

    def enter_later(self, request_id: str, token: str, fence: tuple[str, int]) -> None:
        """Record that a claimed call only waits for runs inside it, if this process still holds the run of `fence`."""

        def work(tx: Transaction, now: datetime) -> None:
            with suppress(RunError):  # another process executes it by now
                if fence[0]:
                    check(tx, *fence)
                enter(tx, self._ledger.journal, request_id, token, now)

        self._ledger.later("enter", work)

    async def enter_again(self, entry: SavedRun) -> bool:
        """Whether a call that was let through before and then paused may pass again. True only once."""

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
    """Save the progress of a run. Raises `Stale` if the messages it builds upon are missing."""
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
    """Return the run if this epoch still holds it; raises `RunTaken` or `RunOver`.

    With a `holder`, that process has to hold it, which it does not once the run was put down.
    """
    run = _still_ours(_known(tx, run_id), epoch)
    if holder and run.holder != holder:
        raise RunTaken(f"run {run.id} was suspended; resume it to continue")
    return run


def refuse_over(tx: Transaction, run_id: str) -> None:
    """Raise `RunOver` for a stored run that has ended: no more requests are opened for it."""
    if run_id and (run := tx.runs.get(run_id)) is not None:
        _still_going(run)


def _begin(tx: Transaction, ledger: Ledger, run: SavedRun, now: datetime, holder: str) -> SavedRun:
    if run.parent:  # the holder of the outer run holds this one too
        begun = run.changed(started_at=now, changed_at=now)
        tx.runs.add(begun)
        return begun
    begun = run.changed(started_at=now, changed_at=now, holder=holder)
    tx.runs.add(begun)
    ledger.enlist(tx, now)
    named = {} if run.agent or not run.name else {"name": run.name}
    tx.record.append([ledger.journal.run(begun, "run started", now, agent=run.agent, requester=run.requester, **named)])
    return begun


def _put_down(tx: Transaction, run_id: str, epoch: int, heard: Sequence[str] = ()) -> None:
    run = check(tx, run_id, epoch)
    tx.runs.put(run.changed(holder="", heard=_heard(run, heard)))


def _take(tx: Transaction, ledger: Ledger, run: SavedRun, now: datetime, loosened: Loosened = NOT_LOOSENED) -> SavedRun:
    if run.holder and run.holder != ledger.process.id:
        process = tx.processes.get(run.holder)
        if is_alive(process, now):
            where = process.place if process else run.holder
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
    # Raise the epoch: a process that still executes the run notices at its next step.
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
    """Return the messages of a segment, as JSON."""
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
