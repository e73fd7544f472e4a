"""Globs: what they match, what they leave open, and that no text makes them slow."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.tables import table

from signoff.policy.glob import BadGlob, Glob, any_glob, is_visible
from signoff.policy.match_result import Truth

YES, NO, UNKNOWN = Truth.YES, Truth.NO, Truth.UNKNOWN


@table(
    ("pattern", "text", "answer"),
    [
        ("bash", "bash", YES),
        ("bash", "bash_admin", NO),
        ("bash", "Bash", NO),
        ("bash", " bash", NO),
        ("*", "anything at all", YES),
        ("*", "", YES),
        ("*", "a/b", NO),
        ("**", "a/b", YES),
        ("*.py", "x.py", YES),
        ("*.py", "d/x.py", NO),
        ("src/**", "src/a/b.py", YES),
        ("src/**", "src/", YES),
        ("src/**", "src", NO),
        ("src/**", "srcs/a", NO),
        ("**/.env", ".env", YES),
        ("**/.env", "a/b/.env", YES),
        ("**/.env", "a/b/x.env", NO),
        ("**/.env", "a/.env/b", NO),
        ("a/**/b", "a/b", YES),
        ("a/**/b", "a/x/y/b", YES),
        ("a/**/b", "a/xb", NO),
        ("a**b", "a/x/b", YES),
        ("a?c", "abc", YES),
        ("a?c", "a/c", NO),
        ("a?c", "ac", NO),
        ("[a-c]x", "bx", YES),
        ("[a-c]x", "dx", NO),
        ("[!a-c]x", "dx", YES),
        ("[!a-c]x", "/x", NO),
        ("[^a]", "b", YES),
        ("[]]", "]", YES),
        ("[a-]", "-", YES),
        ("[[]x]", "[x]", YES),
        ("[.]env", ".env", YES),
        ("a.b", "axb", NO),
        ("a+", "aa", NO),
        ("é*", "épée", YES),
        # A wildcard does not cover control characters, and does not pretend that they are not there.
        ("rm *", "rm a\nb", UNKNOWN),
        ("rm *", "ls\nrm a", NO),
        ("npm *", "npm i\r", UNKNOWN),
        ("*", "a\x1b[2K", UNKNOWN),
        ("**", "a\u2028b", UNKNOWN),
        ("**", "a\u202eb", UNKNOWN),
        ("**", "a\x00b", UNKNOWN),
        ("**", "a\ud800b", UNKNOWN),
        ("?", "\n", UNKNOWN),
        ("[!a]", "\n", UNKNOWN),
        ("a", "a\n", NO),
    ],
)
def test_over_values(pattern: str, text: str, answer: Truth) -> None:
    assert Glob(pattern).find(text) is answer


@table(
    ("pattern", "text", "answer"),
    [
        ("*", "a/b", YES),
        ("git_*", "git_status", YES),
        ("git_*", "git", NO),
        ("*_file", "read_file", YES),
        ("*_file", "read_file_2", NO),
        ("a*c", "a/b/c", YES),
        ("?", "/", YES),
        ("**/x", "x", NO),
        ("**/x", "a/x", YES),
        ("bash*", "bash\nx", UNKNOWN),
    ],
)
def test_over_names(pattern: str, text: str, answer: Truth) -> None:
    assert Glob(pattern, over_names=True).find(text) is answer


@pytest.mark.parametrize(
    ("pattern", "says"),
    [
        ("", "empty pattern"),
        ("a[b", "never closed"),
        ("[]", "is empty"),
        ("[!]", "is empty"),
        ("[z-a]", "runs backwards"),
        ("a\nb", "control characters"),
    ],
)
def test_bad_patterns(pattern: str, says: str) -> None:
    with pytest.raises(BadGlob, match=re.escape(says)):
        Glob(pattern)


def test_any_of_several() -> None:
    globs = (Glob("a*"), Glob("b"))
    assert any_glob(globs, "b") is YES
    assert any_glob(globs, "c") is NO
    assert any_glob(globs, "a\n") is UNKNOWN
    assert any_glob((*globs, Glob("a*"), Glob("ab")), "ab") is YES


def test_the_only_text_of_a_pattern_without_wildcards() -> None:
    assert Glob("pay").literal == "pay"
    assert Glob("pa?").literal is None
    assert Glob("[p]ay").literal is None


TOKEN = re.compile(r"(?P<directories>(?:^|(?<=/))\*\*+/)|(?P<run>\*\*+)|(?P<star>\*)|(?P<one>\?)|(?P<plain>.)")


def reference(pattern: str, *, over_names: bool) -> re.Pattern[str]:
    """The same language as an expression that backtracks: obviously right, and slow where it pleases."""
    one = "." if over_names else "[^/]"
    meanings = {"directories": ".*/" if over_names else "(?:.*/)?", "run": ".*", "star": f"{one}*", "one": one}
    tokens = TOKEN.finditer(pattern)
    return re.compile("".join(meanings.get(str(token.lastgroup), re.escape(token[0])) for token in tokens), re.DOTALL)


@given(
    st.lists(st.sampled_from(["a", "b", "/", "*", "**", "**/", "?", "ab"]), min_size=1, max_size=7).map("".join),
    st.text(alphabet="ab/", max_size=9),
    st.booleans(),
)
@example("**a*b/**/b", "a/ab/b", False)
def test_agrees_with_a_reference(pattern: str, text: str, over_names: bool) -> None:
    expected = reference(pattern, over_names=over_names).fullmatch(text) is not None
    assert (Glob(pattern, over_names=over_names).find(text) is YES) == expected


@given(st.text())
def test_visible_means_no_control_characters(text: str) -> None:
    assert is_visible(text) == (Glob("**").find(text) is YES)


@table("pattern", ["*a*a*a*a*a*a*a*b", "**a*b**a*b**a*c*", "**/a*b/**/a*b/**/c*d*", "**" + "a?" * 20])
@table("text", ["a" * 50_000, "a/" * 25_000, "ab" * 25_000, "ab/" * 16_000])
def test_no_text_makes_it_slow(pattern: str, text: str) -> None:
    glob = Glob(pattern)
    started = time.process_time()
    glob.find(text)
    assert time.process_time() - started < 1, "an expression that backtracks would take years"
