"""What commands need of approvals, in a store here or behind a server: each command is written once, for both."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Protocol

from signoff.core.comment import CommentKind

if TYPE_CHECKING:
    from signoff.cli.remember_option import RememberOptions
    from signoff.cli.request_report import Sheet

VIA = "command"
"""How the record says that an answer was given."""


@dataclass(frozen=True, slots=True)
class TypedAnswer:
    """What was typed, for every id."""

    approved: bool
    note: str
    arguments: Mapping[str, Any] | None
    wish: RememberOptions | None
    yes: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenAnswer:
    """An answer that was taken."""

    sheet: Sheet
    """The request after it."""
    again: bool = False
    """Whether they had approved the same before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedAnswer:
    """One answer, checked as far as it can be before anything is written."""

    given: str
    """The id, as it was typed."""
    id: str = ""
    remembered: str = ""
    """Exactly what will be remembered, by UTC; empty: nothing."""
    problems: tuple[str, ...] = ()
    """Why it cannot be given."""
    is_unknown: bool = False
    """Whether there is no such request here."""
    give: Callable[[], Awaitable[GivenAnswer]] | None = None
    """Gives it; raises a `RequestError` where it is not taken."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HandedOverRequest:
    """A request that somebody else works on now, or nobody."""

    sheet: Sheet
    before: str
    """Who worked on it before."""
    may_answer: bool
    """Whether whoever has it may answer it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CancelledRun:
    """A run that was ended."""

    id: str
    withdrawn: int
    """How many questions were withdrawn with it."""
    alive: bool
    """Whether a process has it in hand, which stops at its next step."""


class ApprovalDesk(Protocol):
    """What commands need. Reports are those of `signoff.reports`; errors are the same here and there."""

    @property
    def place(self) -> str:
        """Where all of this is, in words."""
        ...

    async def request(self, prefix: str) -> Sheet: ...

    async def prepared(self, given: str, answer: TypedAnswer) -> PreparedAnswer: ...

    async def hand_over(self, prefix: str, to: str | None) -> HandedOverRequest:
        """Say who works on a request: None is whoever types, an empty name nobody."""
        ...

    async def tell(self, prefix: str, *, happened: bool, note: str) -> Sheet:
        """Say what became of a call whose process is gone."""
        ...

    async def say(
        self, prefix: str, text: str, kind: CommentKind, question: str = "", *, asks_agent: bool = False
    ) -> tuple[Sheet, dict[str, Any]]:
        """Put a comment on a request: the request, and the comment. `asks_agent`: a server has its agent answer it."""
        ...

    async def runs(self, *, everything: bool, limit: int) -> dict[str, Any]: ...

    async def run(self, prefix: str) -> dict[str, Any]: ...

    async def run_of(self, run_id: str) -> Mapping[str, Any] | None:
        """A run as it stands; None where it is not kept."""
        ...

    async def cancel(self, prefix: str, note: str) -> CancelledRun: ...

    async def grants(self, *, everything: bool) -> Sequence[dict[str, Any]]: ...

    async def grant(self, prefix: str) -> dict[str, Any]: ...

    async def revoke(self, prefix: str) -> tuple[dict[str, Any], dict[str, Any]]:
        """Revoke a grant: as it was, and as it is."""
        ...

    async def people(self) -> dict[str, Any]:
        """Who is on file, who stands in for whom, and under `nobody` what to say where nobody is."""
        ...

    async def delegate(self, absent: str, deputy: str, until: datetime, since: datetime) -> tuple[str, str]:
        """Have somebody stand in; both as they are spelled on file."""
        ...

    async def end_delegation(self, absent: str, deputy: str) -> tuple[str, str]:
        """Have somebody stand in no longer; both as they were spelled."""
        ...

    async def halt(self, why: str) -> str:
        """Pull the switch: what it says, by UTC."""
        ...

    async def unhalt(self, why: str) -> bool:
        """Let things run again; whether they did not."""
        ...
