"""`SegmentEnd`: what a segment of a run came to."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from signoff.core.run import RunState

if TYPE_CHECKING:
    from signoff.workers.runtime import Finished


class Came(StrEnum):
    """What a segment came to."""

    ENDED = "ended"
    """The run is over, and this segment ended it: `state` and `text` say how."""
    OVER = "over"
    """The run is over, and somebody else ended it, or it cannot be said what it came to."""
    WAITS = "waits"
    """It waits for people."""
    ANSWERED = "answered"
    """It waits for nothing new: an answer came meanwhile."""
    RESTS = "rests"
    """It waits for results that only a program can supply."""
    LEFT = "left"
    """Another process has it, or nothing moved. If no other process acts on its answers, it is tried again."""
    HALTED = "halted"
    """The kill switch is on. It goes on when the halt is lifted."""
    UNREACHABLE = "unreachable"
    """The store failed. The run is put down as soon as that can be written, and is tried again."""
    FAILED = "failed"
    """It cannot go on now, `text` says why. It stays as it is, and is tried again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentEnd:
    """How a segment of a run ended."""

    came: Came
    state: RunState = RunState.GOING
    text: str = ""
    """Why there is no answer, for people. Secrets are masked."""
    waits: int = 0
    """How many requests it waits for."""
    finished: Finished | None = None
    """What the agent returned, if this process executed it."""
    secrets: tuple[str, ...] = ()
    """Texts that are masked in what people are told of that."""
    error: Exception | None = None

    @property
    def went_on(self) -> bool:
        """Whether it was executed, to its end or to its next request."""
        is_over = self.came is Came.OVER and self.error is None
        return is_over or self.came in (Came.ENDED, Came.WAITS, Came.ANSWERED) or self.finished is not None

    @property
    def has_failed(self) -> bool:
        return self.came in (Came.FAILED, Came.UNREACHABLE) or self.state is RunState.FAILED
