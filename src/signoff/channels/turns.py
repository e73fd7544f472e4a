"""A queue of questions that are asked one after the other, in order, in a thread of its own."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress

from signoff.core.decision import ApprovalDecision, Ending
from signoff.core.request import ApprovalRequest

Outcome = Future[ApprovalDecision | None]
"""A future of a question: the decision, or None if the person left without one."""


class Turns:
    """A queue in front of something that asks one question at a time. Thread-safe.

    Its thread exists only while the queue is not empty. It is a daemon and keeps no program from exiting.
    """

    def __init__(self, put: Callable[[ApprovalRequest], ApprovalDecision | None]) -> None:
        """`put` blocks until a person answers. If it returns None they have left, and the queue is dropped."""
        self._put = put
        self._lock = threading.Lock()
        self._line: deque[tuple[ApprovalRequest | Callable[[], None], Outcome]] = deque()
        self._thread: threading.Thread | None = None

    def ask(self, request: ApprovalRequest) -> Outcome:
        """Put a question at the end of the queue; one whose answer was not accepted goes to the front."""
        return self._add(request, is_next=bool(request.problem))

    def do(self, work: Callable[[], None]) -> None:
        """Run something between two questions, such as printing a line."""
        self._add(work)

    def withdraw(self, request_id: str, why: str) -> None:
        """Remove a question from the queue. The one that is being asked is not in it."""
        gone = ApprovalDecision(approved=False, note=why, ending=Ending.CANCELLED)
        for outcome in self._out(lambda one: one.id == request_id):
            outcome.set_result(gone)

    def leave(self) -> None:
        """Drop every question in the queue, because the person has left."""
        for outcome in self._out(lambda _: True):
            outcome.set_result(None)

    def _add(self, what: ApprovalRequest | Callable[[], None], *, is_next: bool = False) -> Outcome:
        outcome: Outcome = Future()
        outcome.set_running_or_notify_cancel()  # so that a waiting caller cannot cancel it: the question would stay
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
        except BaseException as error:  # raised where the answer is awaited; the queue goes on
            with suppress(InvalidStateError):
                outcome.set_exception(error)
            return
        if decision is None and isinstance(what, ApprovalRequest):
            self.leave()
        with suppress(InvalidStateError):
            outcome.set_result(decision)
