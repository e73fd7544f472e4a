"""Modal sheets of the full-screen approver: prompts, diffs and help above the card. Escape decides nothing."""

# pyright: reportUnknownMemberType=false
# textual does not type which app a widget belongs to.

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any, ClassVar, TypeVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Input, Static, TextArea

from signoff.channels.answer_keys import KEYS, Key
from signoff.channels.dialog import reasons
from signoff.channels.edit_draft import UNUSABLE, EditDraft, draw_edit
from signoff.channels.render import TerminalLook, draw_diff, draw_facts, folded
from signoff.channels.rule_drafts import RuleDraft, RuleDrafts
from signoff.channels.tui_lines import Draw, KeyLine, Paper
from signoff.core.card import Card, Choice, remember_text, session_text
from signoff.core.decision import ApprovalDecision, Remember
from signoff.core.preview import Preview
from signoff.core.request import ApprovalRequest
from signoff.core.visible_text import visible
from signoff.policy.grant_text import spelled_out
from signoff.policy.offer import how_long, wider_terms

T = TypeVar("T")

SHEETS = """
ModalSheet { align: center middle; background: $background 70%; }
ModalSheet > #box {
    width: 94%; max-width: 110; height: auto; max-height: 94%;
    background: $surface; border: round $primary; padding: 0 1;
}
ModalSheet Static { height: auto; }
ModalSheet Paper { height: auto; max-height: 100%; }
ModalSheet #foot { height: auto; dock: bottom; }
ModalSheet #said { color: $warning; }
EditPrompt > #box { height: 94%; }
EditPrompt TextArea, EditPrompt TextArea:focus { height: 1fr; border: none; padding: 0; }
"""
"""The CSS of the sheets."""

NOT_YET = "Not everything has been on the screen yet: press Space to continue before you can approve."
HELP = (
    ("a", "approve this call, once; only after all of its card was on the screen"),
    ("d, n", "deny it"),
    ("r", "deny with a reason, for the model and the audit log"),
    ("e", "edit the arguments; you see your changes before anything runs"),
    (
        "l, s, w",
        "approve and remember, for exactly this call or for similar calls; you see what it covers first",
    ),
    ("u", "make a rule from it, if offered: you see the change to signoff.yaml before it is written"),
    ("q, Ctrl-C", "quit; open requests stay open"),
    ("Tab, j", "the next request"),
    ("Shift-Tab, k", "the one before"),
    ("Space, PgDn", "the next page of the card; also ↓ ↑ PgUp Home End"),
    ("Enter", "nothing, ever"),
)


_BACK = Key("Escape", "back")


class ModalSheet(ModalScreen[T]):
    """A modal box above the card."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,ctrl+c", "back", "back")]

    keys: Sequence[Key] = (_BACK,)

    def compose(self) -> ComposeResult:
        with Vertical(id="box"):
            yield from self.content()
            with Vertical(id="foot"):
                yield Static("", id="said", markup=False)
                yield KeyLine(self.keys, id="keys")

    def content(self) -> ComposeResult:
        """The content of the sheet."""
        yield Static("")

    def on_mount(self) -> None:
        self.say("")

    def say(self, text: str) -> None:
        """Say why nothing happened."""
        line = self.query_one("#said", Static)
        line.update(Text(text))
        line.display = bool(text)

    def action_back(self) -> None:
        self.dismiss(None)


class NoticeSheet(ModalSheet[None]):
    """A notice to read before going on."""

    keys = (Key("Escape or Enter", "continue"),)
    BINDINGS: ClassVar[list[BindingType]] = [Binding("enter", "back", "continue")]

    def __init__(self, text: str) -> None:
        super().__init__()
        self._text = text

    def content(self) -> ComposeResult:
        yield Paper(paragraphs(self._text))


class SearchNotice(NoticeSheet):
    """Shown while rules are drafted."""

    keys = (_BACK,)

    def __init__(self, card: Card) -> None:
        super().__init__(f"Looking for rules that could be made from {card.tool} …")


class NotePrompt(ModalSheet[str]):
    """Asks why a call is denied."""

    keys = (Key("Enter", "deny with this reason"), Key("Escape", "back, nothing is decided"))

    def __init__(self, card: Card) -> None:
        super().__init__()
        self._card = card

    def content(self) -> ComposeResult:
        yield Static(Text(f"deny {self._card.tool}: reason, for the model and the audit log", style="bold"))
        yield Input(id="note")

    def on_input_submitted(self, event: Input.Submitted) -> None:
        note = event.value.strip()
        if note:
            self.dismiss(note)
        else:
            self.say("No reason, so nothing is decided.")


_DIGITS = "123456789"


class RememberPrompt(ModalSheet[ApprovalDecision]):
    """Spells out what can be remembered, each under a key. Returns the decision, without an actor."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("s,S", "take('s')", "this session"),
        Binding("w,W", "take('w')", "always"),
        *(Binding(digit, f"take('{digit}')", "calls like it") for digit in _DIGITS),
    ]

    def __init__(self, request: ApprovalRequest, card: Card, now: datetime) -> None:
        super().__init__()
        self._offered: dict[str, ApprovalDecision] = {}
        self._texts: list[tuple[str, str]] = []
        keys: list[Key] = []
        for letter, scope, choice in (("s", Remember.SESSION, Choice.SESSION), ("w", Remember.ALWAYS, Choice.ALWAYS)):
            if choice in card.choices:
                self._offered[letter] = ApprovalDecision(approved=True, remember=scope)
                self._texts.append((letter, remember_text(request, scope)))
                how = session_text(card.keeps) if scope is Remember.SESSION else "always"
                keys.append(Key(letter, f"approve {how}"))
        if Choice.WIDER in card.choices:
            wider = zip(_DIGITS, wider_terms(request, now), strict=False)
            for digit, terms in wider:
                self._offered[digit] = decision = ApprovalDecision(approved=True, terms=terms)
                spelled = spelled_out(request, decision, datetime.astimezone)
                self._texts.append((f"{digit} {how_long(terms, now)}", spelled))
            last = max(self._offered.keys() & set(_DIGITS))
            keys.append(Key("1" if last == "1" else f"1-{last}", KEYS[Choice.WIDER].label))
        self.keys = (*keys, _BACK)

    def content(self) -> ComposeResult:
        yield Paper(lambda look: draw_facts(self._texts, look, "approve, and remember this").lines)

    def action_take(self, key: str) -> None:
        if key not in self._offered:
            self.say("That is not offered for this call.")
        elif not self.query_one(Paper).seen_whole:
            self.say(NOT_YET)
        else:
            self.dismiss(self._offered[key])


class RulePrompt(ModalSheet[RuleDraft]):
    """Offers rules that can be made from a call, by number. Returns the one to write, once its diff is confirmed."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding(digit, f"take({digit})", "this rule") for digit in _DIGITS]

    def __init__(self, found: RuleDrafts) -> None:
        super().__init__()
        self._found = found
        self.keys = (Key("1" if len(found.drafts) == 1 else f"1-{len(found.drafts)}", "look at the change"), _BACK)

    def content(self) -> ComposeResult:
        rules = [(str(number), one.text) for number, one in enumerate(self._found.drafts, 1)]
        others = [("not offered", why) for why in self._found.refused]
        yield Paper(lambda look: draw_facts([*rules, *others], look, f"rules for {visible(self._found.file)}").lines)

    def action_take(self, number: int) -> None:
        if number > len(self._found.drafts):
            self.say("There is no such rule.")
            return
        draft = self._found.drafts[number - 1]

        def confirmed(yes: bool | None) -> None:
            if yes:
                self.dismiss(draft)

        title = f"what would change in {visible(self._found.file)}"
        yes = Key("y", "write this")
        diff = partial(_titled, draft.preview, title)
        self.app.push_screen(Confirm(diff, (yes, _BACK), draft.warnings), confirmed)


class Confirm(ModalSheet[bool]):
    """Shows a diff and asks for confirmation."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("y,Y", "yes", "yes")]

    def __init__(self, diff: Draw, keys: Sequence[Key], warnings: Sequence[str] = ()) -> None:
        super().__init__()
        self._diff, self._warnings = diff, warnings
        self.keys = keys

    def content(self) -> ComposeResult:
        warnings = paragraphs("\n".join(f"warning: {one}" for one in self._warnings), "yellow")

        def draw(look: TerminalLook) -> Sequence[Text]:
            return [*(warnings(look) if self._warnings else ()), *self._diff(look)]

        yield Paper(draw)

    def action_yes(self) -> None:
        if self.query_one(Paper).seen_whole:
            self.dismiss(True)
        else:
            self.say(NOT_YET)


class EditPrompt(ModalSheet[Mapping[str, Any]]):
    """Edits the arguments as JSON. Returns the new arguments."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("ctrl+s", "look", "look at the changes", priority=True)]
    keys = (Key("Ctrl-S", "look at the changes"), _BACK)

    def __init__(self, draft: EditDraft, card: Card) -> None:
        super().__init__()
        self._draft, self._card = draft, card
        self._text = draft.text()
        self._warned = ""

    def content(self) -> ComposeResult:
        heading = f"The arguments of {self._card.chain}. You will see the changes before anything runs."
        yield Static(Text("\n".join([heading, *self._draft.hints(self._card)])))
        yield TextArea(self._text, show_line_numbers=True, tab_behavior="focus", id="text")

    def action_look(self) -> None:
        area = self.query_one(TextArea)
        try:
            edited = self._draft.read(area.text)
        except UNUSABLE as problem:
            self.say(f"These arguments cannot be used: {visible(str(problem))}.")
            if isinstance(at := problem.__cause__, json.JSONDecodeError):
                area.move_cursor((at.lineno - 1, at.colno - 1))
            return
        if not edited.changed:
            self.say("The arguments are unchanged.")
            return
        self.say("")

        def confirmed(yes: bool | None) -> None:
            if yes:
                self.dismiss(edited.args)

        keys = (Key("y", "run it like this"), Key("Escape", "back to the editor"))
        self.app.push_screen(Confirm(partial(draw_edit, edited), keys), confirmed)

    def action_back(self) -> None:
        text = self.query_one(TextArea).text
        if text not in (self._text, self._warned):
            self._warned = text
            self.say("Your changes will be lost: press Escape again to discard them.")
        else:
            self.dismiss(None)


class Help(ModalSheet[None]):
    """Help: the keys, and why the request is asked."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("question_mark,q", "back", "back")]

    def __init__(self, request: ApprovalRequest | None, card: Card | None) -> None:
        super().__init__()
        self._facts = reasons(request, card) if request is not None and card is not None else []

    def content(self) -> ComposeResult:
        def draw(look: TerminalLook) -> Sequence[Text]:
            why = draw_facts(self._facts, look, "why this is asked").lines if self._facts else ()
            return [*why, *draw_facts(HELP, look, "keys").lines]

        yield Paper(draw)


def _titled(diff: Preview, title: str, look: TerminalLook) -> Sequence[Text]:
    return draw_diff(diff, look, title).lines


def paragraphs(text: str, style: str = "") -> Draw:
    """Return a function that draws a text, wrapped. Text from a call must be escaped already."""
    return lambda look: [piece for line in text.split("\n") for piece in folded(look.text(line, style), look.width)]
