"""`signoff inbox --tui`: answer all pending requests on the full screen."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING

import click

from signoff.channels.approver import ApproverChannel
from signoff.channels.approvers import tui_approver
from signoff.cli.inbox_watch import SWEEP, KeyPresses
from signoff.cli.open_broker import say_where, with_broker
from signoff.delivery.local_channel import Attended
from signoff.errors import ChannelFailed, NobodyHere
from signoff.store_changes import changes, told_of_changes
from signoff.wiring.edit_effect import with_edit_here
from signoff.wiring.job import drafts_in
from signoff.wiring.program_inbox import project_inbox
from signoff.wiring.project import whoami

if TYPE_CHECKING:
    from signoff.broker import Broker
    from signoff.config import Settings
    from signoff.core.people import Actor
    from signoff.core.request import ApprovalRequest


def answer_all(store: str | None, policy: str | None, name: str | None, *, mine: bool) -> None:
    """Show pending and new requests until the user quits; with `mine`, only those the user may answer.

    Where no key can be read, it ends when none is left.
    """
    can_stay = KeyPresses(lambda: None).can_read

    async def work(broker: Broker, settings: Settings) -> ChannelFailed | None:
        me = whoami(name, settings, via="tui")
        shown = ShownRequests(broker, me, mine=mine)
        if not can_stay and not await shown.chosen(await _waiting(broker)):
            click.echo(shown.none)
            say_where(store, policy)
            return None
        failure = None
        while failure is None:
            if await shown.chosen(await _waiting(broker)):
                failure = await _answered(settings, store, shown)
            if failure is None and not (can_stay and await _arrives(shown)):
                return None
        return failure

    failure = with_broker(store, policy, work, make=can_stay)  # to stay needs a store to watch
    if failure is not None and isinstance(nobody := failure.__cause__, NobodyHere):
        raise click.UsageError(f"--tui needs a terminal: {nobody}") from nobody


@dataclass(slots=True)
class ShownRequests:
    """Which requests are shown to a person: with `mine`, those that they may approve, also as a deputy."""

    broker: Broker
    me: Actor
    mine: bool
    answered: set[tuple[str, bool]] = field(default_factory=set[tuple[str, bool]])
    """Those that were on a screen that is closed, each before or after its escalation: they wait for others."""

    @property
    def none(self) -> str:
        return "No pending requests for you." if self.mine else "No pending requests."

    async def chosen(self, waiting: Sequence[ApprovalRequest]) -> Sequence[ApprovalRequest]:
        new = [one for one in waiting if (one.id, one.escalated) not in self.answered]
        if not self.mine:
            return new
        return [one for one in new if not (await self.broker.people.standing(one.id, self.me)).approving]


async def _answered(settings: Settings, store: str | None, chosen: ShownRequests) -> ChannelFailed | None:
    """Show all pending requests and new ones; return why asking ended, or None when all are answered."""
    broker, me = chosen.broker, chosen.me
    approver = tui_approver(actor=me, draft_rules=drafts_in(store, settings))
    screen = ApproverChannel(approver, name="tui", by=me)
    on_screen: set[tuple[str, bool]] = set()
    async with Attended(broker, screen, project_inbox(broker, settings, "tui").take, to=me) as attended:
        with told_of_changes(broker.store.watch, attended.wake):
            while attended.failure is None:
                looked_at = broker.clock.now()
                waiting = await _waiting(broker)
                shown = await chosen.chosen(waiting)
                on_screen |= {(one.id, one.escalated) for one in shown}
                for one in shown:
                    approver.preview_edits(one.id, partial(with_edit_here, one))
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
    chosen.answered |= on_screen
    return attended.failure


async def _arrives(chosen: ShownRequests) -> bool:
    """Wait at the closed screen until there is something to show; False if the person quits."""
    text = f"{chosen.none} New ones are shown here; q quits."
    click.secho(text, dim=True, nl=False)
    with changes(chosen.broker.store.watch) as changed, (keys := KeyPresses(changed.set)).read():
        while "q" not in keys.taken():
            if await chosen.chosen(await _waiting(chosen.broker)):
                click.echo(f"\r{' ' * len(text)}\r", nl=False)
                return True
            with suppress(TimeoutError):
                await asyncio.wait_for(changed.wait(), SWEEP)
            changed.clear()
    click.echo()
    return False


async def _waiting(broker: Broker) -> Sequence[ApprovalRequest]:
    """Pending requests, after passed deadlines were applied."""
    await broker.sweep()
    return await broker.pending()


def _next_moment(waiting: Sequence[ApprovalRequest], looked_at: datetime) -> datetime | None:
    """The next deadline or reminder. Requests that are not shown count too: they may have to be shown then."""
    moments = [moment for one in waiting for moment in (one.deadline, one.remind_at) if moment is not None]
    return min((moment for moment in moments if moment > looked_at), default=None)
