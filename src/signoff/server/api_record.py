"""API endpoints for the audit log."""

from __future__ import annotations

import asyncio

from pydantic import Field

from signoff.broker.audit import verify_store
from signoff.core.access import Permission
from signoff.core.audit_text import account_of
from signoff.core.record import Entry, vouched
from signoff.core.safe_text import safe_text
from signoff.core.visible_text import visible
from signoff.errors import RecordBroken
from signoff.server.endpoint import ApiModel, Endpoint, Nothing, Visit
from signoff.store.signing_key import Keys, is_signed

_checking = asyncio.Semaphore(1)
"""One verification at a time, because it reads the whole audit log."""


class RecordQuery(ApiModel):
    """Which events."""

    after: int | None = Field(
        default=None, ge=0, le=2**62, description="Events after this number; without it, the last `limit` events."
    )
    limit: int = Field(default=100, ge=1, le=1_000)
    request: str = Field(
        default="", max_length=200, description="Only events of this request; the beginning of the id is enough."
    )
    run: str = Field(
        default="", max_length=200, description="Only events of this run; the beginning of the id is enough."
    )
    whole: bool = Field(default=False, description="Include what an export holds: `body`, `prev` and `hash`.")


class EntryView(ApiModel):
    """One event, in words."""

    seq: int
    at: str
    kind: str
    request: str
    run: str
    who: str
    what: str
    rules: list[str]
    body: str | None = Field(default=None, description="A JSON object. Secrets are masked, erased fields are left out.")
    salts: str | None = Field(default=None, description="The salt of each field of the body: a JSON object.")
    digests: str | None = Field(default=None, description="The digest of each field, as it is hashed: canonical JSON.")
    prev: str | None = None
    hash: str | None = None


class RecordPage(ApiModel):
    """A page of events, in order."""

    events: list[EntryView]
    head: int = Field(description="The number of the newest event.")
    next: int | None = Field(description="The `after` of the next page; null on the last page.")


class VerifyView(ApiModel):
    """Whether the audit log is intact."""

    ok: bool
    events: int = 0
    head: str = ""
    signed: int = Field(default=0, description="The last event that a signature covers.")
    by: str = Field(default="", description="Why the signature is trusted: own, carried, or nobody.")
    key: str = ""
    erased: int = Field(default=0, description="How many events lack a part that was erased.")
    event: int | None = Field(default=None, description="The first event that fails the check.")
    error: str = ""


async def list_events(visit: Visit[RecordQuery, Nothing]) -> RecordPage:
    broker, query = visit.state.broker, visit.query
    request = (await broker.find(query.request)).id if query.request else ""
    run = (await broker.runs.get(query.run)).id if query.run else ""
    head, _ = await broker.store.read(lambda tx: tx.record.head())
    after = query.after
    if after is None:
        after = 0 if request or run else max(0, head - query.limit)
    found = await broker.store.read(
        lambda tx: tx.record.entries(after=after, limit=query.limit + 1, request=request, run=run)
    )
    page = found[: query.limit]
    more = page[-1].seq if len(found) > query.limit else None
    return RecordPage(events=[_view(one, whole=query.whole) for one in page], head=head, next=more)


_WHOLE = ("body", "salts", "digests", "prev", "hash")


def _view(entry: Entry, *, whole: bool) -> EntryView:
    told = account_of(entry)
    return EntryView(
        seq=entry.seq,
        at=visible(entry.at),
        kind=visible(entry.kind),
        request=visible(entry.request),
        run=visible(entry.run),
        who=safe_text(told.who),
        what=safe_text(told.what),
        rules=[safe_text(one) for one in told.rules],
        **({name: getattr(entry, name) for name in _WHOLE} if whole else {}),
    )


async def verify_record(visit: Visit[Nothing, Nothing]) -> VerifyView:
    keys = Keys()
    async with _checking:
        try:
            record = await verify_store(visit.state.broker.store, keys, is_signed)
        except RecordBroken as broken:
            return VerifyView(ok=False, event=broken.seq or None, error=safe_text(str(broken)))
    by = vouched(record.signed, own=keys.public_key())
    return VerifyView(
        ok=True,
        events=record.events,
        head=record.head,
        signed=by.upto,
        by=str(by.trust),
        key=by.key,
        erased=record.erased,
    )


ENDPOINTS = (
    Endpoint(
        method="GET",
        path="/audit",
        name="list_events",
        about="List events of the audit log, in order.",
        permission=Permission.READ,
        handle=list_events,
        query=RecordQuery,
        returns=RecordPage,
        tag="record",
    ),
    Endpoint(
        method="GET",
        path="/audit/verify",
        name="verify_record",
        about="Verify the audit log: whether any event was changed, removed, added or reordered.",
        permission=Permission.READ,
        handle=verify_record,
        returns=VerifyView,
        tag="record",
    ),
)
