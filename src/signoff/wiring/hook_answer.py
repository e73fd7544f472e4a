"""Answer a coding agent's hook: read the event, apply the project's policy, ask people, and reply to the agent.

Errors are raised; `signoff.wiring.hook_launcher` turns them into a refusal.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypeVar

from signoff.core.strict_json import MOST_BYTES, read_object
from signoff.errors import WrongUse
from signoff.outside.coding_agents import AGENTS, CodingAgent, HookEvent, HookMoment, HookReply
from signoff.outside.git_repositories import looked_around
from signoff.outside.outside_call import OutsideCall
from signoff.outside.outside_gate import OutsideGate
from signoff.store.durable_store import DurableStore
from signoff.store.place import state_root
from signoff.wiring.outside_desk import OutsideDesk

if TYPE_CHECKING:
    from signoff.outside.server_gate import ServerGate

T = TypeVar("T")

LARGEST_EVENT = 16 * MOST_BYTES
"""Maximum size of an event, which may hold a long tool result. A call to be decided has a lower limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HookOptions:
    """How a hook was installed, and which process runs it."""

    agent: str
    project: str = ""
    """The project's directory, if the hook was installed for one."""
    store: str | None = None
    patience: timedelta = timedelta(hours=1)
    """Timeout for an answer. It has to be shorter than the agent's timeout for its hook."""
    server: str = ""
    """The URL of a server whose people are asked instead of those of the store."""
    token_file: str = ""
    """The file with the credential for that server."""
    caller: int = 0
    """The process that was started as the hook; 0: this one."""

    @classmethod
    def given(cls, given: Mapping[str, Any]) -> HookOptions:
        """Convert the options that the launcher passes."""
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
    """Return what a hook has to print for an event. If it raises, the call must not run."""
    desk = HookDesk()
    try:
        question = desk.read(text, options, os.environ if environment is None else environment)
        if question is None:
            return HookReply()
        if (reply := question.at_once()) is not None:
            return reply
        import asyncio  # a slow import, as long as all before it, which calls decided by policy do not need

        return asyncio.run(question.answer())
    except Exception as error:
        return _after_the_call(text, options, error)
    finally:
        desk.close()


@dataclass(frozen=True, slots=True)
class HookQuestion:
    """An event that has to be answered, and the gate that decides."""

    host: CodingAgent
    event: HookEvent
    call: OutsideCall
    gate: OutsideGate
    patience: timedelta
    server: ServerGate | None = None

    def at_once(self) -> HookReply | None:
        """Return the answer if nothing has to be waited for; None if `answer` must be called."""
        store = self.gate.broker.store
        if not (isinstance(store, DurableStore) and store.reads_in_place):
            return None
        if self.event.moment is HookMoment.AFTER:
            if self.server is not None:
                return None if self.server.has_run(self.call) else HookReply()
            return HookReply() if _result(self.gate.running(self.call)) is None else None
        permission = _result(self.gate.at_once(self.call))
        return self.host.reply(self.event, permission) if permission is not None else None

    async def answer(self) -> HookReply:
        """Wait for the answer and return it."""
        if self.server is not None:
            if self.event.moment is HookMoment.AFTER:
                await self.server.report(self.call, error=self.event.error)
                return HookReply()
            return self.host.reply(self.event, await self.server.decide(self.call))
        if self.event.moment is HookMoment.AFTER:
            await self.gate.report(self.call, error=self.event.error, preview=self.event.preview)
            return HookReply()
        until = self.gate.broker.clock.now() + self.patience
        return self.host.reply(self.event, await self.gate.decide(self.call, until=until))


class HookDesk:
    """Answers hooks, and caches settings and open stores for the next one."""

    def __init__(self) -> None:
        self._desk = OutsideDesk()

    async def answer(self, text: bytes, options: HookOptions, environment: Mapping[str, str]) -> HookReply:
        """See `answer_hook`."""
        import asyncio  # as above

        try:
            # In a thread: it reads files, git's among them, while other hooks wait for their answers.
            question = await asyncio.to_thread(self.read, text, options, environment)
            return await question.answer() if question is not None else HookReply()
        except Exception as error:
            return _after_the_call(text, options, error)

    def read(self, text: bytes, options: HookOptions, environment: Mapping[str, str]) -> HookQuestion | None:
        """Return the event to answer; None if the agent continues as usual. Raises like `answer_hook`."""
        host = AGENTS.get(options.agent)
        if host is None:
            raise WrongUse(f"no hook for {options.agent!r}; there are: {', '.join(AGENTS)}")
        told = read_object(text, what="the event", most=LARGEST_EVENT)
        event = host.read(told)
        if event.moment is not HookMoment.AFTER and len(text) > MOST_BYTES:
            raise ValueError(f"the call is larger than {MOST_BYTES} bytes")
        if event.call is None:
            if "tool_name" in told:
                raise ValueError(f"{host.title} sent the event {event.name!r}, which this version does not know")
            return None
        project = project_of(options, environment, host.variable, event.call)

        def gate() -> OutsideGate:
            return self._desk.gate(
                project,
                options.store,
                caller=options.caller or os.getpid(),
                takes_edits=host.takes_edits,
                chosen=bool(options.project),
            )

        made = gate()
        call = looked_around(event.call, made.root) if event.moment is not HookMoment.AFTER else event.call
        return HookQuestion(host, event, call, made, options.patience, _server(options, gate))

    def close(self) -> None:
        """Write what is pending, and close the stores."""
        self._desk.close()


def project_of(options: HookOptions, environment: Mapping[str, str], variable: str, call: OutsideCall) -> str:
    """Return the directory of the project whose policy applies. The agent may name it in an environment variable."""
    named = environment.get(variable, "")
    found = options.project or named or call.directory
    if not os.path.isabs(found) or not os.path.isdir(found):
        raise WrongUse(f"the project directory {found!r} does not exist")
    return found


def _server(options: HookOptions, gate: Callable[[], OutsideGate]) -> ServerGate | None:
    """Return the gate of the server that is asked instead of the store, if the hook was installed with one."""
    if not options.server:
        return None
    from signoff.outside.aap_client import AapClient, read_token
    from signoff.outside.consumed_calls import ConsumedCalls
    from signoff.outside.server_gate import ServerGate

    client, root = AapClient(options.server, read_token(options.token_file)), state_root()
    consumed = ConsumedCalls(str(root / "hook-calls") if root is not None else "", client.url)
    return ServerGate(gate, client, consumed, options.patience)


def _after_the_call(text: bytes, options: HookOptions, error: Exception) -> HookReply:
    """Report an error after a call has run, which cannot be refused any more. Before a call, raise it."""
    host = AGENTS.get(options.agent)
    try:
        event = host.read(read_object(text, what="the event", most=LARGEST_EVENT)) if host is not None else None
    except ValueError:
        event = None
    if event is None or event.moment is not HookMoment.AFTER:
        raise error
    return HookReply(err=f"signoff: the call ran, but its outcome could not be recorded: {error}\n")


def _result(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine that never suspends, without an event loop, and return its result."""
    try:
        work.send(None)
    except StopIteration as done:
        return done.value
    work.close()
    raise RuntimeError("a store that reads in place waits for something")
