"""Waiting in place for answers: the approver is asked, and whoever else answers first wins."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from signoff.broker import Broker
from signoff.core.lifecycle import OPEN, settled_text
from signoff.core.request import ApprovalRequest
from signoff.errors import NobodyHere
from signoff.gate.gate import Gate
from signoff.ports import ApprovalUI


async def wait_for_answers(gate: Gate, requests: Sequence[ApprovalRequest]) -> Mapping[str, ApprovalRequest]:
    """Those of the requests that were settled, by id, when all were, or nobody is left to ask, or time is up."""
    broker, ui = gate.broker, gate.who_is_asked()
    asking = asyncio.ensure_future(gate.desk.ask(requests, ui, gate.mode))
    waits = {request.id: asyncio.ensure_future(_told(broker, ui, request.id)) for request in requests}
    limit = asyncio.ensure_future(broker.clock.sleep_until(broker.clock.now() + gate.wait)) if gate.wait else None
    everything: list[asyncio.Future[Any]] = [asking, *waits.values(), *([limit] if limit else [])]
    try:
        while not all(wait.done() for wait in waits.values()):
            if limit is not None and limit.done():
                break
            if asking.done() and _nobody_else(asking, requests, waited=limit is not None):
                break
            running = [task for task in everything if not task.done()]
            await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
        if asking.done():
            _raise_failure(asking)
    finally:
        for task in everything:
            task.cancel()
        for request in requests:
            _withdraw(ui, request.id, "nobody waits for the answer here any longer")
        await asyncio.gather(*everything, return_exceptions=True)
    settled = [_answer_of(waits[request.id]) or await broker.get(request.id) for request in requests]
    return {request.id: request for request in settled if request.state not in OPEN}


async def _told(broker: Broker, ui: ApprovalUI, request_id: str) -> ApprovalRequest:
    """Wait until a request is settled, and tell the user interface, which may still be asking about it."""
    settled = await broker.wait(request_id)
    _withdraw(ui, request_id, settled_text(settled, datetime.astimezone))
    return settled


def _answer_of(wait: asyncio.Future[ApprovalRequest]) -> ApprovalRequest | None:
    return wait.result() if wait.done() and not wait.cancelled() and wait.exception() is None else None


def _withdraw(ui: ApprovalUI, request_id: str, why: str) -> None:
    withdraw = getattr(ui, "withdraw", None)
    if callable(withdraw):
        withdraw(request_id, why)


def _nobody_else(asking: asyncio.Future[None], requests: Sequence[ApprovalRequest], *, waited: bool) -> bool:
    if asking.exception() is not None:
        return True
    # An answer was given and more are needed. They come from elsewhere, if anything bounds the wait for them.
    return not waited and all(request.deadline is None for request in requests)


def _raise_failure(asking: asyncio.Future[None]) -> None:
    if asking.cancelled():
        return
    error = asking.exception()
    if error is not None and not isinstance(error, NobodyHere):
        raise error
