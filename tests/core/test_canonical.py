"""Canonical JSON: equal texts exactly for equal values."""

from __future__ import annotations

import math
import random
import struct
from decimal import Decimal
from typing import Any

import pytest
import rfc8785
from hypothesis import example, given
from hypothesis import strategies as st
from tests.profiles import examples
from tests.tables import table

from signoff.core.call import Call
from signoff.core.canonical import canonical, digest, same_form
from signoff.errors import CannotCanonicalise

texts = st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=12)
scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(min_value=2**53 - 3, max_value=2**53 + 3)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from([0.0, -0.0, 1e20, 1e21, 1e22, 1e-6, 1e-7, 5e-324, 1.7976931348623157e308, 10**21, 10**400])
    | texts
)
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4), max_leaves=12
)


def equal(a: Any, b: Any) -> bool:
    """JSON equality, written independently: types matter, numbers are compared by exact value."""
    if isinstance(a, bool) or isinstance(b, bool):
        return a is b
    if isinstance(a, int | float) and isinstance(b, int | float):
        return Decimal(a) == Decimal(b)
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(equal(a[key], b[key]) for key in a)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(equal(one, other) for one, other in zip(a, b, strict=True))
    return type(a) is type(b) and a == b


def respelt(value: Any, rng: random.Random) -> Any:
    """The same value, spelt differently: other key order, integers as doubles where a double holds them."""
    if isinstance(value, dict):
        items = [(key, respelt(item, rng)) for key, item in value.items()]
        rng.shuffle(items)
        return dict(items)
    if isinstance(value, list):
        return [respelt(item, rng) for item in value]
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**1000 and int(float(value)) == value:
        return float(value)
    return value


@examples(1_000, daily=30)
@given(values, values)
@example(10**21, 1e21)
@example(123456789012345670000, 123456789012345667584.0)
@example(1, True)
@example(0.0, -0.0)
@example(2**53 + 1, float(2**53))
@example("1", 1)
@example([[]], [{}])
def test_texts_are_equal_exactly_when_values_are(a: Any, b: Any) -> None:
    assert (canonical(a) == canonical(b)) == equal(a, b)
    assert (digest(a) == digest(b)) == equal(a, b)


@examples(1_000, daily=30)
@given(values, st.randoms(use_true_random=False))
def test_spelling_does_not_matter(value: Any, rng: random.Random) -> None:
    again = respelt(value, rng)
    assert canonical(again) == canonical(value)
    assert Call(tool="t", args={"v": again}).fingerprint == Call(tool="t", args={"v": value}).fingerprint


@examples(1_000, daily=30)
@given(values)
def test_agrees_with_an_independent_implementation(value: Any) -> None:
    """The library refuses large integers, which RFC 8785 has no form for; on everything else we agree."""
    try:
        expected = rfc8785.dumps(value).decode()
    except rfc8785.CanonicalizationError:
        return
    assert canonical(value) == expected


@given(st.integers(min_value=0, max_value=2**64 - 1))
@examples(3_000)
def test_every_double_agrees(bits: int) -> None:
    (value,) = struct.unpack(">d", struct.pack(">Q", bits))
    if math.isfinite(value):
        assert canonical(value) == rfc8785.dumps(value).decode()
        assert float(canonical(value)) == value


def test_the_example_of_the_rfc() -> None:
    value = {
        "numbers": [333333333.33333329, 1e30, 4.50, 2e-3, 0.000000000000000000000000001],
        "string": "\u20ac$\u000f\u000aA'\u0042\u0022\u005c\\\"/",
        "literals": [None, True, False],
    }
    assert canonical(value) == (
        '{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],'
        '"string":"€$\\u000f\\nA\'B\\"\\\\\\\\\\"/"}'
    )


def test_keys_are_ordered_as_utf16() -> None:
    assert canonical({"\ue000": 1, "😀": 2}) == '{"😀":2,"\ue000":1}'


@table("value", [math.nan, math.inf, -math.inf, "\ud800", {"\udfff": 1}, {1: 2}, {1, 2}, b"x", object()])
def test_what_has_no_json_form_is_refused(value: Any) -> None:
    with pytest.raises(CannotCanonicalise):
        canonical(value)
    with pytest.raises(CannotCanonicalise):
        canonical([value])


def test_a_cycle_is_refused() -> None:
    loop: list[Any] = []
    loop.append(loop)
    with pytest.raises(CannotCanonicalise, match="nested"):
        canonical(loop)


def test_an_integer_beyond_a_double_never_meets_the_text_of_one() -> None:
    near = 123456789012345667584.0
    assert canonical(near) == "123456789012345670000"
    assert canonical(123456789012345670000) == "123456789012345670000n"


@pytest.mark.mission("D3")
def test_d3_the_memory_key_ignores_key_order_unicode_form_and_number_spelling() -> None:
    one = Call(tool="pay", args={"to": "Café", "amount": 5, "n": {"b": 1, "a": 2}})
    other = Call(tool="pay", args={"n": {"a": 2.0, "b": 1}, "amount": 5.0, "to": "Cafe\u0301"})
    assert one.memory_key == other.memory_key
    assert one.fingerprint != other.fingerprint, (
        "an approval binds to the very text, a remembered answer to what it reads"
    )
    assert one.memory_key != Call(tool="pay", args={**one.args, "amount": 6}).memory_key
    assert one.memory_key != Call(tool="refund", args=one.args).memory_key


def test_keys_that_meet_in_one_form_cannot_be_remembered() -> None:
    with pytest.raises(CannotCanonicalise, match="Unicode form"):
        same_form({"é": 1, "e\u0301": 2})


@examples(1_000, daily=25)
@given(st.text(max_size=20), st.dictionaries(st.text(max_size=5), values, max_size=4))
def test_what_identifies_a_call_is_the_digest_of_its_parts(tool: str, args: dict[str, object]) -> None:
    """Worked out from one text of the arguments, and the same as always: remembered answers are found by it."""
    call = Call(tool=tool, args=args)
    try:
        expected = digest({"args": args, "tool": tool})
    except CannotCanonicalise:
        with pytest.raises(CannotCanonicalise):
            _ = call.fingerprint
        return
    assert call.fingerprint == expected
    assert call.args_digest == digest(args)
    try:
        known = digest(same_form({"args": args, "tool": tool}))
    except CannotCanonicalise:  # two keys that differ only in their form
        return
    assert call.memory_key == known
    assert call.changed(worker=("a",)).memory_key == known
