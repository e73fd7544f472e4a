"""Grants (remembered answers) in the store: made together with the answer, counted when used, revoked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from signoff.broker.entitlements import People
from signoff.broker.ids import new_id
from signoff.broker.journal import Journal
from signoff.broker.ledger import Ledger
from signoff.core.call import Call
from signoff.core.canonical import canonical
from signoff.core.decision import ApprovalDecision, Remember
from signoff.core.grant import Grant, grant_for, places_of
from signoff.core.people import Actor, ActorKind
from signoff.core.record import EventDraft
from signoff.core.remembering import may_be_remembered
from signoff.core.request import ApprovalRequest
from signoff.core.terms import Scope, Terms, amount_of
from signoff.core.verdict import Effect, Verdict
from signoff.errors import CannotCanonicalise, RequestError, UnknownRequest
from signoff.policy.call_paths import Facts
from signoff.policy.match_result import Truth
from signoff.ports import Transaction

ANYBODY = Verdict(effect=Effect.ASK)


@dataclass(frozen=True, slots=True, kw_only=True)
class GrantUse:
    """A call that a grant is to let run."""

    grant: str
    call: Call


class BrokerGrants:
    """The part of the broker for grants."""

    def __init__(self, ledger: Ledger, people: People) -> None:
        self._ledger = ledger
        self._people = people

    async def recall(self, facts: Facts, places: Mapping[Scope, str], asked: Verdict = ANYBODY) -> Grant | None:
        """Return the grant that covers a call now, or None; a denial wins over an approval.

        `facts` are of the call, with where its paths lead, and of the directory that paths in a match start from.
        A counted use is counted here. `asked` is the verdict of policy: if it requires a role, an approval counts only
        if its giver still has that role.
        """
        ledger = self._ledger
        found = await self.look(facts, places, asked)
        if found is None or not found.is_counted:
            return found

        def work(tx: Transaction, now: datetime) -> Grant | None:
            grant = self._speaking(tx, facts, places, asked, now)
            if grant is None or not grant.is_counted:
                return grant
            used = grant.used_for(facts.call, now)
            tx.grants.put(used)
            tx.record.append([ledger.journal.granted(used, "grant used", now, by=grant.by)])
            return used

        return await ledger.write("use grant", work)

    async def look(self, facts: Facts, places: Mapping[Scope, str], asked: Verdict = ANYBODY) -> Grant | None:
        """As `recall`, without counting a use."""
        try:
            facts.call.memory_key  # noqa: B018 - it is worked out once, and kept
        except CannotCanonicalise:
            return None
        return await self._ledger.read(lambda tx, now: self._speaking(tx, facts, places, asked, now))

    async def forbids(self, facts: Facts, places: Mapping[Scope, str]) -> Grant | None:
        """Return the remembered denial for a call, or None. No use is counted."""
        found = await self.look(facts, places)
        return found if found is not None and not found.approved else None

    def _speaking(
        self, tx: Transaction, facts: Facts, places: Mapping[Scope, str], asked: Verdict, now: datetime
    ) -> Grant | None:
        """Return the grant that covers a call now: a denial first, then an approval whose uses are not counted.

        While it is not known whether a denial covers the call, no approval does.
        """
        from signoff.policy.remembered import covers  # most calls are allowed, and meet no memory

        call = facts.call
        wants_role = asked.requirement.role is not None
        awake = [
            grant
            for grant in tx.grants.about(call.tool, call.memory_key)
            if grant.reaches(places) and not grant.why_asleep(call, now)
            if grant.counts_for(asked) and not (wants_role and self._why_without_role(grant))
        ]
        truths = [(grant, covers(grant, facts)) for grant in awake]
        in_doubt = any(truth is Truth.UNKNOWN for _, truth in truths)
        covering = [grant for grant, truth in truths if truth is Truth.YES and not (in_doubt and grant.approved)]
        return min(covering, key=lambda grant: (grant.approved, grant.is_counted), default=None)

    def why_silent(self, grant: Grant, now: datetime) -> str:
        """Why a grant covers nothing now, whatever the call; empty if it may cover calls."""
        from signoff.policy.remembered import UNREADABLE, is_unreadable

        unreadable = UNREADABLE if is_unreadable(grant) else ""
        return grant.why_asleep(None, now) or unreadable or self._why_without_role(grant)

    def _why_without_role(self, grant: Grant) -> str:
        """Why a grant does not count for a rule that requires a role: its giver lost the role; empty if it counts."""
        if not grant.approved or not grant.role or self._people.may_have_role(grant.by, grant.role):
            return ""
        return f"{grant.by} does not have the role {grant.role} now"

    async def nevers(self, call: Call) -> Sequence[Grant]:
        """List the remembered denials for the tool of a call that hold now."""
        found, now = await self._ledger.read(lambda tx, now: (tx.grants.all(revoked=False), now))
        return [
            one
            for one in found
            if not one.approved and (one.tool, one.toolset) == (call.tool, call.toolset)
            if not one.why_asleep(None, now)
        ]

    async def list(self, *, revoked: bool = False) -> Sequence[Grant]:
        """List all grants, oldest first."""
        return await self._ledger.store.read(lambda tx: tx.grants.all(revoked=revoked))

    async def get(self, prefix: str) -> Grant:
        """Return the grant with this id prefix; raises `UnknownRequest` for none, `RequestError` for several."""
        found = [one for one in await self.list(revoked=True) if prefix and one.id.startswith(prefix)]
        if len(found) == 1:
            return found[0]
        if found:
            raise RequestError(f"more than one grant starts with {prefix!r}: {', '.join(one.id for one in found[:5])}")
        raise UnknownRequest(f"no grant has the ID {prefix!r}")

    async def revoke(self, grant_id: str, *, by: str) -> Grant:
        """Revoke a grant."""
        ledger = self._ledger

        def work(tx: Transaction, now: datetime) -> Grant:
            grant = tx.grants.get(grant_id)
            if grant is None:
                raise UnknownRequest(f"no grant has the ID {grant_id!r}")
            if grant.revoked_at is not None:
                return grant
            revoked = replace(grant, revoked_at=now, revoked_by=by)
            tx.grants.put(revoked)
            tx.record.append([ledger.journal.granted(revoked, "revoked", now, by=by)])
            return revoked

        return await ledger.write("revoke", work)


def use_grant(tx: Transaction, journal: Journal, wanted: GrantUse, now: datetime) -> str:
    """Count one use of a grant; return why it no longer holds, empty if it does."""
    grant = tx.grants.get(wanted.grant)
    if grant is None:
        return "it no longer exists"
    if why := grant.why_asleep(wanted.call, now):
        return why
    if grant.is_counted:
        used = grant.used_for(wanted.call, now)
        tx.grants.put(used)
        tx.record.append([journal.granted(used, "grant used", now, by=grant.by)])
    return ""


def remember(tx: Transaction, journal: Journal, request: ApprovalRequest, now: datetime) -> Sequence[EventDraft]:
    """Store a settled answer as a grant, if the answer says so; return the audit events."""
    decision, call = request.decision, request.effective_call
    if decision is None or decision.remember is Remember.NONE or call is None or decision.by is None:
        return ()
    if not may_be_remembered(request) or decision.by.kind is ActorKind.MODE or _lacks_role(request, decision.by):
        return ()
    grant = replace(grant_for(request, call, decision, request.title), id=new_id())
    tx.grants.add(grant)
    return [journal.granted(grant, "granted", now, by=decision.by.name)]


def check_role(request: ApprovalRequest, decision: ApprovalDecision, by: Actor) -> None:
    """Raise `RequestError` if a deputy wants an answer remembered that requires a role."""
    if decision.remember is not Remember.NONE and may_be_remembered(request) and _lacks_role(request, by):
        role = request.requirement.role
        raise RequestError(
            f"only a person with the role {role!r} can have this answer remembered, not their deputy\n  Approve it once"
        )


def _lacks_role(request: ApprovalRequest, by: Actor) -> bool:
    return request.requirement.role is not None and request.requirement.role not in by.roles


def check_terms(request: ApprovalRequest, decision: ApprovalDecision, now: datetime) -> None:
    """Raise `RequestError` if an answer is to be remembered more broadly than may be offered for its call."""
    terms = decision.terms
    if terms is None:
        return
    from signoff.policy.offer import amounts_in, key_of, names_words, offers  # most answers are not remembered

    if terms.until is not None and terms.until <= now:
        raise RequestError("the remembered answer would expire before it starts")
    effective = request if decision.edited_args is None else request.changed_to(decision=decision)
    offered = offers(effective)
    if not offered:
        raise RequestError(
            "the answer to this request cannot be remembered: "
            "its rule requires several people or excludes somebody, or it is in doubt"
        )
    if terms.match is not None and canonical(terms.match) not in [canonical(one.match) for one in offered[1:]]:
        raise RequestError("this match is broader than anything that may be remembered for this call")
    call = effective.call
    assert call is not None, "offers are made for calls only"
    if not places_of(call, request.run).get(terms.scope, "project"):
        raise RequestError(f"this call has no {terms.scope} that the answer could be remembered for")
    if terms.max_uses is not None and terms.max_uses < 1:
        raise RequestError(f"the number of uses must be 1 or more, not {terms.max_uses}")
    _check_budget(terms, effective.effective_args)
    if not decision.approved:
        if terms.max_uses is not None or terms.budget is not None:
            raise RequestError(
                "a denial cannot have a number of uses or a budget: it holds until it expires or is revoked"
            )
        if names_words(terms.match) or amounts_in(terms.match):
            raise RequestError(
                "a remembered denial cannot cover only the first words of a command, or only amounts up to a limit\n"
                "  Deny exactly this call, or write a rule: signoff policy add --deny"
            )
        return
    widened = amounts_in(terms.match)
    bounded = terms.until or terms.max_uses or (terms.budget is not None and key_of(terms.budget.arg) in widened)
    if widened and not bounded:
        raise RequestError("amounts can be remembered only with a limit: a budget, a number of uses, or a date")


def _check_budget(terms: Terms, args: Mapping[str, Any]) -> None:
    budget = terms.budget
    if budget is None:
        return
    if amount_of(args.get(budget.arg)) is None:
        raise RequestError(f"a budget needs an argument that is an amount, and {budget.arg!r} is not one")
    if not budget.limit.is_finite() or budget.limit <= 0:
        raise RequestError(f"a budget must be a number above 0, not {budget.limit}")
