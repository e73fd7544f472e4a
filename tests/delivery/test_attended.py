"""A channel that this process runs while it waits: answers are given there, and it follows what happens elsewhere."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from concurrent.futures import Future
from contextlib import asynccontextmanager
from datetime import timedelta

import pytest

from signoff.channels.approver import ApproverChannel
from signoff.core.comment import CommentKind
from signoff.core.decision import ApprovalDecision, Ending
from signoff.core.notice import Asked
from signoff.core.people import Actor
from signoff.core.request import ApprovalRequest, State
from signoff.core.verdict import OnTimeout, Requirement
from signoff.delivery.local_channel import Attended
from signoff.errors import ChannelFailed, NobodyHere
from signoff.testing import Office
from signoff.testing.office import ANA, soon
from signoff.wiring.program_inbox import project_inbox

YES, NO = ApprovalDecision(approved=True), ApprovalDecision(approved=False)


class Screen:
    """A screen on which several questions stand at once."""

    def __init__(self) -> None:
        self.cards: dict[str, tuple[ApprovalRequest, Future[ApprovalDecision | None]]] = {}
        self.is_closed = False
        self.withdrawn: list[tuple[str, str]] = []
        self.said: list[str] = []

    def ask(self, asked: ApprovalRequest) -> Future[ApprovalDecision | None]:
        future: Future[ApprovalDecision | None] = Future()
        self.cards[asked.id] = (asked, future)
        return future

    def withdraw(self, request_id: str, why: str) -> None:
        self.withdrawn.append((request_id, why))
        self._end(request_id, ApprovalDecision(approved=False, note=why, ending=Ending.CANCELLED))

    def preview_edits(self, request_id: str, described: object) -> None:
        """This screen edits nothing."""

    def redraw(self, asked: ApprovalRequest) -> None:
        self.cards[asked.id] = (asked, self.cards[asked.id][1])

    def say(self, text: str) -> None:
        self.said.append(text)

    def close(self) -> None:
        self.is_closed = True
        for request_id in self.cards:
            self._end(request_id, None)

    def answers(self, notice: Asked, decision: ApprovalDecision | None) -> None:
        self.cards[notice.request.id][1].set_result(decision)

    async def shows(self, *notices: Asked) -> None:
        def asked() -> set[str]:
            return {one for one, (_, future) in list(self.cards.items()) if not future.done()}

        meant = {notice.request.id for notice in notices}
        await soon(lambda: asked() == meant, lambda: f"the screen shows {asked()}, not {meant}")

    def _end(self, request_id: str, decision: ApprovalDecision | None) -> None:
        future = self.cards[request_id][1]
        if not future.done():
            future.set_result(decision)


@pytest.fixture
def office() -> Office:
    return Office()


@asynccontextmanager
async def attended(office: Office, screen: object) -> AsyncIterator[Attended]:
    channel = ApproverChannel(screen, name="tui", by=ANA)  # type: ignore[arg-type]
    take = project_inbox(office.broker, office._settings, "tui").take
    async with Attended(office.broker, channel, take) as made:
        yield made


def requests(notices: Sequence[Asked]) -> list[ApprovalRequest]:
    return [notice.request for notice in notices]


async def state(office: Office, notice: Asked) -> State:
    return (await office.now(notice)).request.state


async def test_it_ends_when_everything_is_answered(office: Office) -> None:
    one, two = await office.ask(count=2)
    screen = Screen()
    async with attended(office, screen) as made:
        await made.show(requests([one, two]))
        waiting = asyncio.ensure_future(made.settled())
        await screen.shows(one, two)
        screen.answers(two, YES)
        await screen.shows(one)
        screen.answers(one, NO)
        assert await waiting
        assert [(await made.now(notice.request.id)).state for notice in (one, two)] == [State.DENIED, State.APPROVED]
    assert list(screen.cards) == [one.request.id, two.request.id]
    assert screen.is_closed and screen.withdrawn == []


@pytest.mark.parametrize("approved", [True, False])
async def test_it_follows_what_happens_elsewhere(office: Office, approved: bool) -> None:
    [one] = await office.ask()
    screen = Screen()
    async with attended(office, screen) as made:
        await made.show(requests([one]))
        await screen.shows(one)
        [new] = await office.ask()
        await made.show(requests([one, new]))
        await screen.shows(one, new)
        await office.settle_elsewhere(one, approved=approved)
        await screen.shows(new)
        [(withdrawn, why)] = screen.withdrawn
        assert withdrawn == one.request.id and ("approved" if approved else "denied") + " by ben" in why
        screen.answers(new, YES)
        assert await made.settled()
        assert made.failure is None
    assert await state(office, new) is State.APPROVED


async def test_who_leaves_keeps_the_rest_open_and_has_given_what_was_answered(office: Office) -> None:
    one, two, three = await office.ask(count=3)
    screen = Screen()
    async with attended(office, screen) as made:
        await made.show(requests([one, two, three]))
        await screen.shows(one, two, three)
        screen.answers(one, YES)
        screen.answers(two, None)
        assert not await made.settled()
        assert made.failure is not None and "has left" in str(made.failure)
    assert [await state(office, notice) for notice in (one, two, three)] == [
        State.APPROVED,
        State.PENDING,
        State.PENDING,
    ]


async def test_a_refused_edit_is_asked_again_with_the_reason_and_the_draft(office: Office) -> None:
    [one] = await office.ask()
    screen, edited = Screen(), {"to": "bo@example.com", "subject": "Lunch", "copies": "many"}
    async with attended(office, screen) as made:
        await made.show(requests([one]))
        await screen.shows(one)
        first = screen.cards[one.request.id][1]
        first.set_result(ApprovalDecision(approved=True, edited_args=edited))
        await soon(lambda: screen.cards[one.request.id][1] is not first, "it is not asked again")
        again = screen.cards[one.request.id][0]
        assert "copies" in again.problem and again.metadata["draft"] == edited
        screen.answers(one, YES)
        assert await made.settled()


async def test_an_approval_that_is_not_enough_is_left_to_others(office: Office) -> None:
    [one] = await office.ask(need=Requirement(quorum=2))
    [two] = await office.ask()
    screen = Screen()
    async with attended(office, screen) as made:
        await made.show(requests([one, two]))
        await screen.shows(one, two)
        screen.answers(one, YES)
        await screen.shows(two)
        await made.show(requests([one, two]))
        screen.answers(two, NO)
        assert not await made.settled(), "nobody here can do more, and nothing bounds the wait for others"
        assert made.failure is None and not made.asked
    assert len(screen.said) == 1 and "1 of 2 have agreed so far" in screen.said[0]
    assert await state(office, one) is State.PENDING


async def test_others_are_waited_for_until_time_is_up(office: Office) -> None:
    [one] = await office.ask(need=Requirement(quorum=2))
    screen = Screen()
    async with attended(office, screen) as made:
        await made.show(requests([one]))
        screen.answers(one, YES)
        waiting = asyncio.ensure_future(made.settled(office.clock.now() + timedelta(minutes=1)))
        await soon(lambda: not made.asked, "no vote")
        assert not waiting.done()
        office.clock.advance(timedelta(minutes=2))
        assert not await waiting


async def test_what_is_for_somebody_else_by_now_is_taken_off_the_screen(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`signoff inbox --tui --mine`, while one of the requests is escalated."""
    from signoff.cli import inbox_screen

    escalates = Requirement(role="ops", timeout=timedelta(minutes=1), on_timeout=OnTimeout.ESCALATE, escalate_to="boss")
    [one] = await office.ask(need=escalates)
    [two] = await office.ask(need=Requirement(role="ops"))
    screen = Screen()
    monkeypatch.setattr("signoff.cli.inbox_screen.tui_approver", lambda **_: screen)
    shown = inbox_screen.ShownRequests(office.broker, ANA, mine=True)
    running = asyncio.ensure_future(inbox_screen._answered(office._settings, None, shown))
    await screen.shows(one, two)
    office.clock.advance(timedelta(minutes=2))
    await office.broker.sweep()
    await screen.shows(two)
    assert screen.withdrawn == [(one.request.id, "somebody else has to answer it now")]
    screen.answers(two, YES)
    assert await running is None
    assert await state(office, one) is State.PENDING


@pytest.mark.parametrize("mine", [True, False])
async def test_a_deadline_is_noticed_on_the_open_screen(
    office: Office, monkeypatch: pytest.MonkeyPatch, mine: bool
) -> None:
    """`signoff inbox --tui` sweeps by itself: nobody else may be there to do it."""
    from signoff.cli import inbox_screen

    minute, escalates = timedelta(minutes=1), OnTimeout.ESCALATE
    [one] = await office.ask(need=Requirement(role="ops", timeout=10 * minute, on_timeout=escalates, escalate_to="ops"))
    [later] = await office.ask(
        need=Requirement(role="boss", timeout=15 * minute, on_timeout=escalates, escalate_to="ops")
    )
    [last] = await office.ask(need=Requirement(timeout=18 * minute, on_timeout=OnTimeout.DENY))
    screen = Screen()
    monkeypatch.setattr("signoff.cli.inbox_screen.tui_approver", lambda **_: screen)
    shown = inbox_screen.ShownRequests(office.broker, ANA, mine=mine)
    running = asyncio.ensure_future(inbox_screen._answered(office._settings, None, shown))
    await screen.shows(*((one, last) if mine else (one, later, last)))
    office.clock.advance(10 * minute)
    await soon(lambda: screen.cards[one.request.id][0].escalated, "it is not drawn as it stands now")
    office.clock.advance(5 * minute)
    await screen.shows(one, later, last)
    await soon(lambda: screen.cards[later.request.id][0].escalated, "it is not drawn as it stands now")
    office.clock.advance(3 * minute)
    await screen.shows(one, later)
    assert "nobody answered in time" in dict(screen.withdrawn)[last.request.id]
    for notice in (one, later):
        screen.answers(notice, YES)
    assert await running is None


async def test_an_answer_refused_after_an_escalation_is_asked_again_as_it_stands_now(office: Office) -> None:
    need = Requirement(role="ops", timeout=timedelta(minutes=1), on_timeout=OnTimeout.ESCALATE, escalate_to="boss")
    [one] = await office.ask(need=need)
    screen = Screen()
    async with attended(office, screen) as made:
        await made.show(requests([one]))
        await screen.shows(one)
        first = screen.cards[one.request.id][1]
        office.clock.advance(timedelta(minutes=2))
        await soon(lambda: screen.cards[one.request.id][0].escalated, "it is not drawn as it stands now")
        first.set_result(YES)
        await soon(lambda: screen.cards[one.request.id][1] is not first, "it is not asked again")
        again = screen.cards[one.request.id][0]
        assert "boss" in again.problem and again.escalated


async def test_somebody_elses_vote_is_drawn(office: Office) -> None:
    [one] = await office.ask(need=Requirement(quorum=2))
    screen = Screen()
    async with attended(office, screen) as made:
        await made.show(requests([one]))
        await screen.shows(one)
        await office.settle_elsewhere(one, approved=True)
        await soon(lambda: len(screen.cards[one.request.id][0].votes) == 1, "it is not drawn as it stands now")
        screen.answers(one, YES)
        assert await made.settled()


async def test_without_a_terminal_nobody_is_there(office: Office) -> None:
    from signoff.channels.tui import TuiApprover

    [one] = await office.ask()
    async with attended(office, TuiApprover()) as made:
        await made.show(requests([one]))
        assert not await made.settled()
        assert isinstance(made.failure, ChannelFailed) and isinstance(made.failure.__cause__, NobodyHere)
    assert await state(office, one) is State.PENDING


async def test_a_question_that_is_asked_elsewhere_comes_onto_the_card(office: Office) -> None:
    [one] = await office.ask()
    screen = Screen()
    async with attended(office, screen) as made:
        await made.show(requests([one]))
        await screen.shows(one)
        asked = await office.broker.comments.add(
            one.request.id, "Which invoice?", by=Actor(name="ben"), kind=CommentKind.QUESTION
        )
        await soon(lambda: screen.cards[one.request.id][0].comments == (asked,), "it is not drawn as it stands now")
        screen.answers(one, YES)
        assert await made.settled()
