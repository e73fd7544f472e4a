"""A command hidden in a script where the reader may see a pattern, a text or a comment, and the real program code.

Scripts are drawn from a few pieces that delimit, around a piece that does something. What the reader passes is run by
the real program; it must leave no trace.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pytest
from tests.policy.shell.languages.scratch import Scratch
from tests.profiles import NIGHTLY

from signoff.policy.shell.languages import Trouble, check_awk, check_jq, check_sed


@dataclass(frozen=True)
class Language:
    check: Callable[[str], Trouble | None]
    programs: Sequence[Sequence[str]]
    """How each program that may read the script is started, the script left out."""
    wraps: Sequence[str]
    danger: Sequence[str]
    pieces: Sequence[str]
    delimits: Sequence[str]
    file: str


# fmt: off
LANGUAGES = {
    "awk": Language(
        check_awk,
        (("gawk",), ("gawk", "--posix"), ("mawk",), ("original-awk",), ("busybox", "awk")),
        ("BEGIN{%s}", "BEGIN{print %s}", "{%s}", "%s", "BEGIN{if (%s) x}", "BEGIN{x[%s]}", "BEGIN{y = %s}"),
        ('system("touch made")', '"touch made" | getline', 'print > "made"', "ENVIRON[k]"),
        (*"x1$-!+(),;~?:[]{}\n", "x", "1", "a[1]", "$1", "++", "&&", "in ", "getline", "length", "print ",
         "==", "% ", "return ", "else ", "if (1)", "x=", "case 1:", "/a/", '"s"', "f(", "delete "),
        ("/", "/=", "/=/", "/ ", "/[/]/", "/[", "]/", '"', '\\"', "\\/", "#", "\\\n", "/\\\\/", "/[^]/]/", "\n"),
        "in.txt",
    ),
    "sed": Language(
        check_sed,
        (("sed",), ("sed", "--posix"), ("sed", "-E"), ("sed", "-n"), ("busybox", "sed")),
        ("%s", "{%s}", "1{%s\n}", "$!%s", "s/a/b/;%s"),
        ("w made", "e touch made", "s/^/touch made;/e", "r secret"),
        (*"sypadbict:}{;,!1$\n", "a\\\n", "i\\", "c ", "s/", "s|", "y/", ":x", "b ", "t;", "gI", "M", "0~2",
         "+1", "&", "\\1", "=", "l 3", "q", "v ", "}", "N;", "\\cX", "\\o57", "\\d047", "\\x2f", "\\n", "I,"),
        ("/", "|", "[", "]", "[^", "[]", "[^]", "[[:alpha:]]", "[.", ".]", "\\/", "\\|", "\\\n", "#", "\\\\", "\n"),
        "in.txt",
    ),
    "jq": Language(
        check_jq,
        (("jq",), ("jq", "-n"), ("jq", "-r")),
        ("%s", "[%s]", "{%s}", "(%s)", '"\\(%s)"', "def f: %s; f", "if . then %s end", ". as [$x] | %s", "{a:%s}"),
        ("env", "$ENV", "env.K", "input_filename,env", "$__prog_args"),
        (*".,|;:?[]{}()\n", ".a", "a", "$x", "1", "..", "as ", "def f:", "f", "@json ", "try ", "?//",
         "reduce ", "not", "if . then ", "else ", "end ", "{a", "a:", "$__loc__", "and ", "-", "//=",
         "label $x|", "1e3", "limit(1;"),
        ('"', '\\"', "\\(", '"\\(', ')"', "#", "\\\n", "\\\\", "#\\\n", "\r", '@text"', "\n", '"\\u0022', "# x\n"),
        "in.json",
    ),
}
# fmt: on


def drawn(language: Language, chance: random.Random) -> str:
    """One script: pieces, something that delimits, the danger, something that delimits, pieces."""

    def some(pieces: Sequence[str], most: int) -> str:
        return chance.choice(("", " ", "")).join(chance.choices(pieces, k=chance.randint(0, most)))

    inner = "".join(
        (
            some(language.pieces, 3),
            some(language.delimits, 2),
            chance.choice(language.danger),
            chance.choice(("", "", " ", "}", "\n")),
            some(language.delimits, 2),
            some(language.pieces, 2),
        )
    )
    return chance.choice(language.wraps).replace("%s", inner)


@pytest.mark.parametrize(
    ("name", "argv"), [(name, argv) for name, language in LANGUAGES.items() for argv in language.programs], ids=str
)
def test_what_is_hidden_is_found(name: str, argv: Sequence[str], tmp_path_factory: pytest.TempPathFactory) -> None:
    language = LANGUAGES[name]
    scratch = Scratch(tmp_path_factory.mktemp(name), argv[0])
    seed = random.SystemRandom().getrandbits(32) if NIGHTLY else 1
    chance = random.Random(seed)
    runs = 10_000 if NIGHTLY else 12
    passed: set[str] = set()
    for _ in range(runs * 400):
        script = drawn(language, chance)
        if script in passed or language.check(script) is not None:
            continue
        passed.add(script)
        done = scratch.effect([*argv, script, language.file])
        assert not done, f"{' '.join(argv)} {script!r} {done} (seed {seed})"
        if len(passed) == runs:
            return
    pytest.fail("few scripts pass: the pieces no longer fit the reader")
