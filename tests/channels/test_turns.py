"""The line of questions that are put one at a time."""

from __future__ import annotations

import threading
from dataclasses import replace

from tests.contracts.samples import request as sample

from signoff.channels.turns import Turns
from signoff.core.decision import ApprovalDecision
from signoff.core.request import ApprovalRequest


def test_a_question_whose_answer_was_not_accepted_comes_before_those_that_wait() -> None:
    put: list[str] = []
    go_on = threading.Semaphore(0)

    def asked(request: ApprovalRequest) -> ApprovalDecision:
        put.append(request.id + request.problem)
        assert go_on.acquire(timeout=30), "nobody lets it go on"
        return ApprovalDecision(approved=True)

    turns = Turns(asked)
    one, two, three = (replace(sample(), id=name) for name in ("one", "two", "three"))
    first, *_ = [turns.ask(request) for request in (one, two, three)]
    go_on.release()
    first.result(30)
    last = turns.ask(replace(one, problem=" again"))
    for _ in range(3):
        go_on.release()
    last.result(30)
    assert put[:3] == ["one", "two", "one again"]
