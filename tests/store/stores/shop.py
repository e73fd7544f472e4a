"""The agent whose runs wait in the stores that were written by 0.1. Both versions import this file."""

from __future__ import annotations

from typing import Any

from pydantic_ai import Agent, DeferredToolRequests
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from signoff import Policy, Signoff

RULES = [{"ask": "pay"}, {"ask": "refund", "by": "ops"}, {"allow": "look"}]


def _turn(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    """Calls every tool that the prompt names, then says what they returned."""
    [prompt] = [part.content for part in messages[0].parts if part.part_kind == "user-prompt"][:1]
    done = [part for message in messages for part in message.parts if isinstance(part, ToolReturnPart)]
    if done:
        return ModelResponse(parts=[TextPart(" ".join(str(part.content) for part in done))])
    calls = [word.split("=") for word in str(prompt).split()]
    return ModelResponse(
        parts=[ToolCallPart(tool, {"amount": int(amount)}, f"{prompt}-{tool}") for tool, amount in calls]
    )


def shop(store: Any, made: list[str]) -> tuple[Signoff, Agent[None, Any]]:
    """The agent, and its gate on a store; what its tools did is noted."""
    policy = Policy.from_rules(RULES, root="/")  # the same wherever this runs: an answer is bound to it
    signoff = Signoff(policy, store=store, wait="suspend", people={"ana": {"ops"}, "ben": set[str]()})
    agent: Agent[None, Any] = Agent(
        FunctionModel(_turn), output_type=[str, DeferredToolRequests], capabilities=[signoff], name="shop"
    )

    @agent.tool_plain
    def pay(amount: int) -> str:
        made.append(f"pay {amount}")
        return f"paid {amount}"

    @agent.tool_plain
    def refund(amount: int) -> str:
        made.append(f"refund {amount}")
        return f"refunded {amount}"

    @agent.tool_plain
    def look(amount: int) -> str:
        return f"looked {amount}"

    return signoff, agent
