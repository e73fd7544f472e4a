"""Edit a call's arguments before approving it: edit, validate, review the diff, confirm."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, cast

from rich.text import Text

from signoff.channels.answer_keys import is_yes
from signoff.channels.editor import BrokenArgs, EditorFailed, edit_text, find_editor, pretty, read_args, write_args
from signoff.channels.render import TerminalLook, draw_diff
from signoff.channels.terminal_screen import Screen
from signoff.core.canonical import canonical
from signoff.core.card import Card, effect_of_edit
from signoff.core.preview import Preview, unified_diff
from signoff.core.redact import Redacted, redact, restore
from signoff.core.request import ApprovalRequest, WithEdit
from signoff.errors import CannotCanonicalise, EditRefused

UNUSABLE = (BrokenArgs, EditRefused, CannotCanonicalise)
"""Raised by `EditDraft.read` if a text holds no usable arguments; the error says why."""


def start_of(request: ApprovalRequest) -> Mapping[str, Any]:
    """Return what the editor opens with: an earlier edit that was refused, otherwise the model's arguments."""
    draft = request.metadata.get("draft")
    return cast("Mapping[str, Any]", draft) if isinstance(draft, Mapping) else request.args


class Edited(NamedTuple):
    """The result of an edit."""

    args: Mapping[str, Any]
    """The arguments as they would run, with secrets restored."""
    changed: bool
    """Whether they differ from the model's arguments."""
    diff: Preview
    """The diff from the model's arguments to the edited ones, with secrets masked."""
    would_change: Preview | None
    """What the call would change with them; None if that is not known."""


@dataclass(slots=True)
class EditDraft:
    """Arguments being edited: written as text with secrets masked, and read back from the edited text."""

    request: ApprovalRequest
    secrets: Iterable[str] = ()
    """Secrets besides those of the request."""
    with_edit: WithEdit | None = None
    start: Mapping[str, Any] = field(init=False)
    shown: Redacted = field(init=False)

    def __post_init__(self) -> None:
        self.secrets = (*self.secrets, *self.request.secrets)
        self.start = start_of(self.request)
        self.shown = redact(self.start, secrets=self.secrets)

    def text(self, heading: Sequence[str] = ()) -> str:
        """Return the text that the editor opens with, below a heading of comments."""
        return write_args(self.shown.args, heading)

    def hints(self, card: Card) -> list[str]:
        """Return hints for the editor: why the last edit was refused, and how to treat masks."""
        lines: list[str] = []
        if card.problem:
            lines.append(f"Not accepted before: {card.problem}".replace("\n", " "))
        if self.shown.masked:
            lines.append("Leave a ⟦…⟧ unchanged to keep its masked value, or replace all of it.")
        return lines

    def read(self, text: str) -> Edited:
        """Parse the edited text. Raises one of `UNUSABLE`."""
        written = read_args(text)
        args, asked = restore(written, self.start, self.shown), self.request.args
        diff = unified_diff(f"{pretty(redact(asked, secrets=self.secrets).args)}\n", f"{pretty(written)}\n")
        changed = canonical(args) != canonical(asked)
        effect = effect_of_edit(self.request, args, self.with_edit, secrets=self.secrets) if changed else None
        return Edited(args, changed, diff, effect)


def edit_arguments(
    screen: Screen,
    card: Card,
    draft: EditDraft,
    *,
    command: str | None,
    moot: Callable[[], str],
) -> Mapping[str, Any] | None:
    """Return the edited arguments once the person has confirmed them; None if nothing was changed or confirmed."""
    heading = f"The arguments of {card.chain}. Save and close; you will see the changes before anything runs."
    text = draft.text([heading, *draft.hints(card)])
    while True:
        try:
            text = _in_editor(screen, command, text)
            edited = draft.read(text)
        except EditorFailed as problem:
            screen.say(f"Not edited: {problem}.", "yellow")
            return None
        except UNUSABLE as problem:
            screen.say(f"These arguments cannot be used: {problem}.", "bold red")
            if not is_yes(screen.ask("open the editor again, with your text? y yes, Enter no", moot)):
                return None
            continue
        if not edited.changed:
            screen.say("The arguments are unchanged.")
            return None
        return edited.args if _confirmed(screen, edited, moot) else None


def _in_editor(screen: Screen, command: str | None, text: str) -> str:
    editor = find_editor(command)
    if not editor:
        raise EditorFailed("no editor is known; set VISUAL or EDITOR")
    return edit_text(editor, text, stdin=screen.keyboard.fd(), stdout=screen.fd())


def _confirmed(screen: Screen, edited: Edited, moot: Callable[[], str]) -> bool:
    lines, prompt = draw_edit(edited, screen.look), "run it like this? y yes, Enter no"
    if not screen.page(lines, moot, below=screen.rows(f"{prompt} > ")):
        screen.say("You have not seen all of your changes.", "yellow")
        return False
    return is_yes(screen.ask(prompt, moot))


def draw_edit(edited: Edited, look: TerminalLook) -> Sequence[Text]:
    """Draw the diff of a person's edit, and what the call would change with it."""
    diff, then = edited.diff, edited.would_change
    lines = draw_diff(diff, look, f"your changes: +{diff.added} -{diff.removed}").lines
    if then is None or not then.text:
        return lines
    title = f"what it would change: +{then.added} -{then.removed}" if then.kind == "diff" else "what it would do"
    return [*lines, *draw_diff(then, look, title).lines]
