"""A command line taken apart: pipelines of simple commands, and the words of each as a shell would pass them."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple


class Word(NamedTuple):
    """One word after quotes and backslashes are gone."""

    text: str
    """What the program is given, unless `glob` or `tilde` say that something is put in its place first."""
    glob: str = ""
    """The word as a pattern, where an unquoted `*`, `?` or `[` makes the shell look for files: literal characters that
    mean something in patterns have a backslash. Empty where nothing is looked for."""
    tilde: bool = False
    """Whether it starts with an unquoted `~`, alone or before a slash: the home directory stands in its place."""
    at: int = 0
    end: int = 0
    """Where it stands in the line."""


class Join(StrEnum):
    """What leads from one pipeline to the next."""

    ALWAYS = ";"
    AND = "&&"
    OR = "||"


class Redirect(NamedTuple):
    """A redirect that changes nothing: input from a file, output to nowhere, one stream into another."""

    fd: int
    source: Word | None = None
    """The file that is read, for `<`."""
    onto: int | None = None
    """The stream it is joined to, for `2>&1`. Neither this nor `source`: /dev/null."""


class Simple(NamedTuple):
    """One simple command: its words, at least one, and its redirects in order."""

    words: tuple[Word, ...]
    redirects: tuple[Redirect, ...] = ()

    @property
    def argv(self) -> tuple[str, ...]:
        return tuple(word.text for word in self.words)


class Pipeline(NamedTuple):
    """Commands that run side by side, each reading what the one before it writes."""

    stages: tuple[Simple, ...]
    join: Join = Join.ALWAYS
    """What has to be true of the pipeline before it, for this one to run."""


class CommandLine(NamedTuple):
    """A whole command line."""

    pipelines: tuple[Pipeline, ...]

    @property
    def commands(self) -> tuple[Simple, ...]:
        return tuple(stage for pipeline in self.pipelines for stage in pipeline.stages)
