"""Drafts of policy rules made from a call, as shown to the approver. Nothing is written before a yes."""

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
    """One drafted rule. Its texts are safe to show."""

    text: str
    """What the rule allows, in one sentence."""
    diff: tuple[str, ...]
    """The diff of the file."""
    warnings: tuple[str, ...] = ()
    digest: str = ""
    """Covers the file before and after: two drafts with the same digest write the same."""
    write: Callable[[], None] = field(repr=False)
    """Writes the rule, or raises a `SignoffError` and leaves the file unchanged."""

    @property
    def preview(self) -> Preview:
        return read_diff("\n".join(self.diff))


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleDrafts:
    """The rules that can be made from one call, narrowest first, and why others were refused."""

    file: str
    drafts: tuple[RuleDraft, ...] = ()
    refused: tuple[str, ...] = ()


DraftRules: TypeAlias = Callable[[ApprovalRequest], RuleDrafts]
"""Drafts rules from a call. It reads files, so call it from a thread. Raises a `SignoffError`."""
