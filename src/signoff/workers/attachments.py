"""The files attached to a run, as its toolsets see them: `context.attachments`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import overload

from signoff.gate.gated_calls import enclosing_call
from signoff.workers.limits import WorkerDeps


class RunAttachments(Sequence[str]):
    """Absolute paths of the files attached to the current run; empty outside a tool.

    One toolset serves all runs of its worker, so every access looks them up anew.
    """

    @overload
    def __getitem__(self, index: int) -> str: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[str]: ...

    def __getitem__(self, index: int | slice) -> str | Sequence[str]:
        return _files()[index]

    def __len__(self) -> int:
        return len(_files())

    def __repr__(self) -> str:
        return repr(list(_files()))


def _files() -> tuple[str, ...]:
    call = enclosing_call()
    return call.ctx.deps.files if call is not None and isinstance(call.ctx.deps, WorkerDeps) else ()
