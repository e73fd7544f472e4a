"""What a shell command does: whether it is known to be read-only, and every command that it would start.

A text is parsed in two ways. The strict parser accepts little and is the only way to *allow*: its words are run. The
full parser finds commands in substitutions and behind wrappers and can only tighten: it serves ask and deny rules,
the labels of the call, and the person who is asked.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

from signoff.policy.phrases import shown
from signoff.policy.shell.common_files import FileSet, KnownFiles
from signoff.policy.shell.line import CommandLine, Simple, Word
from signoff.policy.shell.literal_words import Refused, read_line
from signoff.policy.shell.network import Contact, contact
from signoff.policy.shell.simple_command import NO_FILES, Concern, ReadOnlyCommand, Where, judge_words, seen_from
from signoff.policy.shell.working_directories import Directories, directories_of, named
from signoff.policy.shell.wrapped_commands import seen_through

if TYPE_CHECKING:
    from signoff.policy.shell.syntax_tree import Command, Tree
    from signoff.policy.shell.touched_files import Touched

# A line of literal commands that only read needs no more than the strict parser: the rest is imported where it is used.

LABEL_OF = {
    "writes": "fs.write",
    "runs": "proc.exec",
    "sends": "net.egress",
    "changes": "proc.exec",
    "discloses": "fs.read",
    "waits": "proc.exec",
    "unknown": "proc.exec",
}
"""The capability label of each effect in the table."""

_NO_EFFECTS = frozenset[str]()
PLAIN = frozenset({"writes", "sends", "discloses", "waits"})
"""Effects of commands that start nothing else."""
_LOST = Concern("", "", "unknown", "runs after a `cd`, in a directory that is only known when it runs")
_SOCKETS = ("/dev/tcp/", "/dev/udp/")


class ShellFacts:
    """One command line, parsed strictly at once; the full parse is made on demand."""

    def __init__(self, text: str, files: KnownFiles = NO_FILES) -> None:
        self.text = text
        self._files = files
        read = _read_line(text)
        self.line: CommandLine | None = None if isinstance(read, Refused) else read
        """The line from the strict parser; None if it was refused."""
        self.judged: tuple[ReadOnlyCommand | Concern, ...] = (
            () if self.line is None else tuple(_judge(self.line, files))
        )
        """What is known about each simple command of `line`, in order."""
        concerns = (one for one in self.judged if isinstance(one, Concern))
        self.concern = _refused(read) if isinstance(read, Refused) else next(concerns, None)
        """The first reason why the line is not known to be read-only; None if it is."""
        self.known_effects = _NO_EFFECTS if self.concern is None else frozenset(self._at_first_sight())
        """Effects that are certain without the full parse; there may be more."""

    def _at_first_sight(self) -> Iterator[str]:
        for one in (self.concern, *self.judged):
            if isinstance(one, Concern) and (one.command or one.effect != "unknown"):
                yield one.effect
        if self.line is not None and any(contact(one.argv) is Contact.SENDS for one in self.line.commands):
            yield "sends"

    @property
    def read_only(self) -> bool:
        """Whether every simple command is known to change nothing and to disclose no secret."""
        return self.concern is None

    @property
    def hands_on(self) -> bool:
        """Whether one of its read-only commands runs others."""
        return any(isinstance(one, ReadOnlyCommand) and one.runs for one in self.judged)

    @property
    def why(self) -> str:
        """Why it is not known to be read-only, naming the command and the deciding word; "" if it is."""
        return self.concern.sentence if self.concern is not None else ""

    def why_it(self, effects: frozenset[str]) -> str:
        """Like `why`, for the first command that has one of these effects; "" if none is known to."""
        for one in (*self.judged, self.concern):
            if isinstance(one, Concern) and one.effect in effects:
                return one.sentence
        if "sends" in effects and (command := self._in_contact(Contact.SENDS)):
            return f"{shown(command)} connects to other machines"
        inner = (_judge_command(command) for command in self.tree.commands)
        found = next((one for one in inner if isinstance(one, Concern) and one.effect in effects), None)
        if found is not None:
            return found.sentence
        targets = {"writes": self._written, "sends": self._sent}
        target = next((target for effect in sorted(effects & targets.keys()) for target in targets[effect]), None)
        return f"the output or input is redirected: {shown(target)}" if target is not None else ""

    @property
    def places(self) -> tuple[str, ...]:
        """The files that it reads, the directories that it changes into (`cd`), and what the words of its other
        commands may name: the possible keys of `KnownFiles.leads`.
        """
        gone = named(self.line) if self.line is not None else ()
        return tuple(dict.fromkeys((*self.paths, *gone, *self._worked_on())))

    def _worked_on(self) -> Iterator[str]:
        """Yield what the words of commands that do more than read may name."""
        for simple, directories in self._working():
            from signoff.policy.shell.further_words import places_in

            for path in dict.fromkeys(places_in(simple.argv)):
                yield from (seen for one in directories for seen in seen_from(one, path))

    def _working(self) -> Iterator[tuple[Simple, list[str]]]:
        """Yield each simple command that is not known to only read, and where it may run, as far as that is known."""
        if self.line is not None:
            for simple, judged, directories in zip(self.line.commands, self.judged, self.directories, strict=True):
                if isinstance(judged, Concern):
                    yield simple, [one for one in directories if one is not None]

    @property
    def paths(self) -> tuple[str, ...]:
        """The files that its read-only commands read, and those that any of them gets as its input."""
        read = (path for one in self.judged if isinstance(one, ReadOnlyCommand) for path in one.paths)
        return tuple(dict.fromkeys((*read, *(path for path, is_pattern in self._inputs() if not is_pattern))))

    def _inputs(self) -> Iterator[tuple[str, bool]]:
        """Yield the files that its redirects read, and whether each is a pattern."""
        for simple, directories in zip(
            self.line.commands if self.line is not None else (), self.directories, strict=True
        ):
            sources = [one.source for one in simple.redirects if one.source is not None]
            for source, directory in ((one, place) for one in sources for place in directories if place is not None):
                yield from ((path, bool(source.glob)) for path in seen_from(directory, source.glob or source.text))

    @property
    def patterns(self) -> tuple[FileSet, ...]:
        """The patterns of files that its commands read, and of those that others are given if they take any files."""
        found = dict.fromkeys(FileSet(path) for path, is_pattern in self._inputs() if is_pattern)
        for one in self.judged:
            if isinstance(one, ReadOnlyCommand):
                found |= dict.fromkeys(map(FileSet, one.patterns))
                found |= dict.fromkeys(FileSet(pattern, one.filters) for pattern in one.below)
        for simple, directories in self._working():
            from signoff.policy.shell.further_words import takes_files

            globs = [word.glob for word in simple.words if word.glob] if takes_files(simple.argv) else ()
            found |= {FileSet(path): None for glob in globs for one in directories for path in seen_from(one, glob)}
        return tuple(found)

    @cached_property
    def touched(self) -> Touched:
        """The files that it reads or writes."""
        if self._files is not NO_FILES:
            return _facts(self.text).touched  # what the text says is the same, whatever is known of the disk
        from signoff.policy.shell.syntax_tree import Tree
        from signoff.policy.shell.touched_files import Stage, touched

        if self.line is None:
            return touched(None, self.tree)
        stages = [
            Stage(
                one,
                _judge_stage(one, where._replace(wary=False)) if where else _LOST,
                where.directories if where else (),
            )
            for one, where in _placed(self.line, NO_FILES)
        ]
        known = all(isinstance(stage.judged, ReadOnlyCommand) for stage in stages)
        return touched(stages, Tree() if known else self.tree)

    @cached_property
    def directories(self) -> tuple[Directories, ...]:
        """The working directories that each simple command of `line` may run in."""
        return directories_of(self.line) if self.line is not None else ()

    @cached_property
    def tree(self) -> Tree:
        """The result of the full parser, which is also in doubt where the line runs what it writes itself."""
        if self._files is not NO_FILES:
            return _facts(self.text).tree
        from signoff.policy.shell.syntax_tree import parse_tree
        from signoff.policy.shell.written_programs import runs_written

        tree = parse_tree(self.text)
        why = runs_written(tree)
        return tree._replace(opaque=(*tree.opaque, why)) if why else tree

    @cached_property
    def commands(self) -> tuple[tuple[str | None, ...], ...]:
        """The words of every simple command at any depth; None for a word that is only known at run time."""
        if self.line is not None and self.read_only and self.line.plain and not self.hands_on:
            return tuple(simple.argv for simple in self.line.commands)
        found = [command.words for command in self.tree.commands]
        known = set(found)
        if self.line is not None:
            found.extend(argv for simple in self.line.commands if (argv := simple.argv) not in known)
        return tuple(found)

    @property
    def opaque(self) -> str:
        """What in it cannot be parsed; "" if all of it is understood."""
        if self.read_only or not self.tree.opaque:
            return ""
        why = self.tree.opaque[0]
        return why if why.startswith("`") else f"the command {why}"

    @cached_property
    def effects(self) -> frozenset[str]:
        """What it does beyond reading: `writes`, `runs`, `sends` …; with `unknown` if there may be more."""
        if self.read_only:
            return frozenset()
        stopped = any(isinstance(one, Concern) and one.word for one in self.judged)
        if stopped and self.known_effects <= PLAIN:
            return self.known_effects | {"unknown"}  # the full parse could only find what this covers
        found = {*self.known_effects, *(_effect(command) for command in self.tree.commands)} - {""}
        if self._written:
            found.add("writes")
        if self._sent or self._in_contact(Contact.SENDS):
            found.add("sends")
        if self.tree.opaque or stopped:
            found.add("unknown")  # a command is judged only up to the first word that decides
        return frozenset(found or {"unknown"})

    @property
    def may_send(self) -> str:
        """Why it may connect to other machines, if that is only known at run time; "" if nothing says so."""
        if self.read_only or not (command := self._in_contact(Contact.MAY)):
            return ""
        return f"{shown(command)} may connect to other machines to download what is missing"

    def _in_contact(self, how: Contact) -> str:
        """Return the first two words of the first command with this network use, or ""."""
        found = next((one for one in self.commands if contact(one) is how), None)
        return " ".join(word or "…" for word in found[:2]) if found is not None else ""

    @property
    def _written(self) -> tuple[str, ...]:
        return tuple(target for target in self.tree.writes if target != "/dev/null")

    @property
    def _sent(self) -> tuple[str, ...]:
        return tuple(target for target in (*self.tree.reads, *self.tree.writes) if target.startswith(_SOCKETS))

    @cached_property
    def labels(self) -> frozenset[str]:
        """The capability labels of a call that runs it. Unless known to be read-only, `proc.exec` is one."""
        if self.read_only:
            return frozenset({"fs.read"})
        sends = {"net.egress"} if self.may_send else set[str]()
        return frozenset({"fs.read", "proc.exec", *(LABEL_OF[effect] for effect in self.effects)}) | sends


def read_shell(text: str, files: KnownFiles = NO_FILES) -> ShellFacts:
    """Return the facts about a command line, with what is known of the files in it. Never raises."""
    return ShellFacts(text, files) if files.leads else _facts(text)


def forget() -> None:
    """Clear the caches of parsed lines, for benchmarks."""
    _facts.cache_clear()
    _read_line.cache_clear()


@lru_cache(maxsize=256)
def _facts(text: str) -> ShellFacts:
    return ShellFacts(text)


@lru_cache(maxsize=256)
def _read_line(text: str) -> CommandLine | Refused:
    read = read_line(text)
    if isinstance(read, Refused):
        from signoff.policy.shell.structured_lines import read_structured

        found = read_structured(text)
        if isinstance(found, Refused):
            return read
        read = found._replace(inexact=found.inexact and read.why)
    return seen_through(read)


def _judge(line: CommandLine, files: KnownFiles) -> Iterator[ReadOnlyCommand | Concern]:
    """Yield the judgement of each simple command, in every directory that a `cd` before it may have led to."""
    for stage, where in _placed(line, files):
        yield _judge_stage(stage, where) if where is not None else _LOST._replace(command=stage.words[0].text)


def _judge_stage(stage: Simple, where: Where) -> ReadOnlyCommand | Concern:
    return _redirects(stage, where) or judge_words(stage.words, where)


def _placed(line: CommandLine, files: KnownFiles) -> Iterator[tuple[Simple, Where | None]]:
    """Yield each simple command, and where it may run; None if that is not known, or depends on too many `cd`."""
    for stage, directories in zip(line.commands, directories_of(line), strict=True):
        known = [one for one in directories if one is not None]
        yield stage, Where(tuple(sorted(known)), files) if len(known) == len(directories) else None


def _refused(refused: Refused) -> Concern:
    return Concern("", refused.word, "writes" if refused.why.startswith("writes ") else "unknown", refused.why)


def _redirects(stage: Simple, where: Where) -> Concern | None:
    """Judge input redirects: a file on standard input is read like any other."""
    for redirect in stage.redirects:
        if redirect.source is not None:
            judged = judge_words((Word("cat"), Word("--"), redirect.source), where)
            if isinstance(judged, Concern):
                return judged._replace(command=f"{stage.words[0].text} <")
    return None


def _effect(command: Command) -> str:
    """Return the effect of a command from the full parse, by the table; "" if it is read-only."""
    judged = _judge_command(command)
    if isinstance(judged, Concern):
        return judged.effect
    return "unknown" if judged is None or None in command.words else ""


def _judge_command(command: Command) -> ReadOnlyCommand | Concern | None:
    """Judge the known words of a command by the table; None if its program is not known."""
    if not command.words or command.words[0] is None:
        return None
    return judge_words(tuple(Word(word) for word in command.words if word is not None))
