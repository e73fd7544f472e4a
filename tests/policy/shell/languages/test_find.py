"""find expressions: what passes changes nothing when find runs it, in a directory of files with the worst of names."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.policy.shell.languages.scratch import Scratch
from tests.profiles import examples
from tests.tables import table

from signoff.policy.shell.languages import LIMIT, FindResult, Trouble, check_find
from signoff.policy.shell.line import Word

NAMES = [
    "-delete",
    "-exec",
    "-fprint",
    "-name",
    "-print",
    "+delete",
    "(",
    "!",
    ",",
    "a.txt",
    "b.txt",
    "-x.txt",
    "ab",
    "ac",
    "-d",
    "-O3",
]


def words(line: str) -> list[Word]:
    """Words of a line without quotes, where `*`, `?` and `[` make patterns and `%` stands for a quoted star."""
    return [
        Word(text.replace("%", "*"), text if any(char in text for char in "*?[") else "", text.startswith("~"))
        for text in line.split()
    ]


HARMLESS = """

.
-type f
/
~
. -name %.py
. -name -delete
. -path -exec -print
-H -L . /x -name x
-E . -regex x
-O3 -D tree . -name x
-f . -name x
-EXsx . -type d
-d . -name x
-- . -name x
. ( -name a -o -name b ) -prune -o -print0
. ! -name x , -not -iname y -a -size +1k -and -mtime -7 -or -empty
. -newermt 2024-01-01 -newerct now
. -perm -644 -perm /222 -perm -g+r,u+r
. -maxdepth 2 -mindepth 1 -printf %p\\n
. -depth +6 -print
. -depth -name x
. -xdev -daystart -follow -ls -quit
/tmp/test/* -daystart
*.d -name x
. -name 10_Rec* -print
. -name *.txt
. -iname anaconda.*
*/ -type d
src lib -name x -regextype posix-extended -regex .
""".split("\n")[1:-1]

HARMFUL = [
    (". -delete", "writes"),
    (". -name --help -delete", "writes"),
    (". -exec rm {} ;", "runs"),
    (". -execdir rm {} +", "runs"),
    (". -ok rm {} ;", "runs"),
    (". -okdir rm {} ;", "runs"),
    (". -fprint made", "writes"),
    (". -fprint0 made", "writes"),
    (". -fprintf made %p", "writes"),
    (". -fls made", "writes"),
    ("-files0-from list", "discloses"),
    (". -name x -o ( -type f -delete )", "writes"),
    (". -newer -newer -delete", "writes"),
    (". -depth -delete", "writes"),
    ("-H -delete", "writes"),
    ("-- . -delete", "writes"),
    ("-D tree -delete", "writes"),
    (". -depth 1 -delete", "writes"),
]

UNKNOWN = [
    ". -nosuch",
    ". -name",
    ". -type f stray",
    "(x",
    ". -print ;",
    ". -na*",
    "*",
    ". -name *",
    ". -name -*",
    ". -name ?delete",
    ". -name [-]delete",
    "[!a]*",
    ". -name x *",
    ". -print ~",
    "-f -delete",
    "-D -delete",
    "-D",
    ". -newerxy f",
    ". --delete",
    ". -cpio /dev/x",
    ". -depth *",
    "-f *",
]

PIECES = [
    ".",
    "-name",
    "-path",
    "-newer",
    "-delete",
    "-delete",
    "-exec touch made ;",
    "-fprint made",
    "-fprint",
    "-print",
    "-type f",
    "(",
    ")",
    "!",
    ",",
    "-o",
    "-depth",
    "1",
    "-maxdepth 1",
    "*",
    "a*",
    "*.txt",
    "?delete",
    "-*",
    "[-]delete",
    "*t*",
    "ab",
    "-H",
    "-D tree",
    "-D",
    "-f",
    "--",
    "-O3",
    "-size",
    "-printf",
    "-prune",
    "*e",
    "./*",
    "-regex",
]


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Scratch:
    return Scratch(tmp_path_factory.mktemp("find"), "find", NAMES)


@table("line", HARMLESS)
def test_harmless(line: str) -> None:
    assert isinstance(check_find(words(line)), FindResult)


@table(("line", "effect"), HARMFUL)
def test_harmful(line: str, effect: str) -> None:
    trouble = check_find(words(line))
    assert isinstance(trouble, Trouble)
    assert trouble.why.startswith(f"{effect}: ")


@table("line", UNKNOWN)
def test_not_understood(line: str) -> None:
    trouble = check_find(words(line))
    assert isinstance(trouble, Trouble)
    assert trouble.why.startswith("unknown: ")


@pytest.mark.parametrize(
    "line", [". -name x -o -delete", "[-]delete", ". -name *delete", ". -fprint made", ". -exec touch made ;"]
)
def test_what_is_asked_about_is_real(line: str, scratch: Scratch) -> None:
    assert isinstance(check_find(words(line)), Trouble)
    assert scratch.effect(in_bash(line))


def test_what_it_looks_at() -> None:
    found = check_find(
        words("-f one two three/* -newer ref -samefile other -newermt 2024 -anewer x -newerBa y -name z")
    )
    assert isinstance(found, FindResult)
    assert [word.text for word in found.paths] == ["one", "two", "three/*"]
    assert [word.text for word in found.files] == ["ref", "other", "x", "y"]


def test_too_long_and_odd() -> None:
    assert isinstance(check_find([Word(".")] * 100), FindResult)
    assert isinstance(check_find([Word("x" * LIMIT), Word("x")]), Trouble)
    assert isinstance(check_find([Word("x\r")]), Trouble)
    assert isinstance(check_find([Word("."), Word("")]), FindResult)
    assert isinstance(check_find([Word("."), Word("-print"), Word("")]), Trouble)


def in_bash(line: str) -> list[str]:
    """The line as bash runs it: operators quoted, patterns left alone."""
    quoted = [f"'{text}'" if text in "();!,{}" else text for text in line.split()]
    return ["bash", "-c", " ".join(["find", *quoted])]


@examples(3_000, daily=30)
@given(pieces=st.lists(st.sampled_from(PIECES), max_size=7))
def test_what_passes_changes_nothing(pieces: list[str], scratch: Scratch) -> None:
    line = " ".join(pieces)
    if isinstance(check_find(words(line)), FindResult):
        assert scratch.effect(in_bash(line)) == ""


@examples(2_000, daily=25)
@given(st.lists(st.builds(Word, st.text(), st.just("") | st.text(), st.booleans())))
def test_never_raises(given_words: list[Word]) -> None:
    check_find(given_words)
