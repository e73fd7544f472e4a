"""`signoff policy check`, `explain` and `judge`, as a person and as a program would use them."""

from __future__ import annotations

import json
import subprocess
import sys
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result
from tests import start
from tests.cli.wording import NOT_YAML, RECURSION, Wording

from signoff.cli import policy_command as commands
from signoff.cli.policy_command import policy
from signoff.errors import SignoffError

POLICY = """\
policy:
  - {deny: {path: "**/.env"}, reason: secrets stay where they are}
  - {ask: {tool: pay, args: {amount: {">": 100}}}, id: big, by: ops}
  - {allow: pay}
  - {allow: {worker: "a > b", toolset: db, label: data.read}}
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "signoff.yaml").write_text(POLICY)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*args: str, stdin: str | bytes = "") -> Result:
    """Run a command the way the program does: a known error is a message and exit code 2."""

    @click.command(context_settings={"ignore_unknown_options": True}, add_help_option=False)
    @click.argument("args", nargs=-1, type=click.UNPROCESSED)
    def program(args: tuple[str, ...]) -> None:
        try:
            sys.exit(policy.main(list(args), standalone_mode=False))
        except SignoffError as error:
            click.echo(f"signoff: {error}", err=True)
            sys.exit(2)

    return CliRunner().invoke(program, args, input=stdin, catch_exceptions=False)


def judged(*lines: Any, stdin: bytes | None = None) -> Result:
    text = "".join(f"{json.dumps(line)}\n" for line in lines).encode() if stdin is None else stdin
    return run("judge", "signoff.yaml", "-", stdin=text)


def answers(result: Result) -> list[Any]:
    return [json.loads(line) for line in result.stdout.splitlines()]


@pytest.mark.usefixtures("here")
def test_check(wording: Wording) -> None:
    result = run("check", "signoff.yaml")
    assert result.exit_code == 0
    assert result.output == wording()


def test_check_one_rule_with_a_warning(here: Path, wording: Wording) -> None:
    (here / "signoff.yaml").write_text("policy:\n- allow: '*'\n")
    result = run("check", "signoff.yaml")
    assert result.exit_code == 0
    assert result.output == wording()


@pytest.mark.usefixtures("here")
def test_check_knows_the_tools(wording: Wording) -> None:
    assert run("check", "signoff.yaml", "--tools", "pay, read_file").exit_code == 0
    result = run("check", "signoff.yaml", "--tools", "play")
    assert result.exit_code == 2
    assert result.stderr == wording()


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("policy: [{alow: x}]", id="effect"),
        pytest.param("policy: [", id="yaml"),
        pytest.param("policy: {}", id="mapping"),
        pytest.param("policy: [{allow: x, examples: {match: [{tool: y}]}}]", id="example"),
    ],
)
def test_check_says_what_is_wrong(here: Path, text: str, wording: Wording) -> None:
    (here / "signoff.yaml").write_text(text)
    result = run("check", "signoff.yaml")
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr == wording(parser=NOT_YAML)
    told = run("check", "signoff.yaml", "--json")
    assert told.exit_code == 2
    assert f"signoff: {json.loads(told.stdout)['error']}\n" == result.stderr


def test_check_as_json(here: Path) -> None:
    (here / "signoff.yaml").write_text("policy:\n- ask: x\n- allow: x\n")
    told = json.loads(run("check", "signoff.yaml", "--json").stdout)
    assert (told["ok"], told["rules"], len(told["revision"])) == (True, 2, 64)
    (warning,) = told["warnings"]
    assert (warning["rule"], warning["line"], warning["key"]) == ("rule-2", 3, "policy[1]")


def test_a_missing_file(wording: Wording) -> None:
    result = run("check", "nowhere.yaml")
    assert result.exit_code == 2
    assert result.stderr == wording()


@pytest.mark.usefixtures("here")
def test_explain(wording: Wording) -> None:
    result = run("explain", "signoff.yaml", "--tool", "pay", "--args", '{"amount": 200}')
    assert result.exit_code == 0
    assert result.output == wording()


@pytest.mark.usefixtures("here")
def test_explain_doubt_and_other_tools(wording: Wording) -> None:
    assert run("explain", "signoff.yaml", "--tool", "pay", "--args", '{"amount": "x"}').output == wording()
    assert run("explain", "signoff.yaml", "--tool", "zap").output == wording()


@pytest.mark.usefixtures("here")
def test_explain_everything_a_rule_can_look_at() -> None:
    who = ["--toolset", "db", "--worker", "a > b", "--label", "data.read"]
    told = json.loads(run("explain", "signoff.yaml", "--tool", "query", *who, "--json").stdout)
    assert (told["verdict"], told["rules"]) == ("allow", ["rule-4"])
    more = json.loads(run("explain", "signoff.yaml", "--tool", "query", *who, "--label", "money", "--json").stdout)
    assert more["verdict"] == "ask", "allowed to read is not allowed to spend"


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    "args",
    [
        pytest.param(["--args", "{"], id="cut-off"),
        pytest.param(["--args", "[" * 100_000], id="deep"),
        pytest.param(["--args", "[1]"], id="list"),
        pytest.param(["--label", "fs.raed"], id="label"),
    ],
)
def test_explain_wrong_use(args: list[str], wording: Wording) -> None:
    result = run("explain", "signoff.yaml", "--tool", "x", *args)
    assert result.exit_code == 2
    assert result.stderr == wording(recursion=RECURSION)


@pytest.mark.usefixtures("here")
def test_judge() -> None:
    result = judged(
        {"tool": "pay", "args": {"amount": 5}},
        {"tool": "pay", "args": {"amount": 500}},
        {"tool": "read", "args": {"path": "a/../.env"}},
        {"tool": "query", "args": {}, "toolset": "db", "worker": ["a", "b"], "labels": ["data.read"]},
        {"tool": "query", "args": {}, "toolset": "db", "worker": "b", "label": "data.read"},
        {"tool": "none"},
    )
    assert result.exit_code == 0
    assert [(told["verdict"], told["rules"]) for told in answers(result)] == [
        ("allow", ["rule-3"]),
        ("ask", ["big"]),
        ("deny", ["rule-1"]),
        ("allow", ["rule-4"]),
        ("ask", []),
        ("ask", []),
    ]
    assert list(answers(result)[0]) == ["verdict", "rules", "reason"]
    assert answers(result)[2]["reason"] == "secrets stay where they are"


def test_judge_reads_files(here: Path, wording: Wording) -> None:
    (here / "calls.jsonl").write_text('\n{"tool": "pay"}\r\n   \n{"tool": "pay", "args": {"path": "\\ud800/.env"}}')
    result = run("judge", "signoff.yaml", "calls.jsonl")
    assert [told["verdict"] for told in answers(result)] == ["allow", "ask"]
    missing = run("judge", "signoff.yaml", "nowhere.jsonl")
    assert missing.exit_code == 2
    assert missing.stderr == wording()


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    "line",
    [
        pytest.param(b"{", id="cut-off"),
        pytest.param(b"[" * 100_000, id="deep"),
        pytest.param(b'{"tool": "\xff"}', id="no-text"),
        pytest.param(b"[]", id="list"),
        pytest.param(b'{"args": {}}', id="no-tool"),
        pytest.param(b'{"tool": ""}', id="empty-tool"),
        pytest.param(b'{"tool": "x", "args": []}', id="args-list"),
        pytest.param(b'{"tool": "x", "args": null}', id="args-null"),
        pytest.param(b'{"tool": "x", "toolset": 1}', id="toolset-number"),
        pytest.param(b'{"tool": "x", "worker": {}}', id="worker-mapping"),
        pytest.param(b'{"tool": "x", "labels": [1]}', id="labels-number"),
        pytest.param(b'{"tool": "x", "arguments": {}}', id="unknown-key"),
    ],
)
def test_a_bad_line_stops_after_what_came_before(line: bytes, wording: Wording) -> None:
    result = judged(stdin=b'{"tool": "pay"}\n\n{"tool": "pay"}\n' + line + b'\n{"tool": "pay"}\n')
    assert result.exit_code == 2
    assert len(answers(result)) == 2
    assert result.stderr.startswith("signoff: standard input:4: ")
    assert result.stderr == wording(recursion=RECURSION)


@pytest.mark.usefixtures("here")
def test_a_line_without_an_end_is_not_kept(monkeypatch: pytest.MonkeyPatch, wording: Wording) -> None:
    monkeypatch.setattr(commands, "LONGEST_LINE", 1000)
    result = judged(stdin=b'{"tool": "pay"}\n' + b"x" * 200_000)
    assert result.exit_code == 2
    assert len(answers(result)) == 1
    assert result.stderr == wording()


class Slow:
    """Input that arrives piece by piece."""

    def __init__(self, pieces: list[bytes]) -> None:
        self.pieces = iter(pieces)
        self.answered: list[int] = []
        self.out = Sink()

    def read1(self, size: int) -> bytes:
        self.answered.append(self.out.lines)
        return next(self.pieces, b"")


class Sink:
    """Output that only counts."""

    lines = 0

    def write(self, data: bytes) -> None:
        self.lines += data.count(b"\n")

    def flush(self) -> None:
        pass


def judge_all(stream: Any, out: Any) -> None:
    from signoff.config import load_policy

    batches = commands._batches(stream, "calls")  # pyright: ignore[reportPrivateUsage]
    commands._answer(batches, load_policy("signoff.yaml").judge, "calls", out)  # pyright: ignore[reportPrivateUsage]


@pytest.mark.usefixtures("here")
def test_a_slow_caller_is_answered_before_the_next_question() -> None:
    slow = Slow([b'{"tool": "pay"}\n', b'{"tool": ', b'"pay"}\n{"tool"', b': "x"}', b"\n", b'{"tool": "y"}'])
    judge_all(slow, slow.out)
    assert slow.answered == [0, 1, 1, 2, 2, 3, 3]
    assert slow.out.lines == 4


class Stream:
    """A long file that is never in memory."""

    def __init__(self, lines: int) -> None:
        self.chunks = self._chunks(lines)

    def _chunks(self, lines: int) -> Iterator[bytes]:
        for begin in range(0, lines, 200):
            yield b"".join(
                b'{"tool": "tool_%d", "args": {"amount": %d, "to": "ana"}}\n' % (n % 50, n)
                for n in range(begin, begin + 200)
            )

    def read1(self, size: int) -> bytes:
        return next(self.chunks, b"")


@pytest.mark.usefixtures("here")
def test_a_long_stream_needs_no_memory() -> None:
    sink = Sink()
    tracemalloc.start()
    try:
        judge_all(Stream(400), sink)
        _, short = tracemalloc.get_traced_memory()
        tracemalloc.reset_peak()
        judge_all(Stream(1_600), sink)
        _, long = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert sink.lines == 2_000
    assert long < short * 1.2


SCRIPT = """
import resource, sys
from signoff.cli.policy_command import policy
policy.main(["judge", "signoff.yaml", "-"], standalone_mode=False)
sys.stderr.write(str(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss))
"""


def piped(lines: int, *, read: int | None = None) -> tuple[int, bytes, int]:
    """Run `judge` in a process of its own; give the exit code, what it said on stderr, and how many lines came out."""
    pipe = subprocess.PIPE
    command = [sys.executable, "-c", SCRIPT]
    with start.Process(command, fresh=True, stdin=pipe, stdout=pipe, stderr=pipe) as judge:
        assert judge.stdin
        assert judge.stdout
        assert judge.stderr
        if read is None:
            out, said = judge.communicate(b'{"tool": "pay", "args": {"amount": 7}}\n' * lines, start.PATIENCE)
            return judge.returncode, said, out.count(b"\n")
        judge.stdin.write(b'{"tool": "pay"}\n' * read)
        judge.stdin.flush()
        for _ in range(read):
            judge.stdout.readline()
        judge.stdout.close()
        judge.stdin.write(b'{"tool": "pay"}\n' * lines)
        judge.stdin.close()
        said = judge.stderr.read()
        return judge.wait(start.PATIENCE), said, read


@pytest.mark.nightly
@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(("lines", "room"), [(8_000, 1.1), pytest.param(200_000, 1.2, marks=pytest.mark.nightly)])
def test_many_lines_take_no_more_memory_than_a_few(lines: int, room: float) -> None:
    code, few, _ = piped(1000)
    code_many, many, count = piped(lines)
    assert (code, code_many, count) == (0, 0, lines)
    # Kilobytes on Linux, bytes on macOS: compare, with room for the allocator.
    assert int(many) < int(few) * room


@pytest.mark.usefixtures("here")
def test_a_reader_that_has_seen_enough_ends_it_quietly() -> None:
    code, said, _ = piped(5000, read=3)
    assert code == 0
    assert said.isdigit(), said


def test_help_has_an_example() -> None:
    for name in ("check", "explain", "judge"):
        shown = run(name, "--help").output
        assert "signoff policy" in shown or "In:" in shown


# --- without a file, and with a catalog ---


def test_the_nearest_file_is_found(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    below = here / "below"
    below.mkdir()
    monkeypatch.chdir(below)
    assert run("check").stdout == "../signoff.yaml: 4 rules, ok\n"
    assert (
        "decided by big at ../signoff.yaml:3:5" in run("explain", "--tool", "pay", "--args", '{"amount": 200}').stdout
    )
    assert answers(run("judge", "-", stdin='{"tool": "pay"}\n'))[0]["verdict"] == "allow"
    assert run("judge", "../signoff.yaml").exit_code == 2
    assert run("judge").exit_code == 2


def test_where_there_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for words in (["check"], ["explain", "--tool", "x"], ["judge", "-"]):
        result = run(*words)
        assert result.exit_code == 2
        assert "there is no signoff.yaml here or above" in result.stderr


WHITELIST = """\
toolsets:
  git:
    use: shell_file_ops
    policy:
      - allow: {tool: shell, command: git status}
      - otherwise: deny
policy:
  - allow: {tool: read_file}
  - otherwise: deny
"""


@pytest.mark.mission("P12")
def test_p12_explain_and_judge_know_a_whitelist(here: Path, wording: Wording) -> None:
    (here / "signoff.yaml").write_text(WHITELIST)
    assert run("explain", "--tool", "mail").output == wording()
    (here / "signoff.yaml").write_text(WHITELIST.replace("{tool: read_file}", "shell"))
    command = ["--tool", "shell", "--toolset", "git", "--args", '{"command": "git status; make"}']
    assert run("explain", *command).output == wording()
    calls = [
        {"tool": "shell", "toolset": "git", "args": {"command": one}} for one in ("git status", "git status; make")
    ]
    assert [one["verdict"] for one in answers(judged(*calls))] == ["allow", "deny"]
    assert run("show").output == wording()
    assert json.loads(run("show", "--json").output)["silence"] == "deny"


def test_a_toolset_that_is_closed_is_told(here: Path, wording: Wording) -> None:
    (here / "signoff.yaml").write_text(WHITELIST)
    assert run("check").output == wording()
    (here / "signoff.yaml").write_text(WHITELIST.replace("{tool: read_file}", "shell"))
    assert run("check").output == wording()
    (here / "signoff.yaml").write_text(f"{WHITELIST}    toolset: mail\n")
    assert "can do nothing" not in run("check").output


CATALOG = """\
toolsets:
  files: {use: filesystem_rw, policy: [{ask: write_fil}]}
policy:
  - allow: raed_file
  - allow: read_file
"""


def test_check_knows_the_tools_of_the_catalog(here: Path, wording: Wording) -> None:
    (here / "signoff.yaml").write_text(CATALOG)
    result = run("check")
    assert (result.exit_code, result.output) == (0, wording())
    told = json.loads(run("check", "--json").output)
    assert [one["rule"] for one in told["warnings"]] == ["rule-1", "files/rule-1"]
    assert told["unlisted"] == []


def test_check_leaves_toolsets_in_peace_that_are_known_once_they_run(here: Path, wording: Wording) -> None:
    server = '  tickets: {use: mcp, config: {command: "python", args: ["-m", "nothing"]}}\n'
    (here / "signoff.yaml").write_text(CATALOG.replace("policy:\n", f"{server}policy:\n", 1))
    result = run("check")
    assert (result.exit_code, result.output) == (0, wording())
    assert json.loads(run("check", "--json").output)["unlisted"] == ["tickets"]


@pytest.mark.parametrize("store", ["mysql://x:hunter2@y/z", "nonsense", "sqlite:", "postgresql:x"])
def test_check_refuses_a_store_that_every_other_command_refuses(here: Path, store: str) -> None:
    (here / "signoff.yaml").write_text(f'store: "{store}"\npolicy: []\n')
    result = run("check")
    assert result.exit_code == 2 and "signoff.yaml: store: this " in result.output
    told = json.loads(run("check", "--json").output)
    assert not told["ok"] and "sqlite:.signoff/signoff.db" in told["error"] and "hunter2" not in told["error"]
    (here / "signoff.yaml").write_text("store: sqlite:a.db\npolicy: []\n")
    assert run("check").exit_code == 0
