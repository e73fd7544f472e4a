"""The inbox that channels are handed: answers are checked as at the terminal, and late ones are told what happened."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pytest
from tests.cli.desk import POLICY, asks
from tests.matches import varying

from signoff.broker import Broker
from signoff.config import Settings, load_settings
from signoff.core.call import Call
from signoff.core.decision import ApprovalDecision
from signoff.core.notice import Notice
from signoff.core.people import Actor
from signoff.core.redact import redact
from signoff.core.request import ApprovalRequest, State
from signoff.core.terms import Scope, Terms
from signoff.core.verdict import Effect, Requirement, Verdict
from signoff.delivery import Reconciler, Route
from signoff.delivery.channel_inbox import StoreInbox
from signoff.errors import AlreadySettled, EditRefused, NotEntitled, RequestError, UnknownRequest
from signoff.policy.grant_text import grant_line
from signoff.policy.offer import offers
from signoff.ports import Inbox
from signoff.store.sqlite import SqliteStore
from signoff.testing import FakeClock
from signoff.wiring.program_inbox import project_inbox

ANA = Actor(name="ana", roles=frozenset({"ops", "dev"}), via="discord")
BEN = Actor(name="ben", roles=frozenset({"ops"}), via="discord")
YES = ApprovalDecision(approved=True, by=ANA)
NO = ApprovalDecision(approved=False, by=BEN, note="not today")


class Wall:
    """A channel that shows everything."""

    name = "discord"

    async def start(self, inbox: Inbox) -> None: ...

    async def show(self, notice: Notice, at: str = "", beside: str = "") -> str:
        return at or f"7/{notice.subject}"

    async def stop(self) -> None: ...


@dataclass(frozen=True, slots=True)
class ProjectInbox(StoreInbox):
    """With the settings that answers are checked by."""

    settings: Settings


@pytest.fixture
async def inbox(tmp_path: Path) -> AsyncIterator[ProjectInbox]:
    (tmp_path / "signoff.yaml").write_text(POLICY)
    settings = load_settings(tmp_path / "signoff.yaml")
    store = SqliteStore(tmp_path / "s.db")
    people = {name: person.roles for name, person in settings.people.items()}
    broker = Broker(store, FakeClock(), people=people)
    yield ProjectInbox(broker, "discord", project_inbox(broker, settings, "discord").take, settings)
    store.close()


async def opened(inbox: ProjectInbox, *requests: ApprovalRequest) -> list[ApprovalRequest]:
    return await inbox.broker.open(list(requests), policy=inbox.settings.policy)


async def test_it_is_an_inbox(inbox: ProjectInbox) -> None:
    handed: Inbox = inbox
    first, second = await opened(inbox, asks(), asks("write_file", {"path": "a"}))
    assert [one.id for one in await handed.pending()] == [first.id, second.id]
    assert (await handed.request(first.id[:6])).id == first.id
    with pytest.raises(UnknownRequest):
        await handed.request("nope")
    await handed.answer(first.id, YES)
    await handed.answer(second.id, NO)
    assert [one.id for one in await handed.recent(limit=5)] == [second.id, first.id]
    assert await handed.pending() == []


async def test_time_is_fed_before_somebody_looks(inbox: ProjectInbox) -> None:
    [first] = await opened(inbox, asks(needs=Requirement(timeout=timedelta(minutes=5))))
    assert isinstance(inbox.broker.clock, FakeClock)
    inbox.broker.clock.advance(timedelta(minutes=6))
    assert await inbox.pending() == []
    assert (await inbox.request(first.id)).state is State.EXPIRED


async def test_who_comes_late_is_told_what_happened(inbox: ProjectInbox) -> None:
    secret = "hunter2hunter2"
    [first] = await opened(inbox, asks(secrets=(secret,)))
    await inbox.answer(first.id, ApprovalDecision(approved=False, by=BEN, note=f"the key {secret}\x1b[2J is old"))
    for late in (YES, ApprovalDecision(approved=True, by=ANA, edited_args={"nonsense": 1})):
        with pytest.raises(AlreadySettled) as told:
            await inbox.answer(first.id, late)
        assert str(told.value).startswith(f"request {first.id} was denied by ben at ")
        assert secret not in str(told.value)
        assert "\x1b" not in str(told.value)
    with pytest.raises(AlreadySettled, match="was denied by ben"):
        await inbox.tell(first.id, happened=True, by=ANA)
    with pytest.raises(AlreadySettled, match="was denied by ben"):
        await inbox.grant_text(first.id, YES)


async def test_only_the_right_people(inbox: ProjectInbox) -> None:
    [first] = await opened(inbox, asks(needs=Requirement(role="ops", quorum=2)))
    with pytest.raises(NotEntitled):
        await inbox.answer(first.id, ApprovalDecision(approved=True, by=Actor(name="cleo", roles=frozenset({"ops"}))))
    with pytest.raises(NotEntitled, match="does not say who gave it"):
        await inbox.answer(first.id, ApprovalDecision(approved=True))
    await inbox.answer(first.id, YES)
    settled = await inbox.answer(first.id, ApprovalDecision(approved=True, by=Actor(name="ben")))
    assert settled.state is State.APPROVED
    assert [vote.by.via for vote in settled.votes] == ["discord", "discord"], "where it came from is on record"


async def test_edits_are_checked_before_they_are_taken(inbox: ProjectInbox) -> None:
    secret = "sk-live-0123456789abcdef0123"
    args = {"to": "ana", "amount": 250, "currency": secret}
    [first] = await opened(inbox, asks(args=args, secrets=(secret,)))
    masked = dict(redact(first.args, secrets=first.secrets).args)
    assert secret not in str(masked)

    async def edit(**changes: object) -> ApprovalRequest:
        return await inbox.answer(first.id, ApprovalDecision(approved=True, by=ANA, edited_args={**masked, **changes}))

    with pytest.raises(EditRefused, match="amount: should be of type number"):
        await edit(amount="much")
    with pytest.raises(EditRefused, match="takes no such argument"):
        await edit(colour="red")
    with pytest.raises(EditRefused, match="policy denies the edited call: nothing goes to mallory"):
        await edit(to="mallory")
    with pytest.raises(EditRefused, match="the edited call needs 2 people"):
        await edit(amount=5000)
    assert (await inbox.request(first.id)).state is State.PENDING
    settled = await edit(amount=20)
    assert settled.effective_args == {"to": "ana", "amount": 20, "currency": secret}, "what was masked is put back"


async def test_edits_that_change_nothing_are_none(inbox: ProjectInbox) -> None:
    [first] = await opened(inbox, asks())
    settled = await inbox.answer(first.id, ApprovalDecision(approved=True, by=ANA, edited_args=dict(first.args)))
    assert settled.decision is not None
    assert settled.decision.edited_args is None


async def test_what_cannot_be_shown_cannot_be_approved(inbox: ProjectInbox) -> None:
    [first] = await opened(inbox, asks(call={"unreadable": ("blob",)}))
    with pytest.raises(EditRefused, match="blob cannot be shown, so the call cannot be approved"):
        await inbox.answer(first.id, YES)
    assert (await inbox.answer(first.id, NO)).state is State.DENIED


async def test_the_text_of_a_grant_is_what_signoff_grants_says(inbox: ProjectInbox) -> None:
    [first] = await opened(inbox, asks("write_file", {"path": "notes/a.md", "content": "x"}, schema=None))
    wide = offers(first)[1]
    assert wide.match is not None
    answer = ApprovalDecision(approved=True, by=ANA, terms=Terms(scope=Scope.PROJECT, match=wide.match))
    told = await inbox.grant_text(first.id, answer)
    await inbox.answer(first.id, answer)
    [grant] = await inbox.broker.grants.list()
    assert grant_line(grant) == told
    assert "notes" in told


async def test_what_may_not_be_remembered_has_no_text(inbox: ProjectInbox) -> None:
    [strict] = await opened(inbox, asks(needs=Requirement(role="ops", quorum=2)))
    for decision in (
        ApprovalDecision(approved=True, by=ANA, terms=Terms(scope=Scope.PROJECT)),
        ApprovalDecision(approved=True, by=ANA, remember="always"),  # type: ignore[arg-type]
    ):
        with pytest.raises(RequestError, match="cannot be remembered"):
            await inbox.grant_text(strict.id, decision)


async def test_a_secret_in_a_pattern_is_masked(inbox: ProjectInbox) -> None:
    call = Call(tool="write_file", args={"path": "notes/a.md", "mode": "zq81zq81zq81"}, call_id="x", run_id="r")
    verdict = Verdict(effect=Effect.ASK, rules=(), reason="")
    [first] = await opened(
        inbox,
        ApprovalRequest(
            tool_call_id="x",
            tool_name=call.tool,
            args=call.args,
            call=call,
            may_vary=varying(call),
            verdict=verdict,
            secrets=("zq81zq81zq81",),
        ),
    )
    wide = offers(first)[1]
    answer = ApprovalDecision(approved=True, by=ANA, terms=Terms(scope=Scope.PROJECT, match=wide.match))
    assert "zq81" not in await inbox.grant_text(first.id, answer)


async def test_where_it_stands_and_who_read_it(inbox: ProjectInbox) -> None:
    [first] = await opened(inbox, asks())
    assert await inbox.where(first.id) == ""
    post = Reconciler(inbox.broker, [Route(Wall())], inbox=lambda _: inbox)
    await post.round()
    assert await inbox.where(first.id) == f"7/{first.id}"
    assert not await inbox.has_opened(first.id, ANA)
    await inbox.opened(first.id, ANA)
    assert await inbox.has_opened(first.id, ANA)
    assert not await inbox.has_opened(first.id, BEN)
    await inbox.gone(first.id)
    assert await inbox.where(first.id) == ""
    await post.round()
    assert await inbox.where(first.id) == f"7/{first.id}"
    await post.stop()


async def test_a_call_whose_process_died(inbox: ProjectInbox) -> None:
    [first] = await opened(inbox, asks())
    await inbox.answer(first.id, YES)
    await inbox.broker.claim(first.id)
    await inbox.broker.lose(first.id)
    told = await inbox.tell(first.id, happened=True, by=BEN, note="seen in the bank")
    assert told.state is State.SUCCEEDED
