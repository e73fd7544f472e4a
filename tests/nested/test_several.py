"""Several questions at several levels, and several runs inside one call."""

from __future__ import annotations

import asyncio
from itertools import permutations, product
from typing import Any

import pytest
from pydantic_ai import Agent, RunContext
from tests.nested.kit import NO, YES, World, calls, waits
from tests.pairwise import cases, pairwise

from signoff import call_agent

HOW = pytest.mark.parametrize("unchanged", [False, True], ids=["call_agent", "unchanged"])


def runner(world: World, name: str, body: Any) -> Any:
    """A tool `ask_NAME` with this body."""

    async def ask(ctx: RunContext[Any], question: str) -> str:
        world.did.append(f"ask_{name}")
        return await body(ctx, question)

    ask.__name__ = f"ask_{name}"
    return ask


def asks(world: World, agent: Agent[Any, Any], *, unchanged: bool) -> Any:
    """A tool that runs an agent."""

    async def body(ctx: RunContext[Any], question: str) -> str:
        return (await agent.run(question)).output if unchanged else await call_agent(ctx, agent, question)

    return runner(world, agent.name or "", body)


def three_levels(world: World, *, unchanged: bool) -> Agent[Any, Any]:
    """A, B and C each want to pay; A runs B, B runs C."""
    c = world.payer("c", 3)
    b_turns = calls(("look_b", {}, "b-0"), ("pay_b", {"amount": 2}, "b-1"), ("ask_c", {"question": "?"}, "b-2"))
    b = world.agent("b", b_turns, *world.tools("b"), asks(world, c, unchanged=unchanged))
    a_turns = calls(("ask_b", {"question": "?"}, "a-1"), ("pay_a", {"amount": 1}, "a-2"), ("look_a", {}, "a-3"))
    return world.agent("a", a_turns, *world.tools("a"), asks(world, b, unchanged=unchanged))


PATHS = {"a-2": "pay a 1", "a-1/b-1": "pay b 2", "a-1/b-2/c-3": "pay c 3"}


ORDERS = tuple(permutations(PATHS))
WAYS = ("call_agent", "unchanged")


@pytest.mark.parametrize(
    ("order", "way"),
    cases(
        product(ORDERS, WAYS),
        [(ORDERS[0], WAYS[0]), (ORDERS[3], WAYS[1]), (ORDERS[4], WAYS[0])],  # each is the first, and the last, once
        lambda order, way: f"{' then '.join(order)}-{way}",
    ),
)
async def test_questions_of_three_levels_in_any_order(world: World, order: tuple[str, ...], way: str) -> None:
    unchanged = way == "unchanged"
    world.defaults = {"nested": unchanged}
    world.build = lambda world: three_levels(world, unchanged=unchanged)
    assert waits(await world.begin())
    assert set(await world.pending()) == set(PATHS), "all of them can be answered at once"
    for number, path in enumerate(order, start=1):
        await world.answer(path)
        output = await world.go_on()
        assert waits(output) is (number < 3)
        assert sorted(one for one in world.did if one.startswith("pay")) == sorted(PATHS[one] for one in order[:number])
        assert set(await world.pending()) == set(order[number:])
    assert [world.did.count(f"look {name}") for name in "abc"] == [1, 1, 1]
    assert [world.turns_of(name) for name in "abc"] == [[0, 1]] * 3
    assert "c paid 3" in output and "b paid 2" in output and "a paid 1" in output
    assert len(await world.ended()) == 3


@HOW
async def test_questions_of_three_levels_all_answered_before_it_goes_on(world: World, unchanged: bool) -> None:
    world.defaults = {"nested": unchanged}
    world.build = lambda world: three_levels(world, unchanged=unchanged)
    await world.begin()
    for path in PATHS:
        await world.answer(path, NO if path == "a-1/b-1" else YES)
    output = await world.go_on()
    assert sorted(one for one in world.did if one.startswith("pay")) == ["pay a 1", "pay c 3"]
    assert world.did.count("ask_b") == world.did.count("ask_c") == 2
    assert "not today" in world.heard("b") and "not today" not in world.heard("c")
    assert "c paid 3" in output
    await world.ended()


async def one_after_the_other(ctx: RunContext[Any], *agents: Agent[Any, Any], unchanged: bool) -> list[Any]:
    if unchanged:
        return [(await agent.run("same")).output for agent in agents]
    return [await call_agent(ctx, agent, "same") for agent in agents]


async def gathered(ctx: RunContext[Any], *agents: Agent[Any, Any], unchanged: bool) -> list[Any]:
    if unchanged:
        return [one.output for one in await asyncio.gather(*(agent.run("same") for agent in agents))]
    return await asyncio.gather(*(call_agent(ctx, agent, "same") for agent in agents))


async def grouped(ctx: RunContext[Any], *agents: Agent[Any, Any], unchanged: bool) -> list[Any]:
    async def one(agent: Agent[Any, Any]) -> Any:
        return (await agent.run("same")).output if unchanged else await call_agent(ctx, agent, "same")

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(one(agent)) for agent in agents]
    return [task.result() for task in tasks]


def two_inside(world: World, how: Any, *, unchanged: bool, first_asks: bool = True) -> Agent[Any, Any]:
    """A's tool runs B and then C, or both at once."""
    b = world.payer("b", *([1] if first_asks else []))
    c = world.payer("c", 2)

    async def body(ctx: RunContext[Any], question: str) -> str:
        return " and ".join(await how(ctx, b, c, unchanged=unchanged))

    return world.agent("a", calls(("ask_both", {"question": "?"}, "a-1")), runner(world, "both", body))


@HOW
@pytest.mark.parametrize("first_asks", [True, False], ids=["both ask", "the second asks"])
async def test_a_run_that_is_over_is_not_run_again(world: World, first_asks: bool, unchanged: bool) -> None:
    world.defaults = {"nested": unchanged}
    world.build = lambda world: two_inside(world, one_after_the_other, unchanged=unchanged, first_asks=first_asks)
    assert waits(await world.begin())
    if first_asks:
        assert set(await world.pending()) == {"a-1/b-1"}
        await world.answer("a-1/b-1")
        assert waits(await world.go_on())
    assert set(await world.pending()) == {"a-1/c-2"}
    await world.answer("a-1/c-2")
    output = await world.go_on()
    assert world.turns_of("b") == world.turns_of("c") == [0, 1]
    assert sorted(one for one in world.did if not one.startswith("ask")) == sorted(
        ["look b", *(["pay b 1"] if first_asks else []), "look c", "pay c 2"]
    )
    assert output.startswith("b: b looked") and output.endswith("c paid 2")
    assert world.did.count("ask_both") == (3 if first_asks else 2)
    await world.ended()


SIDE_BY_SIDE = {"gathered": gathered, "grouped": grouped}
AXES = (("answered together", "one at a time"), SIDE_BY_SIDE, WAYS)


@pytest.mark.parametrize(("answered", "beside", "way"), cases(product(*AXES), pairwise(*AXES)))
async def test_runs_side_by_side_in_one_call(world: World, answered: str, beside: str, way: str) -> None:
    how, unchanged, together = SIDE_BY_SIDE[beside], way == "unchanged", answered == "answered together"
    world.defaults = {"nested": unchanged}
    world.build = lambda world: two_inside(world, how, unchanged=unchanged)
    output = await world.begin()
    rounds = 0
    while waits(output):
        rounds += 1
        pending = await world.pending()
        assert pending and rounds < 4
        for path in list(pending)[: 2 if together else 1]:
            await world.answer(path)
        output = await world.go_on()
    assert sorted(one for one in world.did if one.startswith("pay")) == ["pay b 1", "pay c 2"]
    assert "b paid 1" in output and "c paid 2" in output
    await world.ended()


@HOW
async def test_the_same_agent_with_the_same_question_twice_is_two_runs(world: World, unchanged: bool) -> None:
    def build(world: World) -> Agent[Any, Any]:
        b = world.payer("b", 1)

        async def body(ctx: RunContext[Any], question: str) -> str:
            return " and ".join(await one_after_the_other(ctx, b, b, unchanged=unchanged))

        return world.agent("a", calls(("ask_twice", {"question": "?"}, "a-1")), runner(world, "twice", body))

    world.defaults, world.build = {"nested": unchanged}, build
    output = await world.begin()
    for _ in range(2):
        assert waits(output)
        await world.answer()
        output = await world.go_on()
    assert world.did.count("pay b 1") == 2
    assert output.count("b paid 1") == 2
    assert len(await world.ended()) == 2


@HOW
@pytest.mark.parametrize("how", [gathered, grouped])
async def test_an_approved_call_beside_one_that_waits_is_not_cut_off(world: World, how: Any, unchanged: bool) -> None:
    def build(world: World) -> Agent[Any, Any]:
        async def pay_b(amount: int) -> str:
            world.did.append("b begins to pay")
            for _ in range(1_000):  # long enough for whatever happens beside it
                await asyncio.to_thread(len, world.did)
            world.did.append("b has paid")
            return "b paid"

        b = world.agent("b", calls(("pay_b", {"amount": 1}, "b-1")), pay_b)
        c = world.payer("c", 2)

        async def body(ctx: RunContext[Any], question: str) -> str:
            return " and ".join(await how(ctx, b, c, unchanged=unchanged))

        return world.agent("a", calls(("ask_both", {"question": "?"}, "a-1")), runner(world, "both", body))

    world.defaults, world.build = {"nested": unchanged}, build
    output = await world.begin()
    for _ in range(5):  # either may ask first, and the other then or when the call is made again
        assert world.did.count("b begins to pay") == world.did.count("b has paid"), "cut off half-way"
        if not waits(output):
            break
        for path in await world.pending():
            await world.answer(path)
        output = await world.go_on()
    assert "c paid 2" in output
    assert world.did.count("b begins to pay") == 1
    await world.ended()
