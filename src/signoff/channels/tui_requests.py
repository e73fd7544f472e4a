"""The pending requests of the full-screen approver: added by the threads that ask, settled by the one that draws."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from datetime import datetime

from signoff.channels.terminal import LEFT, key_of, said_about
from signoff.core.card import Card, origin_of
from signoff.core.decision import ApprovalDecision, Ending
from signoff.core.request import ApprovalRequest, WithEdit
from signoff.errors import NobodyHere


def named(card: Card) -> str:
    """Return a text that tells a call from others of the same tool."""
    return f"{card.tool} (request {card.request_id})"


@dataclass(eq=False, slots=True)
class WaitingRequest:
    """One request that is being asked about, and its decision."""

    request: ApprovalRequest
    card: Card
    since: datetime
    """When it was opened; if that is not known, when it came here."""
    outcome: Future[ApprovalDecision | None] = field(default_factory=Future[ApprovalDecision | None])
    """The decision; None if the person left it undecided."""
    was_shown_whole: bool = False
    """Whether every row of its card has been on the screen. It cannot be approved before that."""
    with_edit: WithEdit | None = None
    """Returns the request as it would be asked with edited arguments, to show what they would change."""
    gone: str = ""
    """Why it is no longer open although nobody answered it here."""
    origin: str = field(init=False)
    """The session and the task that it comes from, safe to show in a list; empty if neither is known."""

    def __post_init__(self) -> None:
        self.origin = ": ".join(filter(None, origin_of(self.request)))

    @property
    def is_open(self) -> bool:
        """Whether it is still pending here."""
        return not self.outcome.done()


class WaitingRequests:
    """The pending requests, oldest first. Thread-safe.

    It belongs to one opening of the screen: once closed nothing can be added, and the next opening has a new one.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._entries: list[WaitingRequest] = []
        self._closed = False
        self.told: list[tuple[str, str]] = []
        """Lines about what happened here, each with its colour, to print after the screen closes."""
        self._news: list[str] = []
        self.changed: Callable[[], None] = lambda: None
        """Called after something was added or withdrawn, in the thread that did it."""

    def add(self, entries: Sequence[WaitingRequest]) -> bool:
        """Add requests at the end. Returns False if this was closed already."""
        with self._lock:
            if self._closed:
                return False
            for entry in entries:
                self._put(entry)
                if entry.card.problem:
                    self.told.append((f"not accepted, {named(entry.card)}: {entry.card.problem}", "red"))
        self.changed()
        return True

    def redraw(self, request: ApprovalRequest, draw: Callable[[ApprovalRequest], Card | None]) -> None:
        """Update an open request; `draw` makes its card. If the card differs, it must be read again."""
        with self._lock:
            for entry in self._entries:
                if not entry.is_open or key_of(entry.request) != key_of(request):
                    continue
                # Only this entry knows why the last answer was refused and what was edited then.
                known = entry.request
                changed = request.changed_to(problem=known.problem, metadata=known.metadata)
                if (card := draw(changed)) is not None:
                    entry.request = changed
                    if card != entry.card:
                        entry.card, entry.was_shown_whole = card, False
        self.changed()

    def entries(self) -> list[WaitingRequest]:
        """Return the open requests."""
        with self._lock:
            return [entry for entry in self._entries if entry.is_open]

    def settle(self, entry: WaitingRequest, decision: ApprovalDecision) -> bool:
        """Settle a request with a decision made here. Returns False if it is settled already."""
        with self._lock:
            if not entry.is_open:
                return False
            self._settle(entry, decision)
            return True

    def withdraw(self, key: str, why: str) -> None:
        """Cancel a request that was settled elsewhere or whose answer nobody waits for."""
        decision = ApprovalDecision(approved=False, note=why, ending=Ending.CANCELLED)
        with self._lock:
            for entry in self._entries:
                if entry.is_open and key_of(entry.request) == key:
                    entry.gone = why
                    self._settle(entry, decision)
        self.changed()

    def tell(self, text: str) -> bool:
        """Show a text, and print it again after the screen closes. Returns False if it is closed already."""
        with self._lock:
            if self._closed:
                return False
            self.told.append((text, ""))
            self._news.append(text)
        self.changed()
        return True

    def news(self) -> list[str]:
        """Return the texts of `tell` that were not shown yet."""
        with self._lock:
            news, self._news = self._news, []
            return news

    def leave(self) -> None:
        """Leave all open requests undecided, and close."""
        with self._lock:
            self._closed = True
            left = [entry for entry in self._entries if entry.is_open]
            if left:
                what = left[0].card.title if len(left) == 1 else f"{len(left)} calls"
                self.told.append((f"{LEFT}: {what}", "yellow"))
            for entry in left:
                entry.outcome.set_result(None)
        self.changed()

    def fail(self, why: str) -> None:
        """Close because the screen ended unexpectedly: open requests stay open, for somebody elsewhere."""
        with self._lock:
            self._closed = True
            for entry in self._entries:
                if entry.is_open:
                    entry.outcome.set_exception(NobodyHere(why))

    @property
    def is_closed(self) -> bool:
        """Whether the screen is closing, because nothing is open any more."""
        with self._lock:
            return self._closed

    def _put(self, entry: WaitingRequest) -> None:
        """Add a request at the end; if its last answer was refused, in its former place."""
        key = key_of(entry.request)
        places = [place for place, other in enumerate(self._entries) if key_of(other.request) == key]
        if entry.card.problem and places and not self._entries[places[-1]].is_open:
            self._entries[places[-1]] = entry
        else:
            self._entries.append(entry)

    def _settle(self, entry: WaitingRequest, decision: ApprovalDecision) -> None:
        text = said_about(entry.request, entry.card, decision)
        self.told.append((text, "green" if decision.approved else "red"))
        # Closed before the last answer is known to anybody, so that they can tell that the screen is closing.
        self._closed = self._closed or not any(other.is_open for other in self._entries if other is not entry)
        entry.outcome.set_result(decision)
