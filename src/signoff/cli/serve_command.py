"""`signoff serve`: one process that resumes runs, applies deadlines, runs channels, and serves the inbox and API."""

from __future__ import annotations

import asyncio
import os
import threading
from contextlib import nullcontext
from importlib import import_module
from typing import TYPE_CHECKING, Literal

import click

from signoff.broker import Broker
from signoff.cli.channels_run import end_loop, leave_if_held_up
from signoff.cli.durations import read_duration
from signoff.cli.safe_output import apart
from signoff.cli.service_log import LinePrinter, libraries_told
from signoff.cli.systemd_unit import unit_text
from signoff.errors import MissingExtra
from signoff.server.listen_address import check_listening
from signoff.store.chosen_store import VARIABLE
from signoff.store.signing_key import Keys
from signoff.store.store_urls import is_file, sqlite_path
from signoff.wiring.served_projects import ServedProjects, served_projects

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from signoff.wiring.service import Service, ServiceOptions

PORT = 8420
_STORE = "The store: sqlite:FILE or postgresql://… Default: the project's."
_FILE = click.Path(exists=True, dir_okay=False)


@click.command()
@click.option("--host", default="127.0.0.1", show_default=True, metavar="ADDRESS", help="Address to listen on.")
@click.option(
    "--port",
    default=PORT,
    show_default=True,
    type=click.IntRange(0, 65535),
    help="Port to listen on; 0 picks a free port.",
)
@click.option("--store", metavar="URL", help=_STORE)
@click.option(
    "--project",
    "directories",
    metavar="DIR",
    multiple=True,
    type=click.Path(exists=True, file_okay=False),
    help="A project to serve. Repeatable. Default: the project here.",
)
@click.option(
    "--concurrency",
    default=16,
    show_default=True,
    type=click.IntRange(1, 1000),
    help="Maximum number of concurrent runs.",
)
@click.option(
    "--drain",
    default="30s",
    show_default=True,
    metavar="TIME",
    help="How long running calls may take to finish on shutdown.",
)
@click.option("--tls-cert", metavar="FILE", type=_FILE, help="TLS certificate file.")
@click.option("--tls-key", metavar="FILE", type=_FILE, help="TLS key file.")
@click.option(
    "--log", type=click.Choice(["text", "json"]), default="text", show_default=True, help="Log format: text, or JSON."
)
@click.option("--print-systemd", is_flag=True, help="Print a systemd unit for this command, and exit.")
def serve(
    host: str,
    port: int,
    store: str | None,
    directories: tuple[str, ...],
    concurrency: int,
    drain: str,
    tls_cert: str | None,
    tls_key: str | None,
    log: Literal["text", "json"],
    print_systemd: bool,
) -> None:
    """Serve one or more projects until Ctrl-C or SIGTERM.

    The server resumes answered runs, enforces deadlines, runs the channels of signoff.yaml, and serves the web inbox
    and the API on one port. On shutdown it waits for running calls, at most --drain; a second Ctrl-C cancels them, a
    third exits at once. Needs the extra web: pip install 'signoff[web]'

    \b
    Examples:
      signoff serve
      signoff serve --project shop --project billing --store postgresql://…
      signoff serve --print-systemd > ~/.config/systemd/user/signoff.service
    """
    if (tls_cert is None) is not (tls_key is None):
        raise click.UsageError("TLS needs both --tls-cert and --tls-key.")
    patience = read_duration(drain)
    if print_systemd:
        words = ["--host", host, "--port", str(port), "--concurrency", str(concurrency), "--drain", drain, "--log", log]
        for name, file in (("--tls-cert", tls_cert), ("--tls-key", tls_key)):
            words += [name, os.path.abspath(file)] if file is not None else []
        places = [os.path.abspath(one) for one in directories or (os.curdir,)]
        click.echo(unit_text(places, [*words, *_store_words(store)], patience), nl=False)
        return
    need_web()
    from signoff.wiring.service import ServiceOptions

    tls = (os.path.abspath(tls_cert), os.path.abspath(tls_key)) if tls_cert and tls_key else None
    store, places = _absolute(store), [os.path.realpath(one) for one in directories or (os.curdir,)]
    os.chdir(places[0])  # code of an agent may depend on the working directory
    projects = served_projects(places, store)
    options = ServiceOptions(concurrency=concurrency, drain=patience, tls=tls)
    serve_projects(projects, host, port, options, as_json=log == "json")


def _absolute(store: str | None) -> str | None:
    """The given store with an absolute path, because the working directory changes."""
    named = store or os.environ.get(VARIABLE)
    if not named or not is_file(named):
        return store
    path = sqlite_path(named)
    return store if os.path.isabs(path) else f"sqlite:{os.path.abspath(path)}"


def _store_words(store: str | None) -> list[str]:
    """`--store` with an absolute path. Refuses a database URL, which may contain a password."""
    if store is None:
        return []
    if not is_file(store):
        raise click.UsageError(
            "A database address may contain a password, and everybody can read a systemd unit: leave out --store, "
            "and put SIGNOFF_STORE=… into the EnvironmentFile that the unit names."
        )
    return ["--store", _absolute(store) or store]


def need_web() -> None:
    """Raise `MissingExtra` if the packages of the server are not installed."""
    try:
        for name in ("starlette", "uvicorn", "jinja2"):
            import_module(name)
    except ImportError as error:
        raise MissingExtra("The server", "web") from error


def serve_projects(
    projects: ServedProjects,
    host: str,
    port: int,
    options: ServiceOptions,
    *,
    as_json: bool,
    begun: Callable[[Service], Awaitable[None]] | None = None,
) -> None:
    """Serve until stopped; `begun` is called once clients are served."""
    from signoff.cli.serve_program import stay
    from signoff.server.listener import bound

    entry = projects.first.settings.server
    check_listening(host, has_people=bool(projects.people()), has_tls=options.tls is not None, server=entry)
    before, is_held = frozenset(threading.enumerate()), False
    broker = Broker(projects.store.open(), people=projects.roles(), signer=Keys())
    try:
        with bound(host, port) as made, apart() if as_json else nullcontext() as out:
            printer = LinePrinter(as_json=as_json, out=out)
            with libraries_told(printer):
                runner = asyncio.Runner()
                try:
                    runner.run(stay(broker, projects, made, options, printer, as_json=as_json, begun=begun))
                finally:
                    is_held = end_loop(runner)
    finally:
        broker.watch.close()
        broker.store.close()
        leave_if_held_up(before, is_held=is_held)
