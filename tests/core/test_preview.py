"""A diff shows every difference, and `patch` agrees."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory
from time import thread_time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.profiles import examples

from signoff.core.preview import Preview, marked_lines, read_diff, unified_diff

lines = st.lists(
    st.sampled_from(["a", "b", "c", "", "- x", "+ y", "-- z", "++ z", "@@ -1 +1 @@", "\r", "\x0b\u2028"]), max_size=30
)
texts = st.builds(lambda lines, end: "\n".join(lines) + end, lines, st.sampled_from(["", "\n"]))


def patched(before: str, diff: str) -> str:
    with TemporaryDirectory() as directory:
        file = Path(directory, "f")
        file.write_text(before, "utf-8", newline="")
        command = ["patch", "--silent", "--binary", "--strip=1", f"--directory={directory}"]
        subprocess.run(command, input=f"{diff}\n".encode(), check=True, capture_output=True)
        return file.read_bytes().decode() if file.exists() else ""


@pytest.mark.skipif(shutil.which("patch") is None, reason="patch is not installed")
@examples(600, daily=30)
@given(texts, texts)
@example("a", "a\n")
@example("", "a")
@example("a\n", "")
def test_the_diff_turns_one_text_into_the_other(before: str, after: str) -> None:
    diff = unified_diff(before, after, "f").text
    assert (diff == "") == (before == after)
    assert not diff or patched(before, diff) == after


@examples(1_000, daily=50)
@given(texts, texts)
def test_lines_are_counted(before: str, after: str) -> None:
    preview = unified_diff(before, after, "f")
    marks = [mark for mark, _ in marked_lines(preview.text)]
    assert (preview.added, preview.removed) == (marks.count("+"), marks.count("-"))
    assert len(_lines(after)) - len(_lines(before)) == preview.added - preview.removed
    assert read_diff(preview.text) == preview


def _lines(text: str) -> list[str]:
    return text.removesuffix("\n").split("\n") if text else []


def test_how_it_looks() -> None:
    before = "".join(f"{n}\n" for n in range(20))
    preview = unified_diff(before, before.replace("9\n", "nine\n", 1), "notes/list.txt")
    assert preview == Preview(
        kind="diff",
        added=1,
        removed=1,
        text="--- a/notes/list.txt\n+++ b/notes/list.txt\n@@ -7,7 +7,7 @@\n 6\n 7\n 8\n-9\n+nine\n 10\n 11\n 12",
    )


def test_changes_far_apart_are_all_there_and_the_rest_is_not() -> None:
    before = "".join(f"line {n}\n" for n in range(400))
    after = before.replace("line 3\n", "three\n").replace("line 399\n", "secret: leaked\n")
    text = unified_diff(before, after, "ci.yml").text
    assert "+three" in text
    assert "+secret: leaked" in text
    assert "line 200" not in text


def test_a_path_cannot_forge_lines() -> None:
    text = unified_diff("a\n", "b\n", "x\n+forged").text
    assert "+forged" not in text.split("\n")


def test_a_diff_made_elsewhere_is_counted_by_its_hunks() -> None:
    preview = read_diff("--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n--- x\n+++ x\n same")
    assert (preview.added, preview.removed) == (1, 1)


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("".join(f"{n}\n" for n in range(20_000)), "".join(f"{n * 7 % 12_000}\n" for n in range(12_000))),
        ("a\n" * 20_000, "b\n" * 20_000),
        ("a\nb\n" * 8_000, "b\na\nc\n" * 6_000),
        ("a\n" * 1900, "b\na\n" * 950),
    ],
    ids=["shuffled", "all other", "periodic", "interleaved"],
)
def test_large_texts_take_no_time(before: str, after: str) -> None:
    start = thread_time()
    unified_diff(before, after, "f")
    assert thread_time() - start < 10
