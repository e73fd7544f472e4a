"""Calls that passed the gate above another capability's toolset, and will be looked at once more below it."""

from __future__ import annotations

from dataclasses import dataclass

from signoff.core.call import Call
from signoff.core.offer import LEADS_TO
from signoff.core.request import ApprovalRequest


@dataclass(slots=True)
class Ticket:
    """A call that was let through above another capability's toolset and is running."""

    call: Call
    request: ApprovalRequest | None
    """The approval it runs on, where a person gave one for this call."""
    answered: bool
    """Whether the question was answered otherwise: remembered, by the mode, or by a reviewer who may."""
    used: bool = False

    def is_for(self, call: Call) -> bool:
        """Whether what was approved is exactly this call, or was said to lead to exactly this call."""
        if self.request is not None and self.request.metadata.get(LEADS_TO) == leads_to(call):
            return True
        mine = (self.call.tool, self.call.args_digest, self.call.schema_hash, self.call.toolset)
        return mine == (call.tool, call.args_digest, call.schema_hash, call.toolset)


def leads_to(call: Call) -> str:
    """What a call that turns into another below is said to lead to."""
    return f"{call.tool} {call.args_digest}"
