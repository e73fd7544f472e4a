"""Read from an interaction's payload what was pressed, picked or filled in. No other module does.

discord.py passes components and forms only to objects that it created and still holds. Ours are pressed after a
restart, or after another person has submitted the same form. See `docs/adr/0034`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self, cast

import discord


@dataclass(frozen=True, slots=True, kw_only=True)
class InteractionData:
    """A press of a button, a choice in a menu, or a submitted form."""

    custom_id: str = ""
    """Empty for everything else, such as a command."""
    picked: str | None = None
    """The value picked from a menu."""
    fields: Mapping[str, str]
    """The values of a form, by field id."""

    @classmethod
    def of(cls, interaction: discord.Interaction) -> Self:
        data = cast("Mapping[str, Any]", interaction.data or {})
        custom_id, picked = data.get("custom_id"), next(iter(data.get("values", ())), None)
        return cls(
            custom_id=custom_id if isinstance(custom_id, str) else "",
            picked=picked if isinstance(picked, str) else None,
            fields=_fields(data),
        )


def _fields(data: Mapping[str, Any]) -> dict[str, str]:
    filled: dict[str, str] = {}
    for part in data.get("components", ()):
        inside = [part["component"]] if "component" in part else part.get("components", ())
        filled |= {str(one.get("custom_id")): one["value"] for one in inside if isinstance(one.get("value"), str)}
    return filled
