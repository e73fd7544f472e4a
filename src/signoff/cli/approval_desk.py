"""Protocol for commands about approvals, over a local store or a server, so that each command is written once."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Protocol

from signoff.core.comment import CommentKind
from signoff.core.preview import Preview

if TYPE_CHECKING:
    from signoff.cli.remember_option import RememberOptions
    from signoff.desk.operations import CancelledRun
    from signoff.views.grant_view import GrantPage, GrantView
    from signoff.views.people_view import PeopleView
    from signoff.views.request_view import CommentView, RequestView
    from signoff.views.run_view import RunFilter, RunHistoryView, RunList

VIA = "command"
"""How the audit log says that an answer was given."""


@dataclass(frozen=True, slots=True)
class TypedAnswer:
    """The answer that was typed, for every id."""

    approved: bool
    note: str
    arguments: Mapping[str, Any] | None
    wish: RememberOptions | None
    yes: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenAnswer:
    """An answer that was accepted."""

    request: RequestView
    """The request after the answer."""
    again: bool = False
    """Whether the person had approved the same before."""
    effect: Preview | None = None
    """What the call changes with edited arguments, as `core.card.effect_of_edit` says it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedAnswer:
    """One answer, checked as far as possible before anything is written."""

    given: str
    """The id as it was typed."""
    id: str = ""
    remembered: str = ""
    """Exactly what will be remembered, with UTC times; empty if nothing."""
    problems: tuple[str, ...] = ()
    """Why it cannot be given."""
    is_unknown: bool = False
    """Whether there is no such request."""
    give: Callable[[], Awaitable[GivenAnswer]] | None = None
    """Submits it; raises a `RequestError` if it is not accepted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HandedOverRequest:
    """A request that was assigned, or released."""

    request: RequestView
    before: str
    """Who worked on it before."""
    may_answer: bool
    """Whether the person it is assigned to may answer it."""


class ApprovalDesk(Protocol):
    """What commands need. Results are views; both implementations raise the same errors."""

    @property
    def place(self) -> str:
        """Where the approvals are, in words."""
        ...

    async def request(self, prefix: str) -> RequestView: ...

    async def prepared(self, given: str, answer: TypedAnswer) -> PreparedAnswer: ...

    async def opened(self, request: RequestView) -> None:
        """Record that the person was shown all of a long request, so that they may approve it."""
        ...

    async def hand_over(self, prefix: str, to: str | None) -> HandedOverRequest:
        """Assign a request: None means the person who types, an empty name nobody."""
        ...

    async def tell(self, prefix: str, *, happened: bool, note: str) -> RequestView:
        """Record the outcome of a call whose process is gone."""
        ...

    async def say(
        self, prefix: str, text: str, kind: CommentKind, question: str = "", *, asks_agent: bool = False
    ) -> tuple[RequestView, CommentView]:
        """Comment on a request; return both. `asks_agent`: a server lets its agent's model answer it."""
        ...

    async def runs(self, chosen: RunFilter) -> RunList: ...

    async def run(self, prefix: str) -> RunHistoryView: ...

    async def going_on(self, run_id: str) -> str:
        """How a run whose requests are answered continues, as a line; empty if it runs, waits, or is not saved."""
        ...

    async def cancel(self, prefix: str, note: str) -> CancelledRun: ...

    async def grants(self, *, everything: bool) -> GrantPage: ...

    async def grant(self, prefix: str) -> GrantView: ...

    async def revoke(self, prefix: str) -> tuple[GrantView, GrantView]:
        """Revoke a grant; return it before and after."""
        ...

    async def people(self) -> tuple[PeopleView, str]:
        """People, roles and delegations, and the text to show if no people are listed."""
        ...

    async def delegate(self, absent: str, deputy: str, until: datetime, since: datetime) -> tuple[str, str]:
        """Let a deputy answer for an absent person; return both names as the project spells them."""
        ...

    async def end_delegation(self, absent: str, deputy: str) -> tuple[str, str]:
        """End a delegation; return both names as they were spelled."""
        ...

    async def halt(self, why: str) -> str:
        """Halt everything; return the message of the halt, with UTC times."""
        ...

    async def unhalt(self, why: str) -> bool:
        """Lift the halt; return whether there was one."""
        ...
