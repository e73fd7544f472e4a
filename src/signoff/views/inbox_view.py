"""The inbox as people and programs see it: requests in pages, each as a row, read in one transaction."""

from __future__ import annotations

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from signoff.core.card import origin_of
from signoff.core.comment import unanswered
from signoff.core.halt import halt_in
from signoff.core.inbox_row import NOWHERE, Item, needs_of, place_of, unread_item
from signoff.core.lifecycle import OPEN
from signoff.core.people import Actor, person_key
from signoff.core.quorum import approvers, entitled_as, why_not_entitled
from signoff.core.request import State
from signoff.core.request_context import shortened
from signoff.core.request_filter import ListPlace, ListState, RequestFilter, has_text
from signoff.core.request_status import without_answer
from signoff.core.safe_text import kept_text, printable, safe_text
from signoff.core.visible_text import visible
from signoff.errors import StoreDamaged, WrongFile, WrongUse
from signoff.views.channel_problems import deliveries_of
from signoff.views.json_form import View
from signoff.views.namesakes import told_apart

if TYPE_CHECKING:
    from signoff.broker import Broker
    from signoff.core.delivery import Delivery
    from signoff.core.request import ApprovalRequest
    from signoff.ports import Store, Transaction

MOST_LISTED = 200
"""The longest page that a server sends."""
MOST_COUNTED = 100_000
"""How many requests that wait are counted at most."""
OUTCOMES: Mapping[str, str] = {
    "happened": "it happened",
    "did-not": "it did not, and may be asked about again",
    "stop-run": "nobody can tell: end its run",
}
"""What a person can say of a call with an unknown outcome, and what that means."""


def answers_to(state: State, run: str) -> tuple[str, ...]:
    """With which words a person can act on a request now. `run` is its run, or empty."""
    if state is State.UNKNOWN:
        return tuple(word for word in OUTCOMES if run or word != "stop-run")
    return ("approve", "deny") if state in OPEN else ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryView(View):
    """Where a request stands in one channel."""

    channel: str
    state: str
    problem: str
    attempts: int
    since: datetime | None
    next_at: datetime | None

    @classmethod
    def of(cls, delivery: Delivery) -> DeliveryView:
        """A delivery as it stands now."""
        return cls(
            channel=visible(delivery.channel),
            state=str(delivery.state),
            problem=printable(delivery.problem),
            attempts=delivery.attempts,
            since=delivery.since,
            next_at=delivery.due,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestRow(View):
    """A request in a list."""

    id: str
    state: State
    title: str
    tool: str
    worker: str
    run: str
    session: str
    """The session of an agent in another program, and its directory; otherwise empty."""
    task: str
    """The prompt of its run or session, and for whom it is; empty if there is none."""
    loosened: tuple[str, ...]
    """How its run was loosened, one line each."""
    needs: str
    """Who must approve and who has, in words; empty if anyone may answer."""
    apart: str
    """What tells it from others of its run with the same title; empty if that is not needed."""
    short: bool
    """Whether too few people may approve it."""
    questions: int
    """How many questions about it are not answered."""
    role: str
    quorum: int
    votes: int
    """How many have answered; of several that are needed, how many valid approvals there are."""
    assigned: str
    opened_at: datetime
    deadline: datetime | None
    then: str
    """What happens at the deadline, in words; empty without one."""
    escalated: bool
    answers: tuple[str, ...]
    """With which words a person can act on it now."""
    deliveries: tuple[DeliveryView, ...]
    """Where it stands in each channel that shows it, or should."""
    damaged: str = ""
    """Why its row in the store cannot be read: only `id` is sure then. Otherwise empty."""

    @classmethod
    def of(cls, item: Item, deliveries: Sequence[Delivery] = ()) -> RequestRow:
        """A row of the store."""
        return cls(
            id=visible(item.id),
            state=item.state,
            title=kept_text(item.title),
            tool=safe_text(item.tool),
            worker=visible(item.worker),
            run=visible(item.run),
            session=item.session,
            task=item.task,
            loosened=item.loosened,
            needs=item.needs,
            apart=item.apart,
            short=item.is_short,
            questions=item.questions,
            role=visible(item.role),
            quorum=item.quorum,
            votes=item.votes,
            assigned=visible(item.assigned),
            opened_at=item.opened_at,
            deadline=item.deadline,
            then=item.then,
            escalated=item.escalated,
            answers=() if item.damaged else answers_to(item.state, item.run),
            deliveries=tuple(map(DeliveryView.of, deliveries)),
            damaged=visible(item.damaged),
        )

    @property
    def place(self) -> str:
        """The cursor of the page that begins after it; empty if it is damaged: no page begins after such a row."""
        return "" if self.damaged else cursor_of(ListPlace(self.opened_at, self.id))


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestPage(View):
    """A page of requests, and the cursor of the next one."""

    requests: tuple[RequestRow, ...]
    waiting: int
    """How many requests are pending in total, whatever is listed; counted up to 100,000."""
    halted: str
    """Who halted execution, when and why; empty if it is not halted."""
    next: str | None
    """The `cursor` of the next page; null on the last page."""

    def and_then(self, after: RequestPage) -> RequestPage:
        """Return this page and the one after it as one."""
        return replace(after, requests=(*self.requests, *after.requests))


def cursor_of(place: ListPlace) -> str:
    """Encode a place as a cursor."""
    return urlsafe_b64encode(json.dumps([place.opened_at.isoformat(), place.id]).encode()).decode()


def place_of_cursor(cursor: str) -> ListPlace:
    """Decode a cursor; raises `ValueError` if it is invalid."""
    try:
        opened_at, request_id = json.loads(urlsafe_b64decode(cursor.encode()))
        moment = datetime.fromisoformat(opened_at)
        if moment.tzinfo is None or not isinstance(request_id, str):
            raise ValueError(cursor)
        moment.timestamp()
    except (TypeError, OverflowError, RecursionError) as error:
        raise ValueError(cursor) from error
    return ListPlace(moment, request_id)


class Shortage(Protocol):
    """Says why too few people may approve a request, as `People.shortage` does."""

    def __call__(self, tx: Transaction, request: ApprovalRequest, now: datetime) -> str: ...


def _unchecked(tx: Transaction, request: ApprovalRequest, now: datetime) -> str:
    """Stands for `People.shortage` where nobody is known."""
    return ""


@dataclass(frozen=True, slots=True)
class Me:
    """The person whose inbox it is."""

    name: str
    roles: frozenset[str]

    def may(self, tx: Transaction, item: Item, absent: Sequence[Actor]) -> bool:
        """Whether this person may answer, also as a deputy of somebody absent, and nobody else has it assigned."""
        by = Actor(name=self.name, roles=self.roles)
        if item.role and not any(item.role in one.roles for one in (by, *absent)):
            return False
        if item.state is State.UNKNOWN:
            return not item.assigned or person_key(item.assigned) == by.key
        request = tx.requests.get(item.id)
        if request is None:
            return False
        stands_for, refusal = entitled_as(request.requirement, by, absent, request.parties)
        hands = ("", by.key, stands_for.key if stands_for is not None else by.key)
        return not refusal and (person_key(item.assigned) if item.assigned else "") in hands


@dataclass(frozen=True, slots=True, kw_only=True)
class InboxFilter:
    """Which part of the inbox is read."""

    limit: int
    chosen: RequestFilter = field(default_factory=RequestFilter)
    me: Me | None = None
    """Only what this person may answer and nobody else has; only of requests that wait."""
    roles: Mapping[str, frozenset[str]] = field(default_factory=dict[str, frozenset[str]])
    """Everyone's roles, by `person_key`."""
    after: ListPlace | None = None
    """Where it begins; None: with the first."""
    looks: int | None = None
    """At most about how many requests are looked at, to find those for one person. None: all."""
    people: Callable[[], Mapping[str, frozenset[str]]] | None = None
    """Reads the listed people and their roles; called only if a rule names who may approve."""

    async def page(self, store: Store) -> RequestPage:
        """Return the current inbox, after expired requests were settled."""
        page, due = await store.read(lambda tx: _looked(tx, datetime.now(UTC), self, _unchecked))
        is_strict = any(one.needs for one in page.requests)
        if due or is_strict:
            from signoff.broker import Broker  # slow to import, so only if there is work for it

            broker = Broker(store, people=self._listed() if is_strict else None)
            if await broker.sweep() or is_strict:
                page = await store.read(lambda tx: page_of(tx, datetime.now(UTC), self, broker.people.shortage))
        return page

    def _listed(self) -> Mapping[str, frozenset[str]]:
        try:
            return self.people() if self.people is not None else {}
        except (WrongFile, WrongUse):  # nobody knows who is listed
            return {}

    async def page_by(self, broker: Broker) -> RequestPage:
        """As `page`, by a broker that is there already."""
        await broker.sweep()
        return await broker.store.read(lambda tx: page_of(tx, broker.clock.now(), self, broker.people.shortage))


def _looked(tx: Transaction, at: datetime, chosen: InboxFilter, short: Shortage) -> tuple[RequestPage, bool]:
    """Read a page, and whether to sweep and read again: a moment has come, or a process runs a call or waits."""
    due = bool(tx.queue.due(at) or tx.queue.claimed() or tx.queue.awaited())
    return page_of(tx, at, chosen, short), due


def page_of(tx: Transaction, at: datetime, chosen: InboxFilter, short: Shortage) -> RequestPage:
    """Return a page of requests: all that are chosen, or those for one person."""
    me, limit, after = chosen.me, chosen.limit, chosen.after
    last: Item | None = None
    if me is None:
        found = tx.listings.page(chosen.chosen, limit=limit + 1, after=after)
        items = [_sound(one, partial(_counted, tx)) for one in found]
    else:
        items, last = _mine(tx, chosen, me, _absent(tx, at, chosen, me), after)
    is_whole = len(items) <= limit and me is None and after is None and chosen.chosen == RequestFilter()
    items, more = items[:limit], len(items) > limit
    if more:
        last = items[-1]
    deliveries = _deliveries(tx, items, at, is_whole=is_whole)
    rows = [RequestRow.of(one, deliveries.get(one.id, ())) for one in _with_tasks(tx, items, partial(short, now=at))]
    return _page(tx, rows, last)


def _page(tx: Transaction, rows: Iterable[RequestRow], last: Item | None = None) -> RequestPage:
    return RequestPage(
        requests=tuple(rows),
        waiting=tx.listings.waiting(most=MOST_COUNTED),
        halted=_halted(halt_in(tx.settings.get)),
        next=cursor_of(ListPlace(last.opened_at, last.id)) if last is not None else None,
    )


def rows_of(
    tx: Transaction, at: datetime, chosen: InboxFilter, given: Sequence[Item], short: Shortage
) -> tuple[RequestPage, frozenset[str]]:
    """Return some rows as a page has them, oldest first, and the ids of those that are not chosen."""
    items = sorted(given, key=lambda one: (one.opened_at, one.id))
    me = chosen.me
    absent = _absent(tx, at, chosen, me) if me is not None else ()
    others = frozenset(
        one.id
        for one in items
        if not one.damaged
        and not (
            has_text(chosen.chosen.text, one.title, one.tool, one.worker)
            and (me is None or _for_me(tx, one, me, absent))
        )
    )
    rows = [_sound(one, partial(_counted, tx)) for one in items]
    return _page(tx, map(RequestRow.of, _with_tasks(tx, rows, partial(short, now=at)))), others


def still_open(tx: Transaction, request_id: str) -> Item | None:
    """Return the row of a request that waits; None if it does not."""
    try:
        request = tx.requests.get(request_id)
    except StoreDamaged as wrong:
        return unread_item(request_id, NOWHERE).broken(wrong)
    if request is None or request.state not in OPEN:
        return None
    return replace(
        place_of(request),
        state=request.state,
        title=request.title,
        tool=request.tool_name,
        worker=" > ".join(request.worker),
        run=request.run,
        role=request.requirement.role or "",
        quorum=request.requirement.quorum,
        votes=len(request.votes),
        assigned=request.assigned,
        deadline=request.deadline,
        escalated=request.escalated,
    )


def _absent(tx: Transaction, at: datetime, chosen: InboxFilter, me: Me) -> Sequence[Actor]:
    """Return the people for whom this person stands in."""
    return [
        Actor(name=one.absent, roles=chosen.roles.get(person_key(one.absent), frozenset()))
        for one in tx.delegations.current(at)
        if person_key(one.deputy) == person_key(me.name)
    ]


def _sound(item: Item, work: Callable[[Item], Item]) -> Item:
    """Return what the work makes of a row, or the row as a damaged one."""
    if item.damaged:
        return item
    try:
        return work(item)
    except StoreDamaged as wrong:
        return item.broken(wrong)


def _with_tasks(
    tx: Transaction, items: Sequence[Item], short: Callable[[Transaction, ApprovalRequest], str]
) -> Sequence[Item]:
    """Add to the items what their runs are for, since runs of one worker ask alike, and what was loosened.

    Requests of one run that have the same title say what differs.

    `short` says why too few people may approve a request.
    """
    known: dict[str, tuple[str, tuple[str, ...]]] = {}
    for name in {item.run for item in items if item.run}:
        with suppress(StoreDamaged):
            run = tx.runs.get(name)
            if run is None:
                continue
            task = shortened(" ".join(run.prompt.split()), _LONGEST_TASK)
            told = task + (f" (for {run.requester})" if run.requester else "")
            known[name] = safe_text(told.strip()), tuple(map(safe_text, run.setup.loosened.texts))

    def whole(item: Item) -> Item:
        of_run: dict[str, Any] = {}
        if item.run in known:
            of_run["task"], of_run["loosened"] = known[item.run]
        return replace(item, **{**_standing(tx, item, short), **of_run})

    return told_apart(tx, [_sound(item, whole) for item in items])


def _standing(tx: Transaction, item: Item, short: Callable[[Transaction, ApprovalRequest], str]) -> dict[str, Any]:
    """Return where it comes from, who must agree, what happens at the deadline, as on the card, and open questions."""
    request = tx.requests.get(item.id)
    if request is None:
        return {}
    told: dict[str, Any] = {}
    if request.context.session:
        told["session"], told["task"] = origin_of(request)
    said = tx.comments.of(item.id) if request.version else ()  # adding a comment changes the version
    told["questions"] = len(unanswered(said)) if said else 0
    if item.state is not State.PENDING:
        return told
    then = visible(without_answer(request)) if request.deadline is not None else ""
    request = request.changed_to(shortage=short(tx, request))
    return {**told, "needs": visible(needs_of(request)), "is_short": bool(request.shortage), "then": then}


def _deliveries(
    tx: Transaction, items: Sequence[Item], at: datetime, *, is_whole: bool
) -> Mapping[str, Sequence[Delivery]]:
    """Return the deliveries of some rows. `is_whole`: these are all pending requests."""
    if not items or not tx.leases.all():  # no channel was ever run
        return {}
    return deliveries_of(tx, items, at, all_of_it=is_whole)


def _counted(tx: Transaction, item: Item) -> Item:
    """Replace the number of votes by those for what is on the card: some are for other arguments or an earlier role."""
    if not item.votes or item.quorum < 2:
        return item
    request = tx.requests.get(item.id)
    if request is None:
        return item
    return replace(item, votes=len(approvers(request.requirement, request.votes, request.args_digest, request.parties)))


def _has_voted(tx: Transaction, item: Item, me: Me) -> bool:
    """Whether this person has voted and it waits only for others."""
    request, key = tx.requests.get(item.id), person_key(me.name)
    return request is not None and any(
        vote.by.key == key and not why_not_entitled(request.requirement, vote.principal, request.parties)
        for vote in request.votes
    )


def _mine(
    tx: Transaction, chosen: InboxFilter, me: Me, absent: Sequence[Actor], after: ListPlace | None
) -> tuple[list[Item], Item | None]:
    """Return one more than the limit of what is for a person, and where it stopped looking: None at the end."""
    found: list[Item] = []
    looked = 0
    while batch := tx.listings.page(replace(chosen.chosen, state=ListState.WAITING), limit=_BATCH, after=after):
        for item in batch:
            found += _for_me(tx, item, me, absent)
            if len(found) > chosen.limit:
                return found, None
        after, looked = ListPlace(batch[-1].opened_at, batch[-1].id), looked + len(batch)
        if chosen.looks is not None and looked >= chosen.looks:
            return found, batch[-1]
    return found, None


_BATCH = 200
_LONGEST_TASK = 400


def _for_me(tx: Transaction, item: Item, me: Me, absent: Sequence[Actor]) -> list[Item]:
    """Return a row if it is for a person. Of a damaged one nobody can tell, so everybody sees it."""
    try:
        if item.damaged or (me.may(tx, item, absent) and not (item.votes and _has_voted(tx, item, me))):
            return [_sound(item, partial(_counted, tx))]
    except StoreDamaged as wrong:
        return [item.broken(wrong)]
    return []


def _halted(said: str) -> str:
    """The halt switch's state as a sentence; empty while it is off."""
    if not said:
        return ""
    from signoff.broker.switch import said_by

    return printable(said_by(said))
