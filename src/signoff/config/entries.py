"""Toolsets and workers as files describe them: values with their positions. Nothing is built here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Literal

from signoff.policy.engine import Policy
from signoff.policy.placed_value import ConfigValue

EVERY_WORKER = "*"
"""In `delegates`: every worker of the project."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolsetEntry:
    """One toolset of the catalog, with `extends` and the project's defaults already merged in."""

    name: str
    use: str
    """An alias (a built-in, an entry point, `mcp`, `native`), or `package.module:Class`."""
    config: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """As written: variables are replaced when the toolset is built."""
    policy: Policy | None = None
    """Its rules, named after it; None if it has none of its own."""
    labels: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, "tuple[str, ...]"])
    """Capability labels by tool name or glob, if the toolset declares none."""
    prefix: str = ""
    """Prefix of the names of its tools, as in `orders_query`, if two toolsets of a worker share a name."""
    spot: ConfigValue
    """The position of the entry."""
    config_spots: Mapping[str, ConfigValue] = field(default_factory=dict[str, ConfigValue])
    """The position of each key of `config`, by its path (`pool.size`): with `extends`, in another entry."""
    policy_spot: ConfigValue | None = None
    """The position of its rules: a list with one item per rule."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The limits of one run of a worker, including everything it delegates. None: no limit."""

    requests: int | None = None
    tokens: int | None = None
    cost: float | None = None
    """In US dollars, by published prices."""
    time: timedelta | None = None
    """Wall time while it works; waiting for people does not count."""
    depth: int | None = None
    """How many levels deep it may delegate; 0: not at all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerFile:
    """An agent described in a file, with `extends` and the project's defaults already merged in."""

    name: str
    file: str
    description: str = ""
    spec: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """The keys of PydanticAI's own agent spec: model, instructions, model_settings, capabilities …, as written."""
    toolsets: tuple[str, ...] = ()
    """Names from the catalog."""
    delegates: tuple[str, ...] = ()
    """Workers that it may call, by name, or `*`."""
    creates: bool = False
    """Whether it may create new workers (`worker_create`)."""
    policy: Policy | None = None
    """Its own rules; they can only tighten what the project says."""
    approvers: tuple[str, ...] = ()
    """Somebody with one of these roles must answer its requests; empty: the people that the rules name."""
    on_denied: Literal["tell", "raise", ""] = ""
    """Whether a denial is told to its model, or raised; empty: as the project says."""
    limits: Limits = Limits()
    input: Mapping[str, Any] | None = None
    """JSON schema of its input (`--input-json`); its fields replace `{{field}}` in the instructions."""
    output: Mapping[str, Any] | None = None
    """JSON schema of its output; None: text."""
    attachments: tuple[str, ...] = ()
    """Files that are attached to every prompt, relative to the worker's file."""
    spot: ConfigValue
    spots: Mapping[str, ConfigValue] = field(default_factory=dict[str, ConfigValue])
    """The position of each key, each item of a list of names (`toolsets[0]`) and each limit (`limits.time`).

    For errors that are found when it is built.
    """
    policy_spots: tuple[ConfigValue, ...] = ()
    """The position of each rule of `policy`, in the same order."""
