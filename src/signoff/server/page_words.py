"""What the pages say for a state, an outcome, a lock and the like."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from types import MappingProxyType

from signoff.core.request import State
from signoff.views.request_view import PastRequest


def _words(**words: str) -> Mapping[str, str]:
    return MappingProxyType(words)


STATES = _words(
    pending="waiting",
    approved="approved",
    denied="denied",
    expired="expired",
    cancelled="cancelled",
    claimed="running",
    succeeded="ran",
    failed="failed",
    unknown="outcome unknown",
    handed_over="handed over",
)
"""By `outcome_word`."""
OUTCOMES = _words(
    approved="Approved, and not run yet.",
    denied="Denied.",
    expired="Nobody answered in time.",
    cancelled="Withdrawn.",
    claimed="Approved and started, without an outcome yet.",
    succeeded="Approved, and it ran.",
    failed="Approved, and it failed.",
    unknown="Approved and started; its outcome is unknown.",
    handed_over="Approved, and handed to the program that asked. Its outcome is not known here.",
    expired_few="Too few people answered in time.",
    happened="says: it happened.",
    did_not="says: it did not happen.",
)
"""By `outcome_sentence`."""
LOCKS = _words(
    permission="You can read this, but you do not have permission to answer.",
    entitled="Your answer would not count:",
    taken="Somebody else has taken it. Take it over first. It is assigned to",
    unshowable="Part of this call cannot be shown, so it cannot be approved.",
    unread="Unfold the long parts first: you cannot approve what you have not read.",
)
"""Why an action is disabled, by `CardLock.word`; `voted` is said with the number of people."""
NOT_BY = _words(requester="the requester", owner="the owner")
"""Who may not approve. Others are named as the rule names them."""
EARLIER = _words(
    call="Exactly this call",
    target="With any value of",
    tool="All calls of",
    never="never approved or denied with these arguments",
)
"""Which calls were answered before, by `ShownAnswers.about`."""
AT_DEADLINE = _words(
    allow="it runs without an answer.",
    deny="it is denied.",
    park="it stays open.",
    escalate="somebody else is asked; the role:",
)
"""By `CardPage.then`."""
RUN_STATES = _words(
    going="not ended",
    all="all",
    running="running",
    waiting="waiting for people",
    ready="ready to resume",
    died="its process died",
    done="done",
    failed="failed",
    cancelled="cancelled",
    damaged="its row in the store is damaged",
)
RUN_HINTS = _words(
    running="Its run continues.",
    waiting="Its run waits for other answers.",
    ready="The run will resume shortly.",
    died="The process of its run died. The run will resume shortly.",
    elsewhere="This server runs no agents. Resume the run where it was started: signoff resume.",
    done="Its run has ended.",
    failed="Its run failed.",
    cancelled="Its run was cancelled.",
)
"""What becomes of the run that waits for a request, by `CardPage.run_word`."""
FIELD_KINDS = _words(
    text="text",
    lines="text",
    number="number",
    integer="whole number",
    boolean="true or false",
    choice="one of these",
    json="JSON",
)
FIELD_LIMITS = _words(
    minimum="at least {}",
    exclusiveMinimum="more than {}",
    maximum="at most {}",
    exclusiveMaximum="less than {}",
    minLength="at least {} characters",
    maxLength="at most {} characters",
    pattern="fits the pattern {}",
    format="format: {}",
)
"""What is shown beside an input, by the keyword of the tool's JSON schema."""
ACCESS_KINDS = _words(session="Browser", token="Token", instance="Agent elsewhere")


def outcome_word(request: PastRequest) -> str:
    """The state of a request as a key of `STATES`."""
    return "handed_over" if request.handed_over and request.state is not State.UNKNOWN else str(request.state)


def outcome_sentence(request: PastRequest) -> str:
    """How a request ended as a key of `OUTCOMES`. If a person told its outcome, it is what they said."""
    if request.told_by:
        return "happened" if request.state is State.SUCCEEDED else "did_not"
    return "expired_few" if request.state is State.EXPIRED and request.answered else outcome_word(request)


def decided_by(request: PastRequest) -> str:
    """Who decided, all who had to; empty if nobody did, or if a rule did."""
    if request.by_rule or request.state in (State.CANCELLED, State.EXPIRED):  # an earlier approver did not end it
        return ""
    counted = request.approved_by if request.quorum > 1 and request.state is not State.DENIED else ()
    return ", ".join(counted) if request.decided_by and counted else request.decided_by


def times(number: int, *, most: int = sys.maxsize) -> str:
    """How often something happened: `once`, `3 times`. From `most` on there may have been more."""
    if number >= most:
        return f"{number} times or more"
    return "once" if number == 1 else f"{number} times"
