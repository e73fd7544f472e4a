"""The report of an import: what was carried over, what is different here, and what was left out."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from signoff.errors import Place


class NoteKind(StrEnum):
    """What happened to one setting in a file."""

    CARRIED = "carried"
    """It means the same here."""
    CHANGED = "changed"
    """It was carried over, and something about it is different here."""
    LEFT = "left"
    """It was not carried over."""


class FileState(StrEnum):
    """What happened to one file."""

    WHOLE = "whole"
    NOTES = "notes"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Note:
    """One setting in a file of llm-do, and what happened to it."""

    kind: NoteKind
    place: Place
    what: str
    fix: str = ""
    """What a person has to do, if anything."""

    def as_json(self) -> dict[str, Any]:
        place = self.place
        return {
            "kind": str(self.kind),
            "file": place.file,
            "line": place.line,
            "column": place.column,
            "key": place.key,
            "what": self.what,
            "do": self.fix,
        }
