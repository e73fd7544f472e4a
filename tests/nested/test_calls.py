"""The outer call: approved, granted, refused, edited, cancelled and halted, with a run inside that waits."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from pydantic_ai import Agent, RunContext
from tests.nested.cells import NOTE
from tests.nested.kit import NO, World, calls, waits
from tests.nested.test_several import asks, runner
from tests.nested.ways import Silent

from signoff import ApprovalDecision, call_agent, run_with_approval
from signoff.core.request import State
from signoff.core.run import RunState
from signoff.core.terms import Scope, Terms
from signoff.errors import ApprovalDenied, Halted, RunOver, WrongUse
from signoff.testing import ScriptedApprover

HOW = pytest.mark.parametrize("unchanged", [False, True], ids=["call_agent", "unchanged"])
ASK_ALL: list[dict[str, Any]] = [{"allow": "look*"}, {"ask": ["ask*", "pay*"]}]


def a_runs_b(world: World, *, unchanged: bool = False, rules: Any = None, **options: Any) -> Agent[Any, Any]:
    """A's tool runs B, which pays."""
    b = world.payer("b", 1, gate=world.gate(rules), **options)
    turns = calls(("ask_b", {"question": "?"}, "a-1"))
    return world.agent("a", turns, asks(world, b, unchanged=unchanged), gate=world.gate(rules))


@HOW
async def test_an_approved_outer_call_is_entered_again_and_spent_once(world: World, unchanged: bool) -> None:
    world.defaults = {"nested": unchanged}
    world.build = lambda world: a_runs_b(world, unchanged=unchanged, rules=ASK_ALL)
    assert waits(await world.begin())
    assert set(await world.pending()) == {"a-1"}
    outer = await world.answer("a-1")
    assert waits(await world.go_on())
    assert set(await world.pending()) == {"a-1/b-1"}, "nobody is asked about the outer call again"
    assert (await world.broker().get(outer.id)).state is State.APPROVED, "suspended with its inner run"
    assert waits(await world.go_on()), "taken up in vain"
    await world.answer("a-1/b-1")
    assert "b paid 1" in await world.go_on()
    assert [one for one in world.did if one != "ask_b"] == ["look b", "pay b 1"]
    assert [one.state for one in await world.ended()] == [State.SUCCEEDED, State.SUCCEEDED]
    kinds = await world.kinds(outer.id)
    assert kinds.count("claimed") == kinds.count("paused") + 1 == 3
    assert kinds.count("ran") == 1 and kinds[-1] == "ran"


@HOW
async def test_an_edited_outer_call_is_entered_again_with_what_was_approved(world: World, unchanged: bool) -> None:
    asked: list[str] = []

    def build(world: World) -> Agent[Any, Any]:
        b = world.payer("b", 1)

        async def body(ctx: RunContext[Any], question: str) -> str:
            asked.append(question)
            return (await b.run(question)).output if unchanged else await call_agent(ctx, b, question)

        turns = calls(("ask_b", {"question": "?"}, "a-1"))
        return world.agent("a", turns, runner(world, "b", body), gate=world.gate(ASK_ALL))

    world.defaults, world.build = {"nested": unchanged}, build
    await world.begin()
    await world.answer("a-1", ApprovalDecision(approved=True, edited_args={"question": "what else?"}))
    assert waits(await world.go_on())
    await world.answer("a-1/b-1", ApprovalDecision(approved=True, edited_args={"amount": 7}))
    output = await world.go_on()
    assert asked == ["what else?"] * 2
    assert [one for one in world.did if one.startswith("pay")] == ["pay b 7"]
    assert "A person changed the arguments" in world.heard("a") and "what else?" in world.heard("a")
    assert '{"amount":7}' in world.heard("b")
    assert "b paid 7" in output
    await world.ended()


async def test_an_outer_call_that_is_withdrawn_meanwhile_is_asked_about_again(world: World) -> None:
    world.build = lambda world: a_runs_b(world, rules=ASK_ALL)
    await world.begin()
    outer = await world.answer("a-1")
    await world.go_on()
    await world.broker().cancel(outer.id, "second thoughts")
    await world.answer("a-1/b-1")
    assert waits(await world.go_on()), "what was withdrawn does not run"
    assert world.did == ["ask_b", "look b"]
    await world.answer("a-1")
    assert "b paid 1" in await world.go_on()
    assert world.did == ["ask_b", "look b", "ask_b", "pay b 1"]


@HOW
async def test_a_grant_for_one_use_lets_the_outer_call_through_once(world: World, unchanged: bool) -> None:
    def build(world: World) -> Agent[Any, Any]:
        b = world.payer("b", 1)
        turns = [{"calls": [{"tool": "ask_b", "args": {"question": "?"}, "id": one}]} for one in ("a-1", "a-2", "a-3")]
        return world.agent(
            "a", [*turns, {"say": "{{last}}"}], asks(world, b, unchanged=unchanged), gate=world.gate(ASK_ALL)
        )

    world.defaults, world.build = {"nested": unchanged}, build
    await world.begin()
    await world.answer("a-1", ApprovalDecision(approved=True, terms=Terms(scope=Scope.PROJECT, max_uses=1)))
    await world.go_on()
    await world.answer("a-1/b-1")
    assert waits(await world.go_on())
    assert set(await world.pending()) == {"a-2/b-1"}, "the second was let through by the grant"
    assert waits(await world.go_on())
    await world.answer("a-2/b-1")
    assert waits(await world.go_on())
    assert set(await world.pending()) == {"a-3"}, "which was for one use: the third is asked about"
    assert world.did.count("pay b 1") == 2
    [grant] = await world.store().read(lambda tx: tx.grants.all())
    assert grant.used == 1
    await world.answer("a-3", NO)
    assert "not today" in await world.go_on()
    await world.ended()


@pytest.mark.parametrize(
    "wait",
    [
        "inline",
        "suspend",
    ],
)
async def test_a_denial_that_is_raised_ends_the_run_inside(world: World, wait: str) -> None:
    def build(world: World) -> Agent[Any, Any]:
        b = world.payer("b", 1, gate=world.gate(on_denied="raise"))

        async def body(ctx: RunContext[Any], question: str) -> str:
            try:
                return await call_agent(ctx, b, question)
            except ApprovalDenied as denied:
                return f"b was refused, and {NOTE in str(denied)}"

        return world.agent("a", calls(("ask_b", {"question": "?"}, "a-1")), runner(world, "b", body))

    world.build = build
    no = ApprovalDecision(approved=False, note=NOTE)
    if wait == "inline":
        asked = asyncio.Event()
        world.defaults = {"wait": "inline", "approver": Silent(asked.set)}
        run = asyncio.ensure_future(world.begin())
        await asyncio.wait_for(asked.wait(), 20)
        await world.answer(decision=no)
        output = await asyncio.wait_for(run, 20)
    else:
        await world.begin()
        await world.answer(decision=no)
        output = await world.go_on()
    assert output == "b was refused, and True"
    assert world.turns_of("b") == [0]
    assert not [one for one in world.did if one.startswith("pay")]


async def test_both_policies_bind_the_run_inside(world: World) -> None:
    def build(world: World) -> Agent[Any, Any]:
        turns = calls(
            ("pay_b", {"amount": 1}, "b-1"), ("pay_b", {"amount": 50}, "b-2"), ("pay_b", {"amount": 500}, "b-3")
        )
        inner = [
            {"allow": {"tool": "pay_b", "args": {"amount": {"<": 100}}}},
            {"deny": {"tool": "pay_b", "args": {"amount": {">=": 100}}}},
        ]
        b = world.agent("b", turns, *world.tools("b"), gate=world.gate(inner))
        outer = [{"allow": ["ask*", {"tool": "pay_b", "args": {"amount": {"<": 10}}}]}, {"ask": "pay_b"}]
        return world.agent(
            "a", calls(("ask_b", {"question": "?"}, "a-1")), asks(world, b, unchanged=False), gate=world.gate(outer)
        )

    world.build = build
    assert waits(await world.begin())
    assert set(await world.pending()) == {"a-1/b-2"}, "the outer policy asks, although the inner one allows it"
    await world.answer()
    output = await world.go_on()
    assert world.did == ["ask_b", "pay b 1", "ask_b", "pay b 50"]
    assert "permission_denied" in output, "the inner policy denies, although the outer one would ask"
    await world.ended()


@HOW
async def test_a_run_that_is_cancelled_withdraws_the_questions_inside(world: World, unchanged: bool) -> None:
    world.defaults = {"nested": unchanged}
    world.build = lambda world: a_runs_b(world, unchanged=unchanged)
    await world.begin()
    [request] = (await world.pending()).values()
    await world.broker().runs.cancel((await world.run()).id, by="ana", reason="no need any more")
    assert not await world.pending()
    [moot] = await world.requests()
    assert moot.id == request.id and moot.state is State.CANCELLED
    with pytest.raises(RunOver, match="no need any more"):
        await world.go_on()
    assert world.did == ["ask_b", "look b"]


async def test_a_run_that_is_cancelled_while_the_inside_waits_in_place(world: World) -> None:
    asked = asyncio.Event()
    world.defaults = {"wait": "inline", "approver": Silent(asked.set)}
    world.build = a_runs_b
    run = asyncio.ensure_future(world.begin())
    await asyncio.wait_for(asked.wait(), 20)
    await world.broker().runs.cancel((await world.run()).id, by="ana")
    with pytest.raises(RunOver):
        await asyncio.wait_for(run, 20)
    assert not await world.pending()
    assert (await world.run()).state is RunState.CANCELLED
    assert world.did == ["ask_b", "look b"]


@HOW
async def test_a_halt_keeps_what_waits_inside(world: World, unchanged: bool) -> None:
    world.defaults = {"nested": unchanged}
    world.build = lambda world: a_runs_b(world, unchanged=unchanged)
    await world.begin()
    await world.answer()
    await world.broker().switch.halt(by="ana")
    with pytest.raises(Halted):
        await world.go_on()
    assert world.did == ["ask_b", "look b"]
    await world.broker().switch.unhalt(by="ana")
    assert "b paid 1" in await world.go_on()
    assert world.did == ["ask_b", "look b", "ask_b", "pay b 1"]
    await world.ended()


async def test_a_halt_while_the_run_inside_works(world: World) -> None:
    halts = [True]

    def build(world: World) -> Agent[Any, Any]:
        outer = world.gate()

        async def look_b() -> str:
            world.did.append("look b")
            if halts:
                await world.broker().switch.halt(by="ana")
                await told_of_halt(outer.broker.watch)
            return "seen"

        turns = [*calls(("pay_b", {"amount": 1}, "b-1"))[:1], *calls(("look_b", {}, "b-2"))]
        b = world.agent("b", turns, look_b, world.tools("b")[1])
        a_turns = calls(("ask_b", {"question": "?"}, "a-1"))
        return world.agent("a", a_turns, asks(world, b, unchanged=False), gate=outer)

    world.build = build
    await world.begin()
    await world.answer()
    with pytest.raises(Halted):
        await world.go_on()
    assert world.did == ["ask_b", "ask_b", "pay b 1", "look b"]
    await world.broker().switch.unhalt(by="ana")
    assert (await world.run()).state is RunState.GOING
    halts.clear()
    assert await world.go_on() == "seen"
    assert world.did.count("pay b 1") == 1
    await world.ended()


async def told_of_halt(watch: Any) -> None:
    """Return once a gate has heard that everything is halted."""
    looked, real = asyncio.Event(), watch._look

    async def looks(ear: Any) -> None:
        await real(ear)
        looked.set()

    watch._look = looks
    while not watch.halted:
        looked.clear()
        await asyncio.wait_for(looked.wait(), 20)


async def test_an_agent_without_a_gate_of_its_own_runs_behind_the_callers(world: World) -> None:
    def build(world: World) -> Agent[Any, Any]:
        c = world.payer("c", 1, capabilities=[], output_type=str)
        turns = calls(("ask_c", {"question": "?"}, "b-1"))
        b = world.agent("b", turns, asks(world, c, unchanged=False), capabilities=[], output_type=str)
        return world.agent("a", calls(("ask_b", {"question": "?"}, "a-1")), asks(world, b, unchanged=False))

    world.build = build
    assert waits(await world.begin())
    [request] = (await world.pending()).values()
    assert request.call is not None and request.call.chain == "a > b > c > pay_c"
    await world.answer()
    assert "c paid 1" in await world.go_on()
    assert world.did == ["ask_b", "ask_c", "look c", "ask_b", "ask_c", "pay c 1"]
    await world.ended()


@HOW
async def test_a_gated_run_behind_run_with_approval_belongs_to_the_outermost_run(world: World, unchanged: bool) -> None:
    ui = ScriptedApprover(["approve"])

    def build(world: World) -> Agent[Any, Any]:
        asks_b = asks(world, world.payer("b", 1), unchanged=unchanged)
        turns = calls(("ask_b", {"question": "?"}, "m-1"))
        m = world.agent("m", turns, asks_b, capabilities=[], output_type=str)

        async def body(ctx: RunContext[Any], question: str) -> str:
            return (await run_with_approval(m, question, approver=ui)).output

        return world.agent("a", calls(("ask_m", {"question": "?"}, "a-1")), runner(world, "m", body))

    world.defaults, world.build = {"wait": "inline", "nested": unchanged}, build
    assert "b paid 1" in await world.begin()
    [asked], [request], run = ui.asked, await world.ended(), await world.run()
    assert run.prompt == "go" and not run.parent, "the run that is kept is the outermost"
    assert asked.id == request.id and request.run == run.id
    assert request.call is not None and request.call.path == "a-1/b-1"
    assert request.call.chain == "a > m > b > pay_b"
    assert world.did == ["ask_m", "ask_b", "look b", "pay b 1"]


async def test_without_leave_a_lost_question_is_an_error_that_says_what_to_do(world: World) -> None:
    world.build = lambda world: a_runs_b(world, unchanged=True)
    with pytest.raises(WrongUse, match=r"call_agent\(ctx, agent, prompt\).*nested=True"):
        await world.begin()
    assert not await world.pending()
    assert world.did == ["ask_b", "look b"]


async def test_two_may_not_go_on_with_it_at_once(world: World) -> None:
    world.build = lambda world: a_runs_b(world, rules=ASK_ALL)
    await world.begin()
    await world.answer()
    await world.go_on()
    await world.answer()
    results = await asyncio.gather(world.go_on(), world.go_on(), return_exceptions=True)
    assert world.did == ["ask_b", "look b", "ask_b", "pay b 1"], results
    assert sum(isinstance(one, str) for one in results) == 1
    await world.ended()


# --- what docs/guides/nested.md says about tools that do not play along ---


async def test_a_tool_that_swallows_the_pause_loses_the_question_not_more(world: World) -> None:
    def build(world: World) -> Agent[Any, Any]:
        b = world.payer("b", 1)

        async def body(ctx: RunContext[Any], question: str) -> str:
            try:
                return await call_agent(ctx, b, question)
            except Exception as error:
                return f"swallowed {type(error).__name__}"

        return world.agent("a", calls(("ask_b", {"question": "?"}, "a-1")), runner(world, "b", body))

    world.build = build
    assert await world.begin() == "swallowed CallPaused"
    assert [one.state for one in await world.requests()] == [State.CANCELLED]
    assert world.did == ["ask_b", "look b"]


async def test_a_prompt_that_is_another_each_time_begins_anew_and_asks_again(world: World) -> None:
    def build(world: World) -> Agent[Any, Any]:
        b = world.payer("b", 1)

        async def body(ctx: RunContext[Any], question: str) -> str:
            return await call_agent(ctx, b, f"{question} {len(world.did)}")

        return world.agent("a", calls(("ask_b", {"question": "?"}, "a-1")), runner(world, "b", body))

    world.build = build
    await world.begin()
    await world.answer()
    assert waits(await world.go_on())
    assert not [one for one in world.did if one.startswith("pay")], "the answer was about another call"
    assert len(await world.requests()) == 2
