"""Telling what happens to a call: to whoever watches, to traces, and to the record."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from copy import deepcopy
from dataclasses import dataclass, field, replace

from signoff.core.event import CallEvent, Happened
from signoff.core.request import ApprovalRequest, State
from signoff.gate.denial import decided_by, decided_why
from signoff.gate.gate import Gate
from signoff.gate.passage import Passage
from signoff.gate.traces import Traces


@dataclass(slots=True)
class Teller:
    """Tells the steps of one run's calls."""

    gate: Gate
    run_id: str
    inside: set[str] = field(default_factory=set[str])
    """Secrets of runs inside the run's calls, which errors and results of those may quote."""
    _traces: Traces | None = field(default_factory=Traces.of_run)
    _settled: set[str] = field(default_factory=set[str])

    def tell(
        self, what: Happened, passage: Passage, *, request: ApprovalRequest | None = None, by: str = "", text: str = ""
    ) -> None:
        """Tell a step. Nobody who is told can change what happens."""
        if self.gate.keeps_record and request is None:  # with a request, the broker writes down what happens
            self.gate.broker.notes.add(
                what,
                passage.call,
                passage.verdict,
                run=self.run_id,
                by=by,
                text=text,
                secrets=(*self.gate.secrets, *self.inside),
            )
        if self._traces is not None:
            self._trace(self._traces, what, passage, request, text)
        if self.gate.observe is not None:
            event = CallEvent(what=what, call=passage.call, verdict=passage.verdict, request=request, by=by, text=text)
            _observed(self.gate, event)

    def settled(self, request: ApprovalRequest) -> None:
        """A question of this run has its answer."""
        if self._traces is not None and request.id not in self._settled:
            self._settled.add(request.id)
            self._traces.settled(request)

    def close(self) -> None:
        """The run is over, or put down."""
        if self._traces is not None:
            self._traces.close()

    def _trace(
        self, traces: Traces, what: Happened, passage: Passage, request: ApprovalRequest | None, text: str
    ) -> None:
        match what:
            case Happened.ASKED if request is not None:
                traces.asked(request)
            case Happened.RAN:
                traces.ran(passage.call, request)
            case Happened.FAILED:
                traces.ran(passage.call, request, text)
            case _:
                traces.judged(passage.call, passage.verdict, what)


def tell_refused(gate: Gate, requests: Iterable[ApprovalRequest]) -> None:
    """Calls were refused while nobody ran this: PydanticAI is told so at once, and they do not pass the gate again."""
    for request in requests if gate.observe is not None else ():
        if request.call is not None and request.decision is not None and request.state in (State.DENIED, State.EXPIRED):
            by, why = decided_by(request.decision), decided_why(request.decision)
            told = CallEvent(
                what=Happened.DENIED, call=request.call, verdict=request.verdict, request=request, by=by, text=why
            )
            _observed(gate, told)


def _observed(gate: Gate, event: CallEvent) -> None:
    assert gate.observe is not None, "only where somebody watches"
    call = event.call.changed(args=deepcopy(event.call.args))
    try:
        gate.observe(replace(event, call=call, secrets=gate.secrets))
    except Exception as error:  # whoever watches must not change what happens
        warnings.warn(f"observe failed on {event.what}: {error!r}", RuntimeWarning, stacklevel=2)
