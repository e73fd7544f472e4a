"""Changing a call's arguments before approving it: edit, check, look at the difference, confirm."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from signoff.channels.editor import BrokenArgs, EditorFailed, edit_text, find_editor, pretty, read_args, write_args
from signoff.channels.keys import is_yes
from signoff.channels.render import draw_diff
from signoff.channels.screen import Screen
from signoff.core.canonical import canonical
from signoff.core.card import Card
from signoff.core.preview import unified_diff
from signoff.core.redact import Redacted, redact, restore
from signoff.errors import CannotCanonicalise, EditRefused


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
    shown = redact(start, secrets=secrets)
    text = write_args(shown.args, _heading(card, shown))
    while True:
        try:
            text = _in_editor(screen, command, text)
            edited = read_args(text)
            args = restore(edited, start, shown)
            changed = canonical(args) != canonical(asked)
        except EditorFailed as problem:
            screen.say(f"Not edited: {problem}.", "yellow")
            return None
        except (BrokenArgs, EditRefused, CannotCanonicalise) as problem:
            screen.say(f"These arguments cannot be used: {problem}.", "bold red")
            if not is_yes(screen.ask("open the editor again, with your text? y yes, Enter no", moot)):
                return None
            continue
        if not changed:
            screen.say("The arguments are what the model asked for.")
            return None
        return args if _confirmed(screen, redact(asked, secrets=secrets).args, edited, moot) else None


def _in_editor(screen: Screen, command: str | None, text: str) -> str:
    editor = find_editor(command)
    if not editor:
        raise EditorFailed("no editor is known; set VISUAL or EDITOR")
    return edit_text(editor, text, stdin=screen.keyboard.fd(), stdout=screen.fd())


def _heading(card: Card, shown: Redacted) -> list[str]:
    lines = [f"The arguments of {card.chain}. Save and close; you will see the changes before anything runs."]
    if card.problem:
        lines.append(f"Not accepted before: {card.problem}".replace("\n", " "))
    if shown.masked:
        lines.append("A masked value stays what it is if you leave its ⟦…⟧ alone; or replace all of it.")
    return lines


def _confirmed(screen: Screen, before: Mapping[str, Any], after: Mapping[str, Any], moot: Callable[[], str]) -> bool:
    diff = unified_diff(f"{pretty(before)}\n", f"{pretty(after)}\n")
    screen.show(draw_diff(diff, screen.look, f"your changes: +{diff.added} -{diff.removed}").lines)
    return is_yes(screen.ask("run it like this? y yes, Enter no", moot))
