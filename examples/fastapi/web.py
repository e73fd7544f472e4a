"""The web app: starts runs, lists what waits, takes answers, tells results. It resumes nothing: worker.py does."""

from __future__ import annotations

import hmac
import os
from dataclasses import asdict
from typing import Annotated, Any

from fastapi import Depends, FastAPI, Header, HTTPException, Request
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field
from pydantic_ai import DeferredToolRequests
from shop import agent, signoff

from signoff import Actor, ApprovalDecision, ApprovalRequest, SignoffError
from signoff.channels import card_for
from signoff.errors import (
    AlreadySettled,
    Halted,
    NotEntitled,
    RequestError,
    StoreUnavailable,
    UnknownRequest,
    UnknownRun,
)

PROXY_SECRET = os.environ.get("PROXY_SECRET", "")
"""What only the reverse proxy and this app know."""
if not PROXY_SECRET:  # an empty one would be equal to none: everybody could say who they are
    raise SystemExit("Set PROXY_SECRET to the secret that the reverse proxy sends with each request.")

app = FastAPI()


def logged_in(x_forwarded_user: Annotated[str, Header()] = "", x_proxy_secret: Annotated[str, Header()] = "") -> str:
    """Who is logged in, by the word of the reverse proxy that logs people in. Put your own login here.

    A header is as good as whoever sets it: the proxy has to drop these two from what clients send.
    """
    if not x_forwarded_user or not hmac.compare_digest(x_proxy_secret.encode(), PROXY_SECRET.encode()):
        raise HTTPException(401, "not logged in")
    return x_forwarded_user


Person = Annotated[str, Depends(logged_in)]


class Task(BaseModel):
    prompt: str


class Answer(BaseModel):
    approve: bool
    note: str = Field(default="", max_length=4000)


@app.post("/runs")
async def start(task: Task, person: Person) -> JSONResponse:
    """Start a run: 200 with its result, or 202 with what a person has to answer first."""
    result = await agent.run(task.prompt, deps=person)
    if not isinstance(result.output, DeferredToolRequests):
        return JSONResponse({"result": result.output})
    asked = await signoff.requests_of(result.conversation.conversation_id)
    waits = [shown(one, person) for one in asked if one.state == "pending"]
    return JSONResponse({"run": asked[0].run, "waits": waits}, 202)


@app.get("/requests")
async def waiting(person: Person) -> list[dict[str, Any]]:
    """Everything that waits for a person, oldest first."""
    return [shown(one, person) for one in await signoff.pending()]


@app.post("/requests/{request_id}")
async def answer(request_id: str, answer: Answer, person: Person) -> dict[str, str]:
    """Approve or deny one call, as whoever is logged in."""
    decision = ApprovalDecision(approved=answer.approve, note=answer.note)
    settled = await signoff.answer(request_id, decision, by=Actor(name=person, via="web"))
    return {"state": settled.state}


@app.get("/runs/{run_id}")
async def run(run_id: str, person: Person) -> dict[str, Any]:
    """How a run stands, and the first 200 characters of what it came to."""
    status = await signoff.broker.runs.status(run_id)
    return {"state": status.word, "waits": [one.id for one in status.waiting], "result": status.run.detail}


def shown(request: ApprovalRequest, person: str) -> dict[str, Any]:
    """A request for a page to draw: texts are whole, secrets masked, hidden characters spelled out."""
    return {"id": request.id, "card": asdict(card_for(request, remember=False, viewer=person))}


REFUSALS = {
    UnknownRequest: 404,
    UnknownRun: 404,
    NotEntitled: 403,
    AlreadySettled: 409,
    RequestError: 422,  # any other: a call that cannot be shown cannot be approved
    Halted: 503,
    StoreUnavailable: 503,
}


@app.exception_handler(SignoffError)
async def refused(request: Request, error: SignoffError) -> JSONResponse:
    """What signoff refuses, in its own words: who was faster, which role is missing."""
    codes = (code for kind, code in REFUSALS.items() if isinstance(error, kind))
    return JSONResponse({"detail": str(error)}, next(codes, 500))
