"""The tools and the model of the agents on stage. Made once, before anything forks: that takes longer than a trip."""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from pydantic_ai import RunContext, Tool
from pydantic_ai.messages import ModelMessage, ModelResponse
from pydantic_ai.models.function import AgentInfo
from tests.crash.faults import Faults

from signoff.testing import ScriptedModel

if TYPE_CHECKING:
    from tests.crash.stage import Stage

on_stage: ContextVar[Stage] = ContextVar("stage")
"""Whose tools they are."""


async def look() -> str:
    """Look at the balance."""
    return await on_stage.get().done("look")


async def pay(amount: int, to: str) -> str:
    """Pay money."""
    return await on_stage.get().done("pay", amount=amount, to=to)


async def drop(what: str) -> str:
    """Throw something away."""
    return await on_stage.get().done("drop", what=what)


async def wipe() -> str:
    """Throw everything away."""
    return await on_stage.get().done("wipe")


async def hand(ctx: RunContext[Any], job: str) -> str:
    """Have another agent do a job."""
    return await on_stage.get().hand("hand", ctx, job)


async def pass_on(ctx: RunContext[Any], job: str) -> str:
    """Have the agent after that do it."""
    return await on_stage.get().hand("pass_on", ctx, job)


AT_ONCE = [Tool(tool) for tool in (look, pay, drop, wipe)]
IN_ORDER = [Tool(tool, sequential=True) for tool in (look, pay, drop, wipe)]
HANDING = [Tool(tool, sequential=True) for tool in (hand, pass_on)]


class Model(ScriptedModel):
    """A script whose every turn is a point where the process may die."""

    def __init__(self, turns: list[dict[str, Any]], faults: Faults, whose: str = "") -> None:
        super().__init__(turns)
        self._faults, self._whose = faults, whose

    def _answer(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        number = 1 + sum(isinstance(one, ModelResponse) for one in messages)
        self._faults.at(f"model{self._whose}, turn {number}")
        return super()._answer(messages, info)
