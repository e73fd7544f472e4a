"""Rules as text: whatever values a rule holds, the lines are read as exactly these, and nothing in them hides."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from tests.profiles import examples
from tests.tables import table

from signoff.core.canonical import canonical
from signoff.policy.composer import read_document
from signoff.policy.rule_text import flow_text, rule_lines

ODD = (
    "yes", "no", "on", "OFF", "null", "~", "true", "1", "1.5", "1e3", "0o7", "0755", "0x1f", "1:30", "1_000", ".inf",
    "<<", "*", "&a", "!t", "%", "@", "`", "|", ">", "?", "-", "--", "---", "...", "..", "=", "#", "# x", "a #b", "a: b",
    "a:", "- x", "{}", "[", "]", ",", "'", '"', "\\", "a\nb", "a\r\nb", "\t", " ", "a ", " a", "a-", "a/", "2031-05-24",
    "\u2028", "\x85", "\ufeff", "\x7f", "\x1b[2J", "\u202e", "\u200b", "\U000e0001", "é", "日本", "😀", "exists", "",
)  # fmt: skip
TEXTS = st.sampled_from(ODD) | st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
SCALARS = TEXTS | st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3), max_leaves=8
)


@given(st.dictionaries(TEXTS, VALUES, min_size=1, max_size=4), st.sampled_from(["", "  ", "      "]))
@examples(nightly=5_000, daily=50)
def test_the_lines_of_a_rule_are_read_as_its_values(rule: dict[str, Any], indent: str) -> None:
    lines = rule_lines(rule)
    text = "policy:\n" + "".join(f"{indent}{line}\n" for line in lines)
    assert canonical(read_document(text, file="f").value) == canonical({"policy": [rule]})
    assert all(line.isprintable() for line in lines)


@given(VALUES)
@examples(nightly=2_000)
def test_a_value_stands_on_one_line_anywhere(value: Any) -> None:
    read = read_document(f"policy: [{flow_text(value)}, {{a: {flow_text(value)}}}]", file="f").value
    assert canonical(read) == canonical({"policy": [value, {"a": value}]})


@table("text", ODD, ids=ascii)
def test_a_text_stays_a_text(text: str) -> None:
    assert read_document(f"a: {flow_text(text)}", file="f").value == {"a": text}


def test_what_fits_stands_on_one_line() -> None:
    assert rule_lines({"allow": {"tool": "pay", "args": {"to": "ana", "*": {"exists": False}}}, "reason": "x y"}) == (
        '- allow: {tool: pay, args: {to: ana, "*": {exists: false}}}',
        '  reason: "x y"',
    )
