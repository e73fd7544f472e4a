"""Who answers: what roles they have on file, and whom they stand in for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import NamedTuple

from signoff.broker.ledger import Ledger
from signoff.core.people import Actor, ActorKind, Delegation, person_key
from signoff.core.quorum import entitled_as, who, why_not_entitled
from signoff.core.request import ApprovalRequest, State
from signoff.errors import NotEntitled, WrongUse
from signoff.ports import Transaction

LONGEST = timedelta(days=90)
"""How long somebody may stand in for somebody else."""


class Standing(NamedTuple):
    """Whether somebody's answer to a request would count. Nothing in it is safe to show yet."""

    approving: str = ""
    """Why a yes of theirs would not; empty where it would."""
    denying: str = ""
    """Why a no of theirs would not."""
    stands_for: str = ""
    """In whose place a yes of theirs would; empty: in their own."""


class People:
    """The broker's part about people."""

    def __init__(self, ledger: Ledger, roles: Mapping[str, frozenset[str]]) -> None:
        self._ledger = ledger
        self._roles: Callable[[], Mapping[str, frozenset[str]]] = lambda: roles
        self._is_followed = False
        self._is_closed = False
        """Whether nobody but the people on file may answer, even where there is none any longer."""

    def follow(self, roles: Callable[[], Mapping[str, frozenset[str]]]) -> None:
        """Have those be on file whom `roles` tells whenever somebody answers; what it raises, the actor is told.

        Where anybody is or was on file, nobody else may answer, whatever a rule says: who is taken off it is out.
        """
        self._is_closed = bool(self._people) or bool(roles())
        self._roles, self._is_followed = roles, True

    @property
    def is_closed(self) -> bool:
        """Whether nobody but the people on file may answer, whatever a rule says."""
        return self._is_closed

    @property
    def _people(self) -> Mapping[str, tuple[str, frozenset[str]]]:
        """Names and roles, by what is the same for every spelling."""
        roles = self._roles()
        self._is_closed |= self._is_followed and bool(roles)
        return {person_key(name): (name, held) for name, held in roles.items()}

    async def delegate(self, delegation: Delegation) -> None:
        """Have somebody stand in for somebody else, until a moment."""
        if self._people or self._is_closed:
            for name in (delegation.absent, delegation.deputy):
                self._on_file(name)
        if person_key(delegation.absent) == person_key(delegation.deputy):
            raise WrongUse(f"{delegation.absent} cannot be their own deputy")
        if delegation.until <= delegation.since:
            raise WrongUse("the delegation would end before it starts")
        if delegation.until - self._ledger.now() > LONGEST:
            raise WrongUse(f"a delegation lasts at most {LONGEST.days} days: renew it after that")

        ledger, now = self._ledger, self._ledger.now()

        def work(tx: Transaction) -> None:
            tx.delegations.add(delegation)
            tx.record.append([ledger.journal.delegated(delegation, now)])

        await ledger.store.write("delegate", work)

    async def end_delegation(self, absent: str, deputy: str, *, by: str) -> Delegation:
        """Have somebody stand in no longer. Raises `WrongUse` where they do not."""
        ledger, now = self._ledger, self._ledger.now()

        def work(tx: Transaction) -> Sequence[Delegation]:
            ended = tx.delegations.end(absent, deputy, now)
            tx.record.append([ledger.journal.delegated(one, now, ended_by=by) for one in ended])
            return ended

        if not (ended := await ledger.store.write("end delegation", work)):
            raise WrongUse(f"{deputy} does not stand in for {absent}")
        return ended[-1]

    async def delegations(self) -> Sequence[Delegation]:
        """Who stands in for whom now."""
        now = self._ledger.now()
        return await self._ledger.store.read(lambda tx: tx.delegations.current(now))

    def known(self, by: Actor) -> Actor:
        """With the roles on file. Where people are on file, nobody else's word about roles counts."""
        people = self._people
        if not people and not self._is_closed:
            return by
        _, roles = people.get(by.key, ("", frozenset[str]()))
        return replace(by, roles=roles)

    def on_file(self) -> Mapping[str, frozenset[str]]:
        """Roles by name, as they are on file now."""
        return dict(self._people.values())

    def named(self, name: str) -> str:
        """The person as the file spells them. Where it names people, it has to be one of them; raises `WrongUse`."""
        if not name.strip():
            raise WrongUse("a person needs a name")
        people = self._people
        if not people and not self._is_closed:
            return name.strip()
        self._on_file(name)
        return people[person_key(name)][0]

    def may_have_role(self, name: str, role: str) -> bool:
        """Whether somebody has a role as far as is known: where nobody is on file, everybody may."""
        people = self._people
        if not people and not self._is_closed:
            return True
        _, roles = people.get(person_key(name), ("", frozenset[str]()))
        return role in roles

    def check(self, tx: Transaction, request: ApprovalRequest, by: Actor) -> None:
        """Raise `NotEntitled` where particular people are asked, and no listed person is called so.

        Also where the requester may not answer, and is a program of theirs.
        """
        people = self._people
        made_up = by.kind is ActorKind.PERSON and by.key not in people
        if made_up and self._is_closed:
            raise NotEntitled(
                f"{by.name} is not (or no longer) listed under `people`, and only listed people may answer here"
            )
        if made_up and people and request.requirement.is_strict:
            raise NotEntitled(f"no listed person is called {by.name!r}, and this needs {who(request.requirement)}")
        behind = self._behind(tx, request)
        if behind == "":
            raise NotEntitled(
                f"{request.requester} is a program, and signoff does not know who created its key; "
                "the requester may not answer this, so nobody can"
            )
        if behind is not None and person_key(behind) == by.key:
            raise NotEntitled(
                f"{by.name} created the key of the requester {request.requester}, and the requester may not answer this"
            )

    def _behind(self, tx: Transaction, request: ApprovalRequest) -> str | None:
        """Who is behind a requester that is a program, where the rule excludes the requester; see `SavedRun.behind`."""
        if "requester" not in request.requirement.not_by or not request.run:
            return None
        run = tx.runs.get(request.run)
        return run.behind if run is not None else None

    async def entitled(self, request_id: str, people: Sequence[Actor]) -> Sequence[Actor]:
        """Those of these people who may answer a request now, be it with a no only, or in the place of another."""
        ledger, now = self._ledger, self._ledger.now()

        def work(tx: Transaction) -> list[Actor]:
            request = tx.requests.get(request_id)
            if request is None:
                return []
            denies = request.state is State.PENDING  # a veto says nothing about what became of a call
            return [one for one in people if self.may_answer(tx, request, one, now, denies=denies)]

        return await ledger.store.read(work)

    async def standing(self, request_id: str, by: Actor) -> Standing:
        """Whether somebody's answer to a request would count now, be it yes or no, and why not."""
        ledger, now = self._ledger, self._ledger.now()

        def work(tx: Transaction) -> Standing:
            request = tx.requests.get(request_id)
            if request is None:
                return Standing()
            try:
                known = self.known(by)
                self.check(tx, request, known)
            except NotEntitled as refusal:
                return Standing(str(refusal), str(refusal))
            found = [
                entitled_as(
                    request.requirement,
                    known,
                    self.stands_in_for(tx, request, known, now, denies=denies),
                    request.parties,
                    denies=denies,
                )
                for denies in (False, True)
            ]
            (absent, approving), (_, denying) = found
            return Standing(approving, denying, absent.name if absent is not None else "")

        return await ledger.store.read(work)

    def may_answer(self, tx: Transaction, request: ApprovalRequest, by: Actor, now: datetime, *, denies: bool) -> bool:
        """Whether somebody may approve a request now, or with `denies` at least deny it."""
        try:
            by = self.known(by)
            self.check(tx, request, by)
        except NotEntitled:
            return False
        absent = self.stands_in_for(tx, request, by, now, denies=denies)
        _, refusal = entitled_as(request.requirement, by, absent, request.parties, denies=denies)
        return not refusal

    def check_assigns(self, tx: Transaction, request: ApprovalRequest, by: Actor, now: datetime) -> None:
        """Raise `NotEntitled` where somebody may not say who works on a request: they could not approve it."""
        if by.kind is not ActorKind.PERSON or not self.may_answer(tx, request, by, now, denies=False):
            raise NotEntitled(
                f"{by.name} may not approve request {request.id}, so they may not assign or release it; "
                f"this needs {who(request.requirement)}, the person it is assigned to, or an admin"
            )

    def stands_in_for(
        self, tx: Transaction, request: ApprovalRequest, by: Actor, now: datetime, *, denies: bool
    ) -> tuple[Actor, ...]:
        """Whom a person stands in for now, if their own word would not do."""
        if by.kind is not ActorKind.PERSON or not why_not_entitled(
            request.requirement, by, request.parties, denies=denies
        ):
            return ()
        people, behind = self._people, self._behind(tx, request) or ""
        absent = [
            one.absent
            for one in tx.delegations.current(now)
            if person_key(one.deputy) == by.key and (not self._is_closed or person_key(one.absent) in people)
            if person_key(one.absent) != person_key(behind)
        ]
        return tuple(self.known(Actor(name=name)) for name in absent)

    def in_whose_place(self, request: ApprovalRequest, by: Actor, absent: Sequence[Actor]) -> dict[str, str]:
        """For the record: whom somebody stood in for, whose own word would not have done."""
        one, _ = entitled_as(request.requirement, by, absent, request.parties)
        return {"stands_for": one.name} if one is not None else {}

    def _on_file(self, name: str) -> None:
        if person_key(name) not in self._people:
            raise WrongUse(
                f"no listed person is called {name!r}; there are: {', '.join(n for n, _ in self._people.values())}"
            )
