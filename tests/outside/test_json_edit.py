"""A settings file of somebody else's: what is added is taken out again, and everything else stays byte for byte."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from signoff.errors import WrongUse
from signoff.outside.json_edit import read_json, values_at, with_item, without_items

PATH = ("hooks", "Before")
ITEM = {"matcher": "*", "hooks": [{"command": "ours"}]}
FILES = {
    "comments and commas": """{
    // mine
    "model": "opus", /* c */
    "hooks": {
        "Before": [
            {"matcher": "Bash"}, // keep
        ],
    },
}
""",
    "tabs": '{\n\t"a": 1,\n\t"hooks": {\n\t\t"Before": [\n\t\t\t1\n\t\t]\n\t}\n}\n',
    "on one line": '{"hooks": {"Before": [1, 2]}, "b": [1]}',
    "remark without a comma": '{\n  "hooks": {\n    "Before": [\n      1 // one\n    ]\n  }\n}\n',
    "another event": '{\n  "hooks": {\n    "After": [1]\n  }\n}\n',
    "nothing yet": '{\n  "a": "// no comment",\n  "b": "/* nor this */"\n}\n',
}


@pytest.mark.parametrize("name", FILES)
def test_what_is_added_is_there_and_what_is_taken_out_leaves_no_trace(name: str) -> None:
    before = FILES[name]
    after = with_item(before, "f", PATH, ITEM)
    assert values_at(after, "f", PATH)[-1] == ITEM
    for remark in ("// mine", "/* c */", "// keep", "// one"):
        assert (remark in after) == (remark in before)
    known = len(values_at(before, "f", PATH))
    again = without_items(after, "f", PATH, [known])
    assert read_json(again, "f").value == read_json(before, "f").value
    if known:
        assert again == before


def test_an_empty_file_is_written_and_its_indentation_is_kept() -> None:
    assert json.loads(with_item("", "f", PATH, ITEM)) == {"hooks": {"Before": [ITEM]}}
    assert '\n\t\t\t{\n\t\t\t\t"matcher"' in with_item(FILES["tabs"], "f", PATH, ITEM)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"a": 1', "f:1: a comma or '}' is missing"),
        ('{\n"a" 1}', "f:2: a colon is missing"),
        ('{"a": nope}', "f:1: 'nope' is not a JSON value"),
        ('{"a": 1, "a": 2}', "f:1: the key 'a' is given twice"),
        ("{} x", "f:1: there is text after the end"),
        ('{"hooks": []}', "f: hooks should be an object"),
        ('{"hooks": {"Before": {}}}', "f: hooks.Before should be a list"),
    ],
)
def test_what_cannot_be_changed_is_said_with_its_line(text: str, said: str) -> None:
    with pytest.raises(WrongUse) as told:
        with_item(text, "f", PATH, ITEM)
    assert said in str(told.value)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=12,
)


@settings(max_examples=100)
@given(
    around=st.dictionaries(st.text(), VALUES, max_size=4), there=st.lists(VALUES, max_size=3), step=st.integers(0, 4)
)
def test_any_file_keeps_what_it_says(around: dict[str, Any], there: list[Any], step: int) -> None:
    value = {**around, "hooks": {"Before": there, "Other": [1]}}
    text = json.dumps(value, indent=step or None)
    after = with_item(text, "f", PATH, ITEM)
    assert json.loads(after) == {**value, "hooks": {"Before": [*there, ITEM], "Other": [1]}}
    again = without_items(after, "f", PATH, [len(there)])
    wanted = value if there else {**around, "hooks": {"Other": [1]}}
    assert json.loads(again) == wanted
