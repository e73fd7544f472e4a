"""Checks of `signoff doctor` on the store: its integrity, its grants and its audit log."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING

from signoff.broker.audit import verify_store
from signoff.broker.checkpoints import known_as, place_of
from signoff.broker.switch import said_by
from signoff.cli.doctor_findings import ERROR, NOTE, WARNING, Finding, Severity
from signoff.cli.loops import run
from signoff.cli.terminal_text import count
from signoff.core.halt import halt_in
from signoff.core.moment import span
from signoff.core.record import is_link
from signoff.errors import RecordBroken, SignoffError
from signoff.policy.grant_text import grant_line
from signoff.policy.phrases import listed
from signoff.policy.remembered import UNREADABLE, is_unreadable
from signoff.store.schema import CREATED_LATER, VERSION
from signoff.store.signing_key import Keys, is_signed
from signoff.store.store_factory import open_store
from signoff.store.store_urls import masked
from signoff.store.upkeep import check
from signoff.wiring.stores import chosen_store

if TYPE_CHECKING:
    from datetime import timedelta

    from signoff.config import Settings
    from signoff.core.grant import Grant
    from signoff.ports import Store

VERIFIED_WHOLE = 5_000
"""Up to this many events the whole audit log is verified; of a longer one, only its end."""


@dataclass(frozen=True, slots=True)
class StoreFacts:
    """What was found in the store."""

    name: str
    """Its address, without the password."""
    file: str = ""
    """Its path on disk; empty for a server."""
    state: str = ""
    """Its state in a few words."""
    grants: Sequence[Grant] = ()
    findings: list[Finding] = field(default_factory=list[Finding])


@dataclass(frozen=True, slots=True)
class KnownTool:
    """A tool of some worker, as grants identify it."""

    name: str
    toolset: str | None
    schema_hash: str


def look_at_store(option: str | None, settings: Settings) -> StoreFacts:
    """Open the store, if it exists, and check it; nothing is created or changed."""
    chosen = chosen_store(option, settings)
    url, root, file = chosen.url, chosen.root, chosen.file
    name = masked(url)
    if url.startswith("memory:"):
        what = "requests and answers are kept in memory, and lost when the process ends"
        return StoreFacts(
            name, state="in memory", findings=[_finding(WARNING, "store", what, name, "name a file or a server")]
        )
    if chosen.is_missing:
        return StoreFacts(name, file, f"not created yet: {CREATED_LATER}")
    try:
        problems = check(url, root=root)
        if problems and all(one.endswith(CREATED_LATER) for one in problems):
            return StoreFacts(name, file, f"not created yet: {CREATED_LATER}")
        if problems:
            return StoreFacts(
                name, file, "not well", findings=[_finding(ERROR, "store", *_split(one, name)) for one in problems]
            )
        return _looked_into(url, str(root), name, file)
    except SignoffError as error:
        return StoreFacts(name, file, "cannot be used", findings=[_finding(ERROR, "store", *_split(str(error), name))])


def _looked_into(url: str, root: str, name: str, file: str) -> StoreFacts:
    with closing(open_store(url, root=root)) as store:
        grants, findings, events = run(_read(store))
        findings += _clock(store.clock_lead)
    live = [one for one in grants if one.revoked_at is None]
    return StoreFacts(name, file, f"schema version {VERSION}, {events}", live, findings)


def _clock(lead: timedelta | None) -> Iterator[Finding]:
    """A clock that is far off: deadlines use the store's clock, but screens and logs use this machine's."""
    if lead:
        seconds = lead.total_seconds()
        off = f"{span(abs(seconds))} {'behind' if seconds > 0 else 'ahead of'}"
        what = f"the clock of this machine is {off} the store's clock, which deadlines use"
        yield _finding(
            WARNING,
            "clock",
            what,
            fix="synchronise it, for example with NTP: times shown on this machine are wrong, too",
        )


async def _read(store: Store) -> tuple[Sequence[Grant], list[Finding], str]:
    grants, halted = await store.read(lambda tx: (tx.grants.all(), halt_in(tx.settings.get)))
    said = said_by(halted, datetime.astimezone) if halted else ""
    findings = [_finding(WARNING, "halted", f"nothing new runs: {said}")] if said else []
    broken, events = await _record(store)
    return grants, [*findings, *broken], events


async def _record(store: Store) -> tuple[list[Finding], str]:
    """Verify the audit log: all of it if that is quick, else its end and the event that this machine signed last."""
    (seq, link), last, names = await store.read(
        lambda tx: (
            tx.record.head(),
            tx.record.entries(after=tx.record.head()[0] - 1, limit=1),
            known_as(tx, place_of(store)),
        )
    )
    if not seq:
        return [], "an empty audit log"
    keys, events = Keys(), count(seq, "event")
    try:
        if seq <= VERIFIED_WHOLE:
            await verify_store(store, keys, is_signed)
            return [], f"an audit log of {events}, verified"
        if not last or last[0].hash != link or not is_link(last[0]):
            raise RecordBroken(f"event {seq} is missing or was changed", seq=seq)
        for name in names:
            if (copy := keys.newest(name)) is not None:
                signed = await store.read(lambda tx, upto=copy.seq: tx.record.entries(after=upto - 1, limit=1))
                if not signed or signed[0].seq != copy.seq or signed[0].hash != copy.hash:
                    raise RecordBroken(f"event {copy.seq} is not the one that this machine signed", seq=copy.seq)
    except SignoffError as error:
        what, fix = f"the audit log does not verify: {error}", "run: signoff audit verify"
        return [_finding(ERROR, "record", what, fix=fix)], f"an audit log of {events} that does not verify"
    return [], f"an audit log of {events}, its end verified (in full: signoff audit verify)"


def grant_findings(
    grants: Sequence[Grant], tools: Collection[KnownTool], at: datetime, *, all_known: bool
) -> Iterator[Finding]:
    """Grants that are inactive, now or for good."""
    for grant in grants:
        if why := why_asleep(grant, tools, at, all_known=all_known):
            what = f"a remembered answer is inactive: {why}: {grant_line(grant, zone=datetime.astimezone)}"
            fix = f"forget it: signoff grants revoke {grant.id}"
            yield _finding(NOTE, "grant-asleep", what, fix=fix)


def why_asleep(grant: Grant, tools: Collection[KnownTool], at: datetime, *, all_known: bool) -> str:
    """Why a grant cannot apply now, by itself or because its tool is gone or has changed; empty if it can."""
    if why := grant.why_asleep(None, at, datetime.astimezone):
        return why
    if is_unreadable(grant):
        return UNREADABLE
    same = [one for one in tools if one.name == grant.tool]
    if not same:
        return "no worker has its tool" if all_known else ""
    there = [one for one in same if one.toolset == grant.toolset]
    if not there:
        return f"its tool is now in {listed(sorted({one.toolset or 'no toolset' for one in same}))}"
    if all(one.schema_hash != grant.schema_hash for one in there):
        return "its tool's parameters have changed"
    return ""


def _split(text: str, name: str) -> tuple[str, str, str]:
    """Split a message into what is wrong, where, and the fix."""
    what, _, fix = text.replace("\n  ", "; ").partition("; ")
    return what, name, fix


def _finding(severity: Severity, check: str, what: str, place: str = "", fix: str = "") -> Finding:
    return Finding(severity=severity, check=check, what=what, place=place, fix=fix)
