"""Everything that waits in a store, on the full screen: answered there, kept up to date from outside.

A channel never sees the store: what waits, how an answer is given and what became of a request are handed in.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from signoff.channels.asking import Asks, until_taken
from signoff.channels.turns import Outcome
from signoff.core.decision import ApprovalDecision
from signoff.core.request import ApprovalRequest
from signoff.ports import Answer


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
    """What came of answers that were too late or not enough, told once the screen is closed."""
    _asked: dict[str, asyncio.Task[bool]] = field(default_factory=dict[str, "asyncio.Task[bool]"], init=False)
    """Those on the screen, by id; each ends with whether the person is still there."""
    _answered: set[str] = field(default_factory=set[str], init=False)
    """Those that had their answer here: one that waits for others to agree is not asked about again."""
    _is_leaving: bool = field(default=False, init=False)

    async def run(self) -> list[str]:
        """Until nothing waits or the person leaves; what came of answers that were too late or not enough."""
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

    async def _show(self, request: ApprovalRequest) -> Outcome:
        return await asyncio.to_thread(self.approver.ask, request)  # it may have to wait until the screen was closed

    async def _ask(self, request: ApprovalRequest, shown: Outcome) -> bool:
        """Ask until an answer is taken; False where the person leaves."""

        async def again(changed: ApprovalRequest) -> Outcome | None:
            return None if self._is_leaving else await self._show(changed)

        async def answer(request_id: str, decision: ApprovalDecision) -> ApprovalRequest:
            settled = await self.answer(request_id, decision)
            self._answered.add(request_id)
            return settled

        decision = await until_taken(request, shown, again=again, answer=answer, tell=self.late.append)
        return decision is not None
