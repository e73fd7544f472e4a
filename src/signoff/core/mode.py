"""Approval modes: what happens to calls that policy asks about if nobody should or can be asked."""

from __future__ import annotations

from enum import StrEnum


class ApprovalMode(StrEnum):
    """`auto_approve` turns *ask* into allow, never *deny*."""

    INTERACTIVE = "interactive"
    AUTO_APPROVE = "auto_approve"
    AUTO_DENY = "auto_deny"
