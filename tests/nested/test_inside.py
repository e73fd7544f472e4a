"""The run inside: what it answers with, what it uses, what it need not declare, and where its store is memory."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from itertools import product
from typing import Any

import pytest
from pydantic import BaseModel
from pydantic_ai import Agent, DeferredToolRequests, NativeOutput, PromptedOutput, RunContext, TextOutput, ToolOutput
from pydantic_ai.messages import ModelResponse, ToolCallPart
from pydantic_ai.usage import RunUsage, UsageLimits
from tests.nested.kit import NO, RULES, YES, World, calls, waits
from tests.nested.test_several import asks, runner
from tests.pairwise import cases

from signoff import Signoff, call_agent, resume
from signoff.errors import WrongUse
from signoff.testing import ScriptedModel

HOW = pytest.mark.parametrize("unchanged", [False, True], ids=["call_agent", "unchanged"])


class Report(BaseModel):
    title: str
    amounts: list[int]


@dataclass
class Plan:
    title: str
    amounts: tuple[int, ...]


class Colour(StrEnum):
    RED = "red"


def planned(title: str, amount: int) -> Plan:
    return Plan(title, (amount,))


class Opaque:
    """Has no JSON form."""


def shouted(text: str) -> str:
    return text.upper()


async def run(ctx: RunContext[Any], agent: Agent[Any, Any], prompt: str, *, unchanged: bool) -> Any:
    return (await agent.run(prompt)).output if unchanged else await call_agent(ctx, agent, prompt)


# --- what it answers with ---

KINDS: dict[str, tuple[Any, dict[str, Any] | str, Any]] = {
    "model": (Report, {"title": "r", "amounts": [1, 2]}, Report(title="r", amounts=[1, 2])),
    "dataclass": (Plan, {"title": "p", "amounts": [1, 2]}, Plan("p", (1, 2))),
    "list of models": (
        list[Report],
        {"response": [{"title": "r", "amounts": []}]},
        [Report(title="r", amounts=[])],
    ),
    "list": (list[int], {"response": [1, 2]}, [1, 2]),
    "dict": (dict[str, int], {"response": {"a": 1}}, {"a": 1}),
    "number": (int, {"response": 3}, 3),
    "tool output": (ToolOutput(Report), {"title": "r", "amounts": [3]}, Report(title="r", amounts=[3])),
    "one of two": ([Plan, Report], {"title": "r", "amounts": [3]}, Plan("r", (3,))),
    "native": (NativeOutput(Report), '{"title": "r", "amounts": [3]}', Report(title="r", amounts=[3])),
    "prompted": (PromptedOutput(Report), '{"title": "r", "amounts": [3]}', Report(title="r", amounts=[3])),
    "function": (planned, {"title": "p", "amount": 4}, Plan("p", (4,))),
    "union": (Report | Plan, {"title": "r", "amounts": [1]}, Report(title="r", amounts=[1])),
    "list of names": (list[Colour], {"response": ["red"]}, [Colour.RED]),
    "text function": (TextOutput(shouted), "loud", "LOUD"),
}


LIKE_OTHERS = ("list", "number", "tool output", "prompted")
"""Played at night: they are remembered as a dict, a model and a native output are."""


class Answering(ScriptedModel):
    """Looks once, then answers: through the agent's first output tool, or in words."""

    def __init__(self, answer: dict[str, Any] | str) -> None:
        super().__init__([{"calls": [{"tool": "look_b", "id": "b-1"}]}, {"say": str(answer)}])
        self._says = answer
        self.asked = 0

    def _answer(self, messages: Any, info: Any) -> ModelResponse:
        made = super()._answer(messages, info)
        self.asked += 1
        if isinstance(self._says, dict) and not any(isinstance(part, ToolCallPart) for part in made.parts):
            return ModelResponse(parts=[ToolCallPart(info.output_tools[0].name, self._says)], usage=made.usage)
        return made


WAYS = ("call_agent", "unchanged")


@pytest.mark.parametrize(
    ("kind", "way"),
    cases(
        product(KINDS, WAYS),
        [(kind, WAYS[number % 2]) for number, kind in enumerate(KINDS) if kind not in LIKE_OTHERS],  # ways in turns
    ),
)
async def test_an_answer_of_any_kind_is_remembered(world: World, kind: str, way: str) -> None:
    unchanged = way == "unchanged"
    declared, says, wanted = KINDS[kind]
    got: list[Any] = []
    models: list[Answering] = []

    def build(world: World) -> Agent[Any, Any]:
        models.append(Answering(says))
        b: Agent[Any, Any] = Agent(
            models[-1], name="b", output_type=declared, tools=world.tools("b"), capabilities=[world.gate()]
        )
        c = world.payer("c", 2)

        async def body(ctx: RunContext[Any], question: str) -> str:
            got.append(await run(ctx, b, question, unchanged=unchanged))
            return await run(ctx, c, question, unchanged=unchanged)

        return world.agent("a", calls(("ask_b", {"question": "?"}, "a-1")), runner(world, "b", body))

    world.defaults, world.build = {"nested": unchanged}, build
    assert waits(await world.begin())
    await world.answer()
    assert "c paid 2" in await world.go_on()
    assert [repr(one) for one in got] == [repr(wanted)] * 2, "of the same type, whatever is in it"
    assert got == [wanted] * 2
    assert [one.asked for one in models] == [2, 0], "its model is not asked again"
    assert world.did.count("look b") == 1
    await world.ended()


class Invoice(BaseModel):
    number: int


OTHERS: dict[str, tuple[Any, dict[str, Any] | str, Any]] = {
    "a model, now another": (Report, KINDS["model"][1], Invoice),
    "a model, now text": (Report, KINDS["model"][1], str),
    "text, now a model": (str, "all is well", Report),
    "a number, now a model": (int, {"response": 3}, Report),
    "a dict, now a model": (dict[str, int], {"response": {"a": 1}}, Report),
}


AXES = (("allowed", "approved"), OTHERS, WAYS)


@pytest.mark.parametrize(
    ("outer", "case", "how"),
    cases(
        product(*AXES),
        [(AXES[0][number % 2], case, WAYS[number // 2 % 2]) for number, case in enumerate(OTHERS)],
    ),
)
async def test_an_answer_that_fits_no_longer_is_said_so_and_nothing_is_lost(
    world: World, case: str, outer: str, how: str
) -> None:
    unchanged = how == "unchanged"
    before, says, after = OTHERS[case]
    now, got = [before], list[Any]()
    rules = RULES if outer == "allowed" else [{"allow": "look*"}, {"ask": ["ask*", "pay*"]}]

    def build(world: World) -> Agent[Any, Any]:
        b: Agent[Any, Any] = Agent(
            Answering(says), name="b", output_type=now[0], tools=world.tools("b"), capabilities=[world.gate()]
        )
        c = world.payer("c", 2)

        async def body(ctx: RunContext[Any], question: str) -> str:
            got.append(await run(ctx, b, question, unchanged=unchanged))
            return await run(ctx, c, question, unchanged=unchanged)

        turns, gate = calls(("ask_b", {"question": "?"}, "a-1")), world.gate(rules)
        return world.agent("a", turns, runner(world, "b", body), gate=gate)

    world.defaults, world.build = {"nested": unchanged}, build
    output = await world.begin()
    if outer == "approved":
        await world.answer("a-1")
        output = await world.go_on()
    assert waits(output)
    await world.answer("a-1/c-2")
    now[0] = after
    with pytest.raises(WrongUse, match=r"^b answered before .* no longer fits its output type"):
        await world.go_on()
    assert len(got) == 1 and world.did == ["ask_b", "look b", "look c", "ask_b"], "nobody was given what does not fit"
    now[0] = before
    assert "c paid 2" in await world.go_on(), "with the output type it had, it goes on, as the error says"
    assert got[1] == got[0] and world.did.count("pay c 2") == world.did.count("look b") == 1
    await world.ended()


async def test_an_answer_without_a_json_form_is_made_again_but_not_what_was_approved(world: World) -> None:
    got: list[Any] = []

    def opaque() -> Any:
        return Opaque()

    def build(world: World) -> Agent[Any, Any]:
        class Paying(ScriptedModel):
            def _answer(self, messages: Any, info: Any) -> ModelResponse:
                made = super()._answer(messages, info)
                if any(isinstance(part, ToolCallPart) for part in made.parts):
                    return made
                return ModelResponse(parts=[ToolCallPart(info.output_tools[0].name, {})], usage=made.usage)

        b: Agent[Any, Any] = Agent(
            Paying(calls(("pay_b", {"amount": 1}, "b-1"))),
            name="b",
            output_type=[opaque, DeferredToolRequests],
            tools=world.tools("b"),
            capabilities=[world.gate()],
        )
        c = world.payer("c", 2)

        async def body(ctx: RunContext[Any], question: str) -> str:
            got.append(await call_agent(ctx, b, question))
            return await call_agent(ctx, c, question)

        return world.agent("a", calls(("ask_b", {"question": "?"}, "a-1")), runner(world, "b", body))

    world.build = build
    await world.begin()
    await world.answer("a-1/b-1")
    assert waits(await world.go_on())
    await world.answer("a-1/c-2")
    assert "c paid 2" in await world.go_on()
    assert [type(one) for one in got] == [Opaque, Opaque]
    assert [one for one in world.did if one.startswith("pay")] == ["pay b 1", "pay c 2"]


# --- what it need not declare ---


@HOW
@pytest.mark.parametrize("decision", [YES, NO], ids=["approve", "deny"])
async def test_the_run_inside_need_not_declare_that_it_pauses(world: World, unchanged: bool, decision: Any) -> None:
    def build(world: World) -> Agent[Any, Any]:
        c = world.payer("c", 1, output_type=str)
        turns = calls(("ask_c", {"question": "?"}, "b-1"))
        b = world.agent("b", turns, asks(world, c, unchanged=unchanged), output_type=str)
        return world.agent("a", calls(("ask_b", {"question": "?"}, "a-1")), asks(world, b, unchanged=unchanged))

    world.defaults, world.build = {"nested": unchanged}, build
    assert waits(await world.begin())
    await world.answer(decision=decision)
    assert ("c paid 1" if decision is YES else "not today") in await world.go_on()
    assert [world.turns_of(one) for one in "abc"] == [[0, 1]] * 3
    await world.ended()


# --- what it uses ---


@pytest.mark.parametrize("shared", [True, False])
async def test_usage_is_counted_once_across_pauses(world: World, shared: bool) -> None:
    seen: list[int] = []

    def build(world: World) -> Agent[Any, Any]:
        b = world.payer("b", 1)

        async def body(ctx: RunContext[Any], question: str) -> str:
            own = RunUsage()
            output = await call_agent(ctx, b, question, **({} if shared else {"usage": own}))
            seen.append(ctx.usage.requests if shared else own.requests)
            return output

        return world.agent("a", calls(("ask_b", {"question": "?"}, "a-1")), runner(world, "b", body))

    world.build = build
    await world.begin()
    await world.go_on()
    await world.answer()
    from signoff import resume

    result = await resume(build(world), (await world.run()).id)
    assert seen == [3 if shared else 2], "of the caller's so far one, of the run inside two"
    assert result.usage.requests == (4 if shared else 2)
    await world.ended()


async def test_a_limit_on_shared_usage_holds_across_pauses(world: World) -> None:
    from pydantic_ai.exceptions import UsageLimitExceeded

    world.build = lambda world: world.agent(
        "a", calls(("ask_b", {"question": "?"}, "a-1")), asks(world, world.payer("b", 1), unchanged=False)
    )
    limits = UsageLimits(request_limit=3)
    await world.begin(usage_limits=limits)
    await world.answer()
    with pytest.raises(UsageLimitExceeded):
        await world.go_on(usage_limits=limits)
    assert world.did.count("pay b 1") == 1


# --- how it is run ---


async def test_deps_reach_every_level_again(world: World) -> None:
    seen: list[Any] = []

    def build(world: World) -> Agent[Any, Any]:
        b = world.payer("b", 1)

        @b.tool
        def look_deps(ctx: RunContext[Any]) -> str:
            return str(ctx.deps)

        async def body(ctx: RunContext[Any], question: str) -> str:
            seen.append(ctx.deps)
            return await call_agent(ctx, b, question)

        return world.agent("a", calls(("ask_b", {"question": "?"}, "a-1")), runner(world, "b", body))

    world.build = build
    await world.begin(deps="one")
    await world.answer()
    await world.go_on(deps="two")
    assert seen == ["one", "two"]


@HOW
async def test_in_memory_it_goes_on_within_the_process(unchanged: bool, world: World) -> None:
    signoff = Signoff(RULES, wait="suspend", nested=unchanged)
    c = world.payer("c", 3, gate=signoff)
    turns = calls(("pay_b", {"amount": 2}, "b-1"), ("ask_c", {"question": "?"}, "b-2"))
    b = world.agent("b", turns, *world.tools("b"), asks(world, c, unchanged=unchanged), gate=signoff)
    a = world.agent("a", calls(("ask_b", {"question": "?"}, "a-1")), asks(world, b, unchanged=unchanged), gate=signoff)
    result = await a.run("go")
    while waits(result.output):
        first, *_ = await signoff.pending()
        await signoff.answer(first.id, YES, by="ana")
        result = await resume(a, result)
    assert sorted(one for one in world.did if one.startswith("pay")) == ["pay b 2", "pay c 3"]
    assert world.did.count("look c") == 1
    assert "c paid 3" in result.output


async def test_a_run_inside_that_failed_begins_anew(world: World) -> None:
    fails = [True]

    def build(world: World) -> Agent[Any, Any]:
        b = world.payer("b", 1)

        @b.tool_plain
        def look_more() -> str:
            if fails:
                raise ConnectionError("gone")
            return "more"

        async def body(ctx: RunContext[Any], question: str) -> str:
            return await call_agent(ctx, b, question)

        b_turns = [*calls(("pay_b", {"amount": 1}, "b-1"))[:1], *calls(("look_more", {}, "b-2"))]
        b.model = ScriptedModel(b_turns)
        return world.agent("a", calls(("ask_b", {"question": "?"}, "a-1")), runner(world, "b", body))

    world.build = build
    await world.begin()
    await world.answer()
    with pytest.raises(ConnectionError):
        await world.go_on()
    assert world.did.count("pay b 1") == 1
    assert str((await world.run()).state) == "failed"
