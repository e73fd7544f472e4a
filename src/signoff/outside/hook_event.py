"""What a coding agent tells its hooks, and what it is told: the same for all agents, each in its own dialect."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol

from signoff.outside.outside_call import OutsideCall, ReadsArguments
from signoff.outside.outside_gate import CallPermission


class HookMoment(StrEnum):
    """When the agent calls."""

    BEFORE = "before"
    """A tool is about to run."""
    AFTER = "after"
    """A tool has run."""
    PROMPT = "prompt"
    """The agent itself is about to ask its user."""
    OTHER = "other"
    """Something that is nobody's business here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HookEvent:
    """One call of a hook."""

    moment: HookMoment
    name: str
    """The event, in the agent's own word."""
    call: OutsideCall | None = None
    error: str | None = None
    """What the tool failed with, after it ran."""
    preview: str = ""
    """The beginning of what it gave, after it ran."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HookReply:
    """What a hook prints, and how it ends."""

    out: str = ""
    err: str = ""
    code: int = 0


class HookHost(Protocol):
    """A coding agent that runs hooks."""

    name: str
    """In commands."""
    title: str
    """In sentences."""
    takes_edits: bool
    """Whether it can run a call with other arguments than its model chose."""

    def read(self, event: Mapping[str, Any]) -> HookEvent:
        """What it tells. Raises `ValueError` for what it never says."""
        ...

    def reply(self, event: HookEvent, permission: CallPermission) -> HookReply:
        """How it is told whether a call may run."""
        ...


@dataclass(frozen=True, slots=True)
class Fields:
    """The fields of an event, each of the kind that it has to be."""

    event: Mapping[str, Any]
    what: str = "the event"

    def text(self, name: str, default: str | None = None) -> str:
        value = self.event.get(name, default)
        if not isinstance(value, str):
            raise ValueError(f"{self.what} should have a text {json.dumps(name)}, not {_kind(value)}")
        return value

    def directory(self) -> str:
        """Where the call is made, with links followed."""
        found = self.text("cwd")
        return os.path.realpath(found) if os.path.isabs(found) else found

    def mapping(self, name: str) -> dict[str, Any]:
        value = self.event.get(name)
        if not isinstance(value, dict):
            raise ValueError(f"{self.what} should have an object {json.dumps(name)}, not {_kind(value)}")
        return dict(value)  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]


Reads = Callable[[str, str], ReadsArguments]
"""By tool and directory: what is read out of the arguments of its calls."""


def read_event(
    agent: str,
    event: Mapping[str, Any],
    moments: Mapping[str, HookMoment],
    labels: Mapping[str, frozenset[str]],
    reads: Reads,
) -> HookEvent:
    """An event, as the agents tell it in much the same words. Raises `ValueError` for what they never say."""
    fields = Fields(event)
    name = fields.text("hook_event_name")
    moment = moments.get(name, HookMoment.OTHER)
    if moment not in (HookMoment.BEFORE, HookMoment.AFTER):
        return HookEvent(moment=moment, name=name)
    tool, where = fields.text("tool_name"), fields.directory()
    inner = fields.text("agent_type", "") or fields.text("agent_id", "")
    call = OutsideCall(
        agents=(agent, inner) if inner else (agent,),
        session=f"{agent}:{fields.text('session_id')}",
        call_id=fields.text("tool_use_id"),
        tool=tool,
        args=fields.mapping("tool_input"),
        directory=where,
        labels=labels.get(tool, frozenset()),
        reads=reads(tool, where),
    )
    error = beginning(event.get("error", "it failed")) if name.endswith("Failure") else None
    return HookEvent(
        moment=moment, name=name, call=call, error=error, preview=beginning(event.get("tool_response", ""))
    )


def _kind(value: object) -> str:
    return "nothing" if value is None else type(value).__name__


def said(permission: CallPermission) -> str:
    """One sentence for the model: who decided, and why."""
    if permission.allowed:
        return f"signoff: {permission.reason}" if permission.reason else "signoff: allowed"
    about = f" (request {permission.request})" if permission.request else ""
    return f"signoff: refused by {permission.by}: {permission.reason}{about}. Do not try to get around it."


def beginning(value: object, longest: int = 20_000) -> str:
    """The beginning of what a tool gave: long enough that the record finds a secret in what it keeps of it."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return text[:longest]
