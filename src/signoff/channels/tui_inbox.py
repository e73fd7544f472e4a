"""Everything that waits in a store, on the full screen: answered there, kept up to date from outside.

A channel never sees the store: what waits, how an answer is given and what became of a request are handed in.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from typing import Protocol

from signoff.core.decision import ApprovalDecision, Ending
from signoff.core.request import ApprovalRequest
from signoff.errors import AlreadySettled, EditRefused, NotEntitled
from signoff.ports import Answer


class Asks(Protocol):
    """What is needed of the approver; `TuiApprover` is one."""

    def ask(self, request: ApprovalRequest) -> Future[ApprovalDecision | None]: ...

    def withdraw(self, request_id: str, why: str) -> None: ...

    def close(self) -> None: ...


@dataclass(slots=True, kw_only=True)
class TuiInbox:
    """Shows what waits until nothing does, or the person leaves. Raises `NobodyHere` without a terminal."""

    approver: Asks
    pending: Callable[[], Awaitable[Sequence[ApprovalRequest]]]
    """What waits now, oldest first."""
    answer: Answer
    """Gives an answer. Raises a `RequestError` where it cannot be taken."""
    settled: Callable[[str], Awaitable[str]]
    """Who settled a request that is no longer pending, when and how."""
    changed: Callable[[], Awaitable[object]]
    """Returns when something may have changed since it was called before."""
    late: list[str] = field(default_factory=list[str])
    """What whoever answered too late has to be told, once the screen is closed."""
    _asked: dict[str, asyncio.Task[bool]] = field(default_factory=dict[str, "asyncio.Task[bool]"], init=False)
    """Those on the screen, by id; each ends with whether the person is still there."""
    _answered: set[str] = field(default_factory=set[str], init=False)
    """Those that had their answer here: one that waits for others to agree is not asked about again."""
    _is_leaving: bool = field(default=False, init=False)

    async def run(self) -> list[str]:
        """Until nothing waits or the person leaves; what they have to be told about late answers."""
        news = asyncio.ensure_future(self.changed())
        try:
            await self._catch_up()
            while self._asked:
                await asyncio.wait([news, *self._asked.values()], return_when=asyncio.FIRST_COMPLETED)
                if not self._is_there():
                    break
                if news.done():
                    news.result()
                    news = asyncio.ensure_future(self.changed())
                    await self._catch_up()
        finally:
            self._is_leaving = True
            news.cancel()
            await asyncio.to_thread(self.approver.close)
            # Not cancelled: what was answered just before leaving still has to be given.
            await asyncio.gather(*self._asked.values(), return_exceptions=True)
        return self.late

    async def _catch_up(self) -> None:
        """Put what is new on the screen, and take off it what was settled elsewhere."""
        waiting = {request.id: request for request in await self.pending()}
        for request_id in [one for one in self._asked if one not in waiting]:
            self.approver.withdraw(request_id, await self.settled(request_id))
        for request_id, request in waiting.items():
            if request_id not in self._asked and request_id not in self._answered:
                # One after the other, so that they are listed in this order.
                shown = await self._show(request)
                self._asked[request_id] = asyncio.ensure_future(self._ask(request, shown))

    def _is_there(self) -> bool:
        """Forget those that are done; False once the person has left."""
        done = {request_id: task for request_id, task in self._asked.items() if task.done()}
        for request_id in done:
            del self._asked[request_id]
        return False not in [task.result() for task in done.values()]

    async def _show(self, request: ApprovalRequest) -> Future[ApprovalDecision | None]:
        return await asyncio.to_thread(self.approver.ask, request)  # it may have to wait until the screen was closed

    async def _ask(self, request: ApprovalRequest, shown: Future[ApprovalDecision | None]) -> bool:
        """Ask until an answer is taken, saying why the one before was not; False where the person leaves."""
        while True:
            decision = await asyncio.wrap_future(shown)
            if decision is None:
                return False
            if decision.ending is Ending.CANCELLED:
                return True
            try:
                await self.answer(request.id, decision)
                self._answered.add(request.id)
            except AlreadySettled as late:
                self.late.append(str(late))
            except (EditRefused, NotEntitled) as problem:
                if self._is_leaving:
                    self.late.append(str(problem))
                    return False
                draft = {"draft": decision.edited_args} if decision.edited_args is not None else {}
                request = replace(request, problem=str(problem), metadata={**request.metadata, **draft})
                shown = await self._show(request)
                continue
            return True
