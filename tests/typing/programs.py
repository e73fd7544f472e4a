"""Programs as users type them: pyright (with `src`, each day) and mypy (at night) read this file, nothing runs it.

`assert_type` holds what a caller gets back: the output type of the agent that went in.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, assert_type

from pydantic_ai import Agent, DeferredToolRequests, DeferredToolResults, RunContext
from pydantic_ai.run import AgentRunResult

from signoff import (
    Actor,
    ApprovalDecision,
    ApprovalMode,
    ApprovalRequest,
    Approver,
    Call,
    CallEvent,
    Policy,
    Signoff,
    SignoffError,
    SuspendedRun,
    Verdict,
    build_approval_requests,
    call_agent,
    collect_approvals,
    collect_approvals_sync,
    resume,
    run_with_approval,
    run_with_approval_sync,
)
from signoff.channels import Inbox, open_inbox, terminal_approver
from signoff.errors import ApprovalDenied
from signoff.testing import ScriptedModel, scripted_approver
from signoff.toolsets import filesystem_ro, with_approval
from signoff.workers import Workers, load_settings


@dataclass
class Deps:
    user: str


@dataclass
class Refund:
    amount: int


class Desk:
    """Somebody's own approver."""

    def choose(self, request: ApprovalRequest, *, mode: ApprovalMode) -> ApprovalDecision:
        return ApprovalDecision(approved=request.tool_name == "refund", by=Actor(name="ana"))


def small_ones(request: ApprovalRequest) -> bool:
    return request.args.get("amount") == 1


async def later(request: ApprovalRequest) -> ApprovalDecision:
    return ApprovalDecision(approved=False, note=request.id)


def watch(event: CallEvent) -> None:
    print(event.what)


def user_of(ctx: RunContext[Any]) -> str:
    return str(ctx.deps)


desk: Approver = Desk()
gate = Signoff("signoff.yaml", approver=desk, mode="interactive", observe=watch, requester=user_of, wait=30)
Signoff([{"ask": "refund"}], approver=small_ones)
Signoff(Policy.from_rules([{"ask": "refund"}]), approver=later, store="sqlite:approvals.db")
agent = Agent("test", deps_type=Deps, output_type=Refund, capabilities=[gate])
plain: Agent[None, str] = Agent(ScriptedModel([{"say": "hello"}]), toolsets=[filesystem_ro(".")])
either: Agent[None, str | DeferredToolRequests] = Agent("test", output_type=[str, DeferredToolRequests])


async def runs(ctx: RunContext[Deps]) -> None:
    result = await run_with_approval(agent, "Refund it", approver=terminal_approver(), deps=Deps("ana"))
    assert_type(result, AgentRunResult[Refund])
    assert_type(result.output.amount, int)
    assert_type(run_with_approval_sync(plain, "hello", approver=scripted_approver(["approve"])), AgentRunResult[str])
    assert_type(await resume(agent, "run-id"), AgentRunResult[Refund])
    assert_type(await resume(agent, SuspendedRun.of(result), deps=Deps("ana")), AgentRunResult[Refund])
    assert_type(await call_agent(ctx, plain, "What do you think?"), str)
    suspended = await either.run("go")
    if isinstance(suspended.output, DeferredToolRequests):
        assert_type(await collect_approvals(suspended.output, desk), DeferredToolResults)
        assert_type(collect_approvals_sync(suspended.output, small_ones), DeferredToolResults)
        for request in build_approval_requests(suspended.output):
            assert_type(request, ApprovalRequest)


async def answers() -> None:
    inbox: Inbox = open_inbox("sqlite:approvals.db", people={"ana": ["ops"]})
    for request in await inbox.pending():
        settled = await inbox.answer(request.id, ApprovalDecision(approved=True, by=Actor(name="ana")))
        assert_type(settled, ApprovalRequest)
    try:
        await gate.answer("id", ApprovalDecision(approved=True), by="ana")
    except ApprovalDenied as denied:
        error: SignoffError = denied
        raise error from denied


def rules(policy: Policy, call: Call) -> None:
    assert_type(policy.judge(call), Verdict)
    with_approval(filesystem_ro("."), [{"ask": "read"}])
    Workers(load_settings("signoff.yaml")).worker("main")


async def refused() -> None:
    run_with_approval_sync("no agent", "go")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType, reportCallIssue]
    Signoff("signoff.yaml", on_denied="shrug")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    Signoff("signoff.yaml", aprover=desk)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    await resume(agent, 7)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType, reportCallIssue]
