"""`signoff.channels.open_inbox`: what a program may answer, over a store that an agent left behind."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic_ai import Agent, DeferredToolRequests

from signoff import Actor, ApprovalDecision, Signoff, resume
from signoff.channels import open_inbox
from signoff.errors import AlreadySettled, EditRefused, NotEntitled, RequestError, WrongFile
from signoff.testing import ScriptedModel
from signoff.workers import load_policy

RULES = """
people:
  ben: {roles: [finance]}
  eve: {roles: [support]}
policy:
  - deny: {tool: refund, amount: {">": 500}}
    reason: more than 500 is refunded by the bank
  - ask: refund
    by: finance
"""
BEN, EVE = Actor(name="ben", via="web"), Actor(name="eve", via="web")


def refund(order: str, amount: int) -> str:
    return f"refunded {amount} for {order}"


async def asked(directory: Path) -> tuple[Agent[None, str | DeferredToolRequests], str, str]:
    """An agent that has asked to refund 40, the id of its request and the address of its store."""
    (directory / "signoff.yaml").write_text(RULES)
    store = f"sqlite:{directory / 'approvals.db'}"
    signoff = Signoff(load_policy(directory / "signoff.yaml"), store=store, wait="suspend")
    script = [{"calls": [{"tool": "refund", "args": {"order": "A1", "amount": 40}}]}, {"say": "{{last}}"}]
    agent: Agent[None, str | DeferredToolRequests] = Agent(
        ScriptedModel(script), output_type=[str, DeferredToolRequests], tools=[refund], capabilities=[signoff]
    )
    await agent.run("refund A1")
    [status] = await signoff.broker.runs.list()
    return agent, status.waiting[0].id, store


def by(who: Actor | None, **edited: object) -> ApprovalDecision:
    return ApprovalDecision(approved=True, by=who, edited_args=edited or None)


async def test_an_edit_is_checked_by_schema_and_policy_and_then_runs(tmp_path: Path) -> None:
    agent, request, store = await asked(tmp_path)
    inbox = open_inbox(store, project=tmp_path / "signoff.yaml", channel="web")
    with pytest.raises(EditRefused, match="amount"):
        await inbox.answer(request, by(BEN, order="A1", amount="a lot"))
    with pytest.raises(EditRefused, match="by the bank"):
        await inbox.answer(request, by(BEN, order="A1", amount=501))
    assert [one.id for one in await inbox.pending()] == [request]
    settled = await inbox.answer(request, by(BEN, order="A1", amount=30))
    assert settled.state == "approved"
    assert settled.run is not None
    assert (await resume(agent, settled.run)).output.endswith("refunded 30 for A1")


async def test_only_the_people_of_the_project_with_the_role_answer_and_only_once(tmp_path: Path) -> None:
    _, request, store = await asked(tmp_path)
    inbox = open_inbox(store, project=tmp_path / "signoff.yaml")
    for who in (None, EVE, Actor(name="mallory", via="web")):
        with pytest.raises(NotEntitled):
            await inbox.answer(request, by(who))
    await inbox.answer(request, by(BEN))
    with pytest.raises(AlreadySettled, match="approved by ben"):
        await inbox.answer(request, by(BEN))
    with pytest.raises(RequestError, match="nothing"):
        await inbox.answer("nothing", by(BEN))


async def test_whoever_is_late_is_told_a_note_as_it_may_be_shown(tmp_path: Path) -> None:
    agent, request, store = await asked(tmp_path)
    [capability] = [one for one in agent.root_capability.capabilities if isinstance(one, Signoff)]
    note = "fine\u202e, password=hunter2hunter2"
    finance = Actor(name="ben", roles=frozenset({"finance"}), via="web")
    await capability.answer(request, ApprovalDecision(approved=True, note=note), by=finance)
    for late in (capability.answer(request, by(BEN), by=BEN), open_inbox(store).answer(request, by(BEN))):
        with pytest.raises(AlreadySettled, match="approved by ben") as told:
            await late
        assert "\u202e" not in str(told.value) and "hunter2" not in str(told.value)


async def test_roles_of_a_program_count_besides_those_of_the_project(tmp_path: Path) -> None:
    _, request, store = await asked(tmp_path)
    inbox = open_inbox(store, project=tmp_path / "signoff.yaml", people={"eve": "finance"})
    assert (await inbox.answer(request, by(EVE))).state == "approved"


async def test_without_the_rules_a_call_was_asked_under_its_arguments_cannot_be_edited(tmp_path: Path) -> None:
    _, request, store = await asked(tmp_path)
    (tmp_path / "signoff.yaml").write_text("people: {ben: {roles: [finance]}}\npolicy: [{ask: refund}]\n")
    inbox = open_inbox(store, project=tmp_path / "signoff.yaml")
    with pytest.raises(EditRefused, match="checked against the policy of the request"):
        await inbox.answer(request, by(BEN, order="A1", amount=501))
    with pytest.raises(WrongFile):
        open_inbox(store, project=tmp_path / "nothing.yaml")
