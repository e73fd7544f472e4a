"""Changing a call's arguments before approving it: edit, check, look at the difference, confirm."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, cast

from signoff.channels.answer_keys import is_yes
from signoff.channels.editor import BrokenArgs, EditorFailed, edit_text, find_editor, pretty, read_args, write_args
from signoff.channels.render import draw_diff
from signoff.channels.screen import Screen
from signoff.core.canonical import canonical
from signoff.core.card import Card
from signoff.core.preview import Preview, unified_diff
from signoff.core.redact import Redacted, redact, restore
from signoff.core.request import ApprovalRequest
from signoff.errors import CannotCanonicalise, EditRefused

UNUSABLE = (BrokenArgs, EditRefused, CannotCanonicalise)
"""What `EditDraft.read` raises where a text holds no arguments that could run; the error says why."""


def start_of(request: ApprovalRequest) -> Mapping[str, Any]:
    """What an editor opens with: what was edited before and not accepted, else what the model asked for."""
    draft = request.metadata.get("draft")
    return cast("Mapping[str, Any]", draft) if isinstance(draft, Mapping) else request.args


class Edited(NamedTuple):
    """What an edited text means."""

    args: Mapping[str, Any]
    """As they would run, secrets in their places."""
    changed: bool
    """Whether they differ from what the model asked for."""
    diff: Preview
    """From what was asked for to what was written, secrets masked."""


@dataclass(slots=True)
class EditDraft:
    """Arguments on their way through an editor: a text with secrets masked, and what it means once it is edited."""

    asked: Mapping[str, Any]
    start: Mapping[str, Any]
    secrets: Iterable[str] = ()
    shown: Redacted = field(init=False)

    def __post_init__(self) -> None:
        self.secrets = tuple(self.secrets)
        self.shown = redact(self.start, secrets=self.secrets)

    def text(self, heading: Sequence[str] = ()) -> str:
        """What the editor opens with, after a heading of comments."""
        return write_args(self.shown.args, heading)

    def hints(self, card: Card) -> list[str]:
        """What whoever edits should know besides: why it was not accepted before, and what masks are."""
        lines: list[str] = []
        if card.problem:
            lines.append(f"Not accepted before: {card.problem}".replace("\n", " "))
        if self.shown.masked:
            lines.append("Leave a ⟦…⟧ unchanged to keep its masked value, or replace all of it.")
        return lines

    def read(self, text: str) -> Edited:
        """The arguments in an edited text. Raises one of `UNUSABLE`."""
        written = read_args(text)
        args = restore(written, self.start, self.shown)
        before = redact(self.asked, secrets=self.secrets).args
        diff = unified_diff(f"{pretty(before)}\n", f"{pretty(written)}\n")
        return Edited(args, canonical(args) != canonical(self.asked), diff)


def edit_arguments(
    screen: Screen,
    card: Card,
    *,
    asked: Mapping[str, Any],
    start: Mapping[str, Any],
    command: str | None,
    secrets: Iterable[str],
    moot: Callable[[], str],
) -> Mapping[str, Any] | None:
    """The arguments to run instead of those asked for, confirmed by the person; None if there are none.

    `start` is what the editor opens with. Secrets are masked in it and put back afterwards.
    """
    draft = EditDraft(asked, start, secrets)
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
        return edited.args if _confirmed(screen, edited.diff, moot) else None


def _in_editor(screen: Screen, command: str | None, text: str) -> str:
    editor = find_editor(command)
    if not editor:
        raise EditorFailed("no editor is known; set VISUAL or EDITOR")
    return edit_text(editor, text, stdin=screen.keyboard.fd(), stdout=screen.fd())


def _confirmed(screen: Screen, diff: Preview, moot: Callable[[], str]) -> bool:
    lines, prompt = draw_diff(diff, screen.look, changes_title(diff)).lines, "run it like this? y yes, Enter no"
    if not screen.page(lines, moot, below=screen.rows(f"{prompt} > ")):
        screen.say("You have not seen all of your changes.", "yellow")
        return False
    return is_yes(screen.ask(prompt, moot))


def changes_title(diff: Preview) -> str:
    """What stands above the changes that a person made."""
    return f"your changes: +{diff.added} -{diff.removed}"
