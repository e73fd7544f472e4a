"""`signoff policy check`, `explain` and `judge`, as a person and as a program would use them."""

from __future__ import annotations

import json
import os
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

from signoff.cli import policy as commands
from signoff.cli.policy import policy
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
def test_check() -> None:
    result = run("check", "signoff.yaml")
    assert (result.exit_code, result.output) == (0, "signoff.yaml: 4 rules, ok\n")


def test_check_one_rule_with_a_warning(here: Path) -> None:
    (here / "signoff.yaml").write_text("policy:\n- allow: '*'\n")
    result = run("check", "signoff.yaml")
    assert result.exit_code == 0
    assert result.output.splitlines() == [
        "signoff.yaml: 1 rule, ok",
        "warning: signoff.yaml:2:3: policy[0]: rule-1 allows every call that no rule before it asks about and no rule "
        "denies; name the tools it is meant for",
    ]


@pytest.mark.usefixtures("here")
def test_check_knows_the_tools() -> None:
    assert run("check", "signoff.yaml", "--tools", "pay, read_file").exit_code == 0
    result = run("check", "signoff.yaml", "--tools", "play")
    assert result.exit_code == 2
    assert result.stderr == (
        "signoff: 2 problems:\n"
        "  signoff.yaml:3:5: policy[1]: there is no tool `pay`; did you mean `play`?\n"
        "  signoff.yaml:4:5: policy[2]: there is no tool `pay`; did you mean `play`?\n"
    )


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("policy: [{alow: x}]", "signoff.yaml:1:11: policy[0].alow: unknown effect `alow`\n  did you mean `allow`?"),
        ("policy: [", "signoff.yaml:2:1: this is not YAML"),
        ("policy: {}", "signoff.yaml:1:9: policy: this should be a list of rules, not a mapping"),
        ("policy: [{allow: x, examples: {match: [{tool: y}]}}]", "this example should match, but rule-1 does not"),
    ],
)
def test_check_says_what_is_wrong(here: Path, text: str, says: str) -> None:
    (here / "signoff.yaml").write_text(text)
    result = run("check", "signoff.yaml")
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr.startswith("signoff: signoff.yaml:")
    assert says in result.stderr
    told = run("check", "signoff.yaml", "--json")
    assert told.exit_code == 2
    assert says in json.loads(told.stdout)["error"]


def test_check_as_json(here: Path) -> None:
    (here / "signoff.yaml").write_text("policy:\n- ask: x\n- allow: x\n")
    told = json.loads(run("check", "signoff.yaml", "--json").stdout)
    assert (told["ok"], told["rules"], len(told["revision"])) == (True, 2, 64)
    (warning,) = told["warnings"]
    assert (warning["rule"], warning["line"], warning["key"]) == ("rule-2", 3, "policy[1]")


def test_a_missing_file() -> None:
    result = run("check", "nowhere.yaml")
    assert result.exit_code == 2
    assert result.stderr == "signoff: there is no file nowhere.yaml\n  `signoff init` writes a first one\n"


@pytest.mark.usefixtures("here")
def test_explain() -> None:
    result = run("explain", "signoff.yaml", "--tool", "pay", "--args", '{"amount": 200}')
    assert result.exit_code == 0
    assert result.output == (
        "ask: the policy asks about `pay` where `amount` is > 100 (big)\n"
        "decided by big at signoff.yaml:3:5: policy[1]\n"
        "\n"
        "rules considered:\n"
        "  rule-1  deny   no       no argument is a path like `**/.env`\n"
        "* big     ask    yes      asks about `pay` where `amount` is > 100\n"
        "  rule-3  allow  yes      allows `pay`\n"
        "  rule-4  allow  no       the call names no toolset\n"
    )


@pytest.mark.usefixtures("here")
def test_explain_doubt_and_other_tools() -> None:
    doubt = run("explain", "signoff.yaml", "--tool", "pay", "--args", '{"amount": "x"}').output
    assert "could not be checked: big: `amount` is a text" in doubt
    assert run("explain", "signoff.yaml", "--tool", "zap").output.endswith("  2 rules are about other tools\n")


@pytest.mark.usefixtures("here")
def test_explain_everything_a_rule_can_look_at() -> None:
    who = ["--toolset", "db", "--worker", "a > b", "--label", "data.read"]
    told = json.loads(run("explain", "signoff.yaml", "--tool", "query", *who, "--json").stdout)
    assert (told["verdict"], told["rules"]) == ("allow", ["rule-4"])
    more = json.loads(run("explain", "signoff.yaml", "--tool", "query", *who, "--label", "money", "--json").stdout)
    assert more["verdict"] == "ask", "allowed to read is not allowed to spend"


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["--args", "{"], "--args is not JSON"),
        (["--args", "[" * 100_000], "--args is not JSON"),
        (["--args", "[1]"], "--args should be a JSON object"),
        (["--label", "fs.raed"], "unknown label `fs.raed`\n  did you mean `fs.read`?"),
    ],
)
def test_explain_wrong_use(args: list[str], says: str) -> None:
    result = run("explain", "signoff.yaml", "--tool", "x", *args)
    assert result.exit_code == 2
    assert says in result.stderr


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


def test_judge_reads_files(here: Path) -> None:
    (here / "calls.jsonl").write_text('\n{"tool": "pay"}\r\n   \n{"tool": "pay", "args": {"path": "\\ud800/.env"}}')
    result = run("judge", "signoff.yaml", "calls.jsonl")
    assert [told["verdict"] for told in answers(result)] == ["allow", "ask"]
    missing = run("judge", "signoff.yaml", "nowhere.jsonl")
    assert (missing.exit_code, missing.stderr) == (
        2,
        "signoff: nowhere.jsonl cannot be read: No such file or directory\n",
    )


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("line", "says"),
    [
        (b"{", "this is not JSON"),
        (b"[" * 100_000, "this is not JSON"),
        (b'{"tool": "\xff"}', "this is not JSON"),
        (b"[]", "a JSON object, not a list"),
        (b'{"args": {}}', "`tool` should be the name of a tool, not null"),
        (b'{"tool": ""}', "`tool` should be the name of a tool"),
        (b'{"tool": "x", "args": []}', "`args` should be an object, not a list"),
        (b'{"tool": "x", "args": null}', "`args` should be an object, not null"),
        (b'{"tool": "x", "toolset": 1}', "`toolset` should be a text, not a number"),
        (b'{"tool": "x", "worker": {}}', "`worker` should be a text or a list of texts, not a mapping"),
        (b'{"tool": "x", "labels": [1]}', "`labels` should be a text or a list of texts, not a number"),
        (b'{"tool": "x", "arguments": {}}', "unknown key `arguments`\n  did you mean `args`?"),
    ],
)
def test_a_bad_line_stops_after_what_came_before(line: bytes, says: str) -> None:
    result = judged(stdin=b'{"tool": "pay"}\n\n{"tool": "pay"}\n' + line + b'\n{"tool": "pay"}\n')
    assert result.exit_code == 2
    assert len(answers(result)) == 2
    assert result.stderr.startswith("signoff: standard input:4: ")
    assert says in result.stderr


@pytest.mark.usefixtures("here")
def test_a_line_without_an_end_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commands, "LONGEST_LINE", 1000)
    result = judged(stdin=b'{"tool": "pay"}\n' + b"x" * 200_000)
    assert result.exit_code == 2
    assert len(answers(result)) == 1
    assert "standard input:2: the line is longer than 1,000 bytes" in result.stderr


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
        for begin in range(0, lines, 1000):
            yield b"".join(
                b'{"tool": "tool_%d", "args": {"amount": %d, "to": "ana"}}\n' % (n % 50, n)
                for n in range(begin, begin + 1000)
            )

    def read1(self, size: int) -> bytes:
        return next(self.chunks, b"")


@pytest.mark.usefixtures("here")
def test_a_long_stream_needs_no_memory() -> None:
    sink = Sink()
    tracemalloc.start()
    try:
        judge_all(Stream(2_000), sink)
        _, short = tracemalloc.get_traced_memory()
        tracemalloc.reset_peak()
        judge_all(Stream(8_000), sink)
        _, long = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert sink.lines == 10_000
    assert long < short * 1.2


SCRIPT = """
import resource, sys
from signoff.cli.policy import policy
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


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(("lines", "room"), [(20_000, 1.1), pytest.param(200_000, 1.2, marks=pytest.mark.nightly)])
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


def test_the_module_imports_nothing_heavy() -> None:
    heavy = "yaml", "rich", "pydantic_ai", "signoff.policy", "signoff.config"
    code = f"import signoff.cli.policy, sys; print([name for name in {heavy} if name in sys.modules])"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, env=environment)
    assert done.stdout.strip() == b"[]"


def test_help_has_an_example() -> None:
    for name in ("check", "explain", "judge"):
        shown = run(name, "--help").output
        assert "signoff policy" in shown or "In:" in shown
