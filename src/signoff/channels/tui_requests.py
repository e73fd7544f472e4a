"""What waits at the full-screen approver: put there by the threads that ask, settled by the one that draws."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from datetime import datetime

from signoff.channels.terminal import LEFT, key_of, said_about
from signoff.core.card import Card
from signoff.core.decision import ApprovalDecision, Ending
from signoff.core.request import ApprovalRequest
from signoff.errors import NobodyHere


def named(card: Card) -> str:
    """A call, told from others of the same tool."""
    return f"{card.tool} (request {card.request_id})"


@dataclass(eq=False, slots=True)
class WaitingRequest:
    """One request that is asked about, and what became of it."""

    request: ApprovalRequest
    card: Card
    since: datetime
    """When it was opened; where nobody kept that, when it came here."""
    outcome: Future[ApprovalDecision | None] = field(default_factory=Future[ApprovalDecision | None])
    """The decision; None where the person left it undecided."""
    was_shown_whole: bool = False
    """Whether every row of its card has been on the screen: without that it cannot be approved."""
    gone: str = ""
    """Why it is no longer open although nobody answered it here."""

    @property
    def is_open(self) -> bool:
        """Whether it still waits for an answer."""
        return not self.outcome.done()


class WaitingRequests:
    """The requests that wait, oldest first. Safe to use from any thread.

    It belongs to one opening of the screen: once it was closed nothing can be added, and the next opening has another.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._entries: list[WaitingRequest] = []
        self._closed = False
        self.told: list[tuple[str, str]] = []
        """What was decided here, in words, each with its colour: for the lines that stay behind."""
        self._news: list[str] = []
        self.changed: Callable[[], None] = lambda: None
        """Called in whichever thread adds or withdraws something."""

    def add(self, entries: Sequence[WaitingRequest]) -> bool:
        """Put requests at the end; False where this was closed already."""
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
        """A request that is open has changed; `draw` makes its card."""
        with self._lock:
            for entry in self._entries:
                if not entry.is_open or key_of(entry.request) != key_of(request):
                    continue
                # Why the last answer was refused, and what was written then, is known here alone.
                known = entry.request
                changed = request.changed_to(problem=known.problem, metadata=known.metadata)
                if (card := draw(changed)) is not None:
                    entry.request = changed
                    if card != entry.card:
                        entry.card, entry.was_shown_whole = card, False
        self.changed()

    def entries(self) -> list[WaitingRequest]:
        """Those that are open."""
        with self._lock:
            return [entry for entry in self._entries if entry.is_open]

    def settle(self, entry: WaitingRequest, decision: ApprovalDecision) -> bool:
        """Settle a request as decided here; False where it is settled already."""
        with self._lock:
            if not entry.is_open:
                return False
            self._settle(entry, decision)
            return True

    def withdraw(self, key: str, why: str) -> None:
        """A request was settled elsewhere, or nobody waits for its answer any longer."""
        decision = ApprovalDecision(approved=False, note=why, ending=Ending.CANCELLED)
        with self._lock:
            for entry in self._entries:
                if entry.is_open and key_of(entry.request) == key:
                    entry.gone = why
                    self._settle(entry, decision)
        self.changed()

    def tell(self, text: str) -> bool:
        """Say something, and leave it behind when the screen is closed; False where it is closed already."""
        with self._lock:
            if self._closed:
                return False
            self.told.append((text, ""))
            self._news.append(text)
        self.changed()
        return True

    def news(self) -> list[str]:
        """What was told and nobody has read yet."""
        with self._lock:
            news, self._news = self._news, []
            return news

    def leave(self) -> None:
        """Leave everything that is open undecided, and close."""
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
        """The screen is gone without having been left: what is open stays open, for somebody elsewhere."""
        with self._lock:
            self._closed = True
            for entry in self._entries:
                if entry.is_open:
                    entry.outcome.set_exception(NobodyHere(why))

    @property
    def is_closed(self) -> bool:
        """Whether nothing is left: the screen is closing."""
        with self._lock:
            return self._closed

    def _put(self, entry: WaitingRequest) -> None:
        """At the end; where its last answer was refused, in the place that it had."""
        key = key_of(entry.request)
        places = [place for place, other in enumerate(self._entries) if key_of(other.request) == key]
        if entry.card.problem and places and not self._entries[places[-1]].is_open:
            self._entries[places[-1]] = entry
        else:
            self._entries.append(entry)

    def _settle(self, entry: WaitingRequest, decision: ApprovalDecision) -> None:
        text = said_about(entry.request, entry.card, decision)
        self.told.append((text, "green" if decision.approved else "red"))
        # Closed before anybody hears of the last answer: who hears of it can tell that the screen is closing.
        self._closed = self._closed or not any(other.is_open for other in self._entries if other is not entry)
        entry.outcome.set_result(decision)
