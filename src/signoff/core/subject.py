"""What a notice is of: by it a delivery is found, and a channel finds again what it showed."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class SubjectKind(StrEnum):
    """What a delivery is of."""

    REQUEST = "request"
    """One call, from the question to its outcome."""
    BATCH = "batch"
    """Several calls that were asked at once."""
    REMINDER = "reminder"
    """People are told of a call again."""
    RESULT = "result"
    """What a run came to."""
    MESSAGE = "message"
    """A line that a tool of a run tells people."""


class Occasion(StrEnum):
    """Why people are told again of something that stands before them."""

    REMINDED = "reminded"
    ESCALATED = "escalated"
    AGAIN = "again"
    """Those whom it was escalated to are reminded."""
    UNKNOWN = "unknown"
    """Something else is asked by now: whether the call happened."""


_PREFIX = {
    SubjectKind.REQUEST: "",
    SubjectKind.BATCH: "all:",
    SubjectKind.REMINDER: "remind:",
    SubjectKind.RESULT: "said:",
    SubjectKind.MESSAGE: "line:",
}


@dataclass(frozen=True, slots=True)
class Subject:
    """What a notice is of, whatever stands in it."""

    kind: SubjectKind
    about: str
    """Id of the request, of the first one of a batch, or of the run; of a line, the run's, `/` and its own."""
    occasion: Occasion | None = None
    """Of a reminder."""

    def __str__(self) -> str:
        """As channels know it: they find again what they showed by it, so it must never change."""
        after = f":{self.occasion}" if self.occasion is not None else ""
        return f"{_PREFIX[self.kind]}{self.about}{after}"

    @classmethod
    def parse(cls, text: str) -> Subject:
        """What a channel was told. Anything is a subject; one that nobody ever told is not found."""
        for kind in (SubjectKind.BATCH, SubjectKind.RESULT, SubjectKind.MESSAGE):
            if text.startswith(_PREFIX[kind]):
                return cls(kind, text.removeprefix(_PREFIX[kind]))
        if text.startswith(_PREFIX[SubjectKind.REMINDER]):
            about, _, occasion = text.removeprefix(_PREFIX[SubjectKind.REMINDER]).rpartition(":")
            if about and occasion in set(Occasion):
                return cls(SubjectKind.REMINDER, about, Occasion(occasion))
        return cls(SubjectKind.REQUEST, text)

    @property
    def request(self) -> str:
        """Id of the request, or of the first of several; empty for what is told of a run."""
        return "" if self.is_of_run else self.about

    @property
    def is_of_run(self) -> bool:
        """Whether it is told of a run: what that came to, or a line of one of its tools."""
        return self.kind in (SubjectKind.RESULT, SubjectKind.MESSAGE)

    @property
    def run(self) -> str:
        """Id of the run, of what is told of one."""
        return self.about.partition("/")[0] if self.is_of_run else ""
