"""A length of time is written in one way: in files, on the command line, in a protocol."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from signoff.cli.audit_log import moment
from signoff.cli.durations import read_duration
from signoff.cli.terminal_text import when
from signoff.core.moment import UNIT, parse_duration
from signoff.errors import SignoffError
from signoff.policy.document import document_of
from signoff.policy.format import DURATION
from signoff.policy.placed_value import ConfigValue
from signoff.server.aap_wire import AapProblem, duration

NOW = datetime(2031, 5, 24, 12, 0, tzinfo=UTC)
UNITS = {"s": 1, "m": 60, "min": 60, "h": 3600, "d": 86400, "w": 604800}


def in_file(text: str) -> timedelta:
    return DURATION.read(ConfigValue.top(document_of(text, file="f.yaml")))


def until(text: str) -> timedelta:
    return when(text, NOW) - NOW


@given(number=st.integers(1, 500), unit=st.sampled_from(sorted(UNITS)), space=st.sampled_from(["", " "]))
def test_every_reader_takes_the_same(number: int, unit: str, space: str) -> None:
    text, length = f"{number}{space}{unit}", timedelta(seconds=number * UNITS[unit])
    assert in_file(text) == read_duration(text) == until(text) == length
    assert re.fullmatch(DURATION.schema["anyOf"][1]["pattern"], text)
    since = moment(text)
    assert since is not None and abs(datetime.now(UTC) - since - length) < timedelta(minutes=1)
    if not space and unit in "smh":
        assert duration(text, "timeout") == length
    else:
        with pytest.raises(AapProblem):
            duration(text, "timeout")


@pytest.mark.parametrize("text", ["", "2", "h", "2 hours", "-2h", "1.5h", "2h30m", "²h", "２h", "2H", "1e3s", "2\nh x"])
@pytest.mark.parametrize("read", [in_file, read_duration, lambda text: duration(text, "timeout")])
def test_nothing_else_is_one(text: str, read: Callable[[str], timedelta]) -> None:
    assert parse_duration(text) is None
    with pytest.raises((SignoffError, click.UsageError, AapProblem)):
        read(text)


@pytest.mark.parametrize("read", [in_file, read_duration, until])
def test_what_no_date_reaches_is_refused(read: Callable[[str], object]) -> None:
    with pytest.raises((SignoffError, click.UsageError)):
        read("99999999w")


@given(st.text(max_size=12) | st.from_regex(rf"[0-9]{{1,12}}{UNIT}", fullmatch=True))
def test_any_text_is_read_or_is_none(text: str) -> None:
    length = parse_duration(text)
    assert length is None or length >= timedelta(0)
