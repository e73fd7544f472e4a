"""The right to run, once taken: by which process, and how the call ended."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from signoff.core.values import Changeable


@dataclass(frozen=True, kw_only=True)
class Claim(Changeable):
    """A claimed approval. There is at most one for a request at any time."""

    holder: str
    """Id of the process that took it; when that is gone without an outcome, the outcome is unknown."""
    at: datetime
    token: str = ""
    """Which attempt to claim it was: one process may have several going at once."""
    ended_at: datetime | None = None
    error: str = ""
    """What the tool raised, in one line."""
    digest: str = ""
    """Digest of the result, where it has a JSON form."""
    preview: str = ""
    """The beginning of the result, secrets masked."""
    inside: bool = False
    """Whether all the call does, to its end, is to wait for runs inside it that are kept: it can be made again."""
    handed_over: bool = False
    """Whether it was handed to a program that runs the call itself, with no gate: nobody hears what becomes of it."""
    told_by: str = ""
    """Who said what became of it, where the process could not."""
