"""Judge a simple command by the table of programs: known to be read-only, or what speaks against that.

Options are an allowlist: an option that the table does not name asks. What runs unasked is exactly the words that are
judged here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import chain, pairwise
from posixpath import join
from types import MappingProxyType
from typing import NamedTuple

from signoff.core.call import UNFOLLOWED
from signoff.policy.places import normal
from signoff.policy.secret import holds_secrets, may_match_secret, secret_place
from signoff.policy.shell.common_files import BELOW, BELOW_SHOWN, BELOW_TRACKED, RUN, KnownFiles, may_share
from signoff.policy.shell.file_patterns import escaped
from signoff.policy.shell.filters import Filter, names_secret, regex_names_secret
from signoff.policy.shell.languages import OF_TEXT, OF_WORDS, Trouble, check_find, check_sed
from signoff.policy.shell.languages.find import executed
from signoff.policy.shell.line import Unknown, Word
from signoff.policy.shell.literal import HOLE
from signoff.policy.shell.table import (
    PATH,
    CommandOption,
    OperandKind,
    Program,
    TakesValue,
    named_programs,
    network_reader,
    program,
    tellers,
    unasked_programs,
)
from signoff.policy.step_count import StepCount

_ALWAYS = {
    "command": "runs: runs the program that is named here",
    "output": "writes: writes to the file that is named here",
    "url": "sends: sends a request to the address that is named here",
    "host": "sends: sends a request to the address that is named here",
}
_DEEPEST = 6
_NAMED = frozenset({"name", "path", "wholename", "regex", "lname"})
"""Tests of find that look at the names of files."""
ALWAYS = "always"
PAIR = "pair"
_SOCKETS = ("/inet/", "/inet4/", "/inet6/")
_FILTERS = frozenset({"glob", "skip", "skip_directory", "pattern"})
_SCRIPTS = {**OF_TEXT, "sed": partial(check_sed, separate=True)}


_AT_RUN_TIME = "is given a word that is only known when it runs"
_KNOW_UNKNOWN = frozenset({"test", "condition", "printf"})
_WEB = re.compile(
    r"""(?ix)(?:https?://)?
    (?!169\.254\.|100\.(?:6[4-9]|[7-9]\d|1[01]\d|12[0-7])\.|192\.0\.0\.|168\.63\.129\.16(?!\d))
    (?!metadata\b|instance-data\b|[^/?\#]*\.(?:internal|svc|cluster\.local|consul)(?:[:/?\#]|\Z))
    (?![^:/?\#]*\d[.-]\d{1,3}[.-]\d{1,3}[.-]\d{1,3}[.-])
    (?![^/?\#]*:0*(?:237[5-9]|2380|4243|6443|8200|8500|1025[056])(?!\d))
    (?:localhost | (?:[a-z0-9_-]+\.)+[a-z_-][a-z0-9_-]* | (?:\d{1,3}\.){3}\d{1,3})(?::\d{1,5})?
    (?:[/?\#][^\s@\\\"'<>`|{}]*)?""",
    re.ASCII,
)
"""A web address with no password in it, and not known to be that of a service of a cloud, a cluster or a daemon, which
hands out credentials: by its number, its name, a name that holds a number, or its port."""
_SAME_HOST = re.compile(r"https?://[A-Za-z0-9.-]+(?::\d+)?/[^*]*", re.ASCII)
"""A pattern, as `?` in an address is one, of which a shell makes, if at all, one address of the same machine."""
_QUOTED = re.compile(r"['\n\r\0]")
"""What a script that puts words between single quotes has to escape."""
_ADDRESS = re.compile(r"\w[\w+.-]*:/", re.ASCII)
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]{0,8})", re.ASCII)
"""What every program reads as the same integer. Some programs take anything else for the next operand: ag, for one,
takes `-A 08` for the pattern, and then what follows for a file."""
_WILD = re.compile(r"[*?\[]")
_MAGIC = re.compile(r"\A:(?:\([^)]*\)|[!^/]*):?")
"""Pathspec magic of git before a path: `:(icase)`, `:!`, `:/`."""
_OTHERS = re.compile(r":(?:[!^]|\([^)]*(?:icase|attr|exclude|glob))")
"""Magic by which a pathspec stands for other files than it names."""
_TOP = re.compile(r":(?:/|\([^)]*top)")
"""Magic by which a pathspec begins at the top of the repository."""


_UNTRACKED = re.compile(
    r"""(?ix)(?:\A|\.\.|\^)(?:[^\s:]*refs/+)?stash(?=[@^~:]|\.\.|\Z)(?!(?:@\{[^{}]*\})?:.)
    |\^(?:[3-9]|\d\d|[@-])(?!\d*:) |\A:/(?!\Z)"""
)
"""A revision that is a stash, a third parent, as in most repositories only a stash has, or a commit by its message."""
_BY_ID = re.compile(r"(?i)(?:\A|\.\.|\^|-g)[0-9a-f]{4,64}(?=[~^@:]|\.\.|\Z)")
"""A revision that is an object by its id, which may be abbreviated, also behind the name of a tag: `v1-0-g1234567`."""
_KEPT = "discloses: may show files that git did not track, of which a stash keeps copies"


class Concern(NamedTuple):
    """Why a command is not known to be read-only."""

    command: str
    """The program with its sub-command: `git branch`; "" if it is about the whole line."""
    word: str
    """The word that decided."""
    effect: str
    """One of `table.EFFECTS`."""
    why: str

    @property
    def sentence(self) -> str:
        """As shown to people: "`sort -o` writes its output to a file"."""
        if not self.command:
            return f"the command {self.why}"
        name = self.command if not self.word or self.word == self.command else f"{self.command} {self.word}"
        return f"`{name}` {self.why}"


class ReadOnlyCommand(NamedTuple):
    """A read-only command, and how it is run."""

    program: Program
    paths: tuple[str, ...] = ()
    """The files that it reads, relative to where the line starts; `~/` means the home directory."""
    at: int = 1
    """How many words name the program and its sub-command; `Program.adds` is inserted after them."""
    deep: tuple[Word, ...] = ()
    """What it reads recursively, including hidden files, relative to where the line starts."""
    filters: tuple[Filter, ...] = ()
    """Which of the files below `deep` it reads."""
    pair: bool = False
    """Whether it reads what is below `deep` only if all of these exist."""
    patterns: tuple[str, ...] = ()
    """File patterns that the shell or git expands to files that it reads, relative to where the line starts."""
    below: tuple[str, ...] = ()
    """Like `patterns`, for what it reads recursively: each ends as a `FileSet` does."""
    tracked: tuple[str, ...] = ()
    """The paths in a revision of git that it reads (`HEAD:path`)."""
    runs: bool = False
    """Whether it runs other commands, which only read as well."""


TAKE_FILES = frozenset(
    "cat head tail wc ls stat file du basename dirname echo md5sum sha1sum sha256sum sha512sum cksum nl tac strings od "
    "grep egrep fgrep realpath readlink".split()
)
"""Programs that take the name of any file for nothing else."""
_MOST_OPENED = 20_000
"""The most steps of comparing one pattern with options. After that, it may be one."""
_TAKE_ANYTHING = frozenset("ls lsblk df stat basename dirname realpath readlink which id uname nproc".split())
"""Programs that no words make do more than print names, numbers and dates."""
_TELLER = Program(name="--version", does="prints its version or its help", options={}, commands={}, environment={})


NO_FILES = KnownFiles(MappingProxyType({}))
"""Nothing is known of the disk."""


class Where(NamedTuple):
    """Where a command runs, as far as the line tells: each possible working directory, and resolved symlinks."""

    directories: tuple[str, ...] = ("",)
    """Relative to where the line starts, absolute, or from `~`; several if a `cd` may have failed."""
    files: KnownFiles = NO_FILES
    """Where paths as in `ReadOnlyCommand.paths` lead, and files that are among its `patterns` or `below`."""
    wary: bool = True
    """Whether reading a secret place speaks against a command."""


START = Where()
_UNREAD = "is not known to only read"
_UNKNOWN = "is not a program signoff knows"
_SELDOM = "is not among the programs that run unasked"


def judge_words(words: Sequence[Word], where: Where = START) -> ReadOnlyCommand | Concern:
    """Return whether the simple command is read-only, by the table of programs."""
    first = words[0]
    name = first.text
    if first.glob or first.tilde or first.unknown is not Unknown.NOT or not name:
        return Concern(name, name, "unknown", "is not a plain program name")
    if "/" in name:
        directory, _, name = name.rpartition("/")
        if directory not in PATH:
            return Concern(first.text, first.text, "runs", f"is a program outside {', '.join(PATH)}")
    known = program(name)
    seldom = where.wary and name not in unasked_programs()
    if known is None or known.trouble or seldom:
        if len(words) == 2 and name in tellers().get(words[1].text, ()):
            return ReadOnlyCommand(_TELLER)
    if known is None:
        return Concern(name, name, "unknown", _UNREAD if name in named_programs() else _UNKNOWN)
    judged = _Judge(known, words, where).judge(1)
    if seldom and isinstance(judged, ReadOnlyCommand):
        return Concern(name, name, "unknown", _SELDOM)
    return judged


def reads_network(words: Sequence[Word]) -> bool:
    """Whether a simple command, whose words are all known, only reads over the network."""
    name = words[0].text
    directory, slash, last = name.rpartition("/")
    known = network_reader(last) if not slash or directory in PATH else None
    if known is None or any(word.tilde or word.unknown is not Unknown.NOT for word in words):
        return False
    if any(word.glob and not _SAME_HOST.fullmatch(word.glob) for word in words):
        return False
    return isinstance(_Judge(known, words, START).judge(1), ReadOnlyCommand)


class _Judge:
    """Judges one command by the table."""

    def __init__(self, known: Program, words: Sequence[Word], where: Where) -> None:
        self.program = known
        self.words = words
        self.where = where
        self.paths: list[str] = []
        self.given: set[str] = set()
        self.first: set[str] = set()
        """Those before the first operand. To some programs, as to unzip, nothing behind it is an option."""
        self.deep: list[Word] = []
        self.filters: list[Filter] = []
        self.patterns: list[str] = []
        self.below = False
        """Whether every file that it is given stands for all that is below it."""
        self.tracked: list[str] = []
        self.takes_anything = known.name in _TAKE_ANYTHING and not known.risky

    def judge(self, at: int) -> ReadOnlyCommand | Concern:
        """Judge the words from `at` on, which follow the name of the program or sub-command."""
        known = self.program
        if known.trouble:
            return self.concern("", known.trouble)
        if known.language:
            return self._expression(at)
        rest = self.words[at:]
        if known.evaluates and (odd := next((word.text for word in rest if _QUOTED.search(word.text)), "")):
            return self.concern(odd, "runs: may be evaluated by the script that it is given to")
        if known.old_style and rest and not rest[0].text.startswith("-"):
            return self._old_style(at)
        operands: list[tuple[Word, bool]] = []
        stop = self._scan(rest, operands)
        if isinstance(stop, Concern):
            return stop
        if known.commands:
            return self._command(at, stop, operands)
        return self._operands(operands) or self._late_options(rest, operands) or self._reading(at)

    def _reading(self, at: int) -> ReadOnlyCommand:
        known = self.program
        hidden = not known.hidden or known.hidden & self.given or any(one.lets_in for one in self.filters)
        pair = PAIR in known.recursive and known.recursive.isdisjoint(self.given)
        walked = () if pair and len(self.deep) < 2 else tuple(self.deep)
        end = BELOW_TRACKED if self._only_tracked() else BELOW if hidden else BELOW_SHOWN
        return ReadOnlyCommand(
            known,
            tuple(self.paths),
            at,
            walked if end == BELOW else (),
            tuple(self.filters),
            pair,
            tuple(self.patterns),
            tuple((word.glob or escaped(word.text)) + end for word in walked),
            tuple(self.tracked),
        )

    def _only_tracked(self) -> bool:
        """Whether what it reads recursively is what git tracks."""
        return bool(self.program.tracked) and self.program.tracked.isdisjoint(self.given)

    def _command(self, at: int, stop: int, operands: list[tuple[Word, bool]]) -> ReadOnlyCommand | Concern:
        if not operands:
            alone = self.program.alone or self.given
            return self._together() or (ReadOnlyCommand(self.program, (), at) if alone else self._unknown(""))
        word = operands[0][0]
        below = self.program.commands.get(word.text) if not word.glob and not word.tilde else None
        if below is None:
            return self._unknown(word.text)
        # Some programs take the options before the word as those of the command, too: `git reflog --all show`.
        self.given, self.first = self.given if self.program.alone else set(), set()
        self.program = below
        return self.judge(at + stop + 1)

    def _unknown(self, word: str) -> Concern:
        return self.concern(word, f"unknown: {_UNREAD}")

    def _scan(self, rest: Sequence[Word], operands: list[tuple[Word, bool]]) -> int | Concern:
        """Read options; collect operands, each with whether it comes after `--`. Stop at a sub-command."""
        known = self.program
        if known.style == "none":
            operands.extend((word, True) for word in rest)
            return len(rest)
        at = 0
        while at < len(rest):
            word = rest[at]
            text = word.text
            if word.unknown is not Unknown.NOT and self.takes_anything:
                operands.append((word, False))
                at += 1
                continue
            if word.unknown is not Unknown.NOT and known.options and (why := self._may_be_option(word)):
                return why
            if (
                len(text) < 2
                or text[0] not in "-+"
                or (text[0] == "+" and known.options.keys().isdisjoint((text, text[:2])))
            ):
                if known.commands:
                    operands.append((word, False))
                    return at
                if known.style == "posix":  # after the first operand, nothing is an option
                    operands.extend((other, number > 0) for number, other in enumerate(rest[at:]))
                    return len(rest)
                operands.append((word, False))
                at += 1
                continue
            if text == "--":
                if known.commands:  # `git stash -- list` is not `git stash list`
                    return self._unknown(text)
                operands.extend((other, True) for other in rest[at + 1 :])
                return len(rest)
            used = self._option(word, rest[at + 1] if at + 1 < len(rest) else None)
            if isinstance(used, Concern):
                return used
            if not operands:
                self.first = set(self.given)
            at += used
        return at

    def _may_be_option(self, word: Word) -> Concern | None:
        """Return a concern if a word of which only a part is known may be an option."""
        if word.text.startswith(HOLE) or word.text[0] in "-+" or word.unknown is Unknown.ANY:
            return self.concern("", f"unknown: {_AT_RUN_TIME}")
        return None

    def _option(self, word: Word, following: Word | None) -> int | Concern:
        """Read one word of options. Return how many words it took."""
        text, known = word.text, self.program
        if word.glob:
            return self.concern(text, "unknown: is a pattern that the shell may expand to other options")
        if text == "-m" and following is not None and not following.glob and following.text in known.modules:
            return self.concern("", f"runs: runs the module `{following.text}`: tests, which are code of the project")
        whole = known.options.get(text)
        if whole is not None and (text.startswith("--") or known.style == "single" or len(text) > 2):
            return self._take(whole, text, None, following)
        if text.startswith("--"):
            name, equals, value = text.partition("=")
            option = known.options.get(name)
            if option is None or not equals:
                return self._no_option(name)
            return self._take(option, name, value, following)
        if known.digits and text[1:].isdigit():
            return 1
        if known.style == "single":
            option = known.options.get(text[:2])
            attached = option is not None and option.takes is not TakesValue.NOTHING
            return self._take(option, text[:2], text[2:], following) if option and attached else self._no_option(text)
        return self._bundle(text, following)

    def _bundle(self, text: str, following: Word | None) -> int | Concern:
        for place, letter in enumerate(text[1:], start=2):
            name = text[0] + letter
            option = self.program.options.get(name)
            if option is None:
                return self._no_option(name if len(text) == 2 else f"{name}` in `{text}")
            if option.trouble or option.takes is not TakesValue.NOTHING:
                return self._take(option, name, text[place:] or None, following)
            self.given.add(name)
        return 1

    def _take(self, option: CommandOption, name: str, value: str | None, following: Word | None) -> int | Concern:
        """Accept an option and check its value. Return how many words it took."""
        if option.trouble:
            return self.concern(name, option.trouble)
        self.given.add(name)
        if option.takes is TakesValue.NOTHING:
            return 1 if value is None else self.concern(f"{name}={value}", "unknown: takes no value")
        if value is not None:
            return self._value(option, name, Word(value)) or 1
        if option.takes is TakesValue.MAYBE:
            return 1
        if following is None:
            return self.concern(name, "unknown: has no value")
        if following.glob:
            return self.concern(following.text, "unknown: is a pattern that the shell may expand to several words")
        if following.unknown is Unknown.ANY and not self.takes_anything:
            return self.concern("", f"unknown: {_AT_RUN_TIME}")
        return self._value(option, name, following) or 2

    def _value(self, option: CommandOption, name: str, value: Word) -> Concern | None:
        concern = self._check(option.kind, value)
        if concern is None and name in self.program.directory:
            self.where = self.where._replace(directories=tuple(self._seen_from(value.text)))
        return concern

    def _no_option(self, name: str) -> Concern:
        longer = [known for known in self.program.options if name.startswith("--") and known.startswith(name)]
        hint = f", and may be short for `{longer[0]}`" if longer else ""
        return self.concern(name, f"unknown: {_UNREAD}{hint}")

    def _operands(self, operands: list[tuple[Word, bool]]) -> Concern | None:
        known = self.program
        if known.needs and known.needs.isdisjoint(self.first):
            return self.concern("", known.needs_trouble)
        if trouble := self._together():
            return trouble
        if operands and known.operands_need and known.operands_need.isdisjoint(self.first):
            return self.concern(operands[0][0].text, known.operands_trouble)
        kinds = known.operands[1:] if known.no_first & self.given else known.operands
        deep = self.below or (bool(known.recursive) and not known.recursive.isdisjoint({ALWAYS, PAIR, *self.given}))
        for number, (word, closed) in enumerate(operands):
            if number >= len(kinds) and not (known.repeats and kinds):
                return self.concern(word.text, "unknown: is an operand with which it may do more than read")
            kind = kinds[min(number, len(kinds) - 1)]
            concern = self._glob(word, closed, number, kinds) if word.glob else None
            if (
                word.unknown is Unknown.ANY
                and not (known.repeats and number >= len(kinds) - 1)
                and not self.takes_anything
            ):
                concern = self.concern("", f"unknown: {_AT_RUN_TIME}")
            concern = concern or self._check(kind, word, deep, closed)
            if concern is not None:
                return concern
        return self._below_here(operands, kinds) if deep and PAIR not in known.recursive else None

    def _together(self) -> Concern | None:
        """Check options that are only harmless with others, or without them."""
        known = self.program
        for some, others in known.only_with:
            if (mine := some & self.given) and others.isdisjoint(self.given):
                return self.concern(min(mine), known.only_with_trouble)
        for some, others in known.not_with:
            if (mine := some & self.given) and others & self.given:
                return self.concern(min(mine), known.not_with_trouble)
        return None

    def _late_options(self, rest: Sequence[Word], operands: list[tuple[Word, bool]]) -> Concern | None:
        """Check options after the first operand. Some programs, most on BSD and macOS, take them for operands."""
        kinds = self.program.operands
        if not operands or not kinds or self.program.style in ("posix", "none"):
            return None
        first = next(at for at, word in enumerate(rest) if word is operands[0][0])
        for number, word in enumerate(rest[first:]):
            if number >= len(kinds) and not self.program.repeats:
                return None  # one operand too many: it fails with an error
            kind = kinds[min(number, len(kinds) - 1)].name
            if kind == "output":
                return self.concern(
                    word.text, "writes: writes to a file of this name, on systems where options come first"
                )
            for path in self._seen_from(word.text) if kind == "path" and word.text[:1] != "-" else ():
                if why := self._secret(path, deep=False):
                    return self.concern(word.text, f"discloses: may be read as a file, and {word.text} {why}")
        return None

    def _seen_from(self, path: str) -> Iterator[str]:
        return (seen for directory in self.where.directories for seen in seen_from(directory, path))

    def _below_here(self, operands: list[tuple[Word, bool]], kinds: tuple[OperandKind, ...]) -> Concern | None:
        """Check a recursive command without a directory: it starts in the working directory."""
        named = [closed for _, closed in operands[len(kinds) - 1 :]]
        if any(named) if self._only_tracked() else named:  # before `--` it may be a revision
            return None
        return self._check(OperandKind("path"), Word("."), deep=True)

    def _glob(self, word: Word, closed: bool, number: int, kinds: tuple[OperandKind, ...]) -> Concern | None:
        if not (self.program.repeats and number >= len(kinds) - 1) and self.program.style != "none":
            return self.concern(word.text, "unknown: is a pattern that the shell may expand to several operands")
        if not closed and word.glob[0] in "-*?[" and (self.program.risky or self._may_open(word.glob)):
            why = "is a pattern that the shell may expand to an option; put `--` or `./` before it"
            return self.concern(word.text, f"unknown: {why}")
        return None

    def _may_open(self, glob: str) -> bool:
        """Whether the shell may expand a pattern to an option that names a file, and does so hardly by chance."""
        options = [name for name, option in self.program.options.items() if option.kind.name == "path"]
        count = StepCount(_MOST_OPENED)
        fits = any(may_share(f"{name}={RUN}" if name[:2] == "--" else f"{name}{RUN}", glob, count) for name in options)
        return fits and (glob[0] != "*" or names_secret(glob) != "")

    def _check(self, kind: OperandKind, word: Word, deep: bool = False, closed: bool = False) -> Concern | None:
        """Return why a value or operand is not harmless or not what its kind says; None if it is.

        `closed` says that it comes after `--`.
        """
        if kind.name in ("text", "revision"):
            return self._kept(word) if kind.name == "revision" else None
        if word.unknown is not Unknown.NOT:
            return None if self.takes_anything else self.concern("", f"unknown: {_AT_RUN_TIME}")
        if kind.name == "name":
            return self._name(word)
        if kind.name == "number":
            return None if _NUMBER.fullmatch(word.text) else self.concern(word.text, "unknown: is not a number")
        if kind.name == "path":
            return self._address(word) or self._path(word, deep)
        if kind.name == "web":
            return None if _WEB.fullmatch(word.text) else self.concern(word.text, "sends: is not a plain web address")
        if kind.name == "ref":
            return self._ref(word, deep, closed)
        if kind.name in _FILTERS:
            return self._filter(kind.name, word)
        if kind.regex is not None:
            if word.glob or kind.regex.fullmatch(word.text) is None:
                return self.concern(word.text, "unknown: is a value with which it may do more than read")
            return self._path(word, deep) if word.text[:1] not in "@+-" else None
        if kind.name in _SCRIPTS:
            trouble = _SCRIPTS[kind.name](word.text)
            return self._in_script(trouble) if trouble is not None else None
        return self.concern(word.text, _ALWAYS[kind.name])

    def _address(self, word: Word) -> Concern | None:
        if not _ADDRESS.match(word.text) or self.program.name.partition(" ")[0] in TAKE_FILES:
            return None
        return self.concern(word.text, "sends: may be an address that it connects to")

    def _name(self, word: Word) -> Concern | None:
        """Check a file that is not read. A pattern for several may still stand for an option that names one to read."""
        if (
            not self.where.wary
            or not word.glob
            or not any(option.kind.name == "path" for option in self.program.options.values())
        ):
            return None
        globs = tuple(self._seen_from(word.glob))
        self.patterns += globs
        if all(self.where.files.leads.get(glob) != UNFOLLOWED for glob in globs):
            return None
        return self.concern(word.text, "unknown: stands for files that cannot be looked at, or for an option")

    def _in_script(self, trouble: Trouble) -> Concern:
        return self.concern(trouble.word, trouble.why)

    def _filter(self, kind: str, word: Word) -> Concern | None:
        """Check a pattern for the names of files to read or to leave out."""
        text = word.text
        if text.startswith(("[!", "[^")) and self.where.wary:
            return self.concern(text, "discloses: also matches hidden files, which may hold secrets")
        if kind == "pattern":
            why = regex_names_secret(text)
        elif kind == "glob" and not text.startswith("!"):
            pattern = text.rpartition(":")[2]
            why = names_secret(text) or names_secret(pattern)
            self.filters.append(Filter(True, pattern))
        else:
            why = ""
            self.filters.append(Filter(False, text.removeprefix("!"), directories=kind == "skip_directory"))
        return self.concern(text, f"discloses: selects files whose name {why}") if why and self.where.wary else None

    def _ref(self, word: Word, deep: bool, closed: bool) -> Concern | None:
        """Check a revision, a path, a pathspec, or `revision:path`."""
        # Where only revisions are expected, `--` does not make a path of what follows.
        if (not closed or not self.program.repeats) and (kept := self._kept(word)):
            return kept
        _, colon, tracked = word.text.rpartition(":")
        pathspec = _MAGIC.sub("", word.text)
        for path in (tracked, pathspec):
            if path and self.where.wary and (why := names_secret(path)):
                return self.concern(word.text, f"discloses: reads {path}, which {why}")
        if colon:
            self.tracked.append(tracked)
            if tracked.startswith(("./", "../")) or tracked == "..":
                self.paths += self._seen_from(tracked)
        if word.text.startswith(":") and not word.glob:
            self.tracked.append(pathspec)
            if _OTHERS.match(word.text):
                self.patterns += self._seen_from("**")
            if _TOP.match(word.text):
                self.deep.append(Word("/"))
        if found := _WILD.search(pathspec):  # git expands what the shell leaves: its `*` matches any characters
            self.patterns += self._seen_from(pathspec.replace("*", "**"))
            top = pathspec[: found.start()].rpartition("/")[0] or "."
            whys = (self._walk(Word(top), path, ()) for path in self._seen_from(top)) if deep else ()
            if why := next(filter(None, whys), ""):
                return self.concern(word.text, f"discloses: reads what is below {top}: {why}")
        return self._path(word, deep=True, walks=deep)

    def _kept(self, word: Word) -> Concern | None:
        """Check a revision: whether it may be what a stash keeps of files that git did not track."""
        by_id = bool(self.program.by_id) and self.program.by_id.isdisjoint(self.given)
        found = _UNTRACKED.search(word.text) or (by_id and _BY_ID.search(word.text))
        return self.concern(word.text, _KEPT) if found and self.where.wary else None

    def _path(self, word: Word, deep: bool, walks: bool | None = None) -> Concern | None:
        if word.text == "-" and not word.glob:
            return None
        if word.text.startswith("@"):
            return self.concern(word.text, "unknown: may name a file with options and file names")
        if word.text.startswith(_SOCKETS):
            return self.concern(word.text, "sends: may open a network connection, as some programs do for such names")
        walks = deep if walks is None else walks
        for directory in self.where.directories:
            globs = seen_from(directory, word.glob) if word.glob else ()
            for path in seen_from(directory, word.text):
                for named in (path, *(path + suffix for suffix in self.program.suffixes)):
                    if why := self._secret(named, deep):
                        return self.concern(word.text, f"discloses: reads {word.text}, which {why}")
                    if not word.glob:
                        self.paths.append(named)
                if walks and (why := self._walk(word, path, globs)):
                    return self.concern(word.text, f"discloses: reads what is below {word.text}: {why}")
            self.patterns += globs
            if why := self._in_patterns(globs):
                return self.concern(word.text, f"discloses: reads {word.text}, which {why}")
        return None

    def _walk(self, word: Word, path: str, globs: Sequence[str]) -> str:
        """Note that it reads what is below a path, or below what patterns stand for. Return why it must not, or ""."""
        self.deep += [Word(path, glob, word.tilde) for glob in globs or ("",)]
        end = BELOW_TRACKED if self._only_tracked() else BELOW
        return next((why for top in globs or (escaped(path),) if (why := self._found(top + end))), "")

    def _in_patterns(self, globs: Sequence[str]) -> str:
        """Return why a pattern may stand for a secret place, by its text or by the files that it is known to match."""
        if not self.where.wary:
            return ""
        named = (may_match_secret(pattern) for glob in globs for pattern in _depths(glob))
        return next(filter(bool, chain(named, map(self._found, globs))), "")

    def _found(self, pattern: str) -> str:
        """Return why one of the files that a pattern is known to stand for must not be read; "" if nothing is known."""
        return self.where.files.trouble(pattern) if self.where.wary else ""

    def _secret(self, path: str, deep: bool) -> str:
        """Return why a file must not be read, by its name or by its target with symlinks resolved; "" if it may."""
        if not self.where.wary:
            return ""
        leads = self.where.files.leads.get(path, path)
        return (
            secret_place(path) or secret_place(leads) or (holds_secrets(path) or holds_secrets(leads) if deep else "")
        )

    def _expression(self, at: int) -> ReadOnlyCommand | Concern:
        """Check the words of a program that has its own language for them."""
        if self.program.language not in _KNOW_UNKNOWN and any(word.unknown is not Unknown.NOT for word in self.words):
            return self.concern("", f"unknown: {_AT_RUN_TIME}")
        words = self.words[at:]
        if self.program.language == "find" and any(word.text == "-exec" for word in words):
            return self._executing(words, at)
        found = OF_WORDS[self.program.language](words)
        if isinstance(found, Trouble):
            return self._in_script(found)
        return ReadOnlyCommand(self.program, (), at)

    def _executing(self, words: Sequence[Word], at: int) -> ReadOnlyCommand | Concern:
        """Judge what find runs for the files that it finds, as if it were given all that is below the start."""
        parts = executed(words)
        if isinstance(parts, Trouble):
            return self._in_script(parts)
        rest, commands = parts
        found = check_find(rest)
        if isinstance(found, Trouble):
            return self._in_script(found)
        starts = found.paths or (Word("."),)
        for command in commands:
            known = program(command[0].text) if command[0].text in TAKE_FILES else None
            if known is None:
                return self.concern(f"-exec {command[0].text}", "runs: runs a program for each file that it finds")
            given = [one for word in command for one in (starts if word.text == "{}" else (word,))]
            inner = _Judge(known, given, self.where)
            inner.below = True
            judged = inner.judge(1)
            if isinstance(judged, Concern):
                return judged
            if judged.paths and self.where.wary and (found := _sought_secret(rest)):
                return self.concern(*found)
            self.paths += judged.paths
            self.patterns += judged.patterns
            self.deep += inner.deep
        return self._reading(at)._replace(runs=True)

    def _old_style(self, at: int) -> ReadOnlyCommand | Concern:
        """Read `tar tfv x` as `tar -tv -f x`, if at most one letter takes a value."""
        bundle = self.words[at]
        known = {letter: self.program.options.get(f"-{letter}") for letter in bundle.text}
        valued = [letter for letter, one in known.items() if one is not None and one.takes is not TakesValue.NOTHING]
        if bundle.glob or bundle.tilde or len(valued) > 1 or not bundle.text.isalnum():
            return self._unknown(bundle.text)
        flags = "".join(letter for letter in bundle.text if letter not in valued)
        dashed = [Word(f"-{letters}") for letters in (flags, *valued) if letters]
        self.words = (*self.words[:at], *dashed, *self.words[at + 1 :])
        return self.judge(at)

    def concern(self, word: str, trouble: str) -> Concern:
        effect, _, why = trouble.partition(": ")
        return Concern(self.program.name, word, effect, why)


def _sought_secret(words: Sequence[Word]) -> tuple[str, str] | None:
    """Return the pattern by which find looks for secret places, and what that does; None if there is none."""
    for at, (option, value) in enumerate(pairwise(words)):
        name = option.text.removeprefix("-").removeprefix("i")
        if option.text[:1] != "-" or name not in _NAMED or (at and words[at - 1].text in ("!", "-not")):
            continue
        why = regex_names_secret(value.text) if name == "regex" else names_secret(value.text)
        if why:
            return value.text, f"discloses: selects files whose name {why}"
    return None


def _depths(pattern: str) -> Iterator[str]:
    """Yield a pattern, and what `**/` stands for in some shells: any number of directories, also none."""
    yield pattern
    if "**/" in pattern:
        yield from (pattern.replace("**/", "*/" * depth) for depth in range(_DEEPEST))


def seen_from(directory: str, path: str) -> tuple[str, ...]:
    """Return a path relative to where the line starts.

    `..` after a symlink leads elsewhere than the text says, so it is kept; but `cd` resolves it textually, so both are
    returned.
    """
    if not directory or path.startswith(("/", "~/")) or path == "~":
        return (path,)
    return (
        tuple(dict.fromkeys((join(directory, path), join(normal(directory), path))))
        if ".." in directory
        else (join(directory, path),)
    )
