"""What the strict parser accepts, every shell reads alike: no shell runs other words than those that were judged.

A hook is not told which shell will run the line. Where shells differ, one may stop with an error; it may not run more.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from tests.policy.shell.test_words_bash import FILES, Model, texts
from tests.profiles import NIGHTLY, examples

from signoff.policy.shell.command_facts import read_shell
from signoff.policy.shell.line import CommandLine
from signoff.policy.shell.literal_words import read_line

SHELLS = {
    "bash": ("bash", "--norc", "--noprofile"),
    "zsh": ("zsh", "-f"),
    "mksh": ("mksh",),
    "dash": ("dash",),
    "busybox": ("busybox", "sh"),
}
# Functions stand for the programs; each call leaves the number of its line and its words on stream 9.
SERVER = r"""
exec 9>"$OUT"
say() { $PRINTF '%s\1' "$AT" "$@" "$END" >&9; }
p() { say p "$@"; }
f() { say f "$@"; return 1; }
AT=0
while [ "$AT" -lt "$COUNT" ]; do
    ( . "$LINES_IN/$AT" ) </dev/null >/dev/null 2>&1
    AT=$((AT + 1))
done
wait
"""


@pytest.fixture(scope="module", params=SHELLS)
def shell(request: pytest.FixtureRequest) -> Sequence[str]:
    words = SHELLS[request.param]
    path = shutil.which(words[0])
    if path is None:
        pytest.skip(f"needs {words[0]}")
    return (path, *words[1:])


@pytest.fixture(scope="module")
def room(tmp_path_factory: pytest.TempPathFactory) -> Path:
    room = tmp_path_factory.mktemp("shells")
    for name in ("home", "full", "lines"):
        (room / name).mkdir()
    (room / "home" / "in").touch()
    for name in FILES:
        file = room / "full" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    return room


def ran(shell: Sequence[str], room: Path, lines: Sequence[str]) -> Iterator[tuple[int, tuple[str, ...]]]:
    """The number of each line and the words of each program that it ran."""
    for number, line in enumerate(lines):
        (room / "lines" / str(number)).write_text(line + "\n", encoding="utf-8")
    out = room / "out"
    own = not any(Path(word).name == "mksh" for word in shell)  # mksh has none of its own
    variables = {
        "PRINTF": "printf" if own else "/usr/bin/printf",
        "END": "\2",
        "OUT": str(out),
        "COUNT": str(len(lines)),
        "LINES_IN": str(room / "lines"),
    }
    home = {"HOME": str(room / "home"), "PATH": str(room / "nothing"), "LC_ALL": "C"}
    subprocess.run(
        [*shell, "-c", SERVER], cwd=room / "full", env=home | variables, timeout=60, check=False, capture_output=True
    )
    for record in out.read_bytes().decode().split("\1\2\1")[:-1]:
        at, *words = record.split("\1")
        yield int(at), tuple(words)


def test_no_shell_runs_other_words(shell: Sequence[str], room: Path) -> None:
    others = Path(shell[0]).name in ("dash", "mksh", "busybox")
    model = Model(cast("Any", SimpleNamespace(home=room / "home", skips_dots=True)), room / "full")
    run_at_all: list[int] = []

    def due(line: CommandLine) -> Iterator[tuple[str, ...]]:
        for command in line.commands:
            yield tuple(text for word in command.words for text in model.expand(word))

    @examples(600, daily=3, suppress=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], database=None)
    @given(st.lists(texts, min_size=40, max_size=40))
    def run(drawn: list[str]) -> None:
        lines = [text for text in drawn if _compared(text, others)]
        before = sorted(path.name for path in room.rglob("*"))
        found = list(ran(shell, room, lines))
        for at, words in found:
            line = read_line(lines[at])
            assert isinstance(line, CommandLine)
            assert words in set(due(line)), (lines[at], words)
        run_at_all.append(len(found))
        left = {path.name for path in room.rglob("*")} - set(before) - {"out", *map(str, range(40))}
        assert not left, lines

    run()
    assert sum(run_at_all) > 0


BESIDE = """
a 1 12 {a} {1} {} {PATH} {a}b a{a} '{a}' {"a"} - -- -n = == a= =a a=b ~ ~a : % %1 ^ ^a ! # a#b @
@a + ? * [ ] [a a] [!a] a, {a. .. ... / // a/
""".split()
"""Words that a shell may read together with what is beside them."""
REDIRECTED = (
    ">&2", ">&1", ">/dev/null", "> /dev/null", ">>/dev/null", "2>&1", "2>/dev/null", "1>&2", "&>/dev/null", "< a", "<a",
    ">&2 >&2", ">| /dev/null", "<<<a", "<>a", "|& p", "| p", "; p", "&& p", "|| p",
)  # fmt: skip


def test_no_shell_reads_a_word_together_with_what_is_beside_it(shell: Sequence[str], room: Path) -> None:
    model = Model(cast("Any", SimpleNamespace(home=room / "home", skips_dots=True)), room / "full")
    forms = ("p x {}{}{} y", "p {}{}{}", "p {}{}{} -n p") if NIGHTLY else ("p x {}{}{} y",)
    beside = BESIDE if NIGHTLY else [one for one in BESIDE if "{" in one or one in "a 1 - = ~ # ! [a *".split()]
    made = (form.format(*one) for form in forms for one in product(beside, ("", " "), REDIRECTED))
    lines = [text for text in made if _compared(text, others=True)]
    assert len(lines) > 200
    wrong: list[tuple[str, tuple[str, ...]]] = []
    for at, words in ran(shell, room, lines):
        line = read_line(lines[at])
        assert isinstance(line, CommandLine)
        due = {tuple(text for word in command.words for text in model.expand(word)) for command in line.commands}
        wrong += [(lines[at], words)] if words not in due else []
    assert wrong == []


def _compared(text: str, others: bool) -> bool:
    """Whether we accept it and know which files its patterns find: not where shells differ in that, which is judged."""
    line = read_line(text)
    if not isinstance(line, CommandLine):
        return False
    globs = [(word.glob, word.text) for command in line.commands for word in command.words if word.glob]
    differ = ("[^",) if others else ()
    return not any(
        "/" in glob or glob.startswith((".", "\\.")) or "**" in word or any(one in glob for one in differ)
        for glob, word in globs
    )


EVALUATED = ["'path[$(touch PWNED)]'", "'path[`touch PWNED`]'", "'PATH=.'", "'PATH++'", "_"]
AROUND = "PATH 1 x = -a ! -t -v -o -n -eq -nt -l %d %n %s %c %b '%*d' '%2$d' '\\x25d' '%(%Y)T' '=touch'".split()
BUILTINS = "echo printf test [ true false : cd type command which kill jobs ulimit umask pwd".split()


def builtin_lines() -> list[str]:
    """The allowed ones of many lines for the programs that are part of some shell."""
    words = [*EVALUATED, *AROUND]
    made = (
        " ".join((name, *some)) + (" ]" if name == "[" else "")
        for name in BUILTINS
        for size in ((1, 2, 3) if name in ("test", "printf") else (1, 2))
        for some in product(words, repeat=size)
        if not set(EVALUATED).isdisjoint(some) and (size < 3 or some[0] in AROUND)
    )
    return [line for line in made if read_shell(line).read_only]


def evaluated(shell: Sequence[str], room: Path, lines: Sequence[str]) -> list[str]:
    """Those that ran what is in a word, or changed where programs are found."""
    script = "".join(
        f"( : 'path[$(touch PWNED)]'; {line}\n[ \"$PATH\" = /usr/bin:/bin ] || : >PATH ) >/dev/null 2>&1 </dev/null\n"
        f"[ -e PWNED ] || [ -e PATH ] && {{ echo {number}; command -p rm -f PWNED PATH; }}\n"
        for number, line in enumerate(lines)
    )
    (room / "script").write_text(script)
    home = {"PATH": "/usr/bin:/bin", "HOME": str(room)}
    done = subprocess.run(
        [*shell, "./script"], cwd=room, env=home, capture_output=True, text=True, timeout=300, check=False
    )
    return [lines[int(number)] for number in done.stdout.split()]


@pytest.fixture(scope="module")
def tried() -> list[str]:
    lines = builtin_lines()
    assert len(lines) > 1_000
    return lines if NIGHTLY else lines[::25]


def test_no_shell_evaluates_what_is_allowed(shell: Sequence[str], tried: list[str], tmp_path: Path) -> None:
    assert evaluated(shell, tmp_path, tried) == []


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("zsh", "printf %d 'path[$(touch PWNED)]'"),
        ("zsh", "test -t 'path[$(touch PWNED)]'"),
        ("mksh", "test 'path[$(touch PWNED)]' -eq 0"),
        ("mksh", "test PATH=1 -eq 1"),
        ("bash", "printf %n PATH"),
    ],
)
def test_what_a_shell_evaluates_is_seen(name: str, line: str, tmp_path: Path) -> None:
    if shutil.which(name) is None:
        pytest.skip(f"needs {name}")
    assert evaluated(SHELLS[name], tmp_path, [line]) == [line]


FOUND = r"""
printf %d 'path[$(id)]'|printf %d 'path[`id`]'|printf '%*d' 'path[$(id)]' 1|printf '%2$d' 1 'path[$(id)]'|printf %n PATH
printf '\x25d' 'path[$(id)]'|printf '\045d' 'path[$(id)]'|printf '%(%Y)T' 'path[$(id)]'|printf %s%d a 'path[$(id)]'
printf -v PATH .|git status && printf %x 'path[$(id)]'|echo 'path[$(id)]'; printf %d _|printf %d PATH=1|printf %d *
test -t 'path[$(id)]'|[ -t 'path[$(id)]' ]|test 'path[$(id)]' -eq 0|[ 1 -lt 'path[$(id)]' ]|test PATH=1 -eq 1
test _ -eq 0|[ PATH -eq 1 ]|test -v 'path[$(id)]'|test *|cat =ls|cat "$=_"|cat "$~_"|cat "$^HOME"
cat "$+HOME"|cat <1-5>/dev/null|ls &>/dev/null touch x|ls &>>/dev/null touch x
echo x \| cd ~/.ssh; cat config|cat ~/**/login.keychain-db
""".replace("\n", "|").replace("\\|", "\0")


@pytest.mark.parametrize("line", [one.replace("\0", "|") for one in FOUND.split("|") if one.strip()])
def test_what_some_shell_reads_differently_is_not_allowed(line: str) -> None:
    assert not read_shell(line).read_only


@pytest.mark.parametrize(
    "line",
    [
        r"printf '%s\n' a 'b[c]' $",
        "printf '%5.1f%%\\n' 3.5",
        "printf '%-10s %d\\n' total 7 other -1",
        "printf '\\033[1mx\\033[0m'",
        "test -f a.txt && cat a.txt",
        "[ a = b ] || echo no",
        "[ 3 -gt 2 ]",
        "[ -t 1 ]",
        "test 'a[b' = c",
        "wc -l src/**/*.py",
        "git show HEAD^",
    ],
)
def test_what_all_read_alike_is_allowed(line: str) -> None:
    assert read_shell(line).read_only
