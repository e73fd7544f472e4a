"""Lines with variables, substitutions, conditions and loops: no shell passes other words to a program than were judged.

The lines are made by chance and judged as any line is. Where the parser accepts one, five real shells run it with
functions in place of programs, inside a sandbox. A word of which a part is not known may be anything in that part; all
else has to be exact.
"""

from __future__ import annotations

import re
import shutil
import string
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any, cast

import pytest
from tests.policy.shell.structured import HEADS, Lines
from tests.policy.shell.test_words_bash import FILES, Model
from tests.policy.shell.test_words_shells import SHELLS, ran
from tests.profiles import NIGHTLY

from signoff.policy.shell import structured_lines
from signoff.policy.shell.command_facts import forget as clear_caches
from signoff.policy.shell.command_facts import read_shell
from signoff.policy.shell.line import Simple, Unknown, Word
from signoff.policy.shell.literal import HOLE

ACCEPTED = 20_000 if NIGHTLY else 300
AT_ONCE = 500
SEED = 11

BEHIND = [*string.punctuation, *" \t\naA1é\u00aa", "\\\n", "[1]", ":h", "[y]", "x[1]", "é", "é", "é"]
"""What a shell may read together with the expansion before it."""
NAMES = ("x", "y", "x", "y", "z", "X1")
OPERATORS = "||||:-q|-q|:+q|#a|##*/|%b|%%/*|-a b|:-$y|:1|[1]|^|@Q|:h|/a/b|=q|:=q|:?q".split("|")
LITERALS = re.split(
    "  |\n",
    r"""a  b  ab  -n  --  a/b  a:b  x=1  {}  {a}  {a,b}  +  ~  ~/a  *  a*  ?  [a]  [!a]  =  =a  ==  a=~  a:~  #  a#b  !
^a  %  %a  @  $  ''  ""  'p q'  "a b"  \a  a\ b  '*'  "'"  '"$x"'  "\$x"  '$(p)'  "a'b"  $'a'  ;""",
)
VALUES = re.split(
    "  |\n",
    r"""a  b  -n  'p q'  "a b"  a/b  'a*'  a*  ~  a:b  =a  ""  --  '$y'  $x  "$y"  "${x}"  x$y  "$x$y"  $(p)  $y  $z
"$(echo q r)"  $(echo a;echo b)  $z""",
)


class WordLines(Lines):
    """Lines that run `p`, which succeeds, and `f`, which does not, with words full of expansions."""

    heads = HEADS[:3]  # these end with what they read
    names = NAMES
    more = 0.65

    def simple(self) -> str:
        what = self.chance()
        if what < 0.1:
            used = self.pick(("$x", "a$x", '"$x"'))
            after = self.pick(("", "", "< names", "< missing", "2>/dev/null < missing"))
            again = f"x={self.value()} y={used}"
            return f"x={self.value()}; {f'{{ {again}; }} {after}' if after else again}; p $x $y"
        if what < 0.3:
            return " ".join(f"{self.pick(NAMES)}={self.value()}" for _ in range(1 + int(self.chance() * 2.5)))
        if what < 0.36:
            return f"export {self.pick(NAMES)}={self.value()} {self.pick(NAMES)}={self.value()}"
        if what < 0.4:
            return f"read -r {self.pick(NAMES)}" + self.pick(("", " < names", " <<< 'q r'"))
        words = " ".join(self.word() for _ in range(1 + int(self.chance() * 3)))
        return f"{self.pick(('', '', '', 'LC_ALL=C ', 'timeout 5 ', '! '))}{self.pick('pppf')} {words}{self.after()}"

    def value(self) -> str:
        return self.pick(VALUES) if self.chance() < 0.8 else self.word()

    def word(self) -> str:
        return "".join(self.fragment() for _ in range(1 + int(self.chance() ** 2 * 3)))

    def fragment(self) -> str:
        what, name = self.chance(), self.pick(NAMES)
        if what < 0.3:
            return f'"${name}"' if what < 0.12 else f"${name}" + self.behind()
        if what < 0.45:
            return f'"${name}{self.behind()}{self.behind()}"'
        if what < 0.5:
            return f"${{{name}{self.pick(OPERATORS)}}}"
        if what < 0.55:
            return f'"${self.pick("???##$$-!@*10_")}{self.behind()}{self.behind()}"'
        if what < 0.6:
            return self.pick(('"$(echo a b)"', "$(echo a)", "$(echo a;echo b)", "`echo a`", "${#x}", '"${x:-$y}"'))
        return self.pick("ab") if what < 0.75 else self.pick(LITERALS) if what < 0.95 else super().word()

    def behind(self) -> str:
        return self.pick(BEHIND) if self.chance() < 0.12 else ""


@pytest.fixture(scope="module")
def room(tmp_path_factory: pytest.TempPathFactory) -> Path:
    room = tmp_path_factory.mktemp("words")
    for name in ("home", "lines"):
        (room / name).mkdir()
    for name in (*filter(str.isascii, FILES), "a.txt", "names"):
        file = room / "full" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("a b\n-n *\n")
    return room


@pytest.fixture(scope="module", params=SHELLS)
def shell(request: pytest.FixtureRequest, room: Path) -> Sequence[str]:
    return confined(request.param, room)


def confined(name: str, room: Path) -> Sequence[str]:
    """How the shell of this name is started so that it changes nothing outside the room."""
    first, *options = SHELLS[name]
    path = shutil.which(first)
    bwrap = shutil.which("bwrap")
    if path is None or bwrap is None:
        pytest.skip(f"needs {first} and bwrap")
    box = f"{bwrap} --ro-bind / / --dev /dev --proc /proc --bind {room} {room} --unshare-all --die-with-parent"
    return (*box.split(), "--setenv", "LC_ALL", "C.UTF-8", path, *options)


@pytest.fixture(scope="module")
def accepted() -> list[str]:
    made = WordLines(Random(SEED))
    lines = (made.line() for _ in iter(int, 1))
    return list(islice((line for line in lines if len(line) < 300 and read_shell(line).line is not None), ACCEPTED))


def others(shell: Sequence[str], room: Path, lines: Sequence[str]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Each line with the words of a program that were not judged, but run."""
    model = Model(cast("Any", SimpleNamespace(home=room / "home", skips_dots=False)), room / "full")
    judged: dict[int, list[re.Pattern[str]]] = {}
    for at, words in ran(shell, room, lines):
        if at not in judged:
            line = read_shell(lines[at]).line
            assert line is not None
            judged[at] = [one for command in line.commands for one in forms(command, model)]
        if not any(one.fullmatch("\0".join((*words, ""))) for one in judged[at]):
            yield lines[at], words


def forms(command: Simple, model: Model) -> Iterator[re.Pattern[str]]:
    """What may run, each word with a NUL behind it: the whole command, or what is left behind its wrappers."""
    words = [form(word, model) for word in command.whole.words]
    for at in range(len(command.before) + 1):
        yield re.compile("".join(words[at:]), re.DOTALL)


def form(word: Word, model: Model) -> str:
    if word.unknown is Unknown.ANY:
        return r"(?:[^\0]*\0)*"
    if word.glob:  # some shells find other files, or stop
        return "(?:(?:{})\0)+".format("|".join(map(re.escape, (*model.expand(word), word.text))))
    [text] = model.expand(word)
    return r"[^\0]*".join(map(re.escape, text.split(HOLE) if word.unknown is Unknown.ONE else [text])) + "\0"


@pytest.mark.timeout(1_800)
def test_every_shell_runs_the_words_that_were_judged(shell: Sequence[str], room: Path, accepted: list[str]) -> None:
    there = sorted(room.rglob("*"))
    found: list[tuple[str, tuple[str, ...]]] = []
    for start in range(0, len(accepted), AT_ONCE):
        found += others(shell, room, accepted[start : start + AT_ONCE])
    assert found == []
    written = set(room.rglob("*")) - set(there)
    assert not [path for path in written if path != room / "out" and path.parent != room / "lines"]


def test_the_lines_hold_what_they_are_made_for(accepted: list[str]) -> None:
    read = [line for line in (read_shell(one).line for one in accepted) if line is not None]
    words = [word for line in read for command in line.commands for word in command.words]
    assert sum(word.unknown is Unknown.ONE for word in words) > ACCEPTED / 10
    assert sum(word.unknown is Unknown.ANY for word in words) > ACCEPTED / 10
    assert sum("for " in line for line in accepted) > ACCEPTED / 50


@pytest.mark.parametrize(
    ("name", "line", "words"),
    [
        ("zsh", 'x=a; p "$xé"', ("p", "")),
        ("zsh", 'x=a; p "$x[1]"', ("p", "a")),
        ("bash", "x=a; true | x=b; p $x", ("p", "a")),
        ("bash", "x=a; (x=b); for y in 1 2; do p $x$y; done", ("p", "a1")),
    ],
)
def test_a_wrong_reading_is_noticed(
    name: str, line: str, words: tuple[str, ...], room: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def forget(reader: object, names: set[str]) -> None:
        """Believe what a part of the line has set that runs in a shell of its own."""

    clear_caches()
    monkeypatch.setattr(structured_lines, "_SIMPLE", re.compile(r"\$([A-Za-z][A-Za-z0-9_]*)()()"))
    monkeypatch.setattr(structured_lines._StructureReader, "forget", forget)  # pyright: ignore[reportPrivateUsage]
    assert (line, words) in list(others(confined(name, room), room, [line]))
    clear_caches()
