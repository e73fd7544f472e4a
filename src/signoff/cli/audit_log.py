"""Print events of the audit log, for `signoff audit log`."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial

import click

from signoff.cli.terminal_text import clip, escaped_json, local, safe
from signoff.core.audit_text import account_of
from signoff.core.card import rules_after
from signoff.core.export import event_line
from signoff.core.moment import parse_duration
from signoff.core.record import Entry, timestamp
from signoff.errors import ServerFailed, StoreError, UnknownRequest, UnknownRun, WrongUse
from signoff.ports import Store, Transaction
from signoff.store_changes import changes

SHOWN = 50
"""How many events are shown by default."""
LONGEST = 120
"""Longest description of an event on a screen."""

AGAIN = 1.0
"""Seconds before a retry after a failed read."""
_PAGE = 500
_DISAGREEMENT = timedelta(minutes=5)

Line = Callable[[Entry], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class EventFilter:
    """Which events to print."""

    request: str = ""
    run: str = ""
    since: datetime | None = None
    limit: int | None = None

    async def resolved(self, store: Store) -> EventFilter:
        """Replace id prefixes by whole ids."""
        request = await _whole(store, self.request, UnknownRequest) if self.request else ""
        run = await _whole(store, self.run, UnknownRun) if self.run else ""
        return replace(self, request=request, run=run)


def moment(since: str | None) -> datetime | None:
    """Parse `--since`: a duration before now, or a date."""
    if since is None:
        return None
    try:
        if (span := parse_duration(since)) is not None:
            return datetime.now(UTC) - span
        return datetime.fromisoformat(since.strip()).astimezone(UTC)  # without a zone, it is local time
    except (ValueError, OverflowError) as error:
        what = f"--since {since!r} is not a time\n  write it as 90m, 2h, 3d, 2026-01-31 or 2026-01-31T12:00"
        raise WrongUse(what) from error


async def show_events(store: Store, choice: EventFilter, line: Line) -> int:
    """Print the selected events; return the number of the last event in the log."""
    seen, after = (await store.read(lambda tx: tx.record.head()))[0], 0
    if choice.since is not None:
        after = await _before(store, choice.since, seen)
    elif choice.limit is not None and not (choice.request or choice.run):
        after = max(0, seen - choice.limit)
    kept: deque[Entry] = deque(maxlen=choice.limit)
    async for entry in _events(store, choice, after):
        seen = max(seen, entry.seq)
        if choice.limit is None:
            click.echo(line(entry))
        else:
            kept.append(entry)
    for entry in kept:
        click.echo(line(entry))
    return seen


async def follow_events(store: Store, choice: EventFilter, line: Line, seen: int) -> None:
    """Print selected events as they happen, until interrupted."""
    problem = ""
    with changes(store.watch) as changed:
        while True:
            changed.clear()
            try:
                async for entry in _events(store, choice, seen):
                    click.echo(line(entry))
                    seen = entry.seq
                problem = ""
            except (StoreError, ServerFailed) as error:  # retry: it may work again, and nothing is missed meanwhile
                if not problem:
                    click.echo(f"signoff: {safe(str(error))}; retrying", err=True)
                problem = str(error)
                await asyncio.sleep(AGAIN)
                continue
            await changed.wait()


def json_line(entry: Entry) -> str:
    """An event as in an export, with hidden characters escaped, because it may be printed on a terminal."""
    return escaped_json(event_line(entry).decode().rstrip("\n"))


def readable_line(entry: Entry) -> str:
    """Number, time, kind, who, what, rules, and the request or run it belongs to."""
    told = account_of(entry, datetime.astimezone)
    about = " · ".join(safe(one) for one in (entry.request, entry.run) if one)
    parts = (
        f"{entry.seq:>6}",
        _clock(entry.at),
        f"{safe(entry.kind):<12}",
        safe(told.who),
        clip(safe(told.what), LONGEST),
        rules_after(told.what, safe(", ".join(told.rules))),
        click.style(f"[{about}]", dim=True) if about else "",
    )
    return "  ".join(filter(None, parts)).rstrip()


def _clock(at: str) -> str:
    """A time in local time; unchanged if it is not a time, because a tampered log is shown too."""
    try:
        return local(datetime.fromisoformat(at))
    except (ValueError, OverflowError):
        return safe(at)


async def _events(store: Store, choice: EventFilter, after: int) -> AsyncIterator[Entry]:
    since = timestamp(choice.since) if choice.since is not None else ""
    while True:
        look = partial(_entries, after=after, request=choice.request, run=choice.run)
        page = await store.read(look)
        for entry in page:
            if entry.at >= since:
                yield entry
        if len(page) < _PAGE:
            return
        after = page[-1].seq


def _entries(tx: Transaction, *, after: int, request: str, run: str) -> Sequence[Entry]:
    return tx.record.entries(after=after, limit=_PAGE, request=request, run=run)


async def _before(store: Store, since: datetime, head: int) -> int:
    """Find an event shortly before `since` by binary search. Times rise with numbers, except where clocks disagree."""
    low, high, wanted = 0, head, timestamp(since - _DISAGREEMENT)
    while low < high:
        middle = (low + high) // 2
        found = await store.read(lambda tx, middle=middle: tx.record.entries(after=middle, limit=1))
        if found and found[0].at < wanted:
            low = middle + 1
        else:
            high = middle
    return low


async def _whole(store: Store, prefix: str, unknown: type[UnknownRequest | UnknownRun]) -> str:
    """The id that begins with this prefix."""
    is_request = unknown is UnknownRequest

    def look(tx: Transaction) -> list[str]:
        return list((tx.requests if is_request else tx.runs).like(prefix, limit=50))

    found = await store.read(look)
    if prefix in found or len(found) == 1:
        return prefix if prefix in found else found[0]
    if found:
        some = ", ".join(found[:3]) + (" …" if len(found) > 3 else "")
        raise WrongUse(f"several IDs start with {prefix!r}: {some}\n  give more characters")
    raise unknown(f"no {'request' if is_request else 'run'} has an ID that starts with {prefix!r}")
