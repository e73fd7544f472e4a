"""The audit log of a server, with the interface of a store."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from signoff.cli.inbox_watch import ticking
from signoff.cli.server_client import ApprovalServer, named
from signoff.core.record import Entry
from signoff.errors import UnknownRequest, UnknownRun

T = TypeVar("T")


class RemoteRecord:
    """The part of `ports.Store` that `signoff audit log` needs."""

    def __init__(self, server: ApprovalServer) -> None:
        self._server = server

    async def read(self, work: Callable[[Any], T]) -> T:
        """Call `work` with a substitute for a transaction."""
        await asyncio.sleep(0)  # lets an interrupt in between two pages
        return work(_RecordView(self._server))

    def watch(self, tick: Callable[[], None]) -> Callable[[], None]:
        return ticking(tick)


class _RecordView:
    """The part of a `Transaction` that is needed."""

    def __init__(self, server: ApprovalServer) -> None:
        self.record = _Events(server)
        self.requests = _Ids(lambda prefix: server.get(f"/requests/{named(prefix)}")["id"])
        self.runs = _Ids(lambda prefix: server.get(f"/runs/{named(prefix)}", limit=1)["run"]["id"])


class _Ids:
    """Ids by prefix. The server raises an error if several match."""

    def __init__(self, whole: Callable[[str], str]) -> None:
        self._whole = whole

    def like(self, prefix: str, *, limit: int = 5) -> Sequence[str]:
        try:
            return [self._whole(prefix)]
        except (UnknownRequest, UnknownRun):
            return []


class _Events:
    """The events, page by page."""

    def __init__(self, server: ApprovalServer) -> None:
        self._server = server

    def head(self) -> tuple[int, str]:
        return self._server.get("/audit", limit=1)["head"], ""

    def entries(self, *, after: int = 0, limit: int = 500, request: str = "", run: str = "") -> Sequence[Entry]:
        found = self._server.get("/audit", after=after, limit=limit, request=request, run=run, whole=True)
        return [Entry(**{name: one[name] for name in Entry._fields}) for one in found["events"]]
