"""Migrate the data of an older store into the tables of this version, where SQL alone cannot.

Version 3 gave columns to what version 2, the one of signoff 0.1, kept as JSON: deliveries, and much that was stored
among the settings. Version 4 counts how people answered.
"""

from __future__ import annotations

import json
import os
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from typing import Any, cast

from signoff.core.codec import load_process, load_run
from signoff.core.conversation import ConversationLog
from signoff.core.delivery import NEVER, Delivery, DeliveryState
from signoff.core.lease import Lease, Outage
from signoff.core.lifecycle import FINAL
from signoff.core.mode import ApprovalMode
from signoff.core.notice import RunResult
from signoff.core.run import EnteredCall, RunSetup, RunState, SavedRun
from signoff.core.subject import Subject, SubjectKind
from signoff.errors import SchemaError
from signoff.processes import is_alive
from signoff.store.queries import Queries
from signoff.store.rows import like_columns, request_of, told
from signoff.store.sql import Sql, SqlChain, SqlTransaction, Wire

PAGE = 500
"""Requests that are read at once."""


def refuse_while_used(sql: Sql, where: str, now: datetime) -> None:
    """Raise `SchemaError` if a process of the older version is alive: whatever it still writes would be lost."""
    for (body,) in sql.rows("processes"):
        process = load_process(body)
        if process.pid != os.getpid() and is_alive(process, now):
            raise SchemaError(
                f"{where} was created by an older signoff, and process {process.pid} on "
                f"{process.host.partition('/')[0]} still uses it; stop that process, then run: signoff db upgrade"
            )


def carry(version: int, wire: Wire, queries: Queries) -> None:
    """Migrate the data of a store that had this version. Raises `SchemaError`.

    Call it after all schema migrations were applied.
    """
    tx = SqlTransaction(wire, queries, SqlChain(wire, queries))
    if version < 3:
        _carry_texts(tx)
    if version < 4:
        _carry_answers(tx)


def _carry_answers(tx: SqlTransaction) -> None:
    """Fill the columns that earlier answers are counted by, for requests that were answered and for open ones."""
    last = ""
    while rows := tx.sql.rows("requests_after", last, PAGE):
        for row in rows:
            request, last = request_of(row), row[0]
            if request.call is not None and (request.answer or request.state not in FINAL):
                tx.sql.run("put_answer", request.answer, *like_columns(request.call)[1:], request.id)


def _carry_texts(tx: SqlTransaction) -> None:
    for (body,) in tx.sql.rows("old_deliveries"):
        with _told("delivery", body):
            tx.deliveries.put(_delivery(json.loads(body)))
    settings = {told(name): told(value) for name, value in tx.sql.rows("settings")}
    with _told("setting", "channels"):
        for channel in json.loads(settings.get("channels", "[]")):
            tx.leases.put(_lease(channel, json.loads(settings.get(f"channel:{channel}", "{}"))))
    for name, value in settings.items():
        with _told("setting", name):
            if _carry_setting(tx, name, value):
                tx.settings.put(name, None)
    for (body,) in tx.sql.rows("old_runs"):
        data: dict[str, Any] = json.loads(body)
        options = data.pop("options", None)
        if isinstance(options, Mapping):
            with _told("run", body):
                tx.runs.put(_run(load_run(json.dumps(data)), cast("Mapping[str, Any]", options)))
    tx.sql.run("drop_old_deliveries")


@contextmanager
def _told(what: str, which: str) -> Generator[None]:
    """Turn an error about an unreadable row into a `SchemaError` that names the row."""
    try:
        yield
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise SchemaError(f"a {what} is stored in an unknown form ({error!r}): {which[:200]}") from error


def _run(run: SavedRun, options: Mapping[str, Any]) -> SavedRun:
    """A run with what signoff 0.1 kept as its options. Values of an unexpected type are left out."""

    def text(name: str) -> str:
        return value if isinstance(value := options.get(name), str) else ""

    def part(name: str) -> Mapping[str, Any] | None:
        return cast("Mapping[str, Any]", value) if isinstance(value := options.get(name), Mapping) else None

    if "schema" in options:
        entered = EnteredCall(
            tool=text("tool"),
            args_digest=text("args"),
            schema_hash=text("schema"),
            policy_revision=text("policy"),
            granted="granted" in options,
        )
        return replace(run, entered=entered)

    caller = part("caller") or {}
    setup = RunSetup(
        directory=text("folder"),
        project=text("project"),
        project_id=text("project_id"),
        policy=text("policy"),
        model=text("model"),
        mode=ApprovalMode(options.get("mode", ApprovalMode.INTERACTIVE)),
        ask=tuple(caller.get("ask", ())),
        deny=tuple(caller.get("deny", ())),
        rules=tuple(caller.get("files", ())),
        worker_file=text("file"),
        input=part("input"),
        files=tuple(options.get("files", ())),
        chat=bool(options.get("chat")),
        after=text("after"),
    )
    return replace(run, setup=setup, places=_places(options.get("place")))


def _places(place: object) -> dict[str, str]:
    if not isinstance(place, Mapping):
        return {}
    return {str(channel): str(at) for channel, at in cast("Mapping[Any, Any]", place).items()}


def _carry_setting(tx: SqlTransaction, name: str, value: str) -> bool:
    """Move a setting to its own table. Returns whether it now has one, so that the setting can be deleted."""
    kind, _, rest = name.partition(":")
    if kind == "opened":
        for args_digest, person in json.loads(value):
            tx.readers.add(rest, args_digest, person)
    elif kind == "talk":
        log: dict[str, Any] = json.loads(value)
        recent = tuple(dict.fromkeys(log.get("lately", ())))
        run, heard, turns = log.get("run", ""), log.get("heard", ""), log.get("turns", {})
        tx.conversations.put(ConversationLog(name=rest, run=run, heard=heard, recent=recent, turns=turns))
    elif name.startswith("policy "):
        tx.policies.put(name.removeprefix("policy "), value)
    else:
        return name == "channels" or kind == "channel"
    return True


def _delivery(body: Mapping[str, Any]) -> Delivery:
    subject = Subject.parse(body["subject"])
    text: str = body.get("text", "")
    result, marks = None, ()
    if subject.kind is SubjectKind.RESULT:
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
        down = Outage(
            since=datetime.fromisoformat(said["since"]),
            problem=said["problem"],
            attempts=said["attempts"],
            due=_moment(said["next_at"]),
            hopeless=said["hopeless"],
        )
    return Lease(channel=channel, process=body.get("process", ""), backup_for=body.get("backup_for", ""), down=down)


def _moment(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None
