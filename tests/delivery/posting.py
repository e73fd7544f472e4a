"""What tests of the post need: a channel that stands for the outside, and requests that are asked at once."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import count
from typing import Any, cast

from tests.matches import varying

from signoff.broker import Broker
from signoff.core.call import Call
from signoff.core.decision import ApprovalDecision
from signoff.core.delivery import Delivery
from signoff.core.notice import Asked, Notice, Reminder, RunResult, Together
from signoff.core.people import Actor
from signoff.core.request import ApprovalRequest
from signoff.core.subject import Subject
from signoff.core.verdict import Effect, Requirement, Verdict
from signoff.delivery import Reconciler, Route
from signoff.ports import Inbox

ANA = Actor(name="ana", roles=frozenset({"ops", "dev"}))
YES, NO = ApprovalDecision(approved=True), ApprovalDecision(approved=False)


class Board:
    """A channel: messages on a board that outlives whoever posts there. It fails when told to."""

    def __init__(self, name: str = "board") -> None:
        self._name = name
        self.messages: dict[str, Notice] = {}
        """What stands where."""
        self.places: dict[str, str] = {}
        """Where each subject stands, by its mark on the board: so it is found again."""
        self.tries: list[tuple[Notice, str, str]] = []
        self.shown: list[tuple[str, int]] = []
        """Every success: subject and version."""
        self.first = Counter[str]()
        """How often each was shown, and that was heard, without a word of where it stood."""
        self.fails: Callable[[Notice], BaseException | None] = lambda notice: None
        self.starts: Callable[[], BaseException | None] = lambda: None
        self.hangs: Callable[[Notice], bool] = lambda notice: False
        self.hung = asyncio.Event()
        self.answers = True
        """False: what is posted stands there, and nobody hears of it."""
        self.inside = 0
        self.most = 0
        self.started = self.stopped = 0
        self.inbox: Inbox | None = None
        self._news = asyncio.Event()
        self._numbers = count(1)

    @property
    def name(self) -> str:
        return self._name

    async def start(self, inbox: Inbox) -> None:
        self.started += 1
        self.inbox = inbox
        self._news.set()
        if (error := self.starts()) is not None:
            raise error

    async def stop(self) -> None:
        self.stopped += 1

    async def show(self, notice: Notice, at: str = "", beside: str = "") -> str:
        self.tries.append((notice, at, beside))
        self._news.set()
        self.inside += 1
        self.most = max(self.most, self.inside)
        try:
            await asyncio.sleep(0)  # others get a turn, as they would outside
            if self.hangs(notice):
                self.hung.set()
                await asyncio.Event().wait()
            if (error := self.fails(notice)) is not None:
                raise error
            place = at if at in self.messages else self.places.get(notice.subject, "")
            place = place or f"{self.name}/{next(self._numbers)}"
            self.messages[place] = notice
            self.places[notice.subject] = place
            if not self.answers:
                self.hung.set()
                await asyncio.Event().wait()
        finally:
            self.inside -= 1
        self.shown.append((notice.subject, notice.version))
        self._news.set()
        if not at:
            self.first[notice.subject] += 1
        return place

    async def until(self, happened: Callable[[], bool]) -> None:
        """Wait until something is so that only changes when something happens here."""
        while not happened():
            self._news.clear()
            await asyncio.wait_for(self._news.wait(), 30)

    # what people see

    def standing(self, subject: str) -> Notice:
        return self.messages[self.places[subject]]

    def call(self, subject: str) -> ApprovalRequest:
        notice = self.standing(subject)
        assert isinstance(notice, Asked)
        return notice.request

    def together(self, first: str) -> Together:
        notice = self.standing(f"all:{first}")
        assert isinstance(notice, Together)
        return notice

    def said(self, run: str) -> RunResult:
        notice = self.standing(f"said:{run}")
        assert isinstance(notice, RunResult)
        return notice

    def order(self, trail: str) -> list[str]:
        """The messages of a trail, from the first to the last."""
        return [one.subject for one in self.messages.values() if one.trail == trail]


class Bell(Board):
    """A board that rings for a reminder, and keeps what stood on the card then."""

    def __init__(self, name: str = "board") -> None:
        super().__init__(name)
        self.rung: list[tuple[Reminder, Notice | None]] = []

    async def remind(self, reminder: Reminder, card: str, at: str = "") -> str:
        self.rung.append((reminder, self.messages.get(card)))
        return f"{self.name}/bell{len(self.rung)}"


def post_for(broker: Broker, *routes: Board | Route) -> Reconciler:
    made = [one if isinstance(one, Route) else Route(one) for one in routes]
    return Reconciler(broker, made, inbox=lambda name: cast("Inbox", name))


def question(call_id: str, run: str = "r1", need: Requirement | None = None, **more: Any) -> ApprovalRequest:
    args = {"to": "bob", "amount": 5}
    call = Call(tool="pay", args=args, call_id=call_id, run_id=run or call_id, conversation_id=more.pop("talk", ""))
    return ApprovalRequest(
        tool_call_id=call_id,
        tool_name="pay",
        args=args,
        call=call,
        may_vary=varying(call),
        verdict=Verdict(effect=Effect.ASK, requirement=need or Requirement()),
        run=run,
        **more,
    )


async def ask_all(broker: Broker, *call_ids: str, **more: Any) -> list[str]:
    """Ask about several calls at once; the ids."""
    return [one.id for one in await broker.open([question(call_id, **more) for call_id in call_ids])]


async def row(broker: Broker, channel: str, subject: str) -> Delivery:
    found = await broker.store.read(lambda tx: tx.deliveries.get(channel, Subject.parse(subject)))
    assert found is not None, f"{subject} is no delivery in {channel}"
    return found


async def rows(broker: Broker, channel: str = "") -> Sequence[Delivery]:
    return await broker.store.read(lambda tx: tx.deliveries.find(channel=channel))
