"""A server that is killed again and again under load: nothing is lost, nothing is done twice, watchers come back."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks.serve_load import ServeProcess, office, under_load
from tests.server.serving import TURNS, Shop, until

from signoff.core.request import State

ANA = "ana"


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("kills", "waiting", "watchers", "arriving", "runs"),
    [(1, 4, 3, 10, 1), pytest.param(10, 200, 50, 500, 10, marks=pytest.mark.nightly)],
)
async def test_a_server_that_is_killed_under_load_loses_nothing_and_does_nothing_twice(
    tmp_path: Path, kills: int, waiting: int, watchers: int, arriving: int, runs: int
) -> None:
    shop = Shop(tmp_path / "shop").write(turns=TURNS)
    begun = [shop.asks() for _ in range(runs)]
    server = ServeProcess(shop.directory, shop.store, environment={"SIGNOFF_AS": ANA})
    await server.start()
    answered = iter(begun)
    each = arriving // kills

    async def disturb(number: int) -> None:
        if number % each == each // 2:
            if (pair := next(answered, None)) is not None:
                shop.signoff("approve", pair[1])
            server.kill()
            await server.start()

    try:
        async with office(server, ANA) as made:
            watching = await under_load(
                server, made, waiting=waiting, watchers=watchers, arriving=arriving, voters=8, disturb=disturb
            )
            for _, request in answered:
                shop.signoff("approve", request)
            decided = {one: await made.broker.get(one) for one in made.asked_at}
    finally:
        assert server.stop() == 0
    # Each watcher has every event, in order, once, whichever server told it.
    assert [one.gaps for one in watching] == [[]] * watchers
    assert [one.problems for one in watching] == [[]] * watchers
    assert all(one.connections > 1 for one in watching), "they came back"
    # Each request that arrived was decided, once; those that waited still do.
    states = [one.state for one in decided.values()]
    assert states.count(State.PENDING) == waiting
    assert len(states) == waiting + arriving
    assert all(len(one.votes) == 1 for one in decided.values() if one.state is not State.PENDING)
    await _runs_ended(shop, begun)
    assert "nothing is missing" in shop.signoff("audit", "verify")


async def _runs_ended(shop: Shop, begun: list[tuple[str, str]]) -> None:
    """Each run that was approved is done, or waits for a word about its call: the tool ran at most once."""
    with shop.serving() as served:

        def settled() -> bool:
            return all(one["state"] in ("done", "waiting") for one in shop.runs())

        served.event("listening")  # before that, a signal ends it as it ends any program
        until(settled, "every run is over, or waits for a word about its call")
        assert served.stop() == 0
    done = [one for one in shop.runs() if one["state"] == "done"]
    assert len(done) <= len(shop.lines()) <= len(begun)
