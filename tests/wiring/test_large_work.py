"""Work about a large value is done beside the event loop, one piece at a time, and a log can say what took long."""

from __future__ import annotations

import asyncio
import threading
from collections import deque

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests import start

from signoff import large_work
from signoff.large_work import LARGE, VERY_LARGE, SlowWork, done, is_large, slowest
from signoff.wiring.service import stall_text


async def test_the_event_loop_goes_on_while_a_large_value_is_worked_on() -> None:
    may_end = threading.Event()
    working = asyncio.ensure_future(done("judging", {"text": "a" * LARGE}, lambda: may_end.wait(60)))
    await asyncio.sleep(0)
    assert not working.done()
    may_end.set()  # had it been done here, nobody could have said so
    assert await working


async def test_what_is_large_does_not_wait_for_what_is_very_large() -> None:
    may_end = threading.Event()
    working = [asyncio.ensure_future(done("judging", "a" * VERY_LARGE, lambda: may_end.wait(60))) for _ in range(3)]
    await asyncio.sleep(0)
    assert await done("judging", "a" * LARGE, lambda: "judged") == "judged"
    assert await large_work.in_thread("checking an edit", lambda: "checked") == "checked"
    assert not any(one.done() for one in working)
    may_end.set()
    assert all(await asyncio.gather(*working))


async def test_a_small_value_is_worked_on_at_once() -> None:
    assert await done("judging", {"text": "a"}, threading.get_ident) == threading.get_ident()


async def test_what_large_work_raises_is_raised() -> None:
    with pytest.raises(ZeroDivisionError):
        await done("judging", "a" * LARGE, lambda: 1 / 0)


@given(st.recursive(st.text(max_size=3) | st.integers(), lambda one: st.lists(one) | st.dictionaries(st.text(), one)))
def test_nothing_small_counts_as_large(value: object) -> None:
    assert is_large(value) is (len(repr(value)) > LARGE and is_large(value))


@pytest.mark.parametrize(
    "value",
    ["a" * LARGE, b"a" * LARGE, [1] * LARGE, {"a" * LARGE: 1}, [["a" * 100]] * 100, {"x": [{"y": [1] * LARGE}]}],
)
def test_what_has_many_parts_or_characters_is_large(value: object) -> None:
    assert is_large(value)


async def test_the_log_says_whose_call_held_the_server_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(large_work, "SLOW", 0.0)
    monkeypatch.setattr(large_work, "_slow", deque())
    await done("judging a call of the agent support-bot", "x", lambda: None)
    slow = slowest(0)
    assert slow is not None
    assert stall_text(0, slow).endswith("judging a call of the agent support-bot took 0.0 s")
    told = stall_text(2.4, SlowWork("judging a call of the agent \x1bbot", 1.0, 2.3))
    assert told == "the server was blocked for 2.4 s: judging a call of the agent ⟦ESC⟧bot took 2.3 s"
    assert "a tool blocks the loop" in stall_text(2.4, SlowWork("judging", 1.0, 0.2))
    assert "a tool blocks the loop" in stall_text(2.4, None)


def test_a_process_that_serves_many_lets_threads_take_turns_and_leaves_alone_what_it_has_loaded() -> None:
    code = "import gc, sys; from signoff.large_work import share_the_process; share_the_process()\n"
    code += "print(sys.getswitchinterval(), gc.get_freeze_count() > 1_000, len(gc.get_objects()) < 1_000)"
    assert start.fresh(code).split() == ["0.0005", "True", "True"]
