"""Telling what happens to a call: to whoever watches, to traces, and to the record."""

from __future__ import annotations

import warnings
from copy import deepcopy
from dataclasses import dataclass, field

from signoff.core.event import CallEvent, Happened
from signoff.core.request import ApprovalRequest
from signoff.gate.gate import Gate
from signoff.gate.passage import Passage
from signoff.gate.traces import Traces


@dataclass(slots=True)
class Teller:
    """Tells the steps of one run's calls."""

    gate: Gate
    run_id: str
    _traces: Traces | None = field(default_factory=Traces.of_run)
    _settled: set[str] = field(default_factory=set[str])

    def tell(
        self, what: Happened, passage: Passage, *, request: ApprovalRequest | None = None, by: str = "", text: str = ""
    ) -> None:
        """Tell a step. Nobody who is told can change what happens."""
        if self.gate.keeps_record and request is None:  # with a request, the broker writes down what happens
            self.gate.broker.notes.add(what, passage.call, passage.verdict, run=self.run_id, by=by, text=text)
        if self._traces is not None:
            self._trace(self._traces, what, passage, request, text)
        if self.gate.observe is not None:
            call = passage.call.changed(args=deepcopy(passage.call.args))
            event = CallEvent(
                what=what,
                call=call,
                verdict=passage.verdict,
                request=request,
                by=by,
                text=text,
                secrets=self.gate.secrets,
            )
            try:
                self.gate.observe(event)
            except Exception as error:  # whoever watches must not change what happens
                warnings.warn(f"observe failed on {what}: {error!r}", RuntimeWarning, stacklevel=2)

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
