"""`InboxAnswers`: asks the person about one request of `signoff inbox --watch`, with the card at the terminal."""

from __future__ import annotations

import asyncio
from functools import partial
from shutil import get_terminal_size
from typing import TYPE_CHECKING

import click

from signoff.broker import Broker
from signoff.channels.approver import ApproverChannel
from signoff.channels.approvers import terminal_approver
from signoff.channels.keyboard import Keyboard, NoLine
from signoff.cli.terminal_text import fold, safe
from signoff.core.inbox_row import needs_of
from signoff.core.request import State
from signoff.delivery.local_channel import Attended
from signoff.errors import SignoffError
from signoff.store_changes import told_of_changes
from signoff.wiring.edit_effect import with_edit_here
from signoff.wiring.job import drafts_in
from signoff.wiring.program_inbox import project_inbox
from signoff.wiring.project import roles_of, settings_for, whoami

if TYPE_CHECKING:
    from signoff.config import Settings
    from signoff.core.people import Actor
    from signoff.ports import Store
    from signoff.views.inbox_view import RequestRow

_WHAT_HAPPENED = "It was approved and started, and then its process died or stopped responding. What happened?"
_OUTCOME_KEYS = "h it happened · n it did not · l leave it open"


class InboxAnswers:
    """Shows requests of a store one at a time at the terminal, and takes the answers of the person there."""

    def __init__(self, kept: Store, store: str | None, policy: str | None, name: str | None) -> None:
        """`store` and `policy` are as given to the command; `name` is who answers, None the logged-in user."""
        self._kept = kept
        self._store = store
        self._policy = policy
        self._name = name

    async def __call__(self, item: RequestRow) -> str:
        """Ask about a request, and return what came of it, on one line. Errors are returned, too."""
        try:
            settings = settings_for(self._policy)  # anew each time: the file may have changed
            me = whoami(self._name, settings, via="terminal")
            broker = Broker(self._kept, people=roles_of(settings))
            if item.state is State.UNKNOWN:
                return await self._told(broker, me, item)
            return await self._asked(broker, settings, me, item)
        except (SignoffError, click.UsageError) as error:
            return safe(str(error))

    async def _asked(self, broker: Broker, settings: Settings, me: Actor, item: RequestRow) -> str:
        approver = terminal_approver(actor=me, draft_rules=drafts_in(self._store, settings))
        channel = ApproverChannel(approver, name="terminal", by=me)
        async with Attended(broker, channel, project_inbox(broker, settings, "terminal").take, to=me) as attended:
            with told_of_changes(broker.store.watch, attended.wake):
                await broker.sweep()
                request = await broker.get(item.id)
                if request.state is State.PENDING:
                    approver.preview_edits(request.id, partial(with_edit_here, request))
                    await attended.show([request])
                    while attended.asked and attended.failure is None:
                        await attended.changed(until=request.deadline)
                        await broker.sweep()
        request = await broker.shown(await broker.get(item.id))
        title = safe(request.title)
        if request.state is not State.PENDING:
            return f"{'approved' if request.decision and request.decision.approved else 'not approved'}: {title}"
        needs = needs_of(request, me.name)
        return f"still open: {title}{f' (needs {safe(needs)})' if needs else ''}"

    async def _told(self, broker: Broker, me: Actor, item: RequestRow) -> str:
        width = get_terminal_size().columns
        click.echo()
        for line in fold(safe(item.title), width):
            click.secho(line, bold=True)
        for line in fold(_WHAT_HAPPENED, width):
            click.echo(line)
        if item.run:
            click.secho(f"signoff outcome {safe(item.id)} stop-run ends its run, if nobody can tell", dim=True)
        keyboard = Keyboard()

        def prompt() -> None:
            click.echo(f"{_OUTCOME_KEYS}\nyour answer > ", nl=False)

        while True:
            try:
                typed = (await asyncio.to_thread(keyboard.line, prompt)).strip().lower()
            except NoLine:
                typed = "l"
            if typed == "l":
                return f"still open: {safe(item.title)}"
            if typed in ("h", "n"):
                await broker.tell(item.id, happened=typed == "h", by=me)
                return f"on record: it {'happened' if typed == 'h' else 'did not happen'}: {safe(item.title)}"
            wrong = f"“{safe(typed[:40])}” is not one of the answers" if typed else "Enter alone is not an answer"
            click.secho(f"{wrong}. Nothing is on record. Type a letter, then Enter:", fg="yellow")
