"""`signoff channels`: list the project's channels and their state. `run` and `test` are in modules of their own."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from signoff.cli import id_completion, shared_options
from signoff.cli.channels_run import run_until_stopped
from signoff.cli.channels_test import try_out
from signoff.cli.desk_command import Printed, on_broker
from signoff.cli.durations import read_duration
from signoff.cli.inbox_page import clock
from signoff.cli.terminal_text import count, iso, now, safe
from signoff.core.moment import span
from signoff.delivery.delivery_status import running_channels, troubles_of
from signoff.errors import SignoffError
from signoff.wiring.channel_wiring import actors, check_entry, kind_of

if TYPE_CHECKING:
    from signoff.broker import Broker
    from signoff.channel_kinds import ChannelKind
    from signoff.config import ChannelEntry, Settings
    from signoff.core.delivery import Delivery
    from signoff.core.lease import Lease
    from signoff.core.run import Process


@click.group(invoke_without_command=True)
@click.pass_context
def channels(ctx: click.Context) -> None:
    """List, test and run the channels that ask people. Without a subcommand: list."""
    if ctx.invoked_subcommand is None:
        ctx.invoke(list_channels, as_json=False, store=None, policy=None)


@channels.command("list")
@shared_options.as_json
@on_broker()
async def list_channels(broker: Broker, settings: Settings) -> Printed:
    """List the project's channels: who can answer there, which process runs it, what is wrong.

    \b
    Example:
      signoff channels list
    """
    found = await _looked_at(broker, settings)
    lines = [line for one in found for line in ("", *_lines(one))][1:]
    none = "No channels: people are asked at the terminal. To ask elsewhere, see docs/guides/channels.md."
    return Printed(lines=lines or [none], data={"channels": [_data(one) for one in found]})


@channels.command("run", no_args_is_help=True)
@click.argument("names", metavar="NAME...", nargs=-1, required=True, shell_complete=id_completion.channels)
@click.option("--no-resume", is_flag=True, help="Only ask: resume no runs here, and start no workers.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object per line, for programs.")
@shared_options.where
def run_channels(names: tuple[str, ...], no_resume: bool, as_json: bool, store: str | None, policy: str | None) -> None:
    """Run these channels until Ctrl-C or SIGTERM: ask people, take their answers, and resume answered runs.

    Pending requests are shown at once, also after a restart. Requests answered elsewhere are updated.

    \b
    Examples:
      signoff channels run team
      signoff channels run team night
    """
    run_until_stopped(names, store, policy, resume=not no_resume, as_json=as_json)


@channels.command("test", no_args_is_help=True)
@click.argument("name", shell_complete=id_completion.channels)
@click.option("--wait", metavar="TIME", default="2m", show_default=True, help="How long to wait for an answer.")
@click.option("--no-answer", is_flag=True, help="Do not wait for an answer: withdraw the request once it is shown.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object per line: the steps, then the result.")
@click.option(
    "--policy",
    metavar="FILE",
    type=click.Path(dir_okay=False),
    help="Policy file. Default: the nearest signoff.yaml here or above.",
)
def test_channel(name: str, wait: str, no_answer: bool, as_json: bool, policy: str | None) -> None:
    """Send a harmless request to a channel and wait for an answer, step by step. Nothing runs, whatever the answer.

    The project's store is not changed.

    \b
    Examples:
      signoff channels test team
      signoff channels test team --no-answer

    Exit codes: 0 it works, 1 a step failed, 2 usage error, 3 nobody answered in time.
    """
    try_out(name, read_duration(wait), policy, answer=not no_answer, as_json=as_json)


@dataclass(frozen=True, slots=True)
class ChannelStatus:
    """A channel and its current state."""

    entry: ChannelEntry
    kind: ChannelKind | None
    """None: it cannot be loaded."""
    settings: Settings
    lease: Lease | None
    """The lease of the process that runs it; None if none does."""
    process: Process | None
    failing: Sequence[Delivery]
    """Deliveries that could not be shown there."""


async def _looked_at(broker: Broker, settings: Settings) -> list[ChannelStatus]:
    running = await running_channels(broker.ledger)
    waiting = await broker.inbox(limit=_MOST)
    troubled = await troubles_of(broker.ledger, [item.id for item in waiting])
    failing: dict[str, list[Delivery]] = {}
    for one in (one for found in troubled.values() for one in found):
        failing.setdefault(one.channel, []).append(one)
    seen: list[ChannelStatus] = []
    for entry in settings.channels.values():
        lease = running.get(entry.name)
        process = await broker.store.read(lambda tx, lease=lease: tx.processes.get(lease.process)) if lease else None
        kind = _kind(entry, settings)
        seen.append(ChannelStatus(entry, kind, settings, lease, process, failing.get(entry.name, ())))
    return seen


def _kind(entry: ChannelEntry, settings: Settings) -> ChannelKind | None:
    try:
        return kind_of(entry, settings)
    except SignoffError:  # `_wrong` says why
        return None


_MOST = 500
"""How many waiting requests are checked for failing deliveries."""


def _lines(seen: ChannelStatus) -> Iterator[str]:
    entry = seen.entry
    place = safe(entry.place(seen.kind)) if seen.kind is not None else ""
    where = f", in {seen.kind.place[0]} {place}" if seen.kind is not None and place else ""
    yield f"{click.style(safe(entry.name), fg='cyan', bold=True)}  {safe(entry.use)}{where}"
    for name, text, is_bad in _facts(seen):
        yield f"  {click.style(f'{name:8}', dim=True)}  {click.style(text, fg='yellow') if is_bad else text}"


def _facts(seen: ChannelStatus) -> Iterator[tuple[str, str, bool]]:
    """Facts about a channel as name, text, and whether somebody has to act."""
    entry, kind = seen.entry, seen.kind
    if kind is not None:
        yield _who(seen, kind)
        if kind.starts:
            yield "starts", ", ".join(map(safe, entry.workers)) or "no workers", False
    for number, line in enumerate(_wrong(seen).splitlines()):
        yield "" if number else "wrong", safe(line.strip()), True
    if kind is not None:
        limit = entry.timeout(kind)
        yield "timeout", f"the rule's, or {span(limit.total_seconds()) if limit is not None else 'none'}", False
        for variable in _secrets(entry, kind):
            is_set = _is_set(variable)
            yield "secret", f"{variable} is {'set' if is_set else 'not set'}", not is_set
    if seen.process is not None:
        yield "runs", f"in {safe(seen.process.place)}", False
    else:
        yield "runs", f"nowhere: signoff channels run {safe(entry.name)}", False
    if seen.lease is not None and seen.lease.down is not None:
        yield "failing", _down(seen.lease), True
    elif seen.failing:
        worst = max(seen.failing, key=lambda one: one.attempts)
        yield "failing", f"{count(len(seen.failing), 'request')} could not be shown: {safe(worst.problem)}", True


def _wrong(seen: ChannelStatus) -> str:
    """Why the channel cannot run: its kind, its keys, or one of its workers. Empty if it can."""
    try:
        check_entry(seen.entry, seen.settings)
    except SignoffError as error:
        return str(error)
    return ""


def _who(seen: ChannelStatus, kind: ChannelKind) -> tuple[str, str, bool]:
    names = [safe(one.name) for one in actors(seen.entry, seen.settings).values()]
    if not kind.answers:
        return "tells", f"{', '.join(names) or 'whoever reads it'}, with a link", False
    if names:
        return "asks", ", ".join(names), False
    if kind.account is not None:
        return "asks", f'nobody: add `{kind.account.key}: "ID"` under `people`', True
    if kind.at_terminal:
        return "asks", "the user at this terminal", False
    return "asks", "nobody: add names under `people`", True


def _down(lease: Lease) -> str:
    assert lease.down is not None
    soon = f"; next try {clock(lease.down.due, now())}" if lease.down.due is not None else ""
    return f"since {clock(lease.down.since, now())}: {safe(lease.down.problem)}{soon}"


def _secrets(entry: ChannelEntry, kind: ChannelKind) -> Sequence[str]:
    """The environment variables of its secrets."""
    return [variable for key in kind.secrets if (variable := entry.variable(kind, key))]


def _is_set(variable: str) -> bool:
    return bool(os.environ.get(variable, "").strip())


def _data(seen: ChannelStatus) -> Mapping[str, Any]:
    entry, kind, down = seen.entry, seen.kind, seen.lease.down if seen.lease is not None else None
    secrets = _secrets(entry, kind) if kind is not None else ()
    limit = entry.timeout(kind) if kind is not None else None
    return {
        "name": entry.name,
        "kind": entry.use,
        "place": (entry.place(kind) or None) if kind is not None else None,
        "people": [one.name for one in actors(entry, seen.settings).values()] if kind is not None else [],
        "answers": kind.answers if kind is not None else None,
        "workers": list(entry.workers),
        "wrong": _wrong(seen) or None,
        "timeout": limit.total_seconds() if limit is not None else None,
        "secrets": [{"variable": one, "set": _is_set(one)} for one in secrets],
        "process": {"pid": seen.process.pid, "host": seen.process.host.partition("/")[0]} if seen.process else None,
        "down": {"problem": safe(down.problem), "since": iso(down.since), "next_at": iso(down.due)}
        if down is not None
        else None,
        "failing": [one.subject.request for one in seen.failing],
    }
