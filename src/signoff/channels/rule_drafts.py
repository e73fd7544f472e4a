"""Rules that could be made of a call, as whoever is asked about it sees them. Nothing is written before a yes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

from signoff.core.preview import Preview, read_diff
from signoff.core.request import ApprovalRequest

WRITTEN = (
    "Written. New runs use it. This call still waits for your answer. When this run is resumed, it uses the rule too, "
    "and asks again about approved calls that have not run, unless the policy then allows them."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleDraft:
    """One rule. Its texts are safe to show."""

    text: str
    """What it lets through, in one sentence."""
    diff: tuple[str, ...]
    """What would change in the file."""
    warnings: tuple[str, ...] = ()
    digest: str = ""
    """Of the file as it is and as it would be: two drafts with the same digest write the same."""
    write: Callable[[], None] = field(repr=False)
    """Writes it, or raises a `SignoffError` and leaves the file as it is."""

    @property
    def preview(self) -> Preview:
        return read_diff("\n".join(self.diff))


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleDrafts:
    """The rules that could be made of one call, narrowest first, and why not more."""

    file: str
    drafts: tuple[RuleDraft, ...] = ()
    refused: tuple[str, ...] = ()


DraftRules: TypeAlias = Callable[[ApprovalRequest], RuleDrafts]
"""Says which rules could be made of a call. It reads files: call it from a thread. Raises a `SignoffError`."""
