"""What every store promises about what it keeps: each method of the parts of a `Transaction`, on every store."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from datetime import timedelta
from operator import attrgetter
from typing import Any, TypeVar

import pytest
from tests.contracts import samples
from tests.contracts.samples import NOON, at, chained, draft, grant, request, run, segment
from tests.matches import ANY, match

from signoff.core.call import Call, Veiled
from signoff.core.decision import ApprovalDecision
from signoff.core.inbox_row import Item
from signoff.core.lifecycle import Assigned, Cancelled, Failed, OutcomeReported, Reminded, Succeeded, Voted
from signoff.core.people import Actor, ActorKind
from signoff.core.record import START, Checkpoint, Entry
from signoff.core.request import ApprovalRequest, State
from signoff.core.request_context import MOST_ANSWERS, NO_ANSWERS, EarlierAnswers, Tally
from signoff.core.run import RunState
from signoff.core.subject import Subject, SubjectKind
from signoff.core.verdict import Effect, Requirement, Verdict
from signoff.errors import Stale, StoreError
from signoff.ports import Store, Transaction

T = TypeVar("T")


async def put(store: Store, method: str, *values: Any) -> None:
    """Each value in a transaction of its own."""
    for value in values:

        def work(tx: Transaction, value: Any = value) -> None:
            attrgetter(method)(tx)(value)

        await store.write(method, work)


async def add(store: Store, *requests: ApprovalRequest) -> None:
    await put(store, "requests.add", *requests)


async def got(store: Store, method: str, *args: Any, **options: Any) -> Any:
    return await store.read(lambda tx: attrgetter(method)(tx)(*args, **options))


async def ids(store: Store, method: str, *args: Any, **options: Any) -> list[str]:
    return [one.id for one in await got(store, method, *args, **options)]


# --- requests ---


@pytest.mark.parametrize("step", range(len(samples.rich_life())))
async def test_a_request_comes_back_as_it_was_at_every_step_of_its_life(store: Store, step: int) -> None:
    life = samples.rich_life()[: step + 1]
    await add(store, life[0])
    await put(store, "requests.put", *life[1:])
    same(await got(store, "requests.get", "rich"), life[-1])


async def test_a_request_may_be_added_at_any_step_of_its_life(store: Store) -> None:
    last = samples.rich_life()[-1]
    await add(store, last)
    same(await got(store, "requests.get", "rich"), last)


@pytest.mark.parametrize("decision", samples.RICH_ENDINGS, ids=lambda one: str(one.ending))
async def test_a_request_comes_back_with_how_it_ended(store: Store, decision: Any) -> None:
    ended = request().changed_to(state=State(decision.ending), decision=decision)
    await add(store, ended)
    same(await got(store, "requests.get", ended.id), ended)


async def test_a_request_needs_only_the_fields_it_must_have(store: Store) -> None:
    bare = ApprovalRequest(id="bare", tool_call_id="", tool_name="")
    await add(store, bare)
    same(await got(store, "requests.get", "bare"), bare)
    assert await got(store, "requests.get", "unknown") is None
    assert await got(store, "requests.get", "") is None


def same(stored: ApprovalRequest | None, given: ApprovalRequest) -> None:
    """Equal in every field, and in what equality leaves out but an approval depends on."""
    assert stored is not None
    for field in dataclasses.fields(given):
        assert getattr(stored, field.name) == getattr(given, field.name), field.name
    assert stored == given
    if given.call is not None and stored.call is not None:
        assert dict(stored.call.resolved) == dict(given.call.resolved)
        assert (stored.call.key, stored.call.worker) == (given.call.key, given.call.worker)
        assert veiled(stored.call.args) == veiled(given.call.args)
    assert veiled(stored.args) == veiled(given.args)
    assert veiled(stored.effective_args) == veiled(given.effective_args)
    assert type(stored.state) is State
    assert [vote.principal for vote in stored.votes] == [vote.principal for vote in given.votes]
    assert stored.requirement == given.requirement
    assert repr(stored.effective_args) == repr(given.effective_args)  # 1 is not 1.0, True is not 1


async def test_a_request_whose_arguments_cannot_be_bound_is_kept_all_the_same(store: Store) -> None:
    odd = request(1, args={"half": samples.HALF, "infinite": float("inf"), "deep": nested(90)}, title=samples.HALF)
    await add(store, odd)
    assert await got(store, "requests.get", odd.id) == odd


def nested(depth: int) -> list[Any]:
    return [nested(depth - 1)] if depth else []


def veiled(args: Any) -> list[str]:
    return [name for name, value in args.items() if isinstance(value, Veiled)]


async def test_what_an_approval_is_bound_to_is_the_same_afterwards(store: Store) -> None:
    given = request(args={"n": [1, 2.5, 10**40, "é"], "secret": Veiled("<secret>")})
    await add(store, given)
    stored = await got(store, "requests.get", given.id)
    assert stored.binding == given.binding


async def test_a_second_request_with_the_same_id_is_refused(store: Store) -> None:
    await add(store, request(1))
    with pytest.raises(StoreError):
        await add(store, request(2, name="r0001"))
    assert (await got(store, "requests.get", "r0001")).args == {"n": 1}


@pytest.mark.parametrize("version", [0, 2, 7], ids=["the same", "one too far", "far too far"])
async def test_only_the_next_version_replaces_a_request(store: Store, version: int) -> None:
    await add(store, request())
    with pytest.raises(Stale):
        await put(store, "requests.put", request().changed_to(version=version, assigned="ben"))
    assert await got(store, "requests.get", "r0001") == request()


async def test_a_version_is_replaced_once(store: Store) -> None:
    await add(store, request())
    await put(store, "requests.put", samples.steps(request(), Assigned("ana")))
    with pytest.raises(Stale):
        await put(store, "requests.put", samples.steps(request(), Assigned("ben")))
    assert (await got(store, "requests.get", "r0001")).assigned == "ana"


async def test_an_unknown_request_cannot_be_replaced(store: Store) -> None:
    with pytest.raises(Stale):
        await put(store, "requests.put", request().changed_to(version=1))
    assert await got(store, "requests.get", "r0001") is None


async def test_replacing_twice_in_one_go_counts_twice(store: Store) -> None:
    await add(store, request())

    def work(tx: Transaction) -> list[str]:
        seen: list[str] = []
        for name in ("ana", "ben"):
            one = tx.requests.get("r0001")
            assert one is not None
            tx.requests.put(samples.steps(one, Assigned(name)))
            again = tx.requests.get("r0001")
            assert again is not None
            seen.append(again.assigned)
        return seen

    assert await store.write("assign twice", work) == ["ana", "ben"]
    stored = await got(store, "requests.get", "r0001")
    assert (stored.version, stored.assigned) == (2, "ben")


async def test_about_is_the_newest_request_about_a_call(store: Store) -> None:
    call = request(1).call
    assert call is not None
    assert await got(store, "requests.about", call.key) is None
    first = request(5, call=call)
    await add(store, first)
    await put(store, "requests.put", samples.steps(first, Cancelled("asked again")))
    await add(store, request(3, call=call), request(2, call=None))  # the last one added, whatever the clock said
    found = await got(store, "requests.about", call.key)
    assert found.id == "r0003"
    assert await got(store, "requests.about", "") is None
    assert await got(store, "requests.about", "run") is None


async def test_what_changes_nothing_about_the_call_leaves_about_alone(store: Store) -> None:
    call = request(1).call
    assert call is not None
    old, new = request(1), request(2, call=call)
    await add(store, old, new)
    await put(store, "requests.put", samples.steps(old, Cancelled("moot")))
    assert (await got(store, "requests.about", call.key)).id == "r0002"


async def test_open_requests_are_those_without_an_answer_oldest_first(store: Store) -> None:
    await add(store, request(3), request(1), request(4), request(2), request(5))
    await put(store, "requests.put", samples.approved(request(4)))
    asked = samples.approved(request(5))
    await put(store, "requests.put", asked, samples.claimed(asked), samples.lost(samples.claimed(asked)))
    assert await ids(store, "queue.open") == ["r0001", "r0002", "r0003"]
    assert await ids(store, "queue.open", limit=2) == ["r0001", "r0002"]
    assert await got(store, "queue.open", limit=1) == [request(1)]


async def test_what_is_asked_at_once_stays_in_order(store: Store) -> None:
    """A batch of calls is opened at one moment; people get it in the order the model wrote it."""
    names = ["z", "a", "m", "b", "y"]

    def work(tx: Transaction) -> None:
        for name in names:
            tx.requests.add(request(1, name=name))

    await store.write("ask", work)
    assert await ids(store, "queue.open") == names
    assert await ids(store, "queue.page", limit=10) == names
    assert await ids(store, "requests.of", conversation_id="conversation") == names
    assert await pages(store, 2) == names


# --- the inbox ---


async def pages(store: Store, size: int) -> list[str]:
    """The whole inbox, page by page."""
    seen: list[str] = []
    page: list[Item] = list(await got(store, "queue.page", limit=size))
    while page:
        assert len(page) <= size
        seen += [item.id for item in page]
        page = list(await got(store, "queue.page", limit=size, after=page[-1]))
    return seen


async def test_what_is_waited_for_until_it_is_settled_or_used(store: Store) -> None:
    plain, waited = request(1), request(2).changed_to(waiter="pröcess")
    await add(store, plain, waited)
    assert list(await got(store, "queue.awaited")) == [("r0002", "pröcess")]
    approved = samples.approved(waited).changed_to(version=1)
    await put(store, "requests.put", approved)
    assert list(await got(store, "queue.awaited")) == [("r0002", "pröcess")]
    await put(store, "requests.put", approved.changed_to(waiter="other", version=2))
    assert list(await got(store, "queue.awaited")) == [("r0002", "other")]
    await put(store, "requests.put", samples.claimed(approved).changed_to(version=3))
    assert list(await got(store, "queue.awaited")) == []
    assert (await got(store, "requests.get", "r0002")).waiter == "pröcess"


async def test_an_item_says_what_one_needs_to_choose(store: Store) -> None:
    life = samples.rich_life()
    await add(store, life[0])
    await put(store, "requests.put", life[1])
    [item] = await got(store, "queue.page", limit=10)
    assert item == Item(
        id="rich",
        state=State.PENDING,
        title="transfer 1 € to Zürich",
        tool="transfer",
        worker="triage > analyzer",
        run="run-row-1",
        role="boss",
        quorum=2,
        votes=0,
        assigned="Bén",
        opened_at=life[0].opened_at,
        deadline=at(900),
        escalated=True,
    )
    await put(store, "requests.put", *life[2:4])
    [item] = await got(store, "queue.page", limit=10)
    assert (item.votes, item.assigned, item.deadline) == (1, "", None)
    await put(store, "requests.put", life[4])
    assert await got(store, "queue.page", limit=10) == []


async def test_an_item_shows_nothing_that_was_not_made_to_be_shown(store: Store) -> None:
    await add(store, request(1, title="", summary="the password is hunter2"))
    [item] = await got(store, "queue.page", limit=10)
    assert item.title == ""


async def test_the_inbox_holds_what_waits_for_a_person(store: Store) -> None:
    unknown = samples.lost(samples.claimed(samples.approved(request(2))))
    await add(store, request(1), unknown, samples.approved(request(3)), samples.claimed(samples.approved(request(4))))
    items = await got(store, "queue.page", limit=10)
    assert [(item.id, item.state) for item in items] == [("r0001", State.PENDING), ("r0002", State.UNKNOWN)]
    happened = samples.steps(unknown, OutcomeReported(samples.ANA, happened=True))
    await put(store, "requests.put", happened)
    assert await ids(store, "queue.page", limit=10) == ["r0001"]


@pytest.mark.parametrize("size", [1, 2, 3, 7, 100])
async def test_pages_hold_everything_once_oldest_first(store: Store, size: int) -> None:
    moments = {f"n{n}": n // 3 for n in range(13)}  # three to a moment

    def work(tx: Transaction) -> None:
        for name in sorted(moments, key=lambda name: hash((name, 1))):
            tx.requests.add(request(moments[name], name=name))

    await store.write("ask", work)
    seen = await pages(store, size)
    assert sorted(seen) == sorted(moments)
    assert [moments[name] for name in seen] == sorted(moments.values())


async def test_a_page_goes_on_after_an_item_that_was_answered_meanwhile(store: Store) -> None:
    await add(store, *(request(n) for n in range(1, 5)))
    first = await got(store, "queue.page", limit=2)
    await put(store, "requests.put", samples.approved(request(2)))
    assert await ids(store, "queue.page", limit=5, after=first[-1]) == ["r0003", "r0004"]


async def test_nothing_is_nothing(store: Store) -> None:
    assert list(await got(store, "queue.page", limit=5)) == []
    assert list(await got(store, "queue.open")) == []
    assert list(await got(store, "requests.of", conversation_id="x")) == []
    assert list(await got(store, "requests.of")) == []
    assert list(await got(store, "past.recent", limit=5)) == []
    assert list(await got(store, "requests.like", "x")) == []
    assert list(await got(store, "runs.like", "x")) == []
    assert list(await got(store, "queue.due", NOON)) == []
    assert list(await got(store, "queue.claimed")) == []
    assert list(await got(store, "grants.all")) == []
    assert list(await got(store, "grants.about", "deploy", "")) == []
    assert list(await got(store, "runs.all")) == []
    assert list(await got(store, "segments.chain", "")) == []
    assert list(await got(store, "delegations.current", NOON)) == []
    assert list(await got(store, "deliveries.find")) == []
    assert list(await got(store, "deliveries.find", channel="x", trail="x", request="x", live=True)) == []
    assert await got(store, "deliveries.get", "x", Subject(SubjectKind.REQUEST, "x")) is None
    assert list(await got(store, "record.entries")) == []
    assert list(await got(store, "record.touched", 0)) == []
    assert list(await got(store, "checkpoints.all")) == []
    assert await got(store, "record.head") == (0, START)
    assert [
        await got(store, name, "x")
        for name in ("results.get", "grants.get", "runs.get", "processes.get", "settings.get")
    ] == [None] * 5
    assert await got(store, "segments.has", "x") is False


# --- finding requests ---


async def test_requests_are_found_by_conversation_and_by_run(store: Store) -> None:
    await add(
        store,
        request(3, run="a"),
        request(1, run="b"),
        request(2, run="a", conversation="other"),
        request(4, conversation="", run=""),
        request(5, call=None, run="a"),
    )
    await put(store, "requests.put", samples.approved(request(3, run="a")))
    assert await ids(store, "requests.of", conversation_id="conversation") == ["r0001", "r0003"]
    assert await ids(store, "requests.of", run="a") == ["r0002", "r0003", "r0005"]
    assert await ids(store, "requests.of", run="a", conversation_id="conversation") == ["r0003"]
    assert list(await got(store, "requests.of")) == []


async def test_requests_that_were_asked_at_once_are_found(store: Store) -> None:
    when = samples.at(0.000_001)
    await add(
        store,
        request(3, run="a", opened_at=when),
        request(1, run="a", opened_at=when),
        request(2, run="a"),
        request(4, run="b", opened_at=when),
        request(5, run="", opened_at=when),
        request(6, run="a", opened_at=None),
        request(7, run="a", opened_at=when, conversation="other"),
    )
    await put(store, "requests.put", samples.approved(request(3, run="a", opened_at=when)))
    assert list(await got(store, "requests.opened_at", when, run="a")) == ["r0003", "r0001", "r0007"], (
        "in the order of asking"
    )
    assert list(await got(store, "requests.opened_at", None, run="a")) == ["r0006"]
    together = ["r0003", "r0001", "r0004", "r0005"]
    assert list(await got(store, "requests.opened_at", when, conversation_id="conversation")) == together
    assert list(await got(store, "requests.opened_at", samples.at(0), run="a")) == []
    assert list(await got(store, "requests.opened_at", when)) == []


def writes(number: int, path: str, content: str, tool: str = "write_file") -> ApprovalRequest:
    call = Call(tool=tool, args={"path": path, "content": content}, call_id=f"c{number}", run_id="run")
    return request(number, tool_name=tool, args=call.args, call=call)


def answered(one: ApprovalRequest, *, approved: bool = True, edited: Any = None, by: Actor = samples.ANA) -> Any:
    return samples.steps(one, Voted(by, ApprovalDecision(approved=approved, edited_args=edited)))


async def test_what_people_answered_before_is_counted_by_call_by_target_and_by_tool(store: Store) -> None:
    here = writes(99, "a", "x").call
    assert here is not None
    assert await got(store, "past.before", here) == (None, NO_ANSWERS)
    await add(store, *(answered(writes(number, "a", "x"), approved=number != 2) for number in range(3)))
    await add(store, answered(writes(3, "a", "other")), answered(writes(4, "b", "x"), approved=False))
    await add(store, answered(writes(5, "a", "x"), edited={"path": "b", "content": "x"}))
    await add(store, answered(writes(6, "a", "x", tool="append_file")))
    request, answers = await got(store, "past.before", here)
    assert request is None
    assert answers == EarlierAnswers(
        call=Tally(approved=2, denied=1), target=Tally(approved=3, denied=1), tool=Tally(approved=4, denied=2)
    )
    again = writes(7, "a", "x").call
    await add(store, writes(7, "a", "x"))
    assert again is not None
    assert await got(store, "past.before", again) == (writes(7, "a", "x"), answers), "with the request about it"


async def test_what_is_asked_again_is_found_with_the_newest_request(store: Store) -> None:
    first, second = request(1), request(2, call=request(1).call)
    await add(store, samples.steps(first, Cancelled("moot")), second)
    assert second.call is not None
    assert (await got(store, "past.before", second.call)).request == second


async def test_only_what_people_settled_is_counted(store: Store) -> None:
    script = Actor(name="script", kind=ActorKind.SCRIPT)
    mode = Actor(name="ana, remembered", kind=ActorKind.MODE)
    await add(store, answered(writes(0, "a", "x"), by=script), answered(writes(1, "a", "x"), by=mode))
    await add(store, writes(2, "a", "x"), samples.steps(writes(3, "a", "x"), Cancelled("moot")))
    call = writes(99, "a", "x").call
    assert call is not None
    assert (await got(store, "past.before", call)).answers == NO_ANSWERS
    await put(store, "requests.put", yes := answered(writes(2, "a", "x")))
    once = Tally(approved=1)
    assert (await got(store, "past.before", call)).answers == EarlierAnswers(call=once, target=once, tool=once)
    await put(store, "requests.put", samples.steps(yes, Cancelled("the run ended")))
    assert (await got(store, "past.before", call)).answers == NO_ANSWERS, "what was withdrawn came to nothing"


async def test_counting_ends_somewhere_and_a_call_that_has_no_form_is_like_no_other(store: Store) -> None:
    many = [answered(writes(number, "a", "x")) for number in range(MOST_ANSWERS + 5)]

    def work(tx: Transaction) -> None:
        for one in many:
            tx.requests.add(one)

    await store.write("many", work)
    call = writes(999, "a", "x").call
    assert call is not None
    most = Tally(approved=MOST_ANSWERS)
    assert (await got(store, "past.before", call)).answers == EarlierAnswers(call=most, target=most, tool=most)
    odd = call.changed(args={"path": float("inf")})
    await add(store, answered(writes(998, "a", "x").changed_to(call=odd), approved=False))
    other = call.changed(args={"path": float("nan")}, call_id="other")
    told = (await got(store, "past.before", other)).answers
    assert told == EarlierAnswers(tool=Tally(approved=MOST_ANSWERS, denied=1))


async def test_recent_is_what_waits_for_nobody_those_asked_last_first(store: Store) -> None:
    unknown = samples.lost(samples.claimed(samples.approved(request(6))))
    denied = samples.steps(request(1), Cancelled("moot"))
    await add(store, request(5), denied, samples.claimed(samples.approved(request(3))), request(2), unknown)
    assert await ids(store, "past.recent", limit=9) == ["r0003", "r0001"]  # as they came, whatever the clock said
    await put(store, "requests.put", samples.approved(request(5)))
    assert await ids(store, "past.recent", limit=9) == ["r0003", "r0001", "r0005"]
    assert await ids(store, "past.recent", limit=2) == ["r0003", "r0001"]
    assert await ids(store, "past.recent", limit=0) == []
    assert (await got(store, "past.recent", limit=9))[1] == denied
    await put(store, "requests.put", samples.steps(unknown, OutcomeReported(samples.ANA, happened=True)))
    assert await ids(store, "past.recent", limit=1) == ["r0006"]


async def test_ids_are_found_by_how_they_begin(store: Store) -> None:
    await add(store, *(request(n, name=name) for n, name in enumerate(["ab1", "ab2", "Ab3", "a_b", "a%b", "zz"])))
    await put(store, "runs.add", run(1, id="ab7"), run(2, id="b"))
    assert list(await got(store, "requests.like", "ab")) == ["ab1", "ab2"]
    assert list(await got(store, "runs.like", "ab")) == ["ab7"]
    assert list(await got(store, "runs.like", "")) == ["ab7", "b"]
    assert list(await got(store, "requests.like", "ab2")) == ["ab2"]
    assert list(await got(store, "requests.like", "a_")) == ["a_b"]
    assert list(await got(store, "requests.like", "a%")) == ["a%b"]
    assert list(await got(store, "requests.like", "A")) == ["Ab3"]
    assert list(await got(store, "requests.like", "b1")) == []
    assert len(await got(store, "requests.like", "a", limit=3)) == 3
    assert list(await got(store, "requests.like", "ab\x00")) == []
    assert len(await got(store, "requests.like", "")) == 5


async def test_due_is_what_has_a_deadline_or_a_reminder_that_has_come(store: Store) -> None:
    await add(
        store,
        request(1, deadline=at(100)),
        request(2, deadline=at(200), remind_at=at(50)),
        request(3),
        request(4, deadline=at(10)),
        request(5, remind_at=at(100.000_001), deadline=at(100.000_001)),
    )
    await put(store, "requests.put", samples.steps(request(4, deadline=at(10)), Cancelled("moot")))
    assert list(await got(store, "queue.due", at(49))) == []
    assert list(await got(store, "queue.due", at(50))) == ["r0002"]
    assert sorted(await got(store, "queue.due", at(100))) == ["r0001", "r0002"]
    assert sorted(await got(store, "queue.due", at(100.000_001))) == ["r0001", "r0002", "r0005"]
    await put(store, "requests.put", samples.steps(request(2, deadline=at(200), remind_at=at(50)), Reminded()))
    assert sorted(await got(store, "queue.due", at(199))) == ["r0001", "r0005"]
    assert sorted(await got(store, "queue.due", at(200))) == ["r0001", "r0002", "r0005"]


async def test_claimed_says_what_runs_and_where(store: Store) -> None:
    running = [samples.claimed(samples.approved(request(n)), f"process {n}") for n in range(1, 5)]
    await add(store, *running, samples.approved(request(5)), request(6))
    await put(store, "requests.put", samples.steps(running[0], Succeeded()), samples.steps(running[1], Failed("oops")))
    await put(store, "requests.put", samples.lost(running[2]))
    assert list(await got(store, "queue.claimed")) == [("r0004", "process 4")]


async def test_a_result_is_kept_byte_by_byte(store: Store) -> None:
    await add(store, request(1), request(2))
    everything = bytes(range(256)) * 1_000

    def work(tx: Transaction) -> None:
        tx.results.put("r0001", everything)
        tx.results.put("r0002", b"")

    await store.write("keep", work)
    assert await got(store, "results.get", "r0001") == everything
    assert await got(store, "results.get", "r0002") == b""
    assert type(await got(store, "results.get", "r0002")) is bytes
    await store.write("keep again", lambda tx: tx.results.put("r0001", b"other"))
    assert await got(store, "results.get", "r0001") == b"other"
    assert await got(store, "results.get", "r0003") is None
    with pytest.raises(StoreError):
        await store.write("keep", lambda tx: tx.results.put("r0003", b"of nothing"))


# --- grants ---


async def test_a_grant_comes_back_as_it_was(store: Store) -> None:
    plain = dataclasses.replace(samples.RICH_GRANT, id="g-plain", match=None, memory_key="k", budget=None, until=None)
    await put(store, "grants.add", samples.RICH_GRANT, plain, grant(1))
    assert await got(store, "grants.get", "g-rich") == samples.RICH_GRANT
    assert str((await got(store, "grants.get", "g-rich")).spent) == "12.340"
    assert await got(store, "grants.get", "g-plain") == plain
    assert await got(store, "grants.get", "g0001") == grant(1)
    assert await got(store, "grants.get", "unknown") is None


async def test_grants_are_found_by_exact_arguments_or_as_matches_of_the_tool(store: Store) -> None:
    anything = match(n=ANY)
    await put(
        store,
        "grants.add",
        grant(1),
        grant(2),
        grant(3, memory_key="key1", revoked_at=at(1)),
        grant(4, memory_key="", match=anything),
        grant(5, memory_key="", match=anything, tool="other"),
        grant(6, memory_key="", match=match(), revoked_at=at(1)),
        grant(7, memory_key="", match=match()),
        grant(8, memory_key="key1", approved=False),
        grant(9, memory_key="key1", tool="other"),
    )
    assert await ids_of_grants(store, "deploy", "key1") == ["g0001", "g0004", "g0007", "g0008"]
    assert await ids_of_grants(store, "deploy", "key9") == ["g0004", "g0007"]
    assert await ids_of_grants(store, "other", "key1") == ["g0005", "g0009"]
    assert await ids_of_grants(store, "Deploy", "key1") == []
    await put(store, "grants.put", grant(1, revoked_at=at(5), revoked_by="ana"))
    assert await ids_of_grants(store, "deploy", "key1") == ["g0004", "g0007", "g0008"]


async def ids_of_grants(store: Store, tool: str, key: str) -> list[str]:
    return sorted(await ids(store, "grants.about", tool, key))


async def test_grants_are_listed_oldest_first_with_the_revoked_ones_where_asked(store: Store) -> None:
    await put(store, "grants.add", grant(2), grant(1), grant(3, revoked_at=at(1)))
    assert await ids(store, "grants.all") == ["g0002", "g0001"]
    assert await ids(store, "grants.all", revoked=True) == ["g0002", "g0001", "g0003"]


async def test_a_grant_is_replaced_by_what_is_put(store: Store) -> None:
    await put(store, "grants.add", grant(1))
    used = grant(1, used=3, spent=samples.RICH_GRANT.spent, spent_on="2026-01-01")
    await put(store, "grants.put", used)
    assert await got(store, "grants.get", "g0001") == used
    assert await got(store, "grants.about", "deploy", "key1") == [used]
    assert await got(store, "grants.all") == [used]
    await put(store, "grants.put", grant(1, tool="other", memory_key="key7"))
    assert await ids_of_grants(store, "deploy", "key1") == []
    assert await ids_of_grants(store, "other", "key7") == ["g0001"]


async def test_a_second_grant_with_the_same_id_is_refused(store: Store) -> None:
    await put(store, "grants.add", grant(1))
    with pytest.raises(StoreError):
        await put(store, "grants.add", grant(1, tool="other"))
    assert await got(store, "grants.all") == [grant(1)]


# --- runs ---


async def test_a_run_comes_back_as_it_was(store: Store) -> None:
    await put(store, "runs.add", samples.RICH_RUN, run(1))
    assert await got(store, "runs.get", "run-rich") == samples.RICH_RUN
    assert await got(store, "runs.get", "run0001") == run(1)
    assert await got(store, "runs.get", "unknown") is None


async def test_a_run_is_replaced_by_what_is_put(store: Store) -> None:
    await put(store, "runs.add", run(1))
    changed = dataclasses.replace(samples.RICH_RUN, id="run0001")
    await put(store, "runs.put", changed)
    assert await got(store, "runs.get", "run0001") == changed
    assert await got(store, "runs.all") == [changed]


async def test_a_second_run_with_the_same_id_is_refused(store: Store) -> None:
    await put(store, "runs.add", run(1))
    with pytest.raises(StoreError):
        await put(store, "runs.add", run(1, prompt="other"))
    assert await got(store, "runs.all") == [run(1)]


async def test_runs_are_listed_newest_first(store: Store) -> None:
    await put(store, "runs.add", *(run(n) for n in range(1, 5)))
    await put(store, "runs.put", run(2, state=RunState.DONE), run(1, epoch=2))
    assert await ids(store, "runs.all") == ["run0004", "run0003", "run0002", "run0001"]
    assert await ids(store, "runs.all", going=True) == ["run0004", "run0003", "run0001"]
    assert await ids(store, "runs.all", limit=2) == ["run0004", "run0003"]
    assert await ids(store, "runs.all", going=True, limit=1) == ["run0004"]
    await put(store, "runs.put", run(2, state=RunState.GOING))
    assert len(await got(store, "runs.all", going=True)) == 4


async def test_segments_make_chains_with_branches(store: Store) -> None:
    first = segment("", b"first")
    second = segment(first.id, bytes(range(256)))
    third, branch = segment(second.id, b"third"), segment(second.id, b"")
    await put(store, "segments.add", first, second, third, branch, segment("", b"another"))
    assert list(await got(store, "segments.chain", third.id)) == [first, second, third]
    assert list(await got(store, "segments.chain", branch.id)) == [first, second, branch]
    assert list(await got(store, "segments.chain", first.id)) == [first]
    assert list(await got(store, "segments.chain", "f" * 64)) == []
    assert await got(store, "segments.has", second.id) is True
    assert await got(store, "segments.has", "f" * 64) is False
    assert await got(store, "segments.has", "") is False


async def test_a_segment_that_is_there_is_left_alone(store: Store) -> None:
    first = segment("", b"first")

    def work(tx: Transaction) -> None:
        tx.segments.add(first)
        tx.segments.add(first)

    await store.write("twice", work)
    await put(store, "segments.add", dataclasses.replace(first, body=b"forged", count=9))
    assert list(await got(store, "segments.chain", first.id)) == [first]


async def test_a_long_history_comes_back_in_order(store: Store) -> None:
    chain = [segment("", b"0")]
    for n in range(1, 500):
        chain.append(segment(chain[-1].id, str(n).encode()))

    def work(tx: Transaction) -> None:
        for one in chain:
            tx.segments.add(one)

    await store.write("save", work)
    assert list(await got(store, "segments.chain", chain[-1].id)) == chain


# --- processes and people ---


async def test_a_process_says_that_it_lives(store: Store) -> None:
    later = dataclasses.replace(samples.PROCESS, seen_at=at(100))
    await put(store, "processes.put", samples.PROCESS)
    assert await got(store, "processes.get", "process-1") == samples.PROCESS
    await put(store, "processes.put", later, dataclasses.replace(later, id="process-2", pid=1))
    assert await got(store, "processes.get", "process-1") == later
    assert await got(store, "processes.get", "process-3") is None


async def test_delegations_are_those_that_hold_now(store: Store) -> None:
    ana, ben, eve = (
        samples.delegation("ana", "bén", 10, 20),
        samples.delegation("ben", "ana", 0, 15),
        samples.delegation("eve", "ana", 30, 40),
    )
    await put(store, "delegations.add", ana, ben, eve)
    held = {
        seconds: list(await got(store, "delegations.current", at(seconds)))
        for seconds in (0, 10, 14, 15, 19, 20, 30, 50)
    }
    assert held == {0: [ben], 10: [ana, ben], 14: [ana, ben], 15: [ana], 19: [ana], 20: [], 30: [eve], 50: []}


async def test_a_delegation_ends_early(store: Store) -> None:
    past, now, later, other = (
        samples.delegation("ana", "bén", 0, 9),
        samples.delegation("ana", "bén", 0, 20),
        samples.delegation("ana", "bén", 30, 40),
        samples.delegation("bén", "ana", 0, 50),
    )
    await put(store, "delegations.add", past, now, later, other)
    ended = await store.write("end", lambda tx: list(tx.delegations.end("Ana ", "BÉN", at(12))))
    assert ended == [now, later]
    assert await store.write("end", lambda tx: list(tx.delegations.end("ana", "bén", at(12)))) == []
    assert {n: list(await got(store, "delegations.current", at(n))) for n in (5, 11, 12, 35)} == {
        5: [past, dataclasses.replace(now, until=at(12)), other],
        11: [dataclasses.replace(now, until=at(12)), other],
        12: [other],
        35: [other],
    }


# --- the record ---


async def test_events_are_chained_across_transactions(store: Store) -> None:
    await put(
        store, "record.append", [draft(1)], [draft(2), draft(3)], [], [draft(4, kind="asked", request="r", run="x")]
    )

    def twice(tx: Transaction) -> tuple[tuple[int, str], list[Entry]]:
        tx.record.append([draft(5)])
        tx.record.append([draft(6)])
        return tx.record.head(), list(tx.record.entries(after=4))

    head, seen = await store.write("twice", twice)
    entries = list(await got(store, "record.entries"))
    chained(entries)
    assert [entry.body for entry in entries] == [f'{{"n":{n}}}' for n in range(1, 7)]
    assert seen == entries[4:]
    assert head == await got(store, "record.head") == (6, entries[-1].hash)
    assert entries[3] == entries[3]._replace(kind="asked", request="r", run="x", at="2026-01-01T12:00:04.000000Z")


async def test_events_keep_every_text(store: Store) -> None:
    body = {"text": samples.TEXT, "n": [10**30, 0.1, None, True], "é": {"": []}}
    await put(store, "record.append", [draft(kind="kïnd", request="r é", run="run é", body=body)])
    entries = list(await got(store, "record.entries", request="r é", run="run é"))
    chained(entries)
    assert len(entries) == 1


async def test_events_are_found_by_request_and_run_and_read_in_pages(store: Store) -> None:
    await put(
        store,
        "record.append",
        [draft(1, request="a", run="x"), draft(2, request="b", run="x"), draft(3), draft(4, request="a", run="y")],
    )

    async def seqs(**options: Any) -> list[int]:
        return [entry.seq for entry in await got(store, "record.entries", **options)]

    assert await seqs() == [1, 2, 3, 4]
    assert await seqs(after=2) == [3, 4]
    assert await seqs(after=1, limit=2) == [2, 3]
    assert await seqs(limit=0) == []
    assert await seqs(after=9) == []
    assert await seqs(request="a") == [1, 4]
    assert await seqs(run="x") == [1, 2]
    assert await seqs(request="a", run="y") == [4]
    assert await seqs(request="a", after=1) == [4]
    assert await seqs(request="a", limit=1) == [1]
    assert await seqs(request="unknown") == []


async def test_touched_names_each_request_once(store: Store) -> None:
    await put(store, "record.append", [draft(1, request="a"), draft(2, request="b"), draft(3), draft(4, request="a")])
    assert sorted(await got(store, "record.touched", 0)) == ["a", "b"]
    assert sorted(await got(store, "record.touched", 1)) == ["a", "b"]
    assert list(await got(store, "record.touched", 2)) == ["a"]
    assert list(await got(store, "record.touched", 4)) == []
    assert list(await got(store, "record.touched", 99)) == []


async def test_an_event_is_kept_whatever_it_holds(store: Store) -> None:
    await put(
        store,
        "record.append",
        [draft(1, body={"half": "\ud83e"}), draft(2, body={"a set": {1}, "infinite": float("inf")})],
    )
    entries = list(await got(store, "record.entries"))
    chained(entries)
    assert [entry.seq for entry in entries] == [1, 2]


async def test_checkpoints_come_back_in_order(store: Store) -> None:
    await put(store, "record.append", [draft(n) for n in range(1, 4)])
    entries = list(await got(store, "record.entries"))
    signed = [
        Checkpoint(seq=entry.seq, hash=entry.hash, at=entry.at, key="ab" * 32, signature="cd" * 64)
        for entry in (entries[0], entries[2])
    ]
    await put(store, "checkpoints.add", *signed)
    assert list(await got(store, "checkpoints.all")) == signed


# --- settings ---


async def test_settings_are_set_changed_and_dropped(store: Store) -> None:
    def setting(value: str | None) -> Callable[[Transaction], None]:
        return lambda tx: tx.settings.put("halted", value)

    for value in ("yes", samples.HALF, "", "x" * 100_000, None, None, "again"):
        await store.write("set", setting(value))
        assert await got(store, "settings.get", "halted") == value
    assert await got(store, "settings.get", "Halted") is None


async def test_a_text_that_looks_like_an_escaped_one_comes_back_as_it_is(store: Store) -> None:
    for text in ("\x01json:", '\x01json:"another"', '\x01json:"\\u0000"'):
        await store.write("set", lambda tx, text=text: tx.settings.put(text, text))
        assert await got(store, "settings.get", text) == text


# --- read your own writes ---


async def test_a_transaction_sees_what_it_changed(store: Store) -> None:
    def work(tx: Transaction) -> None:
        tx.requests.add(request(1, deadline=at(5), run="run0001"))
        assert tx.requests.get("r0001") is not None
        assert [item.id for item in tx.queue.page(limit=5)] == ["r0001"]
        assert list(tx.queue.due(at(5))) == ["r0001"]
        tx.requests.put(request(1, deadline=at(5), run="run0001").changed_to(waiter="p0", version=1))
        assert list(tx.queue.awaited()) == [("r0001", "p0")]
        running = samples.claimed(samples.approved(request(1, deadline=at(3_000), run="run0001")))
        tx.requests.put(running.changed_to(waiter="p0", version=2))
        assert list(tx.queue.awaited()) == [], "what runs is waited for by its holder"
        assert list(tx.queue.claimed()) == [("r0001", "p1")]
        assert [item.id for item in tx.queue.page(limit=5)] == []
        assert [one.state for one in tx.requests.of(run="run0001")] == [State.CLAIMED]
        tx.results.put("r0001", b"x")
        assert tx.results.get("r0001") == b"x"
        tx.grants.add(grant(1))
        tx.grants.put(grant(1, used=1))
        assert [one.used for one in tx.grants.about("deploy", "key1")] == [1]
        tx.runs.add(run(1))
        tx.runs.put(run(1, epoch=2))
        assert [one.epoch for one in tx.runs.all()] == [2]
        assert sorted((*tx.requests.like("r"), *tx.runs.like("r"))) == ["r0001", "run0001"]
        tx.segments.add(first := segment("", b"1"))
        tx.segments.add(second := segment(first.id, b"2"))
        assert list(tx.segments.chain(second.id)) == [first, second]
        tx.processes.put(samples.PROCESS)
        assert tx.processes.get("process-1") == samples.PROCESS
        tx.delegations.add(samples.delegation("a", "b", 0, 9))
        assert len(tx.delegations.current(at(1))) == 1
        tx.deliveries.put(samples.delivery(1))
        tx.deliveries.put(samples.delivery(1, shown=4))
        assert [one.shown for one in tx.deliveries.find(live=True)] == [4]
        tx.record.append([draft(1, request="r0001")])
        assert (tx.record.head()[0], list(tx.record.touched(0)), len(tx.record.entries())) == (1, ["r0001"], 1)
        tx.settings.put("a", "b")
        assert tx.settings.get("a") == "b"

    await store.write("everything", work)


async def test_the_rest_of_a_question_may_be_replaced_too(store: Store) -> None:
    await add(store, request(1))
    verdict = Verdict(effect=Effect.ASK, requirement=Requirement(role="boss", quorum=3))
    moved = request(1, run="other", title="better", verdict=verdict, problem="no", conversation="moved", version=1)
    await put(store, "requests.put", moved)
    same(await got(store, "requests.get", "r0001"), moved)
    assert await ids(store, "requests.of", run="other") == ["r0001"]
    assert await ids(store, "requests.of", conversation_id="moved") == ["r0001"]
    assert await ids(store, "requests.of", conversation_id="conversation") == []
    [item] = await got(store, "queue.page", limit=1)
    assert (item.title, item.role, item.quorum, item.run) == ("better", "boss", 3, "other")


async def test_moments_are_kept_to_the_microsecond_wherever_the_clock_stood(store: Store) -> None:
    far = at(0).astimezone(samples.timezone(timedelta(hours=-11))) + timedelta(microseconds=1)
    one = request(1, opened_at=far, deadline=far + timedelta(days=36_500))
    await add(store, one)
    stored = await got(store, "requests.get", one.id)
    assert (stored.opened_at, stored.deadline) == (one.opened_at, one.deadline)
    [item] = await got(store, "queue.page", limit=1)
    assert (item.opened_at, item.deadline) == (one.opened_at, one.deadline)
