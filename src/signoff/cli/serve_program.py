"""The main loop of `signoff serve`: signals, the messages at the start, and shutdown."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager, suppress
from datetime import timedelta
from shlex import quote
from types import FrameType
from typing import TYPE_CHECKING

import click

from signoff.cli.terminal_text import count
from signoff.core.access import AccessKind, link_url
from signoff.core.moment import span
from signoff.core.people import person_key
from signoff.errors import StoreError, WrongUse
from signoff.large_work import share_the_process
from signoff.server.listener import url_of
from signoff.wiring.caller import Caller
from signoff.wiring.job import RunOptions
from signoff.wiring.project import whoami
from signoff.wiring.service import VIA, Service, ServiceOptions

if TYPE_CHECKING:
    import socket

    from signoff.broker import Broker
    from signoff.cli.service_log import LinePrinter
    from signoff.config import Settings
    from signoff.wiring.served_projects import ServedProjects

MOST_SIGNALS = 2
"""Signals that shut down in an orderly way. The next one ends the process, as if it had crashed."""
LINK_LASTS = timedelta(minutes=15)


async def stay(
    broker: Broker,
    projects: ServedProjects,
    made: socket.socket,
    options: ServiceOptions,
    printer: LinePrinter,
    *,
    as_json: bool,
    begun: Callable[[Service], Awaitable[None]] | None = None,
) -> None:
    """Serve until stopped; `begun` is called once clients are served."""
    url = url_of(made, tls=options.tls is not None)
    run_options = RunOptions(store=projects.store.address, unattended="park", caller=Caller.here())
    service = Service(broker, projects, run_options, options, printer, _me(projects))
    await service.check()
    with _stopped_by_signals(service):
        serving = asyncio.create_task(service.run(made, url))
        ready = asyncio.create_task(service.begun.wait())
        try:
            await asyncio.wait([serving, ready], return_when=asyncio.FIRST_COMPLETED)
            if ready.done() and not serving.done():
                share_the_process()
                await _greet(service, url, printer, as_json=as_json)
                if begun is not None:
                    await begun(service)
            await serving
        finally:
            ready.cancel()
            serving.cancel()
            await asyncio.gather(serving, ready, return_exceptions=True)
    printer.say("stopped", "Stopped. Requests and runs stay in the store; the next start continues them.")


@contextmanager
def _stopped_by_signals(service: Service) -> Generator[None]:
    """Let SIGINT and SIGTERM stop the service; a second one hurries it, a third ends the process.

    These are not handlers of the event loop: a tool that blocks the loop must not prevent the shutdown.
    """
    loop, heard = asyncio.get_running_loop(), 0

    def stop(number: int, frame: FrameType | None) -> None:
        nonlocal heard
        heard += 1
        if heard > MOST_SIGNALS:
            os._exit(128 + number)
        with suppress(RuntimeError):  # the loop was closed in the same instant
            loop.call_soon_threadsafe(service.stop)

    before = {one: signal.signal(one, stop) for one in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)


async def _greet(service: Service, url: str, printer: LinePrinter, *, as_json: bool) -> None:
    """Print the address, the projects, and how to sign in."""
    projects, broker = service.projects, service.broker
    await broker.sweep()  # what expired while nobody served waits no longer
    waiting = len(await broker.inbox(limit=1_001))
    more = f", {len(projects.all)} projects" if len(projects.all) > 1 else ""
    printer.say(
        "listening",
        f"signoff serves {url}",
        url=url,
        projects=[one.directory for one in projects.all],
        store=projects.store.shown,
        channels=list(service.channels),
        concurrency=service.options.concurrency,
        waiting=waiting,
    )
    if not as_json:
        _tell_more(service, waiting, more, printer)
    oidc = projects.first.settings.server.oidc
    if not projects.people():
        # Not a line of the log: logs are stored, and this link signs somebody in.
        try:
            told = f"Sign-in link, valid once, for {span(LINK_LASTS.total_seconds())}:\n  {await sign_in_link(service)}"
        except StoreError as error:  # the server continues, and the store may recover
            told = f"No sign-in link could be created: {error}\n  Later: signoff people link NAME"
    elif oidc is not None:
        told = f"People sign in at {service.pages}, with {oidc.issuer}"
    else:
        told = f"People sign in with personal links: signoff people link NAME{as_whom(projects.first.settings)}"
    click.echo(f"\n{told}\n", file=sys.stderr)


def as_whom(settings: Settings) -> str:
    """Who has to make links for others, as an option; empty if the user of this process may."""
    admins = [one.name for one in settings.people.values() if one.admin]
    try:
        me = whoami(None, settings, via="command").key
    except WrongUse:
        return f" --as {quote(admins[0]) if admins else 'YOU'}"
    return f" --as {quote(admins[0])}" if admins and me not in map(person_key, admins) else ""


def _tell_more(service: Service, waiting: int, more: str, printer: LinePrinter) -> None:
    projects = service.projects
    lines = [f"{projects.store.in_words()}{more}"]
    lines += [f"also {one.directory}" for one in projects.all[1:]]
    number = "over 1,000 requests are pending" if waiting > 1_000 else count(waiting, "request waits", "requests wait")
    lines.append(f"{number}; this server resumes answered runs, {service.options.concurrency} at once")
    if service.channels:
        lines.append(f"people are asked in {', '.join(service.channels)}")
    for line in lines:
        printer.say("about", line)


async def sign_in_link(service: Service) -> str:
    """A one-time link that signs in the user who runs the server."""
    _, secret = await service.broker.access.issue(
        AccessKind.LINK, _me(service.projects), by="signoff serve", lasts=LINK_LASTS, label="printed at the start"
    )
    return link_url(service.pages, secret)


def _me(projects: ServedProjects) -> str:
    """The user who runs the server, who is the only person if the project lists none; empty if it lists people."""
    if projects.people():
        return ""
    try:
        return whoami(None, projects.first.settings, via=VIA).name
    except WrongUse:  # a container may run as a user id without a name
        return "owner"
