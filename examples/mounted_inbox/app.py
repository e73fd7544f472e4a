"""A shop's own web app, with the inbox of its agent mounted in it: the app's login says who answers."""

from __future__ import annotations

import hmac
import os
from pathlib import Path
from typing import Any

from fastapi import FastAPI, HTTPException, Request
from pydantic import BaseModel
from pydantic_ai import Agent, DeferredToolRequests
from starlette.requests import HTTPConnection

from signoff import Actor, Signoff, resume
from signoff.server import inbox_app
from signoff.testing import ScriptedModel

HERE = Path(__file__).parent
PROXY_SECRET = os.environ.get("PROXY_SECRET", "")
"""What only the reverse proxy and this app know."""
if not PROXY_SECRET:  # an empty one would be equal to none: everybody could say who they are
    raise SystemExit("Set PROXY_SECRET to the secret that the reverse proxy sends with each request.")

signoff = Signoff(HERE / "signoff.yaml", wait="suspend", store=os.environ.get("SIGNOFF_STORE", "sqlite:approvals.db"))
agent = Agent(
    name="support",
    model=os.environ.get("MODEL") or ScriptedModel.from_file(HERE / "turns.yaml"),
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
    return f"refunded {amount} EUR for order {order}"


def logged_in(connection: HTTPConnection) -> Actor | None:
    """Who is logged in, by the word of the reverse proxy that logs people in. Put your own login here.

    A header is as good as whoever sets it: the proxy has to drop these two from what clients send.
    """
    name, secret = connection.headers.get("x-forwarded-user", ""), connection.headers.get("x-proxy-secret", "")
    if not name or not hmac.compare_digest(secret.encode(), PROXY_SECRET.encode()):
        return None
    return Actor(name=name, via="web")


app = FastAPI()
app.mount("/approvals", inbox_app(signoff, user=logged_in))


class Task(BaseModel):
    prompt: str


@app.post("/tasks")
async def start(task: Task, request: Request) -> dict[str, Any]:
    """Have the agent do something; where it waits for a person, that stands in the inbox."""
    if logged_in(request) is None:
        raise HTTPException(401, "not logged in")
    result = await agent.run(task.prompt)
    if not isinstance(result.output, DeferredToolRequests):
        return {"result": result.output}
    asked = await signoff.requests_of(result.conversation.conversation_id)
    return {"run": asked[0].run, "waits": [one.id for one in asked if one.state == "pending"]}


@app.post("/tasks/{run}/resume")
async def go_on(run: str, request: Request) -> dict[str, Any]:
    """Go on with what was answered."""
    if logged_in(request) is None:
        raise HTTPException(401, "not logged in")
    result = await resume(agent, run)
    return {"result": result.output if isinstance(result.output, str) else None}
