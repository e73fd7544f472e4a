"""sed scripts: what passes changes nothing when GNU sed runs it, and what changes something is asked about."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.policy.shell.languages.scratch import Scratch
from tests.profiles import examples
from tests.tables import table

from signoff.policy.shell.languages import LIMIT, check_sed

HARMLESS = r"""
p
1,10p
$!d
/start/,/end/!d
0,/x/I s//y/
1~2p
2,~4p
/a/,+2p
\,a/b,p
\|a|I,$p
s/foo/bar/g
s#x#s/a/b/woutput#
s/a/b/2p
s/a/b/gI;s/c/d/
s/a/b/ ; p
s/[^/]*$//
s/[/]/x/
s|[/]||g
s/\[[^]]*\]//g
s/[[:alpha:]/]/x/
s/a\/b/c\/d/
s/a/b/w /dev/stdout
w /dev/stdout
r /dev/stdin
y/abc/def/
y,a/,/a,
a w made
1i\  w made
$a\
/x/{p;d}
/x/{s/a/b/;p};=
:a;N;$!ba;s/\n/ /g
b end;p;:end
l 20;q 3
10q;d
# w made
p # w made
$!N;P;D;z;F
s/é/e/
""".strip().split("\n")

HARMFUL = r"""
w made
W made
1w made
/a/w made
$!w made
p;w made
{w made
s/a/b/w made
s/a/b/gw made
s/a/b/ w made
s/c/;/;w made
s#a#touch made#;s#.*#touch made#e
s|.*|touch made|pe
e touch made
1e touch made
1!{e touch made
r secret
$R secret
/a/{p;w made
y/a/b/;w made
a\\\\;w made
w /dev/stdout;made
:x;w made
\wawwmade
sxaxbxw made
#n;
""".strip().split("\n")[:-1]

SEVERAL_LINES = [
    ("a\\\nw made\np", True),
    ("a foo\\\nw made", True),
    ("a foo\\\\\nw made", False),
    ("a\nw made", False),
    ("a\\  \nw made", False),
    ("a\\\\\\\nw made", False),
    ("# x\nw made", False),
    ("s/x/\\\nw made/", True),
    ("s/x\nw made/y/", False),
    ("b x;s/a/\\\nw made/;:x", False),
    ("#n\np", True),
    ("/a/{\n  p\n  b\n}\n", True),
]

UNKNOWN = [
    "k",
    "s/a/b",
    "s/a",
    "/a",
    "1,p",
    "1",
    "s/a/b/k",
    "p x",
    "}",
    "{p",
    "1!!p",
    "s\na\nb\n",
    "séaébé",
    "a",
    "+1p",
    "p\r",
    "p\x00",
    "# x\\",
    "1}",
    "1:a",
    ":a b",
    "sab",
    "y/a/",
    "v x",
    "s a b ",
    "/[[:x/p",
    "L",
]

FRAGMENTS = [
    *"s/y/|/[/]\\;;{}1$!gIM#&^ax. \n\n",
    "w made",
    "w made\n",
    ";w made\n",
    "e touch made",
    "1e touch made\n",
    "s/a/b/",
    "s|a|b|",
    "w",
    "e",
    "a\\\n",
    "a\\",
    "i ",
    "c",
    "p",
    "d",
    ":x",
    "b\n",
    "t y;",
    "\\n",
    "\\]",
    "[^/]",
    "[[:alpha:]]",
    "[]",
    "r secret",
    "R secret\n",
    "2,",
    "+1",
    "~2",
    "w /dev/stdout",
    "y/ab/cd/",
    "\\,",
]
PART = st.lists(st.sampled_from(FRAGMENTS), min_size=1, max_size=4).map("".join)


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Scratch:
    return Scratch(tmp_path_factory.mktemp("sed"), "sed")


@table("script", HARMLESS)
def test_harmless(script: str, scratch: Scratch) -> None:
    assert check_sed(script) is None
    assert scratch.effect(["sed", script, "in.txt"]) == ""


@table("script", HARMFUL)
def test_harmful(script: str) -> None:
    trouble = check_sed(script)
    assert trouble is not None
    assert trouble.why.split(":")[0] in ("writes", "runs", "discloses", "unknown")


@pytest.mark.parametrize(
    "script",
    [
        "w made",
        "1e touch made",
        "s|.*|touch made|pe",
        "s/a/b/ w made",
        "r secret",
        "a\nw made",
        "a\\  \nw made",
        ":x;w made",
    ],
)
def test_what_is_asked_about_is_real(script: str, scratch: Scratch) -> None:
    assert check_sed(script) is not None
    assert scratch.effect(["sed", script, "in.txt"])


@pytest.mark.parametrize(("script", "passes"), SEVERAL_LINES)
def test_several_lines(script: str, passes: bool, scratch: Scratch) -> None:
    assert (check_sed(script) is None) is passes
    if passes:
        assert scratch.effect(["sed", script, "in.txt"]) == ""


@table("script", UNKNOWN)
def test_not_understood(script: str) -> None:
    trouble = check_sed(script)
    assert trouble is not None
    assert trouble.why.startswith("unknown: ")


@pytest.mark.parametrize(
    ("script", "effect"),
    [
        ("p;w made", "writes"),
        ("s/a/b/e", "runs"),
        ("1e id", "runs"),
        ("r /etc/passwd", "discloses"),
        ("/x/W f", "writes"),
    ],
)
def test_says_what_it_does(script: str, effect: str) -> None:
    trouble = check_sed(script)
    assert trouble is not None
    assert trouble.why.startswith(f"{effect}: ")
    assert trouble.word in script


def test_parts() -> None:
    assert check_sed("/x/{", separate=True) is None
    assert check_sed("}", separate=True) is None
    assert check_sed("a\\", separate=True) is not None
    assert check_sed("a foo\\", separate=True) is not None
    assert check_sed("a foo", separate=True) is None
    assert check_sed("w made", separate=True) is not None


def test_too_long() -> None:
    assert check_sed("p;" * (LIMIT // 2)) is None
    assert check_sed("p;" * (LIMIT // 2) + "p") is not None


@examples(3_000, daily=50)
@given(pieces=st.lists(st.sampled_from(FRAGMENTS), min_size=1, max_size=8), extended=st.booleans())
def test_what_passes_changes_nothing(pieces: list[str], extended: bool, scratch: Scratch) -> None:
    script = "".join(pieces)
    if check_sed(script) is None:
        assert scratch.effect(["sed", *(["-E"] if extended else []), "-e", script, "in.txt"]) == ""


@examples(2_000)
@given(
    parts=st.lists(st.lists(st.sampled_from(FRAGMENTS), min_size=1, max_size=4).map("".join), min_size=2, max_size=3)
)
def test_parts_that_pass_change_nothing(parts: list[str], scratch: Scratch) -> None:
    argv = ["sed", *(word for part in parts for word in ("-e", part)), "in.txt"]
    if all(check_sed(part, separate=True) is None for part in parts) or check_sed("\n".join(parts)) is None:
        assert scratch.effect(argv) == ""


@examples(2_000)
@given(st.text())
def test_never_raises(script: str) -> None:
    check_sed(script)
    check_sed(script, separate=True)
