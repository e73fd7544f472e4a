"""Report the steps of calls as they happen: to the audit log, to OpenTelemetry, and to `observe`.

A trace never holds an argument's value. A call is described by the request's title, in which secrets are masked.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from opentelemetry import trace
from opentelemetry.trace import Span, Tracer

from signoff.core.call import Call
from signoff.core.event import CallEvent, CallStep
from signoff.core.request import ApprovalRequest, State
from signoff.core.verdict import Verdict
from signoff.gate.gate import Gate
from signoff.gate.gated_calls import GatedCall
from signoff.gate.refusal_words import decided_by, decided_why

Attributes = Mapping[str, Any]

NAME = "signoff"
_UNHEARD = (trace.NoOpTracer, trace.ProxyTracer)
"""The tracers of an agent that is not instrumented, or only with whatever provider the process has."""


class Traces:
    """The OpenTelemetry traces of one run. Where nobody listens there are none: a call pays for a None check."""

    def __init__(self, tracer: Tracer) -> None:
        self._tracer = tracer
        self._asks: dict[str, Span] = {}

    @classmethod
    def of_run(cls, tracer: Tracer | None = None) -> Traces | None:
        """Return traces to the tracer that the agent was given, else to the process's provider; None without either."""
        if tracer is not None and not isinstance(tracer, _UNHEARD):
            return cls(tracer)
        provider = trace.get_tracer_provider()
        if isinstance(provider, (trace.ProxyTracerProvider, trace.NoOpTracerProvider)):
            return None
        return cls(provider.get_tracer(NAME))

    def judged(self, call: Call, verdict: Verdict, why: str) -> None:
        """A call was judged; `why` is what came of it: `allowed`, `denied`, `asked`, `remembered` …"""
        said = {"signoff.verdict": str(verdict.effect), "signoff.outcome": str(why), "signoff.rules": verdict.rules}
        self._event("signoff.judged", {**_call(call), **said, "signoff.in_doubt": bool(verdict.errors)})

    def asked(self, request: ApprovalRequest) -> None:
        """People are asked. Start a span that ends when the request is settled."""
        if request.id not in self._asks:
            self._asks[request.id] = self._tracer.start_span("signoff.ask", attributes=_request(request))

    def settled(self, request: ApprovalRequest) -> None:
        """The request is settled. If a process that has ended asked it, create its span now from the recorded times."""
        decision, ended = request.decision, None
        span = self._asks.pop(request.id, None)
        if span is None:
            opened, ended = _nanoseconds(request.opened_at), _nanoseconds(decision.at if decision else None)
            span = self._tracer.start_span("signoff.ask", attributes=_request(request), start_time=opened)
        said: dict[str, Any] = {"signoff.state": str(request.state), "signoff.votes": len(request.votes)}
        if decision is not None:
            said["signoff.ending"] = str(decision.ending)
            said["signoff.edited"] = decision.edited_args is not None
            said["signoff.title"] = request.title  # after an edit: of the call as it runs
            if decision.by is not None:
                said |= {"signoff.by": decision.by.name, "signoff.by_kind": str(decision.by.kind)}
                said |= {"signoff.via": decision.by.via} if decision.by.via else {}
        span.set_attributes(said)
        span.add_event("signoff.settled", timestamp=ended)
        span.end(ended)

    def ran(self, call: Call, request: ApprovalRequest | None, error: str = "") -> None:
        """A call ran, on a request's approval if there is one; `error` is what it raised, as `Type: message`."""
        said = {**_call(call), "signoff.failed": bool(error)}
        if request is not None:
            said["signoff.request"] = request.id
        if error:
            kind, colon, _ = error.partition(":")  # the message may contain arguments
            said["error.type"] = kind if colon and kind.isidentifier() else "Exception"
        self._event("signoff.ran", said)

    def close(self) -> None:
        """The run ends or is released. End the spans of open questions as pending; for their answers see `settled`."""
        for span in self._asks.values():
            span.set_attribute("signoff.state", "pending")
            span.end()
        self._asks.clear()

    def _event(self, name: str, attributes: Attributes) -> None:
        """Add an event to the current span, or create a span of zero length if there is none."""
        current = trace.get_current_span()
        if current.is_recording():
            current.add_event(name, attributes)
        else:
            self._tracer.start_span(name, attributes=attributes).end()


def _call(call: Call) -> dict[str, Any]:
    said: dict[str, Any] = {"signoff.tool": call.tool, "signoff.call": call.path or call.call_id}
    if call.worker:
        said["signoff.worker"] = call.worker
    if call.toolset:
        said["signoff.toolset"] = call.toolset
    if call.run_id:
        said["signoff.run_id"] = call.run_id
    if call.conversation_id:
        said["signoff.conversation"] = call.conversation_id
    return said


def _request(request: ApprovalRequest) -> dict[str, Any]:
    requirement = request.requirement
    said: dict[str, Any] = _call(request.call) if request.call is not None else {"signoff.tool": request.tool_name}
    said |= {"signoff.request": request.id, "signoff.title": request.title, "signoff.quorum": requirement.quorum}
    said["signoff.asked_again"] = bool(request.changed)
    if requirement.role is not None:
        said["signoff.role"] = requirement.role
    if request.verdict is not None:
        said["signoff.rules"] = request.verdict.rules
    if request.run:
        said["signoff.run"] = request.run
    return said


def _nanoseconds(moment: datetime | None) -> int | None:
    return int(moment.timestamp() * 1_000_000) * 1_000 if moment is not None else None


# --- reporting ---


@dataclass(slots=True)
class Reporter:
    """Reports the steps of one run's calls to the audit log, to traces, and to `observe`."""

    gate: Gate
    run_id: str
    inside: set[str] = field(default_factory=set[str])
    """Secrets of nested runs, which their errors and results may quote."""
    traces: Traces | None = None
    _settled: set[str] = field(default_factory=set[str])

    def report(
        self,
        what: CallStep,
        gated: GatedCall,
        *,
        request: ApprovalRequest | None = None,
        by: str = "",
        text: str = "",
        result: str = "",
    ) -> None:
        """Report a step. No observer can change what happens."""
        grant = gated.grant if what is CallStep.REMEMBERED else None
        if self.gate.keeps_record and request is None:  # with a request, the broker records what happens
            self.gate.broker.audit_buffer.add(
                what,
                gated.call,
                gated.verdict,
                run=self.run_id,
                by=by,
                text=text,
                result=result,
                grant=grant,
                secrets=(*self.gate.secrets, *self.inside),
            )
        if self.traces is not None:
            self._trace(self.traces, what, gated, request, text)
        if self.gate.observe is not None:
            event = CallEvent(
                what=what,
                call=gated.call,
                verdict=gated.verdict,
                request=request,
                by=by,
                text=text,
                grant=grant,
                has_words=gated.origin.has_words,
            )
            _observed(self.gate, event)

    def settled(self, request: ApprovalRequest) -> None:
        """A question of this run has its answer."""
        if self.traces is not None and request.id not in self._settled:
            self._settled.add(request.id)
            self.traces.settled(request)

    def close(self) -> None:
        """The run is over, or released."""
        if self.traces is not None:
            self.traces.close()

    def _trace(
        self, traces: Traces, what: CallStep, gated: GatedCall, request: ApprovalRequest | None, text: str
    ) -> None:
        match what:
            case CallStep.ASKED if request is not None:
                traces.asked(request)
            case CallStep.RAN:
                traces.ran(gated.call, request)
            case CallStep.FAILED | CallStep.CUT_OFF:
                traces.ran(gated.call, request, text)
            case _:
                traces.judged(gated.call, gated.verdict, what)


def report_refused(gate: Gate, requests: Iterable[ApprovalRequest]) -> None:
    """Report calls that were refused before the run was resumed: they do not pass the gate again."""
    for request in requests if gate.observe is not None else ():
        if request.call is not None and request.decision is not None and request.state in (State.DENIED, State.EXPIRED):
            by, why = decided_by(request.decision), decided_why(request.decision)
            event = CallEvent(
                what=CallStep.DENIED, call=request.call, verdict=request.verdict, request=request, by=by, text=why
            )
            _observed(gate, event)


def _observed(gate: Gate, event: CallEvent) -> None:
    assert gate.observe is not None, "only where somebody watches"
    call = event.call.changed(args=deepcopy(event.call.args))
    try:
        gate.observe(replace(event, call=call, secrets=gate.secrets))
    except Exception as error:  # an observer must not change what happens
        warnings.warn(f"observe failed on {event.what}: {error!r}", RuntimeWarning, stacklevel=2)
