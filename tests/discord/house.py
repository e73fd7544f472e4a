"""A project whose people are reached on Discord: a real broker over SQLite, its post and inbox, the real discord.py."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.discord.service import Answered, Message, Person, Place, Service
from tests.matches import varying
from tests.ready import ready

from signoff.broker import Broker
from signoff.channels.discord.bot import discord_channel
from signoff.channels.discord.custom_id import Press, Verb
from signoff.config.settings import Person as Known
from signoff.config.settings import Settings
from signoff.core.call import Call
from signoff.core.people import Actor
from signoff.core.request import ApprovalRequest, State
from signoff.core.subject import Subject
from signoff.core.verdict import Effect, Requirement, Verdict
from signoff.delivery import Reconciler, Route
from signoff.delivery.channel_inbox import StoreInbox
from signoff.policy.engine import Policy
from signoff.ports import Begin, Channel, Transaction
from signoff.store.sqlite import SqliteStore
from signoff.wiring.program_inbox import project_inbox

ROLES = {"ana": frozenset({"ops"}), "ben": frozenset({"ops", "dev"}), "dan": frozenset[str]()}
ARGS = {"to": "ACME", "amount": 250}
SCHEMA = {
    "type": "object",
    "properties": {"to": {"type": "string"}, "amount": {"type": "integer"}},
    "required": ["to", "amount"],
    "additionalProperties": False,
}


def opened(path: Path) -> SqliteStore:
    """The store in a file, which is made where it is not there yet."""
    return SqliteStore(ready(path))


class House:
    """One process of the project. Another `House` over the same directory and service is the next one."""

    def __init__(self, service: Service, directory: Path) -> None:
        self.service = service
        self.store = opened(directory / "signoff.db")
        self.broker = Broker(self.store, people=ROLES)
        self.people = {name: service.person(name) for name in ROLES}
        self.settings = Settings(
            policy=Policy(rules=()),
            people={
                name: Known(name=name, roles=roles, accounts={"discord": str(self.people[name].id)})
                for name, roles in ROLES.items()
            },
        )
        self._asked = 0

    @property
    def accounts(self) -> Mapping[str, Actor]:
        return {str(self.people[name].id): Actor(name=name, roles=roles) for name, roles in ROLES.items()}

    @property
    def ana(self) -> Person:
        return self.people["ana"]

    @property
    def ben(self) -> Person:
        return self.people["ben"]

    @property
    def dan(self) -> Person:
        """On file, without a role."""
        return self.people["dan"]

    def channel(self, *, begin: Begin | None = None, workers: Sequence[str] = ()) -> Channel:
        place = str(self.service.channel.id)
        return discord_channel(self.service.token, channel=place, people=self.accounts, begin=begin, workers=workers)

    def inbox(self, name: str = "discord") -> StoreInbox:
        return project_inbox(self.broker, self.settings, name)

    @asynccontextmanager
    async def running(self, channel: Channel | None = None) -> AsyncIterator[Reconciler]:
        """The channel is connected, and whatever there is to show is shown, until the end of the block."""
        post = Reconciler(self.broker, [Route(channel or self.channel())], inbox=self.inbox)
        running = asyncio.create_task(post.run())
        connected = asyncio.create_task(self.service.connected(self.service.gateway.identified + 1))
        await asyncio.wait((running, connected), return_when=asyncio.FIRST_COMPLETED)
        if running.done():
            connected.cancel()
            running.result()
        try:
            yield post
            assert not running.done(), running
        finally:
            running.cancel()
            await asyncio.wait((running,))

    async def ask(
        self,
        *,
        args: Mapping[str, Any] = ARGS,
        tool: str = "pay_invoice",
        need: Requirement | None = None,
        count: int = 1,
        talk: str = "talk",
        tools: Sequence[str] = (),
        requester: str = "",
        metadata: Mapping[str, Any] | None = None,
        needs: Sequence[Requirement] = (),
    ) -> list[ApprovalRequest]:
        """Ask about calls at once. `needs`: what each of them needs, where that differs."""
        requests: list[ApprovalRequest] = []
        needed = needs or [need or Requirement()] * (len(tools) or count)
        for name, wanted in zip(tools or [tool] * len(needed), needed, strict=True):
            self._asked += 1
            call_id = f"call-{self._asked}-{id(self)}"
            call = Call(
                tool=name, args=dict(args), call_id=call_id, run_id="run", conversation_id=talk, worker=("triage",)
            )
            verdict = Verdict(effect=Effect.ASK, rules=("pay:1",), reason="money", requirement=wanted)
            request = ApprovalRequest(tool_call_id=call_id, tool_name=name, args=dict(args), call=call, verdict=verdict)
            requests.append(
                replace(request, may_vary=varying(call), schema=SCHEMA, requester=requester, metadata=metadata or {})
            )
        return await self.broker.open(requests)

    async def message(self, request: ApprovalRequest, fits: Callable[[Message], bool] = lambda _: True) -> Message:
        """The message about a request, once it stands there and fits, and the inbox knows where."""
        found = await self.service.message(lambda one: f"request {request.id}" in one.text and fits(one))
        await self.until(lambda: self._knows(request.id), f"nobody noted where request {request.id} stands")
        return found

    async def _knows(self, request_id: str) -> bool:
        return bool(await self.inbox().where(request_id))

    async def noted(self, request: ApprovalRequest) -> None:
        """Returns once the message about a request says what the store holds, and that was written down."""
        subject = Subject.parse(request.id)

        def is_current(tx: Transaction) -> bool:
            delivery, stored = tx.deliveries.get("discord", subject), tx.requests.get(request.id)
            return delivery is not None and stored is not None and delivery.shown == stored.version

        await self.until(lambda: self.store.read(is_current), f"request {request.id} was not brought up to date")

    async def shown(self, **asked: Any) -> tuple[ApprovalRequest, Message]:
        """Ask about a call; the request and its message."""
        [request] = await self.ask(**asked)
        return request, await self.message(request)

    async def state(self, request: ApprovalRequest) -> State:
        return (await self.broker.get(request.id)).state

    async def until(
        self, holds: Callable[[], Awaitable[bool]], what: str = "it did not happen", patience: float = 20.0
    ) -> None:
        """Wait until something holds of what the store holds; looks whenever that changes."""
        changed, loop = asyncio.Event(), asyncio.get_running_loop()

        def tick() -> None:
            if not loop.is_closed():
                loop.call_soon_threadsafe(changed.set)

        stop = self.store.watch(tick)
        try:
            async with asyncio.timeout(patience):
                while not await holds():
                    await changed.wait()
                    changed.clear()
        except TimeoutError:
            raise AssertionError(what) from None
        finally:
            stop()

    async def becomes(self, request: ApprovalRequest, state: State) -> ApprovalRequest:
        async def holds() -> bool:
            return await self.state(request) is state

        await self.until(holds, f"request {request.id} did not become {state}")
        return await self.broker.get(request.id)

    def close(self) -> None:
        self.store.close()


async def told(answered: Answered) -> str:
    """What somebody is told privately."""
    reply = await answered.reply()
    assert reply.message is not None and reply.message.seen_by is not None, "everybody saw it"
    return plainly(reply.text)


def plainly(text: str) -> str:
    """As it reads on the screen: without the backslashes that take away what markdown means."""
    return "".join(part for part in text.replace("\\\\", "\0").split("\\")).replace("\0", "\\")


def thread_of(message: Message) -> Place:
    assert message.place.is_thread
    return message.place


def press_id(verb: Verb, request: ApprovalRequest, *, digest: str = "", rest: str = "") -> str:
    """The custom id of a button about a request."""
    return Press(verb=verb, request=request.id, digest=digest or request.args_digest, rest=rest).id
