"""Notices: what a channel shows to people. One call, a batch of calls, or the result of a run.

A notice is always complete and current. A channel that gets the same one again updates what it showed before, so it
need not know what happened in between.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias

from signoff.core.request import ApprovalRequest, State
from signoff.core.run import RunState
from signoff.core.subject import Occasion, Subject, SubjectKind


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One call, from the question to its outcome."""

    request: ApprovalRequest
    number: int = 1
    of: int = 1
    """Which call of a batch this is, and how many were asked at once."""

    @property
    def key(self) -> Subject:
        """What it is about."""
        return Subject(SubjectKind.REQUEST, self.request.id)

    @property
    def subject(self) -> str:
        """The same as text: identifies it in every channel, and never changes."""
        return str(self.key)

    @property
    def trail(self) -> str:
        """What groups notices, such as everything about one run."""
        return trail_of(self.request)

    @property
    def version(self) -> int:
        """Increases with every change."""
        return self.request.version

    @property
    def is_live(self) -> bool:
        """Whether more changes can follow."""
        return self.request.state in _LIVE


@dataclass(frozen=True, slots=True, kw_only=True)
class Together:
    """A batch: several calls that were asked at once and can be decided together. Each also comes as `Asked`."""

    requests: tuple[ApprovalRequest, ...]

    @property
    def key(self) -> Subject:
        return Subject(SubjectKind.BATCH, self.requests[0].id)

    @property
    def subject(self) -> str:
        return str(self.key)

    @property
    def trail(self) -> str:
        return trail_of(self.requests[0])

    @property
    def version(self) -> int:
        return sum(request.version for request in self.requests)

    @property
    def is_live(self) -> bool:
        return any(request.state is State.PENDING for request in self.requests)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunResult:
    """A message about a run: its result (the agent's answer, or why there is none), or a line from one of its tools."""

    run: str
    state: RunState
    """`going` if it is not finished and cannot be resumed here: the text says who can."""
    worker: str
    """The name that people use for the agent that ran."""
    text: str
    """Secrets are masked; hidden characters are not escaped."""
    line: str = ""
    """Identifies a line from one of the run's tools; empty for the result."""

    @property
    def key(self) -> Subject:
        return (
            Subject(SubjectKind.MESSAGE, f"{self.run}/{self.line}")
            if self.line
            else Subject(SubjectKind.RESULT, self.run)
        )

    @property
    def subject(self) -> str:
        return str(self.key)

    @property
    def trail(self) -> str:
        return self.run

    @property
    def version(self) -> int:
        return 0

    @property
    def is_live(self) -> bool:
        return False


Notice: TypeAlias = Asked | Together | RunResult


@dataclass(frozen=True, slots=True, kw_only=True)
class Reminder:
    """People should be notified of a call again. `Asked` updates what is already shown."""

    request: ApprovalRequest
    occasion: Occasion

    @property
    def key(self) -> Subject:
        return Subject(SubjectKind.REMINDER, self.request.id, self.occasion)

    @property
    def subject(self) -> str:
        return str(self.key)

    @property
    def trail(self) -> str:
        return trail_of(self.request)

    @property
    def version(self) -> int:
        return 0

    @property
    def is_live(self) -> bool:
        """Valid until the request is answered, or a newer reminder replaces it."""
        return True

    @property
    def since(self) -> datetime | None:
        """When the reminder was due, by the times of the rule; None if the rule does not say."""
        need = self.request.requirement
        before = need.timeout if self.occasion is Occasion.ESCALATED else need.remind
        if self.occasion is Occasion.UNKNOWN or self.request.deadline is None or before is None:
            return None
        return self.request.deadline - before


def reminder_of(request: ApprovalRequest) -> Reminder | None:
    """The latest reason to notify people of a request again; it replaces earlier ones. None if there is none."""
    if request.state is State.UNKNOWN:
        return Reminder(request=request, occasion=Occasion.UNKNOWN)
    if request.state is not State.PENDING:
        return None
    dated = request.requirement.remind is not None and request.deadline is not None
    reminded = dated and request.remind_at is None
    if request.escalated:
        return Reminder(request=request, occasion=Occasion.AGAIN if reminded else Occasion.ESCALATED)
    return Reminder(request=request, occasion=Occasion.REMINDED) if reminded else None


_LIVE = frozenset({State.PENDING, State.APPROVED, State.CLAIMED, State.UNKNOWN})


def trail_of(request: ApprovalRequest) -> str:
    """What a request belongs to: its run; if that is not saved, its conversation; otherwise the request itself."""
    return request.run or (request.call.conversation_id if request.call is not None else "") or request.id
