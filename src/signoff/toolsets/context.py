"""The context that a toolset can be given when it is built. Every part may be absent."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from pydantic_ai import RunContext

    from signoff.core.decision import ApprovalDecision


class Names(Protocol):
    """The catalog as a toolset sees it: names of toolsets, and a way to build them."""

    def names(self) -> Sequence[str]: ...

    def build(self, name: str, context: Any = None) -> Any: ...


class Approvals(Protocol):
    """Lets a toolset ask its own questions from within its async tools.

    A question is treated like a call. The policy judges it by its name and arguments and may allow or deny it, it has a
    card, it is recorded in the audit log, and an approval is used once. Its name must not be that of a tool of the run.
    """

    async def ask(
        self, ctx: RunContext[Any], question: str, args: Mapping[str, Any], *, summary: str = ""
    ) -> ApprovalDecision:
        """Ask a person, unless the policy or a remembered answer decides. `ctx` is the context of the tool that asks.

        If the run is suspended for the answer, the tool is called again from its beginning once there is one.
        """
        ...

    async def remembered(self, ctx: RunContext[Any], question: str, args: Mapping[str, Any]) -> ApprovalDecision | None:
        """The remembered answer to this question, if it applies now; else None. Asks nobody and uses up nothing."""
        ...


class Delegate(Protocol):
    """Calls another worker: `await delegation(ctx, "clerk", "Note this")`."""

    async def __call__(
        self,
        ctx: RunContext[Any],
        worker: str,
        prompt: str,
        input: Mapping[str, Any] | None = None,
        attachments: Sequence[str] = (),
    ) -> str:
        """Return the worker's answer as text, or the reason why there is none.

        `ctx` is the context of the tool that delegates. If that worker waits for a person, the tool is called again
        from its beginning once there is an answer.
        """
        ...


class Create(Protocol):
    """Creates a worker, which a person has to approve first: `await create(ctx, "helper", "instructions: …")`."""

    async def __call__(self, ctx: RunContext[Any], name: str, file: str) -> str:
        """Return the result as text, the same that `worker_create` returns to a model."""
        ...


Message = Callable[[str], None]
"""Shows one line to the person who watches the run."""


class ToolsetContext(Protocol):
    """The `context` parameter of a toolset, if it has one. Parts that do not exist are None."""

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
        """The project's directory, as a real path. Relative paths are resolved against it."""
        ...

    @property
    def attachments(self) -> Sequence[str] | None:
        """Absolute paths of the files that were attached to the run. Read it from within a tool."""
        ...

    @property
    def delegation(self) -> Delegate | None:
        """Calls the workers that this one may call. Present if it has `delegates` or `creates`."""
        ...

    @property
    def create(self) -> Create | None:
        """Creates workers. Present if this one has `creates`."""
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
    """A `ToolsetContext` with the parts that are known."""

    catalog: Names | None = None
    worker: str | None = None
    approvals: Approvals | None = None
    workspace: str | None = None
    attachments: Sequence[str] | None = None
    delegation: Delegate | None = None
    create: Create | None = None
    model: Any = None
    message: Message | None = None


CONTEXTS = (Context, ToolsetContext)
"""The types by which the context among the parameters of a toolset is recognised."""
