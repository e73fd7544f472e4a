"""What a toolset may be told about where it is used. Everything may be absent."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol


class Names(Protocol):
    """The catalog as a toolset sees it: which toolsets there are, and how to get one of them built."""

    def names(self) -> Sequence[str]: ...

    def build(self, name: str, context: Any = None) -> Any: ...


Delegate = Callable[..., Awaitable[Any]]
"""Calls another worker, with the `RunContext` of the tool that does: `await delegation(ctx, "clerk", "Note this")`."""
Message = Callable[[str], None]
"""Tells the person who watches the run one line."""


class ToolsetContext(Protocol):
    """What a toolset is given as `context`, if it takes one. Whatever is not there is None."""

    @property
    def catalog(self) -> Names | None:
        """All toolsets of the project."""
        ...

    @property
    def worker(self) -> str | None:
        """The name of the worker the toolset is built for."""
        ...

    @property
    def approvals(self) -> Any:
        """What asks people, if whoever builds the toolset hands it in; for a worker's toolsets it is None."""
        ...

    @property
    def workspace(self) -> str | None:
        """The project's folder, as a real path: where relative paths start."""
        ...

    @property
    def delegation(self) -> Delegate | None:
        """Calls the workers that this one may call; there where it has `delegates` or `creates`."""
        ...

    @property
    def model(self) -> Any:
        """The worker's model, or its name."""
        ...

    @property
    def message(self) -> Message | None: ...


@dataclass(frozen=True, kw_only=True)
class Context:
    """A `ToolsetContext` with what is known."""

    catalog: Names | None = None
    worker: str | None = None
    approvals: Any = None
    workspace: str | None = None
    delegation: Delegate | None = None
    model: Any = None
    message: Message | None = None
