"""What every tool call costs when policy allows it."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from pydantic_ai import Agent

from benchmarks.agents import Empty, agent, run_whole, tools
from benchmarks.bench import Bench
from benchmarks.measure import Effort, Figure, Sampler, async_sampler, pooled, take_pairs, timed
from benchmarks.policies import ONE_RULE, Rules, realistic
from benchmarks.report import Report, Row, Table, Target
from benchmarks.script import DIRECTORY, Tally
from signoff import ApprovalDecision, ApprovalMemory, ApprovalMode, ApprovalRequest, Policy, Signoff
from signoff.core.decision import Remember
from signoff.core.event import CallEvent
from signoff.store.sqlite import SqliteStore

LIMIT = 60.0
BARE = "PydanticAI, bare agent"
PEER_BARE = "LangChain, bare agent"
PEERS = {PEER_BARE: "bare", "LangChain, HumanInTheLoopMiddleware, `when` is False": "hitl"}
OURS = "signoff, "
RECORDED = "the same until all is on the record and durable"


@dataclass(frozen=True)
class AlwaysYes:
    """Approves once, for later too."""

    remember: Remember = Remember.SESSION

    def choose(self, request: ApprovalRequest, *, mode: ApprovalMode) -> ApprovalDecision:
        return ApprovalDecision(approved=True, remember=self.remember)


@dataclass
class Listener:
    """An observer that does next to nothing."""

    heard: int = 0

    def __call__(self, event: CallEvent) -> None:
        self.heard += 1


def measure(effort: Effort, bench: Bench) -> Report:
    peer = bench.peer
    calls = effort.calls
    with ExitStack() as stack:
        runner = stack.enter_context(asyncio.Runner())
        samplers = dict(_ours(runner, stack, calls))
        if peer.there:
            samplers |= {name: partial(peer.sample, variant, calls) for name, variant in PEERS.items()}
        base_of = {name: PEER_BARE if name in PEERS else BARE for name in samplers if name not in (BARE, PEER_BARE)}
        pairs = take_pairs(samplers, base_of, effort)
    added = {name: pair.difference.times(1e6 / calls) for name, pair in pairs.items()}
    rows: list[Row] = []
    for name in samplers:
        if name in pairs:
            pair = pairs[name]
            rows.append(Row(name, (Figure.of(pair.values).times(1e3), added[name], pair.ratio, pair.of_processor)))
        else:
            rows.append(Row(name, (Figure.of(pooled(pairs, base_of, name)).times(1e3), None, None, None)))
    return Report(
        name="allow",
        title="Added cost of an allowed call",
        about=f"One run, one turn of the model with {calls} calls. Added: over the bare agent of the same framework.",
        tables=(
            Table(
                "variant", ("run, ms", "added per call, µs", "ratio to bare", "the same, of the processor"), tuple(rows)
            ),
        ),
        targets=tuple(
            Target(f"{name}, µs added per call", figure.median, LIMIT)
            for name, figure in added.items()
            if name.startswith(OURS)
        ),
        notes=peer.notes,
    )


def _ours(runner: asyncio.Runner, stack: ExitStack, calls: int) -> Iterator[tuple[str, Sampler]]:
    root = stack.enter_context(_directory())
    tally = Tally()
    plain = tools(tally)
    agents: Mapping[str, Agent[Any, Any]] = {
        BARE: agent(calls, plain),
        "PydanticAI, ApprovalRequiredToolset says no": agent(calls, plain.approval_required(lambda *_: False)),
        "PydanticAI, empty capability": agent(calls, plain, Empty()),
        f"{OURS}1 rule allows": agent(calls, plain, _gate(ONE_RULE, root)),
        f"{OURS}1 rule allows, with an observer": agent(calls, plain, _gate(ONE_RULE, root, observe=Listener())),
        f"{OURS}20 rules, allowed by path": agent(calls, plain, _gate(realistic("allow"), root)),
        f"{OURS}20 rules, asked once and remembered": agent(
            calls, plain, _gate(realistic("ask"), root, approver=AlwaysYes())
        ),
    }
    for name, one in agents.items():
        yield name, async_sampler(runner, partial(run_whole, one, tally, calls))
    store = SqliteStore(root / "signoff.db")
    stack.callback(store.close)
    recorded = agent(calls, plain, Signoff(_policy(ONE_RULE, root), store=store))
    recalled = agent(
        calls, plain, Signoff(_policy(realistic("ask"), root), store=store, approver=AlwaysYes(Remember.ALWAYS))
    )
    for name, one in {
        f"{OURS}1 rule allows, SQLite store": recorded,
        f"{OURS}20 rules, asked once and remembered, SQLite store": recalled,
    }.items():
        yield name, lambda one=one: runner.run(_before_the_record(one, store, tally, calls))
    yield f"{RECORDED}, 1 rule allows", async_sampler(runner, partial(_with_the_record, recorded, store, tally, calls))


async def _before_the_record(one: Agent[Any, Any], store: SqliteStore, tally: Tally, calls: int) -> float:
    """The record is written when nobody waits for it; before the next sample, so that this pays for itself alone."""
    seconds = await timed(partial(run_whole, one, tally, calls))
    await store.flush()
    return seconds


async def _with_the_record(one: Agent[Any, Any], store: SqliteStore, tally: Tally, calls: int) -> None:
    await run_whole(one, tally, calls)
    await store.flush()


def _gate(rules: Rules, root: Path, **options: Any) -> Signoff:
    return Signoff(_policy(rules, root), memory=ApprovalMemory(None), **options)


def _policy(rules: Rules, root: Path) -> Policy:
    return Policy.from_rules(rules, root=str(root))


@contextmanager
def _directory() -> Iterator[Path]:
    """A directory as the policy's root, where the paths in the calls lead to."""
    with tempfile.TemporaryDirectory() as name:
        root = Path(name).resolve() / "project"
        (root / DIRECTORY).mkdir(parents=True)
        yield root
