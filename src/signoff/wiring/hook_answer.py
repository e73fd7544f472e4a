"""Answers a coding agent's hook: reads the event, judges it by the project's policy, asks people, and tells the agent.

Whatever goes wrong raises; `signoff.wiring.hook_launcher` turns that into a refusal.
"""

from __future__ import annotations

import os
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypeVar

from signoff.errors import WrongUse
from signoff.outside.hook_event import HookEvent, HookHost, HookMoment, HookReply
from signoff.outside.hook_hosts import HOSTS
from signoff.outside.outside_call import OutsideCall
from signoff.outside.outside_gate import OutsideGate
from signoff.outside.strict_json import MOST_BYTES, read_object
from signoff.store.durable import DurableStore
from signoff.wiring.outside_desk import OutsideDesk

if TYPE_CHECKING:
    from signoff.outside.server_gate import ServerGate

T = TypeVar("T")

LARGEST_EVENT = 16 * MOST_BYTES
"""Of an event: what a tool gave may be long. A call that is to be judged is much shorter."""
PROJECT_VARIABLES = {"claude-code": "CLAUDE_PROJECT_DIR", "gemini": "GEMINI_PROJECT_DIR"}
"""Where each agent says which project it works in. Not the directory a call is made in: the agent moves that itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HookOptions:
    """How a hook was installed, and who calls it."""

    agent: str
    project: str = ""
    """The project's directory, where the hook was installed for one."""
    store: str | None = None
    patience: timedelta = timedelta(hours=1)
    """How long a person is waited for. It has to be shorter than the agent waits for its hook."""
    server: str = ""
    """The address of a server whose people are asked instead of those of the store."""
    token_file: str = ""
    """Holds the credential for that server."""
    caller: int = 0
    """The process that was started as the hook; 0: this one."""

    @classmethod
    def given(cls, given: Mapping[str, Any]) -> HookOptions:
        """As the launcher gives them."""
        return cls(
            agent=str(given["agent"]),
            project=str(given["project"]),
            store=str(given["store"]) or None,
            patience=timedelta(seconds=float(given["patience"])),
            server=str(given["server"]),
            token_file=str(given["token-file"]),
            caller=int(given["caller"]),
        )


def answer_hook(text: bytes, options: HookOptions, environment: Mapping[str, str] | None = None) -> HookReply:
    """What a hook has to print for an event. Raises where that cannot be said, and then the call must not run."""
    desk = HookDesk()
    try:
        question = desk.read(text, options, os.environ if environment is None else environment)
        if question is None:
            return HookReply()
        if (reply := question.at_once()) is not None:
            return reply
        import asyncio  # takes as long as all that comes before, and a call that policy decides has no use for it

        return asyncio.run(question.answer())
    finally:
        desk.close()


@dataclass(frozen=True, slots=True)
class HookQuestion:
    """An event that has to be answered, and the gate that can."""

    host: HookHost
    event: HookEvent
    call: OutsideCall
    gate: OutsideGate
    patience: timedelta
    server: ServerGate | None = None

    def at_once(self) -> HookReply | None:
        """The answer, where nothing has to be waited for; None where `answer` has to be asked."""
        store = self.gate.broker.store
        if not (isinstance(store, DurableStore) and store.reads_in_place):
            return None
        if self.event.moment is HookMoment.AFTER:
            if self.server is not None:
                return None if self.gate.asks(self.call) else HookReply()
            return HookReply() if _result(self.gate.running(self.call)) is None else None
        permission = _result(self.gate.at_once(self.call))
        return self.host.reply(self.event, permission) if permission is not None else None

    async def answer(self) -> HookReply:
        """The answer, once there is one."""
        until = self.gate.broker.clock.now() + self.patience
        if self.server is not None:
            if self.event.moment is HookMoment.AFTER:
                await self.server.report(self.call, error=self.event.error)
                return HookReply()
            return self.host.reply(self.event, await self.server.decide(self.call, until=until))
        if self.event.moment is HookMoment.AFTER:
            await self.gate.report(self.call, error=self.event.error, preview=self.event.preview)
            return HookReply()
        return self.host.reply(self.event, await self.gate.decide(self.call, until=until))


class HookDesk:
    """Answers hooks, and keeps what it has read and opened for the next one."""

    def __init__(self) -> None:
        self._desk = OutsideDesk()

    async def answer(self, text: bytes, options: HookOptions, environment: Mapping[str, str]) -> HookReply:
        """As `answer_hook`."""
        question = self.read(text, options, environment)
        return await question.answer() if question is not None else HookReply()

    def read(self, text: bytes, options: HookOptions, environment: Mapping[str, str]) -> HookQuestion | None:
        """What is to be answered; None where the agent goes on as ever. Raises as `answer_hook`."""
        host = HOSTS.get(options.agent)
        if host is None:
            raise WrongUse(f"no hook for {options.agent!r}; there are: {', '.join(HOSTS)}")
        told = read_object(text, what="the event", most=LARGEST_EVENT)
        event = host.read(told)
        if event.moment is HookMoment.BEFORE and len(text) > MOST_BYTES:
            raise ValueError(f"the call is larger than {MOST_BYTES} bytes")
        if event.call is None:
            if event.moment is HookMoment.OTHER and "tool_name" in told:
                raise ValueError(f"{host.title} sent the event {event.name!r}, which this version does not know")
            return None  # what the agent asks its user by itself, it asks as ever
        gate = self._desk.gate(
            project_of(options, environment, event.call),
            options.store,
            caller=options.caller or os.getpid(),
            takes_edits=host.takes_edits,
            chosen=bool(options.project),
        )
        return HookQuestion(host, event, event.call, gate, options.patience, _server(options, gate))

    def close(self) -> None:
        """Write down what is left, and let go of the stores."""
        self._desk.close()


def project_of(options: HookOptions, environment: Mapping[str, str], call: OutsideCall) -> str:
    """The directory whose policy counts."""
    named = environment.get(PROJECT_VARIABLES.get(options.agent, ""), "")
    found = options.project or named or call.directory
    if not os.path.isabs(found) or not os.path.isdir(found):
        raise WrongUse(f"the project directory {found!r} does not exist")
    return found


def _server(options: HookOptions, gate: OutsideGate) -> ServerGate | None:
    """The server that is asked instead of the store, where the hook was installed so."""
    if not options.server:
        return None
    from signoff.outside.aap_client import AapClient, read_token
    from signoff.outside.server_gate import ServerGate

    client = AapClient(options.server, read_token(options.token_file))
    return ServerGate(gate, client, window=max(1, int(options.patience.total_seconds())))


def _result(work: Coroutine[Any, Any, T]) -> T:
    """What comes of something that waits for nothing, without an event loop."""
    try:
        work.send(None)
    except StopIteration as done:
        return done.value
    work.close()
    raise RuntimeError("a store that reads in place waits for something")
