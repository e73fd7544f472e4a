"""Requests of remote agents by the Agent Approval Protocol (AAP): submit, decide, consume once, report the outcome.

When people are asked, an ordinary request is opened. Its decision is copied into the AAP request when it is first told,
because the protocol wants a decision never to change. To consume is to claim the approval. A call that was consumed
without an outcome becomes unknown after a timeout, or when its instance is revoked.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from signoff.broker import requests as stored
from signoff.broker.deadlines import feed
from signoff.broker.grants import GrantUse, use_grant
from signoff.broker.ledger import Ledger
from signoff.broker.policies import BrokerPolicies
from signoff.broker.switch import check_not_halted
from signoff.core.aap import (
    UPDATES_KEPT,
    VALID_FOR,
    AapDecision,
    AapInstance,
    AapOutcome,
    AapRequest,
    AapStage,
    AapStatus,
    AapUpdate,
)
from signoff.core.access import AccessKey, AccessKind, Permission, digest_of
from signoff.core.decision import ApprovalDecision
from signoff.core.lifecycle import Cancelled, Claimed
from signoff.core.people import ActorKind
from signoff.core.record import EventDraft
from signoff.core.request import ApprovalRequest, State
from signoff.errors import RequestError, UnknownRequest
from signoff.ports import Transaction

if TYPE_CHECKING:
    from signoff.policy.layers import Layers

KEPT = timedelta(days=30)
"""How long a decided call and a revoked instance are kept; the protocol wants seven days."""
CHECKED_EVERY = timedelta(minutes=1)
"""How often `sweep` looks for instances whose key was revoked or expired. Such a key is refused anyway."""
WITHDRAWN = "the agent withdrew it"
REVOKED, NOT_JUDGED = "revoked", "not_judged"
"""Conflicts that the protocol has no error code for."""
TOO_LATE = "nobody answered before the agent's time was up"
_ENDINGS = {State.DENIED: AapStatus.DENIED, State.EXPIRED: AapStatus.EXPIRED, State.CANCELLED: AapStatus.CANCELLED}


@dataclass(frozen=True, slots=True, kw_only=True)
class AapAnswer:
    """A request after an operation on it, and why the operation was refused, if it was."""

    request: AapRequest
    conflict: str = ""
    """The protocol's error code for the refusal; empty if the operation was done."""
    message: str = ""
    is_new: bool = False


class BrokerAap:
    """The part of the broker for the Agent Approval Protocol."""

    def __init__(self, ledger: Ledger, policies: BrokerPolicies) -> None:
        self._ledger = ledger
        self._policies = policies
        self._checked: datetime | None = None
        """When the keys of all instances were last checked."""

    # --- requests ---

    async def known(self, instance: str, key: str) -> AapRequest | None:
        """Return the current request with this idempotency key of the instance, or None."""
        row = await self._ledger.store.read(lambda tx: tx.aap_requests.by_key(instance, key))
        return await self.look(row.id, instance) if row is not None else None

    async def submit(
        self,
        row: AapRequest,
        *,
        window: timedelta,
        question: ApprovalRequest | None = None,
        is_deadline: bool = False,
        policy: Layers | None = None,
        most: int,
        lease: timedelta | None = None,
    ) -> AapAnswer:
        """Store a call, with the question for people or with the decision of policy.

        The times are set here: the call ends `window` from now. With `is_deadline` the question gets this as its
        deadline. With a `lease` the agent waits all the time, and is gone if `renew` is not called for so long. If the
        instance already used the idempotency key, the request stored under it is returned. The
        conflict is `too_many_pending` if `most` calls of the instance wait already.
        """
        ledger = self._ledger
        told = await stored.written(ledger.journal, question) if question is not None else None

        def work(tx: Transaction, now: datetime) -> AapAnswer:
            if (before := tx.aap_requests.by_key(row.instance, row.key)) is not None:
                return AapAnswer(request=before)
            if _is_out(tx, row.instance, now):
                return AapAnswer(request=row, conflict=REVOKED, message="the instance was revoked")
            if question is not None and tx.aap_requests.waiting(row.instance) >= most:
                text = f"{most} calls of this instance are already waiting for people"
                return AapAnswer(request=row, conflict="too_many_pending", message=text)
            kept = row.changed(created_at=now, deadline=now + window, decision=_dated(row.decision, now))
            if question is not None and told is not None:
                if lease is not None:
                    kept = kept.changed(waits_until=now + lease)
                if policy is not None:
                    self._policies.keep(tx, policy)
                opened = stored.opened(question, now, told.title)
                if lease is not None:
                    opened = opened.changed_to(waiter=row.holder)
                if is_deadline:
                    opened = stored.ending(opened, kept.deadline, now)
                kept = kept.changed(request=stored.ask(tx, ledger.journal, opened, now, told.call).id)
            tx.aap_requests.forget(now - KEPT)
            tx.aap_requests.put(kept)
            return AapAnswer(request=kept, is_new=True)

        return await ledger.write("ask by AAP", work)

    async def look(self, request_id: str, instance: str) -> AapRequest:
        """Return the current state of a request of an instance.

        Raises `UnknownRequest` if the instance has none of that id.
        """

        def read(tx: Transaction, now: datetime) -> tuple[AapRequest, bool]:
            row = _found(tx, request_id, instance)
            return row, row.decision is None and _is_settled(tx, row, now)

        row, is_news = await self._ledger.read(read)
        if not is_news:
            return row
        return await self._ledger.write(
            "settle AAP", lambda tx, now: self._settled(tx, _found(tx, row.id, instance), now)
        )

    async def renew(self, request_id: str, instance: str, lease: timedelta) -> None:
        """Note that the agent of an undecided request, which was submitted with a lease, still waits."""

        def work(tx: Transaction, now: datetime) -> None:
            row = _found(tx, request_id, instance)
            if row.waits_until is not None and row.consumed_at is None and not row.is_left(now):
                tx.aap_requests.put(row.changed(waits_until=now + lease))

        await self._ledger.write("wait by AAP", work)

    async def cancel(self, request_id: str, instance: str) -> AapAnswer:
        """Withdraw a pending call. A call that is decided stays as it is."""

        def work(tx: Transaction, now: datetime) -> AapAnswer:
            row = self._settled(tx, _found(tx, request_id, instance), now)
            if row.decision is None:
                return AapAnswer(request=self._withdraw(tx, row, WITHDRAWN, now))
            if row.status is AapStatus.CANCELLED:
                return AapAnswer(request=row)
            return AapAnswer(request=row, conflict="already_terminal", message=f"the request is already {row.status}")

        return await self._ledger.write("cancel AAP", work)

    async def consume(
        self,
        request_id: str,
        instance: str,
        key: str,
        refusal: str | None = None,
        uses: GrantUse | None = None,
        *,
        tells_outcome: bool = True,
    ) -> AapAnswer:
        """Consume an approval, once: the agent is about to run the call.

        `refusal` says why the call may not run after all; empty if it may. None means that policy was not checked,
        because the request was not approved yet: if it is approved by now, the conflict is `NOT_JUDGED` and the caller
        has to check. `uses` is the grant that lets the call run. With `tells_outcome` unset, no outcome will be
        reported: the record says that the call was handed over. Raises `Halted` while everything is halted.
        """
        ledger = self._ledger

        def work(tx: Transaction, now: datetime) -> AapAnswer:
            if _is_out(tx, instance, now):
                row = _found(tx, request_id, instance)
                return AapAnswer(request=row, conflict=REVOKED, message="the instance was revoked")
            row = self._settled(tx, _found(tx, request_id, instance), now)
            if row.consumed_at is not None:
                if row.consumed_as == key:
                    if row.outcome is None:  # an agent that missed the first answer would run the call now
                        check_not_halted(tx)
                    return AapAnswer(request=row)
                return AapAnswer(request=row, conflict="already_consumed", message="the approval was consumed before")
            decision = row.decision
            if decision is None or decision.status is not AapStatus.APPROVED:
                return AapAnswer(request=row, conflict="not_approved", message=f"the request is {row.status}")
            check_not_halted(tx)
            why = refusal
            if decision.expires_at is not None and now >= decision.expires_at:
                why = "the approval was not consumed in time"
            if why is None:
                return AapAnswer(request=row, conflict=NOT_JUDGED, message="the request was approved just now")
            if not why:
                why = self._claimed(tx, row, uses, now, tells_outcome=tells_outcome)
            if why:
                self._void(tx, row, why, now)
                return AapAnswer(request=row, conflict="approval_expired", message=why)
            return AapAnswer(request=_put(tx, row.changed(consumed_at=max(now, decision.at), consumed_as=key)))

        return await ledger.write("consume AAP", work)

    async def report(self, request_id: str, instance: str, *, succeeded: bool, note: str = "") -> AapAnswer:
        """Record the outcome that the agent reports for its call.

        A second report with another outcome is a conflict.
        """
        journal = self._ledger.journal

        def work(tx: Transaction, now: datetime) -> AapAnswer:
            row = _found(tx, request_id, instance)
            if row.consumed_at is None:
                return AapAnswer(request=row, conflict="not_consumed", message="the approval was not consumed")
            if (told := row.outcome) is not None:
                if (told.succeeded, told.note) == (succeeded, note):
                    return AapAnswer(request=row)
                return AapAnswer(
                    request=row, conflict="outcome_conflict", message="a different outcome was reported before"
                )
            if row.request:
                stored.finish(
                    tx,
                    journal,
                    stored.found(tx, row.request),
                    now,
                    error=None if succeeded else note or "the agent says that it failed",
                    digest="",
                    preview=note,
                    result=None,
                    token=row.id,
                    secrets=(),
                )
            else:
                body = {"preview": journal.text(note)} if succeeded else {"error": journal.text(note)}
                tx.record.append([self._passed(row, "ran" if succeeded else "failed", now, body)])
            outcome = AapOutcome(succeeded=succeeded, at=max(now, row.consumed_at), note=note)
            return AapAnswer(request=_put(tx, row.changed(outcome=outcome)))

        return await self._ledger.write("AAP outcome", work)

    # --- instances ---

    async def provision(
        self,
        instance_id: str,
        name: str,
        secret: str,
        *,
        owner: str,
        by: str,
        lasts: timedelta | None,
        provisioner: str = "",
        key: str = "",
        asked: str = "",
        is_here: bool = False,
    ) -> tuple[AapInstance, AccessKey, bool]:
        """Make an instance and its access key; the flag is True if it is new.

        If the `provisioner` already used the idempotency key, the instance made under it is returned.
        """
        journal = self._ledger.journal

        def work(tx: Transaction, now: datetime) -> tuple[AapInstance, AccessKey, bool]:
            if (before := tx.aap_instances.by_key(provisioner, key)) is not None:
                return before, _key_of(tx, before, now), False
            access = AccessKey(
                id=instance_id,
                kind=AccessKind.INSTANCE,
                digest=digest_of(secret),
                holder=instance_id,
                is_program=True,
                label=name,
                permissions=frozenset({Permission.REQUEST}),
                created_at=now,
                created_by=by,
                expires_at=now + lasts if lasts is not None else None,
            )
            made = AapInstance(
                id=instance_id,
                name=name,
                access=access.id,
                owner=owner,
                created_at=now,
                provisioner=provisioner,
                key=key,
                asked=asked,
                is_here=is_here,
            )
            tx.aap_instances.forget(now - KEPT)
            tx.access_keys.put(access)
            tx.aap_instances.put(made)
            tx.record.append([_about_key(made, "access given", now, by, journal.text(name))])
            return made, access, True

        return await self._ledger.write("make AAP instance", work)

    async def rename(self, instance_id: str, provisioner: str, name: str, *, key: str, asked: str) -> AapUpdate | None:
        """Rename an instance, once for each idempotency key; None if the key was used for another change.

        Raises `UnknownRequest` if the provisioner has no such instance, or it was revoked.
        """

        def work(tx: Transaction, now: datetime) -> AapUpdate | None:
            instance = tx.aap_instances.get(instance_id)
            if instance is None or instance.provisioner != provisioner or instance.revoked_at is not None:
                raise UnknownRequest(f"no instance has the id {instance_id!r}")
            if (before := next((one for one in instance.updates if one.key == key), None)) is not None:
                return before if before.asked == asked else None
            update = AapUpdate(key=key, asked=asked, at=now, name=name or instance.name)
            kept = tuple(one for one in instance.updates if now - one.at < UPDATES_KEPT)
            tx.aap_instances.put(instance.changed(name=update.name, updates=(*kept, update)))
            return update

        return await self._ledger.write("rename AAP instance", work)

    async def revoke(self, instance_id: str, *, by: str) -> AapInstance:
        """Revoke an instance and its key: pending calls are withdrawn, consumed ones without outcome become unknown."""
        return await self._ledger.write("revoke AAP instance", lambda tx, now: self._revoke(tx, instance_id, by, now))

    async def instance(self, instance_id: str) -> AapInstance | None:
        """Return the instance of this id, also if it was revoked."""
        return await self._ledger.store.read(lambda tx: tx.aap_instances.get(instance_id))

    async def instances(self) -> Sequence[tuple[AapInstance, AccessKey | None]]:
        """Return all instances with their access keys, in the order they were made."""
        return await self._ledger.store.read(
            lambda tx: [(one, tx.access_keys.get(one.access)) for one in tx.aap_instances.all()]
        )

    # --- time ---

    async def sweep(self) -> int:
        """End requests past their deadline, and revoke instances whose key is no longer valid; return how many."""
        ledger = self._ledger

        def look(tx: Transaction, now: datetime) -> tuple[Sequence[str], list[str]]:
            closed = list[str]()
            if self._checked is None or now - self._checked >= CHECKED_EVERY:
                self._checked = now
                closed = [one.id for one in tx.aap_instances.all(revoked=False) if _is_closed(tx, one, now)]
            return tx.aap_requests.due(now), closed

        due, closed = await ledger.read(look)
        if not due and not closed:
            return 0

        def work(tx: Transaction, now: datetime) -> None:
            for one in due:
                if (row := tx.aap_requests.get(one)) is not None:
                    self._settled(tx, row, now)
            for one in closed:
                self._revoke(tx, one, "signoff", now)

        await ledger.write("sweep AAP", work)
        return len(due) + len(closed)

    # --- inside a transaction ---

    def _settled(self, tx: Transaction, row: AapRequest, now: datetime) -> AapRequest:
        """Return the request, with its decision if there is one by now."""
        if row.decision is not None:
            return row
        request = tx.requests.get(row.request)
        if request is not None and request.state is State.PENDING and row.deadline <= now:
            # The rule decides what happens at the deadline.
            request = feed(tx, self._ledger, request.id, now) or request
            if request.state is State.PENDING:
                return self._withdraw(tx, row, TOO_LATE, now, status=AapStatus.EXPIRED)
        if request is not None and request.state is State.PENDING:
            return row
        decided = request.decision if request is not None else None
        if request is None or decided is None:
            at, why = max(now, row.created_at), "it is not known any longer"
            return _put(tx, row.changed(decision=_decision(AapStatus.CANCELLED, at, why)))
        at = max(decided.at or now, row.created_at)
        if request.state is not State.APPROVED:
            status = _ENDINGS.get(request.state, AapStatus.CANCELLED)
            return _put(tx, row.changed(decision=_decision(status, at, decided.note)))
        if at > row.deadline:
            return self._withdraw(tx, row, TOO_LATE, now, status=AapStatus.EXPIRED)
        if decided.edited_args is not None:
            wanted = _wanted(request, decided, decided.edited_args)
            return self._withdraw(tx, row, wanted, now, status=AapStatus.DENIED)
        return _put(tx, row.changed(decision=_decision(AapStatus.APPROVED, at, decided.note)))

    def _withdraw(
        self, tx: Transaction, row: AapRequest, why: str, now: datetime, *, status: AapStatus = AapStatus.CANCELLED
    ) -> AapRequest:
        """End a call with a negative decision, and withdraw the request behind it."""
        self._void(tx, row, why, now)
        return _put(tx, row.changed(decision=_decision(status, max(now, row.created_at), why)))

    def _void(self, tx: Transaction, row: AapRequest, why: str, now: datetime) -> None:
        """Withdraw the request behind a call, if it is pending or its approval is unused."""
        request = tx.requests.get(row.request) if row.request else None
        if request is not None and request.state in (State.PENDING, State.APPROVED):
            stored.settle(tx, self._ledger.journal, request, Cancelled(why), now)

    def _claimed(
        self, tx: Transaction, row: AapRequest, uses: GrantUse | None, now: datetime, *, tells_outcome: bool
    ) -> str:
        """Claim the approval behind a call; return why that is not possible, empty if it was done."""
        if not row.request:
            if uses is not None and (why := use_grant(tx, self._ledger.journal, uses, now)):
                return f"the remembered answer that allowed it is no longer valid: {why}"
            tx.record.append([self._passed(row, "claimed", now, {"process": row.holder})])
            return ""
        try:
            if not tells_outcome:
                stored.hand_over(tx, self._ledger.journal, stored.found(tx, row.request), row.holder, now)
                return ""
            claimed = stored.put(tx, stored.found(tx, row.request), Claimed(row.holder, row.id), now)
        except RequestError as error:  # it was withdrawn in the meantime
            return str(error)
        tx.record.append([self._ledger.journal.about(claimed, "claimed", now, {"process": row.holder})])
        return ""

    def _passed(self, row: AapRequest, kind: str, now: datetime, body: Mapping[str, Any]) -> EventDraft:
        """An audit event for a call that policy alone decided."""
        tool = self._ledger.journal.text(str(json.loads(row.body)["tool"]))
        return EventDraft(kind=kind, at=now, body={"tool": tool, "aap": row.id, "instance": row.instance, **body})

    def _revoke(self, tx: Transaction, instance_id: str, by: str, now: datetime) -> AapInstance:
        instance = tx.aap_instances.get(instance_id)
        if instance is None:
            raise UnknownRequest(f"no instance has the id {instance_id!r}")
        if instance.revoked_at is not None:
            return instance
        journal, why = self._ledger.journal, f"the instance {instance.name} was revoked"
        revoked = instance.changed(revoked_at=now, revoked_by=by)
        tx.aap_instances.put(revoked)
        key = tx.access_keys.get(instance.access)
        if key is not None and key.revoked_at is None:
            tx.access_keys.put(replace(key, revoked_at=now))
            tx.record.append([_about_key(revoked, "access revoked", now, by, journal.text(instance.name))])
        for row in tx.aap_requests.going(instance_id):
            one = self._settled(tx, row, now)
            match one.stage:
                case AapStage.OPEN:
                    self._withdraw(tx, one, why, now)
                case AapStage.APPROVED:
                    self._void(tx, one, why, now)
                case AapStage.CONSUMED if one.request:
                    with suppress(RequestError):  # a person has reported the outcome in the meantime
                        stored.lose(tx, journal, stored.found(tx, one.request), why, now)
                case _:
                    pass
        return revoked


def _found(tx: Transaction, request_id: str, instance: str) -> AapRequest:
    row = tx.aap_requests.get(request_id)
    if row is None or row.instance != instance:  # do not reveal requests of other instances
        raise UnknownRequest(f"no request has the id {request_id!r}")
    return row


def _put(tx: Transaction, row: AapRequest) -> AapRequest:
    tx.aap_requests.put(row)
    return row


def _is_settled(tx: Transaction, row: AapRequest, now: datetime) -> bool:
    request = tx.requests.get(row.request)
    return request is None or request.state is not State.PENDING or row.deadline <= now


def _is_out(tx: Transaction, instance_id: str, now: datetime) -> bool:
    """Whether an instance has no access any more: it may have been revoked since its key was checked."""
    instance = tx.aap_instances.get(instance_id)
    return instance is None or instance.revoked_at is not None or _is_closed(tx, instance, now)


def _is_closed(tx: Transaction, instance: AapInstance, now: datetime) -> bool:
    """Whether the access key of an instance is revoked, expired or gone."""
    key = tx.access_keys.get(instance.access)
    return key is None or bool(key.refusal(now))


def _key_of(tx: Transaction, instance: AapInstance, now: datetime) -> AccessKey:
    """Return the key of an instance. A key that was deleted long after its expiry is shown as revoked."""
    found = tx.access_keys.get(instance.access)
    if found is not None:
        return found
    return AccessKey(
        id=instance.access, kind=AccessKind.INSTANCE, digest="", holder=instance.id, created_at=now, revoked_at=now
    )


def _decision(status: AapStatus, at: datetime, note: str = "") -> AapDecision:
    expires = at + VALID_FOR if status is AapStatus.APPROVED else None
    return AapDecision(status=status, at=at, note=note, expires_at=expires)


def _dated(decision: AapDecision | None, now: datetime) -> AapDecision | None:
    return _decision(decision.status, now, decision.note) if decision is not None else None


def _wanted(request: ApprovalRequest, decision: ApprovalDecision, args: Mapping[str, Any]) -> str:
    """The text of a denial that says which arguments to send: the protocol cannot run a call with edited arguments."""
    by = decision.by.name if decision.by is not None and decision.by.kind is ActorKind.PERSON else "a person"
    said = f" ({decision.note})" if decision.note else ""
    sent = json.dumps(args, ensure_ascii=False, default=str)
    return f"{by} wants other arguments{said}: call {request.tool_name} with {sent}"


def _about_key(instance: AapInstance, kind: str, now: datetime, by: str, name: str) -> EventDraft:
    told = {"key": instance.access, "kind": str(AccessKind.INSTANCE), "holder": instance.id, "label": name, "by": by}
    return EventDraft(kind=kind, at=now, body={**told, "permissions": [str(Permission.REQUEST)]})
