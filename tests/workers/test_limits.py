"""Limits: at every level, counted to whoever delegated, and over a pause."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import DeferredToolRequests
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.run import AgentRunResult
from tests.profiles import NIGHTLY
from tests.workers.project import PricedModel, calling, project, run, saying

from signoff.core.decision import ApprovalDecision
from signoff.core.mode import ApprovalMode
from signoff.core.request import ApprovalRequest
from signoff.errors import LimitReached, WrongFile
from signoff.gate.resume import resume_run
from signoff.testing import FakeClock
from signoff.workers.project_workers import Workers

READS = calling("list_files")
OPEN = """
policy: [{allow: list_files}]
toolsets: {reading: {use: filesystem_ro, config: {root: notes}}}
"""


def answers(result: AgentRunResult[Any], tool: str) -> list[str]:
    parts = (part for message in result.all_messages() for part in message.parts)
    return [str(part.content) for part in parts if isinstance(part, ToolReturnPart) and part.tool_name == tool]


async def test_requests_are_counted_and_the_error_names_limit_worker_and_place(tmp_path: Path) -> None:
    worker = "toolsets: [reading]\nlimits: {tokens: 9000, requests: 2}"
    turns: Sequence[Any] = [READS, READS, "Done."]
    shop = Workers(project(tmp_path, {"reader": worker}, file=OPEN), model=saying(*turns))
    with pytest.raises(LimitReached) as reached:
        await run(shop, "reader")
    assert (reached.value.worker, reached.value.limit) == ("reader", "requests")
    assert "workers/reader.yaml:2:34: limits.requests: reader has made all 2 model requests" in str(reached.value)

    enough = project(tmp_path / "b", {"reader": worker.replace("requests: 2", "requests: 3")}, file=OPEN)
    assert (await run(Workers(enough, model=saying(*turns)), "reader")).output == "Done."


async def test_without_a_limit_there_is_none(tmp_path: Path) -> None:
    shop = Workers(project(tmp_path, {"r": "toolsets: [reading]"}, file=OPEN), model=saying(*[READS] * 51, "Done."))
    assert (await run(shop, "r")).output == "Done."  # PydanticAI alone would stop at 50


async def test_tokens_over_the_limit_end_the_run(tmp_path: Path) -> None:
    settings = project(tmp_path, {"reader": "limits: {tokens: 9}"})
    with pytest.raises(LimitReached, match=r"limits.tokens: reader has used 10 tokens, and its limit is 9"):
        await run(Workers(settings, model=saying("Done.", tokens=10)), "reader")
    assert (await run(Workers(settings, model=saying("Done.", tokens=9)), "reader")).output == "Done."


async def test_cost_over_the_limit_ends_the_run(tmp_path: Path) -> None:
    settings = project(tmp_path, {"reader": "toolsets: [reading]\nlimits: {cost: 0.01}"}, file=OPEN)
    dear = saying(READS, "Done.", tokens=500, priced=True)  # $15 for a million tokens: $0.0075 each
    with pytest.raises(LimitReached, match=r"limits\.cost: reader has cost \$0\.0150, and its limit is \$0\.01"):
        await run(Workers(settings, model=dear), "reader")
    cheap = saying(READS, "Done.", tokens=300, priced=True)
    assert (await run(Workers(settings, model=cheap), "reader")).output == "Done."


async def test_a_limit_on_cost_needs_a_model_with_a_price(tmp_path: Path) -> None:
    settings = project(tmp_path, {"reader": "limits: {cost: 1}"})
    with pytest.raises(WrongFile) as error:
        Workers(settings, model=saying("Done.")).worker("reader")
    assert "reader.yaml:1:16: limits.cost: no price is known for the model function:" in str(error.value)
    assert "limit requests or tokens instead" in str(error.value)


async def test_an_answer_without_a_price_ends_a_run_whose_cost_is_limited(tmp_path: Path) -> None:
    class Changing(PricedModel):
        async def request(self, *args: Any, **options: Any) -> ModelResponse:
            return replace(await super().request(*args, **options), model_name="who-knows")

    def says(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        return ModelResponse(parts=[TextPart("Done.")])

    shop = Workers(project(tmp_path, {"r": "limits: {cost: 1}"}), model=Changing(says, model_name="claude-sonnet-4-5"))
    with pytest.raises(LimitReached, match="no price is known for an answer of who-knows"):
        await run(shop, "r")


# --- delegated ---

CHAIN = {
    "top": "delegates: [middle]\nmodel: script:top.turns",
    "middle": "delegates: [leaf]\nmodel: script:middle.turns",
    "leaf": "toolsets: [reading]\nmodel: script:leaf.turns",
}
TURNS = {
    "top": "- calls: [{tool: worker_call, args: {worker: middle, prompt: Go.}}]\n- say: 'top: {{last}}'",
    "middle": "- calls: [{tool: worker_call, args: {worker: leaf, prompt: Go.}}]\n- say: 'middle: {{last}}'",
    "leaf": "- calls: [{tool: list_files, args: {}}]\n- calls: [{tool: list_files, args: {}}]\n- say: leaf",
}
"""Seven requests: two, two and three."""


def limited(directory: Path, **limits: str) -> Workers:
    workers = {name: f"{text}\nlimits: {limits[name]}" if name in limits else text for name, text in CHAIN.items()}
    return Workers(project(directory, workers, file=OPEN, scripts=TURNS))


@pytest.mark.mission("P9")
@pytest.mark.parametrize(
    ("level", "enough", "short"),
    [("top", "{requests: 7}", "{requests: 6}"), ("middle", "{requests: 5}", "{requests: 4}")],
)
async def test_p9_what_is_delegated_is_counted_to_the_caller(
    tmp_path: Path, level: str, enough: str, short: str
) -> None:
    assert (await run(limited(tmp_path / "a", **{level: enough}), "top")).output == "top: middle: leaf"
    shop = limited(tmp_path / "b", **{level: short})
    if level == "top":
        with pytest.raises(LimitReached, match="top has made all 6 model requests"):
            await run(shop, "top")
        return
    said = (await run(shop, "top")).output  # the worker below is over; its caller is told and goes on
    assert "top: middle was stopped:" in said
    assert "middle.yaml:3:20: limits.requests: middle has made all 4 model requests" in said


async def test_a_limit_of_the_innermost_stops_it_alone(tmp_path: Path) -> None:
    result = await run(limited(tmp_path, leaf="{requests: 2}"), "top")
    assert "top: middle: leaf was stopped:" in result.output
    assert "leaf has made all 2 model requests" in result.output
    assert result.usage.requests == 6
    assert result.usage.details == {}


async def test_a_callers_limit_reached_below_says_who_used_it(tmp_path: Path) -> None:
    with pytest.raises(LimitReached) as reached:
        await run(limited(tmp_path, top="{requests: 4}", leaf="{requests: 3}"), "top")
    assert reached.value.worker == "top"
    assert "including what leaf used for it" in str(reached.value)
    assert "workers/top.yaml:3:" in str(reached.value)


async def test_two_workers_at_once_share_what_their_caller_has_left(tmp_path: Path) -> None:
    both = "- calls:\n" + "".join(
        f"    - {{tool: worker_call, args: {{worker: leaf, prompt: '{number}'}}}}\n" for number in (1, 2)
    )
    workers = {"top": "delegates: [leaf]\nmodel: script:top.turns\nlimits: {requests: 5}", "leaf": CHAIN["leaf"]}
    scripts = {"top": f"{both}- say: '{{{{last}}}}'", "leaf": TURNS["leaf"]}
    with pytest.raises(LimitReached, match="top has made all 5 model requests"):
        await run(Workers(project(tmp_path, workers, file=OPEN, scripts=scripts)), "top")


async def test_a_cost_limit_holds_for_models_below(tmp_path: Path) -> None:
    workers = {"top": "delegates: [leaf]\nlimits: {cost: 1}", "leaf": "model: script:leaf.turns"}
    turns = (calling("worker_call", worker="leaf", prompt="Go."), "Done.")
    settings = project(tmp_path, workers, scripts={"leaf": "- say: leaf"})
    result = await run(Workers(settings, model=saying(*turns, priced=True)), "top")
    [told] = answers(result, "worker_call")
    assert "top.yaml:2:16: limits.cost: no price is known for the model" in told
    assert "which leaf uses for it" in told


@pytest.mark.parametrize(("depth", "called"), [(0, ""), (1, "middle"), (2, "middle leaf")])
async def test_depth_is_counted_from_each_worker(tmp_path: Path, depth: int, called: str) -> None:
    said = (await run(limited(tmp_path, top=f"{{depth: {depth}}}"), "top")).output
    assert ("middle was not called" not in said) == ("middle" in called)
    assert ("leaf was not called" not in said) == ("leaf" in called or not called)
    if depth < 2:
        assert f"top may delegate {depth} levels deep" in said and "top.yaml:3:17: limits.depth" in said


async def test_figures_outlive_the_process(tmp_path: Path) -> None:
    """A limit is not begun anew when a run is resumed: not for the outermost, not for one inside."""
    scripts = {**TURNS, "leaf": "- calls: [{tool: write_file, args: {path: x, content: y}}]\n- say: leaf"}
    file = "policy: []\ntoolsets: {files: {use: filesystem_rw, config: {root: notes}}}"
    cases = [("top", 6, ""), ("top", 5, "top"), ("middle", 3, "middle")]
    for number, (worker, limit, stopped) in enumerate(
        [*cases, *([("middle", 4, ""), ("leaf", 1, "leaf")] if NIGHTLY else [])]
    ):
        workers = {**CHAIN, "leaf": "toolsets: [files]\nmodel: script:leaf.turns"}
        workers[worker] += f"\nlimits: {{requests: {limit}}}"
        directory = tmp_path / str(number)
        settings = project(directory, workers, file=file, scripts=scripts)
        store = f"sqlite:{directory}/store.db"
        first = Workers(settings, store=store, wait="suspend")
        assert isinstance((await run(first, "top")).output, DeferredToolRequests)
        [asked] = await first.worker("top").gate.pending()
        await first.worker("top").gate.answer(asked.id, ApprovalDecision(approved=True), by="ana")
        first.shared_store.close()

        second = Workers(settings, store=store, wait="suspend")
        top = second.worker("top")
        again = resume_run(top.agent, asked.run, **top.run_options())
        if stopped == "top":
            with pytest.raises(LimitReached, match="top has made all 5 model requests"):
                await again
        elif stopped:
            assert f"{stopped} was stopped" in (await again).output
        else:
            result = await again
            assert (result.output, result.usage.requests) == ("top: middle: leaf", 6)
        second.shared_store.close()


# --- time ---


class Slow:
    """A model that takes its time: it turns the clock."""

    def __init__(self, clock: FakeClock, *turns: Any, seconds: float = 10) -> None:
        self.clock, self.turns, self.seconds = clock, turns, seconds

    def model(self) -> FunctionModel:
        inner = saying(*self.turns)

        def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
            self.clock.advance(self.seconds)
            assert inner.function is not None
            found = inner.function(messages, info)
            assert isinstance(found, ModelResponse)
            return found

        return FunctionModel(answer)


@pytest.mark.parametrize(("limit", "ends"), [("25s", False), ("20s", True)])
async def test_time_counts_while_the_worker_works(tmp_path: Path, limit: str, ends: bool) -> None:
    clock = FakeClock()
    settings = project(tmp_path, {"r": f"toolsets: [reading]\nlimits: {{time: {limit}}}"}, file=OPEN)
    shop = Workers(settings, model=Slow(clock, READS, "Done.").model(), clock=clock)
    if ends:
        with pytest.raises(
            LimitReached, match=r"r\.yaml:2:16: limits\.time: r has reached its time limit of 20 seconds"
        ):
            await run(shop, "r")
    else:
        assert (await run(shop, "r")).output == "Done."


class Patient:
    """Somebody who takes three hours for an answer."""

    def __init__(self, clock: FakeClock) -> None:
        self.clock = clock

    def choose(self, request: ApprovalRequest, *, mode: ApprovalMode) -> ApprovalDecision:
        self.clock.advance(timedelta(hours=3))
        return ApprovalDecision(approved=True)


WRITE = calling("write_file", path="a.txt", content="x")


async def test_waiting_for_people_does_not_count(tmp_path: Path) -> None:
    clock = FakeClock()
    settings = project(tmp_path, {"writer": "toolsets: [files]\nlimits: {time: 25s}"})
    shop = Workers(settings, model=Slow(clock, WRITE, "Done.").model(), clock=clock, approver=Patient(clock))
    assert (await run(shop, "writer")).output == "Done."
    assert (tmp_path / "notes" / "a.txt").read_text() == "x"


@pytest.mark.parametrize(("limit", "said"), [("45s", "Done."), ("40s", "top has reached its time limit of 40 seconds")])
async def test_nor_does_waiting_inside_a_worker_it_called(tmp_path: Path, limit: str, said: str) -> None:
    clock = FakeClock()
    workers = {"top": f"delegates: [leaf]\nlimits: {{time: {limit}}}", "leaf": "toolsets: [files]"}
    call = calling("worker_call", worker="leaf", prompt="Go.")
    inner = Slow(clock, WRITE, "Written.").model()
    outer = Slow(clock, call, "Done.").model()

    def either(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        model = outer if any(tool.name == "worker_call" for tool in info.function_tools) else inner
        assert model.function is not None
        answer = model.function(messages, info)
        assert isinstance(answer, ModelResponse)
        return answer

    settings = project(tmp_path, workers)
    shop = Workers(settings, model=FunctionModel(either), clock=clock, approver=Patient(clock))
    if said == "Done.":
        assert (await run(shop, "top")).output == said
    else:
        with pytest.raises(LimitReached, match=said):
            await run(shop, "top")


@pytest.mark.parametrize(("limit", "ends"), [("25s", False), ("20s", True)])
async def test_time_goes_on_where_it_was_when_a_run_is_resumed(tmp_path: Path, limit: str, ends: bool) -> None:
    clock = FakeClock()
    settings = project(tmp_path, {"writer": f"toolsets: [files]\nlimits: {{time: {limit}}}"})
    store, model = f"sqlite:{tmp_path}/store.db", Slow(clock, WRITE, "Done.").model()
    first = Workers(settings, store=store, wait="suspend", model=model, clock=clock)
    assert isinstance((await run(first, "writer")).output, DeferredToolRequests)
    gate = first.worker("writer").gate
    [asked] = await gate.pending()
    clock.advance(timedelta(days=2))
    await gate.answer(asked.id, ApprovalDecision(approved=True), by="ana")
    first.shared_store.close()

    second = Workers(settings, store=store, wait="suspend", model=model, clock=clock)
    worker = second.worker("writer")
    again = resume_run(worker.agent, asked.run, **worker.run_options())
    if ends:
        with pytest.raises(LimitReached, match="writer has reached its time limit of 20 seconds"):
            await again
    else:
        assert (await again).output == "Done."
    second.shared_store.close()


async def test_a_limit_from_elsewhere_is_named_where_it_stands(tmp_path: Path) -> None:
    file = "policy: []\ndefaults: {worker: {limits: {tokens: 5}}}"
    shop = Workers(project(tmp_path, {"r": "limits: {requests: 9}"}, file=file), model=saying("Done."))
    with pytest.raises(LimitReached, match=r"signoff\.yaml:2:38: defaults\.worker\.limits\.tokens: r has used 10"):
        await run(shop, "r")


async def test_a_request_that_takes_too_long_is_cut_off(tmp_path: Path) -> None:
    clock = FakeClock()
    asked = asyncio.Event()

    async def never(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        asked.set()
        await asyncio.Event().wait()
        raise AssertionError

    settings = project(tmp_path, {"r": "limits: {time: 1m}"})
    running = asyncio.ensure_future(run(Workers(settings, model=FunctionModel(never), clock=clock), "r"))
    await asked.wait()
    clock.advance(59)
    await asyncio.sleep(0)
    assert not running.done()
    clock.advance(1)
    with pytest.raises(LimitReached, match="r has reached its time limit of 60 seconds"):
        await running
