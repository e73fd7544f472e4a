"""The broker opens requests, takes answers, hands out the right to run once, and wakes whoever waits.

It is the only writer. Every change is one transaction in which the request is read, advanced by the lifecycle table,
put back, and written down on the record.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, TypeVar

from signoff.broker.checkpoints import Signer
from signoff.broker.clock import AgreedClock, SystemClock
from signoff.broker.deliveries import Deliveries
from signoff.broker.grants import Grants, check_terms
from signoff.broker.holder import BEAT, seen, steady_seconds, this_process
from signoff.broker.ids import new_id
from signoff.broker.inside import Inside
from signoff.broker.journal import Journal
from signoff.broker.notes import Notes
from signoff.broker.people import People
from signoff.broker.policies import Policies
from signoff.broker.runs import Progress, Runs
from signoff.broker.stopping import Stopping
from signoff.broker.sweeper import Sweeper
from signoff.broker.switch import Switch
from signoff.broker.watch import Watch
from signoff.core.card import safe_summary
from signoff.core.decision import ApprovalDecision
from signoff.core.inbox import Item
from signoff.core.lifecycle import (
    OPEN,
    AskedAgain,
    Assigned,
    Cancelled,
    Claimed,
    Event,
    Failed,
    Lost,
    Succeeded,
    Told,
    Voted,
    advance,
    remind_at,
)
from signoff.core.people import Answerer
from signoff.core.request import ApprovalRequest, State
from signoff.core.run import Process
from signoff.errors import AlreadySettled, RequestError, RunTaken, UnknownRequest
from signoff.ports import Clock, Store, Transaction

if TYPE_CHECKING:
    from signoff.policy.engine import Policy
    from signoff.policy.layers import Layers

T = TypeVar("T")
PREVIEW = 500
"""Characters of a result, or an error, that are kept for people."""


class Broker:
    """The only writer of requests and decisions. `runs`, `grants` and `switch` hold what belongs to those."""

    def __init__(
        self,
        store: Store,
        clock: Clock | None = None,
        *,
        people: Mapping[str, frozenset[str]] | None = None,
        masked: Sequence[str] = (),
        remembers: bool = True,
        signer: Signer | None = None,
    ) -> None:
        """`people` are roles by name; `masked` are values that never reach the record.

        Where answers are remembered elsewhere, `remembers` is False. `signer` signs the end of the record now and then.
        """
        self.store = store
        clock = clock or SystemClock()
        self.clock: Clock = clock if store.clock_lead is None else AgreedClock(clock, store)
        self.journal = Journal(tuple(masked))
        self._process = this_process(self.clock.now())
        self.watch = Watch(store)
        self.runs = Runs(self)
        self.grants = Grants(self)
        self.switch = Switch(self)
        self.notes = Notes(self)
        self.sweeper = Sweeper(self)
        self.stopping = Stopping(self)
        self.inside = Inside(self)
        self.policies = Policies(self)
        self.deliveries = Deliveries(self)
        self.people = People(self, people or {})
        self.signer = signer
        self.remembers = remembers and store.is_durable
        self._beaten: datetime | None = None
        if store.is_durable:
            store.remind(BEAT.total_seconds(), self.beat)

    @property
    def process(self) -> Process:
        """This process. A fork of it is another one, which holds nothing yet."""
        if self._process.pid != os.getpid():
            self._process, self._beaten = this_process(self.clock.now()), None
        return self._process

    # --- opening and looking ---

    async def open(
        self,
        requests: Sequence[ApprovalRequest],
        progress: Sequence[Progress] = (),
        policy: Policy | Layers | None = None,
    ) -> list[ApprovalRequest]:
        """Store new questions, with the time, a deadline where their rule has one, and how far their runs came.

        `policy` is what they were asked under. A call is asked about once: if there is a request about the very same
        call, whatever became of it, that one is returned, unless it was withdrawn.
        """
        now = self.clock.now()
        fresh = [self._dated(request, now) for request in requests]

        def work(tx: Transaction) -> list[ApprovalRequest]:
            for one in progress:
                self.runs.save(tx, one, now)
            if policy is not None and fresh:
                self.policies.keep(tx, policy)
            opened: list[ApprovalRequest] = []
            for request in fresh:
                self.runs.refuse_over(tx, request.run)
                known = tx.about(request.call.key) if request.call is not None else None
                if known is None or known.state is State.CANCELLED:
                    tx.add_request(request)
                    tx.append([self.journal.asked(request, now)])
                    known = request
                opened.append(known)
            return opened

        if not fresh and not progress:
            return []
        return await self.store.write("ask", work)

    def _dated(self, request: ApprovalRequest, now: datetime) -> ApprovalRequest:
        requirement = request.requirement
        deadline = now + requirement.timeout if requirement.timeout is not None else None
        return request.changed_to(
            id=request.id or new_id(),
            opened_at=now,
            deadline=deadline,
            remind_at=remind_at(requirement, deadline),
            title=request.title or safe_summary(request, secrets=self.journal.secrets),
        )

    async def get(self, request_id: str) -> ApprovalRequest:
        """The request as it stands; raises `UnknownRequest`."""
        return await self.store.read(lambda tx: self.found(tx, request_id))

    async def find(self, prefix: str) -> ApprovalRequest:
        """The request whose id begins so; raises `UnknownRequest` where none does, `RequestError` where several do."""

        def work(tx: Transaction) -> ApprovalRequest:
            if (request := tx.request(prefix)) is not None:
                return request
            ids = [one for one in tx.ids_like(prefix) if tx.request(one) is not None] if prefix else []
            if len(ids) == 1:
                return self.found(tx, ids[0])
            if ids:
                raise RequestError(f"more than one request begins with {prefix!r}: {', '.join(ids)}")
            raise UnknownRequest(_is_run(tx, prefix) or f"no request has the id {prefix!r}")

        return await self.store.read(work)

    async def inbox(self, *, limit: int = 50, after: Item | None = None) -> Sequence[Item]:
        """What waits for a person, oldest first."""
        return await self.store.read(lambda tx: tx.inbox(limit=limit, after=after))

    async def pending(self) -> Sequence[ApprovalRequest]:
        """Open requests, oldest first."""
        return await self.store.read(lambda tx: tx.open_requests())

    async def about(self, call_key: str) -> ApprovalRequest | None:
        """The newest request about a call, by `Call.key`."""
        return await self.store.read(lambda tx: tx.about(call_key))

    async def of_conversation(self, conversation_id: str) -> Sequence[ApprovalRequest]:
        """Every request of a conversation, oldest first."""
        return await self.store.read(lambda tx: tx.requests_of(conversation_id=conversation_id))

    # --- answering ---

    async def answer(
        self, request_id: str, decision: ApprovalDecision, *, by: Answerer, checked: bool = False
    ) -> ApprovalRequest:
        """Take an answer. Whoever comes late is told who settled it, in the `AlreadySettled` that is raised.

        Edited arguments have to fit the tool's schema as it was, unless the caller `checked` them already.
        """
        if decision.edited_args is not None and not checked:
            from signoff.broker.edits import fitting, refuse_veiled

            request = await self.get(request_id)
            if request.state is State.PENDING:
                refuse_veiled(request)
                decision = replace(decision, edited_args=fitting(request, decision.edited_args))
        by = self.people.known(by)

        def work(tx: Transaction, now: datetime) -> ApprovalRequest:
            request = self.found(tx, request_id)
            if request.state is State.PENDING and request.deadline is not None and request.deadline <= now:
                # What a deadline parks or escalates is still open, to those who are asked from then on.
                request = self.sweeper.feed(tx, request_id, now) or request
            if request.state is State.PENDING:  # whoever comes late is told that, and nothing else
                self.people.check(request, by)
                check_terms(request, decision)
            absent = self.people.stands_in_for(tx, request, by, now, denies=not decision.approved)
            voted = self.put(tx, request, Voted(by, decision, absent), now)
            drafts = [self.journal.voted(voted, now)]
            if voted.state is not State.PENDING:
                drafts.append(self.journal.settled(voted, now))
                drafts.extend(self.grants.from_answer(tx, voted, now))
            tx.append(drafts)
            return voted

        return await self._write("vote", work)

    async def assign(self, request_id: str, to: str, *, by: Answerer) -> ApprovalRequest:
        """Say who works on a request, so that nobody else starts; an empty name frees it."""

        def work(tx: Transaction, now: datetime) -> ApprovalRequest:
            request = self.put(tx, self.found(tx, request_id), Assigned(to), now)
            tx.append([self.journal.step(request, "assigned", now, to=to, by=by.name)])
            return request

        return await self._write("assign", work)

    async def tell(self, request_id: str, *, happened: bool, by: Answerer, note: str = "") -> ApprovalRequest:
        """Say what became of a call whose process is gone. If it did not happen, it may be asked about anew."""
        by = self.people.known(by)

        def work(tx: Transaction, now: datetime) -> ApprovalRequest:
            request = self.found(tx, request_id)
            if request.state is State.UNKNOWN:
                self.people.check(request, by)
            absent = self.people.stands_in_for(tx, request, by, now, denies=False)
            told = self.put(tx, request, Told(by, happened, note, absent), now)
            place = self.people.in_whose_place(request, by, absent)
            tx.append([self.journal.step(told, "told", now, by=by.name, happened=happened, note=note, **place)])
            return told

        return await self._write("tell", work)

    # --- running ---

    async def claim(self, request_id: str, *, run: str = "", epoch: int = 0, token: str = "") -> ApprovalRequest:
        """Take the right to run, once. Raises `AlreadySpent` for everyone but the first, and `Halted` while halted.

        `token` tells this attempt from others of the same process. With a kept run, `RunTaken` or `RunOver` where this
        process no longer has it in hand.
        """

        def work(tx: Transaction, now: datetime) -> ApprovalRequest:
            self.switch.check(tx)
            if run:
                self.runs.check(tx, run, epoch)
            claimed = self.put(tx, self.found(tx, request_id), Claimed(self.process.id, token), now)
            self.enlist(tx, now)
            tx.append([self.journal.about(claimed, "claimed", now, {"process": self.process.id})])
            return claimed

        return await self._write("claim", work)

    async def confirm(self, claimed: ApprovalRequest, since: float) -> None:
        """Just before a claimed call runs: raise `RunTaken` if it was given up for lost while this process stood still.

        `since` is when the claim was made, in `steady_seconds`. A process that was stopped for longer than it takes to
        say that it lives looks again, and says so; otherwise this costs nothing.
        """

        def work(tx: Transaction, now: datetime) -> None:
            request = self.found(tx, claimed.id)
            token = claimed.claim.token if claimed.claim is not None else ""
            if request.state is not State.CLAIMED or request.claim is None or request.claim.token != token:
                raise RunTaken(
                    f"the call {claimed.id} was given up for lost while this process stood still, so it does not run"
                )
            tx.put_process(seen(self.process, now))

        while steady_seconds() - since >= BEAT.total_seconds():
            since = steady_seconds()
            await self._write("confirm", work)

    def finish(
        self,
        request_id: str,
        *,
        error: str | None = None,
        digest: str = "",
        preview: str = "",
        result: bytes | None = None,
        token: str | None = None,
        secrets: Sequence[str] = (),
    ) -> None:
        """Record how a claimed call ended, within a moment; a process that dies before leaves it unknown.

        With the claim's `token`, whoever has lost the claim meanwhile only leaves a note.
        """
        now = self.clock.now()

        def work(tx: Transaction) -> None:
            request = self.found(tx, request_id)
            told = self.journal.text(error or preview, longest=PREVIEW, secrets=(*request.secrets, *secrets))
            event: Event = Succeeded(digest, told) if error is None else Failed(told)
            try:
                if token is not None and request.claim is not None and request.claim.token != token:
                    raise AlreadySettled("another process has claimed it since")
                ended = self.put(tx, request, event, now)
            except AlreadySettled as late:  # it was given up for lost, and a person has said what became of it
                body = {"outcome": told, "note": self.journal.text(str(late))}
                tx.append([self.journal.about(request, "late outcome", now, body)])
                return
            if result is not None:
                tx.keep_result(request_id, result)
            if error is None:
                tx.append([self.journal.about(ended, "ran", now, {"digest": digest, "preview": told})])
            else:
                tx.append([self.journal.about(ended, "failed", now, {"error": told})])

        self.store.later("outcome", work)

    async def result(self, request_id: str) -> bytes | None:
        """What a call returned, where it was kept."""
        return await self.store.read(lambda tx: tx.result(request_id))

    async def lose(self, request_id: str) -> ApprovalRequest:
        """Record that nobody knows how a claimed call ended."""
        return await self.advance("lose", request_id, Lost(), "unknown")

    async def ask_again(self, request_id: str) -> ApprovalRequest:
        """Record that a claimed call asked again instead of running, so that it may be asked about anew."""
        return await self.advance("ask again", request_id, AskedAgain(), "settled")

    async def cancel(self, request_id: str, reason: str) -> ApprovalRequest:
        """Withdraw a question, or an approval that was not spent."""
        return await self.advance("cancel", request_id, Cancelled(reason), "settled")

    # --- time ---

    async def sweep(self) -> list[ApprovalRequest]:
        """Feed time to whatever is due; what changed. Any number of processes may do this at once."""
        return await self.sweeper.sweep()

    async def wait(self, request_id: str) -> ApprovalRequest:
        """Wait until nobody has to say anything about the request, expiring it when its time comes."""
        with self.watch.waiting_for(request_id) as signal:
            while (request := await self.get(request_id)).state in OPEN:
                await self._woken_or_due(request, signal)
                signal.clear()
            return request

    async def _woken_or_due(self, request: ApprovalRequest, signal: asyncio.Event) -> None:
        moments = [one for one in (request.deadline, request.remind_at) if one is not None]
        if not moments or request.state is not State.PENDING:
            await signal.wait()
            return
        moment = min(moments)
        tasks = [asyncio.ensure_future(signal.wait()), asyncio.ensure_future(self.clock.sleep_until(moment))]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
        now = self.clock.now()
        if moment <= now:
            await self.store.write("expire", lambda tx: self.sweeper.feed(tx, request.id, now))

    # --- parts, also of `runs` and `grants` ---

    def enlist(self, tx: Transaction, now: datetime) -> None:
        """Say that this process lives, which whoever finds its claims and runs will want to know."""
        if self._beaten is None or now - self._beaten >= BEAT or tx.process(self.process.id) is None:
            tx.put_process(seen(self.process, now))
            self._beaten = now

    def beat(self) -> None:
        """Say again that this process lives, if it ever said so."""
        if self._beaten is not None:
            now = self.clock.now()
            self.store.later("beat", lambda tx: tx.put_process(seen(self.process, now)))

    def put(self, tx: Transaction, request: ApprovalRequest, event: Event, now: datetime) -> ApprovalRequest:
        """The request after an event, stored."""
        changed = advance(request, event, now)
        tx.put_request(changed)
        return changed

    def found(self, tx: Transaction, request_id: str) -> ApprovalRequest:
        """The request; raises `UnknownRequest`."""
        request = tx.request(request_id)
        if request is None:
            raise UnknownRequest(f"no request has the id {request_id!r}")
        return request

    async def advance(self, name: str, request_id: str, event: Event, kind: str) -> ApprovalRequest:
        """The request after an event, stored and on the record as `kind`."""

        def work(tx: Transaction, now: datetime) -> ApprovalRequest:
            changed = self.put(tx, self.found(tx, request_id), event, now)
            settled = kind == "settled"
            tx.append([self.journal.settled(changed, now) if settled else self.journal.step(changed, kind, now)])
            return changed

        return await self._write(name, work)

    async def _write(self, name: str, work: Callable[[Transaction, datetime], T]) -> T:
        # Looked at inside: only then a store that was not reached before knows how its clock stands to this one.
        return await self.store.write(name, lambda tx: work(tx, self.clock.now()))


def _is_run(tx: Transaction, prefix: str) -> str:
    """What to say to whoever gives the id of a run instead of that of a question; empty where it is none."""
    runs = [one for one in tx.ids_like(prefix) if tx.run(one) is not None] if prefix else []
    if len(runs) != 1:
        return ""
    waiting = [one.id for one in tx.requests_of(run=runs[0]) if one.state in OPEN]
    its = f"its open questions are {', '.join(waiting)}" if waiting else "it has no open question"
    return f"{runs[0]} is a run; {its}"
