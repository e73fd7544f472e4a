"""The conversation about one card, until it is decided."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial

from signoff.channels.editing import edit_arguments, start_of
from signoff.channels.keyboard import Left, Withdrawn
from signoff.channels.keys import BACK, KEYS, RULE, STOP, choice_for, is_yes, keys_for
from signoff.channels.render import Drawing, draw_card, draw_diff, draw_facts
from signoff.channels.rule_drafts import WRITTEN, DraftRules, RuleDraft
from signoff.channels.screen import Screen
from signoff.core.card import APPROVING, Card, Choice, remember_text
from signoff.core.decision import ApprovalDecision, Remember
from signoff.core.offer import how_long, wider_terms
from signoff.core.people import Answerer
from signoff.core.request import ApprovalRequest
from signoff.core.safe import spelled_out
from signoff.core.visible import visible
from signoff.errors import SignoffError

_PROMPT = "your answer"


@dataclass(slots=True)
class Dialog:
    """Shows a card, takes letters, and returns a decision. It is never the decision of an empty line."""

    request: ApprovalRequest
    card: Card
    screen: Screen
    by: Answerer
    editor: str | None = None
    secrets: Iterable[str] = ()
    clock: Callable[[], datetime] = field(default=partial(datetime.now, UTC))
    in_list: bool = False
    """Whether there is a list to go back to."""
    can_stop: bool = False
    """Whether the run can be stopped here, the question left open."""
    draft_rules: DraftRules | None = None
    """Which rules could be made of the call, where there is a file that they could go to."""
    moot: Callable[[], str] = lambda: ""
    """Why the question is no longer open, or an empty text."""
    was_shown: bool = field(default=False, init=False)
    was_shown_whole: bool = field(default=False, init=False)
    """Whether every part of it has been on the screen: without that it cannot be approved."""

    def run(self) -> ApprovalDecision | None:
        """The decision; None to go back to the list. Raises `Stopped`."""
        if reason := self.moot():
            raise Withdrawn(reason)
        self._draw()
        self._offer()
        while True:
            typed = self.screen.ask(_PROMPT, self.moot)
            if self.in_list and BACK.means(typed):
                return None
            if self.can_stop and STOP.means(typed):
                raise Left
            if self.draft_rules is not None and RULE.means(typed):
                self._make_rule(self.draft_rules)
                continue
            choice = choice_for(typed, self._offered)
            decision = self._follow(choice, typed)
            if decision is not None:
                return decision

    @property
    def _offered(self) -> tuple[Choice, ...]:
        """What can be chosen, in the order of the keys. Showing everything is offered where something is not shown."""
        shown = self.was_shown_whole
        return tuple(
            choice for choice in KEYS if choice in self.card.choices and not (choice is Choice.EVERYTHING and shown)
        )

    def _follow(self, choice: Choice | None, typed: str) -> ApprovalDecision | None:
        if choice in APPROVING and choice is not Choice.EDIT and not self.was_shown_whole:
            self.screen.say("Not everything is on the screen yet: press m to see it whole, then approve.", "yellow")
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
        drawing: Drawing = draw_card(self.card, self.screen.look)
        self.screen.show(drawing.lines)
        self.was_shown = True
        self.was_shown_whole = self.was_shown_whole or not drawing.shortened
        if drawing.shortened and not self.was_shown_whole and APPROVING & set(self.card.choices):
            self.screen.say("Not all of it is shown: press m to see the rest; only then can you approve.", "yellow")

    def _offer(self) -> None:
        may = ((RULE, self.draft_rules is not None), (STOP, self.can_stop), (BACK, self.in_list))
        others = [key for key, is_offered in may if is_offered]
        self.screen.offer([*keys_for(self._offered, self.card.keeps), *others])

    def _hint(self, typed: str) -> None:
        what = (
            f"“{visible(typed.strip()[:40])}” is not one of the answers."
            if typed.strip()
            else "Enter alone is no answer."
        )
        self.screen.say(f"{what} Nothing is decided. Type a letter, then Enter:", "yellow")
        self._offer()

    def _show_everything(self) -> None:
        drawing = draw_card(self.card, self.screen.look, whole=True)
        if self.screen.page(drawing.lines, self.moot):
            self.was_shown_whole = True
        else:
            self.screen.say("You stopped before the end, so it cannot be approved yet.", "yellow")
        self._offer()

    def _deny_with_reason(self) -> ApprovalDecision | None:
        reason = self.screen.ask("reason, for the model and the record", self.moot).strip()
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
        terms = wider_terms(self.request, self.clock())
        decisions = [replace(self._approved(), terms=one) for one in terms]
        texts = [spelled_out(self.request, one, datetime.astimezone) for one in decisions]
        labels = [f"{number} {how_long(one)}" for number, one in enumerate(terms, 1)]
        named = list(zip(labels, texts, strict=True))
        self.screen.show(draw_facts(named, self.screen.look, "what could be remembered").lines)
        typed = self.screen.ask(f"approve and remember which? 1-{len(named)}, Enter none", self.moot).strip()
        if typed.isascii() and typed.isdecimal() and 1 <= int(typed) <= len(decisions):
            self.screen.say(f"From then on: {texts[int(typed) - 1]}. A rule that denies still denies.")
            if is_yes(self.screen.ask("approve and remember this? y yes, Enter no", self.moot)):
                return decisions[int(typed) - 1]
        self.screen.say("Nothing is decided.", "yellow")
        self._offer()
        return None

    def _make_rule(self, draft_rules: DraftRules) -> None:
        """Have a rule made that lets calls like this one run. The call itself is not decided by that."""
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
            self.screen.show(draw_facts(named, self.screen.look, f"rules for {visible(found.file)}").lines)
            typed = self.screen.ask(f"make which rule? 1-{len(named)}, Enter none", self.moot).strip()
            if typed.isascii() and typed.isdecimal() and 1 <= int(typed) <= len(found.drafts):
                self._write_rule(found.drafts[int(typed) - 1], found.file)
            else:
                self.screen.say("Nothing was written.", "yellow")
        self._offer()

    def _write_rule(self, draft: RuleDraft, file: str) -> None:
        diff = draw_diff(draft.preview, self.screen.look, f"what would change in {visible(file)}")
        for warning in draft.warnings:
            self.screen.say(f"warning: {warning}", "yellow")
        if not self.screen.page(diff.lines, self.moot) or not is_yes(
            self.screen.ask("write this? y yes, Enter no", self.moot)
        ):
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
            asked=self.request.args,
            start=start_of(self.request),
            command=self.editor,
            secrets=(*self.secrets, *self.request.secrets),
            moot=self.moot,
        )
        if edited is not None:
            return replace(self._approved(), edited_args=edited)
        self.screen.say("Nothing is decided.", "yellow")
        self._offer()
        return None

    def _explain(self) -> None:
        facts = reasons(self.request, self.card)
        self.screen.show(draw_facts(facts, self.screen.look, "why this is asked").lines)
        self._offer()

    def _approved(self) -> ApprovalDecision:
        return ApprovalDecision(approved=True, by=self.by)

    def _denied(self, note: str) -> ApprovalDecision:
        return ApprovalDecision(approved=False, note=note, by=self.by)


def reasons(request: ApprovalRequest, card: Card) -> list[tuple[str, str]]:
    """Why a request is asked, at length: named texts, safe to show."""
    call = request.call
    facts = [
        ("asked because", card.why),
        ("rules", card.rule or "none: what no rule allows is asked about"),
        *(("could not judge", error) for error in card.errors),
        ("who may answer", card.needs or "anyone"),
        ("without answer", card.until or "it waits"),
        ("message", card.message),
        ("called by", card.chain),
        ("toolset", card.toolset),
        ("kind of call", ", ".join(sorted(visible(label) for label in call.labels)) if call else ""),
        ("arguments", f"sha256 {card.digest}"),
        ("policy", visible(request.policy_revision)),
    ]
    return [fact for fact in facts if fact[1]]
