"""Draw large calls in a thread without blocking the event loop: they take seconds, and Discord waits for three."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Any, TypeVar, cast

from signoff.channels.discord.notice_message import sheet_for, shows_whole
from signoff.channels.discord.request_file import whole
from signoff.channels.discord.sheet import AttachedFile, MessageSheet
from signoff.core.notice import Asked, Notice, Together
from signoff.core.request import ApprovalRequest

T = TypeVar("T")

LARGE = 20_000
"""Characters from which on a call is drawn in a thread."""
_AT_ONCE = 2
_KEPT = 200
_KEPT_PAPERS = 4
"""Each may be as large as a file can be."""


class DrawingCache:
    """Draws large calls once, in a thread, and caches the result."""

    def __init__(self) -> None:
        self._kept: OrderedDict[Hashable, asyncio.Task[Any]] = OrderedDict()
        self._papers: OrderedDict[Hashable, asyncio.Task[Any]] = OrderedDict()
        self._turns = asyncio.Semaphore(_AT_ONCE)

    async def sheet(self, notice: Notice) -> MessageSheet:
        """See `notice_message.sheet_for`."""
        match notice:
            case Asked():
                requests, more = (notice.request,), (notice.number, notice.of)
            case Together():
                requests, more = notice.requests, ("all",)
            case _:
                return sheet_for(notice)
        return await self._once(self._kept, _KEPT, requests, more, lambda: sheet_for(notice))

    async def shows_whole(self, request: ApprovalRequest) -> bool:
        """See `notice_message.shows_whole`."""
        return await self._once(self._kept, _KEPT, (request,), ("fits",), lambda: shows_whole(request))

    async def whole(self, request: ApprovalRequest) -> AttachedFile:
        """See `request_file.whole`."""
        return await self._once(self._papers, _KEPT_PAPERS, (request,), ("whole",), lambda: whole(request))

    async def other(self, requests: Iterable[ApprovalRequest], draw: Callable[[], T]) -> T:
        """Draw anything else about these requests, without caching."""
        return await self._away(draw) if any(map(is_large, requests)) else draw()

    async def _once(
        self,
        kept: OrderedDict[Hashable, asyncio.Task[Any]],
        most: int,
        requests: tuple[ApprovalRequest, ...],
        more: tuple[Hashable, ...],
        draw: Callable[[], T],
    ) -> T:
        if not any(map(is_large, requests)):
            return draw()
        key = (*((one.id, one.version) for one in requests), *more)
        if key not in kept:
            kept[key] = asyncio.get_running_loop().create_task(self._away(draw))
            kept[key].add_done_callback(_looked_at)
            while len(kept) > most:
                kept.popitem(last=False)
        kept.move_to_end(key)
        return await asyncio.shield(kept[key])  # a cancelled caller leaves it to the next one

    async def _away(self, draw: Callable[[], T]) -> T:
        async with self._turns:
            return await asyncio.to_thread(draw)


def is_large(request: ApprovalRequest) -> bool:
    """Whether a request takes long to draw. Stops counting at the limit."""
    left = LARGE
    claim, decision = request.claim, request.decision
    told = (request.problem, request.requirement.message, claim.error if claim else "", claim.preview if claim else "")
    rest: list[Any] = [request.args, request.metadata, *told]
    rest += [decision.edited_args, decision.note] if decision is not None else []
    while rest and left > 0:
        one = rest.pop()
        if isinstance(one, Mapping):
            known = cast("Mapping[Any, Any]", one)
            left -= len(known)
            rest += [*known.keys(), *known.values()] if left > 0 else []
        elif isinstance(one, (list, tuple)):
            items = cast("list[Any] | tuple[Any, ...]", one)
            left -= len(items)
            rest += items if left > 0 else ()
        else:
            left -= len(one) if isinstance(one, (str, bytes)) else 1
    return left <= 0


def _looked_at(task: asyncio.Task[Any]) -> None:
    if not task.cancelled():
        task.exception()  # retrieved, so that asyncio does not log it if nobody waits
