"""Attempts on runs inside calls: to repeat, outlive or confuse what people answered."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import Agent, ModelRetry, RunContext
from pydantic_ai.messages import BinaryContent
from pydantic_ai.tools import DeferredToolResults
from tests.attacks.nested_kit import ASK_ALL, ONCE, WAYS, Mostly, booking, books, caller, paused_inside, until_asked
from tests.crash.fork import ForkServer
from tests.nested.kit import ANA, NO, YES, World, calls, waits
from tests.nested.test_several import asks

from signoff import ApprovalDecision, Signoff, SuspendedRun, call_agent, resume
from signoff.core.call import Call
from signoff.core.request import ApprovalRequest, State
from signoff.core.terms import Scope, Terms
from signoff.core.verdict import Effect, Verdict
from signoff.errors import AlreadySettled, RunError, RunOver, UnknownRun, WrongUse
from signoff.gate.nesting import CallPaused, Neighbours

GRANTED = pytest.mark.parametrize("granted", [False, True], ids=["allowed", "granted"])


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    yield made
    made.close()


@pytest.fixture(scope="module")
def fork_server() -> Iterator[ForkServer]:
    server = ForkServer()
    yield server
    server.close()


# --- once ---


@GRANTED
async def test_a_pause_that_several_resume_goes_on_once(world: World, granted: bool) -> None:
    result, run = await paused_inside(world, granted=granted)
    kept = SuspendedRun.from_json(SuspendedRun.of(result).to_json())
    await world.answer("a-1/b-1")
    agents = [booking(world, ASK_ALL if granted else None) for _ in range(3)]
    outcomes = await asyncio.gather(*(resume(one, kept) for one in agents), return_exceptions=True)
    assert sorted(isinstance(one, RunError) for one in outcomes) == [False, True, True], outcomes
    for again in (resume(agents[0], result), resume(agents[1], kept), resume(agents[2], run)):
        with pytest.raises(RunOver):
            await again
    assert world.did.count("booked") == world.did.count("pay b 1") == 1


@pytest.mark.parametrize("when", ["while it waits", "when it is over"])
async def test_a_grant_for_one_use_is_not_used_again_by_a_copy_of_the_history(world: World, when: str) -> None:
    result, run = await paused_inside(world, granted=True)
    if when == "when it is over":
        await world.answer("a-1/b-1")
        assert "b paid 1" in (await resume(booking(world, ASK_ALL), run)).output
    before = list(world.did)
    forged = DeferredToolResults(approvals={"a-1": True})
    for _ in range(2):
        agent = booking(world, ASK_ALL)
        copied = await agent.run(message_history=result.all_messages(), deferred_tool_results=forged)
        assert waits(copied.output), "a person is asked"
    assert world.did == before
    [grant] = await world.broker().grants.list()
    assert grant.used == 1


async def test_a_call_that_a_grant_let_through_is_not_made_again_after_a_never(world: World) -> None:
    _, run = await paused_inside(world, granted=True, answer=replace(ONCE, terms=Terms(scope=Scope.PROJECT)))
    broker = world.broker()
    [grant] = await broker.grants.list()
    await broker.grants.revoke(grant.id, by="ana")
    await booking(world, ASK_ALL).run("third")
    await world.answer("a-1", replace(NO, terms=Terms(scope=Scope.PROJECT)))
    await world.answer("a-1/b-1")
    output = (await resume(booking(world, ASK_ALL), run)).output
    assert "permission_denied" in output and "not today" in output
    assert not {"booked", "pay b 1"} & set(world.did)


@pytest.mark.parametrize("way", WAYS)
def test_an_approved_call_that_did_more_than_wait_is_unknown_after_a_crash(
    fork_server: ForkServer, tmp_path: Path, way: str
) -> None:
    told = fork_server.call("tests.attacks.nested_kit:dies_and_is_resumed", directory=str(tmp_path), way=way)
    assert told["before"].count("booked") == 1, "it died after that"
    assert told["after"] == told["before"], "nothing is repeated silently"
    assert told["waits"] and told["state"] == "unknown"


@pytest.mark.parametrize("wait", [pytest.param("inline"), "suspend"])
def test_a_grant_for_one_use_is_not_used_again_after_a_crash(
    fork_server: ForkServer, tmp_path: Path, wait: str
) -> None:
    told = fork_server.call("tests.attacks.nested_kit:dies_on_a_grant", directory=str(tmp_path), wait=wait)
    assert told == ["booked"], "nothing is repeated silently"


async def test_a_grant_for_one_use_is_not_used_again_by_a_call_that_failed(world: World) -> None:
    """The call booked, and then asked its model to try again. A call beside it still waits, and is taken up later."""
    approver = Mostly("pay_a")
    await booking(world, ASK_ALL).run("first")
    await world.answer("a-1", ONCE)

    def build(wait: str) -> Agent[Any, Any]:
        world.defaults = {"wait": wait, "approver": approver}
        b = world.payer("b", 1, gate=world.gate(ASK_ALL))

        async def body(ctx: RunContext[Any], question: str) -> str:
            await call_agent(ctx, b, question)
            world.did.append("booked")
            raise ModelRetry("once more, please")

        turns = calls(("ask_b", {"question": "?"}, "a-1"), ("pay_a", {"amount": 9}, "a-2"))
        return caller(world, body, *world.tools("a"), rules=ASK_ALL, turns=turns)

    run = asyncio.ensure_future(build("inline").run("second"))
    await asyncio.wait_for(approver.asked.wait(), 20)
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    request = await world.answer("a-2")
    await resume(build("suspend"), request.run)
    assert world.did.count("booked") == 1


async def test_a_promise_to_do_nothing_more_cannot_be_taken_back(world: World) -> None:
    """The first run inside is on record as all that the call waits for: another one is refused before it begins."""
    b, c = world.payer("b", 1, gate=world.gate(ASK_ALL)), world.payer("c", 2, gate=world.gate(ASK_ALL))

    async def body(ctx: RunContext[Any], question: str) -> str:
        try:
            return await call_agent(ctx, b, question, ends_call=True)
        except CallPaused:
            return await call_agent(ctx, c, question)

    world.build = lambda world: caller(world, body, rules=ASK_ALL)
    await world.begin()
    await world.answer("a-1")
    with pytest.raises(WrongUse, match="promised ends_call, but then"):
        await world.go_on()
    assert world.turns_of("c") == []


@pytest.mark.parametrize("late", ["pause", "lose", "finish", "give back", "enter"])
async def test_whoever_lost_a_claim_changes_nothing_about_the_next(world: World, late: str) -> None:
    stalled, other = world.broker(), world.broker()
    stalled.ledger._process = replace(stalled.process, born="long ago")  # whoever looks for it finds nobody
    call = Call(tool="transfer", args={"a": 1}, call_id="a-1", run_id="r", path="a-1")
    asked = ApprovalRequest(
        id="",
        tool_call_id="a-1",
        tool_name="transfer",
        args=call.args,
        call=call,
        verdict=Verdict(effect=Effect.ASK, reason="why not"),
    )
    [request] = await stalled.open([asked])
    await stalled.answer(request.id, YES, by=ANA)
    await stalled.claim(request.id, token="stalled")
    stalled.runs.enter_later(request.id, "stalled", ("", 0))
    await stalled.store.flush()
    assert [one.state for one in await other.sweep()] == [State.APPROVED], "it only waited"
    claimed = await other.claim(request.id, token="other")
    match late:
        case "pause":
            stalled.release(request.id, "stalled")
        case "lose":
            stalled.cut_off(request.id, "stalled")
        case "finish":
            stalled.finish(request.id, error="TimeoutError", token="stalled")
        case "give back":
            stalled.give_back(request.id, "stalled")
        case _:
            stalled.runs.enter_later(request.id, "stalled", ("", 0))
    await world.flush()
    assert await other.get(request.id) == claimed
    other.finish(request.id, preview="done", token="other")
    await world.flush()
    assert (await other.get(request.id)).state is State.SUCCEEDED


@pytest.mark.parametrize("how", ["group", "gather"])
async def test_a_run_that_pauses_cuts_off_no_approved_call_beside_it(
    world: World, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, pauses, real = asyncio.Event(), asyncio.Event(), Neighbours.quiet

    async def quiet(beside: Neighbours) -> None:
        await begun.wait()
        pauses.set()
        await real(beside)

    async def pay_c() -> str:
        world.did.append("pay c begins")
        begun.set()
        await pauses.wait()
        world.did.append("pay c ends")
        return "paid"

    def build(world: World) -> Agent[Any, Any]:
        inner = [world.payer("b", 1), world.agent("c", calls(("pay_c", {}, "c-1")), pay_c)]

        async def body(ctx: RunContext[Any], question: str) -> str:
            if how == "gather":
                return str(await asyncio.gather(*(call_agent(ctx, one, question) for one in inner)))
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(call_agent(ctx, one, question)) for one in inner]
            return str([one.result() for one in tasks])

        return caller(world, body)

    both = asyncio.Barrier(2)

    async def together(beside: Neighbours) -> None:
        await both.wait()  # neither takes the call down before the other has asked

    world.build = build
    monkeypatch.setattr(Neighbours, "quiet", together)
    await world.begin()
    assert set(await world.pending()) == {"a-1/b-1", "a-1/c-1"}
    approved = await world.answer("a-1/c-1")
    monkeypatch.setattr(Neighbours, "quiet", quiet)
    assert waits(await world.go_on())
    assert world.did[-2:] == ["pay c begins", "pay c ends"]
    await world.flush()
    assert (await world.broker().get(approved.id)).state is State.SUCCEEDED


# --- what was answered was about this run, and no other ---


async def test_a_run_inside_is_not_taken_up_without_its_caller(world: World) -> None:
    def wipe_b() -> str:
        world.did.append("wiped")
        return "gone"

    turns = [*calls(("pay_b", {"amount": 1}, "b-1"))[:1], *calls(("wipe_b", {}, "b-2"))]
    b = world.agent("b", turns, world.tools("b")[1], wipe_b, gate=world.gate([{"ask": "pay_b"}, {"allow": "wipe_b"}]))
    world.build = lambda world: caller(world, books(world, b), rules=[{"allow": "ask_b"}, {"deny": "wipe_b"}])
    child = (await world.begin()).metadata["a-1"]["signoff"]["inside"]
    broker = world.broker()
    for decide in (False, True):
        if decide:
            await world.answer()
        for attempt in (resume(b, child), broker.runs.take(child), broker.runs.cancel(child, by="eve")):
            with pytest.raises(UnknownRun, match="inner run of another run"):
                await attempt
    assert not {"wiped", "pay b 1"} & set(world.did)
    assert "permission_denied" in await world.go_on()
    assert "wiped" not in world.did


async def test_a_run_inside_ends_with_a_cancelled_caller(world: World) -> None:
    result, run = await paused_inside(world, granted=False)
    await world.broker().runs.cancel(run, by="ana")
    with pytest.raises(UnknownRun):
        await resume(world.payer("b", 1), result.output.metadata["a-1"]["signoff"]["inside"])
    with pytest.raises(RunOver):
        await resume(booking(world), result)
    assert "pay b 1" not in world.did


async def test_two_agents_of_one_name_are_not_taken_for_each_other(world: World) -> None:
    lax, strict = world.agent("reviewer", [{"say": "fine"}]), world.payer("reviewer", 1)

    async def body(ctx: RunContext[Any], question: str) -> str:
        return str([await call_agent(ctx, one, question) for one in (lax, strict)])

    with pytest.raises(WrongUse, match="two agents with the same name"):
        await caller(world, body).run("go")


async def test_a_prompt_with_bytes_finds_its_run_again(world: World) -> None:
    image = BinaryContent(data=b"\x89PNG\xff\xd8", media_type="image/png")

    def build(world: World) -> Agent[Any, Any]:
        b = world.payer("b", 1)

        async def body(ctx: RunContext[Any], question: str) -> str:
            return await call_agent(ctx, b, [question, image])

        return caller(world, body)

    world.build = build
    await world.begin()
    await world.answer()
    assert "b paid 1" in await world.go_on()
    assert world.turns_of("b") == [0, 1]


async def test_what_a_run_inside_said_about_other_arguments_is_not_remembered(world: World) -> None:
    """A reviewer answered about 5. The outer call is asked about anew, and edited: it is reviewed anew."""
    at_hand: list[int] = []

    def build(world: World, more: Any = ()) -> Agent[Any, Any]:
        rules = [{"allow": "look*"}, {"ask": ["transfer", "pay*"]}, *more]

        def look_r() -> str:
            return f"{at_hand[-1]} is fine"

        reviewer = world.agent("r", calls(("look_r", {}, "r-1")), look_r, gate=world.gate(rules))
        signer = world.payer("b", 1, gate=world.gate(rules))

        async def transfer(ctx: RunContext[Any], amount: int) -> str:
            at_hand.append(amount)
            said = await call_agent(ctx, reviewer, "review it")
            await call_agent(ctx, signer, "sign it")
            world.did.append(f"transferred {amount}, as {said}")
            return "done"

        return world.agent("a", calls(("transfer", {"amount": 5}, "a-1")), transfer, gate=world.gate(rules))

    world.build = build
    await world.begin()
    await world.answer("a-1")
    assert waits(await world.go_on())
    await world.answer("a-1/b-1")
    world.build = lambda world: build(world, [{"deny": "never"}])
    assert waits(await world.go_on()), "the policy is another by now"
    await world.answer("a-1", ApprovalDecision(approved=True, edited_args={"amount": 5_000_000}))
    assert waits(await world.go_on()), "and what was signed was the transfer of 5"
    await world.answer("a-1/b-1")
    await world.go_on()
    assert [one for one in world.did if one.startswith("transferred")] == ["transferred 5000000, as 5000000 is fine"]


async def test_a_no_inside_stays_a_no_when_its_run_failed_after_it(world: World) -> None:
    def build(world: World) -> Agent[Any, Any]:
        def look_b() -> str:
            raise ValueError("no connection")

        turns = [*calls(("pay_b", {"amount": 1}, "b-1"))[:1], *calls(("look_b", {}, "b-2"))]
        b, c = world.agent("b", turns, world.tools("b")[1], look_b), world.payer("c", 2)

        async def body(ctx: RunContext[Any], question: str) -> str:
            try:
                return await call_agent(ctx, b, question)
            except ValueError:
                return f"b failed, {await call_agent(ctx, c, question)}"

        return caller(world, body)

    world.build = build
    await world.begin()
    await world.answer("a-1/b-1", NO)
    assert waits(await world.go_on())
    assert set(await world.pending()) == {"a-1/c-2"}
    assert waits(await world.go_on())
    assert set(await world.pending()) == {"a-1/c-2"}, "it is not asked about again"
    await world.answer("a-1/c-2")
    assert "c paid 2" in await world.go_on()
    assert "pay b 1" not in world.did
    assert [one.state for one in await world.ended()] == [State.DENIED, State.SUCCEEDED]


# --- questions that nobody would act upon ---


@pytest.mark.parametrize("how", ["swallowed", "out of time"])
@pytest.mark.parametrize("rules", [None, ASK_ALL], ids=["allowed", "approved"])
async def test_a_question_is_withdrawn_with_the_call_that_gave_up(world: World, how: str, rules: Any) -> None:
    approver = Mostly("pay_b")
    world.defaults = {"approver": approver, "wait": "suspend" if how == "swallowed" else "inline"}

    def build(world: World) -> Agent[Any, Any]:
        b = world.payer("b", 1, gate=world.gate(rules))

        async def body(ctx: RunContext[Any], question: str) -> str:
            try:
                if how == "swallowed":
                    return await call_agent(ctx, b, question)
                return await until_asked(approver, call_agent(ctx, b, question))
            except Exception as error:
                return f"gave up: {type(error).__name__}"

        return caller(world, body, rules=rules)

    world.build = build
    output = await world.begin()
    if waits(output):
        await world.answer("a-1")
        output = await world.go_on()
    assert output == ("gave up: CallPaused" if how == "swallowed" else "gave up: TimeoutError")
    assert not await world.pending()
    [question] = [one for one in await world.requests() if one.tool_name == "pay_b"]
    assert question.state is State.CANCELLED
    with pytest.raises(AlreadySettled, match="is over"):
        await world.broker().answer(question.id, YES, by=ANA)


async def test_a_question_is_not_lost_as_the_text_of_a_result(world: World) -> None:
    b = world.payer("b", 1)

    async def body(ctx: RunContext[Any], question: str) -> str:
        return f"b says {(await b.run(question)).output}"

    with pytest.raises(WrongUse, match="the question would be lost"):
        await caller(world, body).run("go")
    assert not await world.pending()


async def test_a_question_for_a_store_is_not_put_to_memory(world: World) -> None:
    gate = Signoff([{"allow": "ask_b"}], wait="suspend")
    body = asks(world, world.payer("b", 1), unchanged=True)
    with pytest.raises(WrongUse, match="b keeps its requests in a store, but a, which runs it, has no store"):
        await world.agent("a", calls(("ask_b", {"question": "?"}, "a-1")), body, gate=gate).run("go")
    assert not await gate.pending() and not await world.pending()
    assert world.turns_of("b") == []


async def test_a_run_that_waits_inside_an_approved_call_is_not_called_ready(world: World) -> None:
    world.build = lambda world: booking(world, ASK_ALL)
    await world.begin()
    await world.answer("a-1")
    await world.go_on()
    for _ in range(2):
        [status] = await world.broker().runs.list()
        assert status.word == "waiting" and status.answered == ()
        assert [one.title.partition("(")[0] for one in status.waiting] == ["pay_b"]
        await world.go_on()
    await world.answer("a-1/b-1")
    [status] = await world.broker().runs.list()
    assert status.word == "ready"
