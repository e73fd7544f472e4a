"""The agent. The web app and the worker both import it, so that they mean the same tools, policy and store."""

from __future__ import annotations

import os
from pathlib import Path

from pydantic_ai import Agent, DeferredToolRequests

from signoff import Signoff
from signoff.testing import ScriptedModel
from signoff.toolsets import idempotency_key

HERE = Path(__file__).parent
REFUNDS = Path("refunds.txt")

signoff = Signoff(
    HERE / "signoff.yaml",
    wait="suspend",  # a call that needs a person ends the HTTP request, not the run
    store=os.environ.get("SIGNOFF_STORE", "sqlite:approvals.db"),  # or postgresql://…
    requester=lambda ctx: ctx.deps,  # for `not_by: requester`
)
agent = Agent(
    name="support",
    model=os.environ.get("MODEL") or ScriptedModel.from_file(HERE / "turns.yaml"),
    deps_type=str,  # who is logged in
    output_type=[str, DeferredToolRequests],
    instructions="You help the support team of a shop.",
    capabilities=[signoff],
)


@agent.tool_plain
def find_order(order: int) -> str:
    """Look an order up."""
    return f"order {order}: one teapot, 40 EUR, arrived broken"


@agent.tool_plain
def refund(order: int, amount: float) -> str:
    """Pay money back."""
    with REFUNDS.open("a", encoding="utf-8") as file:  # a bank would be handed the key, and pay once for it
        file.write(f"{order} {amount} {idempotency_key()}\n")
    return f"refunded {amount} EUR for order {order}"
