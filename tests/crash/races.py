"""What many processes do at the same time. Each function is a whole race, for a process that may fork."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import partial
from typing import Any

from tests.crash.checks import about_the_record
from tests.crash.faults import Faults
from tests.crash.fork import Child, together
from tests.crash.stage import Stage, begin, kept_run_of, opened, take_up
from tests.crash.trips import Case, effects_of
from tests.matches import facts_of

from signoff.broker import Broker
from signoff.broker.deadlines import feed
from signoff.core.call import Call
from signoff.core.decision import ApprovalDecision, Remember
from signoff.core.people import Actor
from signoff.core.request import ApprovalRequest
from signoff.core.terms import Budget, Scope, Terms
from signoff.core.verdict import Effect, Requirement, Verdict
from signoff.errors import SignoffError
from signoff.store.store_factory import open_store
from signoff.testing import FakeClock

MANY = 8
ROUNDS = 20
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)

Outcome = list[str]
"""How somebody fared: `won` and whatever is known of that, or the error and what it says."""


def people(number: int) -> Actor:
    return Actor(name=f"person{number}", via="race")


def _call(number: int, **args: Any) -> Call:
    return Call(tool="pay", args={"amount": 30, **args}, call_id=f"call-{number}", run_id="race", schema_hash="s")


def _request(number: int, requirement: Requirement | None = None, **args: Any) -> ApprovalRequest:
    call = _call(number, **args)
    verdict = Verdict(effect=Effect.ASK, reason="race", requirement=requirement) if requirement else None
    return ApprovalRequest(tool_call_id=call.call_id, tool_name="pay", args=call.args, call=call, verdict=verdict)


def with_broker(url: str, work: Callable[[Broker], Awaitable[Any]], clock: FakeClock | None = None) -> Any:
    async def main() -> Any:
        async with opened(url) as store:
            return await work(Broker(store, clock))

    return asyncio.run(main())


async def tried(doing: Awaitable[Any]) -> Outcome:
    """Whether it was the one that won."""
    try:
        value = await doing
    except SignoffError as error:
        return [type(error).__name__, str(error)]
    return ["won", str(value.id) if hasattr(value, "id") else ""]


def prepared(
    url: str, count: int, *, approve: bool = False, requirement: Requirement | None = None, clock: bool = False
) -> list[str]:
    """Open that many requests, in a process of its own; their ids."""

    async def work(broker: Broker) -> list[str]:
        found = await broker.open([_request(number, requirement) for number in range(count)])
        if approve:
            await asyncio.gather(
                *(broker.answer(one.id, ApprovalDecision(approved=True), by=Actor(name="ana")) for one in found)
            )
        return [one.id for one in found]

    return Child(with_broker, url, work, FakeClock(NOON) if clock else None).wait()


def everything(url: str) -> dict[str, Any]:
    """The store after a race."""

    async def work(broker: Broker) -> dict[str, Any]:
        entries = await broker.store.read(lambda tx: tx.record.entries())
        head = await broker.store.read(lambda tx: tx.record.head())
        ids = {entry.request for entry in entries if entry.request}
        requests = [await broker.get(one) for one in sorted(ids)]
        return {
            "record": list(about_the_record(entries, head)),
            "events": [[entry.kind, entry.request, entry.run] for entry in entries],
            "requests": {
                one.id: [str(one.state), one.decision.by.name if one.decision and one.decision.by else ""]
                for one in requests
            },
        }

    return Child(with_broker, url, work).wait()


# --- the races ---


def answers(url: str, count: int) -> dict[str, Any]:
    """Everybody answers every request: most of them one after the other, one of them several at a time."""
    ids = prepared(url, count)

    def answer_all(number: int, ready: Callable[[], None]) -> list[Outcome]:
        async def work(broker: Broker) -> list[Outcome]:
            decision, by = ApprovalDecision(approved=bool(number % 2)), people(number)
            fared: list[Outcome] = []
            for some in _rounds(ids):
                ready()
                if number:
                    fared += [await tried(broker.answer(one, decision, by=by)) for one in some]
                else:
                    fared += await asyncio.gather(*(tried(broker.answer(one, decision, by=by)) for one in some))
            return fared

        return with_broker(url, work)

    return {"ids": ids, "fared": together(MANY, answer_all, rounds=ROUNDS), **everything(url)}


def _rounds(ids: Sequence[str]) -> list[Sequence[str]]:
    """Some at a time: nobody gets far ahead of the others."""
    size = -(-len(ids) // ROUNDS)
    return [ids[size * number : size * (number + 1)] for number in range(ROUNDS)]


def claims(url: str, count: int) -> dict[str, Any]:
    """Everybody claims every approval."""
    ids = prepared(url, count, approve=True)

    def claim_all(number: int, ready: Callable[[], None]) -> list[Outcome]:
        async def work(broker: Broker) -> list[Outcome]:
            fared: list[Outcome] = []
            for some in _rounds(ids):
                ready()
                fared += [await tried(broker.claim(one)) for one in some]
            return fared

        return with_broker(url, work)

    return {"ids": ids, "fared": together(MANY, claim_all, rounds=ROUNDS), **everything(url)}


def quorum(url: str, count: int) -> dict[str, Any]:
    """Everybody agrees to requests that need two."""
    ids = prepared(url, count, requirement=Requirement(quorum=2))

    def agree(number: int, ready: Callable[[], None]) -> list[Outcome]:
        async def work(broker: Broker) -> list[Outcome]:
            decision, by = ApprovalDecision(approved=True), people(number)
            fared: list[Outcome] = []
            for some in _rounds(ids):
                ready()
                fared += [await tried(broker.answer(one, decision, by=by)) for one in some]
            return fared

        return with_broker(url, work)

    return {"ids": ids, "fared": together(MANY, agree, rounds=ROUNDS), **everything(url)}


def grants(url: str, *, max_uses: int | None, limit: int | None) -> dict[str, Any]:
    """Everybody uses a grant until it does not speak any longer."""

    async def remember(broker: Broker) -> None:
        [request] = await broker.open([_request(0)])
        budget = Budget(arg="amount", limit=Decimal(limit)) if limit is not None else None
        terms = Terms(scope=Scope.PROJECT, max_uses=max_uses, budget=budget)
        decision = ApprovalDecision(approved=True, remember=Remember.ALWAYS, terms=terms)
        await broker.answer(request.id, decision, by=Actor(name="ana"))

    Child(with_broker, url, remember).wait()

    def use(number: int, ready: Callable[[], None]) -> int:
        async def work(broker: Broker) -> int:
            places = {Scope.PROJECT: "project"}
            await broker.grants.list()
            ready()
            used = [await broker.grants.recall(facts_of(_call(number * 100 + turn)), places) for turn in range(5)]
            return sum(one is not None for one in used)

        return with_broker(url, work)

    used = together(MANY, use)

    async def count(broker: Broker) -> list[Any]:
        return [[one.used, str(one.spent)] for one in await broker.grants.list()]

    return {"used": used, "grants": Child(with_broker, url, count).wait(), **everything(url)}


def tells(url: str, count: int) -> dict[str, Any]:
    """Everybody says what became of calls whose process died: half of them that it happened, half that it did not."""
    ids = prepared(url, count, approve=True)

    def dies() -> None:
        async def work(broker: Broker) -> None:
            for one in ids:
                await broker.claim(one)
            os.kill(os.getpid(), signal.SIGKILL)

        with_broker(url, work)

    Child(dies).wait()

    def tell(number: int, ready: Callable[[], None]) -> list[Outcome]:
        async def work(broker: Broker) -> list[Outcome]:
            await broker.sweep()
            fared: list[Outcome] = []
            for some in _rounds(ids):
                ready()
                fared += [await tried(broker.tell(one, happened=bool(number % 2), by=people(number))) for one in some]
            return fared

        return with_broker(url, work)

    return {"ids": ids, "fared": together(MANY, tell, rounds=ROUNDS), **everything(url)}


def sweeps(url: str, count: int) -> dict[str, Any]:
    """Everybody sweeps, when a deadline has passed and a process that held claims has died."""
    requirement = Requirement(timeout=timedelta(minutes=1))
    due = prepared(url, count, requirement=requirement, clock=True)

    def dies() -> None:
        async def work(broker: Broker) -> None:
            found = await broker.open([_request(1_000 + number) for number in range(count)])
            for one in found:
                await broker.answer(one.id, ApprovalDecision(approved=True), by=Actor(name="ana"))
                await broker.claim(one.id)
            os.kill(os.getpid(), signal.SIGKILL)

        with_broker(url, work, FakeClock(NOON))

    Child(dies).wait()

    def sweep(number: int, ready: Callable[[], None]) -> list[list[str]]:
        async def work(broker: Broker) -> list[list[str]]:
            await broker.pending()
            ready()
            return [[one.id, str(one.state)] for one in await broker.sweep()]

        return with_broker(url, work, FakeClock(NOON + timedelta(minutes=1)))

    return {"due": due, "swept": together(MANY, sweep), **everything(url)}


def votes_and_time(url: str, count: int) -> dict[str, Any]:
    """Half of them answer in the last moment, half of them sweep in the first one after that."""
    ids = prepared(url, count, requirement=Requirement(timeout=timedelta(minutes=1)), clock=True)
    deadline = NOON + timedelta(minutes=1)

    def race(number: int, ready: Callable[[], None]) -> list[Outcome]:
        votes = bool(number % 2)

        async def work(broker: Broker) -> list[Outcome]:
            fared: list[Outcome] = []
            for some in _rounds(ids):
                ready()
                for one in some:
                    if votes:
                        decision = ApprovalDecision(approved=True)
                        fared.append(await tried(broker.answer(one, decision, by=people(number))))
                    else:
                        due = partial(feed, ledger=broker.ledger, request_id=one, now=deadline)
                        expired = await broker.store.write("expire", due)
                        fared.append(["won" if expired else "late", one])
            return fared

        return with_broker(url, work, FakeClock(deadline - timedelta(microseconds=1) if votes else deadline))

    return {"ids": ids, "fared": together(MANY, race, rounds=ROUNDS), **everything(url)}


def halts(url: str, count: int) -> dict[str, Any]:
    """Everybody claims, and one of them pulls the switch."""
    ids = prepared(url, count, approve=True)

    def race(number: int, ready: Callable[[], None]) -> list[Outcome]:
        async def work(broker: Broker) -> list[Outcome]:
            await broker.pending()
            ready()
            if not number:
                return [[await broker.switch.halt(by="ana")]]
            return [await tried(broker.claim(one)) for one in ids[number::MANY]]

        return with_broker(url, work)

    return {"ids": ids, "fared": together(MANY, race), **everything(url)}


# --- runs ---


def _paused(url: str, directory: str, count: int) -> list[Case]:
    """Runs that wait for nothing any longer: their call is approved."""
    cases = [
        Case(id=f"{directory} {number}", trip="suspended", url=url, directory=directory) for number in range(count)
    ]

    def work() -> None:
        async def pause() -> None:
            for case in cases:
                stage = Stage(case, open_store(url), Faults(case.log, "begin"))
                await begin(stage)
                run = await kept_run_of(case, stage.broker)
                assert run is not None
                [request] = await stage.broker.store.read(lambda tx, run=run: tx.requests.of(run=run.id))
                await stage.broker.answer(request.id, ApprovalDecision(approved=True), by=Actor(name="ana"))
                stage.broker.store.close()

        asyncio.run(pause())

    Child(work).wait()
    return cases


def resumes(url: str, directory: str, count: int, cancels: int = 0) -> dict[str, Any]:
    """Everybody resumes every run; some cancel them instead."""
    cases = _paused(url, directory, count)

    def race(number: int, ready: Callable[[], None]) -> list[Outcome]:
        async def main() -> list[Outcome]:
            stages = [Stage(case, open_store(url), Faults(case.log, str(number))) for case in cases]
            runs = [await kept_run_of(stage.case, stage.broker) for stage in stages]
            ready()
            fared: list[Outcome] = []
            for stage, run in zip(stages, runs, strict=True):
                assert run is not None
                stage.enter()
                doing = stage.broker.runs.cancel(run.id, by="ana") if number < cancels else take_up(stage)
                fared.append([*(await tried(doing)), run.id])
            for stage in stages:
                stage.broker.store.close()
            return fared

        return asyncio.run(main())

    fared = together(MANY, race)

    async def states(broker: Broker) -> dict[str, str]:
        return {run.id: str(run.state) for run in await broker.store.read(lambda tx: tx.runs.all())}

    lines = [line for line in effects_of(cases[0]) if line["tool"] == "pay"]
    return {"fared": fared, "lines": lines, "runs": Child(with_broker, url, states).wait(), **everything(url)}


def in_one_process(url: str, directory: str, count: int) -> dict[str, Any]:
    """Many tasks of one process resume the same run."""
    cases = _paused(url, directory, 1)

    def race() -> list[Outcome]:
        async def main() -> list[Outcome]:
            stage = Stage(cases[0], open_store(url), Faults(cases[0].log, "tasks"))
            fared = await asyncio.gather(*(tried(take_up(stage)) for _ in range(count)))
            stage.broker.store.close()
            return fared

        return asyncio.run(main())

    return {"fared": Child(race).wait(), "lines": effects_of(cases[0]), **everything(url)}
