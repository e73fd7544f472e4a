"""Waiting in place for answers: the approver is asked, and whoever else answers first wins."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from signoff.core.request import ApprovalRequest, State
from signoff.errors import NobodyHere
from signoff.gate.gate import Gate


async def wait_for_answers(gate: Gate, requests: Sequence[ApprovalRequest]) -> Mapping[str, ApprovalRequest]:
    """Those of the requests that were settled, by id, when all were, or nobody is left to ask, or time is up."""
    broker = gate.broker
    asking = asyncio.ensure_future(gate.desk.ask(requests, gate.who_is_asked(), gate.mode))
    waits = {request.id: asyncio.ensure_future(broker.wait(request.id)) for request in requests}
    limit = asyncio.ensure_future(broker.clock.sleep_until(broker.clock.now() + gate.wait)) if gate.wait else None
    everything: list[asyncio.Future[Any]] = [asking, *waits.values(), *([limit] if limit else [])]
    try:
        while not all(wait.done() for wait in waits.values()):
            running = [task for task in everything if not task.done()]
            if limit is not None and limit.done():
                break
            if asking.done() and _nobody_else(asking, requests, waited=limit is not None):
                break
            await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
        if asking.done():
            _raise_failure(asking)
    finally:
        for task in everything:
            task.cancel()
        await asyncio.gather(*everything, return_exceptions=True)
    settled = [await broker.get(request.id) for request in requests]
    return {request.id: request for request in settled if request.state is not State.PENDING}


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
