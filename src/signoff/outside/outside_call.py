"""`OutsideCall`: a tool call that an agent in another program is about to make, as that program describes it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from signoff.core.call import Call
from signoff.core.request_context import LONGEST_SESSION, RequestContext, shortened
from signoff.disk_steps import DiskSteps
from signoff.gate.likeness import directory_name
from signoff.links import looked_up
from signoff.outside.background import Background, ReadsBackground, no_background
from signoff.policy.layers import Layers

ReadsArguments = Callable[[Mapping[str, Any]], Mapping[str, Any]]
"""Derives more arguments from the arguments of a call."""


def nothing_read(args: Mapping[str, Any]) -> Mapping[str, Any]:
    """Derive nothing: the arguments are complete."""
    return {}


@dataclass(frozen=True, slots=True, kw_only=True)
class OutsideCall:
    """A call, and where it is made. Names and texts are claims of that program; nothing here is an identity."""

    agents: tuple[str, ...]
    """The agent, and the agents inside it that led to the call, outermost first."""
    session: str
    """The id of the agent's conversation."""
    call_id: str
    """The id of the call in the conversation. An approval is bound to both, and to the arguments."""
    attempt: str = ""
    """The id of this attempt, if a program may make the very same call twice. It gets its permission again, if it asks
    again; another attempt does not."""
    tool: str
    args: Mapping[str, Any]
    directory: str
    """Base directory for relative paths."""
    labels: frozenset[str] = frozenset()
    shown_session: str = ""
    """The id of the session as its user knows it, if a card shows it."""
    background: ReadsBackground = no_background
    """Reads what led to the call, for the people who are asked."""
    toolset: str | None = None
    """The MCP server of the tool, if it has one."""
    claimed: frozenset[str] = frozenset()
    """Labels that the server claims for the tool."""
    definition: str = ""
    """Digest of the server's definition of the tool."""
    schema: Mapping[str, Any] | None = None
    """The tool's input schema, if it is known."""
    said: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """What a card also shows, as from a toolset's `describe_approval`."""
    doubt: str = ""
    """Why people are asked even if a rule or an earlier answer allows it; empty if there is no doubt."""
    steps: int | None = None
    """How many steps are left to judge it, if the doubt took some; None: all of them."""
    reads: ReadsArguments = nothing_read
    """Derives what is judged and shown with the arguments, such as the files that a patch changes."""

    @property
    def caller(self) -> str:
        """Who makes it, for a log."""
        return f"the agent {' > '.join(self.agents)}" if self.agents else "an agent"

    @property
    def token(self) -> str:
        """What its claim is recognised by."""
        return self.attempt or self.call_id

    def context(self, background: Background) -> RequestContext:
        """Return what people are shown of where the call comes from."""
        return RequestContext(
            prompt=background.prompt,
            words=background.words,
            session=shortened(self.shown_session, LONGEST_SESSION),
            directory=self.directory if self.shown_session else "",
        )

    @property
    def key(self) -> str:
        """The key by which its request is found again."""
        return f"{self.session}:{self.call_id}"

    def read(self, policy: Layers, args: Mapping[str, Any] | None = None) -> Call:
        """Return the call as policy sees it, with symlinks resolved; with other arguments, if a person edited them."""
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
        return looked_up(call, policy, self.directory, DiskSteps(self.steps))

    def own(self, args: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments without those that were derived: what the program itself understands."""
        read = self.reads(args)
        return {name: value for name, value in args.items() if name not in read or name in self.args}


def shape_of(args: Mapping[str, Any]) -> dict[str, Any]:
    """Return a schema with the type of each argument, for people who edit them. Only the program knows the real one."""
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
