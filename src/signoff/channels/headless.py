"""Approvers for processes without a person at the keyboard: they deny, or wait for an answer elsewhere.

They never approve.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Literal

from signoff.core.decision import ApprovalDecision
from signoff.core.mode import ApprovalMode
from signoff.core.request import ApprovalRequest
from signoff.errors import NobodyHere, WrongUse

NO_TERMINAL = "no terminal to ask at"


@dataclass(frozen=True, slots=True)
class HeadlessApprover:
    """An `Approver` for processes without a terminal, such as CI or a service."""

    otherwise: Literal["deny", "park"] = "deny"
    """`deny` denies the call; `park` raises `NobodyHere`, and the request stays open."""

    def __post_init__(self) -> None:
        if self.otherwise not in ("deny", "park"):
            raise WrongUse(
                f"without a terminal a call is denied or parked: use 'deny' or 'park', not {self.otherwise!r}"
            )

    def choose(self, request: ApprovalRequest, *, mode: ApprovalMode) -> ApprovalDecision:
        """Deny, or raise `NobodyHere`."""
        if self.otherwise == "park":
            raise NobodyHere(NO_TERMINAL)
        return ApprovalDecision(approved=False, note=NO_TERMINAL)

    def choose_all(self, requests: Sequence[ApprovalRequest], *, mode: ApprovalMode) -> list[ApprovalDecision]:
        """Do the same as `choose` for each request."""
        return [self.choose(request, mode=mode) for request in requests]

    def ask(self, request: ApprovalRequest) -> Future[ApprovalDecision | None]:
        """Raise `NobodyHere`, whatever `otherwise` says: the request stays open for other channels."""
        raise NobodyHere(NO_TERMINAL)

    def withdraw(self, request_id: str, why: str = "") -> None:
        """Do nothing: nothing is ever asked."""

    def close(self) -> None:
        """Do nothing: nothing is open."""


class Elsewhere:
    """An approver that asks nobody here: the run waits until somebody answers elsewhere or the deadline passes."""

    async def choose(self, request: ApprovalRequest, *, mode: ApprovalMode) -> ApprovalDecision:
        """Wait forever; the channel cancels it when the answer arrives."""
        return await asyncio.get_running_loop().create_future()


ELSEWHERE = Elsewhere()
