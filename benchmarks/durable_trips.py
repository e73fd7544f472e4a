"""Every way to get a call asked about, answered and run so that it outlives the process: by hand, and with signoff."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Protocol, cast
from uuid import uuid4

from pydantic import TypeAdapter
from pydantic_ai import Agent, RunContext
from pydantic_ai.capabilities import HandleDeferredToolCalls
from pydantic_ai.messages import ModelMessage, ModelMessagesTypeAdapter, ModelRequest
from pydantic_ai.run import AgentRunResult
from pydantic_ai.tools import DeferredToolRequests, DeferredToolResults

from benchmarks.agents import agent, history, tools
from benchmarks.by_hand import PostgresRows, Rows, SqliteRows
from benchmarks.policies import ASK_ALL
from benchmarks.script import DONE, PROMPT, Tally
from benchmarks.trips import Approver
from signoff import Actor, ApprovalDecision, Signoff
from signoff.gate.resume import resume_run
from signoff.ports import Store
from signoff.store import tables
from signoff.store.store_factory import open_store

Trip = Callable[[], Awaitable[None]]
ANA = Actor(name="ana", via="api")
YES = ApprovalDecision(approved=True)
CONNECTIONS = 16

requests_as_json = TypeAdapter(DeferredToolRequests).dump_json


async def _nothing() -> None: ...


@dataclass(frozen=True)
class Trips:
    """One way, ready to be gone any number of times."""

    trip: Trip
    commits: Callable[[], int] = lambda: 0
    """Durable commits so far, where they are counted."""
    close: Callable[[], Awaitable[None]] = _nothing


async def trips(variant: str, place: str, messages: int, tally: Tally) -> Trips:
    """`place` is an address as after `store:`; `messages` is how many there were before the run."""
    before = history(messages)
    match variant:
        case "memory":
            return Trips(_in_memory(before, tally))
        case "row, suspended" | "row, in place":
            table = await _rows(place)
            way = _row_suspended if variant == "row, suspended" else _row_in_place
            return Trips(way(table, before, tally), close=table.close)
        case "suspended" | "elsewhere" | "unseen":
            processes = 1 if variant == "suspended" else 2  # each opens the database for itself
            stores = [counting_store(place) for _ in range(processes)]
            gates = [Signoff(ASK_ALL, wait="suspend", store=store) for store in stores]
            trip = _suspended(gates[0], gates[-1], before, tally, unseen=variant == "unseen")
            return Trips(trip, lambda: sum(store.commits for store in stores))
        case "in place":
            store = counting_store(place)
            return Trips(_in_place(store, before, tally), lambda: store.commits)
        case _:
            raise ValueError(f"no such variant: {variant}")


def ended(result: AgentRunResult[Any]) -> None:
    assert result.output == DONE, result.output


# --- PydanticAI alone ---


def _in_memory(before: list[ModelMessage], tally: Tally) -> Trip:
    asking = agent(1, tools(tally, requires_approval=True), suspends=True)

    async def trip() -> None:
        paused = await asking.run(PROMPT, message_history=before)
        results = paused.output.build_results(approve_all=True)
        ended(await asking.run(message_history=paused.all_messages(), deferred_tool_results=results))

    return trip


# --- and a row by hand ---


async def _rows(place: str) -> Rows:
    if place.startswith("sqlite:"):
        return SqliteRows(place.removeprefix("sqlite:"))
    return await PostgresRows.open(place, CONNECTIONS)


def _row_suspended(rows: Rows, before: list[ModelMessage], tally: Tally) -> Trip:
    asking = agent(1, tools(tally, requires_approval=True), suspends=True)

    async def trip() -> None:
        run = str(uuid4())
        paused = await asking.run(PROMPT, message_history=before)
        await rows.pause(run, paused.all_messages_json(), requests_as_json(paused.output))
        await rows.answer(run, _approved(paused.output))
        messages, answers = await rows.load(run)
        result = await asking.run(
            message_history=ModelMessagesTypeAdapter.validate_json(messages),
            deferred_tool_results=DeferredToolResults(approvals=json.loads(bytes(answers))),
        )
        ended(result)
        await rows.finish(run, result.all_messages_json(), result.output)

    return trip


def _row_in_place(rows: Rows, before: list[ModelMessage], tally: Tally) -> Trip:
    """The run is saved as far as it is new, and waits inside the process for somebody who writes the answer."""
    running: ContextVar[str] = ContextVar("running")

    async def wait(ctx: RunContext[Any], requests: DeferredToolRequests) -> DeferredToolResults:
        run, answers = running.get(), _approved(requests)
        new = ModelMessagesTypeAdapter.dump_json(ctx.messages[len(before) :])
        await rows.pause(run, new, requests_as_json(requests))
        answered = asyncio.get_running_loop().create_future()

        async def answer() -> None:
            await rows.answer(run, answers)
            answered.set_result(json.loads(answers))

        somebody = asyncio.create_task(answer())
        approvals = await answered
        await somebody
        return DeferredToolResults(approvals=approvals)

    asking = agent(1, tools(tally, requires_approval=True), HandleDeferredToolCalls(wait))

    async def trip() -> None:
        run = str(uuid4())
        running.set(run)
        result = await asking.run(PROMPT, message_history=before)
        ended(result)
        await rows.finish(run, result.new_messages_json(), result.output)

    return trip


def _approved(requests: DeferredToolRequests) -> bytes:
    return json.dumps({part.tool_call_id: True for part in requests.approvals}).encode()


# --- signoff ---


class CountingStore(Store, Protocol):
    @property
    def commits(self) -> int:
        """Those that were made durable."""
        ...


def counting_store(place: str) -> CountingStore:
    store = open_store(place)
    assert store.is_durable
    return cast("CountingStore", store)


def _suspended(
    asks: Signoff, resumes: Signoff, before: list[ModelMessage], tally: Tally, *, unseen: bool = False
) -> Trip:
    """Of two gates, the second is another process: it knows nothing of the conversation but what is in the store.

    With `unseen`, the store has not heard of the history before either: it begins differently each time.
    """
    toolset = tools(tally)
    asking, resuming = (agent(1, toolset, gate, suspends=True) for gate in (asks, resumes))

    async def trip() -> None:
        earlier = [ModelRequest.user_text_prompt(str(uuid4())), *before[1:]] if unseen else before
        paused = await asking.run(PROMPT, message_history=earlier)
        run = await approve(asks, paused)
        if resumes is not asks:
            resumes.histories.forget()
            tables.forget()
        ended(await resume_run(resuming, run))

    return trip


async def approve(gate: Signoff, paused: AgentRunResult[Any]) -> str:
    """Approve all that a run waits for; the id of the run."""
    run = ""
    for metadata in paused.output.metadata.values():
        run = (await gate.answer(metadata["signoff"]["request"], YES, by=ANA)).run
    return run


def _in_place(store: Store, before: list[ModelMessage], tally: Tally) -> Trip:
    asking: Agent[Any, Any] = agent(1, tools(tally), Signoff(ASK_ALL, approver=Approver(), store=store))

    async def trip() -> None:
        ended(await asking.run(PROMPT, message_history=before))

    return trip
