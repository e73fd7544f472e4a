"""Ask on the terminal's full screen: a list of all pending requests, and one card at a time.

```python
Signoff("signoff.yaml", approver=TuiApprover())
```
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from datetime import datetime
from typing import Literal

from signoff.errors import MissingExtra

try:
    import textual  # pyright: ignore[reportUnusedImport] # noqa: F401 - so that its absence is told here
except ImportError as error:
    raise MissingExtra("The full-screen approver", "tui") from error

from signoff.channels.headless import NO_TERMINAL, HeadlessApprover
from signoff.channels.keyboard import Keyboard
from signoff.channels.rule_drafts import DraftRules
from signoff.channels.terminal import card_here, user_here
from signoff.channels.terminal_screen import Screen, terminal_console
from signoff.channels.tui_app import TuiApp, now
from signoff.channels.tui_driver import ThreadDriver
from signoff.channels.tui_requests import LEFT, WaitingRequest, WaitingRequests
from signoff.core.card import Card
from signoff.core.decision import ApprovalDecision, Ending
from signoff.core.mode import ApprovalMode
from signoff.core.people import Actor
from signoff.core.request import ApprovalRequest, WithEdit
from signoff.errors import NobodyHere


class TuiApprover:
    """An `Approver` on the full screen of the terminal: opens with the first request, closes after the last.

    Enter decides nothing. `q` and Ctrl-C leave open requests undecided: `NobodyHere` is raised, and they stay open.
    Without a terminal, on a dumb one or in the background it never asks: it denies, or with `headless="park"` raises
    `NobodyHere`. Its methods block until a person answers, so call them from threads; requests from several threads are
    listed together.
    """

    def __init__(
        self,
        *,
        actor: Actor | None = None,
        headless: Literal["deny", "park"] = "deny",
        secrets: Iterable[str] = (),
        remember: bool = True,
        keeps_always: bool = True,
        draft_rules: DraftRules | None = None,
        clock: Callable[[], datetime] = now,
    ) -> None:
        """By default the actor is `$SIGNOFF_AS` or the system's user.

        `secrets` are values to mask wherever they are shown. `remember` and `keeps_always` say whether answers can be
        remembered, and remembered permanently. `draft_rules` offers a key that makes a rule from a call.
        """
        self._actor = actor
        self._headless = HeadlessApprover(headless)
        self._secrets = tuple(secrets)
        self._remember = remember
        self._keeps_always = keeps_always
        self._draft_rules = draft_rules
        self._clock = clock
        self._lock = threading.Lock()
        self._opening: _Opening | None = None
        self._edits: dict[str, WithEdit] = {}

    def choose(self, request: ApprovalRequest, *, mode: ApprovalMode = ApprovalMode.INTERACTIVE) -> ApprovalDecision:
        """Ask about one request. `mode` is handled before a person is asked and changes nothing here."""
        return self.choose_all([request], mode=mode)[0]

    def choose_all(
        self, requests: Sequence[ApprovalRequest], *, mode: ApprovalMode = ApprovalMode.INTERACTIVE
    ) -> list[ApprovalDecision]:
        """Ask about several requests and return the decisions in order.

        If the person left after deciding some, those count, and the others come back as cancelled, which is no answer.
        If nothing keeps the others open, because they have no id, as without a gate, it raises `NobodyHere` for all.
        """
        asked = [self._entry(request) for request in requests]
        shown = [entry for entry in asked if isinstance(entry, WaitingRequest)]
        opening = self._show(shown) if shown else None
        if shown and opening is None:
            return self._headless.choose_all(requests, mode=mode)
        try:
            decisions = [entry.outcome.result() if isinstance(entry, WaitingRequest) else entry for entry in asked]
        finally:
            if opening is not None:
                opening.wait_if_closing()
        left = [request for request, decision in zip(requests, decisions, strict=True) if decision is None]
        answered = any(decision is not None and decision.ending is not Ending.CANCELLED for decision in decisions)
        if left and (not answered or not all(request.id for request in left)):
            raise NobodyHere(LEFT)
        undecided = ApprovalDecision(approved=False, note=LEFT, ending=Ending.CANCELLED)
        return [decision or undecided for decision in decisions]

    def ask(self, request: ApprovalRequest) -> Future[ApprovalDecision | None]:
        """Show a request and return at once a future for its decision, which is None if the person left.

        Raises `NobodyHere` if there is no terminal to ask at.
        """
        entry = self._entry(request)
        if isinstance(entry, ApprovalDecision):
            denied: Future[ApprovalDecision | None] = Future()
            denied.set_result(entry)
            return denied
        if self._show([entry]) is None:
            raise NobodyHere(NO_TERMINAL)
        return entry.outcome

    def say(self, text: str) -> None:
        """Print a text, which must be safe to show: at once, or when the screen closes.

        Does nothing without a terminal.
        """
        if (opening := self._opening) is not None:
            if opening.waiting.tell(text):
                return
            opening.wait_if_closing()
        if (console := terminal_console()) is not None:
            Screen(console, Keyboard()).say(text)

    def redraw(self, request: ApprovalRequest) -> None:
        """Redraw a request that changed, for example its approvers or its deadline. Safe to call from any thread."""

        def draw(changed: ApprovalRequest) -> Card | None:
            entry = self._entry(changed)
            return entry.card if isinstance(entry, WaitingRequest) else None

        if (opening := self._opening) is not None:
            opening.waiting.redraw(request, draw)

    def close(self) -> None:
        """Leave everything undecided, as `q` does, and wait until the terminal is free again."""
        if (opening := self._opening) is not None:
            opening.waiting.leave()
            opening.wait_if_closing()

    def preview_edits(self, request_id: str, with_edit: WithEdit | None) -> None:
        """Say, before a request is asked, how it would be with edited arguments; None when it is over."""
        if with_edit is not None:
            self._edits[request_id] = with_edit
        else:
            self._edits.pop(request_id, None)

    def withdraw(self, request_id: str, why: str = "it was answered elsewhere") -> None:
        """Stop asking about a request, from any thread: its decision ends as cancelled.

        Does nothing if the request is not being asked about.
        """
        if (opening := self._opening) is not None:
            opening.waiting.withdraw(request_id, why)

    def _show(self, entries: Sequence[WaitingRequest]) -> _Opening | None:
        """Put requests on the screen, opening it if necessary; None if there is no screen."""
        with self._lock:
            if self._opening is not None:
                if self._opening.waiting.add(entries):
                    return self._opening
                self._opening.wait_if_closing()  # wait, so that its last lines are printed before the next screen opens
            if not _has_screen():
                return None
            by = self._actor or Actor(name=user_here(), via="tui")
            waiting = WaitingRequests()
            waiting.add(entries)
            app = TuiApp(
                waiting,
                by,
                secrets=self._secrets,
                draft_rules=self._draft_rules,
                clock=self._clock,
                driver_class=ThreadDriver,
            )
            self._opening = _Opening(waiting, app)
            self._opening.thread.start()
            return self._opening

    def _entry(self, request: ApprovalRequest) -> WaitingRequest | ApprovalDecision:
        """Return the entry for a request, or a denial if it cannot be shown and so cannot be approved."""
        card = card_here(
            request,
            self._secrets,
            remember=self._remember,
            keeps_always=self._keeps_always,
            viewer=self._actor.name if self._actor is not None else user_here(),
        )
        if isinstance(card, ApprovalDecision):
            return card
        with_edit = self._edits.get(request.id)
        return WaitingRequest(request, card, request.opened_at or self._clock(), with_edit=with_edit)


class _Opening:
    """The screen from opening to closing. It runs in its own thread, because any asking thread may end."""

    def __init__(self, waiting: WaitingRequests, app: TuiApp) -> None:
        self.waiting = waiting
        self._app = app
        self.thread = threading.Thread(target=self._run, name="signoff-tui")

    def wait_if_closing(self) -> None:
        """If the screen is closing, wait until the terminal is free: the caller may want to print."""
        if self.waiting.is_closed:
            self.thread.join()

    def _run(self) -> None:
        try:
            self._app.run()
        finally:
            self.waiting.fail("the full-screen approver ended without an answer")
            self._leave_behind()

    def _leave_behind(self) -> None:
        """Print, on the normal terminal, the program's own output meanwhile and a line for each decision."""
        self._app.print_what_was_kept()
        if (console := terminal_console()) is not None:
            screen = Screen(console, Keyboard())
            for text, style in self.waiting.told:
                screen.note(text, style)


def _has_screen() -> bool:
    console, keyboard = terminal_console(), Keyboard()
    stdin = sys.__stdin__
    return (
        console is not None
        and not console.is_dumb_terminal
        and keyboard.is_here
        and stdin is not None
        and os.isatty(stdin.fileno())
    )
