"""Suspended trips on one level, and inside the call of another agent or worker: asked, answered, and gone on with."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic_ai import Agent

from benchmarks.agents import tools
from benchmarks.delegating import CALL, CALLED, CALLER, WRITTEN, by_call_agent, delegation, model, named, project
from benchmarks.durable_trips import ANA, YES, Trip, Trips, counting_store, ended
from benchmarks.policies import ASK_ALL
from benchmarks.script import PROMPT, Tally
from signoff import Signoff
from signoff.gate.resume import resume_run
from signoff.ports import Store
from signoff.workers.project_workers import Workers

VARIANTS = ("agent alone", "agent inside", "worker alone", "worker inside")


async def nested_trips(variant: str, place: str, tally: Tally) -> Trips:
    """`place` is the address of an SQLite file, as after `store:`."""
    store = counting_store(place)
    inside = variant.endswith("inside")
    if variant.startswith("agent"):
        agent, gate = _agent(store, tally, inside=inside)
        return Trips(_trip(agent, gate, {}, tally), lambda: store.commits)
    settings = project(Path(f"{place.removeprefix('sqlite:')}.project"))
    shop = Workers(settings, store=store, wait="suspend", model=model(1, writes=True, ended=Tally()))
    worker = shop.worker(CALLER if inside else CALLED)
    return Trips(_trip(worker.agent, worker.gate, worker.run_options(), tally), lambda: store.commits)


def _agent(store: Store, tally: Tally, *, inside: bool) -> tuple[Agent[Any, Any], Signoff]:
    said, rules = model(1, writes=True, ended=Tally()), [{"allow": CALL}, *ASK_ALL]
    gates = [Signoff(rules, wait="suspend", store=store) for _ in range(2)]
    writer = named(CALLED, said, tools(tally), gates[0], suspends=True)
    if not inside:
        return writer, gates[0]
    return named(CALLER, said, delegation(writer, by_call_agent), gates[1], suspends=True), gates[1]


def _trip(agent: Agent[Any, Any], gate: Signoff, options: dict[str, Any], tally: Tally) -> Trip:
    async def trip() -> None:
        await agent.run(PROMPT, **options)
        [request] = await gate.pending()
        run = (await gate.answer(request.id, YES, by=ANA)).run
        ended(await resume_run(agent, run, **options))
        tally.ran, WRITTEN.ran = tally.ran + WRITTEN.ran, 0

    return trip
