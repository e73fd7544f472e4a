"""How diffs get their colours: whatever is in them, in time that grows with their length alone."""

from __future__ import annotations

from time import process_time

import pytest

from signoff.server.text_marks import LONGEST_COLOURED, MOST_COLOURED, diff_lines, marked


def _seconds(line: str, lines: int) -> float:
    diff = "--- a/x\n+++ b/x\n@@ -1 +1 @@\n" + f"+{line}\n" * lines
    best = float("inf")
    for _ in range(3):
        start = process_time()
        diff_lines(diff)
        best = min(best, process_time() - start)
    return best


@pytest.mark.parametrize("part", ['"\\', "'\\", '"\\"', "'a\"b", "`\"'", "1.", "a_", "# ", '"a\\\\'])
def test_no_line_takes_longer_than_its_length_says(part: str) -> None:
    def line(length: int) -> str:
        return (part * length)[:length]

    short, long = _seconds(line(LONGEST_COLOURED // 8), 8), _seconds(line(LONGEST_COLOURED), 8)
    assert long < 0.005 + 24 * short  # eight times as long; what is quadratic takes 64 times


def test_no_marker_that_is_never_closed_takes_longer_than_its_length_says() -> None:
    start = process_time()
    marked("⟦" * 100_000)
    assert process_time() - start < 0.5


def test_only_so_much_of_a_diff_is_coloured() -> None:
    line = '+x = "text"' + " " * 90
    found = diff_lines("--- a/x\n+++ b/x\n@@ -1 +1 @@\n" + f"{line}\n" * 1_000)
    coloured = [one for one in found if any(piece.kind == "string" for piece in one.pieces)]
    assert 400 < len(coloured) <= MOST_COLOURED // 100
    assert "".join(piece.text for one in found[3:-1] for piece in one.pieces) == line[1:] * 1_000


@pytest.mark.parametrize(
    ("line", "strings"),
    [
        ('a "b" c', ['"b"']),
        ('a "b\\"c" d', ['"b\\"c"']),
        ('a "b', ['"b']),
        ('a "b\\', ['"b\\']),
        ("it's `so`", ["'s `so`"]),
        ("`so` it's", ["`so`", "'s"]),
    ],
)
def test_strings_of_a_line(line: str, strings: list[str]) -> None:
    found = diff_lines(f"--- a/x\n+++ b/x\n@@ -1 +1 @@\n+{line}")[-1]
    assert [piece.text for piece in found.pieces if piece.kind == "string"] == strings
    assert "".join(piece.text for piece in found.pieces) == line


@pytest.mark.parametrize(
    ("path", "colours"), [("notes.md", False), ("a/b.TXT", False), ("a.py", True), ("Makefile", True)]
)
def test_words_of_prose_are_no_keywords(path: str, colours: bool) -> None:
    lines = diff_lines(f"--- a/{path}\n+++ b/{path}\n@@ -0,0 +1 @@\n+- it is so as was\n")
    kinds = {piece.kind for line in lines for piece in line.pieces if line.mark == "+" and piece.text != "+"}
    assert ("word" in kinds) == colours
