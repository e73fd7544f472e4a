"""`signoff inbox --tui`: answer all pending requests on the full screen."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING

import click

from signoff.cli.open_broker import say_where, with_broker

if TYPE_CHECKING:
    from signoff.broker import Broker
    from signoff.config import Settings
    from signoff.core.people import Actor
    from signoff.core.request import ApprovalRequest
    from signoff.errors import ChannelFailed


def answer_all(store: str | None, policy: str | None, name: str | None, *, mine: bool) -> None:
    """Show pending requests until none is left or the user quits; with `mine`, only those the user may answer."""
    from signoff.errors import NobodyHere
    from signoff.wiring import whoami

    async def work(broker: Broker, settings: Settings) -> ChannelFailed | None:
        me = whoami(name, settings, via="tui")
        if not _shown_to(me, await _waiting(broker), mine=mine):
            click.echo("No pending requests for you." if mine else "No pending requests.")
            say_where(store, policy)
            return None
        return await _answered(broker, settings, store, me, mine=mine)

    failure = with_broker(store, policy, work)
    if failure is not None and isinstance(nobody := failure.__cause__, NobodyHere):
        raise click.UsageError(f"--tui needs a terminal: {nobody}") from nobody


async def _answered(
    broker: Broker, settings: Settings, store: str | None, me: Actor, *, mine: bool
) -> ChannelFailed | None:
    """Show all pending requests and new ones; return why asking ended, or None when all are answered."""
    from signoff.channels.approver import ApproverChannel
    from signoff.channels.approvers import tui_approver
    from signoff.delivery.local_channel import Attended
    from signoff.wiring.job import drafts_in
    from signoff.wiring.program_inbox import project_inbox

    approver = tui_approver(actor=me, draft_rules=drafts_in(store, settings))
    screen = ApproverChannel(approver, name="tui", by=me)
    async with Attended(broker, screen, project_inbox(broker, settings, "tui").take) as attended:
        with watching(broker, attended.wake):
            while attended.failure is None:
                looked_at = broker.clock.now()
                waiting = await _waiting(broker)
                shown = _shown_to(me, waiting, mine=mine)
                await attended.show(shown)
                # A settled request is removed by itself, with its result. One that now waits for somebody else is
                # removed here.
                for request_id in {one.id for one in waiting} - {one.id for one in shown}:
                    if request_id in attended.asked:
                        attended.leave(request_id)
                        screen.withdraw(request_id, "somebody else has to answer it now")
                if not attended.asked:
                    break
                await attended.changed(until=_next_moment(waiting, looked_at))
    return attended.failure


async def _waiting(broker: Broker) -> Sequence[ApprovalRequest]:
    """Pending requests, after passed deadlines were applied."""
    await broker.sweep()
    return await broker.pending()


def _next_moment(waiting: Sequence[ApprovalRequest], looked_at: datetime) -> datetime | None:
    """The next deadline or reminder. Requests that are not shown count too: they may have to be shown then."""
    moments = [moment for one in waiting for moment in (one.deadline, one.remind_at) if moment is not None]
    return min((moment for moment in moments if moment > looked_at), default=None)


def _shown_to(me: Actor, waiting: Sequence[ApprovalRequest], *, mine: bool) -> Sequence[ApprovalRequest]:
    from signoff.core.quorum import why_not_entitled

    return [one for one in waiting if not mine or not why_not_entitled(one.requirement, me, one.parties)]


@contextmanager
def watching(broker: Broker, news: Callable[[], None]) -> Generator[None]:
    """Call `news` whenever any process may have changed something."""
    loop = asyncio.get_running_loop()

    def tick() -> None:
        if not loop.is_closed():
            loop.call_soon_threadsafe(news)

    stop = broker.store.watch(tick)
    try:
        yield
    finally:
        stop()
