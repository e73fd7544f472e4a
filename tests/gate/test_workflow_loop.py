"""What would wait for a thread is refused in a loop that no thread can wake: see also test_durable_engine.py."""

from __future__ import annotations

import asyncio

import pytest
from pydantic_ai.exceptions import UserError

from signoff import Signoff
from signoff.errors import WrongUse
from signoff.gate.gate import Gate
from signoff.gate.workflow_loop import refuse_to_wait


class NoThreads(asyncio.SelectorEventLoop):
    """A loop without the method, as that of Temporal's workflows."""

    call_soon_threadsafe = asyncio.AbstractEventLoop.call_soon_threadsafe


async def wait() -> None:
    refuse_to_wait("a store")


def test_what_waits_for_a_thread_is_refused_where_no_thread_can_wake_the_loop() -> None:
    """The error is one of PydanticAI's own too: only these end a workflow, others are tried again without an end."""
    with asyncio.Runner(loop_factory=NoThreads) as runner, pytest.raises(WrongUse, match="a store needs threads") as no:
        runner.run(wait())
    assert isinstance(no.value, UserError)


def test_each_run_of_a_workflow_begins_with_nothing_on_record() -> None:
    """The engine runs its code again from the beginning, with the same ids: an approval that was used is in the way."""
    signoff = Signoff([{"ask": "pay"}])

    async def gates() -> tuple[Gate, Gate]:
        return signoff.gate, signoff.gate

    made = [signoff.gate]
    for _ in range(2):
        with asyncio.Runner(loop_factory=NoThreads) as runner:
            one, again = runner.run(gates())
        assert one is again
        made.append(one)
    assert len({id(one.broker.store) for one in made}) == 3
    assert asyncio.run(gates())[0] is made[0]


async def test_an_ordinary_loop_may_wait() -> None:
    await wait()
