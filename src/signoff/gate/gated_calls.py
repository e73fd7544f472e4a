"""Gated calls: their identity (what an approval is bound to), and the call that is running now."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar, Token
from dataclasses import dataclass, field
from hashlib import sha256
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

from pydantic_ai import RunContext
from pydantic_ai.messages import ModelMessage, ModelResponse, ToolCallPart
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.toolsets import ToolsetTool

from signoff.attached.checks import described
from signoff.core.call import Call
from signoff.core.delivery import NOWHERE
from signoff.core.grant import Grant
from signoff.core.request import ApprovalRequest
from signoff.core.verdict import Verdict
from signoff.errors import WrongUse
from signoff.gate.arguments import copied
from signoff.gate.nesting import EnclosingCall, Level
from signoff.gate.run_saver import SavedResult
from signoff.gate.tools import KIND, Origin, schema_hash
from signoff.ports import ApproverLike, Passed, passed

_NOTHING_SHOWN: Mapping[str, Any] = MappingProxyType({})

# --- sealing: what a call is bound to ---


def newest_response(messages: Sequence[ModelMessage]) -> ModelResponse | None:
    """Return the last model response in a history, which made the current calls."""
    if messages and isinstance(messages[-1], ModelResponse):
        return messages[-1]
    return next((message for message in reversed(messages) if isinstance(message, ModelResponse)), None)


def _call_ids(response: ModelResponse) -> set[str]:
    return {part.tool_call_id for part in response.parts if isinstance(part, ToolCallPart)}


def made_at(response: ModelResponse, run_id: str) -> str:
    """Return what identifies a response: its calls have it in their keys."""
    return f"{response.run_id or run_id}.{response.timestamp.timestamp():.6f}"


@dataclass(slots=True)
class Places:
    """Where calls were made: the run whose model made them, and the timestamp of the response.

    Providers reuse call ids, so the newest response that holds the id is meant. A resumed call belongs to an earlier
    run. Unlike the position in the history, the timestamp stays the same when the history is trimmed.
    """

    _response: ModelResponse | None = None
    _ids: set[str] = field(default_factory=set[str])

    def of_call(self, ctx: RunContext[Any], call: Call) -> str:
        """Return where a call was made; for one inside another call of its run, as in code mode, where that one was."""
        made_by = (one for one in reversed(call.path.split("/")) if self.made_by_model(ctx.messages, one))
        around = "" if self._is_newest(ctx.messages, call.call_id) else next(made_by, "")
        return self.of(ctx.messages, around or call.call_id, ctx.run_id or "")

    def of(self, messages: Sequence[ModelMessage], call_id: str, run_id: str) -> str:
        """Return where the call was made. The newest response is scanned once, however many calls it holds."""
        if self._is_newest(messages, call_id) and self._response is not None:
            return made_at(self._response, run_id)
        for message in reversed(messages):
            if isinstance(message, ModelResponse) and call_id in _call_ids(message):
                return made_at(message, run_id)
        return run_id

    def _is_newest(self, messages: Sequence[ModelMessage], call_id: str) -> bool:
        """Return whether the newest response makes the call."""
        newest = newest_response(messages)
        if newest is not self._response:
            self._response, self._ids = newest, _call_ids(newest) if newest is not None else set()
        return call_id in self._ids

    def made_by_model(self, messages: Sequence[ModelMessage], call_id: str) -> bool:
        """Return whether a model's response makes the call, so that a run can end with it and be resumed."""
        return any(isinstance(message, ModelResponse) and call_id in _call_ids(message) for message in messages[::-1])


@dataclass(slots=True)
class Seals:
    """What seals the calls of one run, computed once for each response and each definition of a tool."""

    places: Places = field(default_factory=Places)
    _schemas: dict[str, tuple[object, str]] = field(default_factory=dict[str, "tuple[object, str]"])

    def schema_of(self, tool_def: ToolDefinition, origin: Origin) -> str:
        """Return the digest of a tool's definition."""
        if origin.is_foreign:
            return schema_hash(tool_def, foreign=True)
        schema, known = self._schemas.get(tool_def.name, (None, ""))
        if schema is not tool_def.parameters_json_schema:
            known = schema_hash(tool_def, foreign=False)
            self._schemas[tool_def.name] = (tool_def.parameters_json_schema, known)
        return known


# --- a call in the gate ---


@dataclass(slots=True, eq=False)
class GatedCall:
    """A call with everything needed to judge it, ask about it, and run it."""

    ctx: RunContext[Any]
    tool: ToolsetTool[Any]
    origin: Origin
    args: dict[str, Any]
    """The arguments as the tool takes them: validated Python values."""
    execute: Callable[[dict[str, Any]], Awaitable[Any]]
    call: Call
    verdict: Verdict
    seals: Seals
    level: Level
    """The run that makes the call."""
    above: bool = False
    """Whether it passes above a toolset that another capability put on top of the gate's."""
    is_new: bool = False
    """Whether it was made in this run, so that nothing from before can be on record about it."""
    on_record: ApprovalRequest | None = None
    """The newest request about it, once looked up."""
    grant: Grant | None = None
    """The grant for it, once looked up."""
    request: ApprovalRequest | None = None
    """The approval it runs on, if a person gave one."""
    saved: SavedResult | None = None
    """What it returned on its approval, as it is saved."""
    basis: Mapping[str, str] | None = None
    """What a preview of it would be made from now, once that was asked."""
    outdated: str = ""
    """What its own body found to be another than its preview was made from."""
    approver: ApproverLike | None = None
    """Who is asked in runs inside it, unless an approver is named there."""
    enclosing: EnclosingCall | None = None
    """The call as the runs inside it see it; None before there is one."""

    @property
    def workers(self) -> tuple[str, ...]:
        """The chain of workers that led to the call, for runs inside it."""
        return self.call.worker

    @property
    def path(self) -> str:
        return self.call.path

    @property
    def in_doubt(self) -> bool:
        """Whether a rule could not be evaluated, or part of the call cannot be shown."""
        return bool(self.verdict.errors or self.call.unreadable)

    @property
    def is_external(self) -> bool:
        """Whether the tool is executed externally, so that running it means deferring it."""
        return (self.tool.tool_def.metadata or {}).get(KIND) == "external"

    @property
    def sealed(self) -> Call:
        """The call as it is asked about and saved: with its place, the tool's schema, and a copy of its arguments.

        Computed once. Raises `CannotCanonicalise` if the arguments have no JSON form.
        """
        call, ctx = self.call, self.ctx
        if not call.schema_hash:
            self.call = call = call.changed(
                args=copied(call.args),
                run_id=self.seals.places.of_call(ctx, call),
                schema_hash=self.seals.schema_of(self.tool.tool_def, self.origin),
            )
        return call

    def passed(self, *, answered: bool) -> Passed:
        """Return what the tool's own toolset may know about how the call was let through."""
        origin, ctx = self.origin, self.ctx
        shown = self.request.metadata if self.request is not None else _NOTHING_SHOWN
        return Passed(ctx.run_id, ctx.tool_call_id, origin.name, self.args, answered, origin.policies, shown)

    async def described(self) -> Mapping[str, Any]:
        """Return what the toolset and its wrappers say about the call. The outermost wrapper has the last word."""
        return await described(self.origin.steps, lambda: json.loads(json.dumps(self.call.args)), self.ctx)


async def never(args: dict[str, Any]) -> Any:
    """Body of a call that is asked about but not run."""
    raise AssertionError("a call that is only asked about is not run")


# --- the call that runs right now ---


class Frame(NamedTuple):
    """What a run inherits from a call that no gate let through."""

    workers: tuple[str, ...] = ()
    path: str = ""
    approver: ApproverLike | None = None
    gated: GatedCall | None = None
    """The innermost call around it that a gate let through."""


TOP = Frame()
_running: ContextVar[Frame | GatedCall] = ContextVar("signoff_running", default=TOP)
_approver: ContextVar[ApproverLike | None] = ContextVar("signoff_approver", default=None)
_places: ContextVar[Mapping[str, str]] = ContextVar("signoff_places", default=NOWHERE)
_entering: ContextVar[tuple[Frame | GatedCall, bool] | None] = ContextVar("signoff_entering", default=None)

Entered: TypeAlias = tuple[Token[Frame | GatedCall], Token[Passed | None]]


def running_call() -> Frame | GatedCall:
    """Return the innermost call around this code, or `TOP` outside of any."""
    return _running.get()


def enclosing_call() -> GatedCall | None:
    """Return the innermost gated call around this code, if there is one."""
    running = _running.get()
    return running if isinstance(running, GatedCall) else running.gated


def enter(running: Frame | GatedCall, passing: Passed | None = None) -> Entered:
    """Nest runs started from here on in this call, until `leave`. Two plain functions, as every call does this."""
    return _running.set(running), passed.set(passing)


def leave(tokens: Entered) -> None:
    """Undo `enter`."""
    _running.reset(tokens[0])
    passed.reset(tokens[1])


@contextmanager
def asking(approver: ApproverLike) -> Generator[None]:
    """Within the context, every gated run asks `approver`, whatever its own capability says. Applies to nested runs."""
    token = _approver.set(approver)
    try:
        yield
    finally:
        _approver.reset(token)


@contextmanager
def asked_at(channel: str, place: str) -> Generator[None]:
    """Within the context, runs ask at that place in the channel. Applies to nested runs; the innermost place wins."""
    token = _places.set({**_places.get(), channel: place})
    try:
        yield
    finally:
        _places.reset(token)


def places_here() -> Mapping[str, str]:
    """Return where questions from this code are asked, by channel."""
    return _places.get()


def named_approver(own: ApproverLike | None) -> ApproverLike | None:
    """Return the approver set by `asking`, else that of the outermost call around this that names one, else `own`."""
    for approver in (_approver.get(), _running.get().approver):
        if approver is not None:
            return approver
    return own


@contextmanager
def entering(running: Frame | GatedCall, *, ends_call: bool) -> Generator[None]:
    """Within the context, a run started by this call pauses together with it, whatever its gate says about that.

    With `ends_call`, the call promises to do nothing more once that run is over.
    """
    token = _entering.set((running, ends_call))
    try:
        yield
    finally:
        _entering.reset(token)


def entered() -> bool | None:
    """Return whether the call around this code promised `ends_call`; None if `entering` was not used."""
    said = _entering.get()
    return said[1] if said is not None and said[0] is _running.get() else None


def idempotency_key() -> str:
    """For use inside a tool: a key for this call, which stays the same if the call is repeated after a crash.

    Pass it to the service that does the work (a payment service, a queue), so that the work is done once. For a call
    that was allowed without a question, the key differs if the model is asked again.
    """
    running = _running.get()
    if not isinstance(running, GatedCall):
        raise WrongUse("this code does not run inside a gated tool call, so there is no key for it")
    return sha256(running.sealed.key.encode()).hexdigest()[:32]
