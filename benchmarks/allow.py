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
from benchmarks.measure import Effort, Figure, Sampler, async_sampler, take_turns
from benchmarks.peer import LangChain
from benchmarks.policies import ONE_RULE, Rules, realistic
from benchmarks.report import Report, Row, Table, Target
from benchmarks.script import FOLDER, Tally
from signoff import ApprovalDecision, ApprovalMemory, ApprovalMode, ApprovalRequest, Policy, Signoff
from signoff.core.decision import Remember
from signoff.core.event import CallEvent

LIMIT = 60.0
BARE = "PydanticAI, bare agent"
OURS = {
    "one": "signoff, 1 rule allows",
    "observed": "signoff, 1 rule allows, with an observer",
    "realistic": "signoff, 20 rules, allowed by path",
    "remembered": "signoff, 20 rules, asked once and remembered",
}
PEERS = {"bare": "LangChain, bare agent", "hitl": "LangChain, HumanInTheLoopMiddleware, `when` is False"}


class AlwaysYes:
    """Approves for the rest of the session."""

    def choose(self, request: ApprovalRequest, *, mode: ApprovalMode) -> ApprovalDecision:
        return ApprovalDecision(approved=True, remember=Remember.SESSION)


@dataclass
class Listener:
    """An observer that does next to nothing."""

    heard: int = 0

    def __call__(self, event: CallEvent) -> None:
        self.heard += 1


def measure(effort: Effort, peer: LangChain) -> Report:
    calls = effort.calls
    with ExitStack() as stack:
        runner = stack.enter_context(asyncio.Runner())
        samplers = dict(_ours(runner, stack.enter_context(_folder()), calls))
        if peer.there:
            samplers |= {title: partial(peer.sample, name, calls) for name, title in PEERS.items()}
        samples = take_turns(samplers, effort)
    rows = {name: _row(name, samples, calls) for name in samples}
    worst = [(name, rows[name].cells[1]) for name in OURS.values()]
    return Report(
        name="allow",
        title="Added cost of an allowed call",
        about=f"One run, one turn of the model with {calls} calls. Added: over the bare agent of the same framework.",
        tables=(Table("variant", ("run, ms", "added per call, µs", "ratio to bare"), tuple(rows.values())),),
        targets=tuple(Target(f"{name}, µs added per call", added.median, LIMIT) for name, added in worst if added),
        notes=peer.notes,
    )


def _ours(runner: asyncio.Runner, root: Path, calls: int) -> Iterator[tuple[str, Sampler]]:
    tally = Tally()
    plain = tools(tally)
    memory = ApprovalMemory(None)
    agents: Mapping[str, Agent[Any, Any]] = {
        BARE: agent(calls, plain),
        "PydanticAI, ApprovalRequiredToolset says no": agent(calls, plain.approval_required(lambda *_: False)),
        "PydanticAI, empty capability": agent(calls, plain, Empty()),
        OURS["one"]: agent(calls, plain, _gate(ONE_RULE, root)),
        OURS["observed"]: agent(calls, plain, _gate(ONE_RULE, root, observe=Listener())),
        OURS["realistic"]: agent(calls, plain, _gate(realistic("allow"), root)),
        OURS["remembered"]: agent(calls, plain, _gate(realistic("ask"), root, memory=memory, approver=AlwaysYes())),
    }
    for name, one in agents.items():
        yield name, async_sampler(runner, partial(run_whole, one, tally, calls))


def _gate(rules: Rules, root: Path, **options: Any) -> Signoff:
    return Signoff(Policy.from_rules(rules, root=str(root)), **{"memory": ApprovalMemory(None), **options})


@contextmanager
def _folder() -> Iterator[Path]:
    """A folder as the policy's root, where the paths in the calls lead to."""
    with tempfile.TemporaryDirectory() as name:
        root = Path(name).resolve() / "project"
        (root / FOLDER).mkdir(parents=True)
        yield root


def _row(name: str, samples: Mapping[str, list[float]], calls: int) -> Row:
    base = PEERS["bare"] if name in PEERS.values() else BARE
    run = Figure.of(samples[name]).times(1e3)
    if name == base:
        return Row(name, (run, None, None))
    added = Figure.difference(samples[name], samples[base]).times(1e6 / calls)
    return Row(name, (run, added, Figure.ratio(samples[name], samples[base])))
