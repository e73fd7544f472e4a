"""`signoff inbox --tui`: everything that waits, answered on the full screen."""

from __future__ import annotations

import asyncio
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

import click

from signoff.cli.opening import say_where, with_broker

if TYPE_CHECKING:
    from signoff.broker import Broker
    from signoff.config import Settings
    from signoff.core.decision import ApprovalDecision
    from signoff.core.people import Answerer
    from signoff.core.request import ApprovalRequest


def answer_all(store: str | None, policy: str | None, name: str | None, *, mine: bool) -> None:
    """Show what waits until nothing does, or whoever answers leaves; with `mine`, only what they may answer."""
    from signoff.channels import tui_approver
    from signoff.channels.tui_inbox import TuiInbox
    from signoff.errors import NobodyHere
    from signoff.wiring import whoami

    async def work(broker: Broker, settings: Settings) -> list[str]:
        me = whoami(name, settings, via="tui")
        desk = ScreenDesk(broker, settings, me, mine=mine)
        with desk.watching():
            if not await desk.pending():
                click.echo("Nothing waits for you." if mine else "Nothing waits for a person.")
                say_where(store, policy)
                return []
            shown = TuiInbox(
                approver=tui_approver(answerer=me, keeps_always=True),
                pending=desk.pending,
                answer=desk.answer,
                settled=desk.settled,
                changed=desk.changed,
            )
            return await shown.run()

    try:
        late = with_broker(store, policy, work)
    except NobodyHere as nobody:
        raise click.UsageError(f"--tui draws on a terminal, and there is none: {nobody}") from nobody
    for line in late:
        click.echo(line, err=True)


@dataclass(slots=True)
class ScreenDesk:
    """What the screen is handed instead of the store."""

    broker: Broker
    settings: Settings
    me: Answerer
    mine: bool = False
    _news: asyncio.Event | None = None

    async def pending(self) -> Sequence[ApprovalRequest]:
        """What waits, after whatever time has done to it."""
        from signoff.core.quorum import why_not_entitled

        await self.broker.sweep()
        waiting = await self.broker.pending()
        if not self.mine:
            return waiting
        return [
            one
            for one in waiting
            if not why_not_entitled(one.requirement, self.me, requester=one.requester, owner=one.owner)
        ]

    async def answer(self, request_id: str, decision: ApprovalDecision) -> ApprovalRequest:
        """Give an answer; edited arguments are checked as `signoff approve --args` does."""
        if decision.edited_args is not None:
            from signoff.wiring.edits import checked_answer

            request = await self.broker.get(request_id)
            decision = await checked_answer(self.broker, self.settings, request, decision)
        return await self.broker.answer(request_id, decision, by=self.me)

    async def settled(self, request_id: str) -> str:
        """Who settled a request, when and how."""
        from signoff.core.lifecycle import settled_text

        return settled_text(await self.broker.get(request_id), datetime.astimezone)

    async def changed(self) -> None:
        """Return once something may have changed."""
        assert self._news is not None, "only while it watches"
        await self._news.wait()
        self._news.clear()

    @contextmanager
    def watching(self) -> Generator[None]:
        """Within, changes by anybody are noticed."""
        loop, self._news = asyncio.get_running_loop(), asyncio.Event()
        news = self._news

        def tick() -> None:
            if not loop.is_closed():
                loop.call_soon_threadsafe(news.set)

        stop = self.broker.store.watch(tick)
        try:
            yield
        finally:
            stop()
