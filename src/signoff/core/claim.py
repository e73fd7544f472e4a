"""A claim: the single use of an approval, by which process, and how the call ended."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from signoff.core.values import Changeable


@dataclass(frozen=True, kw_only=True)
class Claim(Changeable):
    """A claimed approval. A request has at most one at any time."""

    holder: str
    """Id of the process that claimed it; if that dies without an outcome, the outcome is unknown."""
    at: datetime
    token: str = ""
    """Identifies the attempt to claim it: one process may make several at once."""
    ended_at: datetime | None = None
    error: str = ""
    """What the tool raised, in one line."""
    digest: str = ""
    """Digest of the result, if it has a JSON form."""
    preview: str = ""
    """The start of the result, with secrets masked."""
    inside: bool = False
    """Whether, until its end, the call only waits for inner runs that are saved: then it can be made again."""
    handed_over: bool = False
    """Whether it was handed to a program that runs the call itself, without a gate: the outcome is not reported."""
    told_by: str = ""
    """The person who reported the outcome, if the process could not."""
