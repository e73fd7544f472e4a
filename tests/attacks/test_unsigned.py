"""Whoever can write to the store rewrites what is not signed: so what runs leave behind is signed when they end."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import Agent
from tests.attacks.kept import YES, Place, gated, paused, turns
from tests.start import signoff as program

from signoff import resume
from signoff.errors import RecordBroken
from signoff.testing import ScriptedModel


@pytest.fixture(autouse=True)
def own_keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def pay() -> str:
    return "paid"


async def verified(place: Place) -> tuple[int, int]:
    """How many events there are, and up to which they are signed."""
    entries, checkpoints = await place.store().read(lambda tx: (tx.record.head()[0], tx.checkpoints.all()))
    return entries, max((one.seq for one in checkpoints), default=0)


async def test_every_run_of_a_program_is_signed_at_its_end(place: Place) -> None:
    signoff = place.gate([{"ask": "pay"}])
    agent = gated(signoff, turns(("pay", {})), pay)
    for _ in range(3):
        run = await paused(signoff, agent)
        await place.answer(YES)
        await resume(agent, run)
        events, signed = await verified(place)
        assert events == signed > 0


async def test_one_that_failed_and_one_that_asked_nothing_are_signed_too(place: Place) -> None:
    def breaks() -> str:
        raise RuntimeError("broken")

    signoff = place.gate([{"allow": "*"}])
    agent: Agent[Any, Any] = Agent(
        ScriptedModel([{"calls": [{"tool": "breaks", "args": {}}]}]), tools=[breaks], capabilities=[signoff]
    )
    with pytest.raises(RuntimeError):
        await agent.run("go")
    events, signed = await verified(place)
    assert events == signed > 0


async def test_a_store_without_the_end_of_its_record_says_so(place: Place) -> None:
    signoff = place.gate([{"ask": "pay"}])
    agent = gated(signoff, turns(("pay", {})), pay)
    await paused(signoff, agent)
    await signoff.broker.store.flush()
    with sqlite3.connect(place.file) as database:
        database.execute("delete from chain")
    database.close()

    with pytest.raises(RecordBroken, match="has 0 rows instead of one"):
        await agent.run("again")
    done = program("audit", "verify", "--store", place.url)
    assert (done.returncode, "Traceback" in done.stderr) == (1, False)
    assert "has 0 rows instead of one" in done.stderr
