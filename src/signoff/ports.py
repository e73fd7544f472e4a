"""Every seam on one page: what the rooms above may be given, and what an adapter has to provide."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Protocol, runtime_checkable

from signoff.core.call import Call
from signoff.core.decision import ApprovalDecision
from signoff.core.grant import Grant
from signoff.core.mode import ApprovalMode
from signoff.core.request import ApprovalRequest


class Clock(Protocol):
    """Time, as a parameter."""

    def now(self) -> datetime: ...

    async def sleep_until(self, moment: datetime) -> None: ...


class RequestStore(Protocol):
    """Where requests are kept. Every change is a compare-and-set on `ApprovalRequest.version`."""

    async def add(self, requests: Sequence[ApprovalRequest]) -> list[ApprovalRequest]:
        """Keep new requests, all or none.

        A call is asked about once: where there is a request about the very same call that was not withdrawn, open,
        answered or used, that one is returned instead.
        """
        ...

    async def about(self, call_key: str) -> ApprovalRequest | None:
        """The newest request about a call, by `Call.key`."""
        ...

    async def get(self, request_id: str) -> ApprovalRequest | None: ...

    async def swap(self, old: ApprovalRequest, new: ApprovalRequest) -> bool:
        """Replace `old` by `new` if the stored version is still `old`'s; say whether it was."""
        ...

    async def pending(self) -> Sequence[ApprovalRequest]:
        """Open requests, oldest first."""
        ...

    async def of_conversation(self, conversation_id: str) -> Sequence[ApprovalRequest]:
        """Every request ever opened in a conversation, oldest first."""
        ...


class GrantStore(Protocol):
    """Where remembered decisions are kept; `ApprovalMemory` is one."""

    @property
    def keeps_always(self) -> bool:
        """Whether `always` can be kept beyond this process."""
        ...

    def lookup(self, call: Call) -> Grant | None: ...

    def remember(self, grant: Grant) -> None: ...


@runtime_checkable
class ApprovalUI(Protocol):
    """How a person is reached: one method. It may be a plain or an async method.

    A user interface that can show several requests at once may also have
    `choose_all(requests, *, mode)`, which returns one decision for each, in order. One that can be told that a question
    was settled elsewhere may have `withdraw(request_id, why)`; what it then returns for the request is not used.
    """

    def choose(
        self, request: ApprovalRequest, *, mode: ApprovalMode
    ) -> ApprovalDecision | Awaitable[ApprovalDecision]: ...


Answer = Callable[[str, ApprovalDecision], Awaitable[ApprovalRequest]]
"""What a channel is handed to settle a request by its id. It never sees the store."""


class DeclaresApproval(Protocol):
    """What a toolset may declare about its own calls. Each method is optional; the gate decides."""

    def needs_approval(self, name: str, args: Mapping[str, Any], ctx: Any) -> object:
        """True: ask. False: the toolset sees no need. An effect by name (`allow`, `ask`, `deny`) or None also do."""
        ...

    def describe_approval(self, name: str, args: Mapping[str, Any], ctx: Any) -> str | Mapping[str, Any]:
        """What the call will do: a line, or a mapping with `summary`, `reason`, `path`, `diff`."""
        ...

    def capability_labels(self, name: str, args: Mapping[str, Any], ctx: Any) -> Iterable[str]:
        """What kind of thing the call does: `fs.read`, `money` …"""
        ...
