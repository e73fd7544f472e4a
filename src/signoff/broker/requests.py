"""Change requests inside a transaction: read, advance by the lifecycle table, store, and record in the audit log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from typing import Any, NamedTuple

from signoff.broker.ids import new_id
from signoff.broker.journal import Journal
from signoff.core.card import safe_summary
from signoff.core.delivery import NOWHERE, Delivery
from signoff.core.lifecycle import (
    OPEN,
    Cancelled,
    Entered,
    Event,
    Failed,
    HandedOver,
    Lost,
    Paused,
    Returned,
    Succeeded,
    Voted,
    advance,
    remind_at,
)
from signoff.core.notice import trail_of
from signoff.core.request import ApprovalRequest, State
from signoff.core.request_context import NO_ANSWERS
from signoff.core.subject import Subject, SubjectKind
from signoff.errors import AlreadySettled, RequestError, StoreDamaged, UnknownRequest
from signoff.large_work import done
from signoff.ports import Transaction

PREVIEW = 500
"""Characters of a result or an error that are kept for people."""


def found(tx: Transaction, request_id: str) -> ApprovalRequest:
    """Return the request; raises `UnknownRequest`."""
    request = tx.requests.get(request_id)
    if request is None:
        raise UnknownRequest(f"no request has the ID {request_id!r}")
    return request


def readable(tx: Transaction, request_id: str) -> ApprovalRequest | None:
    """Return the request; None if there is none, or if its row cannot be read: for those who look after many."""
    try:
        return tx.requests.get(request_id)
    except StoreDamaged:
        return None


def found_by_prefix(tx: Transaction, prefix: str) -> ApprovalRequest:
    """Return the request with this id prefix; raises `UnknownRequest` for none, `RequestError` for several."""
    if (request := tx.requests.get(prefix)) is not None:
        return request
    ids = tx.requests.like(prefix) if prefix else ()
    if len(ids) == 1:
        return found(tx, ids[0])
    if ids:
        raise RequestError(f"more than one request starts with {prefix!r}: {', '.join(ids)}")
    raise UnknownRequest(_is_run(tx, prefix) or f"no request has the ID {prefix!r}")


def _is_run(tx: Transaction, prefix: str) -> str:
    """The message for somebody who gave the id of a run instead of a request; empty if it is none."""
    runs = tx.runs.like(prefix) if prefix else ()
    if len(runs) != 1:
        return ""
    waiting = [one.id for one in tx.requests.of(run=runs[0]) if one.state in OPEN]
    its = f"its open questions are {', '.join(waiting)}" if waiting else "it has no open question"
    return f"{runs[0]} is a run; {its}"


def asked_again(tx: Transaction, request: ApprovalRequest) -> str:
    """Where the call of a cancelled request is asked about again, to follow its text; empty if that is not known."""
    if request.state is not State.CANCELLED or request.call is None:
        return ""
    newest = tx.requests.about(request.call.key)
    if newest is None or newest.id == request.id:
        return ""
    return f"; it was asked again as request {newest.id}: signoff show {newest.id}"


def put(tx: Transaction, request: ApprovalRequest, event: Event, now: datetime) -> ApprovalRequest:
    """Advance the request by an event, and store it."""
    changed = advance(request, event, now)
    tx.requests.put(changed)
    return changed


def vote(
    tx: Transaction, journal: Journal, request: ApprovalRequest, event: Voted, now: datetime, deadline: datetime | None
) -> ApprovalRequest:
    """Advance the request by an answer, and store it. From then on its title names the call as it runs.

    `deadline` is when its deadline passes, where the clock was set.
    """
    if deadline == request.deadline:
        voted = advance(request, event, now)
    else:
        voted = advance(request.changed_to(deadline=deadline), event, now).changed_to(deadline=request.deadline)
    if voted.state is State.APPROVED and voted.other_args is not None:
        voted = voted.changed_to(title=safe_summary(voted, secrets=journal.secrets))
    tx.requests.put(voted)
    return voted


def settle(tx: Transaction, journal: Journal, request: ApprovalRequest, event: Event, now: datetime) -> ApprovalRequest:
    """Advance the request by an event that settles it, store it, and record that in the audit log."""
    settled = put(tx, request, event, now)
    tx.record.append([journal.settled(settled, now)])
    return settled


# --- asking ---


class Written(NamedTuple):
    """What is written about a call that is asked about."""

    title: str
    call: Mapping[str, Any]
    """What the audit log keeps of it."""


async def written(journal: Journal, request: ApprovalRequest) -> Written:
    """Return what is written about the call of a request.

    For a large call this takes long. In a transaction nobody else could write meanwhile.
    """

    def work() -> Written:
        title = request.title or safe_summary(request, secrets=journal.secrets)
        return Written(title, journal.call_of(request))

    return await done(f"writing down a call of {request.tool_name}", request.args, work)


def opened(request: ApprovalRequest, now: datetime, title: str) -> ApprovalRequest:
    """Return a new request with an id, the time, the deadline of its rule if it has one, and a title."""
    requirement = request.requirement
    deadline = now + requirement.timeout if requirement.timeout is not None else None
    return request.changed_to(
        id=request.id or new_id(),
        opened_at=now,
        deadline=deadline,
        remind_at=remind_at(requirement, deadline),
        title=title,
    )


def ending(question: ApprovalRequest, deadline: datetime, now: datetime) -> ApprovalRequest:
    """Return the question with this deadline, and its reminder set accordingly."""
    remind = remind_at(question.requirement, deadline)
    return question.changed_to(deadline=deadline, remind_at=remind if remind is not None and remind > now else None)


def ask(
    tx: Transaction,
    journal: Journal,
    request: ApprovalRequest,
    now: datetime,
    call: Mapping[str, Any],
    places: Mapping[str, str] = NOWHERE,
    *,
    short: str = "",
) -> ApprovalRequest:
    """Store a request, unless one about the same call exists that was not withdrawn: then return that one.

    `call` is what `written` returned of it.
    `places` say where it is shown, by channel. They are stored with it, for the next process that runs the channel.
    `short` is for the audit log: why too few people may approve it.
    """
    if request.call is not None:
        known, answers = tx.past.before(request.call)
        if known is not None and known.state is not State.CANCELLED:
            return known
        if answers != NO_ANSWERS:
            request = request.changed_to(context=replace(request.context, answers=answers))
    tx.requests.add(request)
    for channel, place in places.items():
        subject = Subject(SubjectKind.REQUEST, request.id)
        tx.deliveries.put(Delivery(channel=channel, subject=subject, trail=trail_of(request), place=place))
    tx.record.append([journal.asked(request, now, call, short=short)])
    return request


def withdraw(tx: Transaction, journal: Journal, request_ids: Sequence[str], reason: str, now: datetime) -> None:
    """Withdraw requests that are still pending."""
    for request_id in request_ids:
        if (request := tx.requests.get(request_id)) is not None and request.state is State.PENDING:
            settle(tx, journal, request, Cancelled(reason), now)


def abandon(tx: Transaction, journal: Journal, request_id: str, token: str, reason: str, now: datetime) -> None:
    """Withdraw a request whose call will not be made, also if its approval was claimed with this token."""
    if tx.requests.get(request_id) is None:
        return
    give_back(tx, journal, request_id, token, now)
    if (request := found(tx, request_id)).state in (State.PENDING, State.APPROVED):
        settle(tx, journal, request, Cancelled(reason), now)


# --- claims ---


def is_held(request: ApprovalRequest, token: str) -> bool:
    """Whether a call runs on the claim with this token. A caller with another token has lost the claim."""
    return request.state is State.CLAIMED and request.claim is not None and request.claim.token == token


def finish(
    tx: Transaction,
    journal: Journal,
    request: ApprovalRequest,
    now: datetime,
    *,
    error: str | None,
    digest: str,
    preview: str,
    result: bytes | None,
    token: str | None,
    secrets: Sequence[str],
) -> None:
    """Record the outcome of a claimed call. If the claim was lost in the meantime, only a note is recorded."""
    masked = (*request.secrets, *secrets)
    if error:
        text = journal.text(error, longest=PREVIEW, secrets=masked)
    else:
        text = journal.result(preview, longest=PREVIEW, secrets=masked)
    event: Event = Succeeded(digest, text) if error is None else Failed(text)
    try:
        if token is not None and request.claim is not None and request.claim.token != token:
            raise AlreadySettled("another process has claimed it since")
        ended = put(tx, request, event, now)
    except AlreadySettled as late:  # it was marked as unknown, and a person reported the outcome
        body = {"outcome": text, "note": journal.text(str(late))}
        tx.record.append([journal.about(request, "late outcome", now, body)])
        return
    if result is not None:
        tx.results.put(request.id, result)
    if error is None:
        tx.record.append([journal.about(ended, "ran", now, {"digest": digest, "preview": text})])
    else:
        tx.record.append([journal.about(ended, "failed", now, {"error": text})])


def hand_over(
    tx: Transaction, journal: Journal, request: ApprovalRequest, holder: str, now: datetime
) -> ApprovalRequest:
    """Record that the right to run was given to a program that runs the call itself."""
    handed = put(tx, request, HandedOver(holder), now)
    tx.record.append([journal.about(handed, "handed over", now, {"process": holder})])
    return handed


def give_back(tx: Transaction, journal: Journal, request_id: str, token: str, now: datetime) -> None:
    """Record that a claim was given up before the call began: the approval stays valid."""
    request = found(tx, request_id)
    if is_held(request, token):
        returned = put(tx, request, Returned(), now)
        tx.record.append([journal.step(returned, "returned", now)])


def cut_off(tx: Transaction, journal: Journal, request_id: str, token: str, now: datetime) -> None:
    """Mark the outcome of a claimed call as unknown; a call that only waited for runs inside it is paused."""
    with suppress(RequestError):
        request = found(tx, request_id)
        if not is_held(request, token):
            return
        if request.claim is not None and request.claim.inside:
            pause(tx, journal, request, now)
        else:
            lose(tx, journal, request, "it was stopped half-way", now)


def lose(tx: Transaction, journal: Journal, request: ApprovalRequest, why: str, now: datetime) -> ApprovalRequest:
    """Record that the outcome of a claimed call is unknown."""
    lost = put(tx, request, Lost(), now)
    tx.record.append([journal.step(lost, "unknown", now, **({"why": why} if why else {}))])
    return lost


# --- claimed calls whose tool runs another agent ---
#
# A call that only waits for saved runs is not unknown when its process dies: it is made again, and continues with those
# runs.


def enter(tx: Transaction, journal: Journal, request_id: str, token: str, now: datetime) -> None:
    """Record that a claimed call only waits for runs inside it."""
    request = found(tx, request_id)
    if is_held(request, token) and request.claim is not None and not request.claim.inside:
        tx.record.append([journal.step(put(tx, request, Entered(), now), "entered", now)])


def pause(tx: Transaction, journal: Journal, request: ApprovalRequest, now: datetime) -> ApprovalRequest:
    """Pause a claimed call together with the runs inside it: the process that resumes those claims it again."""
    paused = put(tx, request, Paused(), now)
    tx.record.append([journal.step(paused, "paused", now)])
    return paused


def release(tx: Transaction, journal: Journal, request_id: str, token: str, now: datetime) -> None:
    """As `pause`, by the tool itself, which let the pause of a run inside it propagate."""
    with suppress(RequestError):
        enter(tx, journal, request_id, token, now)
        if is_held(request := found(tx, request_id), token):
            pause(tx, journal, request, now)
