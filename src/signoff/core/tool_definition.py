"""The definition of a tool by a server: the text by which models choose it. It may change at any time."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from signoff.core.canonical import digest, digest_of
from signoff.core.preview import unified_diff
from signoff.errors import CannotCanonicalise

LONGEST = 100_000
"""Maximum length of a definition as JSON, in characters. Nobody could review a longer one."""


def definition_digest(takes: object, description: object, annotations: object, *more: object) -> str:
    """Digest of a tool as somebody else defines it: its schema, its description, its annotations."""
    parts = [takes, description, annotations, *more]
    try:
        return digest(parts)
    except CannotCanonicalise:  # lone surrogates, or numbers out of range: these get a digest, too
        return digest_of(json.dumps(parts, sort_keys=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolDefinition:
    """A tool as its server defines it."""

    toolset: str
    """The server, as the project or its configuration names it."""
    tool: str
    description: str | None = None
    takes: Mapping[str, Any]
    """The JSON schema of its arguments."""
    annotations: Mapping[str, Any] | None = None
    title: str = ""

    @property
    def digest(self) -> str:
        """Changes with anything that a model or a person is shown of it. The same as for the toolset of a worker."""
        return definition_digest(self.takes, self.description, self.annotations, *([self.title] if self.title else []))

    @property
    def text(self) -> str:
        """The whole definition for people: title and description, then the rest as JSON."""
        rest = {"annotations": self.annotations, "takes": self.takes}
        told = [self.title, self.description or "", json.dumps(rest, indent=1, sort_keys=True, ensure_ascii=False)]
        return "\n".join(one for one in told if one)

    @property
    def is_too_long(self) -> bool:
        """Whether it is too long for a person to review."""
        return len(json.dumps(self.data())) > LONGEST

    def diff_from(self, before: ToolDefinition) -> str:
        """What changed, as a unified diff. Not safe to show yet."""
        return unified_diff(before.text, self.text, f"definition of {self.tool}").text

    def data(self) -> dict[str, Any]:
        """All of it as JSON."""
        return {
            "toolset": self.toolset,
            "tool": self.tool,
            "title": self.title,
            "description": self.description,
            "annotations": dict(self.annotations) if self.annotations is not None else None,
            "takes": dict(self.takes),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolPin:
    """A definition that was accepted: by approving a call, or by a rule that allows calls."""

    definition: ToolDefinition
    by: str
    at: datetime
