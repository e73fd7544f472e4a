"""Tools as the gate sees them: where they come from, what is declared about them, and the `Call`s they make."""

from __future__ import annotations

import marshal
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from types import MappingProxyType
from typing import Any, TypeAlias, cast

from pydantic_ai import RunContext
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.toolsets import ToolsetTool
from pydantic_ai.toolsets.function import FunctionToolsetTool
from pydantic_core import to_jsonable_python

from signoff.attached.attached_policies import name_on
from signoff.attached.checks import attached_labels, checks_of
from signoff.attached.marks import policies_on
from signoff.attached.toolset_methods import describer
from signoff.core.call import Call
from signoff.core.canonical import digest
from signoff.core.tool_definition import definition_digest
from signoff.gate.arguments import PROCESS_KEY, as_json
from signoff.gate.likeness import directory_name, read_for_memory, varying
from signoff.links import looked_up
from signoff.policy.call_paths import Facts
from signoff.policy.engine import Policy
from signoff.policy.layers import Layers
from signoff.policy.tool_labels import labels_in_doubt, labels_of
from signoff.toolset_wrappers import Step, steps_of

KIND = "signoff.kind"
"""Metadata key for the kind that a tool had before the gate turned it into a plain function."""
_NO_LABELS = frozenset[str]()
_NOTHING_RESOLVED: Mapping[str, str] = MappingProxyType({})


# --- where a tool comes from ---

Hook: TypeAlias = Callable[[Mapping[str, Any], RunContext[Any]], Any]
"""What a toolset declares about one of its tools, as in `ports.DeclaresApproval`."""


class Origin:
    """The toolset a tool comes from, below all wrappers, and everything declared on the way down to it."""

    def __init__(self, steps: Sequence[Step], toolset_id: str | None, own: ToolsetTool[Any]) -> None:
        """`steps` are the toolsets from the outermost wrapper to the innermost, each with the tool's name there.

        `own` is the tool as the innermost one lists it.
        """
        toolset, self.name = steps[-1]
        self.steps = steps
        named = next((name for one, _ in steps if (name := name_on(one)) is not None), None)
        self.toolset_name = named or _shown(toolset_id or toolset.id)
        declared = (own.tool_def.metadata or {}).get("labels") or ()
        made_with = frozenset([declared] if isinstance(declared, str) else declared)
        attached, claimed = attached_labels(steps)
        self.labels = made_with | attached
        """Labels of the tool itself, as its toolset defines it. Labels that other capabilities add are not trusted."""
        self.policies = frozenset(id(one) for toolset, _ in steps for one in policies_on(toolset))
        """Ids of the policies that judge its calls."""
        self.checks = checks_of(steps, made_with)
        """The checks on the way down that are asked about each call, outermost first."""
        starts = (start for one, _ in steps if isinstance(start := getattr(one, "starts_from", None), str))
        self.start = next(starts, "")
        self.capability_labels = _hooks(steps, "capability_labels")
        claims: tuple[Hook, ...] = (lambda args, ctx: claimed,) if claimed else ()
        self.claimed_labels = (*_hooks(steps, "claimed_labels"), *claims)
        self.has_words = any(describer(toolset) is not None for toolset, _ in steps)
        """Whether somebody describes its calls in words."""
        self.is_foreign = is_foreign(own) or bool(self.claimed_labels)
        """Whether somebody else may define the tool."""


def _hooks(steps: Sequence[Step], name: str) -> tuple[Hook, ...]:
    """Return the optional methods of that name, outermost first."""
    found = ((getattr(toolset, name, None), tool) for toolset, tool in steps)
    return tuple(partial(method, tool) for method, tool in found if callable(method))


def origin_of(tool: ToolsetTool[Any]) -> Origin:
    """Find a tool's origin through all wrappers, so that a renamed or prefixed toolset keeps what it declares."""
    return Origin(steps_of(tool), tool.tool_def.toolset_id, _innermost(tool))


def _innermost(tool: ToolsetTool[Any]) -> ToolsetTool[Any]:
    while isinstance(below := getattr(tool, "source_tool", None), ToolsetTool):
        tool = cast("ToolsetTool[Any]", below)
    return tool


def is_foreign(tool: ToolsetTool[Any]) -> bool:
    """Return whether somebody else may define the tool, and change that at any time: an MCP server, a user interface.

    Only of a function it is known that whoever writes its description writes its code, too.
    """
    return not isinstance(_innermost(tool), FunctionToolsetTool)


def _shown(toolset_id: str | None) -> str | None:
    """Return a toolset's name for rules. Names in angle brackets are roles that PydanticAI assigns itself."""
    return None if toolset_id is None or toolset_id.startswith("<") else toolset_id


def schema_hash(tool_def: ToolDefinition, *, foreign: bool) -> str:
    """Return the digest of a tool's definition. If it changes, approvals and grants for the tool no longer hold.

    It is a digest of what the tool takes; with `foreign`, also of its description and annotations.
    """
    takes = tool_def.parameters_json_schema
    if not foreign:
        try:
            return _digest_of_written(marshal.dumps(takes, 2))
        except ValueError:  # it contains more than plain values
            return digest(to_jsonable_python(takes))
    said = (tool_def.metadata or {}).get("annotations")
    return definition_digest(*to_jsonable_python([takes, tool_def.description, said], fallback=repr))


@lru_cache(maxsize=1_024)
def _digest_of_written(takes: bytes) -> str:
    """Return the digest of a marshalled schema. To marshal it again for each run is ten times as fast as to hash it."""
    return digest(to_jsonable_python(marshal.loads(takes)))


def as_function(tool_def: ToolDefinition) -> ToolDefinition:
    """Return the definition of a tool as a plain function if it is of kind `unapproved` or `external`."""
    if tool_def.kind not in ("unapproved", "external"):
        return tool_def
    return replace(tool_def, kind="function", metadata={**(tool_def.metadata or {}), KIND: tool_def.kind})


# --- reading ---


@dataclass(frozen=True, slots=True)
class CallReader:
    """Makes `Call`s. Holds what does not change from call to call."""

    labels: Mapping[str, Iterable[str]] = field(default_factory=dict[str, Iterable[str]])
    """Capability labels by tool name or glob, for tools that declare none themselves."""
    claims: Sequence[Mapping[str, Iterable[str]]] = ()
    """Labels that callers give to tools by name. Inside their calls these can only make policy stricter."""
    policy: Policy | Layers | None = None
    """What needs to know where the paths in a call lead."""
    root: str = ""
    """The directory relative paths start from, as a real path."""
    several_roots: bool = False
    """Whether rules start from other directories too, so that a call has to say where its paths start from."""
    key: bytes = PROCESS_KEY
    """HMAC key that tells secrets apart without showing them; a store has its own, for all processes that share it."""

    def read(
        self,
        ctx: RunContext[Any],
        tool_def: ToolDefinition,
        args: Mapping[str, Any],
        origin: Origin,
        workers: tuple[str, ...] = (),
        path: str = "",
    ) -> Call:
        """Read the call as policy sees it. `workers` and `path` are those of the call that its run is nested in."""
        worker = ctx.agent.name if ctx.agent is not None else None
        values, unreadable = as_json(args, self.key)
        call_id = ctx.tool_call_id or ""
        try:
            labels = self.labels_of(ctx, tool_def, values, origin)
            claimed = self._claimed(ctx, tool_def, values, origin)
        except Exception as error:  # doubt asks: a call whose labels are unknown is never simply allowed
            labels, claimed, unreadable = _NO_LABELS, _NO_LABELS, (*unreadable, f"its capability labels: {error!r}")
        call = Call.made(
            {
                "tool": tool_def.name,
                "args": values,
                "toolset": origin.toolset_name,
                "worker": (*workers, worker) if worker else workers,
                "labels": labels,
                "claimed": claimed,
                "deps": ctx.deps,
                "start": origin.start,
                "directory": directory_name(self.root, origin.start),
                "also": self.root if self.looks_from_several and not origin.start else "",
                "resolved": _NOTHING_RESOLVED,
                "unreadable": unreadable,
                "call_id": call_id,
                "run_id": ctx.run_id or "",
                "conversation_id": ctx.conversation_id or "",
                "path": f"{path}/{call_id}" if path else call_id,
            }
        )
        return looked_up(call, self.policy, self.root) if self.policy is not None else call

    @property
    def looks_from_several(self) -> bool:
        """Whether a call has to say where its paths start from."""
        return self.several_roots and self.policy is not None and self.policy.wants_paths

    def reread(self, call: Call) -> Call:
        """Read a call that no gate saw as policy sees it: with the labels of its tool, and where its paths lead."""
        call = call.changed(
            labels=labels_of(self.labels, call.tool),
            claimed=self._claimed_by_name(call.tool),
            also=self.root if self.looks_from_several else "",
        )
        return looked_up(call, self.policy, self.root) if self.policy is not None else call

    def read_for_memory(self, call: Call) -> Facts:
        """Return a call as remembered answers are judged by it."""
        return read_for_memory(call, self.root)

    def varying(self, call: Call) -> tuple[Mapping[str, Any], ...]:
        """Return what of a call that is asked about may vary in calls like it."""
        return varying(call, self.root)

    def labels_of(
        self, ctx: RunContext[Any], tool_def: ToolDefinition, args: Mapping[str, Any], origin: Origin
    ) -> frozenset[str]:
        """Return the labels of a call: those of its tool, those this agent gives it, and those its toolset declares."""
        if not (self.labels or origin.labels or origin.capability_labels):
            return _NO_LABELS
        return origin.labels | labels_of(self.labels, tool_def.name) | _declared(origin.capability_labels, args, ctx)

    def _claimed(
        self, ctx: RunContext[Any], tool_def: ToolDefinition, args: Mapping[str, Any], origin: Origin
    ) -> frozenset[str]:
        if not (self.labels or self.claims or origin.claimed_labels):
            return _NO_LABELS
        return _declared(origin.claimed_labels, args, ctx) | self._claimed_by_name(tool_def.name)

    def _claimed_by_name(self, tool: str) -> frozenset[str]:
        """Return the labels of callers for a tool, and those of this agent that are in doubt."""
        doubtful = (labels_in_doubt(given, tool) for given in (self.labels, *self.claims))
        return frozenset[str]().union(*doubtful, *(labels_of(given, tool) for given in self.claims))


def _declared(hooks: Sequence[Hook], args: Mapping[str, Any], ctx: RunContext[Any]) -> frozenset[str]:
    """Return all labels that a toolset and its wrappers declare for a call."""
    return frozenset[str]().union(*(hook(args, ctx) for hook in hooks))
