"""Run a channel inside the waiting process: the terminal, the full screen, or the user's own approver.

Nothing is stored about what it shows, since that disappears with the process.
"""

from __future__ import annotations

import asyncio
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Self

from signoff.core.lifecycle import OPEN
from signoff.core.notice import Asked, Together
from signoff.core.request import ApprovalRequest
from signoff.delivery.channel_inbox import StoreInbox, Take
from signoff.errors import ChannelFailed

if TYPE_CHECKING:
    from signoff.broker import Broker
    from signoff.core.decision import ApprovalDecision
    from signoff.core.people import Actor
    from signoff.ports import Channel


class Attended:
    """Shows requests in a channel until each is settled, here or elsewhere, or nobody is left there.

    ```python
    async with Attended(broker, channel, take) as attended:
        await attended.show(requests)
        await attended.settled()
    ```
    """

    def __init__(self, broker: Broker, channel: Channel, take: Take, *, to: Actor | None = None) -> None:
        """`to` is the person there, if it is one: each request says why their approval would not count."""
        self._broker = broker
        self._channel = channel
        self._to = to
        self._inbox = _AttendedInbox(broker, channel.name, take, self)
        self.asked: dict[str, ApprovalRequest] = {}
        """Requests that wait for an answer from this channel."""
        self._waits: dict[str, asyncio.Task[None]] = {}
        """For each shown request, the task that waits until it is settled."""
        self._unsettled: set[str] = set()
        self._settled: dict[str, ApprovalRequest] = {}
        self._is_bounded = False
        """Whether a deadline limits the wait for other people."""
        self.failure: ChannelFailed | None = None
        """Why nobody can be asked in the channel any more."""
        self._changed = asyncio.Event()

    async def __aenter__(self) -> Self:
        await self._channel.start(self._inbox)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for wait in self._waits.values():
            wait.cancel()
        await self._channel.stop()
        await asyncio.gather(*self._waits.values(), return_exceptions=True)

    async def show(self, requests: Sequence[ApprovalRequest]) -> None:
        """Show requests, in this order. Requests that were shown before are left as they are."""
        new = [request for request in requests if request.id not in self._waits]
        for request in new:
            self.asked[request.id] = request
            self._unsettled.add(request.id)
            self._is_bounded = self._is_bounded or request.deadline is not None
            self._waits[request.id] = wait = asyncio.ensure_future(self._until_settled(request.id))
            wait.add_done_callback(partial(self._end_wait, request.id))
        if len(new) > 1:
            with suppress(ChannelFailed):  # each is also shown on its own
                await self._channel.show(Together(requests=tuple(new)))
        for request in new:
            await self._show(request)

    async def changed(self, until: datetime | None = None) -> None:
        """Return once something changed, `wake` was called, or `until` has come."""
        with self._alarm(until):
            await self._changed.wait()
        self._changed.clear()

    def wake(self) -> None:
        """Signal that something may have changed."""
        self._changed.set()

    async def settled(self, until: datetime | None = None) -> bool:
        """Wait until everything that was shown is settled. Returns False on timeout, or if nobody is left to ask.

        If the people here have answered but cannot settle it alone, it goes on waiting only if there is a deadline or
        `until`.
        """
        with self._alarm(until) as limit:
            bounded = limit is not None or self._is_bounded
            while self._unsettled:
                if self.failure is not None or (limit is not None and limit.done()) or not (self.asked or bounded):
                    return False
                await self.changed()
            return True

    @contextmanager
    def _alarm(self, moment: datetime | None) -> Generator[asyncio.Future[None] | None]:
        """Wake the waiting task at `moment`. Yields a future that is done from then on."""
        if moment is None:
            yield None
            return
        alarm = asyncio.ensure_future(self._broker.clock.sleep_until(moment))
        alarm.add_done_callback(lambda alarm: None if alarm.cancelled() else self.wake())
        try:
            yield alarm
        finally:
            alarm.cancel()

    async def now(self, request_id: str) -> ApprovalRequest:
        """Return the current request."""
        return self._settled.get(request_id) or await self._broker.get(request_id)

    def answered(self, request: ApprovalRequest) -> None:
        """Record an answer from here. It may not be enough to settle the request."""
        self.asked.pop(request.id, None)
        if request.state not in OPEN:
            self._settled[request.id] = request
            self._unsettled.discard(request.id)
            self._waits[request.id].cancel()
        self.wake()

    def leave(self, request_id: str) -> None:
        """Stop waiting for an answer to a request that was shown."""
        self.asked.pop(request_id, None)
        self._unsettled.discard(request_id)
        if (wait := self._waits.pop(request_id, None)) is not None:
            wait.cancel()

    async def show_again(self, request_id: str) -> None:
        """Show a request again because it is no longer on the screen."""
        if (request := self.asked.get(request_id)) is not None:
            await self._show(request)

    async def _show(self, request: ApprovalRequest) -> None:
        try:
            await self._channel.show(Asked(request=await self._broker.shown(request, self._to)))
        except ChannelFailed as failure:
            self.asked.pop(request.id, None)
            if failure.whole:
                self.failure = failure
            self.wake()

    async def _until_settled(self, request_id: str) -> None:
        """Wait until a request is settled, then tell the channel, which may still be asking about it."""
        self._settled[request_id] = request = await self._broker.wait(request_id, meanwhile=self._refresh)
        self.asked.pop(request_id, None)
        with suppress(ChannelFailed):
            await self._channel.show(Asked(request=request))

    async def _refresh(self, request: ApprovalRequest) -> None:
        """Update what is shown: other people are asked now, or somebody has voted."""
        known = self.asked.get(request.id)
        if known is not None and known.version < request.version:
            self.asked[request.id] = request
            await self._show(request)

    def _end_wait(self, request_id: str, _: asyncio.Task[None]) -> None:
        self._unsettled.discard(request_id)
        self.wake()


@dataclass(frozen=True, slots=True)
class _AttendedInbox(StoreInbox):
    """The inbox of an attended channel."""

    attended: Attended

    async def answer(self, request_id: str, decision: ApprovalDecision) -> ApprovalRequest:
        known = self.attended.asked.get(request_id)
        if known is None or decision.by is None:
            settled = await StoreInbox.answer(self, request_id, decision)
        else:  # read when it was shown; the broker checks again
            settled = await self.take(known, decision, decision.by)
        self.attended.answered(settled)
        return settled

    async def where(self, request_id: str, *, planned: bool = False) -> str:
        return ""

    async def gone(self, request_id: str) -> None:
        await self.attended.show_again(request_id)
