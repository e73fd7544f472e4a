"""Questions that are put one after the other, in the order they came, in a thread of their own."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress

from signoff.core.decision import ApprovalDecision, Ending
from signoff.core.request import ApprovalRequest

Outcome = Future[ApprovalDecision | None]
"""What became of a question: the decision, or None where whoever was asked left without one."""


class Turns:
    """A line of questions before whatever puts one at a time. Safe to use from any thread.

    Its thread is there while something waits, and no longer. It keeps no program from ending.
    """

    def __init__(self, put: Callable[[ApprovalRequest], ApprovalDecision | None]) -> None:
        """`put` waits for a person. Where it gives None they have left, and nothing else is put that waits now."""
        self._put = put
        self._lock = threading.Lock()
        self._line: deque[tuple[ApprovalRequest | Callable[[], None], Outcome]] = deque()
        self._thread: threading.Thread | None = None

    def ask(self, request: ApprovalRequest) -> Outcome:
        """Put a question at the end of the line; one whose answer was not accepted comes next."""
        return self._add(request, is_next=bool(request.problem))

    def do(self, work: Callable[[], None]) -> None:
        """Have something done between two questions, such as a line printed."""
        self._add(work)

    def withdraw(self, request_id: str, why: str) -> None:
        """Take a question out of the line. The one that is put now is not in it."""
        gone = ApprovalDecision(approved=False, note=why, ending=Ending.CANCELLED)
        for outcome in self._out(lambda one: one.id == request_id):
            outcome.set_result(gone)

    def leave(self) -> None:
        """Whoever is asked has left: nothing in the line is put any longer."""
        for outcome in self._out(lambda _: True):
            outcome.set_result(None)

    def _add(self, what: ApprovalRequest | Callable[[], None], *, is_next: bool = False) -> Outcome:
        outcome: Outcome = Future()
        outcome.set_running_or_notify_cancel()  # whoever waits for it cannot cancel it: the question would stay
        with self._lock:
            self._line.insert(0 if is_next else len(self._line), (what, outcome))
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="signoff-turns", daemon=True)
                self._thread.start()
        return outcome

    def _out(self, meant: Callable[[ApprovalRequest], bool]) -> list[Outcome]:
        with self._lock:
            taken = [one for one in self._line if isinstance(one[0], ApprovalRequest) and meant(one[0])]
            for one in taken:
                self._line.remove(one)
        return [outcome for _, outcome in taken]

    def _work(self) -> None:
        while True:
            with self._lock:
                if not self._line:
                    self._thread = None
                    return
                what, outcome = self._line.popleft()
            self._turn(what, outcome)

    def _turn(self, what: ApprovalRequest | Callable[[], None], outcome: Outcome) -> None:
        try:
            decision = self._put(what) if isinstance(what, ApprovalRequest) else what()
        except BaseException as error:  # whoever waits for the answer is told; the line goes on
            with suppress(InvalidStateError):
                outcome.set_exception(error)
            return
        if decision is None and isinstance(what, ApprovalRequest):
            self.leave()
        with suppress(InvalidStateError):
            outcome.set_result(decision)
