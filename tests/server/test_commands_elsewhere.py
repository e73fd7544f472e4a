"""Commands with `--server`: the same words, exit codes and JSON as in the project itself, and clear errors."""

from __future__ import annotations

import asyncio
import json
import re
import socket
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest
import uvicorn
from tests.cli.desk import POLICY, Desk, Said, asks
from tests.stores import closed_in_the_end

from signoff.broker import Broker
from signoff.cli import server_client
from signoff.config import load_settings
from signoff.core.access import AccessKind, Permission
from signoff.core.comment import Comment
from signoff.core.decision import ApprovalDecision
from signoff.core.people import Actor
from signoff.core.request import ApprovalRequest
from signoff.core.request_context import RequestContext
from signoff.core.run import SavedRun
from signoff.core.verdict import Requirement
from signoff.errors import RunTaken
from signoff.server.app import application
from signoff.server.key_identity import KeyIdentity
from signoff.server.state import ServerState
from signoff.store.sqlite import SqliteStore
from signoff.views.json_form import FORMAT
from signoff.wiring.program_inbox import project_inbox
from signoff.wiring.project import roles_of
from signoff.wiring.project_rules import ProjectRules

SECRET = "s3cr3t-value-17"
HOSTILE = "a\x1b[2J\u202eb ⟦masked 9: token⟧"


@pytest.fixture(autouse=True)
def programs_end() -> Iterator[None]:
    with closed_in_the_end():
        yield


@dataclass
class Runs:
    """What a server is asked to go on with. See `signoff.server.state.RunControl`."""

    resumed: list[str] = field(default_factory=list[str])
    asked: list[Comment] = field(default_factory=list[Comment])

    async def start(self, worker: str, prompt: str, *, input: Mapping[str, Any] | None, requester: str) -> str:
        raise AssertionError("no command starts runs on a server")

    async def resume(self, run_id: str) -> None:
        self.resumed.append(run_id)

    async def hindrance(self, run_id: str) -> str:
        return ""

    async def check_agent(self, request: ApprovalRequest) -> None:
        """Anything may be asked."""

    def ask_agent(self, question: Comment) -> None:
        self.asked.append(question)

    def workers(self) -> Mapping[str, str]:
        return {}


class Served:
    """A real server on loopback over the store of a desk."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self.runs = Runs()
        self.url = self.token = ""
        self._ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), daemon=True)

    async def _serve(self) -> None:
        settings = load_settings(self._directory / "signoff.yaml")
        store = SqliteStore(self._directory / "approvals.db")
        broker = Broker(store, people=roles_of(settings))
        self.token = (self._directory / "token").read_text()
        state = ServerState(
            broker=broker,
            inbox=project_inbox(broker, settings, "api"),
            identify=KeyIdentity(broker, lambda: settings.people),
            people=lambda: settings.people,
            rules=ProjectRules(broker, settings),
            runs=self.runs,
        )
        config = uvicorn.Config(application(state), log_level="error", lifespan="off")
        self._server = uvicorn.Server(config)
        with socket.socket() as listening:
            listening.bind(("127.0.0.1", 0))
            listening.listen()
            self.url = f"http://127.0.0.1:{listening.getsockname()[1]}"
            self._ready.set()
            await self._server.serve(sockets=[listening])
        broker.watch.close()
        store.close()

    def __enter__(self) -> Served:
        self._thread.start()
        assert self._ready.wait(60)
        return self

    def __exit__(self, *_: object) -> None:
        self._server.should_exit = True
        self._thread.join(30)
        assert not self._thread.is_alive()


@pytest.fixture
def make_desk(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[[Path], Desk]:
    def made(directory: Path) -> Desk:
        directory.mkdir(exist_ok=True)
        (directory / "signoff.yaml").write_text(POLICY.replace("ana: {roles", "ana: {admin: true, roles"))
        return Desk(directory, capsys, monkeypatch)

    return made


def sit_at(desk: Desk, served: Served | None = None) -> None:
    """Whatever is typed next is typed here; with a server, by somebody who has no store."""
    for name in ("SIGNOFF_SERVER", "SIGNOFF_TOKEN", "SIGNOFF_STORE", "SIGNOFF_AS"):
        desk.monkeypatch.delenv(name, raising=False)
    kept = {name: desk.environment[name] for name in ("TERM", "XDG_STATE_HOME", "TZ")} | {"COLUMNS": "160"}
    if served is None:
        kept |= {name: desk.environment[name] for name in ("SIGNOFF_STORE", "SIGNOFF_AS")}
        desk.monkeypatch.chdir(desk.directory)
    else:
        kept |= {"SIGNOFF_SERVER": served.url, "SIGNOFF_TOKEN": served.token}
        empty = desk.directory / "elsewhere"
        empty.mkdir(exist_ok=True)
        desk.monkeypatch.chdir(empty)
    for name, value in kept.items():
        desk.monkeypatch.setenv(name, value)


def filled(desk: Desk) -> None:
    """Something of everything, the same in both places but for moments and ids that are drawn."""

    async def token(broker: Broker) -> None:
        _, secret = await broker.access.issue(
            AccessKind.TOKEN, "ana", by="ana", lasts=timedelta(days=1), permissions=frozenset(Permission)
        )
        (desk.directory / "token").write_text(secret)

    async def work(broker: Broker) -> None:
        needs = Requirement(role="ops", quorum=2, timeout=timedelta(hours=3))
        words = RequestContext(prompt=f"pay {SECRET}", words="it is due")
        await broker.runs.begin(SavedRun(id="run1", agent="worker:triage", prompt="Pay the bills\nall of them"))
        await broker.runs.put_down("run1", 1)
        await broker.open(
            [
                asks(id="plain1", secrets=(SECRET,), context=words, requester="cleo", owners=("ben",)),
                asks(id="plain2", run="run1"),
                asks(id="quorum1", needs=needs),
                asks("say", {"text": f"{HOSTILE}\n{SECRET}", "token": SECRET}, id="hostile1", secrets=(SECRET,)),
                asks(id="long1", args={"to": "ana", "amount": 1, "currency": "x\n" * 400}),
                asks(id="lost1", run="run1"),
                asks(id="denied1", secrets=(SECRET,)),
                asks(id="edit1"),
                asks(id="late1"),
            ]
        )
        ana = Actor(name="ana", roles=frozenset({"ops", "dev"}))
        await broker.answer("denied1", ApprovalDecision(approved=False, note=f"no {SECRET}"), by=ana)
        await broker.answer("lost1", ApprovalDecision(approved=True), by=ana)
        await broker.claim("lost1")
        await broker.lose("lost1")
        await token(broker)

    desk.do(work)


COMMANDS = (
    ("inbox",),
    ("inbox", "--json"),
    ("inbox", "--mine"),
    ("inbox", "--limit", "2", "--json"),
    ("show", "plain1"),
    ("show", "plain1", "--json"),
    ("show", "hostile1"),
    ("show", "hostile1", "--json"),
    ("show", "hostile1", "--arg", "text"),
    ("show", "hostile1", "--arg", "nope"),
    ("show", "long1", "--whole"),
    ("show", "denied1"),
    ("show", "lost1"),
    ("show", "p"),
    ("show", "nobody"),
    ("comment", "plain1", "the customer called"),
    ("ask-back", "plain1", f"Which one? {SECRET}"),
    ("inbox",),
    ("show", "plain1"),
    ("reply", "plain1", "4711"),
    ("reply", "plain1", "again"),
    ("ask-back", "denied1", "Why?"),
    ("comment", "nobody", "hm"),
    ("show", "plain1", "--json"),
    ("take", "plain1"),
    ("assign", "plain1", "cleo"),
    ("assign", "quorum1", "cleo"),
    ("assign", "plain1", "mallory"),
    ("release", "plain1"),
    ("release", "quorum1"),
    ("take", "denied1"),
    ("approve", "quorum1"),
    ("approve", "quorum1"),
    ("show", "quorum1"),
    ("approve", "plain1", "--note", "fine"),
    ("approve", "plain1"),
    ("approve", "lost1"),
    ("approve", "nobody", "late1", "--json"),
    ("deny", "late1", "--json"),
    ("approve", "edit1", "--args", '{"to": "mallory", "amount": 3}'),
    ("approve", "edit1", "--args", '{"to": "ana", "amount": "x"}'),
    ("approve", "edit1", "--args", "{nonsense"),
    ("approve", "edit1", "--args", '{"to": "ana", "amount": 3}'),
    ("approve", "plain2", "--remember", "7", "--yes"),
    ("approve", "plain2", "--remember", "exact"),
    ("approve", "plain2", "--remember", "2", "--for", "run", "--uses", "3", "--yes", "--json"),
    ("approve", "hostile1", "--remember", "exact", "--budget", "nope 3", "--yes"),
    ("deny", "hostile1", "--remember", "exact", "--yes"),
    ("grants", "list"),
    ("grants", "list", "--json"),
    ("grants",),
    ("grants", "explain", "nope"),
    ("grants", "revoke", "nope"),
    ("outcome", "plain1", "happened"),
    ("outcome", "lost1", "did-not", "--note", "looked at the account"),
    ("runs",),
    ("runs", "--json"),
    ("runs", "show", "run1"),
    ("runs", "show", "run1", "--json"),
    ("runs", "show", "nope"),
    ("cancel", "run1", "--note", "wrong customer"),
    ("cancel", "run1"),
    ("runs", "--all"),
    ("people",),
    ("people", "--json"),
    ("delegate", "ana", "ben", "--until", "3d"),
    ("delegate", "ana", "mallory", "--until", "3d"),
    ("delegate", "ana", "ben", "--until", "yesterday"),
    ("people",),
    ("delegate", "ana", "ben", "--end"),
    ("delegate", "ana", "ben", "--end"),
    ("halt", "--note", "wrong prices"),
    ("inbox",),
    ("runs",),
    ("unhalt", "--note", "prices are right"),
    ("unhalt",),
    ("audit", "log"),
    ("audit", "log", "--request", "plain1"),
    ("audit", "log", "--request", "nobody"),
    ("audit", "log", "--limit", "3"),
    ("audit", "log", "--since", "1h"),
    ("audit", "verify"),
    ("policy", "explain", "--tool", "pay", "--args", '{"amount": 2000}'),
    ("policy", "explain", "--tool", "pay", "--args", '{"to": "mallory"}', "--json"),
    ("policy", "explain", "--tool", "pay", "--label", "nope"),
    ("approve", "long1", "--json"),
)
"""Typed one after the other, in both places. The long one last: that it was read is on a server's record."""

_TIMES = (
    (r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC", "<moment>"),
    (r"\d\d-\d\d \d\d:\d\d:\d\d UTC", "<moment>"),
    (r"\d{4}-\d\d-\d\dT[\d:.]+(Z|\+00:00)", "<moment>"),
    (r"\d+ (s|min) ago|just now|started \d+ \w+ ago", "<ago>"),
    (r"in \d+ (h|min|s|days)( \d+ min)?", "<ahead>"),
)


def same(said: Said, desk: Desk) -> tuple[int, str, str]:
    """What was said, without what differs by itself: moments, drawn ids, the place, and how it came in."""

    async def ids(broker: Broker) -> dict[str, str]:
        def look(tx: Any) -> dict[str, str]:
            comments = [one for each in ("plain1", "denied1") for one in tx.comments.of(each)]
            names = {one.id: f"<comment {at}>" for at, one in enumerate(comments)}
            names |= {one.id: f"<grant {at}>" for at, one in enumerate(tx.grants.all(revoked=True))}
            lost = tx.requests.get("lost1").claim
            return {**names, lost.holder: "<process>"} if lost is not None else names

        return await broker.store.read(look)

    def plain(text: str) -> str:
        for drawn, name in names.items():
            text = text.replace(drawn, name)
        for pattern, name in _TIMES:
            text = re.sub(pattern, name, text)
        text = re.sub(r"<ago> +", "<ago> ", text)  # it stands in a column
        text = re.sub(r"(?m)(<ago> .{40}).*…$", r"\1…", text)  # how much fits behind it depends on its length
        text = re.sub(r"(searched: .*|searched: .*)", "<where>", text)
        text = re.sub(r"(?m)^(project .*|server http.*)$", "<where>", text)
        text = re.sub(r"(Its run can be resumed: .*|The server resumes its run\.)", "<how it continues>", text)
        text = re.sub(r"(signoff resume run1|the server resumes it)", "<how it continues>", text)
        text = re.sub(r'"resumer": "(the server)?"', "<how it continues>", text)
        text = re.sub(r'"next": "[^"]+"', "<cursor>", text)  # it holds a moment
        text = re.sub(r"by process \S+|\"process\": \"[^\"]+\"", "<process>", text)
        text = re.sub(r"via (command|api)|\((command|api)\)|\"via\": \"(command|api)\"", "<via>", text)
        text = re.sub(r"\"(hash|prev|head|key|call_key|digest)\": \"[0-9a-f]*\"|key [0-9a-f]{20,}", "<digest>", text)
        text = re.sub(
            r"signoff: .*(lists no person called|no listed person is called)[^\n]*(\n  known here.*)?", "<nobody>", text
        )
        return re.sub(r" at \S*signoff\.yaml:", " at signoff.yaml:", text).replace(f"{desk.directory}/", "")

    names = desk.do(ids)
    return said.code, plain(said.out), plain(said.err)


def test_every_command_says_the_same_through_a_server(tmp_path: Path, make_desk: Callable[[Path], Desk]) -> None:
    here, there = make_desk(tmp_path / "here"), make_desk(tmp_path / "there")
    for desk in (here, there):
        asks.number = 0  # type: ignore[attr-defined]
        filled(desk)
    differences: list[str] = []
    with Served(there.directory) as served:
        for typed in COMMANDS:
            here.types("")
            sit_at(here)
            mine = same(here.run(*typed), here)
            sit_at(there, served)
            theirs = same(there.run(*typed), there)
            if mine != theirs:
                differences.append(f"$ signoff {' '.join(typed)}\nhere:  {mine}\nthere: {theirs}\n")
    assert not differences, "\n".join(differences)


def test_nothing_that_is_said_through_a_server_holds_a_secret(
    tmp_path: Path, make_desk: Callable[[Path], Desk]
) -> None:
    desk = make_desk(tmp_path / "there")
    filled(desk)
    with Served(desk.directory) as served:
        sit_at(desk, served)
        desk.run("comment", "plain1", f"use {SECRET}")
        for typed in (("inbox", "--json"), ("show", "plain1", "--json"), ("show", "hostile1"), ("audit", "log")):
            assert SECRET not in desk.run(*typed).out
        assert "\x1b" not in desk.run("show", "hostile1").out


def test_a_run_is_resumed_by_the_server(tmp_path: Path, make_desk: Callable[[Path], Desk]) -> None:
    desk = make_desk(tmp_path / "there")
    filled(desk)
    desk.begin("run7")
    with Served(desk.directory) as served:
        sit_at(desk, served)
        said = desk.run("resume", "run7")
        assert (said.code, said.out) == (0, "the server resumes run run7\n")
        assert {"run": "run7", "resumed": True} in desk.run("resume", "--all", "--json").rows
        assert served.runs.resumed.count("run7") == 2
        assert desk.run("resume", "run7", "--model", "x").code == 2
        assert desk.run("resume", "nope").code == 1


def test_calls_are_judged_by_the_policy_of_the_server(tmp_path: Path, make_desk: Callable[[Path], Desk]) -> None:
    desk = make_desk(tmp_path / "there")
    filled(desk)
    with Served(desk.directory) as served:
        sit_at(desk, served)
        calls = desk.directory / "calls.jsonl"
        calls.write_text('{"tool": "pay", "args": {"to": "mallory"}}\n{"tool": "pay", "args": {"amount": 5}}\n')
        assert [row["verdict"] for row in desk.run("policy", "judge", str(calls)).rows] == ["deny", "ask"]


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        (("approve", "x", "--as", "ben"), "--as cannot be used with a server: your token says who you are"),
        (("inbox", "--policy", "signoff.yaml"), "--policy is a local file"),
        (("inbox", "--tui"), "--tui works with a local store"),
        (("run", "x", "--server", "https://one.example"), "`signoff run` works on local files"),
        (("init", "--server", "https://one.example"), "`signoff init` works on local files"),
        (("db", "check", "--server", "https://one.example"), "works on local files"),
        (("audit", "export", "--server", "https://one.example"), "works on local files"),
        (("show", "x", "--store", "sqlite:x.db", "--server", "https://one.example"), "name two different places"),
        (("show", "x", "--server", "http://one.example"), "is not encrypted"),
        (("show", "x", "--server", "ftp://one.example"), "is not a server address"),
        (("show", "x", "--server", "https://ana:pw@one.example"), "is not a server address"),
        (("show", "x", "--server", "https://one.example/?a=b"), "is not a server address"),
        (("show", "x", "--token-file", "no-such-file"), "no-such-file cannot be read as a token"),
    ],
)
def test_what_does_not_go_with_a_server(
    tmp_path: Path, make_desk: Callable[[Path], Desk], typed: tuple[str, ...], told: str
) -> None:
    desk = make_desk(tmp_path)
    sit_at(desk)
    desk.monkeypatch.setenv("SIGNOFF_SERVER", "http://127.0.0.1:9")
    desk.monkeypatch.setenv("SIGNOFF_TOKEN", "sot_x")
    said = desk.run(*typed)
    assert said.code == 2
    assert told in said.err
    assert "pw@" not in said.err


def test_a_store_that_is_named_is_meant_whatever_the_environment_says(
    tmp_path: Path, make_desk: Callable[[Path], Desk]
) -> None:
    desk = make_desk(tmp_path)
    [one] = desk.open(asks())
    sit_at(desk)
    desk.monkeypatch.setenv("SIGNOFF_SERVER", "http://127.0.0.1:9")
    assert desk.run("show", one, "--store", f"sqlite:{desk.file}").code == 0


def test_without_a_token_nothing_is_sent(tmp_path: Path, make_desk: Callable[[Path], Desk]) -> None:
    desk = make_desk(tmp_path)
    sit_at(desk)
    desk.monkeypatch.setenv("SIGNOFF_SERVER", "http://127.0.0.1:9")
    said = desk.run("inbox")
    assert said.code == 2
    assert "a server needs a token" in said.err


def test_a_token_may_come_from_a_file_and_a_wrong_one_is_refused(
    tmp_path: Path, make_desk: Callable[[Path], Desk]
) -> None:
    desk = make_desk(tmp_path / "there")
    filled(desk)
    with Served(desk.directory) as served:
        sit_at(desk, served)
        desk.monkeypatch.setenv("SIGNOFF_TOKEN", "sot_wrong")
        said = desk.run("inbox")
        assert said.code == 1
        assert "it refuses this token: it is wrong, expired or revoked" in said.err
        assert "sot_wrong" not in said.err
        file = desk.directory / "token-file"
        file.write_text(f"{served.token}\n")
        assert desk.run("inbox", "--token-file", str(file)).code == 0


def test_a_server_that_is_not_there(tmp_path: Path, make_desk: Callable[[Path], Desk]) -> None:
    desk = make_desk(tmp_path)
    sit_at(desk)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # nobody listens there
        desk.monkeypatch.setenv("SIGNOFF_SERVER", f"http://127.0.0.1:{taken.getsockname()[1]}")
        desk.monkeypatch.setenv("SIGNOFF_TOKEN", "sot_x")
        for typed in (("inbox",), ("approve", "x"), ("audit", "log"), ("policy", "explain", "--tool", "x")):
            said = desk.run(*typed)
            assert (said.code, said.out) == (1, "")
            assert "it cannot be reached: Connection refused" in said.err


@contextmanager
def answering(answer: bytes, *, drips: bool = False) -> Iterator[str]:
    """Something that listens, and answers whatever it is asked with these bytes; or with one now and then."""
    listening = socket.create_server(("127.0.0.1", 0))
    over = threading.Event()

    def serve() -> None:
        while not over.is_set():
            try:
                connection, _ = listening.accept()
            except OSError:
                return
            with connection:
                try:
                    connection.recv(65_536)
                    connection.sendall(answer)
                    while drips and not over.wait(0.02):
                        connection.sendall(b" ")
                except OSError:
                    pass

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        over.set()
        listening.shutdown(socket.SHUT_RDWR)
        listening.close()
        thread.join(10)


def _http(status: str, body: bytes, *headers: str) -> bytes:
    head = "\r\n".join((f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", "Connection: close", *headers))
    return head.encode() + b"\r\n\r\n" + body


OURS = f"Signoff-Format: {FORMAT}"


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (b"SSH-2.0-nothing\r\n\r\n", "it sent an invalid HTTP response"),
        (_http("200 OK", b"<html>hello</html>"), "it responded 200 without JSON"),
        (_http("200 OK", b"{}"), "it is not a signoff server"),
        (_http("200 OK", b"[1, 2]", OURS), "it is not a signoff server"),
        (_http("200 OK", b"5", OURS), "it is not a signoff server"),
        (_http("200 OK", b"{}", OURS), "its response has no 'id'"),
        (_http("200 OK", b'{"id": 5}', OURS), "its response has no 'state'"),
        (_http("409 Conflict", b'{"detail": "no", "problems": 5}'), "no"),
        (_http("200 OK", b"{}", "Signoff-Format: 99\x1b"), "it runs another version of signoff"),
        (_http("404 Not Found", b"{}"), "it runs an older or newer version of signoff"),
        (
            _http("302 Found", b"", "Location: https://evil.example/"),
            "it redirects elsewhere, and signoff does not forward the token",
        ),
        (_http("502 Bad Gateway", b"<html>"), "it responded 502 without JSON"),
        (_http("500 Oops", b'{"detail": "a\\u001b[2Jb"}'), "it answers 500: a⟦ESC⟧[2Jb"),
        (b"", "it closed the connection without a response"),
    ],
)
def test_answers_that_no_signoff_gives(
    tmp_path: Path, make_desk: Callable[[Path], Desk], answer: bytes, told: str
) -> None:
    desk = make_desk(tmp_path)
    sit_at(desk)
    desk.monkeypatch.setattr(server_client, "PAUSES", (0.01, 0.01))
    desk.monkeypatch.setenv("SIGNOFF_TOKEN", "sot_x")
    with answering(answer) as url:
        desk.monkeypatch.setenv("SIGNOFF_SERVER", url)
        said = desk.run("show", "x")
    assert said.code == 1
    assert told in said.err
    assert said.err.startswith("signoff: ")


@pytest.mark.parametrize(
    "beginning",
    [
        _http("200 OK", b"")[:-4].replace(b"Content-Length: 0", b"Content-Length: 99999") + b"\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nX: ",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1",
    ],
    ids=["body", "header", "chunk"],
)
def test_a_server_that_drips_is_not_waited_for(
    tmp_path: Path, make_desk: Callable[[Path], Desk], monkeypatch: pytest.MonkeyPatch, beginning: bytes
) -> None:
    desk = make_desk(tmp_path)
    sit_at(desk)
    monkeypatch.setattr(server_client, "PATIENCE", 1.0)
    desk.monkeypatch.setenv("SIGNOFF_TOKEN", "sot_x")
    with answering(beginning, drips=True) as url:
        desk.monkeypatch.setenv("SIGNOFF_SERVER", url)
        said = desk.run("show", "x")
    assert said.code == 1
    assert "no response within 1 seconds" in said.err


def test_the_record_that_is_read_through_a_server_is_the_record(
    tmp_path: Path, make_desk: Callable[[Path], Desk]
) -> None:
    desk = make_desk(tmp_path / "there")
    filled(desk)
    with Served(desk.directory) as served:
        sit_at(desk)
        mine = desk.run("audit", "log", "--json", "--limit", "20").out
        sit_at(desk, served)
        assert desk.run("audit", "log", "--json", "--limit", "20").out == mine
        assert json.loads(mine.splitlines()[0])["hash"]


# --- a way that loses things ---


class LossyWay:
    """Between a command and a server: what `loses` says of what is sent comes to nothing, or its answer does."""

    def __init__(self, url: str, loses: Callable[[str, int], str]) -> None:
        """`loses` gets the first line and how often it came: `sent`, `answer`, or nothing."""
        self._port = int(url.rpartition(":")[2])
        self._loses = loses
        self._seen: Counter[str] = Counter()
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listening.getsockname()[1]}"
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listening.accept()
            except OSError:
                return
            with connection:
                self._pass(connection)

    def _pass(self, connection: socket.socket) -> None:
        said = b""
        while b"\r\n\r\n" not in said:
            said += connection.recv(65_536)
        head, _, body = said.partition(b"\r\n\r\n")
        length = next((int(one[15:]) for one in head.split(b"\r\n") if one.lower().startswith(b"content-length:")), 0)
        while len(body) < length:
            body += connection.recv(65_536)
        line = head.partition(b"\r\n")[0].decode()
        self._seen[line] += 1
        loses = self._loses(line, self._seen[line])
        if loses == "sent":
            return
        with socket.create_connection(("127.0.0.1", self._port)) as there:
            there.sendall(head + b"\r\nConnection: close\r\n\r\n" + body)
            answer = b""
            while part := there.recv(65_536):
                answer += part
        if loses != "answer":
            connection.sendall(answer)

    def __enter__(self) -> LossyWay:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        self._thread.join(30)


def _voting(line: str) -> bool:
    return line.startswith("POST /api/v1/votes ")


@pytest.mark.parametrize(
    ("loses", "code", "told"),
    [
        (lambda line, count: "answer" if _voting(line) and count < 3 else "", 0, "approved"),
        (lambda line, count: "sent" if _voting(line) and count < 3 else "", 0, "approved"),
        (lambda line, count: "sent" if line.startswith("GET") and count > 1 else "", 0, "approved"),
        (lambda line, count: "answer" if _voting(line) else "", 1, "the change may have been made: signoff show "),
    ],
    ids=["its answer", "itself", "what comes after", "all answers"],
)
def test_a_vote_is_told_as_what_it_came_to_whatever_is_lost_on_the_way(
    tmp_path: Path,
    make_desk: Callable[[Path], Desk],
    monkeypatch: pytest.MonkeyPatch,
    loses: Callable[[str, int], str],
    code: int,
    told: str,
) -> None:
    monkeypatch.setattr(server_client, "PAUSES", (0.01, 0.01))
    desk = make_desk(tmp_path / "there")
    filled(desk)
    request = "plain1"
    with Served(desk.directory) as served, LossyWay(served.url, loses) as way:
        sit_at(desk, served)
        desk.monkeypatch.setenv("SIGNOFF_SERVER", way.url)
        said = desk.run("approve", request)
        assert said.code == code, said
        assert told in said.out + said.err
        desk.monkeypatch.setenv("SIGNOFF_SERVER", served.url)
        assert desk.run("show", request, "--json").rows[0]["state"] == "approved"


def test_each_run_that_is_resumed_by_the_server_is_told_of_by_itself(
    tmp_path: Path, make_desk: Callable[[Path], Desk], monkeypatch: pytest.MonkeyPatch
) -> None:
    desk = make_desk(tmp_path / "there")
    filled(desk)
    for name in ("run7", "run8", "run9"):
        desk.begin(name)
    with Served(desk.directory) as served:
        real = served.runs.resume

        async def resume(run_id: str) -> None:
            if run_id == "run8":
                raise RunTaken("run run8 is already running")
            await real(run_id)

        monkeypatch.setattr(served.runs, "resume", resume)
        sit_at(desk, served)
        said = desk.run("resume", "--all")
        assert said.code == 1
        assert "run run8 is already running" in said.err
        assert {"run7", "run9"} <= {*served.runs.resumed}


def test_json_of_a_command_is_what_the_api_answers(tmp_path: Path, make_desk: Callable[[Path], Desk]) -> None:
    desk = make_desk(tmp_path / "there")
    filled(desk)
    desk.run("ask-back", "plain1", "Why?")
    desk.run("approve", "quorum1", "--note", f"ok {SECRET}")
    desk.run("approve", "plain2", "--remember", "exact", "--yes")
    pairs = {
        ("inbox",): "/requests",
        ("inbox", "--mine", "--limit", "2"): "/requests?mine=true&limit=2",
        ("show", "plain1"): "/requests/plain1",
        ("show", "quorum1"): "/requests/quorum1",
        ("show", "hostile1"): "/requests/hostile1",
        ("show", "denied1"): "/requests/denied1",
        ("runs", "--all"): "/runs?state=all",
        ("runs", "show", "run1"): "/runs/run1",
        ("grants", "list"): "/grants",
        ("people",): "/people",
    }
    with Served(desk.directory) as served:
        sit_at(desk, served)
        for typed, path in pairs.items():
            asked = Request(f"{served.url}/api/v1{path}", headers={"Authorization": f"Bearer {served.token}"})
            with urlopen(asked) as answer:
                assert answer.headers["Signoff-Format"] == str(FORMAT)
                assert desk.run(*typed, "--json").data == json.load(answer), typed
