"""A damaged row is listed as damaged, with its id, and the others beside it; a damaged halt is a halt."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from tests.cli.program import signoff
from tests.contracts import samples
from tests.delivery.posting import Board, post_for

from signoff.broker import Broker
from signoff.core.call import Call
from signoff.core.request import ApprovalRequest
from signoff.core.request_filter import ListState, RequestFilter
from signoff.core.run import SavedRun
from signoff.core.verdict import Effect, Requirement, Verdict
from signoff.errors import Halted, StoreDamaged
from signoff.server.waiting_list import PART, waiting_list, waiting_rows
from signoff.store import tables
from signoff.store.sqlite import SqliteStore
from signoff.testing.manual_clock import FakeClock
from signoff.views.inbox_view import InboxFilter, Me, RequestPage, place_of_cursor
from signoff.views.json_form import read, to_json
from signoff.views.run_view import ALL, GOING, RunFilter, run_list

DAMAGES = [
    "update requests set question = '{' where id = 'two'",
    "update requests set question = 7 where id = 'two'",
    "update requests set title = x'ff' where id = 'two'",
    "update requests set opened_at = 'now' where id = 'two'",
    "update requests set opened_at = 9e18 where id = 'two'",
    "update requests set opened_at = 9000000000000000000 where id = 'two'",
    "update requests set deadline = 1, version = 'x' where id = 'two'",
    "update requests set votes = 'many', quorum = 2 where id = 'two'",
    "update votes set vote = '[' where request = 'two'",
    "insert into comments (request, body) values ('two', '{')",
]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "signoff.db"


@pytest.fixture
async def store(file: Path) -> AsyncIterator[SqliteStore]:
    made = SqliteStore(file)
    broker = Broker(made, FakeClock(samples.NOON))
    rule = Verdict(effect=Effect.ASK, requirement=Requirement(quorum=2))
    for number, name in enumerate(("one", "two", "three")):
        call = Call(tool="pay", args={"amount": number}, call_id=name, run_id="r", path=name)
        request = ApprovalRequest(
            id=name, tool_call_id=name, tool_name="pay", title=f"pay({number})", args=call.args, call=call, verdict=rule
        )
        await broker.open([request])
        await broker.runs.begin(SavedRun(id=f"run-{name}", agent="app:agent", prompt="go"))
        await broker.answer(name, samples.YES, by=samples.ANA)
    yield made
    made.close()


def damage(file: Path, statement: str) -> None:
    with closing(sqlite3.connect(file)) as other, other:
        other.execute(statement)
    tables.forget()


async def pages(store: SqliteStore, chosen: InboxFilter) -> RequestPage:
    """All pages, one after the other, as a server sends them."""
    page = await chosen.page(store)
    while page.next:
        page = page.and_then(await replace(chosen, after=place_of_cursor(page.next)).page(store))
    return page


@pytest.mark.parametrize("statement", DAMAGES)
@pytest.mark.parametrize("limit", [1, 2, 50])
async def test_requests(store: SqliteStore, file: Path, statement: str, limit: int) -> None:
    damage(file, statement)
    broker = Broker(store, FakeClock(samples.NOON + timedelta(hours=1)))
    for me in (None, Me("ben", frozenset())):
        found = await pages(store, InboxFilter(limit=limit, me=me))
        assert sorted((one.id, bool(one.damaged)) for one in found.requests) == [
            ("one", False),
            ("three", False),
            ("two", True),
        ]
        again = read(RequestPage, json.loads(to_json(found)))
        assert [one.damaged for one in again.requests] == [one.damaged for one in found.requests]
    rows = (await waiting_list(broker, InboxFilter(limit=PART))).page.requests
    assert {one.id: bool(one.damaged) for one in rows} == {"one": False, "two": True, "three": False}
    assert "damaged" in next(one.title for one in rows if one.damaged)
    assert [one.id for one in rows if not one.place] == ["two"]  # a page that began after it would list nothing
    for state in ListState:
        items, _ = await broker.listed(RequestFilter(state=state), limit=10)
        assert {one.id for one in items} == ({"one", "two", "three"} if state is not ListState.SETTLED else set())
    assert {"one", "three"} <= {one.id for one in await broker.pending()}
    rows_now = await waiting_rows(broker, ["two", "one"], InboxFilter(limit=PART))
    assert {one.id for one in rows_now.page.requests} == {"one", "two"}


@pytest.mark.parametrize(
    "statement",
    [
        "update runs set body = '{' where id = 'run-two'",
        "update runs set body = 7 where id = 'run-two'",
        "update runs set body = (select body from runs where id = 'run-one') where id = 'run-two'",
        "update runs set body = replace(body, '\"app:agent\"', '7') where id = 'run-two'",
    ],
)
async def test_runs(store: SqliteStore, file: Path, statement: str) -> None:
    damage(file, statement)
    broker = Broker(store, FakeClock(samples.NOON))
    for state in (ALL, GOING):
        found = (await run_list(broker, RunFilter(limit=10, state=state))).runs
        assert [(one.id, one.state == "damaged") for one in found] == [
            ("run-three", False),
            ("run-two", True),
            ("run-one", False),
        ]
        assert "the store is damaged: table runs" in found[1].detail
    newest, damaged = await broker.runs.list(limit=2)
    assert damaged.word == "damaged" and newest.run.id == "run-three"
    [oldest] = await broker.runs.list(limit=2, before=damaged.run.id)
    assert oldest.run.id == "run-one"


@pytest.mark.parametrize("value", ["'{'", "''", "7", "x'ff'", "'{\"by\": 7}'"])
async def test_a_halt_that_cannot_be_read_is_a_halt_until_a_person_lifts_it(
    store: SqliteStore, file: Path, value: str
) -> None:
    broker = Broker(store, FakeClock(samples.NOON))
    await broker.switch.halt(by="ana", why="wrong prices")
    damage(file, f"update settings set value = {value} where name = 'halted'")
    for said in (await broker.switch.state(), await broker.switch.halt(by="ben")):
        assert "cannot be read" in said and "`signoff unhalt` lifts the halt" in said
    with pytest.raises(Halted, match="cannot be read"):
        await broker.runs.begin(SavedRun(id="run-four", agent="app:agent", prompt="go"))
    assert (await InboxFilter(limit=10).page(store)).halted
    assert await broker.switch.unhalt(by="ana") and await broker.switch.state() == ""
    await broker.runs.begin(SavedRun(id="run-four", agent="app:agent", prompt="go"))


async def test_commands_say_what_is_damaged(store: SqliteStore, file: Path) -> None:
    await Broker(store, FakeClock(samples.NOON)).switch.halt(by="ana")
    damage(file, "update settings set value = '{' where name = 'halted'")
    damage(file, DAMAGES[0])
    damage(file, "update runs set body = '{' where id = 'run-two'")
    store.close()
    where = ["--store", f"sqlite:{file}"]
    told = [(await asyncio.to_thread(signoff, one, *where, cwd=file.parent)).stdout for one in ("inbox", "runs")]
    assert "cannot be read" in told[0]
    assert "table requests, row 'two'" in " ".join(told[0].split()) and "pay(2)" in told[0]
    assert "run-two  damaged" in told[1] and "run-three" in told[1]
    lifted = await asyncio.to_thread(signoff, "unhalt", *where, cwd=file.parent)
    assert "The halt is lifted" in lifted.stdout


@pytest.mark.parametrize("statement", DAMAGES)
async def test_a_channel_asks_about_the_others(store: SqliteStore, file: Path, statement: str) -> None:
    damage(file, statement)
    board = Board()
    post = post_for(Broker(store, FakeClock(samples.NOON)), board)
    await post.round()
    await post.round()
    assert {"one", "three"} <= {subject.partition(":")[2] or subject for subject, _ in board.shown}


async def test_what_is_damaged_is_not_answered(store: SqliteStore, file: Path) -> None:
    damage(file, DAMAGES[0])
    broker = Broker(store, FakeClock(samples.NOON))
    with pytest.raises(StoreDamaged, match="row 'two'"):
        await broker.answer("two", samples.YES, by=samples.ANA)
    assert (await broker.answer("one", samples.YES, by=samples.BEN)).state == "approved"
