"""Calls of agents elsewhere, over the Agent Approval Protocol: judged, asked about, spent once, and told of."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from tests.server.aap_desk import LOOK, REFUND, RULES, AapDesk, Agent

from signoff.cli.request_report import history_facts
from signoff.core.card import card_for
from signoff.core.decision import ApprovalDecision, Remember
from signoff.core.people import Actor
from signoff.core.request import State
from signoff.core.verdict import Effect
from signoff.errors import AlreadySettled, WrongFile
from signoff.testing import FakeClock
from signoff.testing.office import soon
from signoff.views.request_view import request_view


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
async def desk(tmp_path: Path, clock: FakeClock) -> AsyncIterator[AapDesk]:
    desk = AapDesk(tmp_path, clock=clock)
    yield desk
    await desk.close()


@pytest.fixture
async def agent(desk: AapDesk) -> Agent:
    return await desk.instance()


def sleeping(clock: FakeClock) -> int:
    """How many wait for a moment: of each poll two do."""
    return len(clock._sleepers)


async def after_a_while(clock: FakeClock, task: asyncio.Task[Any]) -> Any:
    """What a poll is told once its time is over: time passes until it is, whenever the poll has begun to wait."""

    def passes() -> bool:
        clock.advance(1)
        return task.done()

    await soon(passes, "the poll does not end")
    return await task


def everything_in(directory: Path) -> bytes:
    return b"".join(one.read_bytes() for one in directory.glob("signoff.db*"))


def moment(text: str) -> datetime:
    assert text.endswith("Z")
    return datetime.fromisoformat(text)


# --- decided at once ---


async def test_what_policy_allows_is_approved_at_once_and_spent_once(desk: AapDesk, agent: Agent) -> None:
    asked = await agent.ask(LOOK)
    UUID(asked["id"])
    assert asked["status"] == asked["decision"]["status"] == "approved"
    assert moment(asked["decision"]["expires_at"]) > moment(asked["decision"]["decided_at"])
    assert "consumption" not in asked
    assert await desk.broker.pending() == []
    assert await agent.get(asked) == asked
    consumed = await agent.consume(asked)
    assert consumed == {**asked, "consumption": {"consumed_at": consumed["consumption"]["consumed_at"]}}
    assert await agent.consume(asked) == consumed, "the same key again"
    path = f"/requests/{asked['id']}"
    await agent.refused(409, "already_consumed", "POST", f"{path}/consume", key="run-2")
    told = await agent.data("POST", f"{path}/outcome", {"status": "succeeded", "note": "seen"})
    assert told["consumption"]["outcome"].items() >= {"status": "succeeded", "note": "seen"}.items()
    assert await agent.get(asked) == told
    assert await desk.kinds() == ["access given", "allowed", "claimed", "ran"]


async def test_what_policy_denies_is_denied_at_once_with_its_reason(desk: AapDesk, agent: Agent) -> None:
    asked = await agent.ask({**REFUND, "arguments": {"order": "A1", "amount": 501}})
    assert (asked["status"], asked["decision"]["note"]) == ("denied", "policy: more than 500 is refunded by the bank")
    assert "expires_at" not in asked["decision"]
    await agent.refused(409, "not_approved", "POST", f"/requests/{asked['id']}/consume", key="x")
    await agent.refused(409, "already_terminal", "DELETE", f"/requests/{asked['id']}")
    assert (await desk.kinds())[-1] == "denied"


async def test_a_remembered_answer_lets_the_like_run_until_it_is_revoked(desk: AapDesk, agent: Agent) -> None:
    first = await agent.ask()
    request = await desk.only()
    decision = ApprovalDecision(approved=True, remember=Remember.ALWAYS)
    await desk.broker.answer(request.id, decision, by=Actor(name="ben", roles=frozenset({"finance"})))
    assert (await agent.get(first))["status"] == "approved"
    second, third = await agent.ask(), await agent.ask()
    assert second["status"] == third["status"] == "approved"
    await agent.consume(second)
    other = await desk.instance("support-bot")
    assert (await other.ask())["status"] == "pending", "another agent's tool of that name is another tool"
    [grant] = await desk.broker.grants.list()
    await desk.broker.grants.revoke(grant.id, by="ben")
    await agent.refused(409, "approval_expired", "POST", f"/requests/{third['id']}/consume", key="x")


# --- asked ---


async def test_a_person_approves_and_the_call_runs_once(desk: AapDesk, agent: Agent, clock: FakeClock) -> None:
    asked = await agent.ask()
    assert (asked["status"], "decision" in asked) == ("pending", False)
    assert moment(asked["deadline_at"]) - moment(asked["created_at"]) == timedelta(minutes=30)
    request = await desk.only()
    assert request.deadline == moment(asked["deadline_at"])
    await agent.refused(409, "not_approved", "POST", f"/requests/{asked['id']}/consume", key="x")
    clock.advance(60)
    await desk.answer(request.id, note="fine")
    approved = await agent.get(asked)
    assert (approved["status"], approved["decision"]["note"]) == ("approved", "fine")
    assert moment(approved["decision"]["decided_at"]) == clock.now()
    path = f"/requests/{asked['id']}"
    await agent.refused(409, "not_consumed", "POST", f"{path}/outcome", {"status": "succeeded"})
    await agent.consume(asked, "run-1")
    assert (await desk.broker.get(request.id)).state is State.CLAIMED
    await agent.refused(409, "already_consumed", "POST", f"{path}/consume", key="run-2")
    done = await agent.data("POST", f"{path}/outcome", {"status": "succeeded"})
    assert "note" not in done["consumption"]["outcome"]
    assert await agent.data("POST", f"{path}/outcome", {"status": "succeeded"}) == done
    await agent.refused(409, "outcome_conflict", "POST", f"{path}/outcome", {"status": "failed"})
    await agent.refused(409, "outcome_conflict", "POST", f"{path}/outcome", {"status": "succeeded", "note": "x"})
    assert (await desk.broker.get(request.id)).state is State.SUCCEEDED
    assert await desk.kinds() == [
        "access given", "asked", "access given", "voted", "settled", "claimed", "ran",
    ]  # fmt: skip


async def test_a_failure_is_told_with_its_note(desk: AapDesk, agent: Agent) -> None:
    asked = await agent.ask()
    request = await desk.only()
    await desk.answer(request.id)
    await agent.consume(asked)
    await agent.data("POST", f"/requests/{asked['id']}/outcome", {"status": "failed", "note": "no such order"})
    ended = await desk.broker.get(request.id)
    assert (ended.state, ended.claim and ended.claim.error) == (State.FAILED, "no such order")


async def test_a_person_denies_and_the_agent_reads_why(desk: AapDesk, agent: Agent) -> None:
    asked = await agent.ask()
    await desk.answer((await desk.only()).id, "deny", note="not this customer")
    denied = await agent.get(asked)
    assert (denied["status"], denied["decision"]["note"]) == ("denied", "not this customer")
    await agent.refused(409, "already_terminal", "DELETE", f"/requests/{asked['id']}")
    assert await agent.get(asked) == denied


async def test_other_arguments_become_a_no_that_says_what_to_send(desk: AapDesk, agent: Agent) -> None:
    asked = await agent.ask()
    request = await desk.only()
    assert not request.takes_edits, "so a screen says that they are only told"
    await desk.answer(request.id, args={"order": "A1", "amount": 30}, note="half of it")
    denied = await agent.get(asked)
    assert denied["status"] == "denied"
    assert denied["decision"]["note"] == (
        'ben wants other arguments (half of it): call refund with {"order": "A1", "amount": 30}'
    )
    await agent.refused(409, "not_approved", "POST", f"/requests/{asked['id']}/consume", key="x")
    assert (await desk.broker.get(request.id)).state is State.CANCELLED, "the approval is of no use to anybody"
    view = await request_view(desk.broker, request.id)
    assert view.status == "cancelled: its approval is void"
    asked_about, voted, settled, void = [told for _, told in history_facts(view)]
    assert asked_about.startswith("asked") and voted.startswith("voted: approved with other arguments, by ben")
    assert settled.startswith("settled: approved, by ben")
    assert void.startswith("approval void: “ben wants other arguments"), "it is not settled a second time"


async def test_silence_expires_when_the_agents_time_is_up(desk: AapDesk, agent: Agent, clock: FakeClock) -> None:
    asked = await agent.ask()
    request = await desk.only()
    clock.advance(timedelta(minutes=30))
    expired = await agent.get(asked)
    assert (expired["status"], expired["decision"]["status"]) == ("expired", "expired")
    assert (await desk.broker.get(request.id)).state is State.EXPIRED
    await agent.refused(409, "already_terminal", "DELETE", f"/requests/{asked['id']}")


async def test_a_rule_that_waits_shorter_sets_the_deadline(desk: AapDesk, agent: Agent, clock: FakeClock) -> None:
    asked = await agent.ask({**REFUND, "tool": "brief"})
    assert moment(asked["deadline_at"]) - moment(asked["created_at"]) == timedelta(minutes=5)
    assert (asked["timeout"]) == "30m", "what was sent is told again"
    hurried = await agent.ask({**REFUND, "tool": "brief", "timeout": "90s"})
    assert moment(hurried["deadline_at"]) - moment(hurried["created_at"]) == timedelta(seconds=90)


async def test_silence_allows_only_when_the_rules_own_time_is_up(desk: AapDesk, agent: Agent, clock: FakeClock) -> None:
    hurried = await agent.ask({**REFUND, "tool": "lenient", "timeout": "1m"})
    patient = await agent.ask({**REFUND, "tool": "lenient", "timeout": "10m"})
    clock.advance(timedelta(minutes=5))
    assert (await agent.get(hurried))["status"] == "expired"
    await desk.broker.sweep()
    allowed = await agent.get(patient)
    assert allowed["status"] == "approved"
    assert moment(allowed["decision"]["decided_at"]) < moment(allowed["deadline_at"])
    await agent.consume(allowed)


async def test_nothing_is_approved_after_the_agents_deadline_whoever_is_asked_by_then(
    desk: AapDesk, agent: Agent, clock: FakeClock
) -> None:
    asked = await agent.ask({**REFUND, "tool": "passed_on", "timeout": "7m"})
    other = await agent.ask({**REFUND, "tool": "passed_on", "timeout": "7m"})
    clock.advance(timedelta(minutes=5))
    await desk.broker.sweep()
    clock.advance(timedelta(minutes=3))
    request = next(one for one in await desk.broker.pending() if one.tool_call_id == asked["id"])
    await desk.answer(request.id, who="ana")
    assert (await agent.get(asked))["status"] == "expired"
    assert (await desk.broker.get(request.id)).state is State.CANCELLED
    assert await desk.broker.aap.sweep() == 1, "and what nobody looks at ends, too"
    assert await desk.broker.pending() == []
    assert (await agent.get(other))["status"] == "expired"


async def test_an_approval_is_good_for_an_hour(desk: AapDesk, agent: Agent, clock: FakeClock) -> None:
    asked = await agent.ask()
    request = await desk.only()
    await desk.answer(request.id)
    approved = await agent.get(asked)
    clock.advance(timedelta(hours=1))
    said = await agent.refused(409, "approval_expired", "POST", f"/requests/{asked['id']}/consume", key="x")
    assert said == "the approval was not consumed in time"
    assert await agent.get(asked) == approved, "what was decided stays what it was"
    assert (await desk.broker.get(request.id)).state is State.CANCELLED


async def test_the_agent_withdraws_what_waits(desk: AapDesk, agent: Agent) -> None:
    asked = await agent.ask()
    request = await desk.only()
    cancelled = await agent.data("DELETE", f"/requests/{asked['id']}")
    assert (cancelled["status"], cancelled["decision"]["status"]) == ("cancelled", "cancelled")
    assert await agent.data("DELETE", f"/requests/{asked['id']}") == cancelled
    assert (await desk.broker.get(request.id)).state is State.CANCELLED


async def test_an_agent_with_a_lease_that_is_heard_of_no_more_is_gone(
    desk: AapDesk, agent: Agent, clock: FakeClock
) -> None:
    lease = {"Signoff-Lease": "40"}
    asked = await agent.data("POST", "/requests", REFUND, key="a", headers=lease, status=201)
    request = await desk.only()
    for _ in range(3):
        clock.advance(39)
        assert (await agent.data("GET", f"/requests/{asked['id']}", headers=lease))["status"] == "pending"
    clock.advance(40)
    with pytest.raises(AlreadySettled, match="nobody waits for it any more"):
        await desk.broker.answer(request.id, ApprovalDecision(approved=True), by=Actor(name="ben"))
    await desk.broker.sweep()
    assert (await desk.broker.get(request.id)).state is State.CANCELLED
    assert (await agent.get(asked))["decision"]["note"].startswith("nobody waits for it any more")


async def test_what_was_approved_and_fetched_by_nobody_is_withdrawn_with_the_lease(
    desk: AapDesk, agent: Agent, clock: FakeClock
) -> None:
    asked = await agent.data("POST", "/requests", REFUND, key="a", headers={"Signoff-Lease": "40"}, status=201)
    request = await desk.only()
    await desk.answer(request.id)
    clock.advance(40)
    await desk.broker.sweep()
    assert (await desk.broker.get(request.id)).state is State.CANCELLED
    await agent.refused(409, "not_approved", "POST", f"/requests/{asked['id']}/consume", key="x")


async def test_an_agent_without_a_lease_may_come_back_later(desk: AapDesk, agent: Agent, clock: FakeClock) -> None:
    for lease in ({}, {"Signoff-Lease": ""}, {"Signoff-Lease": "soon"}, {"Signoff-Lease": "9" * 30}):
        asked = await agent.data("POST", "/requests", REFUND, key=f"{lease}", headers=lease, status=201)
        clock.advance(timedelta(minutes=20))
        await desk.broker.sweep()
        assert (await agent.get(asked))["status"] == "pending"


async def test_an_agent_that_tells_no_outcome_is_handed_the_approval(
    desk: AapDesk, agent: Agent, clock: FakeClock
) -> None:
    asked = await agent.ask()
    request = await desk.only()
    await desk.answer(request.id)
    path = f"/requests/{asked['id']}/consume"
    await agent.data("POST", path, key="x", headers={"Signoff-Outcome": "none"})
    await agent.refused(409, "already_consumed", "POST", path, key="y", headers={"Signoff-Outcome": "none"})
    clock.advance(timedelta(days=1))
    assert await desk.broker.sweep() == [], "nobody is asked what became of it"
    done = await desk.broker.get(request.id)
    assert done.state is State.SUCCEEDED and done.claim is not None and done.claim.handed_over
    assert (await desk.kinds())[-1] == "handed over"


async def test_a_poll_waits_for_the_answer(desk: AapDesk, agent: Agent, clock: FakeClock) -> None:
    asked = await agent.ask()
    request = await desk.only()
    polling = [asyncio.create_task(agent.get(asked, "25s")) for _ in range(2)]
    await soon(lambda: sleeping(clock) >= 4, "nobody waits")
    await desk.answer(request.id)
    assert [one["status"] for one in await asyncio.gather(*polling)] == ["approved", "approved"]
    assert (await agent.get(asked, "30s"))["status"] == "approved", "at once"


async def test_a_poll_ends_with_its_time_or_with_the_server(desk: AapDesk, agent: Agent, clock: FakeClock) -> None:
    asked = await agent.ask()
    polling = asyncio.create_task(agent.get(asked, "9000h"))
    assert (await after_a_while(clock, polling))["status"] == "pending"
    polling = asyncio.create_task(agent.get(asked, "30s"))
    await soon(lambda: sleeping(clock) >= 2, "nobody waits")
    desk.state.stopping.set()
    assert (await polling)["status"] == "pending"


# --- what changes between the answer and the run ---


async def test_an_approval_does_not_outlive_the_policy_it_was_given_under(desk: AapDesk, agent: Agent) -> None:
    asked, looked, small = await agent.ask(), await agent.ask(LOOK), await agent.ask(LOOK)
    request = await desk.only()
    await desk.answer(request.id)
    assert (await agent.get(asked))["status"] == "approved"
    await agent.consume(small)
    stricter = RULES.replace("  - allow: look\n", "  - deny: look\n    reason: no more looking\n")
    desk.file.write_text(stricter)
    said = await agent.refused(409, "approval_expired", "POST", f"/requests/{asked['id']}/consume", key="x")
    assert said.startswith("the policy changed after the question; ben approved it"), said
    said = await agent.refused(409, "approval_expired", "POST", f"/requests/{looked['id']}/consume", key="x")
    assert said == "the policy now refuses it: no more looking"
    assert (await agent.ask(LOOK))["status"] == "denied"
    assert (await desk.broker.get(request.id)).state is State.CANCELLED


async def test_a_policy_of_the_same_size_and_time_is_read_again(desk: AapDesk, agent: Agent) -> None:
    """Whoever writes the file in place can set its time back, not the time of its change."""
    before = desk.file.stat()
    assert (await agent.ask(LOOK))["status"] == "approved"
    desk.file.write_text(RULES.replace("  - allow: look\n", "  - deny: look \n"))
    os.utime(desk.file, ns=(before.st_atime_ns, before.st_mtime_ns))
    after = desk.file.stat()
    assert (after.st_size, after.st_mtime_ns, after.st_ino) == (before.st_size, before.st_mtime_ns, before.st_ino)
    assert (await agent.ask(LOOK))["status"] == "denied"


async def test_nothing_is_judged_while_the_policy_cannot_be_read(desk: AapDesk, agent: Agent) -> None:
    looked = await agent.ask(LOOK)
    desk.file.write_text("policy: [{alow: look}]\n")
    await agent.refused(503, "policy_unavailable", "POST", "/requests", LOOK, key="a")
    await agent.refused(503, "policy_unavailable", "POST", f"/requests/{looked['id']}/consume", key="x")
    desk.file.write_text(RULES)
    await agent.ask(LOOK, key="a")
    await agent.consume(looked)


async def test_a_policy_that_is_gone_is_not_replaced_by_the_file_above_it(tmp_path: Path) -> None:
    """An editor or a deployment may remove a file before it writes it anew."""
    (tmp_path / "signoff.yaml").write_text('policy: [{allow: "*"}]\n')
    (tmp_path / "project").mkdir()
    desk = AapDesk(tmp_path / "project")
    agent = await desk.instance()
    looked, asked = await agent.ask(LOOK), await agent.ask()
    question = await desk.only()
    await desk.answer(question.id)
    desk.file.unlink()
    for key, tool in (("a", LOOK), ("b", {**REFUND, "arguments": {"order": "A1", "amount": 600}}), ("c", REFUND)):
        await agent.refused(503, "policy_unavailable", "POST", "/requests", tool, key=key)
    for one in (looked, asked):
        await agent.refused(503, "policy_unavailable", "POST", f"/requests/{one['id']}/consume", key="x")
    with pytest.raises(WrongFile, match="there is no file"):
        await desk.rules.explain(question.call)
    desk.file.write_text(RULES)
    assert (await agent.ask({**REFUND, "arguments": {"order": "A1", "amount": 600}}, key="b"))["status"] == "denied"
    for one in (looked, asked):
        await agent.consume(one, "x")
    assert (await desk.rules.explain(question.call)).verdict.effect is Effect.ASK
    await desk.close()


async def test_nothing_runs_while_everything_is_halted(desk: AapDesk, agent: Agent) -> None:
    looked, asked = await agent.ask(LOOK), await agent.ask()
    request = await desk.only()
    await desk.answer(request.id)
    await desk.broker.switch.halt(by="ana", why="fire")
    for one in (looked, asked):
        said = await agent.refused(503, "halted", "POST", f"/requests/{one['id']}/consume", key="x")
        assert "fire" in said
    await agent.refused(503, "halted", "POST", "/requests", REFUND, key="b")
    await desk.broker.switch.unhalt(by="ana")
    for one in (looked, asked):
        await agent.consume(one, "x")


async def test_whoever_answers_for_the_agent_is_its_requester(desk: AapDesk) -> None:
    agent = await desk.instance(owner="ana")
    await agent.ask({**REFUND, "tool": "own"})
    request = await desk.only()
    standing = await desk.broker.people.standing(request.id, Actor(name="ana"))
    assert (request.requester, bool(standing.approving)) == ("ana", True)


# --- killed ---


async def test_what_was_consumed_without_an_outcome_is_unknown_after_an_hour(
    desk: AapDesk, agent: Agent, clock: FakeClock, tmp_path: Path
) -> None:
    asked = await agent.ask()
    request = await desk.only()
    await desk.answer(request.id)
    consumed = await agent.consume(asked)
    await desk.close()  # and the server with it
    again = AapDesk(tmp_path, clock=clock)
    agent.desk = again
    try:
        await again.broker.sweep()
        assert (await again.broker.get(request.id)).state is State.CLAIMED, "its agent lives, for all that is known"
        assert await agent.consume(asked) == consumed, "whoever was not told may ask again"
        clock.advance(timedelta(hours=1))
        await again.broker.sweep()
        assert (await again.broker.get(request.id)).state is State.UNKNOWN
        assert await agent.get(asked) == consumed
        await agent.data("POST", f"/requests/{asked['id']}/outcome", {"status": "succeeded"})
        assert (await again.broker.get(request.id)).state is State.SUCCEEDED, "it came back"
    finally:
        await again.close()


async def test_nobody_is_asked_what_became_of_a_call_that_the_policy_allowed(
    desk: AapDesk, agent: Agent, clock: FakeClock
) -> None:
    looked = await agent.ask(LOOK)
    await agent.consume(looked)
    clock.advance(timedelta(hours=1))
    await desk.broker.sweep()
    await desk.broker.aap.revoke(agent.id, by="ana")
    assert "unknown" not in await desk.kinds() and not await desk.broker.pending()


async def test_an_outcome_that_a_person_told_first_is_not_overruled(
    desk: AapDesk, agent: Agent, clock: FakeClock
) -> None:
    asked = await agent.ask()
    request = await desk.only()
    await desk.answer(request.id)
    await agent.consume(asked)
    clock.advance(timedelta(hours=1))
    await desk.broker.sweep()
    await desk.broker.tell(request.id, happened=False, by=Actor(name="ben"))
    told = await agent.data("POST", f"/requests/{asked['id']}/outcome", {"status": "succeeded"})
    assert told["consumption"]["outcome"]["status"] == "succeeded", "what the agent says is kept"
    assert (await desk.broker.get(request.id)).state is State.CANCELLED
    assert (await desk.kinds())[-1] == "late outcome"


# --- idempotency and isolation ---


async def test_the_same_key_gives_the_same_request(desk: AapDesk, agent: Agent) -> None:
    asked = await agent.ask(key="one")
    spelled = json.dumps({"timeout": "30m", "tool": "refund", "arguments": {"amount": 40, "order": "A1"}}, indent=2)
    again = await agent.data("POST", "/requests", spelled.encode(), key="one")
    assert again == asked
    for other in ({"timeout": "31m"}, {"tool": "look"}, {"arguments": {"amount": 41}}, {"server": "x"}):
        await agent.refused(409, "idempotency_conflict", "POST", "/requests", {**REFUND, **other}, key="one")
    await desk.answer((await desk.only()).id)
    assert (await agent.ask(key="one", status=200))["status"] == "approved"
    other = await desk.instance()
    assert (await other.ask(key="one"))["id"] != asked["id"], "keys are an instance's own"


async def test_a_call_that_is_sent_many_times_at_once_is_asked_about_once(desk: AapDesk, agent: Agent) -> None:
    body = json.dumps(REFUND).encode()
    replies = await asyncio.gather(*(agent.send("POST", "/requests", body, key="one") for _ in range(8)))
    assert sorted(one.status_code for one in replies) == [200] * 7 + [201]
    assert len({one.json()["id"] for one in replies}) == 1
    await desk.only()


async def test_an_approval_that_is_consumed_many_times_at_once_is_spent_once(desk: AapDesk, agent: Agent) -> None:
    asked = await agent.ask()
    await desk.answer((await desk.only()).id)
    path = f"/requests/{asked['id']}/consume"
    replies = await asyncio.gather(*(agent.send("POST", path, key=f"run-{n}") for n in range(8)))
    assert sorted(one.status_code for one in replies) == [200] + [409] * 7


async def test_nobody_sees_or_touches_what_is_anothers(desk: AapDesk, agent: Agent) -> None:
    asked = await agent.ask()
    await desk.answer((await desk.only()).id)
    other = await desk.instance()
    path = f"/requests/{asked['id']}"
    await other.refused(404, "not_found", "GET", path)
    await other.refused(404, "not_found", "GET", f"{path}?wait=1s")
    await other.refused(404, "not_found", "DELETE", path)
    await other.refused(404, "not_found", "POST", f"{path}/consume", key="x")
    await other.refused(404, "not_found", "POST", f"{path}/outcome", {"status": "succeeded"})
    assert (await agent.get(asked))["status"] == "approved"
    for unknown in ("x", "../../api/v1/me", str(UUID(int=1)), asked["id"][:8]):
        await agent.refused(404, "not_found", "GET", f"/requests/{unknown}")


async def test_arguments_come_back_to_the_letter(agent: Agent) -> None:
    sent = (
        b'{"tool": "look","arguments" : {"n": 1.50, "big": 123456789012345678901234567890, "e": 1E2,'
        b' "s": "\\u00e9 \\ud800 \xc3\xa9", "password": "hunter2", "deep": [[{"a": null}]]},  "timeout":"30m" ,'
        b' "context": {"call_id": "1", "k": null}, "agent_reasoning": "", "server": "files"} '
    )
    reply = await agent.send("POST", "/requests", sent, key="one")
    assert reply.status_code == 201, reply.text
    assert reply.content.startswith(sent.rstrip()[:-1])
    own = {"id", "status", "created_at", "deadline_at", "decision"}
    assert reply.json().keys() == json.loads(sent).keys() | own


# --- the card ---


async def test_what_the_agent_says_is_on_the_card_as_a_claim(desk: AapDesk, agent: Agent) -> None:
    secret = "sk-ant-api03-" + "a1B2" * 24
    await agent.ask(
        {
            **REFUND,
            "arguments": {"order": "A1", "amount": 40, "api_key": secret},
            "server": "billing\u202e",
            "agent_reasoning": f"ana told me to, with {secret}",
            "context": {"user": "ben", "role": "finance", "token": secret},
        }
    )
    request = await desk.only()
    card = card_for(request)
    assert "ana told me to" in card.claim
    details = {one.name: one.text for one in card.details}
    assert details["server, as the agent says"] == "billing⟦U+202E⟧"
    assert '"role": "finance"' in details["context, as the agent says"]
    assert request.requester == "ana" and request.call is not None
    assert request.call.worker == (f"aap:support-bot:{agent.id[:8]}",)
    assert request.call.toolset is None and not request.call.labels
    assert secret not in repr(card)


async def test_session_directory_and_task_of_an_agent_have_their_lines(desk: AapDesk, agent: Agent) -> None:
    secret = "sk-ant-api03-" + "a1B2" * 24
    told = {"session": "81f90007-6e4e", "directory": f"/w/{secret}", "task": f"Fix it with {secret}", "agents": ["a"]}
    await agent.ask({**REFUND, "context": told})
    request = await desk.only()
    card = card_for(request)
    assert card.session.startswith("81f90007-6e4e in /w/") and card.session.endswith(", as the agent says")
    assert card.task.startswith("“Fix it with") and card.task.endswith("” (for ana)")
    assert [one.text for one in card.details] == ['{"agents": ["a"]}']
    assert secret not in repr(card)
    assert request.root != told["directory"], "signoff does not go by it"


async def test_what_is_no_text_or_too_long_for_a_line_stays_among_the_claims(desk: AapDesk, agent: Agent) -> None:
    for number, told in enumerate(
        ({"session": 7, "task": "x"}, {"task": "x"}, {"session": "s", "task": "long " * 100})
    ):
        arguments = {"order": f"A{number}", "amount": 40}
        await agent.ask({**REFUND, "arguments": arguments, "context": told})
        [request] = [one for one in await desk.broker.pending() if one.args == arguments]
        [detail] = card_for(request).details
        assert json.loads(detail.text) == {name: text for name, text in told.items() if text != "s"}


async def test_a_name_is_no_identity(desk: AapDesk) -> None:
    desk.file.write_text(RULES + "  - allow: {tool: deploy, worker: release}\n")
    agent = await desk.instance("release")
    assert (await agent.ask({**REFUND, "tool": "deploy"}))["status"] == "pending"
    desk.file.write_text(RULES + "  - allow: {tool: deploy, worker: 'aap:*'}\n")
    assert (await agent.ask({**REFUND, "tool": "deploy"}))["status"] == "approved", (
        "unless a rule means agents elsewhere"
    )


# --- what is not taken ---

BAD: list[tuple[str, bytes]] = [
    ("invalid_json", b""),
    ("invalid_json", b"[]"),
    ("invalid_json", b'"tool"'),
    ("invalid_json", b"{"),
    ("invalid_json", b'{"tool": "look", "tool": "refund", "arguments": {}, "timeout": "1m"}'),
    ("invalid_json", b'{"tool": "look", "arguments": {"a": 1, "a": 2}, "timeout": "1m"}'),
    ("invalid_json", b'{"tool": "look", "arguments": {"a": NaN}, "timeout": "1m"}'),
    ("invalid_json", b'{"tool": "look", "arguments": {"a": 1e999}, "timeout": "1m"}'),
    ("invalid_json", b'{"tool": "look", "arguments": {"a": 0.12345678901234567890123}, "timeout": "1m"}'),
    ("invalid_json", b'{"tool": "look", "arguments": {"a": ' + b"9" * 5_000 + b'}, "timeout": "1m"}'),
    ("invalid_json", b'{"tool": "look", "arguments": {"a": "\xff"}, "timeout": "1m"}'),
    ("invalid_json", b'{"tool": "look", "arguments": {"a": ' + b"[" * 70 + b"]" * 70 + b'}, "timeout": "1m"}'),
    ("invalid_json", b'{"tool": "look", "arguments": {"a": ' + b"[" * 90_000 + b"]" * 90_000 + b'}, "timeout": "1m"}'),
    ("unknown_field", b'{"tool": "look", "arguments": {}, "timeout": "1m", "id": "mine"}'),
    ("unknown_field", b'{"tool": "look", "arguments": {}, "timeout": "1m", "status": "approved"}'),
    ("unknown_field", b'{"tool": "look", "arguments": {}, "timeout": "1m", "instance": "other"}'),
    ("missing_field", b'{"tool": "look", "arguments": {}}'),
    ("missing_field", b'{"arguments": {}, "timeout": "1m"}'),
    ("invalid_field", b'{"tool": null, "arguments": {}, "timeout": "1m"}'),
    ("invalid_field", b'{"tool": "", "arguments": {}, "timeout": "1m"}'),
    ("invalid_field", b'{"tool": 7, "arguments": {}, "timeout": "1m"}'),
    ("invalid_field", b'{"tool": "' + b"x" * 201 + b'", "arguments": {}, "timeout": "1m"}'),
    ("invalid_field", b'{"tool": "look", "arguments": [], "timeout": "1m"}'),
    ("invalid_field", b'{"tool": "look", "arguments": null, "timeout": "1m"}'),
    ("invalid_field", b'{"tool": "look", "arguments": {}, "timeout": "1m", "server": ""}'),
    ("invalid_field", b'{"tool": "look", "arguments": {}, "timeout": "1m", "context": []}'),
    ("invalid_field", b'{"tool": "look", "arguments": {}, "timeout": "1m", "context": null}'),
    *(
        ("invalid_field", json.dumps({**LOOK, "timeout": one}).encode())
        for one in ("", "0s", "1", "-1s", "1.5h", "1d", "1ms", " 1s", "٣s", "01s", "721h", "9" * 30 + "h", 30, None)
    ),
]


@pytest.mark.parametrize(("code", "body"), BAD, ids=range(len(BAD)))
async def test_what_is_not_as_it_should_be_is_refused(agent: Agent, code: str, body: bytes) -> None:
    await agent.refused(400, code, "POST", "/requests", body, key="one")


async def test_what_helps_is_said_of_a_body(agent: Agent) -> None:
    async def said(body: bytes) -> str:
        return await agent.refused(
            400, "invalid_json" if b"[1" in body else "invalid_field", "POST", "/requests", body, key="one"
        )

    assert await said(b'{"tool": "look", "arguments": null, "timeout": "1m"}') == "arguments: it is null"
    optional = b'{"tool": "look", "arguments": {}, "timeout": "1m", "context": null}'
    assert await said(optional) == "context: it is null; leave it out instead"
    for number in (b"1e400", b"1e-400", b"0.12345678901234567890123"):
        told = await said(b'{"tool": "look", "arguments": {"a": [1, ' + number + b']}, "timeout": "1m"}')
        assert told.endswith(f"the number {number.decode()} cannot be kept exactly; send it as a text"), told
    whole = await agent.ask({"tool": "look", "arguments": {"a": 12345678901234567890123}, "timeout": "1m"})
    assert whole["arguments"] == {"a": 12345678901234567890123}


async def test_a_key_is_needed_and_the_right_type(agent: Agent) -> None:
    await agent.refused(400, "missing_idempotency_key", "POST", "/requests", LOOK)
    await agent.refused(400, "invalid_idempotency_key", "POST", "/requests", LOOK, key="x" * 256)
    asked = await agent.ask(LOOK)
    await agent.refused(400, "missing_idempotency_key", "POST", f"/requests/{asked['id']}/consume")
    await agent.refused(400, "unknown_field", "POST", f"/requests/{asked['id']}/consume", {"a": 1}, key="x")
    plain = {"Content-Type": "text/plain"}
    await agent.refused(400, "invalid_content_type", "POST", "/requests", LOOK, key="x", headers=plain)
    await agent.refused(413, "request_too_large", "POST", "/requests", b" " * 1_048_577, key="x")
    for wait in ("wait=", "wait=0s", "wait=x", "wait=1s&wait=2s", "other=1", "wait=1s&other=1"):
        reply = await agent.send("GET", f"/requests/{asked['id']}?{wait}")
        assert reply.status_code == 400, wait
    for body in ({}, {"status": "done"}, {"status": "failed", "note": None}, {"status": "failed", "x": 1}):
        reply = await agent.send("POST", f"/requests/{asked['id']}/outcome", body)
        assert reply.status_code == 400, body


async def test_only_the_key_of_an_instance_opens_it_and_it_opens_nothing_else(desk: AapDesk, agent: Agent) -> None:
    guess = await Agent(desk, "", "soi_guessed").refused(401, "invalid_credential", "POST", "/requests", LOOK, key="x")
    assert guess == "send the key of an instance; this key is unknown, expired or revoked"
    none = await Agent(desk, "", "").refused(401, "invalid_credential", "POST", "/requests", LOOK, key="x")
    assert none == "send the key of an instance, as `Authorization: Bearer …`"
    provisioner = await desk.provisioner()
    told = await provisioner.refused(403, "not_permitted", "POST", "/requests", LOOK, key="x")
    assert told == "send the key of an instance; this key is for something else"
    told = await agent.refused(403, "not_permitted", "POST", "/instances", {}, key="x")
    assert told == "send a provisioner's key; this key is for something else"
    for one in (agent, provisioner):
        reply = await desk.client.get("/api/v1/requests", headers={"Authorization": f"Bearer {one.secret}"})
        assert reply.status_code in (401, 403), reply.text
        assert (await desk.client.get("/api/v1/me", headers={"Authorization": f"Bearer {agent.secret}"})).is_error
    reply = await desk.client.get("/aap/v1/requests")
    assert (reply.status_code, reply.json()["error"]["code"]) == (405, "method_not_allowed")
    reply = await desk.client.get("/aap/v2/requests")
    assert (reply.status_code, reply.json()["error"]["code"]) == (404, "not_found")
    reply = await desk.client.post("/aap/v1/requests", headers={"Host": "evil.test"})
    assert reply.status_code == 421


async def test_whoever_guesses_keys_is_held_up(desk: AapDesk) -> None:
    guesser = Agent(desk, "", "soi_guessed")
    found = {(await guesser.send("GET", f"/requests/{UUID(int=1)}")).status_code for _ in range(70)}
    assert found == {401, 429}


async def test_an_agent_does_not_flood_people(desk: AapDesk, agent: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("signoff.server.aap_api.MOST_WAITING", 2)
    for _ in range(2):
        await agent.ask()
    await agent.refused(429, "too_many_pending", "POST", "/requests", REFUND, key="x")
    await agent.ask(LOOK)
    assert len(await desk.broker.pending()) == 2


async def test_polls_leave_room_for_others(
    desk: AapDesk, agent: Agent, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = await desk.instance()
    asked, others = await agent.ask(), await other.ask()
    monkeypatch.setattr("signoff.server.aap_api.MOST_POLLS", 1)
    polling = asyncio.create_task(agent.get(asked, "30s"))
    await soon(lambda: sleeping(clock) >= 2, "nobody waits")
    await agent.refused(429, "too_many_requests", "GET", f"/requests/{asked['id']}?wait=30s")
    await agent.get(asked)
    monkeypatch.setattr("signoff.server.aap_api.MOST_TOGETHER", 1)
    await other.refused(429, "too_many_requests", "GET", f"/requests/{others['id']}?wait=30s")
    await after_a_while(clock, polling)
    told = await after_a_while(clock, asyncio.create_task(other.get(others, "1s")))
    assert told["status"] == "pending"


# --- instances ---


async def test_a_program_makes_instances_and_is_told_their_credential_again(desk: AapDesk) -> None:
    program = await desk.provisioner(by="cleo")
    made = await program.data("POST", "/instances", {"instance_name": "night-shift"}, key="one", status=201)
    UUID(made["instance"]["id"])
    assert made["instance"]["name"] == "night-shift"
    assert moment(made["credential"]["expires_at"])
    assert await program.data("POST", "/instances", {"instance_name": "night-shift"}, key="one") == made
    await program.refused(409, "idempotency_conflict", "POST", "/instances", {"instance_name": "x"}, key="one")
    agent = Agent(desk, made["instance"]["id"], made["credential"]["token"])
    asked = await agent.ask()
    assert (await desk.only()).requester == "cleo", "who made the program's key answers for what it makes"
    path = f"/instances/{agent.id}"
    assert await program.data("GET", path) == made["instance"]
    renamed = await program.data("PATCH", path, {"instance_name": "day-shift"}, key="two")
    assert renamed == {"id": agent.id, "name": "day-shift"}
    await program.data("PATCH", path, {"instance_name": "other", "delivery": None}, key="three")
    assert await program.data("PATCH", path, {"instance_name": "day-shift"}, key="two") == renamed
    assert (await program.data("GET", path))["name"] == "other", "what came later stays"
    await program.refused(409, "idempotency_conflict", "PATCH", path, {"instance_name": "x"}, key="two")
    assert (await agent.get(asked))["status"] == "pending"
    for _ in range(2):
        assert (await program.send("DELETE", path)).status_code == 204
    await program.refused(404, "not_found", "GET", path)
    await program.refused(404, "not_found", "PATCH", path, {"instance_name": "x"}, key="four")
    await program.refused(409, "instance_deleted", "POST", "/instances", {"instance_name": "night-shift"}, key="one")
    await agent.refused(401, "invalid_credential", "GET", f"/requests/{asked['id']}")
    assert await desk.broker.pending() == []


async def test_a_secret_is_kept_nowhere(desk: AapDesk, tmp_path: Path) -> None:
    program = await desk.provisioner()
    made = await program.data("POST", "/instances", {}, key="one", status=201)
    assert made["instance"]["name"] == f"instance-{made['instance']['id'][:8]}"
    await desk.broker.store.flush()
    kept = everything_in(tmp_path)
    assert made["instance"]["id"].encode() in kept
    assert made["credential"]["token"].encode() not in kept


async def test_nobody_is_called_back_and_others_instances_are_none_of_a_programs_business(desk: AapDesk) -> None:
    program, other = await desk.provisioner(), await desk.provisioner("other")
    delivery = {"type": "webhook", "url": "https://x.test", "registration_id": "1", "signing_secret": "whsec_"}
    await program.refused(400, "unsupported_delivery_type", "POST", "/instances", {"delivery": delivery}, key="one")
    made = await program.data("POST", "/instances", {}, key="one", status=201)
    path = f"/instances/{made['instance']['id']}"
    await program.refused(400, "unsupported_delivery_type", "PATCH", path, {"delivery": delivery}, key="one")
    await other.refused(404, "not_found", "GET", path)
    await other.refused(404, "not_found", "PATCH", path, {"instance_name": "x"}, key="one")
    await other.refused(404, "not_found", "DELETE", path)
    by_command = await desk.instance()
    await program.refused(404, "not_found", "DELETE", f"/instances/{by_command.id}")
    for name in ("", " a", "a > b", "aap:x:1", "a\nb", "a\u202eb", "*", "x" * 101, 7, None):
        await program.refused(400, "invalid_field", "POST", "/instances", {"instance_name": name}, key="two")


async def test_revoking_withdraws_what_waits_and_asks_about_what_runs(
    desk: AapDesk, agent: Agent, clock: FakeClock
) -> None:
    waiting, running, approved, looked = [await agent.ask(one) for one in (REFUND, REFUND, REFUND, LOOK)]
    requests = {one.tool_call_id: one.id for one in await desk.broker.pending()}
    for one in (running, approved):
        await desk.answer(requests[one["id"]])
    await agent.consume(running)
    await agent.consume(looked)
    polling = asyncio.create_task(agent.send("GET", f"/requests/{waiting['id']}?wait=30s"))
    await soon(lambda: sleeping(clock) >= 2, "nobody waits")
    await desk.broker.aap.revoke(agent.id, by="ana")
    assert (await polling).status_code == 401
    states = {one["id"]: (await desk.broker.get(requests[one["id"]])).state for one in (waiting, running, approved)}
    assert list(states.values()) == [State.CANCELLED, State.UNKNOWN, State.CANCELLED]
    await agent.refused(401, "invalid_credential", "POST", "/requests", LOOK, key="x")


async def test_a_key_that_is_revoked_or_expired_takes_its_instance_along(desk: AapDesk, clock: FakeClock) -> None:
    agent, other = await desk.instance(), await desk.instance()
    await agent.ask({**REFUND, "timeout": "720h"})
    await other.ask({**REFUND, "timeout": "720h"})
    await desk.broker.access.revoke(agent.id, by="ana")
    assert await desk.broker.aap.sweep() == 1
    assert len(await desk.broker.pending()) == 1
    clock.advance(timedelta(days=1))
    assert await desk.broker.aap.sweep() == 1
    assert await desk.broker.pending() == []
    assert await desk.broker.aap.sweep() == 0


async def test_what_is_decided_is_found_for_a_month(desk: AapDesk, clock: FakeClock) -> None:
    made = await desk.broker.aap.provision(
        "11111111-1111-1111-1111-111111111111", "old", "soi_old", owner="ana", by="ana", lasts=None
    )
    agent = Agent(desk, made[0].id, "soi_old")
    old: Any = await agent.ask(LOOK)
    clock.advance(timedelta(days=29))
    await agent.ask(LOOK)
    await agent.get(old)
    clock.advance(timedelta(days=2))
    await agent.ask(LOOK)
    await agent.refused(404, "not_found", "GET", f"/requests/{old['id']}")


async def test_all_of_it_on_postgresql(tmp_path: Path, postgres_url: str) -> None:
    desk = AapDesk(tmp_path, store=postgres_url)
    try:
        agent = await desk.instance()
        asked, looked, waiting = (
            await agent.ask(key="one"),
            await agent.ask(LOOK),
            await agent.ask({**REFUND, "tool": "x"}),
        )
        assert (await agent.ask(key="one", status=200))["id"] == asked["id"]
        request = next(one for one in await desk.broker.pending() if one.tool_call_id == asked["id"])
        polling = asyncio.create_task(agent.get(asked, "30s"))
        await desk.answer(request.id)
        assert (await polling)["status"] == "approved"
        for one in (asked, looked):
            await agent.consume(one)
            await agent.refused(409, "already_consumed", "POST", f"/requests/{one['id']}/consume", key="run-2")
            await agent.data("POST", f"/requests/{one['id']}/outcome", {"status": "succeeded", "note": "é\x00"})
        assert (await desk.broker.get(request.id)).state is State.SUCCEEDED
        await desk.broker.aap.revoke(agent.id, by="ana")
        assert await desk.broker.pending() == []
        await agent.refused(401, "invalid_credential", "GET", f"/requests/{waiting['id']}")
    finally:
        await desk.close()
