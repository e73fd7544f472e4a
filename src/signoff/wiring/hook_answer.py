"""Answer a coding agent's hook: read the event, apply the project's policy, ask people, and reply to the agent.

Errors are raised; `signoff.wiring.hook_launcher` turns them into a refusal.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from signoff.broker import new_id
from signoff.broker.deadlines import GONE
from signoff.core.strict_json import MOST_BYTES, read_object, why_too_large
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
Gone: TypeAlias = Callable[[], Coroutine[Any, Any, object]]
"""Waits until the agent no longer waits for the answer."""

LOOKS_EVERY = 0.5
"""How often, in seconds, a process that answers its own hook looks whether the agent still waits for it."""
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
    attempt: str = ""
    """A random id of that process; empty: it cannot be recognised if it asks twice."""

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
            attempt=str(given["attempt"]),
        )


def answer_hook(
    text: bytes,
    options: HookOptions,
    environment: Mapping[str, str] | None = None,
    *,
    client: Callable[[], None] | None = None,
) -> HookReply:
    """Return what a hook has to print for an event. If it raises, the call must not run.

    `client` raises once the agent no longer waits for the answer.
    """
    desk = HookDesk()
    try:
        question = desk.read(text, options, os.environ if environment is None else environment)
        if question is None:
            return HookReply()
        if (reply := question.at_once()) is not None:
            return reply
        import asyncio  # a slow import, as long as all before it, which calls decided by policy do not need

        return asyncio.run(question.answer(partial(_left, client) if client is not None else None))
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

    async def answer(self, gone: Gone | None = None) -> HookReply:
        """Wait for the answer and return it.

        When `gone` ends first, nobody waits for it any more: the request is withdrawn, and this raises. The outcome of
        a call is recorded nevertheless.
        """
        import asyncio

        answer = asyncio.ensure_future(self._answer())
        left = asyncio.ensure_future(gone()) if gone is not None else None
        try:
            if left is not None and self.event.moment is not HookMoment.AFTER:
                await asyncio.wait((answer, left), return_when=asyncio.FIRST_COMPLETED)
                if not answer.done():
                    left.result()
                    raise WrongUse(GONE)
            return await asyncio.shield(answer)
        finally:
            answer.cancel()
            await asyncio.wait((answer,))
            if left is not None:
                left.cancel()

    async def undelivered(self) -> None:
        """Take back the permission for a call that was not told: the call does not run."""
        if self.server is not None:
            await self.server.undelivered(self.call)
            return
        request = await self.gate.broker.about(self.call.key)
        if request is not None:
            self.gate.broker.abandon(request.id, self.call.token, GONE)

    async def _answer(self) -> HookReply:
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

    async def answer(
        self,
        text: bytes,
        options: HookOptions,
        environment: Mapping[str, str],
        gone: Gone | None = None,
    ) -> HookReply:
        """See `answer_hook`. `gone` ends once nobody waits for the answer any more."""
        import asyncio  # as above

        try:
            # In a thread: it reads files, git's among them, while other hooks wait for their answers.
            question = await asyncio.to_thread(self.read, text, options, environment)
            return await question.answer(gone) if question is not None else HookReply()
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
        if event.moment is not HookMoment.AFTER and (why := why_too_large(event.call.args)):
            raise ValueError(f"the call has {why}")
        project = project_of(options, environment, host.variable, event.call)

        def gate() -> OutsideGate:
            return self._desk.gate(
                project,
                options.store,
                caller=options.caller or os.getpid(),
                takes_edits=host.takes_edits,
                tells_outcomes=host.tells_outcomes,
                chosen=bool(options.project),
            )

        made = gate()
        call = replace(event.call, attempt=options.attempt)
        if event.moment is not HookMoment.AFTER:
            call = looked_around(replace(call, call_id=call.call_id or options.attempt or new_id()), made.root)
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


def undelivered(text: bytes, options: HookOptions) -> None:
    """Take back the permission that a hook could not tell its agent, so that it is no call with an unknown outcome."""
    import asyncio

    desk = HookDesk()
    try:
        question = desk.read(text, options, os.environ)
        if question is not None and question.event.moment is not HookMoment.AFTER:
            asyncio.run(question.undelivered())
    finally:
        desk.close()


async def _left(check: Callable[[], None]) -> None:
    """Raise what `check` raises, once it does."""
    import asyncio

    while True:
        check()
        await asyncio.sleep(LOOKS_EVERY)


def _result(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine that never suspends, without an event loop, and return its result."""
    try:
        work.send(None)
    except StopIteration as done:
        return done.value
    work.close()
    raise RuntimeError("a store that reads in place waits for something")
