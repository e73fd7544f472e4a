"""The life of a request: no road to approved but the votes, none out of a final state."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from tests.profiles import examples

from signoff.core.canonical import digest
from signoff.core.decision import ApprovalDecision, Ending
from signoff.core.lifecycle import (
    FINAL,
    TABLE,
    Assigned,
    Awaited,
    Cancelled,
    Claimed,
    Commented,
    Dated,
    Entered,
    Event,
    Expired,
    Failed,
    Lost,
    OutcomeReported,
    Paused,
    Reminded,
    Succeeded,
    Voted,
    advance,
    may_be_dated,
    settled_text,
)
from signoff.core.people import Actor, ActorKind
from signoff.core.request import ApprovalRequest, State
from signoff.core.verdict import Effect, OnTimeout, Requirement, Verdict
from signoff.errors import AlreadySettled, AlreadySpent, NotEntitled, RequestError

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
YES = ApprovalDecision(approved=True)
NO = ApprovalDecision(approved=False, note="not today")


def request(requirement: Requirement | None = None, *, deadline: datetime | None = None) -> ApprovalRequest:
    verdict = Verdict(effect=Effect.ASK, requirement=requirement or Requirement())
    return ApprovalRequest(
        id="r1", tool_call_id="c1", tool_name="pay", args={"amount": 5}, verdict=verdict, deadline=deadline
    )


def person(name: str = "ana", *roles: str, kind: ActorKind = ActorKind.PERSON) -> Actor:
    return Actor(name=name, roles=frozenset(roles), kind=kind)


actors = st.builds(
    lambda name, kind, roles: Actor(name=name, kind=kind, roles=frozenset(roles)),
    st.sampled_from(["ana", "ben", "cleo"]),
    st.sampled_from(list(ActorKind)),
    st.sets(st.sampled_from(["ops", "dev"])),
)
decisions = st.sampled_from([YES, NO, ApprovalDecision(approved=True, edited_args={"amount": 4})])
events: st.SearchStrategy[Event] = st.one_of(
    st.builds(Voted, actors, decisions, st.lists(actors, max_size=2).map(tuple)),
    st.just(Expired()),
    st.just(Cancelled("gone")),
    st.just(Claimed()),
    st.just(Succeeded()),
    st.just(Failed("boom")),
    st.just(Lost()),
    st.just(Entered()),
    st.just(Paused()),
    st.just(Reminded()),
    st.builds(Dated, st.integers(-60, 600).map(lambda seconds: NOW + timedelta(seconds=seconds))),
    st.builds(Assigned, st.sampled_from(["", "ana", "ben"])),
    st.just(Commented()),
    st.builds(Awaited, st.sampled_from(["p1", "p2"])),
    st.builds(OutcomeReported, actors, st.booleans()),
)
requirements = st.builds(
    Requirement,
    role=st.sampled_from([None, "ops"]),
    quorum=st.integers(1, 3),
    not_by=st.sets(st.sampled_from(["requester", "owner"])).map(frozenset),
    timeout=st.sampled_from([None, timedelta(minutes=5)]),
    on_timeout=st.sampled_from([OnTimeout.DENY, OnTimeout.ESCALATE, OnTimeout.PARK]),
    escalate_to=st.sampled_from([None, "dev"]),
)


def votes_needed(one: ApprovalRequest) -> bool:
    """Written without the code under test: enough distinct, entitled people approved what would run."""
    requirement = one.requirement
    wanted = digest(one.effective_args)
    agreed = {
        whose.name
        for vote in one.votes
        if (whose := vote.stands_for or vote.by)
        and vote.decision.approved
        and vote.args_digest == wanted
        and vote.by.kind is not ActorKind.MODEL
        and (requirement.role is None or requirement.role in whose.roles or (one.escalated and whose.roles))
        and (not requirement.is_strict or vote.by.kind is ActorKind.PERSON)
    }
    return len(agreed) >= requirement.quorum


@given(requirements, st.lists(st.tuples(events, st.integers(0, 400)), max_size=14))
@examples(4_000, daily=30)
def test_no_sequence_reaches_approved_without_the_votes_nor_leaves_a_final_state(
    requirement: Requirement, steps: list[tuple[Event, int]]
) -> None:
    deadline = NOW + requirement.timeout if requirement.timeout else None
    current, now = request(requirement, deadline=deadline), NOW
    for event, seconds in steps:
        now += timedelta(seconds=seconds)
        try:
            after = advance(current, event, now)
        except RequestError:
            continue
        assert current.state not in FINAL, f"{current.state} was left by {event}"
        assert after.version == current.version + 1
        if after.state is State.APPROVED:
            assert votes_needed(after)
        if after.state is State.CLAIMED and not isinstance(event, Entered):
            assert current.state is State.APPROVED
        if isinstance(event, Dated):
            assert current.state is after.state is State.PENDING
            assert requirement.timeout is None and current.deadline is None and after.deadline == event.deadline
        if after.state is State.APPROVED and current.state is State.CLAIMED:
            assert isinstance(event, Paused), "a claim was given back by something else"
            assert current.claim is not None and current.claim.inside, "nothing inside the call waited"
        current = after


def test_the_table_has_no_way_out_of_a_final_state() -> None:
    assert not {state for state, _ in TABLE} & FINAL
    assert set(State) == FINAL | {state for state, _ in TABLE}


class Life(RuleBasedStateMachine):
    """Any events in any order against a one-page model of what may happen."""

    def __init__(self) -> None:
        super().__init__()
        self.request = request(Requirement(quorum=2))
        self.yes: set[str] = set()
        self.runs = 0

    def feed(self, event: Event) -> bool:
        try:
            self.request = advance(self.request, event, NOW)
        except RequestError:
            return False
        return True

    @rule(name=st.sampled_from(["ana", "ben", "cleo"]), kind=st.sampled_from(list(ActorKind)))
    def approve(self, name: str, kind: ActorKind) -> None:
        was_pending = self.request.state is State.PENDING
        counted = self.feed(Voted(person(name, kind=kind), YES))
        assert counted == (was_pending and kind is ActorKind.PERSON)
        if counted:
            self.yes.add(name)

    @rule(name=st.sampled_from(["ana", "ben"]))
    def deny(self, name: str) -> None:
        if self.feed(Voted(person(name), NO)):
            assert self.request.state is State.DENIED

    @rule()
    def claim(self) -> None:
        if self.feed(Claimed()):
            self.runs += 1

    @rule(event=st.sampled_from([Succeeded(), Failed("x"), Lost(), Cancelled("x"), Expired()]))
    def anything_else(self, event: Event) -> None:
        self.feed(event)

    @invariant()
    def two_people_and_one_run(self) -> None:
        assert self.runs <= 1
        if self.request.state in (State.APPROVED, State.CLAIMED, State.SUCCEEDED, State.FAILED, State.UNKNOWN):
            assert len(self.yes) >= 2


TestLife = Life.TestCase
TestLife.settings = examples(1_000, daily=25)


def test_a_second_claim_is_told_the_approval_is_spent() -> None:
    approved = advance(request(), Voted(person(), YES), NOW)
    claimed = advance(approved, Claimed(), NOW)
    for state in (claimed, advance(claimed, Succeeded(), NOW), advance(claimed, Lost(), NOW)):
        with pytest.raises(AlreadySpent):
            advance(state, Claimed(), NOW)


def test_a_late_answer_is_told_who_when_and_what() -> None:
    denied = advance(request(), Voted(person("ana"), NO), NOW)
    with pytest.raises(AlreadySettled, match=r"r1 was denied by ana at 2026-01-01 12:00:00 UTC: “not today”"):
        advance(denied, Voted(person("ben"), YES), NOW)
    assert settled_text(request()) == "request r1 is pending"


def test_votes_only_add_up_for_the_same_arguments() -> None:
    two = request(Requirement(quorum=2))
    plain = advance(two, Voted(person("ana"), YES), NOW)
    edited = advance(plain, Voted(person("ben"), ApprovalDecision(approved=True, edited_args={"amount": 4})), NOW)
    assert edited.state is State.PENDING
    agreed = advance(edited, Voted(person("ana"), ApprovalDecision(approved=True, edited_args={"amount": 4.0})), NOW)
    assert agreed.state is State.APPROVED
    assert agreed.effective_args == {"amount": 4}


def test_one_person_does_not_make_a_quorum() -> None:
    once = advance(request(Requirement(quorum=2)), Voted(person("ana"), YES), NOW)
    twice = advance(once, Voted(person("ana"), YES), NOW)
    assert twice.state is State.PENDING
    assert len(twice.votes) == 1


@pytest.mark.parametrize(
    ("requirement", "by", "why"),
    [
        (Requirement(role="ops"), person("ana", "dev"), "role ops"),
        (Requirement(role="ops"), person("bot", "ops", kind=ActorKind.SCRIPT), "not a person"),
        (Requirement(), person("judge", kind=ActorKind.MODEL), "is a model"),
        (Requirement(not_by=frozenset({"requester"})), person("ana"), "is the requester"),
        (Requirement(not_by=frozenset({"owner"})), person("ana"), "owner is unknown"),
    ],
)
def test_only_the_right_people(requirement: Requirement, by: Actor, why: str) -> None:
    with pytest.raises(NotEntitled, match=why):
        advance(request(requirement).changed_to(requester="ana"), Voted(by, YES), NOW)


OPS = Requirement(role="ops", quorum=2)


def test_a_deputy_votes_in_the_place_of_whom_they_stand_in_for_and_the_two_are_one() -> None:
    ana, ben, cleo = person("ana", "ops"), person("ben"), person("cleo", "ops")
    with pytest.raises(NotEntitled):
        advance(request(OPS), Voted(ben, YES), NOW)
    once = advance(request(OPS), Voted(ben, YES, (ana,)), NOW)
    assert once.votes[0].by == ben
    assert once.votes[0].stands_for == ana
    assert advance(once, Voted(ana, YES), NOW).state is State.PENDING, "ana and her deputy are one"
    assert advance(once, Voted(cleo, YES), NOW).state is State.APPROVED


def test_a_deputy_cannot_lend_a_hand_to_whom_the_rule_excludes() -> None:
    requirement = Requirement(role="ops", not_by=frozenset({"requester"}))
    ana, ben = person("ana", "ops"), person("ben")
    for requester in ("ana", "ben"):
        with pytest.raises(NotEntitled):
            advance(request(requirement).changed_to(requester=requester), Voted(ben, YES, (ana,)), NOW)
    assert advance(request(requirement).changed_to(requester="cleo"), Voted(ben, YES, (ana,)), NOW).votes


def test_a_veto_role_may_only_say_no() -> None:
    requirement = Requirement(role="ops", veto="security")
    sam = person("sam", "security")
    with pytest.raises(NotEntitled):
        advance(request(requirement), Voted(sam, YES), NOW)
    assert advance(request(requirement), Voted(sam, NO), NOW).state is State.DENIED


def test_nobody_else_answers_what_somebody_works_on() -> None:
    taken = advance(request(), Assigned("Ana"), NOW)
    with pytest.raises(NotEntitled, match="Ana is working on"):
        advance(taken, Voted(person("ben"), YES), NOW)
    assert advance(taken, Voted(person("ana"), YES), NOW).state is State.APPROVED
    freed = advance(taken, Assigned(""), NOW)
    assert advance(freed, Voted(person("ben"), NO), NOW).state is State.DENIED


def test_a_reminder_comes_once_and_not_too_early() -> None:
    waiting = request(Requirement(timeout=timedelta(minutes=5))).changed_to(remind_at=NOW)
    with pytest.raises(RequestError, match="no reminder yet"):
        advance(waiting, Reminded(), NOW - timedelta(seconds=1))
    reminded = advance(waiting, Reminded(), NOW)
    with pytest.raises(RequestError, match="no reminder yet"):
        advance(reminded, Reminded(), NOW)


def unknown() -> ApprovalRequest:
    approved = advance(request(), Voted(person("ana"), YES), NOW)
    return advance(advance(approved, Claimed("p1"), NOW), Lost(), NOW)


def test_what_became_of_a_lost_call_is_told_by_a_person_or_by_the_process_that_comes_back() -> None:
    for answer in (Claimed("p2"), Voted(person("ben"), YES), Cancelled("x"), Expired()):
        with pytest.raises(RequestError):
            advance(unknown(), answer, NOW)
    with pytest.raises(NotEntitled, match="not a person"):
        advance(unknown(), OutcomeReported(person("bot", kind=ActorKind.SCRIPT), True), NOW)
    happened = advance(unknown(), OutcomeReported(person("ben"), True, "seen on the statement"), NOW)
    assert happened.state is State.SUCCEEDED
    assert happened.claim is not None
    assert happened.claim.told_by == "ben"
    did_not = advance(unknown(), OutcomeReported(person("ben"), False), NOW)
    assert did_not.state is State.CANCELLED, "so that it may be asked about anew"
    assert advance(unknown(), Succeeded("d", "p"), NOW).state is State.SUCCEEDED
    for late in (Succeeded(), Failed("x"), Claimed("p3")):
        with pytest.raises(RequestError):
            advance(did_not, late, NOW)


def test_silence_is_no() -> None:
    waiting = request(Requirement(timeout=timedelta(minutes=5)), deadline=NOW + timedelta(minutes=5))
    with pytest.raises(RequestError, match="not due"):
        advance(waiting, Expired(), NOW)
    late = NOW + timedelta(minutes=5)
    expired = advance(waiting, Expired(), late)
    assert expired.state is State.EXPIRED
    assert expired.decision is not None
    assert expired.decision.ending is Ending.EXPIRED
    assert not expired.decision.approved
    with pytest.raises(AlreadySettled, match="expired at"):
        advance(waiting, Voted(person(), YES), late)


def test_a_channel_says_how_long_a_request_waits_where_nothing_else_does() -> None:
    late = NOW + timedelta(minutes=5)
    dated = advance(request(Requirement(remind=timedelta(minutes=1))), Dated(late), NOW)
    assert (dated.state, dated.deadline, dated.remind_at) == (State.PENDING, late, late - timedelta(minutes=1))
    assert advance(request(), Dated(late), NOW).remind_at is None
    assert advance(dated, Expired(), late).state is State.EXPIRED
    ruled = request(Requirement(timeout=timedelta(hours=1)))
    for one in (dated, ruled, ruled.changed_to(deadline=NOW + timedelta(hours=1)), request(deadline=late)):
        assert not may_be_dated(one)
        with pytest.raises(RequestError, match="settled before"):
            advance(one, Dated(late + timedelta(hours=1)), NOW)
    denied = advance(request(), Voted(person(), NO), NOW)
    assert not may_be_dated(denied)
    with pytest.raises(AlreadySettled):
        advance(denied, Dated(late), NOW)


def test_escalation_asks_the_other_role_once() -> None:
    rule_ = Requirement(
        role="ops", timeout=timedelta(minutes=5), on_timeout=OnTimeout.ESCALATE, escalate_to="boss", quorum=1
    )
    waiting = request(rule_, deadline=NOW)
    escalated = advance(waiting, Expired(), NOW)
    assert escalated.state is State.PENDING
    assert escalated.requirement.role == "boss"
    assert escalated.deadline == NOW + timedelta(minutes=5)
    with pytest.raises(NotEntitled):
        advance(escalated, Voted(person("ana", "ops"), YES), NOW)
    assert advance(escalated, Expired(), NOW + timedelta(minutes=5)).state is State.EXPIRED


def test_parked_waits_for_ever_and_allow_needs_words() -> None:
    parked = advance(request(Requirement(on_timeout=OnTimeout.PARK), deadline=NOW), Expired(), NOW)
    assert parked.state is State.PENDING
    assert parked.deadline is None
    allowed = advance(request(Requirement(on_timeout=OnTimeout.ALLOW), deadline=NOW), Expired(), NOW)
    assert allowed.state is State.APPROVED
    assert allowed.decision is not None
    assert allowed.decision.by is not None
    assert allowed.decision.by.kind is not ActorKind.PERSON


def test_an_unspent_approval_can_be_withdrawn_and_keeps_who_gave_it() -> None:
    approved = advance(request(), Voted(person("ana"), YES), NOW)
    withdrawn = advance(approved, Cancelled("the policy changed"), NOW)
    assert withdrawn.state is State.CANCELLED
    assert settled_text(withdrawn) == "request r1 was cancelled at 2026-01-01 12:00:00 UTC: the policy changed"
    with pytest.raises(AlreadySettled):
        advance(replace(withdrawn), Claimed(), NOW)


def test_a_decision_does_not_contradict_itself() -> None:
    with pytest.raises(ValueError, match="edited"):
        ApprovalDecision(approved=False, edited_args={})
    with pytest.raises(ValueError, match="cannot end as approved"):
        ApprovalDecision(approved=False, ending=Ending.APPROVED)
    with pytest.raises(ValueError, match="for ever"):
        ApprovalDecision(approved=True, remember="for ever")  # pyright: ignore[reportArgumentType]
