"""The full screen over what a broker keeps: answers are given there, and the screen follows what happens elsewhere."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent.futures import Future

import pytest
from tests.channels.person import request

from signoff.channels.tui_inbox import TuiInbox
from signoff.core.decision import ApprovalDecision, Ending
from signoff.core.request import ApprovalRequest
from signoff.errors import AlreadySettled, EditRefused, NobodyHere
from signoff.testing.office import soon

YES, NO = ApprovalDecision(approved=True), ApprovalDecision(approved=False)


class Shown:
    """The screen, as far as the inbox sees it."""

    def __init__(self) -> None:
        self.cards: dict[str, tuple[ApprovalRequest, Future[ApprovalDecision | None]]] = {}
        self.news = asyncio.Event()
        self.closed = False
        self.withdrawn: list[tuple[str, str]] = []

    def ask(self, asked: ApprovalRequest) -> Future[ApprovalDecision | None]:
        future: Future[ApprovalDecision | None] = Future()
        self.cards[asked.id] = (asked, future)
        return future

    def withdraw(self, request_id: str, why: str) -> None:
        self.withdrawn.append((request_id, why))
        future = self.cards[request_id][1]
        if not future.done():
            future.set_result(ApprovalDecision(approved=False, note=why, ending=Ending.CANCELLED))

    def close(self) -> None:
        self.closed = True
        for _, future in self.cards.values():
            if not future.done():
                future.set_result(None)

    def answers(self, request_id: str, decision: ApprovalDecision | None) -> None:
        self.cards[request_id][1].set_result(decision)

    async def shows(self, *request_ids: str) -> None:
        def asked() -> set[str]:
            return {one for one, (_, future) in list(self.cards.items()) if not future.done()}

        await soon(lambda: asked() == set(request_ids), lambda: f"the screen shows {asked()}, not {request_ids}")


class Kept:
    """What a broker keeps."""

    def __init__(self, *requests: ApprovalRequest) -> None:
        self.open = {one.id: one for one in requests}
        self.given: list[tuple[str, bool]] = []
        self.refusals: dict[str, list[Exception]] = {}
        self.changed = asyncio.Event()
        self.needs_more: set[str] = set()

    async def pending(self) -> Sequence[ApprovalRequest]:
        return list(self.open.values())

    async def answer(self, request_id: str, decision: ApprovalDecision) -> ApprovalRequest:
        if self.refusals.get(request_id):
            raise self.refusals[request_id].pop(0)
        self.given.append((request_id, decision.approved))
        self.changed.set()
        return self.open[request_id] if request_id in self.needs_more else self.open.pop(request_id)

    async def settled(self, request_id: str) -> str:
        return f"request {request_id} was approved by bob"

    async def wait(self) -> None:
        await self.changed.wait()
        self.changed.clear()


def inbox(shown: Shown, kept: Kept) -> asyncio.Task[list[str]]:
    made = TuiInbox(approver=shown, pending=kept.pending, answer=kept.answer, settled=kept.settled, changed=kept.wait)
    return asyncio.ensure_future(made.run())


async def test_everything_is_answered_then_it_ends() -> None:
    shown, kept = Shown(), Kept(request("one"), request("two"))
    running = inbox(shown, kept)
    await shown.shows("r-one", "r-two")
    shown.answers("r-two", YES)
    await shown.shows("r-one")
    shown.answers("r-one", NO)
    assert await running == []
    assert sorted(kept.given) == [("r-one", False), ("r-two", True)]
    assert list(shown.cards) == ["r-one", "r-two"]
    assert shown.closed


async def test_the_screen_follows_what_happens_elsewhere() -> None:
    shown, kept = Shown(), Kept(request("one"))
    running = inbox(shown, kept)
    await shown.shows("r-one")
    kept.open["r-new"] = request("new")
    del kept.open["r-one"]
    kept.changed.set()
    await shown.shows("r-new")
    assert shown.withdrawn == [("r-one", "request r-one was approved by bob")]
    shown.answers("r-new", YES)
    await running
    assert kept.given == [("r-new", True)]


async def test_leaving_keeps_the_rest_open_and_gives_what_was_answered() -> None:
    shown, kept = Shown(), Kept(request("one"), request("two"), request("three"))
    running = inbox(shown, kept)
    await shown.shows("r-one", "r-two", "r-three")
    shown.answers("r-one", YES)
    shown.answers("r-two", None)
    await running
    assert kept.given == [("r-one", True)]
    assert set(kept.open) == {"r-two", "r-three"}


async def test_an_edit_that_is_refused_is_asked_again_with_the_reason_and_the_draft() -> None:
    shown, kept = Shown(), Kept(request("one"))
    kept.refusals["r-one"] = [EditRefused(("content: too long",))]
    running = inbox(shown, kept)
    await shown.shows("r-one")
    first = shown.cards["r-one"][1]
    first.set_result(ApprovalDecision(approved=True, edited_args={"content": "four"}))
    await soon(lambda: shown.cards["r-one"][1] is not first, "it is not asked again")
    again = shown.cards["r-one"][0]
    assert again.problem == "content: too long"
    assert again.metadata["draft"] == {"content": "four"}
    shown.answers("r-one", YES)
    await running
    assert kept.given == [("r-one", True)]


async def test_who_comes_too_late_is_told() -> None:
    shown, kept = Shown(), Kept(request("one"))
    kept.refusals["r-one"] = [AlreadySettled("request r-one was denied by bob at 12:00")]
    running = inbox(shown, kept)
    await shown.shows("r-one")
    shown.answers("r-one", YES)
    assert await running == ["request r-one was denied by bob at 12:00"]
    assert kept.given == []


async def test_one_that_needs_more_answers_is_not_asked_about_again() -> None:
    shown, kept = Shown(), Kept(request("one"), request("two"))
    kept.needs_more.add("r-one")
    running = inbox(shown, kept)
    await shown.shows("r-one", "r-two")
    shown.answers("r-one", YES)
    await shown.shows("r-two")
    kept.open["r-new"] = request("new")
    kept.changed.set()
    await shown.shows("r-two", "r-new")
    shown.answers("r-new", NO)
    shown.answers("r-two", NO)
    await running
    assert [one for one, _ in kept.given].count("r-one") == 1
    assert set(kept.open) == {"r-one"}


async def test_without_a_terminal_nobody_is_here() -> None:
    from signoff.channels.tui import TuiApprover

    kept = Kept(request("one"))
    made = TuiInbox(
        approver=TuiApprover(), pending=kept.pending, answer=kept.answer, settled=kept.settled, changed=kept.wait
    )
    with pytest.raises(NobodyHere):
        await made.run()
    assert kept.given == []
