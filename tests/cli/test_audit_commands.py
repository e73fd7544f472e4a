"""`signoff audit log`, `verify` and `export`, as a person and as a program would use them."""

from __future__ import annotations

import asyncio
import csv
import io
import json
import os
import pty
import re
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Sequence
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result
from tests import start
from tests.cli.program import signoff
from tests.cli.wording import Wording
from tests.records import NOON, drafts

from signoff.cli import audit_command as commands
from signoff.cli.audit_command import audit
from signoff.cli.audit_log import moment
from signoff.core.record import EventDraft
from signoff.core.request import ApprovalRequest
from signoff.core.run import SavedRun
from signoff.errors import SignoffError, WrongUse
from signoff.store.signing_key import Keys
from signoff.store.sqlite import SqliteStore

URL = "sqlite:signoff.db"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("SIGNOFF_STORE", URL)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*args: str, stdin: bytes = b"") -> Result:
    """Run a command the way the program does: a known error is a message and an exit code."""

    @click.command(context_settings={"ignore_unknown_options": True}, add_help_option=False)
    @click.argument("args", nargs=-1, type=click.UNPROCESSED)
    def program(args: tuple[str, ...]) -> None:
        try:
            sys.exit(audit.main(list(args), standalone_mode=False))
        except SignoffError as error:
            click.echo(f"signoff: {error}", err=True)
            sys.exit(error.exit_code)

    return CliRunner().invoke(program, args, input=stdin, catch_exceptions=False)


def write(made: Sequence[EventDraft], file: str = "signoff.db") -> None:
    with closing(SqliteStore(file)) as store:
        asyncio.run(store.write("test", lambda tx: tx.record.append(made)))


def tamper(statement: str) -> None:
    with closing(sqlite3.connect("signoff.db")) as connection, connection:
        connection.execute(statement)


def key() -> str:
    return Keys().public_key()


# --- log ---


def event(kind: str = "asked", at: datetime = NOON, request: str = "", run: str = "", **body: Any) -> EventDraft:
    return EventDraft(kind=kind, at=at, request=request, run=run, body=body)


@pytest.mark.usefixtures("here")
def test_log_tells_the_chain_of_agents_the_rule_and_how_a_call_ended() -> None:
    workers, rule = ["coder", "reviewer"], {"rules": ["own-code"], "reason": "reading is harmless"}
    write(
        [
            event("allowed", tool="shell", args={"command": "git diff"}, worker=workers, **rule),
            event("ran", tool="shell", worker=workers, why="3 lines", **rule),
            event(title="Delete a.txt", worker=workers, rules=["a", "b"], reason="x" * 300),
            event(title="Delete b.txt", rules=["own-code"], reason="why; rule “own-code” could not be checked"),
        ]
    )
    allowed, ran, asked, doubted = run("log").stdout.splitlines()
    assert doubted.endswith("Delete b.txt: why; rule “own-code” could not be checked"), "it names its rule once"
    assert 'coder > reviewer > shell {"command": "git diff"}: reading is harmless  (rule own-code)' in allowed
    assert ran.endswith("coder > reviewer > shell: 3 lines  (rule own-code)")
    assert "coder > reviewer: Delete a.txt: xxx" in asked
    assert "(rules a, b)" in asked


@pytest.mark.usefixtures("here")
def test_log_tells_when_what_who_and_about_what(wording: Wording) -> None:
    write(
        [
            event(title="Delete a.txt", reason="it changes files", request="abcdefghjk", run="qrstuvwxyz"),
            event("voted", by="ana", approved=True, note="fine", request="abcdefghjk"),
            event("allowed", tool="look", args={"path": "a"}),
        ]
    )
    result = run("log")
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout == wording()


@pytest.mark.usefixtures("here")
def test_nothing_in_the_log_moves_the_cursor() -> None:
    write([event("as\x1b[2Jked", title="a\u202eb\n2026", request="r\r", by="\x1b[31meve", why="x" * 9_999)])
    for line in (run("log").stdout, run("log", "--json").stdout):
        assert line.rstrip("\n").isprintable()
    assert len(run("log").stdout) < 300


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("form", ["jsonl", "csv"])
def test_an_export_does_nothing_to_a_terminal_and_is_as_it_is_in_a_file(form: str) -> None:
    odd = "a\x1b[2J\x9b2J\u202eb\u3164c"
    write([event("allowed", tool="look", args={"path": odd})])
    program = start.terminal([*start.SIGNOFF, "audit", "export", "--format", form], encoding="utf-8", timeout=60)
    shown = program.read()
    assert "look" in shown
    assert not set(shown) & {"\x9b", "\u202e", "\u3164"}
    assert "\x1b" not in shown
    if form == "jsonl":
        assert {"\x9b", "\u202e", "\u3164"} <= set(run("export").stdout), "its bytes are signed"


@pytest.mark.usefixtures("here")
def test_log_as_json_is_one_object_a_line() -> None:
    made = drafts(14)
    write(made)
    lines = [json.loads(line) for line in run("log", "--json").stdout.splitlines()]
    assert [line["seq"] for line in lines] == list(range(1, 15))
    assert lines[0]["body"]["by"] == made[0].body["by"]


@pytest.mark.usefixtures("here")
def test_log_shows_the_last_ones() -> None:
    write(drafts(120))

    def numbers(*args: str) -> list[int]:
        return [json.loads(line)["seq"] for line in run("log", "--json", *args).stdout.splitlines()]

    assert numbers() == list(range(71, 121))
    assert numbers("--limit", "3") == [118, 119, 120]
    assert numbers("--limit", "1000") == list(range(1, 121))
    assert run("log", "--limit", "0").exit_code != 0


@pytest.mark.usefixtures("here")
def test_log_since_a_moment() -> None:
    now = datetime.now(UTC)
    write([event(at=now - timedelta(hours=hours)) for hours in (900, 72, 30, 5, 3, 1)])

    def numbers(*args: str) -> list[int]:
        return [json.loads(line)["seq"] for line in run("log", "--json", *args).stdout.splitlines()]

    assert numbers("--since", "2h") == [6]
    assert numbers("--since", "4d") == [2, 3, 4, 5, 6]
    assert numbers("--since", "4d", "--limit", "2") == [5, 6]
    assert numbers("--since", (now - timedelta(hours=4)).isoformat()) == [5, 6]
    assert numbers("--since", "2000-01-01") == [1, 2, 3, 4, 5, 6]
    assert numbers("--since", "2100-01-01") == []


@pytest.mark.usefixtures("here")
def test_log_since_is_not_misled_by_clocks_that_disagree() -> None:
    now = datetime.now(UTC)
    minutes = [*range(200, 63, -1), 61, 59, 61, 59, 61, *range(58, 0, -1)]
    write([event(at=now - timedelta(minutes=one)) for one in minutes])
    shown = run("log", "--json", "--since", "60m").stdout.splitlines()
    assert len(shown) == sum(one < 60 for one in minutes)


@pytest.mark.parametrize("text", ["yesterday", "", "5x", "2026-13-01", "-1h"])
def test_what_is_no_moment(text: str) -> None:
    with pytest.raises(WrongUse, match=r"is not a time\n.*2h"):
        moment(text)


@pytest.mark.usefixtures("here")
def test_log_of_one_request_or_run_by_the_beginning_of_its_id(wording: Wording) -> None:
    with closing(SqliteStore("signoff.db")) as store:
        for request in ("abcd", "abce"):
            asyncio.run(
                store.write(
                    "test",
                    lambda tx, request=request: tx.requests.add(
                        ApprovalRequest(tool_call_id="1", tool_name="pay", id=request)
                    ),
                )
            )
        asyncio.run(store.write("test", lambda tx: tx.runs.add(SavedRun(id="abzz"))))
    write([event(request="abcd"), event(request="abce", run="abzz"), event(run="abzz")])

    def numbers(*args: str) -> list[int]:
        return [json.loads(line)["seq"] for line in run("log", "--json", *args).stdout.splitlines()]

    assert numbers("--request", "abcd") == [1]
    assert numbers("--request", "abce", "--run", "ab") == [2]
    assert numbers("--run", "abz") == [2, 3]
    several = run("log", "--request", "ab")
    assert several.exit_code == 2
    assert several.stderr == wording()
    for arguments in (("--request", "x"), ("--run", "abcd")):
        unknown = run("log", *arguments)
        assert unknown.exit_code == 1
        assert unknown.stderr == wording()


@pytest.mark.usefixtures("here")
def test_log_of_nothing() -> None:
    result = run("log")
    assert result.exit_code == 0
    assert result.output.startswith("The audit log is empty.\n") and "which does not exist yet" in result.output
    assert run("log", "--json").output == ""
    assert not Path("signoff.db").exists(), "who only looks leaves no file behind"


@pytest.mark.usefixtures("here")
def test_log_follows() -> None:
    write([event(title="first")])
    command = [*start.SIGNOFF, "audit", "log", "--follow", "--json"]
    with start.Process(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as following:
        printed = start.Lines(following)
        assert json.loads(printed.next("the first event"))["body"] == {"title": "first"}
        write([event(title="second"), event(title="third")])
        assert json.loads(printed.next("the second event"))["body"] == {"title": "second"}
        assert json.loads(printed.next("the third event"))["body"] == {"title": "third"}
        following.send_signal(signal.SIGINT)
        assert following.wait(start.PATIENCE) == 0
        assert following.stderr.read() == ""


# --- verify ---


@pytest.mark.usefixtures("here")
def test_an_export_to_a_file_for_a_spreadsheet_is_one() -> None:
    write(drafts(3))
    assert "CSV cannot be verified" in run("export", "-o", "r.CSV").stderr
    assert Path("r.CSV").read_text().startswith('"seq",')
    assert "signed with" in run("export", "-o", "r.csv", "--format", "jsonl").stderr
    assert "signed with" in run("export", "-o", "csv").stderr


@pytest.mark.usefixtures("here")
def test_verify_a_store(wording: Wording) -> None:
    write(drafts(40))
    result = run("verify")
    assert result.exit_code == 0
    assert result.stdout == wording()
    assert run("export", "-o", "r.jsonl").exit_code == 0
    write(drafts(2))
    assert run("verify").stdout == wording(key=key())
    assert json.loads(run("verify", "--json").stdout) == {
        "ok": True,
        "events": 42,
        "head": json.loads(run("log", "--json", "--limit", "1").stdout)["hash"],
        "signed": 40,
        "by": "own",
        "key": key(),
        "erased": 0,
    }
    tamper("update events set body = '{}', salts = '{}' where seq = 7")
    assert "1 event with erased parts, which the chain still covers" in run("verify").stdout
    assert "(erased: " in run("log", "--limit", "100").stdout


@pytest.mark.usefixtures("here")
def test_verify_a_store_that_is_broken(wording: Wording) -> None:
    write(drafts(40))
    tamper("update events set kind = 'ran' where seq = 7")
    result = run("verify")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == wording()
    told = run("verify", "--json")
    assert told.exit_code == 1
    error = result.stderr.removeprefix("signoff: ").removesuffix("\n")
    assert json.loads(told.stdout) == {"ok": False, "event": 7, "error": error}


@pytest.mark.usefixtures("here")
def test_verify_nothing(wording: Wording) -> None:
    result = run("verify")
    assert result.exit_code == 0
    assert result.output == wording()
    assert not Path("signoff.db").exists()


@pytest.mark.usefixtures("here")
def test_verify_a_store_that_is_gone(wording: Wording) -> None:
    write(drafts(40))
    run("export", "-o", "r.jsonl")
    Path("signoff.db").rename("elsewhere.db")
    result = run("verify")
    assert result.exit_code == 1
    assert result.stderr == wording(store=re.compile(r"(?<=seen-at-)[0-9a-f]{16}"))
    assert run("verify", "--store", "sqlite:elsewhere.db").exit_code == 0, "it may be anywhere, as long as it is whole"


@pytest.mark.usefixtures("here")
def test_verify_a_file_anywhere(wording: Wording) -> None:
    write(drafts(40))
    run("export", "-o", "r.jsonl")
    result = run("verify", "r.jsonl")
    assert result.exit_code == 0
    assert result.stdout == wording(key=key())
    assert run("verify", "-", stdin=Path("r.jsonl").read_bytes()).stdout == result.stdout


def test_verify_a_file_on_another_machine(here: Path, monkeypatch: pytest.MonkeyPatch, wording: Wording) -> None:
    write(drafts(40))
    run("export", "-o", "r.jsonl")
    mine = key()
    pub = here / "state" / "signoff" / "keys" / "record.pub"
    monkeypatch.setenv("XDG_STATE_HOME", str(here / "another"))
    result = run("verify", "r.jsonl")
    assert result.exit_code == 0
    assert result.stdout == wording(key=mine)
    assert not (here / "another").exists(), "checking leaves nothing behind"
    told = set[str]()
    for given in (mine, mine.upper(), str(pub)):
        pinned = run("verify", "r.jsonl", "--key", given)
        assert pinned.exit_code == 0
        told.add(pinned.stdout)
    assert "".join(told) == wording(), "the same for each"
    assert run("verify", "r.jsonl", "--key", "ab" * 32, "--key", mine).exit_code == 0
    wrong = run("verify", "r.jsonl", "--key", "ab" * 32)
    assert wrong.exit_code == 1
    assert wrong.stderr == wording()


@pytest.mark.usefixtures("here")
def test_verify_a_store_with_a_pinned_key(wording: Wording) -> None:
    write(drafts(40))
    run("export", "-o", "r.jsonl")
    assert run("verify", "--key", key()).exit_code == 0
    wrong = run("verify", "--key", "ab" * 32)
    assert wrong.exit_code == 1
    assert wrong.stderr == wording(key=key())


@pytest.mark.usefixtures("here")
def test_verify_a_file_that_is_broken(wording: Wording) -> None:
    write(drafts(40))
    run("export", "-o", "r.jsonl")
    lines = Path("r.jsonl").read_bytes().splitlines(keepends=True)
    Path("cut.jsonl").write_bytes(b"".join(lines[:20]))
    result = run("verify", "cut.jsonl")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == wording()
    assert json.loads(run("verify", "cut.jsonl", "--json").stdout)["event"] == 20


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(None, id="no-file"),
        pytest.param(b"", id="empty"),
        pytest.param(b"hello\n", id="no-record"),
        pytest.param(b'{"format":"signoff record","version":9}\n', id="newer"),
        pytest.param(b'"seq","at"\r\n', id="csv"),
    ],
)
def test_what_cannot_be_verified(here: Path, content: bytes | None, wording: Wording) -> None:
    if content is not None:
        (here / "no.jsonl").write_bytes(content)
    result = run("verify", "no.jsonl")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == wording()


def test_a_directory_and_endless_lines_are_no_records(
    here: Path, monkeypatch: pytest.MonkeyPatch, wording: Wording
) -> None:
    assert run("verify", str(here)).stderr == wording()
    monkeypatch.setattr(commands, "LONGEST_LINE", 1_000)
    (here / "long").write_bytes(b"x" * 2_000)
    result = run("verify", "long")
    assert result.exit_code == 2
    assert result.stderr == wording()


@pytest.mark.usefixtures("here")
def test_verify_is_told_what_to_check(wording: Wording) -> None:
    both = run("verify", "r.jsonl", "--store", URL)
    assert both.exit_code == 2
    assert both.stderr == wording()
    nonsense = run("verify", "--key", "nonsense")
    assert nonsense.exit_code == 2
    assert nonsense.stderr == wording()


# --- export ---


@pytest.mark.usefixtures("here")
def test_export_to_standard_output_or_a_file(wording: Wording) -> None:
    write(drafts(20))
    printed = run("export")
    assert printed.exit_code == 0
    assert printed.stderr == wording(key=key())
    Path("printed.jsonl").write_bytes(printed.stdout_bytes)
    written = run("export", "-o", "written.jsonl")
    assert (written.exit_code, written.stdout) == (0, "")
    for file in ("printed.jsonl", "written.jsonl"):
        assert run("verify", file).exit_code == 0
    assert Path("written.jsonl").stat().st_mode & 0o777 == 0o600


@pytest.mark.usefixtures("here")
def test_export_nothing(wording: Wording) -> None:
    assert run("export", "-o", "r.jsonl").exit_code == 0
    assert run("verify", "r.jsonl").stdout == wording(key=key())


@pytest.mark.usefixtures("here")
def test_export_writes_nothing_of_what_is_broken(wording: Wording) -> None:
    write(drafts(20))
    Path("r.jsonl").write_text("the old one")
    tamper("delete from events where seq = 7")
    result = run("export", "-o", "r.jsonl")
    assert result.exit_code == 1
    assert result.stderr == wording()
    assert Path("r.jsonl").read_text() == "the old one"
    assert sorted(name for name in os.listdir() if name.startswith(".")) == []


@pytest.mark.usefixtures("here")
def test_export_says_where_it_cannot_write(wording: Wording) -> None:
    write(drafts(3))
    result = run("export", "-o", "no/such/directory/r.jsonl")
    assert result.exit_code == 2
    assert result.stderr == wording()
    Path("directory").mkdir()
    assert run("export", "-o", "directory").exit_code == 2


@pytest.mark.usefixtures("here")
def test_export_as_csv(wording: Wording) -> None:
    write([event("asked", title='=HYPERLINK("http://x")', by="@eve", request="abc"), *drafts(20)])
    result = run("export", "--format", "csv")
    assert result.exit_code == 0
    assert result.stderr == wording()
    rows = list(csv.DictReader(io.StringIO(result.stdout_bytes.decode(), newline="")))
    assert [row["seq"] for row in rows] == [str(number) for number in range(1, 22)]
    assert (rows[0]["what"], rows[0]["by"]) == ('\'=HYPERLINK("http://x")', "'@eve")
    tamper("delete from events where seq = 7")
    assert run("export", "--format", "csv").exit_code == 0, "what is left can still be looked at"


# --- the program ---


def test_the_program_finds_its_commands(here: Path, wording: Wording) -> None:
    write(drafts(5))
    done = signoff("audit", "export", "-o", "r.jsonl", cwd=here)
    assert done.returncode == 0, done.stderr
    assert signoff("audit", "verify", "r.jsonl", cwd=here).returncode == 0
    Path("r.jsonl").write_bytes(Path("r.jsonl").read_bytes()[:-1])
    broken = signoff("audit", "verify", "r.jsonl", cwd=here)
    assert broken.returncode == 1
    assert broken.stderr == wording()


@pytest.mark.usefixtures("here")
def test_progress_is_for_who_watches(monkeypatch: pytest.MonkeyPatch) -> None:
    write(drafts(10))
    code = "from signoff.cli import audit_command; audit_command.LONG = 5; from signoff.cli.main import main; main()"
    command = [sys.executable, "-c", code, "audit", "verify"]
    watched, end = pty.openpty()
    try:
        done = start.run(command, stdout=subprocess.PIPE, stderr=end, timeout=60, check=True)
        os.close(end)
        shown = os.read(watched, 1_000).decode()
    finally:
        os.close(watched)
    assert "10 events" in shown
    assert b"10 events, none signed: the hash chain is intact" in done.stdout
    assert start.run(command, capture_output=True, check=True).stderr == b""
