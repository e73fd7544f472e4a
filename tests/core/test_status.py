"""How a request stands, after each way it can go: the data, and the few words that screens and logs say."""

from __future__ import annotations

from dataclasses import fields
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.tables import table

from signoff.core.decision import ApprovalDecision, Remember
from signoff.core.lifecycle import (
    Assigned,
    Cancelled,
    Claimed,
    Event,
    Expired,
    Failed,
    HandedOver,
    Lost,
    OutcomeReported,
    Succeeded,
    Voted,
    advance,
)
from signoff.core.people import Actor
from signoff.core.request import ApprovalRequest, State
from signoff.core.request_status import SILENCE, RequestStatus, status_of
from signoff.core.verdict import Effect, OnTimeout, Requirement, Verdict

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
LATER = NOW + timedelta(minutes=5)
ANA, BEN = Actor(name="ana", roles=frozenset({"ops"})), Actor(name="ben", roles=frozenset({"ops"}))
YES, NO = ApprovalDecision(approved=True), ApprovalDecision(approved=False, note="not today")
OTHER = ApprovalDecision(approved=True, edited_args={"amount": 4}, remember=Remember.SESSION, note="less")
ANYONE = Requirement()
TIMED = {way: Requirement(timeout=timedelta(minutes=5), on_timeout=way, escalate_to="dev") for way in OnTimeout}
DENY, ALLOW, ESCALATE = (TIMED[way] for way in (OnTimeout.DENY, OnTimeout.ALLOW, OnTimeout.ESCALATE))
APPROVED = (Voted(ANA, YES),)
CALLED: dict[str, Any] = {"by": ANA, "at": NOW, "started_at": NOW, "process": "7"}


def after(requirement: Requirement, *events: Event) -> ApprovalRequest:
    verdict = Verdict(effect=Effect.ASK, requirement=requirement)
    deadline = LATER if requirement.timeout is not None else None
    request = ApprovalRequest(
        id="r1", tool_call_id="c1", tool_name="pay", args={"amount": 5}, verdict=verdict, deadline=deadline
    )
    for event in events:
        request = advance(request, event, LATER if isinstance(event, Expired) else NOW)
    return request


@table(
    ("requirement", "events", "title", "step", "expected"),
    [
        (ANYONE, (), "it waits for an answer", "asked", {}),
        (ANYONE, (Assigned("ben"),), "it waits for an answer", "asked", {"assigned": "ben"}),
        (DENY, (), "it waits for an answer", "asked", {"deadline": LATER, "then": "it is denied"}),
        (ALLOW, (), "it waits for an answer", "asked", {"deadline": LATER, "then": "it runs"}),
        (ESCALATE, (), "it waits for an answer", "asked", {"deadline": LATER, "then": "the role dev is asked"}),
        (
            ESCALATE,
            (Expired(),),
            "it waits for an answer",
            "asked",
            {
                "deadline": LATER + timedelta(minutes=5),
                "then": "it is denied",
                "escalated": True,
                "silence": "nobody answered in time",
            },
        ),
        (ANYONE, APPROVED, "approved, and not run yet", "approved by ana", {"by": ANA, "at": NOW}),
        (
            Requirement(role="ops"),
            (Voted(Actor(name="cleo"), YES, (BEN,)),),
            "approved, and not run yet",
            "approved by cleo",
            {"by": Actor(name="cleo"), "at": NOW, "stands_for": BEN},
        ),
        (
            ANYONE,
            (Voted(ANA, OTHER),),
            "approved, and not run yet",
            "approved by ana",
            {"by": ANA, "at": NOW, "note": "less", "edited": True, "remembered": True},
        ),
        (ANYONE, (Voted(ANA, NO),), "denied", "denied by ana", {"by": ANA, "at": NOW, "note": "not today"}),
        (
            DENY,
            (Expired(),),
            "expired: nobody answered in time",
            "expired",
            {"at": LATER, "silence": "nobody answered in time"},
        ),
        (
            ALLOW,
            (Expired(),),
            "approved, and not run yet",
            "approved by the rule",
            {"by": SILENCE, "at": LATER, "by_rule": True},
        ),
        (ANYONE, (Cancelled("its run ended"),), "cancelled", "cancelled", {"at": NOW}),
        (ANYONE, (*APPROVED, Claimed("7")), "approved and started, without an outcome yet", "runs", CALLED),
        (
            ANYONE,
            (*APPROVED, Claimed("7"), Succeeded(preview="ok")),
            "it ran",
            "ran",
            CALLED | {"ended_at": NOW, "result": "ok"},
        ),
        (
            ANYONE,
            (*APPROVED, Claimed("7"), Failed("boom")),
            "it ran and failed",
            "ran and failed",
            CALLED | {"ended_at": NOW, "error": "boom"},
        ),
        (
            ANYONE,
            (*APPROVED, Claimed("7"), Lost()),
            "outcome unknown: its process died or stopped responding",
            "outcome unknown",
            CALLED,
        ),
        (
            ANYONE,
            (*APPROVED, Claimed("7"), Lost(), OutcomeReported(BEN, True, "I looked")),
            "it ran",
            "ran",
            CALLED | {"ended_at": NOW, "told_by": "ben", "result": "I looked"},
        ),
        (
            ANYONE,
            (*APPROVED, HandedOver("7")),
            "approved, and handed to the program that asked",
            "approved by ana, handed over",
            CALLED | {"ended_at": NOW, "handed_over": True},
        ),
    ],
)
def test_what_is_said_of_a_request(
    requirement: Requirement, events: tuple[Event, ...], title: str, step: str, expected: dict[str, Any]
) -> None:
    status = status_of(after(requirement, *events))
    assert (status.title, status.step) == (title, step)
    plain = RequestStatus(state=status.state)
    names = [one.name for one in fields(RequestStatus) if one.name != "state"]
    assert {name: getattr(status, name) for name in names if getattr(status, name) != getattr(plain, name)} == expected


def test_every_state_has_words() -> None:
    assert all(RequestStatus(state=state).title and RequestStatus(state=state).step for state in State)
