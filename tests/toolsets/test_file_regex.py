"""The linear pattern says what Python's `re` says, and never takes long."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.profiles import examples
from tests.tables import table

from signoff.toolsets.builtin.files.regex import BadPattern, LinearPattern

ATOMS = [
    "a",
    "b",
    ".",
    r"\d",
    r"\w",
    "[ab]",
    "[^a]",
    "[a-c_]",
    r"\.",
    "-",
    " ",
    r"\b",
    "^",
    "$",
    "é",
    r"\x41",
    "{",
    "]",
]


def _join(parts: list[str]) -> str:
    return "".join(parts)


PATTERNS = st.recursive(
    st.lists(st.sampled_from(ATOMS), min_size=1, max_size=3).map(_join),
    lambda inner: st.one_of(
        st.builds(
            "({}){}".format, inner, st.sampled_from(["*", "+", "?", "{2}", "{1,3}", "{0,2}", "{2,}", "*?", "+?", ""])
        ),
        st.builds("(?:{}|{})".format, inner, inner),
        st.builds("{}{}".format, inner, inner),
    ),
    max_leaves=6,
)
TEXTS = st.text(alphabet="abcAé1_-. {]", max_size=12)


@given(PATTERNS, TEXTS, st.booleans())
@examples(3_000, daily=60)
@example("(?:^|b)a$", "ba", False)
@example("(a|b)*c{2,3}", "abccc", False)
@example("x{0}", "", False)
@example("(a*)*b", "aaab", False)
def test_it_agrees_with_re(pattern: str, text: str, ignore: bool) -> None:
    pattern = f"(?i){pattern}" if ignore else pattern
    assert LinearPattern(pattern).search(text) == (re.search(pattern, text) is not None)


@table(
    "pattern",
    ["(", ")", "a)", "[a", "*", "a**", "a{2}{3}", r"\1", r"(a)\1", "(?=a)", "(?!a)", "(?<=a)b", "(?s)a", r"\q", "a++",
     "^*", "a{3,2}", "[[a]", "[a--b]", "\\", "a" * 501, "(" * 60 + ")" * 60, "(a{999}){999}", "[b-a]",
     "((((){999}){999}){999}){999}", "x|(?P=x)"],
)  # fmt: skip
def test_what_it_does_not_know_it_refuses(pattern: str) -> None:
    with pytest.raises(BadPattern, match=r"."):
        LinearPattern(pattern)


@pytest.mark.parametrize(
    "pattern", [r"(a+)+$", r"(a|aa)+$", r"(.*a){20}b", r"(\w+\s?)+$!", "(a?){60}a{60}b", ".*.*.*.*x"]
)
def test_patterns_that_never_end_elsewhere_end(pattern: str) -> None:
    begun = time.process_time()
    assert LinearPattern(pattern).search("a" * 4000 + "!") is False
    assert time.process_time() - begun < 5


def test_speed_is_in_proportion() -> None:
    pattern = LinearPattern(r"(a|b)*a(a|b){6}c")
    text = "ab" * 20_000
    begun = time.process_time()
    assert not pattern.search(text)
    assert time.process_time() - begun < 2
