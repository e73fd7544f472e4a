"""`signoff serve` while its store does not work, tools hang or take no notice: nothing is lost, nothing is stuck."""

from __future__ import annotations

import asyncio
import os
import resource
import signal
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from tests import start
from tests.server.serving import Served, Shop, until

from signoff.engine.care import SERVED
from signoff.ports import Transaction
from signoff.store.sqlite import SqliteStore

DEAF = '''
"""A tool that takes no notice of being stopped."""

import asyncio

from pydantic_ai.toolsets import FunctionToolset

stamps = FunctionToolset()


@stamps.tool_plain
async def stamp(text: str) -> str:
    """Stamp a text."""
    with open("stamps.txt", "a") as file:
        file.write(f"{text}\\n")
    while True:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            pass


TOOLSETS = {"stamps": stamps}
'''
BLOCKING = DEAF.replace(
    """    while True:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            pass
""",
    "    import time\n    time.sleep(600)\n    return text\n",
)


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return Shop(tmp_path / "shop").write()


@contextmanager
def full_disk(served: Served) -> Generator[None]:
    """Within, the server can write no file beyond its beginning."""
    before = resource.prlimit(served.process.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(served.process.pid, resource.RLIMIT_FSIZE, (1024, before[1]))
    try:
        yield
    finally:
        resource.prlimit(served.process.pid, resource.RLIMIT_FSIZE, before)


@contextmanager
def moved_away(shop: Shop) -> Generator[Path]:
    """Within, the file of the store is elsewhere; its log stays where it was."""
    file = Path(shop.store.removeprefix("sqlite:"))
    os.rename(file, aside := file.with_name("elsewhere.db"))
    try:
        yield file
    finally:
        os.rename(aside, file)


@pytest.mark.nightly
def test_a_full_disk_costs_no_run_and_no_result(shop: Shop) -> None:
    run, request = shop.asks()
    wait = shop.put("wait")
    with shop.serving() as served:
        shop.signoff("approve", request)
        until(lambda: shop.lines() == ["one"], "the tool runs")
        with full_disk(served):
            wait.unlink()
            assert "disk" in served.event("store failed")["problem"]
            status, body = served.get("/readyz")
            assert (status, "the store failed" in body) == (503, True), "reading alone is not enough"
        until(lambda: served.get("/readyz")[0] == 200, "it works again")
        until(lambda: shop.run_word(run) == "done", "the run went on")
        assert served.stop() == 0
    assert shop.lines() == ["one"], "what it returned was kept until there was room"


def test_a_store_that_was_moved_away_is_not_made_anew_and_goes_on_once_it_is_back(shop: Shop) -> None:
    run, request = shop.asks()
    token = shop.token("read", "answer", "run")
    with shop.serving() as served:
        shop.signoff("approve", request)
        until(lambda: shop.run_word(run) == "done", "its log has votes in it")
        with moved_away(shop) as file:
            assert served.call("POST", "/runs", token, {"worker": "scribe", "prompt": "Stamp it"})[0] == 503
            assert served.call("GET", "/requests", token)[0] == 503, "what is read there would be half of it"
            assert served.get("/readyz")[0] == 503
            said = shop.signoff("run", "scribe", "Stamp it", "--suspend", code=1)
            assert "its log approvals.db-wal is" in said
            assert not file.exists()
        until(lambda: served.get("/readyz")[0] == 200, "it works again")
        status, begun = served.call("POST", "/runs", token, {"worker": "scribe", "prompt": "Stamp it"})
        assert status in (200, 201, 202), begun
        until(lambda: shop.run_word(begun["id"]) == "waiting", "it asks")
        assert served.stop() == 0
    assert "nothing is missing" in shop.signoff("audit", "verify")


def test_an_approval_stays_good_where_its_claim_could_not_be_written(shop: Shop) -> None:
    run, request = shop.asks()
    with shop.serving() as served:
        assert served.url
        with full_disk(served):
            shop.signoff("approve", request)
            served.event("store failed")
        until(lambda: shop.run_word(run) == "done", "it went on with the approval that it had")
        assert shop.lines() == ["one"]


# --- the end ---


def test_a_tool_that_takes_no_notice_does_not_keep_the_server(shop: Shop) -> None:
    run, request = shop.asks()
    shop.put("toolsets.py", DEAF)
    with shop.serving("--drain", "1h") as served:
        shop.signoff("approve", request)
        until(lambda: shop.lines() == ["one"], "the tool runs")
        served.process.send_signal(signal.SIGTERM)
        served.event("draining")
        assert served.stop() == 0
        assert served.events()[-1]["event"] == "stopped"
    assert shop.run_word(run) in ("died", "waiting")
    with shop.serving() as served:
        until(lambda: served.metric('signoff_requests_waiting{state="unknown"}') == 1, "somebody has to say")


@pytest.mark.nightly
def test_a_third_signal_ends_it_at_once_although_a_tool_blocks_everything(shop: Shop) -> None:
    _, request = shop.asks()
    shop.put("toolsets.py", BLOCKING)
    with shop.serving() as served:
        shop.signoff("approve", request)
        until(lambda: shop.lines() == ["one"], "the tool blocks the loop")
        for _ in range(2):
            served.process.send_signal(signal.SIGTERM)
            until(lambda: not _has_pending(served.process.pid), "it heard the signal")
        assert served.stop() == 128 + signal.SIGTERM


def _has_pending(pid: int) -> bool:
    text = Path(f"/proc/{pid}/status").read_text()
    pending = next(line.split()[1] for line in text.splitlines() if line.startswith("ShdPnd"))
    return int(pending, 16) != 0


def test_whoever_follows_the_record_goes_on_when_the_store_is_back(shop: Shop) -> None:
    shop.asks()
    following = start.Process(
        [*start.SIGNOFF, "audit", "log", "--follow", "--json"],
        cwd=shop.directory,
        env=shop.plain,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    with following:
        printed = start.Lines(following)
        try:
            printed.until('"kind":"asked"')
            with moved_away(shop):
                printed.until("; retrying")
            _, request = shop.asks()
            printed.until(request)
        finally:
            following.kill()


# --- the agent is asked ---


def test_the_server_has_the_agent_answer_what_is_asked_back(shop: Shop) -> None:
    run, request = shop.asks()
    token = shop.token("read", "answer")
    path = f"/requests/{request}/comments"
    with shop.serving() as served:
        status, said = served.call("POST", path, token, {"text": "Why?", "agent": True})
        assert (status, said["type"]) == (422, "urn:signoff:invalid"), "a note asks nothing"
        status, question = served.call("POST", path, token, {"text": "Why?", "kind": "question", "agent": True})
        assert status == 201
        found = until(lambda: served.call("GET", path, token)[1]["comments"][1:], "it answers")
        assert [(one["kind"], one["answers"], one["via"]) for one in found] == [("answer", question["id"], "agent")]
        assert found[0]["text"].startswith("Stamped:")
    assert shop.run_word(run) == "waiting"
    assert shop.lines() == []


@pytest.mark.nightly
def test_why_the_agent_did_not_answer_stands_beside_the_question(shop: Shop) -> None:
    _, request = shop.asks()
    path, token = f"/requests/{request}/comments", shop.token("read", "answer")
    shop.put("workers/scribe.yaml", "instructions: [wrong\n")
    shop = Shop(shop.directory, shop.store, {"SIGNOFF_TOKEN": token})
    with shop.serving() as served:
        said = shop.signoff("ask-back", request, "Why?", "--agent", "--server", served.url)
        assert "asked back" in said
        [note] = until(lambda: served.call("GET", path, token)[1]["comments"][1:], "it is told")
        assert note["kind"] == "note"
        assert note["text"].startswith("The agent did not answer: ")


# --- code that blocks ---


@pytest.mark.nightly
def test_it_is_told_how_long_a_tool_kept_everything_from_going_on(shop: Shop) -> None:
    _, request = shop.asks()
    shop.put("toolsets.py", BLOCKING.replace("600", "1.8"))
    with shop.serving() as served:
        assert served.url
        shop.signoff("approve", request)
        assert 1.0 <= served.event("stood still")["seconds"] < 60


# --- a run that cannot be looked at ---


def test_a_run_whose_project_cannot_be_looked_at_stops_no_other(shop: Shop) -> None:
    (odd, first), (run, second) = shop.asks(), shop.asks()

    async def spoil() -> None:
        store = SqliteStore(shop.store.removeprefix("sqlite:"))

        def work(tx: Transaction) -> None:
            kept = tx.runs.get(odd)
            assert kept is not None
            setup = replace(kept.setup, project="/" + "x" * 5_000, project_id="of-no-project")
            tx.runs.put(replace(kept, setup=setup, places={SERVED: ""}))

        await store.write("spoil", work)
        store.close()

    asyncio.run(spoil())
    with shop.serving() as served:
        assert served.url
        shop.signoff("approve", first)
        shop.signoff("approve", second)
        until(lambda: shop.run_word(run) == "done", "the other goes on")
        assert served.stop() == 0
    assert shop.run_word(odd) == "ready"


# --- in a database ---


@pytest.mark.nightly
def test_a_server_over_postgresql_looks_after_its_runs_alone(tmp_path: Path, postgres_store: str) -> None:
    shop = Shop(tmp_path / "shop", postgres_store).write()
    token = shop.token("read", "answer", "run")
    with shop.serving() as served:
        status, run = served.call("POST", "/runs", token, {"worker": "scribe", "prompt": "Stamp it"})
        assert status in (200, 201, 202), run
        [request] = until(lambda: served.call("GET", f"/runs/{run['id']}", token)[1]["run"]["waiting"], "it asks")
        seen = served.call("GET", f"/requests/{request['id']}", token)[1]
        vote = {"decision": "approve", "args_digest": seen["args_digest"]}
        assert served.call("POST", f"/requests/{request['id']}/votes", token, vote)[0] == 200
        until(lambda: served.call("GET", f"/runs/{run['id']}", token)[1]["run"]["state"] == "done", "it went on")
        assert "this store is already served" in shop.signoff("serve", "--port", "0", code=2)
        assert served.stop() == 0
    assert shop.lines() == ["one"]
    assert "nothing is missing" in shop.signoff("audit", "verify")
