"""What a channel puts before people: one call, several that were asked at once, or what a run came to.

A notice is always the whole of it as it stands now. A channel that is handed the same one again brings up to date what
it showed before, so it need not know what happened in between.
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
    """How many calls were asked about at once; `number` says which one this is."""

    @property
    def key(self) -> Subject:
        """What the notice is about."""
        return Subject(SubjectKind.REQUEST, self.request.id)

    @property
    def subject(self) -> str:
        """Identifies the notice in every channel; it never changes."""
        return str(self.key)

    @property
    def trail(self) -> str:
        """The group it belongs to, such as everything about one run."""
        return trail_of(self.request)

    @property
    def version(self) -> int:
        """Grows with every change."""
        return self.request.version

    @property
    def is_live(self) -> bool:
        """Whether it can still change."""
        return self.request.state in _LIVE


@dataclass(frozen=True, slots=True, kw_only=True)
class Together:
    """Several calls that were asked at once, for whoever wants to decide them together. Each also comes as `Asked`."""

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
    """A message about a run: its result (the agent's answer, or why there is none), or a line of one of its tools."""

    run: str
    state: RunState
    """`going` if it has not ended and cannot continue here: the text says who can resume it."""
    worker: str
    """The name of the worker or agent, for people."""
    text: str
    """Secrets are masked in it; nothing else is made safe."""
    line: str = ""
    """Identifies a line of one of the run's tools; empty for the result of the run."""

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

Said = RunResult
"""Its name in 0.1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reminder:
    """People are to be told of a call again. What stands there already is told by `Asked`."""

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
        """Until it is answered, or something newer is to be told."""
        return True

    @property
    def since(self) -> datetime | None:
        """When there was occasion to tell people, by the times of the rule; None where those do not say."""
        need = self.request.requirement
        before = need.timeout if self.occasion is Occasion.ESCALATED else need.remind
        if self.occasion is Occasion.UNKNOWN or self.request.deadline is None or before is None:
            return None
        return self.request.deadline - before


def reminder_of(request: ApprovalRequest) -> Reminder | None:
    """The last occasion to tell people of a request again: what came before it need not be told any longer."""
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
    """What a request belongs to: its run, or where that is not kept its conversation, or nothing but itself."""
    return request.run or (request.call.conversation_id if request.call is not None else "") or request.id
