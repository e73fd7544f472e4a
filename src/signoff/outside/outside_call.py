"""A tool call that another program's agent is about to make, as that program tells it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from signoff.core.call import Call
from signoff.gate.likeness import directory_name
from signoff.links import followed
from signoff.policy.layers import Layers

ReadsArguments = Callable[[Mapping[str, Any]], Mapping[str, Any]]
"""Reads something out of the arguments of a call."""


def nothing_read(args: Mapping[str, Any]) -> Mapping[str, Any]:
    """The arguments say all there is."""
    return {}


@dataclass(frozen=True, slots=True, kw_only=True)
class OutsideCall:
    """A call, and where it is made. Names and texts are claims of that program; nothing here is an identity."""

    agents: tuple[str, ...]
    """The agent, and the agents inside it that led to the call, outermost first."""
    session: str
    """Which conversation of that agent it is."""
    call_id: str
    """Which call of the conversation: an approval is bound to both, and to the arguments."""
    attempt: str = ""
    """Which attempt to make it, where one program may make the very same call twice at once."""
    tool: str
    args: Mapping[str, Any]
    directory: str
    """Where relative paths start from."""
    labels: frozenset[str] = frozenset()
    prompt: str = ""
    """What the agent was told to do."""
    words: str = ""
    """What its model said about the call."""
    toolset: str | None = None
    """The server whose tool it is, where it is one of a server."""
    claimed: frozenset[str] = frozenset()
    """Labels that the server claims for the tool."""
    definition: str = ""
    """Digest of how the server defines the tool."""
    schema: Mapping[str, Any] | None = None
    """What the tool takes, where that is known."""
    said: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """What a card shows besides, as `describe_approval` of a toolset says it."""
    doubt: str = ""
    """Why people are asked even where a rule or an earlier answer lets it run."""
    reads: ReadsArguments = nothing_read
    """Reads out of the arguments what is judged and shown with them, such as the files that a patch changes."""

    @property
    def key(self) -> str:
        """By which its request is found again."""
        return f"{self.session}:{self.call_id}"

    def read(self, policy: Layers, args: Mapping[str, Any] | None = None) -> Call:
        """The call as policy sees it; with other arguments, where a person changed them."""
        root, given = policy.root or self.directory, self.args if args is None else args
        call = Call(
            tool=self.tool,
            toolset=self.toolset,
            claimed=self.claimed,
            schema_hash=self.definition,
            args={**given, **self.reads(given)},
            worker=self.agents,
            labels=self.labels,
            start=self.directory,
            roams=True,
            directory=directory_name(root, self.directory),
            call_id=self.call_id,
            run_id=self.session,
            conversation_id=self.session,
        )
        leads = followed(self.directory, policy.paths_of(call)) if policy.wants_paths else {}
        return call.changed(resolved=leads) if leads else call

    def own(self, args: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments without what was read out of them: what the program itself understands."""
        read = self.reads(args)
        return {name: value for name, value in args.items() if name not in read or name in self.args}


def shape_of(args: Mapping[str, Any]) -> dict[str, Any]:
    """A schema for whoever edits the arguments: of what kind each is. The program itself knows what its tools take."""
    properties = {name: {"type": _kind(value)} if value is not None else {} for name, value in args.items()}
    return {"type": "object", "properties": properties, "additionalProperties": True}


def _kind(value: object) -> str:
    match value:
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "number"
        case str():
            return "string"
        case list() | tuple():
            return "array"
        case _:
            return "object"
