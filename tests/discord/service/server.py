"""The service itself: a web server in a thread of its own, what tests switch on it, and what they watch."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterator
from typing import Any, TypeVar

from aiohttp import web
from tests.discord.service import answers, messages, places
from tests.discord.service.faults import Faults, Hold
from tests.discord.service.gateway import CONTENT, MEMBERS, PRESENCES, Gateway, guild_base
from tests.discord.service.interactions import Interactions
from tests.discord.service.people import PATIENCE, Person
from tests.discord.service.refusal import Refusal
from tests.discord.service.rest import PREFIX, Request, Rest
from tests.discord.service.state import Clock, State, StillClock
from tests.discord.service.world import NEEDED, Message, Place, User, bits

T = TypeVar("T")


class Service:
    """Discord, as one bot in one guild sees it. `start()` it, point the client at `api_url` and `gateway_url`."""

    def __init__(self, clock: Clock | None = None) -> None:
        self.state = State(clock or StillClock())
        self.faults = Faults(lambda: self._loop)
        self.interactions = Interactions(self.state)
        self.rest = Rest(self.state, self.interactions, self.faults, [messages.routes, places.routes, answers.routes])
        self.gateway = Gateway(self.state, self.rest.errors.append)
        self.channel = self._new_channel("approvals")
        self._people: dict[str, Person] = {}
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="discord-stand-in", daemon=True)
        self._ready = threading.Event()
        self._stop = asyncio.Event()
        self._port = 0
        self._site: web.TCPSite | None = None
        self._runner: web.AppRunner | None = None

    # Its life

    def start(self) -> Service:
        self._thread.start()
        assert self._ready.wait(PATIENCE), "the stand-in did not start"
        return self

    def stop(self) -> None:
        self.faults.clear()
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(PATIENCE)
        assert not self._thread.is_alive(), "the stand-in did not stop"

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._serve())

    async def _serve(self) -> None:
        app = web.Application(client_max_size=64 * 1024 * 1024)
        app.router.add_get("/gateway/", self._socket)
        app.router.add_get("/gateway/resume/", self._socket)
        app.router.add_get("/attachments/{place}/{attachment}/{name}", self._download)
        app.router.add_route("*", "/{rest:.*}", self.rest.serve)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1, handler_cancellation=True)
        await self._runner.setup()
        await self._listen()
        self._ready.set()
        await self._stop.wait()
        for line in list(self.gateway.lines):
            line.close(1001)
        await self._runner.cleanup()

    async def _listen(self) -> None:
        assert self._runner is not None
        self._site = web.TCPSite(self._runner, "127.0.0.1", self._port, reuse_address=True)
        await self._site.start()
        self._port = int(self._runner.addresses[0][1])
        self.state.base = f"http://127.0.0.1:{self._port}"

    async def _socket(self, request: web.Request) -> web.StreamResponse:
        if self.faults.is_out:
            return web.Response(status=503)
        return await self.gateway.serve(request)

    async def _download(self, request: web.Request) -> web.Response:
        everything = [*self.state.all_messages(), *self.state.private.values()]
        for message in everything:
            for attachment in message.attachments:
                if str(attachment.id) == request.match_info["attachment"]:
                    return web.Response(body=attachment.data, content_type="application/octet-stream")
        return web.Response(status=404)

    async def inside(self, work: Coroutine[Any, Any, T]) -> T:
        """Run this in the service's own loop."""
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._loop))

    async def do(self, work: Callable[[], T]) -> T:
        async def run() -> T:
            return work()

        return await self.inside(run())

    @property
    def clock(self) -> Any:
        """What the service tells the time by: the age of interactions, tokens and nonces.

        It stands still; `service.clock.advance(seconds)` moves it. Anything else with `now()` may be put in its place.
        """
        return self.state.clock

    @clock.setter
    def clock(self, clock: Clock) -> None:
        self.state.clock = clock

    async def pass_time(self, seconds: float) -> None:
        """Move the clock, and have threads archived in which nothing happened for so long."""

        def work() -> None:
            self.clock.advance(seconds)
            self.state.archive_quiet()

        await self.do(work)

    # Where it is

    @property
    def url(self) -> str:
        return self.state.base

    @property
    def api_url(self) -> str:
        return self.url + PREFIX

    @property
    def gateway_url(self) -> str:
        return self.url.replace("http", "ws") + "/gateway/"

    @property
    def token(self) -> str:
        return self.state.token

    @property
    def bot(self) -> User:
        return self.state.bot

    @property
    def guild_id(self) -> int:
        return self.state.guild_id

    # Who and what is in it

    def person(self, name: str) -> Person:
        """The person of this name; they are in the guild from now on."""
        if name not in self._people:
            user = User(self.state.ids.take(), name)
            self.state.users[user.id] = user
            self._people[name] = Person(self, user)
        return self._people[name]

    def new_channel(self, name: str) -> Place:
        """Another text channel. A bot that is connected already is not told."""
        return self._new_channel(name)

    def _new_channel(self, name: str) -> Place:
        made = Place(self.state.ids.take(), self.state.guild_id, name)
        self.state.places[made.id] = made
        return made

    async def deny(self, place: Place, *permissions: str) -> None:
        """The bot may not do this in the channel any more (an overwrite), and is told."""
        await self.do(lambda: self.state.change_place(place, denied=place.denied | bits(*permissions)))

    async def allow(self, place: Place, *permissions: str) -> None:
        """Takes a denial back."""
        await self.do(lambda: self.state.change_place(place, denied=place.denied & ~bits(*permissions)))

    async def permit(self, *permissions: str) -> None:
        """What the bot's role allows everywhere: these, besides what the program asks for."""

        def work() -> None:
            self.state.role = bits(*NEEDED, *permissions)
            role = guild_base(self.state)["roles"][1]
            self.state.dispatch("GUILD_ROLE_UPDATE", {"guild_id": str(self.guild_id), "role": role}, None)

        await self.do(work)

    def switch_on(self, *intents: str) -> None:
        """Privileged intents, as in the developer portal: "members", "presences", "message_content"."""
        known = {"members": MEMBERS, "presences": PRESENCES, "message_content": CONTENT}
        for intent in intents:
            self.gateway.privileged |= known[intent]

    # What goes wrong

    def limit(self, route: str, times: int = 1, retry_after: float = 0.05, *, everywhere: bool = False) -> None:
        self.faults.limit(route, times, retry_after, everywhere=everywhere)

    def bucket(self, route: str, limit: int, per: float) -> None:
        self.faults.bucket(route, limit, per)

    def fail(self, route: str, status: int = 500, times: int = 1, code: int = 0, message: str = "") -> None:
        self.faults.fail(route, status, times, code, message)

    def hold(self, route: str, *, after: bool = False) -> Hold:
        return self.faults.hold(route, after=after)

    def kill_response(self, route: str, times: int = 1) -> None:
        self.faults.kill_response(route, times)

    async def down(self, how: str = "refused") -> None:
        """An outage: nobody answers at the port ("refused"), or everything answers 503 ("503"). Sockets break."""

        async def work() -> None:
            assert self._runner is not None and self._runner.server is not None
            if how == "503":
                self.faults.is_out = True
            elif self._site is not None:
                await self._deaf()
                await self._site.stop()
                self._site = None
            for connection in list(self._runner.server.connections):
                if connection.transport is not None:
                    connection.transport.abort()

        await self.inside(work())

    async def _deaf(self) -> None:
        """Accept nobody any longer, and see those through who are at the door: asyncio would forget to close them."""
        server: Any = getattr(self._site, "_server", None)
        for listening in server.sockets:
            self._loop.remove_reader(listening.fileno())
        for _ in range(5):
            await asyncio.sleep(0)

    async def up(self) -> None:
        """The outage is over; sessions can be resumed."""

        async def work() -> None:
            self.faults.is_out = False
            if self._site is None:
                await self._listen()

        await self.inside(work())

    async def reconnect(self) -> None:
        """Opcode 7: asks every client to connect anew and resume."""
        await self.do(lambda: [line.send({"op": 7, "d": None}) for line in self.gateway.lines])

    async def invalidate(self, *, resumable: bool = False) -> None:
        """Opcode 9: the session is over; unless `resumable`, the client has to identify again."""

        def work() -> None:
            if not resumable:
                self.gateway.sessions.clear()
            for line in self.gateway.lines:
                line.send({"op": 9, "d": resumable})

        await self.do(work)

    async def close_sockets(self, code: int = 4000) -> None:
        """Closes every socket with this code."""
        await self.do(lambda: [line.close(code) for line in list(self.gateway.lines)])

    def duplicate_next(self, event: str = "*") -> None:
        """The next event (of this kind) is delivered twice."""
        self.gateway.twice.append(event)

    def reorder(self, events: int = 2) -> None:
        """The next so many events are delivered together, the last one first."""
        self.gateway.reorder(events)

    # Watching

    @property
    def errors(self) -> list[str]:
        """Requests that no document describes. The fixture fails the test if there are any."""
        return self.rest.errors

    @property
    def refused(self) -> list[tuple[Request, Refusal]]:
        """Requests that were answered with an error, and with which."""
        return self.rest.refused

    @property
    def requests(self) -> list[Request]:
        return self.rest.requests

    def calls(self, method: str, route: str) -> list[Request]:
        """The REST calls of a route, which is written with `{}` for ids: `/channels/{}/messages`."""
        return [one for one in self.requests if (one.method, one.route) == (method, route)]

    def messages(self, place: Place | None = None) -> list[Message]:
        """The messages in a channel or thread, or everywhere, oldest first; without those that one person sees."""
        found = list(place.messages.values()) if place else list(self.state.all_messages())
        return sorted(found, key=lambda message: message.id)

    def private(self, person: Person) -> list[Message]:
        """The messages that only this person sees, oldest first."""
        return [message for message in list(self.state.private.values()) if message.seen_by == person.id]

    def threads(self) -> list[Place]:
        return [place for place in list(self.state.places.values()) if place.is_thread]

    def place(self, place_id: int) -> Place:
        return self.state.places[place_id]

    def find(self, message_id: int) -> Message:
        """A message by its id, private ones too."""
        return next(one for one in self._everything() if one.id == message_id)

    def _everything(self) -> Iterator[Message]:
        yield from self.state.all_messages()
        yield from list(self.state.private.values())

    async def message(
        self, fits: Callable[[Message], bool] = lambda _: True, timeout: float = PATIENCE, *, place: Place | None = None
    ) -> Message:
        """Waits for a message that fits, as it is now or after some change: the oldest; system messages left out."""

        def look() -> Message | None:
            return next((one for one in self.messages(place) if one.kind != 18 and fits(one)), None)

        def what() -> str:
            shown = "\n---\n".join(one.text for one in self.messages(place)) or "(nothing)"
            return f"no such message came; there are:\n{shown}"

        return await self.inside(self.state.until(look, timeout, what))

    async def until(
        self, look: Callable[[], T | None], what: str = "it did not happen", timeout: float = PATIENCE
    ) -> T:
        """Waits until `look` returns something that is neither None nor False. It is called in the service's thread."""
        return await self.inside(self.state.until(lambda: look() or None, timeout, lambda: what))

    async def connected(self, times: int = 1) -> None:
        """Waits until clients have identified so often."""
        await self.until(lambda: self.gateway.identified >= times, f"nobody identified {times} times")

    async def resumed(self, times: int = 1) -> None:
        await self.until(lambda: self.gateway.resumed >= times, f"nobody resumed {times} times")

    async def asked(self, method: str, route: str, times: int = 1) -> Request:
        """Waits until a route was called so often (and answered); the last of them."""

        def look() -> Request | None:
            found = [one for one in self.calls(method, route) if one.status]
            return found[times - 1] if len(found) >= times else None

        return await self.until(look, f"{method} {route} was not called {times} times")
