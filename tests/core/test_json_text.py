"""JSON texts: as the standard library writes and reads them."""

from __future__ import annotations

import json
from json import encoder
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from signoff.core.json_text import read, writer

VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
OPTIONS = [{}, {"ensure_ascii": False, "sort_keys": True}, {"default": str}]


@pytest.fixture(params=["in C", "in Python", "of another Python"], autouse=True, scope="module")
def encoders(request: pytest.FixtureRequest) -> Any:
    """The encoder in C is no public one: it may be missing, or take something else."""
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "in Python":
            patch.setattr(encoder, "c_make_encoder", None)
        elif request.param == "of another Python":
            patch.setattr(encoder, "c_make_encoder", lambda: None)
        yield


@given(value=VALUES)
@pytest.mark.parametrize("options", OPTIONS)
def test_a_text_is_the_one_that_the_standard_library_writes(options: dict[str, Any], value: Any) -> None:
    text = writer(**options)(value)
    assert text == json.dumps(value, separators=(",", ":"), **options)
    assert read(text) == json.loads(text)


def test_what_has_no_json_form_is_refused_or_handed_on() -> None:
    with pytest.raises(TypeError):
        writer()({"a": object})
    assert writer(default=lambda value: "odd")({"a": object}) == '{"a":"odd"}'
    ring: list[Any] = []
    ring.append(ring)
    with pytest.raises(RecursionError):
        writer()(ring)


@pytest.mark.parametrize("text", [' {"a": 1}\n', "\t[1 , 2]", '"ä"'])
def test_blanks_around_a_text_do_not_matter(text: str) -> None:
    assert read(text) == json.loads(text)


@pytest.mark.parametrize("text", ["", "{", '{"a":1} x', "[1,]", "nul", "\ufeff{}"])
def test_what_is_no_json_is_told_as_ever(text: str) -> None:
    with pytest.raises(json.JSONDecodeError) as told:
        read(text)
    with pytest.raises(json.JSONDecodeError) as expected:
        json.loads(text)
    assert str(told.value) == str(expected.value)
