"""Inboxes for channels: answers are checked by the rules of a project, or by a gate in this process."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from signoff.core.redact import redact, restore
from signoff.core.request import ApprovalRequest, State
from signoff.delivery.inbox import StoreInbox
from signoff.wiring.edits import checked_answer, refuse_unseen

if TYPE_CHECKING:
    from signoff.broker import Broker
    from signoff.config import Settings
    from signoff.core.decision import ApprovalDecision
    from signoff.core.people import Actor
    from signoff.gate.capability import Signoff


def project_inbox(broker: Broker, settings: Settings, channel: str) -> StoreInbox:
    """The inbox of a channel under a project's rules."""

    async def take(request: ApprovalRequest, decision: ApprovalDecision, by: Actor) -> ApprovalRequest:
        if request.state is State.PENDING:  # whoever comes late is told that, not what is wrong with their answer
            if decision.approved:
                refuse_unseen(request)
            decision = await checked_answer(broker, settings, request, decision)
        return await broker.answer(request.id, decision, by=by)

    return StoreInbox(broker, channel, take)


def gate_inbox(signoff: Signoff, channel: str) -> StoreInbox:
    """The inbox of a channel before a gate in this process, which checks edited arguments as the tool itself would."""

    async def take(request: ApprovalRequest, decision: ApprovalDecision, by: Actor) -> ApprovalRequest:
        if request.state is State.PENDING and decision.approved:
            refuse_unseen(request)
        if decision.edited_args is not None:
            masks = redact(request.args, secrets=request.secrets)
            decision = replace(decision, edited_args=restore(decision.edited_args, request.args, masks))
        return await signoff.answer(request.id, decision, by=by)

    return StoreInbox(signoff.broker, channel, take)
