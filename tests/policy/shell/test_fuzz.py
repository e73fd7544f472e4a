"""Any text at all: the judge answers, in time that grows with the length, and what it allows changes no file."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, assume, given
from hypothesis import strategies as st
from tests.policy.shell.commands import spoken
from tests.profiles import NIGHTLY, examples
from tests.tables import table
from tests.toolsets.scratch import lay_out, seen_files

from signoff.policy.shell.command_facts import ShellFacts, read_shell
from signoff.policy.shell.literal_words import LONGEST
from signoff.policy.shell.simple_command import ReadOnlyCommand

BITS = (
    " ",
    "  ",
    "\t",
    "\n",
    ";",
    ";;",
    "&",
    "&&",
    "|",
    "||",
    "|&",
    "(",
    ")",
    "{",
    "}",
    "((",
    "))",
    "[[",
    "]]",
    "[",
    "]",
    "<",
    ">",
    ">>",
    "<<",
    "<<<",
    "<<-",
    "<>",
    ">|",
    ">&",
    "<&",
    "&>",
    "<(",
    ">(",
    "$",
    "$(",
    "$((",
    "${",
    "$[",
    "$'",
    '$"',
    "`",
    "'",
    '"',
    "\\",
    "\\\n",
    "#",
    "~",
    "~/",
    "*",
    "?",
    "!",
    "=",
    "+=",
    "-",
    "--",
    "%",
    "^",
    ",",
    "..",
    "/",
    "@",
    ":",
    "\0",
    "\r",
    "\x1b",
    "\x7f",
    "\x80",
    "\u200b",
    "\u202e",
    "\ufeff",
    "é",
    "日",
    "\U0001f600",
    "\ud800",
    "\u0301",
    "\u2028",
    "\xa0",
    "ﬁ",
    "if",
    "then",
    "fi",
    "for",
    "in",
    "do",
    "done",
    "case",
    "esac",
    "while",
    "function",
    "select",
    "coproc",
    "time",
    "export",
    "ls",
    "cat",
    "grep",
    "-r",
    "sed",
    "s/a/b/",
    "awk",
    "{print}",
    "jq",
    ".",
    "find",
    "-exec",
    "git",
    "log",
    "--format=%h",
    "tar",
    "sort",
    "-o",
    "ps",
    "aux",
    "tree",
    "env",
    "sudo",
    "bash",
    "-c",
    "xargs",
    "cd",
    "tee",
    "file.txt",
    "EOF",
    "x=1",
    "-la",
    "/dev/null",
    "2>&1",
    "{a,b}",
    "{1..9}",
    "a[0]",
    "x",
    "1",
    "2",
)
SHAPES: dict[str, Callable[[int], str]] = {
    "one word": lambda n: "ls " + "a" * n,
    "words": lambda n: "ls " + "a " * (n // 2),
    "options": lambda n: "ls " + "-l " * (n // 3),
    "bundle": lambda n: "ls -" + "l" * n,
    "commands": lambda n: "ls;" * (n // 3),
    "lines": lambda n: "ls\n" * (n // 3),
    "pipes": lambda n: "ls|" * (n // 3) + "ls",
    "cd": lambda n: "cd a;" * (n // 5) + "ls",
    "open parentheses": lambda n: "(" * n,
    "substitutions": lambda n: "$(" * (n // 2),
    "quoted substitutions": lambda n: '"$(' * (n // 3),
    "closed substitutions": lambda n: "$(" * (n // 3) + "x" + ")" * (n // 3),
    "backquotes": lambda n: "`x" * (n // 2),
    "braces": lambda n: "{a," * (n // 3),
    "closed braces": lambda n: "ls " + "{a}" * (n // 3),
    "variables": lambda n: "${x:-" * (n // 5),
    "stars": lambda n: "cat " + "*" * n,
    "stars and letters": lambda n: "cat " + "*a" * (n // 2),
    "directories of stars": lambda n: "cat " + "*/" * (n // 2),
    "question marks": lambda n: "cat " + "?" * n,
    "brackets": lambda n: "cat " + "[" * n,
    "closed brackets": lambda n: "cat " + "[a]" * (n // 3),
    "single quotes": lambda n: "ls " + "'" * n,
    "quoted letters": lambda n: "ls " + "'a'" * (n // 3),
    "double quotes": lambda n: 'ls "' + "a" * n,
    "dollars": lambda n: "ls " + "$ " * (n // 2),
    "backslashes": lambda n: "ls " + "\\" * n,
    "continued lines": lambda n: "ls " + "\\\n" * (n // 2),
    "redirects": lambda n: "ls" + " 2>&1" * (n // 5),
    "files": lambda n: "cat" + " <f" * (n // 3),
    "here-documents": lambda n: "cat <<E\n" * (n // 8),
    "here-strings": lambda n: "cat <<< a " * (n // 10),
    "wrappers": lambda n: "sudo " * (n // 5),
    "shells": lambda n: "bash -c '" * (n // 9),
    "assignments": lambda n: "x=1 " * (n // 4),
    "awk": lambda n: "awk '" + "{" * n + "'",
    "awk sums": lambda n: "awk '{print " + "1+" * (n // 2) + "1}'",
    "awk regex": lambda n: "awk '/" + "a" * n + "/'",
    "sed": lambda n: "sed '" + "s/a/b/;" * (n // 7) + "'",
    "sed braces": lambda n: "sed '" + "{" * n + "'",
    "jq": lambda n: "jq '" + "[" * n + "'",
    "jq pipes": lambda n: "jq '" + ".a|" * (n // 3) + ".'",
    "find": lambda n: "find ." + " !" * (n // 2),
    "find groups": lambda n: "find ." + " (" * (n // 2),
    "comment": lambda n: "ls #" + "a" * n,
    "blanks": lambda n: " " * n,
    "letters with accents": lambda n: "ls '" + "é" * n + "'",
    "tildes": lambda n: "cat " + "~/" * (n // 2),
    "dots": lambda n: "cat " + "../" * (n // 3),
    "regex of ps": lambda n: "ps " + "a" * n,
    "git format": lambda n: "git log --format=" + "%" * n,
    "if": lambda n: "if " * (n // 3),
    "case": lambda n: "case x in " * (n // 10),
    "functions": lambda n: "f(){ " * (n // 5),
}


def all_of(facts: ShellFacts) -> None:
    """Asks for everything that can be asked."""
    assert facts.read_only == (not facts.why)
    assert facts.read_only == (facts.concern is None)
    assert facts.labels >= {"fs.read"}
    assert bool(facts.effects) != facts.read_only
    assert all(word is None or isinstance(word, str) for words in facts.commands for word in words)
    assert isinstance(facts.opaque, str)
    assert isinstance(facts.paths, tuple)


@st.composite
def mutated(draw: st.DrawFn, files_only: bool = False) -> str:
    """A command with a piece put in, taken out or doubled."""
    text = draw(spoken(files_only, most=2)).text()
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(text)))
        end = draw(st.integers(at, min(len(text), at + 5)))
        text = text[:at] + draw(st.sampled_from((*BITS, text[at:end] * 2))) + text[end:]
    return text


TEXTS = st.one_of(
    st.text(max_size=80),
    st.text(st.characters(codec=None), max_size=40),
    st.lists(st.sampled_from(BITS), max_size=30).map("".join),
    st.lists(st.sampled_from(BITS), max_size=30).map(" ".join),
    mutated(),
    mutated(),
)
CHECKS = [HealthCheck.filter_too_much, HealthCheck.data_too_large]


@examples(100_000, daily=25, suppress=CHECKS)
@given(TEXTS)
def test_any_text_is_judged(text: str) -> None:
    all_of(read_shell(text))


@table("shape", SHAPES)
def test_a_megabyte_comes_back_and_is_not_allowed(shape: str) -> None:
    facts = read_shell(SHAPES[shape](1_000_000))
    all_of(facts)
    assert not facts.read_only


@pytest.mark.parametrize("shape", SHAPES if NIGHTLY else list(SHAPES)[::8])
def test_time_grows_with_the_length_and_no_faster(shape: str) -> None:
    make = SHAPES[shape]
    assert len(make(LONGEST - 240)) <= LONGEST
    most = 12 * max(min(efforts(make, LONGEST // 4 - 60)), 1e-4)  # of so little time that it means nothing
    assert any(effort <= most for effort in efforts(make, LONGEST - 240))


def efforts(make: Callable[[int], str], size: int) -> Iterator[float]:
    """The time that several texts take. The least counts, as whatever else runs here only ever adds to it.
    Each time the text is another one, so that nothing is remembered."""
    for less in range(0, 60, 12):
        start = time.thread_time()
        facts = ShellFacts(make(size - less))
        all_of(facts)
        assert facts.tree is not None  # also where it is allowed, and nobody needs the full parse
        yield time.thread_time() - start


class Bash:
    """A directory with things to read, in which bash runs lines that were allowed."""

    def __init__(self, base: Path) -> None:
        self.base, self.count = base, 0
        self.renew()

    def renew(self) -> None:
        if self.base.exists():
            shutil.rmtree(self.base)
        lay_out(self.base)
        self.before = seen_files(self.base)

    def run(self, facts: ShellFacts) -> None:
        """Run the line as it stands; fail if any file is other than before."""
        self.count += 1
        settings_of = {
            name: value
            for one in facts.judged
            if isinstance(one, ReadOnlyCommand)
            for name, value in one.program.environment.items()
        }
        process = subprocess.Popen(
            ["bash", "-c", facts.text],
            cwd=self.base / "work",
            env={
                **settings_of,
                "PATH": "/usr/bin:/bin",
                "LC_ALL": "C",
                "HOME": str(self.base / "home"),
                "TMPDIR": str(self.base / "tmp"),
            },
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            process.wait(timeout=2)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        after = seen_files(self.base)
        if after != self.before:
            changed = {name for name in {*after, *self.before} if after.get(name) != self.before.get(name)}
            self.renew()
            raise AssertionError(f"{facts.text!r} changed {sorted(changed)}")


@pytest.fixture(scope="module")
def bash(tmp_path_factory: pytest.TempPathFactory) -> Bash:
    if shutil.which("bash") is None:
        pytest.skip("needs bash")
    return Bash(tmp_path_factory.mktemp("bash") / "base")


@pytest.mark.parametrize(
    "text", ["touch made", "chmod 600 file.txt", "rm 'a b.txt'", "echo > ~/made", "ln file.txt hard", "touch file.txt"]
)
def test_a_change_would_be_seen(bash: Bash, text: str) -> None:
    with pytest.raises(AssertionError, match="changed"):
        bash.run(ShellFacts(text))


LINES = st.one_of(spoken(files_only=True, most=2).map(lambda line: line.text()), mutated(files_only=True))
SHARED = [*CHECKS, HealthCheck.function_scoped_fixture]


@examples(10_000, daily=15, suppress=SHARED, database=None)
@given(text=LINES)
def test_what_is_allowed_changes_no_file_when_bash_runs_it(bash: Bash, text: str) -> None:
    facts = read_shell(text)
    assume(facts.read_only and "\0" not in text)
    bash.run(facts)
