"""What happens to calls, as OpenTelemetry spans and events: only where somebody set up a place for them to go.

Nothing here holds an argument's value. What a call is about is the request's title, in which secrets are masked.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from signoff.core.call import Call
from signoff.core.request import ApprovalRequest
from signoff.core.verdict import Verdict

if TYPE_CHECKING:
    from opentelemetry.trace import Span, Tracer, TracerProvider

Attributes = Mapping[str, Any]

NAME = "signoff"


class Traces:
    """The traces of one run. Made once for a run, or not at all: `None` costs a call nothing but a look."""

    def __init__(self, tracer: Tracer) -> None:
        self._tracer = tracer
        self._asks: dict[str, Span] = {}

    @classmethod
    def of_run(cls, provider: TracerProvider | None = None) -> Traces | None:
        """Traces, if the OpenTelemetry API is installed and a tracer provider was set up (or is given)."""
        try:
            from opentelemetry import trace
        except ImportError:
            return None
        provider = provider or trace.get_tracer_provider()
        if isinstance(provider, (trace.ProxyTracerProvider, trace.NoOpTracerProvider)):
            return None
        return cls(provider.get_tracer(NAME))

    def judged(self, call: Call, verdict: Verdict, why: str) -> None:
        """A call was judged; `why` says what came of it: `allowed`, `denied`, `asked`, `remembered` …"""
        said = {"signoff.verdict": str(verdict.effect), "signoff.outcome": str(why), "signoff.rules": verdict.rules}
        self._event("signoff.judged", {**_call(call), **said, "signoff.in_doubt": bool(verdict.errors)})

    def asked(self, request: ApprovalRequest) -> None:
        """People are asked. A span begins, which ends when it is settled."""
        if request.id not in self._asks:
            self._asks[request.id] = self._tracer.start_span("signoff.ask", attributes=_request(request))

    def settled(self, request: ApprovalRequest) -> None:
        """The question has its answer. One asked by a process that is gone has its span made now, from its times."""
        decision, ended = request.decision, None
        span = self._asks.pop(request.id, None)
        if span is None:
            opened, ended = _nanoseconds(request.opened_at), _nanoseconds(decision.at if decision else None)
            span = self._tracer.start_span("signoff.ask", attributes=_request(request), start_time=opened)
        said: dict[str, Any] = {"signoff.state": str(request.state), "signoff.votes": len(request.votes)}
        if decision is not None:
            said["signoff.ending"] = str(decision.ending)
            said["signoff.edited"] = decision.edited_args is not None
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
            kind, colon, _ = error.partition(":")  # the message may hold arguments
            said["error.type"] = kind if colon and kind.isidentifier() else "Exception"
        self._event("signoff.ran", said)

    def close(self) -> None:
        """The run ends or is put down. Questions that are still open are told as such; see `settled` for the rest."""
        for span in self._asks.values():
            span.set_attribute("signoff.state", "pending")
            span.end()
        self._asks.clear()

    def _event(self, name: str, attributes: Attributes) -> None:
        """An event of the span that is going on, or a span of no length where there is none."""
        from opentelemetry import trace

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
