"""A chain of agents, each with a tool that runs the next one; the innermost wants to pay."""

from __future__ import annotations

import os
from typing import Any

from pydantic_ai import Agent, DeferredToolRequests, RunContext
from pydantic_ai.messages import ModelMessage, ModelResponse
from pydantic_ai.models.function import AgentInfo
from tests.nested.cells import DONE, Cell, Log

from signoff import Approver, Signoff, call_agent
from signoff.ports import Clock, Store
from signoff.testing import ScriptedModel
from signoff.toolsets import idempotency_key
from signoff.workers.scripted_model import _results

RULES: list[dict[str, Any]] = [{"allow": ["ask", "look"]}, {"ask": "pay", "timeout": "1h"}]
OUTPUT: Any = [str, DeferredToolRequests]


class Listening(ScriptedModel):
    """A scripted model that writes down what it is told."""

    def __init__(self, agent: str, turns: list[dict[str, Any]], told: Log) -> None:
        super().__init__(turns)
        self._agent, self._told = agent, told

    def _answer(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        turn = sum(isinstance(one, ModelResponse) for one in messages)
        self._told.add(agent=self._agent, turn=turn, results=_results(messages))
        return super()._answer(messages, info)


class Chain:
    """The agents of a cell, made anew. `outermost` is the one to run."""

    def __init__(self, cell: Cell, store: Store, *, wait: Any, approver: Approver | None = None, clock: Clock) -> None:
        self.cell = cell
        inner: Agent[Any, Any] | None = None
        for name in reversed(cell.agents):
            self.gate = Signoff(RULES, store=store, wait=wait, approver=approver, clock=clock, nested=cell.unchanged)
            inner = self._outer(name, inner) if inner is not None else self._innermost(name)
        assert inner is not None
        self.outermost = inner

    def _agent(self, name: str, calls: list[dict[str, Any]], says: str, *tools: Any) -> Agent[Any, Any]:
        turns = [{"calls": [{"tool": "look", "id": f"{name}-look"}, *calls]}, {"say": says}]
        model = Listening(name, turns, self.cell.told)
        agent: Agent[Any, Any] = Agent(model, name=name, output_type=OUTPUT, tools=tools, capabilities=[self.gate])

        @agent.tool_plain
        async def look() -> str:  # in no thread: it is over before a run beside it asks
            self._did(name, "look")
            return f"{name} looked"

        return agent

    def _innermost(self, name: str) -> Agent[Any, Any]:
        def pay(amount: int) -> str:
            """Pay money."""
            self._did(name, "pay", amount=amount)
            return f"paid {amount}"

        calls = [{"tool": "pay", "args": {"amount": one}, "id": f"{name}-pay-{one}"} for one in self.cell.amounts]
        return self._agent(name, calls, DONE, pay)

    def _outer(self, name: str, inner: Agent[Any, Any]) -> Agent[Any, Any]:
        async def ask(ctx: RunContext[Any], question: str) -> str:
            """Ask another agent."""
            self._did(name, "ask")
            if self.cell.unchanged:
                return (await inner.run(question)).output
            return await call_agent(ctx, inner, question)

        calls = [{"tool": "ask", "args": {"question": f"{name} wants to know"}, "id": f"{name}-ask"}]
        return self._agent(name, calls, f"{name} heard: {{{{last}}}}", ask)

    def _did(self, agent: str, tool: str, **args: Any) -> None:
        self.cell.effects.add(agent=agent, tool=tool, args=args, key=idempotency_key(), pid=os.getpid())
