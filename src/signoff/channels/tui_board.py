"""The main screen of the full-screen approver: pending requests on the left, the card on the right, keys to answer."""

# pyright: reportUnknownMemberType=false
# textual does not type which app a widget belongs to.

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, ClassVar

from rich.cells import cell_len
from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container
from textual.screen import Screen
from textual.widgets import Static

from signoff.channels.answer_keys import KEYS, RULE, Key
from signoff.channels.edit_draft import EditDraft
from signoff.channels.render import TerminalLook, clipped, draw_card
from signoff.channels.rule_drafts import WRITTEN, DraftRules, RuleDraft, RuleDrafts
from signoff.channels.terminal import said_about
from signoff.channels.tui_lines import KeyLine, Listing, Paper
from signoff.channels.tui_list import block
from signoff.channels.tui_prompts import (
    NOT_YET,
    EditPrompt,
    Help,
    NotePrompt,
    NoticeSheet,
    RememberPrompt,
    RulePrompt,
    SearchNotice,
    paragraphs,
)
from signoff.channels.tui_requests import WaitingRequest, WaitingRequests, named
from signoff.core.card import APPROVING, Card, Choice
from signoff.core.decision import ApprovalDecision
from signoff.core.people import Actor
from signoff.core.safe_text import redacted_text
from signoff.core.visible_text import visible
from signoff.errors import SignoffError

GRACE = timedelta(milliseconds=400)
"""How long a card must be visible before a key can decide it, so that a key meant for the last card does not."""

TICK = 1.0
"""Interval in seconds at which ages and deadlines are redrawn."""

_ANSWERS = (*((one, KEYS[one]) for one in (Choice.APPROVE, Choice.DENY, Choice.DENY_NOTE, Choice.EDIT)),)
_REMEMBER = Key("l", "approve and remember")
_OTHERS = (Key("Tab", "next"), Key("Space", "scroll"), Key("?", "help"), Key("q", "leave"))
_CLOSED = "It is no longer open. Press Tab for the next request."


class Board(Screen[None]):
    """The main screen. All other screens are modal sheets above it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("a,A", "approve", "approve"),
        Binding("d,D,n,N", "deny", "deny"),
        Binding("r,R", "give_reason", "deny with a reason"),
        Binding("e,E", "edit", "edit"),
        Binding("l,L,s,S,w,W", "remember", "approve and remember"),
        Binding("u,U", "make_rule", "make a rule"),
        Binding("question_mark,h,f1", "explain", "help"),
        Binding("q,Q,ctrl+c", "leave", "leave"),
        Binding("tab,j,right,greater_than_sign", "step(1)", "next", priority=True),
        Binding("shift+tab,k,left,less_than_sign", "step(-1)", "before", priority=True),
        Binding("enter", "nothing", "nothing"),
    ]

    def __init__(
        self,
        waiting: WaitingRequests,
        by: Actor,
        *,
        secrets: Iterable[str],
        draft_rules: DraftRules | None,
        clock: Callable[[], datetime],
    ) -> None:
        super().__init__()
        self._waiting = waiting
        self._by = by
        self._secrets = tuple(secrets)
        self._draft_rules = draft_rules
        self._clock = clock
        self._entries: list[WaitingRequest] = []
        self._current: WaitingRequest | None = None
        self._drawn: Card | None = None
        """The card that is on the screen."""
        self._refused: list[WaitingRequest] = []
        """Requests whose answer was not accepted and that were not brought to the front since."""
        self._place = 0
        """The index of the current request in the list."""
        self._message = ("", "")
        self._steady_since: datetime | None = None
        """Since when the card is visible without a deciding key pressed too soon; None until it is drawn."""

    # --- drawing ---

    def compose(self) -> ComposeResult:
        yield Static("", id="head")
        with Container(id="body"):
            yield Listing(id="list")
            yield Paper(id="card")
        yield Static("", id="said")
        yield KeyLine(id="keys")

    def on_resize(self) -> None:
        self._draw_list()

    def on_mount(self) -> None:
        self.query_one(Paper).focus()
        self.set_interval(TICK, self._draw_list)
        self.take_up()

    def take_up(self) -> None:
        """Read the pending requests again and redraw."""
        before = self._entries
        self._entries = self._waiting.entries()
        current = self._current
        for entry in before:
            if entry.gone and entry is not current:
                self.say(_withdrawn(entry))
        for text in self._waiting.news():
            self.say(text)
        for entry in self._entries:
            if entry.card.problem and entry not in before:
                self._refused.append(entry)
                self.say(_not_accepted(entry), "red")
        if current is not None and current.gone and current in before:
            self._close(current)
        elif current is not None and current.is_open and current.card is not self._drawn:
            self._open(current)
            self.say("This question has changed: review it again. Nothing is decided.")
        if self._waiting.is_closed:
            self.app.exit()
        else:
            self._bring_back()
            if self._current is None:
                self._open(self._entries[0])
        self._draw()

    def _bring_back(self) -> None:
        """Bring a card to the front whose answer was not accepted, unless the current one must be handled first."""
        self._refused = [entry for entry in self._refused if entry.is_open]
        if not self._refused or self.app.screen is not self:
            return
        current = self._current
        if current is None or (current.is_open and not current.card.problem):
            entry = self._refused[0]
            self._open(entry)
            self.say(_not_accepted(entry), "red")

    def _close(self, entry: WaitingRequest) -> None:
        """Handle that the current request was settled elsewhere. Its card stays, so that no key hits the next one."""
        self.say(_CLOSED)
        self._show_card(entry)
        if self.app.screen is self:
            return
        while self.app.screen is not self:
            self.app.pop_screen()
        if self._entries:  # the person may still be typing: no key of that may decide anything
            self.app.push_screen(NoticeSheet(_withdrawn(entry)))

    def _open(self, entry: WaitingRequest) -> None:
        self._current = entry
        if entry in self._refused:
            self._refused.remove(entry)
        self._steady_since = None
        self._show_card(entry)
        self._draw()
        self.call_after_refresh(self._appeared, entry)

    def _appeared(self, entry: WaitingRequest) -> None:
        if entry is self._current and self._steady_since is None:
            self._steady_since = self._clock()

    def _show_card(self, entry: WaitingRequest) -> None:
        card = self._drawn = entry.card

        def draw(look: TerminalLook) -> Sequence[Text]:
            why = paragraphs(redacted_text(entry.gone), "bold yellow")(look) if entry.gone else ()
            return [*why, *draw_card(card, look, whole=True).lines]

        self.query_one("#card", Paper).show_lines(draw, seen_whole=entry.was_shown_whole)

    def on_paper_seen(self) -> None:
        current = self._current
        if current is not None and current.card is self._drawn and self.query_one("#card", Paper).seen_whole:
            current.was_shown_whole = True
            if self._message[0].startswith(NOT_YET.partition(":")[0]):
                self._message = ("", "")
            self._draw()

    def on_screen_resume(self) -> None:
        # What was drawn below a sheet did not count as seen: draw it again, now that nothing covers it.
        self.query_one("#card", Paper).refresh()
        self._bring_back()

    def on_listing_chosen(self, event: Listing.Chosen) -> None:
        listed = self._listed()
        if event.index < len(listed) and listed[event.index] is not self._current:
            self._go_to(listed[event.index])

    def _listed(self) -> list[WaitingRequest]:
        """The open requests, and the one on the screen even if it is no longer open."""
        current = self._current
        if current is None or current in self._entries:
            return self._entries
        return [*self._entries[: self._place], current, *self._entries[self._place :]]

    def _draw(self) -> None:
        self._draw_list()
        self._draw_status()

    def _draw_list(self) -> None:
        listed, at = self._listed(), self._clock()
        self.query_one("#head", Static).update(_head(len(self._entries), visible(self._by.name), self.size.width - 2))

        def draw(look: TerminalLook) -> Sequence[Text]:
            return [line for entry in listed for line in block(entry, look, at)]

        self._place = listed.index(self._current) if self._current in listed else 0
        self.query_one(Listing).show_blocks(draw, self._place)

    def _draw_status(self) -> None:
        text, style = self._message
        entry = self._current
        if not text and entry is not None and entry.is_open and not entry.was_shown_whole:
            if APPROVING & set(entry.card.choices):
                text = NOT_YET
        self.query_one("#said", Static).update(Text(text, style=style or "yellow"))
        self.query_one(KeyLine).show_keys(*self._keys())

    def _keys(self) -> tuple[Sequence[Key], Sequence[Key]]:
        """Return the keys that can be pressed, and those of them that work only once the whole card was seen."""
        entry = self._current
        choices = entry.card.choices if entry is not None and entry.is_open else ()
        keys = [key for choice, key in _ANSWERS if choice in choices]
        if self._draft_rules is not None and entry is not None and not entry.request.requirement.is_strict:
            keys.append(RULE)
        if Choice.SESSION in choices:
            keys.append(_REMEMBER)
        is_seen = entry is None or entry.was_shown_whole
        return [*keys, *_OTHERS], () if is_seen else (KEYS[Choice.APPROVE], _REMEMBER)

    def say(self, text: str, style: str = "yellow") -> None:
        self._message = (text, style)
        self._draw_status()

    # --- actions ---

    def action_step(self, by: int) -> None:
        listed = self._listed()
        if not listed:
            return
        place = listed.index(self._current) if self._current in listed else 0
        self._go_to(listed[(place + by) % len(listed)])

    def _go_to(self, entry: WaitingRequest) -> None:
        self._message = ("", "")
        if entry.is_open:
            self._open(entry)
        self._draw()

    def action_approve(self) -> None:
        if (entry := self._ready(Choice.APPROVE)) and not self._too_soon():
            self._settle(entry, ApprovalDecision(approved=True, by=self._by))

    def action_deny(self) -> None:
        if (entry := self._ready(Choice.DENY)) and not self._too_soon():
            self._settle(entry, ApprovalDecision(approved=False, by=self._by))

    def action_give_reason(self) -> None:
        if entry := self._ready(Choice.DENY_NOTE):

            def noted(note: str | None) -> None:
                if note:
                    self._settle(entry, ApprovalDecision(approved=False, note=note, by=self._by))
                else:
                    self.say("Nothing is decided.")

            self.app.push_screen(NotePrompt(entry.card), noted)

    def action_edit(self) -> None:
        if entry := self._ready(Choice.EDIT):

            def edited(args: Mapping[str, Any] | None) -> None:
                if args is not None:
                    self._settle(entry, ApprovalDecision(approved=True, edited_args=args, by=self._by))
                else:
                    self.say("Nothing is decided.")

            # What the card masks must be masked here too.
            draft = EditDraft(entry.request, self._secrets, entry.with_edit)
            self.app.push_screen(EditPrompt(draft, entry.card), edited)

    def action_remember(self) -> None:
        if entry := self._ready(Choice.SESSION):

            def chosen(decision: ApprovalDecision | None) -> None:
                if decision is not None and entry.is_open and not entry.was_shown_whole:
                    self.say("The question has changed: review it again. Nothing is decided.")
                elif decision is not None:
                    self._settle(entry, replace(decision, by=self._by))
                else:
                    self.say("Nothing is decided.")

            self.app.push_screen(RememberPrompt(entry.request, entry.card, self._clock()), chosen)

    def action_make_rule(self) -> None:
        """Offer rules that allow calls like this one. That does not decide the call itself."""
        if self._current is not None and self._draft_rules is not None:
            # A modal sheet, so that nobody moves to another card meanwhile: the result belongs to this one.
            looking = SearchNotice(self._current.card)
            self.app.push_screen(looking)
            self.run_worker(self._offer_rules(self._current, self._draft_rules, looking))

    async def _offer_rules(self, entry: WaitingRequest, draft_rules: DraftRules, looking: SearchNotice) -> None:
        found: RuleDrafts | None = None
        refused = ""
        try:
            found = await asyncio.to_thread(draft_rules, entry.request)
        except SignoffError as error:
            refused = visible(str(error), lines=True)
        if self.app.screen is not looking:  # the person went back, or it was settled elsewhere
            return
        self.app.pop_screen()
        if found is None or not found.drafts:
            why = "\n".join(found.refused) if found is not None else refused
            self.app.push_screen(NoticeSheet(f"No rule can be made from {named(entry.card)}.\n{why}"))
            return

        def chosen(draft: RuleDraft | None) -> None:
            self.say(_written(draft) if draft is not None else "Nothing was written.")

        self.app.push_screen(RulePrompt(found), chosen)

    def action_explain(self) -> None:
        entry = self._current
        self.app.push_screen(Help(entry.request, entry.card) if entry else Help(None, None))

    def action_nothing(self) -> None:
        self.say("Enter is not an answer. Nothing is decided.")

    def action_leave(self) -> None:
        """Leave all open requests undecided."""
        self._waiting.leave()
        self.app.exit()

    def _ready(self, choice: Choice) -> WaitingRequest | None:
        """Return the current request if this may be chosen for it now; otherwise say why not."""
        entry = self._current
        if entry is None:
            return None
        if entry.gone:
            self.say(_CLOSED)
        elif choice not in entry.card.choices:
            what = "remembered" if choice is Choice.SESSION else "approved"
            self.say(f"This call cannot be {what} here. Nothing is decided.")
        elif choice in APPROVING and choice is not Choice.EDIT and not entry.was_shown_whole:
            self.say(NOT_YET)
            self._tell_skipped()
        else:
            return entry
        return None

    def _tell_skipped(self) -> None:
        """Tell a person who is at the end of the card already which lines were skipped."""
        paper = self.query_one("#card", Paper)
        unseen = paper.next_unseen()
        if unseen is not None and paper.scroll_offset.y >= paper.max_scroll_y:
            self.say(f"Not everything has been on the screen yet: line {unseen + 1:,} and more above were skipped.")

    def _too_soon(self) -> bool:
        """Whether a key comes too soon after the card appeared. A key that is held down never decides."""
        at = self._clock()
        soon = self._steady_since is None or at - self._steady_since < GRACE
        if soon:
            self._steady_since = at if self._steady_since is not None else None
            self.say("This card has only just appeared. Nothing is decided: look at it, then press the key again.")
        return soon

    def _settle(self, entry: WaitingRequest, decision: ApprovalDecision) -> None:
        place = self._entries.index(entry) if entry in self._entries else 0
        if not self._waiting.settle(entry, decision):
            self.take_up()
            return
        self.say(said_about(entry.request, entry.card, decision), "green" if decision.approved else "red")
        self._current = None
        self._entries = self._waiting.entries()
        if self._entries:
            self._open(self._entries[min(place, len(self._entries) - 1)])
        self.take_up()


def _not_accepted(entry: WaitingRequest) -> str:
    return f"Your answer to {named(entry.card)} was not accepted: {entry.card.problem}"


def _head(number: int, name: str, width: int) -> Text:
    """Say how many requests are pending and who sits here: in fewer words on a narrow screen, but always both."""
    calls = "1 call waits" if number == 1 else f"{number} calls wait"
    for words in (
        f"signoff · {calls} for an answer · you are {name}",
        f"{calls} · you are {name}",
        f"{calls} · {name}",
    ):
        if cell_len(words) <= width:
            return Text(words)
    return clipped(Text(f"{name} · {number}"), width)


def _withdrawn(entry: WaitingRequest) -> str:
    return f"{redacted_text(entry.gone)}: {entry.card.title}"


def _written(draft: RuleDraft) -> str:
    """Write a rule and return what to say about it."""
    try:
        draft.write()
    except SignoffError as error:
        return f"Nothing was written: {visible(str(error))}"
    return WRITTEN
