"""Several channels on one broker, through the post: the first answer wins, all hear of it, none holds up another."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from itertools import product
from pathlib import Path

import pytest
from tests.contracts.channels.discord_case import discord_case
from tests.contracts.channels.sketch_case import NotificationCase, SlackLikeCase, WebhookCase, sketch_case
from tests.contracts.channels.tui_case import tui_case
from tests.contracts.channels.ui_case import Booth, BoothCase, booth_case, terminal_case
from tests.pairwise import cases
from tests.ready import ready

from signoff.channels.approver import ApproverChannel
from signoff.core.delivery import DeliveryState
from signoff.core.notice import Asked, Notice
from signoff.core.request import State
from signoff.delivery import Reconciler, Route
from signoff.errors import ChannelFailed
from signoff.ports import Inbox
from signoff.store.sqlite import SqliteStore
from signoff.testing import ChannelCase, Office
from signoff.testing.channel_bench import flat
from signoff.testing.office import BEN, WatchedInbox, soon

Opens = Callable[[Path], AbstractAsyncContextManager[ChannelCase]]

INTERACTIVE: dict[str, Opens] = {
    "booth": lambda _: booth_case(),
    "terminal": terminal_case,
    "tui": lambda _: tui_case(),
    "discord": lambda _: discord_case(),
    "webhook": lambda _: sketch_case(WebhookCase),
    "slack-like": lambda _: sketch_case(SlackLikeCase),
}


class Elsewhere(BoothCase):
    """Ben, with an approver of his own."""

    def make(self) -> ApproverChannel:
        return ApproverChannel(self.ui, name="elsewhere", by=BEN)


class House:
    """An office whose post runs some channels."""

    def __init__(self, office: Office, *routes: Route) -> None:
        self.office = office
        self.desks: dict[str, WatchedInbox] = {}
        self.post = Reconciler(office.broker, routes, inbox=self._inbox)

    def _inbox(self, name: str) -> WatchedInbox:
        self.desks[name] = self.office.inbox(name)
        return self.desks[name]

    async def asks(self, **about: int) -> list[Asked]:
        notices = await self.office.ask(**about)  # type: ignore[arg-type]
        await self.post.round()
        return notices

    async def state(self, notice: Asked) -> State:
        return (await self.office.now(notice)).request.state

    async def settles(self, notice: Asked) -> None:
        async def settled() -> bool:
            return await self.state(notice) is not State.PENDING

        await soon(settled, "it is never settled")
        await self.post.round()

    async def delivery(self, channel: str, notice: Notice) -> DeliveryState | None:
        found = await self.office.store.read(lambda tx: tx.deliveries.get(channel, notice.key))
        return found.state if found is not None else None


@asynccontextmanager
async def house(directory: Path, *routes: Route) -> AsyncIterator[House]:
    office = Office(SqliteStore(ready(directory / "signoff.db")))
    made = House(office, *routes)
    try:
        yield made
    finally:
        await made.post.stop()
        office.close()


async def reads(case: ChannelCase, notice: Notice, *texts: str) -> None:
    async def there() -> bool:
        read = flat(await case.seen(notice))
        return all(flat(text) in read for text in texts)

    await soon(there, f"not all of {texts} was shown")


async def stands(case: ChannelCase, notice: Asked, times: int = 1) -> None:
    async def so_many() -> bool:
        return await case.standing(notice) == times

    await soon(so_many, f"it does not stand there {times} times")


@pytest.mark.parametrize("kind", INTERACTIVE)
async def test_an_answer_here_closes_it_there_with_who_when_and_what(tmp_path: Path, kind: str) -> None:
    ben = Elsewhere()
    async with INTERACTIVE[kind](tmp_path) as ana, house(tmp_path, Route(ana.make()), Route(ben.make())) as it:
        [notice] = await it.asks()
        await stands(ana, notice)
        await stands(ben, notice)
        it.office.clock.advance(61)
        await ben.deny(notice, "not on my watch")
        await it.settles(notice)
        await stands(ana, notice, 0)
        [when, *_] = ana.moments(it.office.clock.now())
        await reads(ana, notice, "ben", "denied", "not on my watch", when)


@pytest.mark.parametrize("kind", INTERACTIVE)
async def test_an_answer_there_is_withdrawn_here(tmp_path: Path, kind: str) -> None:
    ben = Elsewhere()
    async with INTERACTIVE[kind](tmp_path) as ana, house(tmp_path, Route(ana.make()), Route(ben.make())) as it:
        [notice] = await it.asks()
        await ana.approve(notice)
        await it.settles(notice)
        assert await it.state(notice) is State.APPROVED
        await stands(ben, notice, 0)
        await reads(ben, notice, f"request {notice.request.id} was approved by ana")
        assert it.desks["elsewhere"].taken == []


@pytest.mark.parametrize("kind", INTERACTIVE)
async def test_of_two_answers_at_once_one_counts_and_the_other_is_told(tmp_path: Path, kind: str) -> None:
    ben = Elsewhere()
    async with INTERACTIVE[kind](tmp_path) as ana, house(tmp_path, Route(ana.make()), Route(ben.make())) as it:
        [notice] = await it.asks()
        await stands(ana, notice)
        await stands(ben, notice)
        await asyncio.gather(ana.approve(notice), ben.deny(notice))
        await it.settles(notice)
        taken = [one for inbox in it.desks.values() for one in inbox.taken]
        assert len(taken) == 1
        request = (await it.office.now(notice)).request
        assert len(request.votes) == 1
        loser, winner = (ben, "ana") if request.state is State.APPROVED else (ana, "ben")

        async def told() -> bool:
            return any(winner in flat(one) for one in await loser.told()) or winner in flat(await loser.seen(notice))

        await soon(told, "whoever came second was not told")


class Broken(ApproverChannel):
    """A channel with a fault, or out of order."""

    def __init__(self, problem: Exception, *, starts: bool = True) -> None:
        super().__init__(Booth(), name="broken", by=BEN)
        self.problem = problem
        self.starts = starts
        self.shown = 0

    async def start(self, inbox: Inbox) -> None:
        if not self.starts:
            raise self.problem
        await super().start(inbox)

    async def show(self, notice: Notice, at: str = "", beside: str = "") -> str:
        self.shown += 1
        raise self.problem


PROBLEMS = [ChannelFailed("no line"), ChannelFailed("no use", again=False), ValueError("a bug"), OSError("refused")]


@pytest.mark.parametrize(
    ("problem", "starts"),
    cases(
        product(PROBLEMS, [True, False]),
        [(problem, number % 2 == 0) for number, problem in enumerate(PROBLEMS)],
        lambda problem, starts: f"{problem!r}-{starts}",
    ),
)
async def test_a_failing_channel_never_holds_up_another(tmp_path: Path, problem: Exception, starts: bool) -> None:
    broken = Broken(problem, starts=starts)
    async with booth_case() as ana, house(tmp_path, Route(broken), Route(ana.make())) as it:
        for notice in await it.asks(count=3):
            await stands(ana, notice)
            await ana.approve(notice)
            await it.settles(notice)
            assert await it.state(notice) is State.APPROVED


class Hanging(ApproverChannel):
    """Never comes back from showing something."""

    async def show(self, notice: Notice, at: str = "", beside: str = "") -> str:
        return await asyncio.get_running_loop().create_future()


async def test_a_hanging_channel_never_holds_up_another(tmp_path: Path) -> None:
    hanging = Hanging(Booth(), name="hanging", by=BEN)
    async with booth_case() as ana, house(tmp_path, Route(hanging), Route(ana.make())) as it:
        running = asyncio.ensure_future(it.post.run())
        notices = await it.office.ask(count=2)
        for notice in notices:
            await ana.approve(notice)

            async def approved(notice: Asked = notice) -> bool:
                return await it.state(notice) is State.APPROVED

            await soon(approved, "it is never approved")
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def test_a_notification_follows_what_happens_elsewhere(tmp_path: Path) -> None:
    async with sketch_case(NotificationCase) as told, booth_case() as ana:
        async with house(tmp_path, Route(told.make()), Route(ana.make())) as it:
            [notice] = await it.asks()
            await ana.approve(notice)
            await it.settles(notice)
            await it.office.run(notice, preview="sent")
            await it.post.round()
            lines = [line["text"] for line in told.other.lines]
            assert "waits" in lines[0] and "approved by ana" in lines[1] and "ran: sent" in lines[-1]


@pytest.mark.parametrize("forged", ["signature", "digest", "person", "request"])
async def test_a_forged_answer_settles_nothing(tmp_path: Path, forged: str) -> None:
    async with sketch_case(WebhookCase) as hook, house(tmp_path, Route(hook.make())) as it:
        [notice] = await it.asks()
        body = {"request": notice.request.id, "digest": notice.request.args_digest, "by": "U1", "approved": True}
        body |= {"digest": {"digest": "0" * 64}, "person": {"by": "U2"}, "request": {"request": "nothing"}}.get(
            forged, {}
        )
        status, _ = await hook.posts(
            body, secret=b"guessed" if forged == "signature" else b"a secret that both sides know"
        )
        assert status == {"signature": 401, "digest": 409, "person": 403, "request": 400}[forged]
        assert await it.state(notice) is State.PENDING
        assert it.desks["WebhookChannel"].taken == []
