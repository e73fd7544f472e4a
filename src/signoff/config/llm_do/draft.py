"""The state of an import: workers being converted, and everything to write and to report."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from signoff.config.llm_do.notes import FileState, Note, NoteKind
from signoff.config.llm_do.sources import Source, Sources
from signoff.errors import Place, WrongFile
from signoff.policy.placed_value import ConfigValue

ASK_DELEGATION = {"ask": "worker_call"}


@dataclass(slots=True)
class WorkerDraft:
    """A worker that is being converted."""

    source: Source
    toolsets: list[str] = field(default_factory=list[str])
    delegates: dict[str, ConfigValue] = field(default_factory=dict[str, ConfigValue])
    creates: bool = False
    tightens: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    """Rules for the worker's own file."""
    notes: list[Note] = field(default_factory=list[Note])
    frees_delegation: bool = False
    """Whether it says itself that calling other workers needs no approval."""
    needs_python: bool = False
    text: str = ""

    @property
    def name(self) -> str:
        return self.source.name

    @property
    def state(self) -> FileState:
        return FileState.WHOLE if all(note.kind is NoteKind.CARRIED for note in self.notes) else FileState.NOTES

    def say(self, kind: NoteKind, place: Place, what: str, fix: str = "") -> None:
        self.notes.append(Note(kind, place, what, fix))


@dataclass(slots=True)
class Imported:
    """The result of an import: the files to write, and the report."""

    sources: Sources
    drafts: list[WorkerDraft] = field(default_factory=list[WorkerDraft])
    notes: list[Note] = field(default_factory=list[Note])
    """Notes about `project.json`, and about files that are not read."""
    files: dict[str, str] = field(default_factory=dict[str, str])
    """The content to write, by path below the target."""
    start: tuple[str, str] | None = None
    """The worker that llm-do starts, and its prompt."""
    toolsets: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    policy: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    depth: int | None = None

    @property
    def refused(self) -> dict[str, WrongFile]:
        return self.sources.refused
