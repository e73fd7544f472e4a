"""Texts are normalised in work that grows with them alone."""

from __future__ import annotations

import unicodedata
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from tests.profiles import examples
from tests.tables import table

from signoff.core import normal_form as module
from signoff.core.normal_form import MOST_MARKS, normal_form

MARKS = {
    "two classes in turn": "\u0301\u0316",
    "no mark, but it stands for two": "\u0f73",
    "a half-width mark": "\u0301\uff9e",
}


@table("marks", MARKS)
def test_a_megabyte_of_marks_is_not_sorted(marks: str) -> None:
    """That would take minutes, with the whole process standing still."""
    text = "x" + MARKS[marks] * 150_000
    assert normal_form("NFC", text) == text
    assert normal_form("NFKC", f"{text}.\uff21 e\u0301") == f"{text}.A \u00e9"


@given(st.text(st.sampled_from("ae\u0301\u0316\u0f73\uff9e\u00e9\uff21 "), max_size=MOST_MARKS))
@examples(200)
def test_what_people_write_is_normalised(text: str) -> None:
    for form in ("NFC", "NFKC"):
        assert normal_form(form, text) == unicodedata.normalize(form, text)


def test_nothing_else_normalises() -> None:
    root = Path(module.__file__).parents[1]
    found = {path.name for path in root.rglob("*.py") if "normalize(" in path.read_text(encoding="utf-8")}
    assert found == {"normal_form.py"}
