"""Who decides: roles on file, quorum of distinct people, separation of duties, deputies, who works on what."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from tests.broker.conftest import Opens, ask, kinds

from signoff.broker import Broker
from signoff.core.audit_text import account_of
from signoff.core.decision import ApprovalDecision, Ending
from signoff.core.inbox_row import agreed, needs_of
from signoff.core.people import Actor, ActorKind, Delegation
from signoff.core.request import ApprovalRequest, State
from signoff.core.terms import Terms
from signoff.core.verdict import OnTimeout, Requirement
from signoff.errors import AlreadySettled, NotEntitled, RequestError, WrongUse
from signoff.testing import FakeClock

YES, NO = ApprovalDecision(approved=True), ApprovalDecision(approved=False, note="not today")
MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)
TWO_OPS = Requirement(role="ops", quorum=2)


def who(name: str, *roles: str, kind: str = "person") -> Actor:
    return Actor(name=name, roles=frozenset(roles), kind=ActorKind(kind))


async def votes(broker: Broker, request: str, *names: str, decision: ApprovalDecision = YES) -> ApprovalRequest:
    for name in names:
        voted = await broker.answer(request, decision, by=who(name))
    return voted


async def away(broker: Broker, absent: str, deputy: str, clock: FakeClock, **more: Any) -> None:
    given = {"since": clock.now(), "until": clock.now() + HOUR, "by": "eve", **more}
    await broker.people.delegate(Delegation(absent=absent, deputy=deputy, **given))


async def last_vote(broker: Broker, request: str) -> dict[str, Any]:
    entries = await broker.store.read(lambda tx: tx.record.entries(request=request))
    return json.loads([entry for entry in entries if entry.kind == "voted"][-1].body)


# --- roles ---


async def test_only_roles_on_file_count(broker: Broker) -> None:
    request = await ask(broker, need=Requirement(role="ops"))
    for name in ("ben", "zoe", "dan"):
        with pytest.raises(NotEntitled):
            await broker.answer(request, YES, by=who(name, "ops", "boss"))
    assert (await broker.answer(request, YES, by=who("cleo"))).state is State.APPROVED


async def test_without_a_file_an_answer_brings_its_own_roles(another: Opens) -> None:
    broker = another(people={})
    request = await ask(broker, need=Requirement(role="ops"))
    assert (await broker.answer(request, YES, by=who("zoe", "ops"))).state is State.APPROVED


async def test_a_name_that_is_not_on_file_is_no_second_person(broker: Broker) -> None:
    for need in (
        Requirement(quorum=2),
        Requirement(not_by=frozenset({"requester"})),
        Requirement(veto="security"),
    ):
        request = await ask(broker, f"c{need!r}", need=need, requester="rita")
        with pytest.raises(NotEntitled, match=r"no listed person is called 'zoe'"):
            await broker.answer(request, YES, by=who("zoe"))
        with pytest.raises(NotEntitled):
            await broker.answer(request, NO, by=who("zoe"))
    anyone = await ask(broker, "anyone")
    assert (await broker.answer(anyone, YES, by=who("zoe"))).state is State.APPROVED


async def test_a_model_never_counts_and_a_script_only_where_anyone_will_do(broker: Broker) -> None:
    plain, strict = await ask(broker, "c1"), await ask(broker, "c2", need=Requirement(quorum=2))
    for request in (plain, strict):
        for decision in (YES, NO):
            with pytest.raises(NotEntitled, match="is a model"):
                await broker.answer(request, decision, by=who("ana", kind="model"))
    with pytest.raises(NotEntitled, match="not a person"):
        await broker.answer(strict, YES, by=who("ana", kind="script"))
    assert (await broker.answer(plain, YES, by=who("bot", kind="script"))).state is State.APPROVED
    assert (await last_vote(broker, plain))["kind"] == "script", "and is recorded as what it is"


# --- quorum ---


async def test_a_quorum_is_of_distinct_people_whatever_the_spelling(broker: Broker) -> None:
    request = await ask(broker, need=TWO_OPS)
    assert (await votes(broker, request, "ana", "ANA", "  ana ", "ａｎａ")).state is State.PENDING
    assert len((await broker.get(request)).votes) == 1
    assert (await votes(broker, request, "cleo")).state is State.APPROVED


async def test_a_quorum_that_nobody_can_complete_is_said_where_it_is_asked_and_on_record(
    another: Opens, clock: FakeClock
) -> None:
    broker = another(people={"ana": frozenset({"ops"}), "ben": frozenset({"ops"}), "dan": frozenset({"it"})})
    need = replace(TWO_OPS, not_by=frozenset({"requester"}))
    request = await ask(broker, need=need, requester="ana")
    short = "only 1 listed person may approve it, so it cannot run"

    async def said(request_id: str) -> str:
        return needs_of(await broker.shown(await broker.get(request_id))).partition("; ")[2]

    assert await said(request) == short
    [asked] = await broker.store.read(lambda tx: tx.record.entries(request=request))
    assert account_of(asked).what.endswith(short)
    await votes(broker, request, "ben")
    assert await said(request) == f"1 of 2 (ben); {short}"
    await away(broker, "ben", "dan", clock)
    assert await said(request) == f"1 of 2 (ben); {short}", "a deputy of somebody who counts already is nobody more"
    assert await said(await ask(broker, "c2", need=TWO_OPS, requester="ana")) == ""
    nobody = await ask(broker, "c3", need=Requirement(role="boss"))
    assert await said(nobody) == "nobody who is listed may approve it, so it cannot run"
    assert await said(await ask(broker, "c4")) == ""


async def test_it_settles_as_soon_as_enough_agree_and_whoever_comes_late_hears_it(broker: Broker) -> None:
    request = await ask(broker, need=TWO_OPS)
    await votes(broker, request, "ana", "cleo")
    with pytest.raises(AlreadySettled, match=r"was approved by cleo at 2026-01-01 12:00:00"):
        await broker.answer(request, NO, by=who("rita"))


async def test_a_late_answer_hears_that_it_is_late_whatever_else_is_wrong_with_it(broker: Broker) -> None:
    request = await ask(broker)
    await votes(broker, request, "ana", decision=NO)
    asks_too_much = ApprovalDecision(approved=True, terms=Terms(max_uses=0))
    does_not_fit = ApprovalDecision(approved=True, edited_args={"nonsense": 1})
    for late in (asks_too_much, does_not_fit, YES):
        with pytest.raises(AlreadySettled, match=r"was denied by ana at .*: “not today”"):
            await broker.answer(request, late, by=who("ben"))
    strict = await ask(broker, "c2", need=TWO_OPS)
    await votes(broker, strict, "ana", decision=NO)
    with pytest.raises(AlreadySettled, match="was denied by ana"):
        await broker.answer(strict, YES, by=who("zoe"))


async def test_one_no_is_enough_and_nothing_changes_it(broker: Broker) -> None:
    request = await ask(broker, need=Requirement(quorum=3))
    await votes(broker, request, "ana", "ben")
    assert (await votes(broker, request, "cleo", decision=NO)).state is State.DENIED
    for attempt in (
        broker.answer(request, YES, by=who("cleo")),
        broker.cancel(request, "on second thought"),
        broker.assign(request, "dan", by=who("dan")),
    ):
        with pytest.raises(AlreadySettled):
            await attempt
    with pytest.raises(AlreadySettled):
        await broker.claim(request)
    assert await broker.sweep() == []
    again = await ask(broker, need=Requirement())
    assert again == request, "asking again finds the no"


async def test_a_second_thought_replaces_the_first(broker: Broker) -> None:
    schema = {"type": "object", "properties": {"to": {}, "amount": {"type": "number"}}}
    request = await ask(broker, need=TWO_OPS, schema=schema)
    less = ApprovalDecision(approved=True, edited_args={"to": "bob", "amount": 4})
    await votes(broker, request, "ana")
    await votes(broker, request, "cleo", decision=less)
    assert (await broker.get(request)).state is State.PENDING, "they want different things"
    settled = await votes(broker, request, "ana", decision=less)
    assert settled.state is State.APPROVED
    assert settled.effective_args == {"to": "bob", "amount": 4}


# --- separation of duties, veto ---


@pytest.mark.parametrize(
    ("part", "known"), [("requester", {"requester": "Rita"}), ("owner", {"owners": ("Bo", "Rita")})]
)
async def test_whoever_it_is_for_does_not_decide(broker: Broker, part: str, known: dict[str, Any]) -> None:
    need = Requirement(role="ops", not_by=frozenset({part}))
    request = await ask(broker, need=need, **known)
    for decision in (YES, NO):
        with pytest.raises(NotEntitled, match=f"rita is the {part}"):
            await broker.answer(request, decision, by=who("rita"))
    assert (await votes(broker, request, "ana")).state is State.APPROVED
    nobody_knows = await ask(broker, "c2", need=need)
    with pytest.raises(NotEntitled, match=f"the {part} is unknown"):
        await broker.answer(nobody_knows, YES, by=who("ana"))


async def test_a_veto_ends_it_at_once_and_is_only_a_no(broker: Broker) -> None:
    request = await ask(broker, need=Requirement(role="ops", quorum=2, veto="security"))
    with pytest.raises(NotEntitled):
        await broker.answer(request, YES, by=who("sam"))
    await votes(broker, request, "ana")
    assert (await votes(broker, request, "sam", decision=NO)).state is State.DENIED


# --- deputies ---


async def test_a_deputy_stands_in_until_the_end_and_the_record_shows_both(broker: Broker, clock: FakeClock) -> None:
    await away(broker, "ana", "ben", clock, since=clock.now() + MINUTE, until=clock.now() + 3 * MINUTE)
    need = Requirement(role="ops")
    early = await ask(broker, "c1", need=need)
    with pytest.raises(NotEntitled):
        await broker.answer(early, YES, by=who("ben"))
    clock.advance(MINUTE)
    settled = await broker.answer(early, YES, by=who("Ben"))
    assert settled.state is State.APPROVED
    assert settled.votes[0].principal.name == "ana"
    vote = await last_vote(broker, early)
    assert (vote["by"], vote["stands_for"]) == ("Ben", "ana")
    late = await ask(broker, "c2", need=need)
    clock.advance(2 * MINUTE)
    with pytest.raises(NotEntitled):
        await broker.answer(late, YES, by=who("ben"))
    assert not await broker.people.delegations()
    [arranged] = [one for one in await broker.store.read(lambda tx: tx.record.entries()) if one.kind == "delegated"]
    assert json.loads(arranged.body) == {
        "absent": "ana",
        "deputy": "ben",
        "by": "eve",
        "since": "2026-01-01T12:01:00+00:00",
        "until": "2026-01-01T12:03:00+00:00",
    }


@pytest.mark.parametrize("order", [("ben", "ana"), ("ana", "ben")])
async def test_somebody_and_their_deputy_are_one(broker: Broker, clock: FakeClock, order: tuple[str, str]) -> None:
    await away(broker, "ana", "ben", clock)
    request = await ask(broker, need=TWO_OPS)
    assert (await votes(broker, request, *order)).state is State.PENDING
    assert (await votes(broker, request, "cleo")).state is State.APPROVED


async def test_two_deputies_of_one_are_one(broker: Broker, clock: FakeClock) -> None:
    await away(broker, "ana", "ben", clock)
    await away(broker, "ana", "dan", clock)
    request = await ask(broker, need=TWO_OPS)
    assert (await votes(broker, request, "ben", "dan")).state is State.PENDING


async def test_a_deputy_of_two_has_one_vote(broker: Broker, clock: FakeClock) -> None:
    await away(broker, "ana", "dan", clock)
    await away(broker, "cleo", "dan", clock)
    request = await ask(broker, need=TWO_OPS)
    assert (await votes(broker, request, "dan", "dan")).state is State.PENDING
    assert (await votes(broker, request, "cleo")).state is State.APPROVED


async def test_a_deputy_who_may_anyway_answers_in_their_own_name(broker: Broker, clock: FakeClock) -> None:
    await away(broker, "ana", "cleo", clock)
    request = await ask(broker, need=TWO_OPS)
    await votes(broker, request, "cleo")
    assert "stands_for" not in await last_vote(broker, request)
    assert (await votes(broker, request, "ana")).state is State.APPROVED, "these are two people"


async def test_standing_in_is_not_handed_on(broker: Broker, clock: FakeClock) -> None:
    await away(broker, "ana", "ben", clock)
    await away(broker, "ben", "dan", clock)
    request = await ask(broker, need=Requirement(role="ops"))
    with pytest.raises(NotEntitled):
        await broker.answer(request, YES, by=who("dan"))
    plain = await ask(broker, "c2", need=Requirement(role="dev"))
    settled = await broker.answer(plain, YES, by=who("dan"))
    assert settled.votes[0].principal.name == "ben", "but dan does stand in for ben"


@pytest.mark.parametrize("requester", ["ana", "ben"])
async def test_no_deputy_for_or_by_whom_the_rule_excludes(broker: Broker, clock: FakeClock, requester: str) -> None:
    await away(broker, "ana", "ben", clock)
    need = Requirement(role="ops", not_by=frozenset({"requester"}))
    request = await ask(broker, need=need, requester=requester)
    for decision in (YES, NO):
        with pytest.raises(NotEntitled):
            await broker.answer(request, decision, by=who("ben"))


async def test_a_deputy_may_veto_where_the_absent_may(broker: Broker, clock: FakeClock) -> None:
    await away(broker, "sam", "dan", clock)
    request = await ask(broker, need=Requirement(role="ops", veto="security"))
    with pytest.raises(NotEntitled):
        await broker.answer(request, YES, by=who("dan"))
    assert (await votes(broker, request, "dan", decision=NO)).state is State.DENIED


async def test_a_script_is_nobodys_deputy(broker: Broker, clock: FakeClock) -> None:
    await away(broker, "ana", "ben", clock)
    request = await ask(broker, need=Requirement(role="ops"))
    with pytest.raises(NotEntitled):
        await broker.answer(request, YES, by=who("ben", kind="script"))


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"absent": "zoe"}, "no listed person is called 'zoe'"),
        ({"deputy": "zoe"}, "no listed person is called 'zoe'"),
        ({"deputy": " ANA"}, "cannot be their own deputy"),
        ({"until": FakeClock().now()}, "before it starts"),
    ],
)
async def test_a_delegation_that_makes_no_sense(
    broker: Broker, clock: FakeClock, change: dict[str, Any], why: str
) -> None:
    given = {"absent": "ana", "deputy": "ben", "since": clock.now(), "until": clock.now() + HOUR, **change}
    with pytest.raises(WrongUse, match=why):
        await broker.people.delegate(Delegation(**given))
    assert await kinds(broker) == []


# --- who works on it ---


async def test_nobody_else_answers_what_somebody_works_on(broker: Broker, clock: FakeClock) -> None:
    request = await ask(broker, need=TWO_OPS)
    await broker.assign(request, "ana", by=who("ana"))
    with pytest.raises(NotEntitled, match="ana is working on request"):
        await broker.answer(request, YES, by=who("cleo"))
    [item] = await broker.inbox()
    assert item.assigned == "ana"
    await votes(broker, request, "Ana")
    assert (await broker.get(request)).assigned == "", "she is done with it"
    await broker.assign(request, "rita", by=who("cleo"))
    await broker.assign(request, "", by=who("rita"))
    assert (await votes(broker, request, "cleo")).state is State.APPROVED
    assert (await kinds(broker)).count("assigned") == 3


async def test_a_no_is_taken_whoever_works_on_it(broker: Broker) -> None:
    request = await ask(broker, need=TWO_OPS)
    await broker.assign(request, "ana", by=who("ana"))
    assert (await votes(broker, request, "cleo", decision=NO)).state is State.DENIED


async def test_who_may_say_who_works_on_it(broker: Broker) -> None:
    """People who may approve it, whoever has it, and admins: others would keep those from it who may."""
    request = await ask(broker, need=TWO_OPS)
    for actor in (who("eve"), who("zoe"), replace(who("ana"), kind=ActorKind.SCRIPT)):
        with pytest.raises(NotEntitled, match="may not assign or release it"):
            await broker.assign(request, "eve", by=actor)
    assert (await broker.get(request)).assigned == ""
    await broker.assign(request, "eve", by=who("ana"))
    with pytest.raises(NotEntitled):
        await broker.assign(request, "", by=replace(who("eve"), kind=ActorKind.SCRIPT))
    await broker.assign(request, "", by=who("eve"))
    await broker.assign(request, "eve", by=who("zoe"), admin=True)
    await broker.assign(request, "cleo", by=who("cleo"))
    assert (await broker.get(request)).assigned == "cleo"


async def test_a_deputy_takes_over_what_the_absent_worked_on(broker: Broker, clock: FakeClock) -> None:
    await away(broker, "ana", "ben", clock)
    request = await ask(broker, need=Requirement(role="ops"))
    await broker.assign(request, "ana", by=who("ana"))
    assert (await votes(broker, request, "ben")).state is State.APPROVED


# --- deadlines ---


async def test_what_is_parked_can_be_answered_before_anybody_swept(broker: Broker, clock: FakeClock) -> None:
    request = await ask(broker, need=Requirement(timeout=MINUTE, on_timeout=OnTimeout.PARK))
    clock.advance(HOUR)
    settled = await broker.answer(request, YES, by=who("ana"))
    assert (settled.state, settled.deadline) == (State.APPROVED, None)
    assert await kinds(broker, request=request) == ["asked", "parked", "voted", "settled"]


async def test_what_is_escalated_asks_others_before_anybody_swept(broker: Broker, clock: FakeClock) -> None:
    need = Requirement(role="ops", timeout=MINUTE, on_timeout=OnTimeout.ESCALATE, escalate_to="boss")
    request = await ask(broker, need=need)
    clock.advance(MINUTE)
    with pytest.raises(NotEntitled, match="the role boss"):
        await broker.answer(request, YES, by=who("ana"))
    assert not (await broker.get(request)).escalated, "an answer that is refused changes nothing"
    assert (await broker.answer(request, YES, by=who("eve"))).state is State.APPROVED
    assert await kinds(broker, request=request) == ["asked", "escalated", "voted", "settled"]


@pytest.mark.parametrize("decision", [YES, NO])
async def test_after_the_deadline_silence_has_answered(
    broker: Broker, clock: FakeClock, decision: ApprovalDecision
) -> None:
    request = await ask(broker, need=Requirement(timeout=MINUTE))
    clock.advance(MINUTE)
    with pytest.raises(AlreadySettled, match=r"expired at 2026-01-01 12:01:00 UTC: nobody answered in time"):
        await broker.answer(request, decision, by=who("ana"))
    [expired] = await broker.sweep()
    assert expired.decision is not None
    assert expired.decision.ending is Ending.EXPIRED


async def test_votes_for_the_role_asked_first_do_not_count_for_the_next(broker: Broker, clock: FakeClock) -> None:
    up = {"timeout": MINUTE, "on_timeout": OnTimeout.ESCALATE, "escalate_to": "boss"}
    for quorum, state in ((2, State.PENDING), (1, State.APPROVED)):
        need = Requirement(role="ops", quorum=2, escalate_quorum=quorum, **up)  # type: ignore[arg-type]
        request = await ask(broker, f"c{quorum}", need=need)
        await votes(broker, request, "ana")
        assert agreed(await broker.get(request)) == 1
        clock.advance(MINUTE)
        await broker.sweep()
        assert agreed(await broker.get(request)) == 0, "it no longer counts"
        assert [one.quorum for one in await broker.inbox()] == [quorum]
        assert (await votes(broker, request, "eve")).state is state
        if state is State.PENDING:
            await broker.cancel(request, "enough")


# --- what became of it ---


async def unknown(broker: Broker, **more: Any) -> str:
    request = await ask(broker, **more)
    await votes(broker, request, "ana")
    await broker.claim(request)
    await broker.lose(request)
    return request


async def test_only_a_person_who_may_answer_says_what_became_of_a_call(broker: Broker, clock: FakeClock) -> None:
    request = await unknown(broker, need=Requirement(role="ops"))
    for by in (who("ben"), who("zoe", "ops"), who("cleo", kind="script"), who("cleo", kind="model")):
        with pytest.raises(NotEntitled):
            await broker.tell(request, happened=True, by=by)
    await away(broker, "cleo", "dan", clock)
    told = await broker.tell(request, happened=True, by=who("dan"), note="on the statement")
    assert told.claim is not None
    assert (told.state, told.claim.told_by) == (State.SUCCEEDED, "dan")
    entries = await broker.store.read(lambda tx: tx.record.entries(request=request))
    said = json.loads(entries[-1].body)
    assert (said["by"], said["stands_for"]) == ("dan", "cleo"), "the record shows both"
    with pytest.raises(AlreadySettled):
        await broker.tell(request, happened=False, by=who("ana"))


async def test_what_did_not_happen_needs_a_fresh_approval(broker: Broker) -> None:
    request = await unknown(broker)
    assert (await broker.tell(request, happened=False, by=who("ana"))).state is State.CANCELLED
    with pytest.raises(AlreadySettled):
        await broker.claim(request)
    fresh = await ask(broker)
    assert fresh != request
    with pytest.raises(RequestError, match="still waiting"):
        await broker.claim(fresh)
