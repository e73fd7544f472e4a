"""Between the columns of a database and the types of the core."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any

from signoff.core.codec import (
    CHANGING,
    dump_delivery,
    dump_grant,
    dump_question,
    load_claim,
    load_decision,
    load_question,
    load_votes,
)
from signoff.core.delivery import Delivery
from signoff.core.grant import Grant
from signoff.core.inbox import Item
from signoff.core.request import ApprovalRequest, State
from signoff.core.run import KeptRun, Segment

Row = Sequence[Any]

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_TICK = timedelta(microseconds=1)
_NEVER = -(2**62)
"""Stands for no time at all in a column that is sorted by."""
_ODD = "\x01json:"
"""Begins a text that a database would not take as it is."""
_DIGEST = re.compile("[0-9a-f]{64}")


def micros(moment: datetime | None) -> int | None:
    """Microseconds since 1970, UTC."""
    return None if moment is None else (moment - EPOCH) // _TICK


def moment(microseconds: int | None) -> datetime | None:
    return None if microseconds is None else EPOCH + timedelta(microseconds=microseconds)


def kept(text: str) -> str:
    """A text as any database takes it. Different texts stay different."""
    if "\0" in text or text.startswith(_ODD):
        return _ODD + json.dumps(text)
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:  # half of a surrogate pair
            return _ODD + json.dumps(text)
    return text


def told(text: str) -> str:
    """What `kept` was given."""
    return json.loads(text[len(_ODD) :]) if text.startswith(_ODD) else text


def changing_columns(request: ApprovalRequest) -> tuple[Any, ...]:
    """What may change, and what follows from it; in the order of the queries."""
    return (
        request.version,
        request.state.value,
        opened_column(request.opened_at),
        micros(request.deadline),
        micros(request.remind_at),
        int(request.escalated),
        kept(request.assigned),
        len(request.votes),
        kept(request.requirement.role or ""),
        request.requirement.quorum,
    )


def opened_column(at: datetime | None) -> int:
    """When a request was opened, as requests are found by it."""
    opened = micros(at)
    return _NEVER if opened is None else opened


def question_columns(request: ApprovalRequest) -> tuple[Any, ...]:
    """What is asked, and what lists and searches need of it; in the order of the queries."""
    call = request.call
    return (
        kept(request.title),
        kept(request.tool_name),
        kept(" > ".join(request.worker)),
        kept(request.run),
        kept(call.conversation_id) if call is not None else "",
        kept(call.key) if call is not None else "",
        dump_question(request),
    )


def request_of(row: Row) -> ApprovalRequest:
    """A request from the query `whole_request`."""
    _, version, state, opened_at, deadline, remind_at, escalated, assigned, votes, decision, claim, question = row
    changing = {
        "version": version,
        "state": State(state),
        "opened_at": None if opened_at == _NEVER else moment(opened_at),
        "deadline": moment(deadline),
        "remind_at": moment(remind_at),
        "escalated": bool(escalated),
        "assigned": told(assigned),
        "votes": load_votes(votes) if votes is not None else (),
        "decision": load_decision(decision) if decision is not None else None,
        "claim": load_claim(claim) if claim is not None else None,
    }
    if len(question) > LARGEST_REMEMBERED:
        return load_question(question, changing)
    return _asked(question).changed_to(**changing)


LARGEST_REMEMBERED = 16_000


@lru_cache(maxsize=512)
def _asked(question: str) -> ApprovalRequest:
    """A request as it was asked. A question never changes, and every step of a request reads it again."""
    return load_question(question, _UNCHANGED)


_NOT_PLAIN = re.compile(r"[^A-Za-z0-9-]")
_UNCHANGED = {one.name: one.default for one in fields(ApprovalRequest) if one.name in CHANGING}


def item_of(row: Row) -> Item:
    """A line of the inbox from the query `inbox`."""
    id_, state, title, tool, worker, run, role, quorum, votes, assigned, opened_at, deadline, escalated = row
    return Item(
        id=id_,
        state=State(state),
        title=told(title),
        tool=told(tool),
        worker=told(worker),
        run=told(run),
        role=told(role),
        quorum=quorum,
        votes=votes,
        assigned=told(assigned),
        opened_at=EPOCH if opened_at == _NEVER else EPOCH + timedelta(microseconds=opened_at),
        deadline=moment(deadline),
        escalated=bool(escalated),
    )


def item_place(item: Item) -> tuple[int, str]:
    """Where in the inbox a line stands."""
    return (item.opened_at - EPOCH) // _TICK, item.id


def grant_columns(grant: Grant) -> tuple[Any, ...]:
    revoked = int(grant.revoked_at is not None)
    exact = kept(grant.memory_key) if grant.pattern is None else ""
    return grant.id, kept(grant.tool), exact, revoked, dump_grant(grant)


def run_state(run: KeptRun) -> str:
    """How a run is listed: those inside others are not."""
    return "inside" if run.parent else run.state.value


def began_in(channel: str) -> str:
    """A pattern that fits what is stored of each run that began in a channel, and little else."""
    return f'%"place"%"{_NOT_PLAIN.sub("%", channel)}"%'


def delivery_columns(delivery: Delivery) -> tuple[Any, ...]:
    """What a delivery is found by, and all of it."""
    found_by = (delivery.channel, delivery.subject, delivery.trail, delivery.request)
    return *map(kept, found_by), int(delivery.live), dump_delivery(delivery)


def segment_key(segment_id: str) -> bytes:
    """A segment's id in half the space: most are digests in hexadecimal."""
    return b"\0" + bytes.fromhex(segment_id) if _DIGEST.fullmatch(segment_id) else segment_id.encode()


def segment_of(row: Row) -> Segment:
    key, parent, messages, body = row
    return Segment(
        id=_segment_id(key), parent=_segment_id(parent) if parent is not None else "", count=messages, body=bytes(body)
    )


def _segment_id(key: bytes) -> str:
    key = bytes(key)
    return key[1:].hex() if key[:1] == b"\0" else key.decode()
