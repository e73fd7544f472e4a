"""The parts of the resident process: who serves a store, in which order runs go on, agents found by their names."""

from __future__ import annotations

import asyncio
import os
import shlex
import subprocess
import sys
import time
import tracemalloc
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import httpx
import pytest
from pydantic_ai import Agent, DeferredToolRequests
from starlette.applications import Starlette
from tests.broker.conftest import Opens, another, clock, kill, ram  # noqa: F401 - fixtures
from tests.server.doors import Doors

from signoff import ApprovalDecision, Signoff, resume_answered
from signoff.broker import Broker
from signoff.broker.run_status import RunStatus
from signoff.broker.wall_clock import SystemClock, pause_for
from signoff.cli.serve_program import as_whom
from signoff.cli.service_log import LinePrinter
from signoff.cli.systemd_unit import unit_text
from signoff.config import load_settings, no_settings
from signoff.core.run import RunSetup, SavedRun
from signoff.engine.fair_order import fair_order
from signoff.errors import RunError, SignoffError, StoreError, WrongFile, WrongUse
from signoff.processes import BEAT, LEASE
from signoff.server.health import operations
from signoff.server.listener import bound
from signoff.server.state import ServerState
from signoff.store.memory_store import MemoryStore
from signoff.testing import FakeClock, ScriptedModel
from signoff.wiring import run_process
from signoff.wiring.program_inbox import project_inbox
from signoff.wiring.serve_lease import check_store, leave_store, take_store, who_serves

NOON = datetime(2031, 5, 24, 12, tzinfo=UTC)
TURNS = [{"calls": [{"tool": "pay", "args": {"to": "ben"}}]}, {"say": "Paid: {{last}}"}]


# --- who serves a store ---


async def url_of(broker: Broker) -> str | None:
    lease = await who_serves(broker.ledger)
    return lease.url if lease is not None else None


async def test_one_serves_a_store_and_says_so_to_the_other(another: Opens) -> None:  # noqa: F811
    one, two = another(), another()
    await take_store(one.ledger, "http://127.0.0.1:8420")
    with pytest.raises(WrongUse, match=rf"at http://127.0.0.1:8420: by process {os.getpid()} on .* since 2026"):
        await take_store(two.ledger, "http://127.0.0.1:8421")
    assert await url_of(two) == "http://127.0.0.1:8420"
    await leave_store(one.ledger)
    await take_store(two.ledger, "http://127.0.0.1:8421")
    assert await url_of(one) == "http://127.0.0.1:8421"
    await leave_store(one.ledger)  # not its own any longer: left alone
    await check_store(two.ledger)


async def test_one_that_is_gone_is_taken_over_from(another: Opens) -> None:  # noqa: F811
    one, two = another(), another()
    await take_store(one.ledger, "http://127.0.0.1:8420")
    await kill(one)
    await take_store(two.ledger, "http://127.0.0.1:8421")


async def test_one_elsewhere_that_stood_still_finds_out_that_it_was_taken_over_from(
    another: Opens,  # noqa: F811
    clock: FakeClock,  # noqa: F811
) -> None:
    here, far = another(), another(far=True)
    await take_store(far.ledger, "http://10.0.0.2:8420")
    clock.advance(LEASE - BEAT)
    with pytest.raises(WrongUse, match=r"10\.0\.0\.2"):
        await take_store(here.ledger, "http://127.0.0.1:8420")
    clock.advance(BEAT)
    await take_store(here.ledger, "http://127.0.0.1:8420")
    with pytest.raises(WrongUse, match="took over this store"):
        await check_store(far.ledger)


# --- in which order ---


def ready(project: str, minutes: int) -> RunStatus:
    run = SavedRun(
        id=f"{project}{minutes}",
        agent="worker:x",
        setup=RunSetup(project=project),
        changed_at=NOON + timedelta(minutes=minutes),
    )
    return RunStatus(run=run, waiting=(), waits=0, answered=(), process=None, alive=False)


def order(found: list[RunStatus], going: list[str]) -> list[str]:
    return [one.run.id for one in fair_order(found, going, lambda one: one.run.setup.project)]


def test_projects_take_turns_and_the_oldest_answer_comes_first() -> None:
    many = [ready("a", minutes) for minutes in (5, 3, 1, 2)]
    assert order([*many, ready("b", 9)], []) == ["a1", "b9", "a2", "a3", "a5"]


def test_a_project_with_much_going_on_waits_for_the_others() -> None:
    found = [ready("a", 1), ready("b", 8), ready("b", 9)]
    assert order(found, ["a", "a"]) == ["b8", "b9", "a1"]
    assert order(found, ["b", "b"]) == ["a1", "b8", "b9"]
    assert order([], ["a"]) == []


# --- agents of programs ---


def made(store: str, name: str | None = "shop", paid: list[str] | None = None) -> Agent[None, Any]:
    agent = Agent(
        ScriptedModel(TURNS),
        name=name,
        output_type=[str, DeferredToolRequests],
        capabilities=[Signoff([{"ask": "*"}], store=store, wait="suspend")],
    )

    @agent.tool_plain
    def pay(to: str) -> str:
        (paid if paid is not None else []).append(f"{name} pays {to}")
        return "done"

    return agent


def gate_of(agent: Agent[None, Any]) -> Signoff:
    return next(one for one in agent.root_capability.capabilities if isinstance(one, Signoff))


@pytest.fixture
def store(tmp_path: Path) -> str:
    return f"sqlite:{tmp_path / 'approvals.db'}"


async def approve_all(agent: Agent[None, Any]) -> None:
    gate = gate_of(agent)
    for request in await gate.pending():
        await gate.answer(request.id, ApprovalDecision(approved=True), by="ana")


async def test_a_run_keeps_the_name_its_agent_was_given_and_none_that_was_guessed(store: str) -> None:
    shop, nameless = made(store), made(store, None)
    await shop.run("Pay Ben.")
    await nameless.run("Pay Ben.")
    assert nameless.name == "nameless", "PydanticAI guessed it"
    names = {one.run.name for one in await gate_of(shop).broker.runs.list()}
    assert names == {"shop", ""}


async def test_answered_runs_of_an_agent_go_on_and_those_of_others_do_not(store: str) -> None:
    paid: list[str] = []
    shop, other = made(store, paid=paid), made(store, "other", paid)
    for agent in (shop, shop, other):
        await agent.run("Pay Ben.")
    assert [one async for one in resume_answered(shop, watch=False)] == [], "nothing is answered"
    await approve_all(shop)
    done = [one async for one in resume_answered(shop, watch=False)]
    assert [one.result.output for one in done if one.result is not None] == ["Paid: done"] * 2
    assert paid == ["shop pays ben"] * 2
    assert [one async for one in resume_answered(shop, watch=False)] == []


async def test_one_look_at_a_store_that_is_gone_ends_with_its_error(store: str) -> None:
    shop = made(store)
    await shop.run("Pay Ben.")
    await approve_all(shop)
    await asyncio.to_thread(os.remove, store.removeprefix("sqlite:"))
    with pytest.raises(StoreError):
        async with asyncio.timeout(60):
            assert [one async for one in resume_answered(shop, watch=False)] == []


async def test_it_waits_for_answers_and_a_run_that_fails_is_told(store: str) -> None:
    shop = made(store)
    broken = Agent(
        ScriptedModel(TURNS[:1]),
        name="shop",
        output_type=[str, DeferredToolRequests],
        capabilities=[gate_of(shop)],
    )
    await shop.run("Pay Ben.")
    coming = resume_answered(broken)
    first = asyncio.ensure_future(anext(coming))
    await asyncio.wait([first], timeout=0.05)
    assert not first.done()
    await approve_all(shop)
    told = await asyncio.wait_for(first, 60)
    assert told.result is None
    assert told.error is not None
    await coming.aclose()


@pytest.mark.parametrize("name", [None, ""])
async def test_an_agent_without_a_name_is_refused(store: str, name: str | None) -> None:
    with pytest.raises(WrongUse, match="has no name to know its runs by"):
        await anext(resume_answered(made(store, name)))


async def test_an_agent_whose_runs_are_not_kept_is_refused() -> None:
    agent: Agent[None, str] = Agent(ScriptedModel(TURNS), name="shop", capabilities=[Signoff([{"ask": "*"}])])
    with pytest.raises(WrongUse, match="Signoff with a store"):
        await anext(resume_answered(agent))


# --- the file ---


def test_agents_are_read_with_what_they_depend_on(tmp_path: Path) -> None:
    file = tmp_path / "signoff.yaml"
    file.write_text('policy: [{ask: "*"}]\nagents: {a: "x.y:z", b: {agent: "x:b", deps: "x:deps"}}\n')
    agents = load_settings(file).agents
    assert (agents["a"].agent, agents["a"].deps) == ("x.y:z", "")
    assert (agents["b"].agent, agents["b"].deps) == ("x:b", "x:deps")


@pytest.mark.parametrize(
    ("agents", "said"),
    [
        ("{a: nowhere}", "is not a location"),
        ("{a: {deps: 'x:y'}}", "the agent's location is missing"),
        ("{a: {agent: 'x:y', dep: 'x:y'}}", "unknown key"),
        ("[a]", "mapping"),
    ],
)
def test_agents_that_are_written_wrongly_are_refused_with_their_place(tmp_path: Path, agents: str, said: str) -> None:
    file = tmp_path / "signoff.yaml"
    file.write_text(f'policy: [{{ask: "*"}}]\nagents: {agents}\n')
    with pytest.raises((WrongFile, SignoffError), match=said) as error:
        load_settings(file)
    assert "signoff.yaml:2" in str(error.value)


# --- systemd ---


def test_the_unit_starts_the_same_again_and_waits_longer_than_it_drains() -> None:
    text = unit_text(["/srv/100% shop"], ["--port", "1", "--log", "json"], timedelta(minutes=2))
    lines = dict(line.partition("=")[::2] for line in text.splitlines() if "=" in line and not line.startswith("#"))
    words = shlex.split(lines["ExecStart"].replace("%%", "%"))
    assert words[-7:] == ["serve", "--project", "/srv/100% shop", "--port", "1", "--log", "json"]
    assert lines["WorkingDirectory"] == "/srv/100%% shop"
    assert lines["TimeoutStopSec"] == "135"
    assert lines["NoNewPrivileges"] == "yes"
    assert lines["KillSignal"] == "SIGTERM"


# --- whoever watches over it ---


class FlakyStore(MemoryStore):
    """A store that works until somebody says otherwise."""

    works = True

    async def read(self, work: Any, *, own: bool = True) -> Any:
        if not self.works:
            raise StoreError("cannot reach postgresql://signoff:hunter2@db.example.com/approvals")
        return await super().read(work, own=own)


async def test_a_store_that_is_gone_makes_it_unready_and_is_counted_and_no_password_is_told() -> None:
    store = FlakyStore(record=True)
    broker = Broker(store)

    async def nobody(connection: object) -> None:
        return None

    inbox = project_inbox(broker, no_settings(), "web")
    state = ServerState(broker=broker, inbox=inbox, identify=nobody, people=dict)
    transport = httpx.ASGITransport(Starlette(routes=[*operations(state)]))
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
        assert (await client.get("/readyz")).status_code == 200
        store.works = False
        said = await client.get("/readyz")
        assert said.status_code == 503
        assert "cannot reach" in said.json()["why"]
        assert "hunter2" not in said.text
        assert (await client.get("/healthz")).json()["status"] == "ok", "the process lives"
        assert "signoff_store_errors_total 2" in (await client.get("/metrics")).text
        store.works = True
        assert (await client.get("/readyz")).json() == {"status": "ready"}
        state.stopping.set()
        assert (await client.get("/readyz")).json()["why"] == "the server is shutting down"


async def test_what_waits_is_counted_once_for_all_who_ask_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    doors, reads = Doors(), list[str]()
    await doors.ask()
    read = doors.store.read

    async def slowly(work: Any, **how: Any) -> Any:
        reads.append("read")
        await asyncio.sleep(0)
        return await read(work, **how)

    monkeypatch.setattr(doors.store, "read", slowly)
    async with doors.browser() as client:
        answers = await asyncio.gather(*(client.get("/metrics") for _ in range(8)))
    assert all('signoff_requests_waiting{state="pending"} 1\n' in one.text for one in answers)
    assert all('signoff_requests_waiting{state="unknown"} 0\n' in one.text for one in answers)
    assert reads == ["read"]


@pytest.mark.parametrize(
    ("answer", "who"),
    [
        (
            b'{"service": "signoff", "pid": 7, "since": "2031-05-24T18:00:00+00:00"}',
            "7, since 2031-05-24 18:00:00",
        ),
        (b'{"service": "signoff", "pid": 7, "since": "\\u001b]0;gotcha\\u0007"}', "another program listens there"),
        (b'{"service": "signoff"}', "a signoff server runs there"),
        (b"\x1b[2J", "another program listens there"),
    ],
)
def test_whoever_has_the_port_says_nothing_that_steers_the_terminal(answer: bytes, who: str) -> None:
    class Answers(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, format: str, *args: Any) -> None:
            """Nothing."""

    with HTTPServer(("127.0.0.1", 0), Answers) as other:
        thread = Thread(target=other.handle_request)
        thread.start()
        with pytest.raises(WrongUse, match="is in use") as told:
            bound("127.0.0.1", other.server_port)
        thread.join(30)
    assert who in str(told.value)
    assert "\x1b" not in str(told.value)


# --- one elsewhere, of which nobody knows whether it lives ---


async def test_one_elsewhere_is_waited_for_until_it_has_been_silent_for_too_long(
    another: Opens,  # noqa: F811
    clock: FakeClock,  # noqa: F811
) -> None:
    far, here = another(far=True), another()
    await take_store(far.ledger, "http://10.0.0.2:8420")
    told: list[str] = []
    taking = asyncio.create_task(take_store(here.ledger, "http://127.0.0.1:8420", told.append))
    for _ in range(int(LEASE.total_seconds()) + 2):
        await _settled(clock, taking)
    await taking
    assert len(told) == 1 and "until recently" in told[0]
    assert await url_of(here) == "http://127.0.0.1:8420"


async def test_one_elsewhere_that_gives_a_sign_of_life_keeps_the_store(
    another: Opens,  # noqa: F811
    clock: FakeClock,  # noqa: F811
) -> None:
    far, here = another(far=True), another()
    await take_store(far.ledger, "http://10.0.0.2:8420")
    taking = asyncio.create_task(take_store(here.ledger, "http://127.0.0.1:8420", lambda text: None))
    for _ in range(3):
        await _settled(clock, taking)
    await check_store(far.ledger)
    for _ in range(3):
        await _settled(clock, taking)
    with pytest.raises(WrongUse, match=r"already served at http://10\.0\.0\.2"):
        await taking


async def _settled(clock: FakeClock, task: asyncio.Task[None]) -> None:  # noqa: F811
    """Let a second pass, once the task sleeps."""
    while not task.done() and not clock._sleepers:
        await asyncio.sleep(0)
    clock.advance(1)
    await asyncio.sleep(0)


# --- small things that must not stop anything ---


def test_a_log_that_nobody_reads_any_longer_stops_nothing(tmp_path: Path) -> None:
    out = (tmp_path / "log").open("w")
    printer = LinePrinter(as_json=True, out=out)
    out.close()
    printer.say("run", "it goes on")


async def test_a_process_that_says_very_much_is_known_by_its_last_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    talks = "import sys; sys.stderr.write('chatter\\n' * 1_000_000); sys.exit('the end of it')"
    monkeypatch.setattr(run_process, "COMMAND", (sys.executable, "-S", "-c", talks))
    tracemalloc.start()
    try:
        with pytest.raises(RunError, match=r"^the end of it$"):
            await run_process.RunProcess(str(tmp_path), "sqlite:x.db").resume(SavedRun(id="r"))
        assert tracemalloc.get_traced_memory()[1] < 4_000_000
    finally:
        tracemalloc.stop()


async def test_time_passes_although_the_clock_is_set_back() -> None:
    class SetBack(SystemClock):
        def now(self) -> datetime:
            return datetime.now(UTC) - timedelta(seconds=10 * time.monotonic())

    async with asyncio.timeout(10):
        await pause_for(SetBack(), timedelta(milliseconds=1))


async def test_a_look_that_is_overtaken_changes_nothing() -> None:
    class Slow(MemoryStore):
        """Gives what the first reader looked at after what the second did."""

        held: asyncio.Event | None = None

        async def read(self, work: Any, *, own: bool = True) -> Any:
            found = await super().read(work, own=own)
            if (held := self.held) is not None:
                self.held = None
                await held.wait()
            return found

    store = Slow(record=True)
    broker = Broker(store)
    store.held = later = asyncio.Event()
    with broker.watch.listening() as ear:
        first = asyncio.create_task(broker.watch._look(ear))
        await asyncio.sleep(0)
        await store.write("halt", lambda tx: tx.settings.put("halted", "by ana"))
        await broker.watch._look(ear)
        later.set()
        await first
        assert broker.watch.halted == "by ana"


def test_a_resumed_run_imports_nothing_from_its_directory_by_itself(tmp_path: Path) -> None:
    """An agent may have written there."""
    for name in ("click", "json", "signoff"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('an agent wrote this')\n")
    done = subprocess.run(
        [*run_process.COMMAND, "--version"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout[:8]) == (0, "signoff,"), done.stderr


@pytest.mark.parametrize(
    ("people", "here", "option"),
    [
        ("{ana: {admin: true}, ben: {}}", "ben", " --as ana"),
        ("{ana: {admin: true}, ben: {}}", "ana", ""),
        ("{ana: {admin: true}, ben: {}}", "root", " --as ana"),
        ("{ana: {}, ben: {}}", "root", " --as YOU"),
        ("{ana: {}, ben: {}}", "ben", ""),
    ],
)
def test_the_command_for_links_is_one_that_whoever_started_the_server_can_give(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, people: str, here: str, option: str
) -> None:
    monkeypatch.setenv("SIGNOFF_AS", here)
    (tmp_path / "signoff.yaml").write_text(f"people: {people}\npolicy: []\n")
    assert as_whom(load_settings(str(tmp_path / "signoff.yaml"))) == option
