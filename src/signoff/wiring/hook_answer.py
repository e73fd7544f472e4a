"""Answers a coding agent's hook: reads the event, judges it by the project's policy, asks people, and tells the agent.

Whatever goes wrong raises; `signoff.wiring.hook_launcher` turns that into a refusal.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from signoff.errors import WrongUse
from signoff.outside.hook_event import HookEvent, HookHost, HookMoment, HookReply
from signoff.outside.hook_hosts import HOSTS
from signoff.outside.outside_call import OutsideCall
from signoff.outside.outside_gate import OutsideGate
from signoff.outside.strict_json import MOST_BYTES, read_object
from signoff.wiring.outside_desk import OutsideDesk

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
        self._desk = OutsideDesk()

    async def answer(self, text: bytes, options: HookOptions, environment: Mapping[str, str]) -> HookReply:
        """As `answer_hook`."""
        host = HOSTS.get(options.agent)
        if host is None:
            raise WrongUse(f"no hook for {options.agent!r}; there are: {', '.join(HOSTS)}")
        told = read_object(text, what="the event", most=LARGEST_EVENT)
        event = host.read(told)
        if event.moment is HookMoment.BEFORE and len(text) > MOST_BYTES:
            raise ValueError(f"the call is larger than {MOST_BYTES} bytes")
        if event.call is None:
            if event.moment is HookMoment.OTHER and "tool_name" in told:
                raise ValueError(f"{host.title} calls with the event {event.name!r}, which this version does not know")
            return HookReply()  # what the agent asks its user by itself, it asks as ever
        gate = self._desk.gate(
            project_of(options, environment, event.call),
            options.store,
            caller=options.caller or os.getpid(),
            takes_edits=host.takes_edits,
            chosen=bool(options.project),
        )
        return await _answered(host, event, event.call, gate, options)

    def close(self) -> None:
        """Write down what is left, and let go of the stores."""
        self._desk.close()


def project_of(options: HookOptions, environment: Mapping[str, str], call: OutsideCall) -> str:
    """The directory whose policy counts."""
    named = environment.get(PROJECT_VARIABLES.get(options.agent, ""), "")
    found = options.project or named or call.directory
    if not os.path.isabs(found) or not os.path.isdir(found):
        raise WrongUse(f"the project directory {found!r} is not there")
    return found


async def _answered(
    host: HookHost, event: HookEvent, call: OutsideCall, gate: OutsideGate, options: HookOptions
) -> HookReply:
    match event.moment:
        case HookMoment.AFTER:
            await gate.report(call, error=event.error, preview=event.preview)
            return HookReply()
        case _:
            until = gate.broker.clock.now() + options.patience
            return host.reply(event, await gate.decide(call, until=until))
