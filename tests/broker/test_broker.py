"""The broker: the only writer, over any store; whoever waits is woken."""

from __future__ import annotations

import asyncio
import json
import os
import threading
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from signoff.broker import Broker, new_id
from signoff.broker.journal import LONGEST, Journal
from signoff.core.audit_text import account_of
from signoff.core.call import Call
from signoff.core.decision import ApprovalDecision
from signoff.core.people import Actor
from signoff.core.redact import Redactor
from signoff.core.request import ApprovalRequest, State
from signoff.core.verdict import Effect, Requirement, Verdict
from signoff.errors import AlreadySettled, AlreadySpent, UnknownRequest
from signoff.large_work import LARGE
from signoff.store.memory_store import MemoryStore
from signoff.store.sqlite import SqliteStore
from signoff.testing import FakeClock

YES, NO = ApprovalDecision(approved=True), ApprovalDecision(approved=False)


def people(count: int) -> list[Actor]:
    return [Actor(name=f"p{number}") for number in range(count)]


def question(timeout: timedelta | None = None, call_id: str = "c1") -> ApprovalRequest:
    return ApprovalRequest(
        tool_call_id=call_id,
        tool_name="pay",
        args={"amount": 5},
        call=Call(tool="pay", args={"amount": 5}, conversation_id="conv", call_id=call_id),
        verdict=Verdict(effect=Effect.ASK, requirement=Requirement(timeout=timeout)),
    )


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def broker(clock: FakeClock) -> Broker:
    return Broker(MemoryStore(), clock)


async def test_an_opened_request_has_an_id_a_time_and_a_deadline(broker: Broker, clock: FakeClock) -> None:
    [request] = await broker.open([question(timedelta(minutes=5))])
    assert request.id
    assert request.opened_at == clock.now()
    assert request.deadline == clock.now() + timedelta(minutes=5)
    assert list(await broker.pending()) == [request] == list(await broker.of_conversation("conv"))


async def test_of_answers_in_the_same_instant_one_wins_and_the_others_hear_who(broker: Broker) -> None:
    [request] = await broker.open([question()])
    answers = [broker.answer(request.id, YES if n % 2 else NO, by=who) for n, who in enumerate(people(10))]
    results = await asyncio.gather(*answers, return_exceptions=True)
    winners = [one for one in results if isinstance(one, ApprovalRequest)]
    losers = [one for one in results if isinstance(one, AlreadySettled)]
    assert len(winners) == 1
    assert len(losers) == 9
    assert winners[0].decision is not None
    assert winners[0].decision.by is not None
    assert all(winners[0].decision.by.name in str(loser) for loser in losers)


def test_of_answers_from_many_threads_one_wins(broker: Broker) -> None:
    [request] = asyncio.run(broker.open([question()]))
    asyncio.run(broker.answer(request.id, YES, by=people(1)[0]))
    claims: list[object] = []
    start = threading.Barrier(16)

    def claim() -> None:
        start.wait()
        try:
            claims.append(asyncio.run(broker.claim(request.id)))
        except AlreadySpent as spent:
            claims.append(spent)

    threads = [threading.Thread(target=claim) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(isinstance(one, ApprovalRequest) for one in claims) == 1
    assert len(claims) == 16


async def test_a_waiter_is_woken_by_the_answer(broker: Broker) -> None:
    [request] = await broker.open([question()])
    waiting = [asyncio.ensure_future(broker.wait(request.id)) for _ in range(3)]
    await asyncio.sleep(0)
    await broker.answer(request.id, YES, by=people(1)[0])
    assert {one.state for one in await asyncio.gather(*waiting)} == {State.APPROVED}
    assert (await broker.wait(request.id)).state is State.APPROVED, "no waiting where it is settled"


async def test_a_waiter_in_another_event_loop_is_woken_too(broker: Broker) -> None:
    [request] = await broker.open([question()])
    waiting = asyncio.ensure_future(broker.wait(request.id))
    await asyncio.sleep(0)
    await asyncio.to_thread(lambda: asyncio.run(broker.answer(request.id, NO, by=people(1)[0])))
    assert (await waiting).state is State.DENIED


async def test_a_waiter_expires_the_request_when_its_time_comes(broker: Broker, clock: FakeClock) -> None:
    [request] = await broker.open([question(timedelta(minutes=5))])
    waiting = asyncio.ensure_future(broker.wait(request.id))
    await asyncio.sleep(0)
    clock.advance(299)
    await asyncio.sleep(0)
    assert not waiting.done()
    clock.advance(1)
    assert (await waiting).state is State.EXPIRED


async def test_time_is_fed_to_everything_that_is_due(broker: Broker, clock: FakeClock) -> None:
    minutes = timedelta(minutes=1)
    await broker.open([question(5 * minutes, "a"), question(None, "b"), question(9 * minutes, "c")])
    assert await broker.sweep() == []
    clock.advance(timedelta(minutes=6))
    assert [one.state for one in await broker.sweep()] == [State.EXPIRED]
    assert len(await broker.pending()) == 2


async def test_what_became_of_a_call_names_the_call_and_the_process(tmp_path: Path) -> None:
    broker = Broker(SqliteStore(tmp_path / "approvals.db"))
    ran, failed = await broker.open([question(), question(call_id="c2")])
    for request, error in ((ran, None), (failed, "no money")):
        await broker.answer(request.id, YES, by=people(1)[0])
        await broker.claim(request.id)
        broker.finish(request.id, preview="paid 5", error=error)
    entries = await broker.store.read(lambda tx: tx.record.entries())
    broker.store.close()
    told = [account_of(one).what for one in entries if one.kind in ("claimed", "ran", "failed")]
    by = f"by process {os.getpid()} on {os.uname().nodename}"
    assert told == [by, "pay(amount=5): paid 5", by, "pay(amount=5): no money"]


async def test_an_unknown_id_says_so(broker: Broker) -> None:
    with pytest.raises(UnknownRequest, match="nope"):
        await broker.answer("nope", YES, by=people(1)[0])


async def test_a_call_is_asked_about_once_unless_the_question_was_withdrawn(broker: Broker) -> None:
    [first] = await broker.open([question()])
    assert [one.id for one in await broker.open([question()])] == [first.id]
    await broker.answer(first.id, YES, by=people(1)[0])
    assert [one.id for one in await broker.open([question()])] == [first.id]
    await broker.claim(first.id)
    assert [one.id for one in await broker.open([question()])] == [first.id]
    broker.finish(first.id)
    [again] = await broker.open([question()])
    assert again.state is State.SUCCEEDED and await broker.about(again.call.key if again.call else "") == again
    [denied] = await broker.open([question(call_id="denied")])
    await broker.answer(denied.id, NO, by=people(1)[0])
    assert [one.id for one in await broker.open([question(call_id="denied")])] == [denied.id]
    [other] = await broker.open([question(call_id="other")])
    await broker.cancel(other.id, "moot")
    assert [one.id for one in await broker.open([question(call_id="other")])] != [other.id]


async def test_the_same_id_is_not_stored_twice(broker: Broker) -> None:
    [request] = await broker.open([question()])
    other = question(call_id="c2").changed_to(id=request.id)
    with pytest.raises(Exception, match=request.id):
        await broker.open([question(call_id="c3"), other])
    assert len(await broker.pending()) == 1, "all or none"


def test_ids_are_short_and_hard_to_misread() -> None:
    ids = {new_id() for _ in range(1000)}
    assert len(ids) == 1000
    assert not set("".join(ids)) & set("0o1li")


async def test_a_large_call_is_written_down_before_the_transaction(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a transaction nobody else could write meanwhile, on SQLite not even another process."""
    threads = list[str]()
    call_of = Journal.call_of

    def noted(self: Journal, request: ApprovalRequest) -> Mapping[str, Any]:
        threads.append(threading.current_thread().name)
        return call_of(self, request)

    monkeypatch.setattr(Journal, "call_of", noted)
    args, broker = {"text": "a " * LARGE}, Broker(SqliteStore(tmp_path / "s.db"))
    [request] = await broker.open([replace(question(), args=args, call=Call(tool="pay", args=args, call_id="c1"))])
    assert threads == ["signoff-large-work_0"]
    assert request.title.startswith("pay(text=")
    [*_, event] = await broker.store.read(lambda tx: tx.record.entries(request=request.id))
    broker.store.close()
    assert json.loads(event.body)["args"] == {"text": f"{'a ' * 2_000}… ({2 * LARGE:,} characters)"}


def test_of_a_long_text_no_more_is_read_than_is_needed_to_mask_what_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    read = list[int]()
    text = Redactor.text

    def noted(self: Redactor, one: str, path: str = "") -> str:
        read.append(len(one))
        return text(self, one, path)

    monkeypatch.setattr(Redactor, "text", noted)
    secret, token = "correct horse", f"ghp_{'a1B2' * 6}"
    long = f"{'x ' * 1_980}{token} {secret} ⟦masked 1: a⟧ {'y ' * 500_000}"
    kept = Journal((secret,)).args({"a": [long], "b": token, "password": long, "c": 7, "d": "x" * LONGEST})
    assert max(read) < 30_000
    assert kept["a"][0].startswith(f"{'x ' * 1_980}⟦masked 1")
    assert kept["a"][0].endswith(f"… ({len(long):,} characters)")
    assert len(kept["a"][0]) < LONGEST + 40
    assert kept["password"] == "⟦masked 4: password⟧"
    assert (kept["b"], kept["c"], kept["d"]) == ("⟦masked 3: GitHub token⟧", 7, "x" * LONGEST)
    block = f"-----BEGIN PRIVATE KEY-----\n{'MIIa' * 9_000}\n-----END PRIVATE KEY-----"
    assert "MII" not in str(Journal().args({"a": block, "b": f"{block} {'z ' * 9_000}", "c": f"a {block}"}))
