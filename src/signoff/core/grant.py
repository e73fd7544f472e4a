"""A remembered decision: the next identical call is not asked about again."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from signoff.core.call import Call
from signoff.core.decision import Remember


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """A person's answer that also holds later, for exactly these arguments and this version of the tool."""

    tool: str
    memory_key: str
    """`Call.memory_key` of the call it was given for: the tool and all its arguments."""
    approved: bool
    scope: Remember
    schema_hash: str = ""
    by: str = ""
    at: datetime | None = None
    note: str = ""
    summary: str = ""

    def covers(self, call: Call) -> bool:
        """Whether it speaks about this call. A changed tool puts the grant to sleep."""
        return call.memory_key == self.memory_key and call.schema_hash == self.schema_hash
