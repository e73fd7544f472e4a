"""The terminal dialog about one card, until it is decided."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial

from rich.text import Text

from signoff.channels.answer_keys import (
    BACK,
    CARD,
    CTRL_C_DENIES,
    CTRL_C_LEAVES,
    KEYS,
    RULE,
    STOP,
    Key,
    choice_for,
    is_yes,
    keys_for,
    numbers_to,
)
from signoff.channels.edit_draft import EditDraft, edit_arguments
from signoff.channels.keyboard import EndOfInput, Interrupted, LeftOpen, Withdrawn
from signoff.channels.render import draw_card, draw_diff, draw_facts, top_of
from signoff.channels.rule_drafts import WRITTEN, DraftRules, RuleDraft
from signoff.channels.terminal_screen import Screen
from signoff.core.card import APPROVING, Card, Choice, remember_text
from signoff.core.decision import ApprovalDecision, Remember
from signoff.core.people import Actor
from signoff.core.request import ApprovalRequest, WithEdit
from signoff.core.visible_text import visible
from signoff.errors import SignoffError
from signoff.policy.grant_text import spelled_out
from signoff.policy.offer import how_long, wider_terms

_PROMPT = "your answer"
_NOT_ALL = "Not everything is shown: press m to see the rest before you can approve."
_LEAST_ROWS = 4
"""A card is never drawn in fewer rows, however low the screen is."""


_UNSEEN = APPROVING - {Choice.EDIT}
"""Choices that are blocked until the whole card was shown. The editor shows everything itself, so EDIT is not."""


@dataclass(slots=True)
class Dialog:
    """Shows a card, reads letters and returns a decision. An empty line never decides."""

    request: ApprovalRequest
    card: Card
    screen: Screen
    by: Actor
    editor: str | None = None
    secrets: Iterable[str] = ()
    clock: Callable[[], datetime] = field(default=partial(datetime.now, UTC))
    in_list: bool = False
    """Whether the card was opened from a list that it can go back to."""
    can_stop: bool = False
    """Whether the run can be stopped here, with the question left open. Ctrl-C and end of input then do so too."""
    ctrl_c: Key = CTRL_C_DENIES
    """What Ctrl-C does if the run cannot be stopped."""
    barred: str = ""
    """Why the person here is not entitled to answer; empty if nothing is known against it."""
    draft_rules: DraftRules | None = None
    """Drafts rules from the call; None if there is no file to write them to."""
    with_edit: WithEdit | None = None
    """Returns the request as it would be asked with edited arguments, to show what they would change."""
    moot: Callable[[], str] = lambda: ""
    """Returns why the question is no longer open, or an empty text."""
    was_shown: bool = field(default=False, init=False)
    was_shown_whole: bool = field(default=False, init=False)
    """Whether every part of the card has been on the screen. It cannot be approved before that."""
    _is_shortened: bool = field(default=False, init=False)
    """Whether the card as last drawn was shortened."""

    def run(self) -> ApprovalDecision | None:
        """Return the decision, or None to go back to the list. Raises a `NoLine`."""
        if reason := self.moot():
            raise Withdrawn(reason)
        try:
            return self._decide()
        except (Interrupted, EndOfInput):
            if self.can_stop or self.barred:
                raise LeftOpen from None
            raise

    def _decide(self) -> ApprovalDecision | None:
        self._draw()
        while True:
            typed = self.screen.ask(_PROMPT, self.moot)
            if self.in_list and BACK.means(typed):
                return None
            if self.can_stop and STOP.means(typed):
                raise LeftOpen
            if CARD.means(typed):
                self._draw()
            elif (draft_rules := self._draft_rules) is not None and RULE.means(typed):
                self._make_rule(draft_rules)
            elif (decision := self._follow(choice_for(typed, self._understood), typed)) is not None:
                return decision

    @property
    def _draft_rules(self) -> DraftRules | None:
        """None also if the requirement is strict: a rule would let the call run without the required people."""
        return None if self.barred or self.request.requirement.is_strict else self.draft_rules

    @property
    def _understood(self) -> tuple[Choice, ...]:
        """What can be chosen, in the order of the keys. "Show everything" is offered only if the card was shortened."""
        known = {Choice.EVERYTHING, Choice.WHY} if self.barred else set(self.card.choices)
        return tuple(
            choice for choice in KEYS if choice in known and (choice is not Choice.EVERYTHING or self._is_shortened)
        )

    def _keys(self, *, is_new: bool = False) -> list[Key]:
        """The keys on offer. Approving keys are left out until the whole card was shown.

        `is_new`: the card was just drawn, so "show the card again" is left out too.
        """
        offered = [one for one in self._understood if self.was_shown_whole or one not in _UNSEEN]
        may = ((CARD, not is_new), (RULE, self._draft_rules is not None), (STOP, self.can_stop))
        others = [key for key, is_offered in may if is_offered]
        if not self.can_stop:
            others.append(CTRL_C_LEAVES if self.barred else self.ctrl_c)
        return [*keys_for(offered, self.card.keeps), *others, *([BACK] if self.in_list else [])]

    def _follow(self, choice: Choice | None, typed: str) -> ApprovalDecision | None:
        if choice in _UNSEEN and not self.was_shown_whole:
            self.screen.say(
                "Not everything has been on the screen yet: press m to see the rest, then approve.", "yellow"
            )
            return None
        match choice:
            case Choice.APPROVE:
                return self._approved()
            case Choice.DENY:
                return self._denied("")
            case Choice.DENY_NOTE:
                return self._deny_with_reason()
            case Choice.EDIT:
                return self._edit()
            case Choice.SESSION:
                return self._approve_and_remember(Remember.SESSION)
            case Choice.ALWAYS:
                return self._approve_and_remember(Remember.ALWAYS)
            case Choice.WIDER:
                return self._approve_calls_like_it()
            case Choice.EVERYTHING:
                self._show_everything()
            case Choice.WHY:
                self._explain()
            case None:
                self._hint(typed)
        return None

    def _draw(self) -> None:
        """Draw the keys and as much of the card as fits above them."""
        room = max(_LEAST_ROWS, self.screen.look.height - self._rows_below())
        look = self.screen.look
        drawing = top_of(draw_card(self.card, look, room=room), room, look)
        self.screen.show(drawing.lines)
        self.was_shown, self._is_shortened = True, drawing.shortened
        self.was_shown_whole = self.was_shown_whole or not drawing.shortened
        if not self.was_shown_whole and self._approves:
            self.screen.say(_NOT_ALL, "yellow")
        if who := self._who_answers():
            self.screen.say(who, "bold yellow" if self.barred else "")
        self._offer(is_new=True)

    @property
    def _approves(self) -> bool:
        return not self.barred and not APPROVING.isdisjoint(self.card.choices)

    def _rows_below(self, *, is_new: bool = True) -> int:
        """Return how many rows are printed below a card at most; whether the card fits is not known yet."""
        was_shown_whole, was_shortened = self.was_shown_whole, self._is_shortened
        rows: list[int] = []
        for is_short in (True, False):
            self._is_shortened, self.was_shown_whole = is_short, was_shown_whole or not is_short
            told = self.screen.rows(_NOT_ALL) if not self.was_shown_whole and self._approves else 0
            rows.append(told + len(self.screen.key_lines(self._keys(is_new=is_new))))
        self.was_shown_whole, self._is_shortened = was_shown_whole, was_shortened
        who = self._who_answers()
        return max(rows) + (self.screen.rows(who) if who else 0) + 1

    def _who_answers(self) -> str:
        """Say who answers, if the requirement is strict. For somebody who is not entitled, say why and how to leave."""
        if self.barred:
            way = (
                "q stops the run and leaves the request open for others"
                if self.can_stop
                else "Ctrl-C leaves it to others"
            )
            return f"You cannot answer this: {visible(self.barred)}. {way}."
        if not self.request.requirement.is_strict:
            return ""
        return f"You answer as {visible(self.by.name)}."

    def _offer(self, *, is_new: bool = False) -> None:
        self.screen.offer(self._keys(is_new=is_new))

    def _show(self, lines: Sequence[Text], prompt: str = "") -> bool:
        """Show lines other than the card, page by page. Returns whether all of them were shown."""
        below = self.screen.rows(f"{prompt} > ") if prompt else len(self.screen.key_lines(self._keys())) + 1
        return self.screen.page(lines, self.moot, below=below)

    def _hint(self, typed: str) -> None:
        what = (
            f"“{visible(typed.strip()[:40])}” is not one of the answers."
            if typed.strip()
            else "Enter alone is not an answer."
        )
        self.screen.say(f"{what} Nothing is decided. Type a letter, then Enter:", "yellow")
        if self.barred:
            self.screen.say(self._who_answers(), "bold yellow")
        self._offer()

    def _show_everything(self) -> None:
        drawing = draw_card(self.card, self.screen.look, whole=True)
        if self.screen.page(drawing.lines, self.moot, below=self._rows_below(is_new=False)):
            self.was_shown_whole = True
        elif not self.was_shown_whole and self._approves:
            self.screen.say(
                "You have not seen all of it, so you cannot approve it yet: press m to see the rest.", "yellow"
            )
        self._offer()

    def _deny_with_reason(self) -> ApprovalDecision | None:
        reason = self.screen.ask("reason, for the model and the audit log", self.moot).strip()
        if reason:
            return self._denied(reason)
        self.screen.say("No reason, so nothing is decided.", "yellow")
        self._offer()
        return None

    def _approve_and_remember(self, scope: Remember) -> ApprovalDecision | None:
        self.screen.say(remember_text(self.request, scope))
        if is_yes(self.screen.ask("approve and remember this? y yes, Enter no", self.moot)):
            return replace(self._approved(), remember=scope)
        self.screen.say("Nothing is decided.", "yellow")
        self._offer()
        return None

    def _approve_calls_like_it(self) -> ApprovalDecision | None:
        now = self.clock()
        terms = wider_terms(self.request, now)
        decisions = [replace(self._approved(), terms=one) for one in terms]
        texts = [spelled_out(self.request, one, datetime.astimezone) for one in decisions]
        labels = [f"{number} {how_long(one, now)}" for number, one in enumerate(terms, 1)]
        named = list(zip(labels, texts, strict=True))
        prompt = f"approve and remember which? {numbers_to(len(named))}, or Enter for none"
        drawing = draw_facts(named, self.screen.look, "what could be remembered")
        typed = self.screen.ask(prompt, self.moot).strip() if self._show(drawing.lines, prompt) else ""
        if typed.isascii() and typed.isdecimal() and 1 <= int(typed) <= len(decisions):
            self.screen.say(f"From then on: {texts[int(typed) - 1]}. A rule that denies still denies.")
            if is_yes(self.screen.ask("approve and remember this? y yes, Enter no", self.moot)):
                return decisions[int(typed) - 1]
        self.screen.say("Nothing is decided.", "yellow")
        self._offer()
        return None

    def _make_rule(self, draft_rules: DraftRules) -> None:
        """Offer rules that allow calls like this one. That does not decide the call itself."""
        try:
            found = draft_rules(self.request)
        except SignoffError as error:
            self.screen.say(f"No rule can be made here: {visible(str(error), lines=True)}", "yellow")
            self._offer()
            return
        for why in found.refused:
            self.screen.say(f"not offered: {why}", "yellow")
        if found.drafts:
            named = [(str(number), one.text) for number, one in enumerate(found.drafts, 1)]
            prompt = f"make which rule? {numbers_to(len(named))}, or Enter for none"
            drawing = draw_facts(named, self.screen.look, f"rules that let calls run, for {visible(found.file)}")
            typed = self.screen.ask(prompt, self.moot).strip() if self._show(drawing.lines, prompt) else ""
            if typed.isascii() and typed.isdecimal() and 1 <= int(typed) <= len(found.drafts):
                self._write_rule(found.drafts[int(typed) - 1], found.file)
            else:
                self.screen.say("Nothing was written.", "yellow")
        self._offer()

    def _write_rule(self, draft: RuleDraft, file: str) -> None:
        diff = draw_diff(draft.preview, self.screen.look, f"what would change in {visible(file)}")
        for warning in draft.warnings:
            self.screen.say(f"warning: {warning}", "yellow")
        prompt = "write this? y yes, Enter no"
        if not self._show(diff.lines, prompt) or not is_yes(self.screen.ask(prompt, self.moot)):
            self.screen.say("Nothing was written.", "yellow")
            return
        try:
            draft.write()
        except SignoffError as error:
            self.screen.say(f"Nothing was written: {visible(str(error), lines=True)}", "yellow")
        else:
            self.screen.say(WRITTEN, "green")

    def _edit(self) -> ApprovalDecision | None:
        edited = edit_arguments(
            self.screen,
            self.card,
            EditDraft(self.request, self.secrets, self.with_edit),
            command=self.editor,
            moot=self.moot,
        )
        if edited is not None:
            return replace(self._approved(), edited_args=edited)
        self.screen.say("Nothing is decided.", "yellow")
        self._offer()
        return None

    def _explain(self) -> None:
        facts = reasons(self.request, self.card)
        self._show(draw_facts(facts, self.screen.look, "why this is asked").lines)
        self._offer()

    def _approved(self) -> ApprovalDecision:
        return ApprovalDecision(approved=True, by=self.by)

    def _denied(self, note: str) -> ApprovalDecision:
        return ApprovalDecision(approved=False, note=note, by=self.by)


def reasons(request: ApprovalRequest, card: Card) -> list[tuple[str, str]]:
    """Return why a request is asked, as pairs of name and text, safe to show."""
    call = request.call
    facts = [
        ("asked because", card.why),
        ("rules", card.rule or "none: no rule matches, so the call asks"),
        *(("could not judge", error) for error in card.errors),
        ("who may answer", card.needs or "anyone"),
        ("until", card.until or "somebody answers"),
        ("message", card.message),
        ("called by", card.chain),
        ("toolset", card.toolset),
        ("kind of call", ", ".join(sorted(visible(label) for label in call.labels)) if call else ""),
        ("arguments", f"sha256 {card.digest}"),
        ("policy", visible(request.policy_revision)),
    ]
    return [fact for fact in facts if fact[1]]
