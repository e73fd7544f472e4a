"""What is remembered in a store: with the answer it comes from, as far as it says, counted before it is used."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.broker.conftest import Opens, ask, kinds
from tests.matches import ANY, below, facts_of, match, up_to
from tests.profiles import examples

from signoff.broker import Broker
from signoff.core.call import Call
from signoff.core.decision import ApprovalDecision, Remember
from signoff.core.grant import Grant
from signoff.core.people import Actor, ActorKind
from signoff.core.request import ApprovalRequest, State
from signoff.core.terms import Budget, Scope, Terms
from signoff.core.verdict import OnTimeout, Requirement, Verdict
from signoff.errors import NotEntitled, RequestError, UnknownRequest
from signoff.policy.grant_text import grant_text
from signoff.store.memory_store import MemoryStore
from signoff.testing import FakeClock

ANA = Actor(name="ana")
MINUTE, DAY = timedelta(minutes=1), timedelta(days=1)
UP_TO_5 = match(to="bob", amount=up_to(5))
IN_DOCS = match(path=below("docs"), content=ANY)
SCHEMA = {"type": "object", "properties": {"to": {"type": "string"}, "amount": {"type": "number"}}}


def pay(amount: object = 5, to: str = "bob", **more: Any) -> Call:
    return Call(tool="pay", args={"to": to, "amount": amount}, **more)


def yes(**terms: Any) -> ApprovalDecision:
    return ApprovalDecision(approved=True, terms=Terms(**terms))


def no(**terms: Any) -> ApprovalDecision:
    return ApprovalDecision(approved=False, note="never", terms=Terms(**terms))


async def remember(broker: Broker, decision: ApprovalDecision, call_id: str = "c1", **more: Any) -> Grant:
    """Ask, answer so, and look at what was kept of it."""
    request = await ask(broker, call_id, **more)
    await broker.answer(request, decision, by=ANA)
    return (await broker.grants.list())[-1]


async def recall(broker: Broker, call: Call, **places: str) -> Grant | None:
    return await broker.grants.recall(facts_of(call), {Scope(name): where for name, where in places.items()})


# --- how it is made ---


async def test_it_is_kept_with_the_answer_and_the_record_says_exactly_what(broker: Broker) -> None:
    grant = await remember(broker, yes(match=UP_TO_5, max_uses=3), schema_hash="s")
    assert await kinds(broker) == ["asked", "voted", "settled", "granted"]
    [entry] = [one for one in await broker.store.read(lambda tx: tx.record.entries()) if one.kind == "granted"]
    assert json.loads(entry.body) == {"grant": grant.id, "text": grant_text(grant), "by": "ana"}
    assert (grant.match, grant.max_uses, grant.by, grant.schema_hash) == (UP_TO_5, 3, "ana", "s")


async def test_an_answer_that_does_not_settle_is_not_remembered_yet(broker: Broker) -> None:
    request = await ask(broker, need=Requirement(quorum=2))
    said = ApprovalDecision(approved=True, remember=Remember.ALWAYS)
    await broker.answer(request, said, by=ANA)
    await broker.answer(request, said, by=Actor(name="ben"))
    assert not await broker.grants.list(), "nor where particular people are asked"


@pytest.mark.parametrize(
    ("need", "escalates"),
    [
        (Requirement(role="ops", quorum=2), False),
        (Requirement(quorum=2), False),
        (Requirement(not_by=frozenset({"requester"})), False),
        (Requirement(veto="security"), False),
        (Requirement(timeout=MINUTE, on_timeout=OnTimeout.ESCALATE, escalate_to="ops"), True),
    ],
)
async def test_nothing_is_remembered_where_particular_people_are_asked(
    broker: Broker, clock: FakeClock, need: Requirement, escalates: bool
) -> None:
    request = await ask(broker, need=need, requester="rita")
    if escalates:
        clock.advance(MINUTE)
    for decision in (yes(), no()):
        with pytest.raises(RequestError, match="cannot be remembered"):
            await broker.answer(request, decision, by=ANA)
    assert (await broker.get(request)).state is State.PENDING
    assert not await broker.grants.list()


async def test_what_is_in_doubt_is_not_remembered(broker: Broker) -> None:
    request = await ask(broker)

    def doubt(tx: Any) -> None:
        stored: ApprovalRequest = tx.requests.get(request)
        verdict = stored.verdict
        assert verdict is not None
        unsure = Verdict(effect=verdict.effect, errors=("a rule failed",))
        tx.requests.put(stored.changed_to(verdict=unsure, version=stored.version + 1))

    await broker.store.write("doubt", doubt)
    with pytest.raises(RequestError, match="cannot be remembered"):
        await broker.answer(request, yes(), by=ANA)
    await broker.answer(request, ApprovalDecision(approved=True, remember=Remember.ALWAYS), by=ANA)
    assert not await broker.grants.list()


TOO_BROAD = [
    match(to=ANY, amount=5),
    match(to="bob", amount=ANY),
    match(to="bob", amount=up_to(1_000_000)),
    match(to="bob", amount=up_to(True)),
    match(to="bob", amount={"<=": 5}),
    match(to="eve", amount=up_to(5)),
    match(amount=up_to(5)),
    match(),
    {},
    {"args": {"to": "bob", "amount": up_to(5)}},
    {**UP_TO_5, "toolset": "*"},
    match(to="bob", amount=up_to(5), more=ANY),
]


@pytest.mark.parametrize("wide", TOO_BROAD)
async def test_a_match_that_was_not_offered_is_refused(broker: Broker, wide: dict[str, Any]) -> None:
    request = await ask(broker)
    for decision in (yes(match=wide, max_uses=1), no(match=wide)):
        with pytest.raises(RequestError, match="broader"):
            await broker.answer(request, decision, by=ANA)
    assert (await broker.get(request)).state is State.PENDING, "and nothing was answered"
    assert await kinds(broker) == ["asked"]


async def test_one_is_not_true_although_python_thinks_so(broker: Broker) -> None:
    request = await ask(broker, args={"to": "bob", "amount": 5, "urgent": 1})
    lie = match(to="bob", amount=up_to(5), urgent=True)
    with pytest.raises(RequestError, match="broader"):
        await broker.answer(request, yes(match=lie, max_uses=1), by=ANA)


@pytest.mark.parametrize(
    ("terms", "why"),
    [
        ({"match": UP_TO_5}, "only with a limit"),
        ({"max_uses": 0}, "must be 1 or more, not 0"),
        ({"max_uses": -1}, "must be 1 or more, not -1"),
        ({"budget": Budget(arg="to", limit=Decimal(9))}, "'to' is not one"),
        ({"budget": Budget(arg="nothing", limit=Decimal(9))}, "'nothing' is not one"),
        ({"budget": Budget(arg="amount", limit=Decimal(0))}, "a budget must be a number above 0, not 0"),
        ({"budget": Budget(arg="amount", limit=Decimal(-5))}, "a budget must be a number above 0, not -5"),
        ({"budget": Budget(arg="amount", limit=Decimal("NaN"))}, "a budget must be a number above 0, not NaN"),
        (
            {"budget": Budget(arg="amount", limit=Decimal("Infinity"))},
            "a budget must be a number above 0, not Infinity",
        ),
        ({"scope": Scope.RUN}, "has no run"),
        ({"scope": Scope.SESSION}, "has no session"),
        ({"scope": Scope.WORKER}, "has no worker"),
    ],
)
async def test_limits_that_are_none(broker: Broker, terms: dict[str, Any], why: str) -> None:
    request = await ask(broker)
    with pytest.raises(RequestError, match=why):
        await broker.answer(request, yes(**terms), by=ANA)
    assert not await broker.grants.list()


async def test_a_budget_over_something_else_is_no_end_to_an_amount(broker: Broker) -> None:
    """The fee stays 0, so a budget of fees would never be used up, however often 5 are paid."""
    request = await ask(broker, args={"to": "bob", "amount": 5, "fee": 0})
    free = match(to="bob", amount=up_to(5), fee=0)
    with pytest.raises(RequestError, match="only with a limit"):
        await broker.answer(request, yes(match=free, budget=Budget(arg="fee", limit=Decimal(9))), by=ANA)
    await broker.answer(request, yes(match=free, budget=Budget(arg="amount", limit=Decimal(9))), by=ANA)


async def test_a_no_is_not_used_up(broker: Broker) -> None:
    request = await ask(broker)
    for terms in ({"max_uses": 1}, {"budget": Budget(arg="amount", limit=Decimal(5))}):
        with pytest.raises(RequestError, match="a denial cannot have a number of uses"):
            await broker.answer(request, no(**terms), by=ANA)
    with pytest.raises(RequestError, match="cannot cover only the first words"):
        await broker.answer(request, no(match=UP_TO_5), by=ANA)
    await broker.answer(request, no(), by=ANA)
    for _ in range(5):
        grant = await recall(broker, pay())
        assert grant is not None and not grant.approved


async def test_an_edited_call_is_remembered_as_it_runs_and_says_so(broker: Broker) -> None:
    request = await ask(broker, schema=SCHEMA, metadata={"summary": "pays 5 to bob"})
    edited = {"to": "bob", "amount": 4}
    await broker.answer(request, ApprovalDecision(approved=True, edited_args=edited, remember=Remember.ALWAYS), by=ANA)
    [grant] = await broker.grants.list()
    assert grant.covers_exactly(pay(4)) and not grant.covers_exactly(pay(5))
    assert grant.summary == 'pay(to="bob", amount=4)'
    [plain] = [await remember(broker, yes(), "c2", metadata={"summary": "pays 5 to bob"})]
    assert plain.summary == "pays 5 to bob"


@pytest.mark.parametrize(("kind", "kept"), [(ActorKind.PERSON, 1), (ActorKind.SCRIPT, 1), (ActorKind.MODE, 0)])
async def test_what_only_repeats_an_answer_is_not_remembered_again(broker: Broker, kind: ActorKind, kept: int) -> None:
    request = await ask(broker)
    await broker.answer(
        request, ApprovalDecision(approved=True, remember=Remember.ALWAYS), by=Actor(name="ana", kind=kind)
    )
    assert len(await broker.grants.list()) == kept


async def test_an_answer_that_is_refused_leaves_no_grant(broker: Broker) -> None:
    request = await ask(broker)
    with pytest.raises(NotEntitled):
        await broker.answer(request, yes(), by=Actor(name="judge", kind=ActorKind.MODEL))
    assert not await broker.grants.list()


async def test_where_answers_are_remembered_elsewhere_nothing_is_kept_here(another: Opens) -> None:
    broker = another(remembers=False)
    request = await ask(broker)
    await broker.answer(request, ApprovalDecision(approved=True, remember=Remember.ALWAYS), by=ANA)
    assert not await broker.grants.list()
    assert not Broker(MemoryStore()).remembers


# --- what it says, where and when ---


async def test_always_on_five_is_no_leave_for_a_million(broker: Broker) -> None:
    await remember(broker, ApprovalDecision(approved=True, remember=Remember.ALWAYS))
    assert await recall(broker, pay(5)) is not None
    assert await recall(broker, pay(5.0)) is not None
    for amount in (1_000_000, 5.01, "5", True, -5, None, float("nan"), 10**400):
        assert await recall(broker, pay(amount)) is None, amount
    assert await recall(broker, pay(5, "eve")) is None


async def test_a_no_comes_before_a_yes_and_what_need_not_be_counted_before_what_must(broker: Broker) -> None:
    counted = await remember(broker, yes(max_uses=1), "c1")
    free = await remember(broker, yes(), "c2")
    for _ in range(3):
        found = await recall(broker, pay())
        assert found is not None and found.id == free.id
    refusal = await remember(broker, no(), "c3")
    found = await recall(broker, pay())
    assert found is not None and found.id == refusal.id
    await broker.grants.revoke(refusal.id, by="ana")
    await broker.grants.revoke(free.id, by="ana")
    found = await recall(broker, pay())
    assert found is not None and (found.id, found.used) == (counted.id, 1)
    assert await recall(broker, pay()) is None


async def test_it_holds_where_it_was_given(broker: Broker) -> None:
    where = {"conversation_id": "s1", "worker": ("triage", "payer"), "run": "run1"}
    places = {"run": "run1", "session": "s1", "worker": "triage > payer"}
    for number, scope in enumerate((Scope.RUN, Scope.SESSION, Scope.WORKER)):
        grant = await remember(broker, yes(scope=scope), f"c{number}", **where)
        assert grant.where == places[scope]
        call = pay().changed(worker=("triage", "payer"))
        assert await recall(broker, call, **places) is not None
        assert await recall(broker, call, **{**places, scope: "elsewhere"}) is None
        assert await recall(broker, call) is None
        await broker.grants.revoke(grant.id, by="ana")


async def test_it_sleeps_while_the_tool_is_another(broker: Broker) -> None:
    await remember(broker, yes(), schema_hash="v1", toolset="bank")
    assert await recall(broker, pay(schema_hash="v1", toolset="bank")) is not None
    assert await recall(broker, pay(schema_hash="v2", toolset="bank")) is None
    assert await recall(broker, pay(schema_hash="v1", toolset="another")) is None
    assert await recall(broker, pay(schema_hash="v1", toolset="bank")) is not None, "and wakes when it is as it was"


async def test_a_path_that_leads_out_of_the_directory_is_not_covered(broker: Broker) -> None:
    await remember(broker, yes(match=IN_DOCS), tool="write", args={"path": "docs/a.md", "content": "x"})

    def write(path: str, **leads: Any) -> Call:
        return Call(tool="write", args={"path": path, "content": "y"}, **leads)

    assert await recall(broker, write("docs/b.md")) is not None
    for path in ("docs/../b.md", "docs//b.md", "/docs/b.md", "docs/b\\..\\c", "docs/b\0.md", "src/b.md"):
        assert await recall(broker, write(path)) is None, path
    assert await recall(broker, write("docs/b.md", resolved={"docs/b.md": "/etc/passwd"})) is None


@pytest.mark.parametrize(
    "said",
    [{}, {"args": {"to": {"regex": "("}}}, {"args": 5}, {"tool": "pay"}, {**UP_TO_5, "path": "docs/**"}],
    ids=str,
)
async def test_what_cannot_be_read_covers_nothing_and_says_so(broker: Broker, said: dict[str, Any]) -> None:
    """A match that another version wrote, or somebody else: nobody is let through by it, nor past a denial."""
    wide = Grant(id="wide", tool="pay", memory_key="", approved=True, scope=Scope.PROJECT, match=said)

    def put(grant: Grant) -> Any:
        return broker.store.write("put", lambda tx: tx.grants.add(grant))

    await put(wide)
    assert await recall(broker, pay()) is None
    assert broker.grants.why_silent(wide, broker.clock.now()) == "which calls it covers cannot be read"
    assert "which calls it covers cannot be read, so it covers none" in grant_text(wide)
    await put(replace(wide, id="good", match=UP_TO_5))
    assert await recall(broker, pay()) is not None
    await put(replace(wide, id="no", approved=False))
    assert await recall(broker, pay()) is None, "it may have been about this call"


async def test_it_ends(broker: Broker, clock: FakeClock) -> None:
    await remember(broker, yes(until=clock.now() + MINUTE))
    clock.advance(MINUTE - timedelta(microseconds=1))
    assert await recall(broker, pay()) is not None
    clock.advance(timedelta(microseconds=1))
    assert await recall(broker, pay()) is None


async def test_it_can_be_revoked_once_by_its_beginning_and_for_good(another: Opens, clock: FakeClock) -> None:
    broker, other = another(), another()
    grant = await remember(broker, yes())
    assert (await other.grants.get(grant.id[:6])).id == grant.id
    revoked = await other.grants.revoke(grant.id, by="ben")
    assert (revoked.revoked_by, revoked.revoked_at) == ("ben", clock.now())
    clock.advance(MINUTE)
    assert await broker.grants.revoke(grant.id, by="eve") == revoked
    assert await recall(broker, pay()) is None
    assert not await broker.grants.list()
    assert (await kinds(broker)).count("revoked") == 1
    for unknown in ("nothing", ""):
        with pytest.raises(UnknownRequest):
            await broker.grants.get(unknown)
    with pytest.raises(UnknownRequest):
        await broker.grants.revoke("nothing", by="ana")


# --- counting ---


async def test_uses_are_counted_and_on_record(broker: Broker) -> None:
    await remember(broker, yes(max_uses=2))
    assert [(await recall(broker, pay())) is not None for _ in range(4)] == [True, True, False, False]
    [grant] = await broker.grants.list()
    assert grant.used == 2
    assert (await kinds(broker)).count("grant used") == 2


async def test_a_daily_budget(broker: Broker, clock: FakeClock) -> None:
    """Refunds up to 10 a day."""
    await remember(broker, yes(match=UP_TO_5, budget=Budget(arg="amount", limit=Decimal(10), daily=True)))
    for day in range(3):
        said = [await recall(broker, pay(amount)) for amount in (5, 4.5, 1, -100, "0", 0.5, 0.01)]
        assert [one is not None for one in said] == [True, True, False, False, False, True, False], day
        clock.advance(DAY)


async def test_a_budget_in_all_is_not_refilled(broker: Broker, clock: FakeClock) -> None:
    await remember(broker, yes(match=UP_TO_5, budget=Budget(arg="amount", limit=Decimal(9))))
    assert await recall(broker, pay(5)) is not None
    clock.advance(400 * DAY)
    assert await recall(broker, pay(5)) is None
    assert await recall(broker, pay(-5)) is None
    assert await recall(broker, pay(4)) is not None
    assert await recall(broker, pay(0.001)) is None


async def test_of_many_at_once_no_more_than_were_granted(another: Opens) -> None:
    """Two processes, a hundred calls in the same instant, seven uses."""
    one, two = another(), another()
    await remember(one, yes(max_uses=7))
    found = await asyncio.gather(*(recall(broker, pay()) for _ in range(50) for broker in (one, two)))
    assert sum(grant is not None for grant in found) == 7
    assert sorted(grant.used for grant in found if grant is not None) == [1, 2, 3, 4, 5, 6, 7]
    [grant] = await two.grants.list()
    assert grant.used == 7
    assert (await kinds(two)).count("grant used") == 7


async def test_of_many_at_once_no_more_than_the_budget(another: Opens) -> None:
    one, two = another(), another()
    await remember(one, yes(match=UP_TO_5, budget=Budget(arg="amount", limit=Decimal(20))))
    amounts = [5, 4, 3, 2, 1, 0.5, -3, True, "5"] * 6
    found = await asyncio.gather(
        *(recall((one, two)[number % 2], pay(amount)) for number, amount in enumerate(amounts))
    )
    let_through = [amount for amount, grant in zip(amounts, found, strict=True) if grant is not None]
    assert all(type(amount) in (int, float) and amount > 0 for amount in let_through)
    assert 19 < sum(Decimal(str(amount)) for amount in let_through) <= 20
    [grant] = await one.grants.list()
    assert grant.spent == sum(Decimal(str(amount)) for amount in let_through)
    assert grant.used == len(let_through)


async def test_many_at_once_while_it_is_revoked(another: Opens) -> None:
    one, two = another(), another()
    grant = await remember(one, yes(max_uses=1_000))

    async def revoke() -> None:
        await asyncio.sleep(0)
        await two.grants.revoke(grant.id, by="ana")

    await asyncio.gather(revoke(), *(recall(broker, pay()) for _ in range(30) for broker in (one, two)))
    [kept] = await one.grants.list(revoked=True)
    assert kept.revoked_at is not None, "no use undoes it"
    told = Counter(await kinds(one))
    assert (told["revoked"], told["grant used"]) == (1, kept.used)
    assert await recall(one, pay()) is None


amounts = st.one_of(
    st.integers(-5, 30), st.floats(0, 12, width=16), st.sampled_from([True, "5", float("nan"), 10**400, -0.0, None])
)


@given(st.lists(st.tuples(amounts, st.integers(0, 30)), max_size=25), st.booleans(), st.none() | st.integers(1, 4))
@examples(600, daily=25)
def test_whatever_is_paid_and_whenever_no_limit_is_passed(
    payments: list[tuple[object, int]], daily: bool, uses: int | None
) -> None:
    async def spend() -> None:
        clock = FakeClock()
        broker = Broker(MemoryStore(record=True), clock)
        broker.remembers = True
        limits = {"max_uses": uses, "budget": Budget(arg="amount", limit=Decimal(12), daily=daily)}
        await remember(broker, yes(match=UP_TO_5, **limits))
        by_day: Counter[str] = Counter()
        for amount, hours in payments:
            clock.advance(timedelta(hours=hours))
            if await recall(broker, pay(amount)) is not None:
                assert isinstance(amount, int | float) and not isinstance(amount, bool) and 0 <= amount <= 5
                by_day[str(clock.now().date()) if daily else ""] += Decimal(repr(amount))  # type: ignore[assignment]
                by_day["uses"] += 1
        assert uses is None or by_day["uses"] <= uses
        assert all(spent <= 12 for day, spent in by_day.items() if day != "uses")

    asyncio.run(spend())
