"""Signing the end of the record: when, what, and never what is not what was signed before."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest
from tests.ready import ready
from tests.records import NOON, chain, checkpoint, drafts

from signoff.broker import audit
from signoff.broker.audit import export_store, verify_store
from signoff.broker.checkpoints import AGE, EVENTS, checkpoint_if_due, is_due, known_as, make_checkpoint, place_of
from signoff.core.export import verify_export
from signoff.core.record import Checkpoint, signed_text
from signoff.errors import RecordBroken, WrongUse
from signoff.ports import Store
from signoff.store.memory_store import MemoryStore
from signoff.store.signing_key import Keys, is_signed
from signoff.store.sqlite import SqliteStore

LAST = checkpoint(chain(10)[-1])


@pytest.fixture
def keys(tmp_path: Path) -> Keys:
    return Keys(tmp_path / "keys")


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    match request.param:
        case "memory":
            made: Store = MemoryStore(record=True)
        case "sqlite":
            made = SqliteStore(ready(tmp_path / "signoff.db"))
        case _:
            from signoff.store.postgres import PostgresStore

            made = PostgresStore(request.getfixturevalue("postgres_store"))
    with closing(made) as opened:
        yield opened


async def append(store: Store, count: int, seed: int = 1) -> None:
    made = drafts(count, seed)
    await store.write("test", lambda tx: tx.record.append(made))


async def checkpoints(store: Store) -> list[Checkpoint]:
    return list(await store.read(lambda tx: tx.checkpoints.all()))


@pytest.mark.parametrize(
    ("head", "later", "due"),
    [
        (10, timedelta(days=9), False),
        (11, timedelta(0), False),
        (11, AGE - timedelta(microseconds=1), False),
        (11, AGE, True),
        (9 + EVENTS, timedelta(0), False),
        (10 + EVENTS, timedelta(0), True),
        (5, timedelta(0), True),
        (0, timedelta(0), False),
    ],
)
def test_when_a_checkpoint_is_due(head: int, later: timedelta, due: bool) -> None:
    assert is_due(head, LAST, NOON + later) is due


def test_the_first_checkpoint_is_due_at_once() -> None:
    assert is_due(1, None, NOON)
    assert not is_due(0, None, NOON)


async def test_a_checkpoint_signs_the_end(store: Store, keys: Keys) -> None:
    await append(store, 5)
    made = await make_checkpoint(store, keys, NOON)
    assert made is not None
    head = await store.read(lambda tx: tx.record.head())
    assert (made.seq, made.hash) == head
    assert is_signed(made.key, made.signature, signed_text(made.seq, made.hash, made.at))
    assert await checkpoints(store) == [made]
    for name in await store.read(lambda tx: known_as(tx, place_of(store))):
        assert keys.newest(name) == made


async def test_only_when_something_was_written_since(store: Store, keys: Keys) -> None:
    assert await make_checkpoint(store, keys, NOON) is None
    assert not keys.directory.exists(), "nothing to sign: no key is made"
    await append(store, 5)
    assert await make_checkpoint(store, keys, NOON) is not None
    assert await make_checkpoint(store, keys, NOON + timedelta(days=1)) is None
    await append(store, 1)
    assert await make_checkpoint(store, keys, NOON) is not None
    assert [one.seq for one in await checkpoints(store)] == [5, 6]


async def test_what_was_left_for_later_is_signed_too(store: Store, keys: Keys) -> None:
    await append(store, 5)
    store.later("test", lambda tx: tx.record.append(drafts(2)))
    made = await make_checkpoint(store, keys, NOON)
    assert made is not None
    assert made.seq == 7


async def test_time_makes_one_due(store: Store, keys: Keys) -> None:
    await append(store, 5)
    assert await checkpoint_if_due(store, keys, NOON) is not None
    await append(store, 5)
    assert await checkpoint_if_due(store, keys, NOON + timedelta(minutes=1)) is None
    assert await checkpoint_if_due(store, keys, NOON + AGE) is not None
    assert await checkpoint_if_due(store, keys, NOON + AGE * 9) is None


async def test_two_machines_sign_one_store(store: Store, keys: Keys, tmp_path: Path) -> None:
    other = Keys(tmp_path / "other")
    await append(store, 5)
    await make_checkpoint(store, keys, NOON)
    await append(store, 5)
    await make_checkpoint(store, other, NOON)
    await append(store, 5)
    await make_checkpoint(store, keys, NOON)
    found = await verify_store(store, other, is_signed)
    assert found.signed == {keys.public_key(): 15, other.public_key(): 10}


async def test_a_machine_does_not_sign_away_what_it_signed_before(store: Store, keys: Keys) -> None:
    await append(store, 5)
    made = await make_checkpoint(store, keys, NOON)
    assert made is not None
    [name, *_] = await store.read(lambda tx: known_as(tx, place_of(store)))
    keys.keep(name, made._replace(seq=6))
    await append(store, 5)
    with pytest.raises(RecordBroken, match=r"event 6 is not the one .* move .* away") as raised:
        await make_checkpoint(store, keys, NOON)
    assert raised.value.seq == 6
    assert await checkpoints(store) == [made]


async def test_a_store_in_memory_that_keeps_no_record(keys: Keys) -> None:
    with closing(MemoryStore()) as store:
        await append(store, 5)
        assert await make_checkpoint(store, keys, NOON) is None
        with pytest.raises(WrongUse, match="has no audit log"):
            await verify_store(store, keys, is_signed)


async def test_a_long_record_is_walked_page_by_page(store: Store, keys: Keys, monkeypatch: pytest.MonkeyPatch) -> None:
    page = 100
    monkeypatch.setattr(audit, "PAGE", page)
    count = 2 * page
    await append(store, count)
    seen: list[int] = []
    found = await verify_store(store, keys, is_signed, progress=seen.append)
    assert found.events == count
    assert seen == [page, 2 * page, 2 * page]
    written: list[bytes] = []
    made = await export_store(store, keys, is_signed, NOON, written.append)
    assert made.record.events == count
    checked = verify_export(b"".join(written).splitlines(keepends=True), is_signed)
    assert checked.key == keys.public_key()
    assert checked.record.events == count


async def test_an_empty_record_is_exported_too(store: Store, keys: Keys) -> None:
    written: list[bytes] = []
    await export_store(store, keys, is_signed, NOON, written.append)
    assert verify_export(written, is_signed).record.events == 0
