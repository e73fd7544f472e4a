"""A grant: a remembered answer that approves or denies later calls without asking again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from decimal import Context, Decimal
from typing import Any

from signoff.core.call import Call
from signoff.core.counted import counted
from signoff.core.decision import ApprovalDecision, Remember
from signoff.core.moment import Zone, in_utc
from signoff.core.request import ApprovalRequest
from signoff.core.summary import call_words
from signoff.core.terms import Budget, Scope, Terms, amount_of, match_of_no
from signoff.core.verdict import Verdict
from signoff.errors import CannotCanonicalise

_EXACT = Context(prec=1_000)
"""Budgets are not rounded, whatever decimal context the surrounding program has set."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """A person's answer that is also valid for later calls, as long as the tool does not change."""

    tool: str
    memory_key: str
    """`Call.memory_key` of the original call; empty if a match says what is covered."""
    exact: str = ""
    """`Call.fingerprint` of the original call, if it differs from the key because of Unicode normalization."""
    approved: bool
    scope: Scope
    schema_hash: str = ""
    toolset: str | None = None
    id: str = ""
    where: str = ""
    """The run, the session or the worker it is limited to, by `scope`."""
    directory: str = ""
    """`Call.directory` of the original call: the same path in another directory is another file."""
    agent: str = ""
    """`Call.agent` of the original call."""
    match: Mapping[str, Any] | None = None
    """Which calls of the tool it covers: the conditions of a rule, as written under `allow`, or `deny` for a denial.
    None: calls with exactly the same arguments."""
    asked_by: tuple[str, ...] = ()
    """The rules that asked, as in `Verdict`: a match does not answer a rule that asked for other reasons."""
    until: datetime | None = None
    max_uses: int | None = None
    budget: Budget | None = None
    role: str = ""
    """The role that the rule required of the approver: a rule with a role accepts only grants of that role."""
    loosened: bool = False
    """Whether it was given in a loosened run."""
    by: str = ""
    at: datetime | None = None
    note: str = ""
    summary: str = ""
    """The original call in one line, safe to show."""
    used: int = 0
    spent: Decimal = Decimal(0)
    """How much of the budget is spent; of today's, if it is daily."""
    spent_on: str = ""
    """The day that `spent` belongs to."""
    revoked_at: datetime | None = None
    revoked_by: str = ""

    def is_about(self, call: Call) -> bool:
        """Whether it is about the tool of a call, as it was, and for an approval about its directory and its agent."""
        if call.schema_hash != self.schema_hash or call.toolset != self.toolset or call.tool != self.tool:
            return False
        return not self.approved or (
            (not self.directory or call.directory == self.directory) and (not self.agent or call.agent == self.agent)
        )

    def covers_exactly(self, call: Call) -> bool:
        """Whether it covers this call because the arguments are the same. `policy.remembered` knows about matches."""
        if self.match is not None or not self.is_about(call):
            return False
        # An approval covers the exact text only: another Unicode form may name another file. A denial covers all.
        return call.fingerprint == self.speaks_of if self.approved else call.memory_key == self.memory_key

    @property
    def speaks_of(self) -> str:
        """The fingerprint of the only call that an approval without a match covers."""
        return self.exact or self.memory_key

    def counts_for(self, verdict: Verdict) -> bool:
        """Whether policy accepts it instead of a new answer. A denial is always accepted."""
        if not self.approved:
            return True
        role = verdict.requirement.role
        is_asked_otherwise = verdict.exactly or not set(verdict.asked_by) <= set(self.asked_by)
        return (role is None or self.role == role) and not (self.match is not None and is_asked_otherwise)

    def reaches(self, places: Mapping[Scope, str]) -> bool:
        """Whether its scope includes the place where the call is made."""
        return self.scope is Scope.PROJECT or (bool(self.where) and places.get(self.scope) == self.where)

    def why_asleep(self, call: Call | None, now: datetime, zone: Zone = in_utc) -> str:
        """Why it does not apply now (revoked, expired, used up, over budget); empty if it applies."""
        if self.revoked_at is not None:
            return f"revoked by {self.revoked_by or 'somebody'}"
        if self.until is not None and now >= self.until:
            return f"ended at {exact_moment(self.until, zone)}"
        if self.max_uses is not None and self.used >= self.max_uses:
            return f"used {counted(self.used, 'time')}, its limit"
        if self.budget is not None and call is not None:
            amount = amount_of(call.args.get(self.budget.arg))
            if amount is None:
                return f"{self.budget.arg} is not an amount"
            if _EXACT.add(self.spent_by(now), amount) > self.budget.limit:
                return f"{amount} more would exceed its budget of {self.budget.limit}"
        return ""

    def spent_by(self, now: datetime) -> Decimal:
        """How much of the current budget is spent. A clock that runs behind does not refill a daily budget."""
        is_over = self.budget is not None and self.budget.daily and self.spent_on < _day(now)
        return Decimal(0) if is_over else self.spent

    @property
    def is_counted(self) -> bool:
        """Whether each use must be recorded before the call runs."""
        return self.approved and (self.max_uses is not None or self.budget is not None)

    def used_for(self, call: Call, now: datetime) -> Grant:
        """The grant after one more use."""
        amount = amount_of(call.args.get(self.budget.arg)) if self.budget is not None else None
        spent = _EXACT.add(self.spent_by(now), amount or Decimal(0))
        return replace(self, used=self.used + 1, spent=spent, spent_on=max(self.spent_on, _day(now)))

    @classmethod
    def of(
        cls,
        call: Call,
        decision: ApprovalDecision,
        *,
        summary: str = "",
        where: Mapping[Scope, str] | None = None,
        role: str | None = None,
        asked_by: tuple[str, ...] = (),
        loosened: bool = False,
    ) -> Grant:
        """Make the grant for a person's answer about a call."""
        terms = decision.terms
        if terms is None:
            terms = Terms(scope=Scope.SESSION if decision.remember is Remember.SESSION else Scope.PROJECT)
        return cls(
            tool=call.tool,
            memory_key=call.memory_key if terms.match is None else "",
            exact=call.fingerprint if terms.match is None and call.fingerprint != call.memory_key else "",
            approved=decision.approved,
            scope=terms.scope,
            where=(where or {}).get(terms.scope, ""),
            directory=call.directory if decision.approved else "",  # a denial applies in every directory
            agent=call.agent if decision.approved else "",
            match=terms.match if decision.approved or terms.match is None else match_of_no(terms.match),
            asked_by=asked_by if terms.match is not None else (),
            until=terms.until,
            max_uses=terms.max_uses,
            budget=terms.budget,
            schema_hash=call.schema_hash,
            toolset=call.toolset,
            role=role or "",
            loosened=loosened,
            by=decision.by.name if decision.by else "",
            at=decision.at,
            note=decision.note,
            summary=summary,
        )


def places_of(call: Call, run: str) -> dict[Scope, str]:
    """Where a call is made, for grants that are limited to a run, a session or a worker."""
    return {Scope.RUN: run, Scope.SESSION: call.conversation_id, Scope.WORKER: " > ".join(call.worker)}


def grant_for(request: ApprovalRequest, call: Call, decision: ApprovalDecision, summary: str) -> Grant:
    """Make the grant for the answer to a request, for a store."""
    where = places_of(call, request.run)
    asked_by = request.verdict.asked_by if request.verdict is not None else ()
    return Grant.of(
        call,
        decision,
        summary=summary,
        where=where,
        role=request.requirement.role,
        asked_by=asked_by,
        loosened=bool(request.context.loosened),
    )


def grant_from(request: ApprovalRequest, decision: ApprovalDecision) -> Grant | None:
    """Make the grant for the answer to a request; None if nothing is to be remembered, or nothing can be."""
    answered = request.changed_to(decision=decision)
    call = call_of(request).changed(args=answered.effective_args)
    if decision.remember is Remember.NONE or not has_identity(call):
        return None
    # The tool's words are about the call as it was made.
    summary = request.summary if decision.edited_args is None else call_words(call.tool, call.labels, call.args)
    return Grant.of(call, decision, summary=summary)


def has_identity(call: Call) -> bool:
    """Whether the call can be recognised when it is made again: its arguments have a canonical form."""
    try:
        return bool(call.fingerprint and call.memory_key)
    except CannotCanonicalise:
        return False


def call_of(request: ApprovalRequest) -> Call:
    """The call of a request; a request that was built by hand has only the tool and the arguments."""
    return request.call or Call(tool=request.tool_name, args=request.args, call_id=request.tool_call_id)


def exact_moment(moment: datetime, zone: Zone) -> str:
    """To the minute, or more precise if needed: the text does not round."""
    at = zone(moment)
    seconds = f":{at:%S.%f}".rstrip("0").rstrip(".") if at.microsecond else f"{at::%S}" if at.second else ""
    return f"{at:%Y-%m-%d %H:%M}{seconds} {at:%Z}"


def _day(now: datetime) -> str:
    return f"{now.astimezone(UTC):%Y-%m-%d}"
