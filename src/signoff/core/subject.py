"""The subject of a notice: identifies its delivery, and what a channel showed for it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class SubjectKind(StrEnum):
    """The kind of a notice."""

    REQUEST = "request"
    """One call, from the question to its outcome."""
    BATCH = "batch"
    """Several calls that were asked at once."""
    REMINDER = "reminder"
    """People are notified of a call again."""
    RESULT = "result"
    """The result of a run."""
    MESSAGE = "message"
    """A line from one of the run's tools."""


class Occasion(StrEnum):
    """Why people are notified again of a request that is already shown."""

    REMINDED = "reminded"
    ESCALATED = "escalated"
    AGAIN = "again"
    """The people it was escalated to are reminded."""
    UNKNOWN = "unknown"
    """The question changed: now it is whether the call was made."""


_PREFIX = {
    SubjectKind.REQUEST: "",
    SubjectKind.BATCH: "all:",
    SubjectKind.REMINDER: "remind:",
    SubjectKind.RESULT: "said:",
    SubjectKind.MESSAGE: "line:",
}


@dataclass(frozen=True, slots=True)
class Subject:
    """What a notice is about, whatever its content."""

    kind: SubjectKind
    about: str
    """Id of the request, of the first one of a batch, or of the run; for a line, the run's id, `/` and its own."""
    occasion: Occasion | None = None
    """Why, if it is a reminder."""

    def __str__(self) -> str:
        """The subject as channels know it. They find what they showed by this text, so it must never change."""
        after = f":{self.occasion}" if self.occasion is not None else ""
        return f"{_PREFIX[self.kind]}{self.about}{after}"

    @classmethod
    def parse(cls, text: str) -> Subject:
        """Parse the text of a subject. Any text is a subject; an unknown one is simply not found."""
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
        """Id of the request, or of the first of a batch; empty if it is about a run."""
        return "" if self.is_of_run else self.about

    @property
    def is_of_run(self) -> bool:
        """Whether it is about a run: its result, or a line from one of its tools."""
        return self.kind in (SubjectKind.RESULT, SubjectKind.MESSAGE)

    @property
    def run(self) -> str:
        """Id of the run; empty if it is not about a run."""
        return self.about.partition("/")[0] if self.is_of_run else ""
