"""Answers a coding agent's hook: reads the event, judges it by the project's policy, asks people, and tells the agent.

Whatever goes wrong raises; `signoff.wiring.hook_launcher` turns that into a refusal.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from signoff.errors import WrongUse
from signoff.outside.agent_process import agent_process
from signoff.outside.hook_event import HookEvent, HookHost, HookMoment, HookReply
from signoff.outside.hook_hosts import HOSTS
from signoff.outside.outside_call import OutsideCall
from signoff.outside.outside_gate import CallPermission, OutsideGate
from signoff.outside.strict_json import read_object
from signoff.policy.layers import Layers
from signoff.wiring.project import requester_of, roles_of, settings_for
from signoff.wiring.stores import chosen_store

if TYPE_CHECKING:
    from signoff.broker import Broker
    from signoff.config import Settings

PROJECT_VARIABLES = ("CLAUDE_PROJECT_DIR", "GEMINI_PROJECT_DIR")
"""Where agents say which project they work in. Not the directory a call is made in: the agent moves that itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HookOptions:
    """How a hook was installed, and who calls it."""

    agent: str
    project: str = ""
    """The project's directory, where the hook was installed for one."""
    store: str | None = None
    patience: timedelta = timedelta(hours=1)
    """How long a person is waited for. It has to be shorter than the agent waits for its hook."""
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
            caller=int(given["caller"]),
        )


async def answer_hook(text: bytes, options: HookOptions, environment: Mapping[str, str] | None = None) -> HookReply:
    """What a hook has to print for an event. Raises where that cannot be said, and then the call must not run."""
    desk = HookDesk()
    try:
        return await desk.answer(text, options, os.environ if environment is None else environment)
    finally:
        desk.close()


class HookDesk:
    """Answers hooks, and keeps what it has read and opened for the next one."""

    def __init__(self) -> None:
        self._settings: dict[str, tuple[tuple[object, ...], Settings]] = {}
        """By directory: what the files said, and how they were then."""
        self._kept: list[Settings] = []
        """Whatever a broker was made for, so that no other has its number."""
        self._brokers: dict[tuple[str, int], Broker] = {}
        """By the address of the store, and what the files said: people who wait go on with what it was then."""

    async def answer(self, text: bytes, options: HookOptions, environment: Mapping[str, str]) -> HookReply:
        """As `answer_hook`."""
        host = HOSTS.get(options.agent)
        if host is None:
            raise WrongUse(f"no hook for {options.agent!r}; there are: {', '.join(HOSTS)}")
        told = read_object(text, what="the event")
        event = host.read(told)
        if event.call is None:
            if "tool_name" in told:
                raise ValueError(f"{host.title} calls with the event {event.name!r}, which this version does not know")
            return HookReply()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what is said about stores would be taken for the answer
            settings = self._settings_of(project_of(options, environment, event.call))
            broker = self._broker(options.store, settings)
        return await _answered(host, event, event.call, settings, broker, options)

    def close(self) -> None:
        """Write down what is left, and let go of the stores."""
        for broker in self._brokers.values():
            broker.watch.close()
            broker.store.close()
        self._brokers.clear()

    def _settings_of(self, directory: str) -> Settings:
        from signoff.config.files import find_project, user_file

        stamps = tuple(_stamp(file) for file in (find_project(directory), user_file()))
        known = self._settings.get(directory)
        if known is None or known[0] != stamps:
            known = self._settings[directory] = (stamps, settings_for(None, directory=directory))
        return known[1]

    def _broker(self, store: str | None, settings: Settings) -> Broker:
        from signoff.broker import Broker
        from signoff.store.signing_key import Keys

        chosen = chosen_store(store, settings)
        key = (chosen.address, id(settings))
        broker = self._brokers.get(key)
        if broker is None:
            self._kept.append(settings)
            broker = self._brokers[key] = Broker(chosen.open(), people=roles_of(settings), signer=Keys())
        return broker


def project_of(options: HookOptions, environment: Mapping[str, str], call: OutsideCall) -> str:
    """The directory whose policy counts."""
    found = options.project or next(filter(None, map(environment.get, PROJECT_VARIABLES)), "") or call.directory
    if not os.path.isabs(found) or not os.path.isdir(found):
        raise WrongUse(f"the project directory {found!r} is not there")
    return found


async def _answered(
    host: HookHost, event: HookEvent, call: OutsideCall, settings: Settings, broker: Broker, options: HookOptions
) -> HookReply:
    now = broker.clock.now()
    gate = OutsideGate(
        broker=broker,
        policy=Layers(settings.layers),
        holder=agent_process(options.caller or os.getpid(), now),
        requester=requester_of(None, settings),
        takes_edits=host.takes_edits,
    )
    match event.moment:
        case HookMoment.AFTER:
            await gate.report(call, error=event.error, preview=event.preview)
            return HookReply()
        case HookMoment.PROMPT:
            if not await gate.has_let_through(call):
                return HookReply()  # then the agent asks its own user, as it would have done
            return host.reply(event, CallPermission(allowed=True, args=call.args, reason="let through before"))
        case _:
            return host.reply(event, await gate.decide(call, until=now + options.patience))


def _stamp(file: str | None) -> tuple[object, ...]:
    """What tells one state of a file from another."""
    if file is None:
        return ()
    try:
        found = os.stat(file)
    except OSError:
        return (file,)
    return file, found.st_mtime_ns, found.st_size, found.st_ino, found.st_uid
