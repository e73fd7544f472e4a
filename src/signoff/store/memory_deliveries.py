"""The deliveries of a store in memory, with their indexes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import takewhile

from signoff.core.delivery import Delivery
from signoff.core.run import RunState, SavedRun
from signoff.core.subject import Subject, SubjectKind
from signoff.ports import DeliveryChanges
from signoff.store.memory_changes import Changes

Name = tuple[str, Subject]
"""Channel and subject."""


class _Indexed:
    """All deliveries, in the order they were first stored. The caller is responsible for rollback."""

    def __init__(self) -> None:
        self._all: dict[Name, Delivery] = {}
        self._places: dict[Name, int] = {}
        self._of_trail: dict[str, set[Name]] = {}
        self._of_request: dict[str, set[Name]] = {}
        self._live: dict[str, set[Name]] = {}

    def get(self, name: Name) -> Delivery | None:
        return self._all.get(name)

    def exchange(self, name: Name, new: Delivery | None) -> None:
        """Replace the stored delivery with another one, or remove it if `new` is None.

        Only the last one added may be removed.
        """
        old = self._all.get(name)
        if old is not None:
            for names in self._indexes(old):
                names.discard(name)
        if new is None:
            del self._all[name], self._places[name]
            return
        self._places.setdefault(name, len(self._places))
        self._all[name] = new
        for names in self._indexes(new):
            names.add(name)

    def _indexes(self, delivery: Delivery) -> Iterable[set[Name]]:
        yield self._of_trail.setdefault(delivery.trail, set())
        if delivery.subject.kind in (SubjectKind.REQUEST, SubjectKind.REMINDER):
            yield self._of_request.setdefault(delivery.subject.about, set())
        if delivery.live:
            yield self._live.setdefault(delivery.channel, set())

    def last(self, channel: str, trail: str) -> Sequence[Delivery]:
        """See `signoff.ports.Deliveries.last`."""
        names = [name for name in self._of_trail.get(trail, ()) if name[0] == channel]
        return [self._all[name] for name in sorted(names, key=self._places.__getitem__, reverse=True)]

    def has(self, channel: str, trail: str) -> bool:
        """Whether a channel has a delivery of a trail."""
        return any(name == channel for name, _ in self._of_trail.get(trail, ()))

    def is_told(self, channel: str, run: str) -> bool:
        """Whether a channel was sent the result of a run, and not only that it is going on."""
        told = self._all.get((channel, Subject(SubjectKind.RESULT, run)))
        return told is not None and told.result is not None and told.result.state is not RunState.GOING

    def found(self, *, channel: str, trail: str, request: str, live: bool) -> Sequence[Delivery]:
        """See `signoff.ports.Deliveries.find`."""
        names: Iterable[Name]
        if request:
            names = self._of_request.get(request, ())
        elif trail:
            names = self._of_trail.get(trail, ())
        elif live:
            channels = [channel] if channel else list(self._live)
            names = (name for one in channels for name in self._live.get(one, ()))
        else:
            names = self._all
        return [
            delivery
            for delivery in (self._all[name] for name in sorted(names, key=self._places.__getitem__))
            if channel in ("", delivery.channel) and trail in ("", delivery.trail) and (delivery.live or not live)
        ]


class MemoryDeliveries:
    """See `signoff.ports.Deliveries`."""

    def __init__(self, changes: Changes, over: Callable[[], Sequence[SavedRun]]) -> None:
        """`over` returns the runs that have ended."""
        self._changes = changes
        self._over = over
        self._all = _Indexed()
        self._last = 0
        self._changed: dict[str, int] = {}
        """The number of the last change in each trail, in ascending order."""

    def get(self, channel: str, subject: Subject) -> Delivery | None:
        return self._all.get((channel, subject))

    def put(self, delivery: Delivery) -> None:
        name = (delivery.channel, delivery.subject)
        self._changes.add(partial(self._all.exchange, name, self._all.get(name)))
        self._changes.add(partial(self._count_again, self._last, delivery.trail, self._changed.get(delivery.trail)))
        self._last += 1
        self._changed.pop(delivery.trail, None)
        self._changed[delivery.trail] = self._last
        self._all.exchange(name, delivery)

    def _count_again(self, last: int, trail: str, number: int | None) -> None:
        """Undo a change to a trail (rollback)."""
        self._last = last
        del self._changed[trail]
        if number is not None:
            self._changed[trail] = number
            self._changed = dict(sorted(self._changed.items(), key=lambda one: one[1]))

    def changes(self, *, after: int) -> DeliveryChanges:
        newest = takewhile(lambda one: one[1] > after, reversed(self._changed.items()))
        return DeliveryChanges(self._last, [trail for trail, _ in newest])

    def find(self, *, channel: str = "", trail: str = "", request: str = "", live: bool = False) -> Sequence[Delivery]:
        return self._all.found(channel=channel, trail=trail, request=request, live=live)

    def last(self, *, channel: str, trail: str, limit: int) -> Sequence[Delivery]:
        return self._all.last(channel, trail)[:limit]

    def untold(self, channel: str) -> Sequence[str]:
        concerned = (run for run in self._over() if channel in run.places or self._all.has(channel, run.id))
        return [run.id for run in concerned if not self._all.is_told(channel, run.id)]
