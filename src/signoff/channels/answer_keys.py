"""The keys that answer a request at the terminal, with their labels."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace

from signoff.core.card import Choice, session_text
from signoff.core.decision import Keeps


@dataclass(frozen=True, slots=True)
class Key:
    """One key: its letter, its label, and other words that mean the same."""

    letter: str
    label: str
    words: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.letter} {self.label}"

    def means(self, typed: str) -> bool:
        """Whether `typed` means this key. Case and surrounding blanks are ignored."""
        return typed.strip().casefold() in (self.letter, *self.words)


KEYS = {
    Choice.APPROVE: Key("a", "approve once", ("y", "yes", "approve")),
    Choice.DENY: Key("d", "deny", ("n", "no", "deny")),
    Choice.DENY_NOTE: Key("r", "deny with a reason", ("reason",)),
    Choice.EDIT: Key("e", "edit", ("edit",)),
    Choice.EVERYTHING: Key("m", "show everything", ("more", "everything")),
    Choice.SESSION: Key("s", "approve for this session", ("session",)),
    Choice.ALWAYS: Key("w", "approve always", ("always",)),
    Choice.WIDER: Key("l", "approve calls like it", ("like",)),
    Choice.WHY: Key("?", "why", ("why", "h", "help")),
}
"""In the order they are offered. Enter is never a key."""


def keys_for(offered: Iterable[Choice], keeps: Keeps) -> list[Key]:
    """Return the keys for the choices on offer. The label of SESSION says how long an answer is remembered."""
    return [
        replace(KEYS[one], label=f"approve {session_text(keeps)}") if one is Choice.SESSION else KEYS[one]
        for one in offered
    ]


CARD = Key("c", "show the card again", ("card",))
RULE = Key("u", "allow calls like it by a rule", ("rule",))
STOP = Key("q", "stop the run (also Ctrl-C)", ("quit", "stop"))
BACK = Key("b", "back to the list", ("back",))
ONE_BY_ONE = Key("o", "one after the other", ("one",))
ALL = Key("all", "approve all")
NONE = Key("none", "deny all")
CTRL_C_DENIES = Key("Ctrl-C", "deny")
CTRL_C_DENIES_ALL = Key("Ctrl-C", "deny all that is open")
CTRL_C_LEAVES = Key("Ctrl-C", "leave it to others")


def numbers_to(most: int) -> str:
    """Return which numbers can be typed, as text."""
    return f"1-{most}" if most > 1 else "1"


def choice_for(typed: str, offered: Collection[Choice]) -> Choice | None:
    """Return the choice that was typed, or None if it is not on offer."""
    return next((choice for choice, key in KEYS.items() if choice in offered and key.means(typed)), None)


def is_yes(typed: str) -> bool:
    """Whether a question was answered with yes. Enter means no."""
    return typed.strip().casefold() in ("y", "yes")
