"""From a PydanticAI tool call to a `Call`: JSON arguments, labels, the toolset's own words, the call's key."""

from __future__ import annotations

import hmac
import json
import math
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import partial
from types import MappingProxyType
from typing import Any, TypeAlias, cast

from pydantic import SecretBytes, SecretStr
from pydantic_ai import RunContext
from pydantic_ai.messages import ModelMessage, ModelResponse, ToolCallPart
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.toolsets import ToolsetTool
from pydantic_core import PydanticSerializationError, to_jsonable_python

from signoff.core.call import Call, Veiled
from signoff.core.canonical import digest
from signoff.gate.frames import current_frame
from signoff.links import followed
from signoff.wrapped import Step, steps_of

KIND = "signoff.kind"
"""Metadata key that keeps the kind a tool had before the gate folded it into the one path."""


class Owner:
    """The toolset a tool comes from, below all wrappers, and everything that is declared on the way down to it."""

    def __init__(self, steps: Sequence[Step], toolset_id: str | None, own: ToolDefinition) -> None:
        """`steps` are the toolsets from the outermost wrapper to the innermost, each with the tool's name there."""
        toolset, self.name = steps[-1]
        named = next((name for one, _ in steps if isinstance(name := getattr(one, "catalog_name", None), str)), None)
        self.toolset_name = named or _shown(toolset_id or toolset.id)
        declared = (own.metadata or {}).get("labels") or ()
        self.labels = frozenset([declared] if isinstance(declared, str) else declared)
        """Of the tool itself, as its toolset defines it: what other capabilities put on top is not believed."""
        self.policies = frozenset(id(one) for toolset, _ in steps for one in _attached(toolset))
        starts = (start for one, _ in steps if isinstance(start := getattr(one, "starts_from", None), str))
        self.start = next(starts, "")
        self.needs_approval = _hooks(steps, "needs_approval")
        self.describe_approval = _hooks(steps, "describe_approval")
        self.capability_labels = _hooks(steps, "capability_labels")
        self.claimed_labels = _hooks(steps, "claimed_labels")


def _attached(toolset: object) -> Iterator[object]:
    """What a toolset judges its calls by, to tell which of them had a say."""
    if (own := getattr(toolset, "policy", None)) is not None:
        yield own
    yield from getattr(toolset, "policies", ())


Hook: TypeAlias = Callable[[Mapping[str, Any], RunContext[Any]], Any]
"""What a toolset declares about one of its tools, as in `ports.DeclaresApproval`."""


def _hooks(steps: Sequence[Step], name: str) -> tuple[Hook, ...]:
    """The optional methods of that name, outermost first."""
    found = ((getattr(toolset, name, None), tool) for toolset, tool in steps)
    return tuple(partial(method, tool) for method, tool in found if callable(method))


def owner_of(tool: ToolsetTool[Any]) -> Owner:
    """Look through wrappers, so that a renamed or prefixed toolset keeps what it declares."""
    own = tool
    while isinstance(below := getattr(own, "source_tool", None), ToolsetTool):
        own = cast("ToolsetTool[Any]", below)
    return Owner(steps_of(tool), tool.tool_def.toolset_id, own.tool_def)


_PROCESS_KEY = secrets.token_bytes(32)
NO_LABELS = frozenset[str]()
NOTHING_RESOLVED: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class CallReader:
    """Makes `Call`s. Holds what does not change from call to call."""

    labels: Mapping[str, Iterable[str]] = field(default_factory=dict[str, Iterable[str]])
    """Capability labels by tool name or glob, for tools that declare none themselves."""
    claims: Sequence[Mapping[str, Iterable[str]]] = ()
    """Labels that callers give to tools by name: inside their calls they can make policy stricter, no more."""
    paths_of: Callable[[Call], Iterable[str]] | None = None
    """Lists the paths in a call, where policy wants to know where they lead."""
    root: str = ""
    """The folder relative paths start from, as a real path."""
    several_roots: bool = False
    """Whether rules start from other folders too, so that a call has to say where its paths start from."""
    key: bytes = _PROCESS_KEY
    """Tells secrets apart without showing them; a store has one of its own, for all processes that share it."""

    def read(
        self, ctx: RunContext[Any], tool_def: ToolDefinition, args: Mapping[str, Any], owner: Owner | None
    ) -> Call:
        """The call as policy sees it."""
        frame = current_frame()
        worker = ctx.agent.name if ctx.agent is not None else None
        values, unreadable = as_json(args, self.key)
        call_id = ctx.tool_call_id or ""
        try:
            labels = NO_LABELS if self._has_no_labels(tool_def, owner) else self._labels(ctx, tool_def, values, owner)
            claimed = _declared(owner.claimed_labels, values, ctx) if owner and owner.claimed_labels else NO_LABELS
            if self.claims:
                claimed |= frozenset[str]().union(*(_by_name(given, tool_def.name) for given in self.claims))
        except Exception as error:  # doubt asks: a call whose labels are not known is never simply allowed
            labels, claimed, unreadable = NO_LABELS, NO_LABELS, (*unreadable, f"its capability labels: {error!r}")
        call = Call.made(
            {
                "tool": tool_def.name,
                "args": values,
                "toolset": owner.toolset_name if owner is not None else _shown(tool_def.toolset_id),
                "worker": (*frame.workers, worker) if worker else frame.workers,
                "labels": labels,
                "claimed": claimed,
                "deps": ctx.deps,
                "resolved": NOTHING_RESOLVED,
                "unreadable": unreadable,
                "call_id": call_id,
                "run_id": ctx.run_id or "",
                "conversation_id": ctx.conversation_id or "",
                "path": f"{frame.path}/{call_id}" if frame.path else call_id,
            }
        )
        if owner is not None and owner.start:
            call = call.changed(start=owner.start)
        if self.paths_of is None:
            return call
        if self.several_roots and not call.start:
            call = call.changed(also=self.root)
        leads = followed(call.start or self.root, self.paths_of(call))
        return call.changed(resolved=leads) if leads else call

    def follow_links(self, call: Call) -> Call:
        """The call with where every text in it leads that may be a path, for patterns that speak of folders."""
        texts = (value for value in call.args.values() if isinstance(value, str) and "/" in value)
        leads = followed(call.start or self.root, texts)
        return call.changed(resolved={**call.resolved, **leads})

    def _has_no_labels(self, tool_def: ToolDefinition, owner: Owner | None) -> bool:
        if owner is None:
            return not self.labels
        return not self.labels and not owner.labels and not owner.capability_labels

    def _labels(
        self, ctx: RunContext[Any], tool_def: ToolDefinition, args: Mapping[str, Any], owner: Owner | None
    ) -> frozenset[str]:
        labels: set[str] = set(owner.labels) if owner is not None else set()
        labels |= _by_name(self.labels, tool_def.name)
        if owner is not None:
            labels |= _declared(owner.capability_labels, args, ctx)
        return frozenset(labels)


def _by_name(labels: Mapping[str, Iterable[str]], tool: str) -> set[str]:
    return {label for pattern, given in labels.items() if fnmatchcase(tool, pattern) for label in given}


def _declared(hooks: Sequence[Hook], args: Mapping[str, Any], ctx: RunContext[Any]) -> frozenset[str]:
    """All labels that a toolset and its wrappers declare for a call."""
    return frozenset[str]().union(*(hook(args, ctx) for hook in hooks))


def as_json(args: Mapping[str, Any], key: bytes = _PROCESS_KEY) -> tuple[Mapping[str, Any], tuple[str, ...]]:
    """The arguments as JSON values, and the names of those that have no JSON form."""
    if _is_json(args):
        return args, ()
    values: dict[str, Any] = {}
    unreadable: list[str] = []
    for name, value in args.items():
        values[name], kinds = _json_value(value, key)
        unreadable.extend(f"{name}: {kind}" for kind in kinds)
    return values, tuple(unreadable)


def _json_value(value: object, key: bytes) -> tuple[Any, list[str]]:
    """A JSON value, and the types in it that have none and are named instead."""
    found: list[str] = []
    if isinstance(value, SecretStr | SecretBytes):
        # It prints as stars, whatever it holds. What is approved has to be told from what is swapped in for it.
        held = str(value.get_secret_value()).encode("utf-8", "surrogatepass")
        return Veiled(f"<secret {hmac.new(key, held, 'sha256').hexdigest()[:16]}>"), found
    if isinstance(value, Iterator):
        kind = type(cast("object", value)).__qualname__  # not read: that would empty it
        return f"<{kind}>", [kind]

    def named(part: object) -> str:
        found.append(type(part).__qualname__)
        return f"<{found[-1]}>"

    try:
        return to_jsonable_python(_ordered(value), inf_nan_mode="strings", fallback=named), found
    except (PydanticSerializationError, ValueError, RecursionError):
        return named(value), found


def _ordered(value: object) -> object:
    """Sets as lists in an order that is the same in every process; what is approved in one may run in another."""
    if isinstance(value, set | frozenset):
        members = cast("set[object]", value)
        return sorted(members, key=lambda one: json.dumps(to_jsonable_python(one, fallback=repr), sort_keys=True))
    if type(value) is list or type(value) is tuple:
        return [_ordered(item) for item in cast("list[object]", value)]
    if type(value) is dict:
        return {key: _ordered(item) for key, item in cast("dict[object, object]", value).items()}
    return value


def _is_json(value: object) -> bool:
    kind = type(value)
    if kind is str or kind is int or kind is bool or value is None:
        return True
    if kind is float:
        return math.isfinite(cast("float", value))
    if kind is dict:
        return all(type(k) is str and _is_json(v) for k, v in cast("dict[object, object]", value).items())
    if kind is list:
        return all(_is_json(item) for item in cast("list[object]", value))
    return False


def schema_hash(tool_def: ToolDefinition, *, claims: bool = False) -> str:
    """Digest of what a tool takes. If it changes, approvals and grants for the tool no longer hold.

    Where somebody else makes `claims` about the tool, such as a server that may change it any time, they count too.
    """
    takes = tool_def.parameters_json_schema
    if not claims:
        return digest(to_jsonable_python(takes))
    said = (tool_def.metadata or {}).get("annotations")
    return digest(to_jsonable_python([takes, tool_def.description, said], fallback=repr))


def asking_run(messages: Sequence[ModelMessage], call_id: str, run_id: str) -> str:
    """The run whose model made the call, and the moment of the response: a resumed call belongs to an earlier run.

    Providers reuse call ids, so the newest response that holds the id is the one meant. The moment, unlike the place
    in the history, stays when the history is trimmed.
    """
    for message in reversed(messages):
        if isinstance(message, ModelResponse) and call_id in _call_ids(message):
            return _place(message, run_id)
    return run_id


def _call_ids(response: ModelResponse) -> set[str]:
    return {part.tool_call_id for part in response.parts if isinstance(part, ToolCallPart)}


def _place(response: ModelResponse, run_id: str) -> str:
    return f"{response.run_id or run_id}.{response.timestamp.timestamp():.6f}"


@dataclass(slots=True)
class Places:
    """`asking_run` for a run's own calls: the newest response is looked at once, however many calls it holds."""

    _response: ModelResponse | None = None
    _ids: set[str] = field(default_factory=set[str])

    def of(self, messages: Sequence[ModelMessage], call_id: str, run_id: str) -> str:
        """Where the call at hand was made."""
        newest = newest_response(messages)
        if newest is not None and newest is not self._response:
            self._response, self._ids = newest, _call_ids(newest)
        if newest is not None and call_id in self._ids:
            return _place(newest, run_id)
        return asking_run(messages, call_id, run_id)


@dataclass(slots=True)
class Schemas:
    """`schema_hash`, worked out once for each definition."""

    _known: dict[str, tuple[object, str]] = field(default_factory=dict[str, "tuple[object, str]"])

    def of(self, tool_def: ToolDefinition, owner: Owner | None = None) -> str:
        """Digest of what the tool takes, and of what is claimed about it."""
        if owner is not None and owner.claimed_labels:
            return schema_hash(tool_def, claims=True)
        schema, known = self._known.get(tool_def.name, (None, ""))
        if schema is not tool_def.parameters_json_schema:
            known = schema_hash(tool_def)
            self._known[tool_def.name] = (tool_def.parameters_json_schema, known)
        return known


def newest_response(messages: Sequence[ModelMessage]) -> ModelResponse | None:
    """The model's last answer in a history: the one whose calls are at hand."""
    if messages and isinstance(messages[-1], ModelResponse):
        return messages[-1]
    return next((message for message in reversed(messages) if isinstance(message, ModelResponse)), None)


def _shown(toolset_id: str | None) -> str | None:
    """A toolset's name for rules; in angle brackets stand roles that PydanticAI fills itself."""
    return None if toolset_id is None or toolset_id.startswith("<") else toolset_id
