"""Hook events of coding agents and the replies to them, in one form for all agents."""

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
    """When the agent runs the hook."""

    BEFORE = "before"
    """A tool is about to run."""
    AFTER = "after"
    """A tool has run."""
    PROMPT = "prompt"
    """The agent itself is about to ask its user."""
    OTHER = "other"
    """Any other event. It is ignored here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HookEvent:
    """One run of a hook."""

    moment: HookMoment
    name: str
    """The event's name, as the agent calls it."""
    call: OutsideCall | None = None
    error: str | None = None
    """The error of the tool, after it ran."""
    preview: str = ""
    """The beginning of the tool's result, after it ran."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HookReply:
    """What a hook prints, and its exit code."""

    out: str = ""
    err: str = ""
    code: int = 0


class HookHost(Protocol):
    """A coding agent that runs hooks."""

    name: str
    """Its name in commands."""
    title: str
    """Its name in texts."""
    takes_edits: bool
    """Whether it can run a call with other arguments than its model chose."""

    def read(self, event: Mapping[str, Any]) -> HookEvent:
        """Read an event. Raises `ValueError` for anything that the agent never sends."""
        ...

    def reply(self, event: HookEvent, permission: CallPermission) -> HookReply:
        """Return the reply that tells the agent whether a call may run."""
        ...


@dataclass(frozen=True, slots=True)
class Fields:
    """Reads the fields of an event and checks their types. Raises `ValueError`."""

    event: Mapping[str, Any]
    what: str = "the event"

    def text(self, name: str, default: str | None = None) -> str:
        value = self.event.get(name, default)
        if not isinstance(value, str):
            raise ValueError(f"{self.what} should have a text {json.dumps(name)}, not {_kind(value)}")
        return value

    def directory(self) -> str:
        """Return the directory of the call, with symlinks resolved."""
        found = self.text("cwd")
        return os.path.realpath(found) if os.path.isabs(found) else found

    def mapping(self, name: str) -> dict[str, Any]:
        value = self.event.get(name)
        if not isinstance(value, dict):
            raise ValueError(f"{self.what} should have an object {json.dumps(name)}, not {_kind(value)}")
        return dict(value)  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]


Reads = Callable[[str, str], ReadsArguments]
"""Given a tool and a directory, returns what reads paths and commands out of the arguments of its calls."""


def read_event(
    agent: str,
    event: Mapping[str, Any],
    moments: Mapping[str, HookMoment],
    labels: Mapping[str, frozenset[str]],
    reads: Reads,
) -> HookEvent:
    """Read an event in the form that the agents share. Raises `ValueError` for anything that they never send."""
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
    """Return one sentence for the model: who decided, and why."""
    if permission.allowed:
        return f"signoff: {permission.reason}" if permission.reason else "signoff: allowed"
    about = f" (request {permission.request})" if permission.request else ""
    return f"signoff: refused by {permission.by}: {permission.reason}{about}. Do not try to get around it."


def beginning(value: object, longest: int = 20_000) -> str:
    """Return the beginning of a tool's result, long enough for the record to find and mask secrets in what it keeps."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return text[:longest]
