"""A remembered decision: the next identical call is not asked about again."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from signoff.core.call import Call
from signoff.core.decision import ApprovalDecision, Remember


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """A person's answer that also holds later, for exactly these arguments and this version of the tool."""

    tool: str
    memory_key: str
    """`Call.memory_key` of the call it was given for: the tool and all its arguments."""
    approved: bool
    scope: Remember
    schema_hash: str = ""
    toolset: str | None = None
    by: str = ""
    at: datetime | None = None
    note: str = ""
    summary: str = ""

    def covers(self, call: Call) -> bool:
        """Whether it speaks about this call. A changed tool puts the grant to sleep; another toolset has its own."""
        return (
            call.memory_key == self.memory_key and call.schema_hash == self.schema_hash and call.toolset == self.toolset
        )

    @classmethod
    def of(cls, call: Call, decision: ApprovalDecision, *, summary: str = "") -> Grant:
        """What a person's answer about a call is remembered as."""
        return cls(
            tool=call.tool,
            memory_key=call.memory_key,
            approved=decision.approved,
            scope=decision.remember,
            schema_hash=call.schema_hash,
            toolset=call.toolset,
            by=decision.by.name if decision.by else "",
            at=decision.at,
            note=decision.note,
            summary=summary,
        )
