"""The broker opens requests, takes answers, hands out the right to run once, and wakes whoever waits."""

from __future__ import annotations

import asyncio
import secrets
import threading
from collections.abc import Sequence

from signoff.broker.clock import SystemClock
from signoff.core.decision import ApprovalDecision
from signoff.core.lifecycle import (
    AskedAgain,
    Cancelled,
    Claimed,
    Event,
    Expired,
    Failed,
    Lost,
    Succeeded,
    Voted,
    advance,
)
from signoff.core.people import Answerer
from signoff.core.request import ApprovalRequest, State
from signoff.errors import RequestError, UnknownRequest
from signoff.ports import Clock, RequestStore

ID_ALPHABET = "23456789abcdefghjkmnpqrstuvwxyz"  # without what people mix up: 0 o, 1 l i


class Broker:
    """The only writer. Every change is read, advanced by the lifecycle table and swapped in; a lost race is retried."""

    def __init__(self, requests: RequestStore, clock: Clock | None = None) -> None:
        self._requests = requests
        self.clock: Clock = clock or SystemClock()
        self._waiters: dict[str, list[tuple[asyncio.AbstractEventLoop, asyncio.Event]]] = {}
        self._waiters_lock = threading.Lock()

    async def open(self, requests: Sequence[ApprovalRequest]) -> list[ApprovalRequest]:
        """Store new questions, with the time, and a deadline where their rule has one.

        A call is asked about once: if there is a request about the very same call, whatever became of it, that one is
        returned, unless it was withdrawn.
        """
        now = self.clock.now()
        opened: list[ApprovalRequest] = []
        for request in requests:
            timeout = request.requirement.timeout
            deadline = now + timeout if timeout is not None else None
            opened.append(request.changed_to(id=request.id or new_id(), opened_at=now, deadline=deadline))
        return await self._requests.add(opened)

    async def get(self, request_id: str) -> ApprovalRequest:
        """The request as it stands; raises `UnknownRequest`."""
        request = await self._requests.get(request_id)
        if request is None:
            raise UnknownRequest(f"no request has the id {request_id!r}")
        return request

    async def pending(self) -> Sequence[ApprovalRequest]:
        """Open requests, oldest first."""
        return await self._requests.pending()

    async def about(self, call_key: str) -> ApprovalRequest | None:
        """The newest request about a call, by `Call.key`."""
        return await self._requests.about(call_key)

    async def of_conversation(self, conversation_id: str) -> Sequence[ApprovalRequest]:
        """Every request of a conversation, oldest first."""
        return await self._requests.of_conversation(conversation_id)

    async def answer(
        self, request_id: str, decision: ApprovalDecision, *, by: Answerer, requester: str = "", owner: str = ""
    ) -> ApprovalRequest:
        """Take an answer. Whoever comes late is told who settled it, in the `AlreadySettled` that is raised."""
        return await self._advance(request_id, Voted(by, decision, requester, owner))

    async def claim(self, request_id: str) -> ApprovalRequest:
        """Take the right to run, once. Raises `AlreadySpent` for everyone but the first."""
        return await self._advance(request_id, Claimed())

    async def finish(self, request_id: str, *, error: str | None = None) -> ApprovalRequest:
        """Record how a claimed call ended."""
        return await self._advance(request_id, Succeeded() if error is None else Failed(error))

    async def lose(self, request_id: str) -> ApprovalRequest:
        """Record that nobody knows how a claimed call ended."""
        return await self._advance(request_id, Lost())

    async def ask_again(self, request_id: str) -> ApprovalRequest:
        """Record that a claimed call asked again instead of running, so that it may be asked about anew."""
        return await self._advance(request_id, AskedAgain())

    async def cancel(self, request_id: str, reason: str) -> ApprovalRequest:
        """Withdraw a question, or an approval that was not spent."""
        return await self._advance(request_id, Cancelled(reason))

    async def expire_due(self) -> list[ApprovalRequest]:
        """Feed time to every open request whose deadline has passed."""
        now = self.clock.now()
        due = [one for one in await self._requests.pending() if one.deadline is not None and one.deadline <= now]
        return [settled for one in due if (settled := await self._expire(one.id)) is not None]

    async def wait(self, request_id: str) -> ApprovalRequest:
        """Wait until the request is no longer open, expiring it when its time comes."""
        loop, signal = asyncio.get_running_loop(), asyncio.Event()
        with self._waiters_lock:
            self._waiters.setdefault(request_id, []).append((loop, signal))
        try:
            while (request := await self.get(request_id)).state is State.PENDING:
                await self._woken_or_due(request, signal)
                signal.clear()
            return request
        finally:
            with self._waiters_lock:
                waiting = self._waiters[request_id]
                waiting.remove((loop, signal))
                if not waiting:
                    del self._waiters[request_id]

    async def _woken_or_due(self, request: ApprovalRequest, signal: asyncio.Event) -> None:
        if request.deadline is None:
            await signal.wait()
            return
        tasks = [
            asyncio.ensure_future(signal.wait()),
            asyncio.ensure_future(self.clock.sleep_until(request.deadline)),
        ]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
        if request.deadline <= self.clock.now():
            await self._expire(request.id)

    async def _expire(self, request_id: str) -> ApprovalRequest | None:
        try:
            return await self._advance(request_id, Expired())
        except RequestError:  # somebody answered, or moved the deadline, in the same instant
            return None

    async def _advance(self, request_id: str, event: Event) -> ApprovalRequest:
        while True:
            request = await self.get(request_id)
            changed = advance(request, event, self.clock.now())
            if await self._requests.swap(request, changed):
                self._wake(request_id)
                return changed

    def _wake(self, request_id: str) -> None:
        with self._waiters_lock:
            for loop, signal in self._waiters.get(request_id, ()):
                if not loop.is_closed():
                    loop.call_soon_threadsafe(signal.set)


def new_id() -> str:
    """A fresh id for a request: short, random, and hard to misread."""
    number, letters = secrets.randbits(64), ""
    for _ in range(10):
        number, rest = divmod(number, len(ID_ALPHABET))
        letters += ID_ALPHABET[rest]
    return letters
