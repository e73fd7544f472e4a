"""Messages of MCP clients on a pipe: what is refused is answered, and ends nothing."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from signoff.wiring.strict_messages import REFUSED, StrictLines, id_of, strict_input

TWICE = '{"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "read", "name": "drop"}}'
DEEP = "[" * 2_000
OF_ITS_OWN = '"params": {"id": 5, "id": 6}, "note": "id", "id": "six"'


@pytest.mark.parametrize(
    ("line", "number", "why"),
    [
        (TWICE, 2, "given twice"),
        (f'{{"id": 3, "method": "a", "params": {"[" * 100_000}', 3, "too deeply"),
        (f'{{"id": 3, "method": "a", "params": {"[" * 100}{"]" * 100}}}', 3, "too deeply"),
        (f'{{"id": -4, "params": {{"x": {"9" * 5000}}}}}', -4, "digits"),
        (f"{{{OF_ITS_OWN}}}", "six", "given twice"),
        ('{"id": 7, "params": {"x": "\\ud800"}}', 7, "half of a character"),
        ('{"id": "\\"", "params": {"x": NaN}}', '"', "NaN"),
        (f'{{"id": {"9" * 5000}}}', None, ""),
        ('{"id": 1.5, "a": 1, "a": 1}', None, ""),
        ('{"id": true, "a": 1, "a": 1}', None, ""),
        ('{"id": "\\udfff"}', None, ""),
        (f'{{"id": 8, "x": "{"y" * 300_000}"}}', 8, "longer than 200,100"),
        ('{"method": "notifications/x", "method": "notifications/y"}', None, ""),
        (f'"{DEEP}', None, ""),
    ],
)
async def test_what_is_refused_on_a_pipe_is_answered_and_ends_nothing(
    line: str, number: int | str | None, why: str
) -> None:
    async def lines() -> AsyncIterator[str]:
        yield line
        yield '{"jsonrpc": "2.0", "id": 1, "method": "ping"}'

    read = StrictLines(lines(), most=200_100)
    *refused, last = [json.loads(one) for one in [one async for one in read if one[0] == "{"]]
    assert last["method"] == "ping"
    assert [one["id"] for one in refused] == ([] if number is None else [number])
    assert all(one["method"] == REFUSED and why in one["params"]["why"] for one in refused)


@pytest.mark.parametrize("tail", ['\\"' * 400_000, '"\\' * 400_000, "\\" * 400_001])
def test_a_text_without_an_end_is_read_once(tail: str) -> None:
    assert id_of(f'{{"x": {DEEP}, "{tail}') is None
    assert id_of(f'{{"id": 4, "x": {DEEP}, "{tail}') == 4


@given(
    st.recursive(
        st.none() | st.integers() | st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)
    ),
    st.integers() | st.text(),
)
def test_the_id_of_a_message_is_its_own(others: Any, number: int | str) -> None:
    text = json.dumps({"params": others, "note": "id", "id": number, "more": {"id": others}})
    assert id_of(text) == number


async def test_of_a_line_without_an_end_no_more_is_kept_than_may_be_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    ours, theirs = os.pipe()
    said = f'{{"id": 1, "x": "{"y" * 5_000}"}}\n{{"id": 2, "m": "{"y" * 80}"}}\r\n{{"id": 3}}'
    os.write(theirs, said.encode())
    os.close(theirs)
    with os.fdopen(ours) as pipe:
        monkeypatch.setattr("sys.stdin", pipe)
        async with strict_input(most=120) as lines:
            first, second, third = [json.loads(line) async for line in lines]
    assert first["method"] == REFUSED and "longer than 120" in first["params"]["why"]
    assert (second["id"], third) == (2, {"id": 3})
