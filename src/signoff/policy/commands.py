"""Conditions on shell commands: known to be read-only, matching a pattern, or with a certain effect."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from signoff.core.call import UNFOLLOWED
from signoff.policy.call_paths import Facts
from signoff.policy.match import Links, text_argument
from signoff.policy.match_result import YES, MatchResult, Truth, any_holds
from signoff.policy.phrases import listed, shown
from signoff.policy.places import is_too_long, normal, runs_later
from signoff.policy.secret import holds_secrets, may_match_secret, secret_place
from signoff.policy.shell.command_facts import PLAIN, ShellFacts, read_shell
from signoff.policy.shell.common_files import split_below
from signoff.policy.shell.file_patterns import is_wild
from signoff.policy.shell.line import Simple
from signoff.policy.shell.patterns import READ_ONLY, CommandPattern
from signoff.policy.shell.simple_command import Concern, ReadOnlyCommand, reads_network, seen_from
from signoff.policy.shell.working_directories import Directory, is_cd

if TYPE_CHECKING:
    from signoff.policy.shell.further_words import Leads

ARGUMENT = "command"


@dataclass(frozen=True, slots=True)
class CommandCondition:
    """What the shell command in an argument does.

    With `every`, in allow rules: the strict parser accepts the line, and each simple command in it is read-only (if
    `read_only` is wanted) or matches a pattern, word for word. Otherwise one command anywhere in the line, including
    substitutions and commands behind wrappers, is enough, and what cannot be parsed is in doubt.
    """

    patterns: tuple[CommandPattern, ...] = ()
    read_only: bool = False
    does: frozenset[str] = frozenset()
    secret: bool = False
    """Whether it names a secret place, whatever it does with it."""
    network: bool = False
    """Whether it may also read over the network, in allow rules."""
    argument: str = ARGUMENT
    every: bool = False
    text: str = field(init=False, compare=False)
    no: MatchResult = field(init=False, repr=False, compare=False)
    links: ClassVar[Links] = Links.COMMAND

    def __post_init__(self) -> None:
        wanted = [pattern.text for pattern in self.patterns]
        words = [f"like {listed(wanted)}"] if wanted else []
        words += ["that only reads"] if self.read_only else []
        words += ["that only reads over the network"] if self.network else []
        words += [f"that {' or '.join(sorted(self.does))}"] if self.does else []
        words += ["that names a secret place"] if self.secret else []
        object.__setattr__(self, "text", f"with a command {' or '.join(words)}")
        object.__setattr__(self, "no", MatchResult.no(f"it has no command {' or '.join(words)}"))

    @property
    def stands_for(self) -> str:
        """The argument whose value a plain text in a rule's examples is."""
        return self.argument

    @property
    def names_command(self) -> bool:
        """Whether it holds because patterns name the commands of the argument that all rules read."""
        return self.every and bool(self.patterns) and self.argument == ARGUMENT

    @property
    def broad(self) -> tuple[tuple[str, str], ...]:
        """Patterns that allow more than they seem to, each with the reason; for `policy check`."""
        return tuple((one.text, why) for one in self.patterns if (why := one.breadth))

    @property
    def left_open(self) -> tuple[tuple[str, str], ...]:
        """Patterns of an allow rule that cover less than they seem to, each with what is left; for `policy check`."""
        return tuple((one.text, why) for one in self.patterns if self.every and (why := one.left_open))

    def find(self, facts: Facts) -> MatchResult:
        value = text_argument(facts, self.argument, "a command line")
        if isinstance(value, MatchResult):
            return value
        shell = facts.shell(value)
        return self._every(shell, facts) if self.every else self._some(shell, facts)

    def _every(self, shell: ShellFacts, facts: Facts) -> MatchResult:
        if shell.line is None:
            facts.note(shell.why)
            return MatchResult.no(shell.why)
        if shell.line.inexact and not facts.call.roams:
            why = f"the command {shell.line.inexact}"  # what is run as its words has to be exactly them
            facts.note(why)
            return MatchResult.no(why)
        allowed = False
        line = shell.line
        for simple, is_fed, read, where in zip(line.commands, line.fed, shell.judged, shell.directories, strict=True):
            judged = _unaided(simple, read) if facts.call.roams else read
            if isinstance(judged, ReadOnlyCommand) and is_cd(simple):
                continue  # only changes the directory for the commands after it, which are judged there
            reads = self.read_only and isinstance(self._with_network(read, judged), ReadOnlyCommand)
            if not reads and not self._asks_network(simple, judged):
                leads = partial(_led_out, directories=where, facts=facts)
                fitting = self._fitting(simple, judged, is_fed, leads)
                why = _moved(simple, fitting, where, facts) if fitting else self._unfit(simple, judged, is_fed, leads)
                if why:
                    facts.note(why, close=bool(fitting))
                    return MatchResult.no(why)
            allowed = True
        return YES if allowed or self.read_only else MatchResult.no("no pattern covers `cd`")

    def _with_network(
        self, read: ReadOnlyCommand | Concern, judged: ReadOnlyCommand | Concern
    ) -> ReadOnlyCommand | Concern:
        """Return what a command does where it may ask the network, as `netstat` does for names."""
        return read if self.network and isinstance(judged, Concern) and judged.effect == "sends" else judged

    def _asks_network(self, simple: Simple, judged: ReadOnlyCommand | Concern) -> bool:
        from_secret = isinstance(judged, Concern) and judged.command.endswith(" <")
        return self.network and not from_secret and reads_network(simple.words)

    def _fitting(
        self, simple: Simple, judged: ReadOnlyCommand | Concern, fed: bool, leads: Leads
    ) -> list[CommandPattern]:
        """Return the patterns that a command matches, wherever it runs."""
        if isinstance(judged, Concern) and judged.command.endswith(" <"):
            return []  # it reads from a secret file, whatever its words
        concern = judged if isinstance(judged, Concern) else None
        return [one for one in self.patterns if one.covers(simple, concern, fed=fed, leads=leads) is Truth.YES]

    def _unfit(self, simple: Simple, judged: ReadOnlyCommand | Concern, fed: bool, leads: Leads) -> str:
        """Return why no pattern covers a command."""
        concern = judged if isinstance(judged, Concern) else None
        reasons = (pattern.beyond(simple, concern, fed=fed, leads=leads) for pattern in self.patterns)
        if why := next(filter(None, reasons), ""):
            return why
        return concern.sentence if concern is not None else f"no pattern covers `{simple.words[0].text}`"

    def _some(self, shell: ShellFacts, facts: Facts) -> MatchResult:
        if shell.read_only and not self.patterns:
            return YES if self.read_only else self.no
        if self.read_only and shell.read_only:
            return YES
        if self.does and (self.does & shell.known_effects or self.does & shell.effects):
            facts.note(shell.why_it(self.does) or shell.why)
            return YES
        if self.secret and (found := _secrets(shell, facts)):
            return found
        if not self.patterns:
            return self._doubt(shell) or self.no
        doubt: MatchResult | None = None
        for argv in shell.commands:
            found = any_holds(pattern.finds(argv) for pattern in self.patterns)
            if found.truth is Truth.YES:
                facts.note(f"it runs {shown(' '.join(word if word is not None else '…' for word in argv)[:200])}")
                return YES
            if found.truth is Truth.UNKNOWN:
                doubt = doubt or found
            elif not shell.read_only and (why := self._may_start(argv)):
                doubt = doubt or MatchResult.unknown(why)
        if not shell.read_only:
            from signoff.policy.shell.unknown_programs import read_programs

            read = next((why for path in read_programs(shell.tree) if (why := self._renamed(path, "`<`"))), "")
            doubt = doubt or (MatchResult.unknown(read) if read else self._fed(shell))
        if shell.opaque:
            return MatchResult.unknown(shell.opaque)
        return doubt or self._doubt(shell) or self.no

    def _doubt(self, shell: ShellFacts) -> MatchResult | None:
        """Return doubt if it is not known whether the command has one of the effects, otherwise None."""
        if self.does and "unknown" in shell.effects:
            return MatchResult.unknown(shell.opaque or shell.why)
        return MatchResult.unknown(shell.may_send) if "sends" in self.does and shell.may_send else None

    def _may_start(self, argv: Sequence[str | None]) -> str:
        """Return why an unknown program may run a command that a pattern names: its words contain one. Or ""."""
        from signoff.policy.shell.unknown_programs import copied, may_start  # few calls need it

        for inner in may_start(argv):
            if any(pattern.finds(inner).truth is not Truth.NO for pattern in self.patterns):
                return f"{shown(str(argv[0]))} may run {shown(str(inner[0]))}: signoff does not know it well enough"
        return next((why for source in copied(argv) if (why := self._renamed(source, str(argv[0])))), "")

    def _renamed(self, source: str, by: str) -> str:
        if any(pattern.may_be(source) for pattern in self.patterns):
            return f"{shown(by)} may give {shown(source)} another name"
        return ""

    def _fed(self, shell: ShellFacts) -> MatchResult | None:
        """Return doubt if a program that signoff does not know is fed a command that a pattern names."""
        from signoff.policy.shell.unknown_programs import fed

        for command in shell.tree.commands:
            program = command.words[0] if command.words else None
            for inner in fed(program, command.stdin):
                if any(pattern.finds(inner).truth is not Truth.NO for pattern in self.patterns):
                    why = f"{shown(program or '…')} may run {shown(str(inner[0]))}, which its input names"
                    return MatchResult.unknown(why)
        return None


def _unaided(simple: Simple, judged: ReadOnlyCommand | Concern) -> ReadOnlyCommand | Concern:
    """Return what a command does that another program runs: without the options and variables that signoff adds."""
    if isinstance(judged, Concern) or not (known := judged.program).unaided:
        return judged
    if known.adds and all(known.gives(option, simple.argv) for option in known.adds):
        return judged
    effect, _, why = known.unaided.partition(": ")
    return Concern(known.name, "", effect, why)


def _moved(simple: Simple, fitting: Sequence[CommandPattern], directories: Iterable[Directory], facts: Facts) -> str:
    """Return why an allow rule for the command does not apply in the directory that it may run in; "" if it does."""
    name = shown(simple.words[0].text)
    for directory in directories:
        if directory is None:
            return f"{name} runs after a `cd`, in a directory that is only known when it runs"
        here = (
            f"{name} runs in {shown(directory)} after a `cd`"
            if directory
            else f"{name} runs in {shown(facts.call.start)}"
        )
        below = facts.below_start(directory)
        if below is None:
            return f"{here}, outside the directory that commands start in"
        if below and (why := runs_later(f"{below}/x")):
            return f"{here}, and {why}"
        if below and (why := secret_place(f"{below}/x")):
            return f"{here}, which {why}"
        if below and not any(pattern.follows for pattern in fitting):
            rules = listed(pattern.text for pattern in fitting)
            return f"{here}, and {rules} only applies in the directory that commands start in"
    return ""


def _led_out(path: str, directories: Iterable[Directory], facts: Facts) -> str:
    """Return why a path of a command that is no plain path of the project on the disk: by a symlink; "" if it is."""
    for directory in directories:
        if directory is None or facts.below_start(directory) is None:
            continue  # no allow rule holds there
        named = seen_from(directory, path)
        standing = {text: facts.files.standing_for(text) if is_wild(text) else () for text in named}
        for seen in (one for text in named for one in (text, *standing[text])):
            leads = facts.call.resolved.get(seen)
            if leads is None or normal(leads) == facts.lexical(seen):
                continue
            if leads == UNFOLLOWED or (below := facts.below_start(seen)) is None:
                return f"{shown(seen)} leads to {shown(leads)}, outside the directory"
            from signoff.policy.shell.further_words import is_hidden_code

            if is_hidden_code(below):
                return f"{shown(seen)} leads to {shown(leads)}, and programs follow what is there"
    return ""


def found_in(pattern: CommandPattern) -> bool:
    """Whether an ask or deny rule finds the command that the pattern was written for."""
    shell = read_shell(pattern.sample)
    return bool(shell.opaque) or any(pattern.finds(argv).truth is not Truth.NO for argv in shell.commands)


def _secrets(shell: ShellFacts, facts: Facts) -> MatchResult | None:
    """Return that a command names a secret place, or may; None if not."""
    if why := _names_secret(shell):
        facts.note(why)
        return YES
    if why := _may_name_secret(shell):
        return MatchResult.unknown(why)
    opaque = "" if shell.read_only else shell.touched.opaque
    return replace(MatchResult.unknown(opaque), strange=True) if opaque else None


def _names_secret(shell: ShellFacts) -> str:
    """Return the secret place that a command reads, or that one of its words is; "" if there is none."""
    if shell.read_only:
        return ""
    for one in shell.judged:
        if isinstance(one, Concern) and one.effect == "discloses":
            return one.sentence
    plain = shell.line is not None and shell.known_effects <= PLAIN
    argvs = [simple.argv for simple in shell.line.commands] if plain and shell.line else shell.commands
    targets = () if plain else (*shell.tree.reads, *shell.tree.writes)
    for text in (*(word for argv in argvs for word in argv[1:] if word), *targets):
        if not is_too_long(text) and (why := secret_place(text)):
            return f"{shown(text)} {why}"
    return ""


def _may_name_secret(shell: ShellFacts) -> str:
    """Return why a command may touch a secret place that none of its words is; "" if nothing says so."""
    if shell.read_only:
        return ""
    touched = shell.touched
    for path in (*touched.paths, *touched.tracked, *touched.words, *touched.maybe):
        if not is_too_long(path) and (why := secret_place(path)):
            return f"it may touch {shown(path)}, which {why}"
    for pattern in touched.patterns:
        if why := may_match_secret(pattern):
            return f"{shown(pattern)} may stand for a file which {why}"
    for files in (*touched.below, *touched.given):
        directory = split_below(files.pattern)[0]
        if why := holds_secrets(directory):
            return f"it may touch what is below {shown(directory)}, which {why}"
    return ""


__all__ = ["ARGUMENT", "READ_ONLY", "CommandCondition", "found_in"]
