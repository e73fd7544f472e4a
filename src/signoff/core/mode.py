"""What happens to calls that policy asks about when nobody should be asked, or nobody is there."""

from __future__ import annotations

from enum import StrEnum


class ApprovalMode(StrEnum):
    """`auto_approve` turns *ask* into allow, never *deny*."""

    INTERACTIVE = "interactive"
    AUTO_APPROVE = "auto_approve"
    AUTO_DENY = "auto_deny"
