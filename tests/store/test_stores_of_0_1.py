"""Stores that signoff 0.1 wrote, and left in the middle of things: `stores/write.py` says how."""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import psycopg
import pytest
from tests import start
from tests.contracts.samples import chained
from tests.store.stores.shop import shop

from signoff import Actor, ApprovalDecision, resume
from signoff.broker import Broker
from signoff.broker.conversations import conversation_log
from signoff.broker.readers import has_read
from signoff.broker.secret_key import secret_key
from signoff.core.codec import dump_process
from signoff.core.delivery import DeliveryState
from signoff.core.mode import ApprovalMode
from signoff.core.notice import Asked, Notice
from signoff.core.request import ApprovalRequest, State
from signoff.core.request_context import EarlierAnswers, Tally
from signoff.core.run import EnteredCall, Process, RunSetup, RunState
from signoff.core.subject import Subject, SubjectKind
from signoff.delivery import Reconciler, Route
from signoff.delivery.delivery_status import running_channels
from signoff.errors import SchemaError
from signoff.ports import Inbox, Store, Transaction
from signoff.processes import this_process
from signoff.store import migration_list
from signoff.store.store_factory import open_store
from signoff.store.upkeep import check, upgrade

STORES = Path(__file__).parent / "stores"
ANA, BEN = Actor(name="ana", roles=frozenset({"ops"})), Actor(name="ben")
YES = ApprovalDecision(approved=True)
LAST = migration_list.migrations("sqlite")[-1].name


def sqlite_store(directory: Path) -> str:
    directory.chmod(0o700)
    path = directory / "signoff.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript((STORES / "0.1.sqlite.sql").read_text("utf-8"))
    path.chmod(0o600)
    return f"sqlite:{path}"


def postgres_store(url: str) -> str:
    with psycopg.connect(url, autocommit=True) as connection:
        [name] = connection.execute("select current_schema()").fetchone() or [""]
        connection.execute(f'drop schema "{name}" cascade'.encode())
        connection.execute((STORES / "0.1.postgres.sql").read_text("utf-8").replace("then_0_1", name).encode())
    return url


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A store as 0.1 left it, on a machine that never saw it go on."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    if request.param == "sqlite":
        return sqlite_store(tmp_path)
    return postgres_store(request.getfixturevalue("postgres_url"))


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    """The same, brought up to date."""
    steps = [one for one in upgrade(url) if not one.startswith("backup: ")]
    assert steps == [step.name for step in migration_list.migrations("sqlite") if step.number > 2]
    assert check(url) == []
    store = open_store(url, upgrade="refuse")
    yield store
    store.close()


async def by_title(store: Store) -> dict[str, ApprovalRequest]:
    def work(tx: Transaction) -> list[ApprovalRequest]:
        ids = tx.requests.like("", limit=100)
        return [one for each in ids if (one := tx.requests.get(each)) is not None]

    return {one.title: one for one in await store.read(work)}


class Board:
    """The channel, with what 0.1 had put there still standing."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.shown: list[tuple[str, str]] = []
        """What was shown, and where it stood."""
        self.notices: dict[str, Notice] = {}

    async def start(self, inbox: Inbox) -> None: ...

    async def stop(self) -> None: ...

    async def show(self, notice: Notice, at: str = "", beside: str = "") -> str:
        self.shown.append((notice.subject, at))
        self.notices[notice.subject] = notice
        return at or f"{self.name}/new"


async def test_what_waits_is_answered_and_resumed(store: Store) -> None:
    made: list[str] = []
    signoff, agent = shop(store, made)
    requests = await by_title(store)
    statuses = {status.run.id: status.word for status in await signoff.broker.runs.list(going=True)}
    both, one = requests["pay(amount=5)"], requests["refund(amount=3)"]
    assert (statuses[both.run], statuses[one.run]) == ("waiting", "waiting")
    assert statuses[requests["refund(amount=9)"].run] == "ready", "it was answered before"
    for title in ("pay(amount=5)", "refund(amount=7)"):
        await signoff.broker.answer(requests[title].id, YES, by=ANA)
    await signoff.broker.answer(one.id, ApprovalDecision(approved=False, note="not today"), by=ANA)
    assert (await resume(agent, both.run)).output == "paid 5 refunded 7"
    assert (await resume(agent, requests["refund(amount=9)"].run)).output == "refunded 9"
    assert "not today" in str((await resume(agent, one.run)).all_messages())
    assert sorted(made) == ["pay 5", "refund 7", "refund 9"], "each once"
    await store.flush()
    states = {title: request.state for title, request in (await by_title(store)).items()}
    assert states["pay(amount=5)"] is states["refund(amount=7)"] is states["refund(amount=9)"] is State.SUCCEEDED
    assert states["refund(amount=3)"] is State.DENIED


async def test_a_remembered_answer_still_speaks(store: Store) -> None:
    made: list[str] = []
    _, agent = shop(store, made)
    assert (await agent.run("pay=2")).output == "paid 2"
    assert made == ["pay 2"]


async def test_what_people_answered_then_is_counted(store: Store) -> None:
    """Settled by 0.1, or asked by 0.1 and answered since."""
    signoff, agent = shop(store, [])
    requests = await by_title(store)
    await signoff.broker.answer(requests["refund(amount=3)"].id, ApprovalDecision(approved=False), by=ANA)
    await agent.run("refund=9 pay=77")
    known = {one.id for one in requests.values()}
    asked = {one.title: one for one in await signoff.broker.pending() if one.id not in known}
    once = Tally(approved=1)
    assert asked["refund(amount=9)"].context.answers == EarlierAnswers(
        call=once, target=once, tool=Tally(approved=1, denied=1)
    )
    assert asked["pay(amount=77)"].context.answers == EarlierAnswers(tool=once)


async def test_the_record_goes_on_where_it_ended(store: Store) -> None:
    before = await store.read(lambda tx: tx.record.head())
    signoff, _ = shop(store, [])
    requests = await by_title(store)
    await signoff.broker.answer(requests["pay(amount=4)"].id, YES, by=BEN)
    await store.flush()
    assert (await store.read(lambda tx: tx.record.head()))[0] > before[0] > 0
    chained(await store.read(lambda tx: tx.record.entries()))


async def test_what_stands_in_channels_is_brought_up_to_date_there(store: Store) -> None:
    signoff, _ = shop(store, [])
    requests = await by_title(store)
    answered, gone = requests["refund(amount=3)"], requests["pay(amount=4)"]
    await signoff.broker.answer(answered.id, YES, by=ANA)
    board, night = Board("board"), Board("night")
    reconciler = Reconciler(
        signoff.broker, [Route(board), Route(night, backup_for="board")], inbox=lambda name: cast("Inbox", name)
    )
    places = {str(one.subject): one.place for one in await store.read(lambda tx: tx.deliveries.find(channel="board"))}
    await reconciler.round()
    await reconciler.stop()
    shown = dict(board.shown)
    assert shown[answered.id] == places[answered.id] != "", "where 0.1 had put it"
    notice = board.notices[answered.id]
    assert isinstance(notice, Asked) and notice.request.state is State.APPROVED
    assert shown[gone.id] == places[gone.id], "it was said to be gone, and is shown anew beside the same place"
    assert shown["said:begun-in-a-thread"] == "", "nobody had told it yet"
    unchanged = [requests[title].id for title in ("pay(amount=5)", "refund(amount=7)", "pay(amount=2)")]
    assert [one for one in unchanged if one in shown] == []
    assert f"all:{requests['pay(amount=5)'].id}" not in shown
    failing = requests["refund(amount=11)"].id
    both = [one for one in (*board.shown, *night.shown) if one[0] == failing]
    assert both == [(failing, "")], "it is tried again, or by now taken over"
    assert requests["refund(amount=13)"].id not in {*shown, *dict(night.shown)}, "it stands in the backup already"


async def test_what_failed_is_still_told_with_its_reason(store: Store) -> None:
    requests = await by_title(store)
    subject = Subject(SubjectKind.REQUEST, requests["refund(amount=13)"].id)
    failed = await store.read(lambda tx: tx.deliveries.get("board", subject))
    assert failed is not None
    assert (failed.state, failed.instead, failed.problem) == (DeliveryState.FAILED, "night", "too long")
    assert failed.hopeless and not failed.may_stand
    waits = Subject(SubjectKind.REQUEST, requests["refund(amount=11)"].id)
    due = await store.read(lambda tx: tx.deliveries.get("board", waits))
    assert due is not None and due.attempts >= 1 and due.since is not None and due.due is not None
    again = Subject(SubjectKind.REQUEST, requests["pay(amount=4)"].id)
    gone = await store.read(lambda tx: tx.deliveries.get("board", again))
    assert gone is not None and gone.may_stand and gone.place


async def test_what_was_told_of_a_run_is_not_told_again(store: Store) -> None:
    requests = await by_title(store)
    subject = Subject(SubjectKind.RESULT, requests["pay(amount=2)"].run)
    told = await store.read(lambda tx: tx.deliveries.get("board", subject))
    assert told is not None and told.result is not None
    assert (told.result.state, told.result.worker) == (RunState.DONE, "shop")
    assert told.result.text == "looked 1 paid 2"
    assert list(await store.read(lambda tx: tx.deliveries.untold("board"))) == ["begun-in-a-thread"]


async def test_channels_of_a_process_that_is_gone_are_free(store: Store) -> None:
    leases = {one.channel: one for one in await store.read(lambda tx: tx.leases.all())}
    assert list(leases) == ["board", "night", "away"]
    assert leases["night"].backup_for == "board"
    down = leases["away"].down
    assert down is not None and (down.problem, down.attempts, down.hopeless) == ("the service is away", 1, False)
    assert await running_channels(Broker(store).ledger) == {}


async def test_who_read_what_and_what_was_heard_is_known(store: Store) -> None:
    broker = Broker(store)
    request = (await by_title(store))["refund(amount=3)"]
    assert await has_read(broker.ledger, request.id, ANA) and await has_read(broker.ledger, request.id, BEN)
    assert not await has_read(broker.ledger, request.id, Actor(name="cleo"))
    log = await store.read(lambda tx: conversation_log(tx, "board:9"))
    assert (log.run, log.heard, log.recent) == ("goes-on", "102", ("101", "102"))
    assert dict(log.turns) == {"worker:triage": "goes-on"}
    run = await broker.runs.get("goes-on")
    assert dict(run.places) == {"board": "9/"}
    assert run.setup == RunSetup(chat=True)


async def test_policies_and_the_key_are_where_they_are_looked_for(store: Store, url: str) -> None:
    request = (await by_title(store))["pay(amount=5)"]
    assert await store.read(lambda tx: tx.policies.get(request.policy_revision)) is not None
    key = await store.read(lambda tx: tx.settings.get("veil"))
    assert key is not None and await secret_key(store) == bytes.fromhex(key)
    names = await store.read(lambda tx: cast("Any", tx).sql.rows("settings"))
    assert [name for name, _ in names] == ["veil"], "nothing else is left among the settings"


def test_two_who_upgrade_at_once_do_it_once(tmp_path: Path) -> None:
    url = sqlite_store(tmp_path)

    async def both() -> list[list[str]]:
        return await asyncio.gather(*(asyncio.to_thread(upgrade, url) for _ in range(2)))

    done = asyncio.run(both())
    steps = [[step for step in each if not step.startswith("backup")] for each in done]
    assert sorted(map(len, steps)) == [0, migration_list.latest("sqlite") - 2]
    assert check(url) == []


def process_row(host: str, pid: int, seen_at: datetime) -> str:
    process = Process(id="lives", host=host, pid=pid, born="", seen_at=seen_at)
    return dump_process(process)


def run_sql(url: str, statement: str, *values: str) -> None:
    """Change a store as 0.1 left it."""
    if url.startswith("sqlite:"):
        with closing(sqlite3.connect(url.removeprefix("sqlite:"))) as connection:
            connection.execute(statement.replace("%s", "?"), values)
            connection.commit()
    else:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(statement.encode(), values)


def version_of(url: str) -> int:
    [problem] = [one for one in check(url) if "schema version" in one] or [""]
    return int(
        problem.partition("schema version ")[2].partition(",")[0].partition(" ")[0] or migration_list.latest("sqlite")
    )


@pytest.mark.parametrize("far", [False, True], ids=["on this machine", "on another machine"])
def test_a_store_that_is_in_use_is_not_upgraded(url: str, far: bool) -> None:
    here = this_process("x", datetime.now(UTC))
    host = "db.example/1" if far else here.host
    body = process_row(host, 7 if far else os.getppid(), here.seen_at)
    run_sql(url, "insert into processes (id, body) values (%s, %s)", "lives", body)
    told = rf"older signoff, and process \d+ on {host.partition('/')[0]} still uses it; stop that process"
    with pytest.raises(SchemaError, match=told):
        upgrade(url)
    assert version_of(url) == 2, "nothing was done"
    run_sql(url, "delete from processes where id = %s", "lives")
    assert upgrade(url)[-1] == LAST


def test_what_others_left_there_is_carried_as_far_as_it_goes(url: str) -> None:
    settings = {
        "talk:web": "{}",
        '\x01json:"talk:web:\\u0000"': json.dumps({"run": "r", "heard": "7", "turns": {}}),
        "Talk:foreign": "kept",
        "halted": json.dumps({"by": "ana", "why": "", "at": "2026-01-01T00:00:00+00:00"}),
    }
    for name, value in settings.items():
        run_sql(url, "insert into settings (name, value) values (%s, %s)", name, value)
    whole = {
        "folder": "/srv/shop",
        "project": "/srv",
        "project_id": "p1",
        "policy": "/srv/signoff.yaml",
        "model": "test",
        "mode": "auto_deny",
        "caller": {"ask": ["pay"], "deny": ["rm", "dd"], "files": ["/srv/more.yaml"]},
        "file": "/srv/one.yaml",
        "input": {"n": 1},
        "files": ["/srv/a.txt"],
        "chat": True,
        "after": "before",
    }
    entered = {"tool": "ask_clerk", "args": "a1", "schema": "s1", "policy": "p1", "granted": "yes"}
    odd: dict[str, object] = {
        "a": "x",
        "b": {"board": 5},
        "c": None,
        "d": {"model": {"place": "deep"}},
        "e": whole,
        "f": entered,
    }
    for run_id, place in odd.items():
        options = {"place": place} if run_id in "abc" else place
        body = json.dumps({"id": run_id, "options": options})
        run_sql(url, "insert into runs (id, state, body) values (%s, 'done', %s)", run_id, body)
    upgrade(url)

    def look(tx: Transaction) -> None:
        web, odd_name = tx.conversations.get("web"), tx.conversations.get("web:\x00")
        assert web is not None and (web.run, web.heard, web.recent) == ("", "", ())
        assert odd_name is not None and odd_name.heard == "7"
        assert tx.settings.get("Talk:foreign") == "kept"
        assert tx.settings.get("halted") == settings["halted"]
        runs = [tx.runs.get(one) for one in odd]
        assert [dict(one.places) for one in runs if one] == [{}, {"board": "5"}, {}, {}, {}, {}]
        setup = RunSetup(
            directory="/srv/shop",
            project="/srv",
            project_id="p1",
            policy="/srv/signoff.yaml",
            model="test",
            mode=ApprovalMode.AUTO_DENY,
            ask=("pay",),
            deny=("rm", "dd"),
            rules=("/srv/more.yaml",),
            worker_file="/srv/one.yaml",
            input={"n": 1},
            files=("/srv/a.txt",),
            chat=True,
            after="before",
        )
        assert [one.setup for one in runs if one] == [*[RunSetup()] * 4, setup, RunSetup()]
        call = EnteredCall(tool="ask_clerk", args_digest="a1", schema_hash="s1", policy_revision="p1", granted=True)
        assert [one.entered for one in runs if one] == [*[None] * 5, call]

    with closing(open_store(url)) as store:
        asyncio.run(store.read(look))


def test_what_cannot_be_read_is_named_and_nothing_is_done(url: str) -> None:
    run_sql(url, "insert into settings (name, value) values (%s, %s)", "talk:broken", "no JSON")
    with pytest.raises(SchemaError, match=r"a setting is stored in an unknown form .*: talk:broken"):
        upgrade(url)
    assert version_of(url) == 2
    run_sql(url, "delete from settings where name = %s", "talk:broken")
    assert upgrade(url)[-1] == LAST


def test_an_upgrade_waits_for_whoever_is_in_the_middle_of_a_write(postgres_url: str) -> None:
    """A run that 0.1 ends while the upgrade begins is not put back to what it was before."""
    url = postgres_store(postgres_url)
    waits = "select count(*) from pg_locks where not granted and relation = 'chain'::regclass"
    with (
        ThreadPoolExecutor(1) as threads,
        psycopg.connect(url) as writer,
        psycopg.connect(url, autocommit=True) as watcher,
    ):
        writer.execute("select seq from chain for update")
        [body] = writer.execute("select body from runs where id = 'goes-on'").fetchone() or [""]
        done = threads.submit(upgrade, url)
        end = time.monotonic() + start.PATIENCE
        while watcher.execute(waits).fetchone() == (0,):
            assert not done.done() and time.monotonic() < end, "it does not wait for the writer"
        ended = json.dumps({**json.loads(body), "state": "done", "epoch": 7})
        writer.execute("update runs set state = 'done', body = %s where id = 'goes-on'", (ended,))
        writer.execute("insert into settings (name, value) values ('talk:board:77', %s)", ('{"heard": "5"}',))
        writer.commit()
    assert done.result(start.PATIENCE)[-1] == LAST

    def look(tx: Transaction) -> None:
        run, log = tx.runs.get("goes-on"), tx.conversations.get("board:77")
        assert run is not None and (run.state, run.epoch, dict(run.places)) == (RunState.DONE, 7, {"board": "9/"})
        assert log is not None and log.heard == "5"

    with closing(open_store(url)) as store:
        asyncio.run(store.read(look))
