"""Somebody changes the record: an exported file, or the database itself. Every time it is found, and told where."""

from __future__ import annotations

import json
import random
import sqlite3
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from datetime import timedelta
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest
from tests.profiles import NIGHTLY
from tests.ready import ready
from tests.records import NOON, chain, drafts, rewritten

from signoff.broker.audit import export_store, verify_store
from signoff.broker.checkpoints import known_as, make_checkpoint, place_of
from signoff.core import export
from signoff.core.export import Exporter, Header, verify_export
from signoff.core.record import Checkpoint, Entry, EventDraft, Verified, signed_text, timestamp
from signoff.errors import RecordBroken, SignoffError
from signoff.store.signing_key import Keys, is_signed
from signoff.store.sqlite import SqliteStore

EDITS = 1_000 if NIGHTLY else 360
EVENTS = 240
ROUNDS = [0, *(pytest.param(part, marks=pytest.mark.nightly) for part in range(1, 10))]


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Keys:
    return Keys(tmp_path_factory.mktemp("keys"))


def signed(entry: Entry, keys: Keys) -> Checkpoint:
    at = timestamp(NOON)
    key, signature = keys.sign(signed_text(entry.seq, entry.hash, at))
    return Checkpoint(seq=entry.seq, hash=entry.hash, at=at, key=key, signature=signature)


def exported(entries: list[Entry], keys: Keys, every: int = 60) -> bytes:
    header = Header(store=entries[0].hash[:16], key=keys.public_key(make=True), at=timestamp(NOON))
    exporter = Exporter(header, is_signed)
    lines = [exporter.begin()]
    for entry in entries:
        lines.append(exporter.event(entry))
        if entry.seq % every == 0:
            lines.append(exporter.checkpoint(signed(entry, keys)))
    last, _ = exporter.end(lambda text: keys.sign(text)[1], events=len(entries))
    return b"".join((*lines, last))


@pytest.fixture(scope="module")
def file(keys: Keys) -> bytes:
    return exported(chain(EVENTS), keys)


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading a line has one outcome, ever; remembering it makes many files as cheap as their differences."""
    monkeypatch.setattr(export, "event_of", lru_cache(maxsize=4 * EVENTS)(export.event_of))


def verified(file: bytes) -> Verified:
    return verify_export(file.splitlines(keepends=True), is_signed).record


# --- one random edit ---


def flip_a_bit(file: bytes, chance: random.Random) -> bytes:
    at = chance.randrange(len(file))
    return file[:at] + bytes([file[at] ^ (1 << chance.randrange(8))]) + file[at + 1 :]


def change_a_byte(file: bytes, chance: random.Random) -> bytes:
    at = chance.randrange(len(file))
    return file[:at] + bytes([chance.randrange(256)]) + file[at + 1 :]


def change_a_letter(file: bytes, chance: random.Random) -> bytes:
    at = chance.randrange(len(file))
    return file[:at] + chance.choice(b'0123456789abcdefABCDEF-:"{},. ').to_bytes(1, "big") + file[at + 1 :]


def change_case(file: bytes, chance: random.Random) -> bytes:
    at = chance.randrange(len(file))
    return file[:at] + file[at : at + 40].swapcase() + file[at + 40 :]


def drop_bytes(file: bytes, chance: random.Random) -> bytes:
    at = chance.randrange(len(file))
    return file[:at] + file[at + chance.choice((1, 1, 2, 100, 5_000)) :]


def add_bytes(file: bytes, chance: random.Random) -> bytes:
    at = chance.randrange(len(file) + 1)
    return file[:at] + chance.choice((b" ", b"\n", b"0", b"\0", b"\r", b"{}\n", b"\xef\xbb\xbf")) + file[at:]


def swap_bytes(file: bytes, chance: random.Random) -> bytes:
    at = chance.randrange(len(file) - 1)
    return file[:at] + file[at + 1 : at + 2] + file[at : at + 1] + file[at + 2 :]


def cut(file: bytes, chance: random.Random) -> bytes:
    return file[: chance.randrange(len(file))]


def cut_the_beginning(file: bytes, chance: random.Random) -> bytes:
    return file[chance.randrange(1, len(file)) :]


def drop_a_line(file: bytes, chance: random.Random) -> bytes:
    lines = file.splitlines(keepends=True)
    del lines[chance.randrange(len(lines))]
    return b"".join(lines)


def drop_a_stretch(file: bytes, chance: random.Random) -> bytes:
    lines = file.splitlines(keepends=True)
    first = chance.randrange(len(lines))
    del lines[first : first + chance.randrange(2, 50)]
    return b"".join(lines)


def swap_lines(file: bytes, chance: random.Random) -> bytes:
    lines = file.splitlines(keepends=True)
    one = chance.randrange(len(lines))
    other = chance.choice((max(one - 1, 0), chance.randrange(len(lines))))
    lines[one], lines[other] = lines[other], lines[one]
    return b"".join(lines)


def double_a_line(file: bytes, chance: random.Random) -> bytes:
    lines = file.splitlines(keepends=True)
    lines.insert(chance.randrange(len(lines) + 1), chance.choice(lines))
    return b"".join(lines)


def insert_a_line(file: bytes, chance: random.Random) -> bytes:
    """A forged event in the right place, with a hash of its own."""
    lines = file.splitlines(keepends=True)
    at = chance.randrange(1, len(lines))
    forged = chain(1, seed=chance.randrange(1_000))[0]
    lines.insert(at, export.event_line(forged._replace(seq=at)))
    return b"".join(lines)


def replace_a_line(file: bytes, chance: random.Random) -> bytes:
    lines = file.splitlines(keepends=True)
    lines[chance.randrange(len(lines))] = chance.choice(lines)
    return b"".join(lines)


def swap_fields(file: bytes, chance: random.Random) -> bytes:
    """Two values of one line, in canonical JSON."""
    lines = file.splitlines(keepends=True)
    at = chance.randrange(len(lines))
    value = json.loads(lines[at])
    inside = next((part for part in value.values() if isinstance(part, dict) and len(part) > 1), value)
    part = chance.choice((value, inside)) if len(value) > 1 else inside
    one, other = chance.sample(sorted(part), 2)
    part[one], part[other] = part[other], part[one]
    lines[at] = f"{export.canonical(value)}\n".encode()
    return b"".join(lines)


def swap_between_lines(file: bytes, chance: random.Random) -> bytes:
    """The same field of two events."""
    lines = file.splitlines(keepends=True)
    events = [at for at, line in enumerate(lines) if b'"seq":' in line and b'"prev":' in line]
    one, other = chance.sample(events, 2)
    first, second = json.loads(lines[one]), json.loads(lines[other])
    field = chance.choice(sorted(first))
    first[field], second[field] = second[field], first[field]
    lines[one], lines[other] = (f"{export.canonical(value)}\n".encode() for value in (first, second))
    return b"".join(lines)


def rewrite_an_event(file: bytes, chance: random.Random) -> bytes:
    """Another body, with the hash that belongs to it."""
    lines = file.splitlines(keepends=True)
    events = [at for at, line in enumerate(lines) if b'"prev":' in line]
    at = chance.choice(events)
    entry = export.event_of(lines[at])
    [forged] = rewritten([entry], {entry.seq: {"body": '{"approved":true,"by":"ana"}'}})
    forged = forged._replace(prev=entry.prev)
    link = export_hash(forged)
    lines[at] = export.event_line(forged._replace(hash=link))
    return b"".join(lines)


def export_hash(entry: Entry) -> str:
    from signoff.core.record import hash_of

    return hash_of(entry.seq, entry.at, entry.kind, entry.request, entry.run, entry.digests, entry.prev)


EDITORS: tuple[Callable[[bytes, random.Random], bytes], ...] = (
    flip_a_bit,
    change_a_byte,
    change_a_letter,
    change_case,
    drop_bytes,
    add_bytes,
    swap_bytes,
    cut,
    cut_the_beginning,
    drop_a_line,
    drop_a_stretch,
    swap_lines,
    double_a_line,
    insert_a_line,
    replace_a_line,
    swap_fields,
    swap_between_lines,
    rewrite_an_event,
)


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("part", ROUNDS)
def test_random_edits_are_all_found(file: bytes, part: int) -> None:
    chance, missed, tried = random.Random(part), list[str](), Counter[str]()
    while tried.total() < EDITS:
        editor = EDITORS[tried.total() % len(EDITORS)]
        spoiled = editor(file, chance)
        if spoiled == file:
            continue
        tried[editor.__name__] += 1
        try:
            verified(spoiled)
        except SignoffError:
            continue
        missed.append(editor.__name__)
    assert missed == []
    assert len(tried) == len(EDITORS)


def test_the_file_itself_is_fine(file: bytes) -> None:
    assert verified(file).events == EVENTS


@pytest.mark.usefixtures("quick")
def test_every_byte_at_the_end_counts(file: bytes) -> None:
    last = len(file.splitlines(keepends=True)[-1])
    for cut_off in {*range(1, last, 1 if NIGHTLY else 5), last, last + 1}:
        with pytest.raises(RecordBroken):
            verified(file[:-cut_off])


def test_the_first_bad_event_is_named(file: bytes) -> None:
    chance = random.Random(7)
    lines = file.splitlines(keepends=True)
    numbers = {at: json.loads(line)["seq"] for at, line in enumerate(lines) if b'"prev":' in line}
    for at, seq in chance.sample(sorted(numbers.items()), 15):
        spoiled = [*lines]
        spoiled[at] = lines[at].replace(b'"tool":"pay"', b'"tool":"pry"').replace(b'\\"tool\\":\\"pay\\"', b"")
        with pytest.raises(RecordBroken) as raised:
            verified(b"".join(spoiled))
        assert raised.value.seq == seq
        assert str(seq) in str(raised.value)


def test_a_forger_with_a_key_of_their_own_is_found_by_who_knows_the_right_one(
    keys: Keys, tmp_path: Path, file: bytes
) -> None:
    forger = Keys(tmp_path / "forger")
    forged = exported(rewritten(chain(EVENTS), {7: {"kind": "ran"}}), forger)
    made = verify_export(forged.splitlines(keepends=True), is_signed)
    assert made.key == forger.public_key() != keys.public_key(), "it is whole, and signed by somebody else"


@pytest.mark.parametrize("spelling", [str.upper, lambda text: f" {text[1:]}", lambda text: text[:-2]])
def test_a_signature_has_one_spelling(keys: Keys, spelling: Callable[[str], str]) -> None:
    key, signature = keys.sign(b"text")
    assert is_signed(key, signature, b"text")
    assert not is_signed(key, spelling(signature), b"text")
    assert not is_signed(spelling(key), signature, b"text")
    assert not is_signed(key, signature, b"texT")
    assert not is_signed("ff" * 32, signature, b"text"), "not even a point on the curve"


# --- the database ---


class Machine:
    """A store, the key that signs its record, and somebody who can write to the file."""

    def __init__(self, directory: Path) -> None:
        self.file = ready(directory / "signoff.db")
        self.keys = Keys(directory / "keys")
        self.now = NOON

    async def write(self, made: list[EventDraft]) -> None:
        with closing(SqliteStore(self.file)) as store:
            await store.write("test", lambda tx: tx.record.append(made))

    async def sign(self) -> Checkpoint | None:
        self.now += timedelta(minutes=1)
        with closing(SqliteStore(self.file)) as store:
            return await make_checkpoint(store, self.keys, self.now)

    async def verify(self) -> Verified:
        with closing(SqliteStore(self.file)) as store:
            return await verify_store(store, self.keys, is_signed)

    async def export(self) -> bytes:
        written: list[bytes] = []
        with closing(SqliteStore(self.file)) as store:
            await export_store(store, self.keys, is_signed, self.now, written.append)
        return b"".join(written)

    async def entries(self) -> list[Entry]:
        with closing(SqliteStore(self.file)) as store:
            return list(await store.read(lambda tx: tx.record.entries()))

    def tamper(self, *statements: str, **values: Any) -> None:
        with closing(sqlite3.connect(self.file)) as connection, connection:
            for statement in statements:
                connection.execute(statement, values)

    async def replace_all(self, entries: list[Entry]) -> None:
        """Other events, a head that fits, and no checkpoints."""
        with closing(sqlite3.connect(self.file)) as connection, connection:
            connection.execute("delete from events")
            connection.execute("delete from checkpoints")
            for one in entries:
                connection.execute(f"insert into events values ({', '.join('?' * len(one))})", one)
            connection.execute("update chain set seq = ?, hash = ?", (entries[-1].seq, entries[-1].hash))

    async def broken(self) -> tuple[int, str]:
        with pytest.raises(RecordBroken) as raised:
            await self.verify()
        return raised.value.seq, str(raised.value)


@pytest.fixture
async def machine(tmp_path: Path) -> Machine:
    """Forty events, signed after twenty and after thirty."""
    made = Machine(tmp_path)
    events = drafts(40)
    await made.write(events[:20])
    await made.sign()
    await made.write(events[20:30])
    await made.sign()
    await made.write(events[30:])
    return made


async def test_a_database_that_nobody_touched(machine: Machine) -> None:
    found = await machine.verify()
    assert found.events == 40
    assert found.signed == {machine.keys.public_key(): 30}


REST = "at, kind, request, run, body, salts, digests, prev, hash"
FORGERIES = {
    "a value": ("update events set body = replace(body, 'pay', 'pry') where seq = 7", 7),
    "a salt": ("update events set salts = replace(salts, '1', '2') where seq = 7", 7),
    "a digest": ("update events set digests = replace(digests, '1', '2') where seq = 7", 7),
    "a field added": ("update events set body = replace(body, '{', '{\"a\":1,') where seq = 7", 7),
    "a body without its salts": ("update events set salts = '{}' where seq = 7", 7),
    "salts without a body": ("update events set body = '{}' where seq = 7", 7),
    "a time": ("update events set at = '2020-01-01T00:00:00.000000Z' where seq = 7", 7),
    "a kind": ("update events set kind = 'ran' where seq = 7", 7),
    "a request": ("update events set request = 'another' where seq = 7", 7),
    "a run": ("update events set run = 'another' where seq = 7", 7),
    "a hash": ("update events set hash = prev where seq = 7", 7),
    "a link": ("update events set prev = hash where seq = 7", 7),
    "a blob": ("update events set body = cast(body as blob) where seq = 7", 7),
    "no text": ("update events set body = cast(x'ff00fe' as text) where seq = 7", 7),
    "removed": ("delete from events where seq = 7", 7),
    "removed at the beginning": ("delete from events where seq <= 7", 1),
    "removed at the end": ("delete from events where seq > 37", 38),
    "moved": ("update events set seq = 1000 where seq = 7", 7),
    "added before the first": (
        f"insert into events select 0, {REST} from events where seq = 7",
        0,
    ),
    "added after the last": (
        f"insert into events select 41, {REST} from events where seq = 40",
        41,
    ),
    "all of it": ("delete from events", 1),
    "the head": ("update chain set seq = 39", 41),
    "the head's hash": ("update chain set hash = 'x'", 41),
    "a checkpoint's event": ("update checkpoints set seq = 21 where seq = 20", 21),
    "a checkpoint's hash": ("update checkpoints set hash = (select hash from events where seq = 5) where seq = 20", 20),
    "a checkpoint's time": ("update checkpoints set at = '2020-01-01T00:00:00.000000Z' where seq = 20", 20),
    "a checkpoint's key": ("update checkpoints set key = upper(key) where seq = 20", 20),
    "a checkpoint's signature": ("update checkpoints set signature = upper(signature) where seq = 20", 20),
    "a checkpoint's number": ("update checkpoints set seq = 'x' where seq = 20", 0),
}


@pytest.mark.parametrize("forgery", FORGERIES)
async def test_a_forged_row_is_found(machine: Machine, forgery: str) -> None:
    statement, first = FORGERIES[forgery]
    machine.tamper(statement)
    assert (await machine.broken())[0] == first


async def test_bodies_that_were_erased_leave_a_record_that_verifies(machine: Machine) -> None:
    machine.tamper("update events set body = '{}', salts = '{}' where seq in (7, 20, 35)")
    found = await machine.verify()
    assert (found.events, found.erased) == (40, 3)
    assert found.signed == {machine.keys.public_key(): 30}


async def test_reordered_rows_are_found(machine: Machine) -> None:
    machine.tamper(
        "update events set seq = -1 where seq = 7",
        "update events set seq = 7 where seq = 8",
        "update events set seq = 8 where seq = -1",
    )
    assert (await machine.broken())[0] == 7


CUT = (
    "delete from events where seq > 25",
    "update chain set seq = 25, hash = (select hash from events where seq = 25)",
)


async def test_a_cut_tail_is_found_by_the_stores_own_checkpoints(machine: Machine) -> None:
    machine.tamper(*CUT)
    seq, text = await machine.broken()
    assert seq == 26
    assert "truncated after event 25" in text


async def test_a_cut_tail_without_its_checkpoints_is_found_by_the_copy(machine: Machine) -> None:
    machine.tamper(*CUT, "delete from checkpoints where seq > 25")
    seq, text = await machine.broken()
    assert seq == 26
    assert "truncated after event 25" in text
    assert str(machine.keys.directory) in text


async def test_a_record_that_was_emptied_is_found(machine: Machine) -> None:
    machine.tamper(
        "delete from events", "delete from checkpoints", "update chain set seq = 0, hash = printf('%064d', 0)"
    )
    seq, text = await machine.broken()
    assert seq == 1
    assert "truncated whole" in text


async def test_recomputed_hashes_are_found_by_the_signature(machine: Machine) -> None:
    forged = rewritten(await machine.entries(), {25: {"kind": "ran"}})
    kept = sqlite3.connect(machine.file).execute("select seq, hash, at, key, signature from checkpoints").fetchall()
    await machine.replace_all(forged)
    with closing(sqlite3.connect(machine.file)) as connection, connection:
        connection.executemany("insert into checkpoints (seq, hash, at, key, signature) values (?, ?, ?, ?, ?)", kept)
    seq, text = await machine.broken()
    assert seq == 21, "up to 20 it is vouched for"
    assert "not what was signed" in text


async def test_and_by_the_copy_where_the_signatures_were_removed(machine: Machine) -> None:
    await machine.replace_all(rewritten(await machine.entries(), {25: {"kind": "ran"}}))
    assert "not what was signed" in (await machine.broken())[1]


async def test_a_record_exchanged_from_its_first_event_is_found_by_its_place(machine: Machine) -> None:
    await machine.replace_all(rewritten(await machine.entries(), {1: {"kind": "ran"}}))
    assert "not what was signed" in (await machine.broken())[1]


async def test_a_fresh_database_in_the_same_place_is_found(machine: Machine) -> None:
    for file in machine.file.parent.glob("signoff.db*"):
        file.unlink()
    await machine.write(drafts(40, seed=5))
    assert "another log" in (await machine.broken())[1]


async def test_a_forged_record_is_never_signed(machine: Machine) -> None:
    before = machine.keys.newest(await _name(machine))
    for forged in (
        rewritten(await machine.entries(), {25: {"kind": "ran"}}),
        rewritten(await machine.entries(), {1: {"kind": "ran"}}),
        (await machine.entries())[:25],
    ):
        await machine.replace_all(forged)
        for act in (machine.sign, machine.export):
            with pytest.raises(RecordBroken, match="is not the one that this machine signed"):
                await act()
        assert sqlite3.connect(machine.file).execute("select count(*) from checkpoints").fetchone() == (0,)
    assert machine.keys.newest(await _name(machine)) == before


async def _name(machine: Machine) -> str:
    with closing(SqliteStore(machine.file)) as store:
        return (await store.read(lambda tx: known_as(tx, place_of(store))))[-1]


@pytest.mark.parametrize("forgery", ["a value", "removed", "removed at the end", "a checkpoint's signature"])
async def test_what_is_broken_is_not_exported(machine: Machine, forgery: str) -> None:
    machine.tamper(FORGERIES[forgery][0])
    with pytest.raises(RecordBroken):
        await machine.export()


async def test_an_export_of_a_database_is_whole(machine: Machine) -> None:
    found = verified(await machine.export())
    assert found.events == 40
    assert found.signed == {machine.keys.public_key(): 40}


async def test_a_copy_that_was_changed_is_found(machine: Machine) -> None:
    copy = machine.keys.copy_of(await _name(machine))
    copy.write_text(copy.read_text().replace('"seq":30', '"seq":29'))
    assert "wrong signature" in (await machine.broken())[1]
