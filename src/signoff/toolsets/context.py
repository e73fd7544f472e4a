"""What a toolset may be told about where it is used. Everything may be absent."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from pydantic_ai import RunContext

    from signoff.core.decision import ApprovalDecision


class Names(Protocol):
    """The catalog as a toolset sees it: which toolsets there are, and how to get one of them built."""

    def names(self) -> Sequence[str]: ...

    def build(self, name: str, context: Any = None) -> Any: ...


class Approvals(Protocol):
    """Questions of a toolset's own, from within its async tools.

    A question is a call like any other: the policy judges it by its name and arguments and may allow or deny it, it
    has a card, is on the record, and a yes is spent once. Its name is none of the run's tools.
    """

    async def ask(
        self, ctx: RunContext[Any], question: str, args: Mapping[str, Any], *, summary: str = ""
    ) -> ApprovalDecision:
        """Ask a person, unless policy or what is remembered answers. `ctx` is that of the tool that asks.

        Where the run pauses for the answer, the tool is called again from its beginning once there is one.
        """
        ...

    async def remembered(self, ctx: RunContext[Any], question: str, args: Mapping[str, Any]) -> ApprovalDecision | None:
        """What a person told to be remembered for this question, if that would count now. Asks nobody, uses nothing."""
        ...


class Delegate(Protocol):
    """Has another worker do something: `await delegation(ctx, "clerk", "Note this")`."""

    async def __call__(
        self,
        ctx: RunContext[Any],
        worker: str,
        prompt: str,
        input: Mapping[str, Any] | None = None,
        attachments: Sequence[str] = (),
    ) -> str:
        """The worker's answer, or why there is none, in words. `ctx` is that of the tool that delegates.

        Where that worker waits for a person, the tool is called again from its beginning once there is an answer.
        """
        ...


class Create(Protocol):
    """Writes a new worker, which a person has to approve first: `await create(ctx, "helper", "instructions: …")`."""

    async def __call__(self, ctx: RunContext[Any], name: str, file: str) -> str:
        """What came of it, in words: the same as `worker_create` tells a model."""
        ...


Message = Callable[[str], None]
"""Tells the person who watches the run one line."""


class ToolsetContext(Protocol):
    """The `context` parameter of a toolset, if it has one. What does not exist is None."""

    @property
    def catalog(self) -> Names | None:
        """All toolsets of the project."""
        ...

    @property
    def worker(self) -> str | None:
        """The name of the worker the toolset is built for."""
        ...

    @property
    def approvals(self) -> Approvals | None:
        """Asks people the toolset's own questions, and looks up remembered answers."""
        ...

    @property
    def workspace(self) -> str | None:
        """The project's directory, as a real path: where relative paths start."""
        ...

    @property
    def attachments(self) -> Sequence[str] | None:
        """Absolute paths of the files that were attached to the run. Read it inside a tool."""
        ...

    @property
    def delegation(self) -> Delegate | None:
        """Calls the workers that this one may call; None unless it has `delegates` or `creates`."""
        ...

    @property
    def create(self) -> Create | None:
        """Writes new workers; None unless this one has `creates`."""
        ...

    @property
    def model(self) -> Any:
        """The worker's model, or its name."""
        ...

    @property
    def message(self) -> Message | None:
        """Shows one line to the people who watch the run: on the terminal, among `--json` events, or in the channel."""
        ...


@dataclass(frozen=True, kw_only=True)
class Context:
    """A `ToolsetContext` with what is known."""

    catalog: Names | None = None
    worker: str | None = None
    approvals: Approvals | None = None
    workspace: str | None = None
    attachments: Sequence[str] | None = None
    delegation: Delegate | None = None
    create: Create | None = None
    model: Any = None
    message: Message | None = None
