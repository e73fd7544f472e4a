"""The tokenizer against bash itself: the same words, the same programs run, the same streams."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from tests.profiles import examples

from signoff.policy.shell.line import CommandLine, Join, Simple, Word
from signoff.policy.shell.literal_words import Refused, read_line

BASH = shutil.which("bash")
pytestmark = pytest.mark.skipif(BASH is None, reason="there is no bash to compare with")

# Every command that runs, whatever its name, leaves its words on stream 9, and where its three streams lead.
# Functions stand for the programs: they are called with the words a program would be given.
SERVER = r"""
exec 8<&0 9>&1 0</dev/null 1>"$HOME/out" 2>"$HOME/err"
say() {
    local to streams= fd
    for fd in 0 1 2; do
        to=?
        builtin [ -p /dev/fd/$fd ] && to=p
        for name in null in out err; do
            file=$HOME/$name
            builtin [ $name = null ] && file=/dev/null
            builtin [ /dev/fd/$fd -ef "$file" ] && to=${name:0:1}
        done
        streams+=$to
    done
    # Without line breaks it leaves in one piece, whatever else runs beside it.
    printf '%s\0' "$streams" $# "${@//$'\n'/$'\2'}" >&9
}
p() { say p "$@"; }
f() { say f "$@"; return 1; }
function : { say : "$@"; }
function . { say . "$@"; }
function [ { say [ "$@"; }
command_not_found_handle() { say "$@"; return 127; }
printf '%s\0' "${BASH_VERSINFO[0]}" "${BASH_VERSINFO[1]}" >&9
while IFS= builtin read -r -d '' directory <&8 && IFS= builtin read -r -d '' text <&8; do
    ( cd "$directory"; eval -- "$text" )
    printf 'end\0' >&9
done
"""

FILES = (
    "a b ab A 1 2 c.py d.py .a .ab -n a=b ~ ! # a* ? [a] [ ] {a} {} $ \\ a\\ ^ + @ - in d/a d/ab d/.b d/e/a e/a"
).split()
FILES += ["a b", "'", '"', "é"]


ACTIVE = re.compile(r"(?<!\\)(?:\\\\)*[*?[]")
"""Something in a pattern that is looked up, and has no backslash."""


class Ran(NamedTuple):
    """One program that ran."""

    streams: str
    argv: tuple[str, ...]


class Shell:
    """A bash that is asked again and again."""

    def __init__(self, room: Path) -> None:
        self.home, self.empty, self.full = room / "home", room / "empty", room / "full"
        for directory in (self.home, self.empty, self.full, room / "bin"):
            directory.mkdir()
        for name in FILES:
            file = self.full / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.touch()
        for name in ("in", "out", "err"):
            (self.home / name).touch()
        self.process = subprocess.Popen(
            [str(BASH), "--norc", "--noprofile", "-c", SERVER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={"HOME": str(self.home), "PATH": str(room / "bin"), "LC_ALL": "C"},
            cwd=self.empty,
        )
        self.buffer = b""
        self.skips_dots = (int(self.next()), int(self.next())) >= (5, 2)

    def next(self) -> str:
        assert self.process.stdout
        while b"\0" not in self.buffer:
            chunk = os.read(self.process.stdout.fileno(), 65536)
            assert chunk, "bash is gone"
            self.buffer += chunk
        piece, _, self.buffer = self.buffer.partition(b"\0")
        return piece.decode().replace("\2", "\n")

    def run(self, directory: Path, text: str) -> list[Ran]:
        assert self.process.stdin
        self.process.stdin.write(f"{directory}\0{text}\0".encode())
        self.process.stdin.flush()
        ran: list[Ran] = []
        while (streams := self.next()) != "end":
            ran.append(Ran(streams, tuple(self.next() for _ in range(int(self.next())))))
        return ran

    def close(self) -> None:
        self.process.communicate()


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    shell = Shell(tmp_path_factory.mktemp("shell"))
    yield shell
    shell.close()


class Model:
    """What a line has to do in a directory, by our reading of it."""

    def __init__(self, shell: Shell, directory: Path) -> None:
        self.shell, self.directory = shell, directory

    def run(self, line: CommandLine) -> list[list[Ran]]:
        """The programs that run, pipeline by pipeline; inside one they run side by side and are sorted."""
        groups: list[list[Ran]] = []
        good = True
        for pipeline in line.pipelines:
            if pipeline.join is not Join.ALWAYS and good is not (pipeline.join is Join.AND):
                continue
            group: list[Ran] = []
            last = len(pipeline.stages) - 1
            for number, stage in enumerate(pipeline.stages):
                good, ran = self.stage(stage, "p" if number else "n", "p" if number < last else "o")
                group += ran
            groups.append(sorted(group))
        return groups

    def stage(self, stage: Simple, first: str, second: str) -> tuple[bool, list[Ran]]:
        argv = [text for word in stage.words for text in self.expand(word)]
        streams = [first, second, "e"]
        for redirect in stage.redirects:
            if redirect.source is not None:
                name = self.home(redirect.source.text, redirect.source.tilde)
                if name == "" or not os.path.exists(
                    os.path.join(self.directory, name)
                ):  # `Path` knows no slash at the end
                    return False, []
                streams[0] = {"/dev/null": "n", str(self.shell.home / "in"): "i"}.get(str(self.directory / name), "?")
            else:
                streams[redirect.fd] = "n" if redirect.onto is None else streams[redirect.onto]
        if "/" in argv[0]:
            return False, []
        return argv[0] in ("p", ":", ".", "["), [Ran("".join(streams), tuple(argv))]

    def home(self, text: str, tilde: bool) -> str:
        return f"{self.shell.home}{text[1:]}" if tilde else text

    def expand(self, word: Word) -> list[str]:
        if not word.glob:
            return [self.home(word.text, word.tilde)]
        pattern = self.home(word.glob, word.tilde)
        return sorted(self.found("", pattern)) or [self.home(word.text, word.tilde)]

    def found(self, before: str, pattern: str, squeeze: bool = False) -> list[str]:
        """The files that match, with `before` in front. bash takes a path apart at its slashes first of all, and
        writes one slash for several after a part that was looked up."""
        part, slashes, rest = re.fullmatch(r"([^/]*)(/*)(.*)", pattern, re.DOTALL).groups()  # type: ignore[union-attr]
        directory = self.directory / before
        if ACTIVE.search(part):
            names, squeeze = self.names(directory, part), True
        else:
            plain = re.sub(r"\\(.)", r"\1", part, flags=re.DOTALL)
            names = [plain] if plain == "" or os.path.lexists(directory / plain) else []
        if not slashes:
            return [before + name for name in names]
        slashes = "/" if squeeze else slashes
        return [
            found
            for name in names
            if name == "" or (directory / name).is_dir()
            for found in self.found(before + name + slashes, rest, squeeze)
        ]

    def names(self, directory: Path, pattern: str) -> list[str]:
        there = os.listdir(directory) if directory.is_dir() else []
        if not self.shell.skips_dots:
            there += [".", ".."]
        hidden = pattern.startswith((".", "\\."))
        regex = re.compile(translated(pattern), re.DOTALL)
        # One character is one byte where the locale is C.
        return [name for name in there if (hidden or name[0] != ".") and regex.fullmatch(name.encode())]


def translated(pattern: str) -> bytes:
    """A pattern of the shell as a regular expression over bytes."""
    regex, at = b"", 0
    bracket = re.compile(r"\[([!^]?)((?:\\.|[^\\])(?:\\.|[^\\\]])*)\]", re.DOTALL)
    while at < len(pattern):
        if found := bracket.match(pattern, at):
            regex += member(re.findall(r"\\?.", found[2], re.DOTALL), bool(found[1]))
            at = found.end()
        elif pattern[at] in "*?":
            regex += {"*": b".*", "?": b"."}[pattern[at]]
            at += 1
        else:
            at += pattern[at] == "\\"
            regex += re.escape(pattern[at].encode())
            at += 1
    return regex


def member(items: list[str], negated: bool) -> bytes:
    chars: set[int] = set()
    at = 0
    while at < len(items):
        low = items[at][-1]
        if items[at + 1 : at + 2] == ["-"] and at + 2 < len(items):
            high = items[at + 2][-1]
            if low > high:
                return b"(?!)"
            chars |= set(range(ord(low), ord(high) + 1))
            at += 3
        else:
            chars.add(ord(low))
            at += 1
    inside = b"|".join(re.escape(bytes([char])) for char in sorted(chars))
    return b"(?!" + inside + b")." if negated else b"(?:" + inside + b")"


def compare(shell: Shell, text: str) -> bool:
    """Whether we read this at all. Where we do, bash does the same with it, where files match and where none do."""
    line = read_line(text)
    if isinstance(line, Refused):
        return False
    globs = [word.glob for command in line.commands for word in command.words]
    if any(glob.startswith("/") or ".." in glob for glob in globs):
        return False  # looks outside our directories, where nobody knows what there is
    for directory in (shell.empty, shell.full):
        due = Model(shell, directory).run(line)
        ran = shell.run(directory, text)
        got: list[list[Ran]] = []
        start = 0
        for group in due:
            got.append(sorted(ran[start : start + len(group)]))
            start += len(group)
        assert (got, ran[start:]) == (due, []), (text, directory.name, line)
    return True


SPECIAL = [*"'\"\\$`|&;()<>{}[]*?~!#=%^:,.+-@/ \t\n", "\\\n", "é", "\u200b", "\x01", " &", "{a,b}", "{1..3}", "a:~"]
LETTERS = [*"abdpf12", "ab", "..", "in", "d/", "d/*", "~/", "~/in", "a=", "a+=", "a[0]=", "if", "time", "export", "[["]
OPERATORS = [
    " && ",
    " || ",
    "; ",
    "\n",
    " | ",
    " |& ",
    "&&",
    "||",
    ";",
    "|",
    "|&",
    "\n\n",
    " # x\n",
    "\n# \\\n",
    ";# x\n",
]
REDIRECTS = [">/dev/null", "2>/dev/null", "2>&1", "1>&2", ">&2", "&>/dev/null", ">&/dev/null", ">>/dev/null", "<~/in"]
REDIRECTS += ["< /dev/null", "2> /dev/null", ">& 2", "&>>'/dev/null'", "<in", "< a", "2>>/dev/null", "2>&1>/dev/null"]
WHOLE = r"""
''"'#'"'' 'a*' "$" "$'" "a$/" "\a\"" "\\" "\$" "~" "[a]"* "" "$"a '$'{a} \* \$ \~ \# \[ \\ \' \" \{ \a $ a$ '{a,b}'
[ab] [!a]* [^a] [a-c] [c-a] *.py ? .[] [\!a] [']'a] [a'-'c] [a\-c] []a] [*] [?] [a-] ** .* */ d/? */* //* a[ ]a [\\] [$]
'*'* "?"? {} {a} a{b} @{1} a,b a..b {'a'} {\,} }{ {a,b 'é' "é"* HEAD~1 a~ a'='~ ~'/' ! !a a! a#b %1 ^a =a a=b a:b
--a=b - --
""".split()
WHOLE += ["'a b'", '"a b"', "'\n'", '"a$ b"', "\\ ", "\\\t", '"\t$\n"', "' # '", '" \'"', "'\"'"]
RISKY = [">a", "1>", "<", "12>&1", "0<in", "<<a", ">|a", "{a}>/dev/null", "<1>/dev/null", "2>&1a", "2&>/dev/null", "~a"]

calm = st.sampled_from([*LETTERS[:8], *WHOLE, "-n", "a", "b"])
calm_words = st.lists(calm, min_size=1, max_size=3).map("".join)
words = st.lists(st.sampled_from(SPECIAL) | calm, min_size=1, max_size=4).map("".join)
items = st.one_of(calm, calm, calm_words, calm_words, st.sampled_from(REDIRECTS), words)
commands = st.tuples(
    st.sampled_from(["p", "p", "f", "'f'", "<~/in p", "2>&1 f", "b", "''", "\\p", "~/a", "["]),
    st.lists(items, max_size=4),
    st.sampled_from([" ", " ", " ", "  ", "\t", ""]),
).map(lambda parts: parts[2].join([parts[0] + " " * bool(parts[1]), *parts[1]]))
lines = st.lists(st.tuples(commands, st.sampled_from(OPERATORS)), min_size=1, max_size=4).map(
    lambda parts: "".join(command + operator for command, operator in parts[:-1]) + parts[-1][0]
)
wild = st.lists(st.sampled_from(SPECIAL + LETTERS + OPERATORS + REDIRECTS + WHOLE + RISKY), max_size=9).map("".join)
calm_commands = st.lists(calm, max_size=6).map(lambda parts: " ".join(["p", *parts]))
texts = st.one_of(lines, lines, lines, commands, commands, calm_commands, calm_commands, wild.map("p a ".__add__), wild)
SHARED = [HealthCheck.function_scoped_fixture]


def test_bash_reads_it_the_same_way(shell: Shell) -> None:
    read: list[bool] = []

    @examples(50_000, suppress=SHARED, database=None)
    @given(texts)
    def run(text: str) -> None:
        read.append(compare(shell, text))

    run()
    assert sum(read) > 0.3 * len(read), "many of these are to be read, or nothing is compared"


TRICKY = r"""
in|p in|a[0]|a[|a[b c]=d p|a[b c]|a=b p|a+=b|%1|%|-x|+x|time p|! p|{ p|p }|p {|[[ a ]]|]] a|time|coproc p|export a[1 2]
p a=~|p a=b:~|p a:~|p --a=~|p a=~/b|p a'='~|p "a="~|p a=''~|p ~'/'|p ~\/a|p ~""|p ~+|p ~-|p ~p|p a~|p ~{a}|p ~*|p ~/*
p '*'*|p \**|p "["a]|p [a"]"|p [a"]"b]|p [!]|p [!]a]|p [^]|p []|p [][]|p [[:alpha:]]|p [a/b]|p d[/]a|p [[.a.]]|p [\]]
p {a}>/dev/null|p {a}</dev/null|p a{b}>/dev/null|p {}>/dev/null|p a}>/dev/null|p {a[0]}>/dev/null|p {a}|p {a},{b}
p {a,b}|p {a","b}|p {a\,b}|p {"a,b"}|p {1..2}|p {1".."2}|p {"1..2"}|p "{a,b}"|p "{"a,b}|p {a,b"}"|p {a,b\}|p a,b{}
p {},a|p {a,|p ..{|p a <in/|p a <in|p a <in/.|\%|"%1"|'%'a p
p 2>&1>/dev/null|p <1>/dev/null|p 12>&1|p 02>&1|p a2>&1|p "2">&1|p 2">&1"|p 2&>/dev/null|p >&1a|p 2>& 1|p 2> &1|p >#a
p $|p "$"|p "$"a|p $ a|p a$/|p "$'a'"|p "$""a"|p '$'{a}|p \${a}|p "\$a"|p "$\a"|p "$]"|p "$)"|p "$}"|p "$="|p "$~"|p $;p
p #a|p a#b|p ""#a|p \#a|p;#a|p '#'|p $#|p "#"|p a\|p a"\|p "\a"|p '\'|p "\\"|p \\|p "\!"|p !|p !a|p "!"|p !!|p a!b
"""


def test_bash_reads_what_is_tricky_the_same_way(shell: Shell) -> None:
    texts = [text for row in TRICKY.strip().split("\n") for text in row.split("|")]
    texts += [
        "p |& f",
        "f || p",
        "p &>/dev/null|f",
        "p | # a\n f",
        "p && \n\n f",
        "p # a \\\nf",
        "p\n;f",
        "p |\n| f",
        "p ;\nf;",
    ]
    read = [text for text in texts if compare(shell, text)]
    assert len(read) > 60


# Joined commands that succeed and fail: which of them run is the structure.
joined = st.lists(
    st.tuples(st.sampled_from("pf"), st.sampled_from([" && ", " || ", "; ", " | ", "|&", "\n", "&&\n", "|| # x\n"])),
    min_size=2,
    max_size=7,
)


@examples(1_000, daily=15, suppress=SHARED, database=None)
@given(joined)
def test_the_same_commands_run(shell: Shell, parts: list[tuple[str, str]]) -> None:
    text = "".join(f"{name} {number}{operator}" for number, (name, operator) in enumerate(parts)) + "p last"
    assert compare(shell, text)
