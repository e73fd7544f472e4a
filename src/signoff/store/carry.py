"""Carries what a store of an older version holds into the tables of this one, where SQL alone cannot.

Version 3 gave columns to what version 2, the one of signoff 0.1, kept as JSON: deliveries, and much that had found a
place among the settings.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from signoff.core.codec import load_run
from signoff.core.conversation import ConversationLog
from signoff.core.delivery import NEVER, Delivery, DeliveryState
from signoff.core.lease import Down, Lease
from signoff.core.notice import RunResult
from signoff.core.run import RunState
from signoff.core.subject import Kind, Subject
from signoff.store.queries import Queries
from signoff.store.rows import told
from signoff.store.sql import Chain, SqlTransaction, Wire


def carry(version: int, wire: Wire, queries: Queries) -> None:
    """Carry over what a store of this version held, after all steps were applied."""
    if version >= 3:
        return
    tx = SqlTransaction(wire, queries, Chain(wire, queries))
    sql = tx.sql
    for (body,) in sql.rows("old_deliveries"):
        tx.deliveries.put(_delivery(json.loads(body)))
    settings = {told(name): told(value) for name, value in sql.rows("old_settings")}
    for channel in json.loads(settings.get("channels", "[]")):
        tx.leases.put(_lease(channel, json.loads(settings.get(f"channel:{channel}", "{}"))))
    for name, value in settings.items():
        _carry_setting(tx, name, value)
        tx.settings.put(name, None)
    for (body,) in sql.rows("old_runs"):
        run = load_run(body)
        options = dict(run.options)
        places: dict[str, str] = options.pop("place", {})
        tx.runs.put(replace(run, options=options, places=places))
    sql.run("drop_old_deliveries")


def _carry_setting(tx: SqlTransaction, name: str, value: str) -> None:
    kind, _, rest = name.partition(":")
    if kind == "opened":
        for args_digest, person in json.loads(value):
            tx.readers.add(rest, args_digest, person)
    elif kind == "talk":
        log: dict[str, Any] = json.loads(value)
        recent = tuple(dict.fromkeys(log.get("lately", ())))
        tx.conversations.put(
            ConversationLog(name=rest, run=log["run"], heard=log["heard"], recent=recent, turns=log["turns"])
        )
    elif name.startswith("policy "):
        tx.policies.put(name.removeprefix("policy "), value)


def _delivery(body: Mapping[str, Any]) -> Delivery:
    subject = Subject.parse(body["subject"])
    text: str = body.get("text", "")
    result, marks = None, ()
    if subject.kind is Kind.RESULT:
        said = json.loads(text)
        result = RunResult(run=subject.about, state=RunState(said["state"]), worker=said["worker"], text=said["text"])
    elif text:
        marks = json.loads(text)
    return Delivery(
        channel=body["channel"],
        subject=subject,
        trail=body["trail"],
        state=DeliveryState(body.get("state", DeliveryState.DUE)),
        place=body.get("at", ""),
        shown=body.get("shown", NEVER),
        live=body.get("live", True),
        may_stand="may stand" in marks,
        hopeless="hopeless" in marks,
        attempts=body.get("attempts", 0),
        since=_moment(body.get("since")),
        due=_moment(body.get("next_at")),
        problem=body.get("problem", ""),
        instead=body.get("instead", ""),
        result=result,
    )


def _lease(channel: str, body: Mapping[str, Any]) -> Lease:
    down = None
    if (said := body.get("down")) is not None:
        down = Down(
            since=datetime.fromisoformat(said["since"]),
            problem=said["problem"],
            attempts=said["attempts"],
            due=_moment(said["next_at"]),
            hopeless=said["hopeless"],
        )
    return Lease(channel=channel, process=body.get("process", ""), backup_for=body.get("backup_for", ""), down=down)


def _moment(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None
