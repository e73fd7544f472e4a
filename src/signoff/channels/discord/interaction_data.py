"""What somebody pressed, picked or filled in, read from the payload of an interaction: the one place that does.

discord.py hands out components and forms only to objects that it made itself and still has; ours are pressed after any
restart, and by people whose form another one sent first. See `docs/adr/0034`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self, cast

import discord


@dataclass(frozen=True, slots=True, kw_only=True)
class InteractionData:
    """A press of a button, a choice in a menu, or a form that was sent."""

    custom_id: str = ""
    """Empty for everything else, such as a command."""
    picked: str | None = None
    """What was picked from a menu."""
    fields: Mapping[str, str]
    """What was filled into a form, by the ids of its fields."""

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
