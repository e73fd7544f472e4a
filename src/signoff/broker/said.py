"""What a run came to, kept until every channel that is concerned has told it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from signoff.core.delivery import NEVER, Delivery, DeliveryState
from signoff.core.notice import Said
from signoff.core.redact import redact_text
from signoff.core.run import KeptRun, RunState
from signoff.ports import Transaction

LONGEST = 100_000
"""Of what a run came to. What is longer is cut, and says so."""


def keep_said(
    tx: Transaction, run_id: str, worker: str, state: RunState, text: str, secrets: Sequence[str]
) -> Sequence[str]:
    """Have it told in every channel where something of the run stands, or where it began; which those are."""
    masked = redact_text(text[:LONGEST], secrets=secrets)
    if len(text) > LONGEST:
        masked += f"… ({len(text):,} characters)"
    notice = Said(run=run_id, state=state, worker=worker, text=masked)
    channels = concerned(tx, run_id)
    for channel in channels:
        put_said(tx, channel, notice)
    return channels


def put_said(tx: Transaction, channel: str, notice: Said) -> None:
    """Have it told in one channel, if it does not stand there yet."""
    body = json.dumps({"state": str(notice.state), "worker": notice.worker, "text": notice.text})
    known = tx.deliveries.get(channel, notice.subject)
    if known is None:
        tx.deliveries.put(Delivery(channel=channel, subject=notice.subject, trail=notice.trail, text=body))
    elif known.text != body:
        fresh = replace(known, text=body, state=DeliveryState.DUE, shown=NEVER, live=True, instead="")
        tx.deliveries.put(replace(fresh, attempts=0, since=None, next_at=None, problem=""))


def said_in(delivery: Delivery) -> Said:
    """What a delivery has to tell."""
    body: dict[str, Any] = json.loads(delivery.text)
    return Said(run=delivery.trail, state=RunState(body["state"]), worker=body["worker"], text=body["text"])


def is_of_the_end(delivery: Delivery) -> bool:
    """Whether what a delivery tells is what a run came to, and not only that it goes on."""
    return said_in(delivery).state is not RunState.GOING


def said_at_last(run: KeptRun) -> Said:
    """What is told of a run that is over, where nobody said more."""
    return Said(run=run.id, state=run.state, worker=run.agent.removeprefix("worker:"), text=run.detail)


def concerned(tx: Transaction, run_id: str) -> list[str]:
    """The channels where something of a run stands, or where it began."""
    shown = [
        one.channel
        for one in tx.deliveries.find(trail=run_id)
        if one.shown != NEVER and not one.subject.startswith("said:")
    ]
    run = tx.runs.get(run_id)
    return list(dict.fromkeys([*shown, *(places(run) if run is not None else ())]))


def places(run: KeptRun) -> Mapping[str, str]:
    """Where a run began: an address, by the channel that can read it."""
    said: object = run.options.get("place")
    return {str(k): str(v) for k, v in cast("Mapping[Any, Any]", said).items()} if isinstance(said, Mapping) else {}
