"""What a Discord message holds, as plain values: texts within Discord's limits, and buttons by their custom ids.

Discord counts the characters of a text as Unicode has them. `size` counts those beyond the first 65,536 twice, as
JavaScript does: what fits by that count fits by any.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

CONTENT = 2000
"""Characters of a message's own text."""
TITLE = 256
DESCRIPTION = 4096
FOOTER = 2048
EMBED = 6000
"""Characters of all embeds of a message together."""
BUTTONS = 5
"""In a row; a message has five rows at most."""
LABEL = 80
OPTIONS = 25
"""In a menu."""
OPTION = 100
"""Characters in an option's label, in its description, and in its value."""
PLACEHOLDER = 100
FORM_TITLE = 45
FIELD_LABEL = 45
INPUT = 4000
"""Characters in a field of a form."""

Style = Literal["primary", "secondary", "success", "danger"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Button:
    """A button. `id` comes from `Press.id`; or a link, where `url` is given."""

    label: str
    style: Style = "secondary"
    id: str = ""
    url: str = ""
    off: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class MenuOption:
    """One line of a menu."""

    label: str
    value: str
    description: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Menu:
    """A menu in a row of its own, from which one option is taken."""

    id: str
    placeholder: str
    options: tuple[MenuOption, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AttachedFile:
    """A file that goes with a message."""

    name: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageSheet:
    """A message: text, one framed part (an embed) with a title, a text, a last line and a colour, rows, a file."""

    content: str = ""
    title: str = ""
    text: str = ""
    footer: str = ""
    colour: int = 0
    rows: tuple[tuple[Button, ...] | Menu, ...] = ()
    paper: AttachedFile | None = None
    mentions: tuple[int, ...] = ()
    """Accounts that are notified when it is sent, as far as the text names them."""
    keeps_content: bool = False
    """Whether the text that stands there stays as it is when the rest is brought up to date."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """One field of a form."""

    id: str
    label: str
    value: str = ""
    placeholder: str = ""
    long: bool = True
    required: bool = True
    most: int = INPUT


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """What opens over everything else when a button is pressed: fields to fill in. `id` comes from `Press.id`."""

    id: str
    title: str
    fields: tuple[Field, ...]


def size(text: str) -> int:
    """How many characters a text counts for."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2
