"""Human answers for PydanticAI's deferred tools, on any agent and without a store.

Functions to build requests from what a run deferred, to collect decisions, and to run an agent until it is done.
An agent that has a `Signoff` capability is left to its gate, which asks the same approver.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import warnings
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from pydantic_ai import Agent, RunContext
from pydantic_ai.capabilities import HandleDeferredToolCalls
from pydantic_ai.exceptions import SkipToolExecution, UserError
from pydantic_ai.messages import ToolCallPart, UserContent
from pydantic_ai.run import AgentRunResult
from pydantic_ai.tools import DeferredToolRequests, DeferredToolResults, ToolApproved, ToolDefinition, ToolDenied
from pydantic_ai.toolsets import ToolsetTool

from signoff.channels.approver import ApproverCalls
from signoff.channels.terminal import TerminalApprover
from signoff.core.call import Call
from signoff.core.decision import ApprovalDecision, Keeps
from signoff.core.grant import call_of, grant_from, has_identity
from signoff.core.mode import ApprovalMode
from signoff.core.people import Actor, ActorKind
from signoff.core.request import ApprovalRequest
from signoff.core.summary import summary_of
from signoff.core.terms import Scope
from signoff.errors import WrongUse
from signoff.gate.denial import denial
from signoff.gate.gated_agents import signoff_of
from signoff.gate.gated_calls import Frame, asking, enclosing_call, enter, leave, running_call
from signoff.gate.nesting import is_left_over, ungated
from signoff.gate.options import check_approver, checked_mode
from signoff.gate.refusal_words import TOOL, decided_by, decided_why, words_of
from signoff.gate.tools import is_foreign, schema_hash
from signoff.ports import ApproverLike, GrantStore
from signoff.store.approval_memory import ApprovalMemory

T = TypeVar("T")
DepsT = TypeVar("DepsT")
OutT = TypeVar("OutT")


def build_approval_requests(
    requests: DeferredToolRequests, *, worker: Sequence[str] = (), tools: Mapping[str, ToolDefinition] | None = None
) -> list[ApprovalRequest]:
    """Return one request for every call that waits for approval, in order. It has no side effects.

    With `tools`, remembered answers are bound to the current definition of the tool: all of it, as nothing says who
    wrote the description.
    """
    return _requests(requests, worker, tools)


_Tools = Mapping[str, ToolDefinition | ToolsetTool[Any]]


def _requests(requests: DeferredToolRequests, worker: Sequence[str], tools: _Tools | None) -> list[ApprovalRequest]:
    return [
        _request(part, requests.metadata.get(part.tool_call_id, {}), tuple(worker), (tools or {}).get(part.tool_name))
        for part in requests.approvals
    ]


def _request(
    part: ToolCallPart,
    metadata: Mapping[str, Any],
    worker: tuple[str, ...],
    found: ToolDefinition | ToolsetTool[Any] | None,
) -> ApprovalRequest:
    args = _arguments(part)
    tool = found.tool_def if isinstance(found, ToolsetTool) else found
    foreign = is_foreign(found) if isinstance(found, ToolsetTool) else True
    call = Call(
        tool=part.tool_name,
        args=args,
        call_id=part.tool_call_id,
        worker=worker,
        path=part.tool_call_id,
        toolset=tool.toolset_id if tool is not None else None,
        schema_hash=schema_hash(tool, foreign=foreign) if tool is not None else "",
    )
    return ApprovalRequest(
        tool_call_id=part.tool_call_id,
        tool_name=part.tool_name,
        args=args,
        metadata=dict(metadata),
        summary=summary_of(part.tool_name, args, metadata),
        call=call,
    )


def _arguments(part: ToolCallPart) -> Mapping[str, Any]:
    if part.args is None or part.args == "":
        return {}
    args = json.loads(part.args) if isinstance(part.args, str) else part.args
    if not isinstance(args, dict):
        raise ValueError(f"the arguments of {part.tool_name} are not a JSON object: {part.args!r}")
    return args  # pyright: ignore[reportUnknownVariableType]


async def collect_approvals(
    requests: DeferredToolRequests,
    approver: ApproverLike | None = None,
    *,
    memory: GrantStore | None = None,
    mode: ApprovalMode | str = ApprovalMode.INTERACTIVE,
    worker: Sequence[str] = (),
    tools: Mapping[str, ToolDefinition] | None = None,
    ui: ApproverLike | None = None,
) -> DeferredToolResults:
    """Collect a decision for every waiting call: from memory, else by the mode, else from the person.

    The result is what PydanticAI expects: `ToolApproved`, with `override_args` where the person edited the
    arguments, or `ToolDenied` with the denial as JSON. Without `memory`, answers are remembered among these calls.
    `ui` is another name of `approver`.
    """
    asked = _checked(approver, ui)
    keeps = Keeps.BATCH if len(requests.approvals) > 1 else Keeps.NOTHING
    how = _Asking(asked, _Kept.of(memory, keeps), checked_mode(mode))
    return await _collected(requests, how, worker=worker, tools=tools)


def collect_approvals_sync(
    requests: DeferredToolRequests,
    approver: ApproverLike | None = None,
    *,
    memory: GrantStore | None = None,
    mode: ApprovalMode | str = ApprovalMode.INTERACTIVE,
    worker: Sequence[str] = (),
    tools: Mapping[str, ToolDefinition] | None = None,
    ui: ApproverLike | None = None,
) -> DeferredToolResults:
    """`collect_approvals` for code without an event loop."""
    _refuse_running_loop("collect_approvals")
    asked = _checked(approver, ui)
    return _run_sync(collect_approvals(requests, asked, memory=memory, mode=mode, worker=worker, tools=tools))


def _checked(approver: ApproverLike | None, ui: ApproverLike | None) -> ApproverLike | None:
    if ui is not None:
        if approver is not None:
            raise WrongUse("approver= and ui= were both given, and they mean the same; leave one out")
        approver = ui
    check_approver(approver)
    return approver


def _refuse_running_loop(name: str) -> None:
    """Raise `WrongUse` if an event loop is already running: a second one cannot run inside it."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise WrongUse(
        f"{name}_sync was called while an event loop is running: in an async function, a notebook or a bot.\n"
        f"  Write `await {name}(…)` there."
    )


def _run_sync(work: Coroutine[Any, Any, T]) -> T:
    """Run the coroutine in this thread's event loop, as `agent.run_sync` does, and leave that loop open.

    HTTP clients of models are reused from run to run and bound to that loop. `asyncio.run` would replace it, and the
    next run of the same agent would fail.
    """
    return asyncio.Runner(loop_factory=_loop_of_thread).run(work)  # never closed: the loop belongs to the thread


def _loop_of_thread() -> asyncio.AbstractEventLoop:
    with suppress(RuntimeError), warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 and 3.13 warn where they create a loop
        loop = asyncio.get_event_loop()
        if not loop.is_closed():
            return loop
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    return loop


@dataclass(frozen=True, slots=True)
class _Kept:
    """The memory of answers, and how long it can keep them."""

    memory: GrantStore
    keeps: Keeps

    @classmethod
    def of(cls, memory: GrantStore | None, otherwise: Keeps) -> _Kept:
        """Return the caller's memory, or a temporary one that lasts for this batch or run."""
        if memory is None:
            return cls(ApprovalMemory(file=None), otherwise)
        return cls(memory, Keeps.EXACTLY if memory.keeps_always else Keeps.SESSION)

    def remember(self, request: ApprovalRequest, decision: ApprovalDecision) -> None:
        grant = grant_from(request, decision)
        if grant is None:
            return
        is_ours = self.keeps not in (Keeps.SESSION, Keeps.EXACTLY)
        # Where nothing outlives the run, *always* means as long as the memory exists.
        self.memory.remember(replace(grant, scope=Scope.SESSION) if is_ours else grant)


@dataclass(frozen=True, slots=True)
class _Asking:
    """How requests are answered: by whom, from what memory, in which mode."""

    approver: ApproverLike | None
    kept: _Kept
    mode: ApprovalMode


async def _collected(
    requests: DeferredToolRequests, how: _Asking, *, worker: Sequence[str], tools: _Tools | None
) -> DeferredToolResults:
    results = DeferredToolResults()
    waiting: list[ApprovalRequest] = []
    for request in _requests(requests, worker, tools):
        decision = _without_person(request, how)
        if decision is None:
            waiting.append(
                request.changed_to(keeps=how.kept.keeps if has_identity(call_of(request)) else Keeps.NOTHING)
            )
        else:
            results.approvals[request.tool_call_id] = result_of(request, decision)
    for request, decision in await _from_person(waiting, how):
        results.approvals[request.tool_call_id] = result_of(request, decision)
    return results


_MODE = Actor(name="mode", kind=ActorKind.MODE)


def _without_person(request: ApprovalRequest, how: _Asking) -> ApprovalDecision | None:
    grant = how.kept.memory.lookup(request.call) if request.call is not None else None
    if grant is not None:
        by = Actor(name=grant.by) if grant.by else None
        return ApprovalDecision(approved=grant.approved, note=grant.note, by=by)
    if how.mode is ApprovalMode.AUTO_APPROVE:
        return ApprovalDecision(approved=True, by=_MODE)
    if how.mode is ApprovalMode.AUTO_DENY:
        return ApprovalDecision(approved=False, note="nobody is asked in this run", by=_MODE)
    return None


async def _from_person(
    waiting: Sequence[ApprovalRequest], how: _Asking
) -> list[tuple[ApprovalRequest, ApprovalDecision]]:
    if not waiting:
        return []
    approver = how.approver
    if approver is None:
        approver = TerminalApprover()
    calls = ApproverCalls(approver, how.mode)
    if len(waiting) > 1 and calls.takes_several:
        together = list(zip(waiting, await calls.ask(waiting), strict=True))
        for request, decision in together:
            how.kept.remember(request, decision)
        return together
    answered: list[tuple[ApprovalRequest, ApprovalDecision]] = []
    for request in waiting:
        # The previous answer may cover this request too.
        decision = _without_person(request, how) or (await calls.ask([request]))[0]
        how.kept.remember(request, decision)
        answered.append((request, decision))
    return answered


def result_of(request: ApprovalRequest, decision: ApprovalDecision) -> ToolApproved | ToolDenied:
    """Convert a decision to PydanticAI's result type."""
    if decision.approved:
        edited = decision.edited_args
        return ToolApproved(override_args=dict(edited) if edited is not None else None)
    return denial(request.tool_name, by=decided_by(decision), reason=decided_why(decision))


_asking: ContextVar[_Asking | None] = ContextVar("signoff_run_with_approval", default=None)


async def run_with_approval(
    agent: Agent[DepsT, OutT],
    prompt: str | Sequence[UserContent] | None = None,
    *,
    approver: ApproverLike | None = None,
    memory: GrantStore | None = None,
    mode: ApprovalMode | str | None = None,
    external: Callable[[ToolCallPart], Any | Awaitable[Any]] | None = None,
    ui: ApproverLike | None = None,
    **options: Any,
) -> AgentRunResult[OutT]:
    """Run an agent until it has a final output, and ask about every call that waits for approval.

    `options` go to `agent.run` unchanged: `deps`, `usage_limits`, `message_history`, `event_stream_handler` …; the
    agent keeps its own output type. Called inside a tool of such a run, it asks the same person, and the request names
    the whole chain of workers. `external` returns the results of externally executed calls. Without `memory`, answers
    are remembered as long as the run lasts. `ui` is another name of `approver`.
    """
    asked = _checked(approver, ui)
    outer = _asking.get()
    how = _Asking(
        approver=asked if asked is not None else (outer.approver if outer else None),
        kept=outer.kept if memory is None and outer is not None else _Kept.of(memory, Keeps.RUN),
        mode=checked_mode(mode) if mode is not None else (outer.mode if outer else ApprovalMode.INTERACTIVE),
    )
    token = _asking.set(how)
    try:
        if signoff_of(agent) is not None:
            if memory is not None or mode is not None:
                raise WrongUse("this agent has a gate of its own: give mode= and memory= to its Signoff")
            return await _through_gate(agent, prompt, how, options)
        return await _until_done(agent, prompt, how, external, options)
    finally:
        _asking.reset(token)


def run_with_approval_sync(
    agent: Agent[DepsT, OutT],
    prompt: str | Sequence[UserContent] | None = None,
    *,
    approver: ApproverLike | None = None,
    memory: GrantStore | None = None,
    mode: ApprovalMode | str | None = None,
    external: Callable[[ToolCallPart], Any | Awaitable[Any]] | None = None,
    ui: ApproverLike | None = None,
    **options: Any,
) -> AgentRunResult[OutT]:
    """`run_with_approval` for code without an event loop."""
    _refuse_running_loop("run_with_approval")
    asked = _checked(approver, ui)
    return _run_sync(
        run_with_approval(agent, prompt, approver=asked, memory=memory, mode=mode, external=external, **options)
    )


async def _through_gate(
    agent: Agent[DepsT, OutT],
    prompt: str | Sequence[UserContent] | None,
    how: _Asking,
    options: Mapping[str, Any],
) -> AgentRunResult[OutT]:
    run_options: dict[str, Any] = {"infer_name": False, **options}
    if how.approver is None:
        return await agent.run(prompt, **run_options)
    with asking(how.approver):
        return await agent.run(prompt, **run_options)


async def _until_done(
    agent: Agent[DepsT, OutT],
    prompt: str | Sequence[UserContent] | None,
    how: _Asking,
    external: Callable[[ToolCallPart], Any | Awaitable[Any]] | None,
    options: Mapping[str, Any],
) -> AgentRunResult[OutT]:
    around = running_call()

    async def answer(ctx: RunContext[Any], requests: DeferredToolRequests) -> DeferredToolResults:
        workers = (*around.workers, agent.name) if agent.name else around.workers
        tools = ctx.tool_manager.tools if ctx.tool_manager is not None else None
        results = await _collected(requests, how, worker=workers, tools=tools)
        for part in requests.calls if external is not None else ():
            made = external(part) if external is not None else None
            results.calls[part.tool_call_id] = await made if inspect.isawaitable(made) else made
        return results

    capabilities = [*(options.get("capabilities") or ()), _Answers(answer)]
    # `agent.run` would name an unnamed agent after the variable it is called through, which is ours, not the user's.
    run_options: dict[str, Any] = {"infer_name": False, **options, "capabilities": capabilities}
    here = (*around.workers, agent.name) if agent.name else around.workers
    token = enter(Frame(here, around.path, how.approver, enclosing_call()))
    try:
        result = await agent.run(prompt, **run_options)
    except UserError as error:
        if is_left_over(error):
            raise WrongUse(_LEFT_OVER) from error
        raise
    finally:
        leave(token)
    if isinstance(result.output, DeferredToolRequests):
        raise WrongUse(_LEFT_OVER)
    return result


class _Answers(HandleDeferredToolCalls[Any]):
    """Answers the waiting calls of a run. Also reports an agent inside a tool that has nobody to ask.

    A `PermissionError` of a tool is a denial, as behind a gate: it is told to the model, and the run goes on.
    """

    async def on_tool_execute_error(
        self, ctx: RunContext[Any], *, call: ToolCallPart, tool_def: ToolDefinition, args: Any, error: Exception
    ) -> Any:
        if is_left_over(error):
            raise WrongUse(ungated(call.tool_name)) from error
        if isinstance(error, PermissionError):
            raise SkipToolExecution(denial(call.tool_name, by=TOOL, reason=words_of(error))) from error
        raise error


_LEFT_OVER = (
    "the run still waits after every approval was answered: it called a tool whose result is made elsewhere, "
    "or an approved tool asked again.\n  Give run_with_approval(external=…) a function that makes such results."
)
