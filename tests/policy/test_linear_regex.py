"""A linear regex says what Python's `re` says, and never takes long."""

from __future__ import annotations

import re
import sys
import time
import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.profiles import NIGHTLY, examples
from tests.tables import table

from signoff.policy.linear_regex import BadRegex, LinearRegex

ATOMS = [
    "a",
    "b",
    ".",
    r"\d",
    r"\w",
    r"\W",
    r"\S",
    "[ab]",
    "[^a]",
    "[a-c_]",
    r"[^\W\d]",
    r"[\W_]",
    r"[^\s-]",
    r"\.",
    "-",
    " ",
    "^",
    "$",
    r"\Z",
    "é",
    r"\x41",
    r"\u00e9",
    "{",
    "]",
    "(?:)",
]
REPEATS = ["*", "+", "?", "{2}", "{1,3}", "{,2}", "{2,}", "*?", "+?", ""]
FLAGS = ["", "(?i)", "(?s)", "(?m)", "(?a)", "(?x)"]


def patterns(atoms: list[str]) -> st.SearchStrategy[str]:
    plain = st.lists(st.sampled_from(atoms), min_size=1, max_size=3).map("".join)
    return st.recursive(
        plain,
        lambda inner: st.one_of(
            st.builds("({}){}".format, inner, st.sampled_from(REPEATS)),
            st.builds("(?:{}|{})".format, inner, inner),
            st.builds("(?i:{}){}".format, inner, inner),
            st.builds("{}{}".format, inner, inner),
        ),
        max_leaves=6,
    )


TEXTS = st.text(alphabet="abcABé1_-. {]\n\u00a0", max_size=12)


@given(patterns(ATOMS), TEXTS, st.sampled_from(FLAGS))
@examples(5_000, daily=50)
@example("(?:^|b)a$", "ba", "")
@example("(a|b)*c{2,3}", "abccc", "")
@example("x{0}", "", "")
@example("(a*)*b", "aaab", "")
@example("a{,2}", "aa", "")
@example(r"[^\W\d]", "é", "(?a)")
@example("a$", "a\n", "")
def test_it_agrees_with_re(pattern: str, text: str, flags: str) -> None:
    pattern = flags + pattern
    ours, theirs = LinearRegex(pattern), re.compile(pattern)
    whole = ours.fullmatch(text)
    assert whole is (theirs.fullmatch(text) is not None) or (whole is None and text.endswith("\n"))
    for line in text.split("\n"):
        assert ours.search(line) is (theirs.search(line) is not None)


@given(patterns([*ATOMS[:6], r"\b", r"\B"]), TEXTS)
@examples(3_000, daily=50)
@example(r"\ba\b", "é a")
@example(r"\B", "")
@example(".*\\ba$\n?", "é a\n")
def test_word_boundaries_are_exact_in_ascii_and_in_doubt_beyond(pattern: str, text: str) -> None:
    ours, theirs = LinearRegex(pattern), re.compile(pattern)
    expected, told = theirs.fullmatch(text) is not None, ours.fullmatch(text)
    assert told is expected or (told is None and ("\\" in pattern or "$" in pattern))
    if text and text.isascii() and "$" not in pattern:
        assert told is expected
    for line in text.split("\n"):
        found = theirs.search(line) is not None
        is_exact = bool(line) and line.isascii()
        assert ours.search(line) is found or not (is_exact or found), "more may be found in such a line, not less"


def test_classes_hold_what_they_hold_in_python() -> None:
    """Python and RE2 know different versions of Unicode: what one of them has not heard of is left out."""
    codes = [*range(0x3000), *range(0x3000, sys.maxunicode + 1, 1 if NIGHTLY else 97)]
    every = [chr(code) for code in codes if not 0xD800 <= code <= 0xDFFF]
    for name in (r"\w", r"\d", r"\s", r"\W", r"[^\W\d_]"):
        ours, theirs = LinearRegex(name), re.compile(name)
        known = (char for char in every if unicodedata.category(char) != "Cn")
        differ = [char for char in known if ours.fullmatch(char) is not (theirs.fullmatch(char) is not None)]
        assert differ == [], name


def test_case_is_ignored_as_python_ignores_it() -> None:
    every = (chr(code) for code in range(sys.maxunicode + 1) if not 0xD800 <= code <= 0xDFFF)
    cased = [char for char in every if len({char, char.lower(), char.upper(), char.casefold()}) > 1]
    sets = [
        "[i]",
        "[^i]",
        "[a-z]",
        "[A-Z]",
        "[^s]",
        "[ſ]",
        "[à-ö]",
        "[^k]",
        "[α-ω]",
        "[^ı]",
        "[İx]",
        r"[^\Wi]",
        "(?a:i)",
    ]
    for pattern in [*map(re.escape, "iIıİkKsſµß" if not NIGHTLY else cased), *sets]:
        ours, theirs = LinearRegex(f"(?i){pattern}"), re.compile(f"(?i){pattern}")
        assert [char for char in cased if ours.fullmatch(char) is not (theirs.fullmatch(char) is not None)] == [], (
            pattern
        )


@table(
    ("pattern", "why"),
    [
        ("(", "missing )"), (")", "unbalanced"), ("[a", "unterminated"), ("*", "nothing to repeat"),
        (r"\q", "bad escape"),
        ("a**", "multiple repeat"), ("a{3,2}", "greater than"), ("[b-a]", "bad character range"), ("\\", "bad escape"),
        ("[[a]", "nested set"), ("[a--b]", "set difference"), ("x|(?P=x)", "unknown group"),
        (r"\1", "invalid group"),
        (r"(a)\1", "a reference to a group is not supported"), ("(?=a)", "lookahead"), ("(?!a)", "negative lookahead"),
        ("(?<=a)b", "lookbehind"), ("a++", "a possessive repeat"), ("(?>a)", "an atomic group"),
        ("(a)?(?(1)b|c)", "a reference to a group"),
        ("a{1001}", "more than 1,000 times"), ("a{0,1001}", "more than 1,000 times"), ("\ud800", "surrogate"),
        ("(" * 5_000 + ")" * 5_000, "too deep"), ("(a{999}){999}", "too large"), (r"[^\w\W]", "is empty"),
        ("((((){999}){999}){999}){999}", "too large"), ("a{99999999999}", "too large"),
    ],
)  # fmt: skip
def test_what_it_does_not_know_it_refuses(pattern: str, why: str) -> None:
    with pytest.raises(BadRegex, match=re.escape(why)):
        LinearRegex(pattern)


@pytest.mark.parametrize(
    "pattern", [r"(a+)+$", r"(a|aa)+$", r"(.*a){20}b", r"(\w+\s?)+$!", "(a?){60}a{60}b", ".*.*.*.*x", r"(\w+é?)+\b$!"]
)
def test_patterns_that_never_end_elsewhere_end(pattern: str) -> None:
    begun = time.thread_time()
    assert LinearRegex(pattern).search("a" * 100_000 + "!") is False
    assert time.thread_time() - begun < 5


def test_two_are_equal_when_they_are_written_alike() -> None:
    assert LinearRegex("a+") == LinearRegex("a+") != LinearRegex("a*")
    assert len({LinearRegex("a+"), LinearRegex("a+")}) == 1
