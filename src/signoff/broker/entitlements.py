"""Who may answer: the roles of listed people, and deputies (delegation)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import NamedTuple

from signoff.broker.ledger import Ledger
from signoff.core.people import Actor, ActorKind, Delegation, account_key, person_key
from signoff.core.quorum import approvers, entitled_as, who, why_not_entitled
from signoff.core.request import ApprovalRequest, State
from signoff.errors import NotEntitled, WrongUse
from signoff.policy.phrases import did_you_mean
from signoff.ports import Transaction

LONGEST = timedelta(days=90)
"""The longest delegation."""


class Standing(NamedTuple):
    """Whether somebody's answer to a request would count. The texts are not safe to show yet."""

    approving: str = ""
    """Why their approval would not count; empty if it would."""
    denying: str = ""
    """Why their denial would not count; empty if it would."""
    stands_for: str = ""
    """Whose deputy they would approve as; empty if in their own name."""


class People:
    """The part of the broker for people and their roles."""

    def __init__(self, ledger: Ledger, roles: Mapping[str, frozenset[str]]) -> None:
        self._ledger = ledger
        self._roles: Callable[[], Mapping[str, frozenset[str]]] = lambda: roles
        self._is_followed = False
        self._is_closed = False
        """Whether only listed people may answer, even if nobody is listed any longer."""

    def follow(self, roles: Callable[[], Mapping[str, frozenset[str]]]) -> None:
        """Read the listed people and roles from `roles` at each answer; whoever answers gets the errors it raises.

        If anybody is or was listed, nobody else may answer, whatever a rule says: a person removed from the list is
        out.
        """
        self._is_closed = bool(self._people) or bool(roles())
        self._roles, self._is_followed = roles, True

    @property
    def is_closed(self) -> bool:
        """Whether only listed people may answer, whatever a rule says."""
        return self._is_closed

    @property
    def are_listed(self) -> bool:
        """Whether people are listed, so that nobody else answers in their place."""
        return self._is_closed or bool(self._people)

    @property
    def _people(self) -> Mapping[str, tuple[str, frozenset[str]]]:
        """Names and roles by normalised name (`person_key`)."""
        roles = self._roles()
        self._is_closed |= self._is_followed and bool(roles)
        return {person_key(name): (name, held) for name, held in roles.items()}

    async def delegate(self, delegation: Delegation) -> None:
        """Make somebody the deputy of somebody else until a moment.

        Raises `WrongUse` for a delegation that is not possible.
        """
        if self._people or self._is_closed:
            for name in (delegation.absent, delegation.deputy):
                self._on_file(name)
        if person_key(delegation.absent) == person_key(delegation.deputy):
            raise WrongUse(f"{delegation.absent} cannot be their own deputy")
        if delegation.until <= delegation.since:
            raise WrongUse("the delegation would end before it starts")
        if delegation.until - self._ledger.now() > LONGEST:
            raise WrongUse(f"a delegation lasts at most {LONGEST.days} days: renew it after that")

        ledger = self._ledger

        def work(tx: Transaction, now: datetime) -> None:
            tx.delegations.add(delegation)
            tx.record.append([ledger.journal.delegated(delegation, now)])

        await ledger.write("delegate", work)

    async def end_delegation(self, absent: str, deputy: str, *, by: str) -> Delegation:
        """End a delegation. Raises `WrongUse` if there is none."""
        ledger = self._ledger

        def work(tx: Transaction, now: datetime) -> Sequence[Delegation]:
            ended = tx.delegations.end(absent, deputy, now)
            tx.record.append([ledger.journal.delegated(one, now, ended_by=by) for one in ended])
            return ended

        if not (ended := await ledger.write("end delegation", work)):
            raise WrongUse(f"{deputy} does not stand in for {absent}")
        return ended[-1]

    async def delegations(self) -> Sequence[Delegation]:
        """List the delegations that hold now."""
        return await self._ledger.read(lambda tx, now: tx.delegations.current(now))

    def known(self, by: Actor) -> Actor:
        """Return the actor with their listed roles. If people are listed, roles from elsewhere do not count."""
        people = self._people
        if not people and not self._is_closed:
            return by
        _, roles = people.get(by.key, ("", frozenset[str]()))
        return replace(by, roles=roles)

    def signed_in(self, by: Actor) -> Actor:
        """Return the actor that an application's login names.

        Raises `NotEntitled` for a name that only looks like a listed one: the login knows both as different accounts.
        """
        listed, _ = self._people.get(by.key, ("", frozenset[str]()))
        if listed and account_key(listed) != account_key(by.name):
            raise NotEntitled(f"{by.name} is not {listed}, who is listed under `people`: the name is written otherwise")
        return by

    def on_file(self) -> Mapping[str, frozenset[str]]:
        """Return the listed people now: roles by name."""
        return dict(self._people.values())

    def named(self, name: str) -> str:
        """Return the name as it is listed. If people are listed, it has to be one of them; raises `WrongUse`."""
        if not name.strip():
            raise WrongUse("a person needs a name")
        people = self._people
        if not people and not self._is_closed:
            return name.strip()
        self._on_file(name)
        return people[person_key(name)][0]

    def may_have_role(self, name: str, role: str) -> bool:
        """Whether somebody has a role. If nobody is listed, everybody may have it."""
        people = self._people
        if not people and not self._is_closed:
            return True
        _, roles = people.get(person_key(name), ("", frozenset[str]()))
        return role in roles

    def check(self, tx: Transaction, request: ApprovalRequest, by: Actor) -> None:
        """Raise `NotEntitled` for a person who is not listed, if only listed or particular people may answer.

        Also if the rule excludes the requester, the requester is a program, and this person made its key or nobody
        knows who did.
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
        """Who is behind a requester that is a program, if the rule excludes the requester; see `SavedRun.behind`."""
        if "requester" not in request.requirement.not_by or not request.run:
            return None
        run = tx.runs.get(request.run)
        return run.behind if run is not None else None

    async def entitled(self, request_id: str, people: Sequence[Actor]) -> Sequence[Actor]:
        """Return those of these people who may answer a request now, if only with a denial or as a deputy."""

        def work(tx: Transaction, now: datetime) -> list[Actor]:
            request = tx.requests.get(request_id)
            if request is None:
                return []
            denies = request.state is State.PENDING  # a right to veto is no right to report an outcome
            return [one for one in people if self.may_answer(tx, request, one, now, denies=denies)]

        return await self._ledger.read(work)

    async def standing(self, request_id: str, by: Actor) -> Standing:
        """Whether somebody's approval or denial of a request would count now, and why not."""

        def work(tx: Transaction, now: datetime) -> Standing:
            request = tx.requests.get(request_id)
            return self.standing_in(tx, request, by, now) if request is not None else Standing()

        return await self._ledger.read(work)

    def standing_in(self, tx: Transaction, request: ApprovalRequest, by: Actor, now: datetime) -> Standing:
        """Whether somebody's approval or denial of this request would count now, and why not."""
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

    def shortage(self, tx: Transaction, request: ApprovalRequest, now: datetime) -> str:
        """Why the listed people cannot complete the quorum of a pending request now; empty if they can.

        Not safe to show yet. Who is not listed does not count, except where nobody is.
        """
        if not request.requirement.is_strict or request.state is not State.PENDING:
            return ""
        try:
            listed = self._people
        except NotEntitled:  # the file has an error, so that nobody knows who is listed
            return ""
        if not listed and not self._is_closed:
            return ""
        counted = set(approvers(request.requirement, request.votes, request.args_digest, request.parties))
        for name, roles in listed.values():
            one = Actor(name=name, roles=roles)
            if self.may_answer(tx, request, one, now, denies=False):
                absent = self.stands_in_for(tx, request, one, now, denies=False)
                principal, _ = entitled_as(request.requirement, one, absent, request.parties)
                counted.add((principal or one).key)
        most, needed = len(counted), request.requirement.quorum
        if most >= needed:
            return ""
        if not most:
            return "nobody who is listed may approve it, so it cannot run"
        only = "1 listed person may" if most == 1 else f"{most:,} listed people may"
        return f"only {only} approve it, so it cannot run"

    def check_assigns(self, tx: Transaction, request: ApprovalRequest, by: Actor, now: datetime) -> None:
        """Raise `NotEntitled` if somebody may not assign a request, because they could not approve it."""
        if by.kind is not ActorKind.PERSON or not self.may_answer(tx, request, by, now, denies=False):
            raise NotEntitled(
                f"{by.name} may not approve request {request.id}, so they may not assign or release it; "
                f"this needs {who(request.requirement)}, the person it is assigned to, or an admin"
            )

    def stands_in_for(
        self, tx: Transaction, request: ApprovalRequest, by: Actor, now: datetime, *, denies: bool
    ) -> tuple[Actor, ...]:
        """Return the people whose deputy a person is now, if the person is not entitled in their own name."""
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
        """For the audit log: whose deputy somebody was who was not entitled in their own name."""
        one, _ = entitled_as(request.requirement, by, absent, request.parties)
        return {"stands_for": one.name} if one is not None else {}

    def _on_file(self, name: str) -> None:
        if person_key(name) not in self._people:
            hint = did_you_mean(name, [listed for listed, _ in self._people.values()])
            raise WrongUse(f"no listed person is called {name!r}\n  {hint}")
