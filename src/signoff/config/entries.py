"""Toolsets and workers as files describe them: values, with the places they stand at. Nothing is built here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from signoff.policy.engine import Policy
from signoff.policy.placed_value import ConfigValue

EVERY_WORKER = "*"
"""In `delegates`: every worker of the project."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolsetEntry:
    """One name of the catalog, with `extends` and the project's defaults already merged in."""

    name: str
    use: str
    """An alias (a built-in, an entry point, `mcp`, `native`), or `package.module:Class`."""
    config: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """As written: variables are filled in when the toolset is built."""
    policy: Policy | None = None
    """Its rules, named after it; None where it has none of its own."""
    labels: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, "tuple[str, ...]"])
    """Capability labels by tool name or glob, where the toolset declares none."""
    prefix: str = ""
    """Goes before the names of its tools, as in `orders_query`, where two toolsets of a worker share a name."""
    spot: ConfigValue
    """Where the entry stands."""
    config_spots: Mapping[str, ConfigValue] = field(default_factory=dict[str, ConfigValue])
    """Where each key of `config` stands, by its path (`pool.size`): with `extends`, in another entry."""
    policy_spot: ConfigValue | None = None
    """Where its rules stand: a list with one item per rule."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How far one run of a worker may go, everything it delegates counted in. None: no limit."""

    requests: int | None = None
    tokens: int | None = None
    cost: float | None = None
    """In US dollars, by published prices."""
    time: timedelta | None = None
    """Wall time while it works; waiting for people does not count."""
    depth: int | None = None
    """How many workers deep it may delegate; 0: not at all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerFile:
    """An agent described in a file, with `extends` and the project's defaults already merged in."""

    name: str
    file: str
    description: str = ""
    spec: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """What PydanticAI's own agent spec knows: model, instructions, model_settings, capabilities …, as written."""
    toolsets: tuple[str, ...] = ()
    """Names from the catalog."""
    delegates: tuple[str, ...] = ()
    """Workers it may call by name, or `*`."""
    creates: bool = False
    """Whether it may write new workers (`worker_create`)."""
    policy: Policy | None = None
    """Its own rules; they can only tighten what the project says."""
    approvers: tuple[str, ...] = ()
    """Roles of which somebody has to answer whatever is asked about it; empty: whoever the rules name."""
    limits: Limits = Limits()
    input: Mapping[str, Any] | None = None
    """JSON schema of what it is given (`--input-json`); its fields fill `{{field}}` in the instructions."""
    output: Mapping[str, Any] | None = None
    """JSON schema of what it answers; None: text."""
    attachments: tuple[str, ...] = ()
    """Files that go with every prompt, relative to the worker's file."""
    spot: ConfigValue
    spots: Mapping[str, ConfigValue] = field(default_factory=dict[str, ConfigValue])
    """Where each key stands, each item of a list of names (`toolsets[0]`) and each limit (`limits.time`), for errors
    found when it is built."""
    policy_spots: tuple[ConfigValue, ...] = ()
    """Where each rule of `policy` stands, in the same order."""
