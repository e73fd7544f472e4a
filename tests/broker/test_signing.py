"""The end of a run is signed by the write that ends it; copies of signatures follow, and none is lost at an exit."""

from __future__ import annotations

import json
import sqlite3
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests import start
from tests.ready import ready

from signoff.broker import Broker
from signoff.broker.checkpoints import known_as, place_of
from signoff.core.record import Checkpoint
from signoff.core.run import RunState, SavedRun
from signoff.store.signing_key import Keys
from signoff.store.sqlite import SqliteStore
from signoff.testing import FakeClock


class CountedKeys(Keys):
    """A key that knows how often a copy was written."""

    kept: list[tuple[str, int]]

    def keep(self, store: str, checkpoint: Checkpoint) -> None:
        self.kept.append((store, checkpoint.seq))
        super().keep(store, checkpoint)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    made = SqliteStore(ready(tmp_path / "s.db"))
    yield made
    made.close()


@pytest.fixture
def keys(tmp_path: Path) -> CountedKeys:
    made = CountedKeys(tmp_path / "keys")
    made.kept = []
    return made


@pytest.fixture
def broker(store: SqliteStore, keys: CountedKeys) -> Broker:
    return Broker(store, FakeClock(), signer=keys)


async def ended(broker: Broker, run_id: str) -> None:
    run = await broker.runs.begin(SavedRun(id=run_id, prompt="go"))
    await broker.runs.end(run.id, run.epoch, RunState.DONE, "done")


async def signed(broker: Broker) -> tuple[int, int]:
    """The last event, and the last that is signed."""
    head, made = await broker.store.read(lambda tx: (tx.record.head()[0], tx.checkpoints.all()))
    return head, max((one.seq for one in made), default=0)


async def test_the_write_that_ends_a_run_signs_it(broker: Broker, store: SqliteStore) -> None:
    run = await broker.runs.begin(SavedRun(id="run1", prompt="go"))
    before = store.commits
    await broker.runs.end(run.id, run.epoch, RunState.DONE, "done")
    assert store.commits == before + 1
    head, last = await signed(broker)
    assert head == last > 0


async def test_copies_are_written_together(broker: Broker, keys: CountedKeys) -> None:
    for number in range(5):
        await ended(broker, f"run{number}")
    copies = broker.signing._copies
    assert copies is not None
    copies.write()
    head, _ = await signed(broker)
    names = await broker.store.read(lambda tx: known_as(tx, place_of(broker.store)))
    assert keys.kept == [(name, head) for name in names], "once for all five"
    assert [newest.seq for name in names if (newest := keys.newest(name))] == [head, head]
    copies.write()
    assert len(keys.kept) == 2, "nothing is new"


async def test_a_record_that_was_rewritten_is_not_signed_and_the_run_ends_all_the_same(
    broker: Broker, store: SqliteStore, keys: CountedKeys
) -> None:
    await ended(broker, "run1")
    assert broker.signing._copies is not None
    broker.signing._copies.write()
    run = await broker.runs.begin(SavedRun(id="run2", prompt="go"))
    _, last = await signed(broker)
    with sqlite3.connect(store.path) as database:
        database.execute("update events set hash = ? where seq = ?", ("0" * 64, last))
    database.close()
    with pytest.warns(RuntimeWarning, match="the record could not be signed: event"):
        await broker.runs.end(run.id, run.epoch, RunState.DONE, "done")
    assert (await broker.runs.get("run2")).state is RunState.DONE
    assert (await signed(broker))[1] == last


async def test_a_run_ends_where_there_is_no_place_for_a_key(store: SqliteStore, tmp_path: Path) -> None:
    (tmp_path / "keys").write_text("a file where the directory should be")
    broker = Broker(store, FakeClock(), signer=Keys(tmp_path / "keys"))
    with pytest.warns(RuntimeWarning, match="the record could not be signed"):
        await ended(broker, "run1")
    assert (await broker.runs.get("run1")).state is RunState.DONE
    assert (await signed(broker))[1] == 0


PROGRAM = """
import asyncio
from signoff.broker import Broker
from signoff.core.run import SavedRun, RunState
from signoff.store.signing_key import Keys
from signoff.store.sqlite import SqliteStore
from pathlib import Path

async def main():
    broker = Broker(SqliteStore(Path("s.db")), signer=Keys("keys"))
    run = await broker.runs.begin(SavedRun(id="run1", prompt="go"))
    await broker.runs.end(run.id, run.epoch, RunState.DONE, "done")

asyncio.run(main())
"""


def test_a_program_that_ends_leaves_its_copies(tmp_path: Path) -> None:
    script = tmp_path / "ends.py"
    script.write_text(PROGRAM)
    done = start.run(
        [sys.executable, str(script)], cwd=tmp_path, capture_output=True, text=True, timeout=start.PATIENCE
    )
    assert done.returncode == 0, done.stderr
    seen = [json.loads(file.read_text())["seq"] for file in (tmp_path / "keys").glob("seen-*.json")]
    with sqlite3.connect(tmp_path / "s.db") as database:
        [(head,)] = database.execute("select seq from chain").fetchall()
    database.close()
    assert seen == [head, head]
