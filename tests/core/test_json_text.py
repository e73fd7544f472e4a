"""JSON texts: as the standard library writes and reads them."""

from __future__ import annotations

import json
from json import encoder
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.profiles import examples

from signoff.core.json_text import read, writer

VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
OPTIONS = [{}, {"ensure_ascii": False, "sort_keys": True}, {"default": str}]


MAKERS = [encoder.c_make_encoder, None, lambda: None]
"""The encoder in C is no public one: it may be missing, or take something else."""


def written(value: Any, maker: Any, **options: Any) -> str:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(encoder, "c_make_encoder", maker)
        write = writer(**options)
    return write(value)


@examples(1_000, daily=10)
@given(value=VALUES)
@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("maker", MAKERS)
def test_a_text_is_the_one_that_the_standard_library_writes(maker: Any, options: dict[str, Any], value: Any) -> None:
    text = written(value, maker, **options)
    assert text == json.dumps(value, separators=(",", ":"), **options)
    assert read(text) == json.loads(text)


@pytest.mark.parametrize("maker", MAKERS)
def test_what_has_no_json_form_is_refused_or_handed_on(maker: Any) -> None:
    with pytest.raises(TypeError):
        written({"a": object}, maker)
    assert written({"a": object}, maker, default=lambda value: "odd") == '{"a":"odd"}'
    ring: list[Any] = []
    ring.append(ring)
    with pytest.raises(RecursionError):
        written(ring, maker)


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
