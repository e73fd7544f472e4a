"""The memory of remembered answers (grants): a file and this process, or the store."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from signoff.broker import Broker
from signoff.core.call import Call
from signoff.core.decision import ApprovalDecision, Keeps
from signoff.core.grant import Grant, grant_from, places_of
from signoff.core.request import ApprovalRequest
from signoff.core.verdict import Verdict
from signoff.errors import WrongUse
from signoff.policy.call_paths import Facts
from signoff.ports import GrantStore


class Memory(Protocol):
    """Where remembered answers are read from and written to."""

    @property
    def keeps(self) -> Keeps:
        """How long an answer can be remembered at most."""
        ...

    async def recall(self, call: Call, run: str, asked: Verdict) -> Grant | None:
        """Return the grant for a call made in a run, if it may replace the answer that policy wants.

        The use of a grant with a use limit or a budget is counted.
        """
        ...

    async def look(self, call: Call, run: str, asked: Verdict) -> Grant | None:
        """As `recall`, but count nothing."""
        ...

    async def forbids(self, call: Call, run: str) -> Grant | None:
        """Return a remembered denial for a call; nothing is counted."""
        ...

    def check(self, decision: ApprovalDecision) -> None:
        """Raise `WrongUse` if a decision cannot be remembered as it says."""
        ...

    def remember(self, request: ApprovalRequest, decision: ApprovalDecision) -> None:
        """Remember a settled answer, unless the store did so together with the answer."""
        ...


@dataclass(frozen=True, slots=True)
class OwnMemory:
    """The caller's own `GrantStore`, such as `ApprovalMemory`."""

    grants: GrantStore

    @property
    def keeps(self) -> Keeps:
        return Keeps.EXACTLY if self.grants.keeps_always else Keeps.SESSION

    async def recall(self, call: Call, run: str, asked: Verdict) -> Grant | None:
        """Return no approval where a role is required: this memory does not record who had which role."""
        found = self.grants.lookup(call)
        return found if found is not None and found.counts_for(asked) else None

    async def look(self, call: Call, run: str, asked: Verdict) -> Grant | None:
        return await self.recall(call, run, asked)

    async def forbids(self, call: Call, run: str) -> Grant | None:
        found = self.grants.lookup(call)
        return found if found is not None and not found.approved else None

    def check(self, decision: ApprovalDecision) -> None:
        if decision.terms is not None:
            raise WrongUse("remembering this needs a store: Signoff(…, store='sqlite:FILE')")
        if decision.remember == "always" and not self.grants.keeps_always:
            raise WrongUse(
                "this memory has no file, so it cannot remember an answer for always: ApprovalMemory(file=…)"
            )

    def remember(self, request: ApprovalRequest, decision: ApprovalDecision) -> None:
        if (grant := grant_from(request, decision)) is not None:
            self.grants.remember(grant)


@dataclass(frozen=True, slots=True)
class StoreMemory:
    """The grants of the broker's store. They are written in the same transaction as the answer."""

    broker: Broker
    read_for_memory: Callable[[Call], Facts]
    """Looks up what a match may be about: where paths lead."""

    @property
    def keeps(self) -> Keeps:
        return Keeps.ALWAYS

    async def recall(self, call: Call, run: str, asked: Verdict) -> Grant | None:
        return await self.broker.grants.recall(self.read_for_memory(call), places_of(call, run), asked)

    async def look(self, call: Call, run: str, asked: Verdict) -> Grant | None:
        return await self.broker.grants.look(self.read_for_memory(call), places_of(call, run), asked)

    async def forbids(self, call: Call, run: str) -> Grant | None:
        return await self.broker.grants.forbids(self.read_for_memory(call), places_of(call, run))

    def check(self, decision: ApprovalDecision) -> None:
        pass

    def remember(self, request: ApprovalRequest, decision: ApprovalDecision) -> None:
        pass
