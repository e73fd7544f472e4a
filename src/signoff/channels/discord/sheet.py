"""The content of a Discord message as plain values: texts within Discord's limits, and buttons by custom id.

Discord counts Unicode characters. `size` counts those outside the Basic Multilingual Plane twice, as JavaScript does:
what fits by that count fits by any.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

CONTENT = 2000
"""Maximum characters of a message's own text."""
TITLE = 256
DESCRIPTION = 4096
FOOTER = 2048
EMBED = 6000
"""Maximum characters of all embeds of a message together."""
BUTTONS = 5
"""Maximum in a row; a message has at most five rows."""
LABEL = 80
OPTIONS = 25
"""Maximum in a menu."""
OPTION = 100
"""Maximum characters of an option's label, description and value."""
PLACEHOLDER = 100
FORM_TITLE = 45
FIELD_LABEL = 45
INPUT = 4000
"""Maximum characters in a field of a form."""

Style = Literal["primary", "secondary", "success", "danger"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Button:
    """A button. `id` comes from `Press.id`; with `url` it is a link."""

    label: str
    style: Style = "secondary"
    id: str = ""
    url: str = ""
    off: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class MenuOption:
    """One option of a menu."""

    label: str
    value: str
    description: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Menu:
    """A menu in its own row, from which one option is picked."""

    id: str
    placeholder: str
    options: tuple[MenuOption, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AttachedFile:
    """A file attached to a message."""

    name: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageSheet:
    """A message: text, an embed (title, text, footer, colour), rows of buttons or menus, and a file."""

    content: str = ""
    title: str = ""
    text: str = ""
    footer: str = ""
    colour: int = 0
    rows: tuple[tuple[Button, ...] | Menu, ...] = ()
    paper: AttachedFile | None = None
    mentions: tuple[int, ...] = ()
    """Accounts that are notified when it is sent, if the text mentions them."""
    keeps_content: bool = False
    """Whether an update leaves the existing text (`content`) as it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """One field of a form."""

    id: str
    label: str
    about: str = ""
    """Shown below the label."""
    value: str = ""
    placeholder: str = ""
    long: bool = True
    required: bool = True
    most: int = INPUT


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """A form (modal) that a button opens. `id` comes from `Press.id`."""

    id: str
    title: str
    fields: tuple[Field, ...]


def size(text: str) -> int:
    """Return how many characters a text counts for."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2
