"""Delivery problems of pending requests, for the inbox."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

from signoff.core.delivery import Delivery, DeliveryState
from signoff.core.lease import Lease
from signoff.core.subject import Subject, SubjectKind
from signoff.processes import is_alive

if TYPE_CHECKING:
    from signoff.core.inbox_row import Item
    from signoff.ports import Transaction


def deliveries_of(
    tx: Transaction, items: Iterable[Item], at: datetime, *, all_of_it: bool
) -> dict[str, list[Delivery]]:
    """Return the deliveries of each request, by id. A channel that is down is listed wherever it would show one.

    `all_of_it`: whether these are all pending requests. Then one query reads them; otherwise each is looked up by
    itself, so that the work does not grow with the others.
    """
    wanted = {item.id: item for item in items}
    found: dict[str, dict[str, Delivery]] = {}
    live = tx.deliveries.find(live=True) if all_of_it else _of_each(tx, wanted)
    for one in live:
        if one.subject.kind is SubjectKind.REQUEST and one.subject.about in wanted:
            found.setdefault(one.subject.about, {})[one.channel] = one
    for lease in tx.leases.all():
        if lease.down is not None and is_alive(tx.processes.get(lease.process), at):
            for item in wanted.values():
                _overlay(found.setdefault(item.id, {}), lease, item)
    return {one: list(there.values()) for one, there in found.items() if there}


def _of_each(tx: Transaction, ids: Iterable[str]) -> Iterator[Delivery]:
    for one in ids:
        yield from tx.deliveries.find(request=one, live=True)


def _overlay(there: dict[str, Delivery], lease: Lease, item: Item) -> None:
    """Mark a request's delivery as failing if the channel is down and would show it now."""
    name = lease.channel
    known, down = there.get(name), lease.down
    assert down is not None, "whoever calls has looked"
    if known is None:
        known = Delivery(channel=name, subject=Subject(SubjectKind.REQUEST, item.id), trail=item.run or item.id)
    if known.state is DeliveryState.DUE:
        there[name] = replace(
            known,
            problem=down.problem,
            since=known.since or down.since,
            due=down.due,
            attempts=max(known.attempts, down.attempts),
        )
