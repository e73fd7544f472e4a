"""Agents for the gate's tests: a scripted model, and tools that write down what they did."""

from __future__ import annotations

from typing import Any

from pydantic_ai import Agent, DeferredToolRequests
from pydantic_ai.messages import ModelMessage, ToolReturnPart

from signoff import Signoff
from signoff.testing import ScriptedModel

ASK_ALL: list[dict[str, Any]] = []
"""No rules: every call is asked about."""


class Till:
    """Tools with an effect one can count."""

    def __init__(self) -> None:
        self.paid: list[tuple[int, str]] = []

    def pay(self, amount: int, to: str = "shop") -> str:
        """Pay money."""
        self.paid.append((amount, to))
        return f"paid {amount} to {to}"

    def look(self) -> int:
        """Look at the balance."""
        return 100


def calls(*made: tuple[str, dict[str, Any]]) -> dict[str, Any]:
    """A turn of the model that calls tools."""
    return {"calls": [{"tool": tool, "args": args} for tool, args in made]}


def pays(*amounts: int) -> list[dict[str, Any]]:
    """A script: one turn with a payment for each amount, then the end."""
    return [calls(*(("pay", {"amount": amount}) for amount in amounts)), {"say": "{{last}}"}]


def agent_with(
    signoff: Signoff, turns: list[dict[str, Any]], till: Till, *, suspends: bool = False, **options: Any
) -> Agent[Any, Any]:
    """An agent with the till's tools behind a gate."""
    output: Any = [str, DeferredToolRequests] if suspends else str
    return Agent(
        ScriptedModel(turns),
        name="cashier",
        output_type=output,
        tools=[till.pay, till.look],
        capabilities=[*options.pop("capabilities", ()), signoff],
        **options,
    )


def returns(messages: list[ModelMessage]) -> list[tuple[str, Any]]:
    """(outcome, content) of every tool return in a history."""
    return [
        (part.outcome, part.content)
        for message in messages
        for part in message.parts
        if isinstance(part, ToolReturnPart)
    ]
