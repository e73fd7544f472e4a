"""Statistics about past requests: how much was asked, how fast and how it was decided."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from typing import Any, cast

from signoff.core.decision import ApprovalDecision
from signoff.core.people import ActorKind
from signoff.core.request import ApprovalRequest, State

READING_STARTS = timedelta(seconds=1)
WORDS_A_MINUTE = 200
"""An approval faster than one second plus reading at this pace counts as too fast to be careful."""
OFTEN = 5
"""From this number of answers on, a tool counts as asking often."""
MOST = 10
"""Maximum rows of a table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Day:
    """One day: how many requests were opened, and how many were decided by people."""

    day: date
    asked: int = 0
    approved: int = 0
    denied: int = 0

    @property
    def decided(self) -> int:
        return self.approved + self.denied


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """How people answered requests of one tool or rule."""

    name: str
    asked: int
    approved: int
    denied: int
    edited: int
    expired: int
    median: float | None
    """Seconds from the request to the decision; None if nothing was decided."""
    too_fast: int = 0
    last: str = ""
    """Id of the newest of these requests."""

    @property
    def decided(self) -> int:
        return self.approved + self.denied

    @property
    def rate(self) -> float | None:
        """The approved share of what was decided."""
        return self.approved / self.decided if self.decided else None


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonShare:
    """How one person voted on requests that were not cancelled, whether or not their votes settled the request."""

    name: str
    approved: int
    denied: int
    edited: int
    """How many approvals were with edited arguments."""
    median: float | None
    """Seconds from the request to their vote."""

    @property
    def answers(self) -> int:
        return self.approved + self.denied

    @property
    def rate(self) -> float | None:
        return self.approved / self.answers if self.answers else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Insights:
    """All statistics of a period."""

    days: tuple[Day, ...]
    asked: int
    approved: int
    denied: int
    expired: int
    waiting: int
    cancelled: int
    """Withdrawn, or approved and void before they ran: no table counts what was answered to these."""
    median: float | None
    p90: float | None
    by_tool: tuple[Share, ...]
    by_rule: tuple[Share, ...]
    by_person: tuple[PersonShare, ...]
    never_denied: tuple[Share, ...]
    """Tools that ask often and were never denied: perhaps a rule should allow them."""
    too_fast: tuple[ApprovalRequest, ...]
    """Approved faster than they can be read."""

    @property
    def decided(self) -> int:
        return self.approved + self.denied


@dataclass(slots=True)
class _Tally:
    requests: list[ApprovalRequest] = field(default_factory=list[ApprovalRequest])

    def share(self, name: str) -> Share:
        answers = [one.answer for one in self.requests]
        times = [seconds for one in self.requests if (seconds := seconds_of(one)) is not None]
        newest = max(self.requests, key=lambda one: one.opened_at.timestamp() if one.opened_at else 0)
        return Share(
            name=name,
            asked=len(answers),
            approved=answers.count("approved") + answers.count("edited"),
            denied=answers.count("denied"),
            edited=answers.count("edited"),
            expired=sum(one.state is State.EXPIRED for one in self.requests),
            median=quantile(times, 0.5),
            too_fast=sum(map(is_too_fast, self.requests)),
            last=newest.id,
        )


def insights(requests: Iterable[ApprovalRequest], *, now: datetime, days: int) -> Insights:
    """Compute the statistics of the last `days` days, including today, in UTC."""
    since = now.date() - timedelta(days=days - 1)
    found = [one for one in requests if one.opened_at is not None and one.opened_at.date() >= since]
    tools, rules = (defaultdict[str, _Tally](_Tally) for _ in range(2))
    for one in found:
        tools[one.tool_name].requests.append(one)
        for rule in one.verdict.rules if one.verdict is not None else ():
            rules[rule].requests.append(one)
    times = [seconds for one in found if (seconds := seconds_of(one)) is not None]
    answers = [one.answer for one in found]
    by_tool = _shares(tools)
    never = (one for one in by_tool if one.decided >= OFTEN and not one.denied)
    return Insights(
        days=_days(found, since, days),
        asked=len(found),
        approved=answers.count("approved") + answers.count("edited"),
        denied=answers.count("denied"),
        expired=sum(one.state is State.EXPIRED for one in found),
        waiting=sum(one.state in (State.PENDING, State.UNKNOWN) for one in found),
        cancelled=sum(one.state is State.CANCELLED for one in found),
        median=quantile(times, 0.5),
        p90=quantile(times, 0.9),
        by_tool=by_tool[:MOST],
        by_rule=_shares(rules)[:MOST],
        by_person=_people(found)[:MOST],
        never_denied=tuple(sorted(never, key=lambda one: -one.decided))[:MOST],
        too_fast=tuple(one for one in found if is_too_fast(one))[:MOST],
    )


def seconds_of(request: ApprovalRequest) -> float | None:
    """Seconds from the request to a person's decision; None if there was none."""
    decision = request.decision
    if not request.answer or decision is None or decision.at is None or request.opened_at is None:
        return None
    return max(0.0, (decision.at - request.opened_at).total_seconds())


def reading_time(request: ApprovalRequest) -> timedelta:
    """The minimal time to read what would run, and what it changes."""
    words = sum(len(text.split()) for text in _texts((request.effective_args, request.metadata)))
    return READING_STARTS + timedelta(minutes=words / WORDS_A_MINUTE)


def is_too_fast(request: ApprovalRequest) -> bool:
    """Whether it was approved faster than it can be read."""
    seconds = seconds_of(request)
    return request.answer == "approved" and seconds is not None and seconds < reading_time(request).total_seconds()


def quantile(values: Sequence[float], part: float) -> float | None:
    """The smallest value that at least this part of all values does not exceed; None without values."""
    if not values:
        return None
    ordered = sorted(values)
    return ordered[max(0, math.ceil(len(ordered) * part) - 1)]


def _shares(tallies: Mapping[str, _Tally]) -> tuple[Share, ...]:
    found = (tally.share(name) for name, tally in tallies.items())
    return tuple(sorted(found, key=lambda one: (-one.asked, one.name)))


def _people(found: Iterable[ApprovalRequest]) -> tuple[PersonShare, ...]:
    """Group votes by person, whatever the spelling of the name; each vote counts once."""
    names: dict[str, str] = {}
    given: defaultdict[str, list[tuple[ApprovalDecision, float]]] = defaultdict(list)
    for request in found:
        if request.state is State.CANCELLED:
            continue
        answers = [(one.by, one.decision, one.at) for one in request.votes]
        last = request.decision
        if not answers and request.answer and last is not None and last.by is not None and last.at is not None:
            answers = [(last.by, last, last.at)]  # it was answered without stored votes
        for by, decision, at in answers:
            if by.kind is ActorKind.PERSON and request.opened_at is not None:
                names.setdefault(by.key, by.name)
                given[by.key].append((decision, max(0.0, (at - request.opened_at).total_seconds())))
    shares = (
        PersonShare(
            name=names[key],
            approved=sum(decision.approved for decision, _ in answers),
            denied=sum(not decision.approved for decision, _ in answers),
            edited=sum(decision.edited_args is not None for decision, _ in answers),
            median=quantile([seconds for _, seconds in answers], 0.5),
        )
        for key, answers in given.items()
    )
    return tuple(sorted(shares, key=lambda one: (-one.answers, one.name)))


def _days(found: Iterable[ApprovalRequest], since: date, count: int) -> tuple[Day, ...]:
    asked, approved, denied = (defaultdict[date, int](int) for _ in range(3))
    for one in found:
        if one.opened_at is not None:
            asked[one.opened_at.date()] += 1
        if one.answer and one.decision is not None and one.decision.at is not None:
            (denied if one.answer == "denied" else approved)[one.decision.at.date()] += 1
    every = [since + timedelta(days=number) for number in range(count)]
    return tuple(Day(day=day, asked=asked[day], approved=approved[day], denied=denied[day]) for day in every)


def _texts(value: object) -> list[str]:
    """Return every text in a value, including names."""
    found: list[str] = []
    rest: list[object] = [value]
    while rest:
        one = rest.pop()
        if isinstance(one, str):
            found.append(one)
        elif isinstance(one, Mapping):
            for name, inner in cast("Mapping[str, Any]", one).items():
                found.append(name)
                rest.append(inner)
        elif isinstance(one, list | tuple):
            rest.extend(cast("Sequence[object]", one))
        elif one is not None:
            found.append("x")
    return found
