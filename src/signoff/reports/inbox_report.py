"""The inbox as data: everything pending, read in one transaction, for `signoff inbox` locally or through a server."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from signoff.core.card import origin_of
from signoff.core.comment import unanswered
from signoff.core.delivery import Delivery, DeliveryState
from signoff.core.halt import halt_in
from signoff.core.inbox_row import Item, needs_of
from signoff.core.moment import Zone, in_utc, iso
from signoff.core.people import Actor, person_key
from signoff.core.quorum import approvers, entitled_as, why_not_entitled
from signoff.core.request import ApprovalRequest, State
from signoff.core.request_context import shortened
from signoff.core.request_filter import ListPlace, RequestFilter, has_text
from signoff.core.request_status import without_answer
from signoff.core.safe_text import printable, safe_text
from signoff.core.subject import Subject, SubjectKind
from signoff.core.visible_text import visible
from signoff.errors import StoreDamaged, WrongFile, WrongUse
from signoff.reports.channel_problems import deliveries_of
from signoff.reports.namesakes import told_apart

if TYPE_CHECKING:
    from signoff.broker import Broker
    from signoff.ports import Store, Transaction

_OUTCOMES = {
    "happened": "it happened",
    "did-not": "it did not, and may be asked about again",
    "stop-run": "nobody can tell: end its run",
}


def outcomes(run: str) -> Mapping[str, str]:
    """What a person can say of a call with an unknown outcome, and what that means. `run` is the run to end, or ""."""
    return {word: meaning for word, meaning in _OUTCOMES.items() if run or word != "stop-run"}


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


@dataclass(frozen=True, slots=True)
class Page:
    """The first page of the inbox."""

    items: Sequence[Item]
    more: bool
    """Whether there are more than these."""
    halted: str
    """The stored value of the halt switch; empty while it is off."""
    due: bool
    """Whether a deadline or reminder has come, or a process runs a call or waits for one: sweep, and read again."""
    deliveries: Mapping[str, Sequence[Delivery]] = field(default_factory=dict[str, "Sequence[Delivery]"])
    """Deliveries by request id; requests that no channel handles are left out."""
    last: str = ""
    """The id of the last request that was looked at, to go on after it; empty if there are no more."""

    def and_then(self, after: Page) -> Page:
        """Return this page and the one after it as one."""
        deliveries = {**self.deliveries, **after.deliveries}
        return replace(after, items=[*self.items, *after.items], deliveries=deliveries)


def page_of(tx: Transaction, at: datetime, view: View, short: Shortage) -> Page:
    """Return the oldest pending requests: all, or those for one person."""
    due = bool(tx.queue.due(at) or tx.queue.claimed() or tx.queue.awaited())
    halted, limit, me = halt_in(tx.settings.get), view.limit, view.me
    after = tx.queue.place(view.after) if view.after else None
    last = ""
    if me is None:
        items = [_sound(one, partial(_counted, tx)) for one in _waiting(tx, view, limit + 1, after)]
    else:
        items, last = _mine(tx, view, me, _absent(tx, at, view, me), after)
    deliveries = _deliveries(tx, items, at, limit, all_of_it=me is None and after is None and not view.text)
    more = len(items) > limit
    items = with_tasks(tx, items[:limit], partial(short, now=at))
    if more:
        last = items[-1].id
    return Page(items, more or bool(last), halted, due, deliveries, last)


def rows_of(
    tx: Transaction, at: datetime, view: View, items: Sequence[Item], short: Shortage
) -> tuple[Sequence[Item], frozenset[str]]:
    """Return some rows as a page has them, and the ids of those that the view selects."""
    me = view.me
    absent = _absent(tx, at, view, me) if me is not None else ()
    chosen = frozenset(
        one.id
        for one in items
        if one.damaged
        or (has_text(view.text, one.title, one.tool, one.worker) and (me is None or _for_me(tx, one, me, absent)))
    )
    rows = [_sound(one, partial(_counted, tx)) for one in items]
    return with_tasks(tx, rows, partial(short, now=at)), chosen


def _waiting(tx: Transaction, view: View, limit: int, after: Item | None) -> Sequence[Item]:
    """Return the oldest rows that wait, with the words that are searched for."""
    if not view.text:
        return tx.queue.page(limit=limit, after=after)
    place = ListPlace(after.opened_at, after.id) if after is not None else None
    return tx.listings.page(RequestFilter(text=view.text), limit=limit, after=place)


def _absent(tx: Transaction, at: datetime, view: View, me: Me) -> Sequence[Actor]:
    """Return the people for whom this person stands in."""
    return [
        Actor(name=one.absent, roles=view.roles.get(person_key(one.absent), frozenset()))
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


def with_tasks(
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
    tx: Transaction, items: Sequence[Item], at: datetime, limit: int, *, all_of_it: bool
) -> Mapping[str, Sequence[Delivery]]:
    if not items or not tx.leases.all():  # no channel was ever run
        return {}
    return deliveries_of(tx, items[:limit], at, all_of_it=all_of_it and len(items) <= limit)


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


def _mine(tx: Transaction, view: View, me: Me, absent: Sequence[Actor], after: Item | None) -> tuple[list[Item], str]:
    """Return one more than the limit of what is for a person, and where it stopped looking: empty at the end."""
    found: list[Item] = []
    looked = 0
    while batch := _waiting(tx, view, _BATCH, after):
        for item in batch:
            found += _for_me(tx, item, me, absent)
            if len(found) > view.limit:
                return found, ""
        after, looked = batch[-1], looked + len(batch)
        if view.looks is not None and looked >= view.looks:
            return found, after.id
    return found, ""


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


def as_data(page: Page) -> dict[str, Any]:
    """Return a page as JSON data. Times are UTC."""
    return {
        "halted": halted_text(page.halted) or None,
        "requests": [
            {**item_data(item), "deliveries": [delivery_data(one) for one in page.deliveries.get(item.id, ())]}
            for item in page.items
        ],
        "more": page.more,
    }


_AS_TOLD = ("id", "title", "tool", "worker", "run", "quorum", "votes", "escalated")


def page_from(data: Mapping[str, Any], told: Mapping[str, Any]) -> Page:
    """Rebuild the page from the data of `as_data`; `told` has the stored value of the halt switch, and `last`."""
    items: list[Item] = []
    deliveries: dict[str, Sequence[Delivery]] = {}
    for one in data["requests"]:
        fields: dict[str, Any] = {name: one[name] for name in _AS_TOLD}
        fields |= {name: one[name] or "" for name in ("task", "session", "needs", "then", "role", "assigned")}
        items.append(
            Item(
                **fields,
                state=State(one["state"]),
                loosened=tuple(one["loosened"]),
                questions=one["questions"],
                apart=one.get("apart") or "",
                damaged=one.get("damaged") or "",
                opened_at=datetime.fromisoformat(one["opened_at"]),
                deadline=_moment(one["deadline"]),
            )
        )
        subject = Subject(SubjectKind.REQUEST, one["id"])
        deliveries[one["id"]] = [
            Delivery(
                channel=each["channel"],
                subject=subject,
                trail=one["run"] or one["id"],
                state=DeliveryState(each["state"]),
                problem=each["problem"] or "",
                attempts=each["attempts"],
                since=_moment(each["since"]),
                due=_moment(each["next_at"]),
            )
            for each in one["deliveries"]
        ]
    return Page(items, data["more"], told["halted"], False, deliveries, told["last"])


def _moment(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text is not None else None


def item_data(item: Item) -> dict[str, Any]:
    data: dict[str, Any] = {
        "id": item.id,
        "state": str(item.state),
        "title": item.title,
        "tool": item.tool,
        "worker": item.worker,
        "run": item.run,
        "task": item.task or None,
        "session": item.session or None,
        "loosened": list(item.loosened),
        "needs": item.needs or None,
        "questions": item.questions,
        "role": item.role or None,
        "quorum": item.quorum,
        "votes": item.votes,
        "assigned": item.assigned or None,
        "opened_at": iso(item.opened_at),
        "deadline": iso(item.deadline),
        "then": item.then or None,
        "escalated": item.escalated,
    }
    if item.apart:
        data["apart"] = item.apart
    if item.damaged:
        data["damaged"] = printable(item.damaged)
    elif item.state == "unknown":
        data["answers"] = list(outcomes(item.run))
    return data


def delivery_data(delivery: Delivery) -> dict[str, Any]:
    """Return a delivery as JSON data."""
    return {
        "channel": delivery.channel,
        "state": str(delivery.state),
        "problem": printable(delivery.problem) or None,
        "attempts": delivery.attempts,
        "since": iso(delivery.since),
        "next_at": iso(delivery.due),
    }


def halted_text(said: str, zone: Zone = in_utc) -> str:
    """Return the halt switch's state as a sentence; empty while it is off."""
    if not said:
        return ""
    from signoff.broker.switch import said_by

    return printable(said_by(said, zone))


@dataclass(frozen=True, slots=True)
class View:
    """Which part of the inbox is read."""

    limit: int
    me: Me | None = None
    roles: Mapping[str, frozenset[str]] = field(default_factory=dict[str, frozenset[str]])
    """Everyone's roles, by `person_key`."""

    after: str = ""
    """The id of the request that it begins after; empty: with the oldest."""
    looks: int | None = None
    """At most about how many requests are looked at, to find those for one person. None: all."""
    text: str = ""
    """Only requests with this in their title, tool or workers."""
    people: Callable[[], Mapping[str, frozenset[str]]] | None = None
    """Reads the listed people and their roles; called only if a rule names who may approve."""

    async def page(self, store: Store) -> Page:
        """Return the current inbox, after expired requests were settled."""
        page = await store.read(lambda tx: page_of(tx, datetime.now(UTC), self, _unchecked))
        is_strict = any(one.needs for one in page.items)
        if page.due or is_strict:
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

    async def page_by(self, broker: Broker) -> Page:
        """As `page`, by a broker that is there already."""
        await broker.sweep()
        return await broker.store.read(lambda tx: page_of(tx, broker.clock.now(), self, broker.people.shortage))
