"""Telling what happens to a call: to whoever watches, and to the record."""

from __future__ import annotations

import warnings
from copy import deepcopy
from dataclasses import dataclass

from signoff.core.event import CallEvent, Happened
from signoff.core.request import ApprovalRequest
from signoff.gate.gate import Gate
from signoff.gate.passage import Passage


@dataclass(slots=True)
class Teller:
    """Tells the steps of one run's calls."""

    gate: Gate
    run_id: str

    def tell(
        self, what: Happened, passage: Passage, *, request: ApprovalRequest | None = None, by: str = "", text: str = ""
    ) -> None:
        """Tell a step. Nobody who is told can change what happens."""
        if self.gate.keeps_record and request is None:  # with a request, the broker writes down what happens
            self.gate.broker.notes.add(what, passage.call, passage.verdict, run=self.run_id, by=by, text=text)
        if self.gate.observe is not None:
            call = passage.call.changed(args=deepcopy(passage.call.args))
            event = CallEvent(what=what, call=call, verdict=passage.verdict, request=request, by=by, text=text)
            try:
                self.gate.observe(event)
            except Exception as error:  # whoever watches must not change what happens
                warnings.warn(f"observe failed on {what}: {error!r}", RuntimeWarning, stacklevel=2)
