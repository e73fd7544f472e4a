"""Store the policies that requests were asked under, so that edited arguments can be judged anywhere."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from signoff.broker.ledger import Ledger
from signoff.core.people import Actor
from signoff.core.record import EventDraft
from signoff.core.request import ApprovalRequest
from signoff.errors import PolicyError
from signoff.ports import Transaction

if TYPE_CHECKING:
    from signoff.policy.engine import Policy
    from signoff.policy.layers import Layers


class BrokerPolicies:
    """The part of the broker for stored policies, by their revision."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._kept: set[str] = set()
        """Revisions that are certainly in the store."""

    def keep(self, tx: Transaction, policy: Policy | Layers) -> None:
        """Store a policy, unless it is stored already."""
        revision = policy.revision
        if not revision or revision in self._kept or not self._ledger.store.is_durable:
            return
        if tx.policies.get(revision) is None:
            from signoff.policy.policy_text import written  # listing requests needs no parser

            if (text := written(policy)) is None:
                return
            tx.policies.put(revision, text)
        else:  # it was committed
            self._kept.add(revision)

    async def written(self, *, by: Actor, file: str, digest: str, text: str, request: str) -> None:
        """Record in the audit log that somebody had a rule written to a file, about the call of a request."""
        body = {"by": by.name, "via": by.via, "file": file, "digest": digest, "text": self._ledger.journal.text(text)}

        def work(tx: Transaction, now: datetime) -> None:
            tx.record.append([EventDraft(kind="rule written", at=now, request=request, body=body)])

        await self._ledger.write("rule written", work)

    async def of(self, request: ApprovalRequest, *, beside: Policy | Layers) -> Policy | Layers | None:
        """Return the policy a request was asked under, if it is stored and `beside` is still part of it; else None.

        A run inside others is judged by the rules of all of them. The process that answers may know only some of these.
        """
        if request.policy_revision in ("", beside.revision):
            return beside
        from signoff.policy.policy_text import layers_of, read_written

        # The revision of several layers covers their directories too; a single policy is only compared with itself.
        text = await self._ledger.store.read(lambda tx: tx.policies.get(request.policy_revision))
        try:
            found = read_written(text) if text is not None else None
        except PolicyError:  # written by a version with other rules
            return None
        if found is None:
            return None
        known = {one.revision for one in layers_of(found)}
        return found if all(one.revision in known for one in layers_of(beside)) else None
