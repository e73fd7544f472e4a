"""`signoff inbox`: list pending requests, once or as they change. The most used command, so it must start fast."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from signoff.cli import shared_options
from signoff.cli.inbox_page import lines
from signoff.cli.loops import run
from signoff.cli.opened_store import store_at
from signoff.cli.server_choice import is_elsewhere
from signoff.cli.terminal_text import as_json as json_line
from signoff.cli.terminal_text import now, safe
from signoff.core.people import person_key
from signoff.core.request_filter import RequestFilter
from signoff.errors import ServerFailed, StoreError
from signoff.store.chosen_store import ChosenStore, named_store
from signoff.views.inbox_view import MOST_LISTED, InboxFilter, Me, RequestPage

if TYPE_CHECKING:
    from collections.abc import Mapping

    from signoff.config import Settings


@click.command()
@shared_options.as_json
@click.option("--watch", is_flag=True, help="Keep running, and open cards by key to answer them. q quits.")
@click.option("--tui", is_flag=True, help="Answer pending and new requests on the full screen. q quits.")
@click.option("--limit", type=click.IntRange(1, 100_000), default=50, show_default=True, help="How many to show.")
@click.option("--mine", is_flag=True, help="Only requests that you can answer and that nobody else has taken.")
@click.option("--search", default="", metavar="TEXT", help="Only requests with this in title, tool or workers.")
@shared_options.who
@shared_options.anywhere
def inbox(
    as_json: bool,
    watch: bool,
    tui: bool,
    limit: int,
    mine: bool,
    search: str,
    name: str | None,
    store: str | None,
    policy: str | None,
) -> None:
    """List pending requests, oldest first.

    \b
    Examples:
      signoff inbox
      signoff inbox --mine --as ana
      signoff inbox --search "git push"
      signoff inbox --watch
      signoff inbox --tui

    With --watch --json, prints one JSON object per line: the inbox now, and again after every change.
    """
    if tui:
        if is_elsewhere(store):
            raise click.UsageError("--tui works with a local store; for a server, use its web inbox")
        if watch or as_json:
            raise click.UsageError("--tui uses the whole screen; leave out --watch and --json")
        if search:
            raise click.UsageError("--tui shows what waits, one by one; leave out --search")
        from signoff.cli.inbox_screen import answer_all

        answer_all(store, policy, name, mine=mine)
        return
    if watch and not as_json and not sys.stdout.isatty():
        raise click.UsageError("--watch needs a terminal; for programs, use --watch --json")
    wanted = InboxFilter(limit=limit, chosen=RequestFilter(text=search))
    if is_elsewhere(store):
        _elsewhere(store, policy, name, wanted, mine=mine, watch=watch, as_json=as_json)
        return
    wanted, chosen = _chosen(store, policy, wanted, mine, name)
    kept = store_at(chosen, make=watch)  # --watch needs a store to watch
    try:
        if watch:
            from signoff.cli.inbox_watch import stay

            answers = None
            if not as_json:
                from signoff.cli.inbox_answer import InboxAnswers

                answers = InboxAnswers(kept, store, policy, name)
            run(stay(lambda: wanted.page(kept), kept.watch, as_json=as_json, of=wanted, answer=answers))
        else:
            _show(run(wanted.page(kept)), as_json, wanted, chosen.in_words())
    finally:
        kept.close()


def _chosen(
    store: str | None, policy: str | None, wanted: InboxFilter, mine: bool, name: str | None
) -> tuple[InboxFilter, ChosenStore]:
    """What to show, and from which store. Reads no file, and imports no reader, unless needed."""

    def people() -> Mapping[str, frozenset[str]]:
        from signoff.wiring.project import roles_of, settings_for

        return roles_of(settings_for(policy))  # anew for each page: the file may have changed

    wanted = replace(wanted, people=people)
    if policy is None and not mine and (named := named_store(store)):
        return wanted, named
    from signoff.wiring.project import settings_for
    from signoff.wiring.stores import chosen_store

    settings = settings_for(policy)
    return _mine(wanted, name, settings) if mine else wanted, chosen_store(store, settings)


def _mine(wanted: InboxFilter, name: str | None, settings: Settings) -> InboxFilter:
    from signoff.wiring.project import whoami

    person = whoami(name, settings, via="command")
    roles = {person_key(one.name): one.roles for one in settings.people.values()}
    return replace(wanted, me=Me(person.name, person.roles), roles=roles)


def _elsewhere(
    store: str | None,
    policy: str | None,
    name: str | None,
    wanted: InboxFilter,
    *,
    mine: bool,
    watch: bool,
    as_json: bool,
) -> None:
    """Show the inbox of a server."""
    from signoff.cli.server_client import server_for

    server = server_for(store, policy, name)
    limit, shown = wanted.limit, replace(wanted, me=Me("", frozenset())) if mine else wanted

    def look() -> RequestPage:
        page: RequestPage | None = None
        while page is None or (page.next and len(page.requests) < limit):
            more = server.view(
                RequestPage,
                "/requests",
                limit=min(limit - (len(page.requests) if page is not None else 0), MOST_LISTED),
                mine=mine,
                q=wanted.chosen.text,
                cursor=page.next if page is not None else None,
            )
            page = page.and_then(more) if page is not None else more
        return page

    if not watch:
        _show(look(), as_json, shown, f"server {server.url}")
        return
    from signoff.cli.inbox_watch import stay, ticking

    async def looked() -> RequestPage:
        try:
            return look()
        except ServerFailed as error:  # it may come back
            raise StoreError(str(error)) from error

    run(stay(looked, ticking, as_json=as_json, of=shown))


def _show(page: RequestPage, as_json: bool, wanted: InboxFilter, where: str) -> None:
    from shutil import get_terminal_size

    if as_json:
        click.echo(json_line(page))
        return
    width = get_terminal_size().columns if sys.stdout.isatty() else 120
    for line in lines(page, now(), width, of=wanted):
        click.echo(line)
    if page.requests and sys.stdout.isatty():
        click.secho("\nsignoff show ID shows one in full; signoff approve ID or deny ID answers.", dim=True)
    if not page.requests or sys.stdout.isatty():
        click.secho(safe(where), dim=True)
