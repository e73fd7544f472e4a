"""Implementation of `signoff.compat.blocking_approval`. Import the names from there."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, Self, TypeAlias, runtime_checkable

from pydantic import BaseModel
from pydantic_ai import RunContext
from pydantic_ai.toolsets import AbstractToolset, ToolsetTool, WrapperToolset

from signoff.attached.attached_policies import ATTRIBUTES, LAYERS, layer_for, layers_of
from signoff.attached.checks import Check, OwnCheck, described, said
from signoff.attached.marks import is_answered, kept_to
from signoff.attached.toolset_methods import ASKS, DESCRIBE, NEEDS, OLD_DESCRIBE, TOOLSET
from signoff.core.canonical import digest
from signoff.core.verdict import Effect
from signoff.errors import ApprovalError as Refused
from signoff.errors import CannotCanonicalise
from signoff.policy.strictest_verdict import strictest
from signoff.toolset_wrappers import Step

ApprovalConfig: TypeAlias = Mapping[str, Mapping[str, Any]]
"""Which tools are approved in advance: `{"look": {"pre_approved": True}}`."""


@dataclass(frozen=True)
class ApprovalResult:
    """A toolset's answer about a call: blocked, pre-approved, or needs approval."""

    status: Literal["blocked", "pre_approved", "needs_approval"]
    block_reason: str | None = None

    def __post_init__(self) -> None:
        if (self.status == "blocked") != (self.block_reason is not None):
            raise ValueError("block_reason must be set if the status is blocked, and only then")

    @classmethod
    def blocked(cls, reason: str) -> ApprovalResult:
        return cls("blocked", reason)

    @classmethod
    def pre_approved(cls) -> ApprovalResult:
        return cls("pre_approved")

    @classmethod
    def needs_approval(cls) -> ApprovalResult:
        return cls("needs_approval")

    @property
    def is_blocked(self) -> bool:
        return self.status == "blocked"

    @property
    def is_pre_approved(self) -> bool:
        return self.status == "pre_approved"

    @property
    def is_needs_approval(self) -> bool:
        return self.status == "needs_approval"


def needs_approval_from_config(name: str, config: ApprovalConfig | None) -> ApprovalResult:
    """The result for a tool from the config alone."""
    options = (config or {}).get(name, {})
    return ApprovalResult.pre_approved() if options.get("pre_approved") else ApprovalResult.needs_approval()


@runtime_checkable
class SupportsNeedsApproval(Protocol):
    """A toolset that decides itself which of its calls need approval."""

    def needs_approval(self, name: str, tool_args: dict[str, Any], ctx: RunContext[Any], config: ApprovalConfig) -> Any:
        """Decide about a call."""
        ...


@runtime_checkable
class SupportsApprovalDescription(Protocol):
    """A toolset that describes in words what a call will do."""

    def get_approval_description(self, name: str, tool_args: dict[str, Any], ctx: RunContext[Any]) -> str:
        """The description."""
        ...


class ApprovalRequest(BaseModel):
    """A call that somebody has to decide about."""

    tool_name: str
    tool_args: dict[str, Any]
    description: str


class ApprovalDecision(BaseModel):
    """What was decided."""

    approved: bool
    note: str | None = None
    remember: Literal["none", "session"] = "none"


ApprovalCallback: TypeAlias = Callable[[ApprovalRequest], ApprovalDecision | Awaitable[ApprovalDecision]]


class ApprovalError(Refused):
    """A call was refused and did not run."""

    def __init__(self, tool_name: str, message: str) -> None:
        super().__init__(message, tool=tool_name)
        self.tool_name = tool_name


class ApprovalDenied(ApprovalError):
    """Somebody denied the call."""

    def __init__(self, tool_name: str, decision: ApprovalDecision) -> None:
        super().__init__(tool_name, f"Approval denied for {tool_name}: {decision.note or 'no reason given'}")
        self.decision = decision


class ApprovalBlocked(ApprovalError):
    """A policy blocked the call."""

    def __init__(self, tool_name: str, reason: str | None) -> None:
        super().__init__(tool_name, f"Blocked {tool_name}: {reason or 'blocked by policy'}")
        self.reason = reason


class ApprovalMemory:
    """Decisions that are remembered as long as the object lives."""

    def __init__(self) -> None:
        self._decisions: dict[str, tuple[str, dict[str, Any], ApprovalDecision]] = {}

    def lookup(self, tool_name: str, args: Mapping[str, Any]) -> ApprovalDecision | None:
        """The decision remembered for exactly this tool and these arguments."""
        found = self._decisions.get(_key(tool_name, args) or "")
        return found[2] if found is not None else None

    def store(self, tool_name: str, args: Mapping[str, Any], decision: ApprovalDecision) -> None:
        """Remember a decision with `remember="session"`. A call that has no JSON form is not remembered."""
        key = _key(tool_name, args) if decision.remember == "session" else None
        if key is not None:
            self._decisions[key] = tool_name, dict(args), decision

    def list_approvals(self) -> list[tuple[str, dict[str, Any], ApprovalDecision]]:
        """Everything that is remembered."""
        return list(self._decisions.values())

    def clear(self) -> None:
        """Forget everything."""
        self._decisions.clear()

    def __len__(self) -> int:
        return len(self._decisions)


def _key(tool_name: str, args: Mapping[str, Any]) -> str | None:
    try:
        return digest([tool_name, dict(args)])
    except CannotCanonicalise:
        return None


class ApprovalController:
    """Decides requests by a callback (`interactive`) or without asking (`approve_all`, `strict`)."""

    def __init__(
        self,
        mode: Literal["interactive", "approve_all", "strict"] = "interactive",
        approval_callback: ApprovalCallback | None = None,
    ) -> None:
        self.mode = mode
        self._callback = approval_callback
        self.memory = ApprovalMemory()

    def is_session_approved(self, request: ApprovalRequest) -> bool:
        """Whether a remembered decision approves the request."""
        known = self.memory.lookup(request.tool_name, request.tool_args)
        return known is not None and known.approved

    def clear_session_approvals(self) -> None:
        """Forget all remembered decisions."""
        self.memory.clear()

    def request_approval_sync(self, request: ApprovalRequest) -> ApprovalDecision:
        """Decide a request. The callback must not be a coroutine function."""
        if (known := self._known(request)) is not None:
            return known
        if self._callback is None:
            raise NotImplementedError("No approval_callback provided for interactive mode")
        answer = self._callback(request)
        if inspect.isawaitable(answer):
            if inspect.iscoroutine(answer):
                answer.close()
            raise TypeError("request_approval_sync() takes no async callback; await request_approval()")
        return self._remembered(request, answer)

    async def request_approval(self, request: ApprovalRequest) -> ApprovalDecision:
        """Decide a request."""
        if (known := self._known(request)) is not None:
            return known
        if self._callback is None:
            raise RuntimeError("No approval_callback provided for interactive mode")
        return self._remembered(request, await _decision(self._callback, request))

    @property
    def approval_callback(self) -> ApprovalCallback:
        """The callback for `ApprovalToolset` that fits the mode."""
        if self._callback is not None:
            return self._callback
        if self.mode == "interactive":
            raise RuntimeError("No approval_callback set for interactive mode")
        return lambda request: _by_mode(self.mode, request) or ApprovalDecision(approved=False)

    def _known(self, request: ApprovalRequest) -> ApprovalDecision | None:
        return _by_mode(self.mode, request) or self.memory.lookup(request.tool_name, request.tool_args)

    def _remembered(self, request: ApprovalRequest, decision: ApprovalDecision) -> ApprovalDecision:
        if decision.approved:
            self.memory.store(request.tool_name, request.tool_args, decision)
        return decision


def _by_mode(mode: str, request: ApprovalRequest) -> ApprovalDecision | None:
    if mode == "approve_all":
        return ApprovalDecision(approved=True)
    if mode == "strict":
        return ApprovalDecision(approved=False, note=f"Strict mode: {request.tool_name} requires approval")
    return None


async def _decision(callback: ApprovalCallback, request: ApprovalRequest) -> ApprovalDecision:
    """Call a callback and return its decision. Raises `TypeError` if it returns anything else."""
    answer: object = callback(request)
    if inspect.isawaitable(answer):
        answer = await answer
    if not isinstance(answer, ApprovalDecision):  # pyright: ignore[reportUnnecessaryIsInstance] - whoever has no checker
        raise TypeError("approval_callback must return ApprovalDecision")
    return answer


_NOT_FORWARDED = frozenset({NEEDS, DESCRIBE, OLD_DESCRIBE, "capability_labels", "claimed_labels", *ATTRIBUTES})
"""Attributes that a gate reads from the inner toolset itself."""


class ApprovalToolset(WrapperToolset[Any]):
    """A toolset whose calls are approved by a callback, in place. Behind a gate, the gate asks instead."""

    def __init__(
        self,
        inner: AbstractToolset[Any],
        approval_callback: ApprovalCallback,
        memory: ApprovalMemory | ApprovalConfig | None = None,
        config: ApprovalConfig | None = None,
    ) -> None:
        """`memory` preceded `config` until version 0.8 of that library and was removed in 0.9: both forms work.

        Without a memory no answer is remembered, whatever it says, as in 0.9.
        """
        if isinstance(memory, Mapping):
            memory, config = None, memory
        super().__init__(inner)
        self.config: ApprovalConfig = config or {}
        self._callback = approval_callback
        self._memory = memory
        vars(self)[LAYERS] = (layer_for(inner, self.config, alone=True),)

    @property
    def id(self) -> str | None:
        return self.wrapped.id

    @property
    def _inner(self) -> AbstractToolset[Any]:
        return self.wrapped

    @property
    def _decides(self) -> Any:
        """The `needs_approval` that this wrapper finds on what it wraps, through other wrappers of its kind only."""
        inner = self.wrapped
        while isinstance(inner, ApprovalToolset):
            inner = inner.wrapped
        return getattr(inner, NEEDS, None)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name in _NOT_FORWARDED or "wrapped" not in vars(self):
            raise AttributeError(name)
        return getattr(self.wrapped, name)

    async def for_run(self, ctx: RunContext[Any]) -> AbstractToolset[Any]:
        return self._around(await self.wrapped.for_run(ctx))

    async def for_run_step(self, ctx: RunContext[Any]) -> AbstractToolset[Any]:
        return self._around(await self.wrapped.for_run_step(ctx))

    def visit_and_replace(self, visitor: Callable[[AbstractToolset[Any]], AbstractToolset[Any]]) -> Self:
        return self._around(self.wrapped.visit_and_replace(visitor))

    def _around(self, wrapped: AbstractToolset[Any]) -> Self:
        if wrapped is self.wrapped:
            return self
        new = copy.copy(self)
        new.wrapped = wrapped
        return new

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[Any], tool: ToolsetTool[Any]
    ) -> Any:
        async def call() -> Any:
            return await self.wrapped.call_tool(name, tool_args, ctx, tool)

        async def settle(checks: Sequence[Check], steps: Sequence[Step], inside: str, *call: Any) -> bool:
            return await self._settle(checks, steps, name, *call) or is_answered(ctx, inside, tool_args)

        return await kept_to(self, call, name, tool_args, ctx, tool, settle)

    async def _settle(
        self, checks: Sequence[Check], steps: Sequence[Step], name: str, args: dict[str, Any], ctx: RunContext[Any]
    ) -> bool:
        """Ask the callback, unless the call is approved in advance; raise if it must not run.

        What a wrapper around this one was told answers nothing here: its callback is another one. `name` is the tool's
        name where this wrapper stands, outside the prefixes that it wraps. Returns whether the callback answered.
        """
        verdict = strictest(await said(self._own(checks), lambda: dict(args), ctx))
        if verdict is not None and verdict.effect is Effect.DENY:
            raise ApprovalBlocked(name, verdict.reason)
        if verdict is not None and verdict.effect is Effect.ALLOW:
            return False
        known = self._memory.lookup(name, args) if self._memory is not None else None
        if known is not None and known.approved:
            return True
        words = await described(steps, lambda: dict(args), ctx)
        shown = ", ".join(f"{key}={value!r}" for key, value in args.items())
        told = verdict.reason if verdict is not None and verdict.rules == (TOOLSET,) and verdict.reason != ASKS else ""
        description = str(words.get("summary") or told or f"{name}({shown})")
        request = ApprovalRequest(tool_name=name, tool_args=args, description=description)
        decision = await _decision(self._callback, request)
        if self._memory is not None:
            self._memory.store(name, args, decision)
        if not decision.approved:
            raise ApprovalDenied(name, decision)
        return True

    def _own(self, checks: Sequence[Check]) -> list[Check]:
        """Return the checks that are this wrapper's to make: those of wrappers inside it are theirs.

        A toolset that it cannot see, behind a prefix or a filter, can only make things stricter.
        """
        mine, decides = layers_of(self), self._decides
        return [
            one._replace(only_tightens=one.method != decides) if isinstance(one, OwnCheck) else one
            for one in checks
            if isinstance(one, OwnCheck) or not one.layer.alone or one.layer in mine
        ]
