"""One case: the processes of a trip, one of which dies; then an operator drives everything to its end."""

from __future__ import annotations

import asyncio
import os
import signal
from typing import Any

from tests.crash.checks import broken_promises, problems_of
from tests.crash.faults import Faults, FaultyStore
from tests.crash.fork import Child, heard
from tests.crash.stage import Stage, begin, kept_run_of, play, take_up
from tests.crash.trips import Act, Case, effects_of, key_of
from tests.crash.wire import Wire

from signoff.broker import Broker
from signoff.core.people import Actor
from signoff.core.request import ApprovalRequest, State
from signoff.core.run import RunState
from signoff.store.store_factory import open_store

MOST_ROUNDS = 12
"""Of answering and resuming; by then a run has to be over."""
TOOLS = ("look", "pay", "drop", "wipe", "hand", "pass_on")
OPERATOR = Actor(name="olga", via="test")


def conduct(**case: Any) -> dict[str, Any]:
    """Play a case from its first process to the verdict."""
    the = Case(**case)
    waiting: Child | None = None
    statements: dict[str, int] = {}
    wires: dict[str, Wire] = {}
    for act in the.does.acts:
        if the.timing and the.url.startswith("postgres") and the.act in ("", act.name):
            wires[act.name] = Wire(the.url, the.log, act.name, the.statement, sent=the.sent)
        if the.act not in ("", act.name) and not waits_here(the, act):
            play(the, act)  # nobody dies, so it may as well be done here
            continue
        shown = Shown()  # last, so that nobody else has its ends
        child = Child(play, the, act, shown.tell, url=wires[act.name].url if act.name in wires else "")
        if shown.is_told():
            waiting = child  # in place, while the next process answers
            continue
        statements[act.name] = child.wait() or 0
        if child.status == -signal.SIGKILL:
            break
    found = ""
    if waiting is not None:
        if the.act == "answer":  # whoever answered died; the run still waits, so somebody else answers
            found = Child(answer_anew, the).wait()
        statements["run"] = waiting.wait() or 0
    commits: dict[str, int] = {}
    for name, wire in wires.items():
        statements[name], commits[name] = wire.seen
        wire.close()
    wanted = [(the.act, the.point)] if the.point else []
    if the.again:
        wanted.append(("restart", the.again))
        Child(finish, the, the.again).wait()
    driven = finish(the)
    facts = the.log.facts()
    killed = [(fact["process"], fact["killed"]) for fact in facts if "killed" in fact]
    # Two that run at once may be asked about together, or one after the other: a point need not be reached each time.
    varies = the.does.inside is not None and the.does.inside.at_once
    if wanted and killed != wanted and not (varies and not killed):
        driven["problems"].append(f"it was to be killed at {wanted}, and was at {killed}")
    return {
        **driven,
        "found": found or driven["found"],
        "killed": killed[0][1] if killed else "",
        "statements": statements,
        "commits": commits,
        "points": [(fact["process"], fact["point"]) for fact in facts if "point" in fact],
    }


def waits_here(case: Case, act: Act) -> bool:
    """Whether the process of this act waits in place while others go on."""
    trip = case.does
    return act.does == "run" and trip.waits and not trip.at_terminal and trip.at_most is None


class Shown:
    """Hears from a process that its question is shown, or that the process is gone."""

    def __init__(self) -> None:
        self._hears, self._tells = os.pipe()

    def tell(self) -> None:
        os.write(self._tells, b".")

    def is_told(self) -> bool:
        os.close(self._tells)
        told = heard(self._hears, "a process shows its question, or is gone")
        os.close(self._hears)
        return bool(told)


def answer_anew(case: Case) -> str:
    """Answer what is open while the run waits for it; what there was to be found. Nothing, where the run went on."""

    async def work() -> str:
        broker = Broker(open_store(case.url))
        await broker.sweep()
        waiting = [one for one in await requests_of(case, broker) if one.state is State.PENDING]
        found = await look(case, broker) if waiting else ""
        for request in waiting:
            await settle(case, broker, request)
        broker.store.close()
        return found

    return asyncio.run(work())


def finish(case: Case, die_at: str = "") -> dict[str, Any]:
    """The restart: sweep, say what is known of unknown outcomes, answer, resume, until the run is over."""
    return asyncio.run(_finish(case, Faults(case.log, "restart", die_at)))


async def _finish(case: Case, faults: Faults) -> dict[str, Any]:
    # At a terminal one resumes where one can be asked; elsewhere one answers, and resumes what was answered.
    store = FaultyStore(open_store(case.url), faults, lazy=not case.timing)
    stage = Stage(case, store, faults, wait="inline" if case.does.resumes_in_place else "suspend")
    stage.at_terminal = case.does.resumes_in_place
    broker = stage.broker
    lost = broken_promises(case, await kept_run_of(case, broker), await requests_of(case, broker))
    await broker.sweep()
    found = await look(case, broker)
    output: Any = None
    for _ in range(MOST_ROUNDS):
        await broker.sweep()
        for request in await requests_of(case, broker):
            if not (case.does.resumes_in_place and request.state is State.PENDING):
                await settle(case, broker, request)
        run = await kept_run_of(case, broker)
        if run is not None and run.state is not RunState.GOING:
            break
        output = await (begin(stage) if run is None else take_up(stage))
    problems = [*lost, *await problems_of(case, broker, output)]
    broker.store.close()
    ran = {tool: sum(line["tool"] == tool for line in effects_of(case)) for tool in TOOLS}
    return {"found": found, "ran": ran, "problems": problems}


async def settle(case: Case, broker: Broker, request: ApprovalRequest) -> None:
    """Say about a request what people have to say."""
    if request.state is State.UNKNOWN:
        happened = any(line["key"] == key_of(request) for line in effects_of(case))
        await broker.tell(request.id, happened=happened, by=OPERATOR)
    if request.state is State.PENDING:
        voted = {vote.by.name for vote in request.votes}
        for person in [name for name in ("ana", "ben") if name not in voted][: case.does.quorum - len(voted)]:
            await broker.answer(request.id, case.decide(request), by=Actor(name=person, via="test"))


async def requests_of(case: Case, broker: Broker) -> list[ApprovalRequest]:
    run = await kept_run_of(case, broker)
    return list(await broker.store.read(lambda tx: tx.requests.of(run=run.id))) if run is not None else []


async def look(case: Case, broker: Broker) -> str:
    """What a restart finds, in words."""
    run = await kept_run_of(case, broker)
    if run is None:
        return "nothing was kept"
    status = await broker.runs.status(run.id)
    return "; ".join([f"run {status.word}", *(_told(case, one) for one in await requests_of(case, broker))])


def _told(case: Case, request: ApprovalRequest) -> str:
    if request.state is State.PENDING and request.votes:
        return f"{request.tool_name} pending, {len(request.votes)} of {request.requirement.quorum} agreed"
    if request.state is State.UNKNOWN:
        happened = any(line["key"] == key_of(request) for line in effects_of(case))
        return f"{request.tool_name} unknown, and it {'happened' if happened else 'did not happen'}"
    return f"{request.tool_name} {request.state}"
