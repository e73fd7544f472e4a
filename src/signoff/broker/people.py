"""Who answers: what roles they have on file, and whom they stand in for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

from signoff.core.people import Answerer, AnswererKind, Delegation, person_key
from signoff.core.quorum import entitled_as, who, why_not_entitled
from signoff.core.request import ApprovalRequest
from signoff.errors import NotEntitled, WrongUse
from signoff.ports import Transaction

if TYPE_CHECKING:
    from signoff.broker.broker import Broker


class People:
    """The broker's part about people."""

    def __init__(self, broker: Broker, roles: Mapping[str, frozenset[str]]) -> None:
        self._broker = broker
        self._people = {person_key(name): (name, held) for name, held in roles.items()}

    async def delegate(self, delegation: Delegation) -> None:
        """Have somebody stand in for somebody else, until a moment."""
        if self._people:
            for name in (delegation.absent, delegation.deputy):
                self._on_file(name)
        if person_key(delegation.absent) == person_key(delegation.deputy):
            raise WrongUse(f"{delegation.absent} cannot stand in for {delegation.deputy}: that is the same person")
        if delegation.until <= delegation.since:
            raise WrongUse("the delegation would end before it begins")

        broker, now = self._broker, self._broker.clock.now()

        def work(tx: Transaction) -> None:
            tx.add_delegation(delegation)
            tx.append([broker.journal.delegated(delegation, now)])

        await broker.store.write("delegate", work)

    async def delegations(self) -> Sequence[Delegation]:
        """Who stands in for whom now."""
        now = self._broker.clock.now()
        return await self._broker.store.read(lambda tx: tx.delegations(now))

    def known(self, by: Answerer) -> Answerer:
        """With the roles on file. Where people are on file, nobody else's word about roles counts."""
        if not self._people:
            return by
        _, roles = self._people.get(by.key, ("", frozenset[str]()))
        return replace(by, roles=roles)

    def check(self, request: ApprovalRequest, by: Answerer) -> None:
        """Raise `NotEntitled` where particular people are asked, and nobody on file is called so."""
        made_up = bool(self._people) and by.kind is AnswererKind.PERSON and by.key not in self._people
        if made_up and request.requirement.is_strict:
            raise NotEntitled(f"nobody on file is called {by.name!r}, and this needs {who(request.requirement)}")

    def stands_in_for(
        self, tx: Transaction, request: ApprovalRequest, by: Answerer, now: datetime, *, denies: bool
    ) -> tuple[Answerer, ...]:
        """Whom a person stands in for now, if their own word would not do."""
        if by.kind is not AnswererKind.PERSON or not why_not_entitled(
            request.requirement, by, requester=request.requester, owner=request.owner, denies=denies
        ):
            return ()
        absent = [one.absent for one in tx.delegations(now) if person_key(one.deputy) == by.key]
        return tuple(self.known(Answerer(name=name)) for name in absent)

    def in_whose_place(self, request: ApprovalRequest, by: Answerer, absent: Sequence[Answerer]) -> dict[str, str]:
        """For the record: whom somebody stood in for, whose own word would not have done."""
        one, _ = entitled_as(request.requirement, by, absent, requester=request.requester, owner=request.owner)
        return {"stands_for": one.name} if one is not None else {}

    def _on_file(self, name: str) -> None:
        if person_key(name) not in self._people:
            raise WrongUse(
                f"nobody on file is called {name!r}; there are: {', '.join(n for n, _ in self._people.values())}"
            )
