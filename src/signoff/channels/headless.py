"""Nobody at a keyboard: every call is denied, or waits for somebody elsewhere. Never approved."""

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
    """An `Approver` for places without people."""

    otherwise: Literal["deny", "park"] = "deny"
    """`deny` answers no; `park` raises `NobodyHere`, and the request stays open."""

    def __post_init__(self) -> None:
        if self.otherwise not in ("deny", "park"):
            raise WrongUse(
                f"without a terminal a call is denied or parked: use 'deny' or 'park', not {self.otherwise!r}"
            )

    def choose(self, request: ApprovalRequest, *, mode: ApprovalMode) -> ApprovalDecision:
        """A denial, or `NobodyHere`."""
        if self.otherwise == "park":
            raise NobodyHere(NO_TERMINAL)
        return ApprovalDecision(approved=False, note=NO_TERMINAL)

    def choose_all(self, requests: Sequence[ApprovalRequest], *, mode: ApprovalMode) -> list[ApprovalDecision]:
        """As `choose`, for each."""
        return [self.choose(request, mode=mode) for request in requests]

    def ask(self, request: ApprovalRequest) -> Future[ApprovalDecision | None]:
        """Always `NobodyHere`: what a place without people is asked beside other places stays open for those."""
        raise NobodyHere(NO_TERMINAL)

    def withdraw(self, request_id: str, why: str = "") -> None:
        """Nothing is ever asked, so there is nothing to take back."""

    def close(self) -> None:
        """Nothing is open."""


class Elsewhere:
    """An approver that asks nobody here: the run waits until somebody answers somewhere else, or time is up."""

    async def choose(self, request: ApprovalRequest, *, mode: ApprovalMode) -> ApprovalDecision:
        """Never returns; it is cancelled when the answer is there."""
        return await asyncio.get_running_loop().create_future()


ELSEWHERE = Elsewhere()
