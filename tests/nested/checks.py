"""What has to hold of a nested run once it is over."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from tests.nested.cells import DONE, NOTE, Cell

from signoff.broker.audit import verify_store
from signoff.core.request import ApprovalRequest, State
from signoff.core.run import RunState, SavedRun
from signoff.ports import Store, Transaction
from signoff.store.signing_key import Keys, is_signed
from signoff.store.store_factory import open_store

OUTCOME = {
    "approve": State.SUCCEEDED,
    "edit": State.SUCCEEDED,
    "deny": State.DENIED,
    "timeout": State.EXPIRED,
    "part": State.SUCCEEDED,
}
OVER = (State.SUCCEEDED, State.DENIED, State.EXPIRED)


async def check_cell(cell: Cell, said: Any) -> None:
    """Everything, for one cell."""
    _check_effects(cell)
    _check_told(cell, said)
    store = open_store(cell.url)
    try:
        run, requests = await check_ended(store, Path(cell.directory))
    finally:
        store.close()
    assert [request.state for request in requests] == [OUTCOME[cell.answer]] * len(cell.amounts)
    inner = "/".join(f"{agent}-ask" for agent in cell.agents[:-1])
    for request, amount in zip(requests, cell.amounts, strict=True):
        assert request.call is not None
        assert request.call.chain == cell.chain
        assert request.call.path == f"{inner}/{cell.agents[-1]}-pay-{amount}"
        assert request.run == run.id
        if cell.answer != "timeout":
            assert [vote.by.name for vote in request.votes] == ["ana"]


async def check_ended(store: Store, directory: Path) -> tuple[SavedRun, list[ApprovalRequest]]:
    """Nothing is left of a run: not in hand, not waiting, not claimed; and the record says so. Its requests."""

    def look(tx: Transaction) -> tuple[list[SavedRun], list[SavedRun | None], list[ApprovalRequest]]:
        runs = list(tx.runs.all())
        inside = [tx.runs.get(one) for one in tx.runs.like("inside-", limit=100)]
        return runs, inside, [one for run in runs for one in tx.requests.of(run=run.id)]

    [run], inside, requests = await store.read(look)
    assert run.state is RunState.DONE, run.detail
    assert not run.holder
    assert [one for one in inside if one is not None and one.state is RunState.GOING] == []
    assert [one for one in requests if one.state not in OVER] == []
    verified = await verify_store(store, Keys(directory / "keys"), is_signed)
    assert verified.events
    return run, requests


def _check_effects(cell: Cell) -> None:
    paid = cell.effects.lines(tool="pay")
    # Calls of one step run side by side, so their order means nothing.
    assert sorted(one["args"]["amount"] for one in paid) == cell.paid, "what was approved, once each"
    assert len({one["key"] for one in paid}) == len(paid)
    assert Counter(one["agent"] for one in cell.effects.lines(tool="look")) == dict.fromkeys(cell.agents, 1), (
        "what ran beside a call that waits is not repeated"
    )
    entered = Counter(one["agent"] for one in cell.effects.lines(tool="ask"))
    times = 1 if cell.way == "inline" else 1 + len(cell.amounts)
    assert entered == dict.fromkeys(cell.agents[:-1], times), "a tool is entered anew each time the run is taken up"
    keys = {(one["agent"], one["key"]) for one in cell.effects.lines(tool="ask")}
    assert len(keys) == cell.levels - 1, "and it is the same call each time"
    if cell.way in ("restart", "other_process"):
        pids = [one["pid"] for one in cell.effects.lines()]
        assert pids[0] not in [one["pid"] for one in paid], "it went on in another process"


def _check_told(cell: Cell, said: Any) -> None:
    *outer, inner = cell.agents
    assert isinstance(said, str)
    for number, agent in enumerate(cell.agents):
        assert [one["turn"] for one in cell.told.lines(agent=agent)] == [0, 1], "no model is asked the same twice"
        [told] = [one["results"] for one in cell.told.lines(agent=agent, turn=1)]
        whole = "\n".join(told)
        if agent == inner:
            wanted = {
                "approve": ["paid 1"],
                "edit": ["A person changed the arguments", '{"amount":7}', "paid 7"],
                "deny": ["permission_denied", NOTE],
                "timeout": ["permission_denied", "nobody answered in time"],
                "part": ["paid 1", "paid 2"],
            }[cell.answer]
            assert [word for word in wanted if word not in whole] == [], whole
        else:
            last = outer[number + 1 :]
            assert DONE in whole and all(f"{one} heard" in whole for one in last)
            assert not any(word in whole for word in (NOTE, "permission_denied", "changed the arguments", "in time"))
    assert said.startswith("triage heard") and DONE in said
