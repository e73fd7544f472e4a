"""The broker opens requests, takes answers, hands out claims (the right to run once), and wakes waiters.

It is the only writer. Every change is one transaction, made of functions that are grouped by subject: `requests`,
`runs`, `grants`, `deadlines`, `entitlements`. None of them knows the broker.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING

from signoff.broker import requests as stored
from signoff.broker.aap_requests import BrokerAap
from signoff.broker.access_keys import BrokerAccess
from signoff.broker.audit_buffer import AuditBuffer
from signoff.broker.checkpoints import Signer
from signoff.broker.comments import BrokerComments, with_comments
from signoff.broker.deadlines import Deadlines, due_at, feed, has_no_waiter
from signoff.broker.entitlements import People
from signoff.broker.grants import BrokerGrants, check_role, check_terms, remember
from signoff.broker.journal import Journal
from signoff.broker.ledger import Ledger
from signoff.broker.policies import BrokerPolicies
from signoff.broker.runs import BrokerRuns, RunProgress, check, refuse_over, save
from signoff.broker.signatures import Signing
from signoff.broker.switch import Switch, check_not_halted
from signoff.broker.tool_pins import BrokerPins
from signoff.broker.watch import Watch
from signoff.core.decision import ApprovalDecision
from signoff.core.delivery import NOWHERE
from signoff.core.inbox_row import Item
from signoff.core.lifecycle import (
    OPEN,
    AskedAgain,
    Assigned,
    Awaited,
    Cancelled,
    Claimed,
    Event,
    OutcomeReported,
    Voted,
)
from signoff.core.people import Actor, ActorKind, person_key
from signoff.core.request import ApprovalRequest, State
from signoff.core.request_filter import ListPlace, RequestFilter
from signoff.core.run import Process
from signoff.errors import AlreadySettled, RunTaken
from signoff.large_work import in_thread
from signoff.ports import Clock, Store, Transaction
from signoff.processes import BEAT, seen, steady_seconds

if TYPE_CHECKING:
    import asyncio

    from signoff.policy.engine import Policy
    from signoff.policy.layers import Layers


MOST_COUNTED = 100_000
"""Waiting requests are counted up to this number."""


class Broker:
    """The only writer of requests and decisions. `runs`, `grants`, `people` and `switch` hold the methods for those."""

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
        """`people` are roles by name; `masked` are values that never reach the audit log.

        `remembers` is False if grants are kept elsewhere. `signer` signs the end of the audit log from time to time.
        """
        self.ledger = ledger = Ledger(store, clock, Journal(tuple(masked), is_kept=store.keeps_record))
        self.store = store
        self.clock = ledger.clock
        self.watch = Watch(store)
        self.signing = Signing(ledger, signer)
        self.runs = BrokerRuns(ledger, self.signing)
        self.people = People(ledger, people or {})
        self.grants = BrokerGrants(ledger, self.people)
        self.switch = Switch(ledger, self.watch)
        self.audit_buffer = AuditBuffer(ledger)
        self.deadlines = Deadlines(ledger, self.signing)
        self.policies = BrokerPolicies(ledger)
        self.access = BrokerAccess(ledger)
        self.comments = BrokerComments(ledger)
        self.aap = BrokerAap(ledger, self.policies)
        self.pins = BrokerPins(ledger)
        self.remembers = remembers and store.is_durable

    @property
    def process(self) -> Process:
        """This process."""
        return self.ledger.process

    # --- opening and looking ---

    async def open(
        self,
        requests: Sequence[ApprovalRequest],
        progress: Sequence[RunProgress] = (),
        policy: Policy | Layers | None = None,
        places: Mapping[str, str] = NOWHERE,
        waiter: Process | None = None,
        until: datetime | None = None,
    ) -> list[ApprovalRequest]:
        """Store new requests, with the time, the deadline of their rule if it has one, and the progress of their runs.

        `policy` is what they were asked under. `places` say where people are asked, by the name of a channel that can
        read it. `waiter` is the process without which nobody makes the calls, as in `wait_as`. `until` is their
        deadline instead of that of their rule. A call is asked about once: if a request about the same call exists and
        was not withdrawn, that one is returned, in whatever state it is.
        """
        ledger = self.ledger
        told = [await stored.written(ledger.journal, request) for request in requests]

        def work(tx: Transaction, now: datetime) -> list[ApprovalRequest]:
            for one in progress:
                save(tx, ledger, one, now)
            if policy is not None and requests:
                self.policies.keep(tx, policy)
            opened: list[ApprovalRequest] = []
            for request, (title, call) in zip(requests, told, strict=True):
                refuse_over(tx, request.run)
                fresh = stored.opened(request, now, title)
                if until is not None:
                    fresh = stored.ending(fresh, until, now)
                if waiter is not None:
                    tx.processes.put(seen(waiter, now))
                    fresh = fresh.changed_to(waiter=waiter.id)
                short = self.people.shortage(tx, fresh, now)
                opened.append(stored.ask(tx, ledger.journal, fresh, now, call, places, short=short))
            return opened

        return await ledger.write("ask", work) if requests or progress else []

    async def wait_as(self, request_id: str, waiter: Process) -> ApprovalRequest:
        """Record which process waits for the answer and makes the call; return the request.

        Once it is gone, the request is withdrawn. If it may be asked for elsewhere than on its machine, it has to send
        heartbeats (`beat_for`).
        """

        def work(tx: Transaction, now: datetime) -> ApprovalRequest:
            request = stored.found(tx, request_id)
            tx.processes.put(seen(waiter, now))
            if request.state not in (State.PENDING, State.APPROVED) or request.waiter == waiter.id:
                return request
            return stored.put(tx, request, Awaited(waiter.id), now)

        return await self.ledger.write("wait", work)

    def beat_for(self, process: Process) -> None:
        """Store a heartbeat of another process, without waiting."""
        self.ledger.later("beat", lambda tx, now: tx.processes.put(seen(process, now)))

    async def get(self, request_id: str) -> ApprovalRequest:
        """Return the request as it stands; raises `UnknownRequest`."""
        return await self.store.read(lambda tx: stored.found(tx, request_id))

    async def find(self, prefix: str) -> ApprovalRequest:
        """Return the request with this id prefix; raises `UnknownRequest` for none, `RequestError` for several."""
        return await self.store.read(lambda tx: stored.found_by_prefix(tx, prefix))

    async def shown(self, request: ApprovalRequest, to: Actor | None = None) -> ApprovalRequest:
        """Return a request as people see it: with its comments, and whether enough people may approve it.

        If it is shown to one person, also with why their approval would not count.
        """

        def work(tx: Transaction, now: datetime) -> ApprovalRequest:
            found = with_comments(tx, request)
            short = self.people.shortage(tx, request, now)
            refused = self.people.standing_in(tx, request, to, now).approving if to is not None else ""
            return found.changed_to(shortage=short, refused=refused) if short or refused else found

        is_plain = not request.version and not request.requirement.is_strict
        return request if is_plain else await self.ledger.read(work)

    async def inbox(self, *, limit: int = 50, after: Item | None = None) -> Sequence[Item]:
        """List what waits for a person, oldest first."""
        return await self.store.read(lambda tx: tx.queue.page(limit=limit, after=after))

    async def listed(
        self, chosen: RequestFilter, *, limit: int, after: ListPlace | None = None
    ) -> tuple[Sequence[Item], int]:
        """Return a page of requests, and how many wait in all, counted up to `MOST_COUNTED`."""

        def work(tx: Transaction) -> tuple[Sequence[Item], int]:
            return tx.listings.page(chosen, limit=limit, after=after), tx.listings.waiting(most=MOST_COUNTED)

        return await self.store.read(work)

    async def pending(self) -> Sequence[ApprovalRequest]:
        """List open requests, oldest first."""
        return await self.store.read(lambda tx: tx.queue.open())

    async def about(self, call_key: str) -> ApprovalRequest | None:
        """Return the newest request about a call, by `Call.key`, or None."""
        return await self.store.read(lambda tx: tx.requests.about(call_key))

    async def asked_again(self, request: ApprovalRequest) -> str:
        """Say where the call of a cancelled request is asked about again, to follow its text; empty if not known."""
        return await self.store.read(lambda tx: stored.asked_again(tx, request))

    async def of_conversation(self, conversation_id: str) -> Sequence[ApprovalRequest]:
        """List every request of a conversation, oldest first."""
        return await self.store.read(lambda tx: tx.requests.of(conversation_id=conversation_id))

    # --- answering ---

    async def answer(
        self,
        request_id: str,
        decision: ApprovalDecision,
        *,
        by: Actor,
        checked: bool = False,
        refuse: Callable[[ApprovalRequest, ApprovalDecision], None] | None = None,
    ) -> ApprovalRequest:
        """Record an answer. Raises `AlreadySettled`, which says who settled the request, if the answer comes too late.

        Edited arguments have to fit the tool's schema as of the call, unless the caller `checked` them already.
        `refuse` raises for an answer that the caller does not accept.
        """
        if decision.edited_args is not None and not checked:
            from signoff.broker.edits import fitting, refuse_veiled

            request = await self.get(request_id)
            if request.state is State.PENDING:
                refuse_veiled(request)
                fits = partial(fitting, request, decision.edited_args)
                about = (request.args, decision.edited_args)
                edited = await in_thread(f"checking an edit of request {request.id}", fits, about=about)
                decision = replace(decision, edited_args=edited)
        by, ledger = self.people.known(by), self.ledger

        def work(tx: Transaction, now: datetime) -> ApprovalRequest:
            request = stored.found(tx, request_id)
            deadline = due_at(ledger, request)
            is_due = request.state is State.PENDING and deadline is not None and deadline <= now
            if is_due or has_no_waiter(tx, ledger, request, now):
                # A request that its deadline parks or escalates is still open, for the people who are asked next.
                request = feed(tx, ledger, request_id, now) or request
            if request.state is State.PENDING:  # a late answer raises `AlreadySettled` and nothing else
                self.people.check(tx, request, by)
                check_terms(request, decision, now)
                check_role(request, decision, by)
                if refuse is not None:
                    refuse(request, decision)
            absent = self.people.stands_in_for(tx, request, by, now, denies=not decision.approved)
            vote, due = Voted(by, decision, absent), due_at(ledger, request)
            try:
                voted = stored.vote(tx, ledger.journal, request, vote, now, due)
            except AlreadySettled as late:
                raise AlreadySettled(f"{late}{stored.asked_again(tx, request)}").with_moment(late.moment) from late
            drafts = [ledger.journal.voted(voted, now)]
            if voted.state is not State.PENDING:
                drafts.append(ledger.journal.settled(voted, now))
                if self.remembers:
                    drafts.extend(remember(tx, ledger.journal, voted, now))
            tx.record.append(drafts)
            return voted

        return await ledger.write("vote", work)

    async def assign(self, request_id: str, to: str, *, by: Actor, admin: bool = False) -> ApprovalRequest:
        """Assign a request to a person, so that nobody else approves it meanwhile; an empty name frees it.

        Raises `NotEntitled` for anybody but people who may approve it, the current assignee, and an admin.
        """
        people = self.people

        def work(tx: Transaction, now: datetime) -> ApprovalRequest:
            request = stored.found(tx, request_id)
            has_it = by.kind is ActorKind.PERSON and request.assigned and person_key(request.assigned) == by.key
            if request.state is State.PENDING and not admin and not has_it:
                people.check_assigns(tx, request, by, now)
            request = stored.put(tx, request, Assigned(to), now)
            tx.record.append([self.ledger.journal.step(request, "assigned", now, to=to, by=by.name)])
            return request

        return await self.ledger.write("assign", work)

    async def tell(self, request_id: str, *, happened: bool, by: Actor, note: str = "") -> ApprovalRequest:
        """Record what a person says about a call with an unknown outcome.

        If it did not happen, it may be asked about again.
        """
        by, people, journal = self.people.known(by), self.people, self.ledger.journal

        def work(tx: Transaction, now: datetime) -> ApprovalRequest:
            request = stored.found(tx, request_id)
            if request.state is State.UNKNOWN:
                people.check(tx, request, by)
            absent = people.stands_in_for(tx, request, by, now, denies=False)
            told = stored.put(tx, request, OutcomeReported(by, happened, note, absent), now)
            place = people.in_whose_place(request, by, absent)
            tx.record.append([journal.step(told, "told", now, by=by.name, happened=happened, note=note, **place)])
            return told

        return await self.ledger.write("tell", work)

    # --- running ---

    async def claim(
        self, request_id: str, *, run: str = "", epoch: int = 0, token: str = "", holder: Process | None = None
    ) -> ApprovalRequest:
        """Claim the right to run the call, once.

        Raises `AlreadySpent` for all but the first, and `Halted` while halted. `token` tells this attempt from others
        of the same process. With a saved run, raises `RunTaken` or `RunOver` if this process no longer executes it.
        `holder` is another process that runs the call: while it is alive, an outcome may still arrive.
        """
        ledger = self.ledger

        def work(tx: Transaction, now: datetime) -> ApprovalRequest:
            check_not_halted(tx)
            if run:
                check(tx, run, epoch, ledger.process.id if holder is None else "")
            process = holder.id if holder is not None else ledger.process.id
            claimed = stored.put(tx, stored.found(tx, request_id), Claimed(process, token), now)
            if holder is not None:
                tx.processes.put(seen(holder, now))
            else:
                ledger.enlist(tx, now)
            tx.record.append([ledger.journal.about(claimed, "claimed", now, {"process": process})])
            return claimed

        return await ledger.write("claim", work)

    async def hand_over(
        self, request_ids: Sequence[str], *, holder: Process | None = None
    ) -> Sequence[ApprovalRequest]:
        """Claim approvals for a program that runs the calls itself, without a gate: no outcome will be reported.

        `holder` is its process, if it is another one than this. Returns those that it got: not what somebody else has
        claimed or what is not approved. Raises `Halted` while halted.
        """
        ledger, process = self.ledger, holder or self.ledger.process

        def work(tx: Transaction, now: datetime) -> list[ApprovalRequest]:
            check_not_halted(tx)
            approved = [one for each in request_ids if (one := stored.found(tx, each)).state is State.APPROVED]
            return [stored.hand_over(tx, ledger.journal, one, process.id, now) for one in approved]

        return await ledger.write("hand over", work) if request_ids else []

    async def confirm(self, claimed: ApprovalRequest, since: float) -> None:
        """Check the claim just before the call runs; raises `RunTaken` if the call was marked as unknown meanwhile.

        `since` is when the claim was made, in `steady_seconds`. Only a process that was paused for longer than its
        heartbeat interval reads the store again and renews its heartbeat; otherwise this costs nothing.
        """

        def work(tx: Transaction, now: datetime) -> None:
            token = claimed.claim.token if claimed.claim is not None else ""
            if not stored.is_held(stored.found(tx, claimed.id), token):
                raise RunTaken(
                    f"the call {claimed.id} was marked as unknown while this process was paused, so it does not run"
                )
            tx.processes.put(seen(self.process, now))

        while steady_seconds() - since >= BEAT.total_seconds():
            since = steady_seconds()
            await self.ledger.write("confirm", work)

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
        """Record the outcome of a claimed call, without waiting; if the process dies first, the outcome is unknown.

        With the `token` of a claim that was lost in the meantime, only a note is recorded.
        """

        def work(tx: Transaction, now: datetime) -> None:
            stored.finish(
                tx,
                self.ledger.journal,
                stored.found(tx, request_id),
                now,
                error=error,
                digest=digest,
                preview=preview,
                result=result,
                token=token,
                secrets=secrets,
            )

        self.ledger.later("outcome", work)

    async def result(self, request_id: str) -> bytes | None:
        """Return the stored result of a call, or None."""
        return await self.store.read(lambda tx: tx.results.get(request_id))

    async def lose(self, request_id: str, why: str = "") -> ApprovalRequest:
        """Record that the outcome of a claimed call is unknown."""

        def work(tx: Transaction, now: datetime) -> ApprovalRequest:
            return stored.lose(tx, self.ledger.journal, stored.found(tx, request_id), why, now)

        return await self.ledger.write("lose", work)

    async def ask_again(self, request_id: str) -> ApprovalRequest:
        """Record that a claimed call asked again instead of running, so that it may be asked about again."""
        return await self._settle("ask again", request_id, AskedAgain())

    async def cancel(self, request_id: str, reason: str) -> ApprovalRequest:
        """Withdraw a pending request, or an approval that was not used."""
        return await self._settle("cancel", request_id, Cancelled(reason))

    async def _settle(self, name: str, request_id: str, event: Event) -> ApprovalRequest:
        def work(tx: Transaction, now: datetime) -> ApprovalRequest:
            return stored.settle(tx, self.ledger.journal, stored.found(tx, request_id), event, now)

        return await self.ledger.write(name, work)

    # --- for callers that are being stopped and must not wait ---

    def give_back(self, request_id: str, token: str) -> None:
        """Record that the claim was given up before the call began: the approval is valid again."""
        journal = self.ledger.journal
        self.ledger.later("give back", lambda tx, now: stored.give_back(tx, journal, request_id, token, now))

    def cut_off(self, request_id: str, token: str) -> None:
        """Mark the outcome of a claimed call as unknown; a call that only waited for runs inside it is paused."""
        journal = self.ledger.journal
        self.ledger.later("lose", lambda tx, now: stored.cut_off(tx, journal, request_id, token, now))

    def release(self, request_id: str, token: str) -> None:
        """Pause a claimed call together with the runs inside it: the process that resumes those claims it again."""
        journal = self.ledger.journal
        self.ledger.later("pause", lambda tx, now: stored.release(tx, journal, request_id, token, now))

    def withdraw(self, request_ids: Sequence[str], reason: str) -> None:
        """Withdraw requests that are still pending."""
        journal = self.ledger.journal
        self.ledger.later("withdraw", lambda tx, now: stored.withdraw(tx, journal, request_ids, reason, now))

    def abandon(self, request_id: str, token: str, reason: str) -> None:
        """Withdraw a request whose call will not be made, also if its approval was claimed with this token."""
        journal = self.ledger.journal
        self.ledger.later("abandon", lambda tx, now: stored.abandon(tx, journal, request_id, token, reason, now))

    # --- time ---

    async def sweep(self) -> list[ApprovalRequest]:
        """Apply deadlines, reminders and dead processes to requests; return what changed. Safe in many processes."""
        return await self.deadlines.sweep()

    async def wait(
        self, request_id: str, *, meanwhile: Callable[[ApprovalRequest], Awaitable[None]] | None = None
    ) -> ApprovalRequest:
        """Wait until the request needs no more answers; its deadline is applied when it passes.

        `meanwhile` is called with the current request at the start and after each change: an escalation or a vote does
        not settle it.
        """
        with self.watch.waiting_for(request_id) as signal:
            while (request := await self.get(request_id)).state in OPEN:
                if meanwhile is not None:
                    await meanwhile(request)
                await self._woken_or_due(request, signal)
                signal.clear()
            return request

    async def _woken_or_due(self, request: ApprovalRequest, signal: asyncio.Event) -> None:
        import asyncio

        moments = [one for one in (due_at(self.ledger, request), request.remind_at) if one is not None]
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
        if moment <= self.clock.now():
            await self.ledger.write("expire", lambda tx, now: feed(tx, self.ledger, request.id, now))
