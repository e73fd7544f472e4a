"""Commands made from the table itself: programs with options it knows and operands of the kinds it expects.

Nothing here says that a command is allowed; a test that needs that asks the judge.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from hypothesis import strategies as st

from signoff.policy.shell.table import CommandOption, OperandKind, Program, TakesValue, known_programs, program

FILES = ("file.txt", "other.txt", "src/main.py", "data.json", "table.csv", "page.xml", "a b.txt", "./file.txt")
DIRECTORIES = (".", "src", "src/deep", "./src")
ARCHIVES = ("pack.tar", "pack.tar.gz", "pack.zip", "text.gz", "text.bz2", "text.xz")
REFS = ("HEAD", "HEAD~1", "master", "HEAD:file.txt", "file.txt", "src")
TEXTS = (
    "x",
    "a",
    "one",
    "1",
    "2",
    "-",
    "a b",
    "%s",
    "$",
    "*",
    "^l",
    "[a-z]",
    "a,b",
    "1,2",
    "'",
    '"',
    "\\",
    "é",
    "!",
    "#",
)
AWK = ("{print $1}", "1", "NR==2", "BEGIN{x=1} {x+=NF} END{print x}", '/o/{print NR":"$0}', 'BEGIN{print "a" > "b"}')
SED = ("s/a/b/g", "1,2p", "$d", "/o/!d", "y/abc/xyz/", "2q", "s/a/b/w out", "1r file.txt", "w out", "e touch x")
JQ = (".", ".a", ".[]?", "keys", ".a | select(. == 1)", "[.. | numbers] | length", "env", "input", "$ENV")
FIND = (
    "-type",
    "f",
    "-name",
    "*.py",
    "-maxdepth",
    "2",
    "-print",
    "-newer",
    "file.txt",
    "-size",
    "+1k",
    "!",
    "-o",
    "-exec",
    "touch",
    "x",
    ";",
    "-delete",
    "-fprint",
    "out",
    "-empty",
    "-printf",
    "%p\\n",
    "-prune",
    "-ls",
)

OPERATORS = (" | ", " && ", " || ", " ; ", "\n", " |& ")
PLAIN = re.compile(r"[A-Za-z0-9_./,:@%+-][A-Za-z0-9_./,:@%+=-]*")

Argv = tuple[str, ...]


class Spoken(NamedTuple):
    """A line before it is written down: its commands, and what stands between them."""

    commands: tuple[Argv, ...]
    operators: tuple[str, ...]

    def text(self) -> str:
        """Written as people would."""
        said = [" ".join(shlex.quote(word) for word in argv) for argv in self.commands]
        return "".join(piece for pair in zip(said, (*self.operators, ""), strict=True) for piece in pair)


@lru_cache(maxsize=1)
def readers() -> tuple[tuple[Argv, Program], ...]:
    """Every program and sub-command that may only read, with the words that name it."""
    return tuple(
        found for name in sorted(known_programs()) if (known := program(name)) for found in _below((name,), known)
    )


def _below(words: Argv, known: Program) -> Iterator[tuple[Argv, Program]]:
    if known.trouble:
        return
    if not known.commands or known.alone:
        yield words, known
    for name, below in known.commands.items():
        yield from _below((*words, name), below)


def looks_at_files(known: Program) -> bool:
    """Whether it is given files, so that what it does to them can be seen."""
    kinds = {kind.name for kind in known.operands} | {option.kind.name for option in known.options.values()}
    return bool(known.language or kinds & {"path", "name", "ref", "awk", "sed", "jq"}) or known.name.startswith("git ")


@lru_cache(maxsize=2)
def _choice(files_only: bool) -> st.SearchStrategy[tuple[Argv, Program]]:
    return st.sampled_from([one for one in readers() if not files_only or looks_at_files(one[1])])


@lru_cache(maxsize=4096)
def _names(words: Argv) -> st.SearchStrategy[str]:
    known = next(known for named, known in readers() if named == words)
    return st.sampled_from(sorted(known.options))


@lru_cache(maxsize=256)
def values(kind: OperandKind) -> st.SearchStrategy[str]:
    """Words of a kind, and now and then one that is not."""
    chosen: dict[str, Sequence[str]] = {
        "path": FILES + ARCHIVES,
        "name": FILES + DIRECTORIES + ARCHIVES,
        "ref": REFS,
        "number": ("1", "3", "20"),
        "awk": AWK,
        "sed": SED,
        "jq": JQ,
        "text": TEXTS + FILES + ARCHIVES,
    }
    if kind.regex is not None:
        fits = [
            one for one in (*FILES, *ARCHIVES, *TEXTS, "always", "short", "+%s", "x.xml") if kind.regex.fullmatch(one)
        ]
        return st.sampled_from(fits or ["x"])
    return st.sampled_from(chosen.get(kind.name, TEXTS + FILES))


@st.composite
def options(draw: st.DrawFn, words: Argv, known: Program) -> list[str]:
    """One option with its value: attached, behind `=` or as the next word."""
    name = draw(_names(words))
    option: CommandOption = known.options[name]
    if option.takes is TakesValue.NOTHING:
        return [name]
    value = draw(values(option.kind))
    attached = f"{name}={value}" if name.startswith("--") else f"{name}{value}"
    if option.takes is TakesValue.MAYBE:
        return [draw(st.sampled_from((name, attached)))]
    return draw(st.sampled_from(([name, value], [name, value], [attached])))


@st.composite
def argvs(draw: st.DrawFn, files_only: bool = False) -> Argv:
    """The words of one command. Most of them are allowed; those with a risky option or a script that writes are not."""
    words, known = draw(_choice(files_only))
    if known.language:
        return (*words, draw(st.sampled_from(DIRECTORIES)), *draw(st.lists(st.sampled_from(FIND), max_size=5)))
    said: list[str] = []
    if needed := sorted((known.needs or known.operands_need) & known.options.keys()):
        said.append(draw(st.sampled_from(needed)))
    for _ in range(draw(st.sampled_from((0, 1, 1, 2, 3)))):
        said += draw(options(words, known)) if known.options else []
    kinds = list(known.operands)
    if kinds and known.repeats:
        kinds += [kinds[-1]] * draw(st.integers(0, 2))
    elif draw(st.booleans()):
        kinds = kinds[: draw(st.integers(0, len(kinds)))]
    operands = [draw(values(kind)) for kind in kinds]
    at = draw(st.sampled_from((0, 0, len(operands))))  # some people write options last
    return (*words, *operands[:at], *said, *operands[at:])


@st.composite
def spoken(draw: st.DrawFn, files_only: bool = False, most: int = 3) -> Spoken:
    """A line of one to `most` commands."""
    commands = draw(st.lists(argvs(files_only), min_size=1, max_size=most))
    between = draw(st.lists(st.sampled_from(OPERATORS), min_size=len(commands) - 1, max_size=len(commands) - 1))
    return Spoken(tuple(commands), tuple(between))


@st.composite
def quoted(draw: st.DrawFn, word: str) -> str:
    """The same word in another spelling that bash reads alike."""
    ways = ["'" + word.replace("'", "'\\''") + "'"]
    if PLAIN.fullmatch(word):
        ways += [word, word, word[0] + f"'{word[1:]}'", f'"{word[:1]}"{word[1:]}', f"''{word}"]
    if not re.search(r'[$`"\\!]', word):
        ways.append(f'"{word}"')
    if word and word.isascii() and word.isprintable():
        ways.append("".join(f"\\{char}" if not char.isalnum() else char for char in word))
        ways.append("".join(f"\\{char}" for char in word))
    return draw(st.sampled_from(ways))


@st.composite
def respelled(draw: st.DrawFn, line: Spoken) -> str:
    """The same line with other blanks, quotes, line breaks and comments."""
    blanks = st.sampled_from((" ", "  ", "\t", " \t "))
    pieces = [draw(st.sampled_from(("", " ", "\n", "\t", "# note\n", "\n \n")))]
    for argv, operator in zip(line.commands, (*line.operators, ""), strict=True):
        words = [draw(quoted(word)) for word in argv]
        for word in words:
            pieces += [word, draw(blanks)]
        ways = [operator, f"{operator.strip(' ')}\n" if operator.strip() else operator]
        if operator in (" ; ", "\n"):
            ways = [" ; ", "\n", ";", "\n\n", ";\n", " # note; rm x\n", "\t;\t"]
        pieces.append(draw(st.sampled_from(ways)) if operator else "")
    return "".join(pieces) + draw(st.sampled_from(("", "\n", " ", ";", " # done", "\n# done", " ;\n")))
