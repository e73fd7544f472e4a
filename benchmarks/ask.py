"""What a whole trip costs in memory: a call is asked about, approved, and runs."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping
from functools import partial
from itertools import pairwise
from typing import Any

from pydantic_ai import Agent, RunContext
from pydantic_ai.capabilities import HandleDeferredToolCalls
from pydantic_ai.tools import DeferredToolRequests, DeferredToolResults

from benchmarks.agents import Empty, agent, run_whole, tools
from benchmarks.measure import Effort, Figure, Sampler, async_sampler, take_turns
from benchmarks.peer import LangChain
from benchmarks.policies import ASK_ALL
from benchmarks.report import Report, Row, Table, Target
from benchmarks.script import DONE, PROMPT, Tally
from signoff import Answerer, ApprovalDecision, ApprovalMemory, ApprovalMode, ApprovalRequest, Signoff, resume

MOST_TRIPS = 1.2
MOST_GROWTH = 1.2
BARE = "PydanticAI, nobody is asked"
NATIVE = "PydanticAI, suspended and resumed"
OURS = ("signoff, waits in place", "signoff, suspended and resumed")
PEERS = {"LangChain, nobody is asked": "bare", "LangChain, batched, InMemorySaver": "approved"}
YES = ApprovalDecision(approved=True)

Samples = Mapping[tuple[str, int], list[float]]
"""Seconds a cycle, by variant and number of calls in the batch."""


class Approver:
    """Says yes, without waiting for anything."""

    async def choose(self, request: ApprovalRequest, *, mode: ApprovalMode) -> ApprovalDecision:
        return YES


def measure(effort: Effort, peer: LangChain) -> Report:
    batches = (1, effort.calls, 4 * effort.calls)
    with asyncio.Runner() as runner:
        samplers = {(name, calls): one for calls in batches for name, one in _samplers(runner, calls, peer)}
        samples = take_turns(samplers, effort)
    names = list(dict.fromkeys(name for name, _ in samples))
    growth = {name: tuple(_growth(samples, name, few, more) for few, more in _steps(batches)) for name in names}
    return Report(
        name="ask",
        title="Asked, approved and run, in memory",
        about="A cycle is one run whose only turn makes all the calls of a batch; each is asked about and approved. "
        "Added: over the bare agent of the same framework.",
        tables=(
            *(_table(samples, names, calls) for calls in batches),
            Table(
                "a call's share of the cycle",
                tuple(f"in a batch of {more} to {few}" for few, more in _steps(batches)),
                tuple(Row(name, cells) for name, cells in growth.items()),
            ),
        ),
        targets=(
            *(_against_native(samples, name, calls) for name in OURS for calls in batches),
            *(Target(f"{name}, growth of a call's share", growth[name][-1].median, MOST_GROWTH) for name in OURS),
        ),
        notes=peer.notes,
    )


# --- variants ---


def _samplers(runner: asyncio.Runner, calls: int, peer: LangChain) -> Iterator[tuple[str, Sampler]]:
    for name, work in _cycles(calls).items():
        yield name, async_sampler(runner, work)
    if peer.there:
        for name, variant in PEERS.items():
            yield name, partial(peer.sample, variant, calls)


def _cycles(calls: int) -> dict[str, Callable[[], Awaitable[None]]]:
    tally = Tally()
    plain, asking = tools(tally), tools(tally, requires_approval=True)
    bare = agent(calls, plain)
    native = agent(calls, asking, suspends=True)
    judged = agent(calls, plain.approval_required(), suspends=True)
    beside_empty = agent(calls, plain.approval_required(), Empty(), suspends=True)
    handled = agent(calls, asking, HandleDeferredToolCalls(_approve_all))
    in_place = agent(calls, plain, Signoff(ASK_ALL, approver=Approver(), memory=ApprovalMemory(None)))
    gate = Signoff(ASK_ALL, wait="suspend", memory=ApprovalMemory(None))
    suspended = agent(calls, plain, gate, suspends=True)
    return {
        BARE: partial(run_whole, bare, tally, calls),
        NATIVE: partial(_native_trip, native, tally, calls),
        "PydanticAI, the same by ApprovalRequiredToolset": partial(_native_trip, judged, tally, calls),
        "PydanticAI, and with an empty capability": partial(_native_trip, beside_empty, tally, calls),
        "PydanticAI, HandleDeferredToolCalls": partial(run_whole, handled, tally, calls),
        OURS[0]: partial(run_whole, in_place, tally, calls),
        OURS[1]: partial(_our_trip, suspended, gate, tally, calls),
    }


async def _approve_all(ctx: RunContext[Any], requests: DeferredToolRequests) -> DeferredToolResults:
    return requests.build_results(approve_all=True)


async def _native_trip(asking: Agent[Any, Any], tally: Tally, calls: int) -> None:
    paused = await asking.run(PROMPT)
    results = paused.output.build_results(approve_all=True)
    result = await asking.run(message_history=paused.all_messages(), deferred_tool_results=results)
    assert result.output == DONE
    tally.expect(calls)


async def _our_trip(gated: Agent[Any, Any], gate: Signoff, tally: Tally, calls: int) -> None:
    ana = Answerer(name="ana", via="api")
    paused = await gated.run(PROMPT)
    for metadata in paused.output.metadata.values():
        await gate.answer(metadata["signoff"]["request"], YES, by=ana)
    result = await resume(gated, paused)
    assert result.output == DONE
    tally.expect(calls)


# --- figures ---


def _table(samples: Samples, names: list[str], calls: int) -> Table:
    title = "1 call" if calls == 1 else f"{calls} calls in one batch"
    rows = tuple(_row(samples, name, calls) for name in names)
    return Table(title, ("cycle, ms", "added per call, µs", "cycle, in trips", "added, in trips"), rows)


def _row(samples: Samples, name: str, calls: int) -> Row:
    taken, native = samples[name, calls], samples[NATIVE, calls]
    bare = samples[next(iter(PEERS)) if name in PEERS else BARE, calls]
    if taken is bare:
        return Row(name, (Figure.of(taken).times(1e3), None, Figure.ratio(taken, native), None))
    added = [whole - part for whole, part in zip(taken, bare, strict=True)]
    return Row(
        name,
        (
            Figure.of(taken).times(1e3),
            Figure.of(added).times(1e6 / calls),
            Figure.ratio(taken, native),
            Figure.ratio(added, native),
        ),
    )


def _steps(batches: tuple[int, ...]) -> list[tuple[int, int]]:
    return list(pairwise(batches))


def _growth(samples: Samples, name: str, few: int, more: int) -> Figure:
    """How a call's share of the cycle changes with the batch: 1 is linear, below is a fixed part shared by more."""
    return Figure.ratio(samples[name, more], samples[name, few]).times(few / more)


def _against_native(samples: Samples, name: str, calls: int) -> Target:
    added = Figure.difference(samples[name, calls], samples[BARE, calls]).median
    return Target(f"{name}, batch of {calls}, added, in trips", _row(samples, name, calls)., MOST_TRIPS)
