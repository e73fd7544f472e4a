"""A parsed command line: pipelines of simple commands, and the words of each as a shell would pass them."""

from __future__ import annotations

from enum import Enum, StrEnum
from typing import NamedTuple

MOST_COMMANDS = 512
"""The most simple commands of a line that are examined."""


class Unknown(Enum):
    """How far a word is only known when the line runs, because it holds a variable or a substitution."""

    NOT = 0
    ONE = 1
    """It is one word, of which a part is not known."""
    ANY = 2
    """It may also become several words, or none."""


class Word(NamedTuple):
    """One word, with quotes and backslashes removed."""

    text: str
    """What the program is given, unless `glob`, `tilde` or `unknown` say that the shell expands it first. What is not
    known is replaced by a placeholder."""
    glob: str = ""
    """The word as a glob pattern, if an unquoted `*`, `?` or `[` makes the shell expand it to files. Literal characters
    that are special in patterns are escaped with a backslash. "" if it is not expanded."""
    tilde: bool = False
    """Whether it starts with an unquoted `~`, alone or before a slash, which expands to the home directory."""
    at: int = 0
    end: int = 0
    """Its position in the line."""
    unknown: Unknown = Unknown.NOT


class Join(StrEnum):
    """The operator between one pipeline and the next."""

    ALWAYS = ";"
    AND = "&&"
    OR = "||"


class Redirect(NamedTuple):
    """A redirect that changes nothing: input from a file, output to /dev/null, one stream into another."""

    fd: int
    source: Word | None = None
    """The file that is read, for `<`."""
    onto: int | None = None
    """The stream that it is joined to, for `2>&1`. If neither this nor `source` is set: /dev/null."""


class Simple(NamedTuple):
    """One simple command: its words, at least one, and its redirects in order."""

    words: tuple[Word, ...]
    redirects: tuple[Redirect, ...] = ()
    before: tuple[Word, ...] = ()
    """What stands before it and changes nothing about what it does: `LC_ALL=C`, `timeout 5`."""
    fed: bool = False
    """Whether it may read what something around it writes: a pipe into a loop, a here-document."""
    typed: tuple[Word, ...] = ()
    """All words as they stand in the line, if those judged are not just the last of them: behind `xargs`."""

    @property
    def whole(self) -> Simple:
        """The same command, with what stands before it among its words."""
        return self._replace(words=self.typed or (*self.before, *self.words), before=(), typed=())

    @property
    def argv(self) -> tuple[str, ...]:
        return tuple(word.text for word in self.words)


class Pipeline(NamedTuple):
    """Commands that run in parallel, each reading what the one before it writes."""

    stages: tuple[Simple, ...]
    join: Join = Join.ALWAYS
    """How the result of the pipeline before it decides whether this one runs."""


class CommandLine(NamedTuple):
    """A whole command line."""

    pipelines: tuple[Pipeline, ...]
    """Every command that may run. If `inexact`, each may also run several times or not at all."""
    inexact: str = ""
    """Why it is not just these words, one after the other: "holds a substitution `$(`". "" if it is."""

    @property
    def fed(self) -> tuple[bool, ...]:
        """For each of `commands`, whether it reads what another one writes, or a file, on its standard input."""
        return tuple(
            stage.fed or number > 0 or any(redirect.source is not None for redirect in stage.redirects)
            for pipeline in self.pipelines
            for number, stage in enumerate(pipeline.stages)
        )

    @property
    def plain(self) -> bool:
        """Whether the words of its commands are all that it runs."""
        return not self.inexact and not any(command.before for command in self.commands)

    @property
    def commands(self) -> tuple[Simple, ...]:
        return tuple(stage for pipeline in self.pipelines for stage in pipeline.stages)
