"""A web inbox on loopback over a real SQLite store, in a thread of its own, and agents that ask there."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Coroutine, Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any, TypeVar

import uvicorn
from pydantic import BaseModel
from pydantic_ai import Agent, DeferredToolRequests
from starlette.requests import HTTPConnection
from tests.ready import ready

from signoff import Signoff, resume
from signoff.broker import Broker
from signoff.config import load_settings
from signoff.core.access import EVERYTHING
from signoff.core.people import Actor
from signoff.core.request import ApprovalRequest
from signoff.server.app import application
from signoff.server.identity import Identity
from signoff.server.state import ServerState
from signoff.store.sqlite import SqliteStore
from signoff.testing import ScriptedModel
from signoff.testing.office import soon
from signoff.wiring.program_inbox import project_inbox
from signoff.wiring.project import roles_of
from signoff.wiring.project_rules import ProjectRules

T = TypeVar("T")
PATIENCE = 60.0
POLICY = """\
people:
  ana: {roles: [ops]}
  ben: {roles: [ops]}
  cleo: {}
policy:
  - {ask: send_mail, id: mail, reason: mail leaves the house}
  - {ask: pay, id: money, reason: money leaves the house, timeout: 1h}
  - {ask: wipe, id: wipe, reason: it removes everything, irreversible: true}
  - {ask: book, id: table}
  - {ask: deploy, id: four-eyes, by: ops, quorum: 2}
"""


class Guest(BaseModel):
    """Who comes."""

    name: str = ""
    door: int | None = None


class Shop:
    """Where ana and ben work: whoever comes with the cookie `who` is that person."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.file = directory / "signoff.yaml"
        self.file.write_text(POLICY, encoding="utf-8")
        self.store = ready(directory / "approvals.db")
        self.port = _free_port()
        self.signed_out: set[str] = set()
        self.mails: list[tuple[str, str, int]] = []
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="shop", daemon=True)
        self._thread.start()
        self._server: uvicorn.Server | None = None
        self._serving: Future[None] | None = None
        self._broker: Broker | None = None
        self._gates: dict[str, tuple[Agent[Any, Any], Signoff]] = {}
        self.serve()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def broker(self) -> Broker:
        assert self._broker is not None
        return self._broker

    def do(self, work: Coroutine[Any, Any, T]) -> T:
        """Do something in the thread of the server."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(PATIENCE)

    # --- the server ---

    def serve(self) -> None:
        """Listen, on the same port as before."""
        settings = load_settings(self.file)
        store = SqliteStore(self.store)
        self._broker = broker = Broker(store, people=roles_of(settings))
        state = ServerState(
            broker=broker,
            inbox=project_inbox(broker, settings, "web"),
            identify=self._by_cookie,
            people=lambda: settings.people,
            rules=ProjectRules(broker, settings),
            title="teapot shop",
        )
        config = uvicorn.Config(
            application(state),
            host="127.0.0.1",
            port=self.port,
            log_level="warning",
            timeout_graceful_shutdown=1,
            lifespan="off",
        )
        self._live = state.live
        self._server = server = uvicorn.Server(config)
        server.install_signal_handlers = lambda: None  # type: ignore[attr-defined]

        async def serve() -> None:
            await server._serve()  # pyright: ignore[reportPrivateUsage]

        self._serving = asyncio.run_coroutine_threadsafe(serve(), self._loop)
        self.do(_until(lambda: server.started))

    def stop(self) -> None:
        """Hang up on everybody."""
        assert self._server is not None
        assert self._serving is not None
        self._loop.call_soon_threadsafe(self._live.close)
        self._server.should_exit = True
        self._serving.result(PATIENCE)
        self.broker.store.close()

    def close(self) -> None:
        self.stop()
        for _, gate in self._gates.values():
            gate.broker.store.close()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(PATIENCE)
        self._loop.close()

    async def _by_cookie(self, connection: HTTPConnection) -> Identity | None:
        who = connection.cookies.get("who")
        if who not in ("ana", "ben") or who in self.signed_out:
            return None
        return Identity(actor=Actor(name=who, via="web"), permissions=EVERYTHING, csrf=f"csrf-of-{who}")

    # --- agents ---

    def ask(self, *calls: Mapping[str, Any], say: str = "", prompt: str = "Look after the teapots.") -> list[str]:
        """An agent makes these calls, and is suspended; the ids of its requests."""
        return self.do(self._ask(calls, say, prompt))

    async def _ask(self, calls: Sequence[Mapping[str, Any]], say: str, prompt: str) -> list[str]:
        model = ScriptedModel(
            [{"calls": list(calls)} | ({"say": say} if say else {}), {"say": "The tools said: {{last}}"}]
        )
        gate = Signoff(self.file, wait="suspend", store=f"sqlite:{self.store}", requester="rosa")
        agent = Agent(model, name="clerk", output_type=[str, DeferredToolRequests], capabilities=[gate])

        @agent.tool_plain
        def send_mail(to: str, text: str, copies: int = 1) -> str:  # pyright: ignore[reportUnusedFunction]
            """Send a mail."""
            self.mails.append((to, text, copies))
            return f"sent to {to}"

        @agent.tool_plain
        def pay(amount: float) -> str:  # pyright: ignore[reportUnusedFunction]
            """Pay."""
            return f"paid {amount}"

        @agent.tool_plain
        def wipe(disk: str) -> str:  # pyright: ignore[reportUnusedFunction]
            """Remove everything."""
            return f"{disk} is empty"

        @agent.tool_plain
        def book(number: int, rate: float, seats: int | None = None, guest: Guest | None = None) -> str:  # pyright: ignore[reportUnusedFunction]
            """Book a table."""
            return f"{number} {rate} {seats} {guest}"

        @agent.tool_plain
        def deploy(version: str) -> str:  # pyright: ignore[reportUnusedFunction]
            """Put a version in production."""
            return f"{version} is out"

        await agent.run(prompt)
        opened = [one for one in await gate.broker.pending() if one.run and one.run not in self._gates]
        for one in opened:
            self._gates[one.run] = agent, gate
        return [one.id for one in opened]

    def resume(self, request_id: str) -> str:
        """The run of a request goes on, as `signoff serve` has it; what it says in the end."""

        async def work() -> str:
            request = await self.broker.get(request_id)
            agent, _ = self._gates[request.run]
            return str((await resume(agent, request.run)).output)

        return self.do(work())

    def request(self, request_id: str) -> ApprovalRequest:
        return self.do(self.broker.get(request_id))


async def _until(holds: Any) -> None:
    async def held() -> bool:
        return bool(holds())

    await soon(held, lambda: "the server did not start", patience=30)


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])
