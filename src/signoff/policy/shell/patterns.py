"""Command patterns of rules: `git status`, `npm run *`, `rm -rf`. Matched against words, never against the line's text.

In an allow rule a pattern means exactly these words; a final `*` stands for any more. An ask or deny rule must not be
evaded: options count in any position and however they are bundled or abbreviated, operands in their order.
"""

from __future__ import annotations

import re
import shlex
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from signoff.policy.glob import Glob
from signoff.policy.match_result import YES, MatchResult, Truth, any_holds
from signoff.policy.places import normal
from signoff.policy.shell.line import Simple, Unknown, Word
from signoff.policy.shell.literal_words import Refused, read_line
from signoff.policy.shell.simple_command import Concern, judge_words
from signoff.policy.shell.table import PATH, program
from signoff.policy.table_files import table_text

if TYPE_CHECKING:
    from signoff.policy.shell.further_words import Leads

# The module about further words and the full parser are imported where they are used: most calls need neither.

NETWORK_READS = "network-reads"
"""Used in place of a pattern, in allow rules: every command that is known to only read over the network."""
READ_ONLY = "read-only"
"""Used in place of a pattern: every command that is known to be read-only."""


_ANY = "program"
_UP = re.compile(r"(?:\A|[/=:])\.\.(?:/|\Z)")
_WILDCARD = re.compile(r"\*+|\?|\[[^]]*\]")
_VERB = re.compile(r"[a-z][a-z0-9:-]*")
_PLAIN_OPTION = re.compile(r"-[A-Za-z]|--[a-z][a-z-]*")
_BELOW = re.compile(r"(?:\./)?[A-Za-z0-9_][\w.-]*/", re.ASCII)
"""The beginning of a pattern that the shell expands to nothing that is an option, and in no hidden directory."""
_NO = MatchResult.no("")


class BadCommand(ValueError):
    """An unusable pattern; the message says why and what to write."""


@dataclass(frozen=True, slots=True)
class CommandPattern:
    """One pattern, as words."""

    text: str
    words: tuple[Glob, ...] = field(init=False, repr=False, compare=False)
    open: bool = field(init=False, repr=False, compare=False)
    """Whether more words may follow."""

    def __post_init__(self) -> None:
        """Raises `BadCommand`, or `BadGlob` if a word is not a valid pattern."""
        words = _words(self.text)
        tail = len(words) > 1 and words[-1] == "*"
        if re.search(r"\s", words[0]):
            raise BadCommand(f"no program is called {words[0]!r}; leave out the quotes")
        if not words[0].strip("*"):
            raise BadCommand("a pattern starts with a program; leave `command` out to match every command")
        object.__setattr__(self, "open", tail)
        object.__setattr__(self, "words", tuple(Glob(word, over_names=True) for word in words[: len(words) - tail]))

    @property
    def breadth(self) -> str:
        """Why an allow rule with it allows more than it seems to: the program runs whatever it is given; "" if not."""
        name = self.words[0].literal
        if name is None:
            return "any program whose name matches may run"
        known = program(name.lower().removesuffix(".exe").rpartition("/")[2])
        options = all(glob.pattern.startswith("-") for glob in self.words[1:])
        if known is None or not options or (len(self.words) > 1 and not self.open):
            return ""
        trouble = known.trouble or known.needs_trouble
        if not trouble.startswith(("runs", "changes")):
            return ""
        if trouble.startswith("runs") and not self.open:
            from signoff.policy.shell.syntax_tree import parse_tree

            if parse_tree(name).opaque:
                return f"`{name}` runs whatever command or code it is given"
            return ""  # alone it runs what the project defines; an interpreter would run its input
        return f"`{name}` runs whatever command or code it is given"

    @property
    def left_open(self) -> str:
        """What the final `*` does not stand for, because the program is not known; "" if it is."""
        from signoff.policy.shell.further_words import left_open

        words = [glob.literal for glob in self.words]
        known = [word for word in words if word is not None]
        return left_open(known) if self.open and len(known) == len(words) and not self.breadth else ""

    @property
    def follows(self) -> bool:
        """Whether an allow rule with it also allows the command in a subdirectory.

        Its final `*` must stand for words that take the program to any directory (`make -C sub`) anyway, and no other
        word may be a path, which would be relative to the subdirectory.
        """
        name = self.words[0].literal
        known = program(name) if self.open and name is not None else None
        if known is None or not known.elsewhere:
            return False
        fixed = [glob.literal or "" for glob in self.words[1:]]
        if fixed and known.verbs and _VERB.fullmatch(fixed[0]):
            fixed = fixed[1:]
        return all(_PLAIN_OPTION.fullmatch(word) for word in fixed)

    def covers(
        self, command: Simple, concern: Concern | None = None, *, fed: bool = False, leads: Leads | None = None
    ) -> Truth:
        """Return whether an allow rule with the pattern allows the command, word for word.

        `concern` is what is known against the command: a final `*` does not stand for words that run other programs,
        or run the input that the command is `fed`. No wildcard stands for a place that `leads` away on the disk.
        """
        if (command.before or command.typed) and self._covers(
            command.whole, concern, fed=fed, leads=leads
        ) is Truth.YES:
            return Truth.YES
        found = self._covers(command, concern, fed=fed, leads=leads)
        if found is Truth.YES or (plain := _without_quiet(command)) is None:
            return found
        return Truth.YES if self._covers(plain, concern, fed=fed, leads=leads) is Truth.YES else found

    def _covers(self, command: Simple, concern: Concern | None, *, fed: bool, leads: Leads | None) -> Truth:
        words = command.words
        if len(words) < len(self.words) or (len(words) > len(self.words) and not self.open):
            return Truth.NO
        if any(
            word.tilde or word.unknown is not Unknown.NOT or (word.glob and not self._only_files(at, command))
            for at, word in enumerate(words)
        ):
            return Truth.UNKNOWN  # the words that the shell expands them to are not those that the rule names
        truths = [_covered(glob, word.text) for glob, word in zip(self.words, words, strict=False)]
        if Truth.NO in truths:
            return Truth.NO
        if Truth.UNKNOWN in truths or self.beyond(command, concern, fed=fed, leads=leads):
            return Truth.UNKNOWN
        return Truth.YES

    def _only_files(self, at: int, command: Simple) -> bool:
        """Whether a file pattern stands for files in a directory that it names, and the final `*` for any of them."""
        from signoff.policy.shell.further_words import takes_files

        return at >= len(self.words) and takes_files(command.argv) and _BELOW.match(command.words[at].glob) is not None

    def beyond(self, command: Simple, concern: Concern | None, *, fed: bool = False, leads: Leads | None = None) -> str:
        """Return why a wildcard does not stand for the words of the command that are in its place, or ""."""
        argv = command.argv
        if len(argv) < len(self.words) or (len(argv) > len(self.words) and not self.open):
            return ""
        if any(_covered(*one) is Truth.NO for one in zip(self.words, argv, strict=False)):
            return ""
        wild = [word for glob, word in zip(self.words, argv, strict=False) if glob.literal is None]
        if not wild and not self.open:
            return ""
        from signoff.policy.shell.further_words import led_away, nowhere, places_in, runs_input, uncovered

        leads = leads or nowhere
        if concern is not None and wild and (why := led_away(places_in(["", *wild]), leads)):
            return f"a wildcard does not stand for that: {why}"
        if not self.open:
            return ""
        if fed and concern is not None and (why := runs_input(argv)):
            return why
        if len(argv) == len(self.words):
            return uncovered(argv, len(self.words), leads=leads) if concern is not None else ""
        if concern is not None and self._runs_more(argv, concern):
            return concern.sentence
        return uncovered(argv, len(self.words), leads=leads)

    def _runs_more(self, argv: Sequence[str], concern: Concern) -> bool:
        """Whether the words that the final `*` stands for make the command run another program.

        If the words of the pattern do that themselves (`sudo *`, `uv run *`), the rule means it.
        """
        from signoff.policy.shell.further_words import plain_word

        fixed = len(self.words)
        plain = (*argv[:fixed], plain_word(argv[:fixed]))
        if concern.effect == "runs" and not _is_known_to_run(plain):
            return True
        return (_runs_others(argv) and not _runs_others(plain)) or bool(_own_options(argv) - _own_options(plain))

    @property
    def sample(self) -> str:
        """A command line that the pattern was written for."""
        words = [_WILDCARD.sub("x", glob.pattern) for glob in self.words]
        return shlex.join([*words, *(["x"] if self.open else [])])

    def finds(self, argv: Sequence[str | None]) -> MatchResult:
        """Return whether an ask or deny rule with the pattern means this command."""
        program = argv[0] if argv else None
        if program is None:
            return MatchResult.unknown("the name of the program is only known when it runs")
        known = _synonyms().get(self.words[0].pattern, Synonyms())
        named = self._named(program, known)
        if named is Truth.NO and program.startswith("=") and self.finds((program[1:], *argv[1:])).truth is not Truth.NO:
            return MatchResult.unknown(f"`{program}` is the program of `{self.text}` in zsh")
        if named is Truth.NO:
            return _NO
        rest = [word for word in argv[1:] if word is not None]
        found = any_holds(self._in_words(program, words, known) for words in known.ways(rest))
        if found.truth is Truth.YES and named is Truth.UNKNOWN:
            return MatchResult.unknown(f"`{program}` may be the program of `{self.text}`")
        if found.truth is Truth.NO and None in argv:
            return MatchResult.unknown("some of its words are only known when it runs")
        return found

    def _in_words(self, program: str, words: Sequence[str], known: Synonyms) -> MatchResult:
        """Return whether the words after the program are those of the pattern, in any spelling."""
        given = _Given(program, words)
        options = [glob.pattern for glob in self.words[1:] if _is_option(glob.pattern)]
        operands = [glob for glob in self.words[1:] if not _is_option(glob.pattern) and glob.pattern != "--"]
        if not all(given.has(option, known) for option in options):
            if given.may_have_more and given.in_order(operands, known, _may_mean):
                return MatchResult.unknown(f"a file pattern in it may expand to an option of `{self.text}`")
            return _NO
        if not given.in_order(operands, known, _may_mean):
            if given.begins(operands, known):
                return MatchResult.unknown(f"one of its words may be short for what `{self.text}` names")
            return _NO
        if not given.in_order(operands, known, _means):
            return MatchResult.unknown(f"a file pattern in it may expand to what `{self.text}` names")
        if "--" not in (glob.pattern for glob in self.words) or "--" in words:
            return YES
        if given.operands > len(operands) or self.words[-1].pattern != "--":
            return MatchResult.unknown(f"without `--` before its operands, it may still do what `{self.text}` does")
        return _NO

    def may_be(self, word: str) -> bool:
        """Whether a word, such as the source of a copy, is the program that the pattern names."""
        known = _synonyms().get(self.words[0].pattern, Synonyms())
        if self._named(word, known) is not Truth.NO:
            return True
        names = [(glob.literal or glob.pattern).rpartition("/")[2] for glob in (self.words[0], *known.names)]
        wild = word.rpartition("/")[2]
        return _WILDCARD.search(wild) is not None and any(fnmatchcase(name, wild) for name in names)

    def _named(self, program: str, known: Synonyms) -> Truth:
        """Return whether this is the program that the pattern names. A path means its file, however it is called."""
        wanted = self.words[0]
        name = program.rpartition("/")[2]
        if any(glob.find(one) is not Truth.NO for one in {program, name} for glob in (wanted, *known.names)):
            return Truth.YES
        plain = name.lower().removesuffix(".exe")
        if plain != name and any(glob.find(plain) is not Truth.NO for glob in (wanted, *known.names)):
            return Truth.UNKNOWN  # some systems treat `RM` and `rm.exe` as `rm`
        package = name.rpartition("@")[0]
        if package and any(glob.find(package) is not Truth.NO for glob in (wanted, *known.names)):
            return Truth.UNKNOWN  # a version of it, as `npx npm@9` runs one
        directory, slash, last = wanted.pattern.rpartition("/")
        if not slash or Glob(last or "*", over_names=True).find(name) is Truth.NO:
            return Truth.NO
        return Truth.YES if directory in PATH and program.rpartition("/")[0] in ("", *PATH) else Truth.UNKNOWN


def _covered(glob: Glob, word: str) -> Truth:
    """Return whether a word of an allow rule matches. A wildcard matches no `..`, option, absolute or home path."""
    found = glob.find(word)
    if found is Truth.YES and glob.literal is None:
        led = glob.pattern[:1] in "*?["
        if _UP.search(word) or (led and word[:1] in ("-", "/", "~")):
            return Truth.UNKNOWN
        at = len(_WILDCARD.split(glob.pattern, maxsplit=1)[0])
        value = glob.pattern[at - 1 : at] in ("=", ":", ",") or (at == 2 and glob.pattern[:1] == "-")
        if value and word[at : at + 1] in ("/", "~"):
            return Truth.UNKNOWN
    return found


def _without_quiet(command: Simple) -> Simple | None:
    """Return the command without the options behind its program that change nothing about what it runs; None if it has
    none.
    """
    known = _synonyms().get(command.words[0].text)
    words = command.words[1:]
    if known is None or known.quiet is None or not words or words[0].text[:1] != "-":
        return None
    found = known.quiet.match(" ".join(["", *(word.text for word in words)]))
    count = len(found[0].split()) if found is not None else 0
    if any(" " in word.text or word.glob or word.tilde for word in words[:count]):
        return None
    return command._replace(words=(command.words[0], *words[count:])) if 0 < count < len(words) else None


def _is_known_to_run(argv: Sequence[str]) -> bool:
    judged = judge_words([Word(word) for word in argv])
    return isinstance(judged, Concern) and judged.effect == "runs"


def _own_options(argv: Sequence[str]) -> set[str]:
    """Return the program's own options with which it runs something: `ssh -o ProxyCommand`."""
    from signoff.policy.shell.syntax_tree import parse_tree

    name = argv[0].rpartition("/")[2]
    vias = {command.via[0] for command in parse_tree(shlex.join(argv)).commands if command.via}
    return {via for via in vias if via.startswith(f"{name} -")}


def _runs_others(argv: Sequence[str]) -> bool:
    from signoff.policy.shell.syntax_tree import parse_tree

    tree = parse_tree(shlex.join(argv))
    return len(tree.commands) > 1 or bool(tree.opaque)


def _words(text: str) -> list[str]:
    """Return the words of a pattern, parsed by the strict parser, with wildcards kept."""
    line = read_line(f"{_ANY} {text}")  # a wildcard may stand for the program, too
    if isinstance(line, Refused):
        raise BadCommand(f"it {line.why}; a pattern is one simple command")
    if len(line.commands) != 1 or line.commands[0].redirects:
        raise BadCommand("a pattern is one simple command, without redirects; write a list for several")
    words = [word.glob or word.text for word in line.commands[0].words[1:]]
    if not words:
        raise BadCommand("it is empty; leave `command` out to match every command")
    if any("\\" in word for word in words):
        raise BadCommand("a pattern has no quoted wildcards and no backslashes")
    return words


class Synonyms(NamedTuple):
    """Synonyms of a program's name and its options."""

    names: tuple[Glob, ...] = ()
    same: tuple[frozenset[str], ...] = ()
    like: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...] = ()
    """Pairs of sub-commands that do the same."""
    quiet: re.Pattern[str] | None = None
    """Options behind the name that change nothing about what it runs."""

    def of(self, option: str) -> frozenset[str]:
        """Return all spellings of one option, including its own."""
        return next((group for group in self.same if option in group), frozenset({option}))

    def ways(self, words: Sequence[str]) -> Iterator[Sequence[str]]:
        """Yield the words after the program, and with each sub-command that does the same in place of theirs."""
        yield words
        places = [at for at, word in enumerate(words) if not word.startswith("-")]
        said = tuple(words[at] for at in places)
        for pair in self.like:
            for one, other in (pair, pair[::-1]):
                for start in range(min(len(said), 3)):
                    if said[start : start + len(one)] == one:
                        yield [*words[: places[start]], *other, *words[places[start + len(one) - 1] + 1 :]]


@lru_cache(maxsize=1)
def _synonyms() -> Mapping[str, Synonyms]:
    data = tomllib.loads(table_text("shell/synonyms.toml"))
    return {
        name: Synonyms(
            tuple(Glob(other, over_names=True) for other in str(entry.get("names", "")).split()),
            tuple(frozenset(group.split()) for group in entry.get("same", ())),
            tuple(
                (tuple(one.split()), tuple(other.split()))
                for one, _, other in (pair.partition("=") for pair in entry.get("like", ()))
            ),
            re.compile(rf"(?:{entry['quiet']}(?= ))+", re.ASCII) if "quiet" in entry else None,
        )
        for name, entry in data.items()
    }


def _is_option(word: str) -> bool:
    return word.startswith("-") and word not in ("-", "--")


Means = Callable[[Glob, str, Synonyms], bool]


class _Given:
    """The words after a program, for ask and deny rules: every spelling of an option counts."""

    def __init__(self, program: str, words: Sequence[str]) -> None:
        self.program = program.rpartition("/")[2]
        self.words = list(words)
        if words and not words[0].startswith("-") and _old_style(program):
            self.words.insert(0, f"-{words[0]}")  # `tar xf` is `tar -x -f`
        self.bundles = [word[1:] for word in self.words if len(word) > 1 and word[0] == "-" and word[1] != "-"]
        self.names = {word.partition("=")[0].lstrip("-") for word in self.words if _is_option(word)}
        self.operands = sum(not word.startswith("-") for word in words)

    @property
    def may_have_more(self) -> bool:
        """Whether the shell may expand a word to an option, if there is a file of that name: `-?f`."""
        return any(word.startswith("-") and _WILDCARD.search(word) for word in self.words)

    def has(self, option: str, known: Synonyms) -> bool:
        """Whether an option is given; for a bundle, each of its letters."""
        if any(self._is_given(spelling) for spelling in known.of(option)):
            return True
        if option.startswith("--") or len(option) <= 2 or "=" in option:
            return False
        return all(any(self._is_given(spelling) for spelling in known.of(f"-{letter}")) for letter in option[1:])

    def _is_given(self, option: str) -> bool:
        if option.endswith("*"):
            return any(word.startswith(option[:-1]) for word in self.words)
        name, equals, value = option.partition("=")
        bare = name.lstrip("-")
        if equals:
            return any(self._has_value(one, value) for one in self._spellings(name))
        if len(option) == 2:
            return option in self.words or any(bare in bundle for bundle in self.bundles)
        # some programs accept one dash for two, and abbreviated names
        return bare in self.names or (option.startswith("--") and bool(self._spellings(name)))

    def _spellings(self, name: str) -> list[str]:
        """Return how the name of an option is written here: with one dash or two, in full or abbreviated."""
        bare = name.lstrip("-")
        found = [f"{dash}{bare}" for dash in ("-", "--")]
        if name.startswith("--"):
            from signoff.policy.shell.further_words import is_option

            shorts = {f"--{short}" for short in self.names if short and bare.startswith(short)}
            found += {short for short in shorts if short == name or not is_option(self.program, short)}
        written = {word.partition("=")[0] for word in self.words}
        return [one for one in found if one in written and (len(one) > 2 or one == name)]

    def _has_value(self, name: str, value: str) -> bool:
        pairs = zip(self.words, [*self.words[1:], ""], strict=True)
        return any(word == f"{name}={value}" or (word == name and after == value) for word, after in pairs)

    def in_order(self, wanted: Sequence[Glob], known: Synonyms, means: Means) -> bool:
        """Whether these operands are given in this order; values attached to options count, too."""
        rest = iter([part for word in self.words for part in _parts(word)])
        return all(any(means(glob, word, known) for word in rest) for glob in wanted)

    def begins(self, wanted: Sequence[Glob], known: Synonyms) -> bool:
        """Whether the operands are given, some of them abbreviated: many programs take the beginning of a sub-command.

        A sub-command comes first, but for options, which may have values.
        """
        first: list[str] = []
        options = 0
        for word in self.words:
            options += word.startswith("-")
            if not word.startswith("-") and len(first) < len(wanted) + options:
                first.append(word)

        def short(glob: Glob, word: str, known: Synonyms) -> bool:
            verb = glob.literal or ""
            names = known.of(verb) if _VERB.fullmatch(verb) else ()
            return _may_mean(glob, word, known) or (
                word in first and bool(word) and any(name.startswith(word) for name in names)
            )

        return self.in_order(wanted, known, short)


def _parts(word: str) -> Iterator[str]:
    """Yield a word, and the value that it may contain: `--namespace=prod`, `-nprod`."""
    yield word
    if word.startswith("-"):
        _, equals, value = word.partition("=")
        yield from [value] if equals else []
        yield from [word[2:]] if len(word) > 2 and word[1] != "-" else []


def _means(glob: Glob, word: str, known: Synonyms) -> bool:
    """Whether a word is what is wanted, also as a path or a number that is written differently."""
    literal = glob.literal
    if any(glob.find(one) is not Truth.NO for one in _same(word)):
        return True
    return literal is not None and (word in known.of(literal) or (_is_path(literal) and normal(literal) in _same(word)))


def _may_mean(glob: Glob, word: str, known: Synonyms) -> bool:
    """Like `_means`, but the shell may expand a file pattern to other words."""
    wild = glob.literal is not None and _WILDCARD.search(word) is not None
    return _means(glob, word, known) or (wild and fnmatchcase(glob.literal or "", word))


def _same(word: str) -> Iterator[str]:
    """Yield a word and its normalised form: `./x`, `/etc//x` and `of=/dev/./x`; `0777`."""
    yield word
    name, equals, value = word.rpartition("=")
    if _is_path(value):
        yield f"{name}{equals}{normal(value)}"
    if word.isdecimal() and word.isascii():
        yield word.lstrip("0") or "0"


def _is_path(word: str) -> bool:
    return "/" in word and "://" not in word


def _old_style(name: str) -> bool:
    known = program(name.rpartition("/")[2])
    return known is not None and known.old_style
