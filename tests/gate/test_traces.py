"""OpenTelemetry hears of judged, asked, settled and ran, where somebody listens; and never an argument's value."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from pydantic_ai.capabilities import Instrumentation
from pydantic_ai.models.instrumented import InstrumentationSettings
from tests.gate.agents import Till, agent_with, calls, pays
from tests.records import NOON

from signoff import Signoff
from signoff.core.call import Call
from signoff.core.decision import ApprovalDecision
from signoff.core.people import Actor
from signoff.core.request import ApprovalRequest, State
from signoff.core.verdict import Effect, Requirement, Verdict
from signoff.core.vote import Vote
from signoff.gate.tracing import Traces
from signoff.testing import ScriptedApprover

SECRET = "hunter2-hunter2"
CALL = Call(
    tool="pay",
    args={"to": SECRET, "amount": 77_123},
    toolset="bank",
    worker=("triage", "payer"),
    call_id="c1",
    path="a-1/c1",
    run_id="run",
    conversation_id="talk",
)
VERDICT = Verdict(effect=Effect.ASK, rules=("big",), reason=f"{SECRET} is a lot", requirement=Requirement(role="ops"))
REQUEST = ApprovalRequest(
    tool_call_id="c1",
    tool_name="pay",
    args=CALL.args,
    summary=f"Pay {SECRET}",
    title="Pay ⟦masked 1⟧",
    id="abcdefghjk",
    call=CALL,
    verdict=VERDICT,
    opened_at=NOON,
    run="kept",
)
YES = ApprovalDecision(
    approved=True,
    note=SECRET,
    by=Actor(name="ana", via="terminal"),
    at=NOON + timedelta(minutes=3),
    edited_args={"to": SECRET},
)
SETTLED = replace(
    REQUEST,
    state=State.APPROVED,
    decision=YES,
    votes=(Vote(by=Actor(name="ana"), at=NOON, decision=YES, args_digest="x"),),
)


@pytest.fixture
def heard() -> InMemorySpanExporter:
    return InMemorySpanExporter()


@pytest.fixture
def provider(heard: InMemorySpanExporter) -> Iterator[TracerProvider]:
    made = TracerProvider(shutdown_on_exit=False)
    made.add_span_processor(SimpleSpanProcessor(heard))
    yield made
    made.shutdown()


@pytest.fixture
def traces(provider: TracerProvider) -> Traces:
    made = Traces.of_run(provider.get_tracer("an agent's own"))
    assert made is not None
    return made


def said(span: ReadableSpan) -> dict[str, object]:
    return dict(span.attributes or {})


def test_nothing_is_traced_where_nobody_listens() -> None:
    assert Traces.of_run() is None
    assert Traces.of_run(trace.NoOpTracer()) is None


def test_the_provider_that_was_set_up_is_found(provider: TracerProvider, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trace, "get_tracer_provider", lambda: provider)
    assert Traces.of_run() is not None


@pytest.mark.parametrize("answer", ["approve", "deny"])
async def test_traces_go_to_the_provider_that_the_agent_was_given(
    answer: str, provider: TracerProvider, heard: InMemorySpanExporter
) -> None:
    """The process has no provider: what the gate says is where PydanticAI's own spans of this agent are."""
    assert Traces.of_run() is None
    given = Instrumentation(settings=InstrumentationSettings(tracer_provider=provider))
    gate = Signoff(
        [{"allow": "look"}, {"deny": {"tool": "pay", "args": {"amount": 9}}}], approver=ScriptedApprover([answer])
    )
    turns = [calls(("look", {})), calls(("pay", {"amount": 9})), *pays(1)]
    await agent_with(gate, turns, Till(), capabilities=[given]).run("go")
    spans = heard.get_finished_spans()
    [ask] = [span for span in spans if span.name == "signoff.ask"]
    assert said(ask)["signoff.state"] == ("approved" if answer == "approve" else "denied")
    events = [
        (event.name, said(span)["gen_ai.tool.name"], (event.attributes or {}).get("signoff.outcome"))
        for span in spans
        if span.name.startswith("execute_tool")
        for event in span.events
    ]
    denied = [("signoff.judged", "look", "allowed"), ("signoff.ran", "look", None), ("signoff.judged", "pay", "denied")]
    ran = [("signoff.judged", "pay", "approved"), ("signoff.ran", "pay", None)] if answer == "approve" else []
    assert events == denied + ran


async def test_the_span_of_a_call_that_waits_for_an_answer_says_so(
    provider: TracerProvider, heard: InMemorySpanExporter
) -> None:
    """It did not fail, so its status stays unset, as PydanticAI leaves that of every deferred or refused call."""
    given = Instrumentation(settings=InstrumentationSettings(tracer_provider=provider))
    gate = Signoff([], wait="suspend")
    await agent_with(gate, pays(1), Till(), suspends=True, capabilities=[given]).run("go")
    spans = heard.get_finished_spans()
    [tool] = [span for span in spans if span.name.startswith("execute_tool")]
    assert tool.status.status_code is trace.StatusCode.UNSET
    assert said(tool)["pydantic_ai.tool.deferral.name"] == "ApprovalRequired"
    [ask] = [span for span in spans if span.name == "signoff.ask"]
    assert said(ask)["signoff.state"] == "pending"


def test_an_ask_is_a_span_from_asked_to_settled(traces: Traces, heard: InMemorySpanExporter) -> None:
    traces.asked(REQUEST)
    traces.asked(REQUEST)
    assert heard.get_finished_spans() == ()
    traces.settled(SETTLED)
    [span] = heard.get_finished_spans()
    assert span.name == "signoff.ask"
    assert said(span) == {
        "signoff.tool": "pay",
        "signoff.call": "a-1/c1",
        "signoff.worker": ("triage", "payer"),
        "signoff.toolset": "bank",
        "signoff.run_id": "run",
        "signoff.conversation": "talk",
        "signoff.request": "abcdefghjk",
        "signoff.run": "kept",
        "signoff.title": "Pay ⟦masked 1⟧",
        "signoff.quorum": 1,
        "signoff.role": "ops",
        "signoff.rules": ("big",),
        "signoff.asked_again": False,
        "signoff.state": "approved",
        "signoff.ending": "approved",
        "signoff.edited": True,
        "signoff.votes": 1,
        "signoff.by": "ana",
        "signoff.by_kind": "person",
        "signoff.via": "terminal",
    }
    assert [event.name for event in span.events] == ["signoff.settled"]


def test_an_ask_of_a_process_that_is_gone_has_its_true_length(traces: Traces, heard: InMemorySpanExporter) -> None:
    traces.settled(SETTLED)
    [span] = heard.get_finished_spans()
    assert span.start_time == int(NOON.timestamp()) * 10**9
    assert span.end_time is not None
    assert span.end_time - span.start_time == 180 * 10**9


def test_a_run_that_is_put_down_leaves_no_span_open(traces: Traces, heard: InMemorySpanExporter) -> None:
    traces.asked(REQUEST)
    traces.close()
    traces.close()
    [span] = heard.get_finished_spans()
    assert said(span)["signoff.state"] == "pending"


def test_judged_and_ran_are_events_of_the_span_that_is_going_on(
    traces: Traces, provider: TracerProvider, heard: InMemorySpanExporter
) -> None:
    with provider.get_tracer("agent").start_as_current_span("running tool"):
        traces.judged(CALL, VERDICT, "asked")
        traces.asked(REQUEST)
        traces.settled(SETTLED)
        traces.ran(CALL, SETTLED)
        traces.ran(CALL, None, f"ValueError: no {SECRET}")
    ask, around = heard.get_finished_spans()
    assert ask.parent is not None and around.context is not None
    assert ask.parent.span_id == around.context.span_id
    judged, ran, failed = around.events
    assert (judged.name, ran.name, failed.name) == ("signoff.judged", "signoff.ran", "signoff.ran")
    assert (
        dict(judged.attributes or {}).items()
        >= {
            "signoff.verdict": "ask",
            "signoff.outcome": "asked",
            "signoff.rules": ("big",),
            "signoff.in_doubt": False,
        }.items()
    )
    assert dict(ran.attributes or {}).items() >= {"signoff.failed": False, "signoff.request": "abcdefghjk"}.items()
    assert dict(failed.attributes or {}).items() >= {"signoff.failed": True, "error.type": "ValueError"}.items()


def test_without_a_span_around_they_are_spans_of_their_own(traces: Traces, heard: InMemorySpanExporter) -> None:
    traces.judged(CALL, VERDICT, "denied")
    traces.ran(CALL, None)
    assert [span.name for span in heard.get_finished_spans()] == ["signoff.judged", "signoff.ran"]


def test_no_value_of_an_argument_reaches_a_trace(
    traces: Traces, provider: TracerProvider, heard: InMemorySpanExporter
) -> None:
    with provider.get_tracer("agent").start_as_current_span("running tool"):
        for outcome in ("asked", "allowed", "denied"):
            traces.judged(CALL, VERDICT, outcome)
        traces.asked(REQUEST)
        traces.settled(SETTLED)
        traces.ran(CALL, SETTLED, f"ValueError: {SECRET}")
        traces.ran(CALL, None, SECRET)
        traces.ran(CALL, None, f"{SECRET}: no")
    everything = "".join(span.to_json() for span in heard.get_finished_spans())
    assert "signoff.ask" in everything
    assert SECRET not in everything
    assert "77123" not in everything and "77_123" not in everything


def test_a_question_without_a_call(traces: Traces, heard: InMemorySpanExporter) -> None:
    bare = ApprovalRequest(tool_call_id="1", tool_name="pay", id="x", state=State.EXPIRED)
    traces.settled(bare)
    [span] = heard.get_finished_spans()
    assert said(span) == {
        "signoff.tool": "pay",
        "signoff.request": "x",
        "signoff.title": "",
        "signoff.quorum": 1,
        "signoff.asked_again": False,
        "signoff.state": "expired",
        "signoff.votes": 0,
    }
