"""Ask the person at the terminal.

```python
Signoff("signoff.yaml", approver=TerminalApprover())
```
"""

from __future__ import annotations

import getpass
import os
import threading
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import IO, Literal

from rich.console import Console

from signoff.channels.answer_keys import CTRL_C_LEAVES
from signoff.channels.card_batch import CardBatch
from signoff.channels.dialog import Dialog
from signoff.channels.headless import NO_TERMINAL, HeadlessApprover
from signoff.channels.keyboard import Interrupted, Keyboard, LeftOpen, NoLine, Withdrawn
from signoff.channels.rule_drafts import DraftRules
from signoff.channels.terminal_screen import Screen, terminal_console
from signoff.channels.turns import Outcome, Turns
from signoff.core.card import Card, card_for, safe_summary, session_text
from signoff.core.decision import ApprovalDecision, Ending, Keeps, Remember
from signoff.core.mode import ApprovalMode
from signoff.core.people import Actor
from signoff.core.request import ApprovalRequest, WithEdit
from signoff.core.safe_text import redacted_text, safe_text
from signoff.core.visible_text import visible
from signoff.errors import NobodyHere, SignoffError

__all__ = ["LEFT", "NobodyHere", "TerminalApprover"]

LEFT = "left undecided at the terminal"


class TerminalApprover:
    """An `Approver` at the terminal: shows the card and reads a letter and Enter.

    Enter alone decides nothing. Ctrl-C and end of input deny; with `can_stop` they stop the run instead, and everything
    stays open. Without a terminal, or in the background, it never asks: it denies, or with `headless="park"` raises
    `NobodyHere`. Its methods block until a person answers, so call them from a thread; questions from several threads
    are asked one at a time.
    """

    def __init__(
        self,
        console: Console | None = None,
        *,
        stdin: IO[str] | None = None,
        actor: Actor | None = None,
        headless: Literal["deny", "park"] = "deny",
        secrets: Iterable[str] = (),
        editor: str | None = None,
        remember: bool = True,
        keeps_always: bool = True,
        can_stop: bool = False,
        draft_rules: DraftRules | None = None,
    ) -> None:
        """By default it prints to standard error or output, and the actor is `$SIGNOFF_AS` or the system's user.

        `secrets` are values to mask wherever they are shown. `editor` is a command, instead of `$VISUAL` and `$EDITOR`.
        `remember` and `keeps_always` say whether answers can be remembered, and remembered permanently. `can_stop`
        offers a key that stops the run, and makes Ctrl-C do the same: open requests stay open, and `choose` raises
        `NobodyHere`, as on the full screen. `draft_rules` offers a key that makes a rule from the call.
        """
        self._console = console
        self._keyboard = Keyboard(stdin)
        self._actor = actor
        self._headless = HeadlessApprover(headless)
        self._secrets = tuple(secrets)
        self._editor = editor
        self._remember = remember
        self._keeps_always = keeps_always
        self._can_stop = can_stop
        self._draft_rules = draft_rules
        self._lock = threading.Lock()
        self._asked: dict[str, str] = {}
        self._barred: dict[str, str] = {}
        self._edits: dict[str, WithEdit] = {}
        self._turns = Turns(self._decide_or_leave)

    def choose(self, request: ApprovalRequest, *, mode: ApprovalMode = ApprovalMode.INTERACTIVE) -> ApprovalDecision:
        """Ask about one request. `mode` is handled before a person is asked and changes nothing here."""
        return self.choose_all([request], mode=mode)[0]

    def choose_all(
        self, requests: Sequence[ApprovalRequest], *, mode: ApprovalMode = ApprovalMode.INTERACTIVE
    ) -> list[ApprovalDecision]:
        """Ask about several requests and return the decisions in order. More than one are listed first."""
        keys = [key_of(request) for request in requests]
        self._asked.update(dict.fromkeys(keys, ""))
        try:
            with self._lock:
                if (console := self._console_here()) is None:
                    return self._headless.choose_all(requests, mode=mode)
                # From the first line on: Ctrl-C between two prompts must not end the run either.
                with self._keyboard.without_signals():
                    return self._ask(requests, Screen(console, self._keyboard))
        finally:
            for key in keys:
                self._forget(key)

    @property
    def actor(self) -> Actor:
        """Who answers here, as far as this process knows; their roles may be stored elsewhere."""
        return self._actor or Actor(name=user_here(), via="terminal")

    def bar(self, request_id: str, why: str) -> None:
        """Say, before a request is asked, that the person here is not entitled to answer: no answers are offered."""
        self._barred[request_id] = why

    def preview_edits(self, request_id: str, with_edit: WithEdit | None) -> None:
        """Say, before a request is asked, how it would be with edited arguments; None when it is over."""
        if with_edit is not None:
            self._edits[request_id] = with_edit
        else:
            self._edits.pop(request_id, None)

    def withdraw(self, request_id: str, why: str = "it was answered elsewhere") -> None:
        """Stop asking about a request, from another thread: its decision ends as cancelled.

        Does nothing if the request is not being asked about.
        """
        self._turns.withdraw(request_id, why)
        if request_id in self._asked:
            self._asked[request_id] = why
            self._keyboard.wake()

    def ask(self, request: ApprovalRequest) -> Outcome:
        """Queue a question and return at once a future for its decision, which is None if the person left.

        Ctrl-C and end of input decide nothing here: the person leaves every queued question. Raises `NobodyHere`
        without a terminal, whatever `headless` says.
        """
        if self._console_here() is None:
            raise NobodyHere(NO_TERMINAL)
        key = key_of(request)
        self._asked[key] = ""
        outcome = self._turns.ask(request)
        outcome.add_done_callback(lambda _: self._forget(key))
        return outcome

    def say(self, text: str) -> None:
        """Print a text, which must be safe to show: at once, or after the current question.

        Does nothing without a terminal.
        """

        def work() -> None:
            with self._lock:
                say()

        def say() -> None:
            if (console := self._console_here()) is not None:
                Screen(console, self._keyboard).say(text)

        if not self._lock.acquire(blocking=False):
            self._turns.do(work)
            return
        try:  # directly, so that it comes before what the caller prints next
            say()
        finally:
            self._lock.release()

    def close(self) -> None:
        """Leave everything that was asked with `ask` undecided."""
        self._turns.leave()
        for key in list(self._asked):
            self.withdraw(key, LEFT)

    def _forget(self, key: str) -> None:
        self._asked.pop(key, None)
        self._barred.pop(key, None)

    def _console_here(self) -> Console | None:
        """The terminal, if somebody may be sitting at it."""
        console = self._console if self._console is not None else terminal_console()
        return console if console is not None and console.is_terminal and self._keyboard.is_here else None

    def _decide_or_leave(self, request: ApprovalRequest) -> ApprovalDecision | None:
        with self._lock:
            if (console := self._console_here()) is None:
                raise NobodyHere(NO_TERMINAL)
            with self._keyboard.without_signals():
                return self._decide_one(request, Screen(console, self._keyboard))

    def _decide_one(self, request: ApprovalRequest, screen: Screen) -> ApprovalDecision | None:
        dialog = self._dialog(request, screen, in_list=False)
        if isinstance(dialog, ApprovalDecision):
            return dialog
        dialog.ctrl_c = CTRL_C_LEAVES
        try:
            decision = dialog.run()
        except Withdrawn as gone:
            decision = self._stopped(gone)
        except (NoLine, KeyboardInterrupt):
            screen.note(f"{LEFT}: {dialog.card.title}", "yellow")
            return None
        assert decision is not None, "there is no list to go back to"
        screen.note(said_about(dialog.request, dialog.card, decision), "green" if decision.approved else "red")
        return decision

    def _ask(self, requests: Sequence[ApprovalRequest], screen: Screen) -> list[ApprovalDecision]:
        dialogs = [self._dialog(request, screen, in_list=len(requests) > 1) for request in requests]
        shown = [dialog for dialog in dialogs if isinstance(dialog, Dialog)]
        answers = self._decide(shown, screen)
        if shown and all(map(_is_left, answers)):
            raise NobodyHere(LEFT)
        decisions = iter(answers)
        return [next(decisions) if isinstance(dialog, Dialog) else dialog for dialog in dialogs]

    def _decide(self, dialogs: Sequence[Dialog], screen: Screen) -> list[ApprovalDecision]:
        def say(dialog: Dialog, decision: ApprovalDecision) -> None:
            if _is_left(decision):
                screen.note(f"{LEFT}: {dialog.card.title}", "yellow")
                return
            screen.note(said_about(dialog.request, dialog.card, decision), "green" if decision.approved else "red")

        try:
            if len(dialogs) != 1:
                return CardBatch(dialogs, screen, self.actor, stopped=self._stopped, say=say).run()
            decision = dialogs[0].run()
            assert decision is not None
        except (NoLine, KeyboardInterrupt) as stop:
            if isinstance(stop, KeyboardInterrupt):
                stop = LeftOpen() if self._can_stop else Interrupted("interrupted at the terminal")
            decision = self._stopped(stop)
        for dialog in dialogs:
            say(dialog, decision)
        return [decision] * len(dialogs)

    def _dialog(self, request: ApprovalRequest, screen: Screen, *, in_list: bool) -> Dialog | ApprovalDecision:
        """Return the dialog for a request, or a denial if it cannot be shown and so cannot be approved."""
        card = card_here(
            request,
            self._secrets,
            remember=self._remember,
            keeps_always=self._keeps_always,
            now=datetime.now(UTC),
            viewer=self.actor.name,
        )
        if isinstance(card, ApprovalDecision):
            screen.say(f"denied: {safe_text(request.tool_name)}: {visible(card.note)}", "red")
            return card
        return Dialog(
            request,
            card,
            screen,
            self.actor,
            editor=self._editor,
            secrets=self._secrets,
            in_list=in_list,
            can_stop=self._can_stop,
            barred=self._barred.get(key_of(request), ""),
            draft_rules=self._draft_rules,
            with_edit=self._edits.get(request.id),
            moot=lambda: self._asked.get(key_of(request), ""),
        )

    def _stopped(self, stop: NoLine) -> ApprovalDecision:
        if isinstance(stop, Withdrawn | LeftOpen):
            note = LEFT if isinstance(stop, LeftOpen) else str(stop)
            return ApprovalDecision(approved=False, note=note, ending=Ending.CANCELLED)
        return ApprovalDecision(approved=False, note=str(stop), by=self.actor)


def _is_left(decision: ApprovalDecision) -> bool:
    """Whether the question was left open, which is no decision."""
    return decision.ending is Ending.CANCELLED and decision.note == LEFT


def key_of(request: ApprovalRequest) -> str:
    """Return the key that a request is withdrawn by."""
    return request.id or request.tool_call_id


def card_here(
    request: ApprovalRequest,
    secrets: Iterable[str],
    *,
    remember: bool,
    keeps_always: bool,
    now: datetime | None = None,
    viewer: str = "",
) -> Card | ApprovalDecision:
    """Return the card, with times in the local time zone, or a denial if it cannot be shown.

    What cannot be shown cannot be approved.
    """
    try:
        return card_for(
            request,
            secrets=secrets,
            remember=remember,
            keeps_always=keeps_always,
            zone=datetime.astimezone,
            now=now,
            viewer=viewer,
        )
    except (SignoffError, ValueError, TypeError, RecursionError) as error:
        return ApprovalDecision(approved=False, note=f"the call could not be shown: {error}")


def user_here() -> str:
    """Return who sits here: `$SIGNOFF_AS`, or the system's user."""
    try:
        return os.environ.get("SIGNOFF_AS", "").strip() or getpass.getuser()
    except (KeyError, OSError):  # the system has no name for this user id
        return f"user {os.getuid()}"


def said_about(request: ApprovalRequest, card: Card, decision: ApprovalDecision) -> str:
    """Describe an answer and the call it is about, with the person's changes if there are any."""
    title = card.title
    if decision.edited_args is not None:  # the title describes the call before the edit
        title = safe_summary(request.changed_to(decision=decision), secrets=request.secrets)
    return f"{said(decision, card.keeps, is_vote=request.requirement.is_strict)}: {title}"


def said(decision: ApprovalDecision, keeps: Keeps = Keeps.ALWAYS, *, is_vote: bool = False) -> str:
    """Describe an answer in words. Whether it is accepted, and enough, is not known yet."""
    if decision.ending is Ending.CANCELLED:
        return f"withdrawn, {redacted_text(decision.note)}"
    if not decision.approved:
        no = "you vote no" if is_vote else "you deny it"
        return f"{no} ({visible(decision.note)})" if decision.note else no
    yes = "you vote yes," if is_vote else "you approve it"
    if decision.edited_args is not None:
        return f"{yes} with your changes"
    if decision.terms is not None and decision.terms.match is not None:
        return f"{yes.removesuffix(',')}, and calls like it"
    match decision.remember:
        case Remember.SESSION:
            return f"{yes} {session_text(keeps)}"
        case Remember.ALWAYS:
            return f"{yes} always"
        case Remember.NONE:
            return f"{yes} once"
