"""Records to check and to spoil: a chain of rich events, and a signature without a key."""

from __future__ import annotations

import hmac
import json
import random
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Any

from signoff.core import record
from signoff.core.export import Exporter, Header
from signoff.core.record import START, Checkpoint, Entry, EventDraft, signed_text, timestamp

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
KINDS = ("allowed", "asked", "voted", "settled", "claimed", "ran", "grant used", "run ended")
ODD: Sequence[Any] = (
    'Ünïcode “quoted” \\ " \n\t\u2028 🎉',
    10**30,
    -(2**53) - 1,
    1.5,
    1e-7,
    1e21,
    5.0,
    -0.0,
    None,
    True,
    [],
    {},
    {"é": 1, "\U00010000": 2, "\uffff": 3, "z": [{"a": [1, "n"]}]},
    "10n",
)


def drafts(count: int, seed: int = 1) -> list[EventDraft]:
    """Events of every kind, with all sorts of values."""
    chance = random.Random(seed)
    made: list[EventDraft] = []
    for number in range(count):
        body: dict[str, Any] = {
            "by": chance.choice(["ana", "ben", "Zoë"]),
            "tool": "pay",
            "args": {"amount": chance.randrange(10**6), "to": f"account {chance.randrange(99)}"},
            "rules": [f"rule-{chance.randrange(9)}"],
            "value": ODD[number % len(ODD)],
            "why": "it moves money",
        }
        at = NOON + timedelta(seconds=number, microseconds=chance.randrange(10**6))
        request = f"req{number // 4:07}" if number % 3 else ""
        made.append(EventDraft(kind=KINDS[number % len(KINDS)], at=at, request=request, run="run0000001", body=body))
    return made


def linked(draft: EventDraft, seq: int, prev: str) -> Entry:
    """With salt that is the same every time."""
    return record.linked(draft, seq, prev, random.Random(seq).randbytes(record.SALT * len(draft.body)))


def chain(count: int, seed: int = 1) -> list[Entry]:
    entries: list[Entry] = []
    for number, draft in enumerate(drafts(count, seed), start=1):
        entries.append(linked(draft, number, entries[-1].hash if entries else START))
    return entries


def rewritten(entries: Sequence[Entry], change: dict[int, dict[str, Any]]) -> list[Entry]:
    """The chain with fields of some events changed, and every hash made anew: what a careful forger writes."""

    from signoff.core.record import hash_of

    forged: list[Entry] = []
    for entry in entries:
        new = entry._replace(prev=forged[-1].hash if forged else START, **change.get(entry.seq, {}))
        if "body" in change.get(entry.seq, {}):
            made = linked(EventDraft(kind=new.kind, at=NOON, body=json.loads(new.body)), new.seq, START)
            new = new._replace(body=made.body, salts=made.salts, digests=made.digests)
        link = hash_of(new.seq, new.at, new.kind, new.request, new.run, new.digests, new.prev)
        forged.append(new._replace(hash=link))
    return forged


KEY = "ab" * 32


def seal(key: str, text: bytes) -> str:
    """A stand-in for a signature: whoever knows the public key can make it."""
    return hmac.new(key.encode(), text, sha256).hexdigest() * 2


def is_sealed(key: str, signature: str, text: bytes) -> bool:
    return signature == seal(key, text)


def checkpoint(entry: Entry, key: str = KEY, at: datetime = NOON) -> Checkpoint:
    when = timestamp(at)
    signature = seal(key, signed_text(entry.seq, entry.hash, when))
    return Checkpoint(seq=entry.seq, hash=entry.hash, at=when, key=key, signature=signature)


def exported(entries: Sequence[Entry], *, every: int = 50, key: str = KEY) -> bytes:
    """A file with a checkpoint every so many events, sealed."""
    store = entries[0].hash[:16] if entries else ""
    exporter = Exporter(Header(store=store, key=key, at=timestamp(NOON)), is_sealed)
    lines = [exporter.begin()]
    for entry in entries:
        lines.append(exporter.event(entry))
        if entry.seq % every == 0:
            lines.append(exporter.checkpoint(checkpoint(entry, key)))
    last, _ = exporter.end(lambda text: seal(key, text), events=len(entries))
    return b"".join((*lines, last))
