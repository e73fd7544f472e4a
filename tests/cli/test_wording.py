"""The texts on file in `__snapshots__/`, and the names in them."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from tests.cli.wording import AGO, MOMENT, NOT_YAML, RECURSION, Wording

HERE = Path(__file__).parent
KEPT = sorted((HERE / "__snapshots__").iterdir())


def functions_in(source: str) -> set[str]:
    found = ast.walk(ast.parse(source))
    return {node.name for node in found if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}


def without_a_test(kept: str, source: str) -> list[str]:
    """The texts in a file of snapshots whose test is gone: pytest does not miss them while any test is deselected."""
    names = re.findall(r"^# name: (\w+)", kept, re.MULTILINE)
    return sorted(set(names) - functions_in(source))


@pytest.mark.parametrize("file", KEPT, ids=lambda file: file.name)
def test_every_text_on_file_belongs_to_a_test(file: Path) -> None:
    assert file.suffix == ".ambr"
    assert without_a_test(file.read_text("utf-8"), (HERE / f"{file.stem}.py").read_text("utf-8")) == []


def test_a_text_without_a_test_is_found() -> None:
    kept = "# serializer version: 1\n# name: test_a[x]\n  a\n# ---\n# name: test_gone.1\n  # name: b\n# ---\n"
    assert without_a_test(kept, "async def test_a(x): ...") == ["test_gone"]


def test_a_value_has_one_name_in_the_whole_test(wording: Wording, tmp_path: Path) -> None:
    wording(request=("abcdefghjk", "mnopqrstuv"))
    wording(request=["mnopqrstuv", "xyz2345678"], run="runabc2345")
    assert wording.named("mnopqrstuv abcdefghjk mnopqrstuv") == "<request-2> <request-1> <request-2>"
    assert wording.named("xyz2345678 of runabc2345") == "<request-3> of <run-1>"
    assert wording.named("another234") == "another234", "an id that the test does not name is told from one it names"
    assert wording.named(f"sqlite:{tmp_path}/a.db") == "sqlite:<dir>/a.db"


@pytest.mark.parametrize(
    ("pattern", "text", "named"),
    [
        (MOMENT, "at 2031-05-24 12:00:00 UTC: why", "at <it>: why"),
        (MOMENT, "at 2031-05-24 12:00:00 +05: why", "at <it>: why"),
        (MOMENT, "until 2031-05-24 12:00, then", "until <it>, then"),
        (MOMENT, "at 2031-05-24 12:00:00 Then", "at <it> Then"),
        (AGO, "just now  a, 12 s ago  b, 3 min ago  c", "<it>  a, <it>  b, 3 min ago  c"),
        (NOT_YAML, "a:1:2: this is not YAML: odd\n  write", "a:1:2: this is not YAML: <it>\n  write"),
        (RECURSION, "no JSON: maximum recursion depth exceeded\n  write", "no JSON: <it>\n  write"),
    ],
)
def test_what_a_pattern_finds_is_named(wording: Wording, pattern: re.Pattern[str], text: str, named: str) -> None:
    assert wording.named(text) == text
    wording(it=pattern)
    assert wording.named(text) == named


@pytest.mark.parametrize("text", ["a\rb", "\x1b[2J", "a\u202eb", "a\u200bb", "a\u2028b", ""], ids=ascii)
def test_what_a_reader_of_the_file_would_not_see_is_refused(wording: Wording, text: str) -> None:
    with pytest.raises(AssertionError, match=r"would not see these|nothing was said"):
        wording.named(text)


def test_a_name_for_a_piece_of_a_word_is_refused(wording: Wording) -> None:
    with pytest.raises(AssertionError, match="in the middle of words"):
        wording(request="the")
