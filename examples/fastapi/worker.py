"""The worker: goes on with runs that were answered, and with those whose process died. Start as many as you like."""

from __future__ import annotations

import asyncio

from pydantic_ai import DeferredToolRequests
from shop import agent, signoff

from signoff import resume
from signoff.errors import Halted, RunOver, RunTaken, StoreUnavailable


async def main() -> None:
    while True:
        try:
            await look()
        except StoreUnavailable as why:  # the database restarts: try again
            print(why, flush=True)
        await asyncio.sleep(1)


async def look() -> None:
    """Resume every run that can go on."""
    await signoff.broker.sweep()  # deadlines, and calls whose process died
    for status in await signoff.broker.runs.list(going=True):
        if status.word in ("ready", "died"):
            await go_on(status.run.id, status.run.requester)


async def go_on(run_id: str, requester: str) -> None:
    try:
        result = await resume(agent, run_id, deps=requester)
    except (
        RunTaken,
        RunOver,
        Halted,
        StoreUnavailable,
    ) as why:  # a faster worker, `signoff halt`: the run goes on later
        print(why, flush=True)
    except Exception as error:  # of a tool or a model: the run has failed, others go on
        print(f"run {run_id} failed: {error}", flush=True)
    else:
        waits = isinstance(result.output, DeferredToolRequests)
        print(f"run {run_id}: {'asks again' if waits else result.output}", flush=True)


if __name__ == "__main__":
    asyncio.run(main())
